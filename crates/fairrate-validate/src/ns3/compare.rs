//! Metrics of a run, their tolerances, and the comparison of ours with ns-3's.

use std::collections::{BTreeMap, BTreeSet};

use fairrate_report::stats::{jain, mean, percentile, sorted};

use super::tables::{Case, Group, Measured};
use crate::rows::{Findings, Range, Row, Tolerance};

/// Tolerance for means over several seeds of runs with randomly drawn marks.
const RANDOM: Tolerance = Tolerance::relative(0.05);

/// Bounds of the websearch flow sizes: from (excluded) to (included), in bytes.
const SIZE_BUCKETS: &[(&str, u64, u64)] = &[
    ("<=5KB", 0, 5_000),
    ("5-20KB", 5_000, 20_000),
    ("20-100KB", 20_000, 100_000),
    ("100KB-1MB", 100_000, 1_000_000),
    ("1-10MB", 1_000_000, 10_000_000),
    (">10MB", 10_000_000, u64::MAX),
    ("all sizes", 0, u64::MAX),
];

/// A metric of one run.
struct Point {
    metric: String,
    /// The family, if there are many metrics of this kind; only the worst of them is shown.
    family: Option<String>,
    unit: &'static str,
    tolerance: Option<Tolerance>,
    value: f64,
}

/// The part of a metric in the verdict on a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    /// It must be within its tolerance.
    Judged,
    /// It is shown, and has no tolerance.
    Shown,
}

impl Role {
    /// Returns `tolerance` if the metric is judged by it.
    fn tolerance(self, tolerance: Tolerance) -> Option<Tolerance> {
        (self == Self::Judged).then_some(tolerance)
    }
}

/// Returns the rows of a case.
pub fn rows(case: &Case, runs: &[Result<Measured, String>], findings: &Findings) -> Vec<Row> {
    let over_seeds = case.is_random() && 1 < runs.len();
    let mut ours = Vec::new();
    for run in runs {
        match run {
            Ok(measured) => ours.push(points(case, measured, over_seeds)),
            Err(message) => return vec![failed(case, message)],
        }
    }
    let mut rows: Vec<(Option<String>, Row)> = Vec::new();
    for (i, point) in points(case, &case.reference, over_seeds).into_iter().enumerate() {
        let values: Vec<f64> = ours.iter().map(|points| points[i].value).collect();
        rows.push((point.family.clone(), row(case, &point, &values)));
    }
    let mut rows = worst_of_families(rows);
    findings.explain_all(&mut rows);
    rows
}

fn failed(case: &Case, message: &str) -> Row {
    let metric = format!("run failed: {message}");
    let names = (&*case.scenario.name, &*case.run.label);
    Row::of(names, (&metric, ""), (1.0, &[]), Some(Tolerance::relative(0.0)), Range::Shown)
}

fn row(case: &Case, point: &Point, values: &[f64]) -> Row {
    let names = (&*case.scenario.name, &*case.run.label);
    Row::of(names, (&point.metric, point.unit), (point.value, values), point.tolerance, Range::Shown)
}

/// Replaces the rows of each family by the row that uses most of its tolerance.
fn worst_of_families(rows: Vec<(Option<String>, Row)>) -> Vec<Row> {
    let used = |row: &Row| {
        let allowed = row.tolerance.map_or(row.theirs.abs(), |t| t.allowed(row.theirs)).max(f64::MIN_POSITIVE);
        row.ours.map_or(f64::INFINITY, |ours| (ours - row.theirs).abs() / allowed)
    };
    let mut out: Vec<Row> = Vec::new();
    let mut members: BTreeMap<String, (usize, usize)> = BTreeMap::new();
    for (family, row) in rows {
        let Some(family) = family else {
            out.push(row);
            continue;
        };
        let (at, n) = members.entry(family).or_insert((out.len(), 0));
        *n += 1;
        if *at == out.len() {
            out.push(row);
        } else if used(&out[*at]) < used(&row) {
            out[*at] = row;
        }
    }
    for (at, n) in members.into_values().filter(|(_, n)| 1 < *n) {
        out[at].metric = format!("{} (worst of {n})", out[at].metric);
    }
    out
}

