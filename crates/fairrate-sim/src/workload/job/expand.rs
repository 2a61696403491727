//! The messages and tasks of a job.

use fairrate_units::{Bytes, Time};

use super::super::collective::{Graph, Origin};
use super::super::{Pace, StepLatency, Workload, few_enough, host};
use super::{Job, Operation, PartId, Work};
use crate::config::{Dependency, Milestone, TaskSpec};
use crate::ids::{NodeId, TaskId};
use crate::input_error::FieldError;
use crate::jobs::{JobSpec, OperationKind, OperationSpec, PartSpec};
use crate::topology::Topology;

/// Streams of a process group: most channels of a collective, with three streams in each of two trees.
const STREAMS: u32 = 6 * super::super::MAX_CHANNELS;

impl Job {
    /// Returns the messages and tasks of the job, the ranks of which are these `hosts` and compute at this `pace`.
    ///
    /// # Errors
    /// Names the hosts if they are none, if one is named twice, or if their number is not that of ranks, and the
    /// collective that its group cannot do.
    pub fn generate(
        &self,
        topology: &Topology,
        hosts: &[NodeId],
        group: u32,
        start: Time,
        pace: &Pace,
    ) -> Result<Workload, FieldError> {
        let hosts = self.check_hosts(topology, hosts)?;
        few_enough("bytes", self.expected_flows())?;
        let mut out = Workload::default();
        let (all, tasks) = self.tasks(&hosts, start, pace);
        (out.tasks, out.dependencies) = (all, Vec::with_capacity(self.waits.len()));
        for &(part, before) in &self.waits {
            let (waiter, before) = (tasks.first[part.0 as usize].into(), tasks.last(before).into());
            out.dependencies.push(Dependency { waiter, before, on: Milestone::Arrived, delay: Time::ZERO });
        }
        let alpha = pace.alpha;
        for operation in &self.operations {
            let of_part = |at: usize| {
                let part = PartId(operation.first_part.0 + at as u32);
                (tasks.first[part.0 as usize], tasks.last(part))
            };
            match &operation.work {
                Work::Compute(_) => {}
                Work::Collective { group: at, collective } => {
                    let process = &self.groups[*at];
                    if 1 < process.ranks.len() {
                        collective.check(process.ranks.len()).map_err(|e| self.of_operation(operation, e))?;
                    }
                    let ranks: Vec<NodeId> = process.ranks.iter().map(|&rank| hosts[rank as usize]).collect();
                    let origin = Origin { group, start, first_stream: *at as u32 * STREAMS, alpha };
                    add(&mut out, (topology, &ranks), origin, of_part, |graph| {
                        if 1 < graph.n() && Bytes::ZERO < collective.bytes {
                            collective.add_messages(graph);
                        }
                    });
                }
                Work::Message(bytes) => {
                    let first = operation.first_part.0 as usize;
                    let ranks = [0, 1].map(|at| hosts[self.parts[first + at].rank as usize]);
                    let origin = Origin { group, start, first_stream: self.groups.len() as u32 * STREAMS, alpha };
                    add(&mut out, (topology, &ranks), origin, of_part, |graph| {
                        graph.send(0, (0, 1), bytes.as_u64().max(1), &[]);
                    });
                }
            }
        }
        out.jobs.push(self.spec(hosts, group, start, alpha));
        Ok(out.sort())
    }

    /// Returns the approximate number of messages.
    pub fn expected_flows(&self) -> f64 {
        let messages = |operation: &Operation| match &operation.work {
            Work::Compute(_) => 0.0,
            Work::Message(_) => 1.0,
            Work::Collective { group, collective } => collective.messages(self.groups[*group].ranks.len()),
        };
        self.operations.iter().map(messages).sum()
    }

