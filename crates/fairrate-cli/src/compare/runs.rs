//! The runs of a comparison: all are checked before the first one starts, several run at a time, and the failure of one
//! does not stop the others.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use fairrate_control::Registry;
use fairrate_experiment::columns::Column;
use fairrate_experiment::complete_run_of;
use fairrate_report::metric::Metric;
use fairrate_results::{ResultsDir, Tag, TagValue};
use fairrate_scenario::{Overrides, Scenario};

use super::backend::{self, Backend, Backends};
use super::index::{Index, RunEntry};
use crate::drive::{self, End};
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
    /// The backends of the runs.
    pub backends: &'a Backends,
}

impl Planner<'_> {
    /// Checks all runs, and returns them with the directory of the comparison. Writes nothing.
    pub fn plan(&self, columns: &[Column], jobs: usize) -> Result<(PathBuf, Vec<Plan>), Failure> {
        // The default directory has the name of the first scenario.
        let default_dir = |name: &str| Path::new("runs").join(output::file_name(&format!("{name}-compare")));
        let first = self.load(&self.overrides(&columns[0], self.seeds.map(|s| s[0])))?;
        let dir = self.out.map_or_else(|| default_dir(first.name()), Path::to_owned);
        drop(first);
        ResultsDir::check(&dir)?;
        let seeds: Vec<Option<u64>> = self.seeds.map_or_else(|| vec![None], |s| s.iter().copied().map(Some).collect());
        let each = columns.iter().flat_map(|column| self.backends.each().map(move |backend| (column, backend)));
        let runs: Vec<(&Column, Backend, Option<u64>)> =
            each.flat_map(|(column, backend)| seeds.iter().map(move |seed| (column, backend, *seed))).collect();
        let wrong = AtomicBool::new(false);
        let check = |i: usize| {
            let plan = self.check(&dir, runs[i].0, runs[i].1, runs[i].2);
            wrong.fetch_or(plan.is_err(), Ordering::Relaxed);
            plan
        };
        // Runs are checked in order, so that of several errors the first one is reported, with any number of threads.
        let plans = in_parallel(runs.len(), jobs, &|| wrong.load(Ordering::Relaxed), &check);
        Ok((dir, plans.into_iter().flatten().collect::<Result<_, _>>()?))
    }

    fn load(&self, overrides: &Overrides) -> Result<Scenario, Failure> {
        Ok(Scenario::with_algorithms(self.registry).load(self.file, overrides)?)
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
        let name = if column.name.is_empty() { cc } else { &column.name };
        let of = |backend: Backend| match self.backends.suffix(backend) {
            Some(suffix) => format!("{name}-{suffix}"),
            None => name.to_owned(),
        };
        let dir_of = |backend| seed.map_or_else(|| of(backend), |seed| format!("{}-seed{seed}", of(backend)));
        let label = if column.label.is_empty() { cc } else { &column.label };
        let line = if column.line.is_empty() { cc } else { &column.line };
        let called = |name: &str| match self.backends.suffix(backend) {
            Some(suffix) => format!("{name} ({suffix})"),
            None => name.to_owned(),
        };
        let mut entry = RunEntry {
            label: called(label),
            point: column.point.clone(),
            grid: column.grid.iter().cloned().collect(),
            line: called(line),
            place: column.place.clone(),
            cc: cc.to_owned(),
            seed: config.seed,
            dir: dir_of(backend),
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
        let twin = if is_twin { dir_of(Backend::Linux) } else { String::new() };
        let (scenario, warnings) = (scenario.name().to_owned(), scenario.warnings().to_vec());
        Ok(Plan { overrides, scenario, warnings, entry, tags, backend, twin })
    }
}

/// A failed run and its cause.
pub struct Failed {
    /// Its directory in the index.
    pub dir: String,
    /// The cause.
    pub cause: String,
}

/// The execution of the planned runs.
pub struct Crew<'a> {
    planner: &'a Planner<'a>,
    dir: &'a Path,
    plans: &'a [Plan],
    board: &'a Board,
    /// Number of threads of a run.
    threads: usize,
    /// The index, written whenever a run has ended, so that it survives if the process is killed; and the first error
    /// of writing it.
    index: Mutex<(Index, Option<Failure>)>,
}

impl<'a> Crew<'a> {
    /// Returns a crew for `plans`, after writing the index.
    pub fn new(
        planner: &'a Planner<'a>,
        dir: &'a Path,
        plans: &'a [Plan],
        board: &'a Board,
        threads: usize,
        drawn: &[Metric],
    ) -> Result<Self, Failure> {
        let index = Index::new(&plans[0].scenario, plans.iter().map(|p| p.entry.clone()).collect(), drawn);
        index.write(dir)?;
        Ok(Self { planner, dir, plans, board, threads, index: Mutex::new((index, None)) })
    }

