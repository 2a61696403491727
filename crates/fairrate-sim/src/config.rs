//! Everything a run is made from, with no defaults in here: those live in the scenario schema.

use fairrate_control::{AlgorithmConfig, Needs};
use fairrate_units::{Bytes, Rate, Time};

use crate::ids::{FlowId, NodeId, PortId};
use crate::topology::Topology;
pub use crate::transport::{DelayedAck, EcnEcho, LossDetection, MptcpConfig, Scheduler, SubflowPaths, TcpConfig};

/// A complete, runnable simulation.
#[derive(Clone, Debug)]
pub struct SimConfig {
    /// The network. Every packet takes time on every link: with whole nanoseconds, a fast link needs a delay.
    pub topology: Topology,
    /// How its links and switches behave.
    pub fabric: FabricConfig,
    /// How hosts move bytes.
    pub transport: TransportConfig,
    /// How hosts are controlled.
    pub cc: AlgorithmConfig,
    /// Who sends what; a [`FlowId`] is a position in here.
    pub flows: Vec<FlowSpec>,
    /// Flows that start or stop one after the other, each once the rates have converged after the one before. Needs
    /// [`ProbeSpec::Convergence`].
    pub changes: Vec<Change>,
    /// What is wrong with links.
    pub faults: Vec<FaultConfig>,
    /// The central allocator, if the algorithm needs one.
    pub allocator: Option<AllocatorConfig>,
    /// What is sampled.
    pub probes: Vec<ProbeSpec>,
    /// When the run ends.
    pub stop: StopRule,
    /// Seed of every random stream.
    pub seed: u64,
}

/// A central allocator of rates and the endpoints' conversation with it, over persistent TCP connections.
#[derive(Clone, Debug, PartialEq)]
pub struct AllocatorConfig {
    /// The host it runs on, which sends and receives no flows.
    pub host: NodeId,
    /// Hosts that pass messages between servers and the allocator, each for an equal share of the servers; empty:
    /// servers talk to the allocator themselves.
    pub intermediaries: Vec<NodeId>,
    /// Time between two iterations of the optimiser.
    pub interval: Time,
    /// Step size of the optimiser (NED).
    pub gamma: f64,
    /// A rate is told when it has changed by more than this factor; capacities are lowered by as much.
    pub threshold: f64,
    /// How long rates hold if nothing is heard of the allocator.
    pub lifetime: Time,
    /// How long the allocator is silent toward a server that has flows before it says that it is still there.
    pub sign_of_life: Time,
    /// How long a flow has nothing to send before its flowlet is over.
    pub flowlet_gap: Time,
    /// The lines: connections that carry messages.
    pub tcp: TcpConfig,
    /// Their congestion control.
    pub cc: AlgorithmConfig,
    /// Their class in the network.
    pub class: u8,
    /// Least size of their packets on the wire.
    pub min_packet: Bytes,
    /// Times from which and until which the allocator is dead; it comes back knowing nothing.
    pub outages: Vec<(Time, Time)>,
    /// Stand-ins for traffic that the allocator does not rule.
    pub external: Vec<ExternalFlow>,
    /// Traffic blocks whose flows it does not rule: they stay under plain TCP.
    pub external_groups: Vec<u32>,
}

/// A flow that the allocator reckons with although nobody asks for it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ExternalFlow {
    /// Sender.
    pub src: NodeId,
    /// Receiver.
    pub dst: NodeId,
    /// Weight in the objective.
    pub weight: f64,
    /// Most it takes; [`Rate::MAX`]: no limit.
    pub rate: Rate,
}

/// When a run ends: at a time, or when every finite flow is done, whichever comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StopRule {
    /// End of simulated time.
    pub at: Option<Time>,
    /// End when every finite flow has been acknowledged in full.
    pub when_flows_done: bool,
}

