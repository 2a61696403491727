//! `cargo xtask kernel`: tests the congestion controls of `fairrate-kernel` in the running kernel: attached, used,
//! killed, detached.

use std::path::Path;
use std::process::Command;

use crate::cargo;

/// The features of cargo with which the programs in the kernel are built.
pub const FEATURES: &str = "fairrate-agent/bpf,fairrate-kernel/bpf";

const CLANGS: [&str; 6] = ["clang", "clang-19", "clang-17", "clang-16", "clang-15", "clang-14"];

/// Builds the programs and runs their tests. Returns `true` if all pass.
///
/// # Errors
/// If something that the tests need is missing and `if_possible` is not set.
pub fn run(root: &Path, if_possible: bool) -> Result<bool, String> {
    if let Some(what) = missing() {
        if !if_possible {
            return Err(format!("the programs in the kernel cannot be tested: {what}"));
        }
        println!("not run: {what}: the tests of fairrate-kernel in the kernel are left out");
        return Ok(true);
    }
    // All of the workspace, so that dependencies are those that `cargo test --workspace` has built.
    cargo::run(root, &["test", "--locked", "--workspace", "--features", FEATURES, "--test", "kernel"])
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
