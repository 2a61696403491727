//! Figure 6 under steady load: flows arrive for 3 ms, and those of the first 0.5 ms do not count. In Figure 6 they arrive
//! for 0.5 ms, less than a mean flow takes, so all algorithms have the same rate there.

use fairrate_report::panel::{Axis, Panel};

use super::claims::{Setting, UNKNOWN, of_what_was_run, over};
use super::fabric::{DRAWN, FIRST, Hosts, LAST, LOADS, STEADY};
use super::settings::{MULTIPATH, Marks, SINGLE_PATH};
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

/// The paper gives no rate of hosts' links. 25 Gb/s is Figure 6's; 50 Gb/s is the largest at which load is that of hosts.
const HOSTS: [Hosts; 2] = [Hosts::Gbps25, Hosts::Gbps50];
const NOT_TRIED: &[(&str, &str)] = &[("", UNKNOWN)];

fn runs(scale: &Scale) -> Vec<Run> {
    let loads = if scale.quick { &[FIRST, LAST][..] } else { &LOADS[..] };
    let settings = || HOSTS.into_iter().flat_map(|hosts| loads.iter().map(move |load| (hosts, load)));
    let of_seed = |&seed: &u64| {
        // MPCC from 25 Gb/s takes as long as all others together, and no claim is about it.
        let lines = || DRAWN.iter().map(|(run, _)| *run).filter(|run| *run != "mpcc:fast");
        settings().flat_map(move |(hosts, load)| lines().map(move |run| STEADY.run(scale, hosts, load, run, seed)))
    };
    scale.seeds.iter().flat_map(of_seed).collect()
}

fn panels(points: &Points) -> Vec<Panel> {
    let of_hosts = |hosts: Hosts| {
        let rate = Axis::new("mean throughput (Gb/s)");
        [
            STEADY.panel(points, hosts, "throughput", rate, "rate", false),
            STEADY.panel(points, hosts, "over RateMP's", Axis::new("throughput over RateMP's"), "rate", true),
            STEADY.panel(points, hosts, "round-trip time", Axis::new("mean RTT (us)").logarithmic(), "rtt", false),
        ]
    };
    HOSTS.into_iter().flat_map(of_hosts).collect()
}

/// Returns the text's claims, under the marks of each algorithm's own paper. RateMP's RTT is only shown: the rate of
/// hosts was chosen by it.
fn claims(points: &Points) -> Vec<Claim> {
    let of_hosts = |hosts: Hosts| {
        let (traffic, marks) = (&STEADY, Marks::Own);
        let mut at = Setting { points, traffic, hosts, marks, causes: NOT_TRIED, claims: Vec::new() };
        for load in LOADS {
            of_load(&mut at, load);
        }
        let lead = |load: &str| over(&at.values(load, "ratemp", "rate"), &at.values(load, "xmp", "rate"));
        let (last, first) = (lead(LAST), lead(FIRST));
        let text = format!("ratemp's lead over xmp, over that at {FIRST}: \"more obvious\" at high load");
        at.ratio("lead", LAST, &text, Rule::AtLeast(1.0), &last, &first);
        at.claims
    };
    of_what_was_run(HOSTS.into_iter().flat_map(of_hosts).collect())
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
    let (own, least) = (at.values(load, "ratemp", "rtt"), at.lowest(load, &Setting::others(), "rtt"));
    at.ratio("rtt", load, "mean RTT of ratemp over the lowest other: \"the lowest\"", Rule::AtMost(1.0), &own, &least);
    at.add("us", load, "mean RTT of ratemp", Rule::Words, "us", own);
}
