//! What every allocator of rates by prices can do, whatever its method and its numbers.

use crate::network::LinkId;

/// A flow that an engine knows, from [`RateEngine::add`] to [`RateEngine::remove`]. Numbers of removed flows come back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlowKey(pub u32);

impl FlowKey {
    /// As an index.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// Flows that come and go, and rates that follow them, iteration by iteration. Prices stay when flows change, so each
/// iteration begins where the last one ended.
pub trait RateEngine: Send {
    /// Adds a flow over `path`, each link once, in any order. `weight` is relative to other flows'; the rate never
    /// exceeds `demand_bps` (infinity: no limit) or the smallest capacity of the path. The flow has no rate (0) before
    /// the next iteration.
    fn add(&mut self, path: &[LinkId], weight: f64, demand_bps: f64) -> FlowKey;

    /// Forgets a flow.
    fn remove(&mut self, flow: FlowKey);

    /// Changes a link's capacity, as when traffic that the engine does not know takes part of it.
    fn set_capacity(&mut self, link: LinkId, capacity_bps: f64);

    /// One iteration: rates from prices, prices from rates, and normalised rates if the engine has a normaliser.
    fn iterate(&mut self);

    /// What the last iteration gave a flow, in bit/s, after normalisation.
    fn rate_bps(&self, flow: FlowKey) -> f64;

    /// How many flows there are.
    fn n_flows(&self) -> usize;
}
