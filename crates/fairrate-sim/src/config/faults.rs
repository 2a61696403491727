//! Faults of links.

use fairrate_units::Time;

use crate::ids::PortId;

/// Faults of some links. Probabilities are per packet, each time it is put onto such a wire.
#[derive(Clone, Debug, PartialEq)]
pub struct FaultConfig {
    /// The egress ports whose wires have the faults: one direction of a link each.
    pub ports: Vec<PortId>,
    /// The packets that the faults affect, other than flaps and rates, which affect all.
    pub packets: FaultPackets,
    /// Time before which no fault happens, except flaps, which have times of their own.
    pub start: Time,
    /// Time from which no fault happens; links that a flap has taken down still come up.
    pub stop: Time,
    /// Probability that a packet is lost on the wire.
    pub loss: f64,
    /// Losses in bursts.
    pub burst: Option<BurstLoss>,
    /// Probability that a packet is corrupted. No switch detects it: the packet goes on to its host, which discards it.
    pub corrupt: f64,
    /// Probability that a second copy arrives right behind a packet.
    pub duplicate: f64,
    /// Probability that a packet arrives later by `reorder_delay`, and others may overtake it.
    pub reorder: f64,
    /// Extra delay of a reordered packet.
    pub reorder_delay: Time,
    /// Upper bound of a uniform random delay of each packet, which keeps the order of packets.
    pub jitter: Time,
    /// Share of its rate that a link has from `start` to `stop`; several faults of a link multiply. Rates that hold
    /// from the beginning scale thresholds of marking and trimming too, where those scale with rates.
    pub rate: f64,
    /// Times at which the links are down.
    pub flap: Option<Flap>,
}

impl FaultConfig {
    /// No affected link and no fault.
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
        rate: 1.0,
        flap: None,
    };

    /// Returns `true` if the rate of links changes during a run.
    #[must_use]
    pub fn changes_rate(&self) -> bool {
        self.rate != 1.0 && (Time::ZERO < self.start || self.stop < Time::MAX)
    }

    /// Returns `true` if its links have their share of the rate at `t`.
    #[must_use]
    pub fn is_slow_at(&self, t: Time) -> bool {
        self.rate != 1.0 && self.start <= t && t < self.stop
    }
}

/// The packets that a fault affects. Frames between the two ends of a link are never among them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultPackets {
    /// All.
    All,
    /// Data.
    Data,
    /// Acknowledgments, NACKs, credit, and headers that go back to their senders.
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

/// The times at which links are down. Packets on a wire are lost as it goes down, and its pauses end. While it is down
/// its port sends nothing and keeps its queues; as it comes up, pauses that should hold are sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flap {
    /// Time of the first failure.
    pub down_at: Time,
    /// Time at which the links come up again; [`Time::MAX`]: never.
    pub up_at: Time,
    /// Time from one failure to the next, longer than a failure lasts; `None`: there is one failure only.
    pub period: Option<Time>,
}

/// The windows in which goodput is measured around the first failure of a link, to tell how long it takes until goodput
/// is back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FailureWindows {
    /// Time of the failure.
    pub down_at: Time,
    /// Length of a window, above zero.
    pub window: Time,
    /// Number of windows that end with the failure or before it, at least 1.
    pub n_before: u64,
    /// Number of windows that begin with the failure or after it, at least 1.
    pub n_after: u64,
}

impl FailureWindows {
    /// Returns the edges of the windows, ascending: one more than there are windows.
    pub fn edges(&self) -> impl Iterator<Item = Time> + use<> {
        let (first, window) = (self.down_at.as_ps() - self.n_before * self.window.as_ps(), self.window.as_ps());
        (0..=self.n_before + self.n_after).map(move |n| Time::from_ps(first + n * window))
    }
}
