//! The observer: a sink that records what some flows did.

use std::collections::HashMap;

use fairrate_sim::{
    Cause, FlowId, FlowOutcome, NodeId, Observation, PacketEvent, PacketHeader, PacketKind, PacketStep, PortId,
    ReceiverEvent, SenderEvent, SenderStep, SimConfig, Sink, Wants,
};
use fairrate_units::{Bytes, Rate, Time};

use crate::chain;
use crate::open;
use crate::piece::{Explanation, How};
use crate::port::{Ports, Transmission};

/// The reason for which a flow cannot be explained.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unsupported {
    /// The run has no packets, as under `ideal`.
    Fluids,
    /// The flow is endless.
    Endless,
}

/// The kind and number of a packet of a flow. Copies, and packets that are sent again, have the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Id {
    /// Data with this first byte, or its header.
    Data(u64),
    /// An acknowledgment that answers data with this first byte; of a receiver that grants, a grant up to this byte, or
    /// a request for what is missing before it.
    Answer(u64),
}

/// The end of a packet's time at a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Sent,
    Lost(How),
}

/// The time of a packet at an egress port.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hop {
    pub(crate) port: PortId,
    pub(crate) queued: Time,
    /// The time at which its transmission began, or it was lost.
    pub(crate) left: Time,
    pub(crate) fate: Fate,
    pub(crate) wire: u16,
    /// The rate of the port then.
    pub(crate) rate: Rate,
    pub(crate) class: u8,
    /// `false` if it was not seen to join a queue there.
    joined: bool,
}

impl Hop {
    /// Returns the hop of a packet that was not seen to leave `port` at `left`.
    pub(crate) fn unseen(port: PortId, left: Time) -> Self {
        Self { port, queued: left, left, fate: Fate::Sent, wire: 0, rate: Rate::MAX, class: 0, joined: false }
    }

    /// Returns the time at which the packet, which was sent, reaches the other end of the wire.
    pub(crate) fn arrival(&self, ports: &Ports) -> Time {
        self.sent_by(ports) + ports.config().topology.link(self.port).delay
    }

    /// Returns the end of the packet's transmission.
    pub(crate) fn sent_by(&self, ports: &Ports) -> Time {
        self.left + ports.tx_time(self.rate, self.wire)
    }

    /// Returns the hop of a packet of `class` that has waited at `port` since `queued`, and still does at `now`.
    pub(crate) fn open(port: PortId, class: u8, queued: Time, now: Time) -> Self {
        Self { queued, class, ..Self::unseen(port, now) }
    }
}

/// A packet in a queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Waiting {
    pub(crate) port: PortId,
    pub(crate) id: Id,
    /// The time at which it joined.
    pub(crate) since: Time,
    pub(crate) class: u8,
}

/// A data packet that a sender sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Send {
    pub(crate) t: Time,
    /// Its place among the steps of its sender.
    pub(crate) order: u32,
    pub(crate) seq: u64,
    /// Its first byte as the connection counts.
    pub(crate) data_seq: u64,
    payload: u16,
    pub(crate) paced_until: Time,
    /// The rate of the sender's pacing.
    pub(crate) rate: Rate,
    /// The place of the last packet with the same first byte before it; if there is none, of the last one with some of
    /// its bytes.
    pub(crate) before: Option<usize>,
    /// `true` if another subflow had sent bytes from the first one on before.
    pub(crate) repeats_another: bool,
}

/// The moment at which a sender could send again.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Opening {
    pub(crate) t: Time,
    /// Its place among the steps of its sender.
    pub(crate) order: u32,
    pub(crate) cause: Cause,
}

/// A data packet on which a receiver that grants acted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Taken {
    pub(crate) t: Time,
    pub(crate) seq: u64,
}

