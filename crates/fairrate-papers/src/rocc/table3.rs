//! Table III: rates of flows with Hadoop's traffic. The paper does not define its samples, so there are three readings:
//! rates of flows over their lifetimes, weighted by the lifetimes; rates of sources after every message about
//! rates, while they are limited; and for HPCC, which sets a rate on each acknowledgment and has no messages, rates of
//! sources at each packet, while they are limited. BFC's sources have no rates. A fourth reading is of the notices of
//! the cores alone, the only place where the text has RoCC's congestion, once the network is warm.

use fairrate_report::panel::{Axis, Panel};

use super::baselines::HPCC;
use super::fabric::{self, HADOOP, LINES, LOADS, OMNET_LINES, at};
use crate::claim::{Claim, Rule};
use crate::drawing::{Compared, with_level, words_panel};
use crate::experiment::Run;
use crate::figure::{Figure, Kind, Scale};
use crate::points::Points;
use crate::variant::Variant;

pub const FIGURE: Figure = Figure {
    id: "rocc/table3",
    title: "Rates of flows with Hadoop's traffic, mean and deviation",
    kind: Kind::Simulation,
    quick_s: 20,
    runs,
    panels,
    claims,
};

/// The paper's mean and standard deviation in Mb/s.
const SAYS: [(&str, f64, f64); 5] = [
    ("rocc", 335.86, 232.52),
    ("dcqcn", 378.86, 2635.63),
    ("hpcc", 211.02, 1459.04),
    ("pacc", 301.33, 382.18),
    ("bfc", 208.76, 1341.67),
];
/// The change that leaves out the notices of the edges.
const ONLY_CORES: &str = "only notices of the core switches count, once the network is warm";
/// The ideal rate: a core's link over 300 flows.
const IDEAL_MBPS: f64 = 333.0;
/// The readings: name of the rate, and of its deviation.
const LIFE: [&str; 2] = ["rate", "rate deviation"];
const TOLD: [&str; 2] = ["told", "told deviation"];
const CORES: [&str; 2] = ["told by cores", "told by cores deviation"];
const SENT: [&str; 2] = ["sent", "sent deviation"];

fn runs(scale: &Scale) -> Vec<Run> {
    let omnet = fabric::runs_of(&OMNET_LINES, scale, &[&HADOOP], &LOADS[..1]);
    fabric::runs(scale, &[&HADOOP], &LOADS[..1]).into_iter().chain(omnet).collect()
}

/// Returns the table's numbers for an algorithm.
fn says(variant: &Variant) -> [f64; 2] {
    SAYS.iter().find(|(cc, ..)| *cc == variant.cc).map_or([f64::NAN; 2], |(_, mean, deviation)| [*mean, *deviation])
}

/// Returns `true` if messages carry rates to sources, or make sources change them. Telemetry and pauses do not count.
fn has_messages(variant: &Variant) -> bool {
    !["hpcc", "bfc"].contains(&variant.cc)
}

fn panels(points: &Points) -> Vec<Panel> {
    let run = at(&HADOOP, LOADS[0]);
    let words = LINES.map(|(variant, _)| variant.id);
    let draw = |title: &str, y: Axis, which: usize| {
        let line = |(name, cc, what): (&str, &'static str, &str)| Compared {
            name: name.to_owned(),
            cc,
            values: LINES.iter().map(|(variant, _)| points.values(&run, variant.line, what)).collect(),
        };
        let paper = LINES.iter().map(|(variant, _)| vec![says(variant)[which]]).collect();
        let lines = vec![
            Compared { name: "paper".to_owned(), cc: "line-rate", values: paper },
            line(("over a flow's life", "powertcp", LIFE[which])),
            line(("after each notice", "dcqcn", TOLD[which])),
            line(("after each notice of a core", "swift", CORES[which])),
            line(("at each packet", "hpcc", SENT[which])),
        ];
        Panel { wide: true, ..words_panel(format!("{run}: {title}"), &words, y, lines) }
    };
    let mean = draw("mean rate of a flow", Axis::new("rate (Mb/s)").showing(0.0, 1_000.0), 0);
    let mean = with_level(mean, "ideal: 333 Mb/s", IDEAL_MBPS, (-0.5, words.len() as f64 - 0.5));
    vec![mean, draw("its standard deviation", Axis::new("rate (Mb/s)").logarithmic().showing(30.0, 10_000.0), 1)]
}

/// Returns the claims. The limits of a fifth for means and half for deviations are ours.
fn claims(points: &Points) -> Vec<Claim> {
    let readings = |variant: &Variant| {
        let told = (TOLD, "after each notice", "told-");
        let cores = (CORES, "after each notice of a core switch, once the network is warm", "told-by-cores-");
        // HPCC's rate at a packet is the one of the acknowledgment that let it go.
        let sent = (SENT, "at each packet, while it is limited", "sent-");
        let is_hpcc = variant.cc == HPCC.cc;
        let of_switches = ["rocc", "pacc"].contains(&variant.cc);
        [
            Some((LIFE, "over its life", "")),
            has_messages(variant).then_some(told),
            of_switches.then_some(cores),
            is_hpcc.then_some(sent),
        ]
        .into_iter()
        .flatten()
    };
    let of = |(variant, _): &(Variant, &str)| {
        let [mean, deviation] = says(variant);
        let claims = readings(variant).map(move |(what, of, id)| {
            let claim = |which: usize, name: &str, rule| {
                let (id, values) = (
                    format!("{id}{name}-{}", variant.id),
                    points.values(&at(&HADOOP, LOADS[0]), variant.line, what[which]),
                );
                let sentence = format!("{}: {name} of the rate of a flow {of}", variant.line);
                let claim = Claim::mean(&id, &sentence, rule, "Mb/s", values);
                let of_cores = points.values(&at(&HADOOP, LOADS[0]), variant.line, CORES[which]);
                if what == TOLD { claim.changing(ONLY_CORES, of_cores) } else { claim }
            };
            [claim(0, "mean", Rule::About(mean, 0.2)), claim(1, "deviation", Rule::About(deviation, 0.5))]
        });
        claims.flatten().collect::<Vec<_>>()
    };
    LINES.iter().chain(&OMNET_LINES).flat_map(of).collect()
}
