//! Pieces of a completion time, and their sums.

use std::collections::BTreeMap;

use fairrate_sim::{DropCause, FlowId, PortId};
use fairrate_units::Time;

/// The packets that were served before one that waited.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Behind {
    /// Packets of the flow itself.
    Itself,
    /// Packets of another flow, or of a connection of a central allocator.
    Flow(FlowId),
}

/// The way in which a packet was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum How {
    /// The packet was dropped for this cause.
    Dropped(DropCause),
    /// The packet was cut to its header.
    Trimmed,
    /// The packet had been cut to its header, and that was sent back.
    Returned,
}

/// The loss of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Loss {
    /// The egress port at which, or on whose wire, the packet was lost.
    pub port: PortId,
    /// The way in which it was lost.
    pub how: How,
}

/// The reason for which time passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reason {
    /// A packet of the flow was on the wire of a port.
    Propagation(PortId),
    /// A port transmitted a packet of the flow.
    Serialisation(PortId),
    /// A packet of the flow waited while a port transmitted other packets.
    Queue(PortId, Behind),
    /// The NIC transmitted packets of other flows while the sender could have sent.
    Turn(PortId, Behind),
    /// The port was paused by PFC, and transmitted nothing.
    Pause(PortId),
    /// The port transmitted no packet although one waited: its circuit was away, it transmitted frames of flow control,
    /// or an algorithm held the flow back there.
    Blocked(PortId),
    /// The link of the port was down.
    Down(PortId),
    /// A faulty link delivered the packet later than its length says.
    LateLink(PortId),
    /// The host to which the port leads had not yet acted on a packet that had arrived: the packet was not in memory,
    /// or the host was not done with it. A late link to such a host is not told apart.
    Host(PortId),
    /// The NIC transmitted nothing, as it is slower than its link.
    SlowNic(PortId),
    /// The sender waited for its pacing.
    Pacing,
    /// The sender waited for its window.
    Window,
    /// The sender waited for credit of its receiver.
    Credit,
    /// The sender waited for a rate or a notice from the network.
    Notice,
    /// The switch behind the NIC held the flow back.
    Held,
    /// The flow waited for its connection, which an earlier flow used.
    Connection,
    /// The sender waited for the end of its handshake.
    Handshake,
    /// The sender waited for its retransmission timer, after this loss; `None`: no data was lost.
    Timeout(Option<Loss>),
    /// A loss had been or was to be found without a timeout, and its bytes had not yet been sent again.
    Recovery(Option<Loss>),
    /// The receiver held its acknowledgment back.
    Receiver,
    /// The packet that completed the flow was on its way. Only in the sender's account.
    LastPacket,
    /// The sender had not sent anything further when the run ended. Only of flows that have not finished.
    Unsent,
    /// The cause was not found: an observed event is missing, as with copies that faulty links make.
    Unknown,
}

impl Reason {
    /// Returns the name of the reason, without its port.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Propagation(_) => "propagation",
            Self::Serialisation(_) => "serialisation",
            Self::Queue(..) => "queue",
            Self::Turn(..) => "turn",
            Self::Pause(_) => "pause",
            Self::Blocked(_) => "blocked",
            Self::Down(_) => "down",
            Self::LateLink(_) => "late-link",
            Self::Host(_) => "host",
            Self::SlowNic(_) => "slow-nic",
            Self::Pacing => "pacing",
            Self::Window => "window",
            Self::Credit => "credit",
            Self::Notice => "notice",
            Self::Held => "held",
            Self::Connection => "connection",
            Self::Handshake => "handshake",
            Self::Timeout(_) => "timeout",
            Self::Recovery(_) => "recovery",
            Self::Receiver => "receiver",
            Self::LastPacket => "last-packet",
            Self::Unsent => "unsent",
            Self::Unknown => "unknown",
        }
    }

    /// Returns the port that it is about, if it is about one.
    pub const fn port(self) -> Option<PortId> {
        match self {
            Self::Propagation(port)
            | Self::Serialisation(port)
            | Self::Queue(port, _)
            | Self::Turn(port, _)
            | Self::Pause(port)
            | Self::Blocked(port)
            | Self::Down(port)
            | Self::LateLink(port)
            | Self::Host(port)
            | Self::SlowNic(port) => Some(port),
            _ => None,
        }
    }

    /// Returns the packets that were served before, if it is a wait for others.
    pub const fn behind(self) -> Option<Behind> {
        match self {
            Self::Queue(_, behind) | Self::Turn(_, behind) => Some(behind),
            _ => None,
        }
    }

    /// Returns the loss that it follows, if it follows one.
    pub const fn loss(self) -> Option<Loss> {
        match self {
            Self::Timeout(loss) | Self::Recovery(loss) => loss,
            _ => None,
        }
    }
}

/// The packet that a piece of the chain is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Way {
    /// Data, or the sender itself.
    Data,
    /// An acknowledgment on its way back.
    Ack,
}

/// A time span with its reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Its start.
    pub from: Time,
    /// Its end.
    pub to: Time,
    /// The packet it is about.
    pub way: Way,
    /// The reason for which time passed.
    pub reason: Reason,
    /// Bytes on the wire that a port transmitted in it, rounded down; 0 for reasons that are no transmissions.
    pub bytes: u64,
}

/// The account of one flow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation {
    /// The flow.
    pub flow: FlowId,
    /// Time at which it started.
    pub start: Time,
    /// Its completion time; if it has not finished, its time until the run ended.
    pub fct: Time,
    /// `true` if it has finished.
    pub is_finished: bool,
    /// The chain of causes, in the order of time.
    pub chain: Vec<Piece>,
    /// The sender's account, in the order of time.
    pub sender: Vec<Piece>,
    /// The number of acknowledgments that the chain follows: round trips that the sender waited for.
    pub round_trips: u32,
    /// The number of losses that the chain follows.
    pub losses: u32,
}

/// The sum of all pieces with the same reason on the same way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sum {
    /// The packets it is about.
    pub way: Way,
    /// The reason.
    pub reason: Reason,
    /// The time.
    pub time: Time,
    /// Bytes on the wire that a port transmitted in it.
    pub bytes: u64,
    /// Number of pieces.
    pub pieces: u64,
    /// Start of the first piece.
    pub first: Time,
    /// End of the last piece.
    pub last: Time,
}

/// Returns the sums of `pieces`, in the order of their first pieces.
pub fn sums(pieces: &[Piece]) -> Vec<Sum> {
    let mut sums = BTreeMap::<(Way, Reason), Sum>::new();
    for &Piece { from, to, way, reason, bytes } in pieces {
        let empty = Sum { way, reason, time: Time::ZERO, bytes: 0, pieces: 0, first: from, last: to };
        let sum = sums.entry((way, reason)).or_insert(empty);
        sum.time += to - from;
        sum.bytes += bytes;
        sum.pieces += 1;
        (sum.first, sum.last) = (sum.first.min(from), sum.last.max(to));
    }
    let mut sums: Vec<Sum> = sums.into_values().collect();
    sums.sort_by_key(|sum| (sum.first, sum.way, sum.reason));
    sums
}
