//! Shortest paths and the choice among equal ones.
//!
//! Routes are stored per edge switch (a switch with hosts), not per pair of hosts: all hosts of an edge switch have the
//! same distance to any other node. Hosts never forward.
//!
//! Edge switches with the same neighbours are twins, such as those of a pod: every other node is as far from one as
//! from the other, so that one search finds the distances of all twins.

pub(crate) mod weights;

use std::collections::{BTreeMap, VecDeque};

use self::weights::Weights;
use crate::config::{Balance, EcmpHash, FlowSpec, SimConfig, SubflowPaths};
use crate::ids::{NodeId, PortId};
use crate::rng::{mix64, pick};
use crate::topology::Topology;

/// The addresses and ports of a packet, which decide its path.
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
    /// Returns the addresses and ports of a user's flow.
    pub const fn of(flow: &FlowSpec) -> Self {
        Self { src: flow.src, dst: flow.dst, sport: flow.sport, dport: flow.dport }
    }

    /// Returns the key of acknowledgments: addresses and ports swapped.
    #[must_use]
    pub const fn reversed(self) -> Self {
        Self { src: self.dst, dst: self.src, sport: self.dport, dport: self.sport }
    }
}

/// Number of source ports tried to give a subflow its own path.
const PORTS_TRIED: u16 = 64;

/// Returns the addresses and ports of each of a flow's `n` subflows, which decide their paths.
pub fn subflow_keys(config: &SimConfig, routes: &Routes, flow: &FlowSpec, paths: SubflowPaths, n: u16) -> Vec<FlowKey> {
    let key = |offset: u16| FlowKey { sport: flow.sport.wrapping_add(offset), ..FlowKey::of(flow) };
    let (mut used, mut path): (Vec<PortId>, Vec<PortId>) = (Vec::new(), Vec::new());
    let path_of = |key: FlowKey, path: &mut Vec<PortId>| routes.path(config.fabric.ecmp, config.seed, key, path);
    // Returns, among the keys tried, the one whose path shares the fewest links with the paths in use.
    let mut of_own_path = |subflow: u16| {
        let mut best = (usize::MAX, key(subflow));
        for attempt in 0..PORTS_TRIED {
            let key = key(subflow.wrapping_add(attempt.wrapping_mul(n)));
            path_of(key, &mut path);
            let shared = used.iter().filter(|&&port| path.contains(&port)).count();
            if shared < best.0 {
                best = (shared, key);
            }
            // All subflows share the links of the two hosts.
            if shared <= 2 * usize::from(subflow) {
                break;
            }
        }
        path_of(best.1, &mut path);
        used.extend_from_slice(&path);
        best.1
    };
    match paths {
        SubflowPaths::Hashed => (0..n).map(key).collect(),
        SubflowPaths::Disjoint => (0..n).map(&mut of_own_path).collect(),
    }
}

/// The attachment of a host to its switch.
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

/// Number of hops that means "not reachable".
const FAR: u16 = u16::MAX;

/// The shortest paths of a topology.
#[derive(Clone, Debug)]
pub struct Routes {
    /// The attachment of each node; `None` for switches.
    hosts: Vec<Option<Attachment>>,
    /// The switches, ascending.
    switches: Vec<NodeId>,
    /// `exits[first_exit[s]..first_exit[s + 1]]` leave switch `s`, by neighbour id and then port id.
    first_exit: Vec<u32>,
    exits: Vec<Exit>,
    /// The row in `hops` of each switch with hosts.
    row: Vec<Option<u32>>,
    /// The first edge switch of each row's twins.
    first_twin: Vec<u32>,
    /// Hops from each switch (column) to the first switch of a group of twins (row).
    hops: Vec<u16>,
    /// Number of links on the longest of the shortest paths between hosts.
    longest: u32,
    /// The weights of next hops; `None`: all are equal.
    weights: Option<Weights>,
}

