//! Figure 7g and h: distribution of ToRs' buffer occupancy, with web search at 80 %, alone and beside requests.

use fairrate_report::panel::{Axis, Panel};
use fairrate_report::stats;

use super::fig7_requests::{LOAD, READINGS};
use super::websearch::{DCQCN, HPCC, Line, POWERTCP, Reading, Requests, THETA, TIMELY, Traffic};
use crate::claim::{Claim, Rule};
use crate::drawing::{self, panel};
use crate::experiment::Run;
use crate::figure::{Figure, Kind, Scale};
use crate::occupancy::Occupancy;
use crate::points::{Point, Points};
use crate::record::Record;

pub const FIGURE: Figure = Figure {
    id: "powertcp/fig7-buffers",
    title: "What ToRs' buffers hold, with and without requests (7g and h)",
    kind: Kind::Simulation,
    quick_s: 12,
    runs,
    panels,
    claims,
};

const LINES: [Line; 5] = [POWERTCP, THETA, HPCC, TIMELY, DCQCN];
/// Number of samples in a window. The artifact records the largest of a hundred samples of the first ToR, one and a
/// half of the least base RTT (4.64 us) apart.
const WINDOW: usize = 100;
const EVERY: &str = "6960ns";
/// Quantiles that are kept.
const QUANTILES: [f64; 15] = [0.01, 0.05, 0.1, 0.2, 0.3, 0.4, MEDIAN, 0.6, 0.7, 0.8, 0.9, 0.95, TAIL, 0.995, 0.999];
const MEDIAN: f64 = 0.5;
/// The quantile of the tail, which the text gives for 7h.
const TAIL: f64 = 0.99;

/// Letters of the paper's panels, with the requests beside web search.
const CASES: [(&str, Option<Requests>); 2] = [("g", None), ("h", Some(Requests { megabytes: 2, per_s: 16 }))];

fn traffic(reading: Reading, requests: Option<Requests>) -> Traffic {
    Traffic { reading, load: LOAD, requests }
}

fn runs(scale: &Scale) -> Vec<Run> {
    let of = |reading: Reading, requests| {
        let (ports, every, read): (_, _, fn(&Record) -> Point) = match reading {
            Reading::Traffic => ("[\"tor0->*\"]", EVERY, of_artifact),
            // A fifth of the samples, since they are of all ToRs: 272 ports.
            _ => ("[\"tor*->*\"]", "35us", of_text),
        };
        traffic(reading, requests).runs(&LINES, scale, &[("probe.0.queues", ports), ("probe.0.every", every)], read)
    };
    READINGS.into_iter().flat_map(|reading| CASES.map(|(_, requests)| of(reading, requests))).flatten().collect()
}

/// Reads each sample of all ToRs.
fn of_text(record: &Record) -> Point {
    quantiles(Occupancy::of(record).all())
}

/// Reads the largest sample of each window of the first ToR.
fn of_artifact(record: &Record) -> Point {
    quantiles(Occupancy::of(record).largest_of(0, WINDOW))
}

fn quantiles(held_kb: impl Iterator<Item = f64>) -> Point {
    let sorted = stats::sorted(held_kb);
    let mut point = Point::default();
    let at = QUANTILES.iter().filter_map(|&p| Some((key(p), stats::percentile(&sorted, p)?)));
    point.numbers.extend(at);
    point
}

fn key(quantile: f64) -> String {
    format!("p{}", quantile * 100.0)
}

fn panels(points: &Points) -> Vec<Panel> {
    let draw = |reading: Reading, (letter, requests): (&str, Option<Requests>)| {
        let name = traffic(reading, requests).name();
        let line = |line: &Line| {
            let at = |&p: &f64| Some((points.mean(&name, line.name, &key(p))?, p));
            drawing::Line::of(line.cc, &QUANTILES.iter().filter_map(at).collect::<Vec<_>>())
        };
        let title = format!("({letter}) {name}");
        let (x, y) = (Axis::new("held by a ToR (KB)"), Axis::new("share of samples").showing(0.0, 1.0));
        panel(title, x, y, LINES.iter().map(line).collect())
    };
    READINGS.into_iter().flat_map(|reading| CASES.map(|case| draw(reading, case))).collect()
}

/// Returns the change of a quantile of a line from another's, in per cent, seed by seed.
fn against(points: &Points, name: &str, line: &Line, other: &Line, quantile: f64) -> Vec<f64> {
    let ratios = points.ratios(name, line.name, other.name, &key(quantile));
    ratios.iter().map(|ratio| 100.0 * (ratio - 1.0)).collect()
}

fn claims(points: &Points) -> Vec<Claim> {
    READINGS.into_iter().flat_map(|reading| claims_of(points, reading)).collect()
}

fn claims_of(points: &Points, reading: Reading) -> Vec<Claim> {
    let [alone, beside] = CASES.map(|(_, requests)| requests);
    let median =
        "alone, PowerTCP \"consistently maintains lower buffer occupancy\": median against HPCC (the quantile is ours)";
    let tail = "alone, PowerTCP \"cuts the tail buffer occupancy by 50 %\": 99th percentile against HPCC";
    let p90 = "alone, the same of the 90th percentile (the quantile is ours)";
    let requests = "2 MB, 16 /s: \"reduce the 99 percentile buffer by 31 %\": PowerTCP against HPCC";
    let of_theta = "2 MB, 16 /s: \"reduce the 99 percentile buffer by 31 %\": theta-PowerTCP against HPCC";
    // "(Q1)": "reducing tail buffer occupancy ... under congestion by 30 % when compared to HPCC and at least by 60 %
    // compared to TIMELY and DCQCN". Congestion is taken to be that of requests.
    let q1 = "2 MB, 16 /s: \"reducing tail buffer occupancy\" (99th percentile is ours): PowerTCP against";
    let [q1_hpcc, q1_timely, q1_dcqcn] = [HPCC, TIMELY, DCQCN].map(|other| format!("{q1} {}", other.name));
    let claim = |(id, sentence, rule, requests, [line, other], quantile): (&str, &str, Rule, _, [&Line; 2], f64)| {
        let measured = |reading| against(points, &traffic(reading, requests).name(), line, other, quantile);
        let (id, sentence) = (format!("{id}-{}", reading.name()), format!("{}: {sentence}", reading.name()));
        let claim = Claim::mean(&id, &sentence, rule, "%", measured(reading));
        match reading {
            Reading::Traffic => claim,
            _ => claim.changing("traffic, τ and what is counted are the artifact's", measured(Reading::Traffic)),
        }
    };
    [
        ("tail", tail, Rule::Less(-50.0), alone, [&POWERTCP, &HPCC], TAIL),
        ("median", median, Rule::AtMost(0.0), alone, [&POWERTCP, &HPCC], MEDIAN),
        ("p90", p90, Rule::AtMost(0.0), alone, [&POWERTCP, &HPCC], 0.9),
        ("requests-powertcp", requests, Rule::Less(-31.0), beside, [&POWERTCP, &HPCC], TAIL),
        ("requests-theta", of_theta, Rule::Less(-31.0), beside, [&THETA, &HPCC], TAIL),
        ("q1-hpcc", &q1_hpcc, Rule::Less(-30.0), beside, [&POWERTCP, &HPCC], TAIL),
        ("q1-timely", &q1_timely, Rule::Less(-60.0), beside, [&POWERTCP, &TIMELY], TAIL),
        ("q1-dcqcn", &q1_dcqcn, Rule::Less(-60.0), beside, [&POWERTCP, &DCQCN], TAIL),
    ]
    .map(claim)
    .into()
}
