//! Figure 17: queues and pauses by their place.
//!
//! Our switches pause a port by the bytes that arrived through it. Those of the authors' code pause all ports that send
//! into an egress queue above 500 KB, until it is down at 10 KB. Both are run for the algorithms that pause at all:
//! HPCC never does, and BFC has pauses of its own.

use fairrate_report::panel::{Axis, Panel};

use super::baselines::{DCQCN, DCQCN_AUTHORS, PACC};
use super::fabric::{self, LINES, LOADS, Line, PLACES, WEBSEARCH, WORKLOADS, Workload, at};
use super::star::ROCC;
use crate::claim::{Claim, Rule};
use crate::drawing::{Compared, with_level, words_panel};
use crate::experiment::Run;
use crate::figure::{Figure, Kind, Scale};
use crate::points::Points;
use crate::variant::Variant;

pub const FIGURE: Figure = Figure {
    id: "rocc/fig17",
    title: "Queues and pauses at the core and at both edges",
    kind: Kind::Simulation,
    quick_s: 30,
    runs,
    panels,
    claims,
};

const EGRESS: (&str, &str) = ("switch.pfc", "{ pause = \"500KB\", resume = \"10KB\" }");
const AUTHORS: [(&str, &str); 5] = {
    let [ai, kmin, kmax, pmax] = *DCQCN_AUTHORS.sets else { panic!("it has four") };
    [ai, kmin, kmax, pmax, EGRESS]
};
/// Lines whose switches pause by their egress queues.
const BY_EGRESS: [Line; 4] = [
    (ROCC_BY_EGRESS, "powertcp"),
    (DCQCN_BY_EGRESS, "dcqcn"),
    (AUTHORS_BY_EGRESS, "swift"),
    (PACC_BY_EGRESS, "line-rate"),
];
const ROCC_BY_EGRESS: Variant = ROCC.with("rocc-egress", "rocc, PFC by egress", &[EGRESS]);
const DCQCN_BY_EGRESS: Variant = DCQCN.with("dcqcn-egress", "dcqcn, PFC by egress", &[EGRESS]);
const AUTHORS_BY_EGRESS: Variant = DCQCN.with("dcqcn-authors-egress", "dcqcn, authors' code, PFC by egress", &AUTHORS);
const PACC_BY_EGRESS: Variant = PACC.with("pacc-egress", "pacc, PFC by egress", &[EGRESS]);

fn runs(scale: &Scale) -> Vec<Run> {
    let by_egress = fabric::runs_of(&BY_EGRESS, scale, &WORKLOADS, &LOADS[..1]);
    fabric::runs(scale, &WORKLOADS, &LOADS[..1]).into_iter().chain(by_egress).collect()
}

fn lines() -> impl Iterator<Item = &'static Line> {
    LINES.iter().chain(&BY_EGRESS)
}

fn panels(points: &Points) -> Vec<Panel> {
    let of = |workload: &&Workload| {
        let run = at(workload, LOADS[0]);
        let draw = |title: &str, y: Axis, what: &str| {
            let values = |line: &str| PLACES.map(|place| points.values(&run, line, &format!("{what} {place}"))).into();
            let lines = lines().map(|(variant, look)| Compared {
                name: variant.line.to_owned(),
                cc: look,
                values: values(variant.line),
            });
            Panel { wide: true, ..words_panel(format!("{run}: {title}"), &PLACES, y, lines.collect()) }
        };
        let queue =
            draw("(a) mean queue of a port", Axis::new("queue (KB)").logarithmic().showing(0.1, 2_000.0), "queue");
        let pauses = draw("(b) PFC pauses, by who sent them", Axis::new("pauses a ms"), "pauses");
        [with_level(queue, "RoCC's reference: 300 KB", 300.0, (-0.5, 2.5)), pauses]
    };
    let ran = |workload: &&&Workload| !points.values(&at(workload, LOADS[0]), LINES[0].0.line, "pauses").is_empty();
    WORKLOADS.iter().filter(ran).flat_map(of).collect()
}

/// Returns the claims. The text has no numbers for them, except RoCC's queue and the reduction of pauses.
fn claims(points: &Points) -> Vec<Claim> {
    let of = |workload: &&Workload| {
        let run = at(workload, LOADS[0]);
        let claim = |(what, id, text, unit): (&'static str, &'static str, &'static str, &'static str)| {
            let (run, name) = (run.clone(), workload.name);
            lines().map(move |(variant, _)| {
                let (id, sentence) =
                    (format!("{name}-{id}-{}", variant.id), format!("{run}, {}: {text}", variant.line));
                Claim::mean(&id, &sentence, Rule::Words, unit, points.values(&run, variant.line, what))
            })
        };
        let queue = "mean queue at the cores (\"close to 300 KB\" of rocc, hpcc \"very shallow\", dcqcn \"deep\")";
        let pauses = "pauses of the run (dcqcn \"suffers from high levels\", hpcc, pacc and rocc do not)";
        let said = [
            ("queue core", "queue", queue, "KB"),
            ("pauses", "pauses", pauses, ""),
            ("goodput", "goodput", "goodput of all", "Gb/s"),
        ];
        said.into_iter().flat_map(claim).collect::<Vec<_>>()
    };
    WORKLOADS.iter().flat_map(of).chain(spared(points)).collect()
}

/// Returns the claims on "up to 7x and 2x reduction in PFC activation, compared to DCQCN and PACC", which we take as
/// the numbers of web search at 70 %, those of the figure.
fn spared(points: &Points) -> impl Iterator<Item = Claim> {
    let run = at(&WEBSEARCH, LOADS[0]);
    let says =
        [(&DCQCN, &DCQCN_BY_EGRESS, 7.0), (&DCQCN_AUTHORS, &AUTHORS_BY_EGRESS, 7.0), (&PACC, &PACC_BY_EGRESS, 2.0)];
    says.into_iter().map(move |(variant, by_egress, times)| {
        let (id, sentence) =
            (format!("spared-{}", variant.id), format!("{run}: pauses of {} over rocc's", variant.line));
        let over = |variant: &Variant, rocc: &Variant| points.ratios(&run, variant.line, rocc.line, "pauses");
        Claim::mean(&id, &sentence, Rule::Times(times), "", over(variant, &ROCC)).changing(
            "switches pause by their egress queues, as in the authors' code",
            over(by_egress, &ROCC_BY_EGRESS),
        )
    })
}
