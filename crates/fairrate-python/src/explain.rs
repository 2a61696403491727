//! `fairrate explain`, for Python.

use std::path::PathBuf;

use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;

use crate::errors;
use crate::run::Signals;
use crate::scenario::algorithms;

/// Returns the text that `fairrate explain --json` prints for a flow, or for the `worst` flows of a size class and a traffic block.
#[pyfunction]
pub fn explain(
    py: Python<'_>,
    dir: PathBuf,
    flow: Option<u32>,
    worst: u32,
    class: Option<String>,
    block: Option<String>,
) -> PyResult<String> {
    let mut signals = Signals::default();
    let done = py.detach(|| fairrate_cli::explain_json(&dir, flow, worst, (class, block), &algorithms(), &mut signals));
    if let Some(error) = signals.raised {
        return Err(error);
    }
    match done {
        Ok(Some(text)) => Ok(text),
        Ok(None) => Err(PyKeyboardInterrupt::new_err(())),
        Err(failure) => Err(errors::of_diagnostic(py, &*failure, &dir)),
    }
}
