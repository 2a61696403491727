//! The bill of materials of the programs: all packages in them, in the format `CycloneDX` 1.5.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::Path;

use super::{VERSION, files, output};
use crate::{cargo, kernel};

/// The crate whose page has packages of npm.
const PAGE: &str = "fairrate-watch";

/// A package in the programs.
#[derive(Debug, PartialEq, Eq)]
struct Package {
    name: String,
    version: String,
    licence: String,
    repository: String,
    origin: Origin,
    /// References of the packages that it depends on.
    needs: BTreeSet<String>,
}

/// The place a package is from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Origin {
    /// This workspace.
    Workspace,
    /// The registry of cargo.
    Cargo,
    /// That of npm.
    Npm,
}

impl Package {
    /// Returns the reference of the package: its package URL if it is from a registry.
    fn reference(&self) -> String {
        let place = match self.origin {
            Origin::Workspace => "",
            Origin::Cargo => "pkg:cargo/",
            Origin::Npm => "pkg:npm/",
        };
        // A `+` in an URL is a space.
        format!("{place}{}@{}", self.name, self.version.replace('+', "%2B"))
    }
}

/// Returns the bill of materials of the programs that are built from `crates`.
///
/// # Errors
/// If cargo cannot list the packages, or prints what is no list of packages.
pub fn text(root: &Path, crates: &[&str]) -> Result<String, String> {
    let mut tree = cargo::command(root);
    tree.args(["tree", "--locked", "--edges", "normal", "--prefix", "depth", "--format", "{p}|{l}|{r}"]);
    tree.args(crates.iter().flat_map(|name| ["--package", name]));
    if crates.contains(&"fairrate-agent") {
        tree.args(["--features", kernel::FEATURES]);
    }
    let tree = output(&mut tree)?;
    let mut packages = packages(&String::from_utf8_lossy(&tree))?;
    if crates.contains(&PAGE) {
        let lock = files::read(&root.join("crates").join(PAGE).join("package-lock.json"))?;
        let of_page = of_npm(&lock).into_iter().map(|package| (package.reference(), package)).collect::<Vec<_>>();
        let program = packages.values_mut().find(|package| package.name == PAGE).ok_or("cargo does not list it")?;
        program.needs.extend(of_page.iter().map(|(reference, _)| reference.clone()));
        packages.extend(of_page);
    }
    Ok(json(&packages, crates, &checksums(&files::read(&root.join("Cargo.lock"))?)))
}

/// Reads what `cargo tree` prints with the depth before each package. Packages are sorted by reference.
fn packages(tree: &str) -> Result<BTreeMap<String, Package>, String> {
    let mut all: BTreeMap<String, Package> = BTreeMap::new();
    let mut above: Vec<String> = Vec::new();
    for line in tree.lines().filter(|line| !line.is_empty()) {
        let (depth, package) = read(line).ok_or_else(|| format!("`cargo tree` printed `{line}`"))?;
        let reference = package.reference();
        above.truncate(depth);
        if let Some(parent) = above.last().and_then(|parent| all.get_mut(parent)) {
            parent.needs.insert(reference.clone());
        }
        above.push(reference.clone());
        // Where a package is listed again, cargo leaves out what it depends on.
        all.entry(reference).or_insert(package);
    }
    Ok(all)
}

/// Reads a line as `2csv v1.4.0|Unlicense/MIT|https://example.org/csv (*)`.
fn read(line: &str) -> Option<(usize, Package)> {
    let digits = line.find(|c: char| !c.is_ascii_digit())?;
    let mut fields = line[digits..].trim_end_matches(" (*)").split('|');
    let (package, licence, repository) = (fields.next()?, fields.next()?, fields.next()?);
    let (name, version) = package.trim_end_matches(" (proc-macro)").split_once(" v")?;
    let (version, is_published) = version.split_once(" (").map_or((version, true), |(version, _)| (version, false));
    let package = Package {
        name: name.to_owned(),
        version: version.to_owned(),
        // Older manifests have a slash.
        licence: licence.replace(" / ", " OR ").replace('/', " OR "),
        repository: repository.to_owned(),
        origin: if is_published { Origin::Cargo } else { Origin::Workspace },
        needs: BTreeSet::new(),
    };
    Some((line[..digits].parse().ok()?, package))
}

