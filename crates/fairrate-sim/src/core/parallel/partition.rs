//! The partition of a network into parts, each of which a thread simulates.
//!
//! A rack, which is a switch with its hosts, is never cut. Neither are links without delay, links with faults, and
//! nodes that affect each other without a packet in between (links that go down together, flows that start after
//! others). Among the remaining pieces, whole pods (connected components without the uppermost tier) stay together if
//! that is expected to be faster: links within them are often shorter, so parts would meet more often, but racks can be
//! spread more evenly. The heaviest piece is assigned first, to the part with the least load.
//!
//! Where servers have scale-up networks it is these that are never cut. Their NICs may be in another part than the
//! switches of the racks, and pods do not stay together: the servers of a pod are often one stage of a pipeline, which
//! has nothing to do while another stage works, so that parts of whole pods would take turns. With faults racks and
//! pods stay whole there too: else an observer would see what links lose in another order than on one thread.

use crate::config::{SimConfig, Trigger};
use crate::core::mode::one_part;
use crate::ids::{NodeId, PortId};
use crate::table::Table;
use crate::topology::{Link, Tier, Topology};

/// Look-ahead of a network that has no link to cut, in picoseconds.
const ONE_PIECE_PS: u64 = 1_000_000;
/// Nanoseconds that a packet takes for each link (`HOP_NS`), and more for a link between parts in either of them
/// (`CROSSING_NS`).
const HOP_NS: f64 = 90.0;
const CROSSING_NS: f64 = 40.0;
/// Nanoseconds that a window takes besides its packets, and more for each part: meetings and mail.
const WINDOW_NS: [f64; 2] = [5_000.0, 500.0];

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
    /// Divides the nodes into at most `most` parts, so that a run with the traffic that `expect` returns takes little
    /// time.
    pub(in crate::core) fn new(config: &SimConfig, expect: impl FnOnce() -> Expected, most: usize) -> Self {
        let topology = &config.topology;
        let mut pieces = Sets::new(topology.nodes.len());
        join_inseparable(config, &mut pieces);
        let by_server = topology.servers.is_some() && config.faults.is_empty();
        if by_server {
            join_servers(topology, &mut pieces);
        } else {
            join_hosts(topology, &mut pieces);
        }
        let mut racks = pieces.clone();
        join_hosts(topology, &mut racks);
        let is_cuttable = |racks: &mut Sets, link: &Link| racks.root(link.a) != racks.root(link.b);
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
        let mut of_node: Table<NodeId, u16> = vec![0; topology.nodes.len()].into();
        if 1 < most {
            let expected = expect();
            let loads = expected.of_nodes(topology);
            of_node = spread(&mut pieces, &loads, most);
            if !by_server {
                let by_pod = spread(&mut pods, &loads, most);
                let ns = |of_node| expected.ns(topology, of_node);
                of_node = if ns(&of_node) < ns(&by_pod) { of_node } else { by_pod };
            }
        }
        let (n_parts, cut_ps) = (n_parts(&of_node), cut_ps(topology, &of_node));
        Self { n_parts, of_node, cut_ps, lookahead_ps }
    }
}

/// Joins each host with the switches it is at.
fn join_hosts(topology: &Topology, sets: &mut Sets) {
    topology.links.iter().filter(|link| topology.is_at_host(link)).for_each(|link| sets.join(link.a, link.b));
}

/// Joins each host with the switch of its server, and with no other.
fn join_servers(topology: &Topology, sets: &mut Sets) {
    let is_inside = |link: &&Link| [link.a, link.b].iter().any(|&at| topology.is_scale_up(at));
    let links = topology.links.iter().filter(|link| topology.is_at_host(link));
    links.filter(is_inside).for_each(|link| sets.join(link.a, link.b));
}

/// Joins the nodes that affect each other at once.
fn join_inseparable(config: &SimConfig, sets: &mut Sets) {
    let topology = &config.topology;
    for link in topology.links.iter().filter(|link| link.delay.as_ps() == 0) {
        sets.join(link.a, link.b);
    }
    for fault in &config.faults {
        let ends = |&port: &PortId| (topology.from(port), topology.to(port));
        for (from, to) in fault.ports.iter().map(ends) {
            sets.join(from, to);
        }
        // All links of a flap go down at the same time, and all of a fault change their rates.
        if fault.flap.is_some() || fault.changes_rate() {
            for pair in fault.ports.windows(2) {
                sets.join(topology.from(pair[0]), topology.from(pair[1]));
            }
        }
    }
    // Flows of a host at one of its end points wait for flows at the others.
    if config.starts_across_ends() {
        topology.end_points().for_each(|end| sets.join(end, topology.nic(end)));
    }
    for flow in &config.flows {
        if let Trigger::After(before, _) = flow.trigger {
            sets.join(flow.src, config.flows[before.index()].src);
        }
    }
}

/// Returns the level of a tier; hosts are at 0.
fn rank(tier: Tier) -> u8 {
    match tier {
        Tier::Host => 0,
        Tier::Nic => 1,
        Tier::Tor => 2,
        Tier::Aggregation => 3,
        Tier::Core => 4,
    }
}