/// One flow of the workload.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowSpec {
    /// Sender.
    pub src: NodeId,
    /// Receiver.
    pub dst: NodeId,
    /// Payload bytes; [`Bytes::MAX`]: endless.
    pub bytes: Bytes,
    /// Start time; of a flow that waits for something else, the earliest.
    pub start: Time,
    /// What starts it.
    pub trigger: Trigger,
    /// When an endless flow stops sending new bytes; [`Time::MAX`]: never. From here on, a flow that waits for another
    /// one does not start any more.
    pub stop: Time,
    /// Source port, for ECMP.
    pub sport: u16,
    /// Destination port, for ECMP.
    pub dport: u16,
    /// Priority class of its data, 0 (highest) to 7; `None`: the transport's data class.
    pub class: Option<u8>,
    /// Weight for algorithms that know weights.
    pub weight: f64,
    /// What the application offers at most, in bits on the wire per second; [`Rate::MAX`]: no limit.
    pub demand: Rate,
    /// When the last byte of a finite flow should have arrived, from its start; `None`: it has no deadline.
    pub deadline: Option<Time>,
    /// Over how many subflows TCP spreads it, at least 1; `None`: as many as the transport says.
    pub subflows: Option<u8>,
    /// An endless flow offers its data in bursts; `None`: all at once.
    pub burst: Option<Burst>,
    /// The traffic block it came from: an index for grouping results.
    pub group: u32,
    /// What its user calls it; [`FlowSpec::NO_ID`]: its position, as its [`FlowId`].
    pub id: u32,
}

impl FlowSpec {
    /// No id of its own.
    pub const NO_ID: u32 = u32::MAX;

    /// A flow that starts at its time and has nothing special: ports 0, weight 1, the transport's class and subflows.
    pub const fn new(src: NodeId, dst: NodeId, bytes: Bytes, start: Time) -> Self {
        Self {
            src,
            dst,
            bytes,
            start,
            trigger: Trigger::Time,
            stop: Time::MAX,
            sport: 0,
            dport: 0,
            class: None,
            weight: 1.0,
            demand: Rate::MAX,
            deadline: None,
            subflows: None,
            burst: None,
            group: 0,
            id: Self::NO_ID,
        }
    }

    /// What people call the flow at a position.
    pub fn name(&self, position: FlowId) -> u32 {
        if self.id == Self::NO_ID { position.0 } else { self.id }
    }
}

/// An application that writes now and then on one connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Burst {
    /// Payload bytes it writes at once; with TCP, the next whole number of full packets.
    pub bytes: Bytes,
    /// From the moment the last of them is handed to the wire until it writes again.
    pub pause: Time,
}

/// What starts a flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Trigger {
    /// Its start time.
    #[default]
    Time,
    /// Another flow's last byte was acknowledged, and then this time has passed: closed-loop sources. A flow has one
    /// such successor at most.
    After(FlowId, Time),
    /// Its turn in [`SimConfig::changes`].
    Change,
}

/// A flow arrives or departs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// This flow starts. Its trigger is [`Trigger::Change`].
    Start(FlowId),
    /// This flow, which is active and endless, stops.
    Stop(FlowId),
}

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
    /// Port rate the thresholds are given for; they scale with a port's rate. `None`: the same at all rates.
    pub per_rate: Option<Rate>,
    /// Where the queue is looked at.
    pub at: MarkAt,
    /// Where the random numbers come from.
    pub draws: MarkDraws,
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

/// Links and switches.
#[derive(Clone, Debug, PartialEq)]
pub struct FabricConfig {
    /// Shared buffer of a switch, headroom excluded.
    pub buffer: Bytes,
    /// Dynamic Threshold of an (ingress port, class): this times the free shared buffer. `None`: unlimited.
    pub ingress_alpha: Option<f64>,
    /// Dynamic Threshold of an egress queue. `None`: unlimited.
    pub egress_alpha: Option<f64>,
    /// Lossless: ingress thresholds pause the upstream port. Lossy: they drop.
    pub pfc: bool,
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
    /// Path choice.
    pub ecmp: EcmpHash,
    /// Order of simultaneous events.
    pub ties: TieRule,
}

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

/// How lost packets are recovered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recovery {
    /// The receiver drops what is out of order; the sender returns to the gap (RoCE).
    GoBackN,
    /// The receiver keeps what is out of order; the sender resends the gaps only (IRN).
    SelectiveRepeat,
}

