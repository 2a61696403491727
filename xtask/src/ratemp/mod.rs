//! `cargo xtask validate ratemp`: what the RateMP paper states about its testbed and its large networks beside what this
//! simulator measures.
//!
//! Without an option the fabrics have 108 hosts and one seed, with `--full` the paper's 500 hosts and several seeds, and
//! tables of them are written to `validation/ratemp`. Hosts have 25 Gb/s, and in a second set of runs 100.

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
        // A part of the runs would leave tables with a part of their rows.
        if options.full && !options.quick && options.only.is_none() {
            written = tables::write(root, measured);
        }
        claims::all(measured)
    });
    written.and(outcome)
}
