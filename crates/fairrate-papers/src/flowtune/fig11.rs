//! Figure 11: proportional fairness, as a mean of log2 of rates. The paper's score is of "a network where flows are
//! assigned rates r_i", so rates are taken at moments: what a flow's receiver gets in 100 us, the interval of Figure 4,
//! of all flows that live. The other reading takes one rate of each flow: its size over its completion time.

use fairrate_report::panel::{Axis, Panel};

use super::lines::{self, Curve};
use super::traffic::{self, LOADS, name};
use super::{
    ALL, DCTCP, FLOWTUNE, FLOWTUNE_NODES, Hosts, IW10, K65, NODES_SHOWN, PFABRIC, SFQ_CODEL, TINY, Variant, WEB, XCP,
    XCP_NS2,
};
use crate::claim::{Claim, Rule};
use crate::drawing::with_level;
use crate::experiment::Run;
use crate::figure::{Figure, Kind, Scale};
use crate::points::Points;

pub const FIGURE: Figure = Figure {
    id: "flowtune/fig11",
    title: "Proportional fairness: points of log2 of rates by which Flowtune is ahead",
    kind: Kind::Simulation,
    quick_s: 8,
    runs,
    panels,
    claims,
};

/// Schemes with their lines, and the least lead of Flowtune over them in the paper.
const SCHEMES: [(&str, &[&Variant], f64); 4] = [
    ("DCTCP", &[&DCTCP, &K65], 1.0),
    ("pFabric", &[&PFABRIC], 0.45),
    ("sfqCoDel", &[&SFQ_CODEL, &TINY], 0.25),
    ("XCP", &[&XCP_NS2, &XCP], 1.3),
];

/// Looks of the lines of a panel.
const LOOKS: [&str; 4] = ["powertcp", "dcqcn", "hpcc", "dctcp"];

fn runs(scale: &Scale) -> Vec<Run> {
    let ideal = ALL.into_iter().filter(|variant| !variant.is_of(&[&IW10]));
    let variants: Vec<&Variant> = ideal.chain(NODES_SHOWN).collect();
    traffic::runs(scale, &[WEB], &variants)
}

/// The two readings of a score: the number of a run, and words.
const READINGS: [(&str, &str); 2] = [("score of moments", "rates at moments"), ("score", "size over completion time")];

/// Returns the lead of Flowtune with the same nodes, seed by seed.
fn ahead(points: &Points, load: &str, of: &Variant, score: &str) -> Vec<f64> {
    let scores = |line: &str| points.values(&name(&WEB, load), line, score);
    let flowtune = if of.hosts == Hosts::Ns2 { FLOWTUNE_NODES.line } else { FLOWTUNE.line };
    scores(flowtune).iter().zip(scores(of.line)).map(|(flowtune, other)| flowtune - other).collect()
}

fn panels(points: &Points) -> Vec<Panel> {
    let of = |(score, words): (&'static str, &'static str),
              (title, variants, least): (&str, &[&'static Variant], f64)| {
        let nodes = variants.iter().flat_map(|of| of.changes_to_nodes()).map(|(_, nodes)| nodes);
        let line = |(variant, look): (&'static Variant, &'static str)| Curve {
            name: variant.line.to_owned(),
            cc: look,
            values: LOADS.map(|(x, load)| (x, ahead(points, load, variant, score))).into(),
        };
        let y = Axis::new("log2(rate), Flowtune's less its").showing(-0.5, 1.5);
        let panel = lines::means(
            format!("{title}, {words}"),
            lines::loads(),
            y,
            variants.iter().copied().chain(nodes).zip(LOOKS).map(line).collect(),
        );
        with_level(panel, &format!("paper: from {least} on"), least, (0.1, 0.9))
    };
    READINGS.into_iter().flat_map(|reading| SCHEMES.map(|scheme| of(reading, scheme))).collect()
}

fn claims(points: &Points) -> Vec<Claim> {
    let judged = |(_, variants, least): (&str, &'static [&'static Variant], f64)| {
        // The XCP of the text is slow, as with ns-2's timers.
        let variants = variants.iter().filter(|variant| !variant.is_of(&[&XCP]));
        variants.flat_map(move |&variant| LOADS.map(|(_, load)| (variant, load, least))).collect::<Vec<_>>()
    };
    let claim = |(score, words): (&str, &str), (variant, load, least): (&Variant, &str, f64)| {
        let line = variant.line;
        let id = if score == READINGS[0].0 { format!("moments-{line}-{load}") } else { format!("{line}-{load}") };
        let sentence = format!("load {load}: points by which Flowtune is ahead of {line}, {words}");
        let claim = Claim::mean(&id, &sentence, Rule::AtLeast(least), "", ahead(points, load, variant, score));
        let change = |claim: Claim, (what, of)| claim.changing(what, ahead(points, load, of, score));
        variant.changes_to_nodes().into_iter().fold(claim, change)
    };
    let of_reading = |reading| SCHEMES.into_iter().flat_map(judged).map(move |judged| claim(reading, judged));
    READINGS.into_iter().flat_map(of_reading).collect()
}
