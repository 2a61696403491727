//! Flows that start and stop one after the other, each once rates have held for long enough.

use super::{Fluid, NEVER};
use crate::config::Change;
use crate::engine::EventKind;
use crate::ids::FlowId;

/// Flows that start and stop one after the other.
#[derive(Debug, Default)]
pub(super) struct Changes {
    /// `true` if a probe observes arrivals and departures.
    pub(super) observed: bool,
    pub(super) hold_ps: u64,
    /// The last arrival or departure of this moment.
    pub(super) last: Option<(FlowId, bool)>,
    /// Time at which rates will have held for long enough; [`NEVER`]: they have.
    pub(super) settled_ps: u64,
    pub(super) n_done: usize,
    pub(super) is_starting: bool,
}

impl Fluid {
    pub(super) fn settle_at(&mut self, time_ps: u64) {
        self.changes.settled_ps = time_ps;
        self.schedule(time_ps, EventKind::Settled, 0_u32);
    }

    pub(super) fn is_settling(&self) -> bool {
        self.changes.settled_ps < NEVER
    }

    /// Applies the next change if rates have held for long enough, unless something has changed since.
    pub(super) fn on_settled(&mut self) {
        if self.changes.settled_ps != self.now_ps || self.changes.is_starting {
            return;
        }
        self.changes.settled_ps = NEVER;
        while let Some(&change) = self.config.changes.get(self.changes.n_done) {
            self.changes.n_done += 1;
            match change {
                Change::Start(id) => {
                    self.changes.is_starting = true;
                    let flow = &self.flows[id];
                    self.finite_left += u64::from(!flow.endless);
                    let at = self.now_ps.max(flow.start_ps);
                    self.schedule(at, EventKind::FlowStart, id);
                    return;
                }
                Change::Stop(id) => {
                    if self.flows[id].place.is_some() {
                        self.on_flow_stop(id);
                        // This holds until rates are computed, which sets the time.
                        self.settle_at(self.now_ps.saturating_add(self.changes.hold_ps));
                        return;
                    }
                }
            }
        }
    }
}
