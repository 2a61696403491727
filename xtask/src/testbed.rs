//! `cargo xtask testbed`: builds the testbed and what it uses, and has `fairrate-validate` test them on this machine,
//! as root.

use std::ffi::OsString;
use std::path::Path;

use crate::{cargo, kernel};

/// Builds the programs and runs the checks. Returns `true` if all pass.
///
/// # Errors
/// If cargo cannot be run, or the testbed cannot run here and `if_possible` is not set.
pub fn run(root: &Path, if_possible: bool) -> Result<bool, String> {
    let missing = kernel::missing();
    let mut programs = vec!["--bin", "fairrate-testbed", "--test", "plans"];
    if missing.is_none() {
        programs.extend(["--bin", "fairrate-kernel", "--features", kernel::FEATURES]);
    }
    if !cargo::build(root, &programs)? {
        return Ok(false);
    }
    let mut args: Vec<OsString> = vec!["testbed".into(), "--programs".into(), cargo::target(root).join("debug").into()];
    if let Some(what) = missing {
        args.extend(["--no-kernel".into(), what.into()]);
    }
    if if_possible {
        args.push("--if-possible".into());
    }
    cargo::validate(root, &args)
}
