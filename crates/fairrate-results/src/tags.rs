//! Columns that identify the run of a row.

use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::writer::SerializedColumnWriter;

use crate::value::Type;

/// A column with the same value in all rows, so that tables of several runs can be concatenated.
#[derive(Clone, Debug, PartialEq)]
pub struct Tag {
    /// Name of the column.
    pub name: String,
    /// Value of the column.
    pub value: TagValue,
}

/// The value of a [`Tag`].
#[derive(Clone, Debug, PartialEq)]
pub enum TagValue {
    /// A whole number.
    Whole(u64),
    /// A real number.
    Number(f64),
    /// Text.
    Text(String),
}

impl Tag {
    /// Returns a tag.
    pub fn new(name: impl Into<String>, value: TagValue) -> Self {
        Self { name: name.into(), value }
    }

    /// Writes the tag for `n` rows: a few bytes, by dictionary and run length.
    pub(super) fn write(&self, n: usize, mut out: SerializedColumnWriter<'_>) -> Result<(), ParquetError> {
        let most = n.min(TAG_BATCH);
        let batches = || (0..n).step_by(TAG_BATCH).map(|from| (n - from).min(TAG_BATCH));
        match &self.value {
            TagValue::Whole(whole) => {
                let values = vec![i64::try_from(*whole).unwrap_or(i64::MAX); most];
                for len in batches() {
                    out.typed::<Int64Type>().write_batch(&values[..len], None, None)?;
                }
            }
            TagValue::Number(number) => {
                let values = vec![*number; most];
                for len in batches() {
                    out.typed::<DoubleType>().write_batch(&values[..len], None, None)?;
                }
            }
            TagValue::Text(text) => {
                let values = vec![ByteArray::from(text.as_str()); most];
                for len in batches() {
                    out.typed::<ByteArrayType>().write_batch(&values[..len], None, None)?;
                }
            }
        }
        out.close()
    }

    pub(super) fn kind(&self) -> Type {
        match self.value {
            TagValue::Whole(_) => Type::Int,
            TagValue::Number(_) => Type::Float,
            TagValue::Text(_) => Type::Text,
        }
    }
}

/// Number of rows of a tag that are written at once.
const TAG_BATCH: usize = 1_024;
