//! The measures of a comparison: which numbers of the columns are shown, under which keys, and how they are written.

use std::collections::BTreeSet;

use super::{Better, Cell, Group, Measure, Value, best, by_seed, pairs};
use crate::bootstrap::{Difference, Estimate};
use crate::collectives::{self, bandwidth};
use crate::completion;
use crate::format;
use crate::jobs;
use crate::metrics::{BucketSlowdown, Convergence, GroupMetrics, Metrics, PortMetrics, Share, block_words};
use crate::stats::{Distribution, Percentile};

/// The columns of a comparison, from which its measures are made.
pub(super) struct Columns<'a> {
    metrics: &'a [Metrics],
    /// The number of each column's baseline.
    baselines: Vec<usize>,
}

impl<'a> Columns<'a> {
    /// Finds the baselines of `metrics`, one entry per column.
    pub(super) fn of(metrics: &'a [Metrics]) -> Self {
        Self { metrics, baselines: (0..metrics.len()).map(|i| baseline(metrics, i)).collect() }
    }

    /// Returns the measure `name` with the key `key`: the mean of `value` in each column, and its difference from the
    /// column's baseline.
    fn measure(
        &self,
        key: String,
        name: &'static str,
        better: Better,
        value: Value<'_>,
        show: fn(f64) -> String,
    ) -> Measure {
        let series: Vec<Vec<(u64, f64)>> = self.metrics.iter().map(|m| by_seed(m, value)).collect();
        let cell = |i: usize| {
            let values: Vec<f64> = series[i].iter().map(|(_, x)| *x).collect();
            let base = self.baselines[i];
            let difference =
                if i == base { None } else { Difference::of(&pairs(&series[i], &series[base])).map(|d| (base, d)) };
            Cell { estimate: Estimate::of(&values), difference, bound: None }
        };
        let cells = (0..self.metrics.len()).map(cell).collect();
        Measure {
            key,
            name,
            better,
            show,
            cells,
            best: best(self.metrics, value, better, show, &|_| false),
            is_largest: false,
        }
    }

    /// Returns the measures of the FCT slowdown of `bucket`.
    pub(super) fn slowdown(&self, bucket: &str) -> Group {
        let of = |m: &Metrics| m.bucket(bucket).map(|b| b.slowdown);
        let key = |field: &str| format!("slowdown[{bucket}].{field}");
        let measure = |name, field, f: fn(&Distribution) -> Option<f64>| {
            let value = |m: &Metrics| of(m).as_ref().and_then(f);
            let mut measure = self.measure(key(field), name, Better::Lower, &value, format::number);
            self.mark(&mut measure, &of, f);
            measure
        };
        let mut measures = vec![
            measure("mean", "mean", |d| d.mean),
            measure("p50", "p50", |d| d.p50),
            measure("p95", "p95", |d| d.p95),
            measure("p99", "p99", |d| d.p99),
            measure("p99.9", "p999", |d| d.p999),
        ];
        let unfinished = |m: &Metrics| m.bucket(bucket).map(BucketSlowdown::unfinished_share);
        if self.metrics.iter().filter_map(unfinished).any(|share| 0.0 < share) {
            measures.push(self.measure(key("unfinished"), "unfinished", Better::Lower, &unfinished, format::percent));
        }
        let mut counts: Vec<usize> = self.metrics.iter().filter_map(of).map(|d| d.n).collect();
        counts.dedup();
        let title = format!("FCT slowdown, {bucket}");
        if let [n] = counts[..] {
            return Group {
                title: format!("{title} ({} flows{})", format::count(n as f64), self.of_seeds()),
                measures,
            };
        }
        let n = |m: &Metrics| of(m).map(|d| d.n as f64);
        measures.insert(0, self.measure(key("n"), "flows", Better::Neither, &n, format::count));
        Group { title, measures }
    }

