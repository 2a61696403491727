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
//! flows, so levels of links only rise: a heap may hold old levels, each is a lower bound, and one that turns out old
//! when it is taken goes back with the level of today. A settled flow makes each of its links' levels old once, so the
//! heap sees at most (links + flow-link pairs) entries.
//!
//! Sums over a link keep twice the digits of an `f64`. What is left for the last flows of a link can be a tiny part of
//! what was there, and must not be made of rounding errors.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use crate::network::{LinkId, Network, NetworkError};

/// Rates, and what limits them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Allocation {
    /// Each flow's rate in bit/s, in the order of [`Network::flows`].
    pub rates_bps: Vec<f64>,
    /// For each flow a full link on which no flow has a larger rate / weight. Of several, one of them, always the same.
    pub bottleneck: Vec<LinkId>,
}

/// The weighted max-min fair rates of a network's flows.
///
/// Rates on a full link add up to its capacity within 10^-12 of it.
///
/// # Errors
/// What [`Network::check`] says.
pub fn max_min(network: &Network) -> Result<Allocation, NetworkError> {
    network.check()?;
    let mut filling = Filling::new(network);
    filling.run();
    Ok(filling.allocation)
}

/// The state of a link.
#[derive(Clone, Copy, Debug, Default)]
struct Share {
    /// Capacity that its settled flows leave, in bit/s.
    room: Sum,
    /// Weights of its open flows.
    weight: Sum,
    n_open: u32,
}

/// A link and a level up to which it is not full.
#[derive(Clone, Copy, Debug)]
struct Candidate {
    level: f64,
    link: u32,
}

impl Ord for Candidate {
    fn cmp(&self, other: &Self) -> Ordering {
        self.level.total_cmp(&other.level).then(self.link.cmp(&other.link))
    }
}
impl PartialOrd for Candidate {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl PartialEq for Candidate {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}
impl Eq for Candidate {}

/// An allocation being made.
struct Filling<'a> {
    network: &'a Network,
    shares: Vec<Share>,
    /// Flows of link `l`: `users[first_user[l]..first_user[l + 1]]`.
    users: Vec<u32>,
    first_user: Vec<u32>,
    is_settled: Vec<bool>,
    /// The water level: rate / weight of all open flows, in bit/s.
    level: f64,
    candidates: BinaryHeap<Reverse<Candidate>>,
    /// Candidates taken from the heap.
    n_taken: usize,
    allocation: Allocation,
}

impl<'a> Filling<'a> {
    fn new(network: &'a Network) -> Self {
        let room = |capacity_bps| Share { room: Sum::new(capacity_bps), ..Share::default() };
        let mut shares: Vec<Share> = network.links.iter().map(|link| room(link.capacity_bps)).collect();
        for flow in &network.flows {
            for link in &flow.links {
                let share = &mut shares[link.index()];
                share.weight.add(flow.weight);
                share.n_open += 1;
            }
        }
        let (users, first_user) = users(network, &shares);
        let n_flows = network.flows.len();
        Self {
            network,
            shares,
            users,
            first_user,
            is_settled: vec![false; n_flows],
            level: 0.0,
            candidates: BinaryHeap::with_capacity(network.links.len()),
            n_taken: 0,
            allocation: Allocation { rates_bps: vec![0.0; n_flows], bottleneck: vec![LinkId(0); n_flows] },
        }
    }

    fn run(&mut self) {
        for link in 0..self.shares.len() as u32 {
            self.push(link);
        }
        while let Some(Reverse(candidate)) = self.candidates.pop() {
            self.n_taken += 1;
            let Some(level) = self.full_at(candidate.link) else { continue };
            if candidate.level < level {
                self.push(candidate.link);
            } else {
                self.level = level;
                self.settle(candidate.link);
            }
        }
        debug_assert!(self.is_settled.iter().all(|&settled| settled), "a flow is left over");
    }

    fn push(&mut self, link: u32) {
        if let Some(level) = self.full_at(link) {
            self.candidates.push(Reverse(Candidate { level, link }));
        }
    }

    /// The level at which a link is full; none if it has no open flows.
    fn full_at(&self, link: u32) -> Option<f64> {
        let Share { room, weight, n_open } = &self.shares[link as usize];
        // Rounding must not lower the level: at a full link, what was settled later has the larger share.
        (0 < *n_open).then(|| (room.value() / weight.value()).max(self.level))
    }

    /// Settles the open flows of a full link at the water level.
    fn settle(&mut self, link: u32) {
        let range = self.first_user[link as usize]..self.first_user[link as usize + 1];
        for i in range {
            let i = self.users[i as usize] as usize;
            if std::mem::replace(&mut self.is_settled[i], true) {
                continue;
            }
            let flow = &self.network.flows[i];
            let rate_bps = flow.weight * self.level;
            self.allocation.rates_bps[i] = rate_bps;
            self.allocation.bottleneck[i] = LinkId(link);
            for link in &flow.links {
                let share = &mut self.shares[link.index()];
                share.room.add(-rate_bps);
                share.weight.add(-flow.weight);
                share.n_open -= 1;
            }
        }
    }
}

/// The flows of every link, link after link, and where each link's begin.
fn users(network: &Network, shares: &[Share]) -> (Vec<u32>, Vec<u32>) {
    let mut first_user = Vec::with_capacity(shares.len() + 1);
    let mut n_users = 0;
    for share in shares {
        first_user.push(n_users);
        n_users += share.n_open;
    }
    let mut next = first_user.clone();
    first_user.push(n_users);
    let mut users = vec![0; n_users as usize];
    for (i, flow) in (0..).zip(&network.flows) {
        for link in &flow.links {
            let place = &mut next[link.index()];
            users[*place as usize] = i;
            *place += 1;
        }
    }
    (users, first_user)
}

/// A sum with the digits that an `f64` drops, kept in a second one (D. Knuth's exact sum of two numbers).
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

    /// 5,000 flows, each over one link of its own and 19 that are everybody's and hold all of them, barely: the level
    /// of the common links is old after each of the 5,000 settlings, and below that of half of the own links.
    #[test]
    fn the_heap_sees_no_more_than_links_and_pairs() {
        const N: u32 = 5_000;
        let own = (0..N).map(|i| Link::new("", Rate::from_mbps(10 + u64::from(i))));
        let common = (0..19).map(|i| Link::new("", Rate::from_gbps(12_548 + i)));
        let links = |i: u32| (N..N + 19).chain([i]).map(LinkId).collect::<Vec<_>>();
        let flows = (0..N).map(|i| Flow::new("", links(i))).collect();
        let network = Network { links: own.chain(common).collect(), flows };
        let mut filling = Filling::new(&network);
        filling.run();
        let n_pairs = 20 * N as usize;
        assert!(filling.n_taken <= network.links.len() + n_pairs, "{} taken", filling.n_taken);
        // The common links are never full: own capacities add up to 12,547.5 Gb/s. So each flow has its own link's capacity.
        for (rate_bps, link) in filling.allocation.rates_bps.iter().zip(&network.links) {
            assert_eq!(*rate_bps, link.capacity_bps);
        }
    }
}
