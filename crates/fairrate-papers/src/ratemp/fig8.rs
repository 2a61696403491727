//! Figure 8: many hosts send to one, beside random traffic at half load.

use fairrate_report::panel::{Axis, Panel};

use super::claims::{AS_FIG6, Setting, WITHOUT_MPCC, of_all};
use super::fabric::{FIRST, Hosts, LAST, LOADS, MANY_TO_ONE, Traffic, Value};
use crate::claim::{Claim, Rule};
use crate::experiment::Run;
use crate::figure::{Figure, Kind, Scale};
use crate::points::Points;

pub const FIGURE: Figure = Figure {
    id: "ratemp/fig8",
    title: "Throughput and completion times as many send to one",
    kind: Kind::Simulation,
    quick_s: 6,
    runs,
    panels,
    claims,
};

const WORST: &str = "MPCC from 4 Mb/s is the lowest, and without drops LIA and BALIA lose little: with MPCC left out and RED that \
     drops see worst.drops.";
const CAUSES: [(&str, &str); 3] = [("100G-best", AS_FIG6), ("100G-worst-", WORST), ("worst-", WORST)];

fn runs(scale: &Scale) -> Vec<Run> {
    MANY_TO_ONE.runs(scale)
}

fn panels(points: &Points) -> Vec<Panel> {
    panels_of(points, &MANY_TO_ONE, &Hosts::ALL)
}

/// Draws the quantities of the figure over loads, under a traffic to one host.
pub fn panels_of(points: &Points, traffic: &Traffic, hosts: &[Hosts]) -> Vec<Panel> {
    let pair = |title: &str, y: Axis, what: &str, value: Value| {
        let panel = |&hosts: &Hosts| traffic.panel(points, hosts, title, y.clone(), what, value);
        hosts.iter().map(panel).collect::<Vec<_>>()
    };
    let rate = || Axis::new("mean throughput (Gb/s)").showing(0.0, 25.0);
    let time = || Axis::new("mean completion time (us)").logarithmic();
    [
        pair("(a) throughput, all flows", rate(), "rate", Value::Own),
        pair("(a) over RateMP's", Axis::new("throughput over RateMP's"), "rate", Value::OverRatemp),
        pair("(b) completion time, all flows", time(), "fct", Value::Own),
        pair("(c) throughput, up to 100 KB", rate(), "small-rate", Value::Own),
        pair("(d) completion time, up to 100 KB", time(), "small-fct", Value::Own),
        pair("(d) over RateMP's", Axis::new("completion time over RateMP's"), "small-fct", Value::OverRatemp),
    ]
    .concat()
}

fn claims(points: &Points) -> Vec<Claim> {
    of_all(points, &[MANY_TO_ONE], &CAUSES, claims_of)
}

/// Adds the text's claims about traffic to one host.
pub fn claims_of(at: &mut Setting<'_>) {
    for load in LOADS {
        of_load(at, load);
    }
    for cc in ["xmp", "dctcp", "dcqcn"] {
        let text = format!("mean rate of {cc}, all flows, over that at {FIRST}: \"a degradation\"");
        let (last, first) = (at.values(LAST, cc, "rate"), at.values(FIRST, cc, "rate"));
        at.ratio(&format!("degrades.{cc}"), LAST, &text, Rule::AtMost(1.0), &last, &first);
    }
}

fn of_load(at: &mut Setting<'_>, load: &str) {
    at.highest_rate(load);
    let text = "mean FCT of ratemp, all flows, over the lowest other";
    let (own, best) = (at.values(load, "ratemp", "fct"), at.lowest(load, &Setting::others(), "fct"));
    at.ratio("fct", load, text, Rule::Words, &own, &best);
    let others = at.lowest(load, &["ratemp", "xmp", "mpcc", "dctcp", "dcqcn", "bbr", "swift"], "rate");
    let text = "higher mean rate of lia and balia over the lowest other: \"the worst\"";
    let highest = at.highest(load, &["lia", "balia"], "rate");
    at.ratio("worst", load, text, Rule::AtMost(1.0), &highest, &others);
    let others = at.lowest(load, &["ratemp", "xmp", "dctcp", "dcqcn", "bbr", "swift"], "rate");
    if !at.changes.is_empty() {
        at.if_changed(WITHOUT_MPCC, &highest, &others);
    }
    if at.marks.is_own() {
        let text = "the same with RED that drops, without mpcc (lia)";
        at.ratio("worst.drops", load, text, Rule::Words, &at.of_run(load, "lia:drops", "rate"), &others);
    }
    let multipath = ["lia", "balia", "xmp", "mpcc"];
    for (what, of, rule) in [
        ("small", "small flows, over the lowest of lia, balia, xmp, mpcc: \"smaller\"", Rule::AtMost(1.0)),
        ("in", "many to one, over the lowest of lia, balia, xmp, mpcc", Rule::Words),
    ] {
        let number = format!("{what}-fct");
        let (own, best) = (at.values(load, "ratemp", &number), at.lowest(load, &multipath, &number));
        at.ratio(what, load, &format!("mean FCT of ratemp, {of}"), rule, &own, &best);
    }
}
