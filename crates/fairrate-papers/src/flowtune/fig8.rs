//! Figure 8: 99th percentiles of completion times over Flowtune's, by size and load; and Flowtune with another gamma.

use fairrate_report::panel::{Axis, Panel};

use super::lines::{self, Curve};
use super::traffic::{self, CLASSES, LARGE, LOADS, SIZES, name};
use super::{
    ALL, DCTCP, DCTCP_NODES, FLOWTUNE, FLOWTUNE_NODES, GAMMA, IW10, K65, K65_IW10, K65_IW10_NODES, K65_NODES, NODES,
    PFABRIC, SFQ_CODEL, SFQ_NS2, SFQ_RTO, Sizes, TINY, TINY_NS2, Variant, WEB, XCP_NS2,
};
use crate::claim::{Claim, Rule};
use crate::drawing::with_level;
use crate::experiment::Run;
use crate::figure::{Figure, Kind, Scale};
use crate::points::Points;

pub const FIGURE: Figure = Figure {
    id: "flowtune/fig8",
    title: "99th percentile of completion times over Flowtune's",
    kind: Kind::Simulation,
    quick_s: 20,
    runs,
    panels,
    claims,
};

/// The schemes whose times are divided by Flowtune's, and by Flowtune's with ten segments.
const COMPARED: [&Variant; 7] = [&DCTCP, &K65, &K65_IW10, &PFABRIC, &SFQ_CODEL, &SFQ_NS2, &XCP_NS2];
const BASES: [&Variant; 2] = [&FLOWTUNE, &IW10];
/// Algorithms whose looks the lines of classes have.
const LOOKS: [&str; 5] = ["powertcp", "dcqcn", "hpcc", "dctcp", "timely"];
/// sfqCoDel with all its settings.
const SFQ: [&Variant; 4] = [&SFQ_CODEL, &TINY, &SFQ_NS2, &TINY_NS2];
const ONE: &str = CLASSES[0].2;
const UP_TO_10: &str = CLASSES[1].2;

fn runs(scale: &Scale) -> Vec<Run> {
    let nodes = NODES.into_iter().map(|(_, nodes)| nodes).chain([&SFQ_RTO]);
    let variants: Vec<&Variant> =
        ALL.into_iter().chain([&K65_IW10, &GAMMA, &SFQ_NS2, &TINY_NS2]).chain(nodes).collect();
    traffic::runs(scale, &SIZES, &variants)
}

fn panels(points: &Points) -> Vec<Panel> {
    let of = |sizes: &'static Sizes, variant: &'static Variant, over: &'static Variant, like: &'static Variant| {
        let line = |((_, _, class), look): (&(f64, f64, &str), &'static str)| Curve {
            name: (*class).to_owned(),
            cc: look,
            values: LOADS.map(|(x, load)| (x, ratios(points, sizes, load, variant, over, class))).into(),
        };
        let title = format!("{}: {} over {}", sizes.title, variant.line, over.line);
        let y = Axis::new("ratio of p99 completion times").showing(0.0, 2.0);
        with_ranges(lines::means(title, lines::loads(), y, CLASSES.iter().zip(LOOKS).map(line).collect()), like)
    };
    let drawn = |sizes| {
        let ideal = COMPARED.into_iter().chain([&GAMMA]).map(move |variant| of(sizes, variant, &FLOWTUNE, variant));
        ideal.chain(with_nodes().map(move |(like, variant)| of(sizes, variant, &FLOWTUNE_NODES, like)))
    };
    let panels = lines::filled(SIZES.iter().flat_map(drawn));
    panels.into_iter().map(|panel| with_level(panel, "as Flowtune", 1.0, (0.1, 0.9))).collect()
}

/// Returns the lines with the nodes of ns-2 that are compared with Flowtune's, each after the line whose numbers of the
/// paper it has.
fn with_nodes() -> impl Iterator<Item = (&'static Variant, &'static Variant)> {
    NODES.into_iter().skip(1).chain([(&SFQ_NS2, &SFQ_RTO)])
}

/// Adds the paper's ranges; a range that several classes share is added once.
fn with_ranges(mut panel: Panel, variant: &Variant) -> Panel {
    for (x, load) in LOADS {
        let mut drawn = Vec::new();
        for (_, _, class) in CLASSES {
            let range = match factors(variant, class, load) {
                Some(Rule::TimesFromTo(least, most)) => (least, most),
                Some(Rule::Times(factor)) => (factor, factor),
                _ => continue,
            };
            let is_new = !drawn.contains(&range);
            drawn.push(range);
            if is_new {
                let (least, most) = range;
                let text = if least < most { format!("{least} to {most}") } else { least.to_string() };
                let name = format!("paper, {class}: {text}");
                panel = lines::with_range(panel, class, name, x, range);
            }
        }
    }
    panel
}

fn ratios(points: &Points, sizes: &Sizes, load: &str, of: &Variant, over: &Variant, class: &str) -> Vec<f64> {
    points.ratios(&name(sizes, load), of.line, over.line, class)
}

