//! Hosts added to a shape: a central allocator and its intermediaries.

use fairrate_units::{Rate, Time};

use super::{Link, Node, Tier, Topology};
use crate::ids::NodeId;

impl Topology {
    /// Adds a host called `allocator` with a link to each switch of the highest tier. As a host has only one link, the
    /// links end at an additional switch, `allocator-nic`; the link between the two has the sum of their rates, and
    /// `host_delay`.
    pub fn attach_allocator(&mut self, rate: Rate, delay: Time, host_delay: Time) -> NodeId {
        let height = |tier: Tier| match tier {
            Tier::Host => 0,
            Tier::Nic => 1,
            Tier::Tor => 2,
            Tier::Aggregation => 3,
            Tier::Core => 4,
        };
        let top = self.nodes.iter().map(|node| height(node.tier)).max().unwrap_or(0);
        let nodes = (0u32..).zip(&self.nodes);
        let highest: Vec<NodeId> = nodes.filter(|(_, n)| height(n.tier) == top).map(|(i, _)| NodeId(i)).collect();
        let nic = self.add_node("allocator-nic", Tier::Core);
        for switch in &highest {
            self.links.push(Link { a: nic, b: *switch, rate, delay });
        }
        let together = Rate::from_bps(rate.as_bps() * highest.len() as u64);
        self.attach_host("allocator", nic, together, host_delay)
    }

    /// Adds a host called `name`, linked to `switch`.
    pub fn attach_host(&mut self, name: &str, switch: NodeId, rate: Rate, delay: Time) -> NodeId {
        let host = self.add_node(name, Tier::Host);
        self.links.push(Link { a: host, b: switch, rate, delay });
        host
    }

    fn add_node(&mut self, name: &str, tier: Tier) -> NodeId {
        self.nodes.push(Node { name: name.to_owned(), tier, rack: 0 });
        NodeId((self.nodes.len() - 1) as u32)
    }

    /// Returns the switches to which hosts are connected.
    pub fn tors(&self) -> Vec<NodeId> {
        let nodes = (0u32..).zip(&self.nodes);
        nodes.filter(|(_, n)| n.tier == Tier::Tor).map(|(i, _)| NodeId(i)).collect()
    }
}
