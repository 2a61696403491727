//! The times of a job's operations and iterations, from the outcomes of its tasks.

use std::collections::{BTreeMap, BTreeSet};

use fairrate_units::{Bytes, Time};

use crate::collectives::CollectiveSpec;
use crate::config::SimConfig;
use crate::ids::{NodeId, TaskId};
use crate::output::TaskOutcome;
use crate::workload::{Op, StepLatency};

/// A process group of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessGroup {
    /// Its name: the dimension and a number, as `tp0`.
    pub name: String,
    /// Its ranks, in their order in the group.
    pub ranks: Vec<u32>,
}

/// The kind of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OperationKind {
    /// A rank computes.
    Compute,
    /// The ranks of a process group do a collective operation.
    Collective(Op),
    /// A rank sends a message to another one. Its first part is the sender's, the second one the receiver's.
    Message,
}

impl OperationKind {
    /// Returns the name: `compute`, the collective operation as in scenarios, or `message`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Compute => "compute",
            Self::Collective(op) => op.name(),
            Self::Message => "message",
        }
    }
}

/// An operation of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OperationSpec {
    /// Its kind.
    pub kind: OperationKind,
    /// Its name: a position in [`JobSpec::names`].
    pub name: u32,
    /// The iteration that it belongs to.
    pub iteration: u32,
    /// The process group: a position in [`JobSpec::groups`]. A computation and a message have none.
    pub process_group: Option<u32>,
    /// Bytes as nccl-tests count them; of a computation, zero.
    pub bytes: Bytes,
}

/// The part of a rank in an operation. A computation is one task, any other part two of no duration: its start and its
/// end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartSpec {
    /// The operation: a position in [`JobSpec::operations`].
    pub operation: u32,
    /// The rank.
    pub rank: u32,
    /// `true` if it is the receiver's part of a message.
    pub receives: bool,
}

/// A job of a run: operations of ranks that wait for each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobSpec {
    /// The traffic block.
    pub group: u32,
    /// The host of each rank.
    pub ranks: Vec<NodeId>,
    /// Start of the first iteration.
    pub start: Time,
    /// The latency of each step of communication.
    pub alpha: StepLatency,
    /// Number of iterations.
    pub iterations: u32,
    /// The process groups.
    pub groups: Vec<ProcessGroup>,
    /// The names of operations.
    pub names: Vec<String>,
    /// The operations.
    pub operations: Vec<OperationSpec>,
    /// The parts of ranks in them.
    pub parts: Vec<PartSpec>,
    /// The first task; those of all parts follow in order.
    pub first_task: u32,
}

impl JobSpec {
    /// Returns the name of the kind of a part: `compute`, the operation as in scenarios, `send` or `receive`.
    pub fn kind_name(&self, part: usize) -> &'static str {
        match self.operations[self.parts[part].operation as usize].kind {
            OperationKind::Compute => "compute",
            OperationKind::Collective(op) => op.name(),
            OperationKind::Message if self.parts[part].receives => "receive",
            OperationKind::Message => "send",
        }
    }

    /// Returns the numbers of the tasks of all parts.
    pub fn tasks(&self) -> std::ops::Range<u32> {
        let n: u32 = (0..self.parts.len()).map(|part| self.n_tasks(part)).sum();
        self.first_task..self.first_task + n
    }

    /// Returns the number of tasks of a part: its start and its end, or a computation, which is one.
    fn n_tasks(&self, part: usize) -> u32 {
        if self.kind(part) == OperationKind::Compute { 1 } else { 2 }
    }

    /// Returns the part to which a task belongs: a position in [`JobSpec::parts`]; `None` if it is of none.
    pub(crate) fn part_of(&self, task: TaskId) -> Option<usize> {
        let mut left = task.0.checked_sub(self.first_task)?;
        (0..self.parts.len()).find(|&part| {
            let n_tasks = self.n_tasks(part);
            let is_one = left < n_tasks;
            left = left.saturating_sub(n_tasks);
            is_one
        })
    }

    fn kind(&self, part: usize) -> OperationKind {
        self.operations[self.parts[part].operation as usize].kind
    }
}

