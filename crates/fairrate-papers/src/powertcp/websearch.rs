//! The web search traffic of Figures 6 and 7, in its possible readings.

use fairrate_report::panel::{Axis, Panel};
use fairrate_report::stats::{percentile, sorted};
use fairrate_sim::{FlowOutcome, FlowSpec, NodeId, SimConfig};
use fairrate_units::{Bytes, Time};

use crate::curves::{self, Curve};
use crate::experiment::Run;
use crate::figure::Scale;
use crate::points::{Point, Points};
use crate::record::Record;

/// The reading of algorithms, traffic and τ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    /// Every algorithm in the form of its own paper; flows between racks, as the paper's text says.
    Own,
    /// The same with buffers by the bandwidth of switches, in the ratio of a Tofino, as the text says: 3.4 MB at a ToR
    /// and 1.4 MB above; and with a second of arrivals, so that a percentile of 99.9 % has ten short flows beyond it.
    Buffers,
    /// Algorithms in the forms of the paper's public artifact.
    Forms,
    /// The artifact's forms, its traffic and its slowdowns: 64 hosts of one pod, half of whose flows stay in their
    /// rack, and the τ of the whole fat-tree.
    Traffic,
    /// The same as `Traffic`, with the τ of the paths that this traffic takes.
    PathTau,
}

impl Reading {
    /// Returns the reading's name in lines and sentences.
    pub fn name(self) -> &'static str {
        match self {
            Self::Own => "own forms",
            Self::Buffers => "buffers by bandwidth",
            Self::Forms => "artifact's forms",
            Self::Traffic => "artifact's traffic",
            Self::PathTau => "artifact's traffic, 8.8 us",
        }
    }

    fn has_artifact_traffic(self) -> bool {
        matches!(self, Self::Traffic | Self::PathTau)
    }
}

/// HOMA in a fabric that drops, as in its own paper: losses are detected by a timer of a few milliseconds.
const HOMA: [(&str, &str); 2] = [("switch.pfc", "false"), ("transport.rto", "4ms")];

/// A line of the figures: an algorithm with its settings.
#[derive(Clone, Copy)]
pub struct Line {
    pub name: &'static str,
    pub cc: &'static str,
    pub sets: &'static [(&'static str, &'static str)],
}

const fn plain(name: &'static str) -> Line {
    Line { name, cc: name, sets: &[] }
}

pub const POWERTCP: Line = plain("powertcp");
pub const THETA: Line = plain("theta-powertcp");
pub const HPCC: Line = plain("hpcc");
pub const TIMELY: Line = plain("timely");
pub const DCQCN: Line = plain("dcqcn");
pub const HOMA_1: Line = Line { name: "homa, K = 1", cc: "homa", sets: &[("transport.homa.overcommitment", "1")] };
pub const HOMA_6: Line = Line { name: "homa, K = 6", cc: "homa", sets: &[("transport.homa.overcommitment", "6")] };
/// HOMA with one class, and the limits of the artifact's script for workloads: 4 MiB without the headroom of all
/// classes are 1.2 MB at a ToR, and an egress queue may use all the free buffer. Found after the first measurement, as
/// a cause.
pub const HOMA_FIFO: Line = Line {
    name: "homa, one class, 1.2 MB",
    cc: "homa",
    sets: &[
        ("transport.homa.overcommitment", "1"),
        ("transport.homa.levels", "1"),
        ("switch.buffer", "1.2MB"),
        ("switch.egress_alpha", "1.0"),
    ],
};

/// Returns the name of the runs at a load in per cent.
pub fn at(reading: Reading, load: u32) -> String {
    format!("{load} %, {}", reading.name())
}

/// Requests for files beside web search: each host sends requests as a Poisson process, and ten hosts of one other rack
/// answer at once with equal parts. The number of ten is the artifact's; it may draw a host twice, which does not
/// happen here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Requests {
    pub megabytes: u32,
    pub per_s: u32,
}

impl Requests {
    /// Returns the requests' part of the runs' name.
    pub fn name(self) -> String {
        format!("{} MB, {} /s", self.megabytes, self.per_s)
    }
}

/// A scenario with requests for files added.
macro_rules! requesting {
    ($file:literal) => {
        concat!(
            include_str!($file),
            "\n[[traffic]]\nkind = \"incast-queries\"\nrequest_size = \"2MB\"\nresponders = 10\nfrom = \"one-other-rack\"\n\
             rate_per_host_per_s = 1.0\nstop = \"1ms\"\n"
        )
    };
}

/// Web search at a load in per cent, optionally with requests beside it.
#[derive(Clone, Copy, Debug)]
pub struct Traffic {
    pub reading: Reading,
    pub load: u32,
    pub requests: Option<Requests>,
}

