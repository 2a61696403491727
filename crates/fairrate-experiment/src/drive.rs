//! The run of a scenario into a results directory.

use std::sync::Arc;

use fairrate_results::{ResultsDir, ResultsError, ResultsWriter, RunState, Tag};
use fairrate_scenario::Scenario;
use fairrate_sim::{Both, Sink};

use crate::inputs_of;
use crate::simulate::{Ended, Watch, run_into};

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
    drive_and_report(scenario, dir, tags, threads, &mut (), watch).map(|ended| ended.state)
}

/// Does the same as [`drive`], reports to `sink` too, and returns the whole end of the run.
///
/// # Errors
/// As [`drive`].
pub fn drive_and_report(
    scenario: &Scenario,
    dir: &Arc<ResultsDir>,
    tags: &[Tag],
    threads: usize,
    sink: &mut dyn Sink,
    watch: &mut dyn Watch,
) -> Result<Ended, ResultsError> {
    let mut writer = ResultsWriter::create_in(dir, &inputs_of(scenario), tags)?;
    let ended = run_into(scenario.sim_config().clone(), threads, &mut Both(&mut writer, sink), watch);
    writer.set_mode(ended.mode.clone());
    writer.set_groups(&ended.groups);
    writer.set_ports(&ended.ports);
    writer.check()?;
    writer.finish(&ended.unfinished, &ended.totals, ended.build + ended.wall, &ended.state)?;
    Ok(ended)
}
