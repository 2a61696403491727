//! Figure 5: the share of the network's capacity that the allocator's traffic takes, by load.

use fairrate_report::panel::{Axis, Panel};

use super::lines::{self, Curve};
use super::traffic::LOADS;
use super::updates::{self, SAID, Said};
use crate::claim::{Claim, Rule};
use crate::drawing::with_level;
use crate::experiment::Run;
use crate::figure::{Figure, Kind, Scale};
use crate::points::Points;

pub const FIGURE: Figure = Figure {
    id: "flowtune/fig5",
    title: "What the allocator's traffic takes of the network's capacity",
    kind: Kind::Simulation,
    quick_s: 2,
    runs,
    panels,
    claims,
};

fn name(said: &Said, load: &str) -> String {
    format!("{} {load}", said.sizes.name)
}

fn runs(scale: &Scale) -> Vec<Run> {
    let at = |said: &Said, load: &str| {
        let sets = [("traffic.0.load", load), ("traffic.0.sizes", said.sizes.name)];
        updates::runs(scale, &name(said, load), updates::arrivals(scale), 9, &sets)
    };
    SAID.iter().flat_map(|said| LOADS.into_iter().flat_map(move |load| at(said, load.1))).collect()
}

fn panels(points: &Points) -> Vec<Panel> {
    let draw = |title: &str, (y, most): (&str, f64), what: &str| {
        let line = |said: &Said| Curve {
            name: said.sizes.title.to_owned(),
            cc: said.look,
            values: LOADS.map(|(x, load)| (x, points.values(&name(said, load), "flowtune", what))).into(),
        };
        lines::means(title, lines::loads(), Axis::new(y).showing(0.0, most), SAID.iter().map(line).collect())
    };
    let share = ("share of the capacity (%)", 1.2);
    let levels = |panel: Panel, said: &Said| {
        with_level(panel, &format!("paper: {} {} %", said.sizes.title, said.most), said.most, (0.1, 0.9))
    };
    vec![
        SAID.iter().fold(draw("packets with updates of rates", share, "from data"), levels),
        draw("all traffic from the allocator", share, "from"),
        draw("all traffic to the allocator", share, "to"),
        draw("rates that a flowlet is told", ("updates for a flowlet", 10.0), "updates per flowlet"),
    ]
}

fn claims(points: &Points) -> Vec<Claim> {
    SAID.iter().flat_map(|said| claims_of(points, said)).chain(order(points)).collect()
}

/// Returns the claims on the order of the workloads: Web has "the most update traffic", "Hadoop and Cache workloads
/// need even less", and the figure has Hadoop below Cache.
fn order(points: &Points) -> impl Iterator<Item = Claim> {
    let share = |said: &Said| points.values(&name(said, "0.8"), "flowtune", "from data");
    SAID.windows(2).map(move |pair| {
        let [more, less] = pair else { unreachable!("windows of two") };
        let (id, titles) = (format!("order-{}", less.sizes.name), [less.sizes.title, more.sizes.title]);
        let sentence = format!("load 0.8: updates of {} over those of {}", titles[0], titles[1]);
        let ratios = share(less).iter().zip(share(more)).map(|(less, more)| less / more).collect();
        Claim::mean(&id, &sentence, Rule::AtMost(1.0), "", ratios)
    })
}

fn claims_of(points: &Points, said: &Said) -> Vec<Claim> {
    let title = said.sizes.title;
    let claim = |what: &str, text: &str, rule, unit| {
        let values = points.values(&name(said, "0.8"), "flowtune", what);
        let sentence = format!("{title}, load 0.8: {text}");
        Claim::mean(&format!("{}-0.8-{what}", said.sizes.name), &sentence, rule, unit, values)
    };
    let most = claim("from data", "packets with updates, of the capacity", Rule::AtMost(said.most), "%");
    // This is the claim that is not reproduced. No scenario here has the paper's sizes.
    let cause = "No cause is known. Ours of Hadoop are smaller than Cache's (128 and 682 KB on average); the paper has no sizes.";
    let most = if title == "Hadoop" { most.because(cause) } else { most };
    vec![
        most,
        claim("from acks", "acknowledgments from the allocator", Rule::Words, "%"),
        claim("from alive", "packets with signs of life alone", Rule::Words, "%"),
        claim("from", "all traffic from the allocator", Rule::Words, "%"),
        claim("to data", "packets with notifications", Rule::Words, "%"),
        claim("to", "all traffic to the allocator", Rule::Words, "%"),
        claim("updates per flowlet", "rates that a flowlet is told", Rule::Words, ""),
    ]
}
