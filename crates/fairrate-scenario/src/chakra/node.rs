//! Nodes of a trace: the schema of `et_def.proto`, version 0.0.4.

use std::collections::BTreeSet;

use super::attributes::{self, Attribute, KNOWN};
use super::wire::{Fields, Value, repeated};
use super::{Counts, Problem};

/// Versions of the schema end so.
const VERSION: &str = "0.0.4";
/// Largest size that a trace of operations may have, in bytes.
const LARGEST: u64 = 1_000_000_000_000_000;
/// Largest time, in us: above it a list of operations refuses the same in ns.
const LONGEST_US: u64 = u64::MAX / 1_000_000_000;

/// Bytes of a name that are kept.
const NAME: usize = 200;

/// The kind of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Metadata,
    Memory,
    Compute,
    Send,
    Receive,
    Collective,
}

/// A node.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) id: u64,
    pub(super) name: String,
    pub(super) kind: Kind,
    /// Ids of the nodes that it waits for, each with the field that names it.
    pub(super) deps: Vec<(u64, &'static str)>,
    pub(super) duration_us: u64,
    /// `inputs.values` of metadata, where process groups are.
    pub(super) values: String,
    /// By the order of [`KNOWN`].
    attributes: [Option<Attribute>; KNOWN.len()],
}

impl Node {
    /// Reads a node, and counts what is skipped.
    ///
    /// # Errors
    /// It is no node, or lacks a type.
    pub(super) fn read(bytes: &[u8], counts: &mut Counts) -> Result<Self, Problem> {
        let (mut id, mut kind, mut fields) = (0, 0, Fields(bytes));
        let (mut name, mut deps, mut duration_us, mut values) = (String::new(), Vec::new(), 0, String::new());
        let mut all: Vec<&[u8]> = Vec::new();
        let mut seen_before = BTreeSet::new();
        let broken = |field: &str, message: String| Problem::new(field, message);
        while let Some((field, value)) = fields.next().map_err(|message| broken("", message))? {
            match (field, value) {
                (1, Value::Varint(number)) => id = number,
                (2, Value::Bytes(text)) => name = String::from_utf8_lossy(&text[..text.len().min(NAME)]).into_owned(),
                (3, Value::Varint(number)) => kind = number,
                (4 | 5, value) => {
                    let word = if field == 4 { "ctrl_deps" } else { "data_deps" };
                    let ids = repeated(value).map_err(|message| broken(word, message))?;
                    deps.extend(ids.into_iter().filter(|id| seen_before.insert(*id)).map(|id| (id, word)));
                }
                (6, Value::Varint(_)) | (9, Value::Bytes(_)) => {}
                (7, Value::Varint(number)) => duration_us = number,
                (8, Value::Bytes(info)) => values = values_of(info).map_err(|message| broken("inputs", message))?,
                (10, Value::Bytes(attribute)) => all.push(attribute),
                (1..=10, found) => {
                    let names = [
                        "id",
                        "name",
                        "type",
                        "",
                        "",
                        "start_time_micros",
                        "duration_micros",
                        "inputs",
                        "outputs",
                        "attr",
                    ];
                    return Err(broken(names[field as usize - 1], format!("{} of another kind", found.kind())).at(id));
                }
                _ => counts.unknown_fields += 1,
            }
        }
        let mut node =
            Self { id, name, kind: Kind::Metadata, deps, duration_us, values, attributes: Default::default() };
        node.kind = match kind {
            1 => Kind::Metadata,
            2 | 3 => Kind::Memory,
            4 => Kind::Compute,
            5 => Kind::Send,
            6 => Kind::Receive,
            7 => Kind::Collective,
            0 => return Err(node.problem("type", "the node has no type")),
            other => return Err(node.problem("type", &format!("{other} is no type of nodes: they are 1 to 7"))),
        };
        if node.kind != Kind::Metadata {
            node.values = String::new();
        }
        if LONGEST_US < duration_us {
            return Err(node.problem("duration_micros", &format!("{duration_us} us are too long")));
        }
        for bytes in all {
            let (name, value) = attributes::read(bytes)
                .map_err(|(name, message)| node.problem(if name.is_empty() { "attr" } else { &name }, &message))?;
            match KNOWN.iter().position(|known| *known == name) {
                None => counts.unknown_attributes += 1,
                Some(at) if node.attributes[at].is_some() => return Err(node.problem(&name, "it is there twice")),
                Some(_) if value == Attribute::Nothing => return Err(node.problem(&name, "it has no value")),
                Some(at) => node.attributes[at] = Some(value),
            }
        }
        Ok(node)
    }

    /// Returns a problem with the field `field`.
    pub(super) fn problem(&self, field: &str, message: &str) -> Problem {
        Problem::new(field, message.to_owned()).at(self.id)
    }

    /// Returns the attribute `name`, read by `read`; `None` if it is absent.
    pub(super) fn attribute<T>(
        &self,
        name: &str,
        read: impl Fn(&Attribute) -> Result<T, String>,
    ) -> Result<Option<T>, Problem> {
        let found = KNOWN.iter().position(|known| *known == name).and_then(|at| self.attributes[at].as_ref());
        found.map(read).transpose().map_err(|message| self.problem(name, &message))
    }

    /// Returns the same of an attribute that has to be there.
    pub(super) fn needed<T>(&self, name: &str, read: impl Fn(&Attribute) -> Result<T, String>) -> Result<T, Problem> {
        self.attribute(name, read)?.ok_or_else(|| self.problem(name, "it is missing"))
    }

    /// Returns `comm_size`, which is above zero.
    pub(super) fn size(&self) -> Result<u64, Problem> {
        match self.needed("comm_size", |value| value.whole(LARGEST))? {
            0 => Err(self.problem("comm_size", "it is zero")),
            size => Ok(size),
        }
    }
}

/// Returns the field `values` of an `IOInfo`.
fn values_of(bytes: &[u8]) -> Result<String, String> {
    let (mut fields, mut values) = (Fields(bytes), String::new());
    while let Some((field, value)) = fields.next()? {
        match (field, value) {
            (1, Value::Bytes(text)) => values = String::from_utf8_lossy(text).into_owned(),
            (1, other) => return Err(format!("expected `values`, found {}", other.kind())),
            _ => {}
        }
    }
    Ok(values)
}

/// Checks the first record of a file, which has the version of the schema.
///
/// # Errors
/// It is no metadata, or of another version.
pub(super) fn check_metadata(bytes: &[u8]) -> Result<(), Problem> {
    let problem = |message: String| Problem::new("version", message);
    let (mut fields, mut versions) = (Fields(bytes), Vec::new());
    while let Some((field, value)) = fields.next().map_err(problem)? {
        match (field, value) {
            (1, Value::Bytes(text)) => versions.push(String::from_utf8_lossy(text).into_owned()),
            (2, Value::Bytes(attribute)) => {
                if let Ok((name, Attribute::Text(schema))) = attributes::read(attribute)
                    && name == "schema"
                {
                    versions.push(schema);
                }
            }
            _ => return Err(problem("the first record is no metadata of a trace".to_owned())),
        }
    }
    match versions.iter().find(|version| version.ends_with(VERSION)) {
        Some(_) => Ok(()),
        None if versions.is_empty() => Err(problem("the first record has no version".to_owned())),
        None => Err(problem(format!("`{}` is no version that is read: {VERSION} is", versions[0].escape_debug()))),
    }
}
