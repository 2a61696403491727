//! The JSON schema of scenarios, for editors. Keys and their values are those that the readers of sections ask for;
//! their descriptions are taken from the reference, which a test compares with the readers.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use fairrate_control::{ALGORITHMS, AlgorithmConfig, Param, ParamKind, Parameters, Profile, Registry, constant_sets};
use serde_json::{Map, Value, json};

use crate::reader::{Output, Takes};
use crate::samples::{samples, understood};
use crate::scalar::Form;

/// Text of the reference of scenarios.
const PAGE: &str = include_str!("../scenario.md");

/// Name of the section outside all others, in messages.
pub(crate) const ROOT: &str = "the scenario";

/// The keys, tables and lists of a section, of all its kinds.
#[derive(Default)]
struct Shape {
    keys: BTreeMap<String, Takes>,
    /// Keys by `kind`, for sections that have kinds.
    kinds: BTreeMap<String, BTreeSet<String>>,
    tables: BTreeMap<String, Shape>,
    lists: BTreeMap<String, Shape>,
}

impl Shape {
    /// Adds the keys, tables and lists of a document.
    fn learn(&mut self, output: &Output) {
        for (key, takes) in &output.known {
            let known = self.keys.entry(key.clone()).or_insert_with(|| takes.clone());
            *known = either(known, takes);
        }
        if let Some((_, kind)) = output.values.iter().find(|(key, _)| key == "kind") {
            let keys = output.known.iter().map(|(key, _)| key.clone());
            self.kinds.entry(kind.trim_matches('"').to_owned()).or_default().extend(keys);
        }
        for (key, table) in &output.tables {
            self.tables.entry(key.clone()).or_default().learn(table);
        }
        for (key, items) in &output.arrays {
            let shape = self.lists.entry(key.clone()).or_default();
            for item in items {
                shape.learn(item);
            }
        }
    }

    /// Adds the sections below this one, as they are written in a file, each with its shape. This section is at `path`;
    /// an empty path means the whole file.
    fn sections<'a>(&'a self, path: &str, found: &mut Vec<(String, &'a Self)>) {
        let below = |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
        // The names below `algorithms` are the user's.
        let tables = self.tables.iter().filter(|(name, _)| *name != "algorithms");
        let tables = tables.map(|(name, shape)| (below(name), shape, ("[", "]")));
        let lists = self.lists.iter().map(|(name, shape)| (below(name), shape, ("[[", "]]")));
        for (path, shape, (open, close)) in tables.chain(lists) {
            found.push((format!("{open}{path}{close}"), shape));
            shape.sections(&path, found);
        }
    }

    /// Returns the schema of the section at `path` in the file; an empty path means the whole file.
    fn schema(&self, path: &str, page: &Page<'_>) -> Value {
        let below = |key: &str| if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") };
        let mut properties = Map::new();
        for (key, takes) in &self.keys {
            properties.insert(key.clone(), self.property(path, key, takes, page));
        }
        for (key, table) in &self.tables {
            let schema = if below(key) == "traffic.transport" {
                // The transport of a block has the keys of `[transport]`.
                json!({ "anyOf": [{ "enum": ["rdma", "tcp", "uet"] }, { "$ref": "#/properties/transport" }] })
            } else {
                table.schema(&below(key), page)
            };
            properties.insert(key.clone(), schema);
        }
        for (key, list) in &self.lists {
            let items = list.schema(&below(key), page);
            let array = json!({ "type": "array", "items": items });
            // A single section of hosts may be a table.
            let schema = if below(key) == "host" { json!({ "anyOf": [array, items] }) } else { array };
            properties.insert(key.clone(), schema);
        }
        let mut schema = json!({ "type": "object", "properties": properties, "additionalProperties": false });
        if 1 < self.kinds.len() {
            schema["allOf"] = self.kinds.iter().map(|(kind, keys)| of_kind(kind, keys)).collect();
        }
        schema
    }

    fn property(&self, path: &str, key: &str, takes: &Takes, page: &Page<'_>) -> Value {
        let mut schema = if key == "kind" && !self.kinds.is_empty() {
            json!({ "enum": self.kinds.keys().collect::<Vec<_>>() })
        } else if key == "cc" && path == "traffic" {
            json!({ "enum": ALGORITHMS.iter().map(|a| a.name).collect::<Vec<_>>() })
        } else if key == "cc" && path == "transport" {
            let sets = constant_sets(&Registry::new()).into_iter().map(|set| format!("{}@{}", set.algorithm, set.name));
            let names: Vec<_> = ALGORITHMS.iter().map(|a| a.name.to_owned()).chain(sets).collect();
            // An own algorithm is the path of a library.
            json!({ "anyOf": [{ "enum": names }, { "type": "string", "pattern": "[./]" }] })
        } else {
            taken(takes)
        };
        if let Some(meaning) = page.meaning(path, key, self.kinds.keys()) {
            schema["description"] = meaning.into();
        }
        schema
    }
}

