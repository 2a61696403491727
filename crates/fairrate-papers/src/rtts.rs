//! A distribution of round-trip times in little memory.

use fairrate_results::nearest_rank;
use fairrate_sim::{FlowId, RttSample};
use fairrate_units::Time;

use crate::moments::Moments;

/// Number of buckets of an octave: each is less than 0.8 % wide.
const OCTAVE: u64 = 128;

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
        let (at, us) = (bucket(sample.rtt.as_ps()), sample.rtt.as_ps() as f64 * 1e-6);
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

    /// Returns the quantile `p` in microseconds: the lower end of its bucket.
    pub fn quantile_us(&self, p: f64) -> f64 {
        let mut seen = 0;
        let at = nearest_rank(self.us.len() as usize, p).and_then(|place| {
            self.counts.iter().position(|&count| {
                seen += count;
                place < seen as usize
            })
        });
        at.map_or(f64::NAN, |at| lower_end_ps(at) as f64 * 1e-6)
    }
}

/// Returns the bucket of a time in picoseconds: its eight highest bits, counted through the octaves.
fn bucket(ps: u64) -> usize {
    let shift = u64::from(56_u32.saturating_sub(ps.leading_zeros()));
    (shift * OCTAVE + (ps >> shift)) as usize
}

fn lower_end_ps(bucket: usize) -> u64 {
    let shift = (bucket as u64 / OCTAVE).saturating_sub(1);
    (bucket as u64 - shift * OCTAVE) << shift
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_narrow_and_in_order() {
        for ps in [0, 1, 127, 128, 255, 256, 257, 511, 512, 3_600_000, 1 << 40, (1 << 40) - 1] {
            let low = lower_end_ps(bucket(ps));
            assert!(low <= ps && ps - low <= ps / 128, "{ps}: {low}");
            assert!(bucket(ps) <= bucket(ps + 1) && bucket(ps + 1) <= bucket(ps) + 1);
        }
    }

    #[test]
    fn moments_and_quantiles_are_of_the_samples_asked_for() {
        let mut rtts = Rtts::of(FlowId(1), Time::from_us(10));
        for (t, flow, rtt) in [(9, 1, 50), (10, 0, 50), (10, 1, 4), (11, 1, 8)] {
            rtts.add(&RttSample { t: Time::from_us(t), flow: FlowId(flow), rtt: Time::from_us(rtt) });
        }
        assert_eq!((rtts.mean_us(), rtts.deviation_us()), (6.0, 2.0));
        // The distance is within a bucket.
        assert!((rtts.quantile_us(0.5) - 4.0).abs() < 0.03 && (rtts.quantile_us(0.99) - 8.0).abs() < 0.06);
    }
}