/// The record of one flow; of a connection with several subflows, that of a subflow.
#[derive(Clone)]
pub(crate) struct Track {
    pub(crate) flow: FlowId,
    /// The flow or subflow.
    pub(crate) lane: FlowId,
    /// The places of the records of a flow's subflows, once they are seen.
    subflows: Vec<u32>,
    pub(crate) src: NodeId,
    pub(crate) dst: NodeId,
    /// The port of the sender's NIC.
    pub(crate) nic: PortId,
    pub(crate) outcome: Option<FlowOutcome>,
    pub(crate) sends: Vec<Send>,
    pub(crate) openings: Vec<Opening>,
    /// The ends of retransmission timers: those of the sender, and those after which a receiver that grants asks for
    /// what is missing.
    pub(crate) timeouts: Vec<Time>,
    /// `true` if its receiver grants what its sender may send.
    pub(crate) is_granted: bool,
    /// The packets on which its receiver acted, if it grants.
    pub(crate) taken: Vec<Taken>,
    pub(crate) hops: HashMap<Id, Vec<Hop>>,
    /// The times at which data of a subflow arrived and its first bytes, in order; empty for other flows.
    pub(crate) arrived: Vec<(Time, u64)>,
    /// Packets in queues.
    pub(crate) waiting: Vec<Waiting>,
    /// The last packet with each first byte.
    last_of: HashMap<u64, usize>,
    /// The end of the bytes that were sent.
    sent_to: u64,
    n_steps: u32,
    is_watching_nic: bool,
}

/// A sink that records what some flows did, for their explanation.
pub struct Observer {
    pub(crate) ports: Ports,
    /// For each flow of the run, the place of its record.
    places: Vec<u32>,
    /// For each subflow seen, the place of its record.
    subflows: HashMap<FlowId, u32>,
    tracks: Vec<Track>,
}

const NONE: u32 = u32::MAX;

impl Observer {
    /// Returns an observer of `flows` in a run of `config` that has not begun.
    ///
    /// # Errors
    /// The first flow that cannot be explained, and why not.
    pub fn new(config: &SimConfig, flows: &[FlowId]) -> Result<Self, (FlowId, Unsupported)> {
        let mut places = vec![NONE; config.flows.len()];
        let mut tracks = Vec::new();
        for &flow in flows {
            supports(config, flow).map_err(|why| (flow, why))?;
            if places[flow.index()] != NONE {
                continue;
            }
            places[flow.index()] = tracks.len() as u32;
            let (spec, topology) = (&config.flows[flow.index()], &config.topology);
            let mut ports = (0..topology.n_ports() as u32).map(PortId);
            let nic = ports.find(|&port| topology.from(port) == spec.src).unwrap_or(PortId(0));
            tracks.push(Track {
                flow,
                lane: flow,
                subflows: Vec::new(),
                src: spec.src,
                dst: spec.dst,
                nic,
                outcome: None,
                sends: Vec::new(),
                openings: Vec::new(),
                timeouts: Vec::new(),
                is_granted: config.stack(spec.stack).1.needs().feedback.grants.is_some(),
                taken: Vec::new(),
                hops: HashMap::new(),
                arrived: Vec::new(),
                waiting: Vec::new(),
                last_of: HashMap::new(),
                sent_to: 0,
                n_steps: 0,
                is_watching_nic: false,
            });
        }
        Ok(Self { ports: Ports::new(config), places, subflows: HashMap::new(), tracks })
    }

    /// Adds the outcome of a flow that the run did not report, because it had not been acknowledged when the run ended.
    pub fn add_outcome(&mut self, outcome: &FlowOutcome) {
        self.flow(outcome);
    }

    /// Returns the account of `flow`; `None` if it is not observed or has not finished.
    pub fn explain(&self, flow: FlowId) -> Option<Explanation> {
        chain::explain(&self.lanes(flow), &self.ports)
    }

    /// Returns the account of `flow` until `end`, the time at which the run ended; `None` if it is not observed, has
    /// finished or had not started. The chain goes back from the byte that the receiver waits for; with several
    /// subflows, from the last packet that was sent.
    pub fn explain_open(&self, flow: FlowId, end: Time) -> Option<Explanation> {
        open::explain(&self.lanes(flow), &self.ports, end)
    }

    /// Returns the records of a flow, one for each of its subflows if there are any; none if it is not observed.
    fn lanes(&self, flow: FlowId) -> Vec<&Track> {
        let place = self.places.get(flow.index()).copied().unwrap_or(NONE);
        let Some(track) = self.tracks.get(place as usize) else { return Vec::new() };
        let subflows = track.subflows.iter().map(|&place| &self.tracks[place as usize]);
        if track.subflows.is_empty() { vec![track] } else { subflows.collect() }
    }