/// Returns all metrics of a run, in the same order for every run of a case. With `over_seeds`, returns those whose
/// means over several seeds are compared.
fn points(case: &Case, m: &Measured, over_seeds: bool) -> Vec<Point> {
    let mut points = Points { case, m, over_seeds, packets: 2.0 * case.run.packet as f64, out: Vec::new() };
    match case.scenario.group {
        Group::Micro => points.micro(),
        Group::Incast => points.incast(),
        Group::Unloaded => points.fcts(0.01),
        Group::Fairness => points.fairness(),
        Group::Websearch => points.slowdowns(),
    }
    points.add("packet hops", "", None, m.packet_hops);
    points.out
}

struct Points<'a> {
    case: &'a Case,
    m: &'a Measured,
    over_seeds: bool,
    /// Bytes of two packets on the wire.
    packets: f64,
    out: Vec<Point>,
}

impl Points<'_> {
    /// Adds a metric; means over seeds have a separate tolerance.
    fn add(&mut self, metric: impl Into<String>, unit: &'static str, tolerance: Option<Tolerance>, value: f64) {
        let tolerance =
            tolerance.map(|t| if self.over_seeds { Tolerance { absolute: t.absolute, ..RANDOM } } else { t });
        self.out.push(Point { metric: metric.into(), family: None, unit, tolerance, value });
    }

    /// Sets the family of the metric added last.
    fn of_family(&mut self, family: &str) {
        if let Some(last) = self.out.last_mut() {
            last.family = Some(family.to_owned());
        }
    }

    fn micro(&mut self) {
        self.fcts(0.01);
        // If all flows are finite the last millisecond is idle, so the first one is compared.
        let window = if self.m_is_finite() { "first-ms" } else { "last-ms" };
        for port in self.ports() {
            self.peak_queue(&port, "all", Tolerance { relative: 0.0, absolute: self.packets });
            self.mean_queue(&port, window, Role::Judged);
            self.throughput(&port, window, Role::Judged);
        }
        self.goodputs("last-ms of flows", Role::Judged);
    }

    fn incast(&mut self) {
        for port in self.ports() {
            self.peak_queue(&port, "all", Tolerance::relative(0.03));
        }
        if !self.case.reference.fct_ns.is_empty() {
            self.mean_fct(0.02);
        }
        self.add("PFC pauses", "", Some(Tolerance::relative(0.10)), self.m.pauses);
        for port in self.ports() {
            self.mean_queue(&port, "first-ms", Role::Shown);
            self.mean_queue(&port, "last-ms", Role::Shown);
            self.throughput(&port, "first-ms", Role::Shown);
            self.throughput(&port, "last-ms", Role::Shown);
        }
        self.goodputs("last-ms of flows", Role::Shown);
    }

    fn fairness(&mut self) {
        let windows: BTreeSet<&String> = self.case.reference.queues.keys().map(|(_, w)| w).collect();
        for window in windows.into_iter().filter(|w| *w != "all") {
            for port in self.ports() {
                self.peak_queue(&port, window, Tolerance { relative: 0.0, absolute: self.packets });
                self.mean_queue(&port, window, Role::Judged);
            }
            self.goodputs(&format!("{window} of flows"), Role::Judged);
            let shares = self.shares(&format!("{window} of flows"));
            self.add(
                format!("Jain, {window}"),
                "",
                Some(Tolerance::relative(0.005)),
                jain(&shares).unwrap_or(f64::NAN),
            );
        }
    }

    fn slowdowns(&mut self) {
        let slowdown =
            |(flow, fct): (&u32, &f64)| Some((*self.case.sizes.get(flow)?, fct / self.case.standalone_ns.get(flow)?));
        let slowdowns: Vec<(u64, f64)> = self.m.fct_ns.iter().filter_map(slowdown).collect();
        let complete = self.m.fct_ns.len() == self.case.reference.fct_ns.len();
        for (name, from, to) in SIZE_BUCKETS {
            let of_size = slowdowns.iter().filter(|(size, _)| from < size && size <= to).map(|(_, s)| *s);
            // A flow that did not finish has no slowdown, so its bucket has no statistics.
            let values = if complete { sorted(of_size) } else { Vec::new() };
            let value = |v: Option<f64>| v.unwrap_or(f64::NAN);
            let three = Some(Tolerance::relative(0.03));
            self.add(format!("slowdown {name} mean"), "", three, value(mean(&values)));
            self.add(format!("slowdown {name} p99"), "", three, value(percentile(&values, 0.99)));
            let ten = Some(Tolerance::relative(0.10));
            self.add(format!("slowdown {name} p99.9"), "", ten, value(percentile(&values, 0.999)));
        }
        for port in self.ports() {
            self.mean_queue(&port, "arrivals", Role::Shown);
            self.throughput(&port, "arrivals", Role::Shown);
        }
        self.add("PFC pauses", "", None, self.m.pauses);
        self.add("ECN marks", "", None, self.m.ecn_marks);
    }

    /// Adds the completion time of every flow, or with several seeds their mean.
    fn fcts(&mut self, tolerance: f64) {
        if self.over_seeds && !self.case.reference.fct_ns.is_empty() {
            self.mean_fct(tolerance);
            return;
        }
        for flow in self.case.reference.fct_ns.keys() {
            let us = self.m.fct_ns.get(flow).map_or(f64::NAN, |ns| ns / 1e3);
            self.add(format!("FCT of flow {flow}"), "us", Some(Tolerance::relative(tolerance)), us);
            self.of_family("FCT");
        }
    }

    fn mean_fct(&mut self, tolerance: f64) {
        let all: Vec<f64> =
            self.case.reference.fct_ns.keys().map(|f| self.m.fct_ns.get(f).map_or(f64::NAN, |ns| ns / 1e3)).collect();
        self.add("mean FCT", "us", Some(Tolerance::relative(tolerance)), mean(&all).unwrap_or(f64::NAN));
    }

    fn peak_queue(&mut self, port: &str, window: &str, tolerance: Tolerance) {
        let peak = self.queue(port, window).peak;
        let metric =
            if window == "all" { format!("peak queue {port}") } else { format!("peak queue {port}, {window}") };
        self.add(metric, "B", Some(tolerance), peak);
    }

    fn mean_queue(&mut self, port: &str, window: &str, role: Role) {
        let tolerance = Tolerance { relative: 0.05, absolute: self.packets };
        let mean = self.queue(port, window).mean;
        self.add(format!("mean queue {port}, {window}"), "B", role.tolerance(tolerance), mean);
    }

    fn throughput(&mut self, port: &str, window: &str, role: Role) {
        let gbps = self.queue(port, window).sent * 8.0 / self.case.windows[window].length_ns() as f64;
        self.add(format!("throughput {port}, {window}"), "Gb/s", role.tolerance(Tolerance::relative(0.005)), gbps);
    }

    /// Adds the goodput in a window: the sum over flows, and with a single seed that of every flow.
    fn goodputs(&mut self, window: &str, role: Role) {
        let tolerance = role.tolerance(Tolerance::relative(0.005));
        let shares = self.shares(window);
        if shares.is_empty() {
            return;
        }
        self.add(format!("goodput, {window}"), "Gb/s", tolerance, shares.iter().sum());
        if self.over_seeds {
            return;
        }
        let flows: Vec<u32> = self.flows(window);
        for (flow, gbps) in flows.into_iter().zip(shares) {
            self.add(format!("goodput of flow {flow}, {window}"), "Gb/s", tolerance, gbps);
            self.of_family(window);
        }
    }

    /// Returns the goodput of each flow in a window, in Gb/s.
    fn shares(&self, window: &str) -> Vec<f64> {
        let gbps = |flow: &u32| {
            let bytes = self.m.goodput.get(&(window.to_owned(), *flow)).copied().unwrap_or(f64::NAN);
            bytes * 8.0 / self.case.windows[window].length_ns() as f64
        };
        self.flows(window).iter().map(gbps).collect()
    }

    fn flows(&self, window: &str) -> Vec<u32> {
        self.case.reference.goodput.keys().filter(|(w, _)| w == window).map(|(_, flow)| *flow).collect()
    }

    fn ports(&self) -> Vec<String> {
        let ports: BTreeSet<&String> = self.case.reference.queues.keys().map(|(port, _)| port).collect();
        ports.into_iter().cloned().collect()
    }

    fn queue(&self, port: &str, window: &str) -> super::tables::Queue {
        self.m.queues.get(&(port.to_owned(), window.to_owned())).copied().unwrap_or_default()
    }

    fn m_is_finite(&self) -> bool {
        self.case.reference.fct_ns.len() == self.case.sizes.len()
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::ns3::tables;
    use crate::rows::Verdict;

    fn cases() -> Vec<Case> {
        tables::load(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../validation/ns3")).expect("the tables are sound")
    }

    fn case(name: &str) -> Case {
        cases().into_iter().find(|c| c.name() == name).expect("the case exists")
    }

    #[test]
    fn a_tolerance_is_the_larger_of_its_two_parts() {
        let t = Tolerance { relative: 0.05, absolute: 2_180.0 };
        assert!(t.allows(0.0, 2_180.0) && !t.allows(0.0, 2_181.0));
        assert!(t.allows(100_000.0, 95_000.0) && !t.allows(100_000.0, 94_999.0));
        assert!(!t.allows(1.0, f64::NAN));
    }

    #[test]
    fn the_reference_is_inside_everywhere_when_held_against_itself() {
        for case in cases() {
            let same = [Ok(case.reference.clone())];
            for row in rows(&case, &same, &Findings::default()) {
                assert!(row.verdict != Verdict::Outside, "{} {}", case.name(), row.metric);
            }
        }
    }

    #[test]
    fn slowdowns_of_the_carried_tables_are_those_ns3_printed() {
        let case = case("ws60/dctcp");
        let points = points(&case, &case.reference, false);
        let value = |metric: &str| points.iter().find(|p| p.metric == metric).map(|p| (p.value * 1e3).round() / 1e3);
        assert_eq!(value("slowdown <=5KB mean"), Some(1.717));
        assert_eq!(value("slowdown 100KB-1MB p99"), Some(4.451));
        assert_eq!(value("slowdown all sizes p99.9"), Some(6.978));
        assert_eq!(value("slowdown >10MB p99.9"), Some(3.148));
    }

    #[test]
    fn of_many_flows_the_worst_is_shown_and_one_that_did_not_finish_is_outside() {
        let case = case("star_10x1MB/powertcp");
        let mut ours = case.reference.clone();
        ours.fct_ns.entry(3).and_modify(|t| *t *= 1.02);
        ours.fct_ns.entry(4).and_modify(|t| *t *= 0.995);
        let out = rows(&case, &[Ok(ours.clone())], &Findings::default());
        let fct: Vec<&Row> = out.iter().filter(|r| r.metric.starts_with("FCT")).collect();
        assert_eq!(fct.len(), 1);
        assert_eq!((fct[0].metric.as_str(), fct[0].verdict), ("FCT of flow 3 (worst of 10)", Verdict::Outside));
        ours.fct_ns.remove(&7);
        let out = rows(&case, &[Ok(ours)], &Findings::default());
        let fct = out.iter().find(|r| r.metric.starts_with("FCT")).expect("there is one");
        assert_eq!((fct.metric.as_str(), fct.ours), ("FCT of flow 7 (worst of 10)", None));
    }

    #[test]
    fn runs_of_several_seeds_are_compared_by_their_mean_within_five_percent() {
        let case = case("star_10x1MB/dcqcn");
        let scaled = |factor: f64| {
            let mut m = case.reference.clone();
            m.fct_ns.values_mut().for_each(|t| *t *= factor);
            Ok(m)
        };
        let out = rows(&case, &[scaled(0.9), scaled(1.18)], &Findings::default());
        let fct = out.iter().find(|r| r.metric == "mean FCT").expect("there is one");
        assert_eq!(fct.verdict, Verdict::Inside, "the mean is 1.04 times ns-3's");
        assert!(fct.range.is_some_and(|(lo, hi)| lo < fct.theirs && fct.theirs < hi));
        // With ns-3's own draws, a single run is compared with ns-3's flow by flow.
        let out = rows(&case, &[scaled(1.02)], &Findings::default());
        let fct = out.iter().find(|r| r.metric.starts_with("FCT of flow")).expect("there is one");
        assert_eq!(fct.verdict, Verdict::Outside);
    }

    #[test]
    fn findings_explain_but_do_not_excuse() {
        let findings: Findings = toml::from_str(
            "[[finding]]\nscenario = \"star_*\"\nalgorithm = \"hpcc\"\nmetric = \"FCT*\"\ncause = \"why\"",
        )
        .expect("the finding is sound");
        let case = case("star_2x1MB/hpcc");
        let mut ours = case.reference.clone();
        ours.fct_ns.values_mut().for_each(|t| *t *= 1.5);
        let out = rows(&case, &[Ok(ours)], &findings);
        let fct = out.iter().find(|r| r.metric.starts_with("FCT")).expect("there is one");
        assert_eq!((fct.verdict, fct.cause.as_deref()), (Verdict::Outside, Some("why")));
    }
}