/// Hops from every switch to an edge switch.
#[derive(Clone, Copy)]
struct Hops<'a> {
    edge: u32,
    /// The first of its twins, whose distances are stored.
    twin: u32,
    to_twin: &'a [u16],
}

impl Hops<'_> {
    #[inline]
    fn from(self, switch: u32) -> u16 {
        // The distance between twins is the same in both directions.
        let seen_from = if switch == self.twin { self.edge } else { switch };
        if switch == self.edge { 0 } else { self.to_twin[seen_from as usize] }
    }
}

/// The two largest of some values, each with its switch.
#[derive(Clone, Copy, Default)]
struct TopTwo([Option<(u64, u32)>; 2]);

impl TopTwo {
    fn add(&mut self, value: u64, of: u32) {
        let [first, second] = &mut self.0;
        if first.is_none_or(|first| first.0 < value) {
            *second = first.replace((value, of));
        } else if second.is_none_or(|second| second.0 < value) {
            *second = Some((value, of));
        }
    }

    /// Returns the largest sum of a value of `self` and a value of `others` that belongs to another switch.
    fn dearest_pair(self, others: Self) -> Option<u64> {
        let pairs = self.0.into_iter().flatten().flat_map(|a| others.0.into_iter().flatten().map(move |b| (a, b)));
        pairs.filter(|(a, b)| a.1 != b.1).map(|(a, b)| a.0 + b.0).max()
    }
}

impl Routes {
    /// Finds the shortest paths of a run, and their weights if it balances by those.
    pub fn of(config: &SimConfig) -> Self {
        let mut routes = Self::new(&config.topology);
        if config.fabric.balance == Balance::Wcmp {
            routes.weights = Some(Weights::new(&config.topology, &routes));
        }
        routes
    }

