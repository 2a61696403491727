//! The partition of a network into parts, each of which a thread simulates.
//!
//! A rack, which is a switch with its hosts, is never cut. Neither are links without delay, links with faults, and
//! nodes that affect each other without a packet in between (links that go down together, flows that start after
//! others). Among the remaining pieces, whole pods (connected components without the uppermost tier) stay together if
//! their loads can be spread evenly, because most links are within them. The heaviest piece is assigned first, to the
//! part with the least load.

use crate::config::{SimConfig, Trigger};
use crate::core::mode::one_part;
use crate::ids::{NodeId, PortId};
use crate::table::Table;
use crate::topology::{Tier, Topology};

/// Look-ahead of a network that has no link to cut, in picoseconds.
const ONE_PIECE_PS: u64 = 1_000_000;
/// Largest ratio of a part's load to the mean load at which pods stay together.
const UNEVEN: f64 = 1.1;

/// The parts of a network.
pub(in crate::core) struct Partition {
    /// Number of parts.
    pub(in crate::core) n_parts: usize,
    /// The part of each node.
    pub(in crate::core) of_node: Table<NodeId, u16>,
    /// Least delay of a link that is cut, in picoseconds: an event in one part affects no other part before that time
    /// is over.
    pub(in crate::core) cut_ps: u64,
    /// Least delay of a link that could be cut, whether or not it is, in picoseconds.
    pub(in crate::core) lookahead_ps: u64,
}

impl Partition {
    /// Divides the nodes, with the given `loads`, into at most `most` parts.
    pub(in crate::core) fn new(config: &SimConfig, loads: &Table<NodeId, u64>, most: usize) -> Self {
        let topology = &config.topology;
        let mut racks = Sets::new(topology.nodes.len());
        join_inseparable(config, &mut racks);
        let is_cuttable = |racks: &mut Sets, link: &crate::topology::Link| racks.root(link.a) != racks.root(link.b);
        let delays = topology.links.iter().filter(|link| is_cuttable(&mut racks, link)).map(|link| link.delay.as_ps());
        let lookahead_ps = delays.min().unwrap_or(ONE_PIECE_PS);
        let most = if one_part(config).is_empty() { most } else { 1 };
        let mut pods = racks.clone();
        let top = topology.nodes.iter().map(|node| rank(node.tier)).max().unwrap_or(0);
        for link in &topology.links {
            let is_below = |node: NodeId| rank(topology.nodes[node.index()].tier) < top;
            if is_below(link.a) && is_below(link.b) {
                pods.join(link.a, link.b);
            }
        }
        let (mut of_node, heaviest) = spread(&mut pods, loads, most);
        let mean = loads.iter().sum::<u64>() as f64 / most as f64;
        if mean * UNEVEN < heaviest as f64 {
            let (by_rack, heaviest_by_rack) = spread(&mut racks, loads, most);
            if heaviest_by_rack < heaviest {
                of_node = by_rack;
            }
        }
        let n_parts = of_node.iter().max().map_or(1, |&last| usize::from(last) + 1);
        let is_cut = |link: &&crate::topology::Link| of_node[link.a] != of_node[link.b];
        let cut_ps = topology.links.iter().filter(is_cut).map(|link| link.delay.as_ps()).min().unwrap_or(u64::MAX);
        Self { n_parts, of_node, cut_ps, lookahead_ps }
    }
}

/// Joins the nodes that have to be in one part.
fn join_inseparable(config: &SimConfig, racks: &mut Sets) {
    let topology = &config.topology;
    for link in &topology.links {
        let has_host = topology.is_host(link.a) || topology.is_host(link.b);
        if has_host || link.delay.as_ps() == 0 {
            racks.join(link.a, link.b);
        }
    }
    for fault in &config.faults {
        let ends = |&port: &PortId| (topology.from(port), topology.to(port));
        for (from, to) in fault.ports.iter().map(ends) {
            racks.join(from, to);
        }
        // All links of a flap go down at the same time, and all of a fault change their rates.
        if fault.flap.is_some() || fault.changes_rate() {
            for pair in fault.ports.windows(2) {
                racks.join(topology.from(pair[0]), topology.from(pair[1]));
            }
        }
    }
    // Flows of a host at one of its end points wait for flows at the others.
    if config.starts_across_ends() {
        topology.end_points().for_each(|end| racks.join(end, topology.nic(end)));
    }
    for flow in &config.flows {
        if let Trigger::After(before, _) = flow.trigger {
            racks.join(flow.src, config.flows[before.index()].src);
        }
    }
}

