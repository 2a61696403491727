//! The fixed configuration of a run, which all parts share.

use fairrate_control::{AlgorithmConfig, Bucket, FlowContext, Telemetry};
use fairrate_units::{Rate, Time};

use super::flow::Flow;
use super::paths::Paths;
use super::steering;
use crate::config::{ClockRule, Recovery, SimConfig, Successors, WindowRule};
use crate::ideal::{self, Framing, Hop};
use crate::ids::{FlowId, HostId, NodeId, PortId};
use crate::rng::{Purpose, Stream};
use crate::routing::{FlowKey, Routes};
use crate::table::Table;
use crate::transport::{Kind, Levels};

/// The run: its configuration and the values derived from it before anything happens.
pub(crate) struct Run {
    /// The configuration. Its flows are the user's, followed by those that carry messages.
    pub(crate) config: SimConfig,
    pub(crate) constants: Constants,
    /// The rules for the flows of the first stack, and of those beside. Nearly all runs have the first one alone.
    pub(crate) first: Rules,
    pub(crate) beside: Vec<Rules>,
    pub(crate) routes: Routes,
    /// The user's flows, then those that carry messages, then the subflows of each.
    pub(crate) flows: Table<FlowId, Flow>,
    /// Number of the user's flows, which are the first ones.
    pub(crate) n_user_flows: u32,
    /// The flows that wait for each flow.
    pub(crate) successors: Successors,
    /// The egress ports of all paths.
    pub(crate) paths: Paths<PortId>,
    /// The source port of each subflow, in the order of `flows`.
    pub(crate) sports: Vec<u16>,
    pub(crate) parts: PartOf,
    /// The classes of packets, if receivers grant.
    pub(crate) levels: Option<Levels>,
    /// Time after which each node acts on a packet, by its number; empty if all do so at once.
    pub(crate) processing: Vec<Time>,
    /// The rates of the links behind the queues of hosts; empty if hosts have no queues.
    pub(crate) queued_rates: Table<HostId, Rate>,
}

/// Frequently used values that all flows share, as plain numbers.
#[derive(Clone)]
pub(crate) struct Constants {
    pub(crate) mtu: u64,
    /// Bytes on the wire of the longest data packet.
    pub(crate) wire_mtu: u64,
    pub(crate) pfc_wire: u16,
    pub(crate) clock: ClockRule,
    /// The largest number of header words of an algorithm: other words of a packet come behind them.
    pub(crate) header_words: usize,
    /// `true` if controllers have control packets.
    pub(crate) has_control: bool,
    /// `true` if some receivers of RDMA do not acknowledge every packet.
    pub(crate) coalesces: bool,
    pub(crate) telemetry: Option<Telemetry>,
    /// The base round-trip time of the network, τ, for the packets of the first stack.
    pub(crate) base_rtt: Time,
}

/// The rules for the flows of a stack, as plain numbers.
#[derive(Clone)]
pub(crate) struct Rules {
    pub(crate) framing: Framing,
    pub(crate) window: WindowRule,
    /// The least window of TCP in bytes, for every algorithm.
    pub(crate) min_window: u64,
    pub(crate) data_header: u64,
    /// Bytes of the window that must be free for a full packet.
    pub(crate) room: u32,
    pub(crate) ack_wire: u16,
    pub(crate) cnp_wire: u16,
    /// Bytes on the wire of the controllers' control packets, if there are any.
    pub(crate) control_wire: Option<u16>,
    /// Class of notices and of control packets.
    pub(crate) control_class: u8,
    pub(crate) reaction_ps: u64,
    pub(crate) header_words: usize,
    pub(crate) ack_class: u8,
    pub(crate) recovery: Recovery,
    /// Go-back-N: time between two reports of one gap; selective repeat: time until its first.
    pub(crate) gap_patience_ps: u64,
    pub(crate) cnp_interval_ps: Option<u64>,
    pub(crate) cnp_by_clock: bool,
    /// Bytes of payload after which a receiver of RDMA acknowledges; `None`: every packet.
    pub(crate) ack_every: Option<u64>,
    pub(crate) rto_ps: u64,
    /// Time by which it is shorter while few packets are in flight.
    pub(crate) rto_head_ps: u64,
    /// Retransmission timeout of TCP if the algorithm detects losses by nothing else.
    pub(crate) fixed_rto: Option<Time>,
    pub(crate) repace: bool,
    pub(crate) pacing_credit: u64,
    /// The bucket whose credit that is, if it keeps its bytes as its rate changes.
    pub(crate) bucket: Bucket,
    pub(crate) first_ack_only_stored: bool,
    /// `true` if the algorithm goes by ECN marks.
    pub(crate) ecn: bool,
    /// The base round-trip time of the network, τ, for its packets.
    pub(crate) base_rtt: Time,
}

/// The part of every port and host: a port is in the part of the node that it belongs to.
pub(crate) struct PartOf {
    pub(crate) ports: Table<PortId, u16>,
    pub(crate) hosts: Table<HostId, u16>,
}

impl PartOf {
    /// Returns the part of the node that `port` belongs to.
    #[inline]
    pub(crate) fn port(&self, port: PortId) -> u16 {
        self.ports[port]
    }

    /// Returns the part of a host, by its number among hosts.
    #[inline]
    pub(crate) fn host(&self, host: HostId) -> u16 {
        self.hosts[host]
    }
}

impl Run {
    /// Returns a flow.
    #[inline]
    pub(crate) fn flow(&self, id: FlowId) -> &Flow {
        &self.flows[id]
    }

