//! The critical path of an iteration of a job: the computations and messages that waited for each other and ended last.
//!
//! [`Milestones`] is a sink that notes when flows and tasks of a run started and ended. [`Milestones::critical_path`] goes back from the part
//! that ended last: from each flow or task to the one for which it waited last. So its stages follow each other without gaps, and
//! their times add up to that of the iteration.

use std::collections::HashMap;

use fairrate_sim::{
    Activity, Dependency, FlowId, FlowOutcome, JobSpec, Milestone, NodeId, OperationKind, PfcEvent, PortSample,
    RateSample, SimConfig, Sink, TaskId, TaskOutcome,
};
use fairrate_units::Time;

/// The event of a stage of a critical path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doing {
    /// A rank computes.
    Computes,
    /// A message is on its way, from its start to the arrival of its last byte.
    Moves(FlowId),
    /// A message leaves its rank, from its start until its last byte is at the NIC: the next one of its stream waits for that.
    Leaves(FlowId),
    /// A rank adds up what it has received.
    Adds,
    /// The job has not begun.
    Waits,
}

/// A stage of a critical path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stage {
    /// The event.
    pub doing: Doing,
    /// The rank; of a message, that of the sender.
    pub rank: u32,
    /// The operation: a position in [`JobSpec::operations`].
    pub operation: u32,
    /// Start.
    pub start: Time,
    /// End.
    pub end: Time,
}

/// The times of the flows and tasks of a run.
pub struct Milestones {
    /// Start and arrival of each flow.
    flows: Vec<Option<(Time, Time)>>,
    /// Start and end of each task.
    tasks: Vec<Option<(Time, Time)>>,
}

impl Milestones {
    /// Returns a sink that has noted nothing.
    #[must_use]
    pub fn new(config: &SimConfig) -> Self {
        Self { flows: vec![None; config.flows.len()], tasks: vec![None; config.tasks.len()] }
    }

    /// Returns the critical path of an iteration of the job at a position of [`SimConfig::jobs`], from its start to its end. `None` if there is
    /// no such iteration, or if it was not complete.
    #[must_use]
    pub fn critical_path(&self, config: &SimConfig, job: usize, iteration: u32) -> Option<Vec<Stage>> {
        let spec = config.jobs.get(job)?;
        let end_of = |iteration: u32| -> Option<(Time, TaskId)> {
            let of_iteration =
                tasks(spec).filter(|&(part, _)| spec.operations[part_operation(spec, part)].iteration == iteration);
            let ends = of_iteration.map(|(_, task)| Some((self.tasks[task.index()]?.1, task)));
            let ends = ends.collect::<Option<Vec<_>>>()?;
            ends.into_iter().rev().max_by_key(|&(end, _)| end)
        };
        let begin = iteration.checked_sub(1).map_or(Some(spec.start), |before| Some(end_of(before)?.0))?;
        let (end, last) = end_of(iteration)?;
        let mut walk = Walk::new(self, config, spec, end);
        walk.back_from(last.into(), Milestone::Arrived, begin)?;
        let mut stages = walk.stages;
        stages.reverse();
        if let Some(first) = stages.first_mut() {
            first.start = first.start.max(begin);
        }
        Some(stages)
    }
}

impl Sink for Milestones {
    fn flow(&mut self, outcome: &FlowOutcome) {
        if let (Some(flow), Some(fct)) = (self.flows.get_mut(outcome.flow.index()), outcome.fct) {
            *flow = Some((outcome.start, outcome.start + fct));
        }
    }

    fn task(&mut self, outcome: &TaskOutcome) {
        self.tasks[outcome.task.index()] = Some((outcome.start, outcome.end));
    }

    fn port(&mut self, _: &PortSample) {}
    fn rate(&mut self, _: &RateSample) {}
    fn pfc(&mut self, _: &PfcEvent) {}
}

/// Returns the tasks of a job, each with the position of its part.
fn tasks(spec: &JobSpec) -> impl Iterator<Item = (usize, TaskId)> + '_ {
    let n_tasks = |part: usize| match spec.operations[part_operation(spec, part)].kind {
        OperationKind::Compute => 1,
        OperationKind::Collective(_) | OperationKind::Message => 2,
    };
    let parts = (0..spec.parts.len()).flat_map(move |part| std::iter::repeat_n(part, n_tasks(part)));
    parts.zip((spec.first_task..).map(TaskId))
}

fn part_operation(spec: &JobSpec, part: usize) -> usize {
    spec.parts[part].operation as usize
}

/// A walk back along what was waited for.
struct Walk<'a> {
    times: &'a Milestones,
    config: &'a SimConfig,
    part_of: HashMap<TaskId, usize>,
    rank_of: HashMap<NodeId, u32>,
    spec: &'a JobSpec,
    waits: Waits,
    now: Time,
    operation: u32,
    stages: Vec<Stage>,
}

