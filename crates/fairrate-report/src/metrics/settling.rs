//! Goodput of a traffic block after another one came or went: the level at which it settles, and the time until then.
//!
//! The rule, for blocks of endless flows that are all probed (`[[probe]] flows = "all"`) and one probed port:
//! - Another block comes when the first of its flows starts, and goes when the first of them stops. The time after it
//!   ends with the next such change, or with the run.
//! - Goodput is that of all flows of the block, in bins as long as the interval of the probe.
//! - The level is the mean of the last quarter of the bins, as after the failure of a link. There must be four bins.
//! - Goodput has settled with the first bin from which on all stay within 10 % of the level; 10 % of a fair share where
//!   that is more, as a few packets would be much of a level near zero. If that bin is one of the last quarter, from
//!   which the level is, goodput has not settled.

use std::collections::BTreeMap;

use serde::Serialize;

use super::groups::one_port_bps;
use crate::model::{FlowSeries, RunData};
use crate::series::value_at;
use crate::stats;

/// Largest distance from the level, as a part of the level or of a fair share.
const TOLERANCE: f64 = 0.1;
/// The last part of the bins, whose mean is the level: one of this number.
const LAST: usize = 4;

/// Goodput of a block after a change.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Settling {
    /// Time from the change until goodput had settled, in ns; infinite if it had not, under some seed.
    pub time_ns: f64,
    /// The level over a fair share: the rate of the port times the block's part of the flows that were active then.
    pub level: f64,
}

/// The endless flows of a block.
#[derive(Clone, Copy, Debug)]
struct Endless {
    start_ns: f64,
    stop_ns: f64,
    flows: usize,
}

/// Returns the goodput of `block` after the first other one came; `None` if none came while the block was there.
pub(super) fn came(run: &RunData, block: u32) -> Option<Settling> {
    let blocks = endless(run);
    let own = *blocks.get(&block)?;
    let interval = interval(run);
    let others = blocks.iter().filter(|(other, _)| **other != block).map(|(_, other)| other.start_ns);
    let at = others.filter(|at| own.start_ns + interval < *at && *at < own.stop_ns).reduce(f64::min)?;
    after(run, &blocks, block, at)
}

/// Returns the goodput of `block` after the first other one went; `None` if none went while the block was there.
pub(super) fn went(run: &RunData, block: u32) -> Option<Settling> {
    let blocks = endless(run);
    let own = *blocks.get(&block)?;
    let others = blocks.iter().filter(|(other, _)| **other != block).map(|(_, other)| other.stop_ns);
    let at = others.filter(|at| own.start_ns < *at && *at < own.stop_ns).reduce(f64::min)?;
    after(run, &blocks, block, at)
}

/// Returns the means over seeds.
pub(super) fn mean(each: impl Iterator<Item = Settling>) -> Option<Settling> {
    let each: Vec<Settling> = each.collect();
    let mean = |of: fn(&Settling) -> f64| stats::mean(&each.iter().map(of).collect::<Vec<_>>());
    Some(Settling { time_ns: mean(|s| s.time_ns)?, level: mean(|s| s.level)? })
}

/// Returns the blocks of endless flows.
fn endless(run: &RunData) -> BTreeMap<u32, Endless> {
    let mut blocks: BTreeMap<u32, Endless> = BTreeMap::new();
    for flow in run.flows.iter().filter(|flow| flow.bytes.is_none()) {
        let stop_ns = run.stops_ns.get(&flow.id).copied().unwrap_or(run.totals.end_ns);
        let block = blocks.entry(flow.block).or_insert(Endless { start_ns: flow.start_ns, stop_ns, flows: 0 });
        block.start_ns = block.start_ns.min(flow.start_ns);
        block.stop_ns = block.stop_ns.min(stop_ns);
        block.flows += 1;
    }
    blocks
}

/// Returns the interval at which flows are probed, in ns.
fn interval(run: &RunData) -> f64 {
    let step = |series: &FlowSeries| series.t_ns.get(2).zip(series.t_ns.get(1)).map(|(later, earlier)| later - earlier);
    run.rates.iter().filter_map(step).fold(0.0, f64::max)
}

/// Returns the goodput of a block after the change at `at`.
fn after(run: &RunData, blocks: &BTreeMap<u32, Endless>, block: u32, at: f64) -> Option<Settling> {
    let changes = blocks.values().flat_map(|b| [b.start_ns, b.stop_ns]).filter(|t| at < *t);
    let until = changes.fold(run.totals.end_ns, f64::min);
    let of_block = |series: &&FlowSeries| run.flows.iter().any(|f| f.id == series.flow && f.block == block);
    let series: Vec<&FlowSeries> = run.rates.iter().filter(of_block).collect();
    let width = interval(run);
    if series.len() != blocks[&block].flows || width <= 0.0 {
        return None;
    }
    let n = ((until - at) / width + 1e-9) as usize;
    let delivered = |i: usize| {
        let at = at + i as f64 * width;
        series.iter().filter_map(|s| value_at(&s.t_ns, &s.delivered_bytes, at)).sum::<f64>()
    };
    let edges: Vec<f64> = (0..=n).map(delivered).collect();
    let bps: Vec<f64> = edges.windows(2).map(|pair| (pair[1] - pair[0]) * 8e9 / width).collect();
    let active: usize = blocks.values().filter(|b| b.start_ns <= at && at < b.stop_ns).map(|b| b.flows).sum();
    let fair = one_port_bps(run)? * blocks[&block].flows as f64 / active as f64;
    let (bins, level) = settled(&bps, fair)?;
    Some(Settling { time_ns: bins.map_or(f64::INFINITY, |bins| bins as f64 * width), level: level / fair })
}

/// Returns the number of bins until goodput had settled, `None` if it had not, and its level; `None` if there are too
/// few bins.
fn settled(bps: &[f64], fair: f64) -> Option<(Option<usize>, f64)> {
    let from = bps.len().checked_sub(bps.len() / LAST).filter(|from| *from < bps.len())?;
    let level = stats::mean(&bps[from..])?;
    let tolerance = TOLERANCE * level.max(fair);
    let last_outside = bps.iter().rposition(|x| tolerance < (x - level).abs());
    let bins = last_outside.map_or(0, |last| last + 1);
    Some(((bins <= from).then_some(bins), level))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The last two of eight bins are the level, 50; 10 % of it are 5.
    #[test]
    fn goodput_has_settled_when_it_stays() {
        assert_eq!(settled(&[100.0, 80.0, 56.0, 54.0, 46.0, 50.0, 49.0, 51.0], 50.0), Some((Some(3), 50.0)));
        assert_eq!(settled(&[50.0; 8], 50.0), Some((Some(0), 50.0)));
        // It leaves the level again: it has not settled before that.
        assert_eq!(settled(&[50.0, 50.0, 50.0, 90.0, 50.0, 50.0, 50.0, 50.0], 50.0), Some((Some(4), 50.0)));
        // The two bins of the level are themselves too far from it.
        assert_eq!(settled(&[50.0, 50.0, 50.0, 50.0, 50.0, 50.0, 30.0, 70.0], 50.0), Some((None, 50.0)));
        assert_eq!(settled(&[50.0; 3], 50.0), None);
    }

    /// The level is 2, and 10 % of a fair share of 50 are 5.
    #[test]
    fn of_a_level_near_zero_a_fair_share_counts() {
        assert_eq!(settled(&[50.0, 8.0, 6.0, 0.0, 5.0, 0.0, 4.0, 0.0], 50.0), Some((Some(2), 2.0)));
    }
}
