//! Detection of finite flows that are stuck while endless ones go on, in a run that ends when the finite ones are done.

use std::sync::Mutex;

use fairrate_units::{Bytes, Time};

use super::{check_progress, patience, stuck_flows};
use crate::config::{Flap, SimConfig};
use crate::core::Part;
use crate::core::parallel::lock;
use crate::core::run::Run;
use crate::simulation::SimError;

/// Number of samples of the finite flows' state in the time after which they count as stuck.
const SAMPLES: u64 = 8;

/// State of the finite flows, which every progress of one of them changes: the numbers of those left and of their
/// senders, and the bytes acknowledged to these.
type State = (u64, u64, u64);

/// Samples of the finite flows' state.
pub(in crate::core) struct FiniteWatch {
    /// Time after which flows count as stuck, in picoseconds.
    patience_ps: u64,
    /// Time of the next sample.
    next_ps: u64,
    /// The last state, and the time of its first sample.
    state: State,
    since_ps: u64,
}

impl FiniteWatch {
    /// Returns a watch, if endless flows could keep a run going after all other progress has ended.
    pub(in crate::core) fn new(run: &Run) -> Option<Self> {
        let config = &run.config;
        let endless = config.flows.iter().filter(|flow| flow.bytes == Bytes::MAX).count();
        let is_endless_run = config.stop.at.is_none() && 0 < endless && endless < config.flows.len();
        let (flaps, last_change_ps) = (config.faults.iter().filter_map(|fault| fault.flap), last_change_ps(config));
        let outage = |flap: Flap| if flap.up_at < Time::MAX { flap.up_at - flap.down_at } else { Time::ZERO };
        let longest_outage = flaps.map(outage).max().unwrap_or(Time::ZERO);
        is_endless_run.then(|| Self {
            patience_ps: patience(run).saturating_add(longest_outage).as_ps(),
            next_ps: last_change_ps,
            state: State::default(),
            since_ps: 0,
        })
    }

    /// Returns an error if finite flows are under way and have made no progress for too long. `next_ps` is the time of
    /// the next event. Called between epochs, so that the answer does not depend on the number of parts.
    pub(in crate::core) fn check(&mut self, parts: &[Mutex<Part>], next_ps: u64) -> Result<(), SimError> {
        if next_ps < self.next_ps || next_ps == u64::MAX {
            return Ok(());
        }
        self.next_ps = next_ps.saturating_add(self.patience_ps / SAMPLES);
        let state = parts.iter().map(|part| lock(part).finite_state()).fold(State::default(), |sum, of_part| {
            (sum.0 + of_part.0, sum.1 + of_part.1, sum.2.wrapping_add(of_part.2))
        });
        let has_senders = 0 < state.1;
        if state != self.state || !has_senders {
            (self.state, self.since_ps) = (state, next_ps);
            return Ok(());
        }
        if next_ps - self.since_ps < self.patience_ps {
            return Ok(());
        }
        // If nothing else goes on either, all that is stuck is named.
        check_progress(parts)?;
        let stuck = stuck_flows(parts, |run, id| !run.flow(id).is_endless()).join("; ");
        Err(SimError::Stalled { since: Time::from_ps(self.since_ps), unfinished: state.1, stuck })
    }
}

/// Returns the time from which on nothing that is planned can free a flow: links have come up, and endless flows that
/// stop have stopped. Links that go down again and again count with their first time.
fn last_change_ps(config: &SimConfig) -> u64 {
    let stops = config.flows.iter().filter(|flow| flow.bytes == Bytes::MAX).map(|flow| flow.stop);
    let ups = config.faults.iter().filter_map(|fault| fault.flap).map(|flap| flap.up_at);
    stops.chain(ups).filter(|time| *time < Time::MAX).map(Time::as_ps).max().unwrap_or(0)
}

impl Part {
    fn finite_state(&self) -> State {
        let run = &self.world.run;
        let senders = self.hosts.senders.iter().flatten().filter(|s| !run.flow(s.flow).is_endless());
        let (n, acknowledged) = senders.fold((0, 0_u64), |sum, s| (sum.0 + 1, sum.1.wrapping_add(s.snd_una)));
        (self.hosts.counts().1, n, acknowledged)
    }
}
