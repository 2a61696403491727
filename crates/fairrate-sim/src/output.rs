//! The results of a run: samples and finished flows as they happen, totals at the end.

use fairrate_units::{Rate, Time};

use crate::fabric::DropCause;
use crate::ids::{FlowId, PortId};
use crate::packet::PacketKind;

/// The outcome of one flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowOutcome {
    /// The flow.
    pub flow: FlowId,
    /// Time at which it started.
    pub start: Time,
    /// Time from the start to the last payload byte at the receiver; `None`: unfinished.
    pub fct: Option<Time>,
    /// Time from the start to the last acknowledgment at the sender; `None`: unfinished.
    pub fct_ack: Option<Time>,
    /// Completion time of the flow alone on an idle network.
    pub ideal_fct: Time,
    /// Payload bytes the receiver has in order.
    pub delivered_bytes: u64,
    /// Payload bytes sent again.
    pub retransmitted_bytes: u64,
    /// Retransmission timeouts of its sender, or of its subflows' senders together.
    pub timeouts: u32,
    /// Losses found and repaired without a timeout: recoveries of TCP, gaps reported to RDMA senders.
    pub recoveries: u32,
    /// Time from the start to the end of the handshake; `None`: there was no handshake, or it is not over.
    pub connected: Option<Time>,
    /// Data of a connection of several subflows that waited at the receiver for data before it.
    pub reordering: Reordering,
}

impl FlowOutcome {
    /// Returns the outcome of `flow` just after its start at `start`: nothing has arrived, and its ideal time is zero.
    pub fn at_start(flow: FlowId, start: Time) -> Self {
        Self {
            flow,
            start,
            fct: None,
            fct_ack: None,
            ideal_fct: Time::ZERO,
            delivered_bytes: 0,
            retransmitted_bytes: 0,
            timeouts: 0,
            recoveries: 0,
            connected: None,
            reordering: Reordering::default(),
        }
    }
}

/// Data that arrived out of order over several paths, and its waiting time for the data before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reordering {
    /// Payload bytes that waited.
    pub bytes: u64,
    /// The longest wait.
    pub max: Time,
    /// Sum of bytes times picoseconds.
    byte_ps: u128,
}

impl Reordering {
    /// Adds `bytes` that waited for `waited_ps`, in picoseconds.
    pub(crate) fn add(&mut self, bytes: u64, waited_ps: u64) {
        self.bytes += bytes;
        self.byte_ps += u128::from(bytes) * u128::from(waited_ps);
        self.max = self.max.max(Time::from_ps(waited_ps));
    }

    /// Adds the waits of another connection.
    pub(crate) fn merge(&mut self, other: &Self) {
        self.bytes += other.bytes;
        self.byte_ps += other.byte_ps;
        self.max = self.max.max(other.max);
    }

    /// Returns the mean wait of a byte that waited; zero if none did.
    pub fn mean(&self) -> Time {
        Time::from_ps((self.byte_ps / u128::from(self.bytes.max(1))) as u64)
    }
}

/// Counters of an egress port at one time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortSample {
    /// Time of the sample.
    pub t: Time,
    /// The port.
    pub port: PortId,
    /// Bytes waiting, all classes, without the packet on the wire.
    pub qlen_bytes: u64,
    /// Bytes handed to the wire since the start.
    pub tx_bytes: u64,
    /// Packets dropped at this port since the start.
    pub drops: u64,
    /// Packets marked at this port since the start.
    pub ecn_marks: u64,
    /// Time this port has been paused by its peer (any class) since the start.
    pub pfc_pause: Time,
}

/// State of a sender at one time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateSample {
    /// Time of the sample.
    pub t: Time,
    /// The flow.
    pub flow: FlowId,
    /// Congestion window in payload bytes; `u64::MAX`: none.
    pub cwnd_bytes: u64,
    /// Pacing rate.
    pub rate_bps: u64,
    /// Payload bytes the receiver has in order.
    pub delivered_bytes: u64,
    /// Values that only real hosts report; `None`: a simulation.
    pub measured: Option<MeasuredSender>,
}

