use fairrate_units::{Bytes, Rate, Time};

use crate::int::IntHop;
use crate::needs::Needs;
#[cfg(doc)]
use crate::needs::{FeedbackNeeds, NetworkNeeds, WireNeeds};
use crate::port::{Notice, PortAgent, PortContext};

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
    /// Bytes that every frame takes on a link besides its own.
    pub frame_overhead: Bytes,
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
            frame_overhead: Bytes::ZERO,
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
    /// Takes what is outstanding when TCP detects a loss, just before [`Controller::on_loss`]: `in_flight` is the
    /// payload in flight, with what has just been found lost, and `snd_nxt` the next new byte. More may have been sent
    /// since the last acknowledgment.
    fn on_outstanding(&mut self, _in_flight: u64, _snd_nxt: u64) {}
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
