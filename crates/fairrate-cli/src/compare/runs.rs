//! The runs of a comparison: all are checked before the first one starts, several run at a time, and the failure of one
//! does not stop the others.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use fairrate_control::Registry;
use fairrate_experiment::cache::{complete_run_of, seconds_before};
use fairrate_experiment::columns::{Column, RunNames};
use fairrate_experiment::crew::{self, Planned, in_parallel};
use fairrate_report::figures::Selection;
use fairrate_report::format;
use fairrate_report::index::{Index, IndexError, RunEntry};
use fairrate_results::{Results, ResultsDir, Tag, TagValue};
use fairrate_scenario::{Overrides, Scenario, ScenarioError};

use super::backend::{self, Backend, Backends};
use super::refused::Refused;
use crate::drive::{self, End, Watcher};
use crate::failure::Failure;
use crate::output::{self, Pictures};
use crate::progress::Board;

/// A planned run. Its scenario is read again when it starts: the scenarios of a grid of large workloads together would
/// not fit into memory.
pub struct Plan {
    /// Its changes to the scenario's file.
    overrides: Overrides,
    /// Name of the scenario.
    pub scenario: String,
    /// Warnings of the scenario.
    pub warnings: Vec<String>,
    /// Its entry in compare.json.
    pub entry: RunEntry,
    /// Tags of all rows of its tables.
    tags: Vec<Tag>,
    /// The backend that moves its packets.
    backend: Backend,
    /// The directory of the run on Linux whose network is simulated; empty to simulate the scenario.
    twin: String,
    /// Its priority in the crew.
    priority: f64,
}

impl Plan {
    /// Returns `true` if there is already a complete run of the same scenario by the same program.
    pub fn is_taken_over(&self) -> bool {
        self.entry.state == "complete"
    }
}

/// The plan of every column under every seed.
pub struct Planner<'a> {
    /// The known algorithms.
    pub registry: &'a Registry,
    /// File of the scenario.
    pub file: &'a Path,
    /// Directory of the comparison, if it is not the default one.
    pub out: Option<&'a Path>,
    /// `--set`, for all columns.
    pub sets: &'a [(String, String)],
    /// `--seeds`; `None` for the scenario's seed.
    pub seeds: Option<&'a [u64]>,
    /// `true` to repeat all runs.
    pub fresh: bool,
    /// `true` to go on without columns that are refused.
    pub skip_refused: bool,
    /// `true` if the command has an option for that.
    pub may_skip: bool,
    /// The backends of the runs.
    pub backends: &'a Backends,
}

