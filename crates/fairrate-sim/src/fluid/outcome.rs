//! The outcomes of flows so far, and the data in flight.

use fairrate_units::Time;

use super::{FlowState, Fluid};
use crate::config::Trigger;
use crate::ideal::Hop;
use crate::ids::FlowId;
use crate::output::FlowOutcome;

/// Payload and wire bytes of a packet.
pub(super) struct Packet {
    payload: u64,
    pub(super) wire: u64,
}

impl Fluid {
    /// Returns the payload bytes at the receiver. A flow's last packet is there as a whole, or not at all.
    pub(super) fn delivered_bytes(&self, id: FlowId) -> u64 {
        let flow = &self.flows[id];
        match flow.place {
            Some(place) if 1 < flow.steps => {
                let sent = self.served[place].sent_bytes_at(self.now_ps);
                let all = self.wire_bytes_of(flow.bytes, flow.steps).max(1);
                (u128::from(sent) * u128::from(flow.bytes) / u128::from(all)) as u64
            }
            Some(place) => {
                let sent = self.served[place].sent_bytes_at(self.now_ps);
                self.payload_bytes(sent - self.in_flight(flow).wire)
            }
            None if flow.path.is_empty() => 0,
            None => flow.bytes - self.in_flight(flow).payload,
        }
    }

    /// Returns the bytes of a flow that have left its sender and are in flight: those of its last packet. A merged flow
    /// has none.
    pub(super) fn in_flight(&self, flow: &FlowState) -> Packet {
        let nothing = Packet { payload: 0, wire: 0 };
        let (mtu, header) = (self.framing.mtu.as_u64().max(1), self.framing.header.as_u64());
        let payload = flow.bytes - flow.bytes.saturating_sub(1) / mtu * mtu;
        match (flow.place, flow.fct_ps) {
            _ if 1 < flow.steps => nothing,
            (Some(_), _) if flow.endless => nothing,
            (Some(place), _) => {
                let before = self.wire_bytes(flow.bytes - payload);
                let wire = self.served[place].sent_bytes_at(self.now_ps).saturating_sub(before);
                Packet { payload: wire.saturating_sub(header), wire }
            }
            (None, Some(fct_ps)) if self.now_ps < flow.start_ps + fct_ps => Packet { payload, wire: payload + header },
            _ => nothing,
        }
    }

    /// Returns the outcome of a flow so far.
    pub(super) fn outcome(&self, id: FlowId) -> FlowOutcome {
        let flow = &self.flows[id];
        let started = !flow.path.is_empty();
        let arrived = flow.fct_ps.filter(|fct_ps| flow.start_ps + fct_ps <= self.now_ps);
        let ideal = || {
            let links = self.paths[flow.path.clone()].iter().map(|&port| self.config.topology.link(port));
            // The network is whole, as for packets.
            let hops: Vec<Hop> = links.map(Hop::single).collect();
            // All of the flow, and the way of one message: a ring hides the others if they wait for a slow link.
            let alone_ps = self.alone_ps(&hops, flow.bytes, flow.steps);
            Time::from_ps(alone_ps.saturating_add_signed(self.tail_ps(&hops, flow.bytes, flow.steps)))
        };
        FlowOutcome {
            fct: arrived.map(Time::from_ps),
            fct_ack: flow.fct_ps.filter(|_| flow.over).map(|fct_ps| Time::from_ps(fct_ps + flow.back_ps)),
            sent: flow
                .sent_ps
                .filter(|_| !self.config.dependencies.is_empty())
                .map(|at| Time::from_ps(at - flow.start_ps)),
            ideal_fct: if flow.endless || !started { Time::ZERO } else { ideal() },
            delivered_bytes: self.delivered_bytes(id),
            ..FlowOutcome::at_start(id, Time::from_ps(flow.start_ps))
        }
    }

    /// Returns the outcomes of all flows that have started or would at their time, and are not over.
    pub(crate) fn unfinished(&self) -> Vec<FlowOutcome> {
        self.unfinished_ids().map(|id| self.outcome(id)).collect()
    }

    pub(super) fn unfinished_ids(&self) -> impl Iterator<Item = FlowId> + '_ {
        let is_due = |id: FlowId, flow: &FlowState| {
            !flow.path.is_empty() || self.config.flows[id.index()].trigger == Trigger::Time
        };
        let flows = self.flows.numbered().filter(move |(id, flow)| !flow.over && is_due(*id, flow));
        flows.map(|(id, _)| id)
    }
}
