//! Figure 7a and b: tails of short and of long flows at loads from 20 to 95 %, with the text's traffic and the
//! artifact's.

use fairrate_report::panel::{Axis, Panel};
use fairrate_report::stats;

use super::fig7_requests::READINGS;
use super::websearch::{HPCC, Line, POWERTCP, Reading, THETA, at, runs as runs_at};
use crate::claim::{Claim, Rule};
use crate::curves::{self, Curve};
use crate::experiment::Run;
use crate::figure::{Figure, Kind, Scale};
use crate::points::Points;

pub const FIGURE: Figure = Figure {
    id: "powertcp/fig7",
    title: "Tail of short and of long flows as load grows (7a and b)",
    kind: Kind::Simulation,
    quick_s: 30,
    runs,
    panels,
    claims,
};

/// The paper gives only the range. A mean over loads weighs them equally.
const LOADS: [u32; 6] = [20, 40, 60, 80, 90, 95];
const LINES: [Line; 3] = [POWERTCP, THETA, HPCC];

fn runs(scale: &Scale) -> Vec<Run> {
    let of = |reading| LOADS.into_iter().flat_map(move |load| runs_at(reading, load, &LINES, scale));
    READINGS.into_iter().flat_map(of).collect()
}

fn panels(points: &Points) -> Vec<Panel> {
    let draw = |reading: Reading, title: &str, class: &str| {
        let curve = |line: &Line| {
            let at = |load: u32| (f64::from(load), points.values(&at(reading, load), line.name, class));
            Curve { name: line.name.to_owned(), cc: line.cc, values: LOADS.map(at).into() }
        };
        let y = Axis::new("99.9th percentile of slowdown").showing(0.0, 2.0);
        let title = format!("{title}, {}", reading.name());
        curves::panel(&title, Axis::new("load of the ToR uplinks (%)"), y, LINES.iter().map(curve).collect())
    };
    let pair = |reading: Reading| {
        let [short, long] = match reading {
            Reading::Traffic => ["(a) short flows (< 5 KB)", "(b) long flows (9 to 10 MB)"],
            _ => ["(a) short flows (up to 10 KB)", "(b) long flows (above 1 MB)"],
        };
        [draw(reading, short, "short"), draw(reading, long, "long")]
    };
    READINGS.into_iter().flat_map(pair).collect()
}

/// Returns the change of a line's tail from HPCC's, in per cent, seed by seed.
fn against_hpcc(points: &Points, reading: Reading, load: u32, line: &Line, class: &str) -> Vec<f64> {
    let ratios = points.ratios(&at(reading, load), line.name, HPCC.name, class);
    ratios.iter().map(|ratio| 100.0 * (ratio - 1.0)).collect()
}

/// Returns the mean over all loads, seed by seed.
fn over_loads(points: &Points, reading: Reading, line: &Line, class: &str) -> Vec<f64> {
    let of_loads = LOADS.map(|load| against_hpcc(points, reading, load, line, class));
    let seeds = of_loads.iter().map(Vec::len).min().unwrap_or(0);
    let mean = |seed: usize| stats::mean(&of_loads.each_ref().map(|of_load| of_load[seed]));
    (0..seeds).filter_map(mean).collect()
}

fn claims(points: &Points) -> Vec<Claim> {
    READINGS.into_iter().flat_map(|reading| claims_of(points, reading)).collect()
}

/// Returns the claims in a reading. Their rules are the same in both.
fn claims_of(points: &Points, reading: Reading) -> Vec<Claim> {
    let claim = |id: &str, sentence: &str, rule, values: &dyn Fn(Reading) -> Vec<f64>| {
        let (id, sentence) = (format!("{id}-{}", reading.name()), format!("{}: {sentence}", reading.name()));
        let claim = Claim::mean(&id, &sentence, rule, "%", values(reading));
        match reading {
            Reading::Traffic => claim,
            _ => claim.changing("traffic, τ and what is counted are the artifact's", values(Reading::Traffic)),
        }
    };
    vec![
        claim(
            "short-powertcp",
            "short flows \"by 36 %\": PowerTCP against HPCC, mean of all loads",
            Rule::Less(-36.0),
            &|reading| over_loads(points, reading, &POWERTCP, "short"),
        ),
        claim(
            "short-theta",
            "short flows \"and 55 %\": theta-PowerTCP against HPCC, mean of all loads",
            Rule::Less(-55.0),
            &|reading| over_loads(points, reading, &THETA, "short"),
        ),
        claim(
            "long-20",
            "long flows \"at low load similar\": PowerTCP against HPCC at 20 %",
            Rule::Similar,
            &|reading| against_hpcc(points, reading, 20, &POWERTCP, "long"),
        ),
        claim("long-90", "long flows \"9 % better\": PowerTCP against HPCC at 90 %", Rule::Less(-9.0), &|reading| {
            against_hpcc(points, reading, 90, &POWERTCP, "long")
        }),
        claim(
            "long-theta",
            "long flows \"35 % worse\": theta-PowerTCP against HPCC, mean of all loads",
            Rule::More(35.0),
            &|reading| over_loads(points, reading, &THETA, "long"),
        ),
    ]
}
