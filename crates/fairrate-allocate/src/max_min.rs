//! Weighted max-min fairness by water-filling.
//!
//! Rates are max-min fair if no flow can get more without a flow of the same or a smaller share (rate / weight)
//! getting less. They exist, are unique, and are those in which every flow has a bottleneck: a link that is full and
//! on which no flow has a larger share. D. Bertsekas, R. Gallager, "Data Networks", 2nd ed., section 6.5.2.
//!
//! All flows' shares rise together as a water level. A link is full at the level
//!
//! ```text
//! (capacity - rates of its settled flows) / weights of its open flows
//! ```
//!
//! and its open flows are settled there. That leaves the other links of these flows no less for each of their open
//! flows, so levels of links only rise: a heap may hold outdated levels, since each is a lower bound, and an outdated
//! level taken from the heap is put back with its current value. A settled flow makes each of its links' levels
//! outdated once, so the heap sees at most (links + flow-link pairs) entries.
//!
//! A flow's demand is a link of its own with that capacity, whose level never changes.
//!
//! Sums over a link keep twice the digits of an `f64`. The room left for the last flows of a link can be a tiny part of
//! the capacity, and must not be made of rounding errors.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;

use crate::network::{LinkId, Network, NetworkError};

/// Rates, and the bottleneck of each flow.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Allocation {
    /// Each flow's rate in bit/s, in the order of [`Network::flows`].
    pub rates_bps: Vec<f64>,
    /// For each flow a full link on which no flow has a larger rate / weight. If there are several, always the same one
    /// of them. `None`: the flow has all of its demand.
    pub bottleneck: Vec<Option<LinkId>>,
}

/// Computes the weighted max-min fair rates of a network's flows.
///
/// Rates on a full link add up to its capacity within 10^-12 of it.
///
/// # Errors
/// The errors of [`Network::check`].
pub fn max_min(network: &Network) -> Result<Allocation, NetworkError> {
    network.check()?;
    let mut solver = MaxMin::new(network.links.iter().map(|link| link.capacity_bps));
    for flow in &network.flows {
        solver.add(flow.links.iter().copied(), flow.weight, flow.demand_bps);
    }
    solver.solve();
    Ok(Allocation { rates_bps: solver.rates_bps, bottleneck: solver.bottleneck })
}

/// A solver for one set of links and changing flows. It keeps its tables, so that a call allocates nothing once they
/// have grown, and looks only at links that flows use.
///
/// ```
/// use fairrate_allocate::{LinkId, MaxMin};
///
/// let mut solver = MaxMin::new([60e9, 30e9]);
/// solver.add([LinkId(0)], 1.0, f64::INFINITY);
/// solver.add([LinkId(0), LinkId(1)], 1.0, f64::INFINITY);
/// assert_eq!(solver.solve(), [30e9, 30e9]);
/// solver.add([LinkId(1)], 2.0, 15e9);
/// assert_eq!(solver.solve(), [45e9, 15e9, 15e9]);
/// ```
#[derive(Clone, Debug, Default)]
pub struct MaxMin {
    capacities_bps: Vec<f64>,
    weights: Vec<f64>,
    demands_bps: Vec<f64>,
    /// Links of flow `i`: `paths[path_ends[i - 1]..path_ends[i]]`, from 0 for the first.
    paths: Vec<u32>,
    path_ends: Vec<u32>,
    shares: Vec<Share>,
    /// Links that flows use, in the order of their first use.
    used: Vec<u32>,
    /// Flows of link `l`: `users[shares[l].first_user..shares[l].next_user]`.
    users: Vec<u32>,
    is_settled: Vec<bool>,
    /// The water level: rate / weight of all open flows, in bit/s.
    level: f64,
    candidates: BinaryHeap<Reverse<Candidate>>,
    /// Number of candidates taken from the heap.
    n_taken: usize,
    rates_bps: Vec<f64>,
    bottleneck: Vec<Option<LinkId>>,
}

/// The state of a link.
#[derive(Clone, Copy, Debug, Default)]
struct Share {
    /// Capacity that its settled flows leave, in bit/s.
    room: Sum,
    /// Sum of the weights of its open flows.
    weight: Sum,
    n_open: u32,
    first_user: u32,
    next_user: u32,
}

/// A link and a level up to which it is not full, in one number, which orders by level and then by link. Numbers above
/// the last link's are flows: their demands are links of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Candidate(u128);

impl Candidate {
    fn new(level: f64, link: u32) -> Self {
        // Levels are not negative, and for such numbers the order of the bits is the order of the values.
        Self(u128::from(level.to_bits()) << 32 | u128::from(link))
    }

