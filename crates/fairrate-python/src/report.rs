//! Reports of several runs: the directory that `fairrate compare` would have written, from results that are there.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use fairrate_control::Registry;
use fairrate_experiment::columns::{ColumnsError, file_name};
use fairrate_experiment::copy_run;
use fairrate_report::figures::Selection;
use fairrate_report::heat_map::Layout;
use fairrate_report::index::{FILE, Index, IndexError, RefusedColumn, RunEntry};
use fairrate_report::load;
use fairrate_report::metric::{Metric, UnknownMetric};
use fairrate_report::model::RunData;
use fairrate_report::publish::{self, Pictures};
use fairrate_results::{Results, ResultsDir};
use fairrate_scenario::traffic_block_names;
use pyo3::prelude::*;

use crate::errors;

/// A run of a report, as Python describes it: a dict with these keys.
#[derive(FromPyObject, IntoPyObject)]
#[pyo3(from_item_all)]
pub struct Run {
    /// The directory of its results.
    source: PathBuf,
    /// The label of its column.
    label: String,
    /// Its seed.
    seed: u64,
    /// Its line in figures over the grid.
    line: String,
    /// Its point of the grid in words; empty without a grid.
    point: String,
    /// Its point of the grid, as pairs of key and value as written.
    grid: Vec<(String, String)>,
    /// Its position on the line, as pairs of short key and plain value.
    place: Vec<(String, String)>,
}

/// Writes the report of `runs` into `dir`, with copies of those results that are elsewhere. `metrics` are drawn over
/// the grid; `refused` are labels and reasons of columns that were left out; `heat_maps` is the layout of those of a
/// study, as JSON.
#[pyfunction]
pub fn write_report(
    py: Python<'_>,
    dir: PathBuf,
    scenario: &str,
    runs: Vec<Run>,
    metrics: Vec<String>,
    refused: Vec<(String, String)>,
    heat_maps: Option<&str>,
) -> PyResult<()> {
    let first = runs.first().and_then(|run| Results::open(&run.source).ok()?.scenario_toml().ok());
    let blocks = first.map(|text| traffic_block_names(&text)).unwrap_or_default();
    let selection = Selection {
        metrics: by_name(py, &metrics, &blocks)?,
        heat_maps: heat_maps.and_then(Layout::from_json),
        ..Selection::default()
    };
    // The lock is held until the report is written.
    let place = ResultsDir::claim_comparison(&dir).map_err(|e| errors::of_results(py, &e))?;
    let names = names(&dir, &runs);
    let mut entries = Vec::new();
    for (run, name) in runs.into_iter().zip(names) {
        py.check_signals()?;
        let to = place.path().join(&name);
        let copied = if is_same(&run.source, &to) { Ok(()) } else { py.detach(|| copy(&run, &to)) };
        let entry = copied.and_then(|()| entry(run, name)).map_err(|e| errors::of_index(py, &e))?;
        entries.push(entry);
    }
    let mut index = Index::new(scenario, entries, &selection);
    index.refused = refused.into_iter().map(|(label, reason)| RefusedColumn { label, reason }).collect();
    match py.detach(|| index.publish(place.path(), &Registry::new())) {
        Ok(Some(_)) => Ok(()),
        Ok(None) => Err(errors::of_empty(py, &dir)),
        Err(error) => Err(errors::of_index(py, &error)),
    }
}

/// Returns the complete runs of the comparison in `dir`.
#[pyfunction]
pub fn runs_of_comparison(py: Python<'_>, dir: PathBuf) -> PyResult<Vec<Run>> {
    let index = Index::read(&dir).map_err(|e| errors::of_index(py, &e))?;
    let ended: Vec<RunEntry> = index.runs.into_iter().filter(|entry| entry.state == "complete").collect();
    ended.iter().try_for_each(|entry| entry.check(&dir)).map_err(|e| errors::of_results(py, &e))?;
    let run = |entry: RunEntry| Run {
        source: dir.join(entry.dir),
        label: entry.label,
        seed: entry.seed,
        line: entry.line,
        point: entry.point,
        grid: entry.grid.into_iter().collect(),
        place: entry.place,
    };
    Ok(ended.into_iter().map(run).collect())
}

