use fairrate_units::{Bytes, Rate, Time};

use crate::config::choice;
use crate::credits::{Credits, DatagramDefaults};
use crate::homa::Grants;
use crate::int::{IntCounter, IntFormat};
use crate::port::{HeaderWords, PortScope};

/// The queue whose length decides whether a packet is marked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MarkedQueue {
    /// The queue that the packet joins, including the packet.
    Joined,
    /// The queue that the packet leaves behind, without the packet.
    Left,
    /// The port's phantom queue, including the packet that joins; it drains at this percentage of the port's rate.
    Phantom(u8),
}

/// The ECN marking that an algorithm is made for: RED on the instantaneous queue.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RedDefault {
    /// Queue length up to which no packet is marked.
    pub kmin: Bytes,
    /// Queue length above which every packet is marked.
    pub kmax: Bytes,
    /// Marking probability as the queue reaches `kmax`.
    pub pmax: f64,
    /// Port rate for which the thresholds are given; they scale with a port's rate. `None` if they are the same at all
    /// rates.
    pub per_rate: Option<Rate>,
    /// The queue that is compared with the thresholds.
    pub queue: MarkedQueue,
}

/// The queueing of data at switches under an algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Queueing {
    /// The scenario's queueing; packets carry no priorities.
    Any,
    /// Queueing by the priority that each packet carries in its first header word, unless the scenario says otherwise.
    Priorities,
    /// Queues chosen by the algorithm's [`PortAgent`](crate::PortAgent) or transport: no discipline and no limit can be
    /// combined with them.
    Own,
}

/// The help that an algorithm gets from ToRs with circuits, which know in advance when a circuit is up. The ECN mark of
/// a data packet shows whether it has taken a circuit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CircuitHelp {
    /// Maximum number of bytes in a VOQ whose circuit is down.
    pub voq: Bytes,
    /// Maximum number of bytes in it while the circuit is up, and from `ahead` before.
    pub enlarged: Bytes,
    /// Time before the circuit is up at which the VOQ is enlarged.
    pub ahead: Time,
}

/// The telemetry that switches stamp into data packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Telemetry {
    /// The byte counter of a port.
    pub counter: IntCounter,
    /// The encoding of a record.
    pub format: IntFormat,
}

impl Telemetry {
    /// The bytes transmitted, in exact records.
    pub const EXACT: Self = Self { counter: IntCounter::Transmitted, format: IntFormat::Exact };
}

/// The support that an algorithm needs from switches and links, which all flows of a network share.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NetworkNeeds {
    /// The telemetry that switches stamp into data packets.
    pub telemetry: Option<Telemetry>,
    /// Set when switches mark ECN on the flow's packets.
    pub ecn: bool,
    /// The marking to use if the scenario gives none; `None` if the algorithm does not depend on it. The ns3 profile
    /// marks as the artifact does.
    pub red: Option<RedDefault>,
    /// The egress ports that run the algorithm's [`PortAgent`](crate::PortAgent).
    pub ports: PortScope,
    /// The queueing of data at switches.
    pub queueing: Queueing,
    /// The VOQ limits of ToRs with circuits, which also mark the packets that take a circuit; `None` for no such help.
    pub circuits: Option<CircuitHelp>,
}

/// The bytes and packets that an algorithm adds to those of its flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WireNeeds {
    /// Bytes the algorithm's telemetry or timestamps add to every data packet.
    pub data_overhead: Bytes,
    /// The same for every acknowledgment.
    pub ack_overhead: Bytes,
    /// Header words on every data and control packet.
    pub header: HeaderWords,
    /// Size on the wire of the flows' control packets, to which ports may write; `None` if there are none.
    pub control: Option<Bytes>,
    /// `true` if control packets wait in the queue of data, unless the scenario says otherwise; `false` if they go
    /// ahead of data.
    pub control_with_data: bool,
}

/// The pacing of an algorithm's packets by the sender's NIC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacingNeeds {
    /// `true` if a changed rate also moves the pending send time (the spacing after the packet last sent); `false` if
    /// it only spaces the packets after the next one.
    pub repace_on_change: bool,
    /// Number of packets that a flow may send in a row after it had to wait for its NIC, to keep its rate on average (a
    /// token bucket). If 0, each packet is spaced from the last one sent, so that a missed turn is lost.
    pub pacing_credit: u32,
    /// The bucket whose credit `pacing_credit` is, if it is that of a token bucket which keeps its bytes as its rate
    /// changes.
    pub bucket: Bucket,
}

/// A token bucket that keeps its bytes as its rate changes: a pending send time moves as the new rate fills what is
/// missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bucket {
    /// There is none: a changed rate does what [`PacingNeeds::repace_on_change`] says.
    None,
    /// A bucket that is empty when its rate falls below the line's, and when it comes up to it again.
    Emptied,
    /// A bucket that nothing empties.
    Kept,
}

choice! {
    /// The rates that an oracle gives to flows.
    pub enum Oracle {
        /// The exact max-min optimum.
        MaxMin = "max-min",
        /// The rates of flows that are alone.
        Alone = "alone",
    }
}

