//! The common part of Figures 8 to 11: small flows between all servers by load, and the numbers read from a run.

use std::collections::HashMap;

use fairrate_report::panel::{Axis, Panel};
use fairrate_report::stats;
use fairrate_sim::PortId;

use super::lines::{self, Curve};
use super::{HADOOP, Hosts, MSS, Sizes, Variant, WEB};
use crate::experiment::Run;
use crate::figure::Scale;
use crate::moments::mean;
use crate::points::{Point, Points};
use crate::record::{Record, seconds};

const SCENARIO: &str = include_str!("../../scenarios/flowtune-web.toml");
/// Loads of servers' links, as numbers and as text of the scenario's keys.
pub const LOADS: [(f64, &str); 4] = [(0.2, "0.2"), (0.4, "0.4"), (0.6, "0.6"), (0.8, "0.8")];
/// Classes of Figure 8: lower end, exclusive, and upper end in packets of 1,460 bytes, and the name.
pub const CLASSES: [(f64, f64, &str); 5] = [
    (0.0, 1.0, "1 packet"),
    (1.0, 10.0, "1-10 packets"),
    (10.0, 100.0, "10-100 packets"),
    (100.0, 1_000.0, "100-1000 packets"),
    (1_000.0, f64::INFINITY, LARGE),
];
pub const LARGE: &str = "large";
/// Flow sizes. The figures are of Web, whose largest flow has 685 packets here: the class of large flows is empty.
/// Hadoop has all classes.
pub const SIZES: [Sizes; 2] = [WEB, HADOOP];

/// The paper samples queues every millisecond of a longer run.
const PROBES: &str = "[{ queues = [\"tor*->h*\", \"tor*->spine*\", \"spine*->tor*\"], every = \"50us\" }, \
                      { flows = \"all\", every = \"100us\" }]";
/// The same with the queues of hosts.
const PROBES_OF_HOSTS: &str = "[{ queues = [\"h*-nic->tor*\", \"tor*->h*\", \"tor*->spine*\", \"spine*->tor*\"], every = \"50us\" }, \
     { flows = \"all\", every = \"100us\" }]";
/// The rate as which less counts at a moment, so that a flow that gets nothing has a score (ours).
const LEAST_BPS: f64 = 10e6;

/// Algorithms whose looks the lines have.
const LOOKS: [&str; 9] =
    ["powertcp", "theta-powertcp", "dcqcn", "timely", "hpcc", "dctcp", "swift", "rocc", "line-rate"];

/// Returns the name of runs with these sizes at this load.
pub fn name(sizes: &Sizes, load: &str) -> String {
    format!("{} {load}", sizes.name)
}

/// Returns the runs of these sizes and variants at all loads.
pub fn runs(scale: &Scale, sizes: &[Sizes], variants: &[&Variant]) -> Vec<Run> {
    let (until, until_s) = if scale.quick { ("2ms", 2e-3) } else { ("10ms", 10e-3) };
    let at = |sizes: &Sizes, load: &str, variant: &Variant, seed: u64| {
        let probes = if variant.hosts == Hosts::Ideal { PROBES } else { PROBES_OF_HOSTS };
        let sets =
            [("traffic.0.sizes", sizes.name), ("traffic.0.load", load), ("traffic.0.stop", until), ("probe", probes)];
        variant.run(&name(sizes, load), SCENARIO, &sets, move |record| read(record, until_s)).seeded(seed).shared()
    };
    let mut runs = Vec::new();
    for (_, load) in LOADS {
        for sizes in sizes {
            let of =
                |variant: &&Variant| scale.seeds.iter().map(|&seed| at(sizes, load, variant, seed)).collect::<Vec<_>>();
            runs.extend(variants.iter().flat_map(of));
        }
    }
    runs
}

fn read(record: &Record, until_s: f64) -> Point {
    let bytes = |flow: &fairrate_sim::FlowOutcome| record.config.flows[flow.flow.index()].bytes.as_f64();
    let scores: Vec<f64> =
        record.flows.iter().filter_map(|flow| Some(libm::log2(bytes(flow) * 8.0 / seconds(flow.fct?)))).collect();
    // Only drops while flows arrive count; those afterwards are few.
    let gbps = |bytes: u64| bytes as f64 * 8e-9 / until_s.min(seconds(record.totals.end));
    let (two, four) = queueing(record, until_s);
    let mut point = Point::of([
        ("score", mean(&scores)),
        ("score of moments", mean(&rates_at_moments(record, until_s))),
        ("dropped", gbps(record.totals.dropped_bytes)),
        ("dropped share", record.totals.dropped_bytes as f64 / record.totals.sent_bytes as f64),
        ("2 hops", two),
        ("4 hops", four),
    ]);
    for (above, up_to, class) in CLASSES {
        let inside = |flow: &&fairrate_sim::FlowOutcome| {
            let packets = bytes(flow) / MSS;
            above < packets && packets <= up_to
        };
        let slowdown = |flow: &fairrate_sim::FlowOutcome| Some(seconds(flow.fct?) / seconds(flow.ideal_fct));
        let sorted = stats::sorted(record.flows.iter().filter(inside).filter_map(slowdown));
        point.numbers.extend(stats::percentile(&sorted, 0.99).map(|p99| (class.to_owned(), p99)));
    }
    point
}

