//! Reading of results.

use std::collections::HashMap;
use std::fs::File;
use std::hash::Hasher as _;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parquet::column::reader::get_typed_column_reader;
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader, RowGroupReader};
use parquet::file::serialized_reader::SerializedFileReader;
use twox_hash::XxHash64;

use crate::scenario::Scenario;

use super::rows::{ConvergenceRow, FlowRow, PfcRow, PortRow, RateRow};
use super::{ResultsError, SCENARIO, SCHEMA, SUMMARY, Summary, TABLES};

/// The results of a run in a directory.
#[derive(Clone, Debug)]
pub struct Results {
    dir: PathBuf,
    /// The summary of the run.
    pub summary: Summary,
}

impl Results {
    /// Opens a directory that [`crate::ResultsWriter`] wrote.
    ///
    /// # Errors
    /// If there are no results in it, they are of another schema, or the summary is damaged.
    pub fn open(dir: &Path) -> Result<Self, ResultsError> {
        let path = dir.join(SUMMARY);
        if !path.exists() {
            return Err(ResultsError::NoResults { path: dir.to_owned() });
        }
        let text = std::fs::read_to_string(&path).map_err(|e| ResultsError::io(&path, e))?;
        let damaged = |source| ResultsError::Summary { path: path.clone(), source };
        let value: serde_json::Value = serde_json::from_str(&text).map_err(damaged)?;
        // Results of version 1 contained no schema.
        let found = value["schema"].as_str().unwrap_or("fairrate.results/1");
        if found != SCHEMA {
            return Err(ResultsError::Schema { path, found: found.to_owned() });
        }
        let summary: Summary = serde_json::from_value(value).map_err(damaged)?;
        if summary.expected_checksum().map_err(damaged)? != summary.checksum {
            let problem = "it does not have the checksum it says it has".to_owned();
            return Err(ResultsError::Damaged { path, problem });
        }
        Ok(Self { dir: dir.to_owned(), summary })
    }

    /// Returns the results in `dir`, if they are undamaged and those of a complete run of `scenario` by this fairrate:
    /// the run would give the same results again.
    pub fn complete_of(dir: &Path, scenario: &Scenario) -> Option<Self> {
        let results = Self::open(dir).ok().filter(|results| results.summary.is_complete_run_of(scenario))?;
        results.verify().ok()?;
        Some(results)
    }

    /// Checks length and hash of every table against the summary. Tables of a run that goes on or was killed are not
    /// checked: the summary has no hashes of them.
    ///
    /// # Errors
    /// If one is missing or damaged.
    pub fn verify(&self) -> Result<(), ResultsError> {
        TABLES.iter().try_for_each(|table| self.verify_table(table))
    }

    /// Checks length and hash of one table: `flows`, `ports`, `rates`, `pfc` or `convergence`.
    ///
    /// # Errors
    /// If it is missing or damaged.
    pub fn verify_table(&self, table: &str) -> Result<(), ResultsError> {
        let Some(info) = self.summary.tables.get(table) else { return Ok(()) };
        let path = self.dir.join(format!("{table}.parquet"));
        let io = |e| ResultsError::io(&path, e);
        let damaged = |problem: String| ResultsError::Damaged { path: path.clone(), problem };
        let mut file = File::open(&path).map_err(io)?;
        let len = file.metadata().map_err(io)?.len();
        if len != info.bytes {
            return Err(damaged(format!("it has {len} bytes, and had {} when the run ended", info.bytes)));
        }
        let (mut hash, mut buffer) = (XxHash64::with_seed(0), vec![0; 1 << 16]);
        loop {
            match file.read(&mut buffer).map_err(io)? {
                0 => break,
                n => hash.write(&buffer[..n]),
            }
        }
        if format!("{:016x}", hash.finish()) == info.xxh64 {
            Ok(())
        } else {
            Err(damaged("its content has changed since the run ended".to_owned()))
        }
    }

