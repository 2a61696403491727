//! Figure 7: many hosts send to those of one pod.

use fairrate_report::panel::{Axis, Panel};

use super::claims::{AS_FIG6, Setting, of_all};
use super::fabric::{FIRST, Hosts, LAST, LOADS, MANY_TO_MANY, Traffic, Value};
use crate::claim::{Claim, Rule};
use crate::experiment::Run;
use crate::figure::{Figure, Kind, Scale};
use crate::points::Points;

pub const FIGURE: Figure = Figure {
    id: "ratemp/fig7",
    title: "Throughput, round-trip time and utility of traffic to one pod",
    kind: Kind::Simulation,
    quick_s: 2,
    runs,
    panels,
    claims,
};

const MARKED: &str =
    "Under RateMP's marks others have short queues too. With the marks of their own papers see the claims named own.";
const CAUSES: [(&str, &str); 7] = [
    ("100G-best", AS_FIG6),
    ("100G-rtt-red", MARKED),
    ("100G-losses-red", MARKED),
    ("100G-many-red", MARKED),
    ("rtt-red", MARKED),
    ("losses-red", MARKED),
    ("many-red", MARKED),
];

fn runs(scale: &Scale) -> Vec<Run> {
    MANY_TO_MANY.runs(scale)
}

fn panels(points: &Points) -> Vec<Panel> {
    panels_of(points, &MANY_TO_MANY, &Hosts::ALL)
}

/// Draws the quantities of the figure over loads, under a traffic to one pod.
pub fn panels_of(points: &Points, traffic: &Traffic, hosts: &[Hosts]) -> Vec<Panel> {
    let pair = |title: &str, y: Axis, what: &str, value: Value| {
        let panel = |&hosts: &Hosts| traffic.panel(points, hosts, title, y.clone(), what, value);
        hosts.iter().map(panel).collect::<Vec<_>>()
    };
    [
        pair("throughput", Axis::new("mean throughput (Gb/s)").showing(0.0, 25.0), "rate", Value::Own),
        pair("over RateMP's", Axis::new("throughput over RateMP's"), "rate", Value::OverRatemp),
        pair("round-trip time", Axis::new("mean RTT (us)").logarithmic().showing(3.0, 100.0), "rtt", Value::Own),
        pair("utility", Axis::new("mean of log(Gb/s)"), "utility", Value::Own),
    ]
    .concat()
}

fn claims(points: &Points) -> Vec<Claim> {
    of_all(points, &[MANY_TO_MANY], &CAUSES, claims_of)
}

/// Adds the text's claims about traffic to one pod.
pub fn claims_of(at: &mut Setting<'_>) {
    at.best_rate_and_rtt();
    let (losses, marked) = (["lia", "balia"], ["dctcp", "dcqcn"]);
    let text = "lower mean rate of lia and balia over the higher of dctcp and dcqcn: \"higher\" with few flows";
    let (above, below) = (at.lowest(FIRST, &losses, "rate"), at.highest(FIRST, &marked, "rate"));
    at.ratio("few", FIRST, text, Rule::AtLeast(1.0), &above, &below);
    let text = "higher mean rate of lia and balia over the lower of dctcp and dcqcn: \"less\" with many";
    let (above, below) = (at.highest(LAST, &losses, "rate"), at.lowest(LAST, &marked, "rate"));
    at.ratio("many", LAST, text, Rule::AtMost(1.0), &above, &below);
    for load in LOADS {
        let others = at.highest(load, &["ratemp", "xmp", "dctcp", "dcqcn"], "rtt");
        let text = "lower mean RTT of lia and balia over the highest other: \"the highest\"";
        at.ratio("losses", load, text, Rule::AtLeast(1.0), &at.lowest(load, &losses, "rtt"), &others);
    }
}
