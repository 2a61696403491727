//! Common code of the shapes: collecting nodes and links, naming link sets, checking parameters.

use std::collections::BTreeMap;

use fairrate_units::{Rate, Time};

use super::{HostQueues, Link, LongLinks, Node, SecondPorts, Tier, Topology};
use crate::ids::{NodeId, PortId};
use crate::input_error::FieldError;

/// The nodes and links of a network under construction.
#[derive(Default)]
pub(super) struct Builder {
    nodes: Vec<Node>,
    links: Vec<Link>,
}

impl Builder {
    /// Adds `per_rack` hosts to each of `racks` racks.
    pub(super) fn racks(&mut self, racks: u32, per_rack: u32) {
        for rack in 0..racks {
            self.hosts(rack, per_rack);
        }
    }

    /// Adds `n` hosts to a rack.
    pub(super) fn hosts(&mut self, rack: u32, n: u32) -> Vec<NodeId> {
        (0..n).map(|_| self.node(format!("h{}", self.nodes.len()), Tier::Host, rack)).collect()
    }

    /// Adds `n` switches called `prefix0`, `prefix1` ...
    pub(super) fn switches(&mut self, n: u32, prefix: &str, tier: Tier) -> Vec<NodeId> {
        (0..n).map(|i| self.node(format!("{prefix}{i}"), tier, 0)).collect()
    }

    /// Adds a node.
    pub(super) fn node(&mut self, name: String, tier: Tier, rack: u32) -> NodeId {
        let id = NodeId(self.nodes.len() as u32);
        self.nodes.push(Node { name, tier, rack });
        id
    }

    /// Adds a link.
    pub(super) fn link(&mut self, a: NodeId, b: NodeId, rate: Rate, delay: Time) {
        self.links.push(Link { a, b, rate, delay });
    }

    /// Links every host to the switch of its rack.
    pub(super) fn host_links(&mut self, tors: &[NodeId], rate: Rate, delay: Time) {
        for i in 0..self.nodes.len() {
            if self.nodes[i].tier == Tier::Host {
                let tor = tors[self.nodes[i].rack as usize];
                self.link(NodeId(i as u32), tor, rate, delay);
            }
        }
    }

    /// Links each of the switches `below` to each of those `above`.
    pub(super) fn mesh(&mut self, below: &[NodeId], above: &[NodeId], rate: Rate, delay: Time) {
        for &a in below {
            for &b in above {
                self.link(a, b, rate, delay);
            }
        }
    }

    /// Returns the finished network. `bottleneck` lists the links, as positions, whose `a` to `b` direction is the
    /// bottleneck by design.
    pub(super) fn finish(self, bottleneck: &[usize]) -> Topology {
        let Self { mut nodes, mut links } = self;
        nodes.shrink_to_fit();
        links.shrink_to_fit();
        let link_sets = BTreeMap::new();
        let mut topology = Topology {
            nodes,
            links,
            link_sets,
            error_rates: Vec::new(),
            long_links: LongLinks::default(),
            host_queues: HostQueues::default(),
            second_ports: SecondPorts::default(),
            circuits: None,
            servers: None,
        };
        topology.link_sets = sets_of_links(&topology);
        if !bottleneck.is_empty() {
            let ports = bottleneck.iter().map(|&link| PortId(2 * link as u32)).collect();
            topology.link_sets.insert("bottleneck".to_owned(), ports);
        }
        topology
    }

    /// Returns the number of nodes so far.
    pub(super) fn n_nodes(&self) -> u32 {
        self.nodes.len() as u32
    }

    /// Returns the number of links so far.
    pub(super) fn n_links(&self) -> usize {
        self.links.len()
    }
}

/// Returns the link sets that follow from the tiers.
fn sets_of_links(topology: &Topology) -> BTreeMap<String, Vec<PortId>> {
    let mut sets: BTreeMap<String, Vec<PortId>> = BTreeMap::new();
    for port in (0..topology.n_ports() as u32).map(PortId) {
        let tier = |node: NodeId| topology.nodes[node.index()].tier;
        let mut add = |set: &str| sets.entry(set.to_owned()).or_default().push(port);
        match (tier(topology.from(port)), tier(topology.to(port))) {
            (Tier::Host, _) => add("host-links"),
            (_, Tier::Host) => add("tor-downlinks"),
            (from, to) => {
                add("all-switch-links");
                match (from, to) {
                    (Tier::Tor, Tier::Aggregation | Tier::Core) => add("tor-uplinks"),
                    (Tier::Aggregation, Tier::Core) => add("agg-uplinks"),
                    _ => {}
                }
            }
        }
    }
    sets.values_mut().for_each(Vec::shrink_to_fit);
    sets
}

/// Largest number of hosts and switches: the limit of dense ids and routing tables.
pub const NODES_MAX: u64 = 100_000;
/// Rate of the slowest link.
pub(super) const RATE_MIN: Rate = Rate::from_bps(1_000);
/// Rate of the fastest link: above it a byte takes less than a picosecond.
pub(super) const RATE_MAX: Rate = Rate::from_gbps(8_000);
/// Longest propagation delay.
pub(super) const DELAY_MAX: Time = Time::from_ms(1_000);

/// Checks that `n` is at least one.
pub(super) fn positive(field: &'static str, n: u32) -> Result<(), FieldError> {
    if n == 0 {
        return Err(FieldError::new(field, format!("`{field}` must be at least 1")));
    }
    Ok(())
}

/// Checks a link rate.
pub(super) fn rate(field: &'static str, rate: Rate) -> Result<(), FieldError> {
    if (RATE_MIN..=RATE_MAX).contains(&rate) {
        return Ok(());
    }
    Err(FieldError::new(field, format!("`{field}` of {rate} is no link rate"))
        .help(format!("write a rate from {RATE_MIN} to {RATE_MAX}")))
}

/// Checks a propagation delay.
pub(super) fn delay(field: &'static str, delay: Time) -> Result<(), FieldError> {
    if delay <= DELAY_MAX {
        return Ok(());
    }
    Err(FieldError::new(field, format!("`{field}` of {delay} is no link delay"))
        .help(format!("write a time up to {DELAY_MAX}")))
}

/// Checks the number of nodes, the product of `counts`.
pub(super) fn size(field: &'static str, counts: &[u32]) -> Result<(), FieldError> {
    let n = counts.iter().fold(1u64, |n, &count| n.saturating_mul(u64::from(count)));
    if n <= NODES_MAX {
        return Ok(());
    }
    Err(FieldError::new(field, format!("`{field}` makes {n} nodes")).help(format!("up to {NODES_MAX} are possible")))
}
