//! The problems of a scenario as separate parts, for programs that show them in their own way.

use crate::tree::{self, Node, Table, Value};

/// One problem of a scenario.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProblemParts {
    /// Code of the problem, such as `scenario::unknown_key`.
    pub code: &'static str,
    /// Description of the problem.
    pub message: String,
    /// The text to write instead; may be empty.
    pub help: String,
    /// Name of the text: a file, or an argument such as `--set`.
    pub source: Option<String>,
    /// The dotted key it is about, lists counted from 0, as `traffic.0.load`.
    pub key: Option<String>,
    /// Line in the text, from 1.
    pub line: Option<usize>,
    /// Character of the line, from 1.
    pub column: Option<usize>,
}

/// Returns line and column of byte `at` of `text`, both from 1.
pub(crate) fn line_and_column(text: &str, at: usize) -> (usize, usize) {
    let before = text.get(..at).unwrap_or(text);
    let start = before.rfind('\n').map_or(0, |i| i + 1);
    (before.matches('\n').count() + 1, before[start..].chars().count() + 1)
}

/// Returns the dotted key at byte `at` of `text`, whose name is `source`.
pub(crate) fn key_at(source: &str, text: &str, at: usize) -> Option<String> {
    match source {
        "--set" => return text.split_once('=').map(|(key, _)| key.to_owned()),
        "--seed" => return Some("seed".to_owned()),
        "--cc" => return Some("transport.cc".to_owned()),
        _ => {}
    }
    let table = tree::parse_quietly(text)?;
    in_table(&table, at)
}

fn in_table(table: &Table, at: usize) -> Option<String> {
    let inner = |key: &str, node: &Node| {
        let below = match &node.value {
            Value::Table(inner) => in_table(inner, at),
            Value::Array(items) => in_list(items, at),
            _ => None,
        };
        below.map(|below| format!("{key}.{below}"))
    };
    let found = table.entries.iter().find_map(|e| inner(&e.key, &e.node));
    let is_here = |site: crate::error::Site| site.start <= at && at < site.start + site.len.max(1);
    found.or_else(|| {
        let entry = table.entries.iter().find(|e| is_here(e.key_site) || is_here(e.node.site))?;
        Some(entry.key.clone())
    })
}

fn in_list(items: &[Node], at: usize) -> Option<String> {
    items.iter().enumerate().find_map(|(i, item)| {
        let below = match &item.value {
            Value::Table(inner) => in_table(inner, at),
            Value::Array(items) => in_list(items, at),
            _ => None,
        };
        let is_here = item.site.start <= at && at < item.site.start + item.site.len.max(1);
        below.map(|below| format!("{i}.{below}")).or_else(|| is_here.then(|| i.to_string()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_dotted_and_lists_counted() {
        let text = "seed = 1\n[switch]\necn = { kmin = \"1KB\" }\n[[traffic]]\nload = 1\n[[traffic]]\nload = 2\n";
        let key = |what: &str| key_at("x.toml", text, text.rfind(what).unwrap());
        assert_eq!(key("seed").as_deref(), Some("seed"));
        assert_eq!(key("\"1KB\"").as_deref(), Some("switch.ecn.kmin"));
        assert_eq!(key("2").as_deref(), Some("traffic.1.load"));
        assert_eq!(key("load").as_deref(), Some("traffic.1.load"));
        assert_eq!(key_at("--set", "traffic.0.load=x", 15).as_deref(), Some("traffic.0.load"));
        assert_eq!(key_at("x.toml", "a = = b", 4), None);
    }

    #[test]
    fn columns_count_characters() {
        assert_eq!(line_and_column("a\né = 1", "a\né ".len()), (2, 3));
        assert_eq!(line_and_column("", 0), (1, 1));
    }
}
