//! Figure 8 under steady load: many hosts send to one, beside random traffic at half load, and flows arrive for 3 ms.
//! The claims are Figure 8's.

use fairrate_report::panel::Panel;

use super::fabric::STEADY_TO_HOST;
use super::fig8;
use super::steady::{self, HOSTS};
use crate::claim::Claim;
use crate::experiment::Run;
use crate::figure::{Figure, Kind, Scale};
use crate::points::Points;

pub const FIGURE: Figure = Figure {
    id: "ratemp/fig8-steady",
    title: "Throughput and completion times as many send to one for 3 ms",
    kind: Kind::Simulation,
    quick_s: 20,
    runs,
    panels,
    claims,
};

fn runs(scale: &Scale) -> Vec<Run> {
    steady::runs(scale, STEADY_TO_HOST)
}

fn panels(points: &Points) -> Vec<Panel> {
    fig8::panels_of(points, &STEADY_TO_HOST, &HOSTS)
}

fn claims(points: &Points) -> Vec<Claim> {
    steady::claims(points, &STEADY_TO_HOST, fig8::claims_of)
}
