//! `cargo xtask validate ratemp`: what the RateMP paper states about its testbed and its large networks beside what this
//! simulator measures.
//!
//! Without an option the fabrics have 108 hosts and one seed, with `--full` the paper's 500 hosts and three seeds, and
//! tables of them are written to `validation/ratemp`.

mod claims;
mod fabric;
mod rtts;
mod settings;
mod tables;
mod testbed;

use std::path::Path;

use crate::paper::{self, Job, Options};

/// Runs the comparison.
///
/// # Errors
/// If a scenario does not build, a run stalls, or the tables cannot be written.
pub fn run(root: &Path, options: &Options) -> Result<bool, String> {
    let mut jobs: Vec<Job> = testbed::jobs(root, options);
    jobs.extend(fabric::jobs(root, options));
    let mut written = Ok(());
    let outcome = paper::validate(root, "ratemp", options, jobs, |measured| {
        if options.full {
            written = tables::write(root, measured);
        }
        claims::all(measured)
    });
    written.and(outcome)
}
