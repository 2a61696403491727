//! `cargo xtask kernel`: tests the congestion controls of `fairrate-kernel` in the running kernel: attached, used,
//! killed, detached.

use std::path::Path;
use std::process::Command;

use clap::Args;

/// How.
#[derive(Args)]
pub struct Options {
    /// Without root, clang, libelf, iproute2 or a kernel that describes its types, says so and tests nothing
    #[arg(long)]
    if_possible: bool,
}

const CLANGS: [&str; 6] = ["clang", "clang-19", "clang-17", "clang-16", "clang-15", "clang-14"];

/// Builds the programs and runs their tests. Returns `true` if all pass.
///
/// # Errors
/// If something that the tests need is missing and `if_possible` is not set.
pub fn run(root: &Path, options: &Options) -> Result<bool, String> {
    if let Some(what) = missing() {
        if !options.if_possible {
            return Err(format!("the programs in the kernel cannot be tested: {what}"));
        }
        eprintln!("not run: {what}: the tests of fairrate-kernel in the kernel are left out");
        return Ok(true);
    }
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let args = ["test", "--locked", "-p", "fairrate-kernel", "--features", "bpf", "--test", "kernel"];
    let status = Command::new(cargo).args(args).current_dir(root).status();
    Ok(status.map_err(|e| format!("cannot run cargo: {e}"))?.success())
}

/// Returns a requirement that this machine lacks; `None` if it has all.
pub fn missing() -> Option<&'static str> {
    let starts = |program: &str, arg: &str| Command::new(program).arg(arg).output().is_ok_and(|o| o.status.success());
    let is_root = || Command::new("id").arg("-u").output().is_ok_and(|o| o.stdout == b"0\n");
    let has_header = |name: &str| {
        let source = format!("printf '#include <{name}>' | cc -E -x c -o /dev/null -");
        Command::new("sh").args(["-c", &source]).output().is_ok_and(|o| o.status.success())
    };
    let needs: [(&dyn Fn() -> bool, &str); 5] = [
        (&is_root, "needs root"),
        (&|| Path::new("/sys/kernel/btf/vmlinux").exists(), "needs a kernel that describes its types (BTF)"),
        (&|| std::env::var_os("CLANG").is_some() || CLANGS.iter().any(|c| starts(c, "--version")), "needs clang"),
        (&|| has_header("libelf.h") && has_header("zlib.h"), "needs the headers of libelf and zlib"),
        (&|| starts("ip", "-V") && starts("tc", "-V"), "needs iproute2"),
    ];
    needs.into_iter().find(|(has, _)| !has()).map(|(_, what)| what)
}
