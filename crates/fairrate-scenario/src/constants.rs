//! `cc = "NAME@SET"`: the named constants of an algorithm, put into the document where it does not give others.

use fairrate_control::{Constant, ConstantSet, Registry, constant_sets_of, names_library};
use fairrate_text::nearest;
use fairrate_units::Rate;

use crate::error::{Report, Site};
use crate::overrides;
use crate::schema::{self, Place};
use crate::tree::{Entry, Node, Table, Value, parse_value};

/// Replaces `transport.cc = "NAME@SET"` by the algorithm and the constants of the set. Keys of the document stand.
pub(crate) fn expand(table: &mut Table, site: Site, place: Place<'_>, registry: &Registry, report: &Report) {
    let Some(Node { value: Value::Text(text), site: cc_site }) = get(table, &["transport", "cc"]) else { return };
    let (written, cc_site) = (text.clone(), *cc_site);
    let Some((name, set)) = written.split_once('@').filter(|_| !names_library(&written)) else { return };
    let sets = constant_sets_of(name, registry);
    let Some(set) = sets.iter().find(|known| known.name == set) else {
        if registry.infos().any(|info| info.name == name) {
            return unknown_set(name, set, &sets, cc_site, report);
        }
        // The algorithm is not known either: what reads the key says so.
        return put(table, "transport.cc", Value::Text(name.to_owned()), cc_site, report);
    };
    put(table, "transport.cc", Value::Text(name.to_owned()), cc_site, report);
    if let Some(Entry { node: ecn @ Node { value: Value::Bool(true), .. }, .. }) = section(table, "switch", "ecn") {
        ecn.value = Value::Table(Table::default());
    }
    let line_rate =
        if set.constants.iter().any(|c| c.scaled) { one_rate(table, site, cc_site, place, report) } else { None };
    let wanted: Vec<&Constant> = set.constants.iter().filter(|constant| is_missing(table, &constant.key)).collect();
    for constant in wanted {
        let toml = line_rate.map_or_else(|| constant.toml.clone(), |rate| constant.value(set.made_for, rate));
        let source = report.add_source(&written, toml.clone());
        if let Some(node) = parse_value(&toml, source, 0, report) {
            put(table, &constant.key, node.value, cc_site, report);
        }
    }
}

fn get<'a>(table: &'a Table, path: &[&str]) -> Option<&'a Node> {
    let (first, rest) = path.split_first()?;
    let node = &table.get(first)?.node;
    match &node.value {
        _ if rest.is_empty() => Some(node),
        Value::Table(inner) => get(inner, rest),
        _ => None,
    }
}

fn section<'a>(table: &'a mut Table, name: &str, key: &str) -> Option<&'a mut Entry> {
    match &mut table.get_mut(name)?.node.value {
        Value::Table(inner) => inner.get_mut(key),
        _ => None,
    }
}

fn put(table: &mut Table, key: &str, value: Value, site: Site, report: &Report) {
    overrides::set(table, key, Node { value, site }, site, report);
}

/// Returns `true` if the document leaves `key` open. The rate that a threshold is for belongs to the threshold, and
/// marking that is off stays off.
fn is_missing(table: &Table, key: &str) -> bool {
    let has = |key: &str| get(table, &key.split('.').collect::<Vec<_>>()).is_some();
    let is_off = matches!(get(table, &["switch", "ecn"]), Some(Node { value: Value::Bool(false), .. }));
    let of_threshold = key.strip_suffix("_per").is_some_and(|threshold| has(threshold) || has("switch.ecn.per"));
    let is_given = has(key) || of_threshold || is_off && key.starts_with("switch.ecn.");
    !is_given
}

/// Returns the line rate of the hosts, which must be one for constants in proportion to it.
fn one_rate(table: &Table, site: Site, cc_site: Site, place: Place<'_>, report: &Report) -> Option<Rate> {
    let rates = schema::host_rates(table, site, place, report)?;
    if let Some(other) = rates.iter().find(|rate| **rate != rates[0]) {
        let message = format!(
            "this set is in proportion to the hosts' line rate, and there are hosts of {} and {other}",
            rates[0]
        );
        report.problem(
            "scenario::conflict",
            cc_site,
            message,
            "this set",
            "take a set that is not scaled, or give the rates",
        );
        return None;
    }
    rates.first().copied()
}

fn unknown_set(name: &str, set: &str, sets: &[ConstantSet], site: Site, report: &Report) {
    let names: Vec<&str> = sets.iter().map(|set| set.name).collect();
    let help = match nearest(set, names.iter().copied()) {
        Some(near) => format!("did you mean `{name}@{near}`?"),
        None if names.is_empty() => format!("`{name}` has no named constants; `fairrate list constants` has all"),
        None => format!("there are {}", names.iter().map(|n| format!("`{name}@{n}`")).collect::<Vec<_>>().join(", ")),
    };
    report.problem("scenario::unknown_name", site, format!("`{name}` has no constants `{set}`"), "this set", help);
}
