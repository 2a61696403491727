//! The numbers of a run, or of all seeds of one algorithm, that tables show and `--json` prints.

mod fairness;
mod groups;
mod ports;
mod settling;
mod share;

pub use fairness::fairness;
pub use groups::GroupMetrics;
pub use ports::PortMetrics;
pub use settling::Settling;
pub use share::Share;

use std::borrow::Cow;
use std::collections::BTreeSet;

use fairrate_results::{SIZE_BOUNDS, TierLoad};
use fairrate_sim::Counts;
use serde::{Serialize, Serializer};

use self::ports::{all_ports, mean_of_ports, ports, worst_port};
use crate::collectives::{self, CollectiveMetrics};
use crate::completion::{Completion, completions};
use crate::jobs::{self, JobMetrics};
use crate::model::{self, Flow, RunData, Variant, is_host_buffer, own_name};
use crate::stats::{self, Distribution};

/// The share of the offered load that must be carried for a run to count as near steady state.
pub const STEADY: f64 = 0.9;

/// Ranges of flow sizes: those of the PowerTCP paper's short, medium and long flows, and of `summary.json`.
pub const SIZE_BUCKETS: [SizeBucket; 4] = {
    let [short, gap, medium] = SIZE_BOUNDS;
    [
        SizeBucket { name: "<= 10 KB", above: 0, up_to: short },
        SizeBucket { name: "10-100 KB", above: short, up_to: gap },
        SizeBucket { name: "100 KB-1 MB", above: gap, up_to: medium },
        SizeBucket { name: "> 1 MB", above: medium, up_to: u64::MAX },
    ]
};

/// A range of flow sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SizeBucket {
    /// Name in tables.
    pub name: &'static str,
    /// Lower end, exclusive: payload bytes of a flow.
    pub above: u64,
    /// Upper end, inclusive.
    pub up_to: u64,
}

/// The numbers of one algorithm. Over several seeds, slowdowns are pooled and everything else is the mean.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Metrics {
    /// Name on the command line.
    pub cc: String,
    /// Name in tables.
    pub label: String,
    /// Name in prose.
    pub title: String,
    /// The point of a grid, as `load=0.6`; empty without a grid.
    pub point: String,
    /// Seeds of the runs.
    pub seeds: Vec<u64>,
    /// The ends of the measuring window of each run, in ns.
    pub windows_ns: Vec<(f64, f64)>,
    /// FCT slowdown of the flows that started within the window: first of all sizes, then by size bucket; buckets
    /// without flows are left out. An unfinished flow counts with the least slowdown that it will have.
    pub slowdown: Vec<BucketSlowdown>,
    /// Completion of all flows, and of traffic blocks.
    pub completion: Vec<Completion>,
    /// Every probed port.
    pub ports: Vec<PortMetrics>,
    /// All probed ports together, where there are several: queues of all times and ports pooled, counters summed,
    /// utilisation their mean.
    pub all_ports: Option<PortMetrics>,
    /// The port with the largest 99th percentile of its queue, where there are several; over several seeds the mean of
    /// the worst port of each.
    pub worst_port: Option<PortMetrics>,
    /// Offered and carried load by tier of links.
    pub load: Vec<TierLoad>,
    /// Payload bits delivered per second of the measuring window, over all flows.
    pub goodput_bps: f64,
    /// Jain index of the long flows' goodput; see [`fairness()`].
    pub jain: Option<f64>,
    /// The share of each traffic block, where there are several.
    pub groups: Vec<GroupMetrics>,
    /// Collective operations.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub collectives: Vec<CollectiveMetrics>,
    /// Training jobs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub jobs: Vec<JobMetrics>,
    /// Convergence of rates after arrivals and departures of flows, if there was a probe.
    pub convergence: Option<Convergence>,
    /// Time from the first failure of a link until goodput was back, in ns; infinite if it was not under some seed,
    /// `None` without a failure.
    pub recovery_ns: Option<f64>,
    /// Goodput at the end of the windows after that failure over goodput before it; `None` without a failure, or with
    /// too few windows.
    pub settled: Option<f64>,
    /// Data packets dropped.
    pub drops: f64,
    /// Numbers of other things that happened, each under its own name.
    #[serde(flatten, serialize_with = "by_name")]
    pub counts: Counts<f64>,
    /// Bytes of data packets that switches cut to their headers, before they did.
    pub trimmed_bytes: f64,
    /// Bytes of notices and control packets on the wire, counted once where they are sent.
    pub control_bytes: f64,
    /// The same over the bytes of data packets; `None` if either is zero.
    pub control_share: Option<f64>,
    /// Payload bytes retransmitted.
    pub retransmitted_bytes: f64,
    /// Payload bytes of multipath connections that waited for bytes before them.
    pub reordered_bytes: f64,
    /// Time such a byte waited, on average, in ns; 0 if no byte did.
    pub reordering_mean_ns: f64,
    /// The longest wait, in ns.
    pub reordering_max_ns: f64,
    /// Flows that finished.
    pub flows_done: f64,
    /// Finite flows that did not finish.
    pub flows_unfinished: f64,
    /// Deadlines met and missed, if some flows have one.
    pub deadlines: Option<DeadlineMetrics>,
    /// Simulated time, in s.
    pub sim_s: f64,
    /// Packets of any kind serialised onto a link.
    pub packet_hops: f64,
    /// Wall-clock time, in s: not in reports, whose bytes depend on nothing but the scenario.
    pub wall_s: f64,
    /// Wall-clock time per packet-hop, in ns.
    pub ns_per_packet_hop: Option<f64>,
    /// The same numbers of each seed alone, where there are several.
    #[serde(skip)]
    pub per_seed: Vec<Metrics>,
}

