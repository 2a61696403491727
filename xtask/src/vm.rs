//! `cargo xtask vm`: runs programs of this workspace in a virtual machine with Debian's kernel, for a second result
//! beside that of this machine's kernel. It is older, and has queues and congestion controls that other kernels leave
//! out. No hardware support is needed.

use std::collections::BTreeSet;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::args::Args;

/// Options of `vm`.
pub struct Options {
    /// Shell commands to run there; programs named with --with are in PATH, as are ip, tc and busybox's.
    script: String,
    /// Programs to take along, with the libraries that they need.
    programs: Vec<PathBuf>,
    /// The suite of Debian whose kernel it is; without one, that of this machine's lists of packages.
    suite: Option<String>,
    /// Memory in MiB.
    memory: u32,
    /// Seconds after which the machine is stopped.
    limit: u32,
}

impl Options {
    /// Reads the options.
    ///
    /// # Errors
    /// If the script is missing, or a value is none.
    pub fn read(args: &mut Args) -> Result<Self, String> {
        let programs = args.values("--with")?.into_iter().map(PathBuf::from).collect();
        let suite = args.values("--suite")?.pop().map(|suite| suite.to_string_lossy().into_owned());
        let is_suite = |suite: &String| {
            !suite.is_empty() && suite.bytes().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == b'-')
        };
        if let Some(suite) = suite.as_ref().filter(|suite| !is_suite(suite)) {
            return Err(format!("`--suite` of `vm` is a name as `bookworm-backports`, and not `{suite}`"));
        }
        let (memory, limit) = (args.number("--memory", 768)?, args.number("--limit", 300)?);
        let script = args.word("a script")?.into_string().map_err(|_| "the script is no text".to_owned())?;
        Ok(Self { script, programs, suite, memory, limit })
    }
}

/// The package that depends on the newest kernel.
const KERNEL: &str = "linux-image-cloud-amd64";
/// The machine's processor. QEMU 7.2 gets `cmpxchg16b` wrong, which kernels from 6.12 on use where it is there.
const CPU: &str = "max,-cx16";
/// Debian's packages, and the keys that have signed their lists.
const MIRROR: &str = "http://deb.debian.org/debian";
const KEYS: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";
/// Modules that are loaded at the start.
const MODULES: [&str; 7] = [
    "drivers/net/veth",
    "net/sched/sch_tbf",
    "net/sched/sch_netem",
    "net/sched/sch_fq",
    "net/sched/sch_ingress",
    "net/sched/cls_bpf",
    "net/ipv4/tcp_dctcp",
];
/// Programs of the system that are copied into the machine.
const SYSTEM: [&str; 3] = ["dash", "ip", "tc"];
/// Texts that the machine prints before the script's output, and before its exit code when it has ended.
const BEGINS: &str = "fairrate vm: Linux ";
const ENDED: &str = "fairrate vm: exit code ";