/// Returns the text's range of factors for a class, if it has one for this load. The range of 1.2 to 3.2 is for XCP's
/// classes that the text does not name.
fn factors(variant: &Variant, class: &str, load: &str) -> Option<Rule> {
    let (least, most) = match (class, load) {
        (ONE, _) if variant.is_of(&[&DCTCP, &K65, &K65_IW10]) => (8.6, 10.9),
        (UP_TO_10, _) if variant.is_of(&[&DCTCP, &K65, &K65_IW10]) => (2.1, 2.9),
        (ONE, _) if variant.is_of(&[&PFABRIC]) => (1.7, 2.4),
        // "up to 2.4x on large flows" and "pFabric performs well on flows 1-100 packets long".
        (LARGE, _) if variant.is_of(&[&PFABRIC]) => return Some(Rule::Times(2.4)),
        (UP_TO_10 | "10-100 packets", _) if variant.is_of(&[&PFABRIC]) => return Some(Rule::AtMost(1.0)),
        ("100-1000 packets", "0.2") if variant.is_of(&SFQ) => (2.1, 2.4),
        ("10-100 packets", "0.8") if variant.is_of(&SFQ) => (3.5, 3.8),
        (ONE | UP_TO_10, "0.8") if variant.is_of(&SFQ) => (1.6, 1.85),
        (ONE, _) if variant.is_of(&[&XCP_NS2]) => return Some(Rule::Times(2.35)),
        (LARGE, _) if variant.is_of(&[&XCP_NS2]) => (1.8, 4.1),
        _ if variant.is_of(&[&XCP_NS2]) => (1.2, 3.2),
        _ => return None,
    };
    Some(Rule::TimesFromTo(least, most))
}

fn claims(points: &Points) -> Vec<Claim> {
    let mut claims = Vec::new();
    for sizes in &SIZES {
        let is_there = |class: &str| sizes.name != WEB.name || class != LARGE;
        for (_, load) in LOADS {
            for (_, _, class) in CLASSES.iter().filter(|class| is_there(class.2)) {
                claims.extend(claims_of(points, sizes, load, class));
            }
        }
    }
    claims
}

fn claims_of(points: &Points, sizes: &Sizes, load: &str, class: &str) -> Vec<Claim> {
    let claim = |of: &Variant, over: &Variant, text: &str, rule| {
        let id = format!("{}-{load}-{class}-{}-{}", sizes.name, of.line, over.line);
        let sentence = format!("{}, load {load}, {class}: {} over {}{text}", sizes.title, of.line, over.line);
        Claim::mean(&id, &sentence, rule, "", ratios(points, sizes, load, of, over, class))
    };
    let judged =
        ALL.into_iter().chain([&K65_IW10, &SFQ_NS2, &TINY_NS2]).filter_map(|of| Some((of, factors(of, class, load)?)));
    let at = |of: &Variant, over: &Variant| ratios(points, sizes, load, of, over, class);
    let mut claims: Vec<Claim> = judged
        .flat_map(|(of, rule)| BASES.map(|over| caused(claim(of, over, "", rule), of, over, class, at)))
        .collect();
    let nodes = with_nodes().filter_map(|(like, of)| Some((of, factors(like, class, load)?)));
    claims.extend(nodes.map(|(of, rule)| {
        let claim = claim(of, &FLOWTUNE_NODES, "", rule);
        let change = |claim: Claim, (what, of): (&str, &Variant)| claim.changing(what, at(of, &FLOWTUNE_NODES));
        changes(of).into_iter().fold(claim, change)
    }));
    let similar = ": \"similar performance\" for gamma from 0.2 to 1.5 (a tenth is ours)";
    claims.push(claim(&GAMMA, &FLOWTUNE, similar, Rule::About(1.0, 0.1)));
    claims
}

/// Returns the changes of a line with the nodes of ns-2, in words, each with the line that it makes.
fn changes(of: &Variant) -> Vec<(&'static str, &'static Variant)> {
    let ten_segments = ("DCTCP begins with ten segments", &K65_IW10_NODES);
    if of.is_of(&[&DCTCP_NODES]) {
        let both = ("it does, and begins with ten segments", &K65_IW10_NODES);
        vec![("DCTCP marks from 65 packets on", &K65_NODES), both]
    } else if of.is_of(&[&K65_NODES]) {
        vec![ten_segments]
    } else if SFQ_NS2.on_nodes().is_some_and(|nodes| of.is_of(&[nodes])) {
        vec![("timeouts take 2 ms or more", &SFQ_RTO)]
    } else {
        Vec::new()
    }
}

/// Adds the causes that were found by changing some things, whose ratios `at` returns; each change is also a line.
fn caused(
    claim: Claim,
    of: &Variant,
    over: &Variant,
    class: &str,
    at: impl Fn(&Variant, &Variant) -> Vec<f64>,
) -> Claim {
    let has_ten_segments = over.is_of(&[&IW10]);
    let mut claim = claim;
    if of.is_of(&[&DCTCP]) {
        claim = claim.changing("DCTCP marks from 65 packets on", at(&K65, over));
    }
    if has_ten_segments {
        claim = claim.changing("Flowtune begins with two segments", at(of, &FLOWTUNE));
    }
    let also = if has_ten_segments { "so it does, and " } else { "" };
    for (what, nodes) in of.changes_to_nodes() {
        claim = claim.changing(&format!("{also}{what}"), at(nodes, &FLOWTUNE_NODES));
    }
    if of.is_of(&[&DCTCP, &K65]) {
        let what =
            "hosts and headers are those of ns-2, and DCTCP marks from 65 packets on and begins with ten segments";
        claim = claim.changing(&format!("{also}{what}"), at(&K65_IW10_NODES, &FLOWTUNE_NODES));
    }
    if has_ten_segments && of.cc == DCTCP.cc && class == ONE {
        claim = claim
            .because("Flowtune's first window: from ten segments its own first packets queue, from two they do not.");
    }
    claim
}