/// Returns the packages of a lock file of npm.
fn of_npm(lock: &str) -> Vec<Package> {
    let of = |block: &str| {
        let field = |name: &str| Some(block.split_once(&format!("\"{name}\": \""))?.1.split('"').next()?.to_owned());
        Some(Package {
            name: block.split('"').next()?.to_owned(),
            version: field("version")?,
            licence: field("license")?,
            repository: String::new(),
            origin: Origin::Npm,
            needs: BTreeSet::new(),
        })
    };
    lock.split("\"node_modules/").skip(1).filter_map(of).collect()
}

/// Returns the checksums of the lock file, by name and version.
fn checksums(lock: &str) -> BTreeMap<(String, String), String> {
    let of = |block: &str| {
        let field = |name: &str| {
            let value = block.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(" = "))?;
            Some(value.trim_matches('"').to_owned())
        };
        Some(((field("name")?, field("version")?), field("checksum")?))
    };
    lock.split("[[package]]").filter_map(of).collect()
}

/// Returns the document of `packages`, of which `crates` are those of the programs.
fn json(
    packages: &BTreeMap<String, Package>,
    crates: &[&str],
    checksums: &BTreeMap<(String, String), String>,
) -> String {
    let components: Vec<String> = packages.values().map(|package| component(package, checksums)).collect();
    let programs = packages.iter().filter(|(_, package)| crates.contains(&package.name.as_str()));
    let mut dependencies = vec![depends("fairrate", programs.map(|(reference, _)| reference))];
    dependencies.extend(packages.values().map(|package| depends(&package.reference(), package.needs.iter())));
    format!(
        "{{\n\"bomFormat\": \"CycloneDX\",\n\"specVersion\": \"1.5\",\n\"version\": 1,\n\"metadata\": {{\"component\": \
         {{\"type\": \"application\", \"bom-ref\": \"fairrate\", \"name\": \"fairrate\", \"version\": \"{VERSION}\", \
         \"licenses\": [{{\"expression\": {}}}]}}}},\n\"components\": [\n{}\n],\n\"dependencies\": [\n{}\n]\n}}\n",
        quoted(env!("CARGO_PKG_LICENSE")),
        components.join(",\n"),
        dependencies.join(",\n")
    )
}

/// Returns the description of a package.
fn component(package: &Package, checksums: &BTreeMap<(String, String), String>) -> String {
    let reference = quoted(&package.reference());
    let (name, version) = (quoted(&package.name), quoted(&package.version));
    let mut out =
        format!("{{\"type\": \"library\", \"bom-ref\": {reference}, \"name\": {name}, \"version\": {version}");
    if let Some(checksum) = checksums.get(&(package.name.clone(), package.version.clone())) {
        let _ = write!(out, ", \"hashes\": [{{\"alg\": \"SHA-256\", \"content\": {}}}]", quoted(checksum));
    }
    if !package.licence.is_empty() {
        let _ = write!(out, ", \"licenses\": [{{\"expression\": {}}}]", quoted(&package.licence));
    }
    if package.origin != Origin::Workspace {
        let _ = write!(out, ", \"purl\": {reference}");
    }
    if !package.repository.is_empty() {
        let url = quoted(&package.repository);
        let _ = write!(out, ", \"externalReferences\": [{{\"type\": \"vcs\", \"url\": {url}}}]");
    }
    out + "}"
}

/// Returns what the package `reference` depends on.
fn depends<'a>(reference: &str, on: impl Iterator<Item = &'a String>) -> String {
    let on: Vec<String> = on.map(|reference| quoted(reference)).collect();
    format!("{{\"ref\": {}, \"dependsOn\": [{}]}}", quoted(reference), on.join(", "))
}

