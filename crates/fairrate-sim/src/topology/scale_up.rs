//! Scale-up networks: the GPUs of a server around a switch of their own, as with NVSwitch.
//!
//! A host has one link. So a GPU is a pair of end points, which work independently of each other as the DMA engines of
//! a machine do: a host on the scale-out network, its NIC, and a host on the scale-up network of its server. Messages
//! between GPUs of a server go between the latter, all others between NICs. No path leads from one network to the
//! other.

use fairrate_units::{Rate, Time};

use super::build;
use super::{Link, Node, Tier, Topology};
use crate::ids::{NodeId, PortId};
use crate::input_error::FieldError;

/// The parameters of scale-up networks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScaleUp {
    /// Number of GPUs in a server.
    pub size: u32,
    /// Rate of each direction of the link between a GPU and its switch.
    pub rate: Rate,
    /// Delay of these links.
    pub delay: Time,
}

/// The servers of a network: each has `size` hosts that follow each other, and a scale-up network for them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Servers {
    size: usize,
    /// The NICs, ascending.
    nics: Vec<NodeId>,
    /// The first of the end points on scale-up networks, which are in the order of their NICs.
    first_end: NodeId,
}

impl ScaleUp {
    /// Checks the parameters.
    ///
    /// # Errors
    /// Names the first parameter that cannot be used.
    pub fn check(&self) -> Result<(), FieldError> {
        if self.size < 2 {
            return Err(FieldError::new("size", "a scale-up network joins at least 2 GPUs"));
        }
        build::size("size", &[self.size])?;
        build::rate("rate", self.rate)?;
        build::delay("delay", self.delay)
    }
}

impl Topology {
    /// Makes servers of the hosts, of `size` each in their order: adds an end point called `h3.up` for every host `h3`,
    /// and the switches `nvswitch0` ..., one for each server.
    ///
    /// # Panics
    /// The hosts do not fill servers.
    pub fn add_servers(&mut self, scale_up: &ScaleUp) {
        let size = scale_up.size as usize;
        let nics: Vec<NodeId> = self.hosts().collect();
        assert!(nics.len().is_multiple_of(size), "hosts fill servers");
        let (first_end, n_servers) = (NodeId(self.nodes.len() as u32), nics.len() / size);
        for (at, nic) in nics.iter().enumerate() {
            let name = format!("{}.up", self.nodes[nic.index()].name);
            self.nodes.push(Node { name, tier: Tier::Host, rack: (at / size) as u32 });
        }
        let first_switch = self.nodes.len();
        let switch = |server| Node { name: format!("nvswitch{server}"), tier: Tier::Tor, rack: 0 };
        self.nodes.extend((0..n_servers).map(switch));
        let first_link = self.links.len();
        for at in 0..nics.len() {
            let (a, b) = (NodeId(first_end.0 + at as u32), NodeId((first_switch + at / size) as u32));
            self.links.push(Link { a, b, rate: scale_up.rate, delay: scale_up.delay });
        }
        let ports = (2 * first_link..2 * self.links.len()).map(|port| PortId(port as u32));
        self.link_sets.insert("scale-up-links".to_owned(), ports.collect());
        self.servers = Some(Servers { size, nics, first_end });
    }

    /// Returns `true` if a node is the end point of a GPU on a scale-up network.
    pub fn is_scale_up(&self, node: NodeId) -> bool {
        self.servers.as_ref().is_some_and(|servers| servers.at_end(node).is_some())
    }

    /// Returns `true` if a node is the switch of a scale-up network.
    pub fn is_server_switch(&self, node: NodeId) -> bool {
        self.servers.as_ref().is_some_and(|servers| {
            let first = servers.first_end.index() + servers.nics.len();
            (first..first + servers.n_servers()).contains(&node.index())
        })
    }

