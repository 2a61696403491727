//! Figure 6: random pairs on the large network.

use fairrate_report::panel::{Axis, Panel};

use super::claims::{Setting, of_all, over};
use super::fabric::{CACHE, FIRST, Hosts, LAST, LOADS, Traffic, Value, WEBSEARCH};
use super::settings::{MULTIPATH, SINGLE_PATH};
use crate::claim::{Claim, Rule};
use crate::drawing::with_level;
use crate::experiment::Run;
use crate::figure::{Figure, Kind, Scale};
use crate::points::Points;

pub const FIGURE: Figure = Figure {
    id: "ratemp/fig6",
    title: "Throughput, round-trip time and utility of random traffic",
    kind: Kind::Simulation,
    quick_s: 15,
    runs,
    panels,
    claims,
};

const TRAFFICS: [Traffic; 2] = [WEBSEARCH, CACHE];
const ALPHA: &str =
    "alpha_total of c/100 with a Kmax of 40 KB: with c/20, or 400 KB, RateMP has XMP's rate (ratemp/fig6-why).";
const MARKED: &str =
    "Under RateMP's marks others have short queues too. With the marks of their own papers see the claims named own.";
const FIRST_RATE: &str =
    "MPCC begins with its module's 4 Mb/s, at which a packet takes 3 ms: without it see paths.tcp.";
const CAUSES: [(&str, &str); 8] = [
    ("100G-best", ALPHA),
    ("100G-lead", ALPHA),
    ("100G-rtt-red", MARKED),
    ("100G-losses-red", MARKED),
    ("100G-paths-", FIRST_RATE),
    ("rtt-red", MARKED),
    ("losses-red", MARKED),
    ("paths-", FIRST_RATE),
];

fn runs(scale: &Scale) -> Vec<Run> {
    TRAFFICS.iter().flat_map(|traffic| traffic.runs(scale)).collect()
}

fn panels(points: &Points) -> Vec<Panel> {
    let pair = |traffic: &Traffic, title: &str, y: Axis, what: &str, value: Value| {
        Hosts::ALL.map(|hosts| traffic.panel(points, hosts, title, y.clone(), what, value))
    };
    let of_traffic = |traffic: &Traffic| {
        let rate =
            pair(traffic, "throughput", Axis::new("mean throughput (Gb/s)").showing(0.0, 25.0), "rate", Value::Own);
        let over_ratemp =
            pair(traffic, "over RateMP's", Axis::new("throughput over RateMP's"), "rate", Value::OverRatemp);
        let rtt = pair(
            traffic,
            "round-trip time",
            Axis::new("mean RTT (us)").logarithmic().showing(3.0, 100.0),
            "rtt",
            Value::Own,
        );
        let rtt = rtt.map(|panel| with_level(panel, "\"around 4.5 us\"", 4.5, (0.2, 1.0)));
        let utility = pair(traffic, "utility", Axis::new("mean of log(Gb/s)"), "utility", Value::Own);
        [rate, over_ratemp, rtt, utility].concat()
    };
    TRAFFICS.iter().flat_map(of_traffic).collect()
}

fn claims(points: &Points) -> Vec<Claim> {
    of_all(points, &TRAFFICS, &CAUSES, |at| {
        at.best_rate_and_rtt();
        for load in LOADS {
            of_load(at, load);
        }
        let lead = |load: &str| over(&at.values(load, "ratemp", "rate"), &at.values(load, "xmp", "rate"));
        let (last, first) = (lead(LAST), lead(FIRST));
        let text = format!("ratemp's lead over xmp, over that at {FIRST}: \"more obvious\" at high load");
        at.ratio("lead", LAST, &text, Rule::AtLeast(1.0), &last, &first);
        let (mpcc, single) = (at.values(LAST, "mpcc", "rate"), at.lowest(LAST, &SINGLE_PATH, "rate"));
        let text = "mean rate of mpcc over the lowest of one path: \"even lower\"";
        at.ratio("mpcc", LAST, text, Rule::AtMost(1.0), &mpcc, &single);
    })
}

fn of_load(at: &mut Setting<'_>, load: &str) {
    let single = at.highest(load, &SINGLE_PATH, "rate");
    let rule = if load == FIRST { Rule::AtLeast(1.0) } else { Rule::Words };
    let text = "lowest mean rate of several paths over the highest of one: \"higher\" below 0.4";
    at.ratio("paths", load, text, rule, &at.lowest(load, &MULTIPATH, "rate"), &single);
    let without = at.lowest(load, &["ratemp", "xmp", "lia", "balia"], "rate");
    at.ratio("paths.tcp", load, "the same without mpcc", rule, &without, &single);
    let text = "mean rate of xmp over the highest but ratemp's: \"second\"";
    let others = at.highest(load, &["mpcc", "lia", "balia", "dctcp", "dcqcn", "bbr", "swift"], "rate");
    at.ratio("second", load, text, Rule::AtLeast(1.0), &at.values(load, "xmp", "rate"), &others);
    let rtts = at.values(load, "ratemp", "rtt");
    if at.marks.is_own() {
        // 25 Gb/s were chosen because they give this number.
        let rule = if at.hosts == Hosts::Gbps25 { Rule::Words } else { Rule::About(4.5, 0.1) };
        let text = "mean RTT of ratemp: \"around 4.5 us\" (10 % is ours)";
        at.add("us", load, text, rule, "us", rtts.clone());
    }
    let text = "mean RTT of lia and balia, the lower, over ratemp's: \"relatively long\"";
    at.ratio("losses", load, text, Rule::AtLeast(1.0), &at.lowest(load, &["lia", "balia"], "rtt"), &rtts);
    let text = "mean utility of ratemp less the highest other, in nats";
    let (own, best) = (at.values(load, "ratemp", "utility"), at.highest(load, &Setting::others(), "utility"));
    let less = own.iter().zip(&best).map(|(own, best)| own - best).collect();
    at.add("utility", load, text, Rule::Words, "", less);
}
