//! `cargo xtask python`: builds the Python package in a separate environment, and there runs its tests, those of the
//! models in `validation/models` and its notebook, checks its types, and builds the site of the documentation.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::cargo::{self, succeeds, target};

/// The oldest Python version that the package supports.
const OLDEST: (u32, u32) = (3, 10);

/// Builds the package and runs its tests. Returns `true` if all pass.
///
/// # Errors
/// If Python or the registry is missing and `if_possible` is not set, or the package cannot be built.
pub fn run(root: &Path, if_possible: bool) -> Result<bool, String> {
    let venv = match environment(root) {
        Ok(venv) => venv,
        Err(why) if if_possible => {
            println!("not run: {why}: the Python package is left out");
            return Ok(true);
        }
        Err(why) => return Err(why),
    };
    let python = venv.join("bin/python");
    // The tests compare the package with the command line.
    if !cargo::build(root, &["--bin", "fairrate", "--test", "memory"])? {
        return Ok(false);
    }
    // `pip install .` as users do it, but with the installed build tools, and the profile that the other tests are
    // built with.
    let build = ["-m", "pip", "install", "-q", "--no-build-isolation", "--force-reinstall", "--no-deps", "."];
    let mut install = Command::new(&python);
    install.args(build).current_dir(root).env("PATH", path_with(&venv)).env("MATURIN_PEP517_ARGS", "--profile=dev");
    if !succeeds(&mut install)? {
        return Err("the Python package cannot be built".to_owned());
    }
    let cli = target(root).join("debug/fairrate");
    let steps: [&[&str]; 5] = [
        &["-m", "mypy", "python/fairrate", "python/examples"],
        &["-m", "pytest", "-q"],
        &["-m", "pytest", "-q", "--nbmake", "python/examples"],
        &["-m", "pytest", "-q", "validation/models"],
        &["docs/site/build.py", "--without-rust"],
    ];
    for step in steps {
        eprintln!("python {}", step.join(" "));
        if !succeeds(Command::new(&python).args(step).current_dir(root).env("FAIRRATE_BIN", &cli))? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Returns the environment below `target`, with the packages that the package and its tests need.
///
/// # Errors
/// If there is no Python, or its packages cannot be installed.
pub fn environment(root: &Path) -> Result<PathBuf, String> {
    let python = ["python3", "python"].into_iter().find(|name| version(name) >= Some(OLDEST));
    let python = python.ok_or(format!("there is no Python {}.{} or later", OLDEST.0, OLDEST.1))?;
    let venv = target(root).join("python-venv");
    if !venv.join("bin/python").exists() && !succeeds(Command::new(python).args(["-m", "venv"]).arg(&venv))? {
        return Err("Python cannot make an environment".to_owned());
    }
    // Dependency groups need a newer version of pip.
    let wanted: [&[&str]; 2] = [&["--upgrade", "pip", "maturin>=1.9,<2"], &["--group", "test", "--group", "site"]];
    for packages in wanted {
        let mut install = Command::new(venv.join("bin/python"));
        install.args(["-m", "pip", "install", "-q", "--disable-pip-version-check"]).args(packages).current_dir(root);
        if !succeeds(&mut install)? {
            return Err("Python's packages cannot be installed".to_owned());
        }
    }
    Ok(venv)
}

/// Returns the version of a Python, if it can be run.
fn version(python: &str) -> Option<(u32, u32)> {
    let asked = Command::new(python).args(["-c", "import sys; print(*sys.version_info[:2])"]).output().ok()?;
    let text = String::from_utf8(asked.stdout).ok()?;
    let (major, minor) = text.trim().split_once(' ')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

/// Returns `PATH` with the environment's programs first: pip looks for maturin there.
fn path_with(venv: &Path) -> std::ffi::OsString {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let all = std::iter::once(venv.join("bin")).chain(std::env::split_paths(&path));
    std::env::join_paths(all).unwrap_or(path.clone())
}
