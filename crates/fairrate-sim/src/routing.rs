//! Shortest paths and the choice among equal ones.
//!
//! Routes are kept per edge switch (a switch with hosts), not per pair of hosts: every host of an edge switch is
//! as far from anywhere as the others. Hosts never forward.

use std::collections::VecDeque;

use crate::config::EcmpHash;
use crate::ids::{NodeId, PortId};
use crate::rng::mix64;
use crate::topology::Topology;

/// The ends of a packet, which decide its path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FlowKey {
    /// Sender.
    pub src: NodeId,
    /// Receiver.
    pub dst: NodeId,
    /// Source port.
    pub sport: u16,
    /// Destination port.
    pub dport: u16,
}

impl FlowKey {
    /// The key of acknowledgments: addresses and ports swapped.
    #[must_use]
    pub const fn reversed(self) -> Self {
        Self { src: self.dst, dst: self.src, sport: self.dport, dport: self.sport }
    }
}

/// Where a host hangs.
#[derive(Clone, Copy, Debug)]
struct Attachment {
    /// Its switch, as a position in `Routes::switches`.
    switch: u32,
    /// The host's egress port.
    up: PortId,
}

/// One way from a switch to a neighbouring switch.
#[derive(Clone, Copy, Debug)]
struct Exit {
    /// The neighbour, as a position in `Routes::switches`.
    to: u32,
    /// The egress port.
    port: PortId,
}

/// Not reachable.
const FAR: u16 = u16::MAX;

/// The shortest paths of a topology.
#[derive(Clone, Debug)]
pub struct Routes {
    /// Of each node, `None` for switches.
    hosts: Vec<Option<Attachment>>,
    /// The switches, ascending.
    switches: Vec<NodeId>,
    /// `exits[first_exit[s]..first_exit[s + 1]]` leave switch `s`, by neighbour id and then port id.
    first_exit: Vec<u32>,
    exits: Vec<Exit>,
    /// Of each switch with hosts, its row in `hops`.
    row: Vec<Option<u32>>,
    /// Hops from each switch (column) to each edge switch (row).
    hops: Vec<u16>,
}

impl Routes {
    /// Finds them.
    pub fn new(topology: &Topology) -> Self {
        let mut switches = Vec::new();
        let mut position = vec![u32::MAX; topology.nodes.len()];
        for node in (0..topology.nodes.len() as u32).map(NodeId) {
            if !topology.is_host(node) {
                position[node.index()] = switches.len() as u32;
                switches.push(node);
            }
        }
        let mut hosts = vec![None; topology.nodes.len()];
        let mut edges: Vec<(u32, Exit)> = Vec::new();
        let mut row = vec![None; switches.len()];
        for port in (0..topology.n_ports() as u32).map(PortId) {
            let (from, to) = (topology.from(port), topology.to(port));
            let (at, next) = (position[from.index()], position[to.index()]);
            if topology.is_host(from) && !topology.is_host(to) {
                hosts[from.index()] = Some(Attachment { switch: next, up: port });
                row[next as usize] = Some(0);
            } else if !topology.is_host(from) && !topology.is_host(to) {
                edges.push((at, Exit { to: next, port }));
            }
        }
        // Positions ascend with node ids, so this is by neighbour id and then port id.
        edges.sort_unstable_by_key(|&(at, exit)| (at, exit.to, exit.port));
        let first_exit = (0..=switches.len()).map(|s| edges.partition_point(|e| (e.0 as usize) < s) as u32).collect();
        let exits = edges.into_iter().map(|(_, exit)| exit).collect();
        for (i, row) in row.iter_mut().flatten().enumerate() {
            *row = i as u32;
        }
        let mut routes = Self { hosts, switches, first_exit, exits, row, hops: Vec::new() };
        routes.hops = routes.all_hops();
        routes
    }

    /// Breadth-first search from every edge switch. Links go both ways, so distances do too.
    fn all_hops(&self) -> Vec<u16> {
        let n = self.switches.len();
        let edge_switches = (0..n).filter(|&s| self.row[s].is_some());
        let mut hops = vec![FAR; n * edge_switches.clone().count()];
        let mut queue = VecDeque::new();
        for (start, distances) in edge_switches.zip(hops.chunks_mut(n)) {
            distances[start] = 0;
            queue.push_back(start as u32);
            while let Some(at) = queue.pop_front() {
                let next = distances[at as usize] + 1;
                for exit in self.exits(at) {
                    let distance = &mut distances[exit.to as usize];
                    if *distance == FAR {
                        *distance = next;
                        queue.push_back(exit.to);
                    }
                }
            }
        }
        hops
    }

    fn exits(&self, switch: u32) -> &[Exit] {
        let range = self.first_exit[switch as usize] as usize..self.first_exit[switch as usize + 1] as usize;
        &self.exits[range]
    }

    /// Hops from every switch to an edge switch.
    fn hops_to(&self, edge: u32) -> Option<&[u16]> {
        let row = self.row[edge as usize]? as usize;
        let n = self.switches.len();
        self.hops.get(row * n..(row + 1) * n)
    }