    /// Returns `true` if a flow is one of the user's.
    pub(crate) fn is_users(&self, id: FlowId) -> bool {
        id.0 < self.n_user_flows
    }

    /// Returns the egress ports from a flow's sender to its receiver.
    pub(crate) fn path_of(&self, id: FlowId) -> impl ExactSizeIterator<Item = PortId> + '_ {
        self.flow(id).data_path(&self.paths)
    }

    /// Returns the addresses and ports of a flow's data.
    pub(crate) fn key_of(&self, id: FlowId) -> FlowKey {
        let key = FlowKey::of(&self.config.flows[self.flow(id).parent.index()]);
        match id.index().checked_sub(self.config.flows.len()) {
            Some(subflow) => FlowKey { sport: self.sports[subflow], ..key },
            None => key,
        }
    }

    /// Returns the parts of a flow's sender and receiver.
    pub(crate) fn parts_of_flow(&self, id: FlowId) -> (usize, usize) {
        let flow = self.flow(id);
        (usize::from(self.parts.host(flow.src_host)), usize::from(self.parts.host(flow.dst_host)))
    }

    /// Returns the links of a flow's path; with packet spraying, the links of all its paths, hop by hop.
    pub(crate) fn hops_of(&self, id: FlowId) -> Vec<Hop> {
        self.hops(self.path_of(id), self.config.flows[self.flow(id).parent.index()].dst)
    }

    /// Returns the fastest hops that a packet of the flow can take: with circuits, at least as fast as either way, hop
    /// by hop.
    pub(crate) fn best_hops_of(&self, id: FlowId) -> Vec<Hop> {
        let topology = &self.config.topology;
        if self.config.reroute().is_some() {
            let to = self.config.flows[self.flow(id).parent.index()].dst;
            return steering::hops_beside(topology, &self.routes, self.path_of(id), to);
        }
        let mut hops = self.hops_of(id);
        let Some(circuits) = &topology.circuits else { return hops };
        let ports: Vec<PortId> = self.path_of(id).collect();
        if let Some(up) = ports.iter().position(|&port| topology.to(port) == circuits.core) {
            let circuit = topology.link(circuits.port(topology.from(ports[up]), topology.to(ports[up + 1])));
            let down = hops.remove(up + 1);
            let up = &mut hops[up];
            // A packet on a circuit may overtake a packet that goes by the packet switch.
            *up = Hop { rate: up.rate.max(circuit.rate), delay: circuit.delay.min(up.delay + down.delay), lanes: 2 };
        }
        hops
    }

    fn hops(&self, path: impl Iterator<Item = PortId>, dst: NodeId) -> Vec<Hop> {
        let topology = &self.config.topology;
        if self.config.fabric.balance.is_by_packet() {
            steering::hops_beside(topology, &self.routes, path, dst)
        } else {
            path.map(|port| Hop::single(topology.link(port))).collect()
        }
    }

    /// Returns the algorithm that controls a flow: that of its stack, except for flows that carry messages.
    pub(crate) fn algorithm_of(&self, id: FlowId) -> &AlgorithmConfig {
        match &self.config.allocator {
            Some(allocator) if self.flow(id).transport == Kind::Line => &allocator.cc,
            _ => self.config.stack(self.flow(id).stack).1,
        }
    }

    /// Returns the time after which a host acts on a packet.
    pub(crate) fn processing_of(&self, host: NodeId) -> Time {
        self.processing.get(host.index()).copied().unwrap_or(Time::ZERO)
    }

    /// Returns what holds for the flows of a stack.
    #[inline]
    pub(crate) fn rules(&self, stack: u8) -> &Rules {
        if stack == 0 { &self.first } else { self.rules_beside(stack) }
    }

    #[cold]
    fn rules_beside(&self, stack: u8) -> &Rules {
        &self.beside[usize::from(stack) - 1]
    }

    /// Returns the rules of all stacks, in order.
    pub(crate) fn all_rules(&self) -> impl Iterator<Item = &Rules> {
        std::iter::once(&self.first).chain(&self.beside)
    }

    /// Returns what holds for a flow.
    #[inline]
    pub(crate) fn rules_of(&self, id: FlowId) -> &Rules {
        self.rules(self.flow(id).stack)
    }

    /// Returns the context for the controller of a flow that starts at `start`.
    pub(crate) fn flow_context(&self, id: FlowId, start: Time) -> FlowContext {
        let flow = self.flow(id);
        let spec = &self.config.flows[flow.parent.index()];
        let c = self.rules(flow.stack);
        let path = self.hops_of(id);
        let back = self.hops(flow.ack_path(&self.paths), spec.src);
        FlowContext {
            line_rate: self.queued_rates.get(flow.src_host).copied().unwrap_or(path[0].rate),
            base_rtt: c.base_rtt,
            path_base_rtt: ideal::path_base_rtt(self.config.fabric.clock, &path, &back, c.framing)
                + self.processing_of(spec.src)
                + self.processing_of(spec.dst),
            mtu: c.framing.mtu,
            wire_mtu: c.framing.mtu + c.framing.header,
            frame_overhead: c.framing.overhead,
            n_hops: path.len() as u32,
            weight: spec.weight,
            start,
            size: spec.bytes,
            demand: spec.demand,
            deadline: spec.deadline,
            seed: Stream::new(self.config.seed, u64::from(id.0), Purpose::Controller).below(u64::MAX),
        }
    }
}
