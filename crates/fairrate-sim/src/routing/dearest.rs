//! The most expensive of the shortest paths of a network, for a cost of each link.

use std::collections::BTreeMap;

use super::{FAR, Routes};
use crate::ids::PortId;

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
            let ways = self.exit_range(at).filter(|&i| self.leads_on(self.exits[i], hops, hops.from(at)));
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
