//! The large networks of Figures 6 to 8: their runs, the numbers read from them, and panels over loads.

use fairrate_report::panel::{Axis, Panel};
use fairrate_report::stats;
use fairrate_sim::FlowOutcome;
use fairrate_units::Time;

use super::claims::over;
use super::settings::{RUNS, algorithm, sets};
use crate::curves::{self, Curve};
use crate::experiment::Run;
use crate::figure::Scale;
use crate::points::{Point, Points};
use crate::record::{Record, seconds};
use crate::rtts::Rtts;

/// Loads of all three figures; only the first and the last with `quick`.
pub const LOADS: [&str; 5] = [FIRST, "0.4", "0.6", "0.8", LAST];
pub const FIRST: &str = "0.2";
pub const LAST: &str = "1.0";
/// Largest size of small flows in bytes: the paper has no number.
const SMALL: u64 = 100_000;
/// End of the runs; flows that are unfinished then are cut.
const END: &str = "20ms";
/// Runs that are drawn, with the algorithm whose look each has.
pub const DRAWN: [(&str, &str); 10] = [
    ("ratemp", "ratemp"),
    ("xmp", "xmp"),
    ("mpcc", "mpcc"),
    ("mpcc:fast", "line-rate"),
    ("lia", "lia"),
    ("balia", "balia"),
    ("dctcp", "dctcp"),
    ("dcqcn", "dcqcn"),
    ("bbr", "bbr"),
    ("swift", "swift"),
];

/// The value of a run that a panel shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value {
    /// The run's own.
    Own,
    /// The run's over RateMP's, seed by seed and with its interval.
    OverRatemp,
}

/// The rate of hosts' links, which the paper does not give; links between switches have 100 Gb/s.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hosts {
    /// 25 Gb/s, which reproduces the paper's RTT of 4.5 us. Loads are of hosts' links.
    Gbps25,
    /// 40 Gb/s. Loads are of hosts' links.
    Gbps40,
    /// 50 Gb/s, with which all hosts of a ToR just fill the links above it. Loads are of hosts' links.
    Gbps50,
    /// 100 Gb/s. Two hosts share a link above the ToR, so loads are of the links above ToRs.
    Gbps100,
}

impl Hosts {
    /// Both rates of Figures 6 to 8, the main rate first.
    pub const ALL: [Self; 2] = [Self::Gbps25, Self::Gbps100];

    /// Returns the rate in words.
    pub fn text(self) -> &'static str {
        match self {
            Self::Gbps25 => "hosts of 25 Gb/s",
            Self::Gbps40 => "hosts of 40 Gb/s",
            Self::Gbps50 => "hosts of 50 Gb/s",
            Self::Gbps100 => "hosts of 100 Gb/s",
        }
    }

    /// Returns the prefix of the ids of claims and the names of runs.
    pub fn prefix(self) -> &'static str {
        match self {
            Self::Gbps25 => "",
            Self::Gbps40 => "40G-",
            Self::Gbps50 => "50G-",
            Self::Gbps100 => "100G-",
        }
    }

    /// Returns the changes to the examples.
    fn sets(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::Gbps25 => &[],
            Self::Gbps40 => &[("topology.host_rate", "40Gbps")],
            Self::Gbps50 => &[("topology.host_rate", "50Gbps")],
            Self::Gbps100 => &[("topology.host_rate", "100Gbps"), ("traffic.0.link_set", "tor-uplinks")],
        }
    }
}

/// The senders and receivers of a traffic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pattern {
    Random,
    /// Traffic to one pod.
    ManyToMany,
    /// Traffic to one host, beside random traffic at half load.
    ManyToOne,
}

/// A figure's traffic.
#[derive(Clone, Copy, Debug)]
pub struct Traffic {
    pub id: &'static str,
    pub name: &'static str,
    pattern: Pattern,
    scenario: &'static str,
    sizes: &'static str,
    /// Flows and round-trip times before this time are not counted.
    from_us: u64,
    /// Time until which flows arrive.
    window_us: u64,
}

const RANDOM: &str = include_str!("../../scenarios/ratemp-random.toml");
const TO_POD: &str = include_str!("../../scenarios/ratemp-many-to-many.toml");
const TO_HOST: &str = include_str!("../../scenarios/ratemp-incast.toml");

