//! The wheel of the Python package, which brings the command line along.

use std::path::PathBuf;
use std::process::Command;

use super::{Release, files};
use crate::{cargo, python};

/// Makes the wheel and returns its path; `None` if Python or its registry is missing and may be.
///
/// # Errors
/// If it cannot be built.
pub fn make(release: &Release<'_>) -> Result<Option<PathBuf>, String> {
    let venv = match python::environment(release.root) {
        Ok(venv) => venv,
        Err(why) if release.options.if_possible => {
            println!("left out: the wheel: {why}");
            return Ok(None);
        }
        Err(why) => return Err(format!("the wheel cannot be made: {why}")),
    };
    let mut build = Command::new(venv.join("bin/python"));
    build.args(["-m", "maturin", "build", "--quiet", "--locked", "--out"]).arg(&release.out).current_dir(release.root);
    // The oldest glibc that the programs can run with, which maturin finds, is part of the wheel's name.
    build.args(["--profile", if release.options.dev { "dev" } else { "release" }]);
    if !cargo::succeeds(&mut build)? {
        return Err("the wheel cannot be built".to_owned());
    }
    let wheel = files::with_extension(&release.out, "whl")?.pop();
    wheel.map(Some).ok_or_else(|| "maturin has built no wheel".to_owned())
}
