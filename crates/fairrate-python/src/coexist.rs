//! `fairrate coexist`, for Python.

use std::path::Path;

use fairrate_report::bootstrap::Estimate;
use fairrate_report::heat_map::Verdict;
use pyo3::prelude::*;

use crate::errors;
use crate::scenario::algorithms;

/// Returns the study of two algorithms: the scenario, the networks as pairs of file name and text, the cases as
/// variants, the buffers, the names of the two traffic blocks, and the layout of the heat maps as JSON. `options` are
/// those of the command.
#[pyfunction]
#[allow(clippy::type_complexity)] // Python takes it apart at once.
pub fn coexistence(
    py: Python<'_>,
    a: &str,
    b: &str,
    options: Vec<String>,
) -> PyResult<(String, Vec<(String, String)>, Vec<String>, Vec<String>, [String; 2], String)> {
    let study = fairrate_cli::coexistence(a, b, &options, &algorithms())
        .map_err(|failure| errors::of_diagnostic(py, &*failure, Path::new("")))?;
    let networks = study.networks.into_iter().map(|(name, text)| (name.to_owned(), text)).collect();
    Ok((study.scenario, networks, study.variants, study.buffers, study.blocks, study.heat_maps.to_json()))
}

/// A share over seeds: its mean, the ends of its 95 % interval, and its verdict.
type Share = (f64, Option<f64>, Option<f64>, &'static str);

/// Returns the share with these `values`, one a seed, in per cent of a fair one; `None` without values.
#[pyfunction]
pub fn coexistence_share(values: Vec<f64>) -> Option<Share> {
    let share = Estimate::of(&values)?;
    let (low, high) = (share.interval.map(|i| i.low), share.interval.map(|i| i.high));
    Some((share.mean, low, high, Verdict::of(&share).word()))
}

/// Returns the names of the metrics of a study, with the numbers of traffic blocks.
#[pyfunction]
pub fn coexistence_metrics() -> Vec<&'static str> {
    fairrate_cli::coexistence_metrics()
}

/// Returns the verdict of `fairrate coexist` on cases, each a label, the buffer in words, and the values of metrics,
/// one a seed.
#[pyfunction]
pub fn coexistence_verdict(
    blocks: [String; 2],
    cases: Vec<(String, String, std::collections::HashMap<String, Vec<f64>>)>,
) -> String {
    let case = |(label, point, values)| fairrate_cli::CoexistenceCase { label, point, values };
    let cases: Vec<_> = cases.into_iter().map(case).collect();
    fairrate_cli::coexistence_verdict(&blocks, &cases).trim_end().to_owned()
}
