//! Scenario files and results directories.
//!
//! A [`Scenario`] that exists is runnable: reading one checks every key, every name and every quantity, and
//! what is wrong becomes a [`ScenarioError`] with the place in the file and a way out. Every default of
//! fairrate lives in here, with its source. [`ResultsWriter`] writes a run's results as it goes, [`Results`]
//! reads them.

mod error;
mod overrides;
mod reader;
mod results;
mod scalar;
mod scenario;
mod schema;
mod tree;

pub use error::ScenarioError;
pub use overrides::Overrides;
pub use results::{
    FctBucket, FlowRow, PfcRow, PortInfo, PortRow, Quantiles, RateRow, Results, ResultsError, ResultsWriter, RunState,
    Summary,
};
pub use scenario::Scenario;
