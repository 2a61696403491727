//! Figure 5: four flows to one receiver start, ten milliseconds apart, and end.

use fairrate_report::panel::{Axis, Panel};
use fairrate_report::stats;

use crate::claim::{Claim, Rule};
use crate::drawing::{Line, panel};
use crate::experiment::Run;
use crate::figure::{Figure, Kind, Scale};
use crate::points::{Point, Points};
use crate::record::{Record, ms_from};

pub const FIGURE: Figure = Figure {
    id: "powertcp/fig5",
    title: "Fairness and stability as four flows come and go",
    kind: Kind::Simulation,
    quick_s: 5,
    runs,
    panels,
    claims,
};

const SCENARIO: &str = include_str!("../../scenarios/fairness.toml");
const ALGORITHMS: [&str; 4] = ["powertcp", "theta-powertcp", "timely", "hpcc"];
const FLOWS: u32 = 4;
/// Each algorithm in the form of its own paper, which is drawn, and in that of the paper's public artifact.
const PROFILES: [(&str, &str); 2] = [("fairness", "paper"), ("artifact's forms", "ns3")];
/// Returns the start of a flow in milliseconds; [`goes`] returns its end.
const fn comes(flow: u32) -> f64 {
    1.0 + 10.0 * flow as f64
}
const fn goes(flow: u32) -> f64 {
    41.0 + 10.0 * flow as f64
}

fn runs(_: &Scale) -> Vec<Run> {
    let forms =
        PROFILES.map(|(name, profile)| ALGORITHMS.map(|cc| Run::of(name, SCENARIO, cc, &[("profile", profile)], read)));
    forms.into_iter().flatten().collect()
}

fn read(record: &Record) -> Point {
    of_flows((0..FLOWS).map(|flow| record.goodput_gbps(|other| other == flow)).collect())
}

/// Returns the point of the four flows' rates over time.
pub fn of_flows(all: Vec<Vec<(f64, f64)>>) -> Point {
    let point = Point::of([("jain", least_jain(&all))]);
    (0..).zip(all).fold(point, |point, (flow, goodput)| point.with(&format!("flow {flow}"), goodput))
}

/// Returns the least index of Jain in any period with the same flows, two at least, from 1 ms after its begin.
fn least_jain(goodput: &[Vec<(f64, f64)>]) -> f64 {
    let mean = |flow: u32, from_ms: f64, to_ms: f64| {
        let inside = ms_from(&goodput[flow as usize], 0.0, (from_ms, to_ms));
        stats::mean(&inside.iter().map(|x| x.1).collect::<Vec<_>>()).unwrap_or(0.0)
    };
    let period = |begin: f64| {
        let there: Vec<u32> = (0..FLOWS).filter(|&flow| comes(flow) <= begin && begin < goes(flow)).collect();
        let shares: Vec<f64> = there.iter().map(|&flow| mean(flow, begin + 1.0, begin + 9.0)).collect();
        stats::jain(&shares).filter(|_| 1 < there.len()).unwrap_or(1.0)
    };
    [11.0, 21.0, 31.0, 41.0, 51.0].map(period).into_iter().fold(1.0, f64::min)
}

fn panels(points: &Points) -> Vec<Panel> {
    ALGORITHMS.map(|cc| draw_flows(points, cc, "goodput (Gb/s)")).into()
}

/// Draws a quantity of the four flows of a line.
pub fn draw_flows(points: &Points, line: &str, quantity: &str) -> Panel {
    // The looks of four algorithms distinguish the four flows.
    let of_flow = |flow: u32| {
        let series = points.series("fairness", line, &format!("flow {flow}"));
        let shown = Line::of(ALGORITHMS[flow as usize], &ms_from(series, 0.0, (0.0, 72.0)));
        Line { name: format!("flow {}", flow + 1), ..shown }
    };
    let (x, y) = (Axis { link: "time", ..Axis::new("time (ms)") }, Axis::new(quantity).showing(0.0, 26.0));
    panel(line, x, y, (0..FLOWS).map(of_flow).collect())
}

fn claims(points: &Points) -> Vec<Claim> {
    let of = |(run, _): (&str, &str)| {
        ALGORITHMS.map(|cc| {
            // The paper makes this statement about its own algorithms; 0.95 is ours.
            let (sentence, rule) = if cc.ends_with("powertcp") {
                (
                    "\"stabilizes to a fair share of bandwidth quickly\" (least Jain index, from 1 ms on)",
                    Rule::AtLeast(0.95),
                )
            } else {
                ("least Jain index, from 1 ms on", Rule::Words)
            };
            let sentence = format!("{run}, {cc}: {sentence}");
            Claim::exact(&format!("{run}-{cc}"), &sentence, rule, "", points.mean(run, cc, "jain"))
        })
    };
    PROFILES.into_iter().flat_map(of).collect()
}
