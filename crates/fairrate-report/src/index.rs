//! `compare.json`: the runs of a comparison, their states and their results.

use std::collections::BTreeMap;
use std::io;
use std::path::{Component, Path};

use fairrate_control::Registry;
use fairrate_results::{Results, ResultsError, write_durably, write_whole};
use serde::{Deserialize, Serialize};

use crate::by_size::BySize;
use crate::comparison::{Comparison, Statistics};
use crate::figures::Selection;
use crate::heat_map::Layout;
use crate::load;
use crate::metric::Metric;
use crate::metrics::Metrics;
use crate::model::{RunData, Variant, variants};
use crate::publish::{Pictures, PublishError, page};

/// Name of the file.
pub const FILE: &str = "compare.json";
/// Name of its schema; its number changes only when a field is removed or changes its meaning.
const SCHEMA: &str = "fairrate.compare/2";

/// The reason why a comparison cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum IndexError {
    /// A file of the comparison that cannot be read or written.
    #[error(transparent)]
    File(#[from] PublishError),
    /// A run that is not readable.
    #[error(transparent)]
    Results(#[from] ResultsError),
}

impl IndexError {
    fn reading(path: &Path, cause: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        PublishError { doing: "reading", path: path.to_owned(), source: io::Error::other(cause) }.into()
    }
    fn writing(path: &Path, source: io::Error) -> Self {
        PublishError { doing: "writing", path: path.to_owned(), source }.into()
    }
}

/// The content of the file.
#[derive(Debug, Serialize, Deserialize)]
pub struct Index {
    schema: String,
    scenario: String,
    /// Every run, in the order of columns and seeds.
    pub runs: Vec<RunEntry>,
    /// Columns that were left out since the scenario refuses them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<RefusedColumn>,
    /// Names of the metrics that are drawn over the grid, with the numbers of traffic blocks; empty: the usual ones.
    #[serde(default)]
    drawn: Vec<String>,
    /// Percentiles and sizes of the slowdown against flow size.
    #[serde(default)]
    by_size: BySize,
    /// The heat maps of a study; absent in other comparisons.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    heat_maps: Option<Layout>,
    /// Metrics of each column; empty until all runs have ended.
    #[serde(default, skip_deserializing)]
    pub metrics: Vec<Metrics>,
    /// Means over seeds and differences; absent until all runs have ended.
    #[serde(default, skip_deserializing)]
    pub statistics: Option<Statistics>,
}

/// A column that the scenario refuses.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefusedColumn {
    /// Label of the column.
    pub label: String,
    /// The reason.
    pub reason: String,
}

/// A run of a comparison.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct RunEntry {
    /// Label of its column.
    pub label: String,
    /// Its point of the grid in words; empty without a grid.
    #[serde(default)]
    pub point: String,
    /// Its point of the grid by key; values as written.
    #[serde(default)]
    pub grid: BTreeMap<String, String>,
    /// Name of the line that the run is a point of, in figures over the grid.
    #[serde(default)]
    pub line: String,
    /// Its position on that line, as pairs of short key and plain value, in the order of the grid.
    #[serde(default)]
    pub place: Vec<(String, String)>,
    /// Its algorithm.
    pub cc: String,
    /// Its seed.
    pub seed: u64,
    /// Its directory, relative to that of the comparison.
    pub dir: String,
    /// `pending` until the run has ended; then `complete`, `interrupted` or `failed`.
    pub state: String,
    /// The reason of a failure.
    #[serde(default)]
    pub error: Option<String>,
    /// Hash of the order of its events; empty while pending.
    pub fingerprint: String,
    /// Hash of its resolved scenario.
    #[serde(default)]
    pub scenario_hash: String,
}

impl RunEntry {
    /// Records the end of the run.
    pub fn end(&mut self, state: &str, error: Option<String>, fingerprint: String) {
        (self.state, self.error, self.fingerprint) = (state.to_owned(), error, fingerprint);
    }

    /// Checks that its directory, below that of the comparison in `dir`, has its results and not those of a later run.
    /// A directory that cannot be read passes: its reader returns the error.
    ///
    /// # Errors
    /// [`ResultsError::Replaced`] if they are those of another run.
    pub fn check(&self, dir: &Path) -> Result<(), ResultsError> {
        let path = dir.join(&self.dir);
        let Ok(results) = Results::open(&path) else { return Ok(()) };
        let summary = &results.summary;
        // A run that has not ended has no fingerprint here, and one on real hosts never has.
        let is_same = |noted: &str, found: &str| noted.is_empty() || noted == found;
        let has_fingerprint = self.state != "complete" || is_same(&self.fingerprint, &summary.fingerprint);
        let is_ours = has_fingerprint && is_same(&self.scenario_hash, &summary.scenario_hash);
        if is_ours { Ok(()) } else { Err(ResultsError::Replaced { path }) }
    }

    /// Returns a description of the run for warnings.
    fn description(&self) -> String {
        format!("{} seed {} {}", self.label, self.seed, self.state)
    }
}

impl Index {
    /// Returns the index of the runs of a scenario, with the figures that are drawn.
    pub fn new(scenario: &str, runs: Vec<RunEntry>, selection: &Selection) -> Self {
        let (schema, scenario, by_size) = (SCHEMA.to_owned(), scenario.to_owned(), selection.by_size.clone());
        let drawn = selection.metrics.iter().map(|m| m.name(&[])).collect();
        let (refused, heat_maps) = (Vec::new(), selection.heat_maps.clone());
        Self { schema, scenario, runs, refused, drawn, by_size, heat_maps, metrics: Vec::new(), statistics: None }
    }

    /// Returns the figures that are drawn.
    pub fn selection(&self) -> Selection {
        Selection { metrics: self.drawn(), by_size: self.by_size.clone(), heat_maps: self.heat_maps.clone() }
    }