/// Writes the report of a results directory, of one run or of a comparison, anew. `metrics` are drawn over the grid, in
/// place of those of the comparison.
#[pyfunction]
pub fn rewrite_report(py: Python<'_>, dir: PathBuf, metrics: Vec<String>) -> PyResult<()> {
    let registry = Registry::new();
    if !dir.join(FILE).exists() {
        let loaded = py.detach(|| load::run(&dir, &registry)).map_err(|e| errors::of_results(py, &e))?;
        by_name(py, &metrics, &loaded.blocks)?;
        let written = py.detach(|| publish::run(&dir, loaded, Pictures::Yes));
        return written.map(|_| ()).map_err(|e| errors::of_publish(&e));
    }
    let index = Index::read(&dir).map_err(|e| errors::of_index(py, &e))?;
    let assembled = py.detach(|| index.assemble(&dir, &registry)).map_err(|e| errors::of_index(py, &e))?;
    let Some((variants, comparison)) = assembled else {
        return Err(errors::of_empty(py, &dir));
    };
    let mut selection = index.selection();
    let drawn = by_name(py, &metrics, &variants[0].first().blocks)?;
    if !drawn.is_empty() {
        selection.metrics = drawn;
    }
    let written = py.detach(|| publish::page(&dir, &variants, &comparison, &selection, Pictures::Yes));
    written.map_err(|e| errors::of_publish(&e))
}

/// Returns the metrics with these names, in a scenario whose traffic blocks have the names `blocks`.
fn by_name(py: Python<'_>, names: &[String], blocks: &[String]) -> PyResult<Vec<Metric>> {
    Metric::by_names(names, blocks).map_err(|UnknownMetric { name, help }| {
        errors::of_columns(py, &ColumnsError::UnknownName { what: "metric", name, help })
    })
}

/// Returns the names of the runs' directories below `dir`, all different. Those that are there keep their names.
fn names(dir: &Path, runs: &[Run]) -> Vec<String> {
    let kept_name = |run: &Run| {
        let name = run.source.file_name()?.to_str()?.to_owned();
        is_same(&run.source, &dir.join(&name)).then_some(name)
    };
    let kept: Vec<Option<String>> = runs.iter().map(kept_name).collect();
    // Names that differ only in case are one directory on some systems.
    let mut taken: HashSet<String> = kept.iter().flatten().map(|name| name.to_ascii_lowercase()).collect();
    let mut new = |run: &Run| {
        let name = file_name(&format!("{}-seed{}", run.label, run.seed));
        let later = (2..).map(|n| format!("{name}-{n}"));
        std::iter::once(name.clone()).chain(later).find(|name| taken.insert(name.to_ascii_lowercase()))
    };
    runs.iter().zip(kept).map(|(run, kept)| kept.or_else(|| new(run)).unwrap_or_default()).collect()
}

/// Returns `true` if both are the same directory, which exists.
fn is_same(a: &Path, b: &Path) -> bool {
    matches!((a.canonicalize(), b.canonicalize()), (Ok(a), Ok(b)) if a == b)
}

/// Copies a run to its place below the report, and writes its own page.
fn copy(run: &Run, to: &Path) -> Result<(), IndexError> {
    let place = ResultsDir::claim(to)?;
    copy_run(&Results::open(&run.source)?, &place)?;
    let loaded = RunData { label: run.label.clone(), ..load::run(to, &Registry::new())? };
    publish::run(to, loaded, Pictures::No)?;
    Ok(())
}

/// Returns the entry of a run in the index.
fn entry(run: Run, dir: String) -> Result<RunEntry, IndexError> {
    let summary = Results::open(&run.source)?.summary;
    let mut entry = RunEntry {
        label: run.label,
        line: run.line,
        point: run.point,
        grid: run.grid.into_iter().collect(),
        place: run.place,
        cc: summary.cc,
        seed: summary.seed,
        dir,
        scenario_hash: summary.scenario_hash,
        ..RunEntry::default()
    };
    entry.end(&summary.state, summary.error, summary.fingerprint);
    Ok(entry)
}