    /// Finds the shortest paths of a topology.
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
            } else if !topology.is_host(from) && !topology.is_host(to) && from != to && !topology.is_circuit(port) {
                edges.push((at, Exit { to: next, port }));
            }
        }
        // Positions ascend with node ids, so this is by neighbour id and then port id.
        edges.sort_unstable_by_key(|&(at, exit)| (at, exit.to, exit.port));
        let first_exit = (0..=switches.len()).map(|s| edges.partition_point(|e| (e.0 as usize) < s) as u32).collect();
        let exits = edges.into_iter().map(|(_, exit)| exit).collect();
        let mut routes = Self {
            hosts,
            switches,
            first_exit,
            exits,
            row,
            first_twin: vec![],
            hops: vec![],
            longest: 0,
            weights: None,
        };
        routes.find_twins();
        routes.hops = routes.all_hops();
        routes.longest = routes.most_hops();
        routes
    }

    /// Gives the same row to edge switches with the same neighbours.
    fn find_twins(&mut self) {
        let mut row_of = BTreeMap::new();
        for edge in 0..self.switches.len() as u32 {
            if self.row[edge as usize].is_some() {
                let mut neighbours: Vec<u32> = self.exits(edge).iter().map(|exit| exit.to).collect();
                neighbours.dedup();
                let next = self.first_twin.len() as u32;
                let row = *row_of.entry(neighbours).or_insert(next);
                if row == next {
                    self.first_twin.push(edge);
                }
                self.row[edge as usize] = Some(row);
            }
        }
    }

    /// Runs a breadth-first search from the first switch of each group of twins. Links go both ways, so distances do
    /// too.
    fn all_hops(&self) -> Vec<u16> {
        let n = self.switches.len();
        let mut hops = vec![FAR; n * self.first_twin.len()];
        let mut queue = VecDeque::new();
        for (&start, distances) in self.first_twin.iter().zip(hops.chunks_mut(n)) {
            distances[start as usize] = 0;
            queue.push_back(start);
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

    fn most_hops(&self) -> u32 {
        let mut n_hosts = vec![0_u32; self.switches.len()];
        self.hosts.iter().flatten().for_each(|host| n_hosts[host.switch as usize] += 1);
        let edges = || (0..self.switches.len()).filter(|&s| 0 < n_hosts[s]);
        let within = edges().any(|s| 1 < n_hosts[s]).then_some(0);
        let rows = self.first_twin.iter().zip(self.hops.chunks(self.switches.len().max(1)));
        let between = rows.flat_map(|(&first, hops)| edges().filter(move |&s| s != first as usize).map(|s| hops[s]));
        between.filter(|&hops| hops != FAR).chain(within).max().map_or(0, |hops| u32::from(hops) + 2)
    }

    fn exit_range(&self, switch: u32) -> std::ops::Range<usize> {
        self.first_exit[switch as usize] as usize..self.first_exit[switch as usize + 1] as usize
    }

    fn exits(&self, switch: u32) -> &[Exit] {
        &self.exits[self.exit_range(switch)]
    }

    fn hops_to(&self, edge: u32) -> Option<Hops<'_>> {
        let row = self.row[edge as usize]? as usize;
        let n = self.switches.len();
        Some(Hops { edge, twin: self.first_twin[row], to_twin: self.hops.get(row * n..(row + 1) * n)? })
    }

    /// Returns the exits of `at` on shortest paths to the edge switch of `hops`.
    fn candidates<'a>(&'a self, at: u32, hops: Hops<'a>) -> impl Iterator<Item = &'a Exit> + 'a {
        let here = hops.from(at);
        self.exits(at).iter().filter(move |exit| hops.from(exit.to) < here)
    }

    /// Returns the egress port of a host.
    pub fn host_port(&self, host: NodeId) -> Option<PortId> {
        self.hosts.get(host.index()).copied().flatten().map(|a| a.up)
    }

    /// Returns the number of links from one host to another; `None` if there is no path.
    pub fn distance(&self, src: NodeId, dst: NodeId) -> Option<u32> {
        let (from, to) = ((*self.hosts.get(src.index())?)?, (*self.hosts.get(dst.index())?)?);
        let hops = self.hops_to(to.switch)?.from(from.switch);
        (src != dst && hops != FAR).then(|| u32::from(hops) + 2)
    }

    /// Writes the egress ports from `key.src` to `key.dst` into `out`, the sender's own first. `out` is empty if both
    /// are the same, not hosts, or not connected.
    ///
    /// Where several next hops are equally near, the hash of the key picks one of them, by their weights if they have
    /// some: candidates are ordered by neighbour id, parallel links by port id.
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
            let (here, edge) = (self.switches[at as usize], self.switches[to.switch as usize]);
            let weights = self.weights.as_ref().map_or(&[][..], |weights| weights.of(here, edge));
            let pick = if n == 1 { 0 } else { pick_way(hash, seed, here, key, (n, weights)) };
            let exit = self.candidates(at, hops).nth(pick).expect("a connected switch has an exit that is nearer");
            out.push(exit.port);
            at = exit.to;
        }
        out.push(to.up.reverse());
    }

    /// Returns the egress ports of a switch on shortest paths to a host, by neighbour and then by port; none if there
    /// is no path.
    pub fn next_hops(&self, switch: NodeId, dst: NodeId) -> impl Iterator<Item = PortId> + '_ {
        let at = self.switches.binary_search(&switch).ok().map(|at| at as u32);
        let host = self.hosts.get(dst.index()).copied().flatten();
        let own = host.filter(|host| at == Some(host.switch)).map(|host| host.up.reverse());
        let hops = host.and_then(|host| self.hops_to(host.switch)).filter(|_| own.is_none());
        let others = at.zip(hops).into_iter().flat_map(|(at, hops)| self.candidates(at, hops)).map(|exit| exit.port);
        own.into_iter().chain(others)
    }

    /// Returns the weights of the next hops of a switch to a host; none if all are equal.
    pub(crate) fn weights_of(&self, switch: NodeId, dst: NodeId) -> &[u32] {
        let edge = self.hosts.get(dst.index()).copied().flatten().map(|host| self.switches[host.switch as usize]);
        self.weights.as_ref().zip(edge).map_or(&[], |(weights, edge)| weights.of(switch, edge))
    }

    /// Returns `true` if a switch has several ports on shortest paths to some host.
    pub fn has_choice(&self) -> bool {
        let hosts = || (0..self.hosts.len() as u32).map(NodeId).filter(|host| self.hosts[host.index()].is_some());
        hosts().any(|host| self.switches.iter().any(|&switch| 1 < self.next_hops(switch, host).take(2).count()))
    }

    /// Returns the switches that reach a host, the nearest first.
    pub(crate) fn switches_by_distance(&self, dst: NodeId) -> Vec<NodeId> {
        let hops = self.hosts.get(dst.index()).copied().flatten().and_then(|host| self.hops_to(host.switch));
        let Some(hops) = hops else { return Vec::new() };
        let mut order: Vec<u32> = (0..self.switches.len() as u32).filter(|&s| hops.from(s) != FAR).collect();
        order.sort_by_key(|&s| hops.from(s));
        order.into_iter().map(|s| self.switches[s as usize]).collect()
    }

    /// Returns the number of links on the longest of the shortest paths between hosts; zero if there are fewer than two
    /// hosts.
    pub fn longest_path(&self) -> u32 {
        self.longest
    }

    /// Returns the largest sum of `cost` over the links of any shortest path between two hosts (both host links
    /// included); zero if there are fewer than two hosts. `cost` must be the same for both directions of a link.
    pub(crate) fn dearest_path(&self, cost: impl Fn(PortId) -> u64) -> u64 {
        // The two most expensive host links of each switch: a path between hosts of one switch has both.
        let mut dearest = vec![[None::<u64>; 2]; self.switches.len()];
        for host in self.hosts.iter().flatten() {
            let (cost, [first, second]) = (Some(cost(host.up)), &mut dearest[host.switch as usize]);
            if *first < cost {
                *second = std::mem::replace(first, cost);
            } else if *second < cost {
                *second = cost;
            }
        }
        let within = dearest.iter().filter_map(|[first, second]| Some((*first)? + (*second)?)).max();
        let costs: Vec<u64> = self.exits.iter().map(|exit| cost(exit.port)).collect();
        let mut to_edge = vec![0; self.switches.len()];
        let between = self.equal_twins(&costs).into_iter().map(|twins| {
            self.dearest_ways(twins[0], &costs, &mut to_edge);
            self.dearest_path_to(&twins, &dearest, &costs, &to_edge)
        });
        between.max().unwrap_or(0).max(within.unwrap_or(0))
    }

    /// Returns the edge switches in groups of twins that are equally expensive to enter.
    fn equal_twins(&self, costs: &[u64]) -> Vec<Vec<u32>> {
        let mut entries: Vec<Vec<(u32, u64)>> = vec![Vec::new(); self.switches.len()];
        for at in 0..self.switches.len() as u32 {
            for i in self.exit_range(at) {
                let to = self.exits[i].to as usize;
                // Exits from one switch to the same neighbour are adjacent.
                match entries[to].last_mut() {
                    Some((from, dearest)) if *from == at => *dearest = costs[i].max(*dearest),
                    _ if self.row[to].is_some() => entries[to].push((at, costs[i])),
                    _ => {}
                }
            }
        }
        let mut groups: BTreeMap<&[(u32, u64)], Vec<u32>> = BTreeMap::new();
        for edge in (0..self.switches.len()).filter(|&s| self.row[s].is_some()) {
            groups.entry(&entries[edge]).or_default().push(edge as u32);
        }
        groups.into_values().collect()
    }

    /// Writes into `to_edge` the cost of the most expensive shortest way to an edge switch, for all switches that reach
    /// it.
    fn dearest_ways(&self, edge: u32, costs: &[u64], to_edge: &mut [u64]) {
        let Some(hops) = self.hops_to(edge) else { return };
        to_edge.fill(0);
        let mut order: Vec<u32> = (0..self.switches.len() as u32).filter(|&s| hops.from(s) != FAR).collect();
        order.sort_by_key(|&s| hops.from(s));
        for at in order {
            let ways = self.exit_range(at).filter(|&i| hops.from(self.exits[i].to) < hops.from(at));
            let dearest = ways.map(|i| costs[i] + to_edge[self.exits[i].to as usize]).max();
            to_edge[at as usize] = dearest.unwrap_or(0);
        }
    }

    /// Returns the cost of the most expensive path from a host of another switch to a host of one of `twins`. `to_edge`
    /// has the costs of ways to the first twin, which from all other switches are the same to each twin.
    fn dearest_path_to(&self, twins: &[u32], dearest: &[[Option<u64>; 2]], costs: &[u64], to_edge: &[u64]) -> u64 {
        let Some(hops) = self.hops_to(twins[0]) else { return 0 };
        let (mut starts, mut ends) = (TopTwo::default(), TopTwo::default());
        for &twin in twins {
            ends.add(dearest[twin as usize][0].unwrap_or(0), twin);
        }
        for at in (0..self.switches.len() as u32).filter(|&s| s != twins[0] && hops.from(s) != FAR) {
            if let Some(start) = dearest[at as usize][0] {
                starts.add(start + to_edge[at as usize], at);
            }
        }
        let mut best = starts.dearest_pair(ends);
        // From the first twin to the others, by any neighbour: all its neighbours are neighbours of the others too.
        let ways = self.exit_range(twins[0]).map(|i| costs[i] + to_edge[self.exits[i].to as usize]);
        if let (Some(way), Some(start)) = (ways.max(), dearest[twins[0] as usize][0]) {
            let mut from_first = TopTwo::default();
            from_first.add(start + way, twins[0]);
            best = best.max(from_first.dearest_pair(ends));
        }
        best.unwrap_or(0)
    }
}

