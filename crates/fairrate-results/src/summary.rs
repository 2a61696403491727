//! `summary.json`: the results of a run, in one page.

use std::collections::BTreeMap;

use fairrate_sim::{AllocatorTotals, Counts, Drops};
use fairrate_units::Time;
use serde::{Deserialize, Serialize};
use twox_hash::XxHash64;

use crate::by_name;
use crate::collectives::CollectiveSummary;
use crate::engine::Engine;
use crate::jobs::JobSummary;
use crate::linux::LinuxSummary;
use crate::measured::Measured;
use crate::rank::nearest_rank;
use crate::recovery::RecoverySummary;

/// The state in which a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunState {
    /// The run reached its end.
    Complete,
    /// The user stopped the run.
    Interrupted,
    /// The run could not go on, for this reason.
    Failed(String),
}

/// Mean and percentiles of a set of values. Percentiles are by nearest rank: the ⌈p·n⌉-th smallest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Quantiles {
    /// Arithmetic mean.
    pub mean: f64,
    /// Median.
    pub p50: f64,
    /// 95th percentile.
    pub p95: f64,
    /// 99th percentile.
    pub p99: f64,
    /// 99.9th percentile.
    #[serde(rename = "p99.9")]
    pub p999: f64,
}

impl Quantiles {
    /// Returns mean and percentiles of `values`, which get sorted; `None` if there are no values.
    pub fn of(values: &mut [f64]) -> Option<Self> {
        values.sort_by(f64::total_cmp);
        let n = values.len();
        let at = |p| nearest_rank(n, p).map(|place| values[place]);
        let mean = values.iter().sum::<f64>() / n as f64;
        Some(Self { mean, p50: at(0.5)?, p95: at(0.95)?, p99: at(0.99)?, p999: at(0.999)? })
    }
}

/// Completion times of the flows of a range of sizes that started within the measuring window.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FctBucket {
    /// Name of the range: `<=10KB` ..., and `all`.
    pub bucket: String,
    /// Exclusive lower bound of the flow sizes.
    pub above_bytes: u64,
    /// Inclusive upper bound of the flow sizes; `None` if there is none.
    pub up_to_bytes: Option<u64>,
    /// Number of flows that finished.
    pub flows: u64,
    /// Number of flows that did not finish. In `slowdown` and `fct_ns` they count with the least time that they will
    /// have taken, that until the run ended or that of the flow alone: with such flows, all numbers are lower bounds.
    pub unfinished: u64,
    /// Completion time over the completion time of the flow alone on an idle network.
    pub slowdown: Option<Quantiles>,
    /// Completion time in nanoseconds.
    pub fct_ns: Option<Quantiles>,
}

/// Upper ends of the ranges of flow sizes, in payload bytes; a last range has no end. They are those of PowerTCP's
/// text, with an additional range for the gap between 10 and 100 KB.
pub const SIZE_BOUNDS: [u64; 3] = [10_000, 100_000, 1_000_000];

/// The ranges of sizes.
const BUCKETS: [(&str, u64, Option<u64>); 5] = {
    let [short, gap, medium] = SIZE_BOUNDS;
    [
        ("<=10KB", 0, Some(short)),
        ("10KB-100KB", short, Some(gap)),
        ("100KB-1MB", gap, Some(medium)),
        (">1MB", medium, None),
        ("all", 0, None),
    ]
};

/// Size, completion time and slowdown of a flow, for the buckets.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timed {
    bytes: u64,
    fct_ns: f64,
    slowdown: f64,
}

impl Timed {
    /// Returns the entry of a flow of `bytes` that took `fct`, and that alone on an idle network would take `ideal`.
    pub fn new(bytes: u64, fct: Time, ideal: Time) -> Self {
        Self { bytes, fct_ns: fct.as_ns_f64(), slowdown: fct.as_ps() as f64 / ideal.as_ps().max(1) as f64 }
    }
}

/// Returns the buckets with the finished and unfinished flows.
pub(super) fn buckets(finished: &[Timed], unfinished: &[Timed]) -> Vec<FctBucket> {
    let bucket = |&(name, above, up_to): &(&str, u64, Option<u64>)| {
        let inside = |f: &&Timed| above < f.bytes && up_to.is_none_or(|most| f.bytes <= most);
        let all = || finished.iter().chain(unfinished).filter(inside);
        let (mut slowdown, mut fct): (Vec<f64>, Vec<f64>) = all().map(|f| (f.slowdown, f.fct_ns)).unzip();
        FctBucket {
            bucket: name.to_owned(),
            above_bytes: above,
            up_to_bytes: up_to,
            flows: finished.iter().filter(inside).count() as u64,
            unfinished: unfinished.iter().filter(inside).count() as u64,
            slowdown: Quantiles::of(&mut slowdown),
            fct_ns: Quantiles::of(&mut fct),
        }
    };
    BUCKETS.iter().map(bucket).collect()
}

