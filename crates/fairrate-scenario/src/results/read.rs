//! Reads results back.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parquet::column::reader::get_typed_column_reader;
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader, RowGroupReader};
use parquet::file::serialized_reader::SerializedFileReader;

use super::{ResultsError, SCENARIO, SUMMARY, Summary};

/// A row of `flows.parquet`.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowRow {
    /// Number of the flow.
    pub id: u32,
    /// Id of the sender.
    pub src: u32,
    /// Id of the receiver.
    pub dst: u32,
    /// Payload bytes; `None`: endless.
    pub bytes: Option<u64>,
    /// Start.
    pub start_ns: f64,
    /// From start to the last byte at the receiver; `None`: unfinished.
    pub fct_ns: Option<f64>,
    /// From start to the last acknowledgment at the sender; `None`: unfinished.
    pub fct_ack_ns: Option<f64>,
    /// The flow alone on an idle network; `None`: endless.
    pub ideal_fct_ns: Option<f64>,
    /// `fct_ns` over `ideal_fct_ns`; `None`: unfinished.
    pub slowdown: Option<f64>,
    /// Payload bytes sent again.
    pub retransmitted_bytes: u64,
    /// Whether all of it was acknowledged.
    pub finished: bool,
    /// Payload bytes the receiver has in order.
    pub delivered_bytes: u64,
    /// The traffic block it came from.
    pub group: u32,
    /// Payload bytes of a multipath connection that arrived and waited for bytes before them; none in results of before
    /// they were counted.
    pub reordered_bytes: u64,
    /// How long such a byte waited, on average; `None`: none did.
    pub reordering_mean_ns: Option<f64>,
    /// The longest wait.
    pub reordering_max_ns: Option<f64>,
}

/// A row of `ports.parquet`.
#[derive(Clone, Debug, PartialEq)]
pub struct PortRow {
    /// When.
    pub t_ns: f64,
    /// Id of the node the port sends from.
    pub node: u32,
    /// The port, as `from->to`.
    pub port: Arc<str>,
    /// Bytes waiting, without the packet on the wire.
    pub qlen_bytes: u64,
    /// Bytes handed to the wire since the start.
    pub tx_bytes: u64,
    /// Packets dropped on their way into this port since the start.
    pub drops: u64,
    /// Packets marked since the start.
    pub ecn_marks: u64,
    /// Time paused by the peer since the start.
    pub pfc_pause_ns: f64,
}

/// A row of `rates.parquet`.
#[derive(Clone, Debug, PartialEq)]
pub struct RateRow {
    /// When.
    pub t_ns: f64,
    /// Number of the flow.
    pub flow: u32,
    /// Congestion window; `None`: the algorithm has none.
    pub cwnd_bytes: Option<u64>,
    /// Pacing rate.
    pub rate_bps: u64,
    /// Payload bytes the receiver has in order.
    pub delivered_bytes: u64,
}

/// A row of `pfc.parquet`.
#[derive(Clone, Debug, PartialEq)]
pub struct PfcRow {
    /// When the frame arrived.
    pub t_ns: f64,
    /// Id of the node that stops or goes on sending.
    pub node: u32,
    /// Its port, as `from->to`.
    pub port: Arc<str>,
    /// Pause, or resume.
    pub pause: bool,
    /// The class.
    pub class: u8,
}

/// A row of `convergence.parquet`.
#[derive(Clone, Debug, PartialEq)]
pub struct ConvergenceRow {
    /// When a flow arrived or departed.
    pub t_ns: f64,
    /// Number of the flow.
    pub flow: u32,
    /// Arrival, or departure.
    pub arrival: bool,
    /// Active flows after the change.
    pub n_flows: u32,
    /// From the change until all rates were near the optimum, to stay; `None`: they were not.
    pub time_ns: Option<f64>,
    /// The same in base RTTs.
    pub rtts: Option<f64>,
}

/// A results directory.
#[derive(Clone, Debug)]
pub struct Results {
    dir: PathBuf,
    /// What the run came to.
    pub summary: Summary,
}

