//! Running a scenario into a directory, with regular calls of a Python function.

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use fairrate_experiment::crew::caught;
use fairrate_experiment::{Watch, drive_and_report};
use fairrate_results::{ResultsDir, RunState, Tag, TagValue};
use fairrate_sim::Progress;
use pyo3::prelude::*;

use crate::asking::{self, Asker, Done, Questions};
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

/// Questions of Python: times in ns, ascending; names of metrics; the function that is called with the number of a
/// question and the values, and returns `True` if the run goes on.
type Asked = (Vec<u64>, Vec<String>, Py<PyAny>);

/// Runs a scenario into `dir` and returns how it ended: `complete`, `interrupted`, or `stopped` by an answer to a
/// question. `watch` is called with simulated nanoseconds and finished flows, some times a second.
#[pyfunction]
#[pyo3(signature = (scenario, dir, tags, threads, watch, asked=None))]
pub fn run(
    py: Python<'_>,
    scenario: &Scenario,
    dir: PathBuf,
    tags: Vec<(String, Value)>,
    threads: usize,
    watch: Option<Py<PyAny>>,
    asked: Option<Asked>,
) -> PyResult<&'static str> {
    let failed = scenario.failed();
    let with_names = |(times_ns, names, judge): Asked| {
        Ok::<_, PyErr>(Questions { times_ns, so_far: asking::so_far(scenario, &names)?, judge })
    };
    let questions = asked.map(with_names).transpose()?;
    let scenario = scenario.inner();
    let tags: Vec<Tag> = tags.into_iter().map(|(name, value)| Tag::new(name, value.into())).collect();
    let place = ResultsDir::claim(&dir).map_err(|e| errors::of_results(py, &e))?;
    let place = Arc::new(place);
    let mut watcher = Watcher { call: watch, called: Instant::now(), failed: failed.clone(), stopped: None };
    let (mut raised, mut stopped) = (None, None);
    let drive = || {
        let Some(questions) = &questions else {
            return fairrate_experiment::drive(&scenario, &place, &tags, threads, &mut watcher);
        };
        let done = Done::new();
        let mut asker = Asker::new(&mut watcher, questions, &done);
        let ended = drive_and_report(&scenario, &place, &tags, threads, &mut &done, &mut asker);
        (raised, stopped) = (asker.raised, asker.stopped);
        ended.map(|ended| ended.state)
    };
    let ended = py.detach(|| caught(drive));
    if let Some(error) = raised.or(watcher.stopped).or_else(|| failed.take()) {
        return Err(error);
    }
    match ended {
        Ok(Ok(RunState::Interrupted)) if stopped.is_some() => Ok("stopped"),
        Ok(Ok(RunState::Complete)) => Ok("complete"),
        Ok(Ok(RunState::Interrupted)) => Ok("interrupted"),
        Ok(Ok(RunState::Failed(cause))) | Err(cause) => Err(errors::of_run(py, &cause, &dir)),
        Ok(Err(error)) => Err(errors::of_results(py, &error)),
    }
}

/// An observer that lets Python's signals stop a run.
#[derive(Default)]
pub struct Signals {
    /// The exception that ends the run.
    pub raised: Option<PyErr>,
}

impl Watch for Signals {
    fn look(&mut self, _: &Progress) -> ControlFlow<RunState> {
        let signals = Python::attach(|py: Python<'_>| -> PyResult<()> { py.check_signals() });
        match signals {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                self.raised = Some(error);
                ControlFlow::Break(RunState::Interrupted)
            }
        }
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
