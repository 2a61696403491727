//! The run of one simulation into a results directory.

use std::any::Any;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use fairrate_experiment::Watch;
pub use fairrate_results::RunState as End;
use fairrate_results::{ResultsDir, Tag};
use fairrate_scenario::Scenario;
use fairrate_sim::Progress;

use crate::failure::{Failure, INTERRUPTED};
use crate::progress::{Board, Goal, Job};

static STOP: AtomicBool = AtomicBool::new(false);

/// Installs a handler: the first Ctrl-C (or SIGTERM) stops runs after their slice, the second ends the process.
pub fn listen_for_interrupts() {
    let heard = || {
        if STOP.swap(true, Ordering::SeqCst) {
            std::process::exit(i32::from(INTERRUPTED));
        }
        eprintln!("interrupted: writing what there is (again: stop at once)");
    };
    // The only possible error is a second handler in the same process, and there is none.
    let _ = ctrlc::set_handler(heard);
}

/// Returns `true` after a Ctrl-C.
pub fn interrupted() -> bool {
    STOP.load(Ordering::SeqCst)
}

/// The settings of a run.
#[derive(Clone, Copy)]
pub struct Run<'a> {
    /// Name of the run in progress messages.
    pub label: &'a str,
    /// Tags of all rows of its tables.
    pub tags: &'a [Tag],
    /// The board that shows its progress.
    pub board: &'a Board,
    /// Largest number of threads.
    pub threads: usize,
}

impl Run<'_> {
    /// Runs `scenario` and writes its results to `dir` meanwhile. The results are valid however the run ended.
    pub fn drive(&self, scenario: &Scenario, dir: &Arc<ResultsDir>) -> Result<End, Failure> {
        let job = self.board.job(self.label, Goal::of(scenario.sim_config()));
        let mut watcher = Watcher { run: self, job };
        caught(dir.path(), || Ok(fairrate_experiment::drive(scenario, dir, self.tags, self.threads, &mut watcher)?))
    }
}

/// An observer that shows the progress of a run, and stops it after Ctrl-C.
struct Watcher<'a> {
    run: &'a Run<'a>,
    job: Job<'a>,
}

impl Watch for Watcher<'_> {
    fn begins(&mut self, threads: usize) {
        if threads < self.run.threads {
            self.run.board.note(&format!("{}: {}", self.run.label, fewer_threads(threads)));
        }
    }
    fn look(&mut self, progress: &Progress) -> ControlFlow<End> {
        if progress.finished {
            return ControlFlow::Continue(());
        }
        self.job.update(progress);
        if interrupted() { ControlFlow::Break(End::Interrupted) } else { ControlFlow::Continue(()) }
    }
}

/// Calls `f`; a panic becomes a failure. A broken invariant then fails this run, not the others of a comparison.
pub fn caught<T>(dir: &Path, f: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
    let panicked = |payload: Box<dyn Any + Send>| {
        let text = payload.downcast_ref::<&str>().map(|s| (*s).to_owned());
        let text = text.or_else(|| payload.downcast_ref::<String>().cloned()).unwrap_or_default();
        let what = "fairrate broke one of its own invariants; please report it with the scenario";
        Failure::Run { cause: format!("{what} ({text})"), dir: dir.to_owned() }
    };
    catch_unwind(AssertUnwindSafe(f)).unwrap_or_else(|payload| Err(panicked(payload)))
}

/// Returns the reason why a run uses only `n` threads, fewer than asked for.
fn fewer_threads(n: usize) -> String {
    if n > 1 {
        return format!("{n} threads, for so many racks or pods");
    }
    "1 thread: there is one rack, or something in it knows of the whole network at once (profile ns3, a convergence \
     probe, an allocator's outage)"
        .to_owned()
}
