//! Who is connected to whom: hosts, switches and full-duplex links.

use std::collections::BTreeMap;

use fairrate_units::{Rate, Time};

use crate::ids::{NodeId, PortId};

/// Where a node stands in the fabric.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Tier {
    /// An end host.
    Host,
    /// A switch that hosts hang on.
    Tor,
    /// An aggregation switch.
    Aggregation,
    /// A core or spine switch.
    Core,
}

/// A host or a switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Name in scenarios and results; the decimal id in topology files.
    pub name: String,
    /// Host, or which kind of switch.
    pub tier: Tier,
    /// Hosts: the rack (hosts of the same ToR share it). Switches: 0.
    pub rack: u32,
}

/// A full-duplex link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// One end.
    pub a: NodeId,
    /// The other end.
    pub b: NodeId,
    /// Capacity of each direction.
    pub rate: Rate,
    /// Propagation delay.
    pub delay: Time,
}

/// A network. Built by one of this module's functions, which check that it is connected and sound.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topology {
    /// All nodes; a [`NodeId`] is a position in here.
    pub nodes: Vec<Node>,
    /// All links; see [`PortId`] for their ports.
    pub links: Vec<Link>,
    /// Named sets of egress ports that a load may be defined on, such as `host-links` (host to ToR) and
    /// `tor-uplinks` (ToR to the tier above).
    pub link_sets: BTreeMap<String, Vec<PortId>>,
}

impl Topology {
    /// The hosts, in ascending order.
    pub fn hosts(&self) -> impl Iterator<Item = NodeId> + '_ {
        (0u32..).zip(&self.nodes).filter(|(_, n)| n.tier == Tier::Host).map(|(i, _)| NodeId(i))
    }
    /// Number of ports.
    pub fn n_ports(&self) -> usize {
        self.links.len() * 2
    }
    /// The link a port belongs to.
    pub fn link(&self, port: PortId) -> &Link {
        &self.links[port.index() / 2]
    }
    /// The node a port sends from.
    pub fn from(&self, port: PortId) -> NodeId {
        let link = self.link(port);
        if port.0.is_multiple_of(2) { link.a } else { link.b }
    }
    /// The node a port sends to.
    pub fn to(&self, port: PortId) -> NodeId {
        self.from(port.reverse())
    }
}
