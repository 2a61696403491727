//! A Parquet file that is valid at every moment: rows are buffered, and each write appends whole row groups and a
//! footer that covers everything so far. A later footer, further down, replaces it; the dead ones stay below a
//! fifth of a large file. What a crash can cost is the rows not yet written, and only a write cut short by it leaves
//! a tail that readers have to skip (ours does).

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parquet::basic::Compression;
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::{FileMetaData, KeyValue, ParquetMetaData, ParquetMetaDataWriter};
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterVersion};
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::parser::parse_message_type;

use super::ResultsError;

/// Type of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Type {
    /// A whole number.
    Int,
    /// A whole number that may be absent.
    IntOrNone,
    /// A real number.
    Float,
    /// A real number that may be absent.
    FloatOrNone,
    /// Text.
    Text,
    /// True or false.
    Flag,
}

/// Name, type and unit of a column.
pub(super) type ColumnSpec = (&'static str, Type, &'static str);

/// A value for a column.
#[derive(Clone, Debug)]
pub(super) enum Cell {
    Int(u64),
    Float(f64),
    Text(ByteArray),
    Flag(bool),
    None,
}

/// Buffered values of a column.
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
    /// One definition level a row where values may be absent: 1 present, 0 absent.
    levels: Option<Vec<i16>>,
}

impl Column {
    fn new(kind: Type) -> Self {
        let buffer = match kind {
            Type::Int | Type::IntOrNone => Buffer::Int(Vec::new()),
            Type::Float | Type::FloatOrNone => Buffer::Float(Vec::new()),
            Type::Text => Buffer::Text(Vec::new()),
            Type::Flag => Buffer::Flag(Vec::new()),
        };
        let levels = matches!(kind, Type::IntOrNone | Type::FloatOrNone).then(Vec::new);
        Self { buffer, levels }
    }