/// Times until rates settled after arrivals and departures of flows. A change after which they did not settle counts as
/// slower than all others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Convergence {
    /// Number of arrivals and departures.
    pub changes: u64,
    /// Number of changes after which the rates converged.
    pub converged: u64,
    /// Median time in base RTTs; `None` if fewer than half converged.
    pub p50_rtts: Option<f64>,
    /// 99th percentile.
    pub p99_rtts: Option<f64>,
}

impl Convergence {
    /// Returns the summary of the times in base RTTs of all changes, where `None` means not converged.
    pub(super) fn of(rtts: &[Option<f64>]) -> Self {
        let mut known: Vec<f64> = rtts.iter().copied().flatten().collect();
        known.sort_by(f64::total_cmp);
        let at = |p| known.get(nearest_rank(rtts.len(), p)?).copied();
        Self { changes: rtts.len() as u64, converged: known.len() as u64, p50_rtts: at(0.5), p99_rtts: at(0.99) }
    }
}

/// Number of deadlines of flows met, missed and open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deadlines {
    /// Number of flows with a deadline that have started, or have a start time.
    pub flows: u64,
    /// Flows whose last byte arrived after the deadline, or had not arrived when it passed.
    pub missed: u64,
    /// Flows that were unfinished when the run ended, with time left until the deadline.
    pub open: u64,
}

impl Deadlines {
    /// Adds a finished flow, whose deadline was missed or met.
    pub(super) fn add(&mut self, is_missed: bool) {
        self.flows += 1;
        self.missed += u64::from(is_missed);
    }

    /// Returns the counts with unfinished flows added, whose deadlines pass at the times `due`, in a run that ended at
    /// `end`.
    pub(super) fn with_unfinished(self, due: &[Time], end: Time) -> Self {
        let missed = due.iter().filter(|&&at| at < end).count() as u64;
        let unfinished = due.len() as u64;
        Self { flows: self.flows + unfinished, missed: self.missed + missed, open: self.open + unfinished - missed }
    }
}

/// A port that a probe samples.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PortInfo {
    /// Its name, as in the tables.
    pub port: String,
    /// Id of the node it sends from.
    pub node: u32,
    /// Its capacity.
    pub rate_bps: u64,
}

/// A table as it was when its run had ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableInfo {
    /// Its rows.
    pub rows: u64,
    /// Length of its file.
    pub bytes: u64,
    /// XXH64 hash of its file, with seed 0, in hexadecimal.
    pub xxh64: String,
}

/// The state of a run that goes on, or whose process was killed.
pub(crate) const RUNNING: &str = "running";

