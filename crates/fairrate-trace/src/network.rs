//! The names and rules that traces need of a run.

use fairrate_control::AlgorithmConfig;
use fairrate_sim::ideal::tx_time;
use fairrate_sim::routing::Routes;
use fairrate_sim::{ClockRule, FlowId, FlowSpec, PacketKind, PortId, SimConfig, Transport, TransportConfig};
use fairrate_units::{Bytes, Rate, Time};

/// The protocol by which packets of a flow are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protocol {
    Rdma,
    Tcp,
    Homa,
    Uet,
}

/// The names and rules of a run.
#[derive(Clone, Debug)]
pub struct Network {
    /// For each port, its name, as `tor0->h16`.
    pub ports: Vec<String>,
    pub(crate) rates: Vec<Rate>,
    /// The names of nodes.
    pub(crate) nodes: Vec<String>,
    /// For each port, the node that it sends from, and `true` if that is a host.
    pub(crate) from: Vec<(u32, bool)>,
    /// For each flow of the list, its number in tables, its stack and its bytes.
    flows: Vec<(u32, u8, Bytes)>,
    /// For each flow, `true` if it has several subflows.
    subflows: Vec<bool>,
    /// For each stack, its protocol, and `true` if its algorithm goes by ECN marks.
    stacks: Vec<(Protocol, bool)>,
    pub(crate) mtu: u64,
    /// Number of links on the longest path: a packet has at most one record of telemetry for each.
    pub(crate) longest_path: u32,
    /// The unit of transmission times, and the bytes that a frame takes besides its own.
    clock: (ClockRule, Bytes),
}

impl Network {
    /// Returns the names and rules of runs of `config`.
    pub fn new(config: &SimConfig) -> Self {
        let topology = &config.topology;
        let ports = || (0..topology.n_ports() as u32).map(PortId);
        let protocol = |transport: &TransportConfig, homa: bool| match transport.kind {
            _ if homa => Protocol::Homa,
            Transport::Rdma => Protocol::Rdma,
            Transport::Tcp(_) => Protocol::Tcp,
            Transport::Uet { .. } => Protocol::Uet,
        };
        let stack = |(transport, cc): (&TransportConfig, &AlgorithmConfig)| {
            let needs = cc.needs();
            (protocol(transport, needs.feedback.grants.is_some()), needs.network.ecn)
        };
        let flow = |(at, spec): (u32, &FlowSpec)| (spec.name(FlowId(at)), spec.stack, spec.bytes);
        Self {
            ports: ports().map(|port| topology.port_name(port)).collect(),
            nodes: topology.nodes.iter().map(|node| node.name.clone()).collect(),
            from: ports().map(|p| (topology.from(p).0, topology.is_host(topology.from(p)))).collect(),
            rates: ports().map(|port| topology.link(port).rate).collect(),
            subflows: config.flows.iter().map(|spec| has_subflows(config, spec)).collect(),
            flows: (0..).zip(&config.flows).map(flow).collect(),
            stacks: config.stacks().map(stack).collect(),
            clock: (config.fabric.clock, config.fabric.frame_overhead),
            mtu: config.transport.mtu.as_u64().max(1),
            longest_path: Routes::new(topology).longest_path(),
        }
    }

    /// Returns the number of a flow in tables; `None` for messages of an allocator.
    pub fn number(&self, flow: FlowId) -> Option<u32> {
        self.flows.get(flow.index()).map(|&(number, ..)| number)
    }

    /// Returns the protocol of a flow, and `true` if its data can be marked. Messages of an allocator go by TCP.
    pub(crate) fn stack(&self, flow: FlowId) -> (Protocol, bool) {
        let stack = self.flows.get(flow.index()).and_then(|&(_, stack, _)| self.stacks.get(usize::from(stack)));
        stack.copied().unwrap_or((Protocol::Tcp, false))
    }

    /// Returns the time that a packet of `wire` bytes takes at a port of `rate`.
    pub(crate) fn tx_time(&self, rate: Rate, wire: u16) -> Time {
        let (clock, overhead) = self.clock;
        tx_time(clock, rate, Bytes::new(u64::from(wire)) + overhead)
    }

    /// Returns `true` if `port` is that of a host's NIC.
    pub(crate) fn is_host(&self, port: PortId) -> bool {
        self.from[port.index()].1
    }

    /// Returns `true` if a flow has several subflows, whose windows and rates are their own.
    pub(crate) fn has_subflows(&self, flow: FlowId) -> bool {
        self.subflows.get(flow.index()).copied().unwrap_or(false)
    }

    /// Returns `true` if the transport of a flow is HOMA.
    pub(crate) fn is_homa(&self, flow: FlowId) -> bool {
        self.stack(flow).0 == Protocol::Homa
    }

    /// Returns the payload bytes of a flow.
    pub(crate) fn bytes(&self, flow: FlowId) -> u64 {
        self.flows.get(flow.index()).map_or(u64::MAX, |&(.., bytes)| bytes.as_u64())
    }
}

fn has_subflows(config: &SimConfig, spec: &FlowSpec) -> bool {
    match config.stack(spec.stack).0.kind {
        Transport::Tcp(tcp) => spec.subflows.unwrap_or(tcp.multipath.subflows) != 1,
        Transport::Rdma | Transport::Uet { .. } => false,
    }
}

/// Returns the name of a kind of packets.
pub(crate) fn kind_name(kind: PacketKind) -> &'static str {
    match kind {
        PacketKind::Data => "data",
        PacketKind::Trimmed => "trimmed",
        PacketKind::Returned => "returned",
        PacketKind::Ack => "ack",
        PacketKind::Nack => "nack",
        PacketKind::Cnp => "cnp",
        PacketKind::Credit => "credit",
        PacketKind::Busy => "busy",
        PacketKind::Notice => "notice",
        PacketKind::Control => "control",
        PacketKind::ControlBack => "control_back",
        PacketKind::Pause | PacketKind::Resume | PacketKind::FlowPause | PacketKind::FlowResume => "pfc",
    }
}