impl Planner<'_> {
    /// Returns the directory of the comparison, and the names of the traffic blocks of the first column that is not
    /// refused. The default directory has the name of that scenario.
    pub fn place(&self, columns: &[Column]) -> Result<(PathBuf, Vec<String>), Failure> {
        let mut refused = Refused::default();
        let first = columns.iter().find_map(|column| {
            let loaded = self.load(&self.overrides(column, self.seeds.map(|s| s[0])));
            loaded.map_err(|error| refused.add(column, error)).ok()
        });
        let first = first.ok_or_else(|| refused.failure(columns.len(), self.may_skip))?;
        let default_dir = || Path::new("runs").join(output::file_name(&format!("{}-compare", first.name())));
        let dir = self.out.map_or_else(default_dir, Path::to_owned);
        ResultsDir::check_comparison(&dir)?;
        Ok((dir, first.traffic_blocks().to_vec()))
    }

    /// Checks all runs of the comparison in `dir`, and returns them with the columns that are refused. Writes nothing.
    pub fn plan(&self, dir: &Path, columns: &[Column], jobs: usize) -> Result<(Vec<Plan>, Refused), Failure> {
        let seeds: Vec<Option<u64>> = self.seeds.map_or_else(|| vec![None], |s| s.iter().copied().map(Some).collect());
        let each = (0..columns.len()).flat_map(|column| self.backends.each().map(move |backend| (column, backend)));
        let runs: Vec<(usize, Backend, Option<u64>)> =
            each.flat_map(|(column, backend)| seeds.iter().map(move |seed| (column, backend, *seed))).collect();
        // Once the first run of a column is refused, its others need no check. Other errors end all.
        let skipped: Vec<AtomicBool> = columns.iter().map(|_| AtomicBool::new(false)).collect();
        let wrong = AtomicBool::new(false);
        let check = |i: usize| {
            let (column, backend, seed) = runs[i];
            if skipped[column].load(Ordering::Relaxed) {
                return None;
            }
            let plan = self.check(dir, &columns[column], backend, seed);
            let is_first = i == 0 || runs[i - 1].0 != column;
            match &plan {
                Err(Failure::Scenario(_)) => skipped[column].fetch_or(is_first, Ordering::Relaxed),
                Err(_) => wrong.fetch_or(true, Ordering::Relaxed),
                Ok(_) => false,
            };
            Some((column, plan))
        };
        // Runs are checked in order, so that of several errors the first one is reported, with any number of threads.
        let checked = in_parallel(runs.len(), jobs, &|| wrong.load(Ordering::Relaxed), &check);
        let (mut plans, mut refused, mut without) = (Vec::new(), Refused::default(), BTreeSet::new());
        for (column, plan) in checked.into_iter().flatten().flatten() {
            match plan {
                Ok(plan) => plans.push((column, plan)),
                Err(Failure::Scenario(error)) => {
                    refused.add(&columns[column], error);
                    without.insert(column);
                }
                Err(failure) => return Err(failure),
            }
        }
        plans.retain(|(column, _)| !without.contains(column));
        if plans.is_empty() || (!self.skip_refused && !refused.is_empty()) {
            return Err(refused.failure(columns.len(), self.may_skip));
        }
        Ok((plans.into_iter().map(|(_, plan)| plan).collect(), refused))
    }

    fn load(&self, overrides: &Overrides) -> Result<Scenario, ScenarioError> {
        Scenario::with_algorithms(self.registry).load(self.file, overrides)
    }

    fn overrides(&self, column: &Column, seed: Option<u64>) -> Overrides {
        let sets = self.sets.iter().chain(&column.sets).cloned().collect();
        Overrides { sets, seed, cc: column.cc.clone() }
    }

    fn check(&self, dir: &Path, column: &Column, backend: Backend, seed: Option<u64>) -> Result<Plan, Failure> {
        let overrides = self.overrides(column, seed);
        let scenario = self.load(&overrides)?;
        let config = scenario.sim_config();
        let cc = config.cc.info().name;
        let names = |backend: Backend| column.names(cc, seed, self.backends.suffix(backend));
        let RunNames { label, line, dir: name } = names(backend);
        let mut entry = RunEntry {
            label,
            point: column.point.clone(),
            grid: column.grid.iter().cloned().collect(),
            line,
            place: column.place.clone(),
            cc: cc.to_owned(),
            seed: config.seed,
            dir: name,
            state: "pending".to_owned(),
            scenario_hash: format!("{:016x}", scenario.hash()),
            ..RunEntry::default()
        };
        let place = dir.join(&entry.dir);
        ResultsDir::check(&place)?;
        // A real network is different each time.
        let again = self.fresh || self.backends.has_linux();
        if let Some(results) = complete_run_of(&place, &scenario).filter(|_| !again) {
            entry.end("complete", None, results.summary.fingerprint);
        }
        let label = Tag::new("label", TagValue::Text(entry.label.clone()));
        let tags = std::iter::once(label).chain(column.tags()).collect();
        let is_twin = backend == Backend::Sim && self.backends.has_linux();
        let twin = if is_twin { names(Backend::Linux).dir } else { String::new() };
        // Runs on Linux come first: the simulator needs their networks.
        let priority = if is_twin { f64::NEG_INFINITY } else { seconds_before(&place) };
        let (scenario, warnings) = (scenario.name().to_owned(), scenario.warnings().to_vec());
        Ok(Plan { overrides, scenario, warnings, entry, tags, backend, twin, priority })
    }
}

/// A failed run and its cause.
pub struct Failed {
    /// Its directory in the index.
    pub dir: String,
    /// The cause.
    pub cause: String,
}

/// The place and the settings of the planned runs.
pub struct Work<'a> {
    /// Their plan.
    pub planner: &'a Planner<'a>,
    /// Directory of the comparison.
    pub dir: &'a Path,
    /// The board that shows their progress.
    pub board: &'a Board,
    /// Number of threads of a run.
    pub threads: usize,
    /// The columns that are left out.
    pub refused: &'a Refused,
}

