//! The large networks: Figures 6 to 8.

use std::path::{Path, PathBuf};

use fairrate_report::stats;
use fairrate_sim::{FlowOutcome, ProbeSpec, SimConfig};
use fairrate_units::Time;

use super::rtts::Rtts;
use super::settings::{RUNS, WHY, sets};
use crate::lab::{self, Record};
use crate::paper::{Job, Numbers, Options, algorithm, numbers};
use crate::seeds::over_seeds;

/// Loads of all three figures.
pub const LOADS: [&str; 5] = ["0.2", "0.4", "0.6", "0.8", "1.0"];
const QUICK_LOADS: [&str; 2] = ["0.2", "0.8"];
/// The figures: job, example, sizes of its first traffic, and until when flows arrive.
pub const FIGURES: [(&str, Figure); 4] = [
    ("fig6-websearch", Figure { example: "ratemp-random", sizes: "websearch", window_us: 500 }),
    ("fig6-fb-cache", Figure { example: "ratemp-random", sizes: "fb-cache", window_us: 500 }),
    ("fig7", Figure { example: "ratemp-many-to-many", sizes: "websearch", window_us: 1_000 }),
    ("fig8", Figure { example: "ratemp-incast", sizes: "websearch", window_us: 500 }),
];

/// The rate of hosts' links, which the paper does not give; links between switches have 100 Gb/s.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hosts {
    /// 25 Gb/s, with which its RTT of 4.5 us comes back. Loads are of hosts' links.
    Gbps25,
    /// 100 Gb/s. Two hosts share a link above, so loads are of the links above ToRs.
    Gbps100,
}

impl Hosts {
    /// Both, the main one first.
    pub const ALL: [Self; 2] = [Self::Gbps25, Self::Gbps100];

    /// Behind the names of figures, and before the ids of claims.
    pub fn suffix(self) -> &'static str {
        match self {
            Self::Gbps25 => "",
            Self::Gbps100 => "-100G",
        }
    }

    /// What differs from the examples.
    fn sets(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::Gbps25 => &[],
            Self::Gbps100 => &[("topology.host_rate", "100Gbps"), ("traffic.0.link_set", "tor-uplinks")],
        }
    }
}
/// The load at which it is asked why.
const WHY_LOAD: &str = "0.8";
/// Small flows in bytes: the paper has no number.
const SMALL: u64 = 100_000;
/// What is not done then is cut.
const END: &str = "20ms";
/// Seeds of the large form: more where hosts are slow and runs short, and differences small.
const SEEDS: u64 = 5;
const SEEDS_100G: u64 = 3;

/// A figure's network and traffic.
#[derive(Clone, Copy)]
pub struct Figure {
    example: &'static str,
    sizes: &'static str,
    window_us: u64,
}

/// How large.
#[derive(Clone, Copy)]
struct Scale {
    k: u32,
    hosts_per_edge: u32,
    seeds: u64,
    /// How many times as long flows arrive.
    windows: u64,
}

impl Scale {
    /// 500 hosts as in the paper, or 108 and, as that is less work, for longer.
    fn of(options: &Options, hosts: Hosts) -> Self {
        let (k, seeds, windows) = match (options.full, options.quick) {
            (true, false) => (10, if hosts == Hosts::Gbps25 { SEEDS } else { SEEDS_100G }, 1),
            (true, true) => (10, 1, 1),
            (false, false) => (6, 1, 4),
            (false, true) => (6, 1, 1),
        };
        Self { k, hosts_per_edge: k, seeds, windows }
    }

    fn window_us(self, figure: Figure) -> u64 {
        self.windows * figure.window_us
    }

    fn hosts(self) -> u32 {
        self.tors() * self.hosts_per_edge
    }

    fn tors(self) -> u32 {
        self.k * self.k / 2
    }
}

/// One point of a figure.
struct Cell {
    root: PathBuf,
    figure: Figure,
    hosts: Hosts,
    scale: Scale,
    load: &'static str,
    run: &'static str,
}

/// The name of a point's runs.
pub fn job_name(figure: &str, hosts: Hosts, load: &str) -> String {
    format!("{figure}{}-{load}", hosts.suffix())
}

