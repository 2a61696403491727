//! Figure 7 under steady load: many hosts send to those of one pod, and flows arrive for 3 ms. The claims
//! are Figure 7's.

use fairrate_report::panel::Panel;

use super::fabric::STEADY_TO_POD;
use super::fig7;
use super::steady::{self, HOSTS};
use crate::claim::Claim;
use crate::experiment::Run;
use crate::figure::{Figure, Kind, Scale};
use crate::points::Points;

pub const FIGURE: Figure = Figure {
    id: "ratemp/fig7-steady",
    title: "Throughput, round-trip time and utility of traffic to one pod that arrives for 3 ms",
    kind: Kind::Simulation,
    quick_s: 5,
    runs,
    panels,
    claims,
};

fn runs(scale: &Scale) -> Vec<Run> {
    steady::runs(scale, STEADY_TO_POD)
}

fn panels(points: &Points) -> Vec<Panel> {
    fig7::panels_of(points, &STEADY_TO_POD, &HOSTS)
}

fn claims(points: &Points) -> Vec<Claim> {
    steady::claims(points, &STEADY_TO_POD, fig7::claims_of)
}
