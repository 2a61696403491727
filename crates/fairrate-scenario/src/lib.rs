//! Scenario files and results directories.
//!
//! A [`Scenario`] that exists is runnable: reading it checks every key, every name and every quantity, and every
//! problem is reported in a [`ScenarioError`] with its place in the file and a remedy. Every default of fairrate is
//! defined in this crate, with its source.
//!
//! [`ResultsWriter`] writes a run's results while it runs, [`Results`] reads them. A results directory contains
//!
//! - a file `NAME.parquet` for each of the [`TABLES`], such as `flows.parquet` with a [`FlowRow`] in every row. Nodes
//!   are ids, ports are called `from->to` by the names of nodes, and the unit of every column is in the file's metadata
//!   as `unit:COLUMN`. Values that do not exist (the FCT of an unfinished flow, the bytes of an endless one, the window
//!   of an algorithm without) are null. Every row also has `cc`, `label`, `seed` and the [`Tag`]s of its run. The files are whole at every moment of the run.
//! - `summary.json`: see [`Summary`]. Until the run has ended its `state` is `running`.
//! - `scenario.toml`, the resolved scenario, and beside it the files it names, so that it runs as it is.

pub mod columns;
mod drive;
mod error;
mod json_schema;
mod memory;
mod overrides;
mod place;
mod reader;
mod results;
mod samples;
mod scalar;
mod scenario;
mod schema;
mod tree;

pub use drive::{Watch, drive};
pub use error::{ScenarioError, printable};
pub use json_schema::json_schema;
pub use memory::{available_memory, shown_bytes};
pub use overrides::Overrides;
pub use place::ProblemParts;
pub use results::rows::*;
pub use results::{
    AllocatorSummary, BusyPort, ColumnSpec, Convergence, Deadlines, DelaySummary, DropsByCause, Engine, FctBucket,
    LinuxSummary, Measured, PortInfo, Quantiles, Results, ResultsDir, ResultsError, ResultsWriter, RunState, SOURCES,
    Summary, TableInfo, TableSpec, Tag, TagValue, Text, TierLoad, write_durably, write_whole,
};
#[doc(hidden)]
pub use samples::samples;
pub use scenario::{Reader, Scenario};
pub use schema::Window;
