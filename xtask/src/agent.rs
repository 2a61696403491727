//! `cargo xtask agent`: tests Flowtune's agents and allocator on hosts in network namespaces, as root.

use std::path::{Path, PathBuf};
use std::process::Command;

use clap::Args;

use crate::kernel;

/// How.
#[derive(Args)]
pub struct Options {
    /// Without root, clang, libelf, iproute2 or a kernel that describes its types, says so and tests nothing
    #[arg(long)]
    if_possible: bool,
}

/// Builds the agents and runs their tests. Returns `true` if all pass.
///
/// # Errors
/// If something that the tests need is missing and `if_possible` is not set.
pub fn run(root: &Path, options: &Options) -> Result<bool, String> {
    if let Some(what) = kernel::missing() {
        if !options.if_possible {
            return Err(format!("agents cannot be tested: {what}"));
        }
        eprintln!("not run: {what}: the tests of fairrate-agent on hosts are left out");
        return Ok(true);
    }
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let cargo = |args: &[&str], allocator: &Path| {
        let mut command = Command::new(&cargo);
        let status = command.args(args).env("FAIRRATE_ALLOCATOR", allocator).current_dir(root).status();
        Ok::<bool, String>(status.map_err(|e| format!("cannot run cargo: {e}"))?.success())
    };
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    let allocator = target.join("debug/fairrate-allocator");
    if !cargo(&["build", "--locked", "-p", "fairrate-daemon", "--bin", "fairrate-allocator"], &allocator)? {
        return Ok(false);
    }
    // The workspace's run of clippy does not enable the feature.
    let clippy =
        ["clippy", "--locked", "-p", "fairrate-agent", "--features", "bpf", "--all-targets", "--", "-D", "warnings"];
    if !cargo(&clippy, &allocator)? {
        return Ok(false);
    }
    // One after the other, because the tests measure.
    let test = ["test", "--locked", "-p", "fairrate-agent", "--features", "bpf", "--", "--test-threads=1"];
    cargo(&test, &allocator)
}
