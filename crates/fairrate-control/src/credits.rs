//! Credit of receivers: what RCCC, EQDS and NDP ask of the transport of Ultra Ethernet, in which all three are one
//! room. A sender may send a first window unasked and then what its receiver lets it; a receiver gives credit at just
//! less than the rate of its link, to its messages in turn. Numbers of credit are cumulative, so a later one makes up
//! for one that was lost.

use fairrate_units::{Bytes, Time};

/// The credit of receivers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Credits {
    /// Rate of grants as a share of the receiver's link.
    pub pacing: f64,
    /// First window of a message, which is sent unasked.
    pub window: FirstWindow,
    /// Rule by which a receiver gives credit.
    pub rule: CreditRule,
    /// Timeouts that a sender with nothing in flight waits for credit before it asks for the last number again.
    pub patience: u32,
    /// Control of the receivers' rates by what meets inside the network, if there is any.
    pub fabric: Option<FabricControl>,
}

/// RCCC's control of a receiver's rate of grants by what meets inside the network: packets that were cut before the
/// last switch, and marks. Once in 1.5 base RTTs, a quarter more or less at random, a receiver takes what has come
/// since.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FabricControl {
    /// Only networks with fewer links to the core than to hosts are controlled.
    pub only_oversubscribed: bool,
    /// Least share of the rate, times the oversubscription of the network. It is never below a hundredth.
    pub floor: f64,
    /// Least increase of the share; it doubles with each in a row without a mark.
    pub increase: f64,
    /// Decrease of the share, for each marked share above `target`.
    pub decrease: f64,
    /// Marked share of packets, as an average, above which the share of the rate falls.
    pub target: f64,
    /// Gain of that average.
    pub gain: f64,
}

/// The size of a first window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FirstWindow {
    /// Bandwidth-delay products of the sender's link and the network's base RTT.
    Bdp(f64),
    /// Full packets on the wire.
    Packets(u32),
}

/// The rule by which a receiver gives credit, and a sender spends it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CreditRule {
    /// RCCC: packets say how much their message wants, and a turn gives at most that. The rest of the first window
    /// after the first answer is lost.
    Wanted {
        /// Bytes of a unit of credit.
        quantum: Bytes,
        /// Most units of a turn.
        turn: u64,
    },
    /// EQDS: the same, but a turn always gives all of its units; messages with packets that were cut come first; what
    /// is left of the first window goes away a packet at each attempt to send.
    Whole {
        /// Bytes of a unit of credit.
        quantum: Bytes,
        /// Units of a turn.
        turn: u64,
        /// Bytes whose time on the link, times `pacing`, is the time of a turn; `None`: those that it gives, at
        /// `pacing` of the link's rate.
        frame: Option<Bytes>,
    },
    /// NDP: each packet that arrives, whole or cut, earns credit for one. No packet says what its message wants.
    Arrivals,
}

/// Defaults of hosts and switches under the transport of Ultra Ethernet, which algorithms were published with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DatagramDefaults {
    /// Payload of a full packet.
    pub mtu: Bytes,
    /// Bytes on the wire after which a receiver acknowledges in any case.
    pub ack_every: Bytes,
    /// Retransmission timeout.
    pub rto: Time,
    /// Bytes of data that a port holds before it trims; `None`: the buffer alone limits them.
    pub trim_limit: Option<Bytes>,
}

impl DatagramDefaults {
    /// The defaults of uet-htsim, with a longer timeout: it has 100.656 us for queues of 43 packets at 100 Gb/s. It has
    /// to be short: when a window shrinks while less than `ack_every` is out, the sender waits for an acknowledgment
    /// and the receiver for more data.
    pub const UET: Self =
        Self { mtu: Bytes::new(4_086), ack_every: Bytes::new(16_384), rto: Time::from_us(200), trim_limit: None };
}
