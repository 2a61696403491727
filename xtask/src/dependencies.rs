//! `cargo xtask dependencies`: compares licences and sources of all packages in `Cargo.lock` with `deny.toml`. It only
//! uses cargo; advisories need `cargo deny check` and its database.

use std::path::Path;
use std::process::Command;

use serde::Deserialize;
use spdx::{Expression, Licensee, ParseMode};

/// The part of `deny.toml` that is read.
#[derive(Deserialize)]
struct Deny {
    licenses: Licenses,
}

#[derive(Deserialize)]
struct Licenses {
    allow: Vec<String>,
    #[serde(default)]
    exceptions: Vec<Exception>,
}

/// Additional licences that a single package may have.
#[derive(Deserialize)]
struct Exception {
    #[serde(rename = "crate")]
    package: String,
    allow: Vec<String>,
}

/// The licences that packages may have.
struct Allowed {
    all: Vec<Licensee>,
    exceptions: Vec<(String, Vec<Licensee>)>,
}

impl Allowed {
    /// Returns the licences allowed for the package `name`.
    fn of(&self, name: &str) -> impl Iterator<Item = &Licensee> {
        let exceptions = self.exceptions.iter().filter(move |(package, _)| package == name);
        self.all.iter().chain(exceptions.flat_map(|(_, licences)| licences))
    }
}

/// The part of `cargo metadata` that is read.
#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    version: String,
    license: Option<String>,
    source: Option<String>,
}

/// Prints all problems. Returns `true` if there are none.
pub fn run(root: &Path) -> Result<bool, String> {
    let path = root.join("deny.toml");
    let text = std::fs::read_to_string(&path).map_err(|e| format!("cannot read `{}`: {e}", path.display()))?;
    let allowed = allowed(&text)?;
    let packages = packages(root)?;
    let mut n_wrong = 0;
    for package in &packages {
        for what in problems(package, &allowed) {
            println!("{} {}: {what}", package.name, package.version);
            n_wrong += 1;
        }
    }
    println!("rows: {} inside, {n_wrong} outside", packages.len() - n_wrong.min(packages.len()));
    Ok(n_wrong == 0)
}

/// Reads the licences of `deny.toml`.
fn allowed(text: &str) -> Result<Allowed, String> {
    let deny: Deny = toml::from_str(text).map_err(|e| format!("`deny.toml`: {e}"))?;
    let one = |name: &String| Licensee::parse(name).map_err(|e| format!("`deny.toml`: `{name}` is no licence: {e}"));
    let parse = |names: &[String]| names.iter().map(one).collect::<Result<Vec<_>, _>>();
    let exceptions = deny.licenses.exceptions.iter().map(|e| Ok((e.package.clone(), parse(&e.allow)?)));
    Ok(Allowed { all: parse(&deny.licenses.allow)?, exceptions: exceptions.collect::<Result<_, String>>()? })
}

/// Returns all packages, for any platform.
fn packages(root: &Path) -> Result<Vec<Package>, String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let args = ["metadata", "--format-version", "1", "--locked", "--quiet"];
    let output = Command::new(cargo).args(args).current_dir(root).output();
    let output = output.map_err(|e| format!("cannot run `cargo metadata`: {e}"))?;
    if !output.status.success() {
        return Err(format!("`cargo metadata` fails: {}", String::from_utf8_lossy(&output.stderr)));
    }
    let metadata: Metadata = serde_json::from_slice(&output.stdout).map_err(|e| format!("`cargo metadata`: {e}"))?;
    Ok(metadata.packages)
}

/// Returns the problems of a package.
fn problems(package: &Package, allowed: &Allowed) -> Vec<String> {
    let mut problems = Vec::new();
    match package.license.as_deref() {
        None => problems.push("it names no licence".to_owned()),
        // Older crates write `MIT/Apache-2.0`.
        Some(text) => match Expression::parse_mode(text, ParseMode::LAX) {
            Err(_) => problems.push(format!("its licence `{text}` cannot be read")),
            Ok(licence) if !licence.evaluate(|needed| allowed.of(&package.name).any(|have| have.satisfies(needed))) => {
                problems.push(format!("its licence `{text}` is not allowed by `deny.toml`"));
            }
            Ok(_) => {}
        },
    }
    if package.source.as_deref().is_some_and(|source| !source.starts_with("registry+")) {
        problems.push("it does not come from a registry".to_owned());
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(license: Option<&str>, source: Option<&str>) -> Package {
        let (name, version) = ("a".to_owned(), "1.0.0".to_owned());
        Package { name, version, license: license.map(str::to_owned), source: source.map(str::to_owned) }
    }

    #[test]
    fn licences_are_alternatives_and_demands() {
        let allowed = allowed("[licenses]\nallow = [\"MIT\", \"Apache-2.0\"]").expect("it reads");
        let n_problems = |license| problems(&package(license, None), &allowed).len();
        let fine = ["MIT", "MIT/Apache-2.0", "GPL-3.0-only OR MIT", "MIT AND Apache-2.0"];
        assert_eq!(fine.map(|license| n_problems(Some(license))), [0; 4]);
        let wrong = ["GPL-3.0-only", "MIT AND ISC", "Apache-2.0 WITH LLVM-exception AND ISC", "my own"];
        assert_eq!(wrong.map(|license| n_problems(Some(license))), [1; 4]);
        assert_eq!(n_problems(None), 1);
    }

    #[test]
    fn an_exception_is_for_one_package() {
        let deny = "[licenses]\nallow = [\"MIT\"]\n[[licenses.exceptions]]\ncrate = \"a\"\nallow = [\"ISC\"]";
        let allowed = allowed(deny).expect("it reads");
        let other = Package { name: "b".to_owned(), ..package(Some("ISC"), None) };
        let n_problems = [problems(&package(Some("ISC"), None), &allowed).len(), problems(&other, &allowed).len()];
        assert_eq!(n_problems, [0, 1]);
    }

    #[test]
    fn what_is_not_of_a_registry_is_wrong() {
        let allowed = allowed("[licenses]\nallow = [\"MIT\"]").expect("it reads");
        let n_problems = |source| problems(&package(Some("MIT"), source), &allowed).len();
        assert_eq!([None, Some("registry+index"), Some("git+repository")].map(n_problems), [0, 0, 1]);
    }
}