pub const WEBSEARCH: Traffic = Traffic {
    id: "websearch",
    name: "web search",
    pattern: Pattern::Random,
    scenario: RANDOM,
    sizes: "websearch",
    from_us: 0,
    window_us: 500,
};
/// Web search whose flows arrive for eight times as long.
pub const LONG: Traffic = Traffic { id: "websearch-4ms", window_us: 4_000, ..WEBSEARCH };
/// Web search whose flows arrive for several times as long as one takes. Those that find the network empty do not
/// count.
pub const STEADY: Traffic = Traffic { id: "websearch-3ms", from_us: 500, window_us: 3_000, ..WEBSEARCH };
pub const CACHE: Traffic = Traffic { id: "fb-cache", name: "cache follower", sizes: "fb-cache", ..WEBSEARCH };
pub const MANY_TO_MANY: Traffic = Traffic {
    id: "pod",
    name: "to one pod",
    pattern: Pattern::ManyToMany,
    scenario: TO_POD,
    window_us: 1_000,
    ..WEBSEARCH
};
/// Traffic to one pod that arrives for several times as long as a flow takes.
pub const STEADY_TO_POD: Traffic = Traffic { id: "pod-3ms", from_us: 500, window_us: 3_000, ..MANY_TO_MANY };
pub const MANY_TO_ONE: Traffic =
    Traffic { id: "host", name: "to one host", pattern: Pattern::ManyToOne, scenario: TO_HOST, ..WEBSEARCH };
/// Traffic to one host that arrives for several times as long as a flow takes.
pub const STEADY_TO_HOST: Traffic = Traffic { id: "host-3ms", from_us: 500, window_us: 3_000, ..MANY_TO_ONE };

impl Traffic {
    /// Returns the name of the traffic's runs at a load.
    pub fn run_name(&self, hosts: Hosts, load: &str) -> String {
        format!("{}{}-{load}", hosts.prefix(), self.id)
    }

    /// Returns all runs of a figure with this traffic.
    pub fn runs(&self, scale: &Scale) -> Vec<Run> {
        let loads = if scale.quick { &[FIRST, LAST][..] } else { &LOADS[..] };
        let mut runs = Vec::new();
        for &seed in &scale.seeds {
            for (hosts, load) in Hosts::ALL.into_iter().flat_map(|hosts| loads.iter().map(move |load| (hosts, load))) {
                runs.extend(RUNS.map(|run| self.run(scale, hosts, load, run, seed)));
            }
        }
        runs
    }

    /// Returns one run: 500 hosts as in the paper, or 108 with `quick`. Loads of the scenarios are of all links of a
    /// set.
    pub fn run(&self, scale: &Scale, hosts: Hosts, load: &str, run: &str, seed: u64) -> Run {
        let k: u32 = if scale.quick { 6 } else { 10 };
        let mut keys = vec![
            ("topology.k", k.to_string()),
            ("topology.hosts_per_edge", k.to_string()),
            ("duration", END.to_owned()),
            ("traffic.0.sizes", self.sizes.to_owned()),
            ("traffic.0.stop", format!("{}us", self.window_us)),
            // The samples of the examples are not read.
            ("probe.0.every", END.to_owned()),
        ];
        keys.extend(self.receivers(k, load.parse().expect("loads are numbers")));
        let mut all: Vec<(&str, &str)> = keys.iter().map(|(key, value)| (*key, value.as_str())).collect();
        all.extend(hosts.sets());
        all.extend(sets(run));
        let name = self.run_name(hosts, load);
        let from = Time::from_us(self.from_us);
        let made = Run::of(&name, self.scenario, algorithm(run), &all, move |record| read(record, from));
        made.called(run).counting(Rtts::since(from)).seeded(seed)
    }

    /// Returns the keys that make `load` a load of the receivers' links, for a network of `k` ports per switch and `k`
    /// hosts per ToR.
    fn receivers(&self, k: u32, load: f64) -> Vec<(&'static str, String)> {
        let (tors, hosts) = (k * k / 2, k * k * k / 2);
        let load_of = |load: f64| format!("{load:.9}");
        let names = |name: &str, numbers: std::ops::Range<u32>| {
            numbers.map(|i| format!("\"{name}{i}\"")).collect::<Vec<_>>().join(",")
        };
        match self.pattern {
            Pattern::Random => vec![("traffic.0.load", load_of(load))],
            Pattern::ManyToMany => vec![
                ("traffic.0.load", load_of(load / f64::from(k))),
                ("traffic.0.receivers", format!("[{}]", names("tor", tors - k / 2..tors))),
            ],
            Pattern::ManyToOne => {
                let (tor, last) = (tors - 1, hosts - 1);
                let (whole, part) = (names("tor", 0..tor), names("h", tor * k..last));
                vec![
                    ("traffic.1.load", load_of(load / f64::from(last))),
                    ("traffic.1.hosts", format!("[{whole},{part}]")),
                    ("traffic.1.receivers", format!("[\"h{last}\"]")),
                    ("traffic.1.stop", format!("{}us", self.window_us)),
                    ("probe.0.queue", format!("tor{tor}->h{last}")),
                ]
            }
        }
    }