    /// Returns the metrics that are drawn over the grid.
    pub fn drawn(&self) -> Vec<Metric> {
        self.drawn.iter().filter_map(|name| Metric::by_name(name, &[])).collect()
    }

    /// Reads the index of the comparison in `dir`.
    ///
    /// # Errors
    /// If it cannot be read, is damaged, or names a run that is not below `dir`.
    pub fn read(dir: &Path) -> Result<Self, IndexError> {
        let path = dir.join(FILE);
        let text = std::fs::read_to_string(&path).map_err(|e| IndexError::reading(&path, e))?;
        let index: Self = serde_json::from_str(&text).map_err(|e| IndexError::reading(&path, e))?;
        match index.runs.iter().find(|run| !is_plain_name(&run.dir)) {
            Some(run) => Err(IndexError::reading(&path, format!("`{}` is no directory of a run", run.dir))),
            None => Ok(index),
        }
    }

    /// Writes the index in one step.
    ///
    /// # Errors
    /// Those of the operating system.
    pub fn write(&self, dir: &Path) -> Result<(), IndexError> {
        self.write_by(dir, |path, text| write_whole(path, text))
    }

    /// Writes the index in one step and syncs it to disk, once all runs have ended.
    ///
    /// # Errors
    /// Those of the operating system.
    pub fn write_durably(&self, dir: &Path) -> Result<(), IndexError> {
        self.write_by(dir, write_durably)
    }

    fn write_by(&self, dir: &Path, write: impl Fn(&Path, &str) -> io::Result<()>) -> Result<(), IndexError> {
        let path = dir.join(FILE);
        let text = serde_json::to_string_pretty(self).map(|text| text + "\n").map_err(io::Error::other);
        text.and_then(|text| write(&path, &text)).map_err(|e| IndexError::writing(&path, e))
    }

    /// Returns the name of the scenario.
    pub fn scenario(&self) -> &str {
        &self.scenario
    }

    /// Reads the runs, column by column. In a column with complete runs only those count, otherwise those with readable
    /// results. Returns `None` if there is no such run.
    ///
    /// # Errors
    /// If the results of a complete run cannot be read, or are those of another run.
    pub fn assemble(&self, dir: &Path, registry: &Registry) -> Result<Option<(Vec<Variant>, Comparison)>, IndexError> {
        let mut labels: Vec<&str> = Vec::new();
        for run in &self.runs {
            if !labels.contains(&run.label.as_str()) {
                labels.push(&run.label);
            }
        }
        let (mut columns, mut metrics, mut left_out) = (Vec::new(), Vec::new(), Vec::new());
        for label in labels {
            let (runs, without) = self.load_column(dir, label, registry)?;
            left_out.extend(without);
            for mut variant in variants(runs) {
                metrics.push(Metrics::of(&variant));
                variant.forget_undrawn();
                columns.push(variant);
            }
        }
        left_out.extend(self.refused.iter().map(|r| format!("{} refused ({})", r.label, r.reason)));
        let comparison = (!metrics.is_empty()).then(|| Comparison { left_out, ..Comparison::of(metrics) });
        Ok(comparison.map(|comparison| (columns, comparison)))
    }

    /// Writes the report of the runs that have ended, and the index with their numbers. Returns what is in the report;
    /// `None` if no run has ended.
    ///
    /// # Errors
    /// As [`Index::assemble`], and those of the operating system.
    pub fn publish(
        &mut self,
        dir: &Path,
        registry: &Registry,
    ) -> Result<Option<(Vec<Variant>, Comparison)>, IndexError> {
        let Some((variants, comparison)) = self.assemble(dir, registry)? else { return Ok(None) };
        page(dir, &variants, &comparison, &self.selection(), Pictures::Yes)?;
        self.metrics.clone_from(&comparison.metrics);
        self.statistics = Some(comparison.statistics());
        self.write_durably(dir)?;
        Ok(Some((variants, comparison)))
    }

    /// Returns the runs of a column that count, and descriptions of the others.
    fn load_column(
        &self,
        dir: &Path,
        label: &str,
        registry: &Registry,
    ) -> Result<(Vec<RunData>, Vec<String>), ResultsError> {
        let of_column = || self.runs.iter().filter(|r| r.label == label);
        let (mut runs, mut without) = (Vec::new(), Vec::new());
        let some_complete = of_column().any(|r| r.state == "complete");
        for entry in of_column() {
            let load = || -> Result<RunData, ResultsError> {
                entry.check(dir)?;
                Ok(RunData { label: label.to_owned(), ..load::run(&dir.join(&entry.dir), registry)? })
            };
            let data = match entry.state.as_str() {
                "complete" => Some(load()?),
                "pending" => None,
                _ if some_complete => None,
                // A failed run may have left no results.
                _ => load().ok(),
            };
            match data {
                Some(data) => {
                    let (line, point, grid) = (entry.line.clone(), entry.point.clone(), entry.place.clone());
                    runs.push(RunData { line, point, grid, state: entry.state.clone(), ..data });
                }
                None => without.push(entry.description()),
            }
        }
        Ok((runs, without))
    }
}

/// Returns `true` if a path is a single name, without directories.
fn is_plain_name(path: &str) -> bool {
    let mut parts = Path::new(path).components();
    matches!((parts.next(), parts.next()), (Some(Component::Normal(name)), None) if name == path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_below_their_comparison() {
        assert!(is_plain_name("hpcc-seed1") && is_plain_name("f=..-x"));
        for path in ["", ".", "..", "/tmp", "a/b", "a/..", "./a", "a/"] {
            assert!(!is_plain_name(path), "{path}");
        }
    }
}
