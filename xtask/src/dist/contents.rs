//! The files of a release beside its programs: examples, documentation, and a page that says where they are.

use std::path::Path;

use super::{VERSION, files};

/// Directories of examples with sources of algorithms.
const SOURCES: [&str; 3] = ["own-algorithm", "library-rust", "library-c"];
/// Directories below `docs` whose files are part of a release. Those of `docs/figures` are large, and made by `fairrate figure`.
const DOCS: [&str; 4] = ["", "algorithms", "papers", "images"];

/// Copies examples and documentation of the repository `root` to `stage`, and writes the page `README.txt`.
///
/// # Errors
/// If a file cannot be read or written.
pub fn copy(root: &Path, stage: &Path) -> Result<(), String> {
    let (from, to) = (root.join("examples"), stage.join("share/fairrate/examples"));
    copy_files_of(&from, &to)?;
    for name in SOURCES {
        let dir = from.join(name);
        for path in files::all_below(&dir)? {
            let below = path.strip_prefix(&dir).unwrap_or(&path);
            if !below.starts_with("target") && !below.ends_with("Cargo.lock") {
                files::copy(&path, &to.join(name).join(below))?;
            }
        }
    }
    for name in DOCS {
        copy_files_of(&root.join("docs").join(name), &stage.join("share/doc/fairrate/docs").join(name))?;
    }
    files::write(&stage.join("README.txt"), page().as_bytes())
}

/// Copies the files of a directory, and not those of its directories.
fn copy_files_of(from: &Path, to: &Path) -> Result<(), String> {
    let all = files::list(from)?;
    all.iter().filter(|path| path.is_file()).try_for_each(|path| files::copy(path, &to.join(files::name(path))))
}

/// Returns the text of `README.txt`.
fn page() -> String {
    format!(
        "fairrate {VERSION}

bin                       the programs; put this directory into PATH, or call bin/fairrate
share/fairrate/examples   scenarios, as `bin/fairrate run share/fairrate/examples/incast10.toml`, and algorithms in C and Rust
                          (own-algorithm, library-rust, library-c)
share/doc/fairrate/docs   documentation; begin with tutorial.md
share/man                 manual pages
include                   the C header of algorithms

`fairrate tune`, sweeps, figures and algorithms in Python come with the Python package, the file *.whl of the same release:
pip install 'fairrate[tune] @ file:///PATH/fairrate-{VERSION}-cp310-abi3-PLATFORM.whl'
"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The copied files are those that the page and links of the documentation name.
    #[test]
    fn a_release_has_examples_and_documentation() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let stage = crate::cargo::target(&root).join("dist-contents-test");
        files::empty(&stage).unwrap();
        copy(&root, &stage).unwrap();
        for file in [
            "README.txt",
            "share/doc/fairrate/docs/tutorial.md",
            "share/doc/fairrate/docs/algorithms/powertcp.md",
            "share/doc/fairrate/docs/images/incast10.svg",
            "share/fairrate/examples/incast10.toml",
            "share/fairrate/examples/own-algorithm/src/lib.rs",
            "share/fairrate/examples/library-rust/Cargo.toml",
            "share/fairrate/examples/library-c/theta_powertcp.c",
        ] {
            assert!(stage.join(file).is_file(), "{file}");
        }
        assert!(!stage.join("share/doc/fairrate/docs/figures").exists());
        assert!(page().contains("pip install 'fairrate[tune]"));
    }
}
