use crate::config::{EcnConfig, MarkAt};
use crate::mrg32k3a::AutomaticStreams;
use crate::rng::{Purpose, Stream};
use fairrate_units::Rate;

/// ECN marking at one egress port: RED on the instantaneous queue of a class.
pub struct Marker {
    kmin: f64,
    kmax: f64,
    pmax: f64,
    at: MarkAt,
    stream: Stream,
}

impl Marker {
    /// The marker of `port`, whose thresholds scale with its rate if the configuration says so.
    pub fn new(config: &EcnConfig, rate: Rate, seed: u64, port: u32) -> Self {
        let scale = config.per_rate.map_or(1.0, |per| rate.as_bps_f64() / per.as_bps_f64());
        Self {
            kmin: config.kmin.as_f64() * scale,
            kmax: config.kmax.as_f64() * scale,
            pmax: config.pmax,
            at: config.at,
            stream: Stream::new(seed, u64::from(port), Purpose::EcnMark),
        }
    }

    /// Whether marking happens at this moment of a packet's stay.
    #[inline]
    pub fn marks_at(&self, at: MarkAt) -> bool {
        self.at == at
    }

    /// Whether a packet that sees `qlen` bytes of its class is marked. The random number comes from `shared`, or
    /// else from the marker's own stream.
    #[inline]
    pub fn draw(&mut self, qlen: u32, shared: Option<&mut AutomaticStreams>) -> bool {
        let qlen = f64::from(qlen);
        if qlen <= self.kmin {
            return false;
        }
        if self.kmax < qlen {
            return true;
        }
        let p = self.pmax * (qlen - self.kmin) / (self.kmax - self.kmin);
        shared.map_or_else(|| self.stream.uniform(), AutomaticStreams::uniform) < p
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::MarkDraws;
    use fairrate_units::Bytes;

    fn config(kmin: u64, kmax: u64) -> EcnConfig {
        let per_rate = Some(Rate::from_gbps(25));
        EcnConfig {
            kmin: Bytes::new(kmin),
            kmax: Bytes::new(kmax),
            pmax: 0.2,
            per_rate,
            at: MarkAt::Dequeue,
            draws: MarkDraws::PerPort,
        }
    }

    #[test]
    fn thresholds_scale_with_the_rate_and_probability_is_linear() {
        let mut marker = Marker::new(&config(100_000, 400_000), Rate::from_gbps(100), 1, 0);
        assert!(!marker.draw(400_000, None));
        assert!(marker.draw(1_600_001, None));
        // Half way between 400 KB and 1.6 MB: p = 0.1, so 10,000 draws give 1,000 with standard error 30.
        let marks = (0..10_000).filter(|_| marker.draw(1_000_000, None)).count();
        assert!((850..1_150).contains(&marks), "{marks}");
    }

    #[test]
    fn a_step_marks_everything_above_k() {
        let mut marker = Marker::new(&config(30_000, 30_000), Rate::from_gbps(25), 1, 0);
        assert!(!marker.draw(30_000, None) && marker.draw(30_001, None));
    }
}
