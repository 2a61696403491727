//! Behaviour of links and switches.

use std::collections::BTreeMap;

use fairrate_units::{Bytes, Rate};

use super::QueueConfig;
use super::balance::{Balance, Reroute};
use super::classes::ClassConfig;

/// The clock of serialisation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClockRule {
    /// Exact picoseconds.
    Picoseconds,
    /// Serialisation times cut to whole nanoseconds, as in ns-3's RDMA stack.
    WholeNanoseconds,
}

/// The rule that orders events of the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TieRule {
    /// The kind of event and the entity it happens to: independent of history.
    Entity,
    /// First scheduled, first processed, as in ns-3; the order of scheduling is ns-3's too.
    Insertion,
}

/// The hash that picks among equal-cost next hops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EcmpHash {
    /// fairrate's own mix of seed, switch and five-tuple.
    Mix,
    /// The same without the switch: a flow that takes the n-th of k ports at one switch does so at each with k ports.
    OneSalt,
    /// The murmur3 rule of the public HPCC/PowerTCP ns-3 code.
    Murmur3,
}

/// The moment at which a switch compares its queue with the ECN thresholds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MarkAt {
    /// As the packet joins the queue, itself included.
    Enqueue,
    /// As the packet leaves the queue, itself excluded.
    Dequeue,
}

/// ECN marking (RED on the instantaneous queue of the packet's class, or on a phantom queue).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EcnConfig {
    /// Drain rate of a phantom queue as a share of the port's rate (HULL). All packets of flows join it, the thresholds
    /// are compared with it, and this is done as packets join. `None`: the thresholds are compared with the queue
    /// itself.
    pub phantom: Option<f64>,
    /// No marks at or below this queue.
    pub kmin: Bytes,
    /// Every packet is marked above this queue. `kmin == kmax` is DCTCP's step.
    pub kmax: Bytes,
    /// Marking probability as the queue reaches `kmax`.
    pub pmax: f64,
    /// Port rate for which `kmin` is given, and with which it scales. `None`: the same at all rates.
    pub kmin_per: Option<Rate>,
    /// Port rate for which `kmax` is given, as `kmin_per`.
    pub kmax_per: Option<Rate>,
    /// Weight of a packet in the moving average that is compared with the thresholds, as in RED as it was published.
    /// `None`: the queue at the moment is.
    pub average: Option<f64>,
    /// Moment at which the queue is compared with the thresholds.
    pub at: MarkAt,
    /// Source of the random numbers.
    pub draws: MarkDraws,
    /// `false` if ports that lead to hosts mark nothing, so that marks tell of the network alone.
    pub to_hosts: bool,
    /// Treatment of data of algorithms that do not go by marks.
    pub non_ect: NonEct,
    /// The queue that is compared with the thresholds.
    pub by: MarkBy,
}

impl EcnConfig {
    /// Returns `kmin` and `kmax` in bytes at a port of `rate`.
    pub fn thresholds(&self, rate: Rate) -> (f64, f64) {
        let at = |threshold: Bytes, per: Option<Rate>| {
            threshold.as_f64() * per.map_or(1.0, |per| rate.as_bps_f64() / per.as_bps_f64())
        };
        (at(self.kmin, self.kmin_per), at(self.kmax, self.kmax_per))
    }
}

/// The queue that the marker of a class compares with its thresholds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MarkBy {
    /// That of the class.
    Class,
    /// All queues of the port together.
    Port,
    /// That of the class, with the thresholds times the class's share of all weights.
    Share,
    /// That of the class, with the thresholds times the part of the link that the class has now: its quantum by the
    /// bytes of a round. MQ-ECN: W. Bai et al., "Enabling ECN in Multi-Service Multi-Queue Data Centers", NSDI 2016, as
    /// its public ns-2 code has it.
    Round,
}

impl MarkBy {
    /// All variants with their names in scenarios.
    pub const NAMES: &'static [(&'static str, Self)] =
        &[("class", Self::Class), ("port", Self::Port), ("share", Self::Share), ("round", Self::Round)];
}

