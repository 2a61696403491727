//! `--set key=value`, `--seed` and `--cc`: changes to the document before it is read.

use crate::error::{Report, Site};
use crate::tree::{Entry, Node, Table, Value, parse_value};

/// Changes to a scenario, as given on the command line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Overrides {
    /// `--set key=value`: a dotted key (`traffic.0.load` counts lists from 0) and a value in TOML syntax; a
    /// bare word is taken as a string.
    pub sets: Vec<(String, String)>,
    /// `--seed`.
    pub seed: Option<u64>,
    /// `--cc`.
    pub cc: Option<String>,
}

/// Applies `overrides` to the document.
pub(crate) fn apply(table: &mut Table, overrides: &Overrides, report: &Report) {
    for (key, value) in &overrides.sets {
        let text = format!("{key}={value}");
        let source = report.add_source("--set", text);
        let given = [("seed", overrides.seed.is_some(), "--seed"), ("transport.cc", overrides.cc.is_some(), "--cc")];
        if let Some((.., option)) = given.iter().find(|(name, is_given, _)| *is_given && name == key) {
            let message = format!("`{key}` is set by `{option}` too");
            report.problem(
                "scenario::bad_override",
                Site::new(source, 0..key.len()),
                message,
                "this key",
                "give its value in one place",
            );
        }
        let node = value_of(value, source, key.len() + 1, report);
        set(table, key, node, Site::new(source, 0..key.len()), report);
    }
    if let Some(seed) = overrides.seed {
        let text = seed.to_string();
        let site = Site::new(report.add_source("--seed", text.clone()), 0..text.len());
        if let Ok(n) = i64::try_from(seed) {
            set(table, "seed", Node { value: Value::Integer(n), site }, site, report);
        } else {
            let (message, help) =
                (format!("the seed `{seed}` is out of range"), format!("give one up to {}", i64::MAX));
            report.problem("scenario::out_of_range", site, message, "too large", help);
        }
    }
    if let Some(cc) = &overrides.cc {
        let site = Site::new(report.add_source("--cc", cc.clone()), 0..cc.len());
        set(table, "transport.cc", Node { value: Value::Text(cc.clone()), site }, site, report);
    }
}

fn value_of(text: &str, source: u32, offset: usize, report: &Report) -> Node {
    let site = Site::new(source, offset..offset + text.len());
    let parsed = parse_value(text.trim(), source, offset + text.len() - text.trim_start().len(), report);
    match parsed {
        Some(node) if !matches!(node.value, Value::Date(_)) => node,
        _ => {
            if text.trim_start().starts_with(['[', '{', '"', '\'']) {
                let help = "write the value as in the file, as `--set 'probe.0.queues=[\"0->1\"]'`";
                report.problem("scenario::bad_override", site, "this value is no TOML", "here", help);
            }
            Node { value: Value::Text(text.to_owned()), site }
        }
    }
}

/// Sets the value at a dotted path; sections that are missing are added.
pub(crate) fn set(table: &mut Table, path: &str, node: Node, site: Site, report: &Report) {
    let (first, rest) = match path.split_once('.') {
        Some((first, rest)) => (first.trim(), Some(rest)),
        None => (path.trim(), None),
    };
    let bad = |message: String, help: &str| report.problem("scenario::bad_override", site, message, "this key", help);
    if first.is_empty() || rest.is_some_and(str::is_empty) {
        return bad(format!("`{path}` is no key"), "write `--set key=value`, as `--set transport.cc=hpcc`");
    }
    let Some(rest) = rest else {
        match table.get_mut(first) {
            Some(entry) => entry.node = node,
            None => table.entries.push(Entry { key: first.to_owned(), key_site: site, node }),
        }
        return;
    };
    if table.get(first).is_none() {
        let value = Value::Table(Table::default());
        table.entries.push(Entry { key: first.to_owned(), key_site: site, node: Node { value, site } });
    }
    let Some(entry) = table.get_mut(first) else { return };
    match &mut entry.node.value {
        Value::Table(inner) => set(inner, rest, node, site, report),
        Value::Array(items) => set_item(items, first, rest, node, site, report),
        other => {
            let message = format!("`{first}` is {} and has no `{rest}`", other.describe());
            bad(message, "a dotted key goes through sections, as `switch.buffer`");
        }
    }
}

fn set_item(items: &mut [Node], list: &str, path: &str, node: Node, site: Site, report: &Report) {
    let bad = |message: String, help: String| report.problem("scenario::bad_override", site, message, "this key", help);
    let (index, rest) = match path.split_once('.') {
        Some((index, rest)) => (index, Some(rest)),
        None => (path, None),
    };
    let n = items.len();
    let Some(item) = index.trim().parse::<usize>().ok().and_then(|i| items.get_mut(i)) else {
        let count = match n {
            0 => "is empty".to_owned(),
            1 => "has the one member 0".to_owned(),
            n => format!("has members 0 to {}", n - 1),
        };
        return bad(
            format!("`{list}` has no member `{index}`"),
            format!("`{list}` {count}; count from 0, as `{list}.0`"),
        );
    };
    match (rest, &mut item.value) {
        (None, _) => *item = node,
        (Some(rest), Value::Table(inner)) => set(inner, rest, node, site, report),
        (Some(rest), other) => {
            let message = format!("`{list}.{index}` is {} and has no `{rest}`", other.describe());
            bad(message, "a dotted key goes through sections, as `traffic.0.load`".into());
        }
    }
}
