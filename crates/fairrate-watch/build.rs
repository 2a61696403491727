//! Fetches the plotting library of the page by npm, as `package-lock.json` names it, and keeps it in cargo's directory
//! of the build.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

/// The files of the library that are part of the program, with their names there.
const FILES: [(&str, &str); 3] = [
    ("node_modules/uplot/dist/uPlot.iife.min.js", "uplot.js"),
    ("node_modules/uplot/dist/uPlot.min.css", "uplot.css"),
    ("node_modules/uplot/LICENSE", "uplot-licence.txt"),
];
/// The files that say which library it is.
const MANIFESTS: [&str; 2] = ["package.json", "package-lock.json"];
const HELP: &str = "fairrate-watch needs Node.js and npm 7 or later to build: npm fetches the plotting library of its page, once.
  - Install them, as by `apt install nodejs npm`, and make sure that npm reaches a registry.
  - Or set FAIRRATE_NODE_MODULES to a directory in which `npm ci` has been run with crates/fairrate-watch/package-lock.json.
  - No other program of fairrate needs them: `cargo build --release` builds the laboratory without.";

fn main() {
    println!("cargo:rerun-if-env-changed=FAIRRATE_NODE_MODULES");
    println!("cargo:rerun-if-changed=build.rs");
    for name in MANIFESTS {
        println!("cargo:rerun-if-changed={name}");
    }
    if let Err(problem) = run() {
        eprintln!("{problem}\n\n{HELP}");
        std::process::exit(1);
    }
}

/// Puts the files of the library into the directory of the build.
fn run() -> Result<(), String> {
    let out = PathBuf::from(env::var_os("OUT_DIR").ok_or("cargo has set no OUT_DIR")?);
    let dir = match env::var_os("FAIRRATE_NODE_MODULES") {
        Some(dir) => PathBuf::from(dir),
        None => fetched(&out.join("npm"))?,
    };
    for (from, to) in FILES {
        let from = dir.join(from);
        fs::copy(&from, out.join(to)).map_err(|e| format!("cannot copy `{}`: {e}", from.display()))?;
    }
    Ok(())
}

/// Fetches the library into the directory `dir`, unless it is there already. Returns the directory.
fn fetched(dir: &Path) -> Result<PathBuf, String> {
    let sources = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").ok_or("cargo has set no CARGO_MANIFEST_DIR")?);
    let is_same = |name: &str| fs::read(sources.join(name)).ok() == fs::read(dir.join(name)).ok();
    if MANIFESTS.iter().all(|name| is_same(name)) && FILES.iter().all(|(file, _)| dir.join(file).is_file()) {
        return Ok(dir.to_owned());
    }
    fs::create_dir_all(dir).map_err(|e| format!("cannot make `{}`: {e}", dir.display()))?;
    for name in MANIFESTS {
        fs::copy(sources.join(name), dir.join(name)).map_err(|e| format!("cannot copy `{name}`: {e}"))?;
    }
    let npm = if cfg!(windows) { "npm.cmd" } else { "npm" };
    let mut command = Command::new(npm);
    // Packages run no scripts of their own, and what npm has fetched before is taken from its cache.
    command.args(["ci", "--ignore-scripts", "--prefer-offline", "--no-audit", "--no-fund", "--no-update-notifier"]);
    let done = command.current_dir(dir).output().map_err(|e| format!("cannot run `{npm}`: {e}"))?;
    if done.status.success() {
        return Ok(dir.to_owned());
    }
    Err(format!("`npm ci` failed: {}", String::from_utf8_lossy(&done.stderr).trim()))
}