/// The treatment of data packets whose algorithm does not go by ECN marks, where others would be marked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NonEct {
    /// They are marked as others are, and nobody heeds it.
    Mark,
    /// They pass.
    Ignore,
    /// They are dropped as they arrive, as RED does (RFC 3168 section 7). It needs marks by the queue itself, or its
    /// average.
    Drop,
}

impl NonEct {
    /// All variants with their names in scenarios.
    pub const NAMES: &'static [(&'static str, Self)] =
        &[("mark", Self::Mark), ("ignore", Self::Ignore), ("drop", Self::Drop)];
}

/// Source of the random numbers of marking.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MarkDraws {
    /// A separate stream at every port.
    PerPort,
    /// One sequence for all ports, in order of time: the numbers that the ns-3 artifact draws, for packets of all
    /// kinds. The run's seed is ns-3's run number.
    LikeNs3,
}

/// Headroom of a lossless (port, class) for the bytes that arrive after it requested a pause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Headroom {
    /// The most that can still arrive: a round trip of the link and two packets at each end.
    Auto,
    /// Three times the link's rate times its delay, as in the ns-3 artifact.
    TripleDelay,
    /// A fixed number of bytes at every port.
    Fixed(Bytes),
}

/// The rule of priority flow control (PFC, IEEE 802.1Qbb): the condition, and the ports that are paused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pfc {
    /// No pauses: a packet that does not fit is dropped.
    Off,
    /// The upstream port of an (ingress port, class) above its threshold, for which there is headroom.
    Ingress,
    /// The same with fixed levels in place of Dynamic Thresholds.
    IngressLevels(LevelsByRate),
    /// The upstream ports whose packets join an egress queue above its pause level, until that queue is down at its
    /// resume level. No threshold holds for ingress ports, there is no headroom, and a full buffer drops.
    Egress(LevelsByRate),
}

/// The bytes of a queue, or of an ingress port and class, at which PFC acts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PauseLevels {
    /// Bytes above which upstream ports are paused.
    pub pause: Bytes,
    /// Bytes at or below which what was paused resumes.
    pub resume: Bytes,
}

/// Fixed levels of PFC, for one or several rates of ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LevelsByRate {
    /// The first rate and its levels.
    first: (Rate, PauseLevels),
    /// Further ones.
    others: [Option<(Rate, PauseLevels)>; Self::MAX_RATES - 1],
}

impl LevelsByRate {
    /// Largest number of rates with levels of their own.
    pub const MAX_RATES: usize = 4;

    /// Returns levels that all ports have.
    pub fn same(pause: Bytes, resume: Bytes) -> Self {
        Self { first: (Rate::MAX, PauseLevels { pause, resume }), others: [None; Self::MAX_RATES - 1] }
    }

    /// Returns levels by rate; `None` if there are none, or more than [`MAX_RATES`](Self::MAX_RATES).
    pub fn by_rate(levels: &[(Rate, PauseLevels)]) -> Option<Self> {
        let (&first, rest) = levels.split_first()?;
        let mut others = [None; Self::MAX_RATES - 1];
        if others.len() < rest.len() {
            return None;
        }
        for (place, &level) in others.iter_mut().zip(rest) {
            *place = Some(level);
        }
        Some(Self { first, others })
    }

    /// Returns all levels that some rate has.
    pub fn all(&self) -> impl Iterator<Item = PauseLevels> {
        std::iter::once(self.first).chain(self.others.into_iter().flatten()).map(|(_, levels)| levels)
    }

    /// Returns the levels of a port of `rate`: those of the nearest rate, by ratio.
    pub fn at(&self, rate: Rate) -> PauseLevels {
        let ratio = |of: Rate| (rate.as_bps_f64() / of.as_bps_f64()).max(of.as_bps_f64() / rate.as_bps_f64());
        let all = std::iter::once(self.first).chain(self.others.into_iter().flatten());
        all.min_by(|a, b| ratio(a.0).total_cmp(&ratio(b.0))).expect("there is a first one").1
    }
}

