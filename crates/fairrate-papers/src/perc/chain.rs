//! Networks as calculations see them; and the chain of three bottlenecks of Figures 7 and 8.

use fairrate_allocate::{Flow, Link, LinkId, Network, SyncIteration, SyncPerc, overload};
use fairrate_report::figure::Figure as Panel;
use fairrate_units::Rate;

use crate::drawing::with_level;
use crate::points::Point;

/// Flows of Figures 7 and 8, and the algorithms whose looks their lines have.
pub const FLOWS: [(&str, &str); 4] = [("A", "timely"), ("B", "dctcp"), ("C", "dcqcn"), ("D", "powertcp")];
/// Their max-min rates in Gb/s.
pub const OPTIMUM: [f64; 4] = [35.0, 25.0, 5.0, 5.0];

/// Links in Gb/s, and flows with their links.
pub fn network(capacities_gbps: &[u64], flows: &[&[u32]]) -> Network {
    let flow = |links: &&[u32]| Flow::new("", links.iter().map(|&l| LinkId(l)).collect::<Vec<_>>());
    Network {
        links: capacities_gbps.iter().map(|&gbps| Link::new("", Rate::from_gbps(gbps))).collect(),
        flows: flows.iter().map(flow).collect(),
    }
}

/// Figure 7: A and B on 60 Gb/s, B and C on 30, C and D on 10.
pub fn chain() -> Network {
    network(&[60, 30, 10], &[&[0], &[0, 1], &[1, 2], &[2]])
}

/// The most by which rates exceed a link, in bit/s.
pub fn worst_overload_bps(network: &Network, rates_bps: &[f64]) -> f64 {
    overload(network, rates_bps).into_iter().fold(0.0, f64::max)
}

/// A point with the rates of flows in Gb/s after each of so many iterations. A flow has its rate of before, which is 0 if it is
/// new, until the first iteration is over.
pub fn iterations(perc: &SyncPerc<'_>, n: usize, flows: &[(&str, f64)]) -> Point {
    let states: Vec<SyncIteration> = perc.clone().take(n).collect();
    let series = |flow: usize, before_bps: f64| {
        let rates = std::iter::once(before_bps).chain(states.iter().map(|state| state.rates_bps[flow]));
        (0..).map(f64::from).zip(rates.map(|bps| bps * 1e-9)).collect()
    };
    let with = |point: Point, (flow, (name, before)): (usize, &(&str, f64))| point.with(name, series(flow, *before));
    flows.iter().enumerate().fold(Point::default(), with)
}

/// The optimum of the chain as levels of a panel.
pub fn with_optimum(panel: Panel, range: (f64, f64)) -> Panel {
    let panel = with_level(panel, "ideal: 35, 25, 5, 5 Gb/s", OPTIMUM[0], range);
    OPTIMUM[1..3].iter().fold(panel, |panel, &rate| with_level(panel, "", rate, range))
}
