//! Tells the crate which commit it was built from, if that can be known.

use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let commit = commit().unwrap_or_else(|| "unknown".to_owned());
    println!("cargo:rustc-env=FAIRRATE_COMMIT={commit}");
}

fn commit() -> Option<String> {
    let manifest = std::env::var("CARGO_MANIFEST_DIR").ok()?;
    let root = Path::new(&manifest).join("../..").canonicalize().ok()?;
    // Sources unpacked inside another repository are not of that repository's commit.
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
