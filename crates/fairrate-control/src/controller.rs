use fairrate_units::{Bytes, Rate, Time};

use crate::homa::Grants;
use crate::int::{IntCounter, IntFormat, IntHop};
use crate::port::{HeaderWords, Notice, PortAgent, PortContext, PortScope};

/// What a sender knows of a flow before its first packet.
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
    /// Bytes a full packet has on the wire, headers included.
    pub wire_mtu: Bytes,
    /// Links between sender and receiver.
    pub n_hops: u32,
    /// The flow's weight; 1 unless the workload says otherwise, which it may under algorithms with [`Needs::weights`].
    pub weight: f64,
    /// When the flow starts.
    pub start: Time,
    /// Payload bytes of the flow; [`Bytes::MAX`]: endless.
    pub size: Bytes,
    /// What the application offers at most; [`Rate::MAX`]: no limit. The transport enforces it.
    pub demand: Rate,
    /// When its last byte should have arrived, from its start; `None`: it has no deadline.
    pub deadline: Option<Time>,
    /// Seed of the flow's own random draws: a function of the run's seed and the flow, and of nothing else.
    pub seed: u64,
}

impl FlowContext {
    /// An endless flow of weight 1 on a path with this NIC and base round-trip time, the longest of its network: two links,
    /// and full packets of 1,000 bytes of payload, 1,048 on the wire. What is different about a flow is set on top:
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

/// One acknowledgment, as the sender sees it.
#[derive(Clone, Copy, Debug)]
pub struct Ack<'a> {
    /// Arrival time of the acknowledgment.
    pub now: Time,
    /// Next byte the receiver expects: all before it has arrived.
    pub ack_seq: u64,
    /// Next new byte the sender will send.
    pub snd_nxt: u64,
    /// Bytes acknowledged by this and no earlier acknowledgment.
    pub newly_acked: u64,
    /// Bytes delivered that no earlier acknowledgment reported, in order or not.
    pub delivered: u64,
    /// Bytes newly taken for lost with this acknowledgment.
    pub lost: u64,
    /// From the start of the acknowledged packet's transmission to `now`.
    pub rtt: Time,
    /// The congestion window in force when the acknowledged packet was sent, in bytes.
    pub cwnd_at_send: u64,
    /// Bytes in flight after this acknowledgment: sent, and neither delivered nor taken for lost.
    pub in_flight: u64,
    /// Bytes delivered per second over the round trip that ends with this acknowledgment; zero: not known.
    pub delivery_rate: Rate,
    /// Bytes of the flow that had been delivered when that round trip began; `None`: the transport does not know.
    pub prior_delivered: Option<u64>,
    /// Whether the acknowledged packet was sent when the application had no more to send.
    pub app_limited: bool,
    /// Whether the acknowledged packet carried an ECN mark (CE).
    pub ecn_marked: bool,
    /// In-band telemetry of the acknowledged packet, one record a switch hop in path order; empty unless
    /// the algorithm asks for it in [`Needs`].
    pub int: &'a [IntHop],
    /// The header of the acknowledged packet as the last port left it; empty unless [`Needs::header`] asks for one.
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

/// What the sender may do until the next decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allowance {
    /// Most unacknowledged payload bytes, a packet at least; [`Bytes::MAX`]: no window.
    pub cwnd: Bytes,
    /// Pacing rate, in bits on the wire per second; zero: nothing may be sent.
    pub rate: Rate,
    /// When [`Controller::on_timer`] wants to be called next; [`Time::MAX`]: never.
    pub timer: Time,
}

