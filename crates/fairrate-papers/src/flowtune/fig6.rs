//! Figure 6: the updates that larger thresholds save.
//!
//! The paper's "update traffic" may be updates, packets with updates, or all that the allocator sends. All three are
//! judged. The last was the only one at first; updates came to be judged in its place after a run in which it failed
//! for Cache.

use fairrate_report::panel::{Axis, Panel};

use super::lines::{self, Curve};
use super::updates::{self, SAID, Said};
use crate::claim::{Claim, Rule};
use crate::drawing::with_level;
use crate::experiment::Run;
use crate::figure::{Figure, Kind, Scale};
use crate::points::Points;

pub const FIGURE: Figure = Figure {
    id: "flowtune/fig6",
    title: "What a threshold for updates saves of them, at a load of 0.8",
    kind: Kind::Simulation,
    quick_s: 4,
    runs,
    panels,
    claims,
};

/// Relative changes of rates from which flows are sent updates; the others are compared with the first.
const THRESHOLDS: [(f64, &str); 5] = [(0.01, "0.01"), (0.02, "0.02"), (0.03, "0.03"), (0.04, "0.04"), (0.05, "0.05")];
const BASE: &str = THRESHOLDS[0].1;
const LARGEST: &str = THRESHOLDS[4].1;

fn name(said: &Said, threshold: &str) -> String {
    format!("{} {threshold}", said.sizes.name)
}

fn runs(scale: &Scale) -> Vec<Run> {
    let at = |said: &Said, threshold: &str| {
        let sets =
            [("traffic.0.load", "0.8"), ("traffic.0.sizes", said.sizes.name), ("allocator.threshold", threshold)];
        updates::runs(scale, &name(said, threshold), updates::arrivals(scale), 9, &sets)
    };
    SAID.iter().flat_map(|said| THRESHOLDS.into_iter().flat_map(move |threshold| at(said, threshold.1))).collect()
}

/// Returns the saved share, seed by seed.
fn saved(points: &Points, said: &Said, threshold: &str, what: &str) -> Vec<f64> {
    let values = |threshold: &str| points.values(&name(said, threshold), "flowtune", what);
    values(threshold).iter().zip(values(BASE)).map(|(left, of)| 1.0 - left / of).collect()
}

fn panels(points: &Points) -> Vec<Panel> {
    let draw = |title: &str, what: &str| {
        let line = |said: &Said| {
            let percent = |threshold: &str| saved(points, said, threshold, what).iter().map(|x| 100.0 * x).collect();
            let values = THRESHOLDS.map(|(x, threshold)| (x, percent(threshold))).into();
            Curve { name: said.sizes.title.to_owned(), cc: said.look, values }
        };
        let (x, y) = (Axis::new("threshold"), Axis::new("saved (%)").showing(0.0, 80.0));
        let panel = lines::means(title, x, y, SAID.iter().map(line).collect());
        SAID.iter().fold(panel, |panel, said| {
            let percent = 100.0 * said.saved;
            let level = format!("paper: {} {percent:.0} % at 0.05", said.sizes.title);
            with_level(panel, &level, percent, (0.04, 0.05))
        })
    };
    vec![draw("updates", "updates"), draw("bytes of packets with updates", "from data")]
}

fn claims(points: &Points) -> Vec<Claim> {
    let of = |said: &Said| {
        let claim = |what: &str, text: &str, rule| {
            let sentence = format!("{}: saved by a threshold of 0.05 over 0.01, of {text}", said.sizes.title);
            let values = saved(points, said, LARGEST, what);
            Claim::mean(&format!("{}-{what}", said.sizes.name), &sentence, rule, "", values)
        };
        let about = Rule::About(said.saved, 0.25);
        let mut claims = [
            claim("updates", "updates (within a quarter is ours)", about),
            claim("from data", "bytes of packets with updates (within a quarter is ours)", about),
            claim("from", "bytes of all traffic from the allocator (within a quarter is ours)", about),
        ];
        if said.sizes.title == "Web" {
            let cause = "Updates of one iteration for one server share a packet: fewer updates make packets less full.";
            let [updates, bytes, all] = claims;
            claims = [updates, bytes.because(cause), all];
        }
        claims
    };
    SAID.iter().flat_map(of).collect()
}
