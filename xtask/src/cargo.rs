//! Cargo, as the tasks run it.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Returns the command that runs cargo in the repository.
pub fn command(root: &Path) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root);
    command
}

/// Runs cargo in the repository. Returns `true` if it succeeds.
///
/// # Errors
/// If cargo cannot be run.
pub fn run<S: AsRef<OsStr>>(root: &Path, args: &[S]) -> Result<bool, String> {
    succeeds(command(root).args(args))
}

/// Builds programs, with a test among the `targets`. Returns `true` if it succeeds.
///
/// All of the workspace is asked for, and a test of it, since then dependencies have the features that they have in
/// `cargo test --workspace`, and are not built anew.
///
/// # Errors
/// If cargo cannot be run.
pub fn build(root: &Path, targets: &[&str]) -> Result<bool, String> {
    run(root, &[&["build", "--locked", "--quiet", "--workspace"], targets].concat())
}

/// Runs a program. Returns `true` if it succeeds.
///
/// # Errors
/// If it cannot be run.
pub fn succeeds(command: &mut Command) -> Result<bool, String> {
    let name = command.get_program().to_string_lossy().into_owned();
    Ok(command.status().map_err(|e| format!("cannot run `{name}`: {e}"))?.success())
}

/// Returns the directory of what cargo builds.
pub fn target(root: &Path) -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), |dir| root.join(dir))
}

/// Builds `fairrate-validate` and runs it. Returns `true` if it succeeds.
///
/// # Errors
/// If cargo cannot be run, or the program cannot do its work.
pub fn validate<S: AsRef<OsStr>>(root: &Path, args: &[S]) -> Result<bool, String> {
    let mut command = command(root);
    command.args(["run", "--quiet", "--locked", "--release", "--package", "fairrate-validate", "--"]).args(args);
    succeeds(&mut command)
}
