//! The runs behind the claims: the project's own examples, measured.

use std::fmt;
use std::path::Path;

use fairrate_report::stats;
use fairrate_sim::{FlowOutcome, PortSample};
use fairrate_units::Time;

use crate::lab::{self, Record};

/// An example and what is looked at in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Workload {
    /// `incast10.toml`
    Incast10,
    /// `incast255.toml`
    Incast255,
    /// `fairness.toml`
    Fairness,
    /// `websearch20.toml`
    WebSearch20,
    /// `websearch.toml`
    WebSearch60,
}

impl Workload {
    /// All of them, the long ones first.
    pub const ALL: [Self; 5] = [Self::WebSearch60, Self::WebSearch20, Self::Incast255, Self::Incast10, Self::Fairness];

    fn file(self) -> &'static str {
        match self {
            Self::Incast10 => "incast10",
            Self::Incast255 => "incast255",
            Self::Fairness => "fairness",
            Self::WebSearch20 => "websearch20",
            Self::WebSearch60 => "websearch",
        }
    }

    /// When web search arrivals end: about 10,000 flows, of which 1,500 are short, so that a 99.9th percentile
    /// is the second of them and not the only one.
    fn arrivals_until(self, quick: bool) -> Option<&'static str> {
        match (self, quick) {
            (Self::WebSearch60, false) => Some("150ms"),
            (Self::WebSearch60, true) => Some("25ms"),
            (Self::WebSearch20, false) => Some("450ms"),
            (Self::WebSearch20, true) => Some("75ms"),
            _ => None,
        }
    }
}

/// One run.
#[derive(Clone, Copy, Debug)]
pub struct Job {
    /// Profile of the scenario.
    pub profile: &'static str,
    /// Which example.
    pub workload: Workload,
    /// Which algorithm.
    pub cc: &'static str,
    /// With less traffic.
    pub quick: bool,
}

impl fmt::Display for Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} (profile {})", self.workload.file(), self.cc, self.profile)
    }
}

/// What the claims need of a run.
#[derive(Clone, Debug, Default)]
pub struct Measured {
    /// FCT slowdowns of flows up to 10 KB, ascending.
    pub short: Vec<f64>,
    /// The same from 100 KB to 1 MB.
    pub medium: Vec<f64>,
    /// The same above 1 MB.
    pub long: Vec<f64>,
    /// Largest queue at the receiver's port, in bytes.
    pub peak_queue: f64,
    /// Mean queue there over the last millisecond, in bytes.
    pub last_queue: f64,
    /// Least throughput of the port in 100 us bins, from 200 us after the burst on, as a share of its capacity.
    pub least_throughput: f64,
    /// Least Jain index over the periods with two flows or more, each from 1 ms after its start.
    pub jain: f64,
}

/// The burst of the incast examples.
const BURST_NS: u64 = 1_000_000;

/// Runs a job and measures it.
///
/// # Errors
/// If the scenario does not build, or the run stalls.
pub fn measure(root: &Path, job: &Job) -> Result<Measured, String> {
    let mut sets = vec![("profile".to_owned(), job.profile.to_owned())];
    if let Some(until) = job.workload.arrivals_until(job.quick) {
        sets.push(("traffic.0.stop".to_owned(), until.to_owned()));
    }
    let sets: Vec<(&str, &str)> = sets.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
    let record = lab::run(lab::example(root, job.workload.file(), job.cc, &sets)?)?;
    Ok(measured(&record))
}

fn measured(record: &Record) -> Measured {
    let bucket = |from: f64, to: f64| {
        let size = |f: &FlowOutcome| record.sizes[f.flow.index()] as f64;
        let inside = record.flows.iter().filter(|f| from < size(f) && size(f) <= to);
        stats::sorted(inside.filter_map(|f| Some(f.fct?.as_ps() as f64 / f.ideal_fct.as_ps() as f64)))
    };
    let end = record.ports.last().map_or(Time::ZERO, |p| p.t);
    let last: Vec<f64> =
        record.ports.iter().filter(|p| end <= p.t + Time::from_ms(1)).map(|p| p.qlen_bytes as f64).collect();
    Measured {
        short: bucket(0.0, 10e3),
        medium: bucket(100e3, 1e6),
        long: bucket(1e6, f64::MAX),
        peak_queue: record.ports.iter().map(|p| p.qlen_bytes as f64).fold(0.0, f64::max),
        last_queue: stats::mean(&last).unwrap_or(0.0),
        least_throughput: least_throughput(record),
        jain: least_jain(record),
    }
}

/// The incast examples sample one port of 25 Gb/s every microsecond.
fn least_throughput(record: &Record) -> f64 {
    let from = Time::from_ns(BURST_NS + 200_000);
    let samples: Vec<&PortSample> = record.ports.iter().filter(|p| from <= p.t).collect();
    let bins = samples.chunks_exact(100).map(|bin| (bin[99].tx_bytes - bin[0].tx_bytes) as f64);
    bins.map(|bytes| bytes * 8.0 / 99e-6 / 25e9).fold(f64::MAX, f64::min)
}

/// The fairness example: flow i from 1 + 10 i ms to 41 + 10 i ms.
fn least_jain(record: &Record) -> f64 {
    let delivered = |flow: u32, ms: u64| {
        let at = record.rates.iter().rfind(|r| r.flow.0 == flow && r.t <= Time::from_ms(ms));
        at.map_or(0.0, |r| r.delivered_bytes as f64)
    };
    let mut least = f64::MAX;
    for start_ms in [11, 21, 31, 41, 51] {
        let active = |i: &u32| 10 * u64::from(*i) < start_ms && start_ms < 41 + 10 * u64::from(*i);
        let shares: Vec<f64> =
            (0..4).filter(active).map(|flow| delivered(flow, start_ms + 9) - delivered(flow, start_ms + 1)).collect();
        least = least.min(stats::jain(&shares).unwrap_or(1.0));
    }
    least
}