/// A rank's part in an operation that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartOutcome {
    /// The job: its position in [`SimConfig::jobs`].
    pub job: usize,
    /// The part: a position in [`JobSpec::parts`].
    pub part: usize,
    /// Time at which all that it waits for had ended at the rank.
    pub start: Time,
    /// Time at which the rank had computed, or had received all that it receives and handed all that it sends to the
    /// NIC.
    pub end: Time,
}

/// Returns the traffic blocks whose flows are messages of `collectives` or `jobs`.
pub fn message_groups(collectives: &[CollectiveSpec], jobs: &[JobSpec]) -> BTreeSet<u32> {
    collectives.iter().map(|spec| spec.group).chain(jobs.iter().map(|spec| spec.group)).collect()
}

/// The times of a rank in an iteration. They add up to the time from its start to its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RankTimes {
    /// End of its last operation of the iteration before, or the start of the job.
    pub start: Time,
    /// End of its last operation.
    pub end: Time,
    /// Time in which it computes.
    pub compute: Time,
    /// Exposed communication: time in which it does not compute and takes part in a collective operation.
    pub exposed: Time,
    /// Time in which it does neither, and has a message to send or to receive: it waits for the pipeline.
    pub pipeline: Time,
    /// Time in which it does nothing of these.
    pub idle: Time,
}

/// A complete iteration of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobIteration {
    /// The job: its position in [`SimConfig::jobs`].
    pub job: usize,
    /// Number of the iteration, from 0.
    pub iteration: u32,
    /// End of the iteration before at the last rank, or the start of the job.
    pub start: Time,
    /// End at the last rank.
    pub end: Time,
    /// The times of each rank.
    pub ranks: Vec<RankTimes>,
}

/// The tasks of jobs that have ended, and the operations and iterations that are complete by them.
#[derive(Debug, Default)]
pub struct JobBook {
    jobs: Vec<State>,
}

#[derive(Debug)]
struct State {
    spec: JobSpec,
    /// For each task of the job, its part, and `true` if it is its end.
    of_task: Vec<(u32, bool)>,
    /// For each part, the time of its start once it is known.
    starts: Vec<Time>,
    /// Parts of each iteration that are left, and those that have ended.
    open: BTreeMap<u32, Open>,
    next: u32,
    /// End of the last complete iteration at each rank.
    ends: Vec<Time>,
}

#[derive(Debug, Default)]
struct Open {
    left: u64,
    /// Rank, start, end and class of each part.
    spans: Vec<(u32, Time, Time, Class)>,
}

/// The occupation of a rank, the more important first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Class {
    Compute,
    Collective,
    Message,
}

impl JobBook {
    /// Returns the jobs of a run that has not begun; `None` if there are none.
    pub fn new(config: &SimConfig) -> Option<Self> {
        let jobs: Vec<State> = config.jobs.iter().map(State::new).collect();
        (!jobs.is_empty()).then_some(Self { jobs })
    }

    /// Returns the jobs in their order.
    pub fn specs(&self) -> impl ExactSizeIterator<Item = &JobSpec> {
        self.jobs.iter().map(|job| &job.spec)
    }

    /// Notes a task that has ended; returns the part that ends with it, if it does.
    pub fn note(&mut self, outcome: &TaskOutcome) -> Option<PartOutcome> {
        let find = |(job, state): (usize, &mut State)| {
            let at = outcome.task.0.checked_sub(state.spec.first_task)? as usize;
            (at < state.of_task.len()).then_some((job, at))
        };
        let (job, at) = self.jobs.iter_mut().enumerate().find_map(find)?;
        let (part, start) = self.jobs[job].note(at, outcome)?;
        Some(PartOutcome { job, part, start, end: outcome.end })
    }

    /// Returns the iterations that have become complete since the last call, in their order.
    pub fn take_complete(&mut self) -> Vec<JobIteration> {
        let mut complete = Vec::new();
        for (job, state) in self.jobs.iter_mut().enumerate() {
            while let Some(iteration) = state.take_next(job) {
                complete.push(iteration);
            }
        }
        complete
    }
}