impl Results {
    /// Opens a directory that [`crate::ResultsWriter`] wrote.
    ///
    /// # Errors
    /// If there are no results in it, or the summary is damaged.
    pub fn open(dir: &Path) -> Result<Self, ResultsError> {
        let path = dir.join(SUMMARY);
        if !path.exists() {
            return Err(ResultsError::NoResults { path: dir.to_owned() });
        }
        let text = std::fs::read_to_string(&path).map_err(|e| ResultsError::io(&path, e))?;
        let summary = serde_json::from_str(&text).map_err(|source| ResultsError::Summary { path, source })?;
        Ok(Self { dir: dir.to_owned(), summary })
    }

    /// Where it is.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The resolved scenario.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn scenario_toml(&self) -> Result<String, ResultsError> {
        let path = self.dir.join(SCENARIO);
        std::fs::read_to_string(&path).map_err(|e| ResultsError::io(&path, e))
    }

    /// All flows, those that finished first, in the order in which they did.
    ///
    /// # Errors
    /// If the table cannot be read.
    pub fn flows(&self) -> Result<Vec<FlowRow>, ResultsError> {
        let mut t = Table::open(&self.dir, "flows")?;
        let (id, src, dst) = (t.ints("id")?, t.ints("src")?, t.ints("dst")?);
        let (bytes, start) = (t.maybe_ints("bytes")?, t.floats("start_ns")?);
        let (fct, fct_ack) = (t.maybe_floats("fct_ns")?, t.maybe_floats("fct_ack_ns")?);
        let (ideal, slowdown) = (t.maybe_floats("ideal_fct_ns")?, t.maybe_floats("slowdown")?);
        let (again, finished) = (t.ints("retransmitted_bytes")?, t.flags("finished")?);
        let (delivered, group) = (t.ints("delivered_bytes")?, t.ints("group")?);
        let reordered = or_none(id.len(), t.maybe_ints("reordered_bytes"))?;
        let waited_mean = or_none(id.len(), t.maybe_floats("reordering_mean_ns"))?;
        let waited_max = or_none(id.len(), t.maybe_floats("reordering_max_ns"))?;
        let row = |i: usize| FlowRow {
            id: id[i] as u32,
            src: src[i] as u32,
            dst: dst[i] as u32,
            bytes: bytes[i],
            start_ns: start[i],
            fct_ns: fct[i],
            fct_ack_ns: fct_ack[i],
            ideal_fct_ns: ideal[i],
            slowdown: slowdown[i],
            retransmitted_bytes: again[i],
            finished: finished[i],
            delivered_bytes: delivered[i],
            group: group[i] as u32,
            reordered_bytes: reordered[i].unwrap_or_default(),
            reordering_mean_ns: waited_mean[i],
            reordering_max_ns: waited_max[i],
        };
        Ok((0..id.len()).map(row).collect())
    }

    /// All samples of ports, in order of time.
    ///
    /// # Errors
    /// If the table cannot be read.
    pub fn ports(&self) -> Result<Vec<PortRow>, ResultsError> {
        let mut t = Table::open(&self.dir, "ports")?;
        let (time, node, port) = (t.floats("t_ns")?, t.ints("node")?, t.texts("port")?);
        let (qlen, tx) = (t.ints("qlen_bytes")?, t.ints("tx_bytes")?);
        let (drops, marks, pause) = (t.ints("drops")?, t.ints("ecn_marks")?, t.floats("pfc_pause_ns")?);
        let row = |i: usize| PortRow {
            t_ns: time[i],
            node: node[i] as u32,
            port: Arc::clone(&port[i]),
            qlen_bytes: qlen[i],
            tx_bytes: tx[i],
            drops: drops[i],
            ecn_marks: marks[i],
            pfc_pause_ns: pause[i],
        };
        Ok((0..time.len()).map(row).collect())
    }

    /// All samples of flows, in order of time.
    ///
    /// # Errors
    /// If the table cannot be read.
    pub fn rates(&self) -> Result<Vec<RateRow>, ResultsError> {
        let mut t = Table::open(&self.dir, "rates")?;
        let (time, flow, cwnd) = (t.floats("t_ns")?, t.ints("flow")?, t.maybe_ints("cwnd_bytes")?);
        let (rate, delivered) = (t.ints("rate_bps")?, t.ints("delivered_bytes")?);
        let row = |i: usize| RateRow {
            t_ns: time[i],
            flow: flow[i] as u32,
            cwnd_bytes: cwnd[i],
            rate_bps: rate[i],
            delivered_bytes: delivered[i],
        };
        Ok((0..time.len()).map(row).collect())
    }

    /// All pause and resume frames, in order of time.
    ///
    /// # Errors
    /// If the table cannot be read.
    pub fn pfc(&self) -> Result<Vec<PfcRow>, ResultsError> {
        let mut t = Table::open(&self.dir, "pfc")?;
        let (time, node, port) = (t.floats("t_ns")?, t.ints("node")?, t.texts("port")?);
        let (pause, class) = (t.flags("pause")?, t.ints("class")?);
        let row = |i: usize| PfcRow {
            t_ns: time[i],
            node: node[i] as u32,
            port: Arc::clone(&port[i]),
            pause: pause[i],
            class: class[i] as u8,
        };
        Ok((0..time.len()).map(row).collect())
    }

    /// All arrivals and departures of flows with how long rates took to settle; empty without such a probe, and in
    /// results of before there was one.
    ///
    /// # Errors
    /// If the table cannot be read.
    pub fn convergence(&self) -> Result<Vec<ConvergenceRow>, ResultsError> {
        if !self.dir.join("convergence.parquet").exists() {
            return Ok(Vec::new());
        }
        let mut t = Table::open(&self.dir, "convergence")?;
        let (time, flow, arrival) = (t.floats("t_ns")?, t.ints("flow")?, t.flags("arrival")?);
        let (n_flows, took, rtts) = (t.ints("n_flows")?, t.maybe_floats("time_ns")?, t.maybe_floats("rtts")?);
        let row = |i: usize| ConvergenceRow {
            t_ns: time[i],
            flow: flow[i] as u32,
            arrival: arrival[i],
            n_flows: n_flows[i] as u32,
            time_ns: took[i],
            rtts: rtts[i],
        };
        Ok((0..time.len()).map(row).collect())
    }
}

