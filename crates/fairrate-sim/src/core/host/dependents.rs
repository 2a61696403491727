//! Flows and tasks that start when others have come so far.

use fairrate_units::Time;

use super::Hosts;
use crate::config::{Activity, Milestone, SimConfig, Successor, n_dependencies};
use crate::core::run::Run;
use crate::core::world::World;
use crate::engine::EventKind;
use crate::ids::{FlowId, TaskId};
use crate::output::{Observation, TaskOutcome};

/// The dependencies of flows that a part's hosts send and of tasks that they compute, as far as they are not met. The
/// lists have the flows and then the tasks.
pub(super) struct Dependents {
    n_flows: usize,
    /// For each activity, the number of its dependencies that are not met.
    left: Vec<u32>,
    /// For each activity, the latest time at which one of those that are met allows it to start, in picoseconds.
    ready_ps: Vec<u64>,
    /// For each activity, a bit for each milestone that it has reached here.
    reached: Vec<u8>,
    /// For each flow, the time at which all its data had been handed to the NIC, in picoseconds; `u64::MAX`: it has
    /// not.
    sent_ps: Vec<u64>,
}

impl Dependents {
    /// Returns the dependencies of a run that has not begun; `None` if it has none.
    pub(super) fn new(config: &SimConfig) -> Option<Box<Self>> {
        if config.dependencies.is_empty() {
            return None;
        }
        let n_flows = config.flows.len();
        let left = n_dependencies((n_flows, config.tasks.len()), &config.dependencies);
        let n = left.len();
        Some(Box::new(Self {
            n_flows,
            left,
            ready_ps: vec![0; n],
            reached: vec![0; n],
            sent_ps: vec![u64::MAX; n_flows],
        }))
    }
}

impl Hosts {
    /// Schedules the ends of this part's `tasks` that wait for nothing.
    pub(in crate::core) fn schedule_tasks(&mut self, w: &mut World, tasks: &[TaskId]) {
        self.finite_left += tasks.len() as u64;
        let n_flows = w.run.config.flows.len();
        let waits = |task: TaskId| self.dependents.as_ref().is_some_and(|all| 0 < all.left[n_flows + task.index()]);
        for &task in tasks.iter().filter(|&&task| !waits(task)) {
            let spec = &w.run.config.tasks[task.index()];
            w.clock.schedule(
                spec.start.saturating_add(spec.duration).as_ps(),
                EventKind::FlowStart,
                Activity::from(task),
            );
        }
    }

    /// Handles the time at which a flow starts or a task ends.
    pub(in crate::core) fn on_start(&mut self, w: &mut World, activity: Activity) {
        match activity.task() {
            None => activity.flow().into_iter().for_each(|id| self.on_flow_start(w, id)),
            Some(task) => {
                self.end_task(w, task);
                self.release(w, activity, Milestone::Arrived);
                self.run_deferred(w);
            }
        }
    }

    /// Notes that a flow has reached a milestone: starts the flows and tasks that have waited for nothing else.
    pub(super) fn note_milestone(&mut self, w: &mut World, id: FlowId, milestone: Milestone) {
        let Some(dependents) = &mut self.dependents else { return };
        let Some(reached) = dependents.reached[..dependents.n_flows].get_mut(id.index()) else { return };
        let bit = 1 << milestone as u8;
        if *reached & bit != 0 {
            return;
        }
        *reached |= bit;
        if milestone == Milestone::Sent {
            dependents.sent_ps[id.index()] = w.clock.now_ps;
        }
        self.release(w, id.into(), milestone);
    }

    /// Returns the time at which all data of flow `id` had been handed to the NIC, in picoseconds, if it has and the
    /// run has dependencies.
    pub(super) fn sent_ps(&self, id: FlowId) -> Option<u64> {
        self.dependents.as_ref()?.sent_ps.get(id.index()).copied().filter(|&at| at < u64::MAX)
    }

    /// Starts the flows and tasks that have waited for nothing but `activity` to reach `milestone`.
    fn release(&mut self, w: &mut World, activity: Activity, milestone: Milestone) {
        let now_ps = w.clock.now_ps;
        let mut ended: Vec<TaskId> = Vec::new();
        let mut next = Some((activity, milestone));
        while let Some((activity, milestone)) = next {
            let Some(dependents) = &mut self.dependents else { return };
            for &Successor { waiter, delay_ps, .. } in
                w.run.successors.of(activity).iter().filter(|successor| successor.on == milestone)
            {
                let at = waiter.position(dependents.n_flows);
                let (left, ready_ps) = (&mut dependents.left[at], &mut dependents.ready_ps[at]);
                *ready_ps = now_ps.saturating_add(delay_ps).max(*ready_ps);
                *left -= 1;
                if *left > 0 {
                    continue;
                }
                let due_ps = w.run.config.due_ps(waiter, *ready_ps);
                match (waiter.flow(), waiter.task()) {
                    // Not by an event, which would be before its cause in the order of events.
                    (Some(flow), _) if due_ps == now_ps => self.deferred.start(flow, w.run.flow(flow).src_host),
                    (None, Some(task)) if due_ps == now_ps => ended.push(task),
                    _ => w.clock.schedule(due_ps, EventKind::FlowStart, waiter),
                }
            }
            next = ended.pop().map(|task| {
                self.end_task(w, task);
                (task.into(), Milestone::Arrived)
            });
        }
    }

    /// Notes that a task ends now.
    fn end_task(&mut self, w: &mut World, task: TaskId) {
        if let Some(dependents) = &mut self.dependents {
            let n_flows = dependents.n_flows;
            dependents.reached[n_flows + task.index()] |= 1 << Milestone::Arrived as u8;
        }
        self.finite_left -= 1;
        self.last_progress_ps = w.clock.now_ps;
        let end = w.clock.now();
        let start = Time::from_ps(end.as_ps() - w.run.config.tasks[task.index()].duration.as_ps());
        w.observed.add(Observation::Task(TaskOutcome { task, start, end }));
    }

    /// Returns the dependencies of flow `id` that are not met, each as a flow or task and its milestone, as far as this
    /// part sees them.
    pub(in crate::core) fn waits_for(&self, run: &Run, id: FlowId) -> Vec<(Activity, Milestone)> {
        let Some(dependents) = &self.dependents else { return Vec::new() };
        let of_flow = run.config.dependencies.iter().filter(|dependency| dependency.waiter == id.into());
        let unmet =
            of_flow.filter(|d| dependents.reached[d.before.position(dependents.n_flows)] & (1 << d.on as u8) == 0);
        unmet.map(|dependency| (dependency.before, dependency.on)).collect()
    }

    /// Returns the flows sent from here that wait for others, in order.
    pub(in crate::core) fn waiting(&self) -> Vec<FlowId> {
        let Some(dependents) = &self.dependents else { return Vec::new() };
        let flows = (0..).map(FlowId).zip(&dependents.left[..dependents.n_flows]);
        flows.filter(|&(id, &left)| 0 < left && self.sending.has(id)).map(|(id, _)| id).collect()
    }
}
