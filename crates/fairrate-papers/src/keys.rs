//! The key of a figure: a hash of the sources by which its runs are made and read. The build script computes the keys,
//! and kept points are valid as long as their key is.
//!
//! A source belongs to a key unless it is known to be needless, so that a new source costs another run and never a
//! wrong figure. The simulator's sources are in the hash of `fairrate-scenario`; a scenario's text and files are in the
//! scenario's own.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::Hasher;
use std::path::Path;

use twox_hash::XxHash64;

/// Texts of sources by path, relative to the directory of all crates.
pub type Sources = BTreeMap<String, String>;

/// The directory of this crate's sources.
pub const PAPERS: &str = "fairrate-papers/src/";
/// The directory of the sources of `fairrate-report`, which has the statistics.
pub const REPORT: &str = "fairrate-report/src/";

/// Files of [`PAPERS`] on which no point depends: they draw, write, list, and make keys.
pub const DRAWING: [&str; 10] = [
    "claim.rs",
    "curves.rs",
    "drawing.rs",
    "keys.rs",
    "lib.rs",
    "list.rs",
    "looked.rs",
    "measured.rs",
    "null.rs",
    "sheet.rs",
];
/// Modules of [`REPORT`] on which no point depends, for the same reason.
pub const DRAWING_OF_REPORT: [&str; 4] = ["export", "panel", "style", "svg"];

/// Reads all sources that keys may depend on. `package` is the directory of this crate. In a registry `fairrate-report`
/// does not lie beside it, and no key depends on its sources.
///
/// # Errors
/// If a directory or a file cannot be read.
pub fn read(package: &Path) -> std::io::Result<Sources> {
    let mut sources = Sources::new();
    read_below(&package.join("src"), PAPERS, &mut sources)?;
    let report = package.join("..").join(REPORT);
    if report.is_dir() {
        read_below(&report, REPORT, &mut sources)?;
    }
    Ok(sources)
}

/// Reads the files below a directory, whose paths in `sources` begin with `name`.
fn read_below(dir: &Path, name: &str, sources: &mut Sources) -> std::io::Result<()> {
    for entry in std::fs::read_dir(dir)? {
        let entry = entry?;
        let path = format!("{name}{}", entry.file_name().to_string_lossy());
        if entry.file_type()?.is_dir() {
            read_below(&entry.path(), &format!("{path}/"), sources)?;
        } else {
            sources.insert(path, String::from_utf8_lossy(&std::fs::read(entry.path())?).into_owned());
        }
    }
    Ok(())
}

/// Returns the key of each paper in `sources`, for the runs that its figures share, and of each figure.
pub fn of(sources: &Sources) -> Vec<(String, String)> {
    let key = |(id, paths): (String, BTreeSet<&str>)| (id, hash(sources, &paths));
    parts(sources).into_iter().map(key).collect()
}

/// Returns the files that are in the key of each paper and of each figure.
fn parts<'a>(sources: &'a Sources) -> Vec<(String, BTreeSet<&'a str>)> {
    let named: BTreeMap<&str, Vec<&str>> =
        sources.iter().map(|(path, text)| (path.as_str(), named_by(path, text, sources))).collect();
    let common: Vec<&str> = common(sources).collect();
    let mut parts = Vec::new();
    for paper in papers(sources) {
        let dir = format!("{PAPERS}{paper}/");
        let files = sources.iter().filter(|(path, _)| path.starts_with(&dir));
        let files = files.map(|(path, text)| (path.as_str(), ids(text, paper)));
        let (figures, others): (Vec<_>, Vec<_>) = files.partition(|(_, ids)| !ids.is_empty());
        let all = |own: Option<&'a str>| {
            let others = others.iter().map(|(path, _)| *path);
            with_named(common.iter().copied().chain(others).chain(own).collect(), &named)
        };
        parts.push((paper.to_owned(), all(None)));
        for (path, ids) in figures {
            parts.extend(ids.into_iter().map(|id| (id, all(Some(path)))));
        }
    }
    parts
}

/// Returns the files of this crate that all figures share.
fn common(sources: &Sources) -> impl Iterator<Item = &str> {
    let is_common =
        |path: &&str| path.strip_prefix(PAPERS).is_some_and(|file| !file.contains('/') && !DRAWING.contains(&file));
    sources.keys().map(String::as_str).filter(is_common)
}

