//! The columns of a comparison, and the places of its runs, as on the command line.

use std::path::PathBuf;

use fairrate_experiment::cache::Cache as Kept;
use fairrate_experiment::columns::{Axis, Column as Planned, columns as planned, with_libraries};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::controller::PlugIn;
use crate::errors;
use crate::run::Value;
use crate::scenario::{Scenario, algorithms};

/// An algorithm at a point of a grid.
#[pyclass(frozen, module = "fairrate._native")]
pub struct Column(Planned);

#[pymethods]
impl Column {
    /// Label of the column; empty without algorithms and a grid.
    #[getter]
    fn label(&self) -> &str {
        &self.0.label
    }
    /// Its point of the grid in words; empty without a grid.
    #[getter]
    fn point(&self) -> &str {
        &self.0.point
    }
    /// Its point of the grid, as pairs of key and value as written.
    #[getter]
    fn grid(&self) -> Vec<(String, String)> {
        self.0.grid.clone()
    }
    /// Its position on its line in figures over the grid, as pairs of short key and plain value.
    #[getter]
    fn place(&self) -> Vec<(String, String)> {
        self.0.place.clone()
    }
    /// Returns the label of a run, its algorithm with its changes alone, and the name of its directory.
    fn names(&self, cc: &str, seed: Option<u64>) -> (String, String, String) {
        let names = self.0.names(cc, seed, None);
        (names.label, names.line, names.dir)
    }
    /// Its algorithm as written, with the name of a set of constants; `None`: the scenario's.
    #[getter]
    fn cc(&self) -> Option<&str> {
        self.0.cc.as_deref()
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

/// Returns the columns of every algorithm, and of every variant `NAME: KEY=VALUE, ...`, at every point of a grid.
/// `seeded`: seeds are given separately. `plug_ins`: the algorithms in Python that may be named.
#[pyfunction]
pub fn columns(
    py: Python<'_>,
    cc: Vec<String>,
    variants: Vec<String>,
    grid: Vec<(String, Vec<String>)>,
    seeded: bool,
    plug_ins: Vec<PyRef<'_, PlugIn>>,
) -> PyResult<Vec<Column>> {
    let axes: Vec<Axis> = grid.into_iter().map(|(key, values)| Axis::new(&key, values)).collect();
    let own = plug_ins.iter().try_fold(algorithms(), |all, plug_in| all.with_algorithm(plug_in.algorithm()));
    let own = own.map_err(|e| PyValueError::new_err(e.to_string()))?;
    let registry = with_libraries(&cc, &variants, &own).map_err(|e| errors::of_columns(py, &e))?;
    let columns = planned(&cc, &variants, &axes, seeded, &registry).map_err(|e| errors::of_columns(py, &e))?;
    Ok(columns.into_iter().map(Column).collect())
}

/// A directory of results, in which runs are found by what they are runs of, and put where `fairrate compare` puts
/// them.
#[pyclass(module = "fairrate._native")]
pub struct Cache(Kept);

#[pymethods]
impl Cache {
    #[new]
    fn new(py: Python<'_>, root: PathBuf, name: &str) -> PyResult<Self> {
        Kept::open(&root, name).map(Self).map_err(|e| errors::of_results(py, &e))
    }

    /// Returns the directory where a run belongs, and the one where it is already: complete, undamaged, and by this
    /// same version of fairrate.
    fn place(&mut self, py: Python<'_>, name: &str, scenario: &Scenario) -> PyResult<(PathBuf, Option<PathBuf>)> {
        let scenario = scenario.inner();
        py.detach(|| self.0.place(name, &scenario)).map_err(|e| errors::of_results(py, &e))
    }
}
