//! The run of one simulation into a results directory.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use fairrate_experiment::Watch;
use fairrate_experiment::crew::caught;
pub use fairrate_results::RunState as End;
use fairrate_results::{ResultsDir, Tag};
use fairrate_scenario::Scenario;
use fairrate_sim::{Mode, Progress, Simulation};

use crate::failure::{Failure, INTERRUPTED};
use crate::progress::{Board, Goal, Job};

static STOP: AtomicBool = AtomicBool::new(false);
/// `true` once the page of a run was asked to stop it.
static STOP_FOR_PAGE: AtomicBool = AtomicBool::new(false);
/// `true` once nothing is left to write.
static ENDED: AtomicBool = AtomicBool::new(false);

/// Installs a handler: the first Ctrl-C (or SIGTERM) stops runs after their slice, the second ends the process.
pub fn listen_for_interrupts() {
    let heard = || {
        if STOP.swap(true, Ordering::SeqCst) {
            std::process::exit(i32::from(INTERRUPTED));
        }
        if !ENDED.load(Ordering::SeqCst) {
            eprintln!("interrupted: ending what runs (again: stop at once)");
        }
    };
    // The only possible error is a second handler in the same process, and there is none.
    let _ = ctrlc::set_handler(heard);
}

/// Returns `true` after a Ctrl-C.
pub fn interrupted() -> bool {
    STOP.load(Ordering::SeqCst)
}

/// Stops the run after its slice, as a Ctrl-C does, because its page was asked to.
pub fn stop_for_page() {
    if !STOP_FOR_PAGE.swap(true, Ordering::SeqCst) {
        eprintln!("stopped on its page: writing what there is");
    }
}

/// Notes that all is written: what is left is to wait for a Ctrl-C.
pub fn run_has_ended() {
    ENDED.store(true, Ordering::SeqCst);
}

/// A callback for the begin of a run.
type AtBegin<'a> = Box<dyn FnOnce(&Simulation) + 'a>;

/// An observer that shows the progress of a run, and stops it after Ctrl-C.
pub struct Watcher<'a> {
    /// The name of the run in progress messages.
    label: &'a str,
    /// The board that shows its progress.
    board: &'a Board,
    /// The largest number of threads.
    threads: usize,
    job: Option<Job<'a>>,
    /// Called when the run begins: its directory then has what a reader needs.
    at_begin: Option<AtBegin<'a>>,
}

impl<'a> Watcher<'a> {
    /// Returns an observer of the run `label` on up to `threads` threads.
    pub fn new(label: &'a str, board: &'a Board, threads: usize) -> Self {
        Self { label, board, threads, job: None, at_begin: None }
    }

    /// Calls `at_begin` once the run begins and its directory has its scenario and its empty tables.
    pub fn at_begin(self, at_begin: impl FnOnce(&Simulation) + 'a) -> Self {
        Self { at_begin: Some(Box::new(at_begin)), ..self }
    }

    /// Runs `scenario` and writes its results to `dir` meanwhile. The results are valid however the run ended.
    pub fn drive(mut self, scenario: &Scenario, tags: &[Tag], dir: &Arc<ResultsDir>) -> Result<End, Failure> {
        let threads = self.threads;
        let ended = caught(|| fairrate_experiment::drive(scenario, dir, tags, threads, &mut self));
        Ok(ended.map_err(|cause| Failure::Run { cause, dir: dir.path().to_owned() })??)
    }
}

impl Watch for Watcher<'_> {
    fn begins(&mut self, simulation: &Simulation) {
        self.job = Some(self.board.job(self.label, Goal::of(simulation.config())));
        if simulation.threads() < self.threads {
            self.board.note(&format!("{}: {}", self.label, fewer_threads(simulation.threads(), &simulation.mode())));
        }
        if let Some(at_begin) = self.at_begin.take() {
            at_begin(simulation);
        }
    }
    fn look(&mut self, progress: &Progress) -> ControlFlow<End> {
        if progress.finished {
            return ControlFlow::Continue(());
        }
        self.job.iter_mut().for_each(|job| job.update(progress));
        if interrupted() || STOP_FOR_PAGE.load(Ordering::SeqCst) {
            ControlFlow::Break(End::Interrupted)
        } else {
            ControlFlow::Continue(())
        }
    }
}

/// Returns the reason why a run in `mode` uses only `n` threads, fewer than asked for.
fn fewer_threads(n: usize, mode: &Mode) -> String {
    let reasons: Vec<String> = mode.one_part.iter().map(ToString::to_string).collect();
    match n {
        1 if !reasons.is_empty() => format!("1 thread, as {}", reasons.join("; ")),
        1 => "1 thread, as the network has one rack, or racks joined by links without delay or with faults".to_owned(),
        n => format!("{n} threads, one for each rack or pod"),
    }
}
