//! Round-trip times, counted by traffic block and by ranges of about 2 %.

use fairrate_sim::{FlowSpec, ProbeSpec, RttSample, SimConfig};
use fairrate_units::Time;

use crate::ranges::Ranges;
use crate::rows::RttRow;

/// The ranges of times in nanoseconds, 32 in which a time doubles.
type OfNs = Ranges<5>;

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
        let (counts, range) = (&mut self.counts[group], OfNs::of(sample.rtt.as_ps() / 1_000));
        if counts.len() <= range {
            counts.resize(range + 1, 0);
        }
        counts[range] += 1;
    }

    /// Returns the ranges that have been counted, by block.
    pub fn rows(&self) -> Vec<RttRow> {
        let of_group = |(group, counts): (usize, &Vec<u64>)| {
            let row = move |(range, &acks): (usize, &u64)| {
                let (from_ns, to_ns) = (OfNs::start(range), OfNs::start(range + 1));
                (0 < acks).then_some(RttRow { group: group as u32, from_ns, to_ns, acks })
            };
            counts.iter().enumerate().filter_map(row).collect::<Vec<_>>()
        };
        self.counts.iter().enumerate().flat_map(of_group).collect()
    }
}
