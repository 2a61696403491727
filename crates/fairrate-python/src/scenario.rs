//! Scenarios, and the conversion of Python's values to TOML.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use fairrate_control::Registry;
use fairrate_scenario::Overrides;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use tempfile::TempDir;

use crate::controller::{Failed, PlugIn};
use crate::errors;

/// Returns the built-in algorithms, and those of shared libraries that a scenario names.
pub fn algorithms() -> Registry {
    Registry::new().with_libraries(fairrate_plugin::open)
}

/// The location of a scenario's files.
#[derive(Clone)]
enum Place {
    Dir(PathBuf),
    /// The name and text of each file.
    Texts(Arc<[(String, String)]>),
    /// A directory that exists as long as a scenario needs it.
    Temporary(Arc<TempDir>),
}

impl Place {
    /// Stores files with their contents. A library is not text, and is loaded from disk.
    fn of(files: Vec<(String, Vec<u8>)>) -> std::io::Result<Self> {
        let as_text =
            |(name, content): &(String, Vec<u8>)| Some((name.clone(), String::from_utf8(content.clone()).ok()?));
        if let Some(texts) = files.iter().map(as_text).collect::<Option<Vec<_>>>() {
            return Ok(Self::Texts(texts.into()));
        }
        let dir = TempDir::with_prefix("fairrate-")?;
        for (name, content) in files {
            std::fs::write(dir.path().join(name), content)?;
        }
        Ok(Self::Temporary(Arc::new(dir)))
    }
}

/// A runnable scenario, with the text that it was read from.
#[pyclass(frozen, module = "fairrate._native")]
pub struct Scenario {
    text: Arc<str>,
    file_name: String,
    place: Place,
    /// Changed keys and their values in TOML, the latest last.
    sets: Vec<(String, String)>,
    /// The algorithms that it may name.
    registry: Registry,
    inner: Arc<fairrate_scenario::Scenario>,
    /// The store of exceptions of an algorithm in Python.
    failed: Failed,
}

impl Scenario {
    /// Returns the scenario itself.
    pub fn inner(&self) -> Arc<fairrate_scenario::Scenario> {
        Arc::clone(&self.inner)
    }

    /// Returns the store of exceptions of its algorithm's code.
    pub fn failed(&self) -> Failed {
        self.failed.clone()
    }

    fn read(
        py: Python<'_>,
        text: Arc<str>,
        file_name: String,
        place: Place,
        sets: Vec<(String, String)>,
    ) -> PyResult<Self> {
        Self::read_with(py, text, file_name, place, sets, (algorithms(), Failed::default()))
    }

    fn read_with(
        py: Python<'_>,
        text: Arc<str>,
        file_name: String,
        place: Place,
        sets: Vec<(String, String)>,
        (registry, failed): (Registry, Failed),
    ) -> PyResult<Self> {
        let overrides = Overrides { sets, ..Overrides::default() };
        let reader = fairrate_scenario::Scenario::with_algorithms(&registry);
        let read = || match &place {
            Place::Dir(dir) => reader.from_toml(&text, &file_name, dir, &overrides),
            Place::Temporary(dir) => reader.from_toml(&text, &file_name, dir.path(), &overrides),
            Place::Texts(files) => {
                let files: Vec<(&str, &str)> = files.iter().map(|(name, text)| (&**name, &**text)).collect();
                reader.from_texts(&text, &file_name, &files, &overrides)
            }
        };
        let inner = py.detach(read).map_err(|e| errors::of_scenario(py, &e))?;
        Ok(Self { text, file_name, place, sets: overrides.sets, registry, inner: Arc::new(inner), failed })
    }
}

#[pymethods]
impl Scenario {
    /// Reads the scenario file at `path`.
    #[staticmethod]
    fn load(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        let (shown, dir) = (path.display().to_string(), path.parent().unwrap_or(Path::new("")).to_owned());
        match std::fs::read_to_string(&path) {
            Ok(text) => Self::read(py, text.into(), shown, Place::Dir(dir), Vec::new()),
            // The scenario reader reports why the file cannot be read.
            Err(_) => {
                match fairrate_scenario::Scenario::with_algorithms(&algorithms()).load(&path, &Overrides::default()) {
                    Err(error) => Err(errors::of_scenario(py, &error)),
                    Ok(inner) => {
                        let text = inner.to_toml().into();
                        Self::read(py, text, shown, Place::Dir(dir), Vec::new())
                    }
                }
            }
        }
    }