/// The control of one flow at its sender.
///
/// Every method returns the allowance in force from then on. Calls come in non-decreasing time.
pub trait Controller {
    /// The flow starts: the initial window and rate.
    fn on_start(&mut self, now: Time) -> Allowance;
    /// An acknowledgment arrived.
    fn on_ack(&mut self, ack: &Ack<'_>) -> Allowance;
    /// The transport saw a loss; it retransmits by itself.
    fn on_loss(&mut self, now: Time, loss: Loss) -> Allowance;
    /// A congestion notification packet arrived (only if [`Needs::cnp_interval`] asks for them).
    fn on_cnp(&mut self, now: Time) -> Allowance;
    /// The time of [`Allowance::timer`] has come.
    fn on_timer(&mut self, now: Time) -> Allowance;
    /// `bytes` were handed to the wire. Only algorithms that count sent bytes (DCQCN's byte counter) care.
    fn on_sent(&mut self, _now: Time, _bytes: Bytes) -> Option<Allowance> {
        None
    }
    /// Over TCP, the flow is about to send again after it had nothing in flight for longer than a retransmission timeout;
    /// so many of these have passed since its last packet. Windows of old say little of the path (RFC 5681 section 4.1).
    fn on_idle(&mut self, _now: Time, _timeouts: u32) -> Option<Allowance> {
        None
    }
    /// A switch port has sent this flow a notice (only if the algorithm's [`PortAgent`] does).
    fn on_notice(&mut self, _now: Time, _notice: &Notice) -> Option<Allowance> {
        None
    }
    /// The flow's control packet is back with what the ports of the path wrote (only if [`Needs::control`] asks).
    fn on_control(&mut self, _now: Time, _header: &[f64]) -> Option<Allowance> {
        None
    }
    /// Writes the header of a data packet that is about to leave (only if [`Needs::header`] asks for one).
    fn stamp(&mut self, _now: Time, _header: &mut [f64]) {}
    /// Whether a control packet leaves now, ahead of data; if so, writes its header, which is all zeros before. Asked
    /// after every decision, and when the last of `unsent` payload bytes is handed to the wire.
    fn control_packet(&mut self, _now: Time, _unsent: u64, _header: &mut [f64]) -> bool {
        false
    }
    /// How long before it is due the pending timer counts as planned: in ns-3's order of simultaneous events, what
    /// was planned earlier comes first.
    fn timer_lead(&self) -> Time {
        Time::MAX
    }
}

/// Which queue a mark tells of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MarkedQueue {
    /// The one that the packet joins, itself counted.
    Joined,
    /// The one that it leaves behind, itself not counted.
    Left,
    /// The port's phantom queue that it joins, itself counted, which drains at this percentage of the port's rate.
    Phantom(u8),
}

/// The marking that an algorithm is made for: RED on the instantaneous queue.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RedDefault {
    /// No marks up to here.
    pub kmin: Bytes,
    /// Every packet above here.
    pub kmax: Bytes,
    /// Probability as the queue reaches `kmax`.
    pub pmax: f64,
    /// Port rate the thresholds are given for; they scale with a port's rate. `None`: the same at all rates.
    pub per_rate: Option<Rate>,
    /// Which queue is compared with them.
    pub queue: MarkedQueue,
}

/// How data waits at switches under an algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Queueing {
    /// As the scenario says; packets carry no priorities.
    Any,
    /// By the priorities that packets carry in their first header word, unless the scenario says otherwise.
    Priorities,
    /// In queues that the algorithm's [`PortAgent`] or transport chooses: no discipline and no limit goes with them.
    Own,
}

/// How ToRs with circuits, which know when these come, help an algorithm. They tell by the ECN mark of data whether it
/// has gone by a circuit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CircuitHelp {
    /// Most bytes in a VOQ whose circuit is away.
    pub voq: Bytes,
    /// Most bytes in it while the circuit is there, and for some time before.
    pub enlarged: Bytes,
    /// For how long before.
    pub ahead: Time,
}

