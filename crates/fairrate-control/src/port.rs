use fairrate_units::{Rate, Time};

/// The set of egress ports that run an algorithm's [`PortAgent`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PortScope {
    /// No ports.
    #[default]
    None,
    /// The ports of switches.
    Switches,
    /// The ports of switches and hosts: a host's flows share its link as they share any other.
    All,
}

/// Number of header words in a packet. The algorithm defines the meaning of a word; its bytes on the wire are counted
/// in [`WireNeeds::data_overhead`](crate::WireNeeds::data_overhead).
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

/// The properties of an egress port that its agent gets before the first packet.
#[derive(Clone, Copy, Debug)]
pub struct PortContext {
    /// Number of the port, unique in the network.
    pub port: u32,
    /// Capacity of its link when the run begins; [`PortAgent::on_rate`] tells of changes.
    pub rate: Rate,
    /// Rate of its host's NIC, which may be less than that of the link; [`Rate::MAX`] if it is not known to be.
    pub nic_rate: Rate,
    /// The largest base round-trip time in the network.
    pub base_rtt: Time,
    /// Size of a full data packet on the wire in bytes, headers included.
    pub wire_mtu: u32,
    /// Bytes that every frame takes on the link besides its own.
    pub frame_overhead: u32,
    /// One-way propagation delay of the longest link into its node: the largest delay from a flow's previous hop.
    pub upstream_delay: Time,
    /// `true` if it is the port of a host.
    pub of_host: bool,
    /// Seed of the agent's random numbers.
    pub seed: u64,
}

/// The present state of an egress port.
#[derive(Clone, Copy, Debug)]
pub struct PortView {
    /// The current time.
    pub now: Time,
    /// Bytes that wait in the port's queues. When a packet joins or leaves, that packet is not counted.
    pub queue_bytes: u64,
}

/// The kind of a packet at a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PortPacketKind {
    /// Payload of a flow.
    Data,
    /// A flow's control packet on its way to the receiver.
    Control,
    /// Any other packet: acknowledgments, control packets on their way back, notices. It has no header.
    Other,
}

/// A step of a packet at a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PortStep {
    /// The packet joins the queue.
    Enqueue,
    /// The packet leaves for the wire.
    Dequeue,
}

/// A packet at an egress port.
#[derive(Debug)]
pub struct PortPacket<'a> {
    /// The flow: a number that stands for its five-tuple.
    pub flow: u32,
    /// Its priority class.
    pub class: u8,
    /// Its kind.
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
    /// The flow whose source receives it.
    pub flow: u32,
    /// The port that sends it, the congestion point: [`PortContext::port`].
    pub port: u32,
    /// Its content; the algorithm defines the meaning.
    pub values: [f64; NOTICE_VALUES],
}

/// Number of values in a [`Notice`].
pub const NOTICE_VALUES: usize = 4;

/// A request to the previous hop of a flow, a switch port or NIC, to pause the flow's packets or to resume them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowPause {
    /// The flow.
    pub flow: u32,
    /// `true` to pause the flow, `false` to resume it.
    pub pause: bool,
}

/// The actions that an agent requests beyond changes to the packet.
#[derive(Clone, Debug, Default)]
pub struct Actions {
    /// Notices to send, in this order.
    pub notices: Vec<Notice>,
    /// Flows to pause or resume one hop upstream, in this order. Only ports of switches have such a hop.
    pub pauses: Vec<FlowPause>,
}

/// The algorithm's part that runs at one egress port.
///
/// The engine calls it for events at the port. It responds by changing the packet and by [`Actions`]. The time never
/// decreases from one call to the next.
pub trait PortAgent {
    /// Handles a packet that joins the port's queue. Marks and headers written here take effect.
    fn on_enqueue(&mut self, _view: &PortView, _packet: &mut PortPacket<'_>, _actions: &mut Actions) {}
    /// Returns `true` if packets of `kind` matter to the algorithm at `step`. Called once, when the port is made. The
    /// engine may skip the callbacks for other packets, so skipping them must change no result.
    fn watches(&self, _kind: PortPacketKind, _step: PortStep) -> bool {
        true
    }
    /// Handles a packet that leaves the queue for the wire. Marks and headers written here take effect.
    fn on_dequeue(&mut self, _view: &PortView, _packet: &mut PortPacket<'_>, _actions: &mut Actions) {}
    /// Returns the physical queue of `class` that a data packet of `flow` joins, or `None` for the queue of the class
    /// itself. Called right after [`PortAgent::on_enqueue`], if the agent watches data at that step and its algorithm
    /// has [`Queueing::Own`](crate::Queueing::Own); not called at hosts. The physical queues of a class are served by
    /// deficit round robin after its own queue, and a queue whose first packet is of a paused flow is skipped.
    fn assign(&self, _class: u8, _flow: u32) -> Option<u16> {
        None
    }
    /// Handles the next hop's request to pause `flow`, or to resume it if `pause` is `false`.
    fn on_flow_pause(&mut self, _flow: u32, _pause: bool) {}
    /// Handles a change of the link's rate during the run: `rate` takes the place of [`PortContext::rate`].
    fn on_rate(&mut self, _rate: Rate) {}
    /// Handles the expiry of [`PortAgent::timer`].
    fn on_timer(&mut self, _view: &PortView, _actions: &mut Actions) {}
    /// Returns the time of the next call of [`PortAgent::on_timer`], never in the past, or [`Time::MAX`] for none
    /// before another call of the agent. Called when the port is made and after every call. The current time means
    /// after all packets of that time.
    fn timer(&self) -> Time {
        Time::MAX
    }
}

/// The port agent of algorithms without one. It has no values.
#[derive(Clone, Copy, Debug)]
pub enum NoPort {}

impl PortAgent for NoPort {}
