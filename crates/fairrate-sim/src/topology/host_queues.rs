//! Queues of hosts: each host sends through a queue like those of switches, and not straight into its link.

use std::collections::BTreeMap;

use fairrate_units::{Rate, Time};

use super::build::RATE_MAX;
use super::{Link, Node, Tier, Topology};
use crate::ids::{NodeId, PortId};

/// Rate at which a host fills its queue, over that of its link.
const FILLING: u64 = 100;
/// Delay from a host to its queue; the engine needs one above zero.
const DELAY: Time = Time::from_ns(1);

/// The queues of hosts: the host of each and the rate of its link, by the queue's node. Without any, the packets of a
/// flow wait in the flow until the NIC takes them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostQueues(BTreeMap<NodeId, (NodeId, Rate)>);

impl HostQueues {
    /// Returns `true` if hosts have no queues.
    pub fn are_none(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the host whose queue a node is.
    pub fn host_of(&self, node: NodeId) -> Option<NodeId> {
        self.0.get(&node).map(|&(host, _)| host)
    }
}

impl Topology {
    /// Puts a queue between each host and its link: the node `h3-nic` of the host `h3`. The link keeps its ports and
    /// its place in link sets, and begins at the queue. The host fills the queue a hundred times as fast, at 8 Tb/s at
    /// most.
    pub fn queue_hosts(&mut self) {
        for position in 0..self.links.len() {
            let Link { a, b, rate, .. } = self.links[position];
            let Some(host) = [a, b].into_iter().find(|&end| self.is_host(end)) else { continue };
            let name = format!("{}-nic", self.nodes[host.index()].name);
            let queue = NodeId(self.nodes.len() as u32);
            self.nodes.push(Node { name, tier: Tier::Nic, rack: 0 });
            let link = &mut self.links[position];
            *(if a == host { &mut link.a } else { &mut link.b }) = queue;
            let filling = Rate::from_bps(rate.as_bps().saturating_mul(FILLING)).min(RATE_MAX);
            self.links.push(Link { a: host, b: queue, rate: filling, delay: DELAY });
            self.host_queues.0.insert(queue, (host, rate));
        }
    }

    /// Returns `true` if a node is the queue of a host.
    pub fn is_queue(&self, node: NodeId) -> bool {
        self.host_queues.0.contains_key(&node)
    }

    /// Returns the link of a port as buffers count it: one between a host and its queue has the rate of the link behind
    /// the queue, since no more than that comes in or goes out for long.
    pub fn buffered_link(&self, port: PortId) -> Link {
        let link = *self.link(port);
        let inside = self.host_queues.0.get(&link.b).filter(|&&(host, _)| host == link.a);
        Link { rate: inside.map_or(link.rate, |&(_, rate)| rate), ..link }
    }

    /// Returns the links between hosts or their queues and switches, and between switches.
    pub fn wires(&self) -> impl Iterator<Item = &Link> {
        self.links.iter().filter(|link| !self.is_inside(link))
    }

    /// Returns `true` if a link is that between a host and its queue.
    fn is_inside(&self, link: &Link) -> bool {
        self.host_queues.host_of(link.b) == Some(link.a)
    }

    /// Returns each end point with the link that it, or its queue, has to a switch.
    pub fn host_links(&self) -> impl Iterator<Item = (NodeId, &Link)> {
        let host_of = |end: NodeId| if self.is_host(end) { Some(end) } else { self.host_queues.host_of(end) };
        self.wires().filter_map(move |link| Some(([link.a, link.b].into_iter().find_map(host_of)?, link)))
    }

    /// Returns the rate of the link behind each queue, by host.
    pub(crate) fn queued_rates(&self) -> BTreeMap<NodeId, Rate> {
        let is_queued = |link: &Link| ![link.a, link.b].into_iter().any(|end| self.is_host(end));
        self.host_links().filter(|(_, link)| is_queued(link)).map(|(host, link)| (host, link.rate)).collect()
    }

    /// Returns `true` if a link ends at a host or at its queue.
    pub(crate) fn is_at_host(&self, link: &Link) -> bool {
        [link.a, link.b].into_iter().any(|end| self.nodes[end.index()].tier <= Tier::Nic)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::routing::Routes;
    use crate::topology::LeafSpine;

    #[test]
    fn links_of_hosts_begin_at_their_queues() {
        let gbps = Rate::from_gbps;
        let shape = LeafSpine {
            spines: 2,
            leaves: 2,
            hosts_per_leaf: 2,
            host_rate: gbps(10),
            host_delay: Time::from_us(3),
            uplink_rate: gbps(40),
            uplink_delay: Time::from_us(1),
        };
        let plain = shape.build();
        let mut topology = shape.build();
        topology.queue_hosts();
        assert_eq!(topology.nodes.len(), plain.nodes.len() + 4);
        assert_eq!(topology.link_sets, plain.link_sets);
        let names = |topology: &Topology, set: &str| -> Vec<String> {
            topology.link_sets[set].iter().map(|&port| topology.port_name(port)).collect()
        };
        assert_eq!(names(&topology, "host-links")[..2], ["h0-nic->tor0", "h1-nic->tor0"]);
        assert_eq!(names(&topology, "tor-downlinks")[3], "tor1->h3-nic");
        assert_eq!(names(&topology, "tor-uplinks"), names(&plain, "tor-uplinks"));
        // The link of each host is the one it had, at its rate; a path has one link more at either end.
        let links: Vec<(NodeId, Rate)> = topology.host_links().map(|(host, link)| (host, link.rate)).collect();
        assert_eq!(links, plain.host_links().map(|(host, link)| (host, link.rate)).collect::<Vec<_>>());
        let routes = Routes::new(&topology);
        assert_eq!(routes.distance(NodeId(0), NodeId(3)), Some(6));
        assert_eq!(routes.host_port(NodeId(1)), Some(PortId(2 * (plain.links.len() as u32 + 1))));
        let inner = topology.link(routes.host_port(NodeId(1)).unwrap());
        assert_eq!((inner.rate, inner.delay), (gbps(1_000), Time::from_ns(1)));
    }
}