impl Work<'_> {
    /// Does the runs that are not complete, `jobs` at a time, until all have ended or Ctrl-C. Writes the index before
    /// the first run and whenever one has ended, so that it survives if the process is killed.
    pub fn run_all(&self, plans: &[Plan], jobs: usize, selection: &Selection) -> Result<Index, Failure> {
        let scenario = format::names(plans.iter().map(|plan| plan.scenario.as_str()));
        let mut index = Index::new(&scenario, plans.iter().map(|p| p.entry.clone()).collect(), selection);
        index.refused = self.refused.entries();
        index.write(self.dir)?;
        let known = |p: &Plan| p.is_taken_over().then(|| (End::Complete, p.entry.fingerprint.clone()));
        let planned = plans.iter().map(|p| Planned { known: known(p), priority: p.priority }).collect();
        let one = |i: usize| {
            let place = self.dir.join(&plans[i].entry.dir);
            self.run(&plans[i], &place).map_err(|failure| match failure {
                Failure::Run { cause, .. } => cause,
                failure => failure.to_string(),
            })
        };
        let mut unwritten = None;
        let mut ended = |i: usize, result: &Result<(End, String), String>| {
            let (state, error, fingerprint) = match result {
                Ok((End::Complete, fingerprint)) => ("complete", None, fingerprint.clone()),
                Ok((End::Interrupted, fingerprint)) => ("interrupted", None, fingerprint.clone()),
                Ok((End::Failed(cause), fingerprint)) => ("failed", Some(cause.clone()), fingerprint.clone()),
                Err(cause) => ("failed", Some(cause.clone()), String::new()),
            };
            self.board.ended();
            index.runs[i].end(state, error, fingerprint);
            // A simulated twin of a run on Linux has the network that the latter had.
            if let Some(results) =
                result.as_ref().ok().and_then(|_| Results::open(&self.dir.join(&plans[i].entry.dir)).ok())
            {
                index.runs[i].scenario_hash = results.summary.scenario_hash;
            }
            if let Err(error) = index.write(self.dir) {
                unwritten.get_or_insert(error);
            }
        };
        crew::work(planned, jobs, &drive::interrupted, &one, &mut ended);
        unwritten.map_or(Ok(index), |error: IndexError| Err(error.into()))
    }

    /// Does one run and writes its report. Returns its end and its fingerprint.
    fn run(&self, plan: &Plan, place: &Path) -> Result<(End, String), Failure> {
        if plan.backend == Backend::Linux {
            let end =
                self.planner.backends.run_on_linux(self.planner.file, &plan.overrides, &plan.entry.label, place)?;
            return Ok((end, String::new()));
        }
        let scenario = self.scenario(plan, place)?;
        let place = Arc::new(ResultsDir::claim(place)?);
        let watcher = Watcher::new(&plan.entry.dir, self.board, self.threads);
        let end = watcher.drive(&scenario, &plan.tags, &place)?;
        let place = place.path();
        let data = output::load(place, &plan.entry.label, self.planner.registry)?;
        let fingerprint = data.provenance.fingerprint.clone();
        output::write_report(place, data, Pictures::No)?;
        Ok((end, fingerprint))
    }

    /// Returns the scenario to simulate.
    fn scenario(&self, plan: &Plan, place: &Path) -> Result<Scenario, Failure> {
        if !plan.twin.is_empty() {
            let file = backend::effective(&self.dir.join(&plan.twin))?;
            return Ok(Scenario::with_algorithms(self.planner.registry).load(&file, &Overrides::default())?);
        }
        let scenario = self.planner.load(&plan.overrides)?;
        if format!("{:016x}", scenario.hash()) != plan.entry.scenario_hash {
            let cause = "the scenario or a file it names has changed since the comparison began".to_owned();
            return Err(Failure::Run { cause, dir: place.to_owned() });
        }
        Ok(scenario)
    }
}

/// Returns the failed runs.
pub fn failed(index: &Index) -> Vec<Failed> {
    let runs = index.runs.iter().filter(|r| r.state == "failed");
    runs.map(|r| Failed { dir: r.dir.clone(), cause: r.error.clone().unwrap_or_default() }).collect()
}
