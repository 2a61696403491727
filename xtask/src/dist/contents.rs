//! The files of a release beside its programs: examples, documentation, and a page that says where they are.

use std::path::{Path, PathBuf};

use super::{VERSION, files, links};

/// Directories of examples with sources of algorithms.
const SOURCES: [&str; 3] = ["own-algorithm", "library-rust", "library-c"];
/// Directories below `docs` whose files are part of a release.
const DOCS: [&str; 6] = ["", "algorithms", "balancing", "entropy", "papers", "images"];
/// Files below `docs/figures` that are. The measurements behind them are large, and made by `fairrate figure`.
const FIGURES: [&str; 2] = ["claims.md", "figure.svg"];
/// Directories of the repository, and where their files are in a release.
const PLACES: [(&str, &str); 3] =
    [("docs", "share/doc/fairrate/docs"), ("examples", "share/fairrate/examples"), ("include", "include")];

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
    let figures = root.join("docs/figures");
    for path in files::all_below(&figures)?.iter().filter(|path| FIGURES.contains(&files::name(path).as_str())) {
        let below = path.strip_prefix(&figures).unwrap_or(path);
        files::copy(path, &stage.join("share/doc/fairrate/docs/figures").join(below))?;
    }
    move_links(root, stage)?;
    files::write(&stage.join("README.txt"), page().as_bytes())
}

/// Makes the links of all pages of documentation hold in a release.
fn move_links(root: &Path, stage: &Path) -> Result<(), String> {
    let place = |path: &Path| {
        let moved = |&(from, to): &(&str, &str)| Some(Path::new(to).join(path.strip_prefix(from).ok()?));
        let there: PathBuf = PLACES.iter().find_map(moved)?;
        // The header is written by another step.
        (there.starts_with("include") && root.join(path).is_file() || stage.join(&there).exists()).then_some(there)
    };
    let docs = stage.join(PLACES[0].1);
    for path in files::all_below(&docs)?.iter().filter(|path| path.extension().is_some_and(|end| end == "md")) {
        let to = path.parent().and_then(|dir| dir.strip_prefix(stage).ok()).unwrap_or(Path::new(""));
        let from = Path::new(PLACES[0].0).join(to.strip_prefix(PLACES[0].1).unwrap_or(Path::new("")));
        let text = std::fs::read_to_string(path).map_err(|error| format!("reading {}: {error}", path.display()))?;
        files::write(path, links::moved(&text, (&from, to), &place).as_bytes())?;
    }
    Ok(())
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
            "share/doc/fairrate/docs/balancing/ecmp.md",
            "share/doc/fairrate/docs/entropy/reps.md",
            "share/doc/fairrate/docs/images/incast10.svg",
            "share/fairrate/examples/incast10.toml",
            "share/fairrate/examples/own-algorithm/src/lib.rs",
            "share/fairrate/examples/library-rust/Cargo.toml",
            "share/fairrate/examples/library-c/theta_powertcp.c",
        ] {
            assert!(stage.join(file).is_file(), "{file}");
        }
        let figures = stage.join("share/doc/fairrate/docs/figures/powertcp/fig8");
        assert!(figures.join("claims.md").is_file() && !figures.join("measured.csv").exists());
        // Each link of each page leads to a file.
        let docs = stage.join("share/doc/fairrate/docs");
        let mut n = 0;
        for page in
            files::all_below(&docs).unwrap().iter().filter(|path| path.extension().is_some_and(|end| end == "md"))
        {
            let text = std::fs::read_to_string(page).unwrap();
            for target in text.split("](").skip(1).filter_map(|rest| rest.split([')', '\n']).next()) {
                let path = target.split('#').next().unwrap();
                let end = Path::new(path).extension().unwrap_or_default();
                if ["md", "svg", "toml"].iter().any(|&known| end == known) && !path.contains(':') {
                    assert!(page.parent().unwrap().join(path).exists(), "{}: {target}", page.display());
                    n += 1;
                }
            }
        }
        assert!(500 < n, "{n}");
        assert!(page().contains("pip install 'fairrate[tune]"));
    }
}
