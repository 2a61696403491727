//! The documentation agrees with the code: every TOML block in it can be run, every CSV block can be read, the tables
//! of `docs/scenario.md` have every key with its default, every way to choose a path has its page, and no link is
//! broken. To write the tables of those pages again: `FAIRRATE_BLESS=1 cargo test -p fairrate-scenario --test docs`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use fairrate_scenario::{Overrides, Scenario, samples};
use fairrate_sim::workload::{ListStacks, TraceDefaults, parse_flow_list, parse_trace};
use fairrate_sim::{BALANCES, EntropyScheme};
use fairrate_text::first_difference;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Returns every page for readers, with its text.
fn pages() -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    for dir in ["", "docs", "docs/algorithms", "docs/balancing", "docs/entropy", "validation/ns3"] {
        for entry in std::fs::read_dir(root().join(dir)).expect("a directory of pages") {
            let path = entry.expect("an entry").path();
            if path.extension().is_some_and(|e| e == "md") {
                found.push((path.clone(), std::fs::read_to_string(&path).expect("text")));
            }
        }
    }
    found.sort();
    assert!(15 < found.len(), "{} pages", found.len());
    found
}

/// Returns the code blocks of a page: the word behind the fence, and the text.
fn blocks(text: &str) -> Vec<(&str, String)> {
    let (mut found, mut open) = (Vec::new(), None::<(&str, String)>);
    for line in text.lines() {
        match (&mut open, line.strip_prefix("```")) {
            (None, Some(language)) => open = Some((language, String::new())),
            (Some(_), Some(_)) => found.extend(open.take()),
            (Some((_, block)), None) => {
                block.push_str(line);
                block.push('\n');
            }
            (None, None) => {}
        }
    }
    assert!(open.is_none(), "a block that does not end");
    found
}

fn read(text: &str) -> Scenario {
    let files = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/docs_files");
    Scenario::from_toml(text, "docs.toml", &files, &Overrides::default())
        .unwrap_or_else(|e| panic!("{e}\n{}\nin:\n{text}", e.first_help()))
}

/// Adds a network and traffic to a block without them, as a block may leave out what it is not about.
fn completed(block: &str) -> String {
    let mut text = block.to_owned();
    if !block.contains("[topology]") {
        text += "\n[topology]\nkind = \"star\"\n";
    }
    if !block.contains("[[traffic]]") {
        text += "\n[[traffic]]\nkind = \"incast\"\nreceiver = \"h0\"\nsenders = 2\nbytes = \"1KB\"\n";
    }
    text
}

#[test]
fn every_toml_and_csv_block_can_be_run() {
    let (mut n_toml, mut n_csv) = (0, 0);
    for (path, text) in pages() {
        for (language, block) in blocks(&text) {
            match language {
                "toml" => {
                    read(&completed(&block));
                    n_toml += 1;
                }
                "csv" if block.starts_with("kind,") => {
                    let job = parse_trace(&block, TraceDefaults { channels: 1, chunks: 1 });
                    assert!(job.is_ok(), "{}: {job:?}\n{block}", path.display());
                }
                "csv" => {
                    let star = read(&completed("")).into_sim_config().topology;
                    let list = parse_flow_list(&block, &star, &[], ListStacks::default());
                    assert!(list.is_ok_and(|list| !list.flows.is_empty()), "{}:\n{block}", path.display());
                    n_csv += 1;
                }
                _ => {}
            }
        }
    }
    assert!(4 <= n_toml && 1 <= n_csv, "{n_toml} TOML blocks, {n_csv} CSV blocks");
}

/// Returns the rows of the tables of `docs/scenario.md` below each heading: key and default.
fn documented() -> BTreeMap<String, BTreeMap<String, String>> {
    let text = std::fs::read_to_string(root().join("docs/scenario.md")).expect("the page");
    let (mut sections, mut chapter, mut heading) = (BTreeMap::<_, BTreeMap<_, _>>::new(), String::new(), String::new());
    for line in text.lines() {
        if let Some(title) = line.strip_prefix("## ") {
            title.trim_matches('`').clone_into(&mut chapter);
            heading.clone_from(&chapter);
        } else if let Some(title) = line.strip_prefix("### ") {
            heading = format!("{chapter} {}", title.trim_matches('`'));
        } else if let Some(row) = line.strip_prefix("| `") {
            let cells: Vec<&str> = row.split(" | ").collect();
            assert_eq!(cells.len(), 3, "{line}");
            let key = cells[0].trim_end_matches('`').to_owned();
            let before = sections.entry(heading.clone()).or_default().insert(key, cells[1].to_owned());
            assert_eq!(before, None, "{line} comes twice");
        }
    }
    sections
}

