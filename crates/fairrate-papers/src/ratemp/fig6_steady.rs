//! Figure 6 under steady load: flows arrive for 3 ms, and those of the first 0.5 ms do not count. In Figure 6 they
//! arrive for 0.5 ms, less than a mean flow takes, so all algorithms have the same rate there.

use fairrate_report::panel::{Axis, Panel};

use super::claims::{Setting, WITHOUT_MPCC, over};
use super::fabric::{FIRST, Hosts, LAST, LOADS, STEADY, Value};
use super::settings::{MULTIPATH, SINGLE_PATH};
use super::steady::{self, HOSTS};
use crate::claim::{Claim, Rule};
use crate::experiment::Run;
use crate::figure::{Figure, Kind, Scale};
use crate::points::Points;

pub const FIGURE: Figure = Figure {
    id: "ratemp/fig6-steady",
    title: "Throughput and round-trip time of random traffic that arrives for 3 ms",
    kind: Kind::Simulation,
    quick_s: 15,
    runs,
    panels,
    claims,
};

fn runs(scale: &Scale) -> Vec<Run> {
    steady::runs(scale, STEADY)
}

fn panels(points: &Points) -> Vec<Panel> {
    let of_hosts = |hosts: Hosts| {
        let (rate, ratio) = (Axis::new("mean throughput (Gb/s)"), Axis::new("throughput over RateMP's"));
        [
            STEADY.panel(points, hosts, "throughput", rate, "rate", Value::Own),
            STEADY.panel(points, hosts, "over RateMP's", ratio, "rate", Value::OverRatemp),
            STEADY.panel(points, hosts, "round-trip time", Axis::new("mean RTT (us)").logarithmic(), "rtt", Value::Own),
        ]
    };
    HOSTS.into_iter().flat_map(of_hosts).collect()
}

/// Returns the text's claims, under the marks of each algorithm's own paper. RateMP's RTT is only shown: the rate of
/// hosts was chosen by it.
fn claims(points: &Points) -> Vec<Claim> {
    steady::claims(points, &STEADY, |at| {
        for load in LOADS {
            of_load(at, load);
        }
        let lead = |load: &str| over(&at.values(load, "ratemp", "rate"), &at.values(load, "xmp", "rate"));
        let (last, first) = (lead(LAST), lead(FIRST));
        let text = format!("ratemp's lead over xmp, over that at {FIRST}: \"more obvious\" at high load");
        at.ratio("lead", LAST, &text, Rule::AtLeast(1.0), &last, &first);
    })
}

fn of_load(at: &mut Setting<'_>, load: &str) {
    at.highest_rate(load);
    let others = at.highest(load, &["mpcc", "lia", "balia", "dctcp", "dcqcn", "bbr", "swift"], "rate");
    let text = "mean rate of xmp over the highest but ratemp's: \"second\"";
    at.ratio("second", load, text, Rule::AtLeast(1.0), &at.values(load, "xmp", "rate"), &others);
    let (single, rule) =
        (at.highest(load, &SINGLE_PATH, "rate"), if load == FIRST { Rule::AtLeast(1.0) } else { Rule::Words });
    let text = "lowest mean rate of several paths over the highest of one: \"higher\" below 0.4";
    at.ratio("paths", load, text, rule, &at.lowest(load, &MULTIPATH, "rate"), &single);
    let without = at.lowest(load, &["ratemp", "xmp", "lia", "balia"], "rate");
    at.if_changed(WITHOUT_MPCC, &without, &single);
    let (own, least) = (at.values(load, "ratemp", "rtt"), at.lowest(load, &Setting::others(), "rtt"));
    at.ratio("rtt", load, "mean RTT of ratemp over the lowest other: \"the lowest\"", Rule::AtMost(1.0), &own, &least);
    at.add("us", load, "mean RTT of ratemp", Rule::Words, "us", own);
}
