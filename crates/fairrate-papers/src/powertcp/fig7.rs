//! Figure 7a and b: tails of short and of long flows at loads from 20 to 95 %, with the artifact's traffic.

use fairrate_report::panel::{Axis, Panel};
use fairrate_report::stats;

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
const READING: Reading = Reading::Traffic;

fn runs(scale: &Scale) -> Vec<Run> {
    LOADS.into_iter().flat_map(|load| runs_at(READING, load, &LINES, scale)).collect()
}

fn panels(points: &Points) -> Vec<Panel> {
    let draw = |title: &str, class: &str| {
        let curve = |line: &Line| {
            let at = |load: u32| (f64::from(load), points.values(&at(READING, load), line.name, class));
            Curve { name: line.name.to_owned(), cc: line.cc, values: LOADS.map(at).into() }
        };
        let y = Axis::new("99.9th percentile of slowdown").showing(0.0, 2.0);
        curves::panel(title, Axis::new("load of the ToR uplinks (%)"), y, LINES.iter().map(curve).collect())
    };
    vec![draw("(a) short flows (< 5 KB)", "short"), draw("(b) long flows (9 to 10 MB)", "long")]
}

/// Returns the change of a line's tail from HPCC's, in per cent, seed by seed.
fn against_hpcc(points: &Points, load: u32, line: &Line, class: &str) -> Vec<f64> {
    let ratios = points.ratios(&at(READING, load), line.name, HPCC.name, class);
    ratios.iter().map(|ratio| 100.0 * (ratio - 1.0)).collect()
}

/// Returns the mean over all loads, seed by seed.
fn over_loads(points: &Points, line: &Line, class: &str) -> Vec<f64> {
    let of_loads = LOADS.map(|load| against_hpcc(points, load, line, class));
    let seeds = of_loads.iter().map(Vec::len).min().unwrap_or(0);
    let mean = |seed: usize| stats::mean(&of_loads.each_ref().map(|of_load| of_load[seed]));
    (0..seeds).filter_map(mean).collect()
}

fn claims(points: &Points) -> Vec<Claim> {
    let claim = |id, sentence, rule, values| Claim::mean(id, sentence, rule, "%", values);
    vec![
        claim(
            "short-powertcp",
            "short flows \"by 36 %\": PowerTCP against HPCC, mean of all loads",
            Rule::Less(-36.0),
            over_loads(points, &POWERTCP, "short"),
        ),
        claim(
            "short-theta",
            "short flows \"and 55 %\": theta-PowerTCP against HPCC, mean of all loads",
            Rule::Less(-55.0),
            over_loads(points, &THETA, "short"),
        ),
        claim(
            "long-20",
            "long flows \"at low load similar\": PowerTCP against HPCC at 20 %",
            Rule::Similar,
            against_hpcc(points, 20, &POWERTCP, "long"),
        ),
        claim(
            "long-90",
            "long flows \"9 % better\": PowerTCP against HPCC at 90 %",
            Rule::Less(-9.0),
            against_hpcc(points, 90, &POWERTCP, "long"),
        ),
        claim(
            "long-theta",
            "long flows \"35 % worse\": theta-PowerTCP against HPCC, mean of all loads",
            Rule::More(35.0),
            over_loads(points, &THETA, "long"),
        ),
    ]
}
