//! The network of a run as a picture: its nodes in tiers, and how much their ports carried, dropped and waited.

mod draw;

use std::collections::VecDeque;

use fairrate_sim::topology::Topology;
use fairrate_sim::{NodeId, PortId};

pub(crate) use self::draw::{TITLE, csv, file, section};

/// The shape of a network.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Shape {
    /// Name and tier of each node; end points are of tier 0, and a switch is one above the lowest of its neighbours.
    pub nodes: Vec<(String, usize)>,
    /// By port, the nodes that it goes from and to.
    pub ports: Vec<(usize, usize)>,
}

/// The totals of an egress port.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LinkTotals {
    /// The port as `from->to`.
    pub port: String,
    /// Rate in bit/s.
    pub rate_bps: f64,
    /// Bytes handed to the wire.
    pub tx_bytes: f64,
    /// Packets marked.
    pub ecn_marks: u64,
    /// Time paused, in ns.
    pub pfc_pause_ns: f64,
    /// Packets dropped for each cause that there is, by its name.
    pub drops: Vec<(&'static str, u64)>,
}

impl LinkTotals {
    /// Returns the packets dropped for all causes.
    pub fn dropped(&self) -> u64 {
        self.drops.iter().map(|(_, n)| n).sum()
    }

    /// Returns the share of what the port could send in `end_ns` that it did send.
    pub fn utilisation(&self, end_ns: f64) -> f64 {
        let could = self.rate_bps * end_ns / 8e9;
        if 0.0 < could { self.tx_bytes / could } else { 0.0 }
    }
}

impl Shape {
    /// Returns the shape of `topology`.
    pub fn of(topology: &Topology) -> Self {
        let n = topology.nodes.len();
        let mut tiers = vec![usize::MAX; n];
        let mut next: VecDeque<usize> = topology.end_points().map(NodeId::index).collect();
        for &end in &next {
            tiers[end] = 0;
        }
        let mut neighbours = vec![Vec::new(); n];
        let ends = |port: u32| (topology.from(PortId(port)).index(), topology.to(PortId(port)).index());
        let ports: Vec<(usize, usize)> = (0..topology.n_ports() as u32).map(ends).collect();
        for &(from, to) in &ports {
            neighbours[from].push(to);
        }
        while let Some(node) = next.pop_front() {
            for &other in &neighbours[node] {
                if tiers[other] == usize::MAX {
                    tiers[other] = tiers[node] + 1;
                    next.push_back(other);
                }
            }
        }
        let highest = tiers.iter().filter(|&&tier| tier < usize::MAX).max().copied().unwrap_or(0);
        let tier = |tier: usize| tier.min(highest);
        Self { nodes: topology.nodes.iter().zip(tiers).map(|(node, t)| (node.name.clone(), tier(t))).collect(), ports }
    }
}

/// Largest number of boxes of a row.
const MAX_BOXES: usize = 64;

/// Consecutive nodes of a tier, drawn as one box.
#[derive(Clone, Debug, Default, PartialEq)]
struct Group {
    /// The first of its nodes, and the last one.
    names: (String, String),
    /// Number of its nodes.
    nodes: usize,
    /// Its ports toward higher tiers, to its own and toward lower ones.
    up: Strip,
    side: Strip,
    down: Strip,
}

/// The ports of a box in one direction.
#[derive(Clone, Debug, Default, PartialEq)]
struct Strip {
    ports: usize,
    /// Utilisation of the busiest port, its name, and the sum over all ports.
    busiest: f64,
    busiest_port: String,
    sum: f64,
    drops: u64,
    marks: u64,
    paused_ns: f64,
}

impl Strip {
    fn add(&mut self, link: &LinkTotals, end_ns: f64) {
        let utilisation = link.utilisation(end_ns);
        if self.ports == 0 || self.busiest < utilisation {
            (self.busiest, self.busiest_port) = (utilisation, link.port.clone());
        }
        self.ports += 1;
        self.sum += utilisation;
        self.drops += link.dropped();
        self.marks += link.ecn_marks;
        self.paused_ns = self.paused_ns.max(link.pfc_pause_ns);
    }
}

/// The row of a box, and its place there.
type Spot = (usize, usize);

/// A network as boxes in rows, with the bundles of links between them.
#[derive(Clone, Debug, Default, PartialEq)]
struct Picture {
    /// The rows, from the end points up.
    rows: Vec<Vec<Group>>,
    /// The boxes that links join, by row and place, each pair once: the upper one, the lower one, and the utilisation
    /// of the busiest link.
    bundles: Vec<(Spot, Spot, f64)>,
}

impl Picture {
    fn of(shape: &Shape, links: &[LinkTotals], end_ns: f64) -> Self {
        let n_rows = shape.nodes.iter().map(|(_, tier)| tier + 1).max().unwrap_or(0);
        let mut members: Vec<Vec<usize>> = vec![Vec::new(); n_rows];
        for (node, (_, tier)) in shape.nodes.iter().enumerate() {
            members[*tier].push(node);
        }
        let mut at = vec![(0, 0); shape.nodes.len()];
        let mut rows: Vec<Vec<Group>> = Vec::new();
        for (row, members) in members.iter().enumerate() {
            let size = members.len().div_ceil(MAX_BOXES).max(1);
            let groups = members.chunks(size).enumerate().map(|(place, nodes)| {
                for &node in nodes {
                    at[node] = (row, place);
                }
                let name = |node: usize| shape.nodes[node].0.clone();
                let names = (name(nodes[0]), name(nodes[nodes.len() - 1]));
                Group { names, nodes: nodes.len(), ..Group::default() }
            });
            rows.push(groups.collect());
        }
        let mut bundles = std::collections::BTreeMap::new();
        for (&(from, to), link) in shape.ports.iter().zip(links) {
            let (from, to) = (at[from], at[to]);
            let group = &mut rows[from.0][from.1];
            let strip = match from.0.cmp(&to.0) {
                std::cmp::Ordering::Less => &mut group.up,
                std::cmp::Ordering::Equal => &mut group.side,
                std::cmp::Ordering::Greater => &mut group.down,
            };
            strip.add(link, end_ns);
            if from != to {
                let busiest = bundles.entry((from.max(to), from.min(to))).or_insert(0.0_f64);
                *busiest = busiest.max(link.utilisation(end_ns));
            }
        }
        Self { rows, bundles: bundles.into_iter().map(|((upper, lower), busiest)| (upper, lower, busiest)).collect() }
    }
}

#[cfg(test)]
mod tests;
