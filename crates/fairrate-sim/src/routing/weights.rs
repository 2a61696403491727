//! The weights of equal paths under WCMP: Zhou, Tewari, Zhu, Kabbani, Poutievski, Singh, Vahdat, "WCMP: Weighted Cost
//! Multipathing for Improved Fairness in Data Centers", EuroSys 2014. A next hop's share of the flows is in proportion
//! to the capacity that leads on from it to the receiver's switch.
//!
//! Switches keep a table with several entries for a port of a large weight. Weights are whole numbers, reduced by their
//! greatest common divisor. A table that would have more than [`MAX_ENTRIES`] entries is rounded to that size, each
//! port keeping one at least; the paper's algorithms choose tables by the oversubscription that rounding costs, within
//! the memory of a switch, which is not modelled.

use std::collections::BTreeMap;

use super::Routes;
use crate::ids::{NodeId, PortId};
use crate::topology::Topology;

/// Number of entries of the table of a switch for one edge switch.
const MAX_ENTRIES: u64 = 256;

/// The weights of next hops, where they differ.
#[derive(Clone, Debug, Default)]
pub(super) struct Weights {
    /// For a switch and an edge switch, the weight of each next hop, in the order of [`Routes::next_hops`].
    of: BTreeMap<(NodeId, NodeId), Vec<u32>>,
}

impl Weights {
    /// Computes the weights of a network without failures.
    pub(super) fn new(topology: &Topology, routes: &Routes) -> Self {
        let mut of = BTreeMap::new();
        let mut done = Vec::new();
        for host in topology.end_points() {
            let Some(edge) = routes.host_port(host).map(|port| topology.to(port)) else { continue };
            if done.contains(&edge) {
                continue;
            }
            done.push(edge);
            let capacities = capacities(topology, routes, host, &|_| false);
            for at in routes.switches_by_distance(host).into_iter().filter(|&at| at != edge) {
                let ports: Vec<PortId> = routes.next_hops(at, host).collect();
                let weights = weights(&ways_bps(topology, &ports, &capacities));
                if !weights.is_empty() {
                    of.insert((at, edge), weights);
                }
            }
        }
        Self { of }
    }

    /// Returns the weights of the next hops of `at` to the edge switch `edge`; none if all are equal.
    pub(super) fn of(&self, at: NodeId, edge: NodeId) -> &[u32] {
        self.of.get(&(at, edge)).map_or(&[], Vec::as_slice)
    }
}

/// Returns, for each node, the capacity in bit/s of its shortest ways to the edge switch of the host `to` that do
/// without dead ports, each way as wide as its narrowest link; [`u64::MAX`] for the edge switch itself.
pub(crate) fn capacities(
    topology: &Topology,
    routes: &Routes,
    to: NodeId,
    is_dead: &impl Fn(PortId) -> bool,
) -> Vec<u64> {
    let edge = routes.host_port(to).map(|port| topology.to(port));
    let mut capacities = vec![0_u64; topology.nodes.len()];
    for switch in routes.switches_by_distance(to) {
        let live: Vec<PortId> = routes.next_hops(switch, to).filter(|&port| !is_dead(port)).collect();
        let sum = ways_bps(topology, &live, &capacities).into_iter().fold(0, u64::saturating_add);
        capacities[switch.index()] = if Some(switch) == edge { u64::MAX } else { sum };
    }
    capacities
}

/// Returns the capacity in bit/s of the way that begins with each of the `ports` of a switch, given those from all
/// nodes. Parallel links share what leads on from the node that they lead to.
pub(crate) fn ways_bps(topology: &Topology, ports: &[PortId], capacities: &[u64]) -> Vec<u64> {
    let rate_bps = |port: PortId| topology.link(port).rate.as_bps();
    let of = |&port: &PortId| {
        let next = topology.to(port);
        let beside = ports.iter().filter(|&&other| topology.to(other) == next);
        let all_bps: u64 = beside.map(|&other| rate_bps(other)).fold(0, u64::saturating_add);
        let shared = u128::from(all_bps.min(capacities[next.index()]));
        (u128::from(rate_bps(port)) * shared / u128::from(all_bps.max(1))) as u64
    };
    ports.iter().map(of).collect()
}

/// Returns whole numbers in proportion to `capacities`, of at most [`MAX_ENTRIES`] in all; none if all capacities are
/// equal.
pub(crate) fn weights(capacities: &[u64]) -> Vec<u32> {
    if capacities.windows(2).all(|pair| pair[0] == pair[1]) {
        return Vec::new();
    }
    let divisor = capacities.iter().copied().fold(0, gcd);
    let total: u128 = capacities.iter().map(|&capacity| u128::from(capacity / divisor)).sum();
    let entries = |&capacity: &u64| {
        let exact = u128::from(capacity / divisor);
        let most = u128::from(MAX_ENTRIES);
        let rounded = if total <= most { exact } else { ((2 * exact * most + total) / (2 * total)).max(1) };
        if capacity == 0 { 0 } else { rounded as u32 }
    };
    capacities.iter().map(entries).collect()
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// Returns the port that entry `entry` of a table with these weights belongs to.
pub(crate) fn port_of_entry(weights: &[u32], entry: usize) -> usize {
    let mut left = entry as u64;
    let found = weights.iter().position(|&weight| {
        let is_here = left < u64::from(weight);
        left = left.saturating_sub(u64::from(weight));
        is_here
    });
    found.expect("an entry is below the sum of weights")
}

/// Returns the number of entries of a table with these weights.
pub(crate) fn n_entries(weights: &[u32]) -> usize {
    weights.iter().map(|&weight| weight as usize).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_are_in_proportion_and_small() {
        assert!(weights(&[]).is_empty());
        assert!(weights(&[100, 100, 100]).is_empty());
        assert_eq!(weights(&[100, 100, 25]), [4, 4, 1]);
        assert_eq!(weights(&[400_000_000_000, 100_000_000_000]), [4, 1]);
        assert_eq!(weights(&[0, 30, 20]), [0, 3, 2]);
        // Rounded to 256 entries: a port keeps one at least, and one without capacity gets none.
        assert_eq!(weights(&[1_000_003, 1, 0]), [256, 1, 0]);
        assert_eq!(weights(&[999, 1_001]), [128, 128]);
    }

    #[test]
    fn each_port_has_as_many_entries_as_its_weight() {
        let owners: Vec<usize> = (0..n_entries(&[2, 0, 3])).map(|entry| port_of_entry(&[2, 0, 3], entry)).collect();
        assert_eq!(owners, [0, 0, 2, 2, 2]);
    }
}
