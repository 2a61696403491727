//! Reading of results.

use std::fs::File;
use std::hash::Hasher as _;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use parquet::column::reader::get_typed_column_reader;
use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader, RowGroupReader};
use parquet::file::serialized_reader::SerializedFileReader;
use twox_hash::XxHash64;

use crate::rows::{FlowRow, PortRow, RateRow, TABLES};
use crate::table::Row;
use crate::value::Value;
use crate::{ResultsError, SCENARIO, SCHEMA, SUMMARY, Summary};

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
        let damaged = |cause| ResultsError::Summary { path: path.clone(), cause };
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

    /// Checks length and hash of every table against the summary. Tables of a run that goes on or was killed are not
    /// checked: the summary has no hashes of them.
    ///
    /// # Errors
    /// If one is missing or damaged.
    pub fn verify(&self) -> Result<(), ResultsError> {
        TABLES.iter().try_for_each(|table| self.verify_table(table.name))
    }

    /// Checks length and hash of the table with the name `table`.
    ///
    /// # Errors
    /// If it is missing or damaged.
    pub fn verify_table(&self, table: &str) -> Result<(), ResultsError> {
        if self.summary.tables.contains_key(table) { self.checked_table(table).map(drop) } else { Ok(()) }
    }

    /// Opens a table and checks its length and hash. A small one is then in memory; a large one's columns are read when
    /// they are wanted.
    fn checked_table(&self, table: &str) -> Result<Source, ResultsError> {
        let path = self.dir.join(format!("{table}.parquet"));
        let io = |e| ResultsError::io(&path, e);
        let mut file = File::open(&path).map_err(io)?;
        let len = file.metadata().map_err(io)?.len();
        let Some(info) = self.summary.tables.get(table) else { return Ok(Source::Disk(file)) };
        let damaged = |problem: String| ResultsError::Damaged { path: path.clone(), problem };
        if len != info.bytes {
            return Err(damaged(format!("it has {len} bytes, and had {} when the run ended", info.bytes)));
        }
        let is_small = len <= MOST_BYTES_AT_ONCE;
        let mut hash = XxHash64::with_seed(0);
        let mut buffer = vec![0; if is_small { len as usize } else { 1 << 16 }];
        if is_small {
            file.read_exact(&mut buffer).map_err(io)?;
            hash.write(&buffer);
        } else {
            loop {
                match file.read(&mut buffer).map_err(io)? {
                    0 => break,
                    n => hash.write(&buffer[..n]),
                }
            }
        }
        if format!("{:016x}", hash.finish()) != info.xxh64 {
            return Err(damaged("its content has changed since the run ended".to_owned()));
        }
        Ok(if is_small { Source::Memory(buffer.into()) } else { Source::Disk(file) })
    }

    /// Returns the directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Returns the path of the resolved scenario.
    pub fn scenario_path(&self) -> PathBuf {
        self.dir.join(SCENARIO)
    }

    /// Returns the text of the resolved scenario.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn scenario_toml(&self) -> Result<String, ResultsError> {
        let path = self.scenario_path();
        std::fs::read_to_string(&path).map_err(|e| ResultsError::io(&path, e))
    }

    /// Calls `f` with each row of [`Results::ports`] in order; at most one row group is in memory.
    ///
    /// # Errors
    /// If the table is damaged or cannot be read.
    pub fn each_port(&self, f: impl FnMut(PortRow)) -> Result<(), ResultsError> {
        self.each(f)
    }

    /// Calls `f` with each row of [`Results::rates`] in order; at most one row group is in memory.
    ///
    /// # Errors
    /// If the table is damaged or cannot be read.
    pub fn each_rate(&self, f: impl FnMut(RateRow)) -> Result<(), ResultsError> {
        self.each(f)
    }

    /// Calls `f` with each row of [`Results::flows`] in order; at most one row group is in memory.
    ///
    /// # Errors
    /// If the table is damaged or cannot be read.
    pub fn each_flow(&self, f: impl FnMut(FlowRow)) -> Result<(), ResultsError> {
        self.each(f)
    }

    /// Checks a table and calls `f` with each of its rows in order.
    pub(super) fn each<R: Row>(&self, mut f: impl FnMut(R)) -> Result<(), ResultsError> {
        let path = self.dir.join(format!("{}.parquet", R::TABLE.name));
        if !self.summary.tables.contains_key(R::TABLE.name) && !path.exists() {
            // An older program had no such table.
            return Ok(());
        }
        let fail = |e| ResultsError::parquet(&path, e);
        let reader: Box<dyn FileReader> = match self.checked_table(R::TABLE.name)? {
            Source::Memory(bytes) => Box::new(SerializedFileReader::new(bytes).map_err(fail)?),
            Source::Disk(file) => Box::new(SerializedFileReader::new(file).map_err(fail)?),
        };
        for i in 0..reader.num_row_groups() {
            let group = reader.get_row_group(i).map_err(fail)?;
            let n_rows = usize::try_from(group.metadata().num_rows()).unwrap_or(0);
            if MOST_ROWS_IN_GROUP < n_rows {
                let problem = format!("it has {n_rows} rows in a group, and no writer makes so large ones");
                return Err(ResultsError::Damaged { path, problem });
            }
            R::read(&Group { path: &path, reader: group.as_ref(), n_rows }, &mut f)?;
        }
        Ok(())
    }
}

