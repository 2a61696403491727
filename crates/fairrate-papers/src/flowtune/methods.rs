//! The optimisers of Figures 12 and 13, and the lengths of their runs.

use std::sync::{Arc, OnceLock};

use fairrate_allocate::{FlowKey, Gradient, LinkId, Method, Ned, Normaliser, Num, NumConfig, RateEngine, RealTime};

use super::churn::{self, Churn, Iterates, NETWORK, Sends};
use super::{CACHE, HADOOP, Sizes, WEB};
use crate::figure::Scale;

/// Flow sizes. The paper does not name those of Figures 12 and 13; section 6.2 makes Web the first.
pub const SIZES: [Sizes; 3] = [WEB, CACHE, HADOOP];
/// NED with the step of section 6.2.
pub const NED: Method = Method::Ned(Ned { gamma: 0.4 });
/// The load at which variants are measured too, in tenths.
pub const VARIANTS_AT: u32 = 8;

/// Returns the sizes that are run.
pub fn sizes(scale: &Scale) -> &'static [Sizes] {
    if scale.quick { &SIZES[..1] } else { &SIZES }
}

/// Returns the loads that are run with `sizes`, in tenths.
pub fn loads(scale: &Scale, sizes: &Sizes) -> Vec<u32> {
    if sizes.name != WEB.name {
        vec![4, VARIANTS_AT]
    } else if scale.quick {
        vec![2, 4, 6, VARIANTS_AT]
    } else {
        (2..=9).collect()
    }
}

/// Returns the traffic and the number of iterations, of 10 us each.
pub fn churn(scale: &Scale, sizes: &Sizes, tenths: u32, seed: u64) -> Churn {
    let iterations = if scale.quick { 2_000 } else { 5_000 };
    Churn {
        workload: sizes.name,
        load: f64::from(tenths) / 10.0,
        seed,
        iterates: Iterates::ByTime(1),
        warm_up: iterations,
        iterations,
        optimum_every: 50,
        snapshots: 0,
    }
}

/// Returns the name of runs with these sizes at this load.
pub fn name(sizes: &Sizes, tenths: u32) -> String {
    format!("{} 0.{tenths}", sizes.name)
}

pub fn allocator(method: Method, normaliser: Normaliser) -> Num {
    Num::new(NETWORK.capacities_bps(), NumConfig { method, normaliser, unit_bps: NETWORK.server_bps })
}

/// Returns NED and F-NORM in single precision.
pub fn real_time(gamma: f64) -> RealTime {
    RealTime::general(&NETWORK.capacities_bps(), NETWORK.server_bps, gamma)
}

/// The step of the gradient method, which the paper does not give: the largest that does not oscillate on a workload.
/// It is searched for at the first call of [`Self::gamma`].
#[derive(Clone)]
pub struct Step {
    like: Churn,
    found: Arc<OnceLock<f64>>,
}

impl Step {
    /// Returns the step for traffic like `like`.
    pub fn of(like: Churn) -> Self {
        Self { like, found: Arc::default() }
    }

    /// Returns the step. Flows are taken from runs of NED at loads of 0.2, 0.5 and 0.9, five times each. The step is
    /// lowered from 4 by a factor of the square root of 2 until the rates of none of these sets of flows oscillate.
    /// Steps are of prices for capacities in units of a server's link.
    pub fn gamma(&self) -> f64 {
        *self.found.get_or_init(|| {
            let mut gamma = 4.0;
            for flows in [0.9, 0.5, 0.2].into_iter().flat_map(|load| self.snapshots(load)) {
                while oscillates(&flows, gamma) {
                    gamma /= std::f64::consts::SQRT_2;
                }
            }
            gamma
        })
    }

    fn snapshots(&self, load: f64) -> Vec<Vec<Vec<LinkId>>> {
        let churn = Churn { load, seed: 1, snapshots: 5, ..self.like.clone() };
        churn::run(&churn, Sends::AsAllocated, vec![Box::new(allocator(NED, Normaliser::F_NORM))], None).snapshots
    }

    /// Returns all inputs of the search as text.
    pub fn inputs(&self) -> String {
        format!("step {:?}", self.like)
    }

    /// Returns the gradient method with this step.
    pub fn gradient(&self) -> Method {
        Method::Gradient(Gradient { gamma: self.gamma() })
    }
}

/// Returns `true` if, 3,000 iterations after all flows started, a flow's rate oscillates: its rises, and its falls,
/// within 100 iterations each have a mean per iteration above a thousandth of the rate.
fn oscillates(flows: &[Vec<LinkId>], gamma: f64) -> bool {
    const ITERATIONS: u32 = 100;
    let mut allocator = allocator(Method::Gradient(Gradient { gamma }), Normaliser::None);
    let keys: Vec<FlowKey> = flows.iter().map(|path| allocator.add(path, 1.0, f64::INFINITY)).collect();
    (0..3_000).for_each(|_| allocator.iterate());
    // For each flow, the sums of its rate's rises, of its falls, and of the rate.
    let mut sums = vec![[0.0; 3]; keys.len()];
    let mut last: Vec<f64> = keys.iter().map(|&key| allocator.rate_bps(key)).collect();
    for _ in 0..ITERATIONS {
        allocator.iterate();
        for ((sums, last), &key) in sums.iter_mut().zip(&mut last).zip(&keys) {
            let rate = allocator.rate_bps(key);
            sums[0] += (rate - *last).max(0.0);
            sums[1] += (*last - rate).max(0.0);
            sums[2] += rate;
            *last = rate;
        }
    }
    sums.iter().any(|&[up, down, rate]| 1e-3 * rate < f64::min(up, down))
}
