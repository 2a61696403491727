//! Queueing of data at egress ports.

use fairrate_units::{Bytes, Rate, Time};

/// Queueing of data at the egress ports of switches, for each class that flows send in, at each port.
#[derive(Clone, Debug, PartialEq)]
pub struct QueueConfig {
    /// The queueing discipline: it drops, marks and selects packets.
    pub rule: QueueRule,
    /// Highest number of wire bytes of the class that may wait at a port, besides the limits of the shared buffer;
    /// [`Bytes::MAX`]: no limit.
    pub limit_bytes: Bytes,
    /// Highest number of packets of the class that may wait at a port; [`u32::MAX`]: no limit.
    pub limit_packets: u32,
}

impl QueueConfig {
    /// First in, first out, as long as the shared buffer allows.
    pub const FIFO: Self = Self { rule: QueueRule::Fifo, limit_bytes: Bytes::MAX, limit_packets: u32::MAX };
}

/// The queueing discipline of a class at an egress port.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum QueueRule {
    /// First in, first out; packets that arrive at the limit are dropped.
    Fifo,
    /// First in, first out with random early detection.
    Red(RedConfig),
    /// First in, first out with controlled delay (RFC 8289).
    CoDel(CoDelConfig),
    /// Stochastic fair queueing with controlled delay (RFC 8290); packets over the limit are dropped from the longest
    /// queue.
    SfqCoDel(SfqCoDelConfig),
    /// Priority queueing by the first header word of packets, lower values first; packets over the limit are dropped
    /// from the other end.
    PFabric,
}

/// A named discipline of egress ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueInfo {
    /// Name in scenarios.
    pub name: &'static str,
    /// One-line description.
    pub title: &'static str,
    /// Publication that defines it.
    pub source: &'static str,
}

/// All disciplines.
pub const QUEUES: &[QueueInfo] = &[
    QueueInfo { name: "fifo", title: "first in, first out; arrivals are dropped at the limit", source: "none" },
    QueueInfo {
        name: "red",
        title: "arrivals are dropped or marked with a probability that rises with the queue",
        source: "Floyd and Jacobson, ToN 1993",
    },
    QueueInfo {
        name: "codel",
        title: "the first packet is dropped or marked if packets have waited for too long for too long",
        source: "RFC 8289",
    },
    QueueInfo {
        name: "sfq-codel",
        title: "flows hashed into queues that take turns, each with CoDel",
        source: "RFC 8290",
    },
    QueueInfo {
        name: "pfabric",
        title: "the flow with the least left is sent, that with the most left is dropped",
        source: "Alizadeh et al., SIGCOMM 2013",
    },
];

/// Random early detection.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RedConfig {
    /// Nothing is dropped at or below this queue.
    pub kmin: Bytes,
    /// Everything is dropped from this queue on.
    pub kmax: Bytes,
    /// Drop probability as the queue reaches `kmax`.
    pub pmax: f64,
    /// Port rate the thresholds are given for; they scale with a port's rate. `None`: the same at all rates.
    pub per_rate: Option<Rate>,
    /// Weight of an arrival's queue in the moving average that is compared; 1: the queue itself.
    pub weight: f64,
    /// Set to count the packets between two drops, so that drops come at even distances.
    pub even: bool,
    /// Set to mark data of algorithms that read marks, instead of dropping it.
    pub ecn: bool,
}

/// CoDel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CoDelConfig {
    /// Waiting time that is acceptable.
    pub target: Time,
    /// Time that the target may be exceeded before packets are dropped; about a large round-trip time.
    pub interval: Time,
    /// Set to mark data of algorithms that read marks, instead of dropping it.
    pub ecn: bool,
}

/// Stochastic fair queueing with CoDel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SfqCoDelConfig {
    /// CoDel of every queue.
    pub codel: CoDelConfig,
    /// Queues that flows are spread over.
    pub queues: u32,
    /// Wire bytes of a turn; `None`: the wire bytes of a full packet.
    pub quantum: Option<Bytes>,
    /// End of the longest queue from which a packet is dropped when there is no room.
    pub overflow: Overflow,
}

/// An end of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overflow {
    /// The first packet, as in RFC 8290: its sender detects the loss soonest.
    Head,
    /// The last packet, as in ns-2.
    Tail,
}
