//! `cargo xtask validate perc`: what the PERC paper states about its evaluation beside what this simulator measures.
//!
//! The paper's rates are rates of links. So are ours here: payload is counted with its headers.

mod claims;
mod runs;

use std::path::Path;

use crate::paper::{self, Options};

/// Runs the comparison.
///
/// # Errors
/// If a scenario does not build or a run stalls.
pub fn run(root: &Path, options: &Options) -> Result<bool, String> {
    paper::validate(root, "perc", options, runs::jobs(root, options), claims::all)
}
