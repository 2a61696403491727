//! Measurement of durations on this machine.

use std::time::Instant;

/// Least duration of each measurement in microseconds, so that the clock's own time does not count.
pub const RUN_US: f64 = 500.0;

/// Returns the microseconds that one call of `act` takes: `runs` averages over half a millisecond each.
pub fn times_us(runs: usize, mut act: impl FnMut()) -> Vec<f64> {
    let mut average_us = |calls: u32| {
        let start = Instant::now();
        (0..calls).for_each(|_| act());
        start.elapsed().as_secs_f64() * 1e6 / f64::from(calls)
    };
    // The first calls fill caches.
    average_us(20);
    let calls = (RUN_US / average_us(20).max(0.01)).clamp(1.0, 1e6) as u32;
    (0..runs).map(|_| average_us(calls)).collect()
}

/// A generator of numbers that are the same in every run.
pub struct Draws(pub u64);

impl Draws {
    /// Returns the next number, below `bound`.
    pub fn below(&mut self, bound: u32) -> u32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) % u64::from(bound)) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_run_has_a_time() {
        let mut calls = 0_u64;
        let times = times_us(5, || calls += 1);
        assert!(times.len() == 5 && 45 <= calls);
    }
}
