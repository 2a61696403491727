//! Sources of the crates that algorithms in Rust and clients of the allocator are built with. They are on no registry,
//! so a release has them: below `share/fairrate`, as a workspace with the examples, laid out as the repository is.

use std::collections::BTreeSet;
use std::path::Path;

use super::{files, succeeds};
use crate::cargo;

/// The crates that users name. Those that these depend on come with them.
const CRATES: [&str; 3] = ["fairrate-cli", "fairrate-plugin", "fairrate-daemon"];
/// Members of the workspace in a release.
const MEMBERS: &str = r#"members = ["crates/*", "examples/library-rust", "examples/own-algorithm"]"#;
/// Parts of a crate's directory that only its tests need, and an example of `fairrate-allocate` that shares code with
/// them.
const OF_TESTS: [&str; 5] = ["tests", "proptest-regressions", "snapshots", "CONTRIBUTING.md", "num_iterations.rs"];
/// The file below `tests` that a crate's sources include.
const INCLUDED: &str = "tests/docs_files";

/// Copies the sources from the repository `root` to the directory `to`, with the versions of the lock file.
///
/// # Errors
/// If a file cannot be read or written, or cargo finds the copied workspace wrong.
pub fn copy(root: &Path, to: &Path) -> Result<(), String> {
    let mut names = BTreeSet::new();
    let mut rest = CRATES.map(str::to_owned).to_vec();
    while let Some(name) = rest.pop() {
        if names.insert(name.clone()) {
            rest.extend(copy_crate(&root.join("crates").join(&name), &to.join("crates").join(&name))?);
        }
    }
    let manifest = workspace(&files::read(&root.join("Cargo.toml"))?, &names)?;
    files::write(&to.join("Cargo.toml"), manifest.as_bytes())?;
    files::copy(&root.join("Cargo.lock"), &to.join("Cargo.lock"))?;
    // It takes out the packages that no member needs, and changes no version.
    succeeds(cargo::command(to).args(["update", "--workspace", "--offline", "--quiet"]))
}

/// Copies a crate without its tests. Returns the names of the crates of fairrate that it depends on.
fn copy_crate(from: &Path, to: &Path) -> Result<Vec<String>, String> {
    for path in files::list(from)?.iter().filter(|path| !OF_TESTS.contains(&files::name(path).as_str())) {
        let to = to.join(files::name(path));
        if path.is_file() {
            files::copy(path, &to)?;
        } else if path.is_symlink() {
            // The examples, some of which are crates.
            files::copy_files_of(path, &to)?;
            for dir in files::list(path)?.iter().filter(|dir| dir.is_dir() && !dir.join("Cargo.toml").exists()) {
                files::copy_files_of(dir, &to.join(files::name(dir)))?;
            }
        } else {
            files::copy_below(path, &to, &OF_TESTS)?;
        }
    }
    if from.join(INCLUDED).is_dir() {
        files::copy_files_of(&from.join(INCLUDED), &to.join(INCLUDED))?;
    }
    let manifest = without_tests(&files::read(&from.join("Cargo.toml"))?);
    files::write(&to.join("Cargo.toml"), manifest.as_bytes())?;
    Ok(dependencies(&manifest))
}

/// Returns a crate's manifest without the sections of its tests.
fn without_tests(manifest: &str) -> String {
    let mut is_kept = true;
    let keeps = |line: &&str| {
        if line.starts_with('[') {
            is_kept = !line.starts_with("[[test]]") && !line.contains("dev-dependencies]");
        }
        is_kept
    };
    manifest.split_inclusive('\n').filter(keeps).collect()
}

/// Returns the names of the crates of fairrate that a manifest names at the beginning of a line.
fn dependencies(manifest: &str) -> Vec<String> {
    let name =
        |line: &str| line.split(['.', ' ', '=']).next().filter(|name| name.starts_with("fairrate-"))?.to_owned().into();
    manifest.lines().filter_map(name).collect()
}

/// Returns the workspace's manifest for a release with the crates `names`.
fn workspace(manifest: &str, names: &BTreeSet<String>) -> Result<String, String> {
    let mut has_members = false;
    let mut out = String::new();
    for line in manifest.lines() {
        let of_ours = dependencies(line).pop().is_some_and(|name| !names.contains(&name));
        if line.starts_with("members = ") {
            has_members = true;
            out.extend([MEMBERS, "\n"]);
        } else if !of_ours && !line.starts_with("exclude = ") {
            out.extend([line, "\n"]);
        }
    }
    if has_members { Ok(out) } else { Err("Cargo.toml has no line `members = `".to_owned()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn manifests_lose_their_tests() {
        let manifest = "[package]\nname = \"x\"\n\n[dependencies]\nfairrate-units.workspace = true\n\n[dev-dependencies]\n\
                        fairrate-sim.workspace = true\n\n[[test]]\nname = \"y\"\nharness = false\n\n[lints]\nworkspace = true\n";
        let kept = without_tests(manifest);
        assert_eq!(
            kept,
            "[package]\nname = \"x\"\n\n[dependencies]\nfairrate-units.workspace = true\n\n[lints]\nworkspace = true\n"
        );
        assert_eq!(dependencies(&kept), ["fairrate-units"]);
    }

    #[test]
    fn a_workspace_names_what_it_has() {
        let manifest = "[workspace]\nmembers = [\"a\", \"b\"]\nexclude = [\"fuzz\"]\n[workspace.dependencies]\n\
                        fairrate-sim = { path = \"crates/fairrate-sim\" }\nfairrate-x = { path = \"crates/fairrate-x\" }\n";
        let names = BTreeSet::from(["fairrate-sim".to_owned()]);
        let expected = format!(
            "[workspace]\n{MEMBERS}\n[workspace.dependencies]\nfairrate-sim = {{ path = \"crates/fairrate-sim\" }}\n"
        );
        assert_eq!(workspace(manifest, &names).as_deref(), Ok(expected.as_str()));
        assert!(workspace("[workspace]\n", &names).is_err());
    }
}