/// The feedback that a sender gets from its receiver, its transport, an allocator or an oracle.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FeedbackNeeds {
    /// The interval in which receivers answer marked packets with at most one CNP per flow.
    pub cnp_interval: Option<Time>,
    /// Set when these intervals are those of a clock that begins at time zero, and not each from the CNP before.
    pub cnp_by_clock: bool,
    /// Set when a flow's first acknowledgment leads to no decision, but is the reference for the next one.
    pub first_ack_only_stored: bool,
    /// The rates that an oracle gives to flows at every moment; `None` if there is no oracle.
    pub oracle: Option<Oracle>,
    /// Set when a central allocator sends flows their rates in notices.
    pub allocator: bool,
    /// Parameters of HOMA's transport, whose receivers grant what may be sent; `None` for other transports.
    pub grants: Option<Grants>,
    /// Set when the transport is that of Ultra Ethernet: receivers keep packets in any order, acknowledge bytes on the
    /// wire, and report packets that were cut to their headers.
    pub uet: bool,
    /// Set when receivers of that transport give credit for what may be sent to them.
    pub credit: Option<Credits>,
    /// Fixed retransmission timeout of TCP in base round-trip times, without backoff, which alone detects losses.
    pub rto_rtts: Option<f64>,
    /// Set when TCP, if configured to, reduces the window in a recovery as data is delivered (PRR, RFC 9937).
    pub prr: bool,
    /// Set when each packet's header has to come back: an acknowledgment of several brings the header of the last one.
    pub each_header: bool,
    /// Set when telemetry of several paths is told apart, so that packets of a flow may take several.
    pub paths_apart: bool,
    /// Set when flows share in proportion to [`FlowContext::weight`](crate::FlowContext::weight). Otherwise the
    /// scenario may not give weights.
    pub weights: bool,
}

/// The support that an algorithm needs from network, receiver and transport.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Needs {
    /// The support of switches and links.
    pub network: NetworkNeeds,
    /// Bytes and packets beside the flows' own.
    pub wire: WireNeeds,
    /// Pacing by the sender's NIC.
    pub pacing: PacingNeeds,
    /// Feedback to the sender.
    pub feedback: FeedbackNeeds,
    /// Defaults of packets, timeouts and switches, where the transport is that of Ultra Ethernet.
    pub datagrams: DatagramDefaults,
}

impl NetworkNeeds {
    /// The needs of an algorithm that works with any switches.
    pub const NOTHING: Self = Self {
        telemetry: None,
        ecn: false,
        red: None,
        ports: PortScope::None,
        queueing: Queueing::Any,
        circuits: None,
    };
}

impl WireNeeds {
    /// The needs of an algorithm that adds nothing to packets.
    pub const NOTHING: Self = Self {
        data_overhead: Bytes::ZERO,
        ack_overhead: Bytes::ZERO,
        header: HeaderWords::NONE,
        control: None,
        control_with_data: false,
    };
}

impl PacingNeeds {
    /// The pacing that most algorithms describe: a changed rate acts at once, and a missed turn is lost.
    pub const NOTHING: Self = Self { repace_on_change: true, pacing_credit: 0, bucket: Bucket::None };
}

impl FeedbackNeeds {
    /// The needs of an algorithm that decides by acknowledgments and timeouts.
    pub const NOTHING: Self = Self {
        cnp_interval: None,
        cnp_by_clock: false,
        first_ack_only_stored: false,
        oracle: None,
        allocator: false,
        grants: None,
        uet: false,
        credit: None,
        rto_rtts: None,
        prr: false,
        each_header: false,
        paths_apart: false,
        weights: false,
    };
}

impl Needs {
    /// The needs of an algorithm that asks nothing of the network.
    pub const NOTHING: Self = Self {
        network: NetworkNeeds::NOTHING,
        wire: WireNeeds::NOTHING,
        pacing: PacingNeeds::NOTHING,
        feedback: FeedbackNeeds::NOTHING,
        datagrams: DatagramDefaults::UET,
    };

    /// The needs of an algorithm that reads in-band telemetry: five hops of 8 bytes and a count on data (42 bytes), and
    /// 28 bytes more than the smallest frame on acknowledgments, as in HPCC's public header format.
    pub const TELEMETRY: Self = Self {
        network: NetworkNeeds { telemetry: Some(Telemetry::EXACT), ..NetworkNeeds::NOTHING },
        wire: WireNeeds { data_overhead: Bytes::new(42), ack_overhead: Bytes::new(28), ..WireNeeds::NOTHING },
        ..Self::NOTHING
    };

    /// The needs of an algorithm that reads round-trip times: an 8-byte timestamp on data.
    pub const TIMESTAMPS: Self =
        Self { wire: WireNeeds { data_overhead: Bytes::new(8), ..WireNeeds::NOTHING }, ..Self::NOTHING };
}

/// Writes `Default` of each part of [`Needs`]: its `NOTHING`.
macro_rules! default_is_nothing {
    ($($part:ty),+) => {
        $(impl Default for $part {
            fn default() -> Self {
                Self::NOTHING
            }
        })+
    };
}

default_is_nothing!(Needs, NetworkNeeds, WireNeeds, PacingNeeds, FeedbackNeeds);