/// Returns the values that `a` or `b` takes. A reader that does not state its values may take anything.
fn either(a: &Takes, b: &Takes) -> Takes {
    let says = |takes: &Takes| *takes != Takes::default();
    if !says(a) || !says(b) || a.form != b.form {
        return Takes::default();
    }
    let more = b.words.iter().filter(|word| !a.words.contains(word));
    Takes { form: a.form, words: a.words.iter().chain(more).copied().collect() }
}

/// Returns the rule that a section of this kind has only `keys`.
fn of_kind(kind: &str, keys: &BTreeSet<String>) -> Value {
    json!({
        "if": { "properties": { "kind": { "const": kind } }, "required": ["kind"] },
        "then": { "propertyNames": { "enum": keys } },
    })
}

fn taken(takes: &Takes) -> Value {
    let words = (!takes.words.is_empty()).then(|| json!({ "enum": takes.words }));
    match (takes.form.map(of_form), words) {
        (None, None) => json!({}),
        (Some(form), None) => form,
        (None, Some(words)) => words,
        (Some(form), Some(words)) => json!({ "anyOf": [words, form] }),
    }
}

fn of_form(form: Form) -> Value {
    match form {
        Form::Quantity(units) => {
            let micro = units.contains(&"us").then_some("µs");
            let units: Vec<_> = units.iter().copied().chain(micro).collect();
            json!({ "type": "string", "pattern": format!("^\\s*[0-9.]+\\s*({})\\s*$", units.join("|")) })
        }
        Form::Number => json!({ "type": "number" }),
        Form::Whole => json!({ "type": "integer", "minimum": 0 }),
        Form::Flag => json!({ "type": "boolean" }),
        Form::Text => json!({ "type": "string" }),
    }
}

/// Returns the schema of an algorithm's parameters.
fn of_algorithm(name: &str) -> Option<Value> {
    let params = AlgorithmConfig::by_name(name, Profile::Paper)?.params();
    let properties: Map<String, Value> = params.iter().map(|p| (p.name.to_owned(), of_param(p))).collect();
    Some(json!({ "type": "object", "properties": properties, "additionalProperties": false }))
}

fn of_param(param: &Param) -> Value {
    // Some parameters also take words or lists, which only their algorithm knows.
    let is_number = param.toml.parse::<f64>().is_ok();
    let mut schema = match param.kind {
        ParamKind::Float if is_number => of_form(Form::Number),
        ParamKind::Count if is_number => of_form(Form::Whole),
        ParamKind::Float | ParamKind::Count => json!({}),
        ParamKind::Bool => of_form(Form::Flag),
        ParamKind::Time | ParamKind::Rate | ParamKind::Bytes => json!({ "type": ["string", "array"] }),
        ParamKind::Choice(words) => json!({ "enum": words }),
    };
    schema["description"] = format!("{}; default {}", param.doc.trim(), param.toml).into();
    schema
}

/// The descriptions of keys, by heading and key.
struct Page<'a>(BTreeMap<(String, &'a str), &'a str>);

impl<'a> Page<'a> {
    fn read(text: &'a str) -> Self {
        let (mut chapter, mut heading, mut rows) = (String::new(), String::new(), BTreeMap::new());
        for line in text.lines() {
            if let Some(title) = line.strip_prefix("## ") {
                title.trim_matches('`').clone_into(&mut chapter);
                heading.clone_from(&chapter);
            } else if let Some(title) = line.strip_prefix("### ") {
                heading = format!("{chapter} {}", title.trim_matches('`'));
            } else if let Some((key, rest)) = line.strip_prefix("| `").and_then(|row| row.split_once("` | ")) {
                let meaning = rest.rsplit_once(" | ").map_or(rest, |(_, meaning)| meaning).trim_end_matches(" |");
                rows.insert((heading.clone(), key), meaning);
            }
        }
        Self(rows)
    }

    /// Returns the description of a key of a section, or of one of its kinds.
    fn meaning<'k>(&self, path: &str, key: &str, kinds: impl Iterator<Item = &'k String>) -> Option<&'a str> {
        let sections = match path {
            "" => vec!["Top level".to_owned()],
            path => vec![format!("[{path}]"), format!("[[{path}]]")],
        };
        let of_kinds = kinds.flat_map(|kind| sections.iter().map(move |s| format!("{s} {kind}"))).collect::<Vec<_>>();
        sections.iter().chain(&of_kinds).find_map(|heading| {
            self.0.iter().find(|((h, k), _)| h == heading && *k == key).map(|(_, meaning)| *meaning)
        })
    }
}