impl Traffic {
    /// Returns the name of the runs.
    pub fn name(&self) -> String {
        let requests = self.requests.map_or(String::new(), |requests| format!(", {}", requests.name()));
        at(self.reading, self.load) + &requests
    }

    fn toml(&self) -> &'static str {
        match (self.reading.has_artifact_traffic(), self.requests) {
            (false, None) => include_str!("../../scenarios/websearch.toml"),
            (true, None) => include_str!("../../scenarios/websearch-artifact.toml"),
            (false, Some(_)) => requesting!("../../scenarios/websearch.toml"),
            (true, Some(_)) => requesting!("../../scenarios/websearch-artifact.toml"),
        }
    }

    /// Returns runs of each line with each seed, with the keys in `more` set, whose points are made by `read`.
    pub fn runs(&self, lines: &[Line], scale: &Scale, more: &[(&str, &str)], read: fn(&Record) -> Point) -> Vec<Run> {
        let run = |line: &Line, seed: u64| {
            let (share, stop) =
                ((f64::from(self.load) / 100.0).to_string(), arrivals_until(self.reading, self.load, scale.quick));
            let asked = self.requests.map(|of| (format!("{}MB", of.megabytes), format!("{}.0", of.per_s)));
            let mut sets = vec![("traffic.0.load", share.as_str()), ("traffic.0.stop", &stop)];
            if let Some((size, rate)) = &asked {
                sets.extend([("traffic.1.request_size", size.as_str()), ("traffic.1.rate_per_host_per_s", rate)]);
                sets.push(("traffic.1.stop", &stop));
            }
            sets.extend((self.reading == Reading::Forms).then_some(("profile", "ns3")));
            if self.reading == Reading::Buffers {
                // 22 MB for 6.5 Tb/s.
                sets.extend([("switch.buffer", "3385B"), ("switch.buffer_per", "1Gbps")]);
            }
            // The τ is twice the delays of the longest path, and a packet's time on each of its links.
            sets.extend((self.reading == Reading::PathTau).then_some(("transport.base_rtt", "8800ns")));
            sets.extend(line.sets);
            sets.extend(if line.cc == "homa" { &HOMA[..] } else { &[] });
            sets.extend(more);
            Run::of(&self.name(), self.toml(), line.cc, &sets, read).called(line.name).seeded(seed)
        };
        lines.iter().flat_map(|line| scale.seeds.iter().map(move |&seed| run(line, seed))).collect()
    }

    /// Returns runs of each line with each seed, from which slowdowns by size are read.
    pub fn slowdowns(&self, lines: &[Line], scale: &Scale) -> Vec<Run> {
        let read = if self.reading.has_artifact_traffic() { of_artifact } else { of_text };
        self.runs(lines, scale, &[], read).into_iter().map(Run::shared).collect()
    }
}

/// Returns runs of a reading at a load, of each line with each seed.
pub fn runs(reading: Reading, load: u32, lines: &[Line], scale: &Scale) -> Vec<Run> {
    Traffic { reading, load, requests: None }.slowdowns(lines, scale)
}

/// Returns the end of arrivals. Between racks there are about 10,000 flows, of which 1,500 are short. With the
/// artifact's traffic there are 26,000 at 60 %, of which 2,200 are short, and 13,000 at other loads.
fn arrivals_until(reading: Reading, load: u32, quick: bool) -> String {
    let flows_ms = match (reading.has_artifact_traffic(), load) {
        _ if reading == Reading::Buffers => 1_000 * load,
        (false, _) => 9_000,
        (true, 60) => 90_000,
        (true, _) => 45_000,
    };
    format!("{}ms", flows_ms / load / if quick { 12 } else { 1 })
}

/// Limits of the size ranges of the pictures' points, in bytes.
const SIZES: [f64; 11] = [0.0, 5e3, 10e3, 30e3, 80e3, 200e3, 600e3, 1e6, 3e6, 10e6, 30e6];

/// Reads the paper's classes: up to 10 KB, from 100 KB to 1 MB, and above. A slowdown is the time to the last byte over
/// that on an idle network; the percentile is of nearest rank.
fn of_text(record: &Record) -> Point {
    let slowdown = |f: &FlowOutcome| Some(f.fct?.as_ps() as f64 / f.ideal_fct.as_ps() as f64);
    let slowdowns = |from: f64, to: f64| {
        let inside = record.flows.iter().filter(|f| from < size(record, f) && size(record, f) <= to);
        percentile(&sorted(inside.filter_map(slowdown)), 0.999)
    };
    point(slowdowns, [(0.0, 10e3), (100e3, 1e6), (1e6, f64::MAX)])
}

