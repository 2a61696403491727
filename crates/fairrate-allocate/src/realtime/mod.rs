//! Flowtune's allocator as an engine for real time: NED and F-NORM in single precision. J. Perry, H. Balakrishnan, D. Shah,
//! "Flowtune: Flowlet Control for Datacenter Networks", NSDI 2017, sections 3 to 5.

mod flows;
mod links;

use self::flows::FlowTable;
use self::links::LinkTable;
use crate::engine::{FlowKey, RateEngine};
use crate::network::LinkId;

/// NED with logarithmic utility, and F-NORM.
#[derive(Clone, Debug)]
pub struct RealTime {
    block: FlowBlock,
    keys: Vec<Key>,
    free: Vec<u32>,
    gamma: f32,
    unit_bps: f64,
}

/// Where a flow is, and what limits it.
#[derive(Clone, Copy, Debug)]
struct Key {
    demand_bps: f64,
    n_hops: u32,
    at: u32,
}

impl RealTime {
    /// An engine for any links. Rates are counted in `unit_bps`, which should be the capacity of a server's link: prices
    /// start at 1, which is where they end if a flow has such a link for itself. `gamma` is the step of equation 4.
    ///
    /// # Panics
    /// If `unit_bps` is not a number above 0.
    pub fn general(capacities_bps: &[f64], unit_bps: f64, gamma: f64) -> Self {
        assert!(0.0 < unit_bps && unit_bps.is_finite(), "the unit of rates is a number above 0");
        let capacities = capacities_bps.iter().map(|capacity| (capacity / unit_bps) as f32).collect();
        let block = FlowBlock { links: LinkTable::new(capacities), tables: Vec::new(), is_stale: false };
        Self { block, keys: Vec::new(), free: Vec::new(), gamma: gamma as f32, unit_bps }
    }
}

impl RateEngine for RealTime {
    fn add(&mut self, path: &[LinkId], weight: f64, demand_bps: f64) -> FlowKey {
        assert!(!path.is_empty(), "a flow uses at least one link");
        let key = self.free.pop().unwrap_or(self.keys.len() as u32);
        let table = self.block.table(path.len());
        let at = table.len() as u32;
        let demand = ((demand_bps / self.unit_bps) as f32).min(f32::MAX);
        let links = path.iter().map(|link| link.0);
        self.block.tables[path.len() - 1].add(&mut self.block.links, links, weight as f32, demand, key);
        let entry = Key { demand_bps, n_hops: path.len() as u32, at };
        match self.keys.get_mut(key as usize) {
            Some(place) => *place = entry,
            None => self.keys.push(entry),
        }
        FlowKey(key)
    }

    fn remove(&mut self, flow: FlowKey) {
        let Key { n_hops, at, .. } = self.keys[flow.index()];
        let table = &mut self.block.tables[n_hops as usize - 1];
        let (moved, good) = table.remove(&mut self.block.links, at as usize);
        self.block.is_stale |= !good;
        if let Some(moved) = moved {
            self.keys[moved as usize].at = at;
        }
        self.free.push(flow.0);
    }

    fn set_capacity(&mut self, link: LinkId, capacity_bps: f64) {
        self.block.links.capacities[link.index()] = (capacity_bps / self.unit_bps) as f32;
        self.block.is_stale = true;
    }

    fn iterate(&mut self) {
        self.block.refresh();
        self.block.links.update_used(self.gamma);
        for table in &mut self.block.tables {
            table.pass(&mut self.block.links);
        }
    }

    fn rate_bps(&self, flow: FlowKey) -> f64 {
        let Key { demand_bps, n_hops, at } = self.keys[flow.index()];
        let rate = self.block.tables[n_hops as usize - 1].normalised(at as usize);
        (f64::from(rate) * self.unit_bps).min(demand_bps)
    }

    fn n_flows(&self) -> usize {
        self.keys.len() - self.free.len()
    }
}

/// Flows and the links they use.
#[derive(Clone, Debug)]
struct FlowBlock {
    links: LinkTable,
    /// Flows by path length, from 1.
    tables: Vec<FlowTable>,
    /// Limits or sums must be made anew.
    is_stale: bool,
}

impl FlowBlock {
    fn table(&mut self, n_hops: usize) -> &mut FlowTable {
        while self.tables.len() < n_hops {
            self.tables.push(FlowTable::new(self.tables.len() + 1));
        }
        &mut self.tables[n_hops - 1]
    }

    fn refresh(&mut self) {
        if std::mem::take(&mut self.is_stale) {
            self.links.sums.fill([0.0; 2]);
            for table in &mut self.tables {
                table.place_all(&mut self.links);
            }
        }
    }
}
