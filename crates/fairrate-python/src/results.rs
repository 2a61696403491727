//! Results directories: their summaries, copies and pages.

use std::path::PathBuf;

use fairrate_control::Registry;
use fairrate_experiment::copy_run;
use fairrate_report::metric::Metric;
use fairrate_report::metrics::Metrics;
use fairrate_report::model::{RunData, variants};
use fairrate_report::publish::{Pictures, run as write_page};
use fairrate_results::{Results, ResultsDir};
use pyo3::prelude::*;

use crate::errors;

/// Returns the text of `summary.json`, if the directory has results.
#[pyfunction]
pub fn summary(py: Python<'_>, dir: PathBuf) -> PyResult<String> {
    let results = Results::open(&dir).map_err(|e| errors::of_results(py, &e))?;
    Ok(std::fs::read_to_string(results.dir().join("summary.json"))?)
}

/// Copies results into another directory.
#[pyfunction]
pub fn copy(py: Python<'_>, from: PathBuf, to: PathBuf) -> PyResult<()> {
    let copied = py.detach(|| copy_run(&Results::open(&from)?, &ResultsDir::claim(&to)?));
    copied.map_err(|e| errors::of_results(py, &e))
}

/// Writes `report.html`, and its figures as files if `figures` is true.
#[pyfunction]
pub fn publish(py: Python<'_>, dir: PathBuf, label: String, figures: bool) -> PyResult<()> {
    let loaded =
        py.detach(|| fairrate_report::load::run(&dir, &Registry::new())).map_err(|e| errors::of_results(py, &e))?;
    let pictures = if figures { Pictures::Yes } else { Pictures::No };
    let written = py.detach(|| write_page(&dir, RunData { label, ..loaded }, pictures).map(|_| ()));
    written.map_err(|e| errors::of_publish(&e))
}

/// A metric of a run: its name, its value, true for a lower bound, its unit.
type Measured = (String, Option<f64>, bool, &'static str);

/// Returns name and unit of every metric.
#[pyfunction]
pub fn metric_units() -> Vec<(String, &'static str)> {
    let known = Metric::names().into_iter().filter_map(|name| Some((Metric::by_name(&name, &[])?, name)));
    known.map(|(metric, name)| (name, metric.unit())).collect()
}

/// Returns the remedy if no metric is called `name` where traffic blocks have the names `blocks`; otherwise `None`.
#[pyfunction]
pub fn unknown_metric(name: String, blocks: Vec<String>) -> Option<String> {
    Metric::by_names(&[name], &blocks).err().map(|unknown| unknown.help)
}

/// Returns name and value of every metric of a run, as in reports (`None`: the run has no such number), true if the
/// value is only a lower bound, and the unit. Metrics of a traffic block with a name are there by its name and by its
/// number.
#[pyfunction]
pub fn metrics(py: Python<'_>, dir: PathBuf) -> PyResult<Vec<Measured>> {
    let loaded =
        py.detach(|| fairrate_report::load::run(&dir, &Registry::new())).map_err(|e| errors::of_results(py, &e))?;
    let values = || {
        let blocks = loaded.blocks.clone();
        let of_run = Metrics::of(&variants(vec![loaded]).remove(0));
        let all = Metric::all_of(&of_run).into_iter();
        let names = all.flat_map(|metric| {
            let (name, number) = (metric.name(&blocks), metric.name(&[]));
            let by_number = (number != name).then_some((metric, number));
            std::iter::once((metric, name)).chain(by_number)
        });
        names
            .map(|(metric, name)| (name, metric.value(&of_run), metric.bound(&of_run).is_some(), metric.unit()))
            .collect()
    };
    Ok(py.detach(values))
}