/// Returns the keys, tables and lists of scenarios.
fn learn() -> Shape {
    let mut shape = Shape::default();
    for text in samples() {
        // A test checks that all samples can be read.
        if let Ok(output) = understood(&text) {
            shape.learn(&output);
        }
    }
    shape
}

/// Returns the places of `key`, in words, for a key that was found in the section `here`, where it does not belong.
/// None if that section has the key itself in another form, or is not known.
pub(crate) fn other_homes(key: &str, here: &str) -> Vec<String> {
    static SHAPE: LazyLock<Shape> = LazyLock::new(learn);
    let mut sections = vec![(ROOT.to_owned(), &*SHAPE)];
    SHAPE.sections("", &mut sections);
    let is_here = |name: &str| name.trim_matches(['[', ']']) == here;
    let is_elsewhere = sections.iter().any(|(name, shape)| is_here(name) && !shape.keys.contains_key(key));
    let homes = sections.into_iter().filter(|(_, shape)| is_elsewhere && shape.keys.contains_key(key));
    homes.map(|(name, _)| if name == ROOT { "the top of the file".to_owned() } else { format!("`{name}`") }).collect()
}

/// Returns the JSON schema of scenario files, with which editors complete and check them. A file that it lets pass can
/// still be wrong.
#[must_use]
pub fn json_schema() -> Value {
    let mut schema = learn().schema("", &Page::read(PAGE));
    let transport = &mut schema["properties"]["transport"];
    for info in ALGORITHMS {
        if let Some(parameters) = of_algorithm(info.name) {
            transport["properties"][info.name] = parameters;
        }
    }
    // The names of a list's algorithms are the user's.
    let algorithms = &mut schema["properties"]["traffic"]["items"]["properties"]["algorithms"];
    *algorithms = json!({ "type": "object", "additionalProperties": { "type": ["string", "object"] } });
    let transport = &mut schema["properties"]["transport"];
    // The kind of transport does not restrict the sections of algorithms.
    if let Some(transport) = transport.as_object_mut() {
        transport.remove("allOf");
    }
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema".into();
    schema["title"] = "fairrate scenario".into();
    schema
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_in_the_wrong_section_has_its_homes() {
        assert_eq!(other_homes("load", "switch"), ["`[[traffic]]`"]);
        assert_eq!(other_homes("load", ROOT), ["`[[traffic]]`"]);
        assert_eq!(other_homes("seed", "switch"), ["the top of the file"]);
        assert_eq!(other_homes("down_at", "allocator"), ["`[[allocator.outage]]`", "`[[fault]]`"]);
        for (key, here) in [("load", "traffic"), ("load", "elsewhere"), ("no-such-key", "switch")] {
            assert_eq!(other_homes(key, here), [""; 0], "{key} in {here}");
        }
    }

    #[test]
    fn every_sample_can_be_read() {
        for text in samples() {
            assert!(understood(&text).is_ok(), "{text}");
        }
    }

    #[test]
    fn keys_have_what_they_take_and_what_they_mean() {
        let schema = json_schema();
        let of = |path: &str| schema.pointer(path).unwrap_or_else(|| panic!("there is no {path}")).clone();
        assert_eq!(of("/properties/seed/type"), "integer");
        assert_eq!(of("/properties/profile/enum"), json!(["paper", "ns3", "rocc-omnet"]));
        assert_eq!(of("/properties/duration/anyOf/0/enum"), json!(["none"]));
        let load = of("/properties/traffic/items/properties/load");
        assert_eq!(load["type"], "number");
        assert!(load["description"].as_str().unwrap().len() > 10);
        let gamma = of("/properties/transport/properties/powertcp/properties/gamma");
        assert!(gamma["description"].as_str().unwrap().ends_with("default 0.9"));
        let kinds = of("/properties/traffic/items/properties/kind/enum");
        assert!(kinds.as_array().unwrap().contains(&json!("poisson")));
        assert_eq!(of("/properties/switch/additionalProperties"), false);
        assert!(of("/properties/duration/anyOf/1/pattern").as_str().unwrap().contains("|µs"));
        // The word `all`, a host, or a list of hosts.
        assert_eq!(of("/properties/host/anyOf/0/items/properties/hosts").get("enum"), None);
    }
}