/// Returns log2 of the rates in bit/s of all flows at all moments: every 100 us, of each flow that lives then, from
/// what its receiver got since the moment before, or since its start.
fn rates_at_moments(record: &Record, until_s: f64) -> Vec<f64> {
    let mut before: HashMap<u32, (f64, u64)> = HashMap::new();
    let mut rates = Vec::new();
    for sample in record.rates.iter().filter(|sample| seconds(sample.t) <= until_s) {
        let (flow, now) = (sample.flow, (seconds(sample.t), sample.delivered_bytes));
        let start = || (seconds(record.config.flows[flow.index()].start), 0);
        let (from, delivered) = before.insert(flow.0, now).unwrap_or_else(start);
        if from < now.0 {
            let bps = (now.1 - delivered) as f64 * 8.0 / (now.0 - from);
            rates.push(libm::log2(bps.max(LEAST_BPS)));
        }
    }
    rates
}

/// Returns the 99th percentiles of the queueing delay in us, from queue lengths, of paths within a rack and between
/// racks: at each sample, to every server, from the servers of its rack, and of the next rack over each spine. If
/// servers have queues, theirs count too, each for one server.
fn queueing(record: &Record, until_s: f64) -> (f64, f64) {
    let paths = paths(record);
    let mut waits = vec![0.0; record.config.topology.n_ports()];
    let (mut two, mut four) = (Vec::new(), Vec::new());
    for at in record.ports.chunk_by(|a, b| a.t == b.t).take_while(|at| seconds(at[0].t) <= until_s) {
        for sample in at {
            waits[sample.port.index()] = sample.qlen_bytes as f64 * 8e6 / record.rate_bps(sample.port);
        }
        let wait = |port: &PortId| waits[port.index()];
        for Paths { last, spines, first } in &paths {
            let [near, far] = first.as_ref().map_or([0.0; 2], |ports| ports.each_ref().map(wait));
            two.push(near + wait(last));
            four.extend(spines.iter().map(|[up, down]| far + wait(up) + wait(down) + wait(last)));
        }
    }
    let p99 = |values: Vec<f64>| stats::percentile(&stats::sorted(values), 0.99).unwrap_or(f64::NAN);
    (p99(two), p99(four))
}

/// The ports on the way to a server.
struct Paths {
    last: PortId,
    /// For each spine, the ports from the next rack to the server's own.
    spines: Vec<[PortId; 2]>,
    /// The queues of the next server of the same rack, and of the server of the next rack, if servers have queues.
    first: Option<[PortId; 2]>,
}

/// Returns the paths to each server.
fn paths(record: &Record) -> Vec<Paths> {
    let topology = &record.config.topology;
    let has_queues = !topology.host_queues.are_none();
    let port = |from: &str, to: &str| topology.port(topology.node(from)?, topology.node(to)?);
    let end = |server: u32| if has_queues { format!("h{server}-nic") } else { format!("h{server}") };
    let rack = |server: u32| format!("tor{}", server / 16);
    let of_server = |server: u32| {
        let (next_door, far) = (server / 16 * 16 + (server + 1) % 16, (server + 16) % 144);
        let by = |spine: u32| {
            let spine = format!("spine{spine}");
            Some([port(&rack(far), &spine)?, port(&spine, &rack(server))?])
        };
        let queue = |server: u32| port(&end(server), &rack(server));
        let first = if has_queues { Some([queue(next_door)?, queue(far)?]) } else { None };
        Some(Paths { last: port(&rack(server), &end(server))?, spines: (0..4).filter_map(by).collect(), first })
    };
    (0..144).filter_map(of_server).collect()
}

/// Returns a panel of a number by load, with one line per variant.
pub fn draw(points: &Points, title: &str, y: Axis, variants: &[&'static Variant], what: &str) -> Panel {
    let line = |(variant, look): (&&'static Variant, &'static str)| Curve {
        name: variant.line.to_owned(),
        cc: look,
        values: LOADS.map(|(x, load)| (x, points.values(&name(&WEB, load), variant.line, what))).into(),
    };
    lines::means(title, lines::loads(), y, variants.iter().zip(LOOKS).map(line).collect())
}
