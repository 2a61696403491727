//! The common part of Figures 12 and 13: flowlets that start and end on Flowtune's network, without packets. Each sends
//! at the rate that an allocator gave it in its last iteration, and ends when its bytes are sent.
//!
//! Simplifications against the paper's simulation: notifications take no time, and there are no headers. A flowlet that
//! starts between two iterations has its first rate from the next one.

use fairrate_allocate::{Clos, FlowKey, LinkId, Num, RateEngine};
use fairrate_sim::rng::{Purpose, Stream};
use fairrate_sim::workload::SizeDistribution;

/// The paper's network: 9 racks of 16 servers with 10 Gb/s, 4 spines with 40 Gb/s to each rack.
pub const NETWORK: Clos =
    Clos { pods: 1, racks: 9, servers: 16, spines: 4, cores: 0, server_bps: 10e9, fabric_bps: 40e9 };
/// Largest rate of all servers together, in bit/s.
pub const SERVERS_BPS: f64 = NETWORK.n_servers() as f64 * NETWORK.server_bps;
/// Time between iterations of the allocator, and between measurements.
const STEP_S: f64 = 10e-6;
/// Largest residual of an optimum, its distance from the exact solution; see `Num::residual`.
const OPTIMUM_TOLERANCE: f64 = 1e-4;
const OPTIMUM_ITERATIONS: u32 = 20_000;

/// The traffic and the measurement of a run.
#[derive(Clone, Debug)]
pub struct Churn {
    /// Name of the flow sizes.
    pub workload: &'static str,
    /// Load of hosts' links.
    pub load: f64,
    /// Seed of all random draws.
    pub seed: u64,
    /// The times at which allocators iterate.
    pub iterates: Iterates,
    /// Iterations before the measurement.
    pub warm_up: u32,
    /// Iterations that are measured.
    pub iterations: u32,
    /// Interval between computed optima, in measured iterations, if there is an allocator for the optimum.
    pub optimum_every: u32,
    /// Number of snapshots of the flows, evenly spaced over the measured iterations.
    pub snapshots: u32,
}

/// The times at which allocators iterate. Section 6.2 has the first; section 2 says that the optimizer runs on each
/// notification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Iterates {
    /// As many times in a row every 10 us.
    ByTime(u32),
    /// Every 10 us, and each time a flow starts or ends.
    ByChange,
}

/// The rates at which flows send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sends {
    /// At the rates of the first allocator, even if links do not carry them.
    AsAllocated,
    /// At the rates of the first allocator, reduced to the share that the fullest link of the path carries, as with
    /// queues in a network.
    AsCarried,
}

/// The measures of an allocator's rates, over the measured iterations.
#[derive(Clone, Debug, Default)]
pub struct Allocated {
    /// Sum over links of the rates above their capacities, in bit/s: of each iteration.
    pub over_bps: Vec<f64>,
    /// Sums of all rates over sums of all optimal rates: of each iteration with an optimum and flows.
    pub of_optimum: Vec<f64>,
}

/// The outcome of a run.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// The measures of each allocator.
    pub allocated: Vec<Allocated>,
    /// Mean number of flows: in proportion to their mean completion time, as arrivals are the same.
    pub mean_flows: f64,
    /// Optima that were not reached.
    pub without_optimum: u32,
    /// Paths of the active flows, for each snapshot.
    pub snapshots: Vec<Vec<Vec<LinkId>>>,
}

/// An active flow.
struct Active {
    /// Keys by allocator; the last one is the optimum's, if there is one.
    keys: Vec<FlowKey>,
    path: Vec<LinkId>,
    left_bytes: f64,
}

/// Arrivals of flows.
struct Arrivals {
    gap_s: f64,
    next_s: f64,
    sizes: SizeDistribution,
    times: Stream,
    bytes: Stream,
    hosts: Stream,
    spines: Stream,
}

impl Arrivals {
    fn new(churn: &Churn) -> Self {
        let sizes = SizeDistribution::by_name(churn.workload).expect("figures name flow sizes that there are");
        let stream = |purpose| Stream::new(churn.seed, 0, purpose);
        Self {
            gap_s: 8.0 * sizes.mean() / (churn.load * SERVERS_BPS),
            next_s: 0.0,
            sizes,
            times: stream(Purpose::Arrivals),
            bytes: stream(Purpose::Sizes),
            hosts: stream(Purpose::Destinations),
            spines: stream(Purpose::Ecmp),
        }
    }

    /// Returns the path and the bytes of the next flow, if it arrives by `until_s`.
    fn next(&mut self, until_s: f64) -> Option<(Vec<LinkId>, f64)> {
        if until_s < self.next_s {
            return None;
        }
        self.next_s += self.times.exponential(self.gap_s);
        let n = NETWORK.n_servers();
        let src = self.hosts.below(u64::from(n)) as u32;
        let dst = (src + 1 + self.hosts.below(u64::from(n) - 1) as u32) % n;
        let spine = self.spines.below(u64::from(NETWORK.spines)) as u32;
        Some((NETWORK.path(src, dst, spine), self.sizes.sample(self.bytes.uniform()).as_f64()))
    }
}

