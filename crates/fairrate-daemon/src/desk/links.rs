//! The rates sent to flows, added up by link, to find links that were promised more than their rate.

use fairrate_allocate::LinkId;
use smallvec::SmallVec;

use crate::rate::WireRate;

/// Largest relative error of a rate on the wire, and so of a sum of rates.
const ROUNDING: f64 = 1.0 / 4096.0;

/// A flow's links, and the rate that was sent last to its agent.
#[derive(Clone, Debug, Default)]
struct Told {
    path: SmallVec<[u32; 4]>,
    kbps: u64,
}

/// The sums of rates sent. They are whole numbers, so that they stay exact however often rates change.
#[derive(Debug, Default)]
pub(super) struct Links {
    capacities_bps: Vec<f64>,
    sums_kbps: Vec<u64>,
    /// Entries by the number of a flow at the service.
    flows: Vec<Told>,
}

/// The load of the links by the rates sent to flows.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LinkLoad {
    /// Number of links whose flows were sent more than the link's rate.
    pub n_oversubscribed: usize,
    /// Largest sum of the rates sent to a link's flows, as a share of the link's rate.
    pub largest_share: f64,
}

impl Links {
    pub fn new(capacities_bps: Vec<f64>) -> Self {
        let sums_kbps = vec![0; capacities_bps.len()];
        Self { capacities_bps, sums_kbps, flows: Vec::new() }
    }

    /// Adds a flow that has no rate yet.
    pub fn begin(&mut self, number: u32, path: &[LinkId]) {
        if self.capacities_bps.is_empty() {
            return;
        }
        let place = number as usize;
        if self.flows.len() <= place {
            self.flows.resize(place + 1, Told::default());
        }
        self.flows[place] = Told { path: path.iter().map(|link| link.0).collect(), kbps: 0 };
    }

    /// Records the rate sent to a flow's agent.
    pub fn tell(&mut self, number: u32, rate: WireRate) {
        let Some(told) = self.flows.get_mut(number as usize) else { return };
        let before = std::mem::replace(&mut told.kbps, rate.as_kbps());
        for &link in &told.path {
            let sum = &mut self.sums_kbps[link as usize];
            *sum = *sum + told.kbps - before;
        }
    }

    /// Computes the load of all links.
    pub fn load(&self) -> LinkLoad {
        let mut load = LinkLoad::default();
        for (capacity_bps, sum_kbps) in self.capacities_bps.iter().zip(&self.sums_kbps) {
            let share = *sum_kbps as f64 * 1e3 / capacity_bps;
            load.n_oversubscribed += usize::from(1.0 + ROUNDING < share);
            load.largest_share = load.largest_share.max(share);
        }
        load
    }
}
