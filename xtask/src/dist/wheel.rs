//! The wheel of the Python package, which brings the command line along.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::{Release, files, licences, sbom, succeeds};
use crate::{cargo, python};

/// The crate that the wheel's library is built from.
const CRATE: &str = "fairrate-python";
/// The program that adds files to a wheel.
const ADD: &str = include_str!("wheel.py");

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
    let wheel = files::with_extension(&release.out, "whl")?.pop().ok_or("maturin has built no wheel")?;
    add_notices(release, &venv, &wheel)?;
    Ok(Some(wheel))
}

/// Adds the licences of others and the bill of materials to the wheel: of the packages in its library, on this system.
/// Maturin's own bill of materials, which `pyproject.toml` turns off, names the directory it was made in and packages
/// of other systems.
fn add_notices(release: &Release<'_>, venv: &Path, wheel: &Path) -> Result<(), String> {
    let dir = release.stage.with_file_name("dist-wheel");
    let [of_others, bill, add] = [licences::FILE, "fairrate.cdx.json", "wheel.py"].map(|name| dir.join(name));
    files::write(&of_others, licences::text(release.root, &[CRATE])?.as_bytes())?;
    files::write(&bill, sbom::text(release.root, &[CRATE])?.as_bytes())?;
    files::write(&add, ADD.as_bytes())?;
    succeeds(Command::new(venv.join("bin/python")).args([&add, wheel, &of_others, &bill]))
}
