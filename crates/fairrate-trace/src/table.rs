//! A table of steps in the format Parquet: a row for each, in row groups.

use std::io::{self, Write};
use std::sync::Arc;

use bytes::Bytes;
use fairrate_sim::{PacketEvent, PacketHeader, PacketStep, PfcEvent};
use parquet::basic::{Compression, Encoding, LogicalType, Repetition, Type as Physical};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterVersion};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::{ColumnPath, Type};

use crate::network::{Network, kind_name};
use crate::output::Output;
use crate::tracer::{End, Format};

/// Largest number of rows of a row group.
const MOST_ROWS: u64 = 1 << 16;
/// Bytes that a row takes at most, roughly, before it is compressed.
const ROW: u64 = 100;
/// Share of the largest size that a row group may take.
const GROUPS: u64 = 8;
/// Bytes of the footer without row groups, and for each of them.
const FOOTER: (u64, u64) = (2_500, 1_800);

/// The columns: name, type, and `true` if values may be absent.
const COLUMNS: [(&str, Physical, bool); 13] = [
    ("time_ps", Physical::INT64, false),
    ("event", Physical::BYTE_ARRAY, false),
    ("port", Physical::BYTE_ARRAY, false),
    ("flow", Physical::INT64, true),
    ("kind", Physical::BYTE_ARRAY, false),
    ("seq", Physical::INT64, false),
    ("answers", Physical::INT64, false),
    ("payload_bytes", Physical::INT64, false),
    ("size_bytes", Physical::INT64, false),
    ("class", Physical::INT64, false),
    ("queue_bytes", Physical::INT64, false),
    ("marked", Physical::BOOLEAN, false),
    ("cause", Physical::BYTE_ARRAY, true),
];

/// Returns a name without a copy of it.
fn name(name: &'static str) -> ByteArray {
    ByteArray::from(Bytes::from_static(name.as_bytes()))
}

/// The buffered rows, by column.
#[derive(Default)]
struct Rows {
    time_ps: Vec<i64>,
    event: Vec<ByteArray>,
    port: Vec<ByteArray>,
    flow: Vec<i64>,
    has_flow: Vec<i16>,
    kind: Vec<ByteArray>,
    seq: Vec<i64>,
    answers: Vec<i64>,
    payload: Vec<i64>,
    size: Vec<i64>,
    class: Vec<i64>,
    queue: Vec<i64>,
    marked: Vec<bool>,
    cause: Vec<ByteArray>,
    has_cause: Vec<i16>,
}

/// A writer of tables of steps.
pub struct Table {
    network: Network,
    /// `None` once it is closed.
    writer: Option<SerializedFileWriter<Output>>,
    rows: Rows,
    /// The names of ports, which rows share.
    ports: Vec<ByteArray>,
    rows_per_group: usize,
    n_groups: u64,
    /// Bytes of the largest row group.
    largest: u64,
    written: u64,
}

impl Table {
    /// Begins a table of a run in `network`, which `comment` describes.
    ///
    /// # Errors
    /// Those of writing.
    pub fn new(network: Network, out: Output, comment: &str) -> io::Result<Self> {
        let properties = WriterProperties::builder()
            .set_writer_version(WriterVersion::PARQUET_1_0)
            .set_created_by(format!("fairrate {}", env!("CARGO_PKG_VERSION")))
            .set_compression(Compression::SNAPPY)
            .set_offset_index_disabled(true)
            // Least and largest values would be found by comparing each name.
            .set_statistics_enabled(EnabledStatistics::None);
        // Nearly every value of these is another one, so a dictionary does not pay.
        let properties = ["time_ps", "seq", "answers"].into_iter().fold(properties, |properties, name| {
            let column = ColumnPath::from(name);
            let properties = properties.set_column_dictionary_enabled(column.clone(), false);
            properties.set_column_encoding(column, Encoding::DELTA_BINARY_PACKED)
        });
        let properties =
            properties.set_key_value_metadata(Some(vec![KeyValue::new("run".to_owned(), comment.to_owned())])).build();
        let rows_per_group = (out.limit() / GROUPS / ROW).clamp(1, MOST_ROWS) as usize;
        let writer = SerializedFileWriter::new(out, Arc::new(schema().map_err(failed)?), Arc::new(properties));
        let ports = network.ports.iter().map(|name| ByteArray::from(name.as_str())).collect();
        Ok(Self {
            network,
            writer: Some(writer.map_err(failed)?),
            rows: Rows::default(),
            ports,
            rows_per_group,
            n_groups: 0,
            largest: 0,
            written: 0,
        })
    }

    /// Writes the buffered rows as a row group, once there are enough. Returns [`End::Limit`] if another one may not
    /// fit.
    fn end_group(&mut self) -> io::Result<End> {
        if self.rows.time_ps.len() < self.rows_per_group {
            return Ok(End::Whole);
        }
        self.write_group()?;
        let Some(writer) = &mut self.writer else { return Ok(End::Whole) };
        let (footer, for_each) = FOOTER;
        let footer = footer + for_each * (self.n_groups + 1);
        if writer.inner().has_room(self.largest + footer) {
            return Ok(End::Whole);
        }
        let why = KeyValue::new("end".to_owned(), "the file has reached its largest size".to_owned());
        writer.append_key_value_metadata(why);
        Ok(End::Limit)
    }

    fn write_group(&mut self) -> io::Result<()> {
        let Some(writer) = &mut self.writer else { return Ok(()) };
        let before = writer.inner().written();
        self.rows.write(writer).map_err(failed)?;
        writer.inner_mut().flush()?;
        self.n_groups += 1;
        self.largest = self.largest.max(writer.inner().written() - before);
        Ok(())
    }
}

