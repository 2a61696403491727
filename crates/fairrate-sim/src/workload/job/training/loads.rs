//! The loads of ranks that share experts: tokens go to some experts more often than to others.

use fairrate_units::Bytes;

use super::Training;
use crate::rng::{Purpose, Stream};
use crate::workload::Sizes;
use crate::workload::collective::drawn_shares;

/// The loads of ranks that share experts, for each layer.
pub(super) struct Loads {
    /// The part of the tokens that each place among such ranks gets; empty if all get the same.
    layers: Vec<Vec<f64>>,
}

impl Loads {
    /// Returns the loads of a job: those of a layer are the same in all groups and iterations.
    pub(super) fn drawn(training: &Training, seed: u64, group: u32) -> Self {
        let (model, ep) = (&training.model, training.parallelism.ep as usize);
        if model.imbalance == 1.0 {
            return Self { layers: Vec::new() };
        }
        let mut stream = Stream::new(seed, u64::from(group), Purpose::Participants);
        Self { layers: (0..model.layers).map(|_| drawn_shares(ep, model.imbalance, &mut stream)).collect() }
    }

    /// Returns the load of the rank at `place` in a layer, as a multiple of the mean.
    pub(super) fn of(&self, layer: u32, place: u32) -> f64 {
        let shares = self.layers.get(layer as usize);
        shares.map_or(1.0, |shares| shares[place as usize] * shares.len() as f64)
    }

    /// Returns what ranks with `bytes` of tokens each send to experts in a layer.
    pub(super) fn dispatch(&self, layer: u32, bytes: Bytes) -> Sizes {
        self.layers.get(layer as usize).map_or(Sizes::Even, |shares| Sizes::of_shares(bytes, shares))
    }
}
