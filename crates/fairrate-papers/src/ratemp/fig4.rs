//! Figure 4: a connection over the bottlenecks AB and CD, and a flow on AB from 5 s to 10 s. The optimum leaves AB to
//! the flow.

use fairrate_report::panel::{Axis, Panel};

use super::claims::{UNKNOWN, with_cause};
use super::testbed::{ALL, bottlenecks, mbps};
use crate::claim::{Claim, Rule};
use crate::drawing::{Line, panel, with_level};
use crate::experiment::Run;
use crate::figure::{Figure, Kind, Scale};
use crate::moments::mean_and_deviation;
use crate::points::{Point, Points};
use crate::record::Record;

pub const FIGURE: Figure = Figure {
    id: "ratemp/fig4",
    title: "A connection over two bottlenecks, and a flow on one of them that comes and goes",
    kind: Kind::Simulation,
    quick_s: 18,
    runs,
    panels,
    claims,
};

/// Rate of AB and CD in Mb/s.
const LINK: f64 = 500.0;
/// Start and end of the flow, and end of the run, in seconds.
const COMES: f64 = 5.0;
const GOES: f64 = 10.0;
const END: f64 = 15.0;
/// RateMP with one thing changed: the flow on AB has two subflows, or marks are averaged by elapsed rounds.
const VARIANTS: [(&str, &str, &str); 2] = [
    ("ratemp, two subflows on AB", "traffic.1.subflows", "2"),
    ("ratemp, elapsed rounds", "transport.ratemp.beta_rounds", "elapsed"),
];

fn runs(scale: &Scale) -> Vec<Run> {
    let of_seed = |&seed: &u64| {
        let variant = move |&(line, key, value): &(&str, &str, &str)| {
            bottlenecks("ratemp", &[(key, value)], seed, read).called(line)
        };
        ALL.iter().map(move |cc| bottlenecks(cc, &[], seed, read)).chain(VARIANTS.iter().map(variant))
    };
    scale.seeds.iter().flat_map(of_seed).collect()
}

fn read(record: &Record) -> Point {
    let bins = |flow: u32, from: f64, to: f64| -> Vec<(f64, f64)> {
        let n = ((to - from) * 10.0).round() as u32;
        let ends = (0..n).map(|i| (from + f64::from(i) / 10.0, from + f64::from(i + 1) / 10.0));
        ends.map(|(a, b)| (b, mbps(record, flow, a, b))).filter(|bin| bin.1.is_finite()).collect()
    };
    let beside: Vec<f64> = bins(0, COMES + 1.0, GOES).iter().map(|bin| bin.1).collect();
    Point::of([
        ("alone", mbps(record, 0, 1.0, COMES)),
        ("beside", mbps(record, 0, COMES + 1.0, GOES)),
        ("flow", mbps(record, 1, COMES + 1.0, GOES)),
        ("after", mbps(record, 0, GOES + 1.0, END)),
        ("swing", mean_and_deviation(&beside).1),
        ("leave", time_to_take(record) * 1e3),
    ])
    .with("connection", bins(0, 0.0, END))
    .with("flow", bins(1, COMES, GOES))
}

/// Returns the seconds until the flow on AB has 95 % of that link over 20 ms; all of its time if it never does.
fn time_to_take(record: &Record) -> f64 {
    let mut ends = (1..=240).map(|i| COMES + f64::from(i) * 0.02);
    let took = ends.find(|&end| 0.95 * LINK <= mbps(record, 1, end - 0.02, end));
    took.map_or(GOES - COMES, |end| end - COMES)
}

fn panels(points: &Points) -> Vec<Panel> {
    let draw = |cc: &'static str| {
        let axis = Axis { link: "time", ..Axis::new("time (s)").showing(0.0, END) };
        let line = |name: &str, what: &str, look| {
            let line = Line::of(look, points.series("bottlenecks", cc, what));
            Line { name: name.to_owned(), ..line }
        };
        let connection = line("connection over AB and CD", "connection", "powertcp");
        let flow = line("flow on AB", "flow", "dcqcn");
        let y = Axis::new("throughput (Mb/s)").showing(0.0, 1_050.0);
        with_level(panel(cc, axis, y, vec![connection, flow]), "optimum of either", LINK, (COMES, GOES))
    };
    let has_run = |cc: &&str| !points.series("bottlenecks", cc, "connection").is_empty();
    ALL.into_iter().filter(has_run).map(draw).collect()
}

fn claims(points: &Points) -> Vec<Claim> {
    let of = |line: &str, what: &str| points.values("bottlenecks", line, what);
    let mut claims = Vec::new();
    let mut add = |id: String, text: String, rule, unit, values| {
        claims.push(with_cause(Claim::mean(&id, &text, rule, unit, values), UNKNOWN));
    };
    for cc in ALL {
        let (words, rule) = match cc {
            "ratemp" => (": the optimum (2 % is ours)", Rule::About(LINK, 0.02)),
            "dctcp" | "lia" => (" is \"low\" (ours: a tenth is missing)", Rule::AtMost(450.0)),
            _ => ("", Rule::Words),
        };
        add(format!("flow-{cc}"), format!("{cc}: rate of the flow on AB{words}"), rule, "Mb/s", of(cc, "flow"));
        for (what, words) in [("alone", "alone"), ("beside", "beside it"), ("after", "after it")] {
            let text = format!("{cc}: rate of the connection {words}");
            add(format!("{what}-{cc}"), text, Rule::Words, "Mb/s", of(cc, what));
        }
        let (words, rule) =
            if cc == "ratemp" { (": \"quickly\" (ours)", Rule::AtMost(100.0)) } else { ("", Rule::Words) };
        add(format!("leave-{cc}"), format!("{cc}: until that flow has 95 % of AB{words}"), rule, "ms", of(cc, "leave"));
        let (words, rule) = stable(cc);
        let text = format!("{cc}: deviation of the connection's rate over 100 ms beside it{words}");
        add(format!("swing-{cc}"), text, rule, "Mb/s", of(cc, "swing"));
    }
    let larger = |a: &&str, b: &&str| {
        let flow = |cc: &str| points.mean("bottlenecks", cc, "flow").unwrap_or(0.0);
        flow(a).total_cmp(&flow(b))
    };
    let other = ["dctcp", "lia"].into_iter().max_by(larger).unwrap_or("lia");
    let text = "rate of the flow on AB with balia over the larger of dctcp's and lia's: better".to_owned();
    add("balia".to_owned(), text, Rule::AtLeast(1.0), "", points.ratios("bottlenecks", "balia", other, "flow"));
    let back = of("ratemp", "after").iter().zip(of("ratemp", "alone")).map(|(after, before)| after / before).collect();
    let text = "ratemp: the connection's rate after the flow over that before (2 % is ours)".to_owned();
    add("back".to_owned(), text, Rule::About(1.0, 0.02), "", back);
    for (line, ..) in VARIANTS {
        for (what, text, unit) in [("flow", "rate of the flow on AB", "Mb/s"), ("swing", "deviation", "Mb/s")] {
            add(format!("{what}-{line}"), format!("{line}: {text}"), Rule::Words, unit, of(line, what));
        }
    }
    claims
}

/// Returns the rule for stability: within 2 % of the connection's 500 Mb/s, as for "the optimum".
fn stable(cc: &str) -> (&'static str, Rule) {
    if cc == "ratemp" { (": \"stable\" (ours: 2 % of 500 Mb/s)", Rule::AtMost(0.02 * LINK)) } else { ("", Rule::Words) }
}