/// The state of a connection as the TCP of a real host reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MeasuredSender {
    /// Smoothed round-trip time.
    pub rtt: Time,
    /// Payload bytes sent again since the start.
    pub retransmitted_bytes: u64,
}

/// A round-trip time that a sender has measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RttSample {
    /// Time at which the acknowledgment arrived.
    pub t: Time,
    /// The flow; for a subflow, its connection.
    pub flow: FlowId,
    /// Time from the start of the acknowledged packet's transmission to `t`.
    pub rtt: Time,
}

/// A pause or resume frame that a switch or host obeys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PfcEvent {
    /// Time at which the frame arrived.
    pub t: Time,
    /// The port that stops or starts sending.
    pub port: PortId,
    /// The class.
    pub class: u8,
    /// `true` for a pause, `false` for a resume.
    pub pause: bool,
}

/// A step of a packet at an egress port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketStep {
    /// The packet joins a queue of the port. A packet that can be sent at once joins and leaves at the same time.
    Queued,
    /// The port begins to transmit the packet.
    Sent,
    /// The packet is dropped: as it arrives at the port, from a queue of the port, or, for [`DropCause::Fault`], on the
    /// port's wire.
    Dropped(DropCause),
}

/// A step of one packet on its way through the network. A copy that a faulty link adds is not reported where it is
/// added, and a frame that pauses or resumes is not a packet here: [`Sink::pfc`] reports those that are obeyed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketEvent {
    /// Time of the step.
    pub t: Time,
    /// The egress port of a host or switch. A queue in front of several transmitters has a port of its own.
    pub port: PortId,
    /// The step.
    pub step: PacketStep,
    /// The flow that the packet belongs to; for a subflow, its connection. Messages of a central allocator have numbers
    /// above those of all flows.
    pub flow: FlowId,
    /// The kind of the packet.
    pub kind: PacketKind,
    /// Data: the first payload byte. Acknowledgments: the byte expected next.
    pub seq: u64,
    /// Bytes on the wire.
    pub wire_bytes: u16,
    /// Bytes in all queues of the port after the step.
    pub queued_bytes: u64,
    /// `true` if a switch has marked the packet (ECN) on its way here, or an acknowledgment echoes a mark.
    pub marked: bool,
}

/// The convergence of rates after a flow's arrival or departure. Changes at the same time give one sample, with the
/// flow of the last one; a departure that leaves no flow gives none.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ConvergenceSample {
    /// Time at which the flow arrived or departed.
    pub t: Time,
    /// The flow.
    pub flow: FlowId,
    /// `true` for an arrival, `false` for a departure.
    pub arrival: bool,
    /// Number of active flows after the change.
    pub n_flows: u32,
    /// Time from the change until all rates were within tolerance of the optimum and stayed there; `None`: they were
    /// not in the time they had, or the next change or the end of the run came first.
    pub time: Option<Time>,
    /// `time` in base RTTs of the network.
    pub rtts: Option<f64>,
}

