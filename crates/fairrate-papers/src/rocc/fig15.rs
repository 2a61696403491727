//! Figure 15: mean completion times by flow size.

use fairrate_report::panel::{Axis, Panel};

use super::fabric::{self, LINES, LOADS, WORKLOADS, at, by_size, counts, extremes, filled};
use crate::claim::{Claim, Rule};
use crate::experiment::Run;
use crate::figure::{Figure, Kind, Scale};
use crate::points::Points;

pub const FIGURE: Figure = Figure {
    id: "rocc/fig15",
    title: "Mean completion times of web search and Hadoop's traffic",
    kind: Kind::Simulation,
    quick_s: 20,
    runs,
    panels,
    claims,
};

fn runs(scale: &Scale) -> Vec<Run> {
    fabric::runs(scale, &WORKLOADS, &LOADS)
}

fn panels(points: &Points) -> Vec<Panel> {
    let settings = || LOADS.into_iter().flat_map(|load| WORKLOADS.map(|workload| (workload, load)));
    let of = |(workload, load)| {
        let y = Axis::new("FCT (ms)").logarithmic();
        by_size(points, (workload, load), "mean (hollow: at least)", y, |variant, size| {
            points.values(&at(workload, load), variant.line, &format!("mean-{size}"))
        })
    };
    filled(settings().map(of).chain(settings().map(|(workload, load)| counts(points, workload, load))))
}

/// Returns the claims, for which the text gives no numbers.
fn claims(points: &Points) -> Vec<Claim> {
    let mut claims = Vec::new();
    for workload in WORKLOADS {
        for (variant, _) in &LINES[1..] {
            let ends = extremes(points, workload, LOADS[0], variant, "mean");
            for (end, values) in ["lowest", "highest"].into_iter().zip(ends) {
                let id = format!("{}-{end}-{}", workload.name, variant.id);
                let sentence =
                    format!("{}: mean FCT of {} over rocc's, {end} bin", at(workload, LOADS[0]), variant.line);
                claims.push(Claim::mean(&id, &sentence, Rule::Words, "", values));
            }
        }
    }
    claims
}