    const fn level(self) -> f64 {
        f64::from_bits((self.0 >> 32) as u64)
    }

    const fn link(self) -> u32 {
        self.0 as u32
    }
}

impl MaxMin {
    /// Creates a solver for links of the given capacities in bit/s, without flows.
    ///
    /// Numbers are not checked: [`Network::check`] defines the usable ones.
    pub fn new(capacities_bps: impl IntoIterator<Item = f64>) -> Self {
        let capacities_bps: Vec<f64> = capacities_bps.into_iter().collect();
        Self { shares: vec![Share::default(); capacities_bps.len()], capacities_bps, ..Self::default() }
    }

    /// Removes all flows.
    pub fn clear(&mut self) {
        self.weights.clear();
        self.demands_bps.clear();
        self.paths.clear();
        self.path_ends.clear();
    }

    /// Adds a flow over `links`, each of them once, with a rate of at most `demand_bps` (infinity: no limit). Flows are
    /// numbered in the order in which they are added.
    ///
    /// # Panics
    /// If there is no link of that number (in [`MaxMin::solve`]).
    pub fn add(&mut self, links: impl IntoIterator<Item = LinkId>, weight: f64, demand_bps: f64) {
        self.weights.push(weight);
        self.demands_bps.push(demand_bps);
        self.paths.extend(links.into_iter().map(|link| link.0));
        self.path_ends.push(self.paths.len() as u32);
    }

    /// Computes the rates of the flows in bit/s. Equal flows in equal order give equal bits, whatever was solved
    /// before.
    pub fn solve(&mut self) -> &[f64] {
        self.fill_tables();
        let n_links = self.capacities_bps.len() as u32;
        let mut candidates = self.first_candidates(n_links);
        while let Some(mut top) = candidates.peek_mut() {
            self.n_taken += 1;
            let candidate = top.0;
            if n_links <= candidate.link() {
                PeekMut::pop(top);
                self.satisfy((candidate.link() - n_links) as usize, candidate.level());
                continue;
            }
            match self.full_at(candidate.link()) {
                Some(level) if candidate.level() < level => top.0 = Candidate::new(level, candidate.link()),
                full_at => {
                    PeekMut::pop(top);
                    if let Some(level) = full_at {
                        self.level = level;
                        self.fill(candidate.link());
                    }
                }
            }
        }
        self.candidates = candidates;
        debug_assert!(self.is_settled.iter().all(|&settled| settled), "a flow is left over");
        &self.rates_bps
    }

    /// Returns all links and demands with the levels at which their first flows are settled.
    fn first_candidates(&mut self, n_links: u32) -> BinaryHeap<Reverse<Candidate>> {
        let mut candidates = std::mem::take(&mut self.candidates).into_vec();
        candidates.clear();
        for &link in &self.used {
            candidates.extend(self.full_at(link).map(|level| Reverse(Candidate::new(level, link))));
        }
        for ((link, demand_bps), weight) in (n_links..).zip(&self.demands_bps).zip(&self.weights) {
            if demand_bps.is_finite() {
                candidates.push(Reverse(Candidate::new(demand_bps / weight, link)));
            }
        }
        candidates.into()
    }

    /// Returns the bottleneck of each flow, as in [`Allocation::bottleneck`], in the last solution.
    pub fn bottlenecks(&self) -> &[Option<LinkId>] {
        &self.bottleneck
    }

    /// Resets the tables to the state before the first flow is settled.
    fn fill_tables(&mut self) {
        let n_flows = self.weights.len();
        self.level = 0.0;
        self.n_taken = 0;
        self.is_settled.clear();
        self.is_settled.resize(n_flows, false);
        self.rates_bps.clear();
        self.rates_bps.resize(n_flows, 0.0);
        self.bottleneck.clear();
        self.bottleneck.resize(n_flows, None);
        for link in self.used.drain(..) {
            self.shares[link as usize] = Share::default();
        }
        for i in 0..n_flows {
            for at in self.path(i) {
                let link = self.paths[at];
                let share = &mut self.shares[link as usize];
                if share.n_open == 0 {
                    share.room = Sum::new(self.capacities_bps[link as usize]);
                    self.used.push(link);
                }
                share.weight.add(self.weights[i]);
                share.n_open += 1;
            }
        }
        let mut n_users = 0;
        for &link in &self.used {
            let share = &mut self.shares[link as usize];
            (share.first_user, share.next_user) = (n_users, n_users);
            n_users += share.n_open;
        }
        self.users.resize(n_users as usize, 0);
        for i in 0..n_flows {
            for at in self.path(i) {
                let share = &mut self.shares[self.paths[at] as usize];
                self.users[share.next_user as usize] = i as u32;
                share.next_user += 1;
            }
        }
    }

