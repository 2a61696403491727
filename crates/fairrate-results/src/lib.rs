//! The results directory of a run: Parquet tables that grow with it, a summary, the resolved scenario.
//!
//! [`ResultsWriter`] writes a run's results while it runs, [`Results`] reads them. A results directory contains
//!
//! - a file `NAME.parquet` for each of the [`TABLES`], such as `flows.parquet` with a [`FlowRow`] in every row. Nodes
//!   are ids, ports are called `from->to` by the names of nodes, and the unit of every column is in the file's metadata
//!   as `unit:COLUMN`. Values that do not exist (the FCT of an unfinished flow, the bytes of an endless one, the window
//!   of an algorithm without) are null. Every row also has `cc`, `label`, `seed` and the [`Tag`]s of its run. The files
//!   are whole at every moment of the run.
//! - `summary.json`: see [`Summary`]. Until the run has ended its `state` is `running`.
//! - `scenario.toml`, the resolved scenario, and beside it the files it names, so that it runs as it is.

mod by_name;
mod collectives;
mod columns;
mod copy;
mod dir;
mod engine;
mod first_summary;
mod flow_row;
mod growing;
mod inputs;
mod jobs;
mod links;
mod linux;
mod measured;
mod names;
mod ranges;
mod rank;
mod read;
mod recovery;
mod rows;
mod rtts;
mod summary;
mod table;
mod tags;
mod value;
mod writer;

use std::path::{Path, PathBuf};

use miette::Diagnostic;

/// The commit that this program was built from.
const COMMIT: &str = env!("FAIRRATE_COMMIT");

/// A hash of the sources that determine the results of a run: programs built from the same sources give the same
/// results.
pub const SOURCES: &str = env!("FAIRRATE_SOURCES");

pub use collectives::CollectiveSummary;
pub use dir::{ResultsDir, write_durably, write_whole};
pub use engine::Engine;
pub use inputs::RunInputs;
pub use jobs::JobSummary;
pub use linux::{BusyPort, DelaySummary, LinuxSummary};
pub use measured::{GroupShare, Measured, TierLoad, jain};
pub use ranges::Ranges;
pub use rank::nearest_rank;
pub use read::Results;
pub use recovery::RecoverySummary;
pub use rows::*;
pub use summary::{
    AllocatorSummary, Convergence, Deadlines, FctBucket, PortInfo, Quantiles, RunState, SIZE_BOUNDS, Summary, TableInfo,
};
pub use table::{ColumnSpec, TableSpec};
pub use tags::{Tag, TagValue};
pub use value::Text;
pub use writer::ResultsWriter;

/// An error of writing or reading results.
#[derive(Debug, thiserror::Error)]
pub enum ResultsError {
    /// An error of the operating system.
    #[error("{}: {cause}", path.display())]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// The cause.
        cause: std::io::Error,
    },
    /// A table that is damaged or cannot be written.
    #[error("{}: {cause}", path.display())]
    Parquet {
        /// The table.
        path: PathBuf,
        /// The cause.
        cause: parquet::errors::ParquetError,
    },
    /// A damaged `summary.json`.
    #[error("{}: {cause}", path.display())]
    Summary {
        /// The file.
        path: PathBuf,
        /// The cause.
        cause: serde_json::Error,
    },
    /// A directory for results that contains other files.
    #[error("`{}` holds something else than results", path.display())]
    Occupied {
        /// The directory.
        path: PathBuf,
    },
    /// A directory for a run that contains a comparison, or the reverse.
    #[error("`{}` holds {found}, not {wanted}", path.display())]
    OtherKind {
        /// The directory.
        path: PathBuf,
        /// Its content in words.
        found: &'static str,
        /// The content it should have, in words.
        wanted: &'static str,
    },
    /// A directory to which another process writes.
    #[error("another fairrate is writing to `{}`", path.display())]
    InUse {
        /// The directory.
        path: PathBuf,
    },
    /// A file of a results directory that differs from the file written there.
    #[error("`{}` is damaged: {problem}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The sign of the damage.
        problem: String,
    },
    /// Results with another schema than this fairrate reads.
    #[error("`{}` is of schema {found}, and this fairrate reads {SCHEMA}", path.display())]
    Schema {
        /// The file.
        path: PathBuf,
        /// The schema stated in the file.
        found: String,
    },
    /// A directory without results.
    #[error("`{}` holds no results: there is no `summary.json`", path.display())]
    NoResults {
        /// The directory.
        path: PathBuf,
    },
    /// A run of a comparison whose directory another run has taken.
    #[error("`{}` holds another run than the comparison's", path.display())]
    Replaced {
        /// The directory.
        path: PathBuf,
    },
    /// A table that lacks a column, or has a column of that name with another type.
    #[error("`{}` has no column `{column}` of type {wanted}", path.display())]
    NoColumn {
        /// The table.
        path: PathBuf,
        /// The column.
        column: String,
        /// Its expected type.
        wanted: &'static str,
    },
}