/// Cutting of data packets to their headers, which go ahead of data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trim {
    /// Bytes of a header on the wire.
    pub size: Bytes,
    /// Bytes of data that a port holds, the packet that it is sending included; headers and other packets may hold
    /// twice as much. `None`: as much as the shared buffer allows.
    pub limit: Option<Bytes>,
    /// Rate of ports for which `limit` is given, and with which it scales. `None`: the same at all rates.
    pub limit_per: Option<Rate>,
    /// Class of headers.
    pub class: u8,
    /// If true, a switch sends a header for which it has no room back to its sender, and drops it only if it has none
    /// on the way back.
    pub returns: bool,
}

/// Rules about what may join a queue, besides the limits of the buffer. By default there are none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AdmissionConfig {
    /// Data that does not fit is cut to its header in place of a drop.
    pub trim: Option<Trim>,
}

/// Links and switches.
#[derive(Clone, Debug, PartialEq)]
pub struct FabricConfig {
    /// Shared buffer of a switch, headroom excluded.
    pub buffer: Bytes,
    /// The sum of port rates to which `buffer` belongs: a switch of twice the rate has twice the buffer. `None`: all
    /// switches have the same.
    pub buffer_per: Option<Rate>,
    /// Dynamic Threshold of an (ingress port, class), as a multiple of the free shared buffer. `None`: unlimited.
    pub ingress_alpha: Option<f64>,
    /// Dynamic Threshold of an egress queue, as `ingress_alpha`. `None`: unlimited.
    pub egress_alpha: Option<f64>,
    /// The PFC rule. With [`Pfc::Off`], a packet above an ingress threshold is dropped.
    pub pfc: Pfc,
    /// Headroom of a lossless (ingress port, class).
    pub headroom: Headroom,
    /// Distance of a paused ingress's counter below its threshold at which it resumes ...
    pub xon_offset: Bytes,
    /// ... or counter below which it resumes in any case.
    pub xon_floor: Bytes,
    /// Size of a pause or resume frame on the wire.
    pub pfc_frame: Bytes,
    /// Bytes that every frame takes on a link besides its own: preamble and gap, which no queue and no rate counts.
    pub frame_overhead: Bytes,
    /// ECN marking, if any.
    pub ecn: Option<EcnConfig>,
    /// Rules about what may join a queue, besides the limits of the buffer.
    pub admission: AdmissionConfig,
    /// Queueing of data at egress ports.
    pub queue: QueueConfig,
    /// Rounding of serialisation times.
    pub clock: ClockRule,
    /// Scheme by which traffic is spread over equal paths.
    pub balance: Balance,
    /// Reaction of switches to links that are down. `None`: they have none, and packets wait until links come up.
    pub reroute: Option<Reroute>,
    /// Hash that picks the path of a flow.
    pub ecmp: EcmpHash,
    /// Order of simultaneous events.
    pub ties: TieRule,
    /// The classes that switches treat in another way than others, by class.
    pub classes: BTreeMap<u8, ClassConfig>,
}

impl FabricConfig {
    /// Returns `true` if PFC goes by ingress ports, for which there is headroom.
    #[must_use]
    pub fn pauses_by_ingress(&self) -> bool {
        matches!(self.pfc, Pfc::Ingress | Pfc::IngressLevels(_))
    }

    /// Returns the shared buffer in bytes of a switch whose ports have `rate_bps` bit/s together, one way.
    #[must_use]
    pub fn buffer_of(&self, rate_bps: u64) -> u64 {
        let buffer = self.buffer.as_u64();
        self.buffer_per.map_or(buffer, |per| {
            (u128::from(buffer) * u128::from(rate_bps) / u128::from(per.as_bps())).try_into().unwrap_or(u64::MAX)
        })
    }
}
