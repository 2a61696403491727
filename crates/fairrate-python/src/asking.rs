//! Questions to a run at fixed simulated times: what some metrics are by then, and whether it goes on.

use std::cell::RefCell;
use std::ops::ControlFlow;
use std::path::PathBuf;

use fairrate_experiment::Watch;
use fairrate_report::so_far::SoFar;
use fairrate_results::{FlowRow, Results, RunState};
use fairrate_sim::{FlowOutcome, FlowSpec, Progress, Simulation, Sink};
use fairrate_units::Time;
use pyo3::prelude::*;

use crate::errors;
use crate::scenario::Scenario;

/// Events per thread between two looks at the time: a run that is stopped goes on no longer than some milliseconds.
const SLICE: u64 = 10_000;

/// The least time that a run has to be ahead of a question, so that times rounded to nanoseconds tell what has happened
/// by then.
const AHEAD: Time = Time::from_ns(2);

/// The questions of a caller.
pub struct Questions {
    /// Times of the questions in ns, ascending.
    pub times_ns: Vec<u64>,
    /// The metrics that are asked for.
    pub so_far: SoFar,
    /// Called with the number of a question and the values; returns `True` if the run goes on.
    pub judge: Py<PyAny>,
}

/// Returns the metrics `names` of a scenario's flows.
///
/// # Errors
/// A `ValueError` with the name of a metric that depends on more than flows.
pub fn so_far(scenario: &Scenario, names: &[String]) -> PyResult<SoFar> {
    let inner = scenario.inner();
    let (window, blocks) = (inner.window(), fairrate_scenario::traffic_block_names(&inner.to_toml()));
    let ns = |t: Time| (t.as_ps() + 500) / 1_000;
    SoFar::new(names, blocks, ns(window.from), window.until.map(ns)).map_err(pyo3::exceptions::PyValueError::new_err)
}

/// Returns the first of `names` that is no metric of a run under way; `None` if all are.
#[pyfunction]
pub fn not_of_flows(scenario: &Scenario, names: Vec<String>) -> Option<String> {
    let blocks = fairrate_scenario::traffic_block_names(&scenario.inner().to_toml());
    SoFar::new(&names, blocks, 0, None).err()
}

/// Returns the metrics `names` at each of `times_ns`, of the complete run of a scenario in `dir`: the values that the
/// run had then.
#[pyfunction]
pub fn values_at(
    py: Python<'_>,
    scenario: &Scenario,
    dir: PathBuf,
    times_ns: Vec<u64>,
    names: Vec<String>,
) -> PyResult<Vec<Vec<Option<f64>>>> {
    let so_far = so_far(scenario, &names)?;
    let read = || {
        let rows = Results::open(&dir)?.flows()?;
        Ok(times_ns.iter().map(|&t_ns| so_far.values(&rows, t_ns)).collect())
    };
    py.detach(read).map_err(|e| errors::of_results(py, &e))
}

/// The flows of a run that have finished, which its questions need.
pub struct Done(RefCell<Vec<FlowOutcome>>);

impl Done {
    /// Returns an empty list.
    pub fn new() -> Self {
        Self(RefCell::new(Vec::new()))
    }
}

impl Sink for &Done {
    fn flow(&mut self, outcome: &FlowOutcome) {
        self.0.borrow_mut().push(*outcome);
    }
}

/// An observer that asks questions, and lets another observer look as well.
pub struct Asker<'a, W> {
    watch: &'a mut W,
    questions: &'a Questions,
    done: &'a Done,
    /// Number of questions that were asked.
    n_asked: usize,
    /// Number of flows of the run.
    n_flows: usize,
    /// The question at which the run was stopped.
    pub stopped: Option<usize>,
    /// The exception of the caller's function.
    pub raised: Option<PyErr>,
}

impl<'a, W: Watch> Asker<'a, W> {
    /// Returns an observer that asks `questions` of the run whose finished flows are `done`.
    pub fn new(watch: &'a mut W, questions: &'a Questions, done: &'a Done) -> Self {
        Self { watch, questions, done, n_asked: 0, n_flows: 0, stopped: None, raised: None }
    }

    /// Returns all flows of the run; `None` as long as some have finished that were not reported yet.
    fn rows(&self, simulation: &Simulation) -> Option<Vec<FlowRow>> {
        let specs: &[FlowSpec] = &simulation.config().flows;
        let (done, open) = (self.done.0.borrow(), simulation.unfinished());
        let row = |outcome: &FlowOutcome| FlowRow::of(&specs[outcome.flow.index()], outcome);
        (done.len() + open.len() == self.n_flows).then(|| done.iter().chain(&open).map(row).collect())
    }

    /// Asks the questions whose time has passed. Returns `true` if the run goes on.
    fn ask(&mut self, now: Time, simulation: &Simulation) -> PyResult<bool> {
        while let Some(&t_ns) = self.questions.times_ns.get(self.n_asked) {
            if now <= Time::from_ns(t_ns) + AHEAD {
                break;
            }
            let Some(rows) = self.rows(simulation) else { break };
            let values = self.questions.so_far.values(&rows, t_ns);
            let question = self.n_asked;
            self.n_asked += 1;
            let answer = Python::attach(|py| self.questions.judge.call1(py, (question, values))?.is_truthy(py))?;
            if !answer {
                self.stopped = Some(question);
                return Ok(false);
            }
        }
        Ok(true)
    }
}

impl<W: Watch> Watch for Asker<'_, W> {
    fn begins(&mut self, simulation: &Simulation) {
        self.n_flows = simulation.unfinished().len();
        self.watch.begins(simulation);
    }

    fn look(&mut self, progress: &Progress) -> ControlFlow<RunState> {
        self.watch.look(progress)
    }

    fn inspect(&mut self, progress: &Progress, simulation: &Simulation) -> ControlFlow<RunState> {
        match self.ask(progress.now, simulation) {
            Ok(true) => self.watch.look(progress),
            Ok(false) => ControlFlow::Break(RunState::Interrupted),
            Err(error) => {
                self.raised = Some(error);
                ControlFlow::Break(RunState::Interrupted)
            }
        }
    }

    fn slice(&self) -> u64 {
        if self.n_asked < self.questions.times_ns.len() { SLICE } else { self.watch.slice() }
    }
}
