//! Figure 6 with what the text says of buffers, and enough flows for a 99.9th percentile: buffers by the bandwidth of a
//! switch, and a second of arrivals at 60 %.

use fairrate_report::panel::Panel;

use super::fig6::{SAYS, against};
use super::websearch::{HPCC, Line, POWERTCP, Reading, THETA, TIMELY, by_size_panel, runs as runs_at};
use crate::claim::Claim;
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
    vec![by_size_panel(points, READING, LOAD, &LINES)]
}

fn claims(points: &Points) -> Vec<Claim> {
    let is_run = |line: &Line| LINES.iter().any(|of| of.name == line.name);
    let says = SAYS.into_iter().filter(|says| says.0 == LOAD && is_run(&says.3));
    says.map(|(load, class, line, other, change)| against(points, READING, load, class, &line, &other, change))
        .collect()
}
