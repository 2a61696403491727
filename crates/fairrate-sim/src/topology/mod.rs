//! Networks: hosts, switches and the full-duplex links between them.
//!
//! Each named shape is a struct of its parameters with `check`, which names a parameter that cannot be used, and
//! `build`. Nodes are numbered hosts first, then switches tier by tier from the edge up; links likewise, so that node
//! and port ids of a shape stay the same as long as its parameters do.

mod asymmetric;
mod attach;
mod build;
mod cluster;
mod dragonfly;
mod dumbbell;
mod fat_tree;
mod file;
mod host_queues;
mod leaf_spine;
mod long_links;
mod parking_lot;
mod rdcn;
mod scale_up;
mod second_ports;
mod star;

use std::cmp::Ordering;
use std::collections::BTreeMap;

use fairrate_units::{Rate, Time};

use crate::ids::{NodeId, PortId};

pub use asymmetric::Asymmetric;
pub use build::NODES_MAX;
pub use cluster::{Cluster, Wiring};
pub use dragonfly::Dragonfly;
pub use dumbbell::Dumbbell;
pub use fat_tree::{FatTree, FatTreeK};
pub use file::parse_topology_file;
pub use host_queues::HostQueues;
pub use leaf_spine::LeafSpine;
pub use long_links::LongLinks;
pub use parking_lot::ParkingLot;
pub use rdcn::{CircuitState, Circuits, Rdcn};
pub use scale_up::{ScaleUp, Servers};
pub use second_ports::SecondPorts;
pub use star::Star;

/// The tier of a node in the fabric.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Tier {
    /// An end host.
    Host,
    /// The queue of a host, before its link.
    Nic,
    /// A switch to which hosts are connected.
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
    /// Host, or the kind of switch.
    pub tier: Tier,
    /// Hosts: the rack (hosts of the same ToR share it). Switches and queues of hosts: 0.
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

/// The sums of the rates of a switch's links, in bits per second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct SwitchRates {
    /// To lower tiers.
    pub down_bps: u64,
    /// To higher tiers.
    pub up_bps: u64,
    /// To all nodes, those of the same tier among them.
    pub all_bps: u64,
}

/// A network: connected, but for scale-up networks, with exactly one link, to a switch, at every host.
#[derive(Clone, Debug, PartialEq)]
pub struct Topology {
    /// All nodes; a [`NodeId`] is a position in here.
    pub nodes: Vec<Node>,
    /// All links; see [`PortId`] for their ports.
    pub links: Vec<Link>,
    /// Named sets of egress ports that a load may be defined on: `host-links` (host to ToR), `tor-downlinks` (ToR to
    /// host), `tor-uplinks` (ToR to the tier above), `agg-uplinks` (aggregation to core), `all-switch-links` (both
    /// directions of every link between switches, without circuits), `global-links` (between groups, both directions),
    /// `circuits`, `scale-up-links` (both directions) and, where the shape has one by design, `bottleneck`. Empty sets
    /// are absent.
    pub link_sets: BTreeMap<String, Vec<PortId>>,
    /// The first ports of links that lose packets according to a topology file, each with the probability that a packet
    /// is lost, in either direction.
    pub error_rates: Vec<(PortId, f64)>,
    /// The links that count as several for the length of a path.
    pub long_links: LongLinks,
    /// The queues of hosts, if they have any.
    pub host_queues: HostQueues,
    /// The second ports of hosts, if they have two.
    pub second_ports: SecondPorts,
    /// The links that are circuits of an optical switch, if there is one.
    pub circuits: Option<Circuits>,
    /// The servers of GPUs with their scale-up networks, if there are any.
    pub servers: Option<Servers>,
}