    /// Returns the end of the bytes that all subflows of a flow have sent, 0 if it has none. `end` is that of bytes
    /// which one sends now.
    fn sent_to(&mut self, flow: FlowId, lane: FlowId, end: u64) -> u64 {
        if lane == flow {
            return 0;
        }
        let Some((connection, _)) = self.track(flow, flow) else { return 0 };
        let so_far = connection.sent_to;
        connection.sent_to = so_far.max(end);
        so_far
    }

    /// Returns the record of a flow or subflow, if the flow is observed.
    fn track(&mut self, flow: FlowId, lane: FlowId) -> Option<(&mut Track, &mut Ports)> {
        let mut place = *self.places.get(flow.index())?;
        if lane != flow && place != NONE {
            let (tracks, of_flow) = (&mut self.tracks, place);
            place = *self.subflows.entry(lane).or_insert_with(|| {
                // The record of the connection stays empty but for its outcome.
                let place = tracks.len() as u32;
                let connection = &mut tracks[of_flow as usize];
                let track = Track { lane, subflows: Vec::new(), ..connection.clone() };
                connection.subflows.push(place);
                tracks.push(track);
                place
            });
        }
        Some((self.tracks.get_mut(place as usize)?, &mut self.ports))
    }
}

/// Checks that `flow` can be explained in runs of `config`.
///
/// # Errors
/// The reason for which it cannot.
pub fn supports(config: &SimConfig, flow: FlowId) -> Result<(), Unsupported> {
    supports_flows(config)?;
    if config.flows[flow.index()].bytes == Bytes::MAX {
        return Err(Unsupported::Endless);
    }
    Ok(())
}

/// Returns the reason why no flow of a run can be explained.
///
/// # Errors
/// If there is one.
pub fn supports_flows(config: &SimConfig) -> Result<(), Unsupported> {
    // An algorithm that serves flows as fluids is that of all flows.
    if config.cc.needs().feedback.oracle.is_some() { Err(Unsupported::Fluids) } else { Ok(()) }
}

impl Track {
    fn step(&mut self) -> u32 {
        self.n_steps += 1;
        self.n_steps
    }

    /// Adds a data packet that the sender sends. Subflows of its connection had sent bytes up to `sent_to` before.
    fn send(
        &mut self,
        t: Time,
        (seq, data_seq): (u64, u64),
        payload: u16,
        (paced_until, rate): (Time, Rate),
        sent_to: u64,
    ) {
        let end = seq + u64::from(payload);
        let has_bytes_of = |send: &Send| send.seq < end && seq < send.seq + u64::from(send.payload);
        let alike = self.last_of.insert(seq, self.sends.len());
        // Only messages are sent again in other pieces.
        let is_cut_anew = self.is_granted && seq < self.sent_to;
        let before = alike.or_else(|| if is_cut_anew { self.sends.iter().rposition(has_bytes_of) } else { None });
        self.sent_to = self.sent_to.max(end);
        let order = self.step();
        let repeats_another = before.is_none() && data_seq < sent_to;
        self.sends.push(Send { t, order, seq, data_seq, payload, paced_until, rate, before, repeats_another });
    }

    /// Adds the arrival at `t` of data with first byte `seq`. By the ports of a host, packets come nearly in order.
    fn arrive(&mut self, t: Time, seq: u64) {
        let place = self.arrived.iter().rposition(|&before| before <= (t, seq)).map_or(0, |before| before + 1);
        self.arrived.insert(place, (t, seq));
    }

    /// Takes the packet that has waited for longest of those alike at `port`, or at a queue that several transmitters
    /// of the same node serve; returns where and since when.
    fn take(&mut self, ports: &Ports, port: PortId, id: Id) -> Option<(PortId, Time)> {
        let topology = &ports.config().topology;
        let is_at = |at: PortId, i: Id| i == id && topology.from(at) == topology.from(port);
        let exact = self.waiting.iter().position(|w| (w.port, w.id) == (port, id));
        let found = exact.or_else(|| {
            let shares = topology.circuits.is_some();
            self.waiting.iter().position(|w| shares && is_at(w.port, w.id))
        })?;
        let Waiting { port, since, .. } = self.waiting.remove(found);
        Some((port, since))
    }

    /// Returns `true` if the packet was sent at `t` before it was seen to join: a faulty link delivered it late.
    fn has_left(&self, port: PortId, id: Id, t: Time) -> bool {
        let last = self.hops.get(&id).and_then(|hops| hops.last());
        last.is_some_and(|hop| !hop.joined && (hop.port, hop.left, hop.fate) == (port, t, Fate::Sent))
    }
}

