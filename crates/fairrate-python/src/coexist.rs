//! `fairrate coexist`, for Python.

use std::path::Path;

use pyo3::prelude::*;

use crate::errors;
use crate::scenario::algorithms;

/// Returns the study of two algorithms: the scenario, the networks as pairs of file name and text, the cases as variants, the buffers,
/// and the names of the two traffic blocks. `options` are those of the command.
#[pyfunction]
#[allow(clippy::type_complexity)] // Python takes it apart at once.
pub fn coexistence(
    py: Python<'_>,
    a: &str,
    b: &str,
    options: Vec<String>,
) -> PyResult<(String, Vec<(String, String)>, Vec<String>, Vec<String>, [String; 2])> {
    let study = fairrate_cli::coexistence(a, b, &options, &algorithms())
        .map_err(|failure| errors::of_diagnostic(py, &*failure, Path::new("")))?;
    let networks = study.networks.into_iter().map(|(name, text)| (name.to_owned(), text)).collect();
    Ok((study.scenario, networks, study.variants, study.buffers, study.blocks))
}

/// Returns the verdict of `fairrate coexist` on cases, each a label and the share of a fair one that the first block gets.
#[pyfunction]
pub fn coexistence_verdict(blocks: [String; 2], cases: Vec<(String, f64)>) -> String {
    fairrate_cli::coexistence_verdict(&blocks, cases).trim_end().to_owned()
}
