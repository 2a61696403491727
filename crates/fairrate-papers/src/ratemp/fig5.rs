//! Figure 5: downloads of three sizes beside eight endless connections of two subflows over a bottleneck of 1 Gb/s.

use fairrate_report::panel::{Axis, Panel};

use super::claims::{UNKNOWN, with_cause};
use super::testbed::{ALL, marks};
use crate::claim::{Claim, Rule};
use crate::curves::{self, Curve, words};
use crate::experiment::Run;
use crate::figure::{Figure, Kind, Scale};
use crate::moments::mean_and_deviation;
use crate::points::{Point, Points};
use crate::record::{Record, seconds};

pub const FIGURE: Figure = Figure {
    id: "ratemp/fig5",
    title: "Downloads beside eight endless connections",
    kind: Kind::Simulation,
    quick_s: 3,
    runs,
    panels,
    claims,
};

const SCENARIO: &str = include_str!("../../scenarios/ratemp-download.toml");
const FLOWS: &str = include_str!("../../scenarios/ratemp-download.csv");
/// Sizes, with the share of the hosts' link that gives the pauses between downloads: 20, 20 and 100 ms.
const DOWNLOADS: [(&str, &str); 3] = [("10KB", "0.0004"), ("100KB", "0.004"), ("1MB", "0.008")];

fn runs(scale: &Scale) -> Vec<Run> {
    let duration = if scale.quick { "2s" } else { "10s" };
    let run = |seed: u64, (size, load): (&str, &str), cc: &str| {
        let own = [("traffic.1.size", size), ("traffic.1.load", load), ("duration", duration)];
        let sets = [&own[..], marks(cc)].concat();
        Run::of(size, SCENARIO, cc, &sets, read).with_file("ratemp-download.csv", FLOWS).seeded(seed)
    };
    let of_seed = |&seed: &u64| DOWNLOADS.into_iter().flat_map(move |size| ALL.map(|cc| run(seed, size, cc)));
    scale.seeds.iter().flat_map(of_seed).collect()
}

fn read(record: &Record) -> Point {
    let ms: Vec<f64> = record.flows.iter().filter_map(|flow| Some(seconds(flow.fct?) * 1e3)).collect();
    let (mean, deviation) = mean_and_deviation(&ms);
    Point::of([("n", ms.len() as f64), ("mean", mean), ("deviation", deviation)])
}

fn panels(points: &Points) -> Vec<Panel> {
    let draw = |title: &str, y: Axis, what: &str| {
        let curve = |cc: &'static str| {
            let sizes = (0..).map(f64::from).zip(DOWNLOADS);
            let values = sizes.map(|(x, (size, _))| (x, points.values(size, cc, what))).collect();
            Curve { name: cc.to_owned(), cc, values }
        };
        let x = words("size of a download", &DOWNLOADS.map(|download| download.0));
        curves::panel(title, x, y.logarithmic(), ALL.map(curve).into())
    };
    vec![
        draw("completion time, mean", Axis::new("completion time (ms)").showing(0.3, 200.0), "mean"),
        draw("completion time, standard deviation", Axis::new("deviation (ms)").showing(0.02, 100.0), "deviation"),
    ]
}

fn claims(points: &Points) -> Vec<Claim> {
    let mut claims = Vec::new();
    let mut add = |id: &str, text: &str, rule, values| {
        claims.push(with_cause(Claim::mean(id, text, rule, "", values), UNKNOWN));
    };
    for (size, _) in DOWNLOADS {
        for cc in ALL.into_iter().filter(|cc| *cc != "ratemp") {
            let (words, rule) = match (size, cc) {
                // The paper has neither of these algorithms here.
                (_, "xmp" | "olia") => ("", Rule::Words),
                ("100KB", _) => (": \"more than 45 %\" less", Rule::AtMost(0.55)),
                _ => (": \"the smallest\"", Rule::AtMost(1.0)),
            };
            let text = format!("{size}: mean completion time of ratemp over that of {cc}{words}");
            add(&format!("{size}-{cc}"), &text, rule, points.ratios(size, "ratemp", cc, "mean"));
        }
        let steadiest = ["dctcp", "balia", "lia"].into_iter().min_by(|a, b| {
            let deviation = |cc: &str| points.mean(size, cc, "deviation").unwrap_or(f64::INFINITY);
            deviation(a).total_cmp(&deviation(b))
        });
        let rule = if size == "1MB" { Rule::Words } else { Rule::AtMost(1.0) };
        let text =
            format!("{size}: deviation of ratemp's over the smallest of dctcp's, balia's, lia's: \"low\" (ours)");
        let values = points.ratios(size, "ratemp", steadiest.unwrap_or("dctcp"), "deviation");
        add(&format!("{size}-deviation"), &text, rule, values);
    }
    claims
}