/// Compares the keys of the resolved `scenario`, and the values that `text` does not set, with the page.
fn hold(scenario: &Scenario, text: &str, page: &BTreeMap<String, BTreeMap<String, String>>, seen: &mut Vec<String>) {
    let resolved = scenario.to_toml();
    let (mut section, mut kind) = ("Top level".to_owned(), String::new());
    for line in resolved.lines().filter(|l| !l.is_empty() && !l.starts_with('#')) {
        if line.starts_with('[') {
            line.clone_into(&mut section);
            if section == "[traffic.transport]" {
                // Its keys are those of `[transport]`.
                seen.extend(["cc", "transport"].map(|key| format!("[[traffic]]/{key}")));
            }
            continue;
        }
        if section.starts_with("[traffic.transport") || section.starts_with("[traffic.algorithms") {
            if section.starts_with("[traffic.algorithms") {
                seen.push("[[traffic]] list/algorithms".to_owned());
            }
            continue;
        }
        if section.starts_with("[transport.") && !["[transport.tcp]", "[transport.uet]"].contains(&section.as_str()) {
            continue; // the pages of the algorithms have these
        }
        let (key, value) = line.split_once(" = ").expect("a key and a value");
        if key == "kind" {
            value.trim_matches('"').clone_into(&mut kind);
        }
        if section == "[topology]" && key == "kind" {
            continue;
        }
        let of_kind = format!("{section} {kind}");
        let places = [of_kind.as_str(), section.as_str()];
        let Some((place, default)) = places.iter().find_map(|p| Some((p, page.get(*p)?.get(key)?))) else {
            panic!("docs/scenario.md has no `{key}` in `{of_kind}`");
        };
        seen.push(format!("{place}/{key}"));
        if (*place, key) == ("[[class]]", "ecn") {
            continue; // as in `[switch]`
        }
        for (inner, _) in value.split(['{', ',']).filter_map(|part| part.trim().split_once(" = ")) {
            assert!(page[*place].contains_key(inner), "docs/scenario.md, {place}: no `{inner}` of `{key}`");
            seen.push(format!("{place}/{inner}"));
        }
        let is_given = text.contains(&format!("{key} = "));
        let says = default.contains(&format!("`{value}`"));
        assert!(is_given || says || default.starts_with("see"), "docs/scenario.md, {place}, `{key}`: it is `{value}`");
    }
}

#[test]
fn the_reference_has_every_key_with_its_default() {
    let page = documented();
    let mut seen = Vec::new();
    for profile in ["paper", "ns3", "rocc-omnet"] {
        for sample in samples() {
            let text = format!("profile = \"{profile}\"\n{sample}");
            hold(&read(&text), &text, &page, &mut seen);
        }
    }
    for (section, rows) in &page {
        let phantom = |key: &&String| !seen.contains(&format!("{section}/{key}"));
        let phantoms: Vec<_> = rows.keys().filter(phantom).collect();
        assert!(phantoms.is_empty(), "docs/scenario.md, {section}: {phantoms:?} are no keys");
    }
}

/// Sections of the pages on schemes and rules that choose paths.
const SECTIONS: [&str; 5] = ["## Idea", "## Rule", "## Parameters", "## Where it fails", "## What was validated"];

/// Returns the keys of `[routing]` that matter to a scheme, and those of `[transport]`.
fn keys_of_scheme(name: &str) -> (Vec<&'static str>, &'static [&'static str]) {
    let (own, of_transport): (&[&str], &[&str]) = match name {
        "ecmp" | "wcmp" => (&["salt", "rehash"], &[]),
        "host" => (&["salt", "rehash"], &["entropy", "entropy_values"]),
        "flowlet" => (&["gap"], &[]),
        "conga" => (&["gap", "time_constant", "age"], &[]),
        "adaptive" => (&["signal", "full", "refresh", "sticky"], &[]),
        "drill" => (&["samples", "memory"], &[]),
        _ => (&[], &[]),
    };
    ([own, &["reroute_delay", "convergence_delay"]].concat(), of_transport)
}

/// Returns the keys of `[transport]` that matter to a rule by which hosts choose.
fn keys_of_rule(scheme: EntropyScheme) -> &'static [&'static str] {
    if matches!(scheme, EntropyScheme::Plb | EntropyScheme::Permutation) { &[] } else { &["entropy_values"] }
}

/// Returns the rows of some keys of a section of `docs/scenario.md` as a table for a page in a directory below `docs`.
fn table(section: &str, keys: &[&str]) -> String {
    if keys.is_empty() {
        return String::new();
    }
    let reference = std::fs::read_to_string(root().join("docs/scenario.md")).expect("the page");
    let (_, rest) = reference.split_once(&format!("\n## `{section}`\n")).expect("the section");
    let own = rest.split("\n## ").next().expect("it ends");
    let row = |key: &&str| {
        let begin = format!("| `{key}` | ");
        let row = own.lines().find_map(|line| line.strip_prefix(&begin));
        let row = row.unwrap_or_else(|| panic!("docs/scenario.md, {section}: no `{key}`"));
        let row = row.trim_start_matches("see: ").replace("](#", "](scenario.md#").replace("](", "](../");
        format!("{begin}{row}\n")
    };
    let rows: String = keys.iter().map(row).collect();
    format!("Keys of `{section}`.\n\n| key | default | meaning |\n|---|---|---|\n{rows}")
}