/// A column, or nothing in all rows of a table written before there was one.
fn or_none<T: Clone>(
    n_rows: usize,
    column: Result<Vec<Option<T>>, ResultsError>,
) -> Result<Vec<Option<T>>, ResultsError> {
    match column {
        Err(ResultsError::NoColumn { .. }) => Ok(vec![None; n_rows]),
        column => column,
    }
}

/// A table being read column by column.
struct Table {
    path: PathBuf,
    reader: SerializedFileReader<bytes::Bytes>,
}

impl Table {
    fn open(dir: &Path, name: &str) -> Result<Self, ResultsError> {
        let path = dir.join(format!("{name}.parquet"));
        let data = std::fs::read(&path).map_err(|e| ResultsError::io(&path, e))?;
        let reader = open_last_whole(&data.into()).map_err(|e| ResultsError::parquet(&path, e))?;
        Ok(Self { path, reader })
    }

    fn ints(&mut self, name: &str) -> Result<Vec<u64>, ResultsError> {
        Ok(self.maybe_ints(name)?.into_iter().map(Option::unwrap_or_default).collect())
    }

    fn maybe_ints(&mut self, name: &str) -> Result<Vec<Option<u64>>, ResultsError> {
        self.column::<Int64Type, _>(name, i64::unsigned_abs)
    }

    fn floats(&mut self, name: &str) -> Result<Vec<f64>, ResultsError> {
        Ok(self.maybe_floats(name)?.into_iter().map(|x| x.unwrap_or(f64::NAN)).collect())
    }

    fn maybe_floats(&mut self, name: &str) -> Result<Vec<Option<f64>>, ResultsError> {
        self.column::<DoubleType, _>(name, |x| x)
    }

    fn flags(&mut self, name: &str) -> Result<Vec<bool>, ResultsError> {
        Ok(self.column::<BoolType, _>(name, |b| b)?.into_iter().map(Option::unwrap_or_default).collect())
    }

