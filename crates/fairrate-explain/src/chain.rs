//! The chain of causes: from the arrival of a flow's last byte back to its start.

use fairrate_sim::{Cause, FlowId, NodeId, PacketKind, PortId};
use fairrate_units::Time;

use crate::granted::reason_of_answer;
use crate::observer::{Fate, Hop, Id, Opening, Send, Track};
use crate::piece::{Behind, Explanation, Loss, Piece, Reason, Way};
use crate::port::{Ports, Use};
use crate::sender;

/// Returns the account of a flow with these subflows, of one if it has no others; `None` if it has not finished.
pub(crate) fn explain(lanes: &[&Track], ports: &Ports) -> Option<Explanation> {
    let outcome = lanes.first()?.outcome?;
    let fct = outcome.fct?;
    let mut walk = Walk::new(lanes, ports, outcome.start, outcome.start + fct);
    let place = walk.arrival_of_last();
    let last = walk.walk_to_start(place);
    let sender = sender::account(lanes, ports, outcome.start, fct, last);
    Some(walk.explanation(fct, sender))
}

/// A point on the way back, at the walk's time.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Place {
    /// This packet arrives at the end of its way.
    Arrival(Id),
    /// The sender starts to send the packet at this place among those that it sent.
    Sending(usize),
    /// The flow starts, or the way is lost.
    Start,
}

/// A walk back in time. Pieces are added from the last to the first, each up to the one before.
pub(crate) struct Walk<'a> {
    /// The subflows of the flow.
    lanes: &'a [&'a Track],
    /// The one that the walk is at.
    pub(crate) track: &'a Track,
    pub(crate) ports: &'a Ports,
    /// The start of the flow.
    start: Time,
    /// The time that the walk has reached.
    pub(crate) at: Time,
    pub(crate) way: Way,
    pub(crate) pieces: Vec<Piece>,
    pub(crate) round_trips: u32,
    losses: u32,
}