/// The results of a run, as in `summary.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// `fairrate.results/` and a number, which changes when a field or a column of a table is removed or changes its
    /// meaning.
    pub schema: String,
    /// The backend that moved the packets: `sim` or `linux`.
    #[serde(default = "simulator", skip_serializing_if = "is_simulator")]
    pub backend: String,
    /// Machine and network of a run on real Linux.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub linux: Option<LinuxSummary>,
    /// Name of the scenario.
    pub scenario: String,
    /// Hash of the resolved scenario and its files, in hexadecimal.
    pub scenario_hash: String,
    /// Name of the algorithm.
    pub cc: String,
    /// Name of the algorithm in prose, if it is no built-in one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub cc_title: String,
    /// Seed of the run.
    pub seed: u64,
    /// Version of fairrate.
    pub version: String,
    /// Commit fairrate was built from, or `unknown`.
    pub commit: String,
    /// Hash of the sources that determine the results of a run, [`SOURCES`](crate::SOURCES).
    #[serde(default)]
    pub sources: String,
    /// `complete`, `interrupted` or `failed`; `running` until the run ends, and if the process was killed.
    pub state: String,
    /// The reason of a failure.
    pub error: Option<String>,
    /// Hash of the order of events, in hexadecimal: equal exactly if two runs had the same events.
    pub fingerprint: String,
    /// The ways in which the simulator worked, and the reasons against faster ones; `None` on Linux, and until the
    /// network is built.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub engine: Option<Engine>,
    /// Packets of any kind serialised onto a link.
    pub packet_hops: u64,
    /// Events processed.
    pub events: u64,
    /// Wall-clock time of the run, in seconds.
    pub wall_s: f64,
    /// Simulated time at the end of the run, in seconds.
    pub sim_s: f64,
    /// Bytes of data packets that left hosts; with `bytes_duplicated`, the sum of delivered, dropped, trimmed and in
    /// flight.
    pub bytes_sent: u64,
    /// Bytes of data packets that faulty links have added.
    #[serde(default)]
    pub bytes_duplicated: u64,
    /// Bytes of data packets that reached their receivers.
    pub bytes_delivered: u64,
    /// Bytes of data packets dropped.
    pub bytes_dropped: u64,
    /// Bytes of data packets that switches cut to their headers, before they did.
    #[serde(default)]
    pub bytes_trimmed: u64,
    /// Bytes of data packets in queues and on links at the end.
    pub bytes_in_flight: u64,
    /// Payload bytes that receivers got in order.
    pub goodput_bytes: u64,
    /// Payload bytes that receivers got in order within the measuring window, over its length, in bits per second.
    pub goodput_bps: f64,
    /// The measuring window, and loads within it.
    pub measured: Measured,
    /// Number of flows that have started.
    pub flows: u64,
    /// Number of finite flows whose last byte has arrived.
    pub finished_flows: u64,
    /// Number of finite flows that have started and not finished.
    pub unfinished_flows: u64,
    /// Number of flows whose start time was after the end of the run, or that waited for others until then.
    pub flows_to_start: u64,
    /// Number of endless flows.
    pub endless_flows: u64,
    /// Payload bytes retransmitted.
    pub retransmitted_bytes: u64,
    /// Payload bytes of multipath connections that arrived and waited for bytes before them.
    #[serde(default)]
    pub reordered_bytes: u64,
    /// Mean time that such a byte waited; 0 if there was none.
    #[serde(default)]
    pub reordering_mean_ns: f64,
    /// The longest such time.
    #[serde(default)]
    pub reordering_max_ns: f64,
    /// Packets dropped.
    pub drops: u64,
    /// Packets dropped by cause, as `drops_CAUSE`.
    #[serde(flatten, with = "by_name")]
    pub drops_by_cause: Drops,
    /// Numbers of other things that happened, each under its own name.
    #[serde(flatten, with = "by_name")]
    pub counts: Counts,
    /// Bytes of notices, of control packets and of messages to and from the allocator, each counted once at its sender.
    #[serde(default)]
    pub control_bytes: u64,
    /// Messages to and from the central allocator, if the algorithm has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allocator: Option<AllocatorSummary>,
    /// Largest use of any switch's buffer, headroom included.
    pub peak_buffer_bytes: u64,
    /// Completion times by size of flow.
    pub fct: Vec<FctBucket>,
    /// Deadlines met and missed, if some flow has a deadline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadlines: Option<Deadlines>,
    /// Times until rates settled, if a probe measures them.
    pub convergence: Option<Convergence>,
    /// The time until goodput was back after the first failure of a link, if there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recovery: Option<RecoverySummary>,
    /// The collective operations of the run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub collectives: Vec<CollectiveSummary>,
    /// The training jobs of the run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub jobs: Vec<JobSummary>,
    /// The ports that probes sample.
    pub ports: Vec<PortInfo>,
    /// The tables by name; empty until the run has ended.
    pub tables: BTreeMap<String, TableInfo>,
    /// XXH64 hash of the summary without `wall_s` and this field, to detect damage.
    pub checksum: String,
}

/// Returns the backend of summaries without that field.
pub(super) fn simulator() -> String {
    "sim".to_owned()
}

fn is_simulator(backend: &str) -> bool {
    backend == "sim"
}

impl Summary {
    /// Returns the text of `summary.json`, after setting its checksum.
    pub(super) fn signed_json(&mut self) -> Result<String, serde_json::Error> {
        self.checksum = self.expected_checksum()?;
        Ok(serde_json::to_string_pretty(self)? + "\n")
    }

    /// Returns the checksum of the other fields, with `wall_s` as 0.
    pub(super) fn expected_checksum(&self) -> Result<String, serde_json::Error> {
        let counted = Self { wall_s: 0.0, checksum: String::new(), ..self.clone() };
        Ok(format!("{:016x}", XxHash64::oneshot(0, &serde_json::to_vec(&counted)?)))
    }

