//! Sets the commit that the crate was built from, and a hash of the sources that determine the results of a run.

use std::hash::Hasher;
use std::path::{Path, PathBuf};
use std::process::Command;

use twox_hash::XxHash64;

/// The crates that determine the results of a run.
const CRATES: [&str; 8] = [
    "fairrate-units",
    "fairrate-allocate",
    "fairrate-control",
    "fairrate-plugin",
    "fairrate-sim",
    "fairrate-scenario",
    "fairrate-results",
    "fairrate-experiment",
];

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let commit = commit().unwrap_or_else(|| "unknown".to_owned());
    println!("cargo:rustc-env=FAIRRATE_COMMIT={commit}");
    let sources = sources().unwrap_or_else(|e| panic!("cannot read the sources: {e}"));
    println!("cargo:rustc-env=FAIRRATE_SOURCES={sources}");
}

/// Returns a hash of the names and texts of all sources of [`CRATES`], as far as these crates lie beside this one.
fn sources() -> std::io::Result<String> {
    let manifest = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default());
    let mut hash = XxHash64::with_seed(0);
    for name in CRATES {
        let dir = manifest.join("..").join(name).join("src");
        if !dir.is_dir() {
            continue;
        }
        println!("cargo:rerun-if-changed={}", dir.display());
        for file in files(&dir)? {
            hash.write(file.strip_prefix(&dir).unwrap_or(&file).to_string_lossy().as_bytes());
            hash.write(&std::fs::read(&file)?);
        }
    }
    Ok(format!("{:016x}", hash.finish()))
}

/// Returns all files below a directory, sorted.
fn files(dir: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut entries = std::fs::read_dir(dir)?.map(|entry| Ok(entry?.path())).collect::<std::io::Result<Vec<_>>>()?;
    entries.sort();
    let mut all = Vec::new();
    for path in entries {
        if path.is_dir() {
            all.extend(files(&path)?);
        } else {
            all.push(path);
        }
    }
    Ok(all)
}

fn commit() -> Option<String> {
    let manifest = std::env::var("CARGO_MANIFEST_DIR").ok()?;
    let root = Path::new(&manifest).join("../..").canonicalize().ok()?;
    // Sources unpacked inside another repository do not belong to that repository's commit.
    if Path::new(&git(&root, &["rev-parse", "--show-toplevel"])?).canonicalize().ok()? != root {
        return None;
    }
    let git_dir = root.join(git(&root, &["rev-parse", "--git-dir"])?);
    let common_dir = root.join(git(&root, &["rev-parse", "--git-common-dir"])?);
    let head = std::fs::read_to_string(git_dir.join("HEAD")).ok()?;
    let branch = head.strip_prefix("ref: ").map(|name| common_dir.join(name.trim()));
    for path in [Some(git_dir.join("HEAD")), branch, Some(common_dir.join("packed-refs"))].into_iter().flatten() {
        if path.exists() {
            println!("cargo:rerun-if-changed={}", path.display());
        }
    }
    git(&root, &["rev-parse", "HEAD"])
}

fn git(dir: &Path, args: &[&str]) -> Option<String> {
    let output = Command::new("git").arg("-C").arg(dir).args(args).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
