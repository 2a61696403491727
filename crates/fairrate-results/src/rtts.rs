//! Round-trip times, counted by traffic block and by ranges of about 2 %.

use fairrate_sim::{FlowSpec, ProbeSpec, RttSample, SimConfig};
use fairrate_units::Time;

use crate::rows::RttRow;

/// Number of ranges in which a time doubles.
const PER_DOUBLING: u32 = 32;
/// Binary logarithm of it.
const BITS: u32 = PER_DOUBLING.trailing_zeros();
/// Largest number of blocks that are counted: a flow list may number its groups as it likes.
const MOST: usize = 1_024;

/// The counts of a run that probes round-trip times.
pub(super) struct Rtts {
    from: Time,
    until: Time,
    /// By block, and by number of the range.
    counts: Vec<Vec<u64>>,
}

impl Rtts {
    /// Creates counts for times that are measured from `from` to `until`; `None` without such a probe.
    pub fn new(config: &SimConfig, from: Time, until: Option<Time>) -> Option<Self> {
        let is_probed = config.probes.contains(&ProbeSpec::Rtts);
        is_probed.then(|| Self { from, until: until.unwrap_or(Time::MAX), counts: Vec::new() })
    }

    /// Counts a time of a flow of `spec`.
    pub fn add(&mut self, spec: &FlowSpec, sample: &RttSample) {
        let group = spec.group as usize;
        if sample.t < self.from || self.until < sample.t || MOST <= group {
            return;
        }
        if self.counts.len() <= group {
            self.counts.resize(group + 1, Vec::new());
        }
        let (counts, range) = (&mut self.counts[group], range(sample.rtt.as_ps() / 1_000));
        if counts.len() <= range {
            counts.resize(range + 1, 0);
        }
        counts[range] += 1;
    }

    /// Returns the ranges that have been counted, by block.
    pub fn rows(&self) -> Vec<RttRow> {
        let of_group = |(group, counts): (usize, &Vec<u64>)| {
            let row = move |(range, &acks): (usize, &u64)| {
                (0 < acks).then(|| RttRow { group: group as u32, from_ns: start(range), to_ns: start(range + 1), acks })
            };
            counts.iter().enumerate().filter_map(row).collect::<Vec<_>>()
        };
        self.counts.iter().enumerate().flat_map(of_group).collect()
    }
}

/// Returns the number of the range of a time: each nanosecond has its own up to `PER_DOUBLING`, and from there on each
/// doubling has as many ranges of one length.
fn range(ns: u64) -> usize {
    let doublings = (u64::BITS - ns.leading_zeros()).saturating_sub(BITS + 1);
    (u64::from(doublings << BITS) + (ns >> doublings)) as usize
}

/// Returns the least time of a range, in ns.
fn start(range: usize) -> u64 {
    let doublings = (range as u64 >> BITS).saturating_sub(1);
    (range as u64 - (doublings << BITS)) << doublings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_follow_each_other_without_gap() {
        for at in 0..1_500 {
            assert_eq!((range(start(at)), range(start(at + 1) - 1)), (at, at));
        }
        // 8,000 ns: 2^12 = 4,096 has ranges of 128 ns, and 8,000 = 62 * 128 + 64.
        assert_eq!((start(range(8_000)), start(range(8_000) + 1)), (62 * 128, 63 * 128));
    }
}
