//! Dependencies between flows and tasks: a flow or a task starts when others have come so far.
//!
//! A dependency concerns one host, the one that sends the later flow or computes the later task: it learns of it
//! without a message, and results do not depend on the number of threads. The end points of a GPU are one host here.

use fairrate_units::{Bytes, Time};

use crate::config::{FlowSpec, Trigger};
use crate::ids::{FlowId, NodeId, TaskId};
use crate::topology::Topology;

/// Work of a host that sends nothing: a computation, or, if it takes no time, a moment at which several things are
/// done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskSpec {
    /// The host.
    pub host: NodeId,
    /// Earliest time at which it starts; it waits for its dependencies besides, if it has some.
    pub start: Time,
    /// Time from its start to its end.
    pub duration: Time,
}

/// A flow or a task: work that waits for other work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Activity(u32);

impl Activity {
    /// The number of the first task; flows have smaller ones. Events have room for both.
    const FIRST_TASK: u32 = 1 << 27;

    /// Returns the activity with this number among the entities of events.
    pub(crate) const fn from_entity(entity: u32) -> Self {
        Self(entity)
    }

    /// Returns the flow, if it is one.
    pub const fn flow(self) -> Option<FlowId> {
        if self.0 < Self::FIRST_TASK { Some(FlowId(self.0)) } else { None }
    }

    /// Returns the task, if it is one.
    pub const fn task(self) -> Option<TaskId> {
        if self.0 < Self::FIRST_TASK { None } else { Some(TaskId(self.0 - Self::FIRST_TASK)) }
    }

    /// Returns the position in a list of `n_flows` flows and then the tasks.
    pub(crate) fn position(self, n_flows: usize) -> usize {
        match self.task() {
            Some(task) => n_flows + task.index(),
            None => self.0 as usize,
        }
    }

    /// Returns the activity at a position in a list of `n_flows` flows and then the tasks.
    pub(crate) fn at(position: usize, n_flows: usize) -> Self {
        match position.checked_sub(n_flows) {
            Some(task) => TaskId(task as u32).into(),
            None => FlowId(position as u32).into(),
        }
    }

    /// Returns the same activity with the number of the flow or of the task changed.
    pub(crate) fn moved(self, flow: impl Fn(FlowId) -> FlowId, task: impl Fn(TaskId) -> TaskId) -> Self {
        match (self.flow(), self.task()) {
            (Some(id), _) => flow(id).into(),
            (None, id) => id.map_or(self, |id| task(id).into()),
        }
    }
}

impl From<FlowId> for Activity {
    fn from(flow: FlowId) -> Self {
        debug_assert!(flow.0 < Self::FIRST_TASK, "{flow:?} is too large for an activity");
        Self(flow.0)
    }
}

impl From<TaskId> for Activity {
    fn from(task: TaskId) -> Self {
        debug_assert!(task.0 < Self::FIRST_TASK, "{task:?} is too large for an activity");
        Self(Self::FIRST_TASK + task.0)
    }
}

impl From<Activity> for u32 {
    fn from(activity: Activity) -> Self {
        activity.0
    }
}

/// A moment in the life of a flow for which another one waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Milestone {
    /// The arrival of the last payload byte at the receiver.
    Arrived,
    /// The moment at which the sender hands its last byte to the NIC.
    Sent,
    /// The acknowledgment of the last byte at the sender.
    Acknowledged,
}

impl Milestone {
    /// All variants with their names in flow lists.
    pub const NAMES: &'static [(&'static str, Self)] =
        &[("arrived", Self::Arrived), ("sent", Self::Sent), ("acked", Self::Acknowledged)];

    /// Returns the host of `flow` that sees the milestone.
    pub fn place(self, flow: &FlowSpec) -> NodeId {
        match self {
            Self::Arrived => flow.dst,
            Self::Sent | Self::Acknowledged => flow.src,
        }
    }

    /// Returns the words for a flow that has reached it: "has ...".
    pub(crate) fn verb(self) -> &'static str {
        match self {
            Self::Arrived => "arrived",
            Self::Sent => "been sent",
            Self::Acknowledged => "been acknowledged",
        }
    }
}

/// A flow or task waits for another one. The trigger of a flow that waits is [`Trigger::Dependencies`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Dependency {
    /// The flow or task that waits.
    pub waiter: Activity,
    /// The flow or task for which it waits.
    pub before: Activity,
    /// The milestone that a flow has to reach; a task has to end, and this is [`Milestone::Arrived`].
    pub on: Milestone,
    /// Time that has to pass from then on.
    pub delay: Time,
}

