//! `cargo xtask dist`: what a release has, in `target/dist`: an archive of the programs, Debian packages, the wheel of
//! the Python package and their checksums. Each is then tried as a user without this repository would.

mod contents;
mod deb;
mod files;
mod licences;
mod links;
mod sbom;
mod sources;
mod systems;
mod trial;
mod wheel;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::args::Args;
use crate::{cargo, kernel};

/// The version of the release, that of all packages.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The programs that need neither clang nor libelf, with the crates they are built from.
const PROGRAMS: [(&str, &str); 5] = [
    ("fairrate", "fairrate-cli"),
    ("fairrate-picture", "fairrate-picture"),
    ("fairrate-testbed", "fairrate-testbed"),
    ("fairrate-watch", "fairrate-watch"),
    ("fairrate-allocator", "fairrate-daemon"),
];
/// The programs that load eBPF programs into the kernel.
const BPF_PROGRAMS: [(&str, &str); 2] = [("fairrate-agent", "fairrate-agent"), ("fairrate-kernel", "fairrate-kernel")];
/// Units of systemd.
const UNITS: [&str; 2] = ["fairrate-allocator.service", "fairrate-agent.service"];

/// Options of the task.
pub struct Options {
    /// `true` for cargo's profile for development: for the checks, which have built the programs with it.
    dev: bool,
    /// `true` if what this machine lacks is left out and named.
    if_possible: bool,
    /// `true` for the Debian packages alone.
    packages: bool,
}

impl Options {
    /// Reads the options from `args`.
    pub fn read(args: &mut Args) -> Self {
        Self { dev: args.flag("--dev"), if_possible: args.flag("--if-possible"), packages: args.flag("--packages") }
    }
}

/// A release that is being made.
struct Release<'a> {
    root: &'a Path,
    options: &'a Options,
    /// Programs that are part of it, by name.
    programs: Vec<&'static str>,
    /// The crates that they are built from.
    crates: Vec<&'static str>,
    /// The directory of what is handed on.
    out: PathBuf,
    /// The directory of programs, manual pages and so on, laid out as below `/usr`.
    stage: PathBuf,
}

/// Makes the release and tries it. Returns `true` if all of it works.
///
/// # Errors
/// If a program that this needs is missing, or a file cannot be written.
pub fn run(root: &Path, options: &Options) -> Result<bool, String> {
    let mut built = PROGRAMS.to_vec();
    match kernel::missing() {
        None => built.extend(BPF_PROGRAMS),
        Some(what) if options.if_possible => println!("left out: fairrate-agent and fairrate-kernel: {what}"),
        Some(what) => return Err(format!("fairrate-agent and fairrate-kernel cannot be built: {what}")),
    }
    let out = cargo::target(root).join("dist");
    files::empty(&out)?;
    let stage = cargo::target(root).join("dist-stage");
    files::empty(&stage)?;
    let (programs, crates) = built.iter().copied().unzip();
    let release = Release { root, options, programs, crates, out, stage };
    release.build(&built)?;
    release.fill_stage()?;
    if options.packages {
        deb::make(&release)?;
        release.checksums()?;
        trial::packages(&release)?;
    } else {
        release.archive()?;
        deb::make(&release)?;
        let wheel = wheel::make(&release)?;
        release.checksums()?;
        trial::run(&release, wheel.as_deref())?;
    }
    println!("the release is in {}:", release.out.display());
    let mut sizes = files::list(&release.out)?;
    sizes.sort();
    for path in sizes {
        let bytes = path.metadata().map_or(0, |metadata| metadata.len());
        println!("  {:>6.1} MB  {}", bytes as f64 / 1e6, files::name(&path));
    }
    Ok(true)
}