/// Largest number of bytes of a table that is read at once; Parquet's reader asks for each column of a larger one.
const MOST_BYTES_AT_ONCE: u64 = 4 << 20;

/// The bytes of a table.
enum Source {
    Memory(Bytes),
    Disk(File),
}

/// Largest number of rows for which memory is reserved before they are read; a damaged file may state too many.
const MOST_ROWS_AT_ONCE: usize = 1 << 16;

/// Largest number of rows of a row group. It bounds the memory that a small file with repeated values can take; the
/// writer's groups are far smaller.
const MOST_ROWS_IN_GROUP: usize = 1 << 20;

/// A row group being read column by column.
pub(super) struct Group<'a> {
    path: &'a Path,
    reader: &'a dyn RowGroupReader,
    n_rows: usize,
}

impl Group<'_> {
    /// Returns the values of the column `name`, one for each row.
    pub fn column<V: Value>(&self, name: &str) -> Result<Vec<V>, ResultsError> {
        let is_wanted = |i: &usize| {
            let column = self.reader.metadata().column(*i).column_descr();
            let is_flat = column.max_rep_level() == 0 && column.path().parts().len() == 1;
            is_flat && column.name() == name && column.physical_type() == V::TYPE.physical()
        };
        let Some(i) = (0..self.reader.num_columns()).find(is_wanted) else {
            let (path, column, wanted) = (self.path.to_owned(), name.to_owned(), V::TYPE.name());
            return Err(ResultsError::NoColumn { path, column, wanted });
        };
        read_chunk(self.reader, i, self.n_rows).map_err(|e| ResultsError::parquet(self.path, e))
    }

    /// Replaces a missing column, as in tables of older programs, by `value` for each row.
    pub fn or<V: Value>(&self, column: Result<Vec<V>, ResultsError>, value: V) -> Result<Vec<V>, ResultsError> {
        match column {
            Err(ResultsError::NoColumn { .. }) => Ok(vec![value; self.n_rows]),
            other => other,
        }
    }
}

fn read_chunk<V: Value>(group: &dyn RowGroupReader, column: usize, n_rows: usize) -> Result<Vec<V>, ParquetError> {
    let optional = 0 < group.metadata().column(column).column_descr().max_def_level();
    let mut reader = get_typed_column_reader::<V::Stored>(group.get_column_reader(column)?);
    let (mut values, mut levels) = (Vec::with_capacity(n_rows.min(MOST_ROWS_AT_ONCE)), Vec::new());
    let mut read = 0;
    while read < n_rows {
        let (rows, _, _) = reader.read_records(n_rows - read, optional.then_some(&mut levels), None, &mut values)?;
        if rows == 0 {
            return Err(ParquetError::General(format!("a column ends after {read} of {n_rows} rows")));
        }
        read += rows;
    }
    let mut values = values.into_iter().map(V::of);
    let column: Vec<V> = if optional {
        levels.iter().filter_map(|level| if *level == 0 { Some(V::default()) } else { values.next() }).collect()
    } else {
        values.collect()
    };
    if column.len() == n_rows {
        Ok(column)
    } else {
        Err(ParquetError::General(format!("a column has {} values in {n_rows} rows", column.len())))
    }
}
