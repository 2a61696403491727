//! Hosts with two ports, each on a switch of its own, as with the dual ToR of a cluster.
//!
//! A host has one link. So the second port is an end point of its own, `h3.p2` beside the host `h3`, which is its first
//! port. No path leads from first ports to second ones: the two have networks of their own, its planes. A flow stays on
//! one port of its sender and the same one of its receiver, as the packets of a connection do that a bond hashes to a
//! port.

use std::ops::Range;

use super::{Node, Tier, Topology};
use crate::config::FlowSpec;
use crate::ids::NodeId;
use crate::rng::{mix64, pick};

/// The second ports of hosts: none, or one for each, in the order of the hosts, which are the first nodes of the
/// network.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SecondPorts(Range<u32>);

impl SecondPorts {
    /// Creates the second ports from the range of their nodes.
    pub(super) const fn new(nodes: Range<u32>) -> Self {
        Self(nodes)
    }

    /// Returns `true` if hosts have one port.
    pub fn are_none(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the host that a node is the second port of.
    pub fn host_of(&self, node: NodeId) -> Option<NodeId> {
        self.0.contains(&node.0).then(|| NodeId(node.0 - self.0.start))
    }

    /// Returns the second port of a host.
    pub fn of(&self, host: NodeId) -> Option<NodeId> {
        (host.index() < self.0.len()).then(|| NodeId(self.0.start + host.0))
    }
}

impl Topology {
    /// Gives each flow between hosts the first or second port of both, by a hash of its addresses, ports and `seed`.
    pub fn spread_over_ports(&self, flows: &mut [FlowSpec], seed: u64) {
        for flow in flows {
            let (Some(src), Some(dst)) = (self.second_ports.of(flow.src), self.second_ports.of(flow.dst)) else {
                continue;
            };
            let ends = u64::from(flow.src.0) << 32 | u64::from(flow.dst.0);
            let ports = u64::from(flow.sport) << 16 | u64::from(flow.dport);
            if pick(mix64(mix64(mix64(seed) ^ ends) ^ ports), 2) == 1 {
                (flow.src, flow.dst) = (src, dst);
            }
        }
    }

    /// Returns, for an end point that users do not name, its kind in words and the host to name in its place; `None`
    /// for all other nodes.
    pub fn hidden_end(&self, node: NodeId) -> Option<(&'static str, &Node)> {
        let kind = if self.is_scale_up(node) {
            "the end of a GPU on a scale-up network, which only collectives and jobs use"
        } else if self.second_ports.host_of(node).is_some() {
            "the second port of a host, and a hash chooses the ports of flows"
        } else {
            return None;
        };
        Some((kind, &self.nodes[self.nic(node).index()]))
    }

    /// Returns `true` if some hosts have several end points.
    pub fn has_several_ends(&self) -> bool {
        self.servers.is_some() || !self.second_ports.are_none()
    }

    /// Returns the end points of the network: the hosts, their second ports, and the end points of GPUs on scale-up
    /// networks.
    pub fn end_points(&self) -> impl Iterator<Item = NodeId> + '_ {
        (0u32..).zip(&self.nodes).filter(|(_, n)| n.tier == Tier::Host).map(|(i, _)| NodeId(i))
    }

    /// Returns the host that an end point is of: the host itself, unless it is a second port or on a scale-up network.
    pub fn nic(&self, end: NodeId) -> NodeId {
        let of_gpu = self.servers.as_ref().and_then(|servers| servers.nic_of(end));
        of_gpu.or_else(|| self.second_ports.host_of(end)).unwrap_or(end)
    }

    /// Returns the end points of a host, the host itself first.
    pub fn ends_of(&self, host: NodeId) -> impl Iterator<Item = NodeId> {
        let others = [self.second_ports.of(host), self.scale_up_end(host)];
        std::iter::once(host).chain(others.into_iter().flatten())
    }
}