impl<'a> Walk<'a> {
    /// Returns a walk from `end` back to `start`, which begins at the first of some subflows.
    pub(crate) fn new(lanes: &'a [&'a Track], ports: &'a Ports, start: Time, end: Time) -> Self {
        let track = lanes[0];
        Self { lanes, track, ports, start, at: end, way: Way::Data, pieces: Vec::new(), round_trips: 0, losses: 0 }
    }

    /// Goes on at a subflow of the flow. Returns `false` if it is not known.
    pub(crate) fn change_to(&mut self, lane: FlowId) -> bool {
        let found = self.lanes.iter().find(|track| track.lane == lane);
        self.track = found.unwrap_or(&self.track);
        found.is_some()
    }

    /// Walks from `place` to the start of the flow. Returns the last packet on the way that the sender sent: its
    /// subflow and its place.
    pub(crate) fn walk_to_start(&mut self, mut place: Place) -> Option<(FlowId, usize)> {
        let mut last = None;
        // No step of the chain is taken twice, so that only a loop in what was observed could go on for longer.
        let steps = |track: &&Track| track.sends.len() + track.hops.values().map(Vec::len).sum::<usize>();
        let most = 8 + 2 * self.lanes.iter().map(steps).sum::<usize>();
        for _ in 0..most {
            place = match place {
                Place::Arrival(id) => self.way_of(id),
                Place::Sending(send) => {
                    last = last.or(Some((self.track.lane, send)));
                    self.before(send)
                }
                Place::Start => break,
            };
        }
        self.close(self.start, Reason::Unknown);
        last
    }

    /// Returns the account of a walk that has reached the start of a finished flow, with that of the sender.
    pub(crate) fn explanation(mut self, fct: Time, sender: Vec<Piece>) -> Explanation {
        self.pieces.reverse();
        let Self { track, start, pieces: chain, round_trips, losses, .. } = self;
        Explanation { flow: track.flow, start, fct, is_finished: true, chain, sender, round_trips, losses }
    }

    /// Goes back to `to`, if that is earlier: the time until now passed for `reason`.
    pub(crate) fn close(&mut self, to: Time, reason: Reason) {
        self.close_with(to, reason, 0);
    }

    pub(crate) fn close_with(&mut self, to: Time, reason: Reason, bytes: u64) {
        let to = to.max(self.start);
        if to < self.at {
            self.pieces.push(Piece { from: to, to: self.at, way: self.way, reason, bytes });
            self.at = to;
        }
    }

    /// Returns the packet that brought the last byte, of whichever subflow.
    fn arrival_of_last(&mut self) -> Place {
        if let Some(taken) = self.last_taken() {
            return Place::Arrival(Id::Data(taken.seq));
        }
        let arrivals = self.lanes.iter().filter_map(|track| Some((self.last_arrival(track)?, *track)));
        let last = arrivals.max_by_key(|&((t, seq), track)| (t, seq, track.lane));
        let Some(((_, seq), track)) = last else { return Place::Start };
        self.track = track;
        Place::Arrival(Id::Data(seq))
    }

    /// Returns the time at which data of a subflow arrived last until the walk's time, and its first byte.
    fn last_arrival(&self, track: &Track) -> Option<(Time, u64)> {
        if track.lane != track.flow {
            let until = track.arrived.partition_point(|&(t, _)| t <= self.at);
            return until.checked_sub(1).map(|last| track.arrived[last]);
        }
        let arrival = |(id, hops): (&Id, &Vec<Hop>)| match *id {
            Id::Data(seq) => Some((self.last_hop(hops, track.dst)?.0, seq)),
            Id::Answer(_) => None,
        };
        track.hops.iter().filter_map(arrival).max()
    }

    /// Returns the hop whose wire led to `node` and by which a packet arrived at the walk's time, or last before it,
    /// with the time at which it should have arrived.
    pub(crate) fn last_hop<'h>(&self, hops: &'h [Hop], node: NodeId) -> Option<(Time, &'h Hop)> {
        let topology = &self.ports.config().topology;
        let to_node = hops.iter().filter(|hop| hop.fate == Fate::Sent && topology.to(hop.port) == node);
        let arrivals = to_node.map(|hop| (hop.arrival(self.ports), hop));
        arrivals.filter(|&(t, _)| t <= self.at).max_by_key(|&(t, hop)| (t, hop.left))
    }

    /// Walks the way of a packet from its end back to the host that sent it.
    fn way_of(&mut self, id: Id) -> Place {
        let (node, origin) = match id {
            Id::Data(_) => (self.track.dst, self.track.src),
            Id::Answer(_) => (self.track.src, self.track.dst),
        };
        self.way = if matches!(id, Id::Data(_)) { Way::Data } else { Way::Ack };
        if !self.back_to_host(id, node, origin) {
            return Place::Start;
        }
        match id {
            Id::Data(seq) => self.sending_of(seq),
            Id::Answer(seq) => self.answered(seq),
        }
    }

    /// Walks from the arrival of a packet at `node` back to the host `origin`; returns `false` if a hop is missing.
    pub(crate) fn back_to_host(&mut self, id: Id, mut node: NodeId, origin: NodeId) -> bool {
        let Some(hops) = self.track.hops.get(&id) else { return false };
        // No way has more hops than the network has nodes.
        for _ in 0..self.ports.config().topology.nodes.len() {
            if node == origin {
                return true;
            }
            let Some((arrival, hop)) = self.last_hop(hops, node) else { return false };
            let is_host = self.ports.leads_to_delay(hop.port);
            self.close(arrival, if is_host { Reason::Host(hop.port) } else { Reason::LateLink(hop.port) });
            self.cross(hop);
            node = self.ports.config().topology.from(hop.port);
        }
        node == origin
    }

    /// Walks from the other end of a hop's wire to the time at which the packet joined the hop's queue.
    pub(crate) fn cross(&mut self, hop: &Hop) {
        self.close(hop.sent_by(self.ports), Reason::Propagation(hop.port));
        self.close_with(hop.left, Reason::Serialisation(hop.port), u64::from(hop.wire));
        self.wait(hop);
    }

    /// Walks from the time at which a packet left a queue to that at which it joined.
    pub(crate) fn wait(&mut self, hop: &Hop) {
        let flow = self.track.flow;
        self.use_of(hop, hop.queued, Reason::Blocked(hop.port), |port, by| {
            Reason::Queue(port, if by == flow { Behind::Itself } else { Behind::Flow(by) })
        });
    }

    /// Walks back to `from` by what the NIC transmitted: packets of the flow itself, and those of others, which had
    /// their turn. Where it transmitted nothing, the reason is `idle`.
    pub(crate) fn turns(&mut self, nic: &Hop, from: Time, idle: Reason) {
        let flow = self.track.flow;
        self.use_of(nic, from, idle, |port, by| {
            if by == flow { Reason::Serialisation(port) } else { Reason::Turn(port, Behind::Flow(by)) }
        });
    }

    /// Walks back to `from` by the uses of a hop's port; `idle` is the reason where it transmitted nothing.
    fn use_of(&mut self, hop: &Hop, from: Time, idle: Reason, by: impl Fn(PortId, FlowId) -> Reason) {
        if self.at <= from {
            return;
        }
        let uses = self.ports.uses(hop.port, hop.class, from, self.at);
        let starts = std::iter::once(from).chain(uses.iter().map(|&(end, _)| end));
        let pieces: Vec<(Time, Use)> = starts.zip(uses.iter().map(|&(_, used)| used)).collect();
        for (start, used) in pieces.into_iter().rev() {
            match used {
                Use::By(flow, bytes) => self.close_with(start, by(hop.port, flow), bytes),
                Use::Paused => self.close(start, Reason::Pause(hop.port)),
                Use::Down => self.close(start, Reason::Down(hop.port)),
                Use::Resting => self.close(start, Reason::SlowNic(hop.port)),
                Use::Nothing => self.close(start, idle),
            }
        }
    }

    /// Returns the sending, at the walk's time, of data with first byte `seq`.
    pub(crate) fn sending_of(&self, seq: u64) -> Place {
        let sends = &self.track.sends;
        let until = sends.partition_point(|send| send.t <= self.at);
        let found = sends[..until].iter().rposition(|send| send.seq == seq);
        found.filter(|&i| sends[i].t == self.at).map_or(Place::Start, Place::Sending)
    }

    /// Walks from the moment at which an acknowledgment joined the queue of the receiver's NIC to the arrival of the
    /// data it answers.
    pub(crate) fn answered(&mut self, seq: u64) -> Place {
        self.round_trips += 1;
        if self.track.is_granted {
            return self.granted();
        }
        // Acknowledgments of subflows say what the connection has, and not which packet they answer: the last one that
        // came.
        let is_subflow = self.track.lane != self.track.flow;
        let seq = if is_subflow { self.last_arrival(self.track).map_or(seq, |(_, seq)| seq) } else { seq };
        let id = Id::Data(seq);
        let arrival = self.track.hops.get(&id).and_then(|hops| self.last_hop(hops, self.track.dst));
        let Some((arrival, hop)) = arrival else { return Place::Start };
        if self.ports.leads_to_delay(hop.port) {
            // The time before the host acts on data; an acknowledgment that is held back besides is not told apart.
            self.way = Way::Data;
            self.close(arrival, Reason::Host(hop.port));
        }
        self.close(arrival, Reason::Receiver);
        Place::Arrival(id)
    }

    /// Walks from the moment at which the sender sent a packet to what let it send then.
    fn before(&mut self, send: usize) -> Place {
        self.way = Way::Data;
        let previous = send.checked_sub(1);
        if let Some((track, before, hop)) = self.loss_before(send)
            && !self.is_in_a_row(send, hop)
        {
            if self.track.is_granted {
                self.wait_to_repeat(send, hop.left);
            }
            self.track = track;
            return self.after_loss(before.seq, before.t, hop);
        }
        if let Some((other, last)) = self.sent_by_another(send) {
            return self.after_another(send, other, last);
        }
        let opening = self.wait_for_turn(send);
        // An opening before the end of the pacing did not let the packet go, but what set the pace: the packet before.
        let opening = opening.filter(|o| self.at <= o.t || previous.is_none());
        self.wait_for_pacing(send, opening);
        let cause = opening.map(|o| o.cause);
        if let Some(Cause::Packet { flow, lane, kind: PacketKind::Ack | PacketKind::Nack, answers }) = cause
            && flow == self.track.flow
            && (previous.is_some() || lane != self.track.lane)
            && let Some(of_lane) = self.lanes.iter().find(|track| track.lane == lane)
            && let Some(hops) = of_lane.hops.get(&Id::Answer(answers))
            && self.last_hop(hops, of_lane.src).is_some()
        {
            self.track = of_lane;
            return Place::Arrival(Id::Answer(answers));
        }
        self.before_opening(send, opening);
        previous.map_or(Place::Start, Place::Sending)
    }

    /// Returns the last packet before this one that another subflow of the same host sent, if that was after this
    /// subflow had been let through: the connection was not waiting then.
    fn sent_by_another(&self, send: usize) -> Option<(&'a Track, usize)> {
        let this = self.track.sends[send].t;
        let since = self.opening_of(send).map_or(self.base(send), |opening| opening.t.max(self.base(send)));
        let others = self.lanes.iter().filter(|track| track.lane != self.track.lane);
        let last = others.filter_map(|track| {
            let at = track.sends.partition_point(|other| other.t < this).checked_sub(1)?;
            Some((*track, at)).filter(|_| since < track.sends[at].t)
        });
        last.max_by_key(|(track, at)| (track.sends[*at].t, track.lane))
    }

    /// Walks from a sending back to that of the packet at place `last` of another subflow.
    fn after_another(&mut self, send: usize, other: &'a Track, last: usize) -> Place {
        let (this, before) = (self.track.sends[send], other.sends[last].t);
        self.turns(&self.nic_hop(send), this.paced_until.min(this.t).max(before), self.idle_reason(send));
        self.track = other;
        let sent = self.nic_hop(last);
        self.close(sent.sent_by(self.ports), Reason::Pacing);
        self.close_sending(&sent, before);
        Place::Sending(last)
    }

    /// Walks back to `begin`, at which the NIC began to transmit the packet of the hop `sent`, as far as the walk has
    /// not passed its end.
    fn close_sending(&mut self, sent: &Hop, begin: Time) {
        if self.at <= begin {
            return;
        }
        let whole = sent.sent_by(self.ports).saturating_sub(begin).as_ps().max(1);
        let bytes = u128::from(sent.wire) * u128::from((self.at - begin).as_ps()) / u128::from(whole);
        self.close_with(begin, Reason::Serialisation(sent.port), bytes as u64);
    }

    /// Returns the reason for which the NIC transmitted nothing before a sending that window and pacing had let
    /// through. If the rate has risen since the packet before, its pacing holds back less in hindsight than it did.
    pub(crate) fn idle_reason(&self, send: usize) -> Reason {
        let sends = &self.track.sends;
        let has_risen = send.checked_sub(1).is_some_and(|previous| sends[previous].rate < sends[send].rate);
        if has_risen { Reason::Pacing } else { Reason::Blocked(self.track.nic) }
    }

    /// Walks from a sending back to the time at which window and pacing had let it through. Returns the last opening of
    /// the window before it, if it was closed since the packet before.
    pub(crate) fn wait_for_turn(&mut self, send: usize) -> Option<Opening> {
        let this = self.track.sends[send];
        let opening = self.opening_of(send);
        let ready = this.paced_until.min(this.t).max(opening.map_or(self.base(send), |o| o.t));
        self.turns(&self.nic_hop(send), ready, self.idle_reason(send));
        opening
    }

    /// Walks from the end of a sender's pacing back to `opening`, or to the end of the packet before.
    pub(crate) fn wait_for_pacing(&mut self, send: usize, opening: Option<Opening>) {
        let since = self.end_of_previous(send);
        self.close(opening.map_or(since, |o| o.t.max(since)), Reason::Pacing);
    }

    /// Walks on to the sending of the packet before, or to the start of the flow.
    pub(crate) fn before_opening(&mut self, send: usize, opening: Option<Opening>) {
        let base = self.base(send);
        if let Some(opening) = opening {
            let reason = self.reason_of(send, opening);
            self.close(self.end_of_previous(send).max(base), reason);
        }
        if let Some(previous) = send.checked_sub(1)
            && base < self.at
        {
            self.close_sending(&self.nic_hop(previous), base);
        }
    }

    /// Returns the time at which the packet before was sent; for the first one, the start of the flow.
    pub(crate) fn base(&self, send: usize) -> Time {
        send.checked_sub(1).map_or(self.start, |previous| self.track.sends[previous].t)
    }

    /// Returns the end of the transmission of the packet before; for the first one, the start of the flow.
    fn end_of_previous(&self, send: usize) -> Time {
        send.checked_sub(1).map_or(self.start, |previous| self.nic_hop(previous).sent_by(self.ports))
    }

    /// Returns the hop of a sent packet at the NIC.
    pub(crate) fn nic_hop(&self, send: usize) -> Hop {
        let this = self.track.sends[send];
        let hops = self.track.hops.get(&Id::Data(this.seq));
        let hop = hops.and_then(|hops| hops.iter().find(|hop| hop.port == self.track.nic && hop.left == this.t));
        hop.copied().unwrap_or(Hop::unseen(self.track.nic, this.t))
    }

    /// Returns the last opening between the packet before and this one.
    pub(crate) fn opening_of(&self, send: usize) -> Option<Opening> {
        let order = |i: usize| self.track.sends[i].order;
        let until = self.track.openings.partition_point(|o| o.order < order(send));
        let opening = *self.track.openings.get(until.checked_sub(1)?)?;
        let is_between = send.checked_sub(1).is_none_or(|previous| order(previous) < opening.order);
        is_between.then_some(opening)
    }

    /// Returns the reason for which the sender waited for what an opening's cause brought.
    fn reason_of(&self, send: usize, opening: Opening) -> Reason {
        let is_again = self.track.sends[send].before.is_some();
        let has_timed_out = self.lanes.iter().any(|track| track.timeouts.binary_search(&opening.t).is_ok());
        match opening.cause {
            cause if send == 0 => match cause {
                Cause::Packet { flow, .. } if flow != self.track.flow => Reason::Connection,
                Cause::Packet { kind: PacketKind::ControlBack, .. } | Cause::TransportTimer => Reason::Handshake,
                Cause::Packet { kind: PacketKind::Credit, .. } => Reason::Credit,
                Cause::Packet { .. } | Cause::Notice => Reason::Notice,
                Cause::Resumed => Reason::Held,
                Cause::Start | Cause::ControllerTimer | Cause::Written | Cause::Other => Reason::Connection,
            },
            Cause::TransportTimer if has_timed_out => Reason::Timeout(None),
            Cause::Packet { kind, .. } if self.track.is_granted => reason_of_answer(kind),
            Cause::TransportTimer
            | Cause::Packet { kind: PacketKind::Ack | PacketKind::Nack | PacketKind::Returned, .. }
                if is_again =>
            {
                Reason::Recovery(None)
            }
            Cause::Packet { kind: PacketKind::Credit, .. } => Reason::Credit,
            Cause::Packet { kind: PacketKind::Cnp | PacketKind::Notice | PacketKind::ControlBack, .. }
            | Cause::Notice => Reason::Notice,
            Cause::Resumed => Reason::Held,
            Cause::Start
            | Cause::Packet { .. }
            | Cause::TransportTimer
            | Cause::ControllerTimer
            | Cause::Written
            | Cause::Other => Reason::Window,
        }
    }

    /// Returns the packet with the same bytes before this one, with its subflow, and the hop at which it was lost.
    fn loss_before(&self, send: usize) -> Option<(&'a Track, Send, &'a Hop)> {
        let this = self.track.sends[send];
        let (track, before) = match this.before {
            Some(before) => (self.track, self.track.sends[before]),
            None => self.sent_elsewhere(this)?,
        };
        let hops = track.hops.get(&Id::Data(before.seq))?;
        let lost = hops.iter().filter(|hop| hop.fate != Fate::Sent && before.t <= hop.left && hop.left < this.t);
        lost.max_by_key(|hop| hop.left).map(|hop| (track, before, hop))
    }

    /// Returns the last packet with the same first byte that another subflow sent before `this`.
    fn sent_elsewhere(&self, this: Send) -> Option<(&'a Track, Send)> {
        let others = self.lanes.iter().filter(|track| this.repeats_another && track.lane != self.track.lane);
        let last = others.filter_map(|track| {
            let before = track.sends.iter().rfind(|send| send.data_seq == this.data_seq && send.t < this.t)?;
            Some((*track, *before))
        });
        last.max_by_key(|(track, before)| (before.t, track.lane))
    }

    /// Returns `true` if a packet that repeats what `hop` lost only waited for others that are sent again after the
    /// loss.
    fn is_in_a_row(&self, send: usize, hop: &Hop) -> bool {
        let Some(previous) = send.checked_sub(1) else { return false };
        let before = self.track.sends[previous];
        (before.before.is_some() || before.repeats_another) && hop.left < before.t && self.opening_of(send).is_none()
    }

    /// Walks back to the loss at `hop` of data with first byte `seq` that was sent at `since`, and along the way of
    /// that packet.
    pub(crate) fn after_loss(&mut self, seq: u64, since: Time, hop: &Hop) -> Place {
        self.losses += 1;
        let Fate::Lost(how) = hop.fate else { return Place::Start };
        let loss = Loss { port: hop.port, how };
        let expired = self.track.timeouts.partition_point(|&t| t <= self.at);
        let expired = expired.checked_sub(1).map(|i| self.track.timeouts[i]).filter(|&t| hop.left < t);
        if let Some(expired) = expired {
            self.close(expired, Reason::Recovery(Some(loss)));
            self.close(hop.left, Reason::Timeout(Some(loss)));
        } else {
            self.close(hop.left, Reason::Recovery(Some(loss)));
        }
        let id = Id::Data(seq);
        let Some(hops) = self.track.hops.get(&id) else { return Place::Start };
        let topology = &self.ports.config().topology;
        let on_wire = hops.iter().filter(|other| {
            other.fate == Fate::Sent && other.port == hop.port && other.left <= hop.left && hop.queued == hop.left
        });
        let on_wire = on_wire.filter(|other| since <= other.left).max_by_key(|other| other.left).copied();
        match on_wire {
            Some(sent) => self.cross(&sent),
            None => self.wait(hop),
        }
        if self.back_to_host(id, topology.from(hop.port), self.track.src) { self.sending_of(seq) } else { Place::Start }
    }
}