/// Returns the names of all papers: the directories of this crate's sources.
fn papers(sources: &Sources) -> BTreeSet<&str> {
    let dirs = sources.keys().filter_map(|path| path.strip_prefix(PAPERS)?.split_once('/'));
    dirs.map(|(dir, _)| dir).collect()
}

/// Returns `all` with the files they name, and the files that are named there in turn.
fn with_named<'a>(mut all: BTreeSet<&'a str>, named: &BTreeMap<&'a str, Vec<&'a str>>) -> BTreeSet<&'a str> {
    let mut to_read: Vec<&str> = all.iter().copied().collect();
    while let Some(path) = to_read.pop() {
        to_read.extend(named[path].iter().copied().filter(|other| all.insert(other)));
    }
    all
}

/// Returns the files that the text of `path` names: neighbours in its directory, other papers, and modules of
/// [`REPORT`].
fn named_by<'a>(path: &str, text: &str, sources: &'a Sources) -> Vec<&'a str> {
    let text = uses(path, text);
    let dir = path.rfind('/').map_or("", |end| &path[..=end]);
    let is_named = |other: &str| {
        if let Some(file) = other.strip_prefix(REPORT) {
            let module = file.split(['/', '.']).next().unwrap_or(file);
            return if dir == REPORT { names_crate(&text, module) } else { names_report(&text, module) };
        }
        let Some((paper, _)) = other.strip_prefix(PAPERS).and_then(|file| file.split_once('/')) else { return false };
        let is_beside = dir.strip_prefix(PAPERS) == Some(&format!("{paper}/"));
        if is_beside { names_sibling(&text, stem(other)) } else { dir != REPORT && names_crate(&text, paper) }
    };
    sources.keys().map(String::as_str).filter(|other| *other != path && is_named(other)).collect()
}

/// Returns the text of a file; of a `mod.rs`, without declarations of modules and re-exported figures, which are not
/// uses.
fn uses(path: &str, text: &str) -> String {
    let declares = |line: &&str| {
        let line = line.trim_start_matches("pub ");
        line.starts_with("mod ") || (line.starts_with("use ") && line.contains("FIG"))
    };
    if path.ends_with("/mod.rs") {
        text.lines().filter(|line| !declares(line)).collect::<Vec<_>>().join("\n")
    } else {
        text.to_owned()
    }
}

/// Returns `true` if `text` names `module` of [`REPORT`], unless the module only draws. An import that cannot be parsed
/// names all modules.
fn names_report(text: &str, module: &str) -> bool {
    let rests = text.split("fairrate_report").skip(1).map(|rest| rest.strip_prefix("::").unwrap_or_default());
    !DRAWING_OF_REPORT.contains(&module)
        && rests.map(|rest| words(rest).next().unwrap_or_default()).any(|word| word.is_empty() || word == module)
}

/// Returns `true` if `text` names the module `name` of its own crate.
fn names_crate(text: &str, name: &str) -> bool {
    text.contains(&format!("crate::{name}")) || (text.contains("crate::{") && words(text).any(|word| word == name))
}

/// Returns `true` if `text` names the module `name` beside its own.
fn names_sibling(text: &str, name: &str) -> bool {
    text.contains(&format!("super::{name}"))
        || text.contains(&format!("{name}::"))
        || (text.contains("super::{") && words(text).any(|word| word == name))
}

/// Returns the words of `text`, of which the first is empty if `text` does not begin with a word.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric() && c != '_')
}

/// Returns a file's name without its ending.
fn stem(path: &str) -> &str {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.split('.').next().unwrap_or(name)
}

/// Returns the figures of `paper` that are defined in `text`, each as `id: "paper/name"`.
fn ids(text: &str, paper: &str) -> Vec<String> {
    let begin = format!("id: \"{paper}/");
    let rest = text.split(&begin).skip(1);
    rest.filter_map(|rest| Some(format!("{paper}/{}", rest.split_once('"')?.0))).collect()
}

