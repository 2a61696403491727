//! The interface that all price-based rate allocators implement, whatever their method and number format.

use crate::network::LinkId;

/// The key of a flow in an engine, valid from [`RateEngine::add`] to [`RateEngine::remove`]. Keys of removed flows are
/// reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlowKey(pub u32);

impl FlowKey {
    /// Returns the key as an index.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// An allocator whose flows are added and removed between iterations, and whose rates follow the flows iteration by
/// iteration. Prices are kept when flows change, so each iteration begins where the last one ended.
pub trait RateEngine: Send {
    /// Adds a flow over `path`, each link once, in any order. `weight` is relative to the weights of other flows; the
    /// rate never exceeds `demand_bps` (infinity: no limit) or the smallest capacity of the path. The flow's rate is 0
    /// before the next iteration.
    fn add(&mut self, path: &[LinkId], weight: f64, demand_bps: f64) -> FlowKey;

    /// Removes a flow.
    fn remove(&mut self, flow: FlowKey);

    /// Changes a link's capacity, for instance when traffic outside the engine takes part of it.
    fn set_capacity(&mut self, link: LinkId, capacity_bps: f64);

    /// Runs one iteration: computes rates from prices, prices from rates, and normalised rates if the engine has a
    /// normaliser.
    fn iterate(&mut self);

    /// Returns the flow's rate after the last iteration and its normalisation, in bit/s.
    fn rate_bps(&self, flow: FlowKey) -> f64;

    /// Returns the number of flows.
    fn n_flows(&self) -> usize;
}
