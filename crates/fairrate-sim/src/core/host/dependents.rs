//! Flows that start when others have come so far.

use super::Hosts;
use crate::config::{Milestone, SimConfig, Successor, n_dependencies};
use crate::core::run::Run;
use crate::core::world::World;
use crate::engine::EventKind;
use crate::ids::FlowId;
use crate::table::Table;

/// The dependencies of flows that a part's hosts send, as far as they are not met.
pub(super) struct Dependents {
    /// For each flow, the number of its dependencies that are not met.
    left: Table<FlowId, u32>,
    /// For each flow, the latest time at which one of those that are met allows it to start, in picoseconds.
    ready_ps: Table<FlowId, u64>,
    /// For each flow, a bit for each milestone that it has reached here.
    reached: Table<FlowId, u8>,
}

impl Dependents {
    /// Returns the dependencies of a run that has not begun; `None` if it has none.
    pub(super) fn new(config: &SimConfig) -> Option<Box<Self>> {
        if config.dependencies.is_empty() {
            return None;
        }
        let n = config.flows.len();
        let left = n_dependencies(n, &config.dependencies).into();
        Some(Box::new(Self { left, ready_ps: vec![0; n].into(), reached: vec![0; n].into() }))
    }
}

impl Hosts {
    /// Notes that a flow has reached a milestone: starts the flows that have waited for nothing else.
    pub(super) fn note_milestone(&mut self, w: &mut World, id: FlowId, milestone: Milestone) {
        let Some(dependents) = &mut self.dependents else { return };
        let Some(reached) = dependents.reached.get_mut(id) else { return };
        let bit = 1 << milestone as u8;
        if *reached & bit != 0 {
            return;
        }
        *reached |= bit;
        let now_ps = w.clock.now_ps;
        for &Successor { flow, delay_ps, .. } in w.run.successors.of(id).iter().filter(|s| s.on == milestone) {
            let (left, ready_ps) = (&mut dependents.left[flow], &mut dependents.ready_ps[flow]);
            *ready_ps = now_ps.saturating_add(delay_ps).max(*ready_ps);
            *left -= 1;
            if *left == 0 {
                let at_ps = w.run.config.flows[flow.index()].start.as_ps().max(*ready_ps);
                if at_ps == now_ps {
                    // Not by an event, which would be before its cause in the order of events.
                    self.deferred.start(flow, w.run.flow(flow).src_host);
                } else {
                    w.clock.schedule(at_ps, EventKind::FlowStart, flow);
                }
            }
        }
    }

    /// Returns the dependencies of flow `id` that are not met, each as a flow and its milestone, as far as this part
    /// sees them.
    pub(in crate::core) fn waits_for(&self, run: &Run, id: FlowId) -> Vec<(FlowId, Milestone)> {
        let Some(dependents) = &self.dependents else { return Vec::new() };
        let of_flow = run.config.dependencies.iter().filter(|dependency| dependency.flow == id);
        let unmet = of_flow.filter(|d| dependents.reached[d.before] & (1 << d.on as u8) == 0);
        unmet.map(|dependency| (dependency.before, dependency.on)).collect()
    }

    /// Returns the flows sent from here that wait for others, in order.
    pub(in crate::core) fn waiting(&self) -> Vec<FlowId> {
        let Some(dependents) = &self.dependents else { return Vec::new() };
        let waits = |&(id, &left): &(FlowId, &u32)| 0 < left && self.sending.has(id);
        dependents.left.numbered().filter(waits).map(|(id, _)| id).collect()
    }
}