    /// Returns the directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Returns the text of the resolved scenario.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn scenario_toml(&self) -> Result<String, ResultsError> {
        let path = self.dir.join(SCENARIO);
        std::fs::read_to_string(&path).map_err(|e| ResultsError::io(&path, e))
    }

    /// Returns all flows: first the finished ones, in the order of their completion.
    ///
    /// # Errors
    /// If the table is damaged or cannot be read.
    pub fn flows(&self) -> Result<Vec<FlowRow>, ResultsError> {
        let mut rows = Vec::new();
        self.each_flow(|row| rows.push(row))?;
        Ok(rows)
    }

    /// Returns all samples of ports, in order of time.
    ///
    /// # Errors
    /// If the table is damaged or cannot be read.
    pub fn ports(&self) -> Result<Vec<PortRow>, ResultsError> {
        let mut rows = Vec::new();
        self.each_port(|row| rows.push(row))?;
        Ok(rows)
    }

    /// Returns all samples of flows, in order of time.
    ///
    /// # Errors
    /// If the table is damaged or cannot be read.
    pub fn rates(&self) -> Result<Vec<RateRow>, ResultsError> {
        let mut rows = Vec::new();
        self.each_rate(|row| rows.push(row))?;
        Ok(rows)
    }

    /// Calls `f` with each row of [`Results::flows`] in order; at most one row group is in memory.
    ///
    /// # Errors
    /// If the table is damaged or cannot be read.
    pub fn each_flow(&self, mut f: impl FnMut(FlowRow)) -> Result<(), ResultsError> {
        self.each_group("flows", |t| {
            let (id, src, dst) = (t.ints("id")?, t.ints("src")?, t.ints("dst")?);
            let (bytes, start) = (t.maybe_ints("bytes")?, t.times("start_ns")?);
            let (fct, fct_ack) = (t.maybe_times("fct_ns")?, t.maybe_times("fct_ack_ns")?);
            let (ideal, slowdown) = (t.maybe_times("ideal_fct_ns")?, t.maybe_floats("slowdown")?);
            let (again, finished) = (t.ints("retransmitted_bytes")?, t.flags("finished")?);
            let (delivered, group, reordered) =
                (t.ints("delivered_bytes")?, t.ints("group")?, t.ints("reordered_bytes")?);
            let (mean, max) = (t.maybe_times("reordering_mean_ns")?, t.maybe_times("reordering_max_ns")?);
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
                reordered_bytes: reordered[i],
                reordering_mean_ns: mean[i],
                reordering_max_ns: max[i],
            };
            (0..t.n_rows).map(row).for_each(&mut f);
            Ok(())
        })
    }

    /// Calls `f` with each row of [`Results::ports`] in order; at most one row group is in memory.
    ///
    /// # Errors
    /// If the table is damaged or cannot be read.
    pub fn each_port(&self, mut f: impl FnMut(PortRow)) -> Result<(), ResultsError> {
        self.each_group("ports", |t| {
            let (time, node, port) = (t.times("t_ns")?, t.ints("node")?, t.texts("port")?);
            let (qlen, tx) = (t.ints("qlen_bytes")?, t.ints("tx_bytes")?);
            let (drops, marks, pause) = (t.ints("drops")?, t.ints("ecn_marks")?, t.times("pfc_pause_ns")?);
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
            (0..t.n_rows).map(row).for_each(&mut f);
            Ok(())
        })
    }

    /// Calls `f` with each row of [`Results::rates`] in order; at most one row group is in memory.
    ///
    /// # Errors
    /// If the table is damaged or cannot be read.
    pub fn each_rate(&self, mut f: impl FnMut(RateRow)) -> Result<(), ResultsError> {
        self.each_group("rates", |t| {
            let (time, flow, cwnd) = (t.times("t_ns")?, t.ints("flow")?, t.maybe_ints("cwnd_bytes")?);
            let (rate, delivered) = (t.ints("rate_bps")?, t.ints("delivered_bytes")?);
            let (rtt, again) = (t.maybe_times("rtt_ns"), t.maybe_ints("retransmitted_bytes"));
            let (rtt, again) = (t.or_none(rtt)?, t.or_none(again)?);
            let row = |i: usize| RateRow {
                t_ns: time[i],
                flow: flow[i] as u32,
                cwnd_bytes: cwnd[i],
                rate_bps: rate[i],
                delivered_bytes: delivered[i],
                rtt_ns: rtt[i],
                retransmitted_bytes: again[i],
            };
            (0..t.n_rows).map(row).for_each(&mut f);
            Ok(())
        })
    }

    /// Returns all PFC pause and resume frames, in order of time.
    ///
    /// # Errors
    /// If the table is damaged or cannot be read.
    pub fn pfc(&self) -> Result<Vec<PfcRow>, ResultsError> {
        let mut rows = Vec::new();
        self.each_group("pfc", |t| {
            let (time, node, port) = (t.times("t_ns")?, t.ints("node")?, t.texts("port")?);
            let (pause, class) = (t.flags("pause")?, t.ints("class")?);
            let row = |i: usize| PfcRow {
                t_ns: time[i],
                node: node[i] as u32,
                port: Arc::clone(&port[i]),
                pause: pause[i],
                class: class[i] as u8,
            };
            rows.extend((0..t.n_rows).map(row));
            Ok(())
        })?;
        Ok(rows)
    }

    /// Returns all arrivals and departures of flows with the time until the rates settled; empty without such a probe.
    ///
    /// # Errors
    /// If the table is damaged or cannot be read.
    pub fn convergence(&self) -> Result<Vec<ConvergenceRow>, ResultsError> {
        let mut rows = Vec::new();
        self.each_group("convergence", |t| {
            let (time, flow, arrival) = (t.times("t_ns")?, t.ints("flow")?, t.flags("arrival")?);
            let (n_flows, took, rtts) = (t.ints("n_flows")?, t.maybe_times("time_ns")?, t.maybe_floats("rtts")?);
            let row = |i: usize| ConvergenceRow {
                t_ns: time[i],
                flow: flow[i] as u32,
                arrival: arrival[i],
                n_flows: n_flows[i] as u32,
                time_ns: took[i],
                rtts: rtts[i],
            };
            rows.extend((0..t.n_rows).map(row));
            Ok(())
        })?;
        Ok(rows)
    }

    /// Checks a table and calls `f` with each of its row groups.
    fn each_group(
        &self,
        table: &str,
        mut f: impl FnMut(&mut Group<'_>) -> Result<(), ResultsError>,
    ) -> Result<(), ResultsError> {
        self.verify_table(table)?;
        let path = self.dir.join(format!("{table}.parquet"));
        let file = File::open(&path).map_err(|e| ResultsError::io(&path, e))?;
        let fail = |e| ResultsError::parquet(&path, e);
        let reader = SerializedFileReader::new(file).map_err(fail)?;
        let mut words = HashMap::new();
        for i in 0..reader.num_row_groups() {
            let group = reader.get_row_group(i).map_err(fail)?;
            let n_rows = usize::try_from(group.metadata().num_rows()).unwrap_or(0);
            f(&mut Group { path: &path, reader: group.as_ref(), n_rows, words: &mut words })?;
        }
        Ok(())
    }
}

