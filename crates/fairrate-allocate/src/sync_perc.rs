//! Synchronous PERC: max-min rates by messages between flows and links, as a calculation without packets. L. Jose et
//! al., "High Speed Networks Need Proactive Congestion Control", HotNets 2015, section 3.1.
//!
//! | paper  | here                                   | unit  |
//! |--------|----------------------------------------|-------|
//! | `C_l`  | [`Link::capacity_bps`](crate::Link)    | bit/s |
//! | `f_l`  | [`SyncIteration::shares_bps`]          | bit/s |
//! | `d_l^a`| `Demands`: the flow's smallest share elsewhere on its path | bit/s |
//! | `r_a`  | [`SyncIteration::rates_bps`]           | bit/s |
//!
//! An iteration is one exchange, and takes the longest round trip: flows compute demands from the shares of the
//! iteration before (equation 1), then links compute shares from these demands (equation 2), and a flow's rate is its
//! smallest share.
//!
//! Readings. The first shares are not in the paper: here they are the capacities, which a link without flows
//! advertises. Flows have no weights in PERC, so other weights than 1 are an error. A flow that its host limits demands
//! no more than that (the paper's footnote 2): [`Flow::demand_bps`], as by a link of its own.
//!
//! **Demands that fill a link exactly.** In this case the paper's link advertises its capacity, as if it had room:
//! [`AtCapacity::Capacity`]. Two flows over the same two links of 10 Gb/s then never settle. Both links get demands of
//! 10 and advertise 5; then both get demands of 5, which add up to 10, and advertise 10; and so on, with rates of 5 and
//! 10 in turn. Links of equal capacity in a row that share two flows, neither of which is limited elsewhere, are common
//! (a host's uplink and a link behind it). Any value from the largest demand on solves equation 2 in this case; with
//! the smallest of these values, [`AtCapacity::LargestDemand`], no network has been found that does not settle.

use crate::network::{Flow, Network, NetworkError};

/// Relative difference below which numbers are equal. Demands are quotients and sums of at most thousands of numbers of
/// 16 digits.
const EQUAL: f64 = 1e-12;

/// The share that a link advertises if its flows demand exactly its capacity.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AtCapacity {
    /// Its capacity, as in the paper.
    #[default]
    Capacity,
    /// The largest demand, the smallest solution of equation 2.
    LargestDemand,
}

/// The links' shares and the flows' rates after an iteration.
#[derive(Clone, Debug, PartialEq)]
pub struct SyncIteration {
    /// Fair share of each link in bit/s, in the order of [`Network::links`].
    pub shares_bps: Vec<f64>,
    /// Rate of each flow in bit/s, in the order of [`Network::flows`].
    pub rates_bps: Vec<f64>,
}

/// The state in which the iterations settled.
#[derive(Clone, Debug, PartialEq)]
pub struct Settled {
    /// Iterations until no rate changed any more; 0 if the first state was final.
    pub iterations: usize,
    /// The last state.
    pub last: SyncIteration,
}

/// Synchronous PERC on a network: an endless iterator over its iterations.
#[derive(Clone, Debug)]
pub struct SyncPerc<'a> {
    network: &'a Network,
    at_capacity: AtCapacity,
    shares_bps: Vec<f64>,
    demands: Demands,
}

impl<'a> SyncPerc<'a> {
    /// Creates the first state, in which every link advertises its capacity.
    ///
    /// # Errors
    /// The errors of [`Network::check`], and [`NetworkError::Weighted`] for a flow of another weight than 1.
    pub fn new(network: &'a Network) -> Result<Self, NetworkError> {
        network.check()?;
        if let Some((flow, f)) = network.flows.iter().enumerate().find(|(_, f)| f.weight != 1.0) {
            return Err(NetworkError::Weighted { flow, weight: f.weight });
        }
        let shares_bps = network.links.iter().map(|link| link.capacity_bps).collect();
        let demands = Demands { of_link: vec![Vec::new(); network.links.len()] };
        Ok(Self { network, at_capacity: AtCapacity::default(), shares_bps, demands })
    }

    /// Replaces the first shares by `shares_bps`, for instance those that another set of flows left, in bit/s, one for
    /// each link.
    ///
    /// # Panics
    /// If there are more or fewer shares than links, or a share is not above 0.
    #[must_use]
    pub fn from_shares(self, shares_bps: Vec<f64>) -> Self {
        assert_eq!(shares_bps.len(), self.network.links.len(), "one share for each link");
        assert!(shares_bps.iter().all(|&share| 0.0 < share), "shares are above 0");
        Self { shares_bps, ..self }
    }

