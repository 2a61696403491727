//! Figure 17: queues and pauses by their place.
//!
//! The fabric's switches pause by their egress queues at the levels that section VI has for each rate, and resume 10 KB
//! below. Two other readings are run for the algorithms that pause at all: by what arrived through a port, and one
//! level of 500 KB for all rates with a resume at 10 KB, as in the authors' shipped settings. HPCC never pauses.

use fairrate_report::panel::{Axis, Panel};

use super::baselines::{BFC, DCQCN, DCQCN_AUTHORS, PACC};
use super::fabric::{
    self, BY_INGRESS, DCQCN_OMNET, LINES, LOADS, Line, OMNET_LINES, PLACES, ROCC_OMNET, WEBSEARCH, WORKLOADS, Workload,
    at,
};
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

const ONE_LEVEL: (&str, &str) = ("switch.pfc", "{ pause = \"500KB\", resume = \"10KB\" }");
const AUTHORS_INGRESS: [(&str, &str); 6] = {
    let [ai, kmin, kmax, pmax] = *DCQCN_AUTHORS.sets else { panic!("it has four") };
    let [pfc, alpha] = BY_INGRESS;
    [ai, kmin, kmax, pmax, pfc, alpha]
};
const AUTHORS_ONE_LEVEL: [(&str, &str); 5] = {
    let [ai, kmin, kmax, pmax] = *DCQCN_AUTHORS.sets else { panic!("it has four") };
    [ai, kmin, kmax, pmax, ONE_LEVEL]
};
/// An algorithm's three readings of PFC: the paper's, by ingress, and with one level for all rates.
type Readings = [Variant; 3];
const ROCCS: Readings = [
    ROCC,
    ROCC.with("rocc-ingress", "rocc, PFC by ingress", &BY_INGRESS),
    ROCC.with("rocc-one-level", "rocc, PFC at 500/10 KB", &[ONE_LEVEL]),
];
const DCQCNS: Readings = [
    DCQCN,
    DCQCN.with("dcqcn-ingress", "dcqcn, PFC by ingress", &BY_INGRESS),
    DCQCN.with("dcqcn-one-level", "dcqcn, PFC at 500/10 KB", &[ONE_LEVEL]),
];
const AUTHORS: Readings = [
    DCQCN_AUTHORS,
    DCQCN.with("dcqcn-authors-ingress", "dcqcn, authors' code, PFC by ingress", &AUTHORS_INGRESS),
    DCQCN.with("dcqcn-authors-one-level", "dcqcn, authors' code, PFC at 500/10 KB", &AUTHORS_ONE_LEVEL),
];
const PACCS: Readings = [
    PACC,
    PACC.with("pacc-ingress", "pacc, PFC by ingress", &BY_INGRESS),
    PACC.with("pacc-one-level", "pacc, PFC at 500/10 KB", &[ONE_LEVEL]),
];
/// RoCC in switches that drop what does not fit into their buffer.
const NO_PFC: Variant = ROCC.with("rocc-no-pfc", "rocc, no PFC", &[("switch.pfc", "false")]);
/// Lines besides the fabric's own: other readings of PFC.
const OTHERS: [Line; 8] = [
    (ROCCS[1], "powertcp"),
    (DCQCNS[1], "dcqcn"),
    (AUTHORS[1], "swift"),
    (PACCS[1], "line-rate"),
    (ROCCS[2], "powertcp"),
    (DCQCNS[2], "dcqcn"),
    (AUTHORS[2], "swift"),
    (PACCS[2], "line-rate"),
];
/// Lines without PFC, in experiments of their own. Beside RoCC there are hosts at line rate: without an algorithm that
/// could drop, a claim that nothing is dropped would tell nothing.
const WITHOUT: [Line; 2] = [
    (NO_PFC, "theta-powertcp"),
    (Variant::of("line-rate").with("line-rate-no-pfc", "line rate, no PFC", &[("switch.pfc", "false")]), "line-rate"),
];

fn runs(scale: &Scale) -> Vec<Run> {
    let others = fabric::runs_of(&OTHERS, scale, &WORKLOADS, &LOADS[..1]);
    let omnet = fabric::runs_of(&OMNET_LINES, scale, &WORKLOADS, &LOADS[..1]);
    let without = fabric::runs_of(&WITHOUT, scale, &WORKLOADS, &LOADS[..1]);
    let without = without.into_iter().map(|run| Run { name: without_pfc(&run.name), ..run });
    fabric::runs(scale, &WORKLOADS, &LOADS[..1]).into_iter().chain(others).chain(omnet).chain(without).collect()
}