/// Largest number of rows for which memory is reserved before they are read; a damaged file may state too many.
const MOST_ROWS_AT_ONCE: usize = 1 << 16;

/// A row group being read column by column.
struct Group<'a> {
    path: &'a Path,
    reader: &'a dyn RowGroupReader,
    n_rows: usize,
    /// Texts read so far, each stored once: a few texts occur again and again.
    words: &'a mut HashMap<Vec<u8>, Arc<str>>,
}

impl Group<'_> {
    fn ints(&mut self, name: &str) -> Result<Vec<u64>, ResultsError> {
        Ok(self.maybe_ints(name)?.into_iter().map(Option::unwrap_or_default).collect())
    }

    fn maybe_ints(&mut self, name: &str) -> Result<Vec<Option<u64>>, ResultsError> {
        self.column::<Int64Type, _>(name, "int64", i64::unsigned_abs)
    }

    /// Returns a column of times in whole nanoseconds; NaN for null.
    fn times(&mut self, name: &str) -> Result<Vec<f64>, ResultsError> {
        Ok(self.maybe_times(name)?.into_iter().map(|x| x.unwrap_or(f64::NAN)).collect())
    }

    fn maybe_times(&mut self, name: &str) -> Result<Vec<Option<f64>>, ResultsError> {
        self.column::<Int64Type, _>(name, "int64", |ns| ns as f64)
    }

    /// Replaces a missing column, as in tables of older programs, by `None` for each row.
    fn or_none<T: Clone>(&self, column: Result<Vec<Option<T>>, ResultsError>) -> Result<Vec<Option<T>>, ResultsError> {
        match column {
            Err(ResultsError::NoColumn { .. }) => Ok(vec![None; self.n_rows]),
            other => other,
        }
    }

    fn maybe_floats(&mut self, name: &str) -> Result<Vec<Option<f64>>, ResultsError> {
        self.column::<DoubleType, _>(name, "double", |x| x)
    }

    fn flags(&mut self, name: &str) -> Result<Vec<bool>, ResultsError> {
        let flags = self.column::<BoolType, _>(name, "boolean", |b| b)?;
        Ok(flags.into_iter().map(Option::unwrap_or_default).collect())
    }

    fn texts(&mut self, name: &str) -> Result<Vec<Arc<str>>, ResultsError> {
        let mut words = std::mem::take(self.words);
        let text = |bytes: ByteArray| {
            if let Some(text) = words.get(bytes.data()) {
                return Arc::clone(text);
            }
            let text: Arc<str> = Arc::from(String::from_utf8_lossy(bytes.data()));
            words.insert(bytes.data().to_vec(), Arc::clone(&text));
            text
        };
        let texts = self.column::<ByteArrayType, _>(name, "text", text);
        *self.words = words;
        Ok(texts?.into_iter().map(|t| t.unwrap_or_else(|| Arc::from(""))).collect())
    }

    fn column<T: DataType, R>(
        &mut self,
        name: &str,
        wanted: &'static str,
        convert: impl FnMut(T::T) -> R,
    ) -> Result<Vec<Option<R>>, ResultsError> {
        let is_wanted = |i: &usize| {
            let column = self.reader.metadata().column(*i).column_descr();
            let is_flat = column.max_rep_level() == 0 && column.path().parts().len() == 1;
            is_flat && column.name() == name && column.physical_type() == T::get_physical_type()
        };
        let Some(i) = (0..self.reader.num_columns()).find(is_wanted) else {
            return Err(ResultsError::NoColumn { path: self.path.to_owned(), column: name.to_owned(), wanted });
        };
        read_chunk::<T, R>(self.reader, i, self.n_rows, convert).map_err(|e| ResultsError::parquet(self.path, e))
    }
}

fn read_chunk<T: DataType, R>(
    group: &dyn RowGroupReader,
    column: usize,
    n_rows: usize,
    convert: impl FnMut(T::T) -> R,
) -> Result<Vec<Option<R>>, ParquetError> {
    let optional = 0 < group.metadata().column(column).column_descr().max_def_level();
    let mut reader = get_typed_column_reader::<T>(group.get_column_reader(column)?);
    let (mut values, mut levels) = (Vec::with_capacity(n_rows.min(MOST_ROWS_AT_ONCE)), Vec::new());
    let mut read = 0;
    while read < n_rows {
        let (rows, _, _) = reader.read_records(n_rows - read, optional.then_some(&mut levels), None, &mut values)?;
        if rows == 0 {
            return Err(ParquetError::General(format!("a column ends after {read} of {n_rows} rows")));
        }
        read += rows;
    }
    let mut values = values.into_iter().map(convert);
    let column: Vec<Option<R>> = if optional {
        levels.iter().map(|level| if *level == 0 { None } else { values.next() }).collect()
    } else {
        values.map(Some).collect()
    };
    if column.len() == n_rows {
        Ok(column)
    } else {
        Err(ParquetError::General(format!("a column has {} values in {n_rows} rows", column.len())))
    }
}