/// Steps of senders and receivers.
impl Observer {
    /// Notes a step of a sender.
    fn sender(&mut self, event: &SenderEvent) {
        let &SenderEvent { t, flow, lane, step } = event;
        let Some((track, ports)) = self.track(flow, lane) else { return };
        if !std::mem::replace(&mut track.is_watching_nic, track.outcome.is_none()) && track.is_watching_nic {
            ports.watch(track.nic);
        }
        match step {
            SenderStep::Open(cause) => {
                let order = track.step();
                track.openings.push(Opening { t, order, cause });
            }
            SenderStep::Send { seq, data_seq, payload, paced_until, rate } => {
                let sent_to = self.sent_to(flow, lane, data_seq + u64::from(payload));
                if let Some((track, _)) = self.track(flow, lane) {
                    track.send(t, (seq, data_seq), payload, (paced_until, rate), sent_to);
                }
            }
            SenderStep::TimedOut => track.timeouts.push(t),
            SenderStep::Notified { .. } => {}
        }
    }

    /// Notes a data packet on which a receiver that grants acts.
    fn receiver(&mut self, event: &ReceiverEvent) {
        let &ReceiverEvent { t, flow, seq } = event;
        if let Some((track, _)) = self.track(flow, flow) {
            track.taken.push(Taken { t, seq });
        }
    }
}

impl Sink for Observer {
    fn wants(&self) -> Wants {
        Wants { packets: true, senders: true, ..Wants::default() }
    }

    fn flow(&mut self, outcome: &FlowOutcome) {
        let Some((connection, _)) = self.track(outcome.flow, outcome.flow) else { return };
        let subflows = connection.subflows.clone();
        for place in subflows.into_iter().chain([self.places[outcome.flow.index()]]) {
            let track = &mut self.tracks[place as usize];
            track.outcome = Some(*outcome);
            if std::mem::take(&mut track.is_watching_nic) {
                self.ports.unwatch(track.nic);
            }
        }
    }

    fn observe(&mut self, observation: &Observation) {
        match observation {
            Observation::Pfc(event) => self.ports.paused(event.port, event.class, event.t, event.pause),
            Observation::Sender(event) => self.sender(event),
            Observation::Receiver(event) => self.receiver(event),
            _ => {}
        }
    }

    fn packet(&mut self, event: &PacketEvent, _: Option<&PacketHeader<'_>>) {
        let &PacketEvent { t, port, step, flow, lane, kind, seq, answers, wire_bytes: wire, class, rate, .. } = event;
        let is_sent = step == PacketStep::Sent;
        if is_sent {
            self.ports.sent(port, Transmission { at: t, flow, wire, rate });
        }
        let Some((track, ports)) = self.track(flow, lane) else { return };
        let id = match kind {
            PacketKind::Data | PacketKind::Trimmed => Id::Data(seq),
            PacketKind::Ack | PacketKind::Nack => Id::Answer(answers),
            _ => return,
        };
        let fate = match step {
            PacketStep::Queued => {
                let is_request = track.is_granted && kind == PacketKind::Nack;
                if is_request
                    && ports.config().topology.from(port) == track.dst
                    && track.timeouts.last().is_none_or(|&last| last < t)
                {
                    track.timeouts.push(t);
                }
                if !track.has_left(port, id, t) {
                    track.waiting.push(Waiting { port, id, since: t, class });
                    ports.watch(port);
                }
                return;
            }
            PacketStep::Sent => Fate::Sent,
            PacketStep::Dropped(cause) => Fate::Lost(How::Dropped(cause)),
            PacketStep::Trimmed => Fate::Lost(How::Trimmed),
            PacketStep::Returned => Fate::Lost(How::Returned),
        };
        let joined = track.take(ports, port, id);
        if let Some((queue, _)) = joined {
            ports.unwatch(queue);
        }
        let (queued, joined) = (joined.map_or(t, |(_, since)| since), joined.is_some());
        let hop = Hop { port, queued, left: t, fate, wire, rate, class, joined };
        if let (Id::Data(seq), true) = (id, is_sent && lane != flow)
            && ports.config().topology.to(port) == track.dst
        {
            track.arrive(hop.arrival(ports), seq);
        }
        track.hops.entry(id).or_default().push(hop);
    }
}
