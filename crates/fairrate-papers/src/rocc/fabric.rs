//! The common part of Figures 15 to 17 and Table III: 1,800 pairs of hosts over three switches, with web search and
//! Hadoop's traffic. All four share the same runs, which are done only once.
//!
//! Pairs of hosts keep one connection for all their flows, as in the authors' code (`connection = "per-pair"` of the
//! example).
//!
//! The switches pause by their egress queues at the levels of section VI.

use std::collections::BTreeMap;

use fairrate_report::panel::{Axis, Panel};
use fairrate_report::stats;
use fairrate_sim::{FlowOutcome, NodeId};
use fairrate_units::{Rate, Time};

use super::baselines::{AT_ONCE, BFC, DCQCN, DCQCN_AUTHORS, HPCC, OMNET, PACC};
use super::star::{FULL, ROCC};
use crate::curves::{self, Curve};
use crate::drawing::with_level;
use crate::experiment::Run;
use crate::figure::Scale;
use crate::moments::Moments;
use crate::points::{Point, Points};
use crate::rates::Rates;
use crate::record::{Record, seconds};
use crate::variant::Variant;

pub(super) const SCENARIO: &str = include_str!("../../scenarios/rocc-fabric.toml");

/// One of the two workloads.
pub struct Workload {
    /// The size distribution.
    pub name: &'static str,
    /// The points of the size distribution in bytes, which are the only sizes that the authors' generator draws: the
    /// paper's bins.
    pub sizes: &'static [u64],
    /// Duration of a run, at full size and with `quick`.
    durations: [&'static str; 2],
    /// The interval in milliseconds in which counted flows start, at full size and with `quick`: not those that start
    /// in an empty network, and not those that could not be done at the end if they had the ideal 333 Mb/s all the
    /// time. The largest flows take 720 and 240 ms; `quick` has hardly any of them.
    counted_ms: [(f64, f64); 2],
}

pub const WEBSEARCH: Workload = Workload {
    name: "websearch",
    sizes: &[10_000, 20_000, 30_000, 50_000, 80_000, 200_000, 1_000_000, 2_000_000, 5_000_000, 10_000_000, 30_000_000],
    durations: ["1s", "25ms"],
    counted_ms: [(30.0, 280.0), (5.0, 20.0)],
};
pub const HADOOP: Workload = Workload {
    name: "fb-hadoop",
    sizes: &[
        100, 200, 300, 350, 400, 500, 600, 700, 1_000, 2_000, 7_000, 30_000, 50_000, 80_000, 120_000, 300_000,
        1_000_000, 2_000_000, 10_000_000,
    ],
    durations: ["400ms", "25ms"],
    counted_ms: [(30.0, 160.0), (5.0, 20.0)],
};
pub const WORKLOADS: [&Workload; 2] = [&WEBSEARCH, &HADOOP];
/// Loads in per cent of the senders' links.
pub const LOADS: [u32; 2] = [70, 50];

/// A line, and the algorithm whose look it has.
pub type Line = (Variant, &'static str);

/// The paper's five algorithms with their forms, and the algorithms whose looks their lines have.
pub const LINES: [Line; 9] = [
    (ROCC, "powertcp"),
    (FULL, "theta-powertcp"),
    (DCQCN, "dcqcn"),
    (DCQCN_AUTHORS, "swift"),
    (HPCC, "hpcc"),
    // Windows may be below a packet.
    (HPCC.with("hpcc-floor", "hpcc, no floor", &[("transport.hpcc.floor", "rate")]), "timely"),
    // The text has 300 flows on a core's link.
    (
        HPCC.with(
            "hpcc-by-line-rate",
            "hpcc, by line rate",
            &[("transport.hpcc.increase", "by-line-rate"), ("transport.hpcc.expected_flows", "300.0")],
        ),
        "dctcp",
    ),
    (PACC, "line-rate"),
    (BFC, "bfc"),
];

/// PFC in the authors' fabric, by ingress ports.
const OMNET_PFC: (&str, &str) =
    ("switch.pfc", "{ by = \"ingress\", pause = { 40Gbps = \"500KB\", 100Gbps = \"800KB\" }, resume = \"10KB\" }");
pub const ROCC_OMNET: Variant = ROCC.with("rocc-omnet", "rocc, rocc-omnet", &[OMNET, OMNET_PFC]);
pub const DCQCN_OMNET: Variant = DCQCN.with("dcqcn-omnet", "dcqcn, rocc-omnet", &[OMNET, OMNET_PFC, AT_ONCE]);
/// T is that of the fabric, and N the number of pairs on a core's link.
pub const HPCC_OMNET: Variant = HPCC.with(
    "hpcc-omnet",
    "hpcc, rocc-omnet",
    &[OMNET, OMNET_PFC, AT_ONCE, ("transport.base_rtt", "12us"), ("transport.hpcc.expected_flows", "300.0")],
);
/// The algorithms that the authors' OMNeT++ code has, as it has them: `validation/rocc-omnet` is held against that
/// code.
pub const OMNET_LINES: [Line; 3] = [(ROCC_OMNET, "powertcp"), (DCQCN_OMNET, "dcqcn"), (HPCC_OMNET, "hpcc")];

/// Switches that pause a port by what arrived through it, above 5 % of what is free of the buffer: about 500 KB.
pub const BY_INGRESS: [(&str, &str); 2] = [("switch.pfc", "true"), ("switch.dt_alpha", "0.05")];

/// The rate of hosts' links.
pub(super) const HOSTS: Rate = Rate::from_gbps(40);

/// Number of flows, in each run, below which a size is not judged, and of finished flows, below which it is not drawn.
const ENOUGH: f64 = 100.0;

/// Returns the name of the runs at a load.
pub fn at(workload: &Workload, load: u32) -> String {
    format!("{}, {load} %", workload.name)
}

/// Returns runs of workloads at loads under all algorithms. With `quick` there is Hadoop's traffic at 70 % only.
pub fn runs(scale: &Scale, workloads: &[&'static Workload], loads: &[u32]) -> Vec<Run> {
    runs_of(&LINES, scale, workloads, loads)
}

/// Returns the same runs under the algorithms of `lines`.
pub fn runs_of(lines: &'static [Line], scale: &Scale, workloads: &[&'static Workload], loads: &[u32]) -> Vec<Run> {
    let wanted = |workload: &Workload, load: u32| !scale.quick || (workload.name == HADOOP.name && load == LOADS[0]);
    let settings = workloads.iter().flat_map(|&workload| loads.iter().map(move |&load| (workload, load)));
    let of = |(workload, load): (&'static Workload, u32)| {
        let runs = lines.iter().map(move |(variant, _)| run(workload, load, variant, scale.quick));
        runs.flat_map(|run| scale.seeds.iter().map(move |&seed| run().seeded(seed).shared()))
    };
    settings.filter(|&(workload, load)| wanted(workload, load)).flat_map(of).collect()
}

/// Returns a function that makes a run, but for its seed.
fn run(workload: &'static Workload, load: u32, variant: &'static Variant, quick: bool) -> impl Fn() -> Run {
    let (share, sampled) = ((f64::from(load) / 100.0).to_string(), sampled());
    move || {
        let mut sets = vec![
            ("traffic.0.sizes", workload.name),
            ("traffic.0.load", &share),
            ("duration", workload.durations[usize::from(quick)]),
            ("probe.0.queues", &sampled),
        ];
        sets.extend(variant.sets);
        let counted_ms = workload.counted_ms[usize::from(quick)];
        let read = move |record: &Record| {
            let mut point = read(record, workload, counted_ms);
            point.numbers.extend(of_sources(record, variant));
            point
        };
        let rates = Rates::below(HOSTS, Time::from_secs_f64(counted_ms.0 * 1e-3));
        Run::of(&at(workload, load), SCENARIO, variant.cc, &sets, read).called(variant.line).counting_rates(rates)
    }
}

/// Returns the probed ports, where flows meet: from the first two racks up, from the cores down to the third, and from
/// there to its hosts.
fn sampled() -> String {
    let up = (0..2).flat_map(|tor| (0..6).map(move |spine| format!("\"tor{tor}->spine{spine}\"")));
    let down = (0..6).map(|spine| format!("\"spine{spine}->tor2\""));
    let hosts = (60..90).map(|host| format!("\"tor2->h{host}\""));
    format!("[{}]", up.chain(down).chain(hosts).collect::<Vec<_>>().join(", "))
}

/// The places of queues and pauses.
pub const PLACES: [&str; 3] = ["core", "ingress edge", "egress edge"];

/// Returns the place of a node.
fn place(record: &Record, node: NodeId) -> Option<&'static str> {
    match record.config.topology.nodes[node.index()].name.as_str() {
        "tor0" | "tor1" => Some(PLACES[1]),
        "tor2" => Some(PLACES[2]),
        name if name.starts_with("spine") => Some(PLACES[0]),
        _ => None,
    }
}

/// Reads times in milliseconds, rates in Mb/s, queues in KB. An unfinished flow counts with its time so far.
fn read(record: &Record, workload: &Workload, (from_ms, to_ms): (f64, f64)) -> Point {
    let counts = |f: &&FlowOutcome| (from_ms..=to_ms).contains(&(seconds(f.start) * 1e3));
    let mut point = of_network(record, from_ms, counts);
    for &size in workload.sizes {
        let is_so_large = |f: &&FlowOutcome| record.config.flows[f.flow.index()].bytes.as_u64() == size;
        let all = |flows: &[FlowOutcome]| flows.iter().filter(counts).filter(is_so_large).copied().collect::<Vec<_>>();
        let done: Vec<f64> = all(&record.flows).iter().filter_map(|f| Some(seconds(f.fct?) * 1e3)).collect();
        let cut = all(&record.cut);
        let so_far =
            cut.iter().filter(|f| f.fct.is_none()).map(|f| seconds(record.totals.end.saturating_sub(f.start)) * 1e3);
        let n_done = done.len() as f64;
        let fcts = stats::sorted(done.into_iter().chain(so_far));
        let n = fcts.len() as f64;
        point.numbers.extend([
            (format!("n-{size}"), n),
            (format!("done-{size}"), n_done),
            (format!("cut-{size}"), n - n_done),
        ]);
        let of = [("mean", stats::mean(&fcts)), ("p99", stats::percentile(&fcts, 0.99))];
        point.numbers.extend(of.into_iter().filter_map(|(what, value)| Some((format!("{what}-{size}"), value?))));
    }
    point
}

/// Returns the means and deviations of sources' rates in Mb/s: after notices, after those of the cores once the network
/// is warm, and at packets for HPCC, which has no notices.
fn of_sources(record: &Record, variant: &Variant) -> BTreeMap<String, f64> {
    let Some(rates) = &record.source_rates else { return BTreeMap::new() };
    let is_of_core = |port| place(record, record.config.topology.from(port)) == Some(PLACES[0]);
    let of_cores = rates.notified(|of| of.is_late && of.by.is_some_and(is_of_core));
    let mut all = vec![("told", rates.notified(|_| true))];
    all.extend((0 < of_cores.len()).then_some(("told by cores", of_cores)));
    all.extend((variant.cc == HPCC.cc).then_some(("sent", *rates.sent())));
    let of = |(what, moments): (&str, Moments)| {
        [(what.to_owned(), moments.mean()), (format!("{what} deviation"), moments.deviation())]
    };
    let mut numbers: BTreeMap<String, f64> = all.into_iter().flat_map(of).collect();
    if variant.cc == HPCC.cc {
        numbers.insert("limited".to_owned(), rates.limited_share());
    }
    numbers
}

/// Returns a point with rates of flows, queues, pauses and goodput.
fn of_network(record: &Record, from_ms: f64, counts: impl Fn(&&FlowOutcome) -> bool) -> Point {
    let (rate, deviation) = rate_over_time(record, counts);
    let end = seconds(record.totals.end);
    let mut point = Point::of([
        ("rate", rate),
        ("rate deviation", deviation),
        ("pauses", record.totals.counts.pfc_pauses as f64),
        ("drops", record.totals.drops.total() as f64),
        ("goodput", record.totals.delivered_bytes as f64 * 8e-9 / end),
    ]);
    for name in PLACES {
        let topology = &record.config.topology;
        let here = |node| place(record, node) == Some(name);
        let queues = record.ports.iter().filter(|s| from_ms <= seconds(s.t) * 1e3 && here(topology.from(s.port)));
        let queue = stats::mean(&queues.map(|s| s.qlen_bytes as f64 / 1e3).collect::<Vec<_>>());
        let pauses = record.pauses.iter().filter(|event| event.pause && here(topology.to(event.port))).count();
        point.numbers.extend(queue.map(|queue| (format!("queue {name}"), queue)));
        point.numbers.insert(format!("pauses {name}"), pauses as f64 / (end * 1e3));
    }
    point
}

/// Returns the mean and standard deviation in Mb/s of the rates of finished flows, each over its lifetime and weighted
/// by it, as if sources were sampled at random times.
fn rate_over_time(record: &Record, counts: impl Fn(&&FlowOutcome) -> bool) -> (f64, f64) {
    let flow = |f: &FlowOutcome| {
        let life_s = seconds(f.fct?);
        Some((life_s, f.delivered_bytes as f64 * record.wire_factor() * 8.0 / life_s / 1e6))
    };
    let flows: Vec<(f64, f64)> = record.flows.iter().filter(counts).filter_map(flow).collect();
    let total: f64 = flows.iter().map(|f| f.0).sum();
    let mean = flows.iter().map(|f| f.0 * f.1).sum::<f64>() / total;
    let variance = flows.iter().map(|f| f.0 * (f.1 - mean) * (f.1 - mean)).sum::<f64>() / total;
    (mean, variance.sqrt())
}

/// Returns the least value over all seeds of a count.
fn least(points: &Points, run: &str, variant: &Variant, what: &str) -> f64 {
    points.values(run, variant.line, what).into_iter().reduce(f64::min).unwrap_or(0.0)
}

/// Returns the lowest and the highest of a variant's numbers over RoCC's, of all sizes that count: seed by seed.
pub fn extremes(points: &Points, workload: &Workload, load: u32, variant: &Variant, what: &str) -> [Vec<f64>; 2] {
    extremes_over(points, &at(workload, load), workload, [variant, &ROCC], what)
}

/// Returns the lowest and the highest of the first variant's numbers over the second's, of all sizes that count: seed
/// by seed.
pub fn extremes_over(
    points: &Points,
    run: &str,
    workload: &Workload,
    [variant, over]: [&Variant; 2],
    what: &str,
) -> [Vec<f64>; 2] {
    let counts = |size: &&u64| {
        let n = |variant: &Variant| least(points, run, variant, &format!("n-{size}"));
        ENOUGH <= n(variant).min(n(over))
    };
    let of = |size: &u64| points.ratios(run, variant.line, over.line, &format!("{what}-{size}"));
    let ratios: Vec<Vec<f64>> = workload.sizes.iter().filter(counts).map(of).collect();
    let seeds = ratios.iter().map(Vec::len).min().unwrap_or(0);
    let pick = |best: fn(f64, f64) -> f64| {
        (0..seeds).filter_map(|seed| ratios.iter().map(|of_size| of_size[seed]).reduce(best)).collect()
    };
    [pick(f64::min), pick(f64::max)]
}

/// Returns a panel of a number by flow size, with one line per variant. Sizes with too few finished flows are left out;
/// where some flows were not done, the point is hollow.
pub fn by_size(
    points: &Points,
    (workload, load): (&Workload, u32),
    title: &str,
    y: Axis,
    value: impl Fn(&Variant, u64) -> Vec<f64>,
) -> Panel {
    let run = at(workload, load);
    let count = |variant: &Variant, what: &str, size: u64| least(points, &run, variant, &format!("{what}-{size}"));
    let sizes = || (0..).map(f64::from).zip(workload.sizes.iter().copied());
    let line = |(variant, look): &Line| {
        let drawn = sizes().filter(|&(_, size)| ENOUGH <= count(variant, "done", size));
        Curve {
            name: variant.line.to_owned(),
            cc: look,
            values: drawn.map(|(x, size)| (x, value(variant, size))).collect(),
        }
    };
    let x = Axis { ticks: sizes().map(|(x, size)| (x, short(size))).collect(), ..Axis::new("flow size (bytes)") };
    let x = x.showing(0.0, workload.sizes.len() as f64 - 1.0);
    let mut panel = curves::panel(format!("{run}: {title}"), x, y, LINES.iter().map(line).collect());
    for series in &mut panel.series {
        let cut = |x: &f64| points.values(&run, &series.name, &format!("cut-{}", workload.sizes[*x as usize]));
        let is_partial = |x: &f64| cut(x).iter().any(|cut| 0.0 < *cut);
        series.partial = (0..).zip(&series.x).filter(|(_, x)| is_partial(x)).map(|(k, _)| k).collect();
    }
    panel
}

/// Draws the number of finished flows of each size, mean of the seeds: sizes below the level are not drawn elsewhere.
pub fn counts(points: &Points, workload: &Workload, load: u32) -> Panel {
    let run = at(workload, load);
    let sizes = || (0..).map(f64::from).zip(workload.sizes);
    let line = |(variant, look): &Line| {
        let values = sizes().map(|(x, size)| (x, points.values(&run, variant.line, &format!("done-{size}")))).collect();
        Curve { name: variant.line.to_owned(), cc: look, values }
    };
    let most = workload.sizes.len() as f64 - 1.0;
    let x = Axis { ticks: sizes().map(|(x, size)| (x, short(*size))).collect(), ..Axis::new("flow size (bytes)") };
    let y = Axis::new("finished flows of a run").logarithmic();
    let panel =
        curves::panel(format!("{run}: flows that count"), x.showing(0.0, most), y, LINES.iter().map(line).collect());
    if panel.series.is_empty() { panel } else { with_level(panel, "fewer are not drawn", ENOUGH, (0.0, most)) }
}

/// Returns a size in a few characters.
fn short(size: u64) -> String {
    match size {
        1_000_000.. => format!("{}M", size / 1_000_000),
        1_000.. => format!("{}K", size / 1_000),
        _ => size.to_string(),
    }
}

/// Returns the panels that have some series.
pub fn filled(panels: impl IntoIterator<Item = Panel>) -> Vec<Panel> {
    panels.into_iter().filter(|panel| !panel.series.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use fairrate_sim::workload::{Sampling, SizeDistribution};

    use super::*;

    #[test]
    fn bins_are_the_sizes_that_are_drawn() {
        for workload in WORKLOADS {
            let steps = SizeDistribution::by_name(workload.name).expect("there is one").sampled(Sampling::Step);
            let mut sizes: Vec<u64> = (0..100_000).map(|i| steps.sample(f64::from(i) / 1e5).as_u64()).collect();
            sizes.dedup();
            assert_eq!(sizes, workload.sizes, "{}", workload.name);
        }
    }

    /// The bin with 99 flows does not count, even though its ratio is the lowest.
    #[test]
    fn extremes_are_of_sizes_with_enough_flows() {
        let mut points = Points::default();
        let name = at(&WEBSEARCH, 70);
        for (line, p99) in [(ROCC.line, [1.0, 1.0, 1.0]), (BFC.line, [0.1, 3.0, 2.0])] {
            let mut point = Point::default();
            for ((size, n), p99) in WEBSEARCH.sizes.iter().zip([99.0, 100.0, 100.0]).zip(p99) {
                point.numbers.extend([(format!("n-{size}"), n), (format!("p99-{size}"), p99)]);
            }
            points.add(&name, line, Some(1), point);
        }
        assert_eq!(extremes(&points, &WEBSEARCH, 70, &BFC, "p99"), [vec![2.0], vec![3.0]]);
    }
}
