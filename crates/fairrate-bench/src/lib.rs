//! The parts of fairrate that are timed: the jobs of `fairrate bench`, and what figures that measure time need:
//! networks of the Flowtune paper, Fastpass's arbiter under load, and a clock.
//!
//! It is a crate of its own because timed code is compiled like the simulator, for speed, and commands and figures are
//! not.

mod acks;
pub mod allocate;
mod fastpass;
pub mod fastpass_arbiter;
pub mod flowtune_networks;
pub mod kernels;
pub mod predict;
pub mod scenarios;
pub mod timing;

pub use acks::names as algorithms;

use fairrate_results::nearest_rank;
use fairrate_scenario::ScenarioError;
use timing::times_us;

/// The reason why a job could not be measured.
#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    /// A scenario that cannot be run.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// A run that failed.
    #[error("{job} under {cc} failed: {cause}")]
    Run {
        /// The job.
        job: String,
        /// The algorithm.
        cc: String,
        /// The cause.
        cause: String,
    },
}

/// Returns the time of one call of `act` in microseconds: median, smallest and largest of `runs` averages over half a
/// millisecond.
fn time_us(runs: usize, act: impl FnMut()) -> [f64; 3] {
    median_min_max(&mut times_us(runs, act))
}

/// Returns median, smallest and largest of `values`, which has at least one value.
fn median_min_max(values: &mut [f64]) -> [f64; 3] {
    values.sort_by(f64::total_cmp);
    let median = nearest_rank(values.len(), 0.5).expect("there is a value");
    [values[median], values[0], values[values.len() - 1]]
}

/// Returns lines of fields under titles: the first column aligned to the left, the others to the right.
fn aligned<const N: usize>(titles: &[&str; N], texts: impl Iterator<Item = [String; N]>) -> String {
    let lines: Vec<[String; N]> = std::iter::once(titles.map(str::to_owned)).chain(texts).collect();
    fairrate_text::aligned(&lines, 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_in_order() {
        let mut calls = 0_u64;
        let [median, min, max] = time_us(5, || calls += 1);
        assert!(min <= median && median <= max && 45 <= calls);
    }
}
