//! Columns compared with each other: their measures, the means over seeds, and the differences.

use serde::Serialize;

use crate::bootstrap::{Difference, Estimate, LEVEL, RESAMPLES};
use crate::format;
use crate::metrics::{BucketSlowdown, Convergence, Metrics, PortMetrics, Share};
use crate::stats::{self, Distribution};

/// All columns of a comparison and their measures.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// The columns.
    pub metrics: Vec<Metrics>,
    /// The measures, group by group.
    pub groups: Vec<Group>,
    /// Runs that are left out, with the reason: `hpcc seed 2 interrupted`.
    pub left_out: Vec<String>,
}

/// Measures of the same subject.
#[derive(Clone, Debug)]
pub struct Group {
    /// Title of the subject.
    pub title: String,
    /// The measures.
    pub measures: Vec<Measure>,
}

/// One number of every column.
#[derive(Clone, Debug)]
pub struct Measure {
    /// Path in `metrics`, as `slowdown[all sizes].p99`.
    pub key: String,
    /// Name in tables.
    pub name: &'static str,
    /// The direction of the best value.
    pub better: Better,
    /// The function that formats a value for people.
    pub show: fn(f64) -> String,
    /// The cells, one per column.
    pub cells: Vec<Cell>,
    /// The columns with the best value, and those that cannot be distinguished from it; empty if that is all columns.
    pub leaders: Vec<usize>,
}

/// A measure of a column.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cell {
    /// Mean over the column's seeds.
    pub estimate: Option<Estimate>,
    /// The number of the baseline column, and the difference from it, paired by seed.
    pub difference: Option<(usize, Difference)>,
    /// The share of flows that finished, where the number is a lower bound since others did not.
    pub bound: Option<Share>,
}

/// The direction of a measure's best value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    /// The least value is the best.
    Lower,
    /// The largest value is the best.
    Higher,
    /// No value is better than another.
    Neither,
}

/// Largest number of ports that a comparison shows one by one; more ports are shown all together.
pub const MAX_PORTS: usize = 4;

/// A function that returns a number of a column, or of one of its seeds.
pub type Value<'a> = &'a dyn Fn(&Metrics) -> Option<f64>;

impl Comparison {
    /// Compares columns; there must be at least one.
    pub fn of(metrics: Vec<Metrics>) -> Self {
        let all = Columns { metrics: &metrics, baselines: (0..metrics.len()).map(|i| baseline(&metrics, i)).collect() };
        let mut groups: Vec<Group> = buckets(&metrics).into_iter().map(|bucket| all.slowdown(bucket)).collect();
        let ports = ports(&metrics);
        if MAX_PORTS < ports.len() {
            groups.push(all.all_ports());
        } else {
            groups.extend(ports.into_iter().map(|port| all.port(port)));
        }
        groups.extend(all.convergence());
        groups.extend([all.all_flows(), all.whole_run()]);
        Self { metrics, groups, left_out: Vec::new() }
    }

    /// Returns `true` if some column has several seeds, so that there are intervals.
    pub fn has_seeds(&self) -> bool {
        self.metrics.iter().any(|m| 1 < m.seeds.len())
    }

    /// Returns the least number of seeds of a column.
    pub fn fewest_seeds(&self) -> usize {
        self.metrics.iter().map(|m| m.seeds.len()).min().unwrap_or(0)
    }

    /// Returns `true` if every seed of every column gave the same numbers, the wall clock's aside.
    pub fn seeds_agree(&self) -> bool {
        let mut cells = self.groups.iter().flat_map(|g| &g.measures).flat_map(|m| &m.cells).filter_map(|c| c.estimate);
        cells.all(|e| e.interval.is_none_or(|i| i.low == i.high))
    }

