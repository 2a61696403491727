//! The licences of all packages that are part of the programs, with their texts.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};

use super::{files, output};
use crate::cargo;

/// The name of the file with the licences.
pub const FILE: &str = "THIRD-PARTY-LICENCES.txt";

/// Returns the list of packages in programs that are built from `crates`, or from any crate of the workspace if there
/// are none. Each has its licence and where it is from. Then comes every text of a licence once, with the packages it
/// belongs to.
///
/// # Errors
/// If cargo cannot list the packages, or the sources of one are not on this machine.
pub fn text(root: &Path, crates: &[&str]) -> Result<String, String> {
    let mut tree = cargo::command(root);
    tree.args(["tree", "--locked", "--edges", "normal", "--prefix", "none", "--format", "{p}|{l}|{r}"]);
    tree.args(crates.iter().flat_map(|name| ["--package", name]));
    if crates.is_empty() {
        tree.args(["--workspace", "--features", crate::kernel::FEATURES]);
    }
    let tree = output(&mut tree)?;
    let sources = sources()?;
    let mut list = String::from("Packages of others in the programs of fairrate, with their licences.\n\n");
    let mut texts: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (name, licence, from) in packages(&String::from_utf8_lossy(&tree)) {
        let _ = writeln!(list, "{name}: {licence} ({from})");
        let dir = sources.iter().map(|dir| dir.join(&name)).find(|dir| dir.is_dir());
        let dir = dir.ok_or_else(|| format!("the sources of {name} are not on this machine"))?;
        for path in files::list(&dir)?.iter().filter(|path| is_licence(path)) {
            let text = std::fs::read_to_string(path).map_err(|e| format!("cannot read {}: {e}", path.display()))?;
            texts.entry(text.replace("\r\n", "\n").trim().to_owned()).or_default().push(name.clone());
        }
    }
    for (text, of) in texts {
        let _ = write!(list, "\n{}\n{}\n\n{text}\n", "-".repeat(80), of.join(", "));
    }
    Ok(list)
}

/// Returns the packages in what `cargo tree` prints, sorted, each once: `NAME-VERSION`, licence, repository. Packages
/// of this workspace, which have a path in parentheses, are left out.
fn packages(tree: &str) -> Vec<(String, String, String)> {
    let package = |line: &str| {
        let mut fields = line.trim_end_matches(" (*)").split('|');
        let (package, licence, from) = (fields.next()?, fields.next()?, fields.next()?);
        let package = package.trim_end_matches(" (proc-macro)");
        let (name, version) = package.split_once(" v")?;
        let is_ours = version.contains('(');
        (!is_ours).then(|| (format!("{name}-{version}"), licence.to_owned(), from.to_owned()))
    };
    let mut all: Vec<_> = tree.lines().filter_map(package).collect();
    all.sort();
    all.dedup();
    all
}

/// Returns the directories in which cargo keeps the sources of packages.
fn sources() -> Result<Vec<PathBuf>, String> {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| std::env::home_dir().map(|home| home.join(".cargo")));
    files::list(&home.ok_or("cargo's directory is not known: set CARGO_HOME")?.join("registry/src"))
}

/// Returns `true` for the name of a file with a licence.
fn is_licence(path: &Path) -> bool {
    let name = files::name(path).to_uppercase();
    path.is_file() && ["LICENSE", "LICENCE", "COPYING", "UNLICENSE", "NOTICE"].iter().any(|word| name.starts_with(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_of_others_are_listed_once() {
        let tree = "fairrate-cli v0.2.0 (/x/crates/fairrate-cli)|Apache-2.0 OR MIT|\n\
                    csv v1.4.0|Unlicense/MIT|https://example.org/csv\n\
                    clap_derive v4.6.7 (proc-macro)|MIT OR Apache-2.0|https://example.org/clap\n\
                    csv v1.4.0|Unlicense/MIT|https://example.org/csv (*)\n";
        let names: Vec<String> = packages(tree).into_iter().map(|(name, ..)| name).collect();
        assert_eq!(names, ["clap_derive-4.6.7", "csv-1.4.0"]);
    }

    #[test]
    fn licences_have_many_names() {
        let dir = std::env::temp_dir().join(format!("fairrate-licences-{}", std::process::id()));
        for (name, is) in [("LICENSE-MIT", true), ("License.txt", true), ("COPYING", true), ("README.md", false)] {
            files::write(&dir.join(name), b"text").expect("a file can be written");
            assert_eq!(is_licence(&dir.join(name)), is, "{name}");
        }
        std::fs::remove_dir_all(dir).expect("it can be removed");
    }
}
