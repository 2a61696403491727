//! Reading of the sections of a document key by key. Problems are reported, and the values read, with defaults, are
//! collected for the resolved scenario.

use std::fmt::Write as _;

use fairrate_text::{did_you_mean, one_of};

use crate::error::{Report, Site};
use crate::json_schema::other_homes;
use crate::scalar::{Form, Scalar, quote};
use crate::tree::{Node, Table, Value};

/// A value that was read and its place: its own, or its section's if it is a default.
#[derive(Clone, Debug)]
pub(crate) struct Field<T> {
    pub value: T,
    pub site: Site,
}

/// Returns `items` as a TOML list.
pub(crate) fn list(items: impl IntoIterator<Item = String>) -> String {
    format!("[{}]", items.into_iter().collect::<Vec<_>>().join(", "))
}

/// A word or a value, for keys such as `rto = "none"` or `rto = "4ms"`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum OrWord<T> {
    /// A position in the list of words.
    Word(usize),
    Value(T),
}

/// The values that a key takes, as far as its reader states them.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Takes {
    /// Form of the values; `None`: any form, unless there are words.
    pub form: Option<Form>,
    /// Words that the key takes.
    pub words: Vec<&'static str>,
}

/// The values read from a section, in the form in which they will be written.
#[derive(Clone, Debug, Default)]
pub(crate) struct Output {
    /// Every key that the section can have.
    pub known: Vec<(String, Takes)>,
    pub values: Vec<(String, String)>,
    pub tables: Vec<(String, Output)>,
    pub arrays: Vec<(String, Vec<Output>)>,
}

impl Output {
    pub fn push(&mut self, key: &str, toml: String) {
        self.values.push((key.to_owned(), toml));
    }

    /// Appends the section as TOML to `text`; `path` is its dotted name, empty for the document.
    pub fn render(&self, path: &str, text: &mut String) {
        for (key, toml) in &self.values {
            let _ = writeln!(text, "{key} = {toml}");
        }
        let full = |key: &str| if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") };
        for (key, table) in &self.tables {
            let _ = writeln!(text, "\n[{}]", full(key));
            table.render(&full(key), text);
        }
        for (key, items) in &self.arrays {
            for item in items {
                let _ = writeln!(text, "\n[[{}]]", full(key));
                item.render(&full(key), text);
            }
        }
    }

    /// Returns the section as an inline table.
    pub fn render_inline(&self) -> String {
        let items: Vec<String> = self.values.iter().map(|(key, toml)| format!("{key} = {toml}")).collect();
        format!("{{ {} }}", items.join(", "))
    }
}

/// The places of a section and its values.
#[derive(Clone, Copy)]
pub(crate) struct Anchor<'a> {
    /// Place of the whole section.
    pub site: Site,
    table: Option<&'a Table>,
}

impl Anchor<'_> {
    /// Returns the place of the value of `key`, or of the section if it has no such key.
    pub fn site_of(&self, key: &str) -> Site {
        self.table.and_then(|t| t.get(key)).map_or(self.site, |e| e.node.site)
    }
}

/// A section being read. Every key asked for becomes known; [`Section::finish`] reports the others.
pub(crate) struct Section<'a> {
    pub report: &'a Report,
    pub anchor: Anchor<'a>,
    /// Name of the section in messages, such as "`[switch]`".
    pub name: String,
    pub out: Output,
}

impl<'a> Section<'a> {
    pub fn new(report: &'a Report, site: Site, name: impl Into<String>, table: Option<&'a Table>) -> Self {
        Self { report, anchor: Anchor { site, table }, name: name.into(), out: Output::default() }
    }

