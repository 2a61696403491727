//! Tests that the documentation agrees with the code: every algorithm has its page with the sections that readers look
//! for, and the tables between `<!-- NAME -->` and `<!-- end -->` are those made here. To write them again:
//! `FAIRRATE_BLESS=1 cargo test -p fairrate-control --test docs`.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use fairrate_control::{ALGORITHMS, AlgorithmConfig, ParamKind, Parameters, Profile, Scale, TuneRange};
use fairrate_text::first_difference;

const SECTIONS: [&str; 5] = ["## Idea", "## Equations", "## Parameters", "## Where it fails", "## What was validated"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn page(name: &str) -> PathBuf {
    root().join(format!("docs/algorithms/{name}.md"))
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// Compares the text between `<!-- name -->` and `<!-- end -->` with `want`, or writes `want` there.
fn hold(path: &Path, name: &str, want: &str) {
    let text = read(path);
    let begin = format!("<!-- {name} -->\n");
    let Some((before, rest)) = text.split_once(&begin) else { panic!("{} has no `{begin}`", path.display()) };
    let Some((found, after)) = rest.split_once("<!-- end -->") else { panic!("{} has no end", path.display()) };
    if std::env::var_os("FAIRRATE_BLESS").is_some() {
        std::fs::write(path, format!("{before}{begin}{want}<!-- end -->{after}")).expect("the page can be written");
    } else if let Some(difference) = first_difference(found, want) {
        let bless = "FAIRRATE_BLESS=1 cargo test -p fairrate-control --test docs";
        panic!("{}, below <!-- {name} -->: {difference}; `{bless}` writes it", path.display());
    }
}

fn kind(kind: ParamKind) -> String {
    match kind {
        ParamKind::Float => "number".to_owned(),
        ParamKind::Count => "count".to_owned(),
        ParamKind::Bool => "true or false".to_owned(),
        ParamKind::Time => "time".to_owned(),
        ParamKind::Rate => "rate".to_owned(),
        ParamKind::Bytes => "size".to_owned(),
        ParamKind::Choice(words) => words.iter().map(|w| format!("`\"{w}\"`")).collect::<Vec<_>>().join(", "),
    }
}

/// Returns a suggested range with its scale.
fn range(tune: TuneRange) -> String {
    let scale = if tune.scale == Scale::Log { ", log" } else { "" };
    format!("{} to {}{scale}", tune.low.trim_matches('"'), tune.high.trim_matches('"'))
}

/// Returns the parameters of an algorithm as a table.
fn parameters(name: &str) -> String {
    let of = |profile| AlgorithmConfig::by_name(name, profile).expect("listed").params();
    if of(Profile::Paper).is_empty() {
        return "None.\n".to_owned();
    }
    let suggests = of(Profile::Paper).iter().any(|p| p.tune.is_some());
    let (title, rule) = if suggests { (" [to tune](../tune.md#suggested-ranges) |", "---|") } else { ("", "") };
    let mut table = format!("Keys of `[transport.{name}]`.\n\n");
    writeln!(
        table,
        "| key | default | in other profiles |{title} type | meaning and source |\n|---|---|---|{rule}---|---|"
    )
    .expect("strings take text");
    let others = of(Profile::Ns3).into_iter().zip(of(Profile::RoccOmnet));
    for (paper, (ns3, omnet)) in of(Profile::Paper).iter().zip(others) {
        let differs = |(profile, of): (&str, &str)| (of != paper.toml).then(|| format!("{profile} `{of}`"));
        let other: Vec<String> =
            [("ns3", &*ns3.toml), ("rocc-omnet", &omnet.toml)].into_iter().filter_map(differs).collect();
        let other = if other.is_empty() { "same".to_owned() } else { other.join(", ") };
        let tune = if suggests { format!(" {} |", paper.tune.map(range).unwrap_or_default()) } else { String::new() };
        assert!(!paper.doc.contains('|'), "{name} {}: a table cannot hold `|`", paper.name);
        let (key, default, kind, doc) = (paper.name, &paper.toml, kind(paper.kind), paper.doc);
        writeln!(table, "| `{key}` | `{default}` | {other} |{tune} {kind} | {doc} |").expect("strings take text");
    }
    table
}

#[test]
fn every_algorithm_has_its_page() {
    for info in ALGORITHMS {
        let (path, text) = (page(info.name), read(&page(info.name)));
        let places: Vec<_> = SECTIONS.iter().map(|s| text.find(&format!("\n{s}\n"))).collect();
        assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{}: {SECTIONS:?}", path.display());
        assert!(text.starts_with(&format!("# {}", info.title)), "{}: its title is {}", path.display(), info.title);
        hold(&path, "parameters", &parameters(info.name));
    }
    let n_pages = std::fs::read_dir(root().join("docs/algorithms")).expect("pages").count();
    assert_eq!(n_pages, ALGORITHMS.len(), "a page without an algorithm");
}

#[test]
fn the_readme_lists_every_algorithm() {
    let mut table = String::from("| name | algorithm | published | idea |\n|---|---|---|---|\n");
    for a in ALGORITHMS {
        let name = format!("[`{0}`](docs/algorithms/{0}.md)", a.name);
        writeln!(table, "| {name} | {} | {} | {} |", a.title, a.paper, a.idea).expect("strings take text");
    }
    hold(&root().join("README.md"), "algorithms", &table);
}
