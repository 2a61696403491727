//! The runs behind the claims: the project's own examples, measured.

use std::fmt;
use std::path::Path;

use fairrate_report::stats;
use fairrate_sim::{FlowSpec, PortId, PortSample, SimConfig};
use fairrate_units::Time;

use super::slowdowns::{Tails, artifact_tails, uniform_tails};
use crate::lab::{self, Record};
use crate::paper::algorithm;

/// A scenario of the paper.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Workload {
    /// Figures 4, 9 and 10: `incast10.toml`.
    Incast10,
    /// The same with all other hosts: `incast255.toml`.
    Incast255,
    /// Figures 5 and 11: `fairness.toml`.
    Fairness,
    /// Figures 6 and 7, web search at a load in per cent.
    WebSearch(u8),
}

/// A column of the table: how algorithms, network and traffic are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Column {
    /// Every algorithm as its own paper has it; web search between racks, as the paper says.
    Own,
    /// As the ns-3 artifact has it, with the same traffic.
    Artifact,
    /// The artifact's traffic too, and its slowdowns: `websearch-artifact.toml`.
    ArtifactTraffic,
    /// The same with the tau of the paths that this traffic takes.
    PathTau,
}

impl Column {
    /// All of them, in the order of the table.
    pub const ALL: [Self; 4] = [Self::Own, Self::Artifact, Self::ArtifactTraffic, Self::PathTau];

    /// Its head in the table.
    pub fn head(self) -> &'static str {
        match self {
            Self::Own => "own forms",
            Self::Artifact => "ns-3 artifact's forms",
            Self::ArtifactTraffic => "and its traffic",
            Self::PathTau => "and tau = 8.8 us",
        }
    }

    fn profile(self) -> &'static str {
        if self == Self::Own { "paper" } else { "ns3" }
    }

    fn has_artifact_traffic(self) -> bool {
        matches!(self, Self::ArtifactTraffic | Self::PathTau)
    }
}

/// How much web search traffic there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// A sixth of the usual.
    Quick,
    /// What a check in an hour allows.
    Usual,
    /// As long as the artifact's runs, where they are known.
    Full,
}

/// One run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    /// How it is read.
    pub column: Column,
    /// Which scenario.
    pub workload: Workload,
    /// Which algorithm; HOMA's has the degree of overcommitment behind a colon, and `:fifo` behind that if it has one class.
    pub cc: &'static str,
    /// Seed of the scenario.
    pub seed: u64,
    /// How much traffic.
    pub size: Size,
}

impl fmt::Display for Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { column, workload, cc, seed, .. } = self;
        write!(f, "{column:?} {workload:?} {cc} seed {seed}")
    }
}

/// What the claims need of a run; what was not run is not a number.
#[derive(Clone, Copy, Debug)]
pub struct Measured {
    /// 99.9th percentiles of slowdowns.
    pub p999: Tails,
    /// Largest queue at the receiver's port, in bytes.
    pub peak_queue: f64,
    /// Mean queue there over the last millisecond, in bytes.
    pub last_queue: f64,
    /// Least throughput of the port in 100 us bins, from 200 us after the burst on, as a share of its capacity.
    pub least_throughput: f64,
    /// Least Jain index over the periods with two flows or more, each from 1 ms after its start.
    pub jain: f64,
}

impl Default for Measured {
    fn default() -> Self {
        let [peak_queue, last_queue, least_throughput, jain] = [f64::NAN; 4];
        Self { p999: Tails::default(), peak_queue, last_queue, least_throughput, jain }
    }
}

impl fmt::Display for Measured {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.p999.short.is_nan() {
            let (peak, last) = (self.peak_queue / 1e3, self.last_queue / 1e3);
            return write!(f, "queue {peak:.1} and {last:.1} KB, {:.3}, {:.3}", self.least_throughput, self.jain);
        }
        write!(f, "p99.9 {:.2} {:.2} {:.2}", self.p999.short, self.p999.medium, self.p999.long)
    }
}

/// The burst of the incast examples.
const BURST_NS: u64 = 1_000_000;