    /// Reads a text whose files are in a directory.
    #[staticmethod]
    fn from_toml(py: Python<'_>, text: String, file_name: String, base_dir: PathBuf) -> PyResult<Self> {
        Self::read(py, text.into(), file_name, Place::Dir(base_dir), Vec::new())
    }

    /// Reads a text whose files are given with it, each with its content.
    #[staticmethod]
    fn with_files(
        py: Python<'_>,
        text: String,
        file_name: String,
        files: Vec<(String, Vec<u8>)>,
        plug_in: Option<&PlugIn>,
    ) -> PyResult<Self> {
        let own = plug_in.map(|plug_in| Ok::<_, PyErr>((plug_in.beside_others()?, plug_in.failed()))).transpose()?;
        let own = own.unwrap_or_else(|| (algorithms(), Failed::default()));
        Self::read_with(py, text.into(), file_name, Place::of(files)?, Vec::new(), own)
    }

    /// Returns the same scenario with changed keys; values are TOML or bare words.
    fn with_sets(&self, py: Python<'_>, sets: Vec<(String, String)>) -> PyResult<Self> {
        let sets = self.sets.iter().cloned().chain(sets).collect();
        let (text, name, place) = (Arc::clone(&self.text), self.file_name.clone(), self.place.clone());
        Self::read_with(py, text, name, place, sets, (self.registry.clone(), self.failed.clone()))
    }

    /// Returns the same scenario with an algorithm in Python that it may name, and changed keys.
    fn with_plug_in(&self, py: Python<'_>, plug_in: &PlugIn, sets: Vec<(String, String)>) -> PyResult<Self> {
        let sets = self.sets.iter().cloned().chain(sets).collect();
        let (text, name, place) = (Arc::clone(&self.text), self.file_name.clone(), self.place.clone());
        Self::read_with(py, text, name, place, sets, (plug_in.beside_others()?, plug_in.failed()))
    }

    #[getter]
    fn name(&self) -> &str {
        self.inner.name()
    }
    #[getter]
    fn description(&self) -> &str {
        self.inner.description()
    }
    #[getter]
    fn cc(&self) -> &'static str {
        self.inner.sim_config().cc.info().name
    }
    #[getter]
    fn seed(&self) -> u64 {
        self.inner.sim_config().seed
    }
    /// Settings that are allowed and likely not meant.
    #[getter]
    fn warnings(&self) -> Vec<String> {
        self.inner.warnings().to_vec()
    }
    #[getter]
    fn hash(&self) -> String {
        format!("{:016x}", self.inner.hash())
    }
    /// The names of the traffic blocks; empty for those without one.
    #[getter]
    fn traffic_blocks(&self) -> Vec<String> {
        self.inner.traffic_blocks().to_vec()
    }
    #[getter]
    fn n_flows(&self) -> usize {
        self.inner.sim_config().flows.len()
    }
    /// Largest simulated time, in nanoseconds; `None`: until all flows are done.
    #[getter]
    fn duration_ns(&self) -> Option<f64> {
        self.inner.sim_config().stop.at.map(fairrate_units::Time::as_ns_f64)
    }
    /// The scenario with every default filled in.
    #[getter]
    fn resolved(&self) -> String {
        self.inner.to_toml()
    }
    /// Name and content of the files of the resolved scenario.
    #[getter]
    fn files<'py>(&self, py: Python<'py>) -> Vec<(String, Bound<'py, PyBytes>)> {
        self.inner.files().map(|(name, content)| (name.to_owned(), PyBytes::new(py, content))).collect()
    }
}

/// Converts a JSON value to TOML.
#[pyfunction]
pub fn toml_value(json: &str) -> PyResult<String> {
    let value: toml::Value = serde_json::from_str(json).map_err(no_toml)?;
    Ok(value.to_string())
}

/// Converts a JSON object to a TOML document.
#[pyfunction]
pub fn toml_document(json: &str) -> PyResult<String> {
    let table: toml::Table = serde_json::from_str(json).map_err(no_toml)?;
    toml::to_string(&table).map_err(no_toml)
}

/// Returns the JSON schema of scenario files.
#[pyfunction]
pub fn json_schema(py: Python<'_>) -> String {
    py.detach(|| fairrate_scenario::json_schema().to_string())
}

fn no_toml(error: impl std::fmt::Display) -> PyErr {
    PyValueError::new_err(format!("no TOML can say this: {error}"))
}
