//! Figure 16: 99th percentiles of completion times by flow size.

use fairrate_report::panel::{Axis, Panel};

use super::baselines::HPCC;
use super::fabric::{
    self, DCQCN_OMNET, HADOOP, HPCC_OMNET, LINES, LOADS, OMNET_LINES, ROCC_OMNET, WEBSEARCH, WORKLOADS, Workload, at,
    by_size, extremes, extremes_over, filled,
};
use super::star::ROCC;
use crate::claim::{Claim, Rule};
use crate::drawing::{Compared, words_panel};
use crate::experiment::Run;
use crate::figure::{Figure, Kind, Scale};
use crate::points::Points;
use crate::variant::Variant;

pub const FIGURE: Figure = Figure {
    id: "rocc/fig16",
    title: "Tails of completion times of web search and Hadoop's traffic",
    kind: Kind::Simulation,
    quick_s: 20,
    runs,
    panels,
    claims,
};

/// Algorithms, each with its 99th percentiles over RoCC's in the lowest and in the highest bin.
type Ratios = [(&'static str, [f64; 2]); 4];
/// The text's numbers, which are for 70 %.
const SAYS: [(&Workload, Ratios); 2] = [
    (&WEBSEARCH, [("dcqcn", [1.7, 4.5]), ("hpcc", [1.4, 3.9]), ("pacc", [1.6, 3.6]), ("bfc", [1.1, 3.5])]),
    (&HADOOP, [("dcqcn", [2.1, 7.0]), ("hpcc", [3.5, 8.2]), ("pacc", [1.4, 2.6]), ("bfc", [3.3, 19.1])]),
];
/// HPCC without a window: pacing alone limits its flows, as in the authors' code.
const PACED: [fabric::Line; 1] =
    [(HPCC.with("hpcc-paced", "hpcc, pacing alone", &[("transport.window", "none")]), "swift")];
const ENDS: [&str; 2] = ["lowest", "highest"];

fn runs(scale: &Scale) -> Vec<Run> {
    let omnet = fabric::runs_of(&OMNET_LINES, scale, &WORKLOADS, &LOADS[..1]);
    // Only Hadoop's ratios to HPCC are missed by all other forms of it.
    let paced = fabric::runs_of(&PACED, scale, &[&HADOOP], &LOADS[..1]);
    fabric::runs(scale, &WORKLOADS, &LOADS).into_iter().chain(omnet).chain(paced).collect()
}

fn panels(points: &Points) -> Vec<Panel> {
    let absolute = WORKLOADS.map(|workload| {
        let (name, y) = (at(workload, LOADS[0]), Axis::new("FCT (ms)").logarithmic());
        by_size(points, (workload, LOADS[0]), "99th percentile (hollow: at least)", y, |variant, size| {
            points.values(&name, variant.line, &format!("p99-{size}"))
        })
    });
    let ratio = |load: u32| {
        WORKLOADS.map(|workload| {
            let (name, y) = (at(workload, load), Axis::new("times RoCC's").logarithmic());
            by_size(points, (workload, load), "99th percentile over RoCC's", y, |variant, size| {
                points.ratios(&name, variant.line, ROCC.line, &format!("p99-{size}"))
            })
        })
    };
    let stated = SAYS.map(|(workload, ratios)| stated(points, workload, ratios));
    filled(absolute.into_iter().chain(ratio(LOADS[0])).chain(stated).chain(ratio(LOADS[1])))
}

/// Returns the text's numbers for an algorithm.
fn said(ratios: &Ratios, variant: &Variant) -> Option<[f64; 2]> {
    ratios.iter().find(|(cc, _)| *cc == variant.cc).map(|(_, ends)| *ends)
}

/// Draws the lowest and the highest bin, the text's and ours.
fn stated(points: &Points, workload: &Workload, ratios: Ratios) -> Panel {
    let forms = || LINES.iter().filter_map(|(variant, _)| Some((variant, said(&ratios, variant)?)));
    let here = |which: usize| {
        let values = |(variant, _)| extremes(points, workload, LOADS[0], variant, "p99")[which].clone();
        forms().map(values).collect::<Vec<Vec<f64>>>()
    };
    if here(0).iter().all(Vec::is_empty) {
        return Panel::default();
    }
    let paper = |which: usize| forms().map(|(_, ends)| vec![ends[which]]).collect();
    let lines = [
        ("paper, lowest bin", "line-rate", paper(0)),
        ("here, lowest bin", "powertcp", here(0)),
        ("paper, highest bin", "hpcc", paper(1)),
        ("here, highest bin", "dcqcn", here(1)),
    ];
    let lines = lines.map(|(name, cc, values)| Compared { name: name.to_owned(), cc, values });
    let words: Vec<&str> = forms().map(|(variant, _)| variant.line).collect();
    let title = format!("{}: 99th percentile over RoCC's, of all bins", at(workload, LOADS[0]));
    let y = Axis::new("times RoCC's").logarithmic().showing(0.1, 20.0);
    let mut panel = words_panel(title, &words, y, lines.into());
    // The paper's markers are hollow.
    panel.series.iter_mut().step_by(2).for_each(|series| series.thin = true);
    Panel { wide: true, ..panel }
}

/// Returns the claims. Variants of DCQCN and of HPCC are judged as the algorithm itself. At 50 % "the results are
/// consistent with those at 70 %": we take that no bin is faster than RoCC's.
fn claims(points: &Points) -> Vec<Claim> {
    let mut claims = Vec::new();
    for (workload, ratios) in SAYS {
        for (variant, _) in &LINES[1..] {
            let says = said(&ratios, variant);
            let at_70 = says.map_or([Rule::Words; 2], |ends| ends.map(Rule::Times));
            claims.extend(of_variant(points, workload, LOADS[0], variant, at_70));
            let lowest = says.map_or(Rule::Words, |_| Rule::AtLeastTimes(1.0));
            claims.extend(of_variant(points, workload, LOADS[1], variant, [lowest, Rule::Words]));
        }
        for variant in [DCQCN_OMNET, HPCC_OMNET] {
            claims.extend(of_omnet(points, workload, &variant, said(&ratios, &variant)));
        }
    }
    let [(paced, _)] = PACED;
    let says = said(&SAYS[1].1, &paced).map_or([Rule::Words; 2], |ends| ends.map(Rule::Times));
    claims.extend(of_variant(points, &HADOOP, LOADS[0], &paced, says));
    claims
}

/// Returns the claims on an algorithm of the authors' code over its RoCC.
fn of_omnet(points: &Points, workload: &Workload, variant: &Variant, says: Option<[f64; 2]>) -> Vec<Claim> {
    let run = at(workload, LOADS[0]);
    let both = extremes_over(points, &run, workload, [variant, &ROCC_OMNET], "p99");
    let of_end = |((end, values), says): ((&str, Vec<f64>), f64)| {
        let id = format!("{}-{}-{end}-{}", workload.name, LOADS[0], variant.id);
        let sentence = format!("{run}: p99 FCT of {} over {}'s, {end} bin", variant.line, ROCC_OMNET.line);
        Claim::mean(&id, &sentence, Rule::Times(says), "", values)
    };
    ENDS.into_iter().zip(both).zip(says.unwrap_or([f64::NAN; 2])).map(of_end).collect()
}

fn of_variant(points: &Points, workload: &Workload, load: u32, variant: &Variant, rules: [Rule; 2]) -> Vec<Claim> {
    let ends = ENDS.into_iter().zip(extremes(points, workload, load, variant, "p99")).zip(rules);
    let claim = |((end, values), rule): ((&str, Vec<f64>), Rule)| {
        let id = format!("{}-{load}-{end}-{}", workload.name, variant.id);
        let sentence = format!("{}: p99 FCT of {} over rocc's, {end} bin", at(workload, load), variant.line);
        Claim::mean(&id, &sentence, rule, "", values).explained(Some("No cause is known.".to_owned()))
    };
    ends.map(claim).collect()
}
