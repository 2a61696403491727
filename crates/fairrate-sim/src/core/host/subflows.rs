//! The subflows of a connection, seen as one flow.

use fairrate_units::Time;

use super::Hosts;
use crate::core::run::Run;
use crate::core::world::World;
use crate::ids::{FlowId, PortId};
use crate::transport::{Sender, Tally};

impl Hosts {
    /// Returns the senders of the subflows of a flow that has an active connection.
    fn senders_of_subflows(&self, id: FlowId) -> Option<impl Iterator<Item = &Sender>> {
        self.connections.get(id)?;
        let senders = self.connections.subflow_ids(id).map(|subflow| self.sending[subflow].sender);
        Some(senders.filter_map(|slot| self.senders.get(slot)?.as_ref()))
    }

    /// Returns the counters of the senders of an active connection so far.
    pub(super) fn tally_of_subflows(&self, id: FlowId) -> Option<Tally> {
        let mut tally = Tally { retransmitted: self.connections.get(id)?.repeated, ..Tally::NEW };
        self.senders_of_subflows(id)?.for_each(|sender| tally.add(&sender.tally));
        Some(tally)
    }

    /// Returns congestion window and rate of a flow that is active here, the rate at most what its application offers
    /// and its link carries. For a connection they are the sums over its subflows.
    pub(in crate::core) fn window_and_rate(&self, w: &World, id: FlowId) -> Option<(u64, u64)> {
        let most = self.line_rate(w, w.run.flow(id).src_host).min(w.run.config.flows[id.index()].demand).as_bps();
        let Some(subflows) = self.senders_of_subflows(id) else {
            let sender = self.senders.get(self.sending[id].sender)?.as_ref()?;
            return Some((sender.cwnd, sender.rate.as_bps().min(most)));
        };
        let add = |sum: (u64, u64), s: &Sender| (sum.0.saturating_add(s.cwnd), sum.1.saturating_add(s.rate.as_bps()));
        let (cwnd, rate) = subflows.fold((0, 0), add);
        Some((cwnd, rate.min(most)))
    }

    /// Returns the rate that the subflows of an active connection may send together, each within its base round-trip
    /// time.
    pub(super) fn allowed_by_subflows(&self, w: &World, id: FlowId) -> Option<f64> {
        let connection = self.connections.get(id)?;
        let mut sum = 0.0;
        for (subflow, sender) in self.senders_of_subflows(id)?.enumerate() {
            sum += allowed_bps(&w.run, sender, Time::from_ps(connection.path_rtt_ps(subflow)));
        }
        let line_rate = self.line_rate(w, w.run.flow(id).src_host);
        Some(sum.min(line_rate.min(w.run.config.flows[id.index()].demand).as_bps_f64()))
    }

    /// Returns `true` if all subflows of a flow use a port, so that this port alone can hold the flow back. Also `true`
    /// for a flow without subflows.
    pub(super) fn all_subflows_use(&self, run: &Run, id: FlowId, port: PortId) -> bool {
        self.connections.subflow_ids(id).all(|subflow| run.path_of(subflow).any(|hop| hop == port))
    }
}

/// Returns the rate that a sender may send by its pacing rate, and by its window in every base round-trip time.
pub(super) fn allowed_bps(run: &Run, sender: &Sender, path_base_rtt: Time) -> f64 {
    let (mtu, header) = (run.constants.mtu as f64, f64::from(sender.header));
    let allowed_bps = sender.rate.as_bps_f64();
    if sender.cwnd == u64::MAX {
        return allowed_bps;
    }
    let wire_bits = sender.cwnd as f64 * (mtu + header) / mtu * 8.0;
    allowed_bps.min(wire_bits * 1e12 / path_base_rtt.as_ps() as f64)
}
