//! Figure 10: the bytes that the network drops.

use fairrate_report::panel::{Axis, Panel};

use super::lines;
use super::traffic::{self, LOADS, name};
use super::{ALL, NODES_SHOWN, PFABRIC, SFQ_CODEL, SFQ_NS2, SFQ_RTO, TINY, Variant, WEB};
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
    traffic::runs(scale, &[WEB], &[&ALL[..], &NODES_SHOWN].concat())
}

fn panels(points: &Points) -> Vec<Panel> {
    let of = |(what, variants): (&str, &[&'static Variant])| {
        let y = Axis::new("dropped (Gb/s)").showing(0.0, 110.0);
        let panel = traffic::draw(points, &format!("dropped while flows arrive{what}"), y, variants, "dropped");
        with_level(panel, "paper: sfqCoDel above 100 Gb/s at 0.8", 100.0, (0.7, 0.9))
    };
    lines::filled([("", &ALL[..]), (", ns-2's nodes", &NODES_SHOWN)].map(of))
}

fn claims(points: &Points) -> Vec<Claim> {
    let variants: Vec<&Variant> = [&ALL[..], &NODES_SHOWN].concat();
    LOADS.iter().flat_map(|(_, load)| variants.iter().filter_map(|variant| claim(points, load, variant))).collect()
}

fn claim(points: &Points, load: &str, variant: &Variant) -> Option<Claim> {
    let is_of = |ideal: &Variant| variant.line == ideal.line || ideal.on_nodes().is_some_and(|on| variant.is_of(&[on]));
    let drops_8 = [&SFQ_CODEL, &TINY, &SFQ_NS2].into_iter().any(is_of) || variant.is_of(&[&SFQ_RTO]);
    let (rule, text) = match load {
        _ if !drops_8 && !is_of(&PFABRIC) => {
            (Rule::AtMost(0.001), "drops \"negligible amounts\" (a thousandth is ours)")
        }
        "0.8" if drops_8 => (Rule::About(0.08, 0.5), "drops \"close to 8 %\" (within a half is ours)"),
        "0.8" => (Rule::About(0.06, 0.5), "drops 6 % (within a half is ours)"),
        _ => return None,
    };
    let line = variant.line;
    let values = points.values(&name(&WEB, load), line, "dropped share");
    let sentence = format!("{line}, load {load}: {text}, of sent bytes");
    let claim = Claim::mean(&format!("{line}-{load}"), &sentence, rule, "", values);
    let cause = "Depends on the buffer and on CoDel's times, which the paper does not say: see the tiny buffer.";
    Some(if line == SFQ_CODEL.line { claim.because(cause) } else { claim })
}
