//! The results of a run: samples and finished flows as they happen, totals at the end.

use fairrate_control::IntHop;
use fairrate_units::{Rate, Time};

use crate::fabric::DropCause;
use crate::ids::{FlowId, HostId, NodeId, PortId, TaskId};
use crate::packet::PacketKind;

mod counts;
mod senders;
mod sink;
mod totals;

pub use self::counts::Counts;
pub use self::senders::{Cause, ReceiverEvent, SenderEvent, SenderStep};
pub use self::sink::{Both, Observation, Recorder, Sink, Wants};
pub use self::totals::{AllocatorTotals, Drops, PortTotals, RateSums, RunTotals};

/// Totals of the data packets of a traffic block, [`FlowSpec::group`](crate::FlowSpec::group).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GroupTotals {
    /// Data packets dropped.
    pub drops: u64,
    /// Data packets that reached their receivers with an ECN mark.
    pub marked: u64,
}

impl GroupTotals {
    /// Largest number of blocks that have totals of their own: a flow list may number its groups as it likes.
    pub const MOST: usize = 1_024;
}

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
    /// Disorder among packets that took several paths.
    pub disorder: Disorder,
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
            disorder: Disorder::default(),
        }
    }
}

/// The outcome of a task that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskOutcome {
    /// The task.
    pub task: TaskId,
    /// Time at which it started: the last of its dependencies was met.
    pub start: Time,
    /// Time at which it ended.
    pub end: Time,
}

/// The disorder among the packets of a flow that take several paths; none where they take one, and not recorded for HOMA.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Disorder {
    /// Number of data packets that arrived after one that was sent later.
    pub late_packets: u64,
    /// Largest reorder extent in bytes: from the first byte of such a packet to that of the furthest one that had arrived
    /// (RFC 4737 counts packets).
    pub extent_bytes: u64,
    /// Largest distance in bytes from the byte that the receiver expects next to the end of the furthest one that has arrived:
    /// the buffer that puts them in order, or the reach of a bitmap.
    pub span_bytes: u64,
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

/// Counters of a host's receive buffer at one time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostSample {
    /// Time of the sample.
    pub t: Time,
    /// The host.
    pub host: NodeId,
    /// Bytes in the receive buffer. A packet counts until its last byte is in memory.
    pub held_bytes: u64,
    /// Bytes of data that have been drained into memory since the start.
    pub drained_bytes: u64,
    /// Packets that found no room since the start.
    pub drops: u64,
    /// Time for which the host has paused its switch since the start.
    pub pausing: Time,
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
    /// port's wire; for [`DropCause::Host`], at the host to which the port leads.
    Dropped(DropCause),
    /// The packet is cut to its header, which then joins a queue as a packet of its own. A packet that is cut as it arrives is
    /// reported as queued before.
    Trimmed,
    /// The port has no room for the header of a packet that was cut; it goes back to its sender as [`PacketKind::Returned`], by another
    /// port.
    Returned,
}

/// A step of one packet on its way through the network. A copy that a faulty link adds is not reported where it is
/// added, and a frame that pauses or resumes is not a packet here: [`Observation::Pfc`] is one that is obeyed.
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
    /// The flow; of a connection with several subflows, the subflow, which has a number above those of all flows.
    pub lane: FlowId,
    /// The kind of the packet.
    pub kind: PacketKind,
    /// Data: the first payload byte. Acknowledgments: the byte expected next.
    pub seq: u64,
    /// Acknowledgments: the first payload byte of the data packet they answer.
    pub answers: u64,
    /// Payload bytes of data, 0 for other packets.
    pub payload_bytes: u16,
    /// Bytes on the wire.
    pub wire_bytes: u16,
    /// Priority class.
    pub class: u8,
    /// Bytes in all queues of the port after the step; of a drop at a host, those in its receive buffer.
    pub queued_bytes: u64,
    /// Rate of the port, with faults. A link that becomes slow or fast at `t` may do so before or after the step.
    pub rate: Rate,
    /// `true` if a switch has marked the packet (ECN) on its way here, or an acknowledgment echoes a mark.
    pub marked: bool,
}

/// The fields of a packet's header that its steps lack.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PacketHeader<'a> {
    /// The host that sends the flow's data.
    pub sender: HostId,
    /// The host that receives the flow's data.
    pub receiver: HostId,
    /// Data: the window in force when it was sent, in bytes, saturated. HOMA's answers: the class that they grant.
    pub cwnd: u32,
    /// Data: the value by which its sender chose its path, which acknowledgments return.
    pub entropy: u16,
    /// `true` if the packet belongs to the handshake of a connection.
    pub is_handshake: bool,
    /// `true` if its sender says that it has reduced its window.
    pub is_reduced: bool,
    /// Ranges of a selective acknowledgment of TCP: first byte, and the byte after the last one.
    pub sacks: &'a [(u64, u64)],
    /// Telemetry that switches have stamped so far.
    pub telemetry: &'a [IntHop],
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
