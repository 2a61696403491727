//! Runs of scenarios into results directories, and plans of several.
//!
//! [`drive()`] runs a [`Scenario`](fairrate_scenario::Scenario) and writes its results meanwhile; [`columns`] plans a
//! comparison of algorithms.

pub mod columns;
mod drive;
mod inputs;

pub use drive::{Watch, drive};
pub use inputs::{complete_run_of, copy_run, inputs_of};
