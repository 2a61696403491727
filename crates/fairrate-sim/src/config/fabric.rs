//! How links and switches behave.

use fairrate_units::{Bytes, Rate};

use super::QueueConfig;

/// The clock of serialisation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClockRule {
    /// Exact picoseconds.
    Picoseconds,
    /// Serialisation times cut to whole nanoseconds, as in ns-3's RDMA stack.
    WholeNanoseconds,
}

/// What decides between events of the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TieRule {
    /// The kind of event and the entity it happens to: independent of history.
    Entity,
    /// What was scheduled first happens first, as in ns-3; the order of scheduling is ns-3's too.
    Insertion,
}

/// What takes one of several equal paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Balancing {
    /// A flow, as a whole.
    PerFlow,
    /// Each packet, at each switch, whatever its flow: packet spraying. It keeps away from links that are down.
    PerPacket,
}

/// Which hash picks among equal-cost next hops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EcmpHash {
    /// fairrate's own mix of seed, switch and five-tuple.
    Mix,
    /// The murmur3 rule of the public HPCC/PowerTCP ns-3 code.
    Murmur3,
}

/// Where a switch compares its queue with the ECN thresholds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MarkAt {
    /// When the packet joins the queue, itself included.
    Enqueue,
    /// When the packet leaves the queue, itself excluded.
    Dequeue,
}

/// ECN marking (RED on the instantaneous queue of the packet's class, or on a phantom queue).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EcnConfig {
    /// The thresholds are for a phantom queue of the port: one that all packets of flows join, and that drains at this share
    /// of the port's rate (HULL). It is looked at as packets join. `None`: they are for the queue itself.
    pub phantom: Option<f64>,
    /// No marks at or below this queue.
    pub kmin: Bytes,
    /// Every packet is marked above this queue. `kmin == kmax` is DCTCP's step.
    pub kmax: Bytes,
    /// Marking probability as the queue reaches `kmax`.
    pub pmax: f64,
    /// Port rate that `kmin` is given for, and with which it scales. `None`: the same at all rates.
    pub kmin_per: Option<Rate>,
    /// The same for `kmax`.
    pub kmax_per: Option<Rate>,
    /// Where the queue is looked at.
    pub at: MarkAt,
    /// Where the random numbers come from.
    pub draws: MarkDraws,
}

impl EcnConfig {
    /// Returns `kmin` and `kmax` in bytes at a port of this rate.
    pub fn thresholds(&self, rate: Rate) -> (f64, f64) {
        let at = |threshold: Bytes, per: Option<Rate>| {
            threshold.as_f64() * per.map_or(1.0, |per| rate.as_bps_f64() / per.as_bps_f64())
        };
        (at(self.kmin, self.kmin_per), at(self.kmax, self.kmax_per))
    }
}

/// Where the random numbers of marking come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MarkDraws {
    /// A stream of its own at every port.
    PerPort,
    /// One sequence for all ports, in order of time: the numbers that the ns-3 artifact draws, for packets of all
    /// kinds. The run's seed is ns-3's run number.
    LikeNs3,
}

/// How much headroom a lossless (port, class) has for what arrives after it asked for a pause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Headroom {
    /// What can still arrive: a round trip of the link and two packets at each end.
    Auto,
    /// Three times the link's rate times its delay, as in the ns-3 artifact.
    TripleDelay,
    /// This many bytes at every port.
    Fixed(Bytes),
}

/// Who is paused when (priority flow control, IEEE 802.1Qbb).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pfc {
    /// Nobody: what finds no room is dropped.
    Off,
    /// The upstream port of an (ingress port, class) above its threshold, for which there is headroom.
    Ingress,
    /// The upstream ports by which packets come that join an egress queue above a level, until it is down at another. No
    /// threshold holds for ingress ports, there is no headroom, and a full buffer drops.
    Egress {
        /// A queue above this pauses.
        pause: Bytes,
        /// A queue down at this lets all go that it has paused.
        resume: Bytes,
    },
}

/// Links and switches.
#[derive(Clone, Debug, PartialEq)]
pub struct FabricConfig {
    /// Shared buffer of a switch, headroom excluded.
    pub buffer: Bytes,
    /// Dynamic Threshold of an (ingress port, class): this times the free shared buffer. `None`: unlimited.
    pub ingress_alpha: Option<f64>,
    /// Dynamic Threshold of an egress queue. `None`: unlimited.
    pub egress_alpha: Option<f64>,
    /// Whether queues pause upstream ports. If not, ingress thresholds drop.
    pub pfc: Pfc,
    /// Headroom of a lossless (ingress port, class).
    pub headroom: Headroom,
    /// A paused ingress resumes when its counter is this far below its threshold ...
    pub xon_offset: Bytes,
    /// ... or below this floor.
    pub xon_floor: Bytes,
    /// Size of a pause or resume frame on the wire.
    pub pfc_frame: Bytes,
    /// ECN marking, if any.
    pub ecn: Option<EcnConfig>,
    /// How data waits at egress ports.
    pub queue: QueueConfig,
    /// Rounding of serialisation times.
    pub clock: ClockRule,
    /// What takes one of several equal paths.
    pub balancing: Balancing,
    /// How the path of a flow is picked.
    pub ecmp: EcmpHash,
    /// Order of simultaneous events.
    pub ties: TieRule,
}