/// Returns the level of a tier; hosts are at 0.
fn rank(tier: Tier) -> u8 {
    match tier {
        Tier::Host => 0,
        Tier::Tor => 1,
        Tier::Aggregation => 2,
        Tier::Core => 3,
    }
}

/// Assigns every set to one of at most `most` parts; returns the part of every node, and the load of the heaviest part.
fn spread(sets: &mut Sets, loads: &Table<NodeId, u64>, most: usize) -> (Table<NodeId, u16>, u64) {
    let n = loads.len();
    let mut load_of: Table<NodeId, u64> = vec![0; n].into();
    for (node, load) in loads.numbered() {
        // A node without load takes a little memory all the same.
        load_of[sets.root(node)] += load + 1;
    }
    let mut pieces: Vec<NodeId> = load_of.numbers().filter(|&node| 0 < load_of[node]).collect();
    pieces.sort_by_key(|&piece| (std::cmp::Reverse(load_of[piece]), piece));
    let mut parts = vec![0_u64; most.min(pieces.len()).max(1)];
    let mut part_of: Table<NodeId, u16> = vec![0; n].into();
    for piece in pieces {
        let (part, load) = parts.iter_mut().enumerate().min_by_key(|(_, load)| **load).expect("there is a part");
        *load += load_of[piece];
        part_of[piece] = part as u16;
    }
    let of_node = loads.numbers().map(|node| part_of[sets.root(node)]).collect();
    (of_node, parts.into_iter().max().unwrap_or(0))
}

/// Disjoint sets of nodes.
#[derive(Clone)]
struct Sets {
    parent: Table<NodeId, NodeId>,
}

impl Sets {
    fn new(n: usize) -> Self {
        Self { parent: (0..n as u32).map(NodeId).collect() }
    }

    /// Returns the lowest node of the set that `node` is in.
    fn root(&mut self, node: NodeId) -> NodeId {
        let mut at = node;
        while self.parent[at] != at {
            let up = self.parent[self.parent[at]];
            self.parent[at] = up;
            at = up;
        }
        at
    }

    fn join(&mut self, a: NodeId, b: NodeId) {
        let (a, b) = (self.root(a), self.root(b));
        self.parent[a.max(b)] = a.min(b);
    }
}

/// Returns the load of each node: the packets it puts onto links for `flows`, each given as a number of packets and a
/// path.
pub(in crate::core) fn loads<P>(topology: &Topology, flows: impl Iterator<Item = (u64, P)>) -> Table<NodeId, u64>
where
    P: Iterator<Item = PortId>,
{
    let mut loads: Table<NodeId, u64> = vec![0; topology.nodes.len()].into();
    for (packets, path) in flows {
        for port in path {
            let load = &mut loads[topology.from(port)];
            *load = load.saturating_add(packets);
        }
    }
    loads
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_heaviest_go_first_to_the_part_with_the_least() {
        let mut sets = Sets::new(6);
        sets.join(NodeId(0), NodeId(1));
        sets.join(NodeId(3), NodeId(2));
        // Loads 9, 7, 4, 3 with one more a node: 11, 9, 5, 4 in {0, 1}, {2, 3}, {4}, {5}.
        let (of_node, heaviest) = spread(&mut sets, &vec![4, 5, 3, 4, 4, 3].into(), 2);
        assert_eq!(*of_node, [0, 0, 1, 1, 1, 0]);
        assert_eq!(heaviest, 15);
        assert_eq!(*spread(&mut sets, &vec![0; 6].into(), 9).0, [0, 0, 1, 1, 2, 3], "no more parts than pieces");
    }
}