    /// Does the runs that are not complete, `jobs` at a time, until all have ended or Ctrl-C.
    pub fn work(self, jobs: usize) -> Result<Index, Failure> {
        let mut open: Vec<usize> = (0..self.plans.len()).filter(|i| !self.plans[*i].is_taken_over()).collect();
        // Runs on Linux come first: the simulator needs their networks.
        open.sort_by_key(|i| !self.plans[*i].twin.is_empty());
        in_parallel(open.len(), jobs, &drive::interrupted, &|k| self.one(open[k]));
        let (index, error) = self.index.into_inner().expect("no thread panics with this lock held");
        error.map_or(Ok(index), Err)
    }

    fn one(&self, i: usize) {
        let plan = &self.plans[i];
        let place = self.dir.join(&plan.entry.dir);
        let done = drive::caught(&place, || self.run(plan, &place));
        let (state, error, fingerprint) = match done {
            Ok((End::Complete, fingerprint)) => ("complete", None, fingerprint),
            Ok((End::Interrupted, fingerprint)) => ("interrupted", None, fingerprint),
            Ok((End::Failed(cause), fingerprint)) => ("failed", Some(cause), fingerprint),
            Err(Failure::Run { cause, .. }) => ("failed", Some(cause), String::new()),
            Err(failure) => ("failed", Some(failure.to_string()), String::new()),
        };
        self.board.ended();
        let mut guard = self.index.lock().expect("no thread panics with this lock held");
        let (index, unwritten) = &mut *guard;
        index.runs[i].end(state, error, fingerprint);
        if let Err(failure) = index.write(self.dir) {
            unwritten.get_or_insert(failure);
        }
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
        let run = drive::Run { label: &plan.entry.dir, tags: &plan.tags, board: self.board, threads: self.threads };
        let end = run.drive(&scenario, &place)?;
        let place = place.path();
        let data = output::load(place, &plan.entry.label, self.planner.registry)?;
        let fingerprint = data.provenance.fingerprint.clone();
        output::write_report(place, data, Pictures::No)?;
        Ok((end, fingerprint))
    }
}

impl Crew<'_> {
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

/// Calls `one` for `0..n` in order, `jobs` at a time, until `stop` returns `true`. The results of calls that were not
/// begun are `None`.
pub fn in_parallel<T: Send>(
    n: usize,
    jobs: usize,
    stop: &(dyn Fn() -> bool + Sync),
    one: &(dyn Fn(usize) -> T + Sync),
) -> Vec<Option<T>> {
    let next = AtomicUsize::new(0);
    let done: Vec<Mutex<Option<T>>> = (0..n).map(|_| Mutex::new(None)).collect();
    let work = || {
        while !stop() {
            let Some(i) = Some(next.fetch_add(1, Ordering::Relaxed)).filter(|i| *i < n) else { return };
            *done[i].lock().expect("no thread panics with this lock held") = Some(one(i));
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..jobs.min(n) {
            scope.spawn(work);
        }
    });
    done.into_iter().map(|d| d.into_inner().expect("no thread panics with this lock held")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_is_done_once_whatever_the_number_of_threads() {
        for jobs in [1, 3, 100] {
            let got = in_parallel(10, jobs, &|| false, &|i| i * i);
            assert_eq!(got, (0..10).map(|i| Some(i * i)).collect::<Vec<_>>());
        }
    }

    #[test]
    fn nothing_new_begins_after_a_stop() {
        let count = AtomicUsize::new(0);
        let stop = || 3 <= count.load(Ordering::Relaxed);
        let got = in_parallel(10, 1, &stop, &|i| {
            count.fetch_add(1, Ordering::Relaxed);
            i
        });
        assert_eq!(got.iter().flatten().count(), 3);
    }

    #[test]
    fn a_panic_in_one_run_is_its_own_failure() {
        let place = Path::new("somewhere");
        let run = |i: usize| drive::caught(place, || if i == 1 { panic!("queue of {i} is negative") } else { Ok(i) });
        let got = in_parallel(3, 2, &|| false, &run);
        let ok: Vec<bool> = got.iter().map(|r| r.as_ref().unwrap().is_ok()).collect();
        assert_eq!(ok, [true, false, true]);
        let Some(Err(Failure::Run { cause, .. })) = &got[1] else { panic!("it failed") };
        assert!(cause.contains("invariants") && cause.ends_with("(queue of 1 is negative)"), "{cause}");
    }
}
