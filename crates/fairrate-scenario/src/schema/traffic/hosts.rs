//! Senders and receivers by name.

use fairrate_sim::workload::Peers;

use super::super::names::NodeName;
use super::SenderNames;
use crate::reader::{Section, list};
use crate::tree::{Node, Value};

/// Words for the rules by which destinations are picked.
pub(super) const PEERS: &[(&str, Peers)] = &[
    ("other-rack", Peers::OtherRack),
    ("other-host", Peers::OtherHost),
    ("same-rack", Peers::SameRack),
    ("from-own-rack-on", Peers::FromOwnRackOn),
];

/// Reads `key = "all"`, a list of hosts, or a single name or pattern.
pub(in crate::schema) fn read_hosts(s: &mut Section<'_>, key: &str) -> Option<Vec<NodeName>> {
    match s.node(key) {
        Some(node) if is_name(node, "all") => Some(single(s, key, node)),
        None | Some(Node { value: Value::Text(_), .. }) => {
            s.choice(key, &[("all", ())], ());
            None
        }
        Some(_) => Some(host_list(s, key)),
    }
}

/// Reads `key = ["h0", ...]`, or a single name or pattern.
pub(in crate::schema) fn host_names(s: &mut Section<'_>, key: &str) -> Vec<NodeName> {
    match s.node(key) {
        Some(node) if matches!(node.value, Value::Text(_)) => single(s, key, node),
        _ => host_list(s, key),
    }
}

/// Reads `receivers`, which replaces `destinations`.
pub(super) fn read_receivers(s: &mut Section<'_>) -> Option<Vec<NodeName>> {
    let names = match s.node("receivers") {
        Some(node) if is_name(node, "destinations") => single(s, "receivers", node),
        Some(Node { value: Value::Array(_), .. }) => host_list(s, "receivers"),
        _ => {
            s.choice("receivers", &[("destinations", ())], ());
            return None;
        }
    };
    if s.node("destinations").is_some() {
        let help = "remove `destinations`, or `receivers`";
        s.problem_at("scenario::conflict", "destinations", "flows go to the `receivers` already", help);
    }
    Some(names)
}

/// Returns `true` if a value is a text other than `word`: a name or a pattern in place of a list.
fn is_name(node: &Node, word: &str) -> bool {
    matches!(&node.value, Value::Text(text) if text != word)
}

/// Reads a name or a pattern in place of a list.
fn single(s: &mut Section<'_>, key: &str, node: &Node) -> Vec<NodeName> {
    let name = NodeName::read(key, node, s.report);
    s.out.push(key, list([name.write()]));
    vec![name]
}

fn host_list(s: &mut Section<'_>, key: &str) -> Vec<NodeName> {
    let items = s.items(key).unwrap_or_default();
    let names: Vec<NodeName> = items.iter().map(|n| NodeName::read(key, n, s.report)).collect();
    s.out.push(key, list(names.iter().map(NodeName::write)));
    if names.is_empty() {
        s.problem_at(
            "scenario::out_of_range",
            key,
            format!("`{key}` is empty"),
            format!("write at least one host, as `{key} = [\"h0\"]`"),
        );
    }
    names
}

pub(super) fn read_receiver(s: &mut Section<'_>) -> NodeName {
    let Some(node) = s.node("receiver") else {
        s.missing("receiver", "\"h0\"");
        return NodeName { name: String::new(), site: s.anchor.site };
    };
    let name = NodeName::read("receiver", node, s.report);
    s.out.push("receiver", name.write());
    name
}

pub(super) fn read_senders(s: &mut Section<'_>) -> SenderNames {
    match s.node("senders") {
        None => {
            s.missing("senders", "10");
            SenderNames::Hosts(Vec::new())
        }
        Some(node) if is_name(node, "") => SenderNames::Hosts(single(s, "senders", node)),
        Some(Node { value: Value::Array(_), .. }) => SenderNames::Hosts(host_list(s, "senders")),
        Some(_) => {
            let n = s.get::<u32>("senders", 1);
            if n.value == 0 {
                s.problem_at(
                    "scenario::out_of_range",
                    "senders",
                    "no senders",
                    "write how many, as `senders = 10`, or a list of hosts",
                );
            }
            SenderNames::Count { n: n.value, from: s.choice("from", PEERS, Peers::OtherHost).value }
        }
    }
}
