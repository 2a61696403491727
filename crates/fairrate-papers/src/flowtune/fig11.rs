//! Figure 11: proportional fairness, as the mean over flows of log2 of their rates. A flow's rate is its size over its
//! completion time; the paper does not define it.

use fairrate_report::panel::{Axis, Panel};

use super::lines::{self, Curve};
use super::traffic::{self, LOADS, name};
use super::{ALL, DCTCP, FLOWTUNE, IW10, K65, PFABRIC, SFQ_CODEL, TINY, Variant, WEB, XCP, XCP_NS2};
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

fn runs(scale: &Scale) -> Vec<Run> {
    let variants: Vec<&Variant> = ALL.into_iter().filter(|variant| !variant.is_of(&[&IW10])).collect();
    traffic::runs(scale, &[WEB], &variants)
}

/// Returns Flowtune's lead, seed by seed.
fn ahead(points: &Points, load: &str, of: &Variant) -> Vec<f64> {
    let scores = |line: &str| points.values(&name(&WEB, load), line, "score");
    scores(FLOWTUNE.line).iter().zip(scores(of.line)).map(|(flowtune, other)| flowtune - other).collect()
}

fn panels(points: &Points) -> Vec<Panel> {
    let of = |(title, variants, least): (&str, &[&'static Variant], f64)| {
        let line = |(variant, look): (&&'static Variant, &'static str)| Curve {
            name: variant.line.to_owned(),
            cc: look,
            values: LOADS.map(|(x, load)| (x, ahead(points, load, variant))).into(),
        };
        let y = Axis::new("log2(rate), Flowtune's less its").showing(-0.5, 1.5);
        let panel =
            lines::means(title, lines::loads(), y, variants.iter().zip(["powertcp", "dcqcn"]).map(line).collect());
        with_level(panel, &format!("paper: from {least} on"), least, (0.1, 0.9))
    };
    SCHEMES.map(of).into()
}

fn claims(points: &Points) -> Vec<Claim> {
    let judged = |(_, variants, least): (&str, &'static [&'static Variant], f64)| {
        // The XCP of the text is slow, as with ns-2's timers.
        let variants = variants.iter().filter(|variant| !variant.is_of(&[&XCP]));
        variants.flat_map(move |&variant| LOADS.map(|(_, load)| (variant, load, least))).collect::<Vec<_>>()
    };
    let claim = |(variant, load, least): (&Variant, &str, f64)| {
        let line = variant.line;
        let sentence = format!("load {load}: points by which Flowtune is ahead of {line}, a flow");
        Claim::mean(&format!("{line}-{load}"), &sentence, Rule::AtLeast(least), "", ahead(points, load, variant))
    };
    SCHEMES.into_iter().flat_map(judged).map(claim).collect()
}
