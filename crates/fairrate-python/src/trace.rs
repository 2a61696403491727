//! `fairrate trace`, for Python.

use std::path::PathBuf;

use fairrate_cli::TraceSelection;
use fairrate_units::{Bytes, Time};
use pyo3::exceptions::{PyKeyboardInterrupt, PyValueError};
use pyo3::prelude::*;

use crate::errors;
use crate::run::Signals;
use crate::scenario::algorithms;

/// Writes the steps of packets of the run in `dir` to the Parquet file `out`. Times and sizes are texts, as `20us` and
/// `1MB`.
#[pyfunction]
#[allow(clippy::too_many_arguments, reason = "they are those of the command")]
pub fn trace(
    py: Python<'_>,
    dir: PathBuf,
    out: PathBuf,
    flows: Vec<u32>,
    ports: Vec<String>,
    from: &str,
    until: Option<&str>,
    limit: Option<&str>,
) -> PyResult<()> {
    let time = |text: &str| text.parse::<Time>().map_err(|e| PyValueError::new_err(format!("`{text}`: {e}")));
    let size = |text: &str| text.parse::<Bytes>().map_err(|e| PyValueError::new_err(format!("`{text}`: {e}")));
    let (from, until, limit) = (time(from)?, until.map(time).transpose()?, limit.map(size).transpose()?);
    let selection = TraceSelection { flow: flows, port: ports, from, until, limit };
    let mut signals = Signals::default();
    let done = py.detach(|| fairrate_cli::trace_table(&dir, &out, &selection, &algorithms(), &mut signals));
    if let Some(error) = signals.raised {
        return Err(error);
    }
    match done {
        Ok(true) => Ok(()),
        Ok(false) => Err(PyKeyboardInterrupt::new_err(())),
        Err(failure) => Err(errors::of_diagnostic(py, &*failure, &dir)),
    }
}