    fn texts(&mut self, name: &str) -> Result<Vec<Arc<str>>, ResultsError> {
        let mut known: HashMap<Vec<u8>, Arc<str>> = HashMap::new();
        let text = |bytes: ByteArray| {
            if let Some(text) = known.get(bytes.data()) {
                return Arc::clone(text);
            }
            let text: Arc<str> = Arc::from(String::from_utf8_lossy(bytes.data()));
            known.insert(bytes.data().to_vec(), Arc::clone(&text));
            text
        };
        let texts = self.column::<ByteArrayType, _>(name, text)?;
        Ok(texts.into_iter().map(|t| t.unwrap_or_else(|| Arc::from(""))).collect())
    }

    fn column<T: DataType, R>(
        &mut self,
        name: &str,
        mut convert: impl FnMut(T::T) -> R,
    ) -> Result<Vec<Option<R>>, ResultsError> {
        let schema = self.reader.metadata().file_metadata().schema_descr_ptr();
        let Some(i) = schema.columns().iter().position(|c| c.name() == name) else {
            return Err(ResultsError::NoColumn { path: self.path.clone(), column: name.to_owned() });
        };
        let mut values = Vec::new();
        for group in 0..self.reader.num_row_groups() {
            let group = self.reader.get_row_group(group).map_err(|e| ResultsError::parquet(&self.path, e))?;
            read_chunk::<T, R>(group.as_ref(), i, &mut convert, &mut values)
                .map_err(|e| ResultsError::parquet(&self.path, e))?;
        }
        Ok(values)
    }
}

fn read_chunk<T: DataType, R>(
    group: &dyn RowGroupReader,
    column: usize,
    convert: &mut impl FnMut(T::T) -> R,
    out: &mut Vec<Option<R>>,
) -> Result<(), ParquetError> {
    let n_rows = usize::try_from(group.metadata().num_rows()).unwrap_or(0);
    let optional = 0 < group.metadata().column(column).column_descr().max_def_level();
    let mut reader = get_typed_column_reader::<T>(group.get_column_reader(column)?);
    let (mut values, mut levels) = (Vec::with_capacity(n_rows), Vec::new());
    let mut read = 0;
    while read < n_rows {
        let (rows, _, _) = reader.read_records(n_rows - read, optional.then_some(&mut levels), None, &mut values)?;
        if rows == 0 {
            return Err(ParquetError::General(format!("a column ends after {read} of {n_rows} rows")));
        }
        read += rows;
    }
    let mut values = values.into_iter().map(convert);
    if optional {
        out.extend(levels.iter().map(|level| if *level == 0 { None } else { values.next() }));
    } else {
        out.extend(values.map(Some));
    }
    Ok(())
}

/// Opens a file at its last whole footer: a write cut short by a crash leaves a tail behind it.
fn open_last_whole(data: &bytes::Bytes) -> Result<SerializedFileReader<bytes::Bytes>, ParquetError> {
    const MAGIC: &[u8] = b"PAR1";
    let whole = SerializedFileReader::new(data.clone());
    let Err(error) = whole else { return whole };
    let mut end = data.len();
    while let Some(at) = data[..end].windows(MAGIC.len()).rposition(|w| w == MAGIC) {
        if at == 0 {
            break;
        }
        if let Ok(reader) = SerializedFileReader::new(data.slice(..at + MAGIC.len())) {
            return Ok(reader);
        }
        end = at + MAGIC.len() - 1;
    }
    Err(error)
}

#[cfg(test)]
mod tests {
    use super::super::FLOWS;
    use super::super::columns::{Cell, TableWriter};
    use super::*;

    #[test]
    fn columns_are_empty_in_tables_older_than_they_are() {
        let dir = std::env::temp_dir().join(format!("fairrate-older-{}", std::process::id()));
        std::fs::create_dir_all(&dir).expect("a directory");
        let mut writer = TableWriter::create(&dir, "flows", &FLOWS[..2], 64, &[]).expect("it can be written");
        writer.push([Cell::Int(1), Cell::Int(7)]).expect("a row");
        writer.finish().expect("it was written");
        let mut table = Table::open(&dir, "flows").expect("it opens");
        assert_eq!(or_none(1, table.maybe_ints("src")).expect("a column"), [Some(7)]);
        assert_eq!(or_none(1, table.maybe_ints("reordered_bytes")).expect("no column"), [None]);
        assert!(matches!(table.ints("dst"), Err(ResultsError::NoColumn { .. })));
        std::fs::remove_dir_all(&dir).expect("it goes");
    }
}