impl Topology {
    /// Returns the hosts, in ascending order. Their second ports and the end points of GPUs on scale-up networks are
    /// not among them.
    pub fn hosts(&self) -> impl Iterator<Item = NodeId> + '_ {
        self.end_points().filter(|&end| self.nic(end) == end)
    }
    /// Returns the number of ports.
    pub fn n_ports(&self) -> usize {
        self.links.len() * 2
    }
    /// Returns the link of a port.
    pub fn link(&self, port: PortId) -> &Link {
        &self.links[port.index() / 2]
    }
    /// Returns the node that a port sends from.
    pub fn from(&self, port: PortId) -> NodeId {
        let link = self.link(port);
        if port.0.is_multiple_of(2) { link.a } else { link.b }
    }
    /// Returns the node that a port sends to.
    pub fn to(&self, port: PortId) -> NodeId {
        self.from(port.reverse())
    }
    /// Returns `true` if the node is a host.
    pub fn is_host(&self, node: NodeId) -> bool {
        self.nodes.get(node.index()).is_some_and(|n| n.tier == Tier::Host)
    }
    /// Returns the rates of the links of each switch.
    pub fn switch_rates(&self) -> BTreeMap<NodeId, SwitchRates> {
        let tier = |node: NodeId| self.nodes[node.index()].tier;
        let mut by_switch: BTreeMap<NodeId, SwitchRates> = BTreeMap::new();
        for link in &self.links {
            for (end, other) in [(link.a, link.b), (link.b, link.a)] {
                if self.is_host(end) {
                    continue;
                }
                let rates = by_switch.entry(end).or_default();
                let bps = link.rate.as_bps();
                rates.all_bps += bps;
                match tier(end).cmp(&tier(other)) {
                    Ordering::Greater => rates.down_bps += bps,
                    Ordering::Less => rates.up_bps += bps,
                    Ordering::Equal => {}
                }
            }
        }
        by_switch
    }
    /// Returns the oversubscription of the network: the product over tiers of the largest quotient of a switch's rates
    /// towards hosts and towards the core. It is at least 1.
    pub fn oversubscription(&self) -> f64 {
        let mut of_tier: BTreeMap<Tier, f64> = BTreeMap::new();
        for (switch, rates) in self.switch_rates() {
            if 0 < rates.up_bps {
                let largest = of_tier.entry(self.nodes[switch.index()].tier).or_insert(1.0);
                *largest = largest.max(rates.down_bps as f64 / rates.up_bps as f64);
            }
        }
        of_tier.values().product()
    }
    /// Returns the node with this name, or with this decimal id.
    pub fn node(&self, name: &str) -> Option<NodeId> {
        let by_name = (0u32..).zip(&self.nodes).find(|(_, n)| n.name == name).map(|(i, _)| NodeId(i));
        by_name.or_else(|| decimal(name).filter(|id| id.index() < self.nodes.len()))
    }
    /// Returns the name of a port: the nodes that its link goes from and to, as `tor0->h16`.
    pub fn port_name(&self, port: PortId) -> String {
        let name = |node: NodeId| &self.nodes[node.index()].name;
        format!("{}->{}", name(self.from(port)), name(self.to(port)))
    }
    /// Returns the lowest egress port from one node to a neighbour.
    pub fn port(&self, from: NodeId, to: NodeId) -> Option<PortId> {
        let mut links = (0u32..).zip(&self.links);
        links.find_map(|(i, link)| match (link.a, link.b) {
            (a, b) if a == from && b == to => Some(PortId(2 * i)),
            (a, b) if b == from && a == to => Some(PortId(2 * i + 1)),
            _ => None,
        })
    }
    /// Returns `true` if a port is that of a circuit; no path leads over circuits.
    pub fn is_circuit(&self, port: PortId) -> bool {
        self.circuits.as_ref().is_some_and(|circuits| circuits.has(port))
    }
    /// Returns the sum of the rates of `ports`, in bits per second.
    pub fn capacity_bps(&self, ports: &[PortId]) -> f64 {
        ports.iter().map(|&p| self.link(p).rate.as_bps_f64()).sum()
    }
}

/// Parses a node id in plain decimal: digits only.
fn decimal(text: &str) -> Option<NodeId> {
    let plain = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    plain.then(|| text.parse().ok().map(NodeId)).flatten()
}

/// A named shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TopologyInfo {
    /// Its `kind` in scenarios.
    pub name: &'static str,
    /// Short description.
    pub title: &'static str,
    /// The link sets it has.
    pub link_sets: &'static [&'static str],
}

/// The link sets of shapes of servers.
const SETS_OF_SERVERS: &[&str] = &["host-links", "tor-downlinks", "tor-uplinks", "all-switch-links", "scale-up-links"];

/// All shapes.
pub const TOPOLOGIES: &[TopologyInfo] = &[
    TopologyInfo { name: "star", title: "hosts around one switch", link_sets: &["host-links", "tor-downlinks"] },
    TopologyInfo {
        name: "dumbbell",
        title: "two switches with hosts and the bottleneck between them",
        link_sets: &["host-links", "tor-downlinks", "all-switch-links", "bottleneck"],
    },
    TopologyInfo {
        name: "parking-lot",
        title: "a line of switches, each with hosts",
        link_sets: &["host-links", "tor-downlinks", "all-switch-links", "bottleneck"],
    },
    TopologyInfo {
        name: "leaf-spine",
        title: "every leaf connected to every spine",
        link_sets: &["host-links", "tor-downlinks", "tor-uplinks", "all-switch-links"],
    },
    TopologyInfo {
        name: "fat-tree",
        title: "pods of ToR and aggregation switches under a core (PowerTCP section 4.1)",
        link_sets: &["host-links", "tor-downlinks", "tor-uplinks", "agg-uplinks", "all-switch-links"],
    },
    TopologyInfo {
        name: "fat-tree-k",
        title: "the fat-tree of k-port switches",
        link_sets: &["host-links", "tor-downlinks", "tor-uplinks", "agg-uplinks", "all-switch-links"],
    },
    TopologyInfo {
        name: "asymmetric",
        title: "slow and fast senders behind equal links to one receiver (RoCC Fig. 12b)",
        link_sets: &["host-links", "tor-downlinks", "all-switch-links", "bottleneck"],
    },
    TopologyInfo {
        name: "rdcn",
        title: "ToRs under a packet switch and an optical one that connects them in turn (PowerTCP section 5)",
        link_sets: &["host-links", "tor-downlinks", "tor-uplinks", "all-switch-links", "circuits"],
    },
    TopologyInfo {
        name: "rail",
        title: "servers of GPUs, where GPUs of the same number share leaves, under spines (rail-optimised, single ToR)",
        link_sets: SETS_OF_SERVERS,
    },
    TopologyInfo {
        name: "dcn+",
        title: "servers of GPUs, where all GPUs of a server share a leaf, under spines (Alibaba's DCN+)",
        link_sets: SETS_OF_SERVERS,
    },
    TopologyInfo {
        name: "hpn",
        title: "rails whose NICs have two ports, each on a leaf of its own, under two planes of spines (Alibaba's HPN)",
        link_sets: SETS_OF_SERVERS,
    },
    TopologyInfo {
        name: "dragonfly",
        title: "groups of switches, each linked to every other of its group, with links between all groups",
        link_sets: &["host-links", "tor-downlinks", "all-switch-links", "global-links"],
    },
    TopologyInfo {
        name: "file",
        title: "a topology.txt of the HPCC and PowerTCP ns-3 code",
        link_sets: &["host-links", "tor-downlinks", "tor-uplinks", "agg-uplinks", "all-switch-links"],
    },
];

#[cfg(test)]
pub(crate) mod tests;