impl State {
    fn new(spec: &JobSpec) -> Self {
        let mut of_task = Vec::new();
        let mut open: BTreeMap<u32, Open> = BTreeMap::new();
        for (at, part) in (0..).zip(&spec.parts) {
            let operation = &spec.operations[part.operation as usize];
            if operation.kind != OperationKind::Compute {
                of_task.push((at, false));
            }
            of_task.push((at, true));
            open.entry(operation.iteration).or_default().left += 1;
        }
        let (starts, ends) = (vec![Time::ZERO; spec.parts.len()], vec![spec.start; spec.ranks.len()]);
        Self { spec: spec.clone(), of_task, starts, open, next: 0, ends }
    }

    /// Notes that task `at` of the job has ended; returns the part and its start, if the part has ended.
    fn note(&mut self, at: usize, outcome: &TaskOutcome) -> Option<(usize, Time)> {
        let (part, is_end) = self.of_task[at];
        let part = part as usize;
        if !is_end {
            self.starts[part] = outcome.end;
            return None;
        }
        let (start, class) = match self.spec.kind(part) {
            OperationKind::Compute => (outcome.start, Class::Compute),
            OperationKind::Collective(_) => (self.starts[part], Class::Collective),
            OperationKind::Message => (self.starts[part], Class::Message),
        };
        let &PartSpec { operation, rank, .. } = &self.spec.parts[part];
        let open = self.open.entry(self.spec.operations[operation as usize].iteration).or_default();
        open.left -= 1;
        open.spans.push((rank, start, outcome.end, class));
        Some((part, start))
    }

    fn take_next(&mut self, job: usize) -> Option<JobIteration> {
        if self.open.get(&self.next)?.left > 0 {
            return None;
        }
        let open = self.open.remove(&self.next)?;
        let before = self.ends.iter().copied().max().unwrap_or(self.spec.start);
        let mut spans: Vec<Vec<(Time, Time, Class)>> = vec![Vec::new(); self.ends.len()];
        open.spans.into_iter().for_each(|(rank, start, end, class)| spans[rank as usize].push((start, end, class)));
        let ranks: Vec<RankTimes> = self.ends.iter().zip(spans).map(|(&start, spans)| times(start, &spans)).collect();
        self.ends = ranks.iter().map(|rank| rank.end).collect();
        let (iteration, end) = (self.next, self.ends.iter().copied().max().unwrap_or(before));
        self.next += 1;
        Some(JobIteration { job, iteration, start: before, end, ranks })
    }
}

/// Returns the times of a rank that is free from `start` on and has these parts.
fn times(start: Time, spans: &[(Time, Time, Class)]) -> RankTimes {
    let mut changes: Vec<(Time, Class, i32)> =
        spans.iter().flat_map(|&(from, to, class)| [(from.max(start), class, 1), (to.max(start), class, -1)]).collect();
    changes.sort_by_key(|&(t, _, change)| (t, change));
    let mut times = RankTimes { start, end: start, ..RankTimes::default() };
    let mut active = [0_i32; 3];
    for (t, class, change) in changes {
        let passed = t.saturating_sub(times.end);
        let total = match active.iter().position(|&n| 0 < n) {
            Some(0) => &mut times.compute,
            Some(1) => &mut times.exposed,
            Some(_) => &mut times.pipeline,
            None => &mut times.idle,
        };
        *total = total.saturating_add(passed);
        times.end = t;
        active[class as usize] += change;
    }
    times
}

#[cfg(test)]
mod tests {
    use super::*;

    /// From 10 to 100: computing from 20 to 50, a collective from 40 to 70, a message from 60 to 90 and one of no time
    /// at 100.
    #[test]
    fn times_of_a_rank_add_up() {
        let us = Time::from_us;
        let spans = [
            (us(60), us(90), Class::Message),
            (us(20), us(50), Class::Compute),
            (us(40), us(70), Class::Collective),
            (us(100), us(100), Class::Message),
        ];
        let want =
            RankTimes { start: us(10), end: us(100), compute: us(30), exposed: us(20), pipeline: us(20), idle: us(20) };
        assert_eq!(times(us(10), &spans), want);
    }
}
