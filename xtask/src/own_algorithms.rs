//! `cargo xtask own-algorithms`: tests the examples with their own algorithms. Like crates of users they are not
//! members of the workspace, so the other checks do not include them.

use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

/// Crates outside the workspace. The tests of the first build the second.
const CRATES: [&str; 2] = ["examples/own-algorithm", "examples/library-rust"];

/// Checks the format of the crates and runs their tests. Returns `true` if all pass.
///
/// # Errors
/// If cargo cannot be run, or a file cannot be copied.
pub fn run(root: &Path) -> Result<bool, String> {
    for dir in CRATES {
        // The crates have no lock file, and use the tested versions, which are present.
        let lock = root.join(dir).join("Cargo.lock");
        std::fs::copy(root.join("Cargo.lock"), &lock).map_err(|e| format!("cannot write `{}`: {e}", lock.display()))?;
        if !cargo(root, dir, &["fmt", "--check"])? {
            return Ok(false);
        }
    }
    cargo(root, CRATES[0], &["test"])
}

/// Runs cargo in a crate, with the workspace's target directory, so that common dependencies are built once. Returns
/// `true` if it succeeds.
fn cargo(root: &Path, dir: &str, args: &[&str]) -> Result<bool, String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let target = std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| OsString::from(root.join("target")));
    let target = std::path::absolute(root.join(target)).map_err(|e| e.to_string())?;
    let mut command = Command::new(cargo);
    command.args(args).current_dir(root.join(dir)).env("CARGO_TARGET_DIR", target);
    let status = command.status().map_err(|e| format!("cannot run `cargo {}`: {e}", args.join(" ")))?;
    Ok(status.success())
}
