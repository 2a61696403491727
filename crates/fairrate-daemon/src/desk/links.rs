//! The rates that may be in force, added up by link, so that no link is given out twice.
//!
//! A flow counts with the largest rate that may be in force: the one acknowledged last, or a larger one sent since. So
//! a rate that falls leaves room when its agent has acknowledged it, and not before. Flows that need room wait at the
//! link that has least.

use std::collections::VecDeque;

use fairrate_allocate::LinkId;
use smallvec::SmallVec;

use crate::rate::WireRate;

/// Largest relative error of a rate on the wire, and so of a sum of rates.
const ROUNDING: f64 = 1.0 / 4096.0;

/// Part of a link's rate that is left to flows that have waited for too long for their first rate: a 128th, and a part
/// of what is left of it for each.
const RESERVE: u64 = 128;
const PART_OF_RESERVE: u64 = 8;

/// A flow's links, and the largest of its rates that may be in force.
#[derive(Clone, Debug, Default)]
struct Granted {
    path: SmallVec<[u32; 4]>,
    kbps: u64,
}

/// A flow that waits for room.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    number: u32,
    missing_kbps: u64,
}

/// The sums of rates that may be in force. They are whole numbers, so that they stay exact however often rates change.
#[derive(Debug, Default)]
pub(super) struct Links {
    capacities_kbps: Vec<u64>,
    /// Largest rates that links may have had.
    bounds_kbps: Vec<u64>,
    sums_kbps: Vec<u64>,
    /// Entries by the number of a flow at the service.
    flows: Vec<Granted>,
    /// Flows that wait for room, by link.
    waiting: Vec<VecDeque<Waiting>>,
    /// Flows for which there may be room now.
    woken: Vec<u32>,
    /// Parts of the reserves given out while other rates may be in force.
    crumbs_kbps: Vec<u64>,
}

/// The load of the links by the rates that may be in force.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LinkLoad {
    /// Number of links whose flows may have more than the link's rate.
    pub n_oversubscribed: usize,
    /// Largest sum of the rates of a link's flows, as a share of the link's rate.
    pub largest_share: f64,
}

impl Links {
    pub fn new(capacities_bps: &[f64]) -> Self {
        let capacities_kbps = kbps(capacities_bps);
        let n = capacities_kbps.len();
        Self {
            bounds_kbps: capacities_kbps.clone(),
            capacities_kbps,
            sums_kbps: vec![0; n],
            waiting: vec![VecDeque::new(); n],
            crumbs_kbps: vec![0; n],
            ..Self::default()
        }
    }

    /// Raises the largest rates that links may have had.
    pub fn bound(&mut self, bounds_bps: &[f64]) {
        let pairs = self.bounds_kbps.iter_mut().zip(kbps(bounds_bps));
        pairs.for_each(|(bound, new)| *bound = new.max(*bound));
    }

    /// Changes the links' rates; `bounds_bps` are the largest that they may have had. No flow waits for room any more.
    /// If links have other numbers than before, no flow has a path until [`Links::reroute`].
    pub fn change(&mut self, capacities_bps: &[f64], bounds_bps: &[f64], is_renumbered: bool) {
        if self.capacities_kbps.is_empty() {
            return;
        }
        let n = capacities_bps.len();
        if is_renumbered {
            self.flows.iter_mut().for_each(|told| told.path.clear());
            (self.sums_kbps, self.crumbs_kbps) = (vec![0; n], vec![0; n]);
            self.bounds_kbps = kbps(bounds_bps);
        } else {
            self.bound(bounds_bps);
        }
        self.capacities_kbps = kbps(capacities_bps);
        self.waiting = vec![VecDeque::new(); n];
        self.woken.clear();
    }

    /// Returns `true` if a flow has this path.
    pub fn has_path(&self, number: u32, path: &[LinkId]) -> bool {
        let told = self.flows.get(number as usize);
        told.is_some_and(|told| told.path.iter().copied().eq(path.iter().map(|link| link.0)))
    }

    /// Moves a flow to another path, with its rate in force.
    pub fn reroute(&mut self, number: u32, path: &[LinkId]) {
        let Some(told) = self.flows.get_mut(number as usize) else { return };
        for &link in &told.path {
            self.sums_kbps[link as usize] -= told.kbps;
        }
        told.path = path.iter().map(|link| link.0).collect();
        for &link in &told.path {
            self.sums_kbps[link as usize] += told.kbps;
        }
    }

    /// Adds a flow that has no rate yet.
    pub fn begin(&mut self, number: u32, path: &[LinkId]) {
        if self.capacities_kbps.is_empty() {
            return;
        }
        let place = number as usize;
        if self.flows.len() <= place {
            self.flows.resize(place + 1, Granted::default());
        }
        self.flows[place] = Granted { path: path.iter().map(|link| link.0).collect(), kbps: 0 };
    }

    /// Returns the largest rate of a flow that may be in force.
    pub fn kbps(&self, number: u32) -> u64 {
        self.flows.get(number as usize).map_or(0, |told| told.kbps)
    }