/// Compares the parameters on a page with `want`, or writes them there.
fn hold_parameters(path: &Path, text: &str, want: &str) {
    let (before, rest) =
        text.split_once("<!-- parameters -->\n").unwrap_or_else(|| panic!("{}: no table", path.display()));
    let (found, after) = rest.split_once("<!-- end -->").expect("the table ends");
    if std::env::var_os("FAIRRATE_BLESS").is_some() {
        let text = format!("{before}<!-- parameters -->\n{want}<!-- end -->{after}");
        std::fs::write(path, text).expect("the page can be written");
    } else if let Some(difference) = first_difference(found, want) {
        let bless = "FAIRRATE_BLESS=1 cargo test -p fairrate-scenario --test docs";
        panic!("{}, below <!-- parameters -->: {difference}; `{bless}` writes it", path.display());
    }
}

/// Checks the page of a scheme or rule: its sections come in order, `docs/many-paths.md` links it, and its keys are
/// those of the reference.
fn hold_page(dir: &str, key: &str, name: &str, parameters: &str) -> String {
    let path = root().join(format!("docs/{dir}/{name}.md"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let places: Vec<_> = SECTIONS.iter().map(|s| text.find(&format!("\n{s}\n"))).collect();
    assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{}: {SECTIONS:?}", path.display());
    let (head, rest) = text.split_once("\n## Idea\n").expect("it was found");
    assert!(head.starts_with("# ") && head.contains(&format!("`{key} = \"{name}\"`")), "{}: {head}", path.display());
    let (rule, _) = rest.split_once("\n## Parameters\n").expect("it was found");
    assert!(rule.contains("\nReadings: "), "{} has no readings", path.display());
    let overview = std::fs::read_to_string(root().join("docs/many-paths.md")).expect("the page");
    let link = format!("| [`{name}`]({dir}/{name}.md) | ");
    assert!(overview.contains(&link), "docs/many-paths.md has no row for {}", path.display());
    hold_parameters(&path, &text, parameters);
    head.to_owned()
}

#[test]
fn every_way_to_choose_a_path_has_its_page() {
    let n_pages = |dir: &str| std::fs::read_dir(root().join("docs").join(dir)).expect("pages").count();
    let mut seen = vec!["balance"];
    for scheme in BALANCES {
        let (routing, transport) = keys_of_scheme(scheme.name);
        let tables = [table("[routing]", &routing), table("[transport]", transport)];
        let tables = tables.into_iter().filter(|t| !t.is_empty()).collect::<Vec<_>>().join("\n");
        let head = hold_page("balancing", "balance", scheme.name, &tables);
        let venue = scheme.source.rsplit(", ").next().expect("a source");
        assert!(head.contains(venue), "docs/balancing/{}.md does not say where it is from: {venue}", scheme.name);
        seen.extend(routing);
    }
    assert_eq!(n_pages("balancing"), BALANCES.len(), "a page without a scheme");
    for scheme in EntropyScheme::ALL {
        let keys = table("[transport]", keys_of_rule(scheme));
        hold_page("entropy", "entropy", scheme.name(), if keys.is_empty() { "None.\n" } else { &keys });
    }
    assert_eq!(n_pages("entropy"), EntropyScheme::ALL.len(), "a page without a rule");
    let page = documented();
    let of_no_scheme: Vec<_> = page["[routing]"].keys().filter(|key| !seen.contains(&key.as_str())).collect();
    assert!(of_no_scheme.is_empty(), "no page of a scheme has {of_no_scheme:?}");
}

#[test]
fn links_lead_somewhere() {
    for (path, text) in pages() {
        for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            if link.starts_with("http") {
                continue;
            }
            let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
            let target = if file.is_empty() { path.clone() } else { path.parent().expect("a directory").join(file) };
            assert!(target.exists(), "{} links to {link}", path.display());
            if anchor.is_empty() {
                continue;
            }
            let text = std::fs::read_to_string(&target).expect("a page with anchors");
            let has = text.lines().filter(|l| l.starts_with('#')).any(|l| slug(l) == anchor);
            assert!(has, "{} links to {link}", path.display());
        }
    }
}

/// Returns the anchor of a heading.
fn slug(heading: &str) -> String {
    let keep = |c: char| match c {
        ' ' => Some('-'),
        '-' | '_' => Some(c),
        c if c.is_alphanumeric() => Some(c.to_ascii_lowercase()),
        _ => None,
    };
    heading.trim_start_matches('#').trim().chars().filter_map(keep).collect()
}
