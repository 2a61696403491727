//! `fairrate explain`, for Python.

use std::path::{Path, PathBuf};

use fairrate_control::Registry;
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;

use crate::errors;
use crate::run::Signals;
use crate::scenario::algorithms;

/// The text that `fairrate explain --json` prints; `None` if the run was stopped.
type Explained = Result<Option<String>, Box<dyn miette::Diagnostic + Send + Sync>>;

/// Returns the text that `fairrate explain --json` prints for a flow, or for the `worst` flows of a size class and a
/// traffic block.
#[pyfunction]
pub fn explain(
    py: Python<'_>,
    dir: PathBuf,
    flow: Option<u32>,
    worst: u32,
    class: Option<String>,
    block: Option<String>,
) -> PyResult<String> {
    explained(py, &dir, |registry, signals| {
        fairrate_cli::explain_json(&dir, flow, worst, (class, block), registry, signals)
    })
}

/// Returns the text that `fairrate explain --iteration --json` prints for an iteration of a traffic block.
#[pyfunction]
pub fn explain_iteration(py: Python<'_>, dir: PathBuf, iteration: u32, block: Option<String>) -> PyResult<String> {
    explained(py, &dir, |registry, signals| {
        fairrate_cli::explain_iteration_json(&dir, iteration, block, registry, signals)
    })
}

/// Returns the text of `explain`, which runs the scenario of `dir` until a signal of Python stops it.
fn explained(
    py: Python<'_>,
    dir: &Path,
    explain: impl FnOnce(&Registry, &mut Signals) -> Explained + Send,
) -> PyResult<String> {
    let mut signals = Signals::default();
    let done = py.detach(|| explain(&algorithms(), &mut signals));
    if let Some(error) = signals.raised {
        return Err(error);
    }
    match done {
        Ok(Some(text)) => Ok(text),
        Ok(None) => Err(PyKeyboardInterrupt::new_err(())),
        Err(failure) => Err(errors::of_diagnostic(py, &*failure, dir)),
    }
}
