//! Iterations until rates are right, by method and gamma: the tables of docs/allocate.md.
//!
//! `cargo run --release -p fairrate-allocate --example num_iterations`

#[path = "../tests/common/mod.rs"]
mod common;

use common::{leaf_spine, logs, random, unit_bps};
use fairrate_allocate::{FlowKey, Gradient, Method, Ned, Network, Num, NumConfig, RateEngine, Solution, reference};

/// Largest number of iterations; rates that have not settled by then never settle, or too slowly.
const LIMIT: u32 = 100_000;

/// A network, the unit of its rates and its optimum.
struct Case {
    network: Network,
    unit_bps: f64,
    best: Solution,
}

impl Case {
    fn new(network: Network, unit_bps: f64) -> Self {
        let (best, _) = reference(&network, &logs(&network), unit_bps).expect("an optimum");
        Self { network, unit_bps, best }
    }

    fn start(&self, method: Method) -> Num {
        let config = NumConfig { method, ..NumConfig::flowtune(self.unit_bps) };
        Num::of_network(&self.network, &logs(&self.network), config).expect("a network")
    }

    /// Returns the number of iterations until all rates are within `part` of the optimum.
    fn iterations(&self, num: &mut Num, part: f64) -> Option<u32> {
        let is_right = |num: &Num| {
            let mut flows = self.best.rates_bps.iter().zip((0..).map(FlowKey));
            flows.all(|(best, flow)| (num.rate_bps(flow) / best - 1.0).abs() < part)
        };
        (1..=LIMIT).find(|_| {
            num.iterate();
            is_right(num)
        })
    }
}

/// Returns the median and the largest number of iterations of all cases.
fn row(cases: &[Case], method: impl Fn(&Num) -> Method, is_warm: bool) -> String {
    let mut found: Vec<u32> = Vec::new();
    for case in cases {
        let mut num = case.start(method(&case.start(Method::Fgm)));
        if is_warm {
            // The last flow is added after the others have settled.
            let last = FlowKey(case.network.flows.len() as u32 - 1);
            num.remove(last);
            num.solve(LIMIT, 1e-6);
            let flow = &case.network.flows[last.index()];
            num.add(&flow.links, flow.weight, flow.demand_bps);
        }
        found.push(case.iterations(&mut num, 0.01).unwrap_or(u32::MAX));
    }
    found.sort_unstable();
    let failed = found.iter().filter(|&&n| n == u32::MAX).count();
    let (median, most) = (found[found.len() / 2], found[found.len() - 1]);
    let show = |n: u32| if n == u32::MAX { "-".to_owned() } else { n.to_string() };
    format!("{} / {} ({failed})", show(median), show(most))
}

fn main() {
    let fabrics: Vec<Case> = (0..10).map(|seed| Case::new(leaf_spine(seed, 500), 10e9)).collect();
    let randoms: Vec<Case> = (0..50)
        .map(|seed| random(seed, 4))
        .filter(|network| 1 < network.flows.len())
        .map(|network| (unit_bps(&network), network))
        .map(|(unit_bps, network)| Case::new(network, unit_bps))
        .collect();
    println!("{} fabrics, {} random networks; median / most (failed)", fabrics.len(), randoms.len());
    for gamma in [0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0, 1.2, 1.5] {
        let ned = |_: &Num| Method::Ned(Ned { gamma });
        let cells = [row(&fabrics, ned, false), row(&fabrics, ned, true), row(&randoms, ned, false)];
        println!("ned {gamma} | {}", cells.join(" | "));
    }
    let gradient = |scale: f64| move |num: &Num| Method::Gradient(Gradient { gamma: scale * num.safe_step() });
    for scale in [1.0, 2.0, 4.0, 8.0] {
        println!("gradient, {scale} safe steps | {}", row(&fabrics, gradient(scale), false));
    }
    println!("fgm | {}", row(&fabrics, |_| Method::Fgm, false));
    for (gamma, window) in [(0.2, 1), (0.2, 5), (0.4, 5), (0.2, 20)] {
        let method = |_: &Num| Method::NewtonLike { gamma, window };
        println!("newton-like {gamma}, windows of {window} | {}", row(&fabrics, method, false));
    }
}
