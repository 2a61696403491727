use fairrate_units::{Rate, Time};

/// Which egress ports run an algorithm's [`PortAgent`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PortScope {
    /// None.
    #[default]
    None,
    /// Those of switches.
    Switches,
    /// Those of switches and hosts: a host's link is shared by its flows as any other.
    All,
}

/// How many words of header a packet carries. A word's meaning is the algorithm's; what it takes on the wire is counted
/// in [`Needs::data_overhead`](crate::Needs::data_overhead).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HeaderWords {
    /// Words of every packet.
    pub fixed: u8,
    /// Words for each link of the longest path.
    pub per_hop: u8,
}

impl HeaderWords {
    /// No header.
    pub const NONE: Self = Self { fixed: 0, per_hop: 0 };
}

/// What an egress port knows of itself before its first packet.
#[derive(Clone, Copy, Debug)]
pub struct PortContext {
    /// Number of the port, unlike that of any other in the network.
    pub port: u32,
    /// Capacity of its link.
    pub rate: Rate,
    /// The largest base round-trip time in the network.
    pub base_rtt: Time,
    /// Bytes a full data packet has on the wire, headers included.
    pub wire_mtu: u32,
    /// One-way propagation delay of the longest link into its node: how far the previous hop of a flow is at most.
    pub upstream_delay: Time,
    /// Whether it is the port of a host.
    pub of_host: bool,
    /// Seed of the agent's random numbers.
    pub seed: u64,
}

/// What an egress port knows of itself now.
#[derive(Clone, Copy, Debug)]
pub struct PortView {
    /// The time.
    pub now: Time,
    /// Bytes that wait in its queues. When a packet joins or leaves: without that packet.
    pub queue_bytes: u64,
}

/// What kind of packet a port sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PortPacketKind {
    /// Payload of a flow.
    Data,
    /// A flow's control packet on its way to the receiver.
    Control,
    /// Anything else: acknowledgments, control packets on their way back, notices. Without a header.
    Other,
}

/// What happens to a packet at a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PortStep {
    /// It joins the queue.
    Enqueue,
    /// It leaves for the wire.
    Dequeue,
}

/// A packet at an egress port.
#[derive(Debug)]
pub struct PortPacket<'a> {
    /// The flow: a number that stands for its five-tuple.
    pub flow: u32,
    /// Its priority class.
    pub class: u8,
    /// What it is.
    pub kind: PortPacketKind,
    /// Bytes on the wire.
    pub wire: u32,
    /// Its header, to read and to write.
    pub header: &'a mut [f64],
    /// Set to mark the packet with congestion experienced (ECN).
    pub mark: bool,
}

/// A control packet from a switch port to the source of a flow that passes it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Notice {
    /// The flow it is for.
    pub flow: u32,
    /// The port that sends it, the congestion point: [`PortContext::port`].
    pub port: u32,
    /// What it says; the meaning is the algorithm's.
    pub values: [f64; NOTICE_VALUES],
}

/// Values in a [`Notice`].
pub const NOTICE_VALUES: usize = 4;

/// Asks the previous hop of a flow, switch port or NIC, to hold the flow's packets back, or to let them go again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowPause {
    /// The flow.
    pub flow: u32,
    /// Hold it back, or let it go.
    pub pause: bool,
}

/// What a port wants done beyond the packet at hand.
#[derive(Clone, Debug, Default)]
pub struct Actions {
    /// Notices to send, in this order.
    pub notices: Vec<Notice>,
    /// Flows to pause or resume one hop upstream, in this order. Only ports of switches have such a hop.
    pub pauses: Vec<FlowPause>,
}

/// What one egress port computes: the switch's part of an algorithm.
///
/// The engine calls it with what the port sees. It answers by changing the packet and by [`Actions`]. The time never decreases
/// from one call to the next.
pub trait PortAgent {
    /// A packet joins the port's queue. Marks and headers written here count.
    fn on_enqueue(&mut self, _view: &PortView, _packet: &mut PortPacket<'_>, _actions: &mut Actions) {}
    /// Whether packets of this kind matter to the algorithm at this step. Asked once, when the port is made. The engine may
    /// skip the callbacks for other packets, so skipping them must change no result.
    fn watches(&self, _kind: PortPacketKind, _step: PortStep) -> bool {
        true
    }
    /// A packet leaves the queue for the wire. Marks and headers written here count.
    fn on_dequeue(&mut self, _view: &PortView, _packet: &mut PortPacket<'_>, _actions: &mut Actions) {}
    /// The physical queue of its class that a data packet of `flow` joins, asked right after [`PortAgent::on_enqueue`], where data
    /// matters at that step; `None`: the queue of its class. The physical queues of a class take turns (deficit round robin) after
    /// its own queue, and one whose first packet is of a paused flow is passed over. Not asked at hosts.
    fn assign(&self, _class: u8, _flow: u32) -> Option<u16> {
        None
    }
    /// The next hop has asked this port to pause `flow`, or to resume it.
    fn on_flow_pause(&mut self, _flow: u32, _pause: bool) {}
    /// The time of [`PortAgent::timer`] has come.
    fn on_timer(&mut self, _view: &PortView, _actions: &mut Actions) {}
    /// When to call [`PortAgent::on_timer`] next, never in the past; [`Time::MAX`]: not before another call. Asked when the
    /// port is made and after every call. The current time means after all packets of that time.
    fn timer(&self) -> Time {
        Time::MAX
    }
}

/// The port of algorithms that do not change switches. It cannot exist.
#[derive(Clone, Copy, Debug)]
pub enum NoPort {}

impl PortAgent for NoPort {}