pub(super) fn jobs(root: &Path, options: &Options) -> Vec<Job> {
    let loads: &[&'static str] = if options.quick { &QUICK_LOADS } else { &LOADS };
    let mut jobs = Vec::new();
    let mut add = |name: String, figure, hosts, load, run| {
        let cell = Cell { root: root.to_owned(), figure, hosts, scale: Scale::of(options, hosts), load, run };
        jobs.push(Job::new(name, run, move || over_seeds(cell.scale.seeds, |seed| measure(&cell, seed))));
    };
    for hosts in Hosts::ALL {
        for (name, figure) in FIGURES {
            for &load in loads {
                for run in RUNS {
                    add(job_name(name, hosts, load), figure, hosts, load, run);
                }
            }
        }
    }
    let long = Figure { window_us: 4_000, ..FIGURES[0].1 };
    let runs = WHY.iter().map(|(run, _)| ("why", FIGURES[0].1, *run));
    for (name, figure, run) in runs.chain([("why-long", long, "ratemp"), ("why-long", long, "xmp:red")]) {
        add(name.to_owned(), figure, Hosts::Gbps100, WHY_LOAD, run);
    }
    jobs
}

fn measure(cell: &Cell, seed: u64) -> Result<Numbers, String> {
    let mut config = config(cell, seed)?;
    let window = Time::from_us(cell.scale.window_us(cell.figure));
    // What is delivered at the end of arrivals; the example's probe samples too much.
    config.probes = vec![ProbeSpec::Flows { flows: None, every: window }];
    let groups: Vec<u32> = config.flows.iter().map(|f| f.group).collect();
    let mut rtts = Rtts::default();
    let record = lab::watch(config, &mut |sample| rtts.add(sample))?;
    let mut out = of_flows("", &record, |_| true);
    out.extend(of_flows("small-", &record, |flow| record.sizes[flow] <= SMALL));
    out.extend(of_flows("large-", &record, |flow| SMALL < record.sizes[flow]));
    out.extend(of_flows("in-", &record, |flow| groups[flow] == 1));
    out.extend(numbers([
        ("goodput", delivered_by(&record, window) * 8e-9 / lab::seconds(window) / f64::from(cell.scale.hosts())),
        ("rtt", rtts.mean_us()),
        ("rtt-p99", rtts.quantile_us(0.99)),
        ("drops", record.totals.drops.total() as f64),
        ("unfinished", record.unfinished as f64),
    ]));
    Ok(out)
}

/// The scenario of a point. Loads of the examples are of all links of a set.
fn config(cell: &Cell, seed: u64) -> Result<SimConfig, String> {
    let (scale, figure) = (cell.scale, cell.figure);
    let load: f64 = cell.load.parse().map_err(|_| format!("a load `{}`", cell.load))?;
    let text = |load: f64| format!("{load:.9}");
    let (k, hosts, seed) = (scale.k.to_string(), scale.hosts_per_edge.to_string(), seed.to_string());
    let (stop, last) = (format!("{}us", scale.window_us(figure)), scale.hosts() - 1);
    let names = |name: &str, numbers: std::ops::Range<u32>| {
        numbers.fold(String::new(), |all, i| all + "\"" + name + &i.to_string() + "\",")
    };
    let mut all = vec![
        ("topology.k", k),
        ("topology.hosts_per_edge", hosts),
        ("seed", seed),
        ("duration", END.to_owned()),
        ("traffic.0.sizes", figure.sizes.to_owned()),
        ("traffic.0.stop", stop.clone()),
    ];
    match figure.example {
        "ratemp-random" => all.push(("traffic.0.load", text(load))),
        // Of the links into one pod, or of its hosts' links.
        "ratemp-many-to-many" => {
            let receivers = names("tor", scale.tors() - scale.k / 2..scale.tors());
            all.push(("traffic.0.load", text(load / f64::from(scale.k))));
            all.push(("traffic.0.receivers", format!("[{receivers}]")));
        }
        // Of the last link, from all other hosts.
        _ => {
            let tors = scale.tors() - 1;
            let senders = names("tor", 0..tors) + &names("h", tors * scale.hosts_per_edge..last);
            all.push(("traffic.1.load", text(load / f64::from(last))));
            all.push(("traffic.1.hosts", format!("[{senders}]")));
            all.push(("traffic.1.receivers", format!("[\"h{last}\"]")));
            all.push(("traffic.1.stop", stop));
            all.push(("probe.0.queue", format!("tor{tors}->h{last}")));
        }
    }
    let mut pairs: Vec<(&str, &str)> = all.iter().map(|(key, value)| (*key, value.as_str())).collect();
    pairs.extend(cell.hosts.sets());
    pairs.extend(sets(cell.run));
    lab::example(&cell.root, figure.example, algorithm(cell.run), &pairs)
}

/// Rates and times of some flows, each of which counts alike. Those that are cut count with what they have until then.
fn of_flows(prefix: &str, record: &Record, which: impl Fn(usize) -> bool) -> Numbers {
    let end_s = lab::seconds(record.totals.end);
    let (mut rates, mut times, mut bytes) = (Vec::new(), Vec::new(), 0.0);
    let of_any = |f: &FlowOutcome| match f.fct {
        Some(fct) => (record.sizes[f.flow.index()], lab::seconds(fct)),
        None => (f.delivered_bytes.max(1), end_s - lab::seconds(f.start)),
    };
    let flows = record.flows.iter().chain(&record.cut).filter(|f| which(f.flow.index()));
    for (delivered, time_s) in flows.map(of_any).filter(|flow| 0.0 < flow.1) {
        rates.push(delivered as f64 * 8e-9 / time_s);
        times.push(time_s);
        bytes += delivered as f64;
    }
    let mean = |values: &[f64]| stats::mean(values).unwrap_or(f64::NAN);
    let times = stats::sorted(times);
    let list = [
        ("n", rates.len() as f64),
        ("rate", mean(&rates)),
        ("rate-over-time", bytes * 8e-9 / times.iter().sum::<f64>()),
        ("utility", mean(&rates.iter().map(|rate| rate.ln()).collect::<Vec<f64>>())),
        ("fct", mean(&times) * 1e6),
        ("fct-p99", stats::percentile(&times, 0.99).unwrap_or(f64::NAN) * 1e6),
    ];
    list.into_iter().map(|(name, value)| (format!("{prefix}{name}"), value)).collect()
}

/// Payload bytes delivered until a time: those of flows that are done, and of those that were sampled then.
fn delivered_by(record: &Record, at: Time) -> f64 {
    let done = record.flows.iter().filter(|f| f.fct_ack.is_some_and(|fct| f.start + fct <= at));
    let sampled = record.rates.iter().filter(|r| r.t == at);
    (done.map(|f| f.delivered_bytes).sum::<u64>() + sampled.map(|r| r.delivered_bytes).sum::<u64>()) as f64
}
