//! Accounts of flows that have not finished: from the end of the run back to the start of the flow.

use fairrate_sim::{FlowId, NodeId};
use fairrate_units::Time;

use crate::chain::{Place, Walk};
use crate::observer::{Fate, Hop, Id, Track};
use crate::piece::{Explanation, Piece, Reason, Way};
use crate::port::Ports;

/// Returns the account of a flow until `end`, the end of the run; `None` if it has finished or had not started.
pub(crate) fn explain(lanes: &[&Track], ports: &Ports, end: Time) -> Option<Explanation> {
    let outcome = lanes.first()?.outcome.filter(|outcome| outcome.fct.is_none() && outcome.start < end)?;
    let mut walk = Walk::new(lanes, ports, outcome.start, end);
    let last = lanes.iter().max_by_key(|track| track.sends.last().map(|send| send.t))?;
    walk.change_to(last.lane);
    // The numbers of subflows are not those of the connection's bytes.
    let place = walk.awaited(if lanes.len() == 1 { outcome.delivered_bytes } else { u64::MAX });
    walk.walk_to_start(place);
    let sender = account(lanes, last.lane, ports, (outcome.start, end));
    Some(Explanation { is_finished: false, ..walk.explanation(end - outcome.start, sender) })
}

/// Returns the account of the sender of a subflow until `end`.
fn account(lanes: &[&Track], lane: FlowId, ports: &Ports, (start, end): (Time, Time)) -> Vec<Piece> {
    let mut walk = Walk::new(lanes, ports, start, end);
    walk.change_to(lane);
    walk.unsent();
    for send in (0..walk.track.sends.len()).rev() {
        let opening = walk.wait_for_turn(send);
        walk.wait_for_pacing(send, opening);
        walk.before_opening(send, opening);
    }
    walk.close(start, Reason::Unknown);
    walk.pieces.reverse();
    walk.pieces
}

impl Walk<'_> {
    /// Walks from the end of the run along what the receiver waits for: the packet with the byte `next`, wherever it
    /// is; or, if it was not sent, the acknowledgment of the packet before.
    fn awaited(&mut self, next: u64) -> Place {
        let sends = &self.track.sends;
        let up_to_next = sends.iter().enumerate().filter(|(_, send)| send.seq <= next);
        if let Some((_, &send)) = up_to_next.max_by_key(|&(i, send)| (send.seq, i)) {
            let id = Id::Data(send.seq);
            if self.is_under_way(id, self.track.src) {
                return self.sending_of(send.seq);
            }
            let lost = self.track.hops.get(&id).and_then(|hops| hops.iter().max_by_key(|hop| hop.left));
            if let Some(hop) = lost.filter(|hop| hop.fate != Fate::Sent && send.t <= hop.left) {
                return self.after_loss(send.seq, send.t, hop);
            }
        }
        let Some(last) = sends.len().checked_sub(1) else {
            self.unsent();
            return Place::Start;
        };
        let seq = sends[last].seq;
        let answer = if self.track.is_granted { self.answer_under_way() } else { Some(Id::Answer(seq)) };
        if answer.is_some_and(|answer| self.is_under_way(answer, self.track.dst)) {
            return self.answered(seq);
        }
        self.unsent();
        Place::Sending(last)
    }

    /// Walks from the end of the run back to the host `origin` that sent a packet, and returns `true`, if the packet is
    /// on its way at the end.
    fn is_under_way(&mut self, id: Id, origin: NodeId) -> bool {
        let topology = &self.ports.config().topology;
        let way = if matches!(id, Id::Data(_)) { Way::Data } else { Way::Ack };
        // Of copies the first one matters.
        if let Some(waiting) = self.track.waiting.iter().find(|waiting| waiting.id == id) {
            self.way = way;
            let hop = Hop::open(waiting.port, waiting.class, waiting.since, self.at);
            self.wait(&hop);
            return self.back_to_host(id, topology.from(hop.port), origin);
        }
        let hops = self.track.hops.get(&id).map_or(&[][..], Vec::as_slice);
        let is_on_wire = |hop: &&Hop| hop.fate == Fate::Sent && self.at < hop.arrival(self.ports);
        let Some(hop) = hops.iter().filter(is_on_wire).min_by_key(|hop| hop.left).copied() else { return false };
        self.way = way;
        self.cross(&hop);
        self.back_to_host(id, topology.from(hop.port), origin)
    }

    /// Walks from the end of the run to the end of the transmission of the last packet: the sender waits for its turn,
    /// or has not been let go on.
    fn unsent(&mut self) {
        self.way = Way::Data;
        let (track, n) = (self.track, self.track.sends.len());
        let last = n.checked_sub(1).map(|last| (track.sends[last], self.nic_hop(last)));
        let is_after = |order: u32| last.is_none_or(|(send, _)| send.order < order);
        if let Some(opening) = track.openings.last().filter(|opening| is_after(opening.order)) {
            let class = last.map_or(0, |(_, hop)| hop.class);
            self.turns(&Hop::open(track.nic, class, self.at, self.at), opening.t, Reason::Blocked(track.nic));
        }
        let until = last.map_or(Time::ZERO, |(_, hop)| hop.sent_by(self.ports));
        self.close(until, Reason::Unsent);
        if let Some((send, hop)) = last {
            // The transmission of the last packet may go on.
            self.close_with(send.t, Reason::Serialisation(track.nic), u64::from(hop.wire));
        }
    }
}
