//! Equal-cost multipath: each flow keeps the port that a hash picks, for as long as the port is up.

use super::{Crossing, Scheme};
use crate::config::{EcmpHash, Rehash};
use crate::ids::PortIdx;
use crate::rng::mix64;
use crate::routing::pick_way;

/// The hash, and the flows that it moves when ports fail. Without failures, flows take the same paths as those that are
/// laid before a run.
pub(super) struct Hashed(pub(super) EcmpHash, pub(super) Rehash);

impl Scheme for Hashed {
    fn choose(&mut self, at: &Crossing<'_>) -> PortIdx {
        let Self(hash, rehash) = *self;
        let (seed, key) = (at.run.config.seed, at.key());
        if rehash == Rehash::Resilient {
            let weights = at.run.routes.weights_of(at.switch, at.to);
            let own = at.all[pick_way(hash, seed, at.switch, key, (at.all.len(), weights))];
            if at.candidates.contains(&own) {
                return own;
            }
        }
        // The default hash picks by its upper bits. Another seed for each number of ports makes it move as many flows
        // as a remainder does when that number changes.
        let n = at.candidates.len();
        let seed = if n == at.all.len() { seed } else { mix64(seed ^ n as u64) };
        at.candidates[pick_way(hash, seed, at.switch, key, (n, at.weights))]
    }
}
