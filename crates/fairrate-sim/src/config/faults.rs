//! What is wrong with links.

use fairrate_units::Time;

use crate::ids::PortId;

/// What is wrong with some links. Probabilities are those of a packet each time it is put onto such a wire.
#[derive(Clone, Debug, PartialEq)]
pub struct FaultConfig {
    /// The egress ports whose wires these are: one direction of a link each.
    pub ports: Vec<PortId>,
    /// Which packets are concerned, other than by a flap, which concerns all.
    pub packets: FaultPackets,
    /// Nothing happens before this time, other than by a flap, which has its own.
    pub start: Time,
    /// Nothing happens from this time on; what a flap has taken down still comes up.
    pub stop: Time,
    /// Probability that a packet is lost on the wire.
    pub loss: f64,
    /// Losses in bursts.
    pub burst: Option<BurstLoss>,
    /// Probability that a packet is damaged so that no switch notices: it goes on to its host, which discards it.
    pub corrupt: f64,
    /// Probability that a second copy arrives right behind a packet.
    pub duplicate: f64,
    /// Probability that a packet arrives later by `reorder_delay`, and others may overtake it.
    pub reorder: f64,
    /// That delay.
    pub reorder_delay: Time,
    /// Each packet arrives later by a uniform time below this, though none overtakes the one before.
    pub jitter: Time,
    /// Times at which the links are down.
    pub flap: Option<Flap>,
}

impl FaultConfig {
    /// No link, and no fault.
    pub const NONE: Self = Self {
        ports: Vec::new(),
        packets: FaultPackets::All,
        start: Time::ZERO,
        stop: Time::MAX,
        loss: 0.0,
        burst: None,
        corrupt: 0.0,
        duplicate: 0.0,
        reorder: 0.0,
        reorder_delay: Time::ZERO,
        jitter: Time::ZERO,
        flap: None,
    };
}

/// Which packets a fault concerns. Frames between the two ends of a link are never among them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultPackets {
    /// All.
    All,
    /// Data.
    Data,
    /// Acknowledgments and NACKs.
    Acks,
    /// CNPs, notices of switches, and control packets of flows.
    Control,
}

/// A link that is in a good or a bad state, and loses packets in the bad one (Gilbert-Elliott).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BurstLoss {
    /// Mean length of a good state in packets, at least 1; it begins with one.
    pub good_packets: f64,
    /// Mean length of a bad state in packets, at least 1.
    pub bad_packets: f64,
    /// Probability of loss in the bad state.
    pub loss: f64,
}

/// When links are down. What is on a wire as it goes down is lost, and its pauses end. While it is down its port sends
/// nothing and keeps its queues; as it comes up, pauses that should hold are sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flap {
    /// They go down.
    pub down_at: Time,
    /// They come up; [`Time::MAX`]: never.
    pub up_at: Time,
    /// And again every so often, which is longer than they are down; `None`: once.
    pub period: Option<Time>,
}
