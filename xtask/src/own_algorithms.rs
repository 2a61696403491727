//! `cargo xtask own-algorithms`: tests the examples with their own algorithms.

use std::path::Path;

use crate::cargo;

/// The examples that are crates.
const CRATES: [&str; 4] = ["--package", "own-algorithm", "--package", "ecn-reno"];
/// Their tests. `library_in_rust` builds the shared library, and has the program load it.
const TESTS: [&str; 4] = ["--test", "bits", "--test", "library_in_rust"];

/// Checks the crates as cargo builds them for users, with no more features than they ask for, and runs their tests.
/// Returns `true` if all pass.
///
/// # Errors
/// If cargo cannot be run.
pub fn run(root: &Path) -> Result<bool, String> {
    let check = [&["check", "--locked", "--all-targets"][..], &CRATES].concat();
    // All of the workspace, so that dependencies are those that `cargo test --workspace` has built.
    let test = [&["test", "--locked", "--workspace"][..], &TESTS].concat();
    Ok(cargo::run(root, &check)? && cargo::run(root, &test)?)
}