/// Reads the classes of the artifact's figures: below 5 KB, 400 to 600 KB, 9 to 10 MB. A slowdown is the time to the
/// last acknowledgment over the base FCT; the percentile is at index floor(0.999 n) of the sorted slowdowns.
fn of_artifact(record: &Record) -> Point {
    let base: Vec<Time> = record.config.flows.iter().map(|flow| base_fct(&record.config, flow)).collect();
    let slowdown = |f: &FlowOutcome| Some(f.fct_ack?.as_ps() as f64 / base[f.flow.index()].as_ps() as f64);
    let slowdowns = |from: f64, to: f64| {
        let inside = record.flows.iter().filter(|f| from <= size(record, f) && size(record, f) < to);
        at_floor(&sorted(inside.filter_map(slowdown)), 0.999)
    };
    point(slowdowns, [(0.0, 5e3), (400e3, 600e3), (9e6, 10e6)])
}

fn size(record: &Record, flow: &FlowOutcome) -> f64 {
    record.config.flows[flow.flow.index()].bytes.as_f64()
}

fn point(p999: impl Fn(f64, f64) -> Option<f64>, [short, medium, long]: [(f64, f64); 3]) -> Point {
    let of = |(from, to)| p999(from, to).unwrap_or(f64::NAN);
    let mut point = Point::of([("short", of(short)), ("medium", of(medium)), ("long", of(long))]);
    let by_size = SIZES.windows(2).filter_map(|ends| Some((up_to(ends[1]), p999(ends[0], ends[1])?)));
    point.numbers.extend(by_size);
    point
}

/// Returns the name of the number of a size range that ends at `bytes`.
fn up_to(bytes: f64) -> String {
    format!("up to {} KB", bytes / 1e3)
}

/// Returns the panel of a reading's slowdowns at a load by flow size: means over seeds with their intervals.
pub fn by_size_panel(points: &Points, reading: Reading, load: u32, lines: &[Line]) -> Panel {
    let run = at(reading, load);
    let curve = |line: &Line| {
        let of_size = |&bytes: &f64| (bytes / 1e3, points.values(&run, line.name, &up_to(bytes)));
        Curve { name: line.name.to_owned(), cc: line.cc, values: SIZES[1..].iter().map(of_size).collect() }
    };
    let x = Axis::new("flow size up to (KB)").logarithmic();
    let y = Axis::new("99.9th percentile of slowdown").logarithmic();
    curves::panel(run.clone(), x, y, lines.iter().map(curve).collect())
}

/// Returns the value at index floor(p n).
fn at_floor(sorted: &[f64], p: f64) -> Option<f64> {
    sorted.get((p * sorted.len() as f64) as usize).copied()
}

/// Returns the artifact's base FCT in a network of one pod: twice the delays and once the time of 1000 bytes on each
/// link there, and the flow's time on its host's link with 48 bytes of header a packet.
fn base_fct(config: &SimConfig, flow: &FlowSpec) -> Time {
    let rack = |host: NodeId| config.topology.nodes[host.index()].rack;
    let link = |set: &str| config.topology.link(config.topology.link_sets[set][0]);
    let round_trip = |set: &str| {
        let link = link(set);
        link.delay * 2 + link.rate.tx_time(config.transport.mtu)
    };
    let racks = if rack(flow.src) == rack(flow.dst) { Time::ZERO } else { round_trip("tor-uplinks") * 2 };
    let packets = flow.bytes.as_u64().div_ceil(config.transport.mtu.as_u64());
    let wire = Bytes::new(flow.bytes.as_u64() + config.transport.header.as_u64() * packets);
    round_trip("host-links") * 2 + racks + link("host-links").rate.tx_time(wire)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_base_fct_is_the_artifacts() {
        let scale = Scale::new(true, vec![1]);
        let run = runs(Reading::Traffic, 60, &[POWERTCP], &scale).remove(0);
        let config = run.scenario().expect("it reads").expect("it is a simulation").into_sim_config();
        // `standalone_ns` of ns-3's runs `unloaded`: flows of 1 B to 1 MB within a rack and within a pod.
        let hosts: Vec<_> = config.topology.hosts().collect();
        let base = |dst: usize, bytes| {
            let bytes = Bytes::new(bytes);
            let flow = FlowSpec { src: hosts[0], dst: hosts[dst], bytes, ..config.flows[0].clone() };
            base_fct(&config, &flow).as_ns()
        };
        assert_eq!([1, 1_001, 1_000_000].map(|bytes| base(1, bytes)), [4_655, 4_991, 340_000]);
        assert_eq!([1, 1_001, 1_000_000].map(|bytes| base(32, bytes)), [8_815, 9_151, 344_160]);
    }

    #[test]
    fn the_artifacts_percentile_is_one_further() {
        let values: Vec<f64> = (1..=1000).map(f64::from).collect();
        assert_eq!((at_floor(&values, 0.999), percentile(&values, 0.999)), (Some(1_000.0), Some(999.0)));
        assert_eq!((at_floor(&values[..999], 0.999), at_floor(&[], 0.999)), (Some(999.0), None));
    }
}
