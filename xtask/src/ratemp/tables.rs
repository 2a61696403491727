//! The numbers of the large networks as files, one a figure.

use std::fmt::Write;
use std::path::Path;

use super::fabric::{FIGURES, Hosts, LOADS, job_name};
use super::settings::RUNS;
use crate::paper::Measured;

/// Of all flows, and of those that are small, large, and many to one.
const COLUMNS: [&str; 21] = [
    "n",
    "unfinished",
    "drops",
    "rate",
    "rate-over-time",
    "goodput",
    "utility",
    "rtt",
    "rtt-p99",
    "fct",
    "fct-p99",
    "small-n",
    "small-rate",
    "small-fct",
    "small-fct-p99",
    "large-n",
    "large-rate",
    "large-fct",
    "in-n",
    "in-rate",
    "in-fct",
];

/// Writes the figures that were run.
///
/// # Errors
/// If a file cannot be written.
pub fn write(root: &Path, measured: &Measured) -> Result<(), String> {
    for (hosts, (figure, _)) in Hosts::ALL.into_iter().flat_map(|hosts| FIGURES.map(|figure| (hosts, figure))) {
        if !LOADS.iter().any(|load| measured.has(&job_name(figure, hosts, load))) {
            continue;
        }
        let path = root.join("validation/ratemp").join(format!("{figure}{}.csv", hosts.suffix()));
        std::fs::write(&path, table(figure, hosts, measured)).map_err(|e| format!("{}: {e}", path.display()))?;
    }
    Ok(())
}

/// A line a load and algorithm: of each number the mean over seeds and the standard deviation.
fn table(figure: &str, hosts: Hosts, measured: &Measured) -> String {
    let mut out = "load,algorithm".to_owned();
    for name in COLUMNS {
        let _ = write!(out, ",{name},~{name}");
    }
    out.push('\n');
    for load in LOADS {
        for run in RUNS {
            let job = job_name(figure, hosts, load);
            if measured.get(&job, run, "n").is_nan() {
                continue;
            }
            let _ = write!(out, "{load},{run}");
            for name in COLUMNS {
                for name in [name.to_owned(), format!("~{name}")] {
                    let value = measured.get(&job, run, &name);
                    let shown = if value.is_finite() { format!("{value:.4}") } else { String::new() };
                    let _ = write!(out, ",{shown}");
                }
            }
            out.push('\n');
        }
    }
    out
}