impl<'a> Walk<'a> {
    fn new(times: &'a Milestones, config: &'a SimConfig, spec: &'a JobSpec, end: Time) -> Self {
        Self {
            times,
            config,
            part_of: tasks(spec).map(|(part, task)| (task, part)).collect(),
            rank_of: spec.ranks.iter().copied().zip(0..).collect(),
            spec,
            waits: Waits::new(config),
            now: end,
            operation: 0,
            stages: Vec::new(),
        }
    }

    /// Adds the stages from `begin` on, the last one first; `activity` reached the milestone at the present time.
    fn back_from(&mut self, activity: Activity, on: Milestone, begin: Time) -> Option<()> {
        let (mut activity, mut on) = (activity, on);
        loop {
            let rank = self.stage(activity, on)?;
            let next = self.last_before(activity);
            let Some(&Dependency { before, on: milestone, delay, .. }) = next else {
                self.add(Doing::Waits, rank, begin);
                return Some(());
            };
            if begin < self.now {
                self.add(Doing::Adds, rank, self.now.saturating_sub(delay));
            }
            if self.now <= begin {
                return Some(());
            }
            (activity, on) = (before, milestone);
        }
    }

    /// Adds the stage of a flow or task that ends now; returns the rank at which it started.
    fn stage(&mut self, activity: Activity, on: Milestone) -> Option<u32> {
        if let Some(task) = activity.task() {
            let part = &self.spec.parts[*self.part_of.get(&task)?];
            self.operation = part.operation;
            self.add(Doing::Computes, part.rank, self.times.tasks[task.index()]?.0);
            return Some(part.rank);
        }
        let flow = activity.flow()?;
        let rank = *self.rank_of.get(&self.config.topology.nic(self.config.flows[flow.index()].src))?;
        let doing = if on == Milestone::Sent { Doing::Leaves(flow) } else { Doing::Moves(flow) };
        self.add(doing, rank, self.times.flows[flow.index()]?.0);
        Some(rank)
    }

    /// Goes back to `start`; a stage of no time is none.
    fn add(&mut self, doing: Doing, rank: u32, start: Time) {
        if start < self.now {
            self.stages.push(Stage { doing, rank, operation: self.operation, start, end: self.now });
            self.now = start;
        }
    }

    /// Returns the dependency that was met last, at the present time.
    fn last_before(&self, activity: Activity) -> Option<&'a Dependency> {
        let known = |dependency: &Dependency| match (dependency.before.flow(), dependency.on) {
            (Some(flow), Milestone::Arrived) => Some(self.times.flows[flow.index()]?.1 + dependency.delay),
            (Some(_), _) => None,
            (None, _) => Some(self.times.tasks[dependency.before.task()?.index()]?.1 + dependency.delay),
        };
        let all = || self.waits.of(self.config, activity);
        all().find(|dependency| known(dependency) == Some(self.now)).or_else(|| {
            // The outcomes of flows do not have the time at which the last byte was sent: here it was the last to come.
            let start = |dependency: &&Dependency| Some(self.times.flows[dependency.before.flow()?.index()]?.0);
            all().filter(|dependency| dependency.on != Milestone::Arrived).max_by_key(start)
        })
    }
}

/// The dependencies of a run by what waits.
struct Waits {
    n_flows: usize,
    /// For each flow and then each task, the position of its first dependency in `order`; one more at the end.
    first: Vec<u32>,
    order: Vec<u32>,
}

impl Waits {
    fn new(config: &SimConfig) -> Self {
        let n_flows = config.flows.len();
        let mut first = vec![0_u32; n_flows + config.tasks.len() + 1];
        let place = |activity: Activity| place(activity, n_flows);
        for dependency in &config.dependencies {
            first[place(dependency.waiter) + 1] += 1;
        }
        for at in 1..first.len() {
            first[at] += first[at - 1];
        }
        let (mut next, mut order) = (first.clone(), vec![0; config.dependencies.len()]);
        for (at, dependency) in (0..).zip(&config.dependencies) {
            let to = &mut next[place(dependency.waiter)];
            order[*to as usize] = at;
            *to += 1;
        }
        Self { n_flows, first, order }
    }

    fn of<'a>(&self, config: &'a SimConfig, waiter: Activity) -> impl Iterator<Item = &'a Dependency> {
        let at = place(waiter, self.n_flows);
        let range = self.first[at] as usize..self.first[at + 1] as usize;
        self.order[range].iter().map(move |&at| &config.dependencies[at as usize])
    }
}

fn place(activity: Activity, n_flows: usize) -> usize {
    activity.flow().map_or_else(|| n_flows + activity.task().map_or(0, TaskId::index), FlowId::index)
}
