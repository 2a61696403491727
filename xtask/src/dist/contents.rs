//! The files of a release beside its programs: examples, sources, documentation, and a page that says where they are.

use std::path::Path;

use super::{VERSION, files, links, sources, systems};

/// Names in directories of examples that are made by using them.
const MADE: [&str; 5] = ["target", "Cargo.lock", "runs", ".ipynb_checkpoints", "__pycache__"];
/// Directories below `docs` whose files are part of a release.
const DOCS: [&str; 6] = ["", "algorithms", "balancing", "entropy", "papers", "images"];
/// Files below `docs/figures` that are. The measurements behind them are large, and made by `fairrate figure`.
const FIGURES: [&str; 2] = ["claims.md", "figure.svg"];
/// Files of the repository's root that are documentation.
const ROOT: [&str; 8] = [
    "README.md",
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "LICENSE",
    "LICENSE-APACHE",
    "LICENSE-MIT",
];
/// Files of `packaging` that are for users.
const PACKAGING: [&str; 6] = [
    "allocator.toml",
    "agent.toml",
    "grafana-allocator.json",
    "alerts-allocator.yml",
    "alerts-allocator.test.yml",
    "Containerfile",
];
/// The directory of what is laid out as in the repository, so that paths between examples, crates and header hold.
const LIKE_REPOSITORY: &str = "share/fairrate";
/// The directory of documentation, where pages keep their places too.
const DOC: &str = "share/doc/fairrate";

/// Copies examples, sources and documentation of the repository `root` to `stage`, and writes the page `README.txt`.
///
/// # Errors
/// If a file cannot be read or written.
pub fn copy(root: &Path, stage: &Path) -> Result<(), String> {
    let share = stage.join(LIKE_REPOSITORY);
    for examples in ["examples", "python/examples"] {
        files::copy_below(&root.join(examples), &share.join(examples), &MADE)?;
    }
    for name in PACKAGING {
        let name = Path::new("packaging").join(name);
        files::copy(&root.join(&name), &share.join(&name))?;
    }
    let header = "include/fairrate.h";
    // Compilers find the first one; the second is where examples look for it.
    for to in [stage.join(header), share.join(header)] {
        files::copy(&root.join(header), &to)?;
    }
    sources::copy(root, &share)?;
    let doc = stage.join(DOC);
    for name in ROOT {
        files::copy(&root.join(name), &doc.join(name))?;
    }
    for name in DOCS {
        files::copy_files_of(&root.join("docs").join(name), &doc.join("docs").join(name))?;
    }
    let of_figures = files::all_below(&root.join("docs/figures"))?.into_iter();
    let of_validation = files::all_below(&root.join("validation"))?.into_iter();
    let pages = of_figures
        .filter(|path| FIGURES.contains(&files::name(path).as_str()))
        .chain(of_validation.filter(|path| files::name(path) == "README.md"));
    for path in pages {
        files::copy(&path, &doc.join(path.strip_prefix(root).unwrap_or(&path)))?;
    }
    move_links(root, stage)?;
    files::write(&stage.join("README.txt"), page(&systems::text(stage)?).as_bytes())
}

/// Makes the links of all pages hold in a release.
fn move_links(root: &Path, stage: &Path) -> Result<(), String> {
    let place = |path: &Path| {
        let mut places = [DOC, LIKE_REPOSITORY].iter().map(|dir| Path::new(dir).join(path));
        places.find(|there| !path.as_os_str().is_empty() && stage.join(there).exists())
    };
    let real = |path: &Path| path.canonicalize().map_err(|e| format!("cannot find {}: {e}", path.display()));
    for page in links::pages(stage)? {
        let there = page.strip_prefix(stage).unwrap_or(&page);
        let in_repository = there.strip_prefix(DOC).or_else(|_| there.strip_prefix(LIKE_REPOSITORY)).unwrap_or(there);
        // The page of a crate may be a link to one of the documentation.
        let from = real(&root.join(in_repository))?;
        let from = from.strip_prefix(real(root)?).unwrap_or(in_repository).parent().unwrap_or(Path::new(""));
        let to = there.parent().unwrap_or(Path::new(""));
        files::write(&page, links::moved(&files::read(&page)?, (from, to), &place).as_bytes())?;
    }
    Ok(())
}