    /// Returns the end point on a scale-up network of the GPU with this NIC, if it has one.
    pub fn scale_up_end(&self, nic: NodeId) -> Option<NodeId> {
        let servers = self.servers.as_ref()?;
        Some(NodeId(servers.first_end.0 + servers.at(nic)? as u32))
    }

    /// Returns the server of the GPU with this NIC, if servers have scale-up networks.
    pub fn server(&self, nic: NodeId) -> Option<u32> {
        let servers = self.servers.as_ref()?;
        Some((servers.at(nic)? / servers.size) as u32)
    }

    /// Returns the place of that GPU in its server, and its server.
    pub fn place_in_server(&self, nic: NodeId) -> Option<(u32, u32)> {
        let servers = self.servers.as_ref()?;
        let (at, size) = (servers.at(nic)?, servers.size);
        Some(((at % size) as u32, (at / size) as u32))
    }

    /// Returns the end points between which messages go from the GPU with one NIC to the GPU with another.
    pub fn ends_between(&self, from: NodeId, to: NodeId) -> (NodeId, NodeId) {
        let is_inside = from != to && self.server(from).is_some() && self.server(from) == self.server(to);
        match (self.scale_up_end(from), self.scale_up_end(to)) {
            (Some(from), Some(to)) if is_inside => (from, to),
            _ => (from, to),
        }
    }
}

impl Servers {
    /// Returns the number of GPUs in a server.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Returns the number of servers.
    pub fn n_servers(&self) -> usize {
        self.nics.len() / self.size
    }

    /// Returns the position of a NIC among all of them.
    fn at(&self, nic: NodeId) -> Option<usize> {
        // Hosts come first in most networks.
        if self.nics.get(nic.index()) == Some(&nic) { Some(nic.index()) } else { self.nics.binary_search(&nic).ok() }
    }

    /// Returns the NIC of the GPU with this end point on a scale-up network.
    pub(super) fn nic_of(&self, end: NodeId) -> Option<NodeId> {
        Some(self.nics[self.at_end(end)?])
    }

    /// Returns the position of an end point on a scale-up network.
    fn at_end(&self, end: NodeId) -> Option<usize> {
        end.0.checked_sub(self.first_end.0).map(|at| at as usize).filter(|&at| at < self.nics.len())
    }
}

#[cfg(test)]
mod tests {
    use super::super::Star;
    use super::*;

    #[test]
    fn a_gpu_is_a_pair_of_end_points() {
        let mut t = Star { hosts: 6, rate: Rate::from_gbps(400), delay: Time::from_ns(500) }.build();
        t.add_servers(&ScaleUp { size: 3, rate: Rate::from_gbps(2_880), delay: Time::from_ns(25) });
        let node = |name: &str| t.node(name).expect("it is there");
        assert_eq!((t.nodes.len(), t.links.len()), (6 + 1 + 6 + 2, 12));
        assert_eq!((t.hosts().count(), t.end_points().count()), (6, 12));
        let switches = ["sw0", "nvswitch0", "nvswitch1", "h5.up"].map(|name| t.is_server_switch(node(name)));
        assert_eq!(switches, [false, true, true, false]);
        assert_eq!(t.scale_up_end(node("h4")), Some(node("h4.up")));
        assert_eq!(
            (t.nic(node("h4.up")), t.nic(node("h4")), t.nic(node("sw0"))),
            (node("h4"), node("h4"), node("sw0"))
        );
        assert_eq!((t.server(node("h2")), t.server(node("h3")), t.server(node("sw0"))), (Some(0), Some(1), None));
        assert_eq!(t.ends_between(node("h3"), node("h5")), (node("h3.up"), node("h5.up")));
        assert_eq!(t.ends_between(node("h2"), node("h3")), (node("h2"), node("h3")));
        let of_set = |set: &str| t.link_sets[set].len();
        assert_eq!((of_set("host-links"), of_set("tor-downlinks"), of_set("scale-up-links")), (6, 6, 12));
    }
}