/// Which window bounds the bytes in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WindowRule {
    /// The algorithm's own (rate-based algorithms have none).
    Algorithm,
    /// One base-RTT worth of line rate, scaled by rate over line rate. These are bytes on the wire, taken as payload, so the
    /// window is larger than the rate needs by the share of headers, as in ns-3.
    RateScaled,
    /// None: pacing alone.
    None,
}

/// How the network-wide base RTT (τ) is computed from the topology.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BaseRttRule {
    /// A full packet and its acknowledgment over the longest path, all headers counted.
    Exact,
    /// Propagation both ways and the forward serialisations of payload bytes only, in whole ns (ns-3).
    PayloadOnly,
    /// This value.
    Fixed(Time),
}

/// Who recovers what is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// RDMA over Converged Ethernet: acknowledgments and NACKs of every packet, [`Recovery`].
    Rdma,
    /// TCP with selective acknowledgments and loss detection by time (RFC 2018, RFC 8985).
    Tcp(TcpConfig),
}

/// The transport of the hosts.
#[derive(Clone, Debug, PartialEq)]
pub struct TransportConfig {
    /// RDMA or TCP.
    pub kind: Transport,
    /// Payload of a full packet.
    pub mtu: Bytes,
    /// Header bytes of a data packet, without the algorithm's telemetry.
    pub header: Bytes,
    /// Bytes of an acknowledgment, without the algorithm's telemetry.
    pub ack: Bytes,
    /// Telemetry bytes on data packets; `None`: what the algorithm needs.
    pub data_overhead: Option<Bytes>,
    /// Telemetry bytes on acknowledgments; `None`: what the algorithm needs.
    pub ack_overhead: Option<Bytes>,
    /// Bytes of a congestion notification packet.
    pub cnp: Bytes,
    /// Class of data packets.
    pub data_class: u8,
    /// Class of acknowledgments, NACKs and CNPs in the network.
    pub ack_class: u8,
    /// Class of notices and of control packets, both ways.
    pub control_class: u8,
    /// From the arrival of a CNP or notice at a host until its NIC acts on it.
    pub reaction_delay: Time,
    /// Loss recovery.
    pub recovery: Recovery,
    /// Retransmission timeout; `None`: never (lossless fabrics only).
    pub rto: Option<Time>,
    /// Least time between two NACKs of a flow.
    pub nack_interval: Time,
    /// Window rule.
    pub window: WindowRule,
    /// RDMA: whether a packet goes while less than the window is in flight, though with it more may be (ns-3's RDMA stack).
    /// Otherwise it goes if it fits into the window. With nothing in flight a packet always goes.
    pub window_overshoot: bool,
    /// τ.
    pub base_rtt: BaseRttRule,
}

impl TransportConfig {
    /// The most that any packet may have on the wire: its length has 16 bits.
    pub const MAX_PACKET: Bytes = Bytes::new(u16::MAX as u64);

    /// What data packets have on the wire besides payload.
    pub fn data_header(&self, needs: &Needs) -> Bytes {
        self.header + self.data_overhead.unwrap_or(needs.data_overhead)
    }
}

/// What to sample while the run goes.
#[derive(Clone, Debug, PartialEq)]
pub enum ProbeSpec {
    /// Counters of egress ports.
    Ports {
        /// Which.
        ports: Vec<PortId>,
        /// How often.
        every: Time,
    },
    /// Window, rate and progress of flows while they are active.
    Flows {
        /// Which; `None`: all.
        flows: Option<Vec<FlowId>>,
        /// How often.
        every: Time,
    },
    /// How long rates take to reach the exact max-min optimum after every arrival and departure of a flow (PERC
    /// section 4.2).
    Convergence {
        /// Largest relative error of a rate that counts as converged.
        tolerance: f64,
        /// Base RTTs for which all rates must stay within it.
        hold_rtts: u32,
        /// Base RTTs after which a change counts as not converged, and the next of [`SimConfig::changes`] comes.
        give_up_rtts: u32,
    },
}
