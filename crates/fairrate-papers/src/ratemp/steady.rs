//! The large networks under steady load: flows arrive for 3 ms, and those of the first 0.5 ms do not count. In Figures
//! 6 to 8 they arrive for 0.5 or 1 ms, about as long as a mean flow takes, so algorithms hardly differ there.

use super::claims::{Setting, of_what_was_run};
use super::fabric::{DRAWN, FIRST, Hosts, LAST, LOADS, Traffic};
use super::settings::Marks;
use crate::claim::Claim;
use crate::experiment::Run;
use crate::figure::Scale;
use crate::points::Points;

/// The paper gives no rate of hosts' links. 25 Gb/s is Figure 6's; 50 Gb/s is the largest at which load is that of
/// hosts. At 100 Gb/s load is that of the links above ToRs.
pub const HOSTS: [Hosts; 4] = [Hosts::Gbps25, Hosts::Gbps40, Hosts::Gbps50, Hosts::Gbps100];
/// RateMP with what ratemp/fig6-why found to hold its large flows back, where hosts have more than 25 Gb/s.
const CHANGES: [(&str, &str); 3] = [
    ("ratemp:alpha", "alpha_total is c/20 in place of c/100"),
    ("ratemp:kmax", "RateMP's Kmax is 400 KB in place of 40"),
    ("ratemp:alpha-kmax", "both are changed"),
];

/// Returns the runs of a traffic, under the marks of each algorithm's own paper.
pub fn runs(scale: &Scale, traffic: Traffic) -> Vec<Run> {
    let loads = if scale.quick { &[FIRST, LAST][..] } else { &LOADS[..] };
    let settings = || HOSTS.into_iter().flat_map(|hosts| loads.iter().map(move |load| (hosts, load)));
    let of_seed = |&seed: &u64| {
        // MPCC from 25 Gb/s takes as long as all others together, and no claim is about it.
        let lines = || DRAWN.iter().map(|(run, _)| *run).filter(|run| *run != "mpcc:fast");
        let changed = |hosts: Hosts| CHANGES.iter().map(|(run, _)| *run).filter(move |_| hosts != Hosts::Gbps25);
        settings().flat_map(move |(hosts, load)| {
            lines().chain(changed(hosts)).map(move |run| traffic.run(scale, hosts, load, run, seed))
        })
    };
    scale.seeds.iter().flat_map(of_seed).collect()
}

/// Returns the claims about a traffic with each rate of hosts.
pub fn claims(points: &Points, traffic: &Traffic, claim: impl Fn(&mut Setting<'_>)) -> Vec<Claim> {
    let of_hosts = |hosts: Hosts| {
        let mut at =
            Setting { points, traffic, hosts, marks: Marks::Own, causes: &[], changes: &CHANGES, claims: Vec::new() };
        claim(&mut at);
        at.claims
    };
    of_what_was_run(HOSTS.into_iter().flat_map(of_hosts).collect())
}
