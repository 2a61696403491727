//! The results of a run: samples and finished flows as they happen, totals at the end.

use fairrate_units::Time;

use crate::ids::{FlowId, TaskId};

mod counts;
mod observation;
mod packets;
mod sampled;
mod senders;
mod sink;
mod totals;

pub use self::counts::{AllocatorTotals, Counts};
pub use self::observation::*;
pub use self::packets::{PacketEvent, PacketHeader, PacketStep};
pub(crate) use self::sampled::{Sampled, Watched};
pub use self::senders::{Cause, ReceiverEvent, SenderEvent, SenderStep};
pub use self::sink::{Both, Recorder, Sink};
pub use self::totals::{Drops, PortTotals, RunTotals};

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
    /// Time from the start until all its data had been handed to the NIC; `None`: it has not, or no flow and no task of
    /// the run waits for another one.
    pub sent: Option<Time>,
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
            sent: None,
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

/// The disorder among the packets of a flow, or of each of its subflows, that take several paths or that a fault
/// delays; none where they take one path without such a fault, and not recorded for HOMA.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Disorder {
    /// Number of data packets that arrived after one that was sent later.
    pub late_packets: u64,
    /// Largest reorder extent in bytes: from the first byte of such a packet to that of the furthest one that had
    /// arrived (RFC 4737 counts packets).
    pub extent_bytes: u64,
    /// Largest distance in bytes from the byte that the receiver expects next to the end of the furthest one that has
    /// arrived: the buffer that puts them in order, or the reach of a bitmap.
    pub span_bytes: u64,
}

impl Disorder {
    /// Returns the disorder of a connection with two subflows that have `self` and `other`.
    #[must_use]
    pub(crate) fn with(self, other: Self) -> Self {
        Self {
            late_packets: self.late_packets + other.late_packets,
            extent_bytes: self.extent_bytes.max(other.extent_bytes),
            span_bytes: self.span_bytes.max(other.span_bytes),
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