/// Returns the name of an experiment without PFC.
fn without_pfc(run: &str) -> String {
    format!("{run}, no PFC")
}

/// Returns the name of the runs of a line.
fn run_of(workload: &Workload, variant: &Variant) -> String {
    let (run, is_without) = (at(workload, LOADS[0]), WITHOUT.iter().any(|(other, _)| other.id == variant.id));
    if is_without { without_pfc(&run) } else { run }
}

fn lines() -> impl Iterator<Item = &'static Line> {
    LINES.iter().chain(&OTHERS).chain(&WITHOUT).chain(&OMNET_LINES)
}

fn panels(points: &Points) -> Vec<Panel> {
    let of = |workload: &&Workload| {
        let run = at(workload, LOADS[0]);
        let draw = |title: &str, y: Axis, what: &str| {
            let value = |variant: &Variant, place: &str| {
                points.values(&run_of(workload, variant), variant.line, &format!("{what} {place}"))
            };
            // The paper's (b) leaves BFC out, whose pauses are of flows; beside its number no other could be read.
            let shown = lines().filter(|(variant, _)| what == "queue" || variant.cc != BFC.cc);
            let lines = shown.map(|(variant, look)| Compared {
                name: variant.line.to_owned(),
                cc: look,
                values: PLACES.map(|place| value(variant, place)).into(),
            });
            Panel { wide: true, ..words_panel(format!("{run}: {title}"), &PLACES, y, lines.collect()) }
        };
        let queue =
            draw("(a) mean queue of a port", Axis::new("queue (KB)").logarithmic().showing(0.1, 2_000.0), "queue");
        let pauses =
            draw("(b) PFC pauses, by who sent them; without BFC, as in the paper", Axis::new("pauses a ms"), "pauses");
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
            let (run, workload) = (run.clone(), *workload);
            lines().map(move |(variant, _)| {
                let name = workload.name;
                let (id, sentence) =
                    (format!("{name}-{id}-{}", variant.id), format!("{run}, {}: {text}", variant.line));
                Claim::mean(
                    &id,
                    &sentence,
                    Rule::Words,
                    unit,
                    points.values(&run_of(workload, variant), variant.line, what),
                )
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
    WORKLOADS.iter().flat_map(of).chain(spared(points)).chain([of_omnet(points)]).chain(needs_no_pfc(points)).collect()
}

/// Returns the claims on "up to 7x and 2x reduction in PFC activation, compared to DCQCN and PACC", which we take as
/// the numbers of web search at 70 %, those of the figure.
fn spared(points: &Points) -> impl Iterator<Item = Claim> {
    let run = at(&WEBSEARCH, LOADS[0]);
    let says = [(DCQCNS, 7.0), (AUTHORS, 7.0), (PACCS, 2.0)];
    says.into_iter().map(move |(readings, times)| {
        let over = |which: usize| points.ratios(&run, readings[which].line, ROCCS[which].line, "pauses");
        let (id, line) = (format!("spared-{}", readings[0].id), readings[0].line);
        let sentence = format!("{run}: pauses of {line} over rocc's");
        Claim::mean(&id, &sentence, Rule::Times(times), "", over(0))
            .changing("switches pause a port by what arrived through it", over(1))
            .changing("switches pause at 500 KB at any rate and resume at 10 KB, as the authors' settings", over(2))
    })
}

/// Returns the claim on DCQCN's pauses over RoCC's where both are as in the authors' code.
fn of_omnet(points: &Points) -> Claim {
    let run = at(&WEBSEARCH, LOADS[0]);
    let sentence = format!("{run}: pauses of {} over {}'s", DCQCN_OMNET.line, ROCC_OMNET.line);
    let ratios = points.ratios(&run, DCQCN_OMNET.line, ROCC_OMNET.line, "pauses");
    Claim::mean("spared-dcqcn-omnet", &sentence, Rule::Times(7.0), "", ratios)
}

/// Returns the claims on "RoCC does not require PFC" (abstract): nothing is dropped without it.
fn needs_no_pfc(points: &Points) -> impl Iterator<Item = Claim> {
    WORKLOADS.into_iter().map(|workload| {
        let (run, id) = (without_pfc(&at(workload, LOADS[0])), format!("{}-no-pfc", workload.name));
        let sentence = format!("{run}: packets of RoCC that are dropped (\"RoCC does not require PFC\")");
        Claim::mean(&id, &sentence, Rule::AtMost(0.0), "", points.values(&run, NO_PFC.line, "drops"))
    })
}
