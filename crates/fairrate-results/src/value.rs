//! Values of tables, in Rust and in Parquet.

use std::ops::Deref;

use fairrate_units::Time;
use parquet::basic::Type as Physical;
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};

/// Type of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Type {
    /// A whole number.
    Int,
    /// A real number.
    Float,
    /// Text.
    Text,
    /// True or false.
    Flag,
}

impl Type {
    /// Returns Parquet's type.
    pub fn physical(self) -> Physical {
        match self {
            Self::Int => Physical::INT64,
            Self::Float => Physical::DOUBLE,
            Self::Text => Physical::BYTE_ARRAY,
            Self::Flag => Physical::BOOLEAN,
        }
    }

    /// Returns the type's name in error messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Int => "int64",
            Self::Float => "double",
            Self::Text => "text",
            Self::Flag => "boolean",
        }
    }
}

/// A value for a column.
#[derive(Clone, Debug)]
pub(super) enum Cell {
    Int(u64),
    Float(f64),
    Text(ByteArray),
    Flag(bool),
    None,
}

/// A Rust type of the values of a column. The default takes the place of a null in a column that should have none.
pub(super) trait Value: Clone + Default {
    /// The type of the column in Parquet.
    type Stored: DataType;
    /// The same type.
    const TYPE: Type;
    /// `true` if values may be absent.
    const IS_OPTIONAL: bool = false;

    /// Converts the value for writing.
    fn cell(self) -> Cell;
    /// Converts a value that was read.
    fn of(stored: <Self::Stored as DataType>::T) -> Self;
}

/// Implements [`Value`] for each type from its type in Parquet, its [`Type`] and the conversion of what was read.
macro_rules! values {
    ($($Value:ty: $Stored:ty, $kind:ident, $of:expr;)+) => {$(
        impl Value for $Value {
            type Stored = $Stored;
            const TYPE: Type = Type::$kind;

            fn cell(self) -> Cell {
                Cell::$kind(self.into())
            }
            fn of(stored: <$Stored as DataType>::T) -> Self {
                $of(stored)
            }
        }
    )+};
}

values! {
    u8: Int64Type, Int, |n: i64| n.unsigned_abs() as u8;
    u32: Int64Type, Int, |n: i64| n.unsigned_abs() as u32;
    u64: Int64Type, Int, i64::unsigned_abs;
    f64: DoubleType, Float, f64::from;
    bool: BoolType, Flag, bool::from;
    Text: ByteArrayType, Text, Text;
}

impl<V: Value> Value for Option<V> {
    type Stored = V::Stored;
    const TYPE: Type = V::TYPE;
    const IS_OPTIONAL: bool = true;

    fn cell(self) -> Cell {
        self.map_or(Cell::None, V::cell)
    }
    fn of(stored: <Self::Stored as DataType>::T) -> Self {
        Some(V::of(stored))
    }
}

/// A text in a table, such as the name of a port. A clone shares its bytes, so that a row costs no allocation.
#[derive(Clone, Debug, PartialEq)]
pub struct Text(ByteArray);

impl Deref for Text {
    type Target = str;

    /// Returns the text; empty if a damaged table has something else than UTF-8 in its place.
    fn deref(&self) -> &str {
        self.0.as_utf8().unwrap_or_default()
    }
}

impl From<String> for Text {
    fn from(text: String) -> Self {
        Self(text.into_bytes().into())
    }
}

/// The default of a `ByteArray` is one without bytes, which cannot be read.
impl Default for Text {
    fn default() -> Self {
        String::new().into()
    }
}

impl From<Text> for ByteArray {
    fn from(text: Text) -> Self {
        text.0
    }
}

/// Converts a time to nanoseconds, rounded to the nearest.
pub(super) fn ns(t: Time) -> u64 {
    (t.as_ps() + 500) / 1_000
}