/// A receiver of results during a run.
pub trait Sink {
    /// Receives the outcome of a flow that has finished: its last byte was acknowledged.
    fn flow(&mut self, outcome: &FlowOutcome);
    /// Receives a sample of a port.
    fn port(&mut self, sample: &PortSample);
    /// Receives a sample of a flow.
    fn rate(&mut self, sample: &RateSample);
    /// Receives the pause or resumption of a port.
    fn pfc(&mut self, event: &PfcEvent);
    /// Returns `true` if the run shall call [`Sink::rtt`].
    fn wants_rtts(&self) -> bool {
        false
    }
    /// Receives a round-trip time that a sender has measured, at every acknowledgment.
    fn rtt(&mut self, _sample: &RttSample) {}
    /// Returns `true` if the run shall call [`Sink::packet`].
    fn wants_packets(&self) -> bool {
        false
    }
    /// Receives a step of a packet, in the order of time. Steps of the same time are in the order of the kinds of events
    /// that cause them, which does not depend on the number of threads. So a packet that arrives late, by a fault, just
    /// when its port is free is reported as sent and then as queued.
    fn packet(&mut self, _event: &PacketEvent) {}
    /// Receives the convergence of rates after a change, or the fact that they did not converge.
    fn convergence(&mut self, _sample: &ConvergenceSample) {}
    /// Receives, at each time `t` of [`SimConfig::snapshots`](crate::SimConfig::snapshots) that the run reaches, the
    /// payload bytes in order at the receiver of each of the user's flows.
    fn snapshot(&mut self, _t: Time, _delivered: &mut dyn Iterator<Item = (FlowId, u64)>) {}
    /// Returns `true` if the sink keeps nothing any more, as after an error of writing: the run need not go on.
    fn is_closed(&self) -> bool {
        false
    }
}

/// Takes nothing in: for runs whose totals are enough.
impl Sink for () {
    fn flow(&mut self, _: &FlowOutcome) {}
    fn port(&mut self, _: &PortSample) {}
    fn rate(&mut self, _: &RateSample) {}
    fn pfc(&mut self, _: &PfcEvent) {}
}

/// A sink that keeps the results of a run in the order they are received: samples in order of time, flows as they
/// finish. It is for runs whose samples fit into memory.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Recorder {
    /// Finished flows.
    pub flows: Vec<FlowOutcome>,
    /// Samples of ports.
    pub ports: Vec<PortSample>,
    /// Samples of flows.
    pub rates: Vec<RateSample>,
    /// Pauses and resumptions.
    pub pfc: Vec<PfcEvent>,
    /// Changes of the set of flows, with the convergence of rates after each.
    pub convergence: Vec<ConvergenceSample>,
    /// Times of snapshots, each with the payload bytes delivered of each flow.
    pub snapshots: Vec<(Time, Vec<u64>)>,
}

impl Sink for Recorder {
    fn flow(&mut self, outcome: &FlowOutcome) {
        self.flows.push(*outcome);
    }
    fn port(&mut self, sample: &PortSample) {
        self.ports.push(*sample);
    }
    fn rate(&mut self, sample: &RateSample) {
        self.rates.push(*sample);
    }
    fn pfc(&mut self, event: &PfcEvent) {
        self.pfc.push(*event);
    }
    fn convergence(&mut self, sample: &ConvergenceSample) {
        self.convergence.push(*sample);
    }
    fn snapshot(&mut self, t: Time, delivered: &mut dyn Iterator<Item = (FlowId, u64)>) {
        self.snapshots.push((t, delivered.map(|(_, bytes)| bytes).collect()));
    }
}

/// Numbers of packets dropped, by cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Drops([u64; DropCause::ALL.len()]);

impl Drops {
    /// Returns the number of packets dropped for all causes together.
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    /// Returns the number of packets dropped for `cause`.
    pub fn of(&self, cause: DropCause) -> u64 {
        self.0[cause as usize]
    }

    /// Returns each cause with its number of packets, in the order of [`DropCause::ALL`].
    pub fn by_cause(&self) -> impl Iterator<Item = (DropCause, u64)> {
        DropCause::ALL.into_iter().zip(self.0)
    }

    /// Adds `n` packets dropped for `cause`.
    pub fn add(&mut self, cause: DropCause, n: u64) {
        self.0[cause as usize] += n;
    }

    /// Adds the packets of `other`.
    fn merge(&mut self, other: &Self) {
        for (cause, n) in other.by_cause() {
            self.add(cause, n);
        }
    }
}