    /// Returns the measures of the completion of each traffic block that has a name: of the whole block, and of its
    /// queries.
    pub(super) fn completions(&self) -> Vec<Group> {
        let shown = |m: &Metrics| m.completion.iter().filter(|c| c.is_shown).map(|c| c.block).collect::<Vec<_>>();
        let blocks: BTreeSet<Option<u32>> = self.metrics.iter().flat_map(shown).collect();
        blocks.into_iter().map(|block| self.completion(block)).collect()
    }

    fn completion(&self, block: Option<u32>) -> Group {
        let of = |m: &Metrics| m.completion_of(block).cloned();
        let name = completion::name_in(self.metrics, block);
        let key = |field: &str| format!("completion[{name}].{field}");
        let time = |m: &Metrics| of(m)?.time_ns;
        let mut measures = vec![self.measure(key("time_ns"), "whole block", Better::Lower, &time, format::time_ns)];
        if self.metrics.iter().filter_map(of).any(|c| c.has_queries()) {
            let mut query = |name, field, f: fn(&Distribution) -> Option<f64>| {
                let value = |m: &Metrics| f(&of(m)?.queries);
                let mut measure = self.measure(key(field), name, Better::Lower, &value, format::time_ns);
                let all = |m: &Metrics| of(m).map(|c| c.queries);
                self.mark(&mut measure, &all, f);
                measures.push(measure);
            };
            query("query p50", "queries.p50", |d| d.p50);
            query("query p99", "queries.p99", |d| d.p99);
        }
        let mut counts: Vec<usize> = self.metrics.iter().filter_map(of).map(|c| c.flows + c.endless).collect();
        counts.dedup();
        let title = format!("Completion of {name}");
        match counts[..] {
            [n] => Group { title: format!("{title} ({} flows{})", format::count(n as f64), self.of_seeds()), measures },
            _ => Group { title, measures },
        }
    }

    /// Returns the measures of what each traffic block got, where blocks have different algorithms or transports.
    pub(super) fn shares(&self) -> Vec<Group> {
        if !self.metrics.iter().any(Metrics::has_several_kinds) {
            return Vec::new();
        }
        let most = self.metrics.iter().max_by_key(|m| m.groups.len());
        most.map_or_else(Vec::new, |m| m.groups.iter().map(|group| self.share(group)).collect())
    }

    fn share(&self, GroupMetrics { block, cc, flows, .. }: &GroupMetrics) -> Group {
        use Better::{Higher, Lower, Neither};
        let name = block_words(self.metrics.iter(), *block);
        let key = |field: &str| format!("groups[{name}].{field}");
        let pick = |f: fn(&GroupMetrics) -> Option<f64>| move |m: &Metrics| m.group(*block).and_then(f);
        let measure = |name, field, better, f, show| self.measure(key(field), name, better, &pick(f), show);
        let jain = |x: f64| format!("{x:.4}");
        let mut measures = vec![
            measure("goodput", "goodput_bps", Higher, |g| Some(g.goodput_bps), format::rate),
            measure("share of all", "share", Neither, |g| g.share, format::percent),
            measure("of a fair share", "fair_share", Neither, |g| g.fair_share, format::percent),
            measure("Jain index", "jain", Higher, |g| g.jain, jain),
            measure("drops, whole run", "drops", Lower, |g| Some(g.drops), format::count),
            measure("arrived marked, whole run", "marked", Neither, |g| Some(g.marked), format::count),
            measure(
                "sent again, whole run",
                "retransmitted_bytes",
                Lower,
                |g| Some(g.retransmitted_bytes),
                format::bytes,
            ),
        ];
        measures.retain(|m| m.name != "Jain index" || m.cells.iter().any(|cell| cell.estimate.is_some()));
        let is_one = self.metrics.iter().all(|m| m.group(*block).is_none_or(|g| g.cc == *cc && g.flows == *flows));
        let what = if is_one { format!(" ({cc}, {} flows)", format::count(*flows as f64)) } else { String::new() };
        Group { title: format!("Share of {name}{what}"), measures }
    }

