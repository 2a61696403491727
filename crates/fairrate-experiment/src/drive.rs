//! The run of a scenario into a results directory.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Instant;

use fairrate_results::{ResultsDir, ResultsError, ResultsWriter, RunState, Tag};
use fairrate_scenario::Scenario;
use fairrate_sim::{Progress, RunTotals, Simulation};

use crate::inputs_of;

/// Number of events per thread between two calls of [`Watch::look`]: some hundredths of a second.
const SLICE: u64 = 200_000;

/// An observer of a run, which may stop it.
pub trait Watch {
    /// Observes that the run begins, on `_threads` threads.
    fn begins(&mut self, _threads: usize) {}
    /// Decides how the run goes on, after every slice and at its end: returns `Continue`, or `Break` with the state in
    /// which the run ends.
    fn look(&mut self, progress: &Progress) -> ControlFlow<RunState>;
}

/// Runs `scenario` on up to `threads` threads and writes its results to `dir` meanwhile; all rows of its tables have
/// `tags`. The results are valid however the run ended. Returns the state in which it ended.
///
/// # Errors
/// If something cannot be written. A run that fails is no error: the result is [`RunState::Failed`].
pub fn drive(
    scenario: &Scenario,
    dir: &Arc<ResultsDir>,
    tags: &[Tag],
    threads: usize,
    watch: &mut dyn Watch,
) -> Result<RunState, ResultsError> {
    let mut writer = ResultsWriter::create_in(dir, &inputs_of(scenario), tags)?;
    let started = Instant::now();
    let mut simulation = Simulation::with_threads(scenario.sim_config().clone(), threads);
    writer.set_mode(simulation.mode());
    watch.begins(simulation.threads());
    let slice = SLICE * simulation.threads() as u64;
    let mut state = loop {
        let progress = match simulation.advance(slice, &mut writer) {
            Ok(progress) => progress,
            Err(error) => break RunState::Failed(error.to_string()),
        };
        writer.check()?;
        match watch.look(&progress) {
            ControlFlow::Break(state) => break state,
            ControlFlow::Continue(()) if progress.finished => break RunState::Complete,
            ControlFlow::Continue(()) => {}
        }
    };
    let wall = started.elapsed();
    let totals = simulation.totals();
    if let (RunState::Complete, Some(lost)) = (&state, unaccounted(&totals)) {
        state = RunState::Failed(lost);
    }
    writer.finish(&simulation.unfinished(), &totals, wall, &state)?;
    Ok(state)
}

/// Returns a message if bytes are not conserved.
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