/// Runs the script. Returns `true` if it succeeds.
///
/// # Errors
/// If the virtual machine cannot be created or started: it needs qemu-system-x86, busybox-static and Debian's package
/// tools.
pub fn run(root: &Path, options: &Options) -> Result<bool, String> {
    let dir = root.join("target/vm").join(options.suite.as_deref().unwrap_or_default());
    std::fs::create_dir_all(&dir).map_err(|e| format!("{}: {e}", dir.display()))?;
    let kernel = kernel(&dir, options.suite.as_deref())?;
    let image = initramfs(&dir, &kernel, options)?;
    let mut qemu = Command::new("timeout");
    qemu.arg(options.limit.to_string()).args(["qemu-system-x86_64", "-accel", "tcg", "-cpu", CPU, "-smp", "1", "-m"]);
    qemu.arg(options.memory.to_string()).args(["-nographic", "-no-reboot", "-nic", "none", "-kernel"]);
    qemu.arg(&kernel.image).arg("-initrd").arg(image).args(["-append", "console=ttyS0 quiet panic=-1"]);
    let output = qemu.stdin(Stdio::null()).output().map_err(|e| format!("qemu-system-x86_64: {e}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    // The text before it is from the firmware.
    let said = text.find(BEGINS).map_or(&*text, |at| &text[at..]);
    print!("{said}");
    match said.split_once(ENDED).and_then(|(_, code)| code.lines().next()) {
        Some(code) => Ok(code.trim() == "0"),
        None => Err(format!("the machine did not come to the end of the script in {} s", options.limit)),
    }
}

/// A kernel and its modules.
struct Kernel {
    image: PathBuf,
    modules: PathBuf,
}

/// Returns Debian's kernel, of `suite` if that is given, downloaded to `dir` if it is not there yet.
fn kernel(dir: &Path, suite: Option<&str>) -> Result<Kernel, String> {
    let unpacked = dir.join("kernel");
    if !unpacked.join("boot").exists() {
        let lists = suite.map(|suite| lists(dir, suite)).transpose()?.unwrap_or_default();
        let depends = said(Command::new("apt-cache").args(&lists).args(["depends", KERNEL]))?;
        let newest =
            depends.lines().find_map(|line| line.trim().strip_prefix("Depends: ")).ok_or("there is no such kernel")?;
        said(Command::new("apt-get").args(&lists).args(["download", "-q", newest]).current_dir(dir))?;
        let package =
            entry(dir, |name| name.starts_with(newest) && Path::new(name).extension().is_some_and(|e| e == "deb"))?;
        said(Command::new("dpkg-deb").arg("-x").arg(&package).arg(&unpacked))?;
    }
    let library =
        ["lib/modules", "usr/lib/modules"].map(|name| unpacked.join(name)).into_iter().find(|dir| dir.is_dir());
    Ok(Kernel {
        image: entry(&unpacked.join("boot"), |name| name.starts_with("vmlinuz"))?,
        modules: entry(&library.ok_or("the kernel has no modules")?, |_| true)?.join("kernel"),
    })
}

/// Fetches the list of the packages of `suite` into `dir`. Returns the options with which apt's tools go by it, and not
/// by those of this machine.
fn lists(dir: &Path, suite: &str) -> Result<Vec<String>, String> {
    let apt = std::path::absolute(dir.join("apt")).map_err(|e| format!("{}: {e}", dir.display()))?;
    for name in ["state/lists/partial", "cache/archives/partial"] {
        std::fs::create_dir_all(apt.join(name)).map_err(|e| format!("{}: {e}", apt.display()))?;
    }
    let sources = apt.join("sources.list");
    let line = format!("deb [signed-by={KEYS}] {MIRROR} {suite} main\n");
    std::fs::write(&sources, line).map_err(|e| format!("{}: {e}", sources.display()))?;
    let settings = [
        ("Dir::State", apt.join("state")),
        ("Dir::Cache", apt.join("cache")),
        ("Dir::Etc::SourceList", sources),
        ("Dir::Etc::SourceParts", "-".into()),
        ("Dir::State::status", "/dev/null".into()),
        ("APT::Sandbox::User", "root".into()),
    ];
    let options: Vec<String> =
        settings.iter().flat_map(|(key, value)| ["-o".to_owned(), format!("{key}={}", value.display())]).collect();
    said(Command::new("apt-get").args(&options).args(["update", "-q"]))?;
    Ok(options)
}

/// Creates the machine's whole file system, which it boots from.
fn initramfs(dir: &Path, kernel: &Kernel, options: &Options) -> Result<PathBuf, String> {
    let (root, image) = (dir.join("root"), dir.join("initramfs"));
    let failed = |e: std::io::Error| format!("{}: {e}", root.display());
    if root.exists() {
        std::fs::remove_dir_all(&root).map_err(failed)?;
    }
    for name in ["bin", "sbin", "proc", "sys", "dev", "tmp", "run/netns", "modules"] {
        std::fs::create_dir_all(root.join(name)).map_err(failed)?;
    }
    let busybox = located("busybox")?;
    std::fs::copy(&busybox, root.join("bin/busybox")).map_err(failed)?;
    for applet in said(Command::new(&busybox).arg("--list"))?.lines().filter(|applet| *applet != "busybox") {
        symlink("busybox", root.join("bin").join(applet)).map_err(failed)?;
    }
    let system = SYSTEM.iter().map(|name| located(name)).collect::<Result<Vec<_>, _>>()?;
    for program in system.iter().chain(&options.programs) {
        take_along(program, &root)?;
    }
    for module in MODULES {
        let file = kernel.modules.join(module).with_extension("ko");
        let name = file.file_name().ok_or("a module has a name")?;
        let inside = root.join("modules").join(name);
        let packed = file.with_extension("ko.xz");
        if packed.exists() {
            // Kernels from 6.12 on.
            let unpack = format!("xz --decompress --stdout '{}' > '{}'", packed.display(), inside.display());
            said(Command::new("sh").args(["-c", &unpack]))?;
        } else {
            std::fs::copy(&file, inside).map_err(|e| format!("{}: {e}", file.display()))?;
        }
    }
    std::fs::write(root.join("script"), &options.script).map_err(failed)?;
    std::fs::write(root.join("init"), INIT).map_err(failed)?;
    std::fs::set_permissions(root.join("init"), std::fs::Permissions::from_mode(0o755)).map_err(failed)?;
    let pack =
        format!("cd '{}' && find . | {} cpio -o -H newc > '{}'", root.display(), busybox.display(), image.display());
    said(Command::new("sh").args(["-c", &pack]))?;
    Ok(image)
}

/// Script of the first process.
const INIT: &str = r#"#!/bin/sh
export PATH=/bin:/sbin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mount -t tmpfs tmp /tmp
mount -t bpf bpf /sys/fs/bpf
mount -t cgroup2 cgroup /sys/fs/cgroup
/bin/ip link set lo up
for module in /modules/*.ko; do insmod "$module"; done
echo "fairrate vm: Linux $(uname -r)"
# The shell of busybox would take its own ip and tc.
dash /script 2>&1
echo "fairrate vm: exit code $?"
poweroff -f
"#;

/// Copies a program and the libraries that it needs.
fn take_along(program: &Path, root: &Path) -> Result<(), String> {
    let failed = |e: std::io::Error| format!("{}: {e}", program.display());
    let name = program.file_name().ok_or_else(|| format!("{} is no program", program.display()))?;
    let inside = root.join("bin").join(name);
    if inside.is_symlink() {
        std::fs::remove_file(&inside).map_err(failed)?;
    }
    std::fs::copy(program, &inside).map_err(failed)?;
    let needs = said(Command::new("ldd").arg(program)).unwrap_or_default();
    let libraries: BTreeSet<&str> = needs.split_whitespace().filter(|word| word.starts_with('/')).collect();
    for library in libraries {
        let to = root.join(library.trim_start_matches('/'));
        std::fs::create_dir_all(to.parent().unwrap_or(root)).map_err(failed)?;
        std::fs::copy(library, to).map_err(failed)?;
    }
    Ok(())
}

/// Returns the path of a program in PATH.
fn located(name: &str) -> Result<PathBuf, String> {
    let dirs = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&dirs).map(|dir| dir.join(name)).find(|path| path.is_file());
    found.ok_or_else(|| format!("`{name}` is not in PATH"))
}

/// Returns the path of an entry of a directory whose name satisfies `is_it`.
fn entry(dir: &Path, is_it: impl Fn(&str) -> bool) -> Result<PathBuf, String> {
    let entries = std::fs::read_dir(dir).map_err(|e| format!("{}: {e}", dir.display()))?;
    let mut found = entries.flatten().filter(|entry| entry.file_name().to_str().is_some_and(&is_it));
    found.next().map(|entry| entry.path()).ok_or_else(|| format!("{} has no such entry", dir.display()))
}

/// Runs a program and returns its output. If it fails, the error has its messages.
fn said(command: &mut Command) -> Result<String, String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(|e| format!("{name}: {e}"))?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    } else {
        Err(format!("{name}: {}", String::from_utf8_lossy(&output.stderr).trim()))
    }
}
