//! Rings whose messages from each rank to the next are one flow.
//!
//! In step s of a ring every member passes on what it has received in step s − 1. With S steps, n members, and at
//! member e the time D(e) in which the bits of all its messages leave and the time t(e) that the last bit of each is
//! under way, a part goes around the ring in the sum of D(e)/S + t(e), in n steps. So the ring takes S/n times that,
//! which is the mean of D(e) + S·t(e); but not less than the largest D(e), as no link is faster than its bits: parts
//! wait where a link is slow, and their ways are hidden behind that.

use std::collections::HashMap;

use super::{FlowState, Fluid};
use crate::config::Activity;
use crate::ids::FlowId;

/// For each task that ends a ring, the flows of the ring whose last bits have left.
#[derive(Debug, Default)]
pub(super) struct Rings(HashMap<Activity, Vec<Sent>>);

/// A merged flow whose last bit has left.
#[derive(Clone, Copy, Debug)]
struct Sent {
    flow: FlowId,
    at_ps: u64,
}

impl Fluid {
    /// Notes that the last bit of a merged flow has left. With the last one of its ring, all of them arrive.
    pub(super) fn on_merged(&mut self, id: FlowId) {
        let end = self.successors.of(id.into()).first().expect("a task waits for the flows of a ring").waiter;
        let sent = self.rings.0.entry(end).or_default();
        sent.push(Sent { flow: id, at_ps: self.now_ps });
        if sent.len() < self.waits.n_left(end, self.config.flows.len()) {
            return;
        }
        let sent = self.rings.0.remove(&end).unwrap_or_default();
        let end_ps = self.end_of_ring(&sent).max(self.now_ps);
        for Sent { flow, .. } in sent {
            self.arrive(flow, end_ps);
        }
    }

    fn end_of_ring(&self, sent: &[Sent]) -> u64 {
        let (mut last_ps, mut sum_ps) = (0, 0_i128);
        for &Sent { flow, at_ps } in sent {
            let &FlowState { tail_ps, steps, .. } = &self.flows[flow];
            last_ps = at_ps.saturating_add_signed(tail_ps).max(last_ps);
            sum_ps += i128::from(at_ps) + i128::from(tail_ps) * i128::from(steps);
        }
        // All have started at the same time, so that the mean time is the mean of ends.
        last_ps.max((sum_ps / sent.len() as i128) as u64)
    }
}