/// FCT slowdown of the flows of a range of sizes, or of a traffic block.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct BucketSlowdown {
    /// The range in words, `all sizes` for all; for a block its name, or `traffic 1` for the second one if it has none.
    pub bucket: Cow<'static, str>,
    /// The number of the block, from 0; `None` for a range of sizes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub block: Option<u32>,
    /// `true` if tables show it: a range of sizes, or a block with a name.
    #[serde(skip)]
    pub is_shown: bool,
    /// The distribution. Unfinished flows are its bounds.
    #[serde(flatten)]
    pub slowdown: Distribution,
}

impl BucketSlowdown {
    /// Returns the flows that finished, if not all did.
    pub fn share(&self) -> Option<Share> {
        let (flows, unfinished) = (self.slowdown.n, self.slowdown.n_bounds);
        (0 < unfinished).then_some(Share { finished: flows - unfinished, flows })
    }

    /// Returns the fraction of the flows that did not finish.
    pub fn unfinished_share(&self) -> f64 {
        self.slowdown.n_bounds as f64 / self.slowdown.n.max(1) as f64
    }
}

/// Convergence of rates after arrivals and departures of flows, pooled over all seeds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Convergence {
    /// Arrivals and departures.
    pub changes: usize,
    /// Changes after which the rates converged.
    pub converged: usize,
    /// Median time in base RTTs. A change without convergence is slower than all others; `None` if the rank falls
    /// there.
    pub p50_rtts: Option<f64>,
    /// 99th percentile in base RTTs, in the same way.
    pub p99_rtts: Option<f64>,
}

/// Deadlines of flows that were met and missed, pooled over all seeds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct DeadlineMetrics {
    /// Flows with a deadline that started.
    pub flows: u64,
    /// Flows that missed their deadline.
    pub missed: u64,
    /// Flows that were unfinished when the run ended, with time left.
    pub open: u64,
    /// `missed` over all flows but `open`; `None` if all are open.
    pub missed_share: Option<f64>,
}

/// Writes each counter under its own name.
fn by_name<S: Serializer>(counts: &Counts<f64>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(counts.by_name())
}

/// Returns the name of the traffic block with the number `block` in all of `columns`. Its number stands for it if it
/// has no name, or another one in another column: values of columns are compared by number.
pub fn block_words<'a>(columns: impl Iterator<Item = &'a Metrics>, block: u32) -> String {
    let names: BTreeSet<&str> = columns.filter_map(|m| m.block_name(block)).collect();
    match names.first() {
        Some(name) if names.len() == 1 => (*name).to_owned(),
        _ => model::block_name(&[], block),
    }
}

impl Metrics {
    /// Returns the numbers of one algorithm.
    pub fn of(variant: &Variant) -> Self {
        let alone = |run| Self::of_runs(variant, std::slice::from_ref(run));
        let per_seed = if variant.runs.len() < 2 { Vec::new() } else { variant.runs.iter().map(alone).collect() };
        let all = Self::of_runs(variant, &variant.runs);
        let worst: Vec<PortMetrics> = per_seed.iter().filter_map(|m| m.worst_port.clone()).collect();
        let worst_port = mean_of_ports(&worst).map(|mean| {
            let port =
                if worst.iter().all(|w| w.port == mean.port) { mean.port.clone() } else { "of each seed".into() };
            PortMetrics { port, ..mean }
        });
        Self { per_seed, worst_port: worst_port.or(all.worst_port.clone()), ..all }
    }

    /// Returns all probed ports of links together, or the only one; without any, the first receive buffer.
    pub fn main_port(&self) -> Option<&PortMetrics> {
        let link = || self.ports.iter().find(|port| !is_host_buffer(&port.port));
        self.all_ports.as_ref().or_else(link).or_else(|| self.ports.first())
    }

