//! Attributes of nodes. Writers choose the type of a number as they like, so a reader takes each of the twelve whole
//! kinds, and no other.

use super::wire::{Fields, Value, repeated};

/// Names of the attributes that have a meaning.
pub(super) const KNOWN: [&str; 12] = [
    "is_cpu_op",
    "comm_type",
    "comm_size",
    "pg_name",
    "comm_group",
    "involved_dim",
    "comm_src",
    "comm_dst",
    "comm_tag",
    "comm_priority",
    "num_ops",
    "tensor_size",
];

/// Longest text and list that an attribute with a meaning has, in bytes.
const LONGEST: usize = 1_000;

/// The value of an attribute.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Attribute {
    /// A whole number of any kind.
    Whole(i128),
    /// A truth value.
    Bool(bool),
    /// A list of truth values.
    Bools(Vec<bool>),
    /// A text.
    Text(String),
    /// Another kind, which no attribute with a meaning has: its name.
    Other(&'static str),
    /// No value.
    Nothing,
}

impl Attribute {
    fn kind(&self) -> &'static str {
        match self {
            Self::Whole(_) => "a whole number",
            Self::Bool(_) => "a truth value",
            Self::Bools(_) => "a list of truth values",
            Self::Text(_) => "a text",
            Self::Other(kind) => kind,
            Self::Nothing => "nothing",
        }
    }

    /// Returns the whole number from zero to `most`.
    pub(super) fn whole(&self, most: u64) -> Result<u64, String> {
        match self {
            Self::Whole(number) => u64::try_from(*number)
                .ok()
                .filter(|number| *number <= most)
                .ok_or_else(|| format!("{number} is not from 0 to {most}")),
            other => Err(format!("expected a whole number, found {}", other.kind())),
        }
    }

    /// Returns the whole number, of either sign.
    pub(super) fn signed(&self) -> Result<i128, String> {
        match self {
            Self::Whole(number) => Ok(*number),
            other => Err(format!("expected a whole number, found {}", other.kind())),
        }
    }

    pub(super) fn truth(&self) -> Result<bool, String> {
        match self {
            Self::Bool(is) => Ok(*is),
            other => Err(format!("expected a truth value, found {}", other.kind())),
        }
    }

    pub(super) fn truths(&self) -> Result<Vec<bool>, String> {
        match self {
            Self::Bools(all) => Ok(all.clone()),
            other => Err(format!("expected a list of truth values, found {}", other.kind())),
        }
    }

    /// Returns the text, or the whole number as one.
    pub(super) fn text(&self) -> Result<String, String> {
        match self {
            Self::Text(text) => Ok(text.clone()),
            Self::Whole(number) => Ok(number.to_string()),
            other => Err(format!("expected a text, found {}", other.kind())),
        }
    }
}

/// Reads an attribute: its name and its value.
///
/// # Errors
/// It is no such message, or a value has another wire type than its kind.
pub(super) fn read(bytes: &[u8]) -> Result<(String, Attribute), (String, String)> {
    let (mut name, mut value, mut fields) = (String::new(), Attribute::Nothing, Fields(bytes));
    loop {
        let field = fields.next().map_err(|message| (name.clone(), message))?;
        match field {
            None => return Ok((name, value)),
            Some((1, Value::Bytes(text))) => name = String::from_utf8_lossy(text).into_owned(),
            Some((1, other)) => return Err((name, format!("expected a name, found {}", other.kind()))),
            Some((2, _)) => {}
            Some((field, found)) => {
                if let Some(read) = value_of(field, found).map_err(|message| (name.clone(), message))? {
                    value = read;
                }
            }
        }
    }
}

/// Returns the value in a field of the message; `None` if the field is unknown.
fn value_of(field: u64, value: Value<'_>) -> Result<Option<Attribute>, String> {
    use Value::{Bytes, Fixed32, Fixed64, Varint};
    let whole = |number: i128| Some(Attribute::Whole(number));
    let zigzag = |n: u64| i128::from((n >> 1).cast_signed() ^ -(n & 1).cast_signed());
    Ok(match (field, value) {
        (3, Fixed64(_)) | (5, Fixed32(_)) => Some(Attribute::Other("a number with a fraction")),
        // A negative int32 has ten bytes, as an int64.
        (7, Varint(n)) => whole(i128::from(n.cast_signed() as i32)),
        (11, Varint(n)) => whole(i128::from(n as u32)),
        (15, Varint(n)) => whole(i128::from(zigzag(n) as i32)),
        (17, Varint(n)) => whole(zigzag(n)),
        (19, Fixed32(n)) => whole(i128::from(n)),
        (13, Varint(n)) | (21, Fixed64(n)) => whole(i128::from(n)),
        (23, Fixed32(n)) => whole(i128::from(n.cast_signed())),
        (9, Varint(n)) | (25, Fixed64(n)) => whole(i128::from(n.cast_signed())),
        (27, Varint(n)) => Some(Attribute::Bool(n != 0)),
        (28 | 29, Bytes(long)) if LONGEST < long.len() => Some(Attribute::Other("one that is too long")),
        (28, Bytes(list)) => Some(Attribute::Bools(truths(list)?)),
        (29, Bytes(text)) => match std::str::from_utf8(text) {
            Ok(text) => Some(Attribute::Text(text.to_owned())),
            Err(_) => return Err("the text is no UTF-8".to_owned()),
        },
        (31, Bytes(_)) => Some(Attribute::Other("bytes")),
        (4..=32, Bytes(_)) if field.is_multiple_of(2) => Some(Attribute::Other("a list")),
        (3..=32, found) => {
            return Err(format!("field {field} of the value has {}, which is not its kind", found.kind()));
        }
        _ => None,
    })
}

/// Reads a list of truth values, packed or one by one.
fn truths(bytes: &[u8]) -> Result<Vec<bool>, String> {
    let (mut all, mut fields) = (Vec::new(), Fields(bytes));
    while let Some((field, value)) = fields.next()? {
        if field == 1 {
            all.extend(repeated(value)?.into_iter().map(|number| number != 0));
        }
    }
    Ok(all)
}
