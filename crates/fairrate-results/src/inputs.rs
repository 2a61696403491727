//! The inputs of a run, as its results state them.

use std::collections::BTreeSet;

use fairrate_sim::{FailureWindows, SimConfig, message_groups};
use fairrate_units::Time;

/// The inputs of a run, which its results contain or name.
#[derive(Clone, Debug)]
pub struct RunInputs<'a> {
    /// Name of the scenario.
    pub name: &'a str,
    /// Hash of the resolved scenario and its files.
    pub hash: u64,
    /// Configuration of the simulator.
    pub config: &'a SimConfig,
    /// Start of the measuring window.
    pub measured_from: Time,
    /// End of the measuring window; `None`: the end of the run.
    pub measured_until: Option<Time>,
    /// The windows around the first failure of a link; `None`: there is none.
    pub failure: Option<FailureWindows>,
    /// `true` if messages of collectives and jobs have rows in the table of flows.
    pub messages: bool,
    /// Text of the resolved scenario.
    pub scenario: String,
    /// Names and contents of the files that the scenario names.
    pub files: Vec<(&'a str, &'a [u8])>,
}

impl RunInputs<'_> {
    /// Returns the traffic blocks whose flows have no rows.
    pub(crate) fn without_rows(&self) -> BTreeSet<u32> {
        if self.messages {
            return BTreeSet::new();
        }
        message_groups(&self.config.collectives, &self.config.jobs)
    }
}
