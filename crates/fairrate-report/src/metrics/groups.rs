//! The shares of traffic blocks beside each other.

use fairrate_results::GroupShare;
use serde::Serialize;

use super::settling::{self, Settling};
use crate::model::{RunData, block_name};
use crate::stats;

/// The share of a traffic block beside others. Over several seeds, everything is the mean.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct GroupMetrics {
    /// Number of the block, from 0.
    pub block: u32,
    /// Its name, or `traffic 1` for the second one if it has none.
    pub name: String,
    /// The algorithm of its flows.
    pub cc: String,
    /// Their transport, as `tcp`.
    pub transport: String,
    /// Number of its flows that have started.
    pub flows: u64,
    /// Payload bits delivered per second of the measuring window.
    pub goodput_bps: f64,
    /// Its part of the goodput of all blocks; `None` if nothing was delivered.
    pub share: Option<f64>,
    /// Goodput of a flow over that of a flow of all blocks together, on average; `None` if nothing was delivered, or if
    /// one block is of endless flows and another is not.
    pub fair_share: Option<f64>,
    /// Goodput over what the goodput of all other blocks leaves of the rate of the probed port; `None` unless one port
    /// is probed.
    pub rest: Option<f64>,
    /// Goodput after another block of endless flows came; `None` if none came.
    pub came: Option<Settling>,
    /// Goodput after another block of endless flows went; `None` if none went.
    pub went: Option<Settling>,
    /// Jain index of its endless flows; `None` if there are fewer than two.
    pub jain: Option<f64>,
    /// Payload bytes sent again in the whole run.
    pub retransmitted_bytes: f64,
    /// Data packets dropped in the whole run.
    pub drops: f64,
    /// Data packets that arrived with an ECN mark in the whole run.
    pub marked: f64,
}

/// Returns what each traffic block of `runs` got; nothing if there is one.
pub(super) fn of(runs: &[RunData]) -> Vec<GroupMetrics> {
    let Some(first) = runs.first() else { return Vec::new() };
    let all = |run: &RunData| run.measured.groups.iter().map(|group| group.goodput_bytes).sum::<u64>() as f64;
    let group = |share: &GroupShare| {
        let same = |run: &RunData| run.measured.groups.iter().find(|other| other.group == share.group).cloned();
        let mean = |of: &dyn Fn(&RunData, &GroupShare) -> Option<f64>| {
            let values: Vec<f64> = runs.iter().filter_map(|run| of(run, &same(run)?)).collect();
            stats::mean(&values)
        };
        let seconds = |run: &RunData| (run.measured.until_ns - run.measured.from_ns) as f64 / 1e9;
        let part = |run: &RunData, group: &GroupShare| {
            let all = all(run);
            (0.0 < all).then(|| group.goodput_bytes as f64 / all)
        };
        let n_flows = |run: &RunData| run.measured.groups.iter().map(|group| group.flows).sum::<u64>() as f64;
        GroupMetrics {
            block: share.group,
            name: block_name(&first.blocks, share.group),
            cc: share.cc.clone(),
            transport: share.transport.clone(),
            flows: share.flows,
            goodput_bps: mean(&|run, group| {
                let seconds = seconds(run);
                Some(if 0.0 < seconds { group.goodput_bytes as f64 * 8.0 / seconds } else { f64::NAN })
            })
            .unwrap_or(0.0),
            share: mean(&part),
            fair_share: mean(&|run, group| {
                let share = part(run, group)? * n_flows(run) / group.flows as f64;
                Some(share).filter(|_| 0 < group.flows && !is_mixed(run))
            }),
            rest: mean(&|run, group| {
                let others_bps = (all(run) - group.goodput_bytes as f64) * 8.0 / seconds(run);
                let left_bps = one_port_bps(run)? - others_bps;
                (0.0 < left_bps).then(|| group.goodput_bytes as f64 * 8.0 / seconds(run) / left_bps)
            }),
            came: settling::mean(runs.iter().filter_map(|run| settling::came(run, share.group))),
            went: settling::mean(runs.iter().filter_map(|run| settling::went(run, share.group))),
            jain: mean(&|_, group| group.jain),
            retransmitted_bytes: mean(&|_, group| Some(group.retransmitted_bytes as f64)).unwrap_or(0.0),
            drops: mean(&|_, group| Some(group.drops as f64)).unwrap_or(0.0),
            marked: mean(&|_, group| Some(group.marked as f64)).unwrap_or(0.0),
        }
    };
    first.measured.groups.iter().map(group).collect()
}

/// Returns `true` if some flows of a run are endless and others are not.
fn is_mixed(run: &RunData) -> bool {
    run.flows.iter().any(|flow| flow.bytes.is_none()) && run.flows.iter().any(|flow| flow.bytes.is_some())
}

/// Returns the rate of the probed port in bit/s; `None` unless exactly one is probed.
pub(super) fn one_port_bps(run: &RunData) -> Option<f64> {
    let mut links = run.links();
    let port = links.next()?;
    port.capacity_bps.filter(|_| links.next().is_none())
}
