//! A Parquet file that is valid at every moment: rows are buffered, and each piece of the [`GrowingFile`] consists of
//! whole row groups and a footer that covers the file so far. A later footer, further down, replaces it; the replaced
//! footers stay below a fifth of a large file. A crash can lose only the buffered rows.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parquet::basic::{Compression, LogicalType, Repetition};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::{FileMetaData, KeyValue, ParquetMetaData, ParquetMetaDataWriter};
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterVersion};
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::Type as SchemaType;

use crate::growing::GrowingFile;
use crate::table::{ColumnSpec, Row, TableSpec};
use crate::tags::Tag;
use crate::value::{Cell, Type};
use crate::{ResultsError, TableInfo};

/// The buffered values of a column.
#[derive(Debug)]
enum Buffer {
    Int(Vec<i64>),
    Float(Vec<f64>),
    Text(Vec<ByteArray>),
    Flag(Vec<bool>),
}

#[derive(Debug)]
struct Column {
    buffer: Buffer,
    /// Definition level of each row, for a column with optional values: 1 present, 0 absent.
    levels: Option<Vec<i16>>,
}

impl Column {
    fn new(spec: &ColumnSpec) -> Self {
        let buffer = match spec.kind {
            Type::Int => Buffer::Int(Vec::new()),
            Type::Float => Buffer::Float(Vec::new()),
            Type::Text => Buffer::Text(Vec::new()),
            Type::Flag => Buffer::Flag(Vec::new()),
        };
        Self { buffer, levels: spec.is_optional.then(Vec::new) }
    }

    fn push(&mut self, cell: Cell) {
        if let Some(levels) = &mut self.levels {
            levels.push(i16::from(!matches!(cell, Cell::None)));
        }
        match (&mut self.buffer, cell) {
            // Values beyond 63 bits do not occur; sentinels are absent values.
            (Buffer::Int(values), Cell::Int(n)) => values.push(i64::try_from(n).unwrap_or(i64::MAX)),
            (Buffer::Float(values), Cell::Float(x)) => values.push(x),
            (Buffer::Text(values), Cell::Text(text)) => values.push(text),
            (Buffer::Flag(values), Cell::Flag(flag)) => values.push(flag),
            (_, Cell::None) if self.levels.is_some() => {}
            (buffer, cell) => unreachable!("{cell:?} in a column of {buffer:?}"),
        }
    }

    /// Writes the buffered values and empties the buffer.
    fn write(&mut self, mut out: SerializedColumnWriter<'_>) -> Result<(), ParquetError> {
        let levels = self.levels.as_deref();
        match &mut self.buffer {
            Buffer::Int(values) => {
                out.typed::<Int64Type>().write_batch(values, levels, None)?;
                values.clear();
            }
            Buffer::Float(values) => {
                out.typed::<DoubleType>().write_batch(values, levels, None)?;
                values.clear();
            }
            Buffer::Text(values) => {
                out.typed::<ByteArrayType>().write_batch(values, levels, None)?;
                values.clear();
            }
            Buffer::Flag(values) => {
                out.typed::<BoolType>().write_batch(values, levels, None)?;
                values.clear();
            }
        }
        if let Some(levels) = &mut self.levels {
            levels.clear();
        }
        out.close()
    }
}

/// The bytes from the Parquet writer that are not yet completed by a footer.
#[derive(Debug, Default)]
struct Pending(Vec<u8>);

impl Write for Pending {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A writer of one table.
#[derive(Debug)]
pub(super) struct TableWriter {
    path: PathBuf,
    file: GrowingFile,
    writer: SerializedFileWriter<Pending>,
    columns: Vec<Column>,
    /// The columns after `columns`, each with the same value in all rows.
    tags: Arc<[Tag]>,
    /// Number of rows that are in no row group yet.
    n_rows: usize,
    /// Number of rows in row groups.
    n_written: u64,
    /// Number of rows of the next row group: small at first, so that a crash early on loses little, then doubled each
    /// time up to `most_rows_per_group`.
    rows_per_group: usize,
    most_rows_per_group: usize,
    /// Size of the last footer written.
    footer_len: usize,
}

/// Number of rows of the first row group.
const FIRST_ROWS: usize = 64;
/// Size of a file below which the space of replaced footers does not matter.
const SMALL_FILE: usize = 256 << 10;

impl TableWriter {
    /// Creates the file, valid and without rows. `facts` are added to its metadata beside the units.
    pub fn create(
        dir: &Path,
        table: &TableSpec,
        tags: &Arc<[Tag]>,
        facts: &[(&str, &str)],
    ) -> Result<Self, ResultsError> {
        let path = dir.join(format!("{}.parquet", table.name));
        let fail = |e: ParquetError| ResultsError::parquet(&path, e);
        // A table with two columns of a name cannot be read by that name: its own column stays.
        let is_new = |tag: &&Tag| table.columns.iter().all(|column| column.name != tag.name);
        let tags: Arc<[Tag]> = tags.iter().filter(is_new).cloned().collect();
        let schema = Arc::new(schema(table, &tags).map_err(fail)?);
        let unit = |column: &ColumnSpec| KeyValue::new(format!("unit:{}", column.name), column.unit.to_owned());
        let facts = facts.iter().map(|(key, value)| KeyValue::new((*key).to_owned(), (*value).to_owned()));
        let properties = WriterProperties::builder()
            .set_writer_version(WriterVersion::PARQUET_1_0)
            .set_created_by(format!("fairrate {}", env!("CARGO_PKG_VERSION")))
            .set_compression(Compression::SNAPPY)
            .set_statistics_enabled(EnabledStatistics::Chunk)
            .set_offset_index_disabled(true)
            .set_key_value_metadata(Some(table.columns.iter().map(unit).chain(facts).collect()))
            .build();
        let mut writer = SerializedFileWriter::new(Pending::default(), schema, Arc::new(properties)).map_err(fail)?;
        let (piece, footer_len) = with_footer(&mut writer).map_err(fail)?;
        let file = GrowingFile::create(&path, piece).map_err(|e| ResultsError::io(&path, e))?;
        Ok(Self {
            path,
            file,
            writer,
            columns: table.columns.iter().map(Column::new).collect(),
            tags,
            n_rows: 0,
            n_written: 0,
            rows_per_group: FIRST_ROWS,
            most_rows_per_group: table.most_rows_per_group,
            footer_len,
        })
    }