impl Release<'_> {
    /// Builds the programs `built` and copies them to the stage.
    fn build(&self, built: &[(&'static str, &'static str)]) -> Result<(), String> {
        let mut args = vec!["build", "--locked", "--quiet"];
        if self.options.dev {
            // As the other checks build it, so that dependencies have the same features.
            args.extend(["--workspace", "--test", "memory", "--bins"]);
        } else {
            args.push("--release");
            args.extend(built.iter().flat_map(|(_, package)| ["--package", package]));
        }
        if self.programs.contains(&"fairrate-agent") {
            args.extend(["--features", kernel::FEATURES]);
        }
        if !cargo::run(self.root, &args)? {
            return Err("the programs cannot be built".to_owned());
        }
        let from = cargo::target(self.root).join(if self.options.dev { "debug" } else { "release" });
        for name in &self.programs {
            let to = self.stage.join("bin").join(name);
            files::copy(&from.join(name), &to)?;
            succeeds(Command::new("strip").arg(&to))?;
        }
        Ok(())
    }

    /// Fills the stage with all that is not a program.
    fn fill_stage(&self) -> Result<(), String> {
        let share = self.stage.join("share");
        let program = |name: &str| Command::new(self.stage.join("bin").join(name));
        for name in &self.programs {
            succeeds(program(name).args(["man", "--out"]).arg(share.join("man/man1")))?;
            for (shell, file) in completions(name) {
                files::write(&share.join(file), &output(program(name).args(["completions", shell]))?)?;
            }
        }
        let doc = share.join("doc/fairrate");
        let mut of_others = licences::text(self.root, &[])?;
        // npm fetches it when this program is built, so cargo does not know it.
        let of_page = output(program("fairrate-watch").arg("licences"))?;
        let _ = write!(of_others, "\n{}\nThe page of fairrate-watch\n\n", "-".repeat(80));
        of_others += &String::from_utf8_lossy(&of_page);
        files::write(&doc.join(licences::FILE), of_others.as_bytes())?;
        files::write(&doc.join("sbom.cdx.json"), sbom::text(self.root, &self.crates)?.as_bytes())?;
        contents::copy(self.root, &self.stage)?;
        let units = self.stage.join("lib/systemd/system");
        for unit in UNITS {
            files::copy(&self.root.join("packaging").join(unit), &units.join(unit))?;
        }
        let sysusers = self.stage.join("lib/sysusers.d/fairrate-allocator.conf");
        files::copy(&self.root.join("packaging/fairrate-allocator.sysusers"), &sysusers)
    }

    /// Writes the archive: the same bytes from the same files.
    fn archive(&self) -> Result<(), String> {
        let name = format!("fairrate-{VERSION}-{}-linux", std::env::consts::ARCH);
        let mut tar = Command::new("tar");
        tar.arg("--create").arg("--gzip").arg("--file").arg(self.out.join(format!("{name}.tar.gz")));
        tar.args(["--sort=name", "--owner=0", "--group=0", "--numeric-owner", "--mtime=@0"]);
        tar.arg(format!("--transform=s,^\\.,{name},")).arg("--directory").arg(&self.stage).arg(".");
        succeeds(&mut tar)
    }

    /// Writes the checksums of all files.
    fn checksums(&self) -> Result<(), String> {
        let mut names: Vec<String> = files::list(&self.out)?.iter().map(|path| files::name(path)).collect();
        names.sort();
        let sums = output(Command::new("sha256sum").args(names).current_dir(&self.out))?;
        files::write(&self.out.join("SHA256SUMS"), &sums)
    }
}

/// Returns the places of a program's completions below `share`, each with its shell.
fn completions(name: &str) -> [(&'static str, String); 3] {
    [
        ("bash", format!("bash-completion/completions/{name}")),
        ("zsh", format!("zsh/site-functions/_{name}")),
        ("fish", format!("fish/vendor_completions.d/{name}.fish")),
    ]
}

/// Runs a program.
///
/// # Errors
/// If it cannot be run or fails.
fn succeeds(command: &mut Command) -> Result<(), String> {
    if cargo::succeeds(command)? { Ok(()) } else { Err(format!("failed: {command:?}")) }
}

/// Returns what a program prints.
///
/// # Errors
/// If it cannot be run or fails.
fn output(command: &mut Command) -> Result<Vec<u8>, String> {
    let done = command.output().map_err(|e| format!("cannot run {command:?}: {e}"))?;
    if done.status.success() {
        return Ok(done.stdout);
    }
    Err(format!("failed: {command:?}: {}", String::from_utf8_lossy(&done.stderr).trim()))
}
