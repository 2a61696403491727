//! The event loop.

use fairrate_units::Time;

use crate::config::SimConfig;
use crate::output::{FlowOutcome, RunTotals, Sink};

/// Why a run cannot go on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SimError {
    /// Nothing moves any more although flows are unfinished.
    #[error("no progress since t={since}, {unfinished} flows unfinished: {stuck}")]
    Stalled {
        /// Last time a byte was acknowledged.
        since: Time,
        /// Finite flows that are not done.
        unfinished: u64,
        /// What is stuck.
        stuck: String,
    },
}

/// How far a run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Simulated time.
    pub now: Time,
    /// Packets serialised so far.
    pub packet_hops: u64,
    /// Flows finished so far.
    pub flows_done: u64,
    /// Whether the run is over.
    pub finished: bool,
}

/// A running simulation.
pub struct Simulation {
    config: SimConfig,
}

impl Simulation {
    /// Builds the network and schedules the flows.
    pub fn new(config: SimConfig) -> Self {
        Self { config }
    }

    /// Processes up to `max_events` events.
    ///
    /// # Errors
    /// [`SimError::Stalled`] if nothing moves any more.
    pub fn advance(&mut self, max_events: u64, sink: &mut dyn Sink) -> Result<Progress, SimError> {
        let _ = (max_events, sink, &self.config);
        unreachable!("engine not yet in place")
    }

    /// Outcomes of the flows that have not finished, for the end of a run or an interrupted one.
    pub fn unfinished(&self) -> Vec<FlowOutcome> {
        Vec::new()
    }

    /// Totals so far. Checks that bytes are conserved.
    pub fn totals(&self) -> RunTotals {
        RunTotals::default()
    }
}
