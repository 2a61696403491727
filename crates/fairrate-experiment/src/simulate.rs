//! The run of a simulation into any sink, with an observer that may stop it.

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use fairrate_results::RunState;
use fairrate_sim::{FlowOutcome, GroupTotals, Mode, PortTotals, Progress, RunTotals, SimConfig, Simulation, Sink};

/// Number of events per thread between two looks of a [`Watch`], unless it asks for another: some hundredths of a
/// second.
const SLICE: u64 = 200_000;

/// An observer of a run, which may stop it. A function that returns `true` as long as the run shall go on is one.
pub trait Watch {
    /// Observes that `_simulation` begins.
    fn begins(&mut self, _simulation: &Simulation) {}
    /// Decides how the run goes on, after every slice and at its end: returns `Continue`, or `Break` with the state in
    /// which the run ends.
    fn look(&mut self, progress: &Progress) -> ControlFlow<RunState>;
    /// Decides as [`Watch::look`], which it calls, with the state of the run.
    fn inspect(&mut self, progress: &Progress, _simulation: &Simulation) -> ControlFlow<RunState> {
        self.look(progress)
    }
    /// Returns the number of events per thread until the next look.
    fn slice(&self) -> u64 {
        SLICE
    }
}

impl<F: FnMut(&Progress) -> bool> Watch for F {
    fn look(&mut self, progress: &Progress) -> ControlFlow<RunState> {
        if progress.finished || self(progress) {
            ControlFlow::Continue(())
        } else {
            ControlFlow::Break(RunState::Interrupted)
        }
    }
}

/// Lets every run go on.
impl Watch for () {
    fn look(&mut self, _: &Progress) -> ControlFlow<RunState> {
        ControlFlow::Continue(())
    }
}

/// A run that has ended.
#[derive(Clone, Debug)]
pub struct Ended {
    /// The state in which it ended.
    pub state: RunState,
    /// The way in which it was simulated.
    pub mode: Mode,
    /// The number of threads it used.
    pub threads: usize,
    /// Its totals.
    pub totals: RunTotals,
    /// Totals of each traffic block, as [`Simulation::group_totals`] returns them.
    pub groups: Vec<GroupTotals>,
    /// Counters of every port, as [`Simulation::port_totals`] returns them.
    pub ports: Vec<PortTotals>,
    /// The flows that had not finished.
    pub unfinished: Vec<FlowOutcome>,
    /// Time before the first event, in which the network was built.
    pub build: Duration,
    /// Time from the first event to the last.
    pub wall: Duration,
}

/// Simulates `config` on up to `threads` threads, reports to `sink`, and calls `watch` now and then. Stops early if the
/// sink is closed.
pub fn run_into(config: SimConfig, threads: usize, sink: &mut dyn Sink, watch: &mut dyn Watch) -> Ended {
    let start = Instant::now();
    let mut simulation = Simulation::with_threads(config, threads);
    let (mode, threads, build) = (simulation.mode(), simulation.threads(), start.elapsed());
    watch.begins(&simulation);
    let start = Instant::now();
    let mut state = loop {
        let progress = match simulation.advance(watch.slice() * threads as u64, sink) {
            Ok(progress) => progress,
            Err(error) => break RunState::Failed(error.to_string()),
        };
        if sink.is_closed() {
            break RunState::Interrupted;
        }
        match watch.inspect(&progress, &simulation) {
            ControlFlow::Break(state) => break state,
            ControlFlow::Continue(()) if progress.finished => break RunState::Complete,
            ControlFlow::Continue(()) => {}
        }
    };
    let (wall, totals, unfinished) = (start.elapsed(), simulation.totals(), simulation.unfinished());
    let (groups, ports) = (simulation.group_totals(), simulation.port_totals());
    if let (RunState::Complete, Some(lost)) = (&state, unaccounted(&totals)) {
        state = RunState::Failed(lost);
    }
    Ended { state, mode, threads, totals, groups, ports, unfinished, build, wall }
}

/// Returns a message if bytes are not conserved.
fn unaccounted(t: &RunTotals) -> Option<String> {
    (t.unaccounted_bytes() != 0).then(|| {
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
