//! Figure 6 with what the text says of buffers, and enough flows for a 99.9th percentile: buffers by the bandwidth of a
//! switch, and a second of arrivals at 60 %.

use fairrate_report::panel::{Axis, Panel};

use super::fig6::{SAYS, against};
use super::websearch::{HPCC, Line, POWERTCP, Reading, THETA, TIMELY, at, runs as runs_at};
use crate::claim::Claim;
use crate::drawing::{self, panel};
use crate::experiment::Run;
use crate::figure::{Figure, Kind, Scale};
use crate::points::Points;

pub const FIGURE: Figure = Figure {
    id: "powertcp/fig6-buffers",
    title: "Tail of flow completion times at 60 %, with buffers by bandwidth",
    kind: Kind::Simulation,
    quick_s: 30,
    runs,
    panels,
    claims,
};

const LOAD: u32 = 60;
/// DCQCN is left out: its flows recover so slowly that a run with this many of them takes several times as long.
const LINES: [Line; 4] = [POWERTCP, THETA, HPCC, TIMELY];
const READING: Reading = Reading::Buffers;

fn runs(scale: &Scale) -> Vec<Run> {
    runs_at(READING, LOAD, &LINES, scale)
}

fn panels(points: &Points) -> Vec<Panel> {
    let line = |line: &Line| drawing::Line {
        name: line.name.to_owned(),
        ..drawing::Line::of(line.cc, points.series(&at(READING, LOAD), line.name, "by size"))
    };
    let (x, y) =
        (Axis::new("flow size up to (KB)").logarithmic(), Axis::new("99.9th percentile of slowdown").logarithmic());
    vec![panel(format!("{}, one seed", at(READING, LOAD)), x, y, LINES.iter().map(line).collect())]
}

fn claims(points: &Points) -> Vec<Claim> {
    let is_run = |line: &Line| LINES.iter().any(|of| of.name == line.name);
    let says = SAYS.into_iter().filter(|says| says.0 == LOAD && is_run(&says.3));
    says.map(|(load, class, line, other, change)| against(points, READING, load, class, &line, &other, change))
        .collect()
}
