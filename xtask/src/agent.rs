//! `cargo xtask agent`: tests Flowtune's agents and allocator on hosts in network namespaces, as root.

use std::path::Path;

use crate::{cargo, kernel};

/// Builds the agents and runs their tests. Returns `true` if all pass.
///
/// # Errors
/// If something that the tests need is missing and `if_possible` is not set.
pub fn run(root: &Path, if_possible: bool) -> Result<bool, String> {
    if let Some(what) = kernel::missing() {
        if !if_possible {
            return Err(format!("agents cannot be tested: {what}"));
        }
        println!("not run: {what}: the tests of fairrate-agent on hosts are left out");
        return Ok(true);
    }
    let programs = ["--features", kernel::FEATURES, "--bin", "fairrate-allocator", "--test", "field"];
    if !cargo::build(root, &programs)? {
        return Ok(false);
    }
    let mut test = cargo::command(root);
    test.args(["test", "--locked", "--workspace", "--features", kernel::FEATURES, "--test", "field"])
        .env("FAIRRATE_ALLOCATOR", cargo::target(root).join("debug/fairrate-allocator"))
        // One after the other, because the tests measure.
        .args(["--", "--test-threads=1"]);
    cargo::succeeds(&mut test)
}