impl ResultsError {
    /// Returns the file or directory that the error is about.
    pub fn path(&self) -> &Path {
        match self {
            Self::Io { path, .. }
            | Self::Parquet { path, .. }
            | Self::Summary { path, .. }
            | Self::Occupied { path }
            | Self::OtherKind { path, .. }
            | Self::InUse { path }
            | Self::Damaged { path, .. }
            | Self::Schema { path, .. }
            | Self::NoResults { path }
            | Self::Replaced { path }
            | Self::NoColumn { path, .. } => path,
        }
    }

    fn io(path: &Path, cause: std::io::Error) -> Self {
        Self::Io { path: path.to_owned(), cause }
    }
    fn parquet(path: &Path, cause: parquet::errors::ParquetError) -> Self {
        Self::Parquet { path: path.to_owned(), cause }
    }
}

impl Diagnostic for ResultsError {
    fn code<'a>(&'a self) -> Option<Box<dyn std::fmt::Display + 'a>> {
        Some(Box::new(match self {
            Self::Io { .. } => "results::io",
            Self::Parquet { .. } | Self::Summary { .. } | Self::NoColumn { .. } | Self::Damaged { .. } => {
                "results::damaged"
            }
            Self::InUse { .. } => "results::in_use",
            Self::Schema { .. } => "results::schema",
            Self::Occupied { .. } | Self::OtherKind { .. } => "results::occupied",
            Self::NoResults { .. } => "results::none",
            Self::Replaced { .. } => "results::replaced",
        }))
    }
    fn help<'a>(&'a self) -> Option<Box<dyn std::fmt::Display + 'a>> {
        let help = match self {
            Self::Occupied { .. } => "choose a new or empty directory with `--out`, or one that fairrate has made",
            Self::OtherKind { .. } => "choose another directory with `--out`: a run and a comparison do not share one",
            Self::NoResults { .. } => "give the directory that a run wrote with `--out`",
            Self::Replaced { .. } => {
                "repeat the comparison by the same `fairrate compare`; single runs have other directories"
            }
            Self::InUse { .. } => "wait until it has ended, or choose another directory with `--out`",
            Self::Parquet { .. }
            | Self::Summary { .. }
            | Self::NoColumn { .. }
            | Self::Damaged { .. }
            | Self::Schema { .. } => "run the scenario again",
            Self::Io { .. } => return None,
        };
        Some(Box::new(help))
    }
}

/// Name of the summary's file.
const SUMMARY: &str = "summary.json";
/// Name of the resolved scenario's file.
const SCENARIO: &str = "scenario.toml";
/// The schema of results: the number changes when a column, a field or a meaning changes or is removed. Results of
/// version 1 contained no schema; their times were real numbers, and their tables had no `cc`, `label` and `seed`.
/// Version 2 had no measuring window, left unfinished flows out of `fct`, and called a flow finished once its last byte
/// was acknowledged.
const SCHEMA: &str = "fairrate.results/3";
