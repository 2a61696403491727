//! A histogram of the lateness of packets, in constant memory.

use std::time::Duration;

use fairrate_results::nearest_rank;
use fairrate_units::Time;

/// Number of bins of a microsecond; larger values are in the last one.
const MOST_US: usize = 20_000;

/// A histogram of packets by their lateness, in microseconds.
#[derive(Clone, Debug)]
pub struct Lateness {
    by_us: Vec<u64>,
    n: u64,
    max: Duration,
}

impl Default for Lateness {
    fn default() -> Self {
        Self { by_us: vec![0; MOST_US], n: 0, max: Duration::ZERO }
    }
}

impl Lateness {
    /// Adds one packet that was late by `late`.
    pub fn add(&mut self, late: Duration) {
        self.by_us[(late.as_micros() as usize).min(MOST_US - 1)] += 1;
        self.n += 1;
        self.max = self.max.max(late);
    }

    /// Returns the number of packets.
    pub fn n(&self) -> u64 {
        self.n
    }

    /// Returns the lateness that `percent` percent of the packets did not exceed, rounded up to a microsecond; zero
    /// without packets.
    pub fn percentile(&self, percent: u64) -> Time {
        let mut seen = 0;
        let us = nearest_rank(self.n as usize, percent as f64 / 100.0).and_then(|place| {
            self.by_us.iter().position(|n| {
                seen += n;
                place < seen as usize
            })
        });
        us.map_or(Time::ZERO, |us| Time::from_us(us as u64 + 1)).min(self.max())
    }

    /// Returns the largest lateness.
    pub fn max(&self) -> Time {
        Time::from_ns(self.max.as_nanos() as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_to_the_microsecond() {
        let mut lateness = Lateness::default();
        assert_eq!((lateness.percentile(99), lateness.max()), (Time::ZERO, Time::ZERO));
        (1..=98).for_each(|us| lateness.add(Duration::from_nanos(us * 1_000 - 1)));
        lateness.add(Duration::from_micros(500));
        lateness.add(Duration::from_secs(1));
        assert_eq!(lateness.n(), 100);
        assert_eq!(lateness.percentile(50), Time::from_us(50));
        assert_eq!(lateness.percentile(98), Time::from_us(98));
        assert_eq!(lateness.percentile(99), Time::from_us(501));
        assert_eq!(lateness.max(), Time::from_ms(1_000));
    }
}
