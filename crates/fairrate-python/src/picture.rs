//! Pictures: SVG turned into PNG and PDF.

use std::path::PathBuf;

use fairrate_picture::{Format, convert};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::errors;

/// Returns the text of an SVG as PNG, with `scale` pixels to a unit of the SVG, or without a scale as PDF. `fonts` are
/// directories of fonts besides those of the machine.
#[pyfunction]
pub fn picture<'py>(
    py: Python<'py>,
    svg: &str,
    scale: Option<f32>,
    fonts: Vec<PathBuf>,
) -> PyResult<Bound<'py, PyBytes>> {
    let format = scale.map_or(Format::Pdf, Format::Png);
    let made = py.detach(|| convert(svg, format, &fonts)).map_err(|e| errors::of_picture(py, &e))?;
    Ok(PyBytes::new(py, &made))
}