impl FromIterator<(DropCause, u64)> for Drops {
    fn from_iter<I: IntoIterator<Item = (DropCause, u64)>>(counts: I) -> Self {
        let mut drops = Self::default();
        for (cause, n) in counts {
            drops.add(cause, n);
        }
        drops
    }
}

/// The messages between a central allocator and endpoints. Bytes are those of its lines (connections that carry
/// messages) on the wire, with their acknowledgments, counted once where they are sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AllocatorTotals {
    /// Bytes sent by the allocator.
    pub from_allocator_bytes: u64,
    /// Bytes sent to the allocator.
    pub to_allocator_bytes: u64,
    /// Bytes sent between intermediaries and servers, both ways.
    pub relayed_bytes: u64,
    /// The part of `from_allocator_bytes` in acknowledgments.
    pub from_allocator_ack_bytes: u64,
    /// The part of `to_allocator_bytes` in acknowledgments.
    pub to_allocator_ack_bytes: u64,
    /// The part of `from_allocator_bytes` in packets that carry only signs of life.
    pub sign_of_life_bytes: u64,
    /// Flowlets whose start an endpoint reported.
    pub starts: u64,
    /// Flowlets whose end an endpoint reported.
    pub ends: u64,
    /// Rates that the allocator sent.
    pub updates: u64,
    /// Messages of the allocator whose only purpose is to show that it is up.
    pub signs_of_life: u64,
    /// Rates that expired because the allocator was silent.
    pub expired: u64,
    /// Iterations of the optimiser.
    pub iterations: u64,
}

/// Totals of a run. Data bytes are counted on the wire and add up: sent + duplicated = delivered + dropped + in flight.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunTotals {
    /// Simulated time at the end.
    pub end: Time,
    /// Sum of a hash of every event, its time included: equal if two runs processed the same events.
    pub fingerprint: u64,
    /// Events processed.
    pub events: u64,
    /// Packets of any kind serialised onto a link.
    pub packet_hops: u64,
    /// Data bytes that left hosts.
    pub sent_bytes: u64,
    /// Data bytes that faulty links have added.
    pub duplicated_bytes: u64,
    /// Data bytes that reached their receivers.
    pub delivered_bytes: u64,
    /// Data bytes dropped.
    pub dropped_bytes: u64,
    /// Data bytes in queues or on links at the end.
    pub in_flight_bytes: u64,
    /// Packets dropped.
    pub drops: Drops,
    /// Packets of any kind that faulty links have added.
    pub duplicates: u64,
    /// Packets marked.
    pub ecn_marks: u64,
    /// Pause frames sent.
    pub pfc_pauses: u64,
    /// Resume frames sent.
    pub pfc_resumes: u64,
    /// Notices that switch ports sent to sources.
    pub notices: u64,
    /// Control packets that flows sent, on their way there and back again.
    pub control_packets: u64,
    /// Frames that paused a single flow one hop upstream.
    pub flow_pauses: u64,
    /// Frames that resumed a single flow one hop upstream.
    pub flow_resumes: u64,
    /// Rates of sources, each taken after the source acted on a congestion notification or on a notice.
    pub told_rates: RateSums,
    /// Bytes of notices, control packets and frames about flows on the wire, counted once where they are sent.
    pub control_bytes: u64,
    /// The messages to and from the allocator, if there is one.
    pub allocator: AllocatorTotals,
    /// Largest use of any switch's buffer, headroom included, in bytes.
    pub peak_buffer_bytes: u64,
    /// Data of all connections of several subflows that waited for data before it.
    pub reordering: Reordering,
    /// Flows that finished.
    pub flows_done: u64,
    /// Finite flows that did not finish.
    pub flows_unfinished: u64,
}

