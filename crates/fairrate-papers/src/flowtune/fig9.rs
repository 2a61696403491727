//! Figure 9: 99th percentiles of queueing delays on paths of two and four hops.

use fairrate_report::panel::{Axis, Panel};

use super::lines;
use super::traffic::{self, LOADS, name};
use super::{
    ALL, DCTCP, DCTCP_NODES, FLOWTUNE, FLOWTUNE_NODES, IW10, K65, K65_NODES, NODES_SHOWN, ONE_SEGMENT_NODES, Variant,
    WEB, XCP_NS2,
};
use crate::claim::{Claim, Rule};
use crate::drawing::with_level;
use crate::experiment::Run;
use crate::figure::{Figure, Kind, Scale};
use crate::points::Points;

pub const FIGURE: Figure = Figure {
    id: "flowtune/fig9",
    title: "99th percentile of queueing delays",
    kind: Kind::Simulation,
    quick_s: 10,
    runs,
    panels,
    claims,
};

/// Upper bound of the paper's delays at all loads, in us.
const MOST_US: f64 = 8.9;
const HOPS: [&str; 2] = ["2 hops", "4 hops"];

/// The lines with ideal hosts, whose paths have queues of switches alone, and those with the nodes of ns-2, whose paths
/// begin with the queue of a host.
const SHOWN: [(&str, &[&Variant]); 2] = [("", &ALL), (", ns-2's nodes", &NODES_SHOWN)];

fn runs(scale: &Scale) -> Vec<Run> {
    let shown = SHOWN.iter().flat_map(|(_, variants)| traffic::runs(scale, &[WEB], variants));
    shown.chain(traffic::runs(scale, &[WEB], &[&ONE_SEGMENT_NODES])).collect()
}

fn panels(points: &Points) -> Vec<Panel> {
    let of = |(hops, (what, variants)): (&str, (&str, &[&'static Variant]))| {
        let y = Axis::new("p99 queueing delay (us)").logarithmic().showing(1.0, 300.0);
        let panel = traffic::draw(points, &format!("paths of {hops}{what}"), y, variants, hops);
        with_level(panel, "paper: Flowtune below 8.9 us", MOST_US, (0.1, 0.9))
    };
    lines::filled(SHOWN.into_iter().flat_map(|shown| HOPS.map(|hops| of((hops, shown)))))
}

fn claims(points: &Points) -> Vec<Claim> {
    let below = |line: &str, load: &str, hops: &str| {
        let sentence = format!("{line}, load {load}: p99 queueing delay of {hops}");
        let values = points.values(&name(&WEB, load), line, hops);
        Claim::mean(&format!("{line}-{load}-{hops}"), &sentence, Rule::AtMost(MOST_US), "us", values)
    };
    let first_window = "The first window: ten segments, which are the whole of two flows in three, are sent at line rate before \
                        any rate is there. From two segments, all else equal, it is as the paper says.";
    let mut claims = Vec::new();
    for (_, load) in LOADS {
        for hops in HOPS {
            claims.push(below(FLOWTUNE.line, load, hops));
            claims.push(below(IW10.line, load, hops).because(first_window));
            let one = points.values(&name(&WEB, load), ONE_SEGMENT_NODES.line, hops);
            claims.push(below(FLOWTUNE_NODES.line, load, hops).changing("Flowtune begins with one segment", one));
        }
    }
    for (of, factor) in [(&DCTCP, 12.0), (&K65, 12.0), (&XCP_NS2, 3.5)] {
        let ratios = |of: &Variant, over: &Variant| points.ratios(&name(&WEB, "0.8"), of.line, over.line, HOPS[1]);
        let longer = |of: &Variant, over: &Variant| {
            let sentence = format!("load 0.8: {} has longer queues than {} (4 hops)", of.line, over.line);
            let id = format!("{}-over-{}", of.line, over.line);
            Claim::mean(&id, &sentence, Rule::Times(factor), "", ratios(of, over))
        };
        let marks = "DCTCP's queue goes by K, which the paper does not say: 12 lies between 20 packets and 65.";
        let claim = longer(of, &FLOWTUNE);
        claims.push(if of.cc == DCTCP.cc { claim.because(marks) } else { claim });
        claims.push(longer(of, &IW10).because(first_window));
        claims.extend(of.on_nodes().map(|nodes| {
            let claim = longer(nodes, &FLOWTUNE_NODES);
            if nodes.is_of(&[&DCTCP_NODES]) {
                claim.changing("DCTCP marks from 65 packets on", ratios(&K65_NODES, &FLOWTUNE_NODES))
            } else {
                claim
            }
        }));
    }
    claims
}