    /// Returns ` of 5 seeds`, the words behind a number of flows; empty for a single seed.
    fn of_seeds(&self) -> String {
        let seeds = self.metrics.iter().map(|m| m.seeds.len()).max().unwrap_or(1);
        if seeds < 2 { String::new() } else { format!(" of {seeds} seeds") }
    }

    /// Marks the cells whose number is a lower bound under some seed, as `f` takes it from the distribution `of` the
    /// column, and the measure if it is a percentile of too few flows. A best value that is a bound may not be the
    /// best.
    fn mark(
        &self,
        measure: &mut Measure,
        of: &dyn Fn(&Metrics) -> Option<Distribution>,
        f: fn(&Distribution) -> Option<f64>,
    ) {
        for (cell, m) in measure.cells.iter_mut().zip(self.metrics) {
            let is_bound = |d: Distribution| measure.name == "mean" || f(&d).is_some_and(|x| d.is_bound(x));
            let bounded = m.seeds_alone().iter().filter_map(of).any(|d| 0 < d.n_bounds && is_bound(d));
            let share = of(m).map(|d| Share { finished: d.n - d.n_bounds, flows: d.n });
            cell.bound = share.filter(|_| bounded);
        }
        measure.best.retain(|i| measure.cells[*i].bound.is_none());
        let percentile = measure.name.rsplit(' ').next().and_then(Percentile::by_name);
        let least = percentile.map_or(0, Percentile::least_flows);
        let seeds = self.metrics.iter().flat_map(Metrics::seeds_alone);
        measure.is_largest = seeds.filter_map(of).any(|d| 0 < d.n && d.n < least);
    }

    /// Returns the measures of the port named `port`.
    pub(super) fn port(&self, port: &str) -> Group {
        let of = |m: &Metrics| m.ports.iter().find(|p| p.port == port).cloned();
        Group { title: format!("Port {port}"), measures: self.port_measures(&format!("ports[{port}]"), &of) }
    }

    /// Returns the measures of all ports together.
    pub(super) fn all_ports(&self) -> Group {
        let mut titles: Vec<&str> =
            self.metrics.iter().filter_map(|m| Some(m.all_ports.as_ref()?.port.as_str())).collect();
        titles.dedup();
        let title = if let [title] = titles[..] { title } else { "all probed ports" };
        let mut measures = self.port_measures("all_ports", &|m| m.all_ports.clone());
        let worst = |m: &Metrics| Some(m.worst_port.as_ref()?.qlen_p99_bytes);
        let (key, name) = ("worst_port.qlen_p99_bytes".to_owned(), "queue p99, worst port");
        let at = measures.iter().position(|m| m.name == "queue p99").map_or(measures.len(), |i| i + 1);
        measures.insert(at, self.measure(key, name, Better::Lower, &worst, format::bytes));
        Group { title: title.replacen("all", "All", 1), measures }
    }

    /// Returns the measures of the port that `of` finds in a column; their keys begin with `key`.
    fn port_measures(&self, key: &str, of: &dyn Fn(&Metrics) -> Option<PortMetrics>) -> Vec<Measure> {
        let pick = |f: fn(&PortMetrics) -> Option<f64>| move |m: &Metrics| of(m).as_ref().and_then(f);
        let key = |field: &str| format!("{key}.{field}");
        let queue = |name, field, f| self.measure(key(field), name, Better::Lower, &pick(f), format::bytes);
        vec![
            self.measure(key("utilisation"), "utilisation", Better::Higher, &pick(|p| p.utilisation), format::percent),
            queue("queue mean", "qlen_mean_bytes", |p| Some(p.qlen_mean_bytes)),
            queue("queue p99", "qlen_p99_bytes", |p| Some(p.qlen_p99_bytes)),
            queue("queue peak", "qlen_peak_bytes", |p| Some(p.qlen_peak_bytes)),
        ]
    }

    /// Returns the measures of each collective operation.
    pub(super) fn collectives(&self) -> Vec<Group> {
        let blocks: BTreeSet<u32> =
            self.metrics.iter().flat_map(|m| m.collectives.iter().map(|collective| collective.block)).collect();
        blocks.into_iter().map(|block| self.collective(block)).collect()
    }

