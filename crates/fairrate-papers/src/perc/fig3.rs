//! Figure 3: C joins A and B, and synchronous PERC takes two iterations.
//!
//! The figure's capacities are not in the text. With 30 and 20 Gb/s B's bottleneck moves from link 1 to link 2, as the
//! figure shows.

use fairrate_allocate::{SyncPerc, max_min};
use fairrate_report::panel::{Axis, Panel};

use super::chain::{iterations, network};
use crate::claim::{Claim, Rule};
use crate::drawing::{Line, panel, with_level};
use crate::experiment::Run;
use crate::figure::{Figure, Kind, Scale};
use crate::points::{Point, Points};

pub const FIGURE: Figure = Figure {
    id: "perc/fig3",
    title: "A flow joins two others, and synchronous PERC takes two iterations",
    kind: Kind::Calculation,
    quick_s: 1,
    runs,
    panels,
    claims,
};

/// Flows, and the algorithms whose looks their lines have.
const FLOWS: [(&str, &str); 3] = [("A, link 1", "timely"), ("B, both links", "dctcp"), ("C, link 2", "dcqcn")];
const SHOWN: usize = 4;
const LIMIT: usize = 100;

fn runs(_: &Scale) -> Vec<Run> {
    vec![Run::calculated("join", "perc", join)]
}

fn join() -> Point {
    const SETTLES: &str = "this network settles in two iterations";
    let before = network(&[30, 20], &[&[0], &[0, 1]]);
    let alone = SyncPerc::new(&before).expect("it is sound").settle(LIMIT).expect(SETTLES).last;
    let after = network(&[30, 20], &[&[0], &[0, 1], &[1]]);
    let perc = SyncPerc::new(&after).expect("it is sound").from_shares(alone.shares_bps);
    let settled = perc.clone().settle(LIMIT).expect(SETTLES);
    let optimum = max_min(&after).expect("it is sound").rates_bps;
    let off = settled.last.rates_bps.iter().zip(&optimum).map(|(rate, want)| (rate / want - 1.0).abs());
    let numbers = Point::of([("iterations", settled.iterations as f64), ("error", off.fold(0.0, f64::max))]).numbers;
    let rates = alone.rates_bps.into_iter().chain([0.0]);
    let with_rates: Vec<(&str, f64)> = FLOWS.iter().map(|flow| flow.0).zip(rates).collect();
    Point { numbers, ..iterations(&perc, SHOWN, &with_rates) }
}

fn panels(points: &Points) -> Vec<Panel> {
    let line = |(name, look): (&str, &'static str)| Line {
        name: name.to_owned(),
        ..Line::of(look, points.series("join", "perc", name))
    };
    let x = Axis { whole: true, ..Axis::new("iterations since C joined") };
    let y = Axis::new("rate (Gb/s)").showing(0.0, 30.0);
    let mut panel = panel("links of 30 and 20 Gb/s", x, y, FLOWS.map(line).into());
    panel.series.iter_mut().for_each(|series| series.step = true);
    let panel = with_level(panel, "max-min: 20, 10, 10 Gb/s", 20.0, (0.0, SHOWN as f64));
    vec![with_level(panel, "", 10.0, (0.0, SHOWN as f64))]
}

fn claims(points: &Points) -> Vec<Claim> {
    let of = |what: &str| points.mean("join", "perc", what);
    let two = "\"synchronous PERC takes two iterations to converge\" when C joins A and B";
    let exact = "the largest distance from max-min then (the calculation's accuracy)";
    vec![
        Claim::exact("iterations", two, Rule::About(2.0, 0.0), "", of("iterations")),
        Claim::exact("error", exact, Rule::AtMost(1e-9), "", of("error")),
    ]
}
