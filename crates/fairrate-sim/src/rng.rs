//! Seeded random streams.
//!
//! Every random draw of a run is taken from a [`Stream`] named by (run seed, entity, purpose). Streams of different
//! names are unrelated, so that adding a flow or changing a size does not shift the draws of other entities, and
//! algorithms are compared on common random numbers.

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// The purpose of a stream's draws.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u64)]
pub enum Purpose {
    /// Times between flow arrivals at a sender.
    Arrivals = 1,
    /// Flow sizes at a sender.
    Sizes = 2,
    /// Destinations chosen by a sender.
    Destinations = 3,
    /// Participants: receivers and responders of incasts, permutations.
    Participants = 4,
    /// Small random offsets of start times.
    Jitter = 5,
    /// Marking at an egress port.
    EcnMark = 6,
    /// Path choice.
    Ecmp = 7,
    /// Draws in tests.
    Test = 8,
    /// Faults of packets on a faulty link.
    Fault = 9,
    /// Early drops at an egress port.
    EarlyDrop = 10,
    /// Draws of a flow's controller.
    Controller = 11,
    /// Deadlines of a sender's flows.
    Deadline = 12,
    /// Paths that a sender chooses.
    Entropy = 13,
    /// Times at which a receiver looks at its rate of grants.
    Grants = 14,
    /// Delays at a host.
    HostDelay = 15,
    /// Times in which a host acts on nothing.
    HostNoise = 16,
    /// Order of a job's ranks on hosts.
    Placement = 17,
    /// Times by which computations take longer.
    ComputeJitter = 18,
}

/// A stream of random numbers (xoshiro256++).
#[derive(Clone, Debug)]
pub struct Stream {
    rng: Xoshiro256PlusPlus,
}

impl Stream {
    /// Returns the stream of `entity` for `purpose` in a run seeded with `seed`.
    pub fn new(seed: u64, entity: u64, purpose: Purpose) -> Self {
        let name = mix64(mix64(mix64(seed) ^ entity) ^ purpose as u64);
        Self { rng: Xoshiro256PlusPlus::seed_from_u64(name) }
    }

    /// Draws a uniform number in [0, 1), a multiple of 2^-53.
    pub fn uniform(&mut self) -> f64 {
        (self.rng.next_u64() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// Draws a uniform number in `0..n`, without bias; 0 if `n` is 0.
    pub fn below(&mut self, n: u64) -> u64 {
        if n == 0 {
            return 0;
        }
        // Lemire: the high half of a 64x64 product is uniform once the few low halves that are too frequent are drawn
        // again.
        let threshold = n.wrapping_neg() % n;
        loop {
            let product = u128::from(self.rng.next_u64()) * u128::from(n);
            if threshold <= product as u64 {
                return (product >> 64) as u64;
            }
        }
    }

    /// Draws an exponentially distributed number with mean `mean`; finite and not negative.
    pub fn exponential(&mut self, mean: f64) -> f64 {
        -mean * libm::log(1.0 - self.uniform())
    }

    /// Draws a normally distributed number with mean zero and standard deviation one (Box and Muller); finite.
    pub fn normal(&mut self) -> f64 {
        let radius = (-2.0 * libm::log(1.0 - self.uniform())).sqrt();
        radius * libm::cos(std::f64::consts::TAU * self.uniform())
    }

    /// Puts `items` into uniformly random order.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for i in (1..items.len()).rev() {
            let j = self.below(i as u64 + 1) as usize;
            items.swap(i, j);
        }
    }
}

/// Maps 64-bit words one-to-one, so that every input bit changes every output bit (the finaliser of SplitMix64).
pub(crate) const fn mix64(x: u64) -> u64 {
    let x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// Picks one of `n` positions, each equally likely, by a well mixed number.
pub(crate) fn pick(mixed: u64, n: usize) -> usize {
    ((u128::from(mixed) * n as u128) >> 64) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draws(seed: u64, entity: u64, purpose: Purpose) -> Vec<u64> {
        let mut stream = Stream::new(seed, entity, purpose);
        (0..4).map(|_| stream.below(1 << 40)).collect()
    }

    #[test]
    fn equal_names_give_equal_draws_and_different_names_different_ones() {
        let base = draws(1, 2, Purpose::Sizes);
        assert_eq!(base, draws(1, 2, Purpose::Sizes));
        for other in [draws(2, 2, Purpose::Sizes), draws(1, 3, Purpose::Sizes), draws(1, 2, Purpose::Arrivals)] {
            assert!(base.iter().zip(&other).all(|(a, b)| a != b));
        }
        assert_ne!(draws(1, 2, Purpose::Sizes), draws(2, 1, Purpose::Sizes), "seed and entity are no sum");
    }

    #[test]
    fn uniform_and_below_fill_their_range() {
        let mut stream = Stream::new(7, 0, Purpose::Test);
        let mut counts = [0u32; 10];
        let mut sum = 0.0;
        for _ in 0..100_000 {
            let u = stream.uniform();
            assert!((0.0..1.0).contains(&u));
            sum += u;
            counts[stream.below(10) as usize] += 1;
        }
        // Standard errors: 0.0009 for the mean, 95 for a count.
        assert!((sum / 100_000.0 - 0.5).abs() < 0.004);
        assert!(counts.iter().all(|&c| (9_600..10_400).contains(&c)), "{counts:?}");
        assert_eq!((stream.below(0), stream.below(1)), (0, 0));
    }

    #[test]
    fn exponential_has_its_mean_and_spread() {
        let mut stream = Stream::new(7, 1, Purpose::Test);
        let (mut sum, mut squares) = (0.0, 0.0);
        for _ in 0..200_000 {
            let x = stream.exponential(3.0);
            assert!(x.is_finite() && 0.0 <= x);
            sum += x;
            squares += x * x;
        }
        let mean = sum / 200_000.0;
        assert!((mean - 3.0).abs() < 0.03, "{mean}");
        assert!((squares / 200_000.0 - 18.0).abs() < 0.5);
    }

    #[test]
    fn normal_has_its_moments() {
        let mut stream = Stream::new(7, 2, Purpose::Test);
        let draws: Vec<f64> = (0..200_000).map(|_| stream.normal()).collect();
        let mean_of = |power: i32| draws.iter().map(|x| x.powi(power)).sum::<f64>() / draws.len() as f64;
        // Standard errors: 0.0022, 0.0032, 0.022.
        assert!(mean_of(1).abs() < 0.01 && (mean_of(2) - 1.0).abs() < 0.014 && (mean_of(4) - 3.0).abs() < 0.1);
    }

    #[test]
    fn shuffle_keeps_the_items() {
        let mut items: Vec<u32> = (0..50).collect();
        Stream::new(3, 0, Purpose::Test).shuffle(&mut items);
        assert_ne!(items, (0..50).collect::<Vec<_>>());
        items.sort_unstable();
        assert_eq!(items, (0..50).collect::<Vec<_>>());
    }
}
