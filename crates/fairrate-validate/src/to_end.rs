//! The run of a simulation to its end.

use fairrate_experiment::{Ended, run_into};
use fairrate_results::RunState;
use fairrate_sim::{SimConfig, Sink};

/// Simulates `config` to its end and reports to `sink`.
///
/// # Errors
/// If the run stalls, or loses bytes.
pub fn run_to_end(config: SimConfig, sink: &mut dyn Sink) -> Result<Ended, String> {
    let ended = run_into(config, 1, sink, &mut ());
    match ended.state {
        RunState::Complete => Ok(ended),
        RunState::Failed(why) => Err(why),
        RunState::Interrupted => Err("the run was interrupted".to_owned()),
    }
}