    fn collective(&self, block: u32) -> Group {
        let of = |m: &Metrics| m.collectives.iter().find(|collective| collective.block == block).cloned();
        let name = collectives::name_in(self.metrics, block);
        let key = |field: &str| format!("collectives[{block}].{field}");
        let time = |m: &Metrics| of(m)?.time_ns;
        let longest = |m: &Metrics| of(m)?.longest_ns;
        let busbw = |m: &Metrics| of(m)?.busbw_bytes_per_s;
        let complete = |m: &Metrics| Some(of(m)?.complete as f64 / m.seeds.len().max(1) as f64);
        let measures = vec![
            self.measure(key("time_ns"), "time, mean", Better::Lower, &time, format::time_ns),
            self.measure(key("longest_ns"), "time, longest", Better::Lower, &longest, format::time_ns),
            self.measure(key("busbw_bytes_per_s"), "busbw", Better::Higher, &busbw, bandwidth),
            self.measure(key("complete"), "iterations done", Better::Neither, &complete, format::count),
        ];
        Group { title: format!("Collective {name}"), measures }
    }

    /// Returns the measures of each training job.
    pub(super) fn jobs(&self) -> Vec<Group> {
        let blocks: BTreeSet<u32> = self.metrics.iter().flat_map(|m| m.jobs.iter().map(|job| job.block)).collect();
        blocks.into_iter().map(|block| self.job(block)).collect()
    }

    fn job(&self, block: u32) -> Group {
        let of = |m: &Metrics| m.jobs.iter().find(|job| job.block == block).cloned();
        let name = jobs::name_in(self.metrics, block);
        let key = |field: &str| format!("jobs[{block}].{field}");
        let time = |m: &Metrics| of(m)?.time_ns;
        let longest = |m: &Metrics| of(m)?.longest_ns;
        let compute = |m: &Metrics| of(m)?.compute_ns;
        let exposed = |m: &Metrics| of(m)?.exposed_ns;
        let pipeline = |m: &Metrics| of(m)?.pipeline_ns;
        let complete = |m: &Metrics| Some(of(m)?.complete as f64 / m.seeds.len().max(1) as f64);
        let measures = vec![
            self.measure(key("time_ns"), "iteration, mean", Better::Lower, &time, format::time_ns),
            self.measure(key("longest_ns"), "iteration, longest", Better::Lower, &longest, format::time_ns),
            self.measure(key("compute_ns"), "compute", Better::Neither, &compute, format::time_ns),
            self.measure(key("exposed_ns"), "exposed communication", Better::Lower, &exposed, format::time_ns),
            self.measure(key("pipeline_ns"), "waits for pipeline", Better::Lower, &pipeline, format::time_ns),
            self.measure(key("complete"), "iterations done", Better::Neither, &complete, format::count),
        ];
        Group { title: format!("Training {name}"), measures }
    }

    /// Returns the measures of convergence of rates, if a column has a convergence probe.
    pub(super) fn convergence(&self) -> Option<Group> {
        let changes = self.metrics.iter().filter_map(|m| m.convergence).map(|c| c.changes).max()?;
        let pick = |f: fn(&Convergence) -> f64| move |m: &Metrics| m.convergence.as_ref().map(f);
        // A rank among the changes that have not converged is slower than any other: it has no mean.
        let rtts = |name, field: &str, f| {
            self.measure(format!("convergence.{field}"), name, Better::Lower, &pick(f), format::number)
        };
        let share = |c: &Convergence| c.converged as f64 / c.changes as f64;
        let converged = "convergence.converged / convergence.changes".to_owned();
        let measures = vec![
            self.measure(converged, "changes converged", Better::Higher, &pick(share), format::percent),
            rtts("p50 (base RTTs)", "p50_rtts", |c| c.p50_rtts.unwrap_or(f64::INFINITY)),
            rtts("p99 (base RTTs)", "p99_rtts", |c| c.p99_rtts.unwrap_or(f64::INFINITY)),
        ];
        let plural = if changes == 1 { "" } else { "s" };
        Some(Group {
            title: format!("Convergence of rates ({} change{plural})", format::count(changes as f64)),
            measures,
        })
    }

