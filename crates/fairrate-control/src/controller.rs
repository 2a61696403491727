use fairrate_units::{Bytes, Rate, Time};

use crate::config::choice;
use crate::credits::{Credits, DatagramDefaults};
use crate::homa::Grants;
use crate::int::{IntCounter, IntFormat, IntHop};
use crate::port::{HeaderWords, Notice, PortAgent, PortContext, PortScope};

/// The properties of a flow that its sender knows before the first packet.
#[derive(Clone, Copy, Debug)]
pub struct FlowContext {
    /// The rate of the sender's NIC (the papers' HostBw).
    pub line_rate: Rate,
    /// The largest base round-trip time in the network (the papers' τ): one value for all flows.
    pub base_rtt: Time,
    /// The base round-trip time of this flow's own path.
    pub path_base_rtt: Time,
    /// Payload bytes of a full packet.
    pub mtu: Bytes,
    /// Size of a full packet on the wire in bytes, headers included.
    pub wire_mtu: Bytes,
    /// Links between sender and receiver.
    pub n_hops: u32,
    /// The flow's weight; 1 except for algorithms with [`FeedbackNeeds::weights`], if the workload sets another.
    pub weight: f64,
    /// Start time of the flow.
    pub start: Time,
    /// Payload bytes of the flow; [`Bytes::MAX`] for an endless flow.
    pub size: Bytes,
    /// The highest rate at which the application offers data, kept by the transport; [`Rate::MAX`]: there is no limit.
    pub demand: Rate,
    /// Time after the start by which the last byte should have arrived; `None` if the flow has no deadline.
    pub deadline: Option<Time>,
    /// Seed of the flow's own random draws: a function of only the run's seed and the flow.
    pub seed: u64,
}

impl FlowContext {
    /// Returns an endless flow of weight 1 whose NIC has rate `line_rate` and whose path has base round-trip time
    /// `base_rtt`, the largest in the network. The path has two links; a full packet has 1,000 bytes of payload and
    /// 1,048 bytes on the wire. Other values are set on top:
    /// `FlowContext { n_hops: 6, ..FlowContext::on(line_rate, base_rtt) }`.
    pub const fn on(line_rate: Rate, base_rtt: Time) -> Self {
        Self {
            line_rate,
            base_rtt,
            path_base_rtt: base_rtt,
            mtu: Bytes::new(1_000),
            wire_mtu: Bytes::new(1_048),
            n_hops: 2,
            weight: 1.0,
            start: Time::ZERO,
            size: Bytes::MAX,
            demand: Rate::MAX,
            deadline: None,
            seed: 1,
        }
    }
}

/// An acknowledgment as it arrives at the sender.
#[derive(Clone, Copy, Debug)]
pub struct Ack<'a> {
    /// Arrival time of the acknowledgment.
    pub now: Time,
    /// Next byte that the receiver expects: all bytes before it have arrived.
    pub ack_seq: u64,
    /// Next new byte the sender will send.
    pub snd_nxt: u64,
    /// Bytes acknowledged by this acknowledgment and by no earlier one.
    pub newly_acked: u64,
    /// Bytes delivered that no earlier acknowledgment reported, in order or not.
    pub delivered: u64,
    /// Bytes that the sender declares lost on this acknowledgment.
    pub lost: u64,
    /// Time from the start of the acknowledged packet's transmission to `now`. Algorithms with [`FeedbackNeeds::uet`]:
    /// zero if it is unknown, because the packet was sent more than once.
    pub rtt: Time,
    /// The congestion window in force when the acknowledged packet was sent, in bytes.
    pub cwnd_at_send: u64,
    /// Bytes in flight after this acknowledgment: sent, and neither delivered nor declared lost.
    pub in_flight: u64,
    /// Delivery rate over the round trip that ends with this acknowledgment; zero if unknown.
    pub delivery_rate: Rate,
    /// Bytes of the flow that had been delivered when that round trip began; `None` if the transport does not know.
    pub prior_delivered: Option<u64>,
    /// 128ths of the newly acknowledged bytes by which a receiver whose host is in trouble asks the window to shrink,
    /// up to 127; 0: by nothing. Only receivers of Ultra Ethernet ask.
    pub penalty: u8,
    /// Set when the application had no more data to send as the acknowledged packet was sent.
    pub app_limited: bool,
    /// Set when the acknowledged packet carried an ECN mark (CE).
    pub ecn_marked: bool,
    /// In-band telemetry of the acknowledged packet, one record per switch hop in path order; empty unless
    /// the algorithm asks for it in [`Needs`].
    pub int: &'a [IntHop],
    /// Identity of the acknowledged packet's path, which differs with its ports. Zero if flows have fixed paths.
    pub path: u16,
    /// Header of the acknowledged packet as the last port left it; empty unless [`WireNeeds::header`] asks for one.
    pub header: &'a [f64],
}

/// A sign of loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// The receiver reported a gap (a NACK, or selective acknowledgment).
    Gap,
    /// The retransmission timer expired.
    Timeout,
}

/// A packet that a switch cut to its header, as the sender learns of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trimmed {
    /// Arrival time of the notice.
    pub now: Time,
    /// Bytes of the packet on the wire before it was cut.
    pub bytes: Bytes,
    /// Time from the start of the packet's transmission to `now`; `None` if it was sent more than once.
    pub rtt: Option<Time>,
    /// `true` if it was cut at the last switch, before its receiver's own link.
    pub last_hop: bool,
    /// Bytes in flight after this notice.
    pub in_flight: u64,
}