    fn check_hosts(&self, topology: &Topology, hosts: &[NodeId]) -> Result<Vec<NodeId>, FieldError> {
        if hosts.len() != self.n_ranks as usize {
            let message = format!("the job has {} ranks, and there are {} hosts", self.n_ranks, hosts.len());
            return Err(FieldError::new("hosts", message).help("name a host for each rank"));
        }
        let mut seen = std::collections::HashSet::new();
        if let Some(&twice) = hosts.iter().find(|&&host| !seen.insert(host)) {
            let message = format!("host `{}` is two ranks", topology.nodes[twice.index()].name);
            return Err(FieldError::new("hosts", message).help("name every host once: a rank has a host of its own"));
        }
        hosts.iter().map(|&node| host("hosts", topology, node)).collect()
    }

    /// Returns the error of a collective with the name of its operation.
    fn of_operation(&self, operation: &Operation, error: FieldError) -> FieldError {
        FieldError { message: format!("{}: {}", self.names[operation.name as usize], error.message), ..error }
    }

    fn tasks(&self, hosts: &[NodeId], start: Time, pace: &Pace) -> (Vec<TaskSpec>, Tasks) {
        let (mut all, mut tasks) = (Vec::with_capacity(2 * self.parts.len()), Tasks::default());
        for (number, part) in (0..).zip(&self.parts) {
            tasks.first.push(TaskId(all.len() as u32));
            let host = hosts[part.rank as usize];
            let duration = match self.operations[part.operation as usize].work {
                Work::Compute(usual) => Some(pace.time(usual, host, number)),
                _ => None,
            };
            tasks.is_one.push(duration.is_some());
            match duration {
                Some(duration) => all.push(TaskSpec { host, start, duration }),
                None => all.extend([TaskSpec { host, start, duration: Time::ZERO }; 2]),
            }
        }
        (all, tasks)
    }

    /// Returns the description of the job for its results.
    fn spec(&self, ranks: Vec<NodeId>, group: u32, start: Time, alpha: StepLatency) -> JobSpec {
        let operation = |operation: &Operation| {
            let (kind, process_group, bytes) = match &operation.work {
                Work::Compute(_) => (OperationKind::Compute, None, Bytes::ZERO),
                Work::Message(bytes) => (OperationKind::Message, None, *bytes),
                Work::Collective { group, collective } => {
                    (OperationKind::Collective(collective.op), Some(*group as u32), collective.bytes)
                }
            };
            let &Operation { name, iteration, .. } = operation;
            OperationSpec { kind, name, iteration, process_group, bytes }
        };
        let part = |(at, part): (u32, &super::Part)| {
            let operation = &self.operations[part.operation as usize];
            let receives = matches!(operation.work, Work::Message(_)) && operation.first_part.0 < at;
            PartSpec { operation: part.operation, rank: part.rank, receives }
        };
        JobSpec {
            group,
            ranks,
            start,
            alpha,
            iterations: self.iterations,
            groups: self.groups.clone(),
            names: self.names.clone(),
            operations: self.operations.iter().map(operation).collect(),
            parts: (0..).zip(&self.parts).map(part).collect(),
            first_task: 0,
        }
    }
}

/// The tasks of all parts.
#[derive(Default)]
struct Tasks {
    /// For each part, its first task, and `true` if it is the only one.
    first: Vec<TaskId>,
    is_one: Vec<bool>,
}

impl Tasks {
    /// Returns the last task of a part.
    fn last(&self, part: PartId) -> TaskId {
        let at = part.0 as usize;
        TaskId(self.first[at].0 + u32::from(!self.is_one[at]))
    }
}

/// Adds the messages of an operation between `ranks`, which `send` adds to a graph: they wait for the first task of
/// their sender's part, and its last task waits for them.
fn add(
    out: &mut Workload,
    (topology, ranks): (&Topology, &[NodeId]),
    origin: Origin,
    of_part: impl Fn(usize) -> (TaskId, TaskId),
    send: impl FnOnce(&mut Graph<'_>),
) {
    let mut graph = Graph::new(out, topology, ranks, origin);
    (0..ranks.len()).for_each(|at| graph.wait(at, of_part(at).0));
    send(&mut graph);
    for at in 0..ranks.len() {
        let (first, last) = of_part(at);
        graph.end(at, last);
        graph.wait_task(last, first);
    }
}