    /// Returns `true` if the run has ended: `false` while it goes on, and if its process was killed, when all counts
    /// here are zero.
    pub fn has_ended(&self) -> bool {
        self.state != RUNNING
    }

    /// Returns `true` if this is a complete simulation by this version of fairrate.
    pub fn is_complete_simulation(&self) -> bool {
        self.state == "complete" && is_simulator(&self.backend) && self.version == env!("CARGO_PKG_VERSION")
    }
}

/// Messages between a central allocator and endpoints, each counter under its own name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct AllocatorSummary(#[serde(with = "by_name")] pub AllocatorTotals);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_of_an_allocator_have_their_names() {
        let summary = AllocatorSummary(AllocatorTotals { starts: 3, iterations: 4, ..AllocatorTotals::default() });
        let text = serde_json::to_string(&summary).unwrap();
        assert_eq!(
            text,
            "{\"from_allocator_bytes\":0,\"to_allocator_bytes\":0,\"relayed_bytes\":0,\"from_allocator_ack_bytes\":0,\
             \"to_allocator_ack_bytes\":0,\"sign_of_life_bytes\":0,\"starts\":3,\"ends\":0,\"updates\":0,\"signs_of_life\":0,\
             \"expired\":0,\"iterations\":4}"
        );
        assert_eq!(serde_json::from_str::<AllocatorSummary>(&text).unwrap(), summary);
    }

    #[test]
    fn percentiles_are_by_nearest_rank() {
        let mut values: Vec<f64> = (1..=10).rev().map(f64::from).collect();
        // ceil(.5 * 10) = 5, ceil(.95 * 10) = 10, ceil(.99 * 10) = 10, ceil(.999 * 10) = 10.
        let q = Quantiles::of(&mut values).expect("ten values");
        assert_eq!((q.mean, q.p50, q.p95, q.p99, q.p999), (5.5, 5.0, 10.0, 10.0, 10.0));
        let mut values: Vec<f64> = (1..=1_000).map(f64::from).collect();
        let q = Quantiles::of(&mut values).expect("a thousand values");
        assert_eq!((q.p50, q.p95, q.p99, q.p999), (500.0, 950.0, 990.0, 999.0));
        assert_eq!(Quantiles::of(&mut []), None);
    }

    #[test]
    fn what_has_not_converged_is_slowest() {
        // Ranks ceil(.5 * 4) = 2 and ceil(.99 * 4) = 4.
        let got = Convergence::of(&[Some(3.0), None, Some(1.0), Some(2.0)]);
        assert_eq!((got.changes, got.converged, got.p50_rtts, got.p99_rtts), (4, 3, Some(2.0), None));
        let got = Convergence::of(&[Some(3.0)]);
        assert_eq!((got.p50_rtts, got.p99_rtts), (Some(3.0), Some(3.0)));
        assert_eq!(Convergence::of(&[]), Convergence::default());
    }

    #[test]
    fn a_deadline_that_passes_before_the_end_is_missed() {
        let mut done = Deadlines::default();
        for is_missed in [true, false, false] {
            done.add(is_missed);
        }
        let us = |times: &[u64]| times.iter().map(|&t| Time::from_us(t)).collect::<Vec<_>>();
        // At 5 us, the deadlines at 3 and 4 us are missed; the flow due at 5 us can still meet its deadline.
        let all = done.with_unfinished(&us(&[3, 4, 5, 9]), Time::from_us(5));
        assert_eq!(all, Deadlines { flows: 7, missed: 3, open: 2 });
    }

    #[test]
    fn a_flow_is_in_one_range_and_in_all() {
        let flow = |bytes, ns| Timed::new(bytes, Time::from_ns(ns), Time::from_ns(1));
        let finished = [1, 10_000, 10_001, 1_000_000, 1_000_001].map(|bytes| flow(bytes, 2));
        let buckets = buckets(&finished, &[flow(5, 8)]);
        let counts: Vec<(u64, u64)> = buckets.iter().map(|b| (b.flows, b.unfinished)).collect();
        assert_eq!(counts, [(2, 1), (1, 0), (1, 0), (1, 0), (5, 1)]);
        assert_eq!(buckets[0].slowdown.map(|q| (q.mean, q.p50, q.p99)), Some((4.0, 2.0, 8.0)));
    }
}
