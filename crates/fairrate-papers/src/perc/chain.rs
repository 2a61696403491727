//! Networks for calculations, and the chain of three bottlenecks of Figures 7 and 8.

use fairrate_allocate::{Flow, Link, LinkId, Network, SyncIteration, SyncPerc, overload};
use fairrate_report::panel::Panel;
use fairrate_units::Rate;

use crate::drawing::with_level;
use crate::points::Point;

/// Flows of Figures 7 and 8, and the algorithms whose looks their lines have.
pub const FLOWS: [(&str, &str); 4] = [("A", "timely"), ("B", "dctcp"), ("C", "dcqcn"), ("D", "powertcp")];
/// Max-min rates of these flows in Gb/s.
pub const OPTIMUM: [f64; 4] = [35.0, 25.0, 5.0, 5.0];

/// Returns a network of links with capacities in Gb/s, and flows with their links.
pub fn network(capacities_gbps: &[u64], flows: &[&[u32]]) -> Network {
    let flow = |links: &&[u32]| Flow::new("", links.iter().map(|&l| LinkId(l)).collect::<Vec<_>>());
    Network {
        links: capacities_gbps.iter().map(|&gbps| Link::new("", Rate::from_gbps(gbps))).collect(),
        flows: flows.iter().map(flow).collect(),
    }
}

/// Returns the network of Figure 7: A and B on 60 Gb/s, B and C on 30, C and D on 10.
pub fn chain() -> Network {
    network(&[60, 30, 10], &[&[0], &[0, 1], &[1, 2], &[2]])
}

/// Returns the largest excess of rates over a link's capacity, in bit/s.
pub fn worst_overload_bps(network: &Network, rates_bps: &[f64]) -> f64 {
    overload(network, rates_bps).into_iter().fold(0.0, f64::max)
}

/// Returns a point with the rates of flows in Gb/s after each of `n` iterations. Until the first iteration is over a
/// flow has its rate in `flows`, in bit/s, which is 0 if it is new.
pub fn iterations(perc: &SyncPerc<'_>, n: usize, flows: &[(&str, f64)]) -> Point {
    let states: Vec<SyncIteration> = perc.clone().take(n).collect();
    let series = |flow: usize, before_bps: f64| {
        let rates = std::iter::once(before_bps).chain(states.iter().map(|state| state.rates_bps[flow]));
        (0..).map(f64::from).zip(rates.map(|bps| bps * 1e-9)).collect()
    };
    let with = |point: Point, (flow, (name, before)): (usize, &(&str, f64))| point.with(name, series(flow, *before));
    flows.iter().enumerate().fold(Point::default(), with)
}

/// Adds the chain's optimum to a panel, as levels.
pub fn with_optimum(panel: Panel, range: (f64, f64)) -> Panel {
    let panel = with_level(panel, "ideal: 35, 25, 5, 5 Gb/s", OPTIMUM[0], range);
    OPTIMUM[1..3].iter().fold(panel, |panel, &rate| with_level(panel, "", rate, range))
}
