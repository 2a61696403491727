use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// The random numbers of one egress port or flow: a separate stream for every (seed, entity), so that draws of one
/// entity do not shift the draws of another.
#[derive(Clone, Debug)]
pub(crate) struct Draws(Xoshiro256PlusPlus);

impl Draws {
    /// Returns the stream of `entity` for `seed`.
    pub(crate) fn new(seed: u64, entity: u32) -> Self {
        Self(Xoshiro256PlusPlus::seed_from_u64(
            seed.rotate_left(32) ^ u64::from(entity).wrapping_mul(0x9E37_79B9_7F4A_7C15),
        ))
    }

    /// Draws a number uniformly from [0, 1), a multiple of 2^-53.
    pub(crate) fn uniform(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }
}
