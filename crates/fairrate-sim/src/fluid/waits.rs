//! Flows and tasks that start when others have come so far.

use fairrate_units::Time;

use super::Fluid;
use crate::config::{Activity, Milestone, SimConfig, Successor, n_dependencies};
use crate::engine::EventKind;
use crate::ids::TaskId;
use crate::output::{Observation, Sink, TaskOutcome};

/// The dependencies that are not met: for each flow, and then for each task.
#[derive(Debug, Default)]
pub(super) struct Waits {
    /// Number of dependencies that are not met, and the latest time of one that is.
    left: Vec<u32>,
    ready_ps: Vec<u64>,
}

impl Waits {
    /// Returns the dependencies of a run that has not begun.
    pub(super) fn new(config: &SimConfig) -> Self {
        let left = n_dependencies((config.flows.len(), config.tasks.len()), &config.dependencies);
        Self { ready_ps: vec![0; left.len()], left }
    }

    /// Returns the number of dependencies of an activity that are not met.
    pub(super) fn n_left(&self, activity: Activity, n_flows: usize) -> usize {
        self.left[activity.position(n_flows)] as usize
    }
}

impl Fluid {
    /// Schedules the ends of the tasks that wait for nothing.
    pub(super) fn schedule_tasks(&mut self) {
        for at in 0..self.config.tasks.len() {
            if self.waits.left[self.config.flows.len() + at] == 0 {
                let spec = &self.config.tasks[at];
                let end = spec.start.saturating_add(spec.duration);
                self.schedule(end.as_ps(), EventKind::FlowStart, Activity::from(TaskId(at as u32)));
            }
        }
    }

    /// Handles the time at which a flow starts or a task ends.
    pub(super) fn on_start(&mut self, activity: Activity, sink: &mut dyn Sink) {
        activity.flow().into_iter().for_each(|id| self.on_flow_start(id));
        if let Some(task) = activity.task() {
            self.finite_left -= 1;
            let end = self.now();
            let start = Time::from_ps(end.as_ps() - self.config.tasks[task.index()].duration.as_ps());
            sink.observe(&Observation::Task(TaskOutcome { task, start, end }));
            self.release(activity, Milestone::Arrived, self.now_ps);
        }
    }

    /// Schedules the flows and tasks that wait for `activity`, which reaches `milestone` at `reached_ps`, and for
    /// nothing else.
    pub(super) fn release(&mut self, activity: Activity, milestone: Milestone, reached_ps: u64) {
        for at in 0..self.successors.of(activity).len() {
            let Successor { waiter, on, delay_ps } = self.successors.of(activity)[at];
            if on != milestone {
                continue;
            }
            let at = waiter.position(self.config.flows.len());
            let (left, ready_ps) = (&mut self.waits.left[at], &mut self.waits.ready_ps[at]);
            *ready_ps = reached_ps.saturating_add(delay_ps).max(*ready_ps);
            *left -= 1;
            if *left == 0 {
                let due_ps = self.config.due_ps(waiter, *ready_ps).max(self.now_ps);
                self.schedule(due_ps, EventKind::FlowStart, waiter);
            }
        }
    }
}