    fn push(&mut self, cell: Cell) {
        if let Some(levels) = &mut self.levels {
            levels.push(i16::from(!matches!(cell, Cell::None)));
        }
        match (&mut self.buffer, cell) {
            // Counts beyond 63 bits do not occur; sentinels are absent values.
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

/// Where the Parquet writer puts its bytes until a footer makes them whole.
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

/// Writes one table.
#[derive(Debug)]
pub(super) struct TableWriter {
    path: PathBuf,
    file: File,
    writer: SerializedFileWriter<Pending>,
    columns: Vec<Column>,
    n_rows: usize,
    /// Rows of the next row group: few at first, so that a crash early on leaves something, then twice as many
    /// each time, up to `most_rows_per_group`.
    rows_per_group: usize,
    most_rows_per_group: usize,
    /// Size of the last footer written.
    footer_len: usize,
}

/// Rows of the first row group.
const FIRST_ROWS: usize = 64;
/// Below this size of file, dead footers do not matter.
const SMALL_FILE: usize = 256 << 10;

impl TableWriter {
    /// Creates the file, valid and without rows. `facts` go into its metadata beside the units.
    pub fn create(
        dir: &Path,
        table: &str,
        specs: &[ColumnSpec],
        most_rows_per_group: usize,
        facts: &[(&str, &str)],
    ) -> Result<Self, ResultsError> {
        let path = dir.join(format!("{table}.parquet"));
        let fail = |e: ParquetError| ResultsError::parquet(&path, e);
        let schema = Arc::new(parse_message_type(&message_type(table, specs)).map_err(fail)?);
        let units = specs.iter().map(|(name, _, unit)| KeyValue::new(format!("unit:{name}"), (*unit).to_owned()));
        let facts = facts.iter().map(|(key, value)| KeyValue::new((*key).to_owned(), (*value).to_owned()));
        let properties = WriterProperties::builder()
            .set_writer_version(WriterVersion::PARQUET_1_0)
            .set_created_by(format!("fairrate {}", env!("CARGO_PKG_VERSION")))
            .set_compression(Compression::SNAPPY)
            .set_statistics_enabled(EnabledStatistics::Chunk)
            .set_offset_index_disabled(true)
            .set_key_value_metadata(Some(units.chain(facts).collect()))
            .build();
        let writer = SerializedFileWriter::new(Pending::default(), schema, Arc::new(properties)).map_err(fail)?;
        let file = File::create(&path).map_err(|e| ResultsError::io(&path, e))?;
        let columns = specs.iter().map(|spec| Column::new(spec.1)).collect();
        let mut table = Self {
            path,
            file,
            writer,
            columns,
            n_rows: 0,
            rows_per_group: FIRST_ROWS,
            most_rows_per_group,
            footer_len: 0,
        };
        table.append_with_footer()?;
        Ok(table)
    }

    /// Adds a row: one cell a column.
    pub fn push<const N: usize>(&mut self, row: [Cell; N]) -> Result<(), ResultsError> {
        debug_assert_eq!(N, self.columns.len(), "a cell for each column");
        for (column, cell) in self.columns.iter_mut().zip(row) {
            column.push(cell);
        }
        self.n_rows += 1;
        if self.n_rows < self.rows_per_group {
            return Ok(());
        }
        self.end_group()?;
        self.rows_per_group = (2 * self.rows_per_group).min(self.most_rows_per_group);
        // Footers grow with the number of groups; waiting for four times as much data keeps them a small part.
        if 4 * self.footer_len <= self.writer.inner().0.len() || self.writer.bytes_written() < SMALL_FILE {
            self.append_with_footer()
        } else {
            Ok(())
        }
    }

    /// Writes everything. The file is then as good as closed, and rows can still follow.
    pub fn finish(&mut self) -> Result<(), ResultsError> {
        if 0 < self.n_rows {
            self.end_group()?;
        }
        self.append_with_footer()
    }

    fn end_group(&mut self) -> Result<(), ResultsError> {
        self.write_group().map_err(|e| ResultsError::parquet(&self.path, e))?;
        self.n_rows = 0;
        self.writer.flush().map_err(|e| ResultsError::io(&self.path, e))
    }

    fn write_group(&mut self) -> Result<(), ParquetError> {
        let mut group = self.writer.next_row_group()?;
        for column in &mut self.columns {
            let out = group.next_column()?.ok_or_else(|| ParquetError::General("a column is missing".into()))?;
            column.write(out)?;
        }
        group.close().map(|_| ())
    }

    /// Appends what is pending and a footer for everything so far, in one write.
    fn append_with_footer(&mut self) -> Result<(), ResultsError> {
        let footer = self.footer().map_err(|e| ResultsError::parquet(&self.path, e))?;
        self.footer_len = footer.len();
        let io = |e| ResultsError::io(&self.path, e);
        self.writer.write_all(&footer).map_err(io)?;
        self.writer.flush().map_err(io)?;
        let bytes = std::mem::take(&mut self.writer.inner_mut().0);
        self.file.write_all(&bytes).map_err(io)
    }

    fn footer(&self) -> Result<Vec<u8>, ParquetError> {
        let groups = self.writer.flushed_row_groups().to_vec();
        let n_rows = groups.iter().map(parquet::file::metadata::RowGroupMetaData::num_rows).sum();
        let properties = self.writer.properties();
        let schema = Arc::new(self.writer.schema_descr().clone());
        let created_by = Some(properties.created_by().to_owned());
        let facts = properties.key_value_metadata().cloned();
        let file = FileMetaData::new(1, n_rows, created_by, facts, schema, None);
        let mut footer = Vec::new();
        ParquetMetaDataWriter::new(&mut footer, &ParquetMetaData::new(file, groups)).finish()?;
        Ok(footer)
    }
}

fn message_type(table: &str, specs: &[ColumnSpec]) -> String {
    let field = |(name, kind, _): &ColumnSpec| match kind {
        Type::Int => format!("required int64 {name};"),
        Type::IntOrNone => format!("optional int64 {name};"),
        Type::Float => format!("required double {name};"),
        Type::FloatOrNone => format!("optional double {name};"),
        Type::Text => format!("required binary {name} (UTF8);"),
        Type::Flag => format!("required boolean {name};"),
    };
    format!("message {table} {{ {} }}", specs.iter().map(field).collect::<Vec<_>>().join(" "))
}