    fn of_runs(variant: &Variant, runs: &[RunData]) -> Self {
        let mean = |f: &dyn Fn(&RunData) -> f64| runs.iter().map(f).sum::<f64>() / runs.len() as f64;
        let is_known = !runs.iter().any(|run| run.is_open);
        let total = |f: &dyn Fn(&RunData) -> f64| if is_known { mean(f) } else { f64::NAN };
        let jains: Vec<f64> = runs.iter().filter_map(fairness).collect();
        let hops = total(&|r| r.totals.packet_hops as f64);
        let control_bytes = total(&|r| r.totals.control_bytes as f64);
        let data_bytes = total(&|r| r.totals.data_bytes as f64);
        let wall_s = total(&|r| r.totals.wall_s);
        let ports = ports(runs);
        let mut counts = Counts::default();
        for run in runs {
            counts += run.totals.counts;
        }
        Self {
            cc: variant.first().cc.clone(),
            label: variant.label.clone(),
            title: variant.title.clone(),
            point: variant.first().point.clone(),
            seeds: runs.iter().map(|r| r.seed).collect(),
            windows_ns: runs.iter().map(RunData::window).collect(),
            slowdown: slowdowns(runs),
            completion: completions(runs),
            worst_port: worst_port(&ports),
            ports,
            all_ports: all_ports(runs),
            load: load(runs),
            goodput_bps: total(&|r| r.totals.goodput_bps),
            jain: stats::mean(&jains),
            groups: groups::of(runs),
            collectives: collectives::metrics(runs),
            jobs: jobs::metrics(runs),
            convergence: convergence(runs),
            recovery_ns: stats::mean(&runs.iter().filter_map(|r| r.totals.recovery_ns).collect::<Vec<_>>()),
            settled: stats::mean(&runs.iter().filter_map(|r| r.totals.settled).collect::<Vec<_>>()),
            drops: total(&|r| r.totals.drops as f64),
            counts: counts.map(|n| if is_known { n as f64 / runs.len() as f64 } else { f64::NAN }),
            trimmed_bytes: total(&|r| r.totals.trimmed_bytes as f64),
            control_bytes,
            control_share: (0.0 < data_bytes && 0.0 < control_bytes).then(|| control_bytes / data_bytes),
            retransmitted_bytes: total(&|r| r.totals.retransmitted_bytes as f64),
            reordered_bytes: total(&|r| r.totals.reordered_bytes as f64),
            reordering_mean_ns: total(&|r| r.totals.reordering_mean_ns),
            reordering_max_ns: total(&|r| r.totals.reordering_max_ns),
            flows_done: total(&|r| r.totals.flows_done as f64),
            flows_unfinished: total(&|r| r.totals.flows_unfinished as f64),
            deadlines: deadlines(runs),
            sim_s: mean(&|r| r.totals.end_ns / 1e9),
            packet_hops: hops,
            wall_s,
            ns_per_packet_hop: (0.0 < hops).then(|| wall_s * 1e9 / hops),
            per_seed: Vec::new(),
        }
    }

    /// Returns the numbers of each seed; of a single one, its own.
    pub fn seeds_alone(&self) -> &[Self] {
        if self.per_seed.is_empty() { std::slice::from_ref(self) } else { &self.per_seed }
    }

    /// Returns the first tier that carried much less than it was offered: the network is far from steady state, or
    /// overloaded.
    pub fn behind(&self) -> Option<&TierLoad> {
        self.load.iter().find(|tier| tier.offered.is_some_and(|offered| tier.carried < STEADY * offered))
    }

    /// Returns the slowdown of flows of all sizes.
    pub fn overall(&self) -> Option<&Distribution> {
        self.slowdown.first().map(|b| &b.slowdown)
    }

    /// Returns the number of measured finite flows that finished, if not all did.
    pub fn finished(runs: &[RunData]) -> Option<Share> {
        let finite = || runs.iter().flat_map(RunData::measured_flows).filter(|f| f.bytes.is_some());
        let (finished, flows) = (finite().filter(|f| f.slowdown.get().is_some()).count(), finite().count());
        (finished < flows).then_some(Share { finished, flows })
    }

    /// Returns the slowdown of the flows of the traffic block with the number `block`, if it has a name or there are
    /// several blocks.
    pub fn of_block(&self, block: u32) -> Option<&BucketSlowdown> {
        self.slowdown.iter().find(|b| b.block == Some(block))
    }

    /// Returns the completion of the traffic block with the number `block`, or of all flows.
    pub fn completion_of(&self, block: Option<u32>) -> Option<&Completion> {
        self.completion.iter().find(|c| c.block == block)
    }

