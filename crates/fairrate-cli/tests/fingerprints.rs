//! The changelog's table of fingerprints has every example, and what `fairrate run examples/NAME.toml` prints.
//!
//! Examples that run for a second or more are not run whole here: [`CUT`] runs their beginning, whose fingerprint is in
//! the snapshot. If one moves, so does the example's, and
//! `FAIRRATE_BLESS=1 cargo test -p fairrate-cli --test all fingerprints::` runs all examples whole, which takes a
//! minute or two, and writes the table. `INSTA_UPDATE=always` accepts the snapshot.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::common::{fresh_dir, run, stderr, stdout};

/// Examples of which only the beginning runs, with its duration.
const CUT: [(&str, &str); 14] = [
    ("d2tcp", "20ms"),
    ("flowtune-outage", "1500us"),
    ("flowtune-web", "500us"),
    ("perc-fig6", "2ms"),
    ("perc-link", "2ms"),
    ("powertcp-rdcn", "500us"),
    ("ratemp-bottlenecks", "300ms"),
    ("ratemp-download", "1s"),
    ("rocc-fabric", "1ms"),
    ("rocc-fabric-poisson", "1ms"),
    ("tune-dcqcn", "1ms"),
    ("websearch", "2ms"),
    ("websearch-artifact", "20ms"),
    ("websearch20", "2ms"),
];
/// The line of the changelog below which the table is.
const HEAD: &str = "### Fingerprints\n";
/// The table's first lines.
const TABLE: &str = "| example | 0.2.0 |\n|---|---|\n";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Returns the names of all examples, sorted.
fn examples() -> Vec<String> {
    let files = std::fs::read_dir(root().join("examples")).expect("examples").map(|e| e.expect("an entry").path());
    let name = |path: PathBuf| path.file_stem().expect("it has one").to_string_lossy().into_owned();
    let mut names: Vec<String> =
        files.filter(|path| path.extension().is_some_and(|end| end == "toml")).map(name).collect();
    names.sort();
    names
}

/// Runs the beginning of an example, or all of it, and returns its fingerprint.
fn fingerprint(name: &str, duration: Option<&str>) -> String {
    let file = root().join(format!("examples/{name}.toml"));
    let out = fresh_dir(&format!("fingerprint_{name}"));
    let set = duration.map(|duration| format!("duration={duration}"));
    let mut args = vec!["run", file.to_str().unwrap(), "--quiet", "--json", "--out", out.to_str().unwrap()];
    args.extend(set.iter().flat_map(|set| ["--set", set]));
    let output = run(&args);
    assert_eq!(output.status.code(), Some(0), "{name}: {}", stderr(&output));
    let json: serde_json::Value = serde_json::from_str(&stdout(&output)).expect("it is JSON");
    json["summary"]["fingerprint"].as_str().expect("it has one").to_owned()
}

/// Runs `examples` side by side, those of [`CUT`] only in part unless `whole`, and returns their fingerprints by name.
fn fingerprints(examples: &[String], whole: bool) -> BTreeMap<String, String> {
    let (next, all) = (AtomicUsize::new(0), Mutex::new(BTreeMap::new()));
    let n_threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..n_threads {
            scope.spawn(|| {
                while let Some(name) = examples.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let print = fingerprint(name, cut(name).filter(|_| !whole));
                    all.lock().unwrap().insert(name.clone(), print);
                }
            });
        }
    });
    all.into_inner().unwrap()
}

/// Returns the duration of the beginning of an example that is not run whole.
fn cut(name: &str) -> Option<&'static str> {
    CUT.iter().find(|(of, _)| *of == name).map(|(_, duration)| *duration)
}

/// Returns the rows of the table, and where it begins and ends in the changelog.
fn table(changelog: &str) -> (BTreeMap<String, String>, std::ops::Range<usize>) {
    let section = changelog.find(HEAD).expect("the changelog has fingerprints");
    let begin = section + changelog[section..].find(TABLE).expect("they are a table");
    let rows = &changelog[begin + TABLE.len()..];
    let rows = &rows[..rows.find("\n\n").map_or(rows.len(), |end| end + 1)];
    let row = |line: &str| {
        let mut fields = line.trim_matches('|').split('|').map(|field| field.trim().trim_matches('`').to_owned());
        (fields.next().expect("a name"), fields.next().expect("a fingerprint"))
    };
    (rows.lines().map(row).collect(), begin..begin + TABLE.len() + rows.len())
}

#[test]
fn the_changelog_has_the_fingerprints_of_all_examples() {
    let path = root().join("CHANGELOG.md");
    let changelog = std::fs::read_to_string(&path).expect("the changelog");
    let (listed, place) = table(&changelog);
    let examples = examples();
    if std::env::var_os("FAIRRATE_BLESS").is_some() {
        let rows = fingerprints(&examples, true).into_iter().map(|(name, print)| format!("| `{name}` | {print} |\n"));
        let written = rows.fold(TABLE.to_owned(), |table, row| table + &row);
        let written = [&changelog[..place.start], &written, &changelog[place.end..]].concat();
        return std::fs::write(&path, written).expect("the changelog can be written");
    }
    assert_eq!(listed.keys().collect::<Vec<_>>(), examples.iter().collect::<Vec<_>>(), "FAIRRATE_BLESS=1 writes it");
    let runs = fingerprints(&examples, false);
    let moved: Vec<_> = runs.iter().filter(|(name, print)| cut(name).is_none() && listed[*name] != **print).collect();
    assert!(moved.is_empty(), "moved: {moved:?}: mark RESULTS in the changelog; FAIRRATE_BLESS=1 writes its table");
    // With the row of the changelog, so that neither is accepted without the other.
    let row = |(name, duration): &(&str, &str)| format!("{name} {duration}: {}, all: {}\n", runs[*name], listed[*name]);
    let beginnings: String = CUT.iter().map(row).collect();
    insta::assert_snapshot!("beginnings", beginnings);
}
