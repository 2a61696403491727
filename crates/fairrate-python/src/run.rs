//! Running a scenario into a directory, with regular calls of a Python function.

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use fairrate_experiment::Watch;
use fairrate_experiment::crew::caught;
use fairrate_results::{ResultsDir, RunState, Tag, TagValue};
use fairrate_sim::Progress;
use pyo3::prelude::*;

use crate::controller::Failed;
use crate::errors;
use crate::scenario::Scenario;

/// A tag's value.
#[derive(FromPyObject, IntoPyObject)]
pub enum Value {
    /// A whole number.
    Whole(u64),
    /// A real number.
    Number(f64),
    /// Text.
    Text(String),
}

impl From<Value> for TagValue {
    fn from(value: Value) -> Self {
        match value {
            Value::Whole(n) => Self::Whole(n),
            Value::Number(x) => Self::Number(x),
            Value::Text(text) => Self::Text(text),
        }
    }
}

impl From<TagValue> for Value {
    fn from(value: TagValue) -> Self {
        match value {
            TagValue::Whole(n) => Self::Whole(n),
            TagValue::Number(x) => Self::Number(x),
            TagValue::Text(text) => Self::Text(text),
        }
    }
}

/// Runs a scenario into `dir` and returns how it ended: `complete` or `interrupted`. `watch` is called with simulated
/// nanoseconds and finished flows, some times a second.
#[pyfunction]
pub fn run(
    py: Python<'_>,
    scenario: &Scenario,
    dir: PathBuf,
    tags: Vec<(String, Value)>,
    threads: usize,
    watch: Option<Py<PyAny>>,
) -> PyResult<&'static str> {
    let failed = scenario.failed();
    let scenario = scenario.inner();
    let tags: Vec<Tag> = tags.into_iter().map(|(name, value)| Tag::new(name, value.into())).collect();
    let place = ResultsDir::claim(&dir).map_err(|e| errors::of_results(py, &e))?;
    let place = Arc::new(place);
    let mut watcher = Watcher { call: watch, called: Instant::now(), failed: failed.clone(), stopped: None };
    let drive = || fairrate_experiment::drive(&scenario, &place, &tags, threads, &mut watcher);
    let ended = py.detach(|| caught(drive));
    if let Some(error) = watcher.stopped.or_else(|| failed.take()) {
        return Err(error);
    }
    match ended {
        Ok(Ok(RunState::Complete)) => Ok("complete"),
        Ok(Ok(RunState::Interrupted)) => Ok("interrupted"),
        Ok(Ok(RunState::Failed(cause))) | Err(cause) => Err(errors::of_run(py, &cause, &dir)),
        Ok(Err(error)) => Err(errors::of_results(py, &error)),
    }
}

/// Shortest time between two calls of Python's function.
const CALL_EVERY: Duration = Duration::from_millis(100);

/// The observer that lets Python's signals stop a run, and reports its progress.
struct Watcher {
    call: Option<Py<PyAny>>,
    called: Instant,
    /// Exceptions of the algorithm's code.
    failed: Failed,
    /// The exception that ends the run.
    stopped: Option<PyErr>,
}

impl Watcher {
    fn tell(&mut self, progress: &Progress) -> PyResult<()> {
        Python::attach(|py| {
            py.check_signals()?;
            match &self.call {
                Some(call) if CALL_EVERY <= self.called.elapsed() => {
                    self.called = Instant::now();
                    call.call1(py, (progress.now.as_ns_f64(), progress.flows_done)).map(|_| ())
                }
                _ => Ok(()),
            }
        })
    }
}

impl Watch for Watcher {
    fn look(&mut self, progress: &Progress) -> ControlFlow<RunState> {
        if self.failed.is_noted() {
            return ControlFlow::Break(RunState::Failed("the algorithm's code raised an exception".to_owned()));
        }
        match self.tell(progress) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                self.stopped = Some(error);
                ControlFlow::Break(RunState::Interrupted)
            }
        }
    }
}