fn hash(sources: &Sources, paths: &BTreeSet<&str>) -> String {
    let mut hash = XxHash64::with_seed(0);
    for path in paths {
        for part in [*path, &sources[*path]] {
            hash.write(part.as_bytes());
            hash.write(&[0]);
        }
    }
    format!("{:016x}", hash.finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sources() -> Sources {
        read(Path::new(env!("CARGO_MANIFEST_DIR"))).expect("the sources are there")
    }

    /// Returns the papers and figures whose key includes `path`.
    fn keys_with(parts: &[(String, BTreeSet<&str>)], path: &str) -> BTreeSet<String> {
        parts.iter().filter(|(_, paths)| paths.contains(path)).map(|(id, _)| id.clone()).collect()
    }

    #[test]
    fn another_text_of_what_reads_buffers_changes_all_keys() {
        let sources = sources();
        let mut other = sources.clone();
        other.get_mut("fairrate-papers/src/occupancy.rs").expect("it is there").push_str("// changed\n");
        let changed = of(&sources).into_iter().zip(of(&other)).filter(|(old, new)| old.0 == new.0 && old.1 != new.1);
        assert_eq!(changed.count(), of(&sources).len());
    }

    #[test]
    fn what_all_figures_share_is_in_all_keys_unless_it_only_draws() {
        let sources = sources();
        let parts = parts(&sources);
        let all: BTreeSet<String> = parts.iter().map(|(id, _)| id.clone()).collect();
        for path in sources.keys() {
            let Some(file) = path.strip_prefix(PAPERS).filter(|file| !file.contains('/')) else { continue };
            let expected = if DRAWING.contains(&file) { BTreeSet::new() } else { all.clone() };
            assert_eq!(keys_with(&parts, path), expected, "{file}");
        }
    }

    #[test]
    fn a_file_that_only_draws_exists_and_reads_no_run() {
        let sources = sources();
        let code = |path: &str| {
            let text = sources.get(path).unwrap_or_else(|| panic!("there is no `{path}`"));
            text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default()
        };
        for file in DRAWING.into_iter().filter(|file| !["lib.rs", "keys.rs"].contains(file)) {
            let text = code(&format!("{PAPERS}{file}"));
            assert!(!text.contains("Record"), "{file} reads a run");
            assert!(file == "measured.rs" || !text.contains("Point::"), "{file} makes a point");
            // No source of experiments, records and points names any of them, but for the type of a figure's claims.
            let mut others = common(&sources).filter(|other| file != "claim.rs" || !other.ends_with("/figure.rs"));
            assert!(others.all(|other| !names_crate(code(other), stem(file))), "{file} is used");
        }
        for module in DRAWING_OF_REPORT {
            assert!(sources.contains_key(&format!("{REPORT}{module}.rs")), "{module}");
        }
    }

    #[test]
    fn what_lies_in_a_paper_is_in_the_keys_of_its_figures() {
        let sources = sources();
        let parts = parts(&sources);
        for (path, text) in sources.iter().filter(|(path, _)| path.starts_with(PAPERS)) {
            let Some((paper, _)) = path[PAPERS.len()..].split_once('/') else { continue };
            let (keys, own) = (keys_with(&parts, path), ids(text, paper));
            assert!(own.iter().all(|id| keys.contains(id)), "{path}: {keys:?}");
            assert!(keys.iter().all(|id| id.split('/').next() == Some(paper)), "{path}: {keys:?}");
            assert!(!own.is_empty() || keys.contains(paper), "{path} has no figure, so all share it: {keys:?}");
        }
    }

    #[test]
    fn a_figure_that_reads_as_another_does_has_its_file_in_its_key() {
        let sources = sources();
        let parts = parts(&sources);
        let expected = ["fig10", "fig11", "fig4", "fig9"].map(|name| format!("powertcp/{name}"));
        assert_eq!(keys_with(&parts, "fairrate-papers/src/powertcp/fig4.rs"), expected.into());
        assert_eq!(keys_with(&parts, "fairrate-papers/src/perc/fig4.rs"), ["perc/fig4".to_owned()].into());
    }

    #[test]
    fn statistics_are_in_all_keys_and_looks_in_none() {
        let sources = sources();
        let parts = parts(&sources);
        for (file, n) in [("stats", parts.len()), ("bootstrap", parts.len()), ("svg", 0), ("html", 0)] {
            assert_eq!(keys_with(&parts, &format!("{REPORT}{file}.rs")).len(), n, "{file}");
        }
    }

    #[test]
    fn imports_are_seen_in_all_their_forms() {
        assert!(names_report("use fairrate_report::stats::mean;", "stats"));
        assert!(
            !names_report("use fairrate_report::stats;", "load") && !names_report("fairrate_report::svg::x()", "svg")
        );
        for all in ["use fairrate_report::{stats, load};", "use fairrate_report as report;"] {
            assert!(names_report(all, "load") && !names_report(all, "style"), "{all}");
        }
        assert!(names_sibling("use super::{fig4, fig5};", "fig5") && names_sibling("super::fig4::read", "fig4"));
        assert!(!names_sibling("// The outage is a word.", "outage"));
    }
}