    /// Returns the range of flow `i`'s links in the table of paths.
    fn path(&self, i: usize) -> std::ops::Range<usize> {
        let start = if i == 0 { 0 } else { self.path_ends[i - 1] };
        start as usize..self.path_ends[i] as usize
    }

    /// Returns the level at which a link is full; `None` if it has no open flows.
    fn full_at(&self, link: u32) -> Option<f64> {
        let Share { room, weight, n_open, .. } = &self.shares[link as usize];
        // Rounding must not lower the level: at a full link, the flow that is settled later has the larger share.
        (0 < *n_open).then(|| (room.value() / weight.value()).max(self.level))
    }

    /// Settles the open flows of a full link at the water level.
    fn fill(&mut self, link: u32) {
        let Share { first_user, next_user, .. } = self.shares[link as usize];
        for at in first_user..next_user {
            let i = self.users[at as usize] as usize;
            if !self.is_settled[i] {
                self.bottleneck[i] = Some(LinkId(link));
                self.settle(i, self.weights[i] * self.level);
            }
        }
    }

    /// Settles flow `i` at its demand, which the water level has reached.
    fn satisfy(&mut self, i: usize, level: f64) {
        if !self.is_settled[i] {
            self.level = self.level.max(level);
            self.settle(i, self.demands_bps[i]);
        }
    }

    fn settle(&mut self, i: usize, rate_bps: f64) {
        self.is_settled[i] = true;
        self.rates_bps[i] = rate_bps;
        for at in self.path(i) {
            let share = &mut self.shares[self.paths[at] as usize];
            share.room.add(-rate_bps);
            share.weight.add(-self.weights[i]);
            share.n_open -= 1;
        }
    }
}

/// A sum with the digits that an `f64` drops, kept in a second `f64` (D. Knuth's exact sum of two numbers).
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    high: f64,
    low: f64,
}

impl Sum {
    const fn new(x: f64) -> Self {
        Self { high: x, low: 0.0 }
    }

    fn add(&mut self, x: f64) {
        let sum = self.high + x;
        let from_x = sum - self.high;
        let dropped = (self.high - (sum - from_x)) + (x - from_x);
        let low = self.low + dropped;
        self.high = sum + low;
        self.low = low - (self.high - sum);
    }

    const fn value(&self) -> f64 {
        self.high
    }
}

#[cfg(test)]
mod tests {
    use fairrate_units::Rate;

    use super::*;
    use crate::network::{Flow, Link};

    #[test]
    fn a_small_rest_of_a_large_sum_keeps_its_digits() {
        let mut sum = Sum::default();
        let weights = [1e6, 3.3, 1e-6, 7e5, 0.1];
        for weight in weights {
            sum.add(weight);
        }
        for weight in weights.iter().filter(|&&weight| weight != 1e-6) {
            sum.add(-weight);
        }
        assert!((sum.value() - 1e-6).abs() <= 1e-21, "{sum:?}");
    }

    /// 5,000 flows, each over one link of its own and 19 links that all flows share and that barely hold all of them:
    /// the level of the common links is outdated after each of the 5,000 settlings, and below that of half of the own
    /// links.
    #[test]
    fn the_heap_sees_no_more_than_links_and_pairs() {
        const N: u32 = 5_000;
        let own = (0..N).map(|i| Link::new("", Rate::from_mbps(10 + u64::from(i))));
        let common = (0..19).map(|i| Link::new("", Rate::from_gbps(12_548 + i)));
        let links = |i: u32| (N..N + 19).chain([i]).map(LinkId).collect::<Vec<_>>();
        let flows = (0..N).map(|i| Flow::new("", links(i))).collect();
        let network = Network { links: own.chain(common).collect(), flows };
        let mut solver = MaxMin::new(network.links.iter().map(|link| link.capacity_bps));
        for flow in &network.flows {
            solver.add(flow.links.iter().copied(), flow.weight, flow.demand_bps);
        }
        solver.solve();
        let n_pairs = 20 * N as usize;
        assert!(solver.n_taken <= network.links.len() + n_pairs, "{} taken", solver.n_taken);
        // The common links are never full: own capacities add up to 12,547.5 Gb/s. So each flow has its own link's
        // capacity.
        for (rate_bps, link) in solver.rates_bps.iter().zip(&network.links) {
            assert_eq!(*rate_bps, link.capacity_bps);
        }
    }
}
