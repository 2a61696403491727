//! Figure 17: queues and pauses by where they are.

use fairrate_report::figure::{Axis, Figure as Panel};

use super::fabric::{self, LINES, LOADS, PLACES, WORKLOADS, Workload, at};
use crate::claim::{Claim, Rule};
use crate::drawing::{Compared, with_level, words_panel};
use crate::experiment::Run;
use crate::figure::{Figure, Kind, Scale};
use crate::points::Points;

pub const FIGURE: Figure = Figure {
    id: "rocc/fig17",
    title: "Queues and pauses at the core and at both edges",
    kind: Kind::Simulation,
    quick_s: 20,
    runs,
    panels,
    claims,
};

fn runs(scale: &Scale) -> Vec<Run> {
    fabric::runs(scale, &WORKLOADS, &LOADS[..1])
}

fn panels(points: &Points) -> Vec<Panel> {
    let of = |workload: &&Workload| {
        let run = at(workload, LOADS[0]);
        let draw = |title: &str, y: Axis, what: &str| {
            let values = |line: &str| PLACES.map(|place| points.values(&run, line, &format!("{what} {place}"))).into();
            let lines = LINES.iter().map(|(variant, look)| Compared {
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

/// What the text says of these has no numbers, but for RoCC's queue.
fn claims(points: &Points) -> Vec<Claim> {
    let of = |workload: &&Workload| {
        let run = at(workload, LOADS[0]);
        let claim = |(what, id, text, unit): (&'static str, &'static str, &'static str, &'static str)| {
            let (run, name) = (run.clone(), workload.name);
            LINES.iter().map(move |(variant, _)| {
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
    WORKLOADS.iter().flat_map(of).collect()
}
