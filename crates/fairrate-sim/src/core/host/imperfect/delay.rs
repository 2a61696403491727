//! The time after which a host acts on a packet: processing, jitter, and times in which it acts on nothing.

use crate::config::{Distribution, HostConfig, Jitter, Noise};
use crate::rng::{Purpose, Stream};

/// The delays of one host.
pub(super) struct Delay {
    processing_ps: u64,
    jitter: Option<(Jitter, Stream)>,
    noise: Option<Pauses>,
    /// Time at which the host acts on the latest packet, in picoseconds.
    last_ps: u64,
}

/// The times in which a host acts on nothing. They begin half a period to one and a half periods apart, and do not
/// overlap.
struct Pauses {
    length_ps: u64,
    period_ps: u64,
    /// The start of one of them, in picoseconds. Those before it are over.
    start_ps: u64,
    stream: Stream,
}

impl Delay {
    /// Returns the delays that host number `host` has by `config` in a run with `seed`.
    pub(super) fn new(config: &HostConfig, seed: u64, host: u64) -> Self {
        let jitter = config.jitter.map(|jitter| (jitter, Stream::new(seed, host, Purpose::HostDelay)));
        let noise = config.noise.map(|noise| Pauses::new(noise, Stream::new(seed, host, Purpose::HostNoise)));
        Self { processing_ps: config.processing.as_ps(), jitter, noise, last_ps: 0 }
    }

    /// Returns the time at which the host acts on a packet that it has at `now_ps`, in picoseconds: not before it acts
    /// on those that it had earlier.
    pub(super) fn acts_at(&mut self, now_ps: u64) -> u64 {
        let jitter_ps = self.jitter.as_mut().map_or(0, |(jitter, stream)| draw_ps(*jitter, stream));
        let at = now_ps.saturating_add(self.processing_ps).saturating_add(jitter_ps).max(self.last_ps);
        self.last_ps = self.noise.as_mut().map_or(at, |noise| noise.after(at));
        self.last_ps
    }
}

/// Draws a delay in picoseconds.
fn draw_ps(jitter: Jitter, stream: &mut Stream) -> u64 {
    let mean_ps = jitter.mean.as_ps();
    match jitter.distribution {
        // All of 0 to twice the mean, so that the mean is exact.
        Distribution::Uniform => stream.below(mean_ps.saturating_mul(2).saturating_add(1)),
        Distribution::Exponential => stream.exponential(mean_ps as f64).round() as u64,
        // The mean of exp(sigma Z) is exp(sigma^2/2).
        Distribution::Lognormal(sigma) => {
            (mean_ps as f64 * libm::exp(sigma * stream.normal() - 0.5 * sigma * sigma)).round() as u64
        }
    }
}

impl Pauses {
    fn new(noise: Noise, mut stream: Stream) -> Self {
        let period_ps = noise.period.as_ps();
        let start_ps = stream.below(period_ps);
        Self { length_ps: noise.length.as_ps(), period_ps, start_ps, stream }
    }

    /// Returns `at_ps`, or the end of the time of no action in which that is. Times are asked for in ascending order.
    fn after(&mut self, at_ps: u64) -> u64 {
        while self.start_ps.saturating_add(self.length_ps) <= at_ps {
            let gap_ps = self.period_ps / 2 + self.stream.below(self.period_ps);
            self.start_ps = self.start_ps.saturating_add(gap_ps);
        }
        if at_ps < self.start_ps { at_ps } else { self.start_ps + self.length_ps }
    }
}

#[cfg(test)]
mod tests {
    use fairrate_units::Time;

    use super::*;

    fn host(jitter: Option<Jitter>, noise: Option<Noise>) -> HostConfig {
        HostConfig { processing: Time::from_ns(500), jitter, noise, ..HostConfig::NONE }
    }

    /// Packets 1 ms apart do not wait for each other, so their delays are those drawn.
    #[test]
    fn delays_have_their_means() {
        let (mean, n) = (Time::from_us(2), 100_000);
        // Standard deviations of 1.155, 2 and 2 sqrt(e^0.25 - 1) = 1.066 us.
        for (distribution, deviation_ps) in [
            (Distribution::Uniform, 1.155e6),
            (Distribution::Exponential, 2e6),
            (Distribution::Lognormal(0.5), 1.066e6),
        ] {
            let mut delay = Delay::new(&host(Some(Jitter { distribution, mean }), None), 1, 7);
            let millisecond = 1_000_000_000;
            let delays: Vec<f64> =
                (0..n).map(|i| (delay.acts_at(i * millisecond) - i * millisecond) as f64 - 500_000.0).collect();
            let of = delays.iter().sum::<f64>() / n as f64;
            let spread = (delays.iter().map(|d| (d - of) * (d - of)).sum::<f64>() / n as f64).sqrt();
            assert!((of - 2e6).abs() < 4.0 * deviation_ps / (n as f64).sqrt(), "{distribution:?}: {of}");
            assert!((spread / deviation_ps - 1.0).abs() < 0.03, "{distribution:?}: {spread}");
            assert!(delays.iter().all(|&d| 0.0 <= d));
        }
    }

    #[test]
    fn packets_keep_their_order_and_hosts_have_draws_of_their_own() {
        let config = host(Some(Jitter { distribution: Distribution::Exponential, mean: Time::from_us(5) }), None);
        let of = |seed, number| {
            let mut delay = Delay::new(&config, seed, number);
            (0..200).map(|i| delay.acts_at(i * 100_000)).collect::<Vec<u64>>()
        };
        assert!(of(1, 2).is_sorted());
        assert_eq!(of(1, 2), of(1, 2));
        assert!(of(1, 2) != of(1, 3) && of(1, 2) != of(2, 2));
    }

    /// 3 us of every 10 us or so, in which nothing happens; 30 % of the packets wait, 1.5 us on average.
    #[test]
    fn noise_holds_all_that_it_meets() {
        let noise = Noise { period: Time::from_us(10), length: Time::from_us(3) };
        let mut delay = Delay::new(&host(None, Some(noise)), 3, 0);
        let n = 1_000_000_u64;
        let waits: Vec<u64> = (0..n).map(|i| delay.acts_at(i * 100_000) - i * 100_000 - 500_000).collect();
        assert!(waits.iter().all(|&wait| wait <= 3_000_000));
        let (n_held, sum) = (waits.iter().filter(|&&wait| 0 < wait).count(), waits.iter().sum::<u64>());
        let (share, mean) = (n_held as f64 / n as f64, sum as f64 / n_held as f64);
        assert!((share - 0.3).abs() < 0.01 && (mean / 1.5e6 - 1.0).abs() < 0.05, "{share} {mean}");
    }
}