    /// Adds a row of this table; see [`Row::writer`].
    pub fn push(&mut self, row: impl Row) -> Result<(), ResultsError> {
        for (column, cell) in self.columns.iter_mut().zip(row.cells()) {
            column.push(cell);
        }
        self.n_rows += 1;
        if self.n_rows < self.rows_per_group {
            return Ok(());
        }
        self.end_group()?;
        self.rows_per_group = (2 * self.rows_per_group).min(self.most_rows_per_group);
        // Footers grow with the number of groups; waiting for four times as much data keeps them a small part.
        let pending = self.writer.inner().0.len();
        if self.file.is_worth(pending) && (4 * self.footer_len <= pending || self.writer.bytes_written() < SMALL_FILE) {
            self.append_with_footer()
        } else {
            Ok(())
        }
    }

    /// Writes all buffered rows and closes the file.
    pub fn finish(&mut self) -> Result<(), ResultsError> {
        if 0 < self.n_rows {
            self.end_group()?;
        }
        if !self.writer.inner().0.is_empty() {
            self.append_with_footer()?;
        }
        self.file.close().map_err(|e| ResultsError::io(&self.path, e))
    }

    /// Syncs the file to disk.
    pub fn sync(&self) -> Result<(), ResultsError> {
        self.file.sync().map_err(|e| ResultsError::io(&self.path, e))
    }

    /// Frees space on the disk that is not needed to read the rows written so far.
    pub fn give_up(&mut self) {
        self.file.give_up();
    }

    /// Returns rows, length and hash of the table; to be called once it is finished.
    pub fn info(&self) -> TableInfo {
        let (bytes, hash) = self.file.len_and_hash();
        TableInfo { rows: self.n_written, bytes, xxh64: format!("{hash:016x}") }
    }

    fn end_group(&mut self) -> Result<(), ResultsError> {
        self.write_group().map_err(|e| ResultsError::parquet(&self.path, e))?;
        self.n_written += std::mem::take(&mut self.n_rows) as u64;
        self.writer.flush().map_err(|e| ResultsError::io(&self.path, e))
    }

    fn write_group(&mut self) -> Result<(), ParquetError> {
        let missing = || ParquetError::General("a column is missing".into());
        let mut group = self.writer.next_row_group()?;
        for column in &mut self.columns {
            column.write(group.next_column()?.ok_or_else(missing)?)?;
        }
        for tag in self.tags.iter() {
            tag.write(self.n_rows, group.next_column()?.ok_or_else(missing)?)?;
        }
        group.close().map(|_| ())
    }

    /// Appends the pending bytes and a footer that covers all rows so far, in one step.
    fn append_with_footer(&mut self) -> Result<(), ResultsError> {
        let (piece, footer_len) = with_footer(&mut self.writer).map_err(|e| ResultsError::parquet(&self.path, e))?;
        self.footer_len = footer_len;
        self.file.append(piece).map_err(|e| ResultsError::io(&self.path, e))
    }
}

/// Returns the pending bytes followed by a footer that covers all rows so far, and the footer's length.
fn with_footer(writer: &mut SerializedFileWriter<Pending>) -> Result<(Vec<u8>, usize), ParquetError> {
    let footer = footer(writer)?;
    writer.write_all(&footer)?;
    writer.flush()?;
    Ok((std::mem::take(&mut writer.inner_mut().0), footer.len()))
}

fn footer(writer: &SerializedFileWriter<Pending>) -> Result<Vec<u8>, ParquetError> {
    let groups = writer.flushed_row_groups().to_vec();
    let n_rows = groups.iter().map(parquet::file::metadata::RowGroupMetaData::num_rows).sum();
    let properties = writer.properties();
    let schema = Arc::new(writer.schema_descr().clone());
    let created_by = Some(properties.created_by().to_owned());
    let facts = properties.key_value_metadata().cloned();
    let file = FileMetaData::new(1, n_rows, created_by, facts, schema, None);
    let mut footer = Vec::new();
    ParquetMetaDataWriter::new(&mut footer, &ParquetMetaData::new(file, groups)).finish()?;
    Ok(footer)
}

fn schema(table: &TableSpec, tags: &[Tag]) -> Result<SchemaType, ParquetError> {
    let columns = table.columns.iter().map(|column| (column.name, column.kind, column.is_optional));
    let tags = tags.iter().map(|tag| (tag.name.as_str(), tag.kind(), false));
    let fields = columns.chain(tags).map(|(name, kind, is_optional)| {
        let repetition = if is_optional { Repetition::OPTIONAL } else { Repetition::REQUIRED };
        let field = SchemaType::primitive_type_builder(name, kind.physical()).with_repetition(repetition);
        let logical = (kind == Type::Text).then_some(LogicalType::String);
        field.with_logical_type(logical).build().map(Arc::new)
    });
    SchemaType::group_type_builder(table.name).with_fields(fields.collect::<Result<_, _>>()?).build()
}
