//! Proof that rates are the optimum: the conditions of Karush, Kuhn and Tucker, which for concave utilities hold in the
//! optimum and nowhere else. S. Boyd, L. Vandenberghe, "Convex Optimization", section 5.5.3.

use crate::network::{Flow, Network, NetworkError};
use crate::utility::Utility;

/// Rates, and the prices that prove them optimal.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Solution {
    /// Each flow's rate in bit/s.
    pub rates_bps: Vec<f64>,
    /// Each link's price, in utility a unit of rate.
    pub prices: Vec<f64>,
    /// The unit of rates in utilities and prices, in bit/s.
    pub unit_bps: f64,
}

/// The relative amount by which a solution misses each condition.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct KktResidual {
    /// Every flow pays what its rate is worth: the largest `|U'(x) - q| / U'(x)`, where `q` is the sum of its links'
    /// prices. A flow that has all of its demand, or all of its narrowest link, may pay less; for a flow that has
    /// nearly all, the difference is multiplied by (its missing rate) / rate.
    pub stationarity: f64,
    /// No link is over its capacity: the largest (load - capacity) / capacity.
    pub feasibility: f64,
    /// Only full links have prices: the largest (price x room) / (worth of the rates of the link's flows at their
    /// margin, `sum(x U'(x))`).
    pub slackness: f64,
    /// No rates are better: the difference between the most that the prices promise and the utility of the rates,
    /// divided by `sum(x U'(x))` of all flows.
    pub gap: f64,
}

impl KktResidual {
    /// Returns the largest of the four residuals.
    pub fn max(&self) -> f64 {
        self.stationarity.max(self.feasibility).max(self.slackness).max(self.gap)
    }
}

/// Returns the sum of all flows' utilities at the rates of `solution`.
pub fn objective(utilities: &[Utility], solution: &Solution) -> f64 {
    utilities.iter().zip(&solution.rates_bps).map(|(utility, rate)| utility.value(rate / solution.unit_bps)).sum()
}

/// Computes by how much `solution` misses the conditions of the optimum, with one utility for each flow. Prices of
/// links without flows do not count.
///
/// # Errors
/// The errors of [`Network::check`].
///
/// # Panics
/// If the numbers of utilities, rates and prices differ from the numbers of flows and links.
pub fn kkt_residual(
    network: &Network,
    utilities: &[Utility],
    solution: &Solution,
) -> Result<KktResidual, NetworkError> {
    network.check()?;
    let Solution { rates_bps, prices, unit_bps } = solution;
    assert_eq!((network.flows.len(), network.flows.len()), (utilities.len(), rates_bps.len()), "one for each flow");
    assert_eq!(network.links.len(), prices.len(), "a price for each link");
    let mut of_links = vec![Use::default(); network.links.len()];
    let mut residual = KktResidual::default();
    let (mut gap, mut worth) = (0.0, 0.0);
    for ((flow, utility), rate_bps) in network.flows.iter().zip(utilities).zip(rates_bps) {
        let rate = rate_bps / unit_bps;
        let at = Margin::new(flow, utility, rate, prices, most(network, flow) / unit_bps);
        residual.stationarity = residual.stationarity.max(at.stationarity);
        gap += at.gap;
        worth += at.worth;
        for link in &flow.links {
            let of_link = &mut of_links[link.index()];
            (of_link.load, of_link.worth) = (of_link.load + rate, of_link.worth + at.worth);
        }
    }
    for ((link, price), of_link) in network.links.iter().zip(prices).zip(of_links) {
        if 0.0 < of_link.worth {
            let capacity = link.capacity_bps / unit_bps;
            let room = capacity - of_link.load;
            residual.feasibility = residual.feasibility.max(-room / capacity);
            residual.slackness = residual.slackness.max(price * room / of_link.worth);
            gap += price * room;
        }
    }
    if 0.0 < worth {
        residual.gap = gap.abs() / worth;
    }
    Ok(residual)
}

/// Load of a link's flows, and its worth to them.
#[derive(Clone, Copy, Debug, Default)]
struct Use {
    load: f64,
    worth: f64,
}

/// Returns the largest rate that `flow` can have: the smallest of its demand and its path's capacities.
fn most(network: &Network, flow: &Flow) -> f64 {
    flow.links.iter().map(|link| network.links[link.index()].capacity_bps).fold(flow.demand_bps, f64::min)
}

/// The contribution of a flow to the conditions.
struct Margin {
    stationarity: f64,
    gap: f64,
    /// `x U'(x)`
    worth: f64,
}

impl Margin {
    fn new(flow: &Flow, utility: &Utility, rate: f64, prices: &[f64], most: f64) -> Self {
        let price: f64 = flow.links.iter().map(|link| prices[link.index()]).sum();
        let derivative = utility.derivative(rate);
        let miss = (price - derivative) / derivative;
        // The flow's best rate at this price, and the utility it misses at its present rate.
        let best = utility.response(price.max(utility.derivative(most))).rate.min(most);
        let gap = utility.value(best) - utility.value(rate) - price * (best - rate);
        // A flow may pay less if its limit holds it back: what it misses there is room, not price.
        let room = ((most - rate) / rate).clamp(0.0, 1.0);
        Self { stationarity: miss.max(-miss * room), gap, worth: rate * derivative }
    }
}
