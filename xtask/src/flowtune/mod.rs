//! `cargo xtask validate flowtune`: what the Flowtune paper states about its evaluation beside what is measured here.

mod churn;
mod completion;
mod network;
mod normalization;
mod updates;

use std::path::Path;

use crate::paper::{self, Options};

/// Runs the comparison.
///
/// # Errors
/// If a run fails.
pub fn run(root: &Path, options: &Options) -> Result<bool, String> {
    let mut jobs = network::jobs(root, options);
    jobs.extend(normalization::jobs(options));
    paper::validate(root, "flowtune", options, jobs, |measured| {
        let mut claims = paper::Claims::default();
        network::claims(&mut claims, measured, options);
        normalization::claims(&mut claims, measured, options);
        claims.0
    })
}
