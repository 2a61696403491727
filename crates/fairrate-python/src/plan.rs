//! The columns of a comparison, as on the command line.

use fairrate_experiment::columns::{Axis, Column as Planned, columns as planned, file_name as named, with_libraries};
use pyo3::prelude::*;

use crate::errors;
use crate::run::Value;
use crate::scenario::algorithms;

/// An algorithm at a point of a grid.
#[pyclass(frozen, module = "fairrate._native")]
pub struct Column(Planned);

#[pymethods]
impl Column {
    /// Label of the column.
    #[getter]
    fn label(&self) -> &str {
        &self.0.label
    }
    /// First part of its directories' names, before the seed.
    #[getter]
    fn name(&self) -> &str {
        &self.0.name
    }
    /// Its algorithm with its changes, without the point of the grid.
    #[getter]
    fn line(&self) -> &str {
        &self.0.line
    }
    /// Its changes to the scenario, in TOML.
    #[getter]
    fn sets(&self) -> Vec<(String, String)> {
        let cc = self.0.cc.iter().map(|cc| ("transport.cc".to_owned(), cc.clone()));
        self.0.sets.iter().cloned().chain(cc).collect()
    }
    /// Its point of the grid, by key.
    #[getter]
    fn tags(&self) -> Vec<(String, Value)> {
        self.0.tags().map(|tag| (tag.name, tag.value.into())).collect()
    }
}

/// Returns the columns of every algorithm at every point of a grid. `seeded`: seeds are given separately.
#[pyfunction]
pub fn columns(
    py: Python<'_>,
    cc: Vec<String>,
    grid: Vec<(String, Vec<String>)>,
    seeded: bool,
) -> PyResult<Vec<Column>> {
    let axes: Vec<Axis> = grid.into_iter().map(|(key, values)| Axis::new(&key, values)).collect();
    let registry = with_libraries(&cc, &algorithms()).map_err(|e| errors::of_columns(py, &e))?;
    let columns = planned(&cc, &axes, seeded, &registry).map_err(|e| errors::of_columns(py, &e))?;
    Ok(columns.into_iter().map(Column).collect())
}

/// Converts a label to the name of a directory.
#[pyfunction]
pub fn file_name(label: &str) -> String {
    named(label)
}
