//! The allocator's side of Flowtune (J. Perry, H. Balakrishnan, D. Shah, MIT-CSAIL-TR-2016-011, sections 2 and 6.4):
//! flowlets begin and end, rates follow, and those that have changed by enough are sent to the endpoints. It has no
//! sockets and no clock: the caller decides when to iterate.

use std::collections::HashMap;

use crate::engine::{FlowKey, RateEngine};
use crate::network::LinkId;

/// The number by which endpoint and allocator identify a flow.
pub type FlowNumber = u32;

/// A new rate to send to a flow's endpoint.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Update {
    /// The flow.
    pub flow: FlowNumber,
    /// The new rate in bit/s.
    pub rate_bps: f64,
}

/// An allocator with its engine and the rates it has sent last.
///
/// ```
/// use fairrate_allocate::{AllocatorService, LinkId, RealTime, Update};
///
/// // Links are given a hundredth less than they have, so that rates may be a hundredth off.
/// let engine = RealTime::general(&[9.9e9], 10e9, 0.4);
/// let mut allocator = AllocatorService::new(Box::new(engine), 0.01);
/// let mut told: Vec<Update> = Vec::new();
/// allocator.start(5, &[LinkId(0)], 1.0, f64::INFINITY);
/// (0..50).for_each(|_| allocator.iterate(&mut told));
/// let last = told.last().expect("a new flow is told its rate");
/// assert!(last.flow == 5 && (last.rate_bps - 9.9e9).abs() < 0.01 * 9.9e9);
/// ```
pub struct AllocatorService {
    engine: Box<dyn RateEngine>,
    threshold: f64,
    flows: Vec<Served>,
    /// Position of each flow in `flows`.
    places: HashMap<FlowNumber, u32>,
}

/// A flow, and the rate that was sent last (0: none).
struct Served {
    flow: FlowNumber,
    key: FlowKey,
    rate_bps: f64,
}

impl AllocatorService {
    /// Creates an allocator without flows. A rate is sent when it is above 1 + `threshold` or below 1 - `threshold`
    /// times the rate sent last; the capacities that the engine was made with should leave room for that.
    pub fn new(engine: Box<dyn RateEngine>, threshold: f64) -> Self {
        Self { engine, threshold, flows: Vec::new(), places: HashMap::new() }
    }

    /// Begins a flowlet; returns `false` if `flow` is known already, which leaves it unchanged.
    pub fn start(&mut self, flow: FlowNumber, path: &[LinkId], weight: f64, demand_bps: f64) -> bool {
        if self.places.contains_key(&flow) {
            return false;
        }
        self.places.insert(flow, self.flows.len() as u32);
        let key = self.engine.add(path, weight, demand_bps);
        self.flows.push(Served { flow, key, rate_bps: 0.0 });
        true
    }

    /// Ends a flowlet; returns `false` if `flow` was not known.
    pub fn end(&mut self, flow: FlowNumber) -> bool {
        let Some(place) = self.places.remove(&flow) else { return false };
        let Served { key, .. } = self.flows.swap_remove(place as usize);
        self.engine.remove(key);
        if let Some(moved) = self.flows.get(place as usize) {
            self.places.insert(moved.flow, place);
        }
        true
    }

    /// Returns the number of known flows.
    pub fn n_flows(&self) -> usize {
        self.flows.len()
    }

    /// Returns the engine, to read rates or to change capacities.
    pub fn engine_mut(&mut self) -> &mut dyn RateEngine {
        &mut *self.engine
    }

    /// Runs one iteration, and appends the rates to send to `updates`. Equal calls give equal updates in equal order.
    pub fn iterate(&mut self, updates: &mut Vec<Update>) {
        self.engine.iterate();
        let (above, below) = (1.0 + self.threshold, 1.0 - self.threshold);
        for told in &mut self.flows {
            let rate_bps = self.engine.rate_bps(told.key);
            if told.rate_bps * above < rate_bps || rate_bps < told.rate_bps * below {
                told.rate_bps = rate_bps;
                updates.push(Update { flow: told.flow, rate_bps });
            }
        }
    }
}