/// Runs traffic over allocators that all have the same flows, which send at the rates of the first one. With an
/// allocator for the `optimum`, rates are compared with those it converges to.
pub fn run(churn: &Churn, sends: Sends, allocators: Vec<Box<dyn RateEngine>>, optimum: Option<Num>) -> Outcome {
    let mut run = Run {
        sends,
        iterates: churn.iterates,
        capacities: NETWORK.capacities_bps(),
        outcome: Outcome { allocated: vec![Allocated::default(); allocators.len()], ..Outcome::default() },
        allocators,
        optimum,
        flows: Vec::new(),
    };
    let mut arrivals = Arrivals::new(churn);
    let mut n_flows = 0;
    for step in 0..churn.warm_up + churn.iterations {
        while let Some((path, bytes)) = arrivals.next(f64::from(step) * STEP_S) {
            run.add(path, bytes);
        }
        run.iterate_by_time();
        if let Some(measured) = step.checked_sub(churn.warm_up) {
            run.measure();
            if measured % churn.optimum_every == 0 {
                run.compare();
            }
            if 0 < churn.snapshots && measured % (churn.iterations / churn.snapshots).max(1) == 0 {
                run.outcome.snapshots.push(run.flows.iter().map(|flow| flow.path.clone()).collect());
            }
            n_flows += run.flows.len();
        }
        run.send();
    }
    let mut outcome = run.outcome;
    outcome.mean_flows = n_flows as f64 / f64::from(churn.iterations);
    outcome
}

struct Run {
    sends: Sends,
    iterates: Iterates,
    capacities: Vec<f64>,
    allocators: Vec<Box<dyn RateEngine>>,
    optimum: Option<Num>,
    flows: Vec<Active>,
    outcome: Outcome,
}

impl Run {
    fn add(&mut self, path: Vec<LinkId>, left_bytes: f64) {
        let mut keys: Vec<FlowKey> = self.allocators.iter_mut().map(|a| a.add(&path, 1.0, f64::INFINITY)).collect();
        keys.extend(self.optimum.as_mut().map(|optimum| optimum.add(&path, 1.0, f64::INFINITY)));
        self.flows.push(Active { keys, path, left_bytes });
        self.changed();
    }

    fn remove(&mut self, flow: usize) {
        let mut keys = self.flows.swap_remove(flow).keys.into_iter();
        for allocator in &mut self.allocators {
            allocator.remove(keys.next().expect("a key for each allocator"));
        }
        if let (Some(optimum), Some(key)) = (&mut self.optimum, keys.next()) {
            optimum.remove(key);
        }
        self.changed();
    }

    fn changed(&mut self) {
        if self.iterates == Iterates::ByChange {
            self.iterate();
        }
    }

    fn iterate_by_time(&mut self) {
        let times = if let Iterates::ByTime(times) = self.iterates { times } else { 1 };
        (0..times).for_each(|_| self.iterate());
    }

    fn iterate(&mut self) {
        self.allocators.iter_mut().for_each(|allocator| allocator.iterate());
    }

    /// Returns the loads of all links by an allocator's rates, in bit/s.
    fn loads(&self, allocator: usize) -> Vec<f64> {
        let mut loads = vec![0.0; self.capacities.len()];
        for flow in &self.flows {
            let rate = self.allocators[allocator].rate_bps(flow.keys[allocator]);
            flow.path.iter().for_each(|link| loads[link.index()] += rate);
        }
        loads
    }

    fn measure(&mut self) {
        for allocator in 0..self.allocators.len() {
            let loads = self.loads(allocator);
            let over = loads.iter().zip(&self.capacities).map(|(load, capacity)| (load - capacity).max(0.0)).sum();
            self.outcome.allocated[allocator].over_bps.push(over);
        }
    }

    /// Records the sums of rates over the optimum's.
    fn compare(&mut self) {
        let Some(optimum) = &mut self.optimum else { return };
        if self.flows.is_empty() {
            return;
        }
        if !optimum.solve(OPTIMUM_ITERATIONS, OPTIMUM_TOLERANCE).converged {
            self.outcome.without_optimum += 1;
            return;
        }
        let last = self.allocators.len();
        let best: f64 = self.flows.iter().map(|flow| optimum.rate_bps(flow.keys[last])).sum();
        for (i, (allocator, allocated)) in self.allocators.iter().zip(&mut self.outcome.allocated).enumerate() {
            let sum: f64 = self.flows.iter().map(|flow| allocator.rate_bps(flow.keys[i])).sum();
            allocated.of_optimum.push(sum / best);
        }
    }

    /// Sends until the next iteration, and removes flows that have ended.
    fn send(&mut self) {
        let fullness: Vec<f64> = match self.sends {
            Sends::AsAllocated => vec![1.0; self.capacities.len()],
            Sends::AsCarried => {
                let loads = self.loads(0);
                loads.iter().zip(&self.capacities).map(|(load, capacity)| (load / capacity).max(1.0)).collect()
            }
        };
        let mut ended = Vec::new();
        for (i, Active { keys, path, left_bytes }) in self.flows.iter_mut().enumerate() {
            let fullest = path.iter().map(|link| fullness[link.index()]).fold(1.0, f64::max);
            let bytes = self.allocators[0].rate_bps(keys[0]) / fullest * STEP_S / 8.0;
            *left_bytes -= bytes;
            if *left_bytes <= 0.0 {
                ended.push(i);
            }
        }
        // In descending order, since the last flow takes the place of a removed flow.
        ended.into_iter().rev().for_each(|flow| self.remove(flow));
    }
}