    /// The exits of `at` on shortest paths to the edge switch of `hops`.
    fn candidates<'a>(&'a self, at: u32, hops: &'a [u16]) -> impl Iterator<Item = &'a Exit> + 'a {
        let here = hops[at as usize];
        self.exits(at).iter().filter(move |exit| hops[exit.to as usize] < here)
    }

    /// The egress port of a host.
    pub fn host_port(&self, host: NodeId) -> Option<PortId> {
        self.hosts.get(host.index()).copied().flatten().map(|a| a.up)
    }

    /// Number of links from one host to another; `None` if there is no path.
    pub fn distance(&self, src: NodeId, dst: NodeId) -> Option<u32> {
        let (from, to) = ((*self.hosts.get(src.index())?)?, (*self.hosts.get(dst.index())?)?);
        let hops = self.hops_to(to.switch)?[from.switch as usize];
        (src != dst && hops != FAR).then(|| u32::from(hops) + 2)
    }

    /// Writes the egress ports from `key.src` to `key.dst` into `out`, the sender's own first. Nothing if both
    /// are the same, not hosts, or not connected.
    ///
    /// Where several next hops are equally near, the hash of the key picks one: candidates are ordered by
    /// neighbour id, parallel links by port id.
    pub fn path(&self, hash: EcmpHash, seed: u64, key: FlowKey, out: &mut Vec<PortId>) {
        out.clear();
        if self.distance(key.src, key.dst).is_none() {
            return;
        }
        let (Some(from), Some(to)) = (self.hosts[key.src.index()], self.hosts[key.dst.index()]) else {
            return;
        };
        let Some(hops) = self.hops_to(to.switch) else {
            return;
        };
        out.push(from.up);
        let mut at = from.switch;
        while at != to.switch {
            let n = self.candidates(at, hops).count();
            let pick = if n == 1 { 0 } else { choose(hash, seed, self.switches[at as usize], key, n) };
            let exit = self.candidates(at, hops).nth(pick).expect("a connected switch has an exit that is nearer");
            out.push(exit.port);
            at = exit.to;
        }
        out.push(to.up.reverse());
    }

    /// Links on the longest of the shortest paths between hosts; zero if there are fewer than two hosts.
    pub fn longest_path(&self) -> u32 {
        self.dearest_path(|_| 1) as u32
    }

    /// The largest sum of `cost` over the links of any shortest path between two hosts (both host links
    /// included); zero if there are fewer than two hosts.
    pub(crate) fn dearest_path(&self, cost: impl Fn(PortId) -> u64) -> u64 {
        // The two dearest host links of each switch: a path between hosts of one switch has both.
        let mut dearest = vec![[None::<u64>; 2]; self.switches.len()];
        for host in self.hosts.iter().flatten() {
            let (cost, [first, second]) = (Some(cost(host.up)), &mut dearest[host.switch as usize]);
            if *first < cost {
                *second = std::mem::replace(first, cost);
            } else if *second < cost {
                *second = cost;
            }
        }
        let costs: Vec<u64> = self.exits.iter().map(|exit| cost(exit.port)).collect();
        let mut best = 0;
        let mut order: Vec<u32> = (0..self.switches.len() as u32).collect();
        let mut to_edge = vec![0u64; self.switches.len()];
        for edge in 0..self.switches.len() as u32 {
            let (Some(hops), [Some(last), second]) = (self.hops_to(edge), dearest[edge as usize]) else {
                continue;
            };
            best = best.max(second.map_or(0, |second| last + second));
            order.sort_by_key(|&s| hops[s as usize]);
            for &at in order.iter().filter(|&&s| hops[s as usize] != FAR && s != edge) {
                let first = self.first_exit[at as usize] as usize;
                let nearer = |i: &usize| hops[self.exits[*i].to as usize] < hops[at as usize];
                let ways = (first..self.first_exit[at as usize + 1] as usize).filter(nearer);
                to_edge[at as usize] = ways.map(|i| costs[i] + to_edge[self.exits[i].to as usize]).max().unwrap_or(0);
                if let Some(start) = dearest[at as usize][0] {
                    best = best.max(start + to_edge[at as usize] + last);
                }
            }
            to_edge.fill(0);
        }
        best
    }
}

/// Which of `n` candidates a packet takes at a switch.
fn choose(hash: EcmpHash, seed: u64, switch: NodeId, key: FlowKey, n: usize) -> usize {
    let ports = u32::from(key.sport) | u32::from(key.dport) << 16;
    match hash {
        EcmpHash::Mix => {
            let ends = u64::from(key.src.0) << 32 | u64::from(key.dst.0);
            let place = u64::from(ports) << 32 | u64::from(switch.0);
            let mixed = mix64(mix64(mix64(seed) ^ ends) ^ place);
            ((u128::from(mixed) * n as u128) >> 64) as usize
        }
        EcmpHash::Murmur3 => murmur3_32(switch.0, [address(key.src), address(key.dst), ports]) as usize % n,
    }
}

/// The IP address the ns-3 artifact gives a node: 11.0.0.1 plus the id, its low byte in the third place.
fn address(node: NodeId) -> u32 {
    0x0b00_0001u32.wrapping_add((node.0 / 256) << 16).wrapping_add((node.0 % 256) << 8)
}

/// MurmurHash3 (A. Appleby, x86 32-bit variant) of three words.
fn murmur3_32(seed: u32, words: [u32; 3]) -> u32 {
    let mut hash = seed;
    for word in words {
        let word = word.wrapping_mul(0xcc9e_2d51).rotate_left(15).wrapping_mul(0x1b87_3593);
        hash = (hash ^ word).rotate_left(13).wrapping_mul(5).wrapping_add(0xe654_6b64);
    }
    hash ^= size_of_val(&words) as u32;
    hash = (hash ^ (hash >> 16)).wrapping_mul(0x85eb_ca6b);
    hash = (hash ^ (hash >> 13)).wrapping_mul(0xc2b2_ae35);
    hash ^ (hash >> 16)
}

#[cfg(test)]
mod tests;