    /// Returns the value of `key`, if the file has it.
    pub fn node(&mut self, key: &str) -> Option<&'a Node> {
        self.takes(key, Takes::default());
        self.anchor.table?.get(key).map(|e| &e.node)
    }

    /// Records `key` as a possible key and the values it takes: the first call that states them counts.
    fn takes(&mut self, key: &str, takes: Takes) {
        match self.out.known.iter_mut().find(|(known, _)| known == key) {
            None => self.out.known.push((key.to_owned(), takes)),
            Some((_, known)) if *known == Takes::default() => *known = takes,
            Some(_) => {}
        }
    }

    /// Returns `true` if the file has `key`; does not make it known.
    pub fn has(&self, key: &str) -> bool {
        self.anchor.table.is_some_and(|t| t.get(key).is_some())
    }

    /// Returns the value of `key` if the file has it; does not make it known.
    pub fn peek(&self, key: &str) -> Option<&'a Node> {
        self.anchor.table.and_then(|t| t.get(key)).map(|entry| &entry.node)
    }

    /// Returns `true` if `key` has been asked for.
    pub fn is_known(&self, key: &str) -> bool {
        self.out.known.iter().any(|(known, _)| known == key)
    }

    /// Returns the place of the value of `key`, or of the section if it has no such key.
    pub fn site_of(&self, key: &str) -> Site {
        self.anchor.site_of(key)
    }

    /// Returns the keys that the file has.
    pub fn keys(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        self.anchor.table.into_iter().flat_map(|t| t.entries.iter().map(|e| e.key.as_str()))
    }

    /// Reports a problem at the value of `key`.
    pub fn problem_at(&self, code: &'static str, key: &str, message: impl Into<String>, help: impl Into<String>) {
        self.report.problem(code, self.site_of(key), message, format!("`{key}`"), help);
    }

    /// Reads the value of `node`, which stands at `key` or in a list there. After a problem, returns a placeholder.
    pub fn read_node<T: Scalar>(&self, key: &str, node: &Node) -> T {
        T::read(key, &node.value).unwrap_or_else(|wrong| {
            self.report.problem(wrong.code, node.site, wrong.message, format!("`{key}`"), wrong.help);
            T::placeholder()
        })
    }

    /// Returns the value of `key` if it is given; the resolved scenario does not get it.
    pub fn given<T: Scalar>(&mut self, key: &str) -> Option<Field<T>> {
        self.takes(key, Takes { form: Some(T::FORM), words: Vec::new() });
        let node = self.node(key)?;
        Some(Field { value: self.read_node(key, node), site: node.site })
    }

    /// Returns the value of `key` if it is given, and adds it to the resolved scenario.
    pub fn optional<T: Scalar>(&mut self, key: &str) -> Option<Field<T>> {
        let field = self.given::<T>(key)?;
        self.out.push(key, field.value.write());
        Some(field)
    }

    /// Returns the value of `key`, or `default`, and adds it to the resolved scenario.
    pub fn get<T: Scalar>(&mut self, key: &str, default: T) -> Field<T> {
        let field = self.given(key).unwrap_or(Field { value: default, site: self.anchor.site });
        self.out.push(key, field.value.write());
        field
    }

    /// Returns the value of the mandatory `key`; if it is missing, reports that and returns a placeholder.
    pub fn require<T: Scalar>(&mut self, key: &str, example: &str) -> Field<T> {
        if let Some(field) = self.optional(key) {
            return field;
        }
        self.missing(key, example);
        Field { value: T::placeholder(), site: self.anchor.site }
    }

    /// Reports that `key` is missing.
    pub fn missing(&self, key: &str, example: &str) {
        let message = format!("{} needs `{key}`", self.name);
        let help = format!("add for instance `{key} = {example}`");
        self.report.problem("scenario::missing_key", self.anchor.site, message, format!("no `{key}` here"), help);
    }

    /// Returns the value of the word at `key`, which is one of `choices`, or `default`.
    pub fn choice<T: Copy + PartialEq>(&mut self, key: &str, choices: &[(&'static str, T)], default: T) -> Field<T> {
        let words: Vec<&'static str> = choices.iter().map(|c| c.0).collect();
        self.takes(key, Takes { form: None, words: words.clone() });
        let Some(node) = self.node(key) else {
            return self.chosen(key, choices, Field { value: default, site: self.anchor.site });
        };
        let found = match &node.value {
            Value::Text(text) => choices.iter().find(|c| c.0 == text),
            _ => None,
        };
        if let Some(found) = found {
            return self.chosen(key, choices, Field { value: found.1, site: node.site });
        }
        if let Value::Text(text) = &node.value {
            self.unknown_word(key, text, node.site, &words);
        } else {
            let message = format!("expected a word for `{key}`, found {}", node.value.describe());
            self.report.problem(
                "scenario::wrong_type",
                node.site,
                message,
                format!("`{key}`"),
                format!("write {}", one_of(&words)),
            );
        }
        Field { value: default, site: node.site }
    }

    fn chosen<T: Copy + PartialEq>(&mut self, key: &str, choices: &[(&'static str, T)], field: Field<T>) -> Field<T> {
        if let Some(choice) = choices.iter().find(|c| c.1 == field.value) {
            self.out.push(key, quote(choice.0));
        }
        field
    }

    /// Reports that `text` is none of `words`.
    pub fn unknown_word(&self, key: &str, text: &str, site: Site, words: &[&str]) {
        let message = format!("there is no {} `{text}`", describe_key(key));
        let help = match did_you_mean(text, words.iter().copied()) {
            Some(question) => format!("{question} There are {}", one_of(words).replace(" or ", " and ")),
            None => format!("write {}", one_of(words)),
        };
        self.report.problem("scenario::unknown_name", site, message, "unknown", help);
    }

    /// Returns the value of `key`, which is a value or one of `words`, or `default`.
    pub fn value_or<T: Scalar>(&mut self, key: &str, words: &[&'static str], default: OrWord<T>) -> Field<OrWord<T>> {
        self.takes(key, Takes { form: Some(T::FORM), words: words.to_vec() });
        let field = match self.node(key) {
            None => Field { value: default, site: self.anchor.site },
            Some(node) => {
                let word = match &node.value {
                    Value::Text(text) => words.iter().position(|w| w == text),
                    _ => None,
                };
                let value = word.map_or_else(|| OrWord::Value(self.read_or_words(key, node, words)), OrWord::Word);
                Field { value, site: node.site }
            }
        };
        let toml = match &field.value {
            OrWord::Word(i) => quote(words[*i]),
            OrWord::Value(value) => value.write(),
        };
        self.out.push(key, toml);
        field
    }

    fn read_or_words<T: Scalar>(&self, key: &str, node: &Node, words: &[&str]) -> T {
        T::read(key, &node.value).unwrap_or_else(|wrong| {
            let help = format!("{}, or write {}", wrong.help, one_of(words));
            self.report.problem(wrong.code, node.site, wrong.message, format!("`{key}`"), help);
            T::placeholder()
        })
    }

    /// Returns the list of values at `key`; `None` if it is not given.
    pub fn items(&mut self, key: &str) -> Option<&'a [Node]> {
        let node = self.node(key)?;
        if let Value::Array(items) = &node.value {
            return Some(items);
        }
        let message = format!("expected a list for `{key}`, found {}", node.value.describe());
        self.report.problem(
            "scenario::wrong_type",
            node.site,
            message,
            format!("`{key}`"),
            format!("write `{key} = [...]`"),
        );
        Some(&[])
    }

    /// Returns the sub-table `key`, empty if it is not given.
    pub fn child(&mut self, key: &str, name: &str) -> Section<'a> {
        match self.node(key) {
            None => Section::new(self.report, self.anchor.site, name, None),
            Some(Node { value: Value::Table(table), site }) => Section::new(self.report, *site, name, Some(table)),
            Some(node) => {
                let message = format!("expected the section {name}, found {}", node.value.describe());
                let help = match &node.value {
                    Value::Array(_) => format!("there is one only: write {name} with single brackets"),
                    _ => format!("write {name} on a line of its own, and its keys below"),
                };
                self.report.problem("scenario::wrong_type", node.site, message, "not a section", help);
                Section::new(self.report, node.site, name, None)
            }
        }
    }

    /// Returns the sub-tables of the list `key`.
    pub fn children(&mut self, key: &str) -> Vec<Section<'a>> {
        let name = format!("`[[{key}]]`");
        let wrong = |node: &Node, help: String| {
            let message = format!("expected sections {name}, found {}", node.value.describe());
            self.report.problem("scenario::wrong_type", node.site, message, "not a list of sections", help);
        };
        let node = self.anchor.table.and_then(|t| t.get(key)).map(|e| &e.node);
        let sections = match node {
            None => Vec::new(),
            Some(Node { value: Value::Array(items), .. }) => {
                let section = |item: &'a Node| {
                    if let Value::Table(table) = &item.value {
                        return Some(Section::new(self.report, item.site, name.clone(), Some(table)));
                    }
                    wrong(item, format!("write {name} on a line of its own, and its keys below"));
                    None
                };
                items.iter().filter_map(section).collect()
            }
            Some(node) => {
                wrong(node, format!("there can be several: write {name} with double brackets"));
                Vec::new()
            }
        };
        self.node(key);
        sections
    }

    /// Returns the section's name without quotes and brackets.
    fn plain_name(&self) -> &str {
        let name = self.name.trim_start_matches(['`', '[']);
        name.split_once(['`', ']']).map_or(name, |(name, _)| name)
    }

    /// Reports the unknown keys, and returns the values that were read.
    pub fn finish(self) -> Output {
        let known: Vec<&str> = self.out.known.iter().map(|(key, _)| key.as_str()).collect();
        for entry in self.anchor.table.into_iter().flat_map(|t| &t.entries) {
            if known.contains(&entry.key.as_str()) {
                continue;
            }
            let key = &entry.key;
            let message = format!("{} has no key `{key}`", self.name);
            let help = match did_you_mean(key, known.iter().copied()) {
                _ if key == "balancing" => {
                    "write `balance` in `[routing]`: `ecmp` was `per-flow`, `spray` was `per-packet`".into()
                }
                Some(question) => question,
                None => {
                    let homes = other_homes(key, self.plain_name());
                    if homes.is_empty() {
                        format!("write {}", one_of(&known))
                    } else {
                        format!("`{key}` belongs in {}", homes.join(" or "))
                    }
                }
            };
            self.report.problem("scenario::unknown_key", entry.key_site, message, "unknown key", help);
        }
        self.out
    }
}

fn describe_key(key: &str) -> String {
    match key {
        "cc" => "algorithm".into(),
        "sizes" => "size distribution".into(),
        "link_set" => "link set".into(),
        "topology" => "topology".into(),
        "traffic" => "kind of traffic".into(),
        _ => format!("`{key}`"),
    }
}
