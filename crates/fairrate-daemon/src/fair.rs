//! The optimiser for α-fairness other than the proportional one.

use fairrate_allocate::{FlowKey, LinkId, Method, Ned, Normaliser, Num, NumConfig, RateEngine, Utility};

/// NED for α-fair utilities (J. Mo, J. Walrand, IEEE/ACM ToN 8(5), 2000): `w^α x^(1 - α) / (1 - α)`, so that flows with
/// one bottleneck have rates in proportion to their weights, for every α.
pub(crate) struct AlphaFair {
    num: Num,
    alpha: f64,
}

impl AlphaFair {
    pub fn new(capacities_bps: &[f64], unit_bps: f64, gamma: f64, alpha: f64) -> Self {
        let method = Method::Ned(Ned { gamma });
        let config = NumConfig { method, normaliser: Normaliser::F_NORM_BOUNDED, unit_bps };
        Self { num: Num::new(capacities_bps.iter().copied(), config), alpha }
    }
}

impl RateEngine for AlphaFair {
    fn add(&mut self, path: &[LinkId], weight: f64, demand_bps: f64) -> FlowKey {
        self.num.add_with_utility(path, Utility::alpha_fair(weight.powf(self.alpha), self.alpha), demand_bps)
    }

    fn remove(&mut self, flow: FlowKey) {
        self.num.remove(flow);
    }

    fn set_capacity(&mut self, link: LinkId, capacity_bps: f64) {
        self.num.set_capacity(link, capacity_bps);
    }

    fn iterate(&mut self) {
        self.num.iterate();
    }

    fn rate_bps(&self, flow: FlowKey) -> f64 {
        self.num.rate_bps(flow)
    }

    fn n_flows(&self) -> usize {
        self.num.n_flows()
    }
}