/// A dependency that cannot be met.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DependencyError {
    /// The flow or task that waits.
    pub waiter: Activity,
    /// The flow or task for which it waits.
    pub before: Activity,
    /// The error, in lower case and with no final stop.
    pub message: String,
    /// A remedy.
    pub help: String,
}

/// Checks that every dependency can be met and is known to the host that sends the waiting flow or computes the waiting
/// task.
///
/// # Errors
/// Names both ends of the first dependency that is between two hosts, that is on a flow which has no such moment, or
/// that is part of a cycle.
pub fn check_dependencies(
    flows: &[FlowSpec],
    tasks: &[TaskSpec],
    dependencies: &[Dependency],
    topology: &Topology,
) -> Result<(), DependencyError> {
    let waits = |flow: &FlowSpec| flow.trigger == Trigger::Dependencies;
    if dependencies.is_empty() && !flows.iter().any(waits) {
        return Ok(());
    }
    for dependency in dependencies {
        check_one((flows, tasks), dependency, topology)?;
    }
    let n_waits = n_dependencies((flows.len(), tasks.len()), dependencies);
    if let Some((at, _)) = flows.iter().zip(&n_waits).enumerate().find(|(_, (flow, n))| waits(flow) != (0 < **n)) {
        let flow = FlowId(at as u32);
        let (does, name) = (if n_waits[at] == 0 { "has none" } else { "has another trigger" }, flows[at].name(flow));
        let message = format!("flow {name} waits for flows by its trigger or its dependencies, and {does}");
        let (waiter, help) = (flow.into(), "give it both, or none".to_owned());
        return Err(DependencyError { waiter, before: waiter, message, help });
    }
    match cycle((flows.len(), tasks.len()), dependencies) {
        None => Ok(()),
        Some(cycle) => {
            let (waiter, before) = (cycle[0], cycle[1 % cycle.len()]);
            let (first, rest) = (name(flows, waiter), cycle[1..].iter().chain([&waiter]));
            let waits: Vec<String> = rest.map(|&id| format!("waits for {}", name(flows, id))).collect();
            let message = format!("{first} {}: a cycle", waits.join(", which "));
            Err(DependencyError { waiter, before, message, help: "let one of them start at a time".to_owned() })
        }
    }
}

/// Returns an activity in words.
fn name(flows: &[FlowSpec], activity: Activity) -> String {
    match activity.flow() {
        Some(flow) => format!("flow {}", flows[flow.index()].name(flow)),
        None => format!("task {}", activity.task().map_or(0, |task| task.0)),
    }
}

fn check_one(
    (flows, tasks): (&[FlowSpec], &[TaskSpec]),
    dependency: &Dependency,
    topology: &Topology,
) -> Result<(), DependencyError> {
    let &Dependency { waiter, before, on, .. } = dependency;
    let (name, earlier_name) = (name(flows, waiter), name(flows, before));
    let host = |node: NodeId| &topology.nodes[node.index()].name;
    let error = |message: String, help: String| Err(DependencyError { waiter, before, message, help });
    if waiter == before {
        return error(format!("{name} waits for itself"), "name another one".to_owned());
    }
    let of_task = |activity: Activity| activity.task().map(|task| tasks[task.index()].host);
    let nic = |node: NodeId| topology.nic(node);
    let src = waiter.flow().map_or_else(|| of_task(waiter), |flow| Some(flows[flow.index()].src)).map(nic);
    let Some(earlier) = before.flow().map(|flow| &flows[flow.index()]) else {
        if of_task(before).map(nic) == src {
            return Ok(());
        }
        let message = format!("{name} waits for {earlier_name}, which is a task of another host");
        return error(message, "send a message from there".to_owned());
    };
    let place = on.place(earlier);
    if Some(nic(place)) != src {
        let what = match on {
            Milestone::Arrived => "arrives at",
            Milestone::Sent => "is sent by",
            Milestone::Acknowledged => "is acknowledged at",
        };
        let message = format!(
            "{name} starts at `{}` and would wait for {earlier_name}, which {what} `{}`",
            src.map_or("", |src| host(src)),
            host(place)
        );
        let id = before.flow().map_or(0, |flow| earlier.name(flow));
        let help = if Some(nic(earlier.src)) == src {
            format!("a host knows of its own flows if they are sent or acknowledged: `{id}:sent` or `{id}:acked`")
        } else if Some(nic(earlier.dst)) == src {
            format!("a host knows of flows to it that they have arrived: `{id}`")
        } else {
            "a flow waits for flows that its sender has received, or has sent itself".to_owned()
        };
        return error(message, help);
    }
    if earlier.bytes == Bytes::MAX {
        let message = format!("{name} waits for {earlier_name}, which is endless");
        return error(message, "give it a size".to_owned());
    }
    if !matches!(earlier.trigger, Trigger::Time | Trigger::Dependencies) {
        let message = format!("{name} waits for {earlier_name}, which may not start at all");
        return error(message, "wait for a flow that starts at a time, or after such a flow".to_owned());
    }
    Ok(())
}

