//! A parsed TOML document that keeps the place of every key and value.

use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue};

use crate::error::{Report, Site};

/// A value.
#[derive(Clone, Debug)]
pub(crate) enum Value {
    Text(String),
    Integer(i64),
    Float(f64),
    Bool(bool),
    /// A date, which no key takes.
    Date(String),
    Array(Vec<Node>),
    Table(Table),
}

/// A value and its place.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub value: Value,
    pub site: Site,
}

/// A key, its place and its value.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub key: String,
    pub key_site: Site,
    pub node: Node,
}

/// Keys and values in the order of the file.
#[derive(Clone, Debug, Default)]
pub(crate) struct Table {
    pub entries: Vec<Entry>,
}

impl Table {
    pub fn get(&self, key: &str) -> Option<&Entry> {
        self.entries.iter().find(|e| e.key == key)
    }
    pub fn get_mut(&mut self, key: &str) -> Option<&mut Entry> {
        self.entries.iter_mut().find(|e| e.key == key)
    }
}

impl Value {
    /// Returns a description of the value for messages.
    pub fn describe(&self) -> String {
        match self {
            Self::Text(t) => format!("the string `{t}`"),
            Self::Integer(n) => format!("the number `{n}`"),
            Self::Float(x) => format!("the number `{x}`"),
            Self::Bool(b) => format!("`{b}`"),
            Self::Date(d) => format!("the date `{d}`"),
            Self::Array(_) => "a list".into(),
            Self::Table(_) => "a table".into(),
        }
    }
}

/// Parses a document; problems are added to `report`.
pub(crate) fn parse(text: &str, source: u32, report: &Report) -> Option<Table> {
    match DeTable::parse(text) {
        Ok(table) => Some(convert_table(table.into_inner(), source, 0, report)),
        Err(error) => {
            syntax_problem(text, source, &error, report);
            None
        }
    }
}

/// Parses a text whose problems, if there are any, somebody else reports.
pub(crate) fn parse_quietly(text: &str) -> Option<Table> {
    let table = DeTable::parse(text).ok()?;
    let report = Report::default();
    let source = report.add_source("", text.to_owned());
    Some(convert_table(table.into_inner(), source, 0, &report))
}

/// Parses one value of a `--set` argument; `offset` is its place in the argument.
pub(crate) fn parse_value(text: &str, source: u32, offset: usize, report: &Report) -> Option<Node> {
    let value = DeValue::parse(text).ok()?;
    Some(convert(value, source, offset, report))
}

fn convert_table(table: DeTable<'_>, source: u32, offset: usize, report: &Report) -> Table {
    let site = |range: std::ops::Range<usize>| Site::new(source, range.start + offset..range.end + offset);
    let mut entries: Vec<Entry> = Vec::with_capacity(table.len());
    for (key, value) in table {
        let key_site = site(key.span());
        let key = key.into_inner().into_owned();
        entries.push(Entry { key, key_site, node: convert(value, source, offset, report) });
    }
    entries.sort_by_key(|e| e.key_site.start);
    Table { entries }
}

fn convert(value: Spanned<DeValue<'_>>, source: u32, offset: usize, report: &Report) -> Node {
    let span = value.span();
    let site = Site::new(source, span.start + offset..span.end + offset);
    let number_problem = || {
        let help = "write a number that fits in 64 bits";
        report.problem("scenario::out_of_range", site, "this number is too large", "does not fit", help);
    };
    let value = match value.into_inner() {
        DeValue::String(s) => Value::Text(s.into_owned()),
        DeValue::Integer(i) => Value::Integer(i64::from_str_radix(i.as_str(), i.radix()).unwrap_or_else(|_| {
            number_problem();
            0
        })),
        DeValue::Float(x) => match x.as_str().parse::<f64>() {
            Ok(x) if x.is_finite() => Value::Float(x),
            Ok(x) if x.is_nan() => {
                let help = "write a number, as `0.6`";
                report.problem("scenario::out_of_range", site, "`nan` is not a number", "not a number", help);
                Value::Float(0.0)
            }
            _ => {
                number_problem();
                Value::Float(0.0)
            }
        },
        DeValue::Boolean(b) => Value::Bool(b),
        DeValue::Datetime(d) => Value::Date(d.to_string()),
        DeValue::Array(a) => Value::Array(convert_array(a, source, offset, report)),
        DeValue::Table(t) => Value::Table(convert_table(t, source, offset, report)),
    };
    Node { value, site }
}

fn convert_array(array: DeArray<'_>, source: u32, offset: usize, report: &Report) -> Vec<Node> {
    array.into_iter().map(|value| convert(value, source, offset, report)).collect()
}

/// Reports why a text is no TOML, with help for mistakes that are common in scenarios.
fn syntax_problem(text: &str, source: u32, error: &toml::de::Error, report: &Report) {
    let span = error.span().unwrap_or(text.len()..text.len());
    let site = Site::new(source, span.clone());
    let message = error.message().lines().next().unwrap_or_default().to_lowercase();
    if message.contains("duplicate key") {
        let key = text.get(span).unwrap_or_default();
        let message = format!("`{key}` is given twice");
        let help = format!("keep one of the lines that set `{key}`, or use `--set` to override a value");
        report.problem("scenario::duplicate_key", site, message, "the second time", help);
        return;
    }
    // The token that the parser expected helps only if it is a sign, not the name of a rule.
    let message = match message.split_once(", expected ") {
        Some((what, expected)) if !expected.contains('`') => what.to_owned(),
        _ => message,
    };
    let line = line_at(text, site.start);
    let help = line_help(line);
    report.problem("scenario::syntax", site, format!("this is no TOML: {message}"), "here", help);
}

fn line_at(text: &str, at: usize) -> &str {
    let at = at.min(text.len());
    let bytes = text.as_bytes();
    let start = bytes[..at].iter().rposition(|b| *b == b'\n').map_or(0, |i| i + 1);
    let end = bytes[at..].iter().position(|b| *b == b'\n').map_or(text.len(), |i| at + i);
    text.get(start..end).unwrap_or_default().trim()
}

fn line_help(line: &str) -> String {
    const GENERAL: &str = "a line is `key = value`, `[section]` or `[[section]]`; text and quantities are in quotes";
    if line.starts_with('[') {
        return "a section stands alone on its line: `[switch]`, or `[[traffic]]` where there can be several".into();
    }
    let Some((key, value)) = line.split_once('=') else {
        return match line.split_once(':') {
            Some((key, value)) => format!("TOML has `=` between key and value: `{} = {}`", key.trim(), value.trim()),
            None => GENERAL.into(),
        };
    };
    let (key, value) = (key.trim(), value.split('#').next().unwrap_or_default().trim());
    let word = |c: char| c.is_alphanumeric() || "._-+/%".contains(c);
    if value.eq_ignore_ascii_case("true") || value.eq_ignore_ascii_case("false") {
        return format!("write it in small letters: `{key} = {}`", value.to_lowercase());
    }
    if value.is_empty() {
        return format!("give `{key}` a value, or remove the line to take the default");
    }
    if value.chars().all(word) {
        return format!("put it in quotes: `{key} = \"{value}\"`");
    }
    if !value.matches('"').count().is_multiple_of(2) {
        return "a string ends with the quote it starts with, on the same line".into();
    }
    GENERAL.into()
}