impl Rows {
    /// Writes the rows as a row group and removes them.
    fn write(&mut self, writer: &mut SerializedFileWriter<Output>) -> Result<(), ParquetError> {
        let rows = &*self;
        let mut group = writer.next_row_group()?;
        let mut at = 0;
        while let Some(mut column) = group.next_column()? {
            match at {
                0 => column.typed::<Int64Type>().write_batch(&rows.time_ps, None, None),
                1 => column.typed::<ByteArrayType>().write_batch(&rows.event, None, None),
                2 => column.typed::<ByteArrayType>().write_batch(&rows.port, None, None),
                3 => column.typed::<Int64Type>().write_batch(&rows.flow, Some(&rows.has_flow), None),
                4 => column.typed::<ByteArrayType>().write_batch(&rows.kind, None, None),
                5 => column.typed::<Int64Type>().write_batch(&rows.seq, None, None),
                6 => column.typed::<Int64Type>().write_batch(&rows.answers, None, None),
                7 => column.typed::<Int64Type>().write_batch(&rows.payload, None, None),
                8 => column.typed::<Int64Type>().write_batch(&rows.size, None, None),
                9 => column.typed::<Int64Type>().write_batch(&rows.class, None, None),
                10 => column.typed::<Int64Type>().write_batch(&rows.queue, None, None),
                11 => column.typed::<BoolType>().write_batch(&rows.marked, None, None),
                _ => column.typed::<ByteArrayType>().write_batch(&rows.cause, Some(&rows.has_cause), None),
            }?;
            column.close()?;
            at += 1;
        }
        group.close()?;
        self.clear();
        Ok(())
    }

    /// Removes the rows, and keeps their room.
    fn clear(&mut self) {
        let Self { time_ps, flow, seq, answers, payload, size, class, queue, .. } = self;
        [time_ps, flow, seq, answers, payload, size, class, queue].into_iter().for_each(Vec::clear);
        let Self { event, port, kind, cause, .. } = self;
        [event, port, kind, cause].into_iter().for_each(Vec::clear);
        [&mut self.has_flow, &mut self.has_cause].into_iter().for_each(Vec::clear);
        self.marked.clear();
    }
}

impl Format for Table {
    fn wants_headers(&self) -> bool {
        false
    }

    fn step(&mut self, event: &PacketEvent, _: Option<&PacketHeader<'_>>) -> io::Result<End> {
        // Numbers beyond 63 bits do not occur.
        let int = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
        let (step, cause) = match event.step {
            PacketStep::Queued => ("queued", None),
            PacketStep::Sent => ("sent", None),
            PacketStep::Dropped(cause) => ("dropped", Some(cause.name())),
            PacketStep::Trimmed => ("trimmed", None),
            PacketStep::Returned => ("returned", None),
        };
        let flow = self.network.number(event.flow);
        let rows = &mut self.rows;
        rows.time_ps.push(int(event.t.as_ps()));
        rows.event.push(name(step));
        rows.port.push(self.ports[event.port.index()].clone());
        rows.has_flow.push(i16::from(flow.is_some()));
        rows.flow.extend(flow.map(i64::from));
        rows.kind.push(name(kind_name(event.kind)));
        rows.seq.push(int(event.seq));
        rows.answers.push(int(event.answers));
        rows.payload.push(i64::from(event.payload_bytes));
        rows.size.push(i64::from(event.wire_bytes));
        rows.class.push(i64::from(event.class));
        rows.queue.push(int(event.queued_bytes));
        rows.marked.push(event.marked);
        rows.has_cause.push(i16::from(cause.is_some()));
        rows.cause.extend(cause.map(name));
        self.end_group()
    }

    fn pfc(&mut self, event: &PfcEvent) -> io::Result<End> {
        let rows = &mut self.rows;
        rows.time_ps.push(i64::try_from(event.t.as_ps()).unwrap_or(i64::MAX));
        rows.event.push(name(if event.pause { "paused" } else { "resumed" }));
        rows.port.push(self.ports[event.port.index()].clone());
        rows.has_flow.push(0);
        rows.kind.push(name("pfc"));
        for column in [&mut rows.seq, &mut rows.answers, &mut rows.payload, &mut rows.size, &mut rows.queue] {
            column.push(0);
        }
        rows.class.push(i64::from(event.class));
        rows.marked.push(false);
        rows.has_cause.push(0);
        self.end_group()
    }

    fn finish(&mut self) -> io::Result<()> {
        if !self.rows.time_ps.is_empty() {
            self.write_group()?;
        }
        if let Some(writer) = self.writer.take() {
            let mut out = writer.into_inner().map_err(failed)?;
            out.flush()?;
            self.written = out.written();
        }
        Ok(())
    }

    fn written(&self) -> u64 {
        self.writer.as_ref().map_or(self.written, |writer| writer.inner().written())
    }
}

fn schema() -> Result<Type, ParquetError> {
    let fields = COLUMNS.iter().map(|&(name, physical, is_optional)| {
        let repetition = if is_optional { Repetition::OPTIONAL } else { Repetition::REQUIRED };
        let logical = (physical == Physical::BYTE_ARRAY).then_some(LogicalType::String);
        let field = Type::primitive_type_builder(name, physical).with_repetition(repetition);
        field.with_logical_type(logical).build().map(Arc::new)
    });
    Type::group_type_builder("trace").with_fields(fields.collect::<Result<_, _>>()?).build()
}

fn failed(error: ParquetError) -> io::Error {
    io::Error::other(error)
}
