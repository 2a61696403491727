//! Figure 10: the bytes that the network drops.

use fairrate_report::panel::{Axis, Panel};

use super::traffic::{self, LOADS, name};
use super::{ALL, PFABRIC, SFQ_CODEL, TINY, Variant, WEB};
use crate::claim::{Claim, Rule};
use crate::drawing::with_level;
use crate::experiment::Run;
use crate::figure::{Figure, Kind, Scale};
use crate::points::Points;

pub const FIGURE: Figure = Figure {
    id: "flowtune/fig10",
    title: "What the network drops",
    kind: Kind::Simulation,
    quick_s: 10,
    runs,
    panels,
    claims,
};

fn runs(scale: &Scale) -> Vec<Run> {
    traffic::runs(scale, &[WEB], &ALL)
}

fn panels(points: &Points) -> Vec<Panel> {
    let y = Axis::new("dropped (Gb/s)").showing(0.0, 110.0);
    let panel = traffic::draw(points, "dropped while flows arrive", y, &ALL, "dropped");
    vec![with_level(panel, "paper: sfqCoDel above 100 Gb/s at 0.8", 100.0, (0.7, 0.9))]
}

fn claims(points: &Points) -> Vec<Claim> {
    LOADS.iter().flat_map(|(_, load)| ALL.iter().filter_map(|variant| claim(points, load, variant))).collect()
}

fn claim(points: &Points, load: &str, variant: &Variant) -> Option<Claim> {
    let drops = [&PFABRIC, &SFQ_CODEL, &TINY];
    let (rule, text) = match (variant, load) {
        _ if !variant.is_of(&drops) => (Rule::AtMost(0.001), "drops \"negligible amounts\" (a thousandth is ours)"),
        (_, "0.8") if variant.is_of(&[&PFABRIC]) => (Rule::About(0.06, 0.5), "drops 6 % (within a half is ours)"),
        (_, "0.8") => (Rule::About(0.08, 0.5), "drops \"close to 8 %\" (within a half is ours)"),
        _ => return None,
    };
    let line = variant.line;
    let values = points.values(&name(&WEB, load), line, "dropped share");
    let sentence = format!("{line}, load {load}: {text}, of sent bytes");
    let claim = Claim::mean(&format!("{line}-{load}"), &sentence, rule, "", values);
    let cause = "Depends on the buffer and on CoDel's times, which the paper does not say: see the tiny buffer.";
    Some(if line == SFQ_CODEL.line { claim.because(cause) } else { claim })
}