    /// Returns means, intervals and differences as data.
    pub fn statistics(&self) -> Statistics {
        let measures = self.groups.iter().flat_map(|g| &g.measures);
        let of = |measure: &Measure| {
            let cells = measure.cells.iter().zip(&self.metrics);
            let entry = |(cell, column): (&Cell, &Metrics)| {
                let estimate = cell.estimate?;
                Some(Statistic {
                    metric: measure.key.clone(),
                    column: column.label.clone(),
                    estimate,
                    bound: cell.bound,
                    difference: cell.difference.map(|(to, difference)| Versus {
                        to: self.metrics[to].label.clone(),
                        difference,
                        excludes_zero: difference.excludes_zero(),
                    }),
                })
            };
            cells.filter_map(entry).collect::<Vec<_>>()
        };
        Statistics {
            method: "percentile bootstrap",
            level: LEVEL,
            resamples: RESAMPLES,
            values: measures.flat_map(of).collect(),
        }
    }
}

/// The part of `compare.json` about means and differences.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Statistics {
    /// The method by which intervals are made.
    pub method: &'static str,
    /// The confidence level of the intervals.
    pub level: f64,
    /// Number of resamples of the seeds.
    pub resamples: usize,
    /// One entry per measure and column.
    pub values: Vec<Statistic>,
}

/// A measure of a column.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Statistic {
    /// Key of the measure.
    pub metric: String,
    /// Label of the column.
    pub column: String,
    /// Mean over the column's seeds.
    #[serde(flatten)]
    pub estimate: Estimate,
    /// Flows that finished and flows that started, where the mean is a lower bound since the former are fewer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bound: Option<Share>,
    /// The difference from another column; `None` for the first one.
    pub difference: Option<Versus>,
}

/// A difference from another column.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Versus {
    /// Label of the other column.
    pub to: String,
    /// The difference.
    #[serde(flatten)]
    pub difference: Difference,
    /// `true` if the interval of the difference excludes zero; `None` without an interval.
    pub excludes_zero: Option<bool>,
}

/// Returns the baseline of column `i`: the first column of the same grid point, or, for that column, the first of all.
fn baseline(all: &[Metrics], i: usize) -> usize {
    all.iter().position(|m| m.point == all[i].point).filter(|first| *first != i).unwrap_or(0)
}

/// Returns the groups of columns within which one column can be best: those of the same grid point, or all where each
/// has a point of its own.
fn rivals(metrics: &[Metrics]) -> Vec<Vec<usize>> {
    let mut points: Vec<(&str, Vec<usize>)> = Vec::new();
    for (i, column) in metrics.iter().enumerate() {
        match points.iter_mut().find(|(point, _)| *point == column.point) {
            Some((_, columns)) => columns.push(i),
            None => points.push((&column.point, vec![i])),
        }
    }
    if points.len() == metrics.len() {
        return vec![(0..points.len()).collect()];
    }
    points.into_iter().map(|(_, columns)| columns).collect()
}

/// Returns the columns with the best `value`, and those that cannot be distinguished from it: they look the same, or
/// the 95 % interval of the difference paired by seed (by Student's t, which is valid for few seeds too) contains zero.
/// A group of rivals that all lead has no leaders.
pub fn leaders(metrics: &[Metrics], value: Value<'_>, better: Better, show: fn(f64) -> String) -> Vec<usize> {
    let series: Vec<Vec<(u64, f64)>> = metrics.iter().map(|m| by_seed(m, value)).collect();
    let mean = |i: usize| Estimate::of(&series[i].iter().map(|(_, x)| *x).collect::<Vec<_>>()).map(|e| e.mean);
    let leading = |rivals: Vec<usize>| {
        let known = rivals.iter().filter_map(|&i| Some((i, mean(i)?)));
        let best = match better {
            Better::Lower => known.min_by(|a, b| a.1.total_cmp(&b.1)),
            Better::Higher => known.max_by(|a, b| a.1.total_cmp(&b.1)),
            Better::Neither => None,
        };
        let Some((best, target)) = best else { return Vec::new() };
        let leads =
            |&i: &usize| mean(i).is_some_and(|x| show(x) == show(target)) || is_indistinct(&series[i], &series[best]);
        let leading: Vec<usize> = rivals.iter().copied().filter(leads).collect();
        if leading.len() == rivals.len() { Vec::new() } else { leading }
    };
    rivals(metrics).into_iter().flat_map(leading).collect()
}