impl AllocatorTotals {
    /// Adds the totals of another part of the network.
    pub(crate) fn add(&mut self, other: &Self) {
        self.from_allocator_bytes += other.from_allocator_bytes;
        self.to_allocator_bytes += other.to_allocator_bytes;
        self.relayed_bytes += other.relayed_bytes;
        self.from_allocator_ack_bytes += other.from_allocator_ack_bytes;
        self.to_allocator_ack_bytes += other.to_allocator_ack_bytes;
        self.sign_of_life_bytes += other.sign_of_life_bytes;
        self.starts += other.starts;
        self.ends += other.ends;
        self.updates += other.updates;
        self.signs_of_life += other.signs_of_life;
        self.expired += other.expired;
        self.iterations += other.iterations;
    }
}

/// The sums from which the mean and deviation of the rates of limited sources follow. They are whole numbers, so that
/// parts may be added in any order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RateSums {
    /// Number of rates in the sums.
    pub n: u64,
    /// Sum of the rates in bit/s.
    pub sum_bps: u128,
    /// Sum of the squares of the rates in (bit/s)^2.
    pub sum_of_squares: u128,
    /// Number of rates that are not in the sums: they are at least the rate of the source's link, and so no limit.
    pub n_unlimited: u64,
}

impl RateSums {
    /// Adds the `rate` of a source whose link has the rate `line_rate`.
    pub(crate) fn add(&mut self, rate: Rate, line_rate: Rate) {
        if line_rate <= rate {
            self.n_unlimited += 1;
            return;
        }
        let bps = u128::from(rate.as_bps());
        self.n += 1;
        self.sum_bps += bps;
        self.sum_of_squares += bps * bps;
    }

    /// Adds the sums of another part.
    fn merge(&mut self, other: &Self) {
        self.n += other.n;
        self.sum_bps += other.sum_bps;
        self.sum_of_squares += other.sum_of_squares;
        self.n_unlimited += other.n_unlimited;
    }

    /// Returns the mean and standard deviation in bit/s; `None` if there are no rates.
    pub fn mean_and_deviation_bps(&self) -> Option<(f64, f64)> {
        let n = self.n as f64;
        let mean = (0 < self.n).then(|| self.sum_bps as f64 / n)?;
        let variance = self.sum_of_squares as f64 / n - mean * mean;
        Some((mean, variance.max(0.0).sqrt()))
    }
}

impl RunTotals {
    /// Returns the data bytes, sent or duplicated, that were neither delivered nor dropped and are not in flight: 0 as
    /// bytes are conserved, below 0 if more arrived than were sent.
    pub fn unaccounted_bytes(&self) -> i64 {
        let found = self.delivered_bytes + self.dropped_bytes + self.in_flight_bytes;
        (self.sent_bytes + self.duplicated_bytes).cast_signed() - found.cast_signed()
    }

    /// Adds the totals of another part of the network.
    pub(crate) fn add(&mut self, other: &Self) {
        self.end = self.end.max(other.end);
        self.fingerprint = self.fingerprint.wrapping_add(other.fingerprint);
        self.events += other.events;
        self.packet_hops += other.packet_hops;
        self.sent_bytes += other.sent_bytes;
        self.duplicated_bytes += other.duplicated_bytes;
        self.delivered_bytes += other.delivered_bytes;
        self.dropped_bytes += other.dropped_bytes;
        self.in_flight_bytes += other.in_flight_bytes;
        self.drops.merge(&other.drops);
        self.duplicates += other.duplicates;
        self.ecn_marks += other.ecn_marks;
        self.pfc_pauses += other.pfc_pauses;
        self.pfc_resumes += other.pfc_resumes;
        self.notices += other.notices;
        self.control_packets += other.control_packets;
        self.flow_pauses += other.flow_pauses;
        self.flow_resumes += other.flow_resumes;
        self.told_rates.merge(&other.told_rates);
        self.control_bytes += other.control_bytes;
        self.allocator.add(&other.allocator);
        self.peak_buffer_bytes = self.peak_buffer_bytes.max(other.peak_buffer_bytes);
        self.reordering.merge(&other.reordering);
        self.flows_done += other.flows_done;
        self.flows_unfinished += other.flows_unfinished;
    }
}
