//! What flows were told, link by link: whether a link was promised more than it has.

use fairrate_allocate::LinkId;
use smallvec::SmallVec;

use crate::rate::WireRate;

/// A rate on the wire is off by at most this share, so a sum of rates may be.
const ROUNDING: f64 = 1.0 / 4096.0;

/// A flow's links, and the rate that its agent was told last.
#[derive(Clone, Debug, Default)]
struct Told {
    path: SmallVec<[u32; 4]>,
    kbps: u64,
}

/// The sums of told rates. Whole numbers, so that they stay right however often rates change.
#[derive(Debug, Default)]
pub(super) struct Links {
    capacities_bps: Vec<f64>,
    sums_kbps: Vec<u64>,
    /// By the number of a flow at the service.
    flows: Vec<Told>,
}

/// How much of the links was told to flows.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LinkLoad {
    /// Links whose flows were told more than the link's rate.
    pub n_oversubscribed: usize,
    /// The largest share of a link's rate that its flows were told.
    pub largest_share: f64,
}

impl Links {
    pub fn new(capacities_bps: Vec<f64>) -> Self {
        let sums_kbps = vec![0; capacities_bps.len()];
        Self { capacities_bps, sums_kbps, flows: Vec::new() }
    }

    /// A flow begins and has been told no rate.
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

    /// A flow's agent is told a rate.
    pub fn tell(&mut self, number: u32, rate: WireRate) {
        let Some(told) = self.flows.get_mut(number as usize) else { return };
        let before = std::mem::replace(&mut told.kbps, rate.as_kbps());
        for &link in &told.path {
            let sum = &mut self.sums_kbps[link as usize];
            *sum = *sum + told.kbps - before;
        }
    }

    /// Sums the loads up.
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
