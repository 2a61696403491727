//! How data waits at egress ports.

use fairrate_units::{Bytes, Rate, Time};

/// How data waits at the egress ports of switches: each class that flows send in, at each port.
#[derive(Clone, Debug, PartialEq)]
pub struct QueueConfig {
    /// Who is dropped or marked, and who goes next.
    pub rule: QueueRule,
    /// Most wire bytes of the class that may wait at a port, besides what the shared buffer allows; [`Bytes::MAX`]: any
    /// number.
    pub limit_bytes: Bytes,
    /// The same in packets; [`u32::MAX`]: any number.
    pub limit_packets: u32,
}

impl QueueConfig {
    /// First in, first out, as long as the shared buffer allows.
    pub const FIFO: Self = Self { rule: QueueRule::Fifo, limit_bytes: Bytes::MAX, limit_packets: u32::MAX };
}

/// What an egress port does with the packets of a class.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum QueueRule {
    /// First in, first out; what arrives at the limit is dropped.
    Fifo,
    /// The same with random early detection.
    Red(RedConfig),
    /// The same with controlled delay (RFC 8289).
    CoDel(CoDelConfig),
    /// Stochastic fair queueing with controlled delay (RFC 8290); what is over the limit goes from the longest queue.
    SfqCoDel(SfqCoDelConfig),
    /// By the priorities that packets carry in their first header word, less first; what is over the limit goes from the
    /// other end.
    PFabric,
}

/// A named discipline of egress ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueInfo {
    /// Its name in scenarios.
    pub name: &'static str,
    /// What it does.
    pub title: &'static str,
    /// Where it was published.
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
    /// Whether the packets between two drops are counted, so that drops come at even distances.
    pub even: bool,
    /// Whether data of algorithms that read marks is marked in place of dropped.
    pub ecn: bool,
}

/// CoDel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CoDelConfig {
    /// Waiting time that is acceptable.
    pub target: Time,
    /// How long it may be exceeded before packets are dropped; about a large round-trip time.
    pub interval: Time,
    /// Whether data of algorithms that read marks is marked in place of dropped.
    pub ecn: bool,
}

/// Stochastic fair queueing with CoDel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SfqCoDelConfig {
    /// CoDel of every queue.
    pub codel: CoDelConfig,
    /// Queues that flows are spread over.
    pub queues: u32,
    /// Wire bytes of a turn; `None`: those of a full packet.
    pub quantum: Option<Bytes>,
    /// Which packet of the longest queue goes when there is no room.
    pub overflow: Overflow,
}

/// An end of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overflow {
    /// The first packet, as in RFC 8290: its sender learns of it soonest.
    Head,
    /// The last packet, as in ns-2.
    Tail,
}