impl Job {
    fn example(&self) -> &'static str {
        match self.workload {
            Workload::Incast10 => "incast10",
            Workload::Incast255 => "incast255",
            Workload::Fairness => "fairness",
            Workload::WebSearch(_) if self.column.has_artifact_traffic() => "websearch-artifact",
            Workload::WebSearch(20) => "websearch20",
            Workload::WebSearch(_) => "websearch",
        }
    }

    /// What is changed in the example.
    fn sets(&self) -> Vec<(&'static str, String)> {
        let mut sets = vec![("profile", self.column.profile().to_owned()), ("seed", self.seed.to_string())];
        if let Workload::WebSearch(load) = self.workload {
            sets.push(("traffic.0.load", (f64::from(load) / 100.0).to_string()));
            sets.push(("traffic.0.stop", self.arrivals_until(load)));
        }
        if self.column == Column::PathTau {
            // Twice the delays of the longest path, and a packet's time on each of its links.
            sets.push(("transport.base_rtt", "8800ns".to_owned()));
        }
        if let Some(variant) = self.cc.strip_prefix("homa:") {
            sets.extend(self.homa_sets(variant).map(|(key, value)| (key, value.to_owned())));
        }
        sets
    }

    /// HOMA is run in a fabric that drops, as in its own paper. Receivers then find losses by a timer of a few milliseconds; of
    /// endless messages, which starve each other, they would ask for what still waits in a queue.
    fn homa_sets<'a>(&self, variant: &'a str) -> impl Iterator<Item = (&'static str, &'a str)> {
        let rto = if self.workload == Workload::Fairness { "1s" } else { "4ms" };
        let (degree, is_fifo) = variant.strip_suffix(":fifo").map_or((variant, false), |degree| (degree, true));
        let own = [("transport.homa.overcommitment", degree), ("switch.pfc", "false"), ("transport.rto", rto)];
        // One class, and the limits of the artifact's script for workloads: 4 MiB of which the headroom of all classes is taken
        // away are 1.2 MB at a ToR, and an egress queue may have as much as is free.
        let fifo = [("transport.homa.levels", "1"), ("switch.buffer", "1.2MB"), ("switch.egress_alpha", "1.0")];
        // Its packets overtake each other in classes, so that bytes in order do not tell who sends.
        let probe = (self.workload == Workload::Fairness).then_some(("probe.0.queue", "h*->tor0"));
        own.into_iter().chain(fifo.into_iter().filter(move |_| is_fifo)).chain(probe)
    }

    /// When web search arrivals end. Between racks there are about 10,000 flows, of which 1,500 are short. With the artifact's
    /// traffic there are 26,000 at 60 %, of which 2,200 are short, and 13,000 at other loads; the artifact's own
    /// runs have arrivals for 8.9 s.
    fn arrivals_until(&self, load: u8) -> String {
        let flows_ms = match (self.column.has_artifact_traffic(), self.size, load) {
            (false, _, _) => 9_000,
            (true, Size::Full, _) => 8_900 * u32::from(load),
            (true, _, 60) => 90_000,
            (true, _, _) => 45_000,
        };
        let ms = flows_ms / u32::from(load) / if self.size == Size::Quick { 6 } else { 1 };
        format!("{ms}ms")
    }
}

/// Runs a job and measures it.
///
/// # Errors
/// If the scenario does not build, or the run stalls.
pub fn measure(root: &Path, job: &Job) -> Result<Measured, String> {
    let sets = job.sets();
    let sets: Vec<(&str, &str)> = sets.iter().map(|(key, value)| (*key, value.as_str())).collect();
    let config = lab::example(root, job.example(), algorithm(job.cc), &sets)?;
    if let Workload::WebSearch(_) = job.workload {
        let p999 = if job.column.has_artifact_traffic() { artifact_tails(config)? } else { uniform_tails(config)? };
        return Ok(Measured { p999, ..Measured::default() });
    }
    let ports: Vec<PortId> = config.flows.iter().filter_map(|flow| first_port(&config, flow)).collect();
    let record = lab::run(config)?;
    let end = record.ports.last().map_or(Time::ZERO, |p| p.t);
    let last: Vec<f64> =
        record.ports.iter().filter(|p| end <= p.t + Time::from_ms(1)).map(|p| p.qlen_bytes as f64).collect();
    let jain = match job.workload {
        Workload::Fairness if algorithm(job.cc) == "homa" => least_jain(|flow, t| record.sent_bytes(ports[flow], t)),
        Workload::Fairness => least_jain(|flow, t| record.delivered_bytes(flow, t)),
        _ => f64::NAN,
    };
    Ok(Measured {
        p999: Tails::default(),
        peak_queue: record.ports.iter().map(|p| p.qlen_bytes as f64).fold(f64::NAN, f64::max),
        last_queue: stats::mean(&last).unwrap_or(f64::NAN),
        least_throughput: least_throughput(&record),
        jain,
    })
}

/// The port of the host that a flow comes from.
fn first_port(config: &SimConfig, flow: &FlowSpec) -> Option<PortId> {
    (0..config.topology.n_ports() as u32).map(PortId).find(|&port| config.topology.from(port) == flow.src)
}

/// The incast examples sample one port of 25 Gb/s every microsecond.
fn least_throughput(record: &Record) -> f64 {
    let from = Time::from_ns(BURST_NS + 200_000);
    let samples: Vec<&PortSample> = record.ports.iter().filter(|p| from <= p.t).collect();
    let bins = samples.chunks_exact(100).map(|bin| (bin[99].tx_bytes - bin[0].tx_bytes) as f64);
    bins.map(|bytes| bytes * 8.0 / 99e-6 / 25e9).fold(f64::NAN, f64::min)
}

/// The fairness example: flow i from 1 + 10 i ms to 41 + 10 i ms. `bytes` are those of a flow until a time.
fn least_jain(bytes: impl Fn(usize, Time) -> f64) -> f64 {
    let mut least = f64::MAX;
    for start_ms in [11, 21, 31, 41, 51] {
        let active = |i: &usize| 10 * (*i as u64) < start_ms && start_ms < 41 + 10 * *i as u64;
        let share = |flow| bytes(flow, Time::from_ms(start_ms + 9)) - bytes(flow, Time::from_ms(start_ms + 1));
        let shares: Vec<f64> = (0..4).filter(active).map(share).collect();
        least = least.min(stats::jain(&shares).unwrap_or(0.0));
    }
    least
}