/// Returns the number of parts that nodes are in.
fn n_parts(of_node: &Table<NodeId, u16>) -> usize {
    of_node.iter().max().map_or(1, |&last| usize::from(last) + 1)
}

/// Returns the least delay of a link between two parts in picoseconds; `u64::MAX`: there is none.
fn cut_ps(topology: &Topology, of_node: &Table<NodeId, u16>) -> u64 {
    let is_cut = |link: &&Link| of_node[link.a] != of_node[link.b];
    topology.links.iter().filter(is_cut).map(|link| link.delay.as_ps()).min().unwrap_or(u64::MAX)
}

/// The traffic that is expected in a run.
pub(in crate::core) struct Expected {
    /// Number of packets that each port sends.
    pub(in crate::core) of_ports: Table<PortId, u64>,
    /// Simulated time in picoseconds.
    pub(in crate::core) duration_ps: u64,
}

impl Expected {
    /// Returns the number of packets that each node sends.
    fn of_nodes(&self, topology: &Topology) -> Table<NodeId, u64> {
        let mut loads: Table<NodeId, u64> = vec![0; topology.nodes.len()].into();
        for (port, &packets) in self.of_ports.numbered() {
            let load = &mut loads[topology.from(port)];
            *load = load.saturating_add(packets);
        }
        loads
    }

    /// Returns the nanoseconds that the run takes with a thread for each part: those of the part with the largest load,
    /// and those of windows.
    fn ns(&self, topology: &Topology, of_node: &Table<NodeId, u16>) -> f64 {
        let mut parts_ns = vec![0.0; n_parts(of_node)];
        for (port, &packets) in self.of_ports.numbered() {
            let [from, to] = [topology.from(port), topology.to(port)].map(|node| usize::from(of_node[node]));
            parts_ns[from] += packets as f64 * HOP_NS;
            if from != to {
                for part in [from, to] {
                    parts_ns[part] += packets as f64 * CROSSING_NS;
                }
            }
        }
        let n_windows = self.duration_ps as f64 / cut_ps(topology, of_node) as f64;
        let window_ns = WINDOW_NS[0] + WINDOW_NS[1] * parts_ns.len() as f64;
        parts_ns.into_iter().fold(0.0, f64::max) + n_windows * window_ns
    }
}

/// Assigns every set to one of at most `most` parts; returns the part of every node.
fn spread(sets: &mut Sets, loads: &Table<NodeId, u64>, most: usize) -> Table<NodeId, u16> {
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
    loads.numbers().map(|node| part_of[sets.root(node)]).collect()
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

/// Adds to `loads` the packets that each port sends for `flows`, each given as a number of packets and a path.
pub(in crate::core) fn add_loads<P>(loads: &mut Table<PortId, u64>, flows: impl Iterator<Item = (u64, P)>)
where
    P: Iterator<Item = PortId>,
{
    for (packets, path) in flows {
        for port in path {
            loads[port] = loads[port].saturating_add(packets);
        }
    }
}

#[cfg(test)]
mod tests {
    use fairrate_units::{Rate, Time};

    use super::*;
    use crate::topology::{Cluster, Wiring};

    /// 16 servers of four GPUs on the same four leaves: a server is in one part, and a leaf may be in another.
    #[test]
    fn servers_of_the_same_leaves_are_spread() {
        let (rate, far, near) = (Rate::from_gbps(100), Time::from_ns(500), Time::from_ns(25));
        let cluster = Cluster {
            wiring: Wiring::Rails,
            servers: 16,
            gpus_per_server: 4,
            servers_per_leaf: 16,
            spines: 2,
            host_rate: rate,
            host_delay: far,
            uplink_rate: rate,
            uplink_delay: far,
        };
        let mut topology = cluster.build();
        topology.add_servers(&cluster.scale_up(rate, near));
        let mut pieces = Sets::new(topology.nodes.len());
        join_servers(&topology, &mut pieces);
        let loads: Table<NodeId, u64> = topology.nodes.iter().map(|_| 100).collect();
        let of_node = spread(&mut pieces, &loads, 2);
        let ends: Vec<NodeId> = topology.end_points().filter(|&end| topology.is_scale_up(end)).collect();
        for server in ends.chunks(4) {
            assert!(server.iter().all(|&end| of_node[end] == of_node[server[0]]), "{server:?}");
        }
        assert_eq!(ends.iter().filter(|&&end| of_node[end] == 0).count(), 32);
        // Links between an end point and the switch of its server are the only ones this short, and none of them is
        // cut.
        assert_eq!(cut_ps(&topology, &of_node), far.as_ps());
    }

    #[test]
    fn the_heaviest_go_first_to_the_part_with_the_least() {
        let mut sets = Sets::new(6);
        sets.join(NodeId(0), NodeId(1));
        sets.join(NodeId(3), NodeId(2));
        // Loads 9, 7, 4, 3 with one more a node: 11, 9, 5, 4 in {0, 1}, {2, 3}, {4}, {5}.
        let of_node = spread(&mut sets, &vec![4, 5, 3, 4, 4, 3].into(), 2);
        assert_eq!(*of_node, [0, 0, 1, 1, 1, 0]);
        assert_eq!(*spread(&mut sets, &vec![0; 6].into(), 9), [0, 0, 1, 1, 2, 3], "no more parts than pieces");
    }
}
