//! The statistics of reports, for values from Python.

use fairrate_report::bootstrap::{Difference, Estimate, Interval};
use fairrate_report::stats;
use pyo3::prelude::*;

type Ends = Option<(f64, f64)>;

fn ends(interval: Option<Interval>) -> Ends {
    interval.map(|i| (i.low, i.high))
}

/// Returns the nearest-rank percentiles at fractions `p`; `None` without values.
#[pyfunction]
pub fn percentile(py: Python<'_>, values: Vec<f64>, p: Vec<f64>) -> Vec<Option<f64>> {
    py.detach(|| {
        let sorted = stats::sorted(values);
        p.iter().map(|p| stats::percentile(&sorted, *p)).collect()
    })
}

/// Returns the arithmetic mean.
#[pyfunction]
pub fn mean(values: Vec<f64>) -> Option<f64> {
    stats::mean(&values)
}

/// Returns Jain's index.
#[pyfunction]
pub fn jain(shares: Vec<f64>) -> Option<f64> {
    stats::jain(&shares)
}

/// Returns half the width of Student's 95 % interval of a mean.
#[pyfunction]
pub fn student_half_width(values: Vec<f64>) -> Option<f64> {
    stats::student_half_width(&values)
}

/// Returns number, mean and bootstrap interval of one value for each seed.
#[pyfunction]
pub fn estimate(py: Python<'_>, values: Vec<f64>) -> Option<(usize, f64, Ends)> {
    py.detach(|| Estimate::of(&values)).map(|e| (e.n, e.mean, ends(e.interval)))
}

/// Returns number, mean and interval of paired differences, their ratio and its interval, and true if the differences
/// are clear.
#[pyfunction]
pub fn difference(py: Python<'_>, pairs: Vec<(f64, f64)>) -> Option<(usize, f64, Ends, Option<f64>, Ends, bool)> {
    let found = py.detach(|| Difference::of(&pairs))?;
    Some((found.n, found.mean, ends(found.interval), found.ratio, ends(found.ratio_interval), found.is_clear()))
}