/// What an algorithm needs from network, receiver and transport.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Needs {
    /// Switches stamp telemetry with this byte counter into data packets.
    pub int: Option<IntCounter>,
    /// How exact the telemetry is.
    pub int_format: IntFormat,
    /// Switches mark ECN on the flow's packets.
    pub ecn: bool,
    /// How they should, if the algorithm depends on it and the scenario does not say. The ns3 profile marks as the artifact does.
    pub red: Option<RedDefault>,
    /// Receivers answer marked packets with at most one CNP per flow in this interval.
    pub cnp_interval: Option<Time>,
    /// Bytes the algorithm's telemetry or timestamps add to every data packet.
    pub data_overhead: Bytes,
    /// The same for every acknowledgment.
    pub ack_overhead: Bytes,
    /// Whether a changed rate also moves the pending send time (the spacing after the packet last sent), or
    /// only spaces the packets after the next one.
    pub repace_on_change: bool,
    /// Whether a flow's first acknowledgment is only stored, for the next one to be measured against, so that
    /// it leads to no decision.
    pub first_ack_only_stored: bool,
    /// Packets a flow may send in a row after it had to wait for its NIC, to keep its rate on average (a token bucket);
    /// 0: packets are spaced from the last one that went, so that a turn missed is lost.
    pub pacing_credit: u32,
    /// Which egress ports run the algorithm's [`PortAgent`].
    pub ports: PortScope,
    /// Header words on every data and control packet.
    pub header: HeaderWords,
    /// Flows exchange control packets of this size on the wire, which ports may write to.
    pub control: Option<Bytes>,
    /// Control packets wait where data waits, unless the scenario says otherwise; if not, they go ahead of it.
    pub control_with_data: bool,
    /// How data waits at switches.
    pub queueing: Queueing,
    /// Rates come from an oracle that always knows the exact max-min optimum.
    pub oracle: bool,
    /// A central allocator tells flows their rates by notices.
    pub allocator: bool,
    /// Receivers grant what senders may send, by HOMA's transport.
    pub grants: Option<Grants>,
    /// TCP finds losses by its retransmission timer alone, which is this many base round-trip times and never grows.
    pub rto_rtts: Option<f64>,
    /// Flows share in proportion to [`FlowContext::weight`]. Otherwise the scenario may not give weights.
    pub weights: bool,
    /// ToRs with circuits limit their VOQs, and tell what has gone by a circuit.
    pub circuits: Option<CircuitHelp>,
    /// During a recovery TCP comes down to the window in proportion to what arrives (PRR, RFC 9937), if it is set to.
    pub prr: bool,
}

impl Needs {
    /// An algorithm that asks nothing of the network.
    pub const NOTHING: Self = Self {
        int: None,
        int_format: IntFormat::Exact,
        ecn: false,
        red: None,
        cnp_interval: None,
        data_overhead: Bytes::ZERO,
        ack_overhead: Bytes::ZERO,
        repace_on_change: true,
        first_ack_only_stored: false,
        pacing_credit: 0,
        ports: PortScope::None,
        header: HeaderWords::NONE,
        control: None,
        control_with_data: false,
        queueing: Queueing::Any,
        oracle: false,
        allocator: false,
        grants: None,
        rto_rtts: None,
        weights: false,
        circuits: None,
        prr: false,
    };

    /// An algorithm that reads in-band telemetry: five hops of 8 bytes and a count on data (42 bytes), and
    /// 28 bytes more than the smallest frame on acknowledgments, as in HPCC's public header format.
    pub const TELEMETRY: Self = Self {
        int: Some(IntCounter::Transmitted),
        data_overhead: Bytes::new(42),
        ack_overhead: Bytes::new(28),
        ..Self::NOTHING
    };

    /// An algorithm that reads round-trip times: an 8-byte timestamp on data.
    pub const TIMESTAMPS: Self = Self { data_overhead: Bytes::new(8), ..Self::NOTHING };
}

/// A parameter whose published default is for hosts of certain rates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MadeFor {
    /// The parameter's name.
    pub param: &'static str,
    /// The slowest hosts it was published for.
    pub least: Rate,
    /// The fastest.
    pub most: Rate,
    /// Where that is said.
    pub source: &'static str,
}

/// The configuration of one algorithm: what it needs and how a flow's controller is made from it.
pub trait AlgorithmSpec: crate::config::Parameters + Clone {
    /// The controller this configures.
    type Controller: Controller;
    /// What its egress ports compute; [`NoPort`](crate::NoPort) if nothing.
    type Port: PortAgent;
    /// The same defaults over TCP, where they differ: hosts with TCP begin with small windows and slow start.
    #[must_use]
    fn over_tcp(self) -> Self {
        self
    }
    /// What the algorithm needs with these parameters.
    fn needs(&self) -> Needs;
    /// The parameters whose published defaults are for hosts of certain rates. Scenarios with other hosts get a warning.
    fn made_for(&self) -> &'static [MadeFor] {
        &[]
    }
    /// A controller for a flow.
    fn build(&self, flow: &FlowContext) -> Self::Controller;
    /// The agent of one egress port of those that [`Needs::ports`] names.
    fn build_port(&self, _port: &PortContext) -> Option<Self::Port> {
        None
    }
}
