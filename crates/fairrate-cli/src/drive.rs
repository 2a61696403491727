//! Runs one simulation into a results directory.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use fairrate_scenario::{ResultsDir, ResultsWriter, RunState, Scenario, Tag};
use fairrate_sim::{RunTotals, Simulation};

use crate::failure::{Failure, INTERRUPTED};
use crate::progress::{Board, Goal};

/// Events of a thread between two looks at the clock and at Ctrl-C: some hundredths of a second.
const SLICE: u64 = 200_000;

static STOP: AtomicBool = AtomicBool::new(false);

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// As the scenario says.
    Complete,
    /// By Ctrl-C.
    Interrupted,
    /// By an error.
    Failed(String),
}

/// From now on the first Ctrl-C (or SIGTERM) stops runs after their slice, and the second ends the process.
pub fn listen_for_interrupts() {
    let heard = || {
        if STOP.swap(true, Ordering::SeqCst) {
            std::process::exit(i32::from(INTERRUPTED));
        }
        eprintln!("interrupted: writing what there is (again: stop at once)");
    };
    // A second handler in the same process is the only error there is, and there is none.
    let _ = ctrlc::set_handler(heard);
}

/// Whether Ctrl-C was heard.
pub fn interrupted() -> bool {
    STOP.load(Ordering::SeqCst)
}

/// How a scenario is run.
#[derive(Clone, Copy)]
pub struct Run<'a> {
    /// What progress calls it.
    pub label: &'a str,
    /// What all rows of its tables say.
    pub tags: &'a [Tag],
    /// Where it shows how far it is.
    pub board: &'a Board,
    /// Threads at most.
    pub threads: usize,
}

impl Run<'_> {
    /// Runs `scenario`, writing to `dir` as it goes. What is there at the end is valid, however the run ended.
    pub fn drive(&self, scenario: &Scenario, dir: &Arc<ResultsDir>) -> Result<End, Failure> {
        caught(dir.path(), || self.run_to_end(scenario, dir))
    }

    fn run_to_end(&self, scenario: &Scenario, dir: &Arc<ResultsDir>) -> Result<End, Failure> {
        let config = scenario.sim_config();
        let mut job = self.board.job(self.label, Goal::of(config));
        let mut writer = ResultsWriter::create_in(dir, scenario, self.tags)?;
        let started = Instant::now();
        let mut simulation = Simulation::with_threads(config.clone(), self.threads);
        if simulation.threads() < self.threads {
            self.board.note(&format!("{}: {}", self.label, fewer_threads(simulation.threads())));
        }
        let slice = SLICE * simulation.threads() as u64;
        let mut end = loop {
            match simulation.advance(slice, &mut writer) {
                Ok(progress) if progress.finished => break End::Complete,
                Ok(progress) => job.update(&progress),
                Err(error) => break End::Failed(error.to_string()),
            }
            writer.check()?;
            if interrupted() {
                break End::Interrupted;
            }
        };
        let wall = started.elapsed();
        drop(job);
        let totals = simulation.totals();
        if let (End::Complete, Some(lost)) = (&end, unaccounted(&totals)) {
            end = End::Failed(lost);
        }
        let state = match &end {
            End::Complete => RunState::Complete,
            End::Interrupted => RunState::Interrupted,
            End::Failed(cause) => RunState::Failed(cause.clone()),
        };
        writer.finish(&simulation.unfinished(), &totals, wall, &state)?;
        Ok(end)
    }
}

/// What `f` gives, or a failure if it panics: a broken invariant fails this run, not the others of a comparison.
pub fn caught<T>(dir: &Path, f: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
    let panicked = |payload: Box<dyn Any + Send>| {
        let text = payload.downcast_ref::<&str>().map(|s| (*s).to_owned());
        let text = text.or_else(|| payload.downcast_ref::<String>().cloned()).unwrap_or_default();
        let what = "fairrate broke one of its own invariants; please report it with the scenario";
        Failure::Run { cause: format!("{what} ({text})"), dir: dir.to_owned() }
    };
    catch_unwind(AssertUnwindSafe(f)).unwrap_or_else(|payload| Err(panicked(payload)))
}

/// Why a run does not use as many threads as were asked for.
fn fewer_threads(n: usize) -> String {
    if n > 1 {
        return format!("{n} threads, for so many racks or pods");
    }
    "1 thread: there is one rack, or something in it knows of the whole network at once (profile ns3, a convergence \
     probe, an allocator's outage)"
        .to_owned()
}

/// Says if bytes are not conserved.
fn unaccounted(t: &RunTotals) -> Option<String> {
    let found = t.delivered_bytes + t.dropped_bytes + t.in_flight_bytes;
    (found != t.sent_bytes + t.duplicated_bytes).then(|| {
        let parts =
            format!("{} delivered, {} dropped, {} in flight", t.delivered_bytes, t.dropped_bytes, t.in_flight_bytes);
        format!("bytes are not conserved: {} sent, but {parts}", t.sent_bytes)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lost_bytes_are_named() {
        let totals = RunTotals {
            sent_bytes: 10,
            delivered_bytes: 4,
            dropped_bytes: 3,
            in_flight_bytes: 3,
            ..RunTotals::default()
        };
        assert_eq!(unaccounted(&totals), None);
        let message = unaccounted(&RunTotals { in_flight_bytes: 2, ..totals }).unwrap();
        assert_eq!(message, "bytes are not conserved: 10 sent, but 4 delivered, 3 dropped, 2 in flight");
    }
}