    /// Returns the name in words of the traffic block with the number `block`, where there are several or it has one.
    fn block_name(&self, block: u32) -> Option<&str> {
        let by_share = || self.group(block).map(|group| group.name.as_str());
        let by_completion = || self.completion_of(Some(block)).map(|completion| completion.name.as_str());
        self.of_block(block).map(|bucket| bucket.bucket.as_ref()).or_else(by_share).or_else(by_completion)
    }

    /// Returns `true` if traffic blocks have different algorithms or transports.
    pub fn has_several_kinds(&self) -> bool {
        let kind = |group: &GroupMetrics| (group.cc.clone(), group.transport.clone());
        self.groups.iter().any(|group| kind(group) != kind(&self.groups[0]))
    }

    /// Returns what the traffic block with the number `block` got.
    pub fn group(&self, block: u32) -> Option<&GroupMetrics> {
        self.groups.iter().find(|group| group.block == block)
    }

    /// Returns the slowdown of the flows of the bucket `name`.
    pub fn bucket(&self, name: &str) -> Option<&BucketSlowdown> {
        self.slowdown.iter().find(|b| b.bucket == name)
    }
}

/// Returns the slowdown of all flows, by size bucket, and by traffic block, unless a single one without a name is all
/// there is.
fn slowdowns(runs: &[RunData]) -> Vec<BucketSlowdown> {
    let finite = || runs.iter().flat_map(RunData::measured_flows).filter(|f| f.bytes.is_some());
    let of = |inside: &dyn Fn(&Flow) -> bool| {
        let flows = || finite().filter(|flow| inside(flow));
        let bounds: Vec<f64> = flows().filter_map(|f| f.at_least.get()).collect();
        Distribution::with_bounds(flows().filter_map(|f| f.slowdown.get()).collect(), &bounds)
    };
    let all = SizeBucket { name: "all sizes", above: 0, up_to: u64::MAX };
    let sizes = std::iter::once(all).chain(SIZE_BUCKETS).map(|size| {
        let slowdown = of(&|f| f.bytes.is_some_and(|b| size.above < b.get() && b.get() <= size.up_to));
        BucketSlowdown { bucket: size.name.into(), block: None, is_shown: true, slowdown }
    });
    let blocks: BTreeSet<u32> = finite().map(|flow| flow.block).collect();
    let names = runs.first().map_or(&[][..], |run| &run.blocks);
    // A single block is all flows: tables have no second row for it.
    let several = 1 < blocks.len();
    let by_block = blocks.iter().filter_map(|&block| {
        let has_name = own_name(names, block).is_some();
        if !(has_name || several) {
            return None;
        }
        let bucket = model::block_name(names, block).into();
        let slowdown = of(&|flow| flow.block == block);
        Some(BucketSlowdown { bucket, block: Some(block), is_shown: several && has_name, slowdown })
    });
    sizes.chain(by_block).filter(|b| b.slowdown.n != 0).collect()
}

/// Returns the load on each tier of the first run, averaged over the runs.
fn load(runs: &[RunData]) -> Vec<TierLoad> {
    let average = |tier: &TierLoad| {
        let same = || runs.iter().flat_map(|r| &r.measured.load).filter(|t| t.links == tier.links);
        let offered: Option<Vec<f64>> = same().map(|t| t.offered).collect();
        let carried: Vec<f64> = same().map(|t| t.carried).collect();
        TierLoad {
            links: tier.links.clone(),
            offered: offered.and_then(|each| stats::mean(&each)),
            carried: stats::mean(&carried).unwrap_or(0.0),
        }
    };
    runs.first().map_or_else(Vec::new, |first| first.measured.load.iter().map(average).collect())
}

/// Returns the convergence of rates over all runs.
fn convergence(runs: &[RunData]) -> Option<Convergence> {
    let rtts = stats::sorted(runs.iter().flat_map(|r| &r.settled_rtts).copied());
    let at = |p| stats::percentile(&rtts, p).filter(|x| x.is_finite());
    let converged = rtts.partition_point(|x| x.is_finite());
    let (changes, p50_rtts, p99_rtts) = (rtts.len(), at(0.5), at(0.99));
    (0 < changes).then_some(Convergence { changes, converged, p50_rtts, p99_rtts })
}

/// Returns the deadlines of all runs.
fn deadlines(runs: &[RunData]) -> Option<DeadlineMetrics> {
    let all = || runs.iter().filter_map(|r| r.totals.deadlines);
    all().next()?;
    let (flows, missed) = (all().map(|d| d.flows).sum::<u64>(), all().map(|d| d.missed).sum::<u64>());
    let open = all().map(|d| d.open).sum::<u64>();
    let missed_share = (open < flows).then(|| missed as f64 / (flows - open) as f64);
    Some(DeadlineMetrics { flows, missed, open, missed_share })
}

#[cfg(test)]
mod tests;
