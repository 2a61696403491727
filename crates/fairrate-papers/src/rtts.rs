//! A distribution of round-trip times in little memory.

use fairrate_results::{Ranges, nearest_rank};
use fairrate_sim::{FlowId, RttSample};
use fairrate_units::Time;

use crate::moments::Moments;

/// The ranges of times in picoseconds: each is less than 0.8 % wide.
type OfPs = Ranges<7>;

/// Round-trip times of a run, or of one of its flows.
#[derive(Clone, Debug, Default)]
pub struct Rtts {
    flow: Option<FlowId>,
    from: Time,
    counts: Vec<u64>,
    us: Moments,
}

impl Rtts {
    /// Returns an empty distribution for the round-trip times of `flow` from the time `from` on.
    pub fn of(flow: FlowId, from: Time) -> Self {
        Self { flow: Some(flow), from, ..Self::default() }
    }

    /// Returns an empty distribution for all round-trip times from the time `from` on.
    pub fn since(from: Time) -> Self {
        Self { from, ..Self::default() }
    }

    /// Adds a sample, unless it is of another flow or too early.
    pub fn add(&mut self, sample: &RttSample) {
        if sample.t < self.from || self.flow.is_some_and(|flow| flow != sample.flow) {
            return;
        }
        let (at, us) = (OfPs::of(sample.rtt.as_ps()), sample.rtt.as_ps() as f64 * 1e-6);
        if self.counts.len() <= at {
            self.counts.resize(at + 1, 0);
        }
        self.counts[at] += 1;
        self.us.add(us);
    }

    /// Returns the mean in microseconds.
    pub fn mean_us(&self) -> f64 {
        self.us.mean()
    }

    /// Returns the standard deviation in microseconds.
    pub fn deviation_us(&self) -> f64 {
        self.us.deviation()
    }

    /// Returns the quantile `p` in microseconds: the least time of its range.
    pub fn quantile_us(&self, p: f64) -> f64 {
        let mut seen = 0;
        let at = nearest_rank(self.us.len() as usize, p).and_then(|place| {
            self.counts.iter().position(|&count| {
                seen += count;
                place < seen as usize
            })
        });
        at.map_or(f64::NAN, |at| OfPs::start(at) as f64 * 1e-6)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_and_quantiles_are_of_the_samples_asked_for() {
        let mut rtts = Rtts::of(FlowId(1), Time::from_us(10));
        for (t, flow, rtt) in [(9, 1, 50), (10, 0, 50), (10, 1, 4), (11, 1, 8)] {
            rtts.add(&RttSample { t: Time::from_us(t), flow: FlowId(flow), rtt: Time::from_us(rtt) });
        }
        assert_eq!((rtts.mean_us(), rtts.deviation_us()), (6.0, 2.0));
        // The distance is within a range.
        assert!((rtts.quantile_us(0.5) - 4.0).abs() < 0.03 && (rtts.quantile_us(0.99) - 8.0).abs() < 0.06);
    }
}