/// Returns the position, among `n` candidates with `weights` (none: equal ones), of the one that a packet takes at a
/// switch.
pub fn pick_way(hash: EcmpHash, seed: u64, switch: NodeId, key: FlowKey, (n, weights): (usize, &[u32])) -> usize {
    if weights.is_empty() {
        pick_entry(hash, seed, switch, key, n)
    } else {
        weights::port_of_entry(weights, pick_entry(hash, seed, switch, key, weights::n_entries(weights)))
    }
}

/// Returns the entry, of `n`, of the table of a switch that the hash of a packet's addresses and ports picks.
fn pick_entry(hash: EcmpHash, seed: u64, switch: NodeId, key: FlowKey, n: usize) -> usize {
    let ports = u32::from(key.sport) | u32::from(key.dport) << 16;
    match hash {
        EcmpHash::Mix | EcmpHash::OneSalt => {
            let ends = u64::from(key.src.0) << 32 | u64::from(key.dst.0);
            let salt = if hash == EcmpHash::OneSalt { 0 } else { switch.0 };
            let place = u64::from(ports) << 32 | u64::from(salt);
            let mixed = mix64(mix64(mix64(seed) ^ ends) ^ place);
            pick(mixed, n)
        }
        EcmpHash::Murmur3 => murmur3_32(switch.0, [address(key.src), address(key.dst), ports]) as usize % n,
    }
}

/// Returns the IP address the ns-3 artifact gives a node: 11.0.0.1 plus the id, its low byte in the third place.
fn address(node: NodeId) -> u32 {
    0x0b00_0001u32.wrapping_add((node.0 / 256) << 16).wrapping_add((node.0 % 256) << 8)
}

/// Computes MurmurHash3 (A. Appleby, x86 32-bit variant) of three words.
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
