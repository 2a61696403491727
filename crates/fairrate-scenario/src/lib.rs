//! Scenario files.
//!
//! A [`Scenario`] that exists is runnable: reading it checks every key, every name and every quantity, and every
//! problem is reported in a [`ScenarioError`] with its place in the file and a remedy. Every default of fairrate is
//! defined in this crate, with its source.

mod block_names;
pub mod chakra;
mod constants;
mod error;
pub mod htsim;
mod imported_job;
mod json_schema;
mod memory;
pub mod ns3;
mod overrides;
mod place;
mod reader;
mod samples;
mod scalar;
mod scenario;
mod schema;
pub mod simai;
mod tree;

pub use block_names::traffic_block_names;
pub use error::{ScenarioError, printable};
pub use imported_job::ImportedJob;
pub use json_schema::json_schema;
pub use memory::{FLOW_BYTES, available_memory, shown_bytes};
pub use overrides::Overrides;
pub use place::ProblemParts;
#[doc(hidden)]
pub use samples::samples;
pub use scenario::{Reader, Scenario};
pub use schema::Window;