/// Returns `true` if the interval of the differences between values of the same seeds contains zero.
fn is_indistinct(a: &[(u64, f64)], b: &[(u64, f64)]) -> bool {
    let of_seed = |seed: u64| b.iter().find(|(s, _)| *s == seed).map(|(_, x)| *x);
    let differences: Vec<f64> = a.iter().filter_map(|(seed, x)| Some(x - of_seed(*seed)?)).collect();
    let half_width = stats::student_half_width(&differences);
    half_width.zip(stats::mean(&differences)).is_some_and(|(half, mean)| mean.abs() <= half)
}

struct Columns<'a> {
    metrics: &'a [Metrics],
    baselines: Vec<usize>,
}

impl Columns<'_> {
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
            let of_seed = |seed: u64| series[base].iter().find(|(s, _)| *s == seed).map(|(_, x)| *x);
            let pairs: Vec<(f64, f64)> = series[i].iter().filter_map(|(s, x)| Some((*x, of_seed(*s)?))).collect();
            let difference = Difference::of(&pairs).filter(|_| i != base).map(|d| (base, d));
            Cell { estimate: Estimate::of(&values), difference, bound: None }
        };
        let cells = (0..self.metrics.len()).map(cell).collect();
        Measure { key, name, better, show, cells, leaders: leaders(self.metrics, value, better, show) }
    }

    fn slowdown(&self, bucket: &'static str) -> Group {
        let of = |m: &Metrics| m.bucket(bucket).map(|b| b.slowdown);
        let key = |field: &str| format!("slowdown[{bucket}].{field}");
        let measure = |name, field, f: fn(&Distribution) -> Option<f64>| {
            let value = |m: &Metrics| of(m).as_ref().and_then(f);
            let mut measure = self.measure(key(field), name, Better::Lower, &value, format::number);
            for (cell, m) in measure.cells.iter_mut().zip(self.metrics) {
                let seeds = if m.per_seed.is_empty() { std::slice::from_ref(m) } else { m.per_seed.as_slice() };
                let is_bound = |d: Distribution| field == "mean" || f(&d).is_some_and(|x| d.is_bound(x));
                let bounded = seeds.iter().filter_map(of).any(|d| 0 < d.n_bounds && is_bound(d));
                cell.bound = m.bucket(bucket).and_then(BucketSlowdown::share).filter(|_| bounded);
            }
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
            let seeds = self.metrics.iter().map(|m| m.seeds.len()).max().unwrap_or(1);
            let of_seeds = if seeds < 2 { String::new() } else { format!(" of {seeds} seeds") };
            return Group { title: format!("{title} ({} flows{of_seeds})", format::count(n as f64)), measures };
        }
        let n = |m: &Metrics| of(m).map(|d| d.n as f64);
        measures.insert(0, self.measure(key("n"), "flows", Better::Neither, &n, format::count));
        Group { title, measures }
    }

    fn port(&self, port: &str) -> Group {
        let of = |m: &Metrics| m.ports.iter().find(|p| p.port == port).cloned();
        Group { title: format!("Port {port}"), measures: self.port_measures(&format!("ports[{port}]"), &of) }
    }

    fn all_ports(&self) -> Group {
        let title = self.metrics.iter().find_map(|m| m.all_ports.as_ref()).map_or_else(String::new, |p| p.port.clone());
        let measures = self.port_measures("all_ports", &|m| m.all_ports.clone());
        Group { title: title.replacen("all", "All", 1), measures }
    }

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

    /// Returns the measures of convergence of rates, if a column has a convergence probe.
    fn convergence(&self) -> Option<Group> {
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
    fn all_flows(&self) -> Group {
        let jain = |x: f64| format!("{x:.4}");
        let goodput = |m: &Metrics| Some(m.goodput_bps);
        let mut measures = vec![
            self.measure("goodput_bps".to_owned(), "goodput", Better::Higher, &goodput, format::rate),
            self.measure("jain".to_owned(), "Jain index", Better::Higher, &|m| m.jain, jain),
        ];
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
    fn whole_run(&self) -> Group {
        use Better::{Lower, Neither};
        let measure =
            |name, key: &str, better, value: Value<'_>, show| self.measure(key.to_owned(), name, better, value, show);
        let mut measures = vec![
            measure("PFC pauses", "pfc_pauses", Lower, &|m| Some(m.pfc_pauses), format::count),
            measure("drops", "drops", Lower, &|m| Some(m.drops), format::count),
            measure("ECN marks", "ecn_marks", Neither, &|m| Some(m.ecn_marks), format::count),
        ];
        // Packets that ports and flows sent to control rates, where any did.
        if self.metrics.iter().any(|m| m.control_bytes != 0.0) {
            let share = |m: &Metrics| Some(m.control_share.unwrap_or(0.0));
            let percent = |x| format!("{} %", format::number(100.0 * x));
            measures.push(measure("notices", "notices", Neither, &|m| Some(m.notices), format::count));
            let packets = |m: &Metrics| Some(m.control_packets);
            measures.push(measure("control packets", "control_packets", Neither, &packets, format::count));
            measures.push(measure("control traffic", "control_share", Lower, &share, percent));
        }
        let again = |m: &Metrics| Some(m.retransmitted_bytes);
        measures.push(measure("sent again", "retransmitted_bytes", Lower, &again, format::bytes));
        // The time for which data of multipath connections waited for data before it, where any did.
        if self.metrics.iter().any(|m| m.reordered_bytes != 0.0) {
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

/// Returns the mean over the seeds of a column.
pub fn estimate(m: &Metrics, value: Value<'_>) -> Option<Estimate> {
    Estimate::of(&by_seed(m, value).into_iter().map(|(_, x)| x).collect::<Vec<_>>())
}

/// Returns the measure of each seed of a column that has it.
fn by_seed(m: &Metrics, value: Value<'_>) -> Vec<(u64, f64)> {
    let runs = if m.per_seed.is_empty() { std::slice::from_ref(m) } else { m.per_seed.as_slice() };
    runs.iter().filter_map(|run| Some((*run.seeds.first()?, value(run)?))).collect()
}

/// Returns every size bucket that some column has flows in; only `all sizes` if there is a single bucket besides.
fn buckets(all: &[Metrics]) -> Vec<&'static str> {
    let mut names: Vec<&'static str> = Vec::new();
    for bucket in all.iter().flat_map(|m| &m.slowdown) {
        if !names.contains(&bucket.bucket) {
            names.push(bucket.bucket);
        }
    }
    let order = |name: &&str| crate::metrics::SIZE_BUCKETS.iter().position(|b| b.name == *name);
    names.sort_by_key(order);
    if names.len() == 2 {
        names.truncate(1);
    }
    names
}

fn ports(all: &[Metrics]) -> Vec<&str> {
    let first = all.iter().max_by_key(|m| m.ports.len());
    first.map_or_else(Vec::new, |m| m.ports.iter().map(|p| p.port.as_str()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::synthetic;

    fn comparison(ccs: &[&str], seeds: &[u64]) -> Comparison {
        Comparison::of(synthetic::comparison(ccs, seeds).iter().map(Metrics::of).collect())
    }

    fn measure<'a>(all: &'a Comparison, key: &str) -> &'a Measure {
        all.groups.iter().flat_map(|g| &g.measures).find(|m| m.key == key).unwrap()
    }

    #[test]
    fn means_are_over_seeds_and_differences_seed_by_seed() {
        let variants = synthetic::comparison(&["powertcp", "hpcc"], &[1, 2, 3]);
        let all = Comparison::of(variants.iter().map(Metrics::of).collect());
        let p99 = measure(&all, "slowdown[all sizes].p99");
        let of_run = |column: usize, seed: usize| {
            let runs = vec![variants[column].runs[seed].clone()];
            Metrics::of(&crate::model::Variant { runs, ..variants[column].clone() }).overall().unwrap().p99.unwrap()
        };
        let mean = (0..3).map(|seed| of_run(1, seed)).sum::<f64>() / 3.0;
        let difference = (0..3).map(|seed| of_run(1, seed) - of_run(0, seed)).sum::<f64>() / 3.0;
        assert_eq!(p99.cells[1].estimate.unwrap().mean, mean);
        let (to, got) = p99.cells[1].difference.unwrap();
        assert_eq!((to, got.n), (0, 3));
        assert!((got.mean - difference).abs() < 1e-12);
        assert_eq!(p99.cells[0].difference, None);
    }

    #[test]
    fn seeds_that_only_one_column_has_make_no_pair() {
        let mut variants = synthetic::comparison(&["powertcp", "hpcc"], &[1, 2, 3]);
        variants[0].runs.remove(1);
        let all = Comparison::of(variants.iter().map(Metrics::of).collect());
        let goodput = measure(&all, "goodput_bps");
        assert_eq!(goodput.cells.iter().map(|c| c.estimate.unwrap().n).collect::<Vec<_>>(), [2, 3]);
        assert_eq!((goodput.cells[1].difference.unwrap().1.n, all.fewest_seeds()), (2, 2));
    }

    #[test]
    fn a_column_is_held_against_the_first_of_its_grid_point() {
        let mut metrics = comparison(&["a", "b", "c", "d"], &[1]).metrics;
        for (m, point) in metrics.iter_mut().zip(["load=0.4", "load=0.4", "load=0.8", "load=0.8"]) {
            m.point = point.into();
        }
        let all = Comparison::of(metrics);
        let to: Vec<_> = measure(&all, "goodput_bps").cells.iter().map(|c| c.difference.map(|(to, _)| to)).collect();
        assert_eq!(to, [None, Some(0), Some(0), Some(2)]);
    }

    #[test]
    fn what_never_converged_has_no_mean() {
        let mut variants = synthetic::comparison(&["powertcp"], &[1, 2]);
        variants[0].runs[0].settled_rtts = vec![2.0, 4.0];
        variants[0].runs[1].settled_rtts = vec![2.0, f64::INFINITY];
        let all = Comparison::of(variants.iter().map(Metrics::of).collect());
        assert_eq!(measure(&all, "convergence.p50_rtts").cells[0].estimate.unwrap().mean, 2.0);
        assert_eq!(measure(&all, "convergence.p99_rtts").cells[0].estimate, None);
    }

    #[test]
    fn seeds_that_change_nothing_are_noticed() {
        assert!(!comparison(&["powertcp"], &[1, 2]).seeds_agree());
        let mut variants = synthetic::comparison(&["powertcp"], &[1, 2]);
        variants[0].runs[1] = crate::model::RunData { seed: 2, ..variants[0].runs[0].clone() };
        variants[0].runs[1].totals.wall_s *= 2.0;
        assert!(Comparison::of(variants.iter().map(Metrics::of).collect()).seeds_agree());
    }

    #[test]
    fn statistics_name_their_columns() {
        let json = serde_json::to_value(comparison(&["powertcp", "hpcc"], &[1, 2]).statistics()).unwrap();
        assert_eq!((&json["level"], &json["resamples"]), (&0.95.into(), &10_000.into()));
        let values = json["values"].as_array().unwrap();
        let of = |column: &str| values.iter().find(|v| v["metric"] == "goodput_bps" && v["column"] == column).unwrap();
        // The synthetic goodput is 24 Gb/s over the column's number, whatever the seed.
        assert_eq!((&of("powertcp")["mean"], &of("powertcp")["difference"]), (&24e9.into(), &serde_json::Value::Null));
        assert_eq!(of("hpcc")["interval"], serde_json::json!({ "low": 12e9, "high": 12e9 }));
        let difference = &of("hpcc")["difference"];
        assert_eq!((&difference["to"], &difference["mean"]), (&"powertcp".into(), &(-12e9).into()));
        assert_eq!((&difference["ratio"], &difference["excludes_zero"]), (&0.5.into(), &true.into()));
    }
}