    /// Sets the largest rate of a flow that may be in force. If it falls, flows that wait for room are woken.
    pub fn set(&mut self, number: u32, kbps: u64) {
        let Some(told) = self.flows.get_mut(number as usize) else { return };
        let before = std::mem::replace(&mut told.kbps, kbps);
        for &link in &told.path {
            let link = link as usize;
            self.sums_kbps[link] = self.sums_kbps[link] + kbps - before;
            if kbps < before && !self.waiting[link].is_empty() {
                wake(&mut self.waiting[link], &mut self.woken, room(self.capacities_kbps[link], self.sums_kbps[link]));
            }
        }
    }

    /// Sets the rate of a flow to one that its agent reports, but to no more than its path may have had, and its first
    /// link besides other flows: whoever lies takes nothing but the agent's own link.
    pub fn report(&mut self, number: u32, rate: WireRate) {
        let Some(told) = self.flows.get(number as usize) else { return };
        let capacity = |link: &u32| self.bounds_kbps[*link as usize];
        let most = told.path.iter().map(capacity).min().unwrap_or(0);
        let rest = told.path.first().map_or(0, |link| {
            let others_kbps = self.sums_kbps[*link as usize] - told.kbps;
            (capacity(link) + capacity(link) / RESERVE).saturating_sub(others_kbps)
        });
        self.set(number, rate.as_kbps().min(most).min(rest));
    }

    /// Returns the room on the flow's path, and the link that has least.
    pub fn room(&self, number: u32) -> (u64, Option<u32>) {
        let Some(told) = self.flows.get(number as usize) else { return (u64::MAX, None) };
        let of = |&link: &u32| (room(self.capacities_kbps[link as usize], self.sums_kbps[link as usize]), Some(link));
        told.path.iter().map(of).min().unwrap_or((u64::MAX, None))
    }

    /// Returns a small rate for a flow that has waited for too long, from the reserve of its links. If `is_holding`,
    /// the links may have other flows, which leave the reserve alone.
    pub fn crumb(&mut self, number: u32, is_holding: bool) -> WireRate {
        let Some(told) = self.flows.get(number as usize) else { return WireRate::NONE };
        let part = |&link: &u32| {
            let link = link as usize;
            let capacity = self.capacities_kbps[link];
            let used = if is_holding { capacity + self.crumbs_kbps[link] } else { self.sums_kbps[link] };
            (capacity + capacity / RESERVE).saturating_sub(used) / PART_OF_RESERVE
        };
        let crumb = WireRate::at_most_kbps(told.path.iter().map(part).min().unwrap_or(0));
        if is_holding {
            told.path.iter().for_each(|&link| self.crumbs_kbps[link as usize] += crumb.as_kbps());
        }
        crumb
    }

    /// Forgets the parts of the reserves given out.
    pub fn end_holding(&mut self) {
        self.crumbs_kbps.fill(0);
    }

    /// Makes a flow wait for room at a link.
    pub fn wait(&mut self, number: u32, link: u32, missing_kbps: u64) {
        self.waiting[link as usize].push_back(Waiting { number, missing_kbps });
    }

    /// Returns `true` if a flow waits for room at a link of this one.
    pub fn is_awaited(&self, number: u32) -> bool {
        let is_awaited = |link: &u32| !self.waiting[*link as usize].is_empty();
        self.flows.get(number as usize).is_some_and(|told| told.path.iter().any(is_awaited))
    }

    /// Takes a flow for which there may be room now.
    pub fn next_woken(&mut self) -> Option<u32> {
        self.woken.pop()
    }

    /// Computes the load of all links.
    pub fn load(&self) -> LinkLoad {
        let mut load = LinkLoad::default();
        for (capacity_kbps, sum_kbps) in self.capacities_kbps.iter().zip(&self.sums_kbps) {
            let share = *sum_kbps as f64 / (*capacity_kbps).max(1) as f64;
            load.n_oversubscribed += usize::from(1.0 + 1.0 / RESERVE as f64 + ROUNDING < share);
            load.largest_share = load.largest_share.max(share);
        }
        load
    }
}

/// Returns rates in kbit/s.
fn kbps(rates_bps: &[f64]) -> Vec<u64> {
    rates_bps.iter().map(|bps| (bps / 1e3) as u64).collect()
}

/// Returns the room on a link. Rates are rounded, so that their sum may be above the link's rate by as much.
fn room(capacity_kbps: u64, sum_kbps: u64) -> u64 {
    (capacity_kbps + capacity_kbps / 4096).saturating_sub(sum_kbps)
}

/// Wakes the flows that have waited longest, and fit into the room.
fn wake(waiting: &mut VecDeque<Waiting>, woken: &mut Vec<u32>, mut room_kbps: u64) {
    while 0 < room_kbps
        && let Some(first) = waiting.pop_front()
    {
        woken.push(first.number);
        room_kbps = room_kbps.saturating_sub(first.missing_kbps.max(1));
    }
}