/// Returns `text` as a string of JSON.
fn quoted(text: &str) -> String {
    let mut out = String::from('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if c < ' ' => {
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out + "\""
}

#[cfg(test)]
mod tests {
    use super::*;

    const TREE: &str = "0fairrate-cli v0.2.0 (/x/crates/fairrate-cli)|Apache-2.0 OR MIT|\n\
                        1csv v1.4.0|Unlicense/MIT|https://example.org/csv\n\
                        2memchr v2.7.0|Unlicense OR MIT|\n\
                        1memchr v2.7.0|Unlicense OR MIT|\n\
                        \n\
                        0fairrate-picture v0.2.0 (/x/crates/fairrate-picture)|Apache-2.0 OR MIT|\n\
                        1csv v1.4.0|Unlicense/MIT|https://example.org/csv (*)\n";

    #[test]
    fn packages_have_what_they_need() {
        let all = packages(TREE).expect("it is a tree");
        let needs = |reference: &str| all[reference].needs.iter().map(String::as_str).collect::<Vec<_>>();
        assert_eq!(needs("fairrate-cli@0.2.0"), ["pkg:cargo/csv@1.4.0", "pkg:cargo/memchr@2.7.0"]);
        assert_eq!(needs("pkg:cargo/csv@1.4.0"), ["pkg:cargo/memchr@2.7.0"]);
        assert_eq!(needs("fairrate-picture@0.2.0"), ["pkg:cargo/csv@1.4.0"]);
        assert_eq!(all.len(), 4);
        assert_eq!(packages("warning: x\n"), Err("`cargo tree` printed `warning: x`".to_owned()));
    }

    #[test]
    fn packages_of_npm_are_those_of_its_lock_file() {
        let lock = r#"{"packages": {"": {"name": "page"}, "node_modules/uplot": {"version": "1.6.32", "integrity": "x", "license": "MIT"}}}"#;
        let all = of_npm(lock);
        let got: Vec<_> = all.iter().map(|package| (package.reference(), package.licence.as_str())).collect();
        assert_eq!(got, [("pkg:npm/uplot@1.6.32".to_owned(), "MIT")]);
    }

    #[test]
    fn the_document_names_packages_licences_and_checksums() {
        let lock =
            "version = 4\n\n[[package]]\nname = \"csv\"\nversion = \"1.4.0\"\nsource = \"x\"\nchecksum = \"52\"\n";
        let crates = ["fairrate-cli", "fairrate-picture"];
        let text = json(&packages(TREE).expect("it is a tree"), &crates, &checksums(lock));
        for part in [
            r#"{"type": "library", "bom-ref": "pkg:cargo/csv@1.4.0", "name": "csv", "version": "1.4.0", "hashes": [{"alg": "SHA-256", "content": "52"}], "licenses": [{"expression": "Unlicense OR MIT"}], "purl": "pkg:cargo/csv@1.4.0", "externalReferences": [{"type": "vcs", "url": "https://example.org/csv"}]}"#,
            // No registry has the crates of this workspace.
            r#"{"type": "library", "bom-ref": "fairrate-cli@0.2.0", "name": "fairrate-cli", "version": "0.2.0", "licenses": [{"expression": "Apache-2.0 OR MIT"}]}"#,
            r#"{"ref": "fairrate", "dependsOn": ["fairrate-cli@0.2.0", "fairrate-picture@0.2.0"]}"#,
            r#"{"ref": "pkg:cargo/memchr@2.7.0", "dependsOn": []}"#,
        ] {
            assert!(text.contains(part), "{part}\n{text}");
        }
    }

    #[test]
    fn strings_are_escaped() {
        assert_eq!(quoted("a\"b\\c\n"), r#""a\"b\\c\u000a""#);
    }
}