    /// Returns the measures of rates and loads of all flows within the measuring window.
    pub(super) fn all_flows(&self) -> Group {
        let jain = |x: f64| format!("{x:.4}");
        let goodput = |m: &Metrics| Some(m.goodput_bps);
        let mut measures = vec![
            self.measure("goodput_bps".to_owned(), "goodput", Better::Higher, &goodput, format::rate),
            self.measure("jain".to_owned(), "Jain index", Better::Higher, &|m| m.jain, jain),
        ];
        // A recovery that did not come is infinite: it has no mean.
        let recovery = |m: &Metrics| m.recovery_ns;
        if self.metrics.iter().any(|m| m.recovery_ns.is_some()) {
            measures.push(self.measure(
                "recovery_ns".to_owned(),
                "recovery",
                Better::Lower,
                &recovery,
                format::time_ns,
            ));
        }
        let settled = |m: &Metrics| m.settled;
        if self.metrics.iter().any(|m| m.settled.is_some()) {
            measures.push(self.measure("settled".to_owned(), "settled at", Better::Higher, &settled, format::percent));
        }
        for (links, offered_name, carried_name) in TIERS {
            let of = |m: &Metrics| m.load.iter().find(|tier| tier.links == links).cloned();
            let (offered, carried) = (|m: &Metrics| of(m)?.offered, |m: &Metrics| Some(of(m)?.carried));
            if self.metrics.iter().any(|m| offered(m).is_some()) {
                let key = |field: &str| format!("load[{links}].{field}");
                measures.push(self.measure(key("offered"), offered_name, Better::Neither, &offered, format::percent));
                measures.push(self.measure(key("carried"), carried_name, Better::Higher, &carried, format::percent));
            }
        }
        Group { title: "All flows".into(), measures }
    }

    /// Returns the measure of the simulator's speed, which depends on the machine: it has no interval and no
    /// difference.
    fn speed(&self) -> Measure {
        let (value, show) = (|m: &Metrics| m.ns_per_packet_hop, |x: f64| format!("{x:.0}"));
        let mut speed =
            self.measure("ns_per_packet_hop".to_owned(), "ns per packet-hop", Better::Neither, &value, show);
        for cell in &mut speed.cells {
            cell.difference = None;
            cell.estimate = cell.estimate.map(|estimate| Estimate { interval: None, ..estimate });
        }
        speed
    }

