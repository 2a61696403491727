//! Shortest paths and the choice among equal ones.
//!
//! Routes are stored per edge switch (a switch with hosts), not per pair of hosts: all hosts of an edge switch have the
//! same distance to any other node. Hosts never forward.
//!
//! Edge switches with the same neighbours are twins, such as those of a pod: every other node is as far from one as
//! from the other, so that one search finds the distances of all twins.
//!
//! A path is as short as the sum of its links' lengths ([`LongLinks`]): 1 each, but for the global links of a
//! dragonfly.

mod dearest;
pub(crate) mod weights;

use std::collections::BTreeMap;

use self::weights::Weights;
use crate::config::{Balance, EcmpHash, FlowSpec, SimConfig, SubflowPaths};
use crate::ids::{NodeId, PortId};
use crate::rng::{mix64, pick};
use crate::topology::{LongLinks, Topology};

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
    /// Length of the paths from each switch (column) to the first switch of a group of twins (row).
    hops: Vec<u16>,
    /// Number of links of these paths, the most among those of the same length; empty if all links have the length 1,
    /// as then it is the length.
    links: Vec<u16>,
    /// Number of links on the longest of the shortest paths between hosts.
    longest: u32,
    /// The links longer than 1.
    long_links: LongLinks,
    /// The weights of next hops; `None`: all are equal.
    weights: Option<Weights>,
}

/// Hops, or lengths of paths, from every switch to an edge switch.
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
        let long_links = topology.long_links.clone();
        let mut routes = Self {
            hosts,
            switches,
            first_exit,
            exits,
            row,
            first_twin: vec![],
            hops: vec![],
            links: vec![],
            longest: 0,
            long_links,
            weights: None,
        };
        routes.find_twins();
        routes.hops = routes.all_hops();
        if !routes.long_links.are_none() {
            routes.links = routes.all_links();
        }
        routes.longest = routes.most_hops();
        routes
    }

    /// Gives the same row to edge switches with the same neighbours.
    fn find_twins(&mut self) {
        let mut row_of = BTreeMap::new();
        for edge in 0..self.switches.len() as u32 {
            if self.row[edge as usize].is_some() {
                let exits = self.exits(edge).iter();
                let mut neighbours: Vec<(u32, u16)> = exits.map(|exit| (exit.to, self.length(*exit))).collect();
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

    /// Returns the length of an exit's link.
    #[inline]
    fn length(&self, exit: Exit) -> u16 {
        self.long_links.length(exit.port)
    }

    /// Searches, from the first switch of each group of twins, for the lengths of the shortest paths. Links go both
    /// ways and are as long either way, so paths are too.
    fn all_hops(&self) -> Vec<u16> {
        let n = self.switches.len();
        let mut hops = vec![FAR; n * self.first_twin.len()];
        // The switches found at each of the next lengths, in turn: there is a list more than the longest link needs.
        let mut found: [Vec<u32>; 1 + LongLinks::LENGTH as usize] = Default::default();
        for (&start, distances) in self.first_twin.iter().zip(hops.chunks_mut(n)) {
            distances[start as usize] = 0;
            found[0].push(start);
            let (mut here, mut n_found) = (0_u16, 1);
            while 0 < n_found {
                let lists = found.len();
                let mut nearest = std::mem::take(&mut found[usize::from(here) % lists]);
                n_found -= nearest.len();
                for at in nearest.drain(..) {
                    // Another way may have been shorter.
                    let exits = if distances[at as usize] == here { self.exits(at) } else { &[] };
                    for exit in exits {
                        let there = here.saturating_add(self.length(*exit));
                        if there < distances[exit.to as usize] {
                            distances[exit.to as usize] = there;
                            found[usize::from(there) % lists].push(exit.to);
                            n_found += 1;
                        }
                    }
                }
                // The list keeps its memory.
                found[usize::from(here) % lists] = nearest;
                here += 1;
            }
        }
        hops
    }

    /// Counts the links of the shortest paths to the first switch of each group of twins.
    fn all_links(&self) -> Vec<u16> {
        let n = self.switches.len();
        let mut links = vec![FAR; self.hops.len()];
        for (hops, links) in self.hops.chunks(n).zip(links.chunks_mut(n)) {
            let mut order: Vec<u32> = (0..n as u32).filter(|&s| hops[s as usize] != FAR).collect();
            order.sort_by_key(|&s| hops[s as usize]);
            for at in order {
                let ways = self.exits(at).iter();
                let ways = ways
                    .filter(|exit| hops[exit.to as usize].checked_add(self.length(**exit)) == Some(hops[at as usize]));
                links[at as usize] = ways.map(|exit| links[exit.to as usize] + 1).max().unwrap_or(0);
            }
        }
        links
    }

    fn most_hops(&self) -> u32 {
        let mut n_hosts = vec![0_u32; self.switches.len()];
        self.hosts.iter().flatten().for_each(|host| n_hosts[host.switch as usize] += 1);
        let edges = || (0..self.switches.len()).filter(|&s| 0 < n_hosts[s]);
        let within = edges().any(|s| 1 < n_hosts[s]).then_some(0);
        let links = if self.links.is_empty() { &self.hops } else { &self.links };
        let rows = self.first_twin.iter().zip(links.chunks(self.switches.len().max(1)));
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
        self.row_of(&self.hops, edge)
    }

    /// Returns the numbers of links to an edge switch.
    fn links_to(&self, edge: u32) -> Option<Hops<'_>> {
        self.row_of(if self.links.is_empty() { &self.hops } else { &self.links }, edge)
    }

    fn row_of<'a>(&self, all: &'a [u16], edge: u32) -> Option<Hops<'a>> {
        let row = self.row[edge as usize]? as usize;
        let n = self.switches.len();
        Some(Hops { edge, twin: self.first_twin[row], to_twin: all.get(row * n..(row + 1) * n)? })
    }

    /// Returns the exits of `at` on shortest paths to the edge switch of `hops`.
    fn candidates<'a>(&'a self, at: u32, hops: Hops<'a>) -> impl Iterator<Item = &'a Exit> + 'a {
        let here = hops.from(at);
        self.exits(at).iter().filter(move |exit| self.leads_on(**exit, hops, here))
    }

    /// Returns `true` if an exit of a switch that is as far as `here` from the edge switch of `hops` is on a shortest
    /// path.
    #[inline]
    fn leads_on(&self, exit: Exit, hops: Hops<'_>, here: u16) -> bool {
        u32::from(hops.from(exit.to)) + u32::from(self.length(exit)) == u32::from(here)
    }

    /// Returns the egress port of a host.
    pub fn host_port(&self, host: NodeId) -> Option<PortId> {
        self.hosts.get(host.index()).copied().flatten().map(|a| a.up)
    }

    /// Returns the number of links from one host to another; `None` if there is no path.
    pub fn distance(&self, src: NodeId, dst: NodeId) -> Option<u32> {
        let (from, to) = ((*self.hosts.get(src.index())?)?, (*self.hosts.get(dst.index())?)?);
        let links = self.links_to(to.switch)?.from(from.switch);
        (src != dst && links != FAR).then(|| u32::from(links) + 2)
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