/// The limits on a sender until the next decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allowance {
    /// Maximum number of unacknowledged payload bytes, at least a packet; [`Bytes::MAX`] for no window.
    pub cwnd: Bytes,
    /// Pacing rate, in bits on the wire per second; at zero nothing may be sent.
    pub rate: Rate,
    /// Time of the next call of [`Controller::on_timer`]; [`Time::MAX`] for never.
    pub timer: Time,
}

/// The control of one flow at its sender.
///
/// Every decision returns the [`Allowance`] in force from then on. The times of calls never decrease.
pub trait Controller {
    /// Starts the flow and returns its initial window and rate.
    fn on_start(&mut self, now: Time) -> Allowance;
    /// Handles an acknowledgment that has arrived.
    fn on_ack(&mut self, ack: &Ack<'_>) -> Allowance;
    /// Handles a loss that the transport has detected; the transport retransmits by itself.
    fn on_loss(&mut self, now: Time, loss: Loss) -> Allowance;
    /// Handles a notice of a packet that was cut to its header; the transport sends it again by itself. By default a
    /// loss as any other.
    fn on_trimmed(&mut self, trimmed: &Trimmed) -> Allowance {
        self.on_loss(trimmed.now, Loss::Gap)
    }
    /// Handles an arriving congestion notification packet (only if [`FeedbackNeeds::cnp_interval`] asks for them).
    fn on_cnp(&mut self, now: Time) -> Allowance;
    /// Handles the expiry of [`Allowance::timer`].
    fn on_timer(&mut self, now: Time) -> Allowance;
    /// Handles the transmission of `bytes` to the wire, for algorithms that count sent bytes (DCQCN's byte counter).
    fn on_sent(&mut self, _now: Time, _bytes: Bytes) -> Option<Allowance> {
        None
    }
    /// Handles the end of an idle period over TCP: the flow is about to send again after it had nothing in flight for
    /// longer than a retransmission timeout. `timeouts` is the number of retransmission timeouts since its last packet.
    /// An old window says little about the path's present state (RFC 5681 section 4.1).
    fn on_idle(&mut self, _now: Time, _timeouts: u32) -> Option<Allowance> {
        None
    }
    /// Handles a notice from a switch port (only if the algorithm's [`PortAgent`] sends notices).
    fn on_notice(&mut self, _now: Time, _notice: &Notice) -> Option<Allowance> {
        None
    }
    /// Handles the return of the flow's control packet, with `header` as the ports of the path wrote it (only if
    /// [`WireNeeds::control`] asks for control packets).
    fn on_control(&mut self, _now: Time, _header: &[f64]) -> Option<Allowance> {
        None
    }
    /// Writes the header of a data packet that is about to be sent (only if [`WireNeeds::header`] asks for a header).
    fn stamp(&mut self, _now: Time, _header: &mut [f64]) {}
    /// Returns `true` if a control packet must be sent now, ahead of data, and then fills in `header`, which is all
    /// zeros before. Called after every decision, and when the last unsent payload byte is handed to the wire. `unsent`
    /// is the number of payload bytes not yet sent.
    fn control_packet(&mut self, _now: Time, _unsent: u64, _header: &mut [f64]) -> bool {
        false
    }
    /// Returns how long before its expiry the pending timer counts as scheduled. In ns-3, of simultaneous events the
    /// event that was scheduled earlier runs first.
    fn timer_lead(&self) -> Time {
        Time::MAX
    }
    /// Returns the telemetry that the next acknowledgment's is compared with, if the algorithm keeps any. The simulator
    /// fetches it from memory ahead of that acknowledgment.
    fn last_telemetry(&self) -> &[IntHop] {
        &[]
    }
}

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
    /// Queues chosen by the algorithm's [`PortAgent`] or transport: no discipline and no limit can be combined with
    /// them.
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
    /// The egress ports that run the algorithm's [`PortAgent`].
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
    /// Set when flows share in proportion to [`FlowContext::weight`]. Otherwise the scenario may not give weights.
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

/// A parameter whose published default is for hosts of certain line rates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MadeFor {
    /// The parameter's name.
    pub param: &'static str,
    /// Rate of the slowest hosts for which it was published.
    pub least: Rate,
    /// Rate of the fastest hosts for which it was published.
    pub most: Rate,
    /// The publication that gives the default for hosts of such rates.
    pub source: &'static str,
}

/// The configuration of one algorithm: its needs, and the constructors of its controllers and port agents.
pub trait AlgorithmSpec: crate::config::Parameters + Clone {
    /// The controller of a flow that this configures.
    type Controller: Controller;
    /// The agent of its egress ports; [`NoPort`](crate::NoPort) if it has none.
    type Port: PortAgent;
    /// Returns the configuration with the defaults for TCP, where they differ: hosts with TCP begin with small windows
    /// and slow start.
    #[must_use]
    fn over_tcp(self) -> Self {
        self
    }
    /// Returns the algorithm's needs with the present parameters.
    fn needs(&self) -> Needs;
    /// Returns the parameters whose published defaults are for hosts of certain line rates. Scenarios with other hosts
    /// get a warning.
    fn made_for(&self) -> &'static [MadeFor] {
        &[]
    }
    /// Builds the controller of `flow`.
    fn build(&self, flow: &FlowContext) -> Self::Controller;
    /// Builds the agent of an egress port among those that [`NetworkNeeds::ports`] names.
    fn build_port(&self, _port: &PortContext) -> Option<Self::Port> {
        None
    }
}