    /// Returns the counters of the run from its start to its end.
    pub(super) fn whole_run(&self) -> Group {
        use Better::{Lower, Neither};
        let measure =
            |name, key: &str, better, value: Value<'_>, show| self.measure(key.to_owned(), name, better, value, show);
        let mut measures = vec![
            measure("PFC pauses", "pfc_pauses", Lower, &|m| Some(m.counts.pfc_pauses), format::count),
            measure("drops", "drops", Lower, &|m| Some(m.drops), format::count),
        ];
        // Packets that switches cut in place of dropping them, where any did.
        if self.metrics.iter().any(|m| 0.0 < m.counts.trims) {
            measures.push(measure("trims", "trims", Lower, &|m| Some(m.counts.trims), format::count));
            let bytes = |m: &Metrics| Some(m.trimmed_bytes);
            measures.push(measure("trimmed", "trimmed_bytes", Lower, &bytes, format::bytes));
        }
        if self.metrics.iter().any(|m| 0.0 < m.counts.returns) {
            measures.push(measure("returns", "returns", Lower, &|m| Some(m.counts.returns), format::count));
        }
        measures.push(measure("ECN marks", "ecn_marks", Neither, &|m| Some(m.counts.ecn_marks), format::count));
        // Packets that ports and flows sent to control rates, where any did.
        if self.metrics.iter().any(|m| 0.0 < m.control_bytes) {
            let share = |m: &Metrics| Some(m.control_share.unwrap_or(0.0));
            let percent = |x| format!("{} %", format::number(100.0 * x));
            measures.push(measure("notices", "notices", Neither, &|m| Some(m.counts.notices), format::count));
            let packets = |m: &Metrics| Some(m.counts.control_packets);
            measures.push(measure("control packets", "control_packets", Neither, &packets, format::count));
            measures.push(measure("control traffic", "control_share", Lower, &share, percent));
        }
        let again = |m: &Metrics| Some(m.retransmitted_bytes);
        measures.push(measure("sent again", "retransmitted_bytes", Lower, &again, format::bytes));
        // The time for which data of multipath connections waited for data before it, where any did.
        if self.metrics.iter().any(|m| 0.0 < m.reordered_bytes) {
            let (mean, max) = (|m: &Metrics| Some(m.reordering_mean_ns), |m: &Metrics| Some(m.reordering_max_ns));
            measures.push(measure("reordered", "reordered_bytes", Lower, &|m| Some(m.reordered_bytes), format::bytes));
            measures.push(measure("reordering mean", "reordering_mean_ns", Lower, &mean, format::time_ns));
            measures.push(measure("reordering max", "reordering_max_ns", Lower, &max, format::time_ns));
        }
        if self.metrics.iter().any(|m| m.deadlines.is_some()) {
            let (missed, key) = (|m: &Metrics| m.deadlines?.missed_share, "deadlines.missed_share");
            measures.push(measure("deadlines missed", key, Lower, &missed, format::percent));
        }
        measures.extend([
            measure("flows done", "flows_done", Neither, &|m| Some(m.flows_done), format::count),
            measure("unfinished", "flows_unfinished", Lower, &|m| Some(m.flows_unfinished), format::count),
            measure("packet-hops", "packet_hops", Neither, &|m| Some(m.packet_hops), format::count),
            self.speed(),
        ]);
        Group { title: "Whole run".into(), measures }
    }
}

/// Link sets whose loads are shown, with the names of their rows.
const TIERS: [(&str, &str, &str); 3] = [
    ("host-links", "offered, host links", "carried, host links"),
    ("tor-uplinks", "offered, ToR uplinks", "carried, ToR uplinks"),
    ("agg-uplinks", "offered, agg uplinks", "carried, agg uplinks"),
];

/// Returns the baseline of column `i`: the first column of the same grid point, or, for that column, the first of all.
fn baseline(all: &[Metrics], i: usize) -> usize {
    all.iter().position(|m| m.point == all[i].point).filter(|first| *first != i).unwrap_or(0)
}

/// Returns every bucket that tables show and some column has flows in: sizes, then blocks. A single size besides
/// `all sizes` is left out.
pub(super) fn buckets(all: &[Metrics]) -> Vec<&str> {
    let mut buckets: Vec<(Option<u32>, &str)> = Vec::new();
    for bucket in all.iter().flat_map(|m| &m.slowdown).filter(|bucket| bucket.is_shown) {
        if !buckets.iter().any(|(_, name)| *name == bucket.bucket) {
            buckets.push((bucket.block, bucket.bucket.as_ref()));
        }
    }
    let order = |name: &str| crate::metrics::SIZE_BUCKETS.iter().position(|b| b.name == name);
    buckets.sort_by_key(|(block, name)| (*block, order(name)));
    let n_sizes = buckets.iter().filter(|(block, _)| block.is_none()).count();
    if n_sizes == 2 {
        buckets.remove(1);
    }
    buckets.into_iter().map(|(_, name)| name).collect()
}

/// Returns the names of the ports of the column that has most.
pub(super) fn ports(all: &[Metrics]) -> Vec<&str> {
    let first = all.iter().max_by_key(|m| m.ports.len());
    first.map_or_else(Vec::new, |m| m.ports.iter().map(|p| p.port.as_str()).collect())
}