    /// Draws a quantity over loads with one rate of hosts.
    pub fn panel(&self, points: &Points, hosts: Hosts, title: &str, y: Axis, what: &str, value: Value) -> Panel {
        let at = |load: &str, run: &str| points.values(&self.run_name(hosts, load), run, what);
        let values = |load: &str, run: &str| match value {
            Value::Own => at(load, run),
            Value::OverRatemp => over(&at(load, run), &at(load, "ratemp")),
        };
        let curve = |&(run, cc): &(&'static str, &'static str)| {
            let at = |load: &&str| (load.parse().expect("loads are numbers"), values(load, run));
            // From its module's first rate MPCC has a tenth of the others' throughput: beside it the others could not
            // be distinguished.
            let loads = LOADS.iter().filter(|_| value == Value::Own || run != "mpcc");
            Curve { name: shown(run).to_owned(), cc, values: loads.map(at).collect() }
        };
        let title = format!("{}, {}: {title}", self.name, hosts.text());
        let x = Axis::new("load").showing(0.2, 1.0);
        let panel = curves::panel(&title, Axis { link: "load", ..x }, y, DRAWN.iter().map(curve).collect());
        match value {
            Value::Own => curves::without_bands(panel),
            Value::OverRatemp => panel,
        }
    }
}

/// Returns a run's name in pictures.
fn shown(run: &'static str) -> &'static str {
    if run == "mpcc:fast" { "mpcc from 25 Gb/s" } else { run }
}

/// Reads rates and times of all flows from a time on, of small and large flows, and of the flows that are many to one.
fn read(record: &Record, from: Time) -> Point {
    let flows = &record.config.flows;
    let is_small = |flow: usize| flows[flow].bytes.as_u64() <= SMALL;
    let mut point = Point::of([
        ("rtt", record.rtts.mean_us()),
        ("rtt-p99", record.rtts.quantile_us(0.99)),
        ("drops", record.totals.drops.total() as f64),
        ("unfinished", record.totals.flows_unfinished as f64),
    ]);
    let mut add = |prefix: &str, numbers: [(&str, f64); 5]| {
        let finite = numbers.into_iter().filter(|(_, value)| value.is_finite());
        point.numbers.extend(finite.map(|(name, value)| (format!("{prefix}{name}"), value)));
    };
    add("", of_flows(record, from, |_| true));
    add("small-", of_flows(record, from, is_small));
    add("large-", of_flows(record, from, |flow| !is_small(flow)));
    add("in-", of_flows(record, from, |flow| flows[flow].group == 1));
    point
}

/// Returns the number, the rates in Gb/s and the times in microseconds of the flows from `from` on that `which`
/// selects; all flows count equally. Unfinished flows count with the bytes delivered and the time until the end.
fn of_flows(record: &Record, from: Time, which: impl Fn(usize) -> bool) -> [(&'static str, f64); 5] {
    let end = seconds(record.totals.end);
    let of_any = |flow: &FlowOutcome| match flow.fct {
        Some(fct) => (record.config.flows[flow.flow.index()].bytes.as_u64(), seconds(fct)),
        None => (flow.delivered_bytes.max(1), end - seconds(flow.start)),
    };
    let flows = record.flows.iter().chain(&record.cut);
    let flows = flows.filter(|flow| from <= flow.start && which(flow.flow.index()));
    let flows: Vec<(u64, f64)> = flows.map(of_any).filter(|flow| 0.0 < flow.1).collect();
    let rates: Vec<f64> = flows.iter().map(|(bytes, time)| *bytes as f64 * 8e-9 / time).collect();
    let times = stats::sorted(flows.iter().map(|flow| flow.1));
    let mean = |values: &[f64]| stats::mean(values).unwrap_or(f64::NAN);
    [
        ("n", rates.len() as f64),
        ("rate", mean(&rates)),
        ("utility", mean(&rates.iter().map(|rate| libm::log(*rate)).collect::<Vec<f64>>())),
        ("fct", mean(&times) * 1e6),
        ("fct-p99", stats::percentile(&times, 0.99).unwrap_or(f64::NAN) * 1e6),
    ]
}
