//! Random early detection: arrivals are dropped, or marked, with a probability that rises with the queue.
//!
//! S. Floyd, V. Jacobson, "Random Early Detection Gateways for Congestion Avoidance", IEEE/ACM ToN 1993. With a weight
//! of 1 the instantaneous queue decides, as in datacenter switches; with `kmin` of 0 and `pmax` of 1 the probability is
//! the queue's share of `kmax`.

use fairrate_units::Rate;

use crate::config::RedConfig;
use crate::rng::{Purpose, Stream};

/// RED of one queue.
pub struct Red {
    kmin: f64,
    kmax: f64,
    pmax: f64,
    weight: f64,
    even: bool,
    /// Transmission time of a full packet in picoseconds: the time that counts as one arrival at an empty queue while
    /// idle.
    packet_ps: u64,
    average: f64,
    /// Time since which the queue is empty, in picoseconds.
    idle_ps: Option<u64>,
    /// Packets that have passed since the last drop or mark.
    passed: u32,
    stream: Stream,
}

impl Red {
    /// Creates the RED of queue number `entity` at a port of `rate`; `packet_ps`: transmission time of a full packet
    /// there.
    pub fn new(config: &RedConfig, rate: Rate, packet_ps: u64, seed: u64, entity: u64) -> Self {
        let scale = config.per_rate.map_or(1.0, |per| rate.as_bps_f64() / per.as_bps_f64());
        Self {
            kmin: config.kmin.as_f64() * scale,
            kmax: config.kmax.as_f64() * scale,
            pmax: config.pmax,
            weight: config.weight,
            even: config.even,
            packet_ps: packet_ps.max(1),
            average: 0.0,
            idle_ps: Some(0),
            passed: 0,
            stream: Stream::new(seed, entity, Purpose::EarlyDrop),
        }
    }

    /// Returns `true` if a packet that arrives at a queue of `queue` bytes is to be dropped, or marked.
    pub fn hits(&mut self, queue: u64, now_ps: u64) -> bool {
        self.observe(queue, now_ps);
        if self.average <= self.kmin {
            self.passed = 0;
            return false;
        }
        if self.kmax <= self.average {
            self.passed = 0;
            return true;
        }
        let p = self.spread(self.pmax * (self.average - self.kmin) / (self.kmax - self.kmin));
        let hit = self.stream.uniform() < p;
        self.passed = if hit { 0 } else { self.passed.saturating_add(1) };
        hit
    }

    /// Records that the queue has run empty.
    pub fn on_empty(&mut self, now_ps: u64) {
        self.idle_ps = Some(now_ps);
    }

    /// Updates the moving average over arrivals, section 11. An idle time counts as the arrivals at an empty queue that
    /// would have fitted into it.
    fn observe(&mut self, queue: u64, now_ps: u64) {
        if self.weight == 1.0 {
            self.average = queue as f64;
            return;
        }
        if let Some(since) = self.idle_ps.take() {
            let packets = (now_ps - since) as f64 / self.packet_ps as f64;
            self.average *= libm::pow(1.0 - self.weight, packets);
        }
        self.average += self.weight * (queue as f64 - self.average);
    }

    /// Spreads hits evenly, section 7: p / (1 - passed p) makes the gaps between hits uniform up to 1/p instead of
    /// geometric.
    fn spread(&self, p: f64) -> f64 {
        let left = 1.0 - f64::from(self.passed) * p;
        if !self.even {
            p
        } else if p < left {
            p / left
        } else {
            1.0
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fairrate_units::Bytes;

    fn config(kmin: u64, kmax: u64, pmax: f64) -> RedConfig {
        let (kmin, kmax) = (Bytes::new(kmin), Bytes::new(kmax));
        RedConfig { kmin, kmax, pmax, per_rate: None, weight: 1.0, even: false, ecn: false }
    }

    fn red(config: &RedConfig) -> Red {
        Red::new(config, Rate::from_gbps(10), 1_000_000, 1, 0)
    }

    #[test]
    fn the_probability_is_linear_from_nothing() {
        // Kmin 0, Kmax 40 KB: half of the packets at 20 KB, so 5,000 of 10,000 with standard error 50.
        let mut red = red(&config(0, 40_000, 1.0));
        let hits = (0..10_000).filter(|_| red.hits(20_000, 0)).count();
        assert!((4_750..5_250).contains(&hits), "{hits}");
        assert!(!red.hits(0, 0) && red.hits(40_000, 0));
    }

    #[test]
    fn thresholds_scale_with_the_rate() {
        let per = config(0, 40_000, 1.0);
        let mut red = Red::new(
            &RedConfig { per_rate: Some(Rate::from_gbps(10)), kmin: Bytes::new(30_000), ..per },
            Rate::from_gbps(40),
            1_000_000,
            1,
            0,
        );
        assert!(!red.hits(120_000, 0) && red.hits(160_000, 0));
    }

    #[test]
    fn the_average_moves_slowly_and_forgets_while_idle() {
        let mut red = red(&RedConfig { weight: 0.25, ..config(100_000, 200_000, 0.1) });
        // The queue is idle from time 0 on, so an average of 0 decays. Then 0.25 x 8,000, and 2,000 + 0.25 x 6,000.
        red.hits(8_000, 0);
        assert_eq!(red.average, 2_000.0);
        red.hits(8_000, 0);
        assert_eq!(red.average, 3_500.0);
        // An idle time of two packets: 3,500 x 0.75^2 = 1,968.75, and the arrival itself finds an empty queue: x 0.75.
        red.on_empty(5_000_000);
        red.hits(0, 7_000_000);
        assert!((red.average - 1_476.562_5).abs() < 1e-9);
    }

    #[test]
    fn even_gaps_are_at_most_one_over_p() {
        // p = 0.1 x half: a hit at the latest with the 20th packet, and on average every 10.5th.
        let mut red = red(&RedConfig { even: true, ..config(0, 40_000, 0.1) });
        let hits: Vec<bool> = (0..42_000).map(|_| red.hits(20_000, 0)).collect();
        let longest = hits.split(|&hit| hit).map(<[bool]>::len).max();
        assert!(longest.is_some_and(|l| l < 20), "{longest:?}");
        let n = hits.iter().filter(|&&hit| hit).count();
        assert!((3_800..4_200).contains(&n), "{n}");
    }
}