/// Returns the commands of `README.txt` to begin with.
pub fn first_commands() -> [&'static str; 2] {
    ["bin/fairrate run share/fairrate/examples/faults.toml --out runs/faults", "bin/fairrate explain runs/faults"]
}

/// Returns the text of `README.txt`, which names the `systems` that the release runs on.
fn page(systems: &str) -> String {
    let [run, explain] = first_commands();
    format!(
        "fairrate {VERSION}

{systems}

Run a scenario, and ask why its slowest flow took as long as it did:

    {run}
    {explain}

bin                       the programs; put this directory into PATH
share/doc/fairrate        README.md, and in docs the documentation; begin with docs/tutorial.md
share/fairrate/examples   scenarios, and algorithms in C and Rust (library-c, library-rust, own-algorithm)
share/fairrate            a workspace of cargo with fairrate's crates, which are on no registry: what algorithms in Rust and
                          clients of the allocator are built with. `cargo build --release` works in each example
share/fairrate/python     examples in Python
share/man                 manual pages; man -l share/man/man1/fairrate.1 shows the first
include                   the C header of algorithms
lib/systemd/system        units of the allocator and the agent

`fairrate tune`, sweeps, figures and algorithms in Python come with the Python package, the file *.whl of the same release:

    pip install 'fairrate[tune] @ file:///PATH/fairrate-{VERSION}-cp310-abi3-PLATFORM.whl'
"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_have_the_version_of_the_release() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let text = files::read(&root.join("packaging/Containerfile")).unwrap();
        assert!(text.contains(&format!("\nARG VERSION={VERSION}\n")), "{text}");
    }

    /// The copied files are those that the page and links of the documentation name.
    #[test]
    fn a_release_has_examples_and_documentation() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let stage = crate::cargo::target(&root).join("dist-contents-test");
        files::empty(&stage).unwrap();
        copy(&root, &stage).unwrap();
        for file in [
            "README.txt",
            "include/fairrate.h",
            "share/doc/fairrate/README.md",
            "share/doc/fairrate/docs/tutorial.md",
            "share/doc/fairrate/docs/algorithms/powertcp.md",
            "share/doc/fairrate/docs/balancing/ecmp.md",
            "share/doc/fairrate/docs/entropy/reps.md",
            "share/doc/fairrate/docs/images/incast10.svg",
            "share/doc/fairrate/validation/homa-omnet/README.md",
            "share/fairrate/Cargo.lock",
            "share/fairrate/crates/fairrate-control/src/lib.rs",
            "share/fairrate/crates/fairrate-daemon/examples/paced-sender.rs",
            "share/fairrate/examples/incast10.toml",
            "share/fairrate/examples/field/incast.toml",
            "share/fairrate/examples/own-algorithm/src/lib.rs",
            "share/fairrate/examples/library-rust/Cargo.toml",
            "share/fairrate/examples/library-c/theta_powertcp.c",
            "share/fairrate/include/fairrate.h",
            "share/fairrate/packaging/agent.toml",
            "share/fairrate/packaging/alerts-allocator.yml",
            "share/fairrate/packaging/allocator.toml",
            "share/fairrate/packaging/grafana-allocator.json",
            "share/fairrate/python/examples/gamma.ipynb",
        ] {
            assert!(stage.join(file).is_file(), "{file}");
        }
        let figures = stage.join("share/doc/fairrate/docs/figures/powertcp/fig8");
        assert!(figures.join("claims.md").is_file() && !figures.join("measured.csv").exists());
        assert!(!stage.join("share/fairrate/crates/fairrate-control/tests").exists());
        let (n, dead) = links::dead(&stage).unwrap();
        assert_eq!(dead, [""; 0]);
        assert!(700 < n, "{n}");
        // A link that became plain text still has words.
        let validation = files::read(&stage.join("share/doc/fairrate/docs/validation.md")).unwrap();
        assert!(
            !validation.contains("(README)") && validation.contains("([README](../validation/homa-omnet/README.md))")
        );
        for command in first_commands() {
            assert!(page("").contains(&format!("\n    {command}\n")), "{command}");
        }
        assert!(page("").contains("pip install 'fairrate[tune]"));
    }
}