    /// Sets the rule for links whose flows demand exactly their capacity.
    #[must_use]
    pub fn at_capacity(self, at_capacity: AtCapacity) -> Self {
        Self { at_capacity, ..self }
    }

    /// Returns the present shares and rates.
    pub fn state(&self) -> SyncIteration {
        let rate = |f: &Flow| f.links.iter().map(|l| self.shares_bps[l.index()]).fold(f.demand_bps, f64::min);
        SyncIteration { shares_bps: self.shares_bps.clone(), rates_bps: self.network.flows.iter().map(rate).collect() }
    }

    /// Iterates until no share changes any more, at most `limit` times; returns `None` if shares still change then.
    pub fn settle(&mut self, limit: usize) -> Option<Settled> {
        let (mut last, mut iterations) = (self.state(), 0);
        for i in 1..=limit {
            let next = self.next()?;
            if !same(&last.rates_bps, &next.rates_bps) {
                iterations = i;
            }
            if same(&last.shares_bps, &next.shares_bps) {
                return Some(Settled { iterations, last: next });
            }
            last = next;
        }
        None
    }
}

impl Iterator for SyncPerc<'_> {
    type Item = SyncIteration;

    fn next(&mut self) -> Option<SyncIteration> {
        self.demands.update(self.network, &self.shares_bps);
        let links = self.network.links.iter().zip(&mut self.demands.of_link);
        for (share_bps, (link, demands)) in self.shares_bps.iter_mut().zip(links) {
            *share_bps = fair_share(demands, link.capacity_bps, self.at_capacity);
        }
        Some(self.state())
    }
}

/// Returns the load of each link minus its capacity, in bit/s, in the order of [`Network::links`]; below 0 where there
/// is room.
///
/// # Panics
/// If there are fewer rates than flows, or the network does not pass [`Network::check`].
pub fn overload(network: &Network, rates_bps: &[f64]) -> Vec<f64> {
    let mut overload_bps: Vec<f64> = network.links.iter().map(|link| -link.capacity_bps).collect();
    for (i, flow) in network.flows.iter().enumerate() {
        for link in &flow.links {
            overload_bps[link.index()] += rates_bps[i];
        }
    }
    overload_bps
}

/// Demands of each link's flows in bit/s, recomputed in each iteration.
#[derive(Clone, Debug)]
struct Demands {
    of_link: Vec<Vec<f64>>,
}

impl Demands {
    /// Applies equation 1: a flow demands of a link the smallest share of the other links on its path. That is the
    /// smallest share of its path, or on the link that has it the second smallest (section 5). Flows of one link demand
    /// infinity, or [`Flow::demand_bps`].
    fn update(&mut self, network: &Network, shares_bps: &[f64]) {
        self.of_link.iter_mut().for_each(Vec::clear);
        for flow in &network.flows {
            let (mut smallest, mut second, mut at) = (flow.demand_bps, flow.demand_bps, None);
            for link in &flow.links {
                let share = shares_bps[link.index()];
                if share < smallest {
                    (second, smallest, at) = (smallest, share, Some(link));
                } else {
                    second = second.min(share);
                }
            }
            for link in &flow.links {
                self.of_link[link.index()].push(if Some(link) == at { second } else { smallest });
            }
        }
    }
}

/// Applies equation 2: returns the share `f` at which `sum(min(d, f)) = C`, by water-filling. If demands do not exceed
/// the capacity, no such share or no unique one exists. The function sorts the demands.
fn fair_share(demands_bps: &mut [f64], capacity_bps: f64, at_capacity: AtCapacity) -> f64 {
    let total: f64 = demands_bps.iter().sum();
    demands_bps.sort_by(f64::total_cmp);
    match demands_bps.last() {
        Some(&largest) if capacity_bps * (1.0 - EQUAL) <= total => {
            if capacity_bps * (1.0 + EQUAL) < total {
                level(demands_bps, capacity_bps)
            } else if at_capacity == AtCapacity::LargestDemand {
                largest
            } else {
                capacity_bps
            }
        }
        _ => capacity_bps,
    }
}

/// Returns the level up to which demands in ascending order, which together exceed the capacity, can be served.
fn level(demands_bps: &[f64], capacity_bps: f64) -> f64 {
    let mut room_bps = capacity_bps;
    for (i, &demand) in demands_bps.iter().enumerate() {
        let level = room_bps / (demands_bps.len() - i) as f64;
        if level < demand {
            return level;
        }
        room_bps -= demand;
    }
    // Only reached by rounding: the demands exceed the capacity.
    capacity_bps
}

fn same(a: &[f64], b: &[f64]) -> bool {
    a.iter().zip(b).all(|(a, b)| (a - b).abs() <= EQUAL * b)
}
