//! The optimisers of Figures 12 and 13, and how long they are run.

use std::sync::{Arc, OnceLock};

use fairrate_allocate::{FlowKey, Gradient, LinkId, Method, Ned, Normaliser, Num, NumConfig, RateEngine, RealTime};

use super::churn::{self, Churn, Iterates, NETWORK, Sends};
use super::{CACHE, HADOOP, Sizes, WEB};
use crate::figure::Scale;

/// Flow sizes. The paper has no word on which Figures 12 and 13 are of; section 6.2 makes Web the first.
pub const SIZES: [Sizes; 3] = [WEB, CACHE, HADOOP];
/// Section 6.2.
pub const NED: Method = Method::Ned(Ned { gamma: 0.4 });
/// The load at which variants are measured too, in tenths.
pub const VARIANTS_AT: u32 = 8;

/// Those sizes that are run.
pub fn sizes(scale: &Scale) -> &'static [Sizes] {
    if scale.quick { &SIZES[..1] } else { &SIZES }
}

/// Loads in tenths.
pub fn loads(scale: &Scale, sizes: &Sizes) -> Vec<u32> {
    if sizes.name != WEB.name {
        vec![4, VARIANTS_AT]
    } else if scale.quick {
        vec![2, 4, 6, VARIANTS_AT]
    } else {
        (2..=9).collect()
    }
}

/// For how long: iterations of 10 us.
pub fn churn(scale: &Scale, sizes: &Sizes, tenths: u32, seed: u64) -> Churn {
    let iterations = if scale.quick { 2_000 } else { 5_000 };
    Churn {
        workload: sizes.name,
        load: f64::from(tenths) / 10.0,
        seed,
        iterates: Iterates::ByTime,
        warm_up: iterations,
        iterations,
        optimum_every: 50,
        snapshots: 0,
    }
}

/// The name of runs with these sizes at this load.
pub fn name(sizes: &Sizes, tenths: u32) -> String {
    format!("{} 0.{tenths}", sizes.name)
}

pub fn allocator(method: Method, normaliser: Normaliser) -> Num {
    Num::new(NETWORK.capacities_bps(), NumConfig { method, normaliser, unit_bps: NETWORK.server_bps })
}

/// NED and F-NORM in single precision.
pub fn real_time(gamma: f64) -> RealTime {
    RealTime::general(&NETWORK.capacities_bps(), NETWORK.server_bps, gamma)
}

/// The step of the gradient method, which the paper does not say: the largest that does not oscillate on a workload. It is looked
/// for when somebody asks first.
#[derive(Clone)]
pub struct Step {
    like: Churn,
    found: Arc<OnceLock<f64>>,
}

impl Step {
    /// Of traffic like this.
    pub fn of(like: Churn) -> Self {
        Self { like, found: Arc::default() }
    }

    /// Flows are taken from runs of NED at loads of 0.2, 0.5 and 0.9, five times each. The step is lowered from 4 by a factor of
    /// the square root of 2 until the rates of none of these sets of flows oscillate. Steps are of prices for capacities in
    /// units of a server's link.
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

    /// All that it depends on.
    pub fn inputs(&self) -> String {
        format!("step {:?}", self.like)
    }

    /// The method with this step.
    pub fn gradient(&self) -> Method {
        Method::Gradient(Gradient { gamma: self.gamma() })
    }
}

/// Whether, 3,000 iterations after all flows came, a flow's rate rises and falls within 100 iterations by more than a
/// thousandth of itself each time.
fn oscillates(flows: &[Vec<LinkId>], gamma: f64) -> bool {
    const ITERATIONS: u32 = 100;
    let mut allocator = allocator(Method::Gradient(Gradient { gamma }), Normaliser::None);
    let keys: Vec<FlowKey> = flows.iter().map(|path| allocator.add(path, 1.0, f64::INFINITY)).collect();
    (0..3_000).for_each(|_| allocator.iterate());
    // Sums of what each flow's rate rose by, fell by, and was.
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