/// Returns the activities of a cycle among some flows and tasks, each of which waits for the next one, and the last one
/// for the first.
fn cycle(n: (usize, usize), dependencies: &[Dependency]) -> Option<Vec<Activity>> {
    let graph = Successors::new(n, dependencies);
    let mut left = n_dependencies(n, dependencies);
    let all = left.len();
    let mut free: Vec<usize> = (0..all).filter(|&at| left[at] == 0).collect();
    let mut n_free = 0;
    while let Some(at) = free.pop() {
        n_free += 1;
        for &Successor { waiter, .. } in graph.at(at) {
            let at = waiter.position(n.0);
            left[at] -= 1;
            if left[at] == 0 {
                free.push(at);
            }
        }
    }
    if n_free == all {
        return None;
    }
    // Every activity that is left waits for another one that is left: going back, one comes a second time.
    let mut waits_for = vec![None; all];
    for dependency in dependencies.iter().rev().filter(|dependency| 0 < left[dependency.before.position(n.0)]) {
        waits_for[dependency.waiter.position(n.0)] = Some(dependency.before);
    }
    let mut at = Activity::at((0..all).find(|&at| 0 < left[at])?, n.0);
    let mut seen = vec![false; all];
    while !std::mem::replace(&mut seen[at.position(n.0)], true) {
        at = waits_for[at.position(n.0)]?;
    }
    let mut cycle = vec![at];
    let mut next = waits_for[at.position(n.0)]?;
    while next != at {
        cycle.push(next);
        next = waits_for[next.position(n.0)]?;
    }
    Some(cycle)
}

/// A flow or task that waits for another one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Successor {
    pub(crate) waiter: Activity,
    pub(crate) on: Milestone,
    pub(crate) delay_ps: u64,
}

/// For every flow and task, the flows and tasks that wait for it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Successors {
    n_flows: usize,
    /// For each flow, and then for each task, the position of its first successor in `all`; one more at the end.
    first: Vec<u32>,
    all: Vec<Successor>,
}

impl Successors {
    /// Returns the successors of some flows and tasks.
    pub(crate) fn new((n_flows, n_tasks): (usize, usize), dependencies: &[Dependency]) -> Self {
        if dependencies.is_empty() {
            return Self { n_flows, ..Self::default() };
        }
        let n = n_flows + n_tasks;
        let mut first = vec![0_u32; n + 1];
        for dependency in dependencies {
            first[dependency.before.position(n_flows) + 1] += 1;
        }
        for at in 0..n {
            first[at + 1] += first[at];
        }
        let mut next = first.clone();
        let none = Successor { waiter: Activity(0), on: Milestone::Arrived, delay_ps: 0 };
        let mut all = vec![none; dependencies.len()];
        for dependency in dependencies {
            let at = &mut next[dependency.before.position(n_flows)];
            let &Dependency { waiter, on, delay, .. } = dependency;
            all[*at as usize] = Successor { waiter, on, delay_ps: delay.as_ps() };
            *at += 1;
        }
        Self { n_flows, first, all }
    }

    /// Returns the flows and tasks that wait for `activity`.
    #[inline]
    pub(crate) fn of(&self, activity: Activity) -> &[Successor] {
        self.at(activity.position(self.n_flows))
    }

    /// Returns those that wait for the activity at a position.
    fn at(&self, at: usize) -> &[Successor] {
        match (self.first.get(at), self.first.get(at + 1)) {
            (Some(&from), Some(&to)) => &self.all[from as usize..to as usize],
            _ => &[],
        }
    }
}

/// Returns the number of dependencies of each of some flows, and then of each task.
pub(crate) fn n_dependencies((n_flows, n_tasks): (usize, usize), dependencies: &[Dependency]) -> Vec<u32> {
    let mut left = vec![0; n_flows + n_tasks];
    for dependency in dependencies {
        left[dependency.waiter.position(n_flows)] += 1;
    }
    left
}
