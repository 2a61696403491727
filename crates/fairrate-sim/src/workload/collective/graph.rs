//! The messages of a collective and their dependencies, while they are made.

use std::collections::HashMap;

use fairrate_units::{Bytes, Time};

use super::super::{StepLatency, Workload, default_ports};
use super::layout::Layout;
use crate::config::{Activity, Dependency, FlowSpec, Milestone, TaskSpec, Trigger};
use crate::ids::{FlowId, NodeId, TaskId};
use crate::topology::Topology;

/// A receipt that a message needs: the message received, unless it was empty, and the time that the rank takes to
/// process it.
pub(in crate::workload) type Needed = (Option<FlowId>, Time);

/// The messages of a collective.
pub(in crate::workload) struct Graph<'a> {
    topology: &'a Topology,
    /// The host of each rank, which is the NIC of its GPU.
    ranks: &'a [NodeId],
    origin: Origin,
    iteration: u32,
    out: &'a mut Workload,
    sides: Vec<Side>,
}

/// The properties that all messages of a collective share.
#[derive(Clone, Copy)]
pub(in crate::workload) struct Origin {
    /// The traffic block.
    pub group: u32,
    /// The earliest start.
    pub start: Time,
    /// Number of the first stream, which gives ports.
    pub first_stream: u32,
    /// The latency of each step.
    pub alpha: StepLatency,
}

/// A rank.
#[derive(Default)]
struct Side {
    /// The streams in which the rank sends one message after the other, each with the end point that sends them.
    streams: HashMap<(u32, NodeId), Stream>,
    /// The messages received in this iteration that no message of this rank needs so far.
    open: Vec<FlowId>,
    /// The ends of this iteration's merged rings.
    merged: Vec<TaskId>,
    /// The end of the iteration before: messages received, and the last ones sent; or the task before.
    barrier: Vec<(Activity, Milestone)>,
    /// The time that the rank computes after that.
    compute: Time,
}

#[derive(Default)]
struct Stream {
    last: Option<FlowId>,
    /// The iteration of the last message.
    iteration: Option<u32>,
    /// Receipts that empty messages, which are not sent, have needed.
    carried: Vec<(FlowId, Time)>,
}

impl Side {
    /// Returns the end of the messages so far: all that is received, and the last ones sent.
    fn take_end(&mut self) -> Vec<(Activity, Milestone)> {
        let received = self.open.drain(..).map(|received| (received.into(), Milestone::Arrived));
        let received = received.chain(self.merged.drain(..).map(|end| (end.into(), Milestone::Arrived)));
        let mut lasts: Vec<FlowId> = self.streams.values().filter_map(|stream| stream.last).collect();
        lasts.sort_unstable();
        received.chain(lasts.into_iter().map(|sent| (sent.into(), Milestone::Sent))).collect()
    }
}

impl<'a> Graph<'a> {
    /// Returns a graph that adds the messages of a collective between `ranks` to `out`.
    pub(in crate::workload) fn new(
        out: &'a mut Workload,
        topology: &'a Topology,
        ranks: &'a [NodeId],
        origin: Origin,
    ) -> Self {
        let sides = ranks.iter().map(|_| Side::default()).collect();
        Self { topology, ranks, origin, iteration: FlowSpec::NO_ITERATION, out, sides }
    }

    /// Lets the messages of `rank` wait for `task`.
    pub(in crate::workload) fn wait(&mut self, rank: usize, task: TaskId) {
        self.sides[rank].barrier.push((task.into(), Milestone::Arrived));
    }

    /// Adds that `task` waits until `rank` has received all that it receives, and has handed all that it sends to the
    /// NIC.
    pub(in crate::workload) fn end(&mut self, rank: usize, task: TaskId) {
        let all = self.sides[rank].take_end();
        let wait = |(before, on)| Dependency { waiter: task.into(), before, on, delay: Time::ZERO };
        self.out.dependencies.extend(all.into_iter().map(wait));
    }

    /// Lets `task` wait for another one of the same rank.
    pub(in crate::workload) fn wait_task(&mut self, task: TaskId, before: TaskId) {
        let (waiter, before) = (task.into(), before.into());
        self.out.dependencies.push(Dependency { waiter, before, on: Milestone::Arrived, delay: Time::ZERO });
    }

    /// Returns the servers of the ranks; `None` if they are in no servers, or not in equal numbers.
    pub(super) fn layout(&self) -> Option<Layout> {
        Layout::of(self.topology, self.ranks)
    }

    /// Returns the number of ranks.
    pub(in crate::workload) fn n(&self) -> usize {
        self.ranks.len()
    }

    /// Begins an iteration: the messages before belong to earlier ones, after which each rank takes the time `compute`.
    pub(super) fn begin(&mut self, iteration: u32, compute: impl Fn(usize) -> Time) {
        self.iteration = iteration;
        for (rank, side) in self.sides.iter_mut().enumerate() {
            side.barrier = side.take_end();
            side.compute = compute(rank);
        }
    }

    /// Adds a ring of `members` as one flow from each of them to the next, which has the bytes of `edge` in `steps`
    /// messages. Messages wait for each other around the ring, so the flows begin together, when the last member is
    /// ready and the latencies of all steps have passed, and the ring ends for all with the last one.
    pub(super) fn send_merged(&mut self, stream: u32, members: &[usize], steps: u16, edge: impl Fn(usize) -> u64) {
        let latency = self.latency_of_merged(members, steps);
        let (begin, end) = (self.add_moment(members[0], latency), self.add_moment(members[0], Time::ZERO));
        for &member in members {
            let (ready, delay) = (self.sides[member].barrier.iter(), self.sides[member].compute);
            let wait = |&(before, on): &_| Dependency { waiter: begin.into(), before, on, delay };
            self.out.dependencies.extend(ready.map(wait));
        }
        for (at, &from) in members.iter().enumerate() {
            let (src, dst) =
                self.topology.ends_between(self.ranks[from], self.ranks[members[(at + 1) % members.len()]]);
            let flow = FlowId(self.out.flows.len() as u32);
            let spec = self.message(stream, (src, dst), edge(at), Trigger::Dependencies);
            self.out.flows.push(FlowSpec { steps, ..spec });
            let (on, delay) = (Milestone::Arrived, Time::ZERO);
            let waits = [(flow.into(), begin.into()), (end.into(), flow.into())];
            self.out.dependencies.extend(waits.map(|(waiter, before)| Dependency { waiter, before, on, delay }));
        }
        for &member in members {
            self.sides[member].merged.push(end);
        }
    }

    /// Adds a task of this duration, at the host of a rank.
    fn add_moment(&mut self, rank: usize, duration: Time) -> TaskId {
        let task = TaskId(self.out.tasks.len() as u32);
        self.out.tasks.push(TaskSpec { host: self.ranks[rank], start: self.origin.start, duration });
        task
    }

    /// Returns the latency of a step that is a message of this end point.
    fn latency(&self, src: NodeId) -> Time {
        self.origin.alpha.of(self.topology, src)
    }

    /// Returns the latency of `steps` steps around a ring, from where they take the longest.
    fn latency_of_merged(&self, members: &[usize], steps: u16) -> Time {
        let next = members.iter().cycle().skip(1);
        let ends = members.iter().zip(next).map(|(&a, &b)| self.topology.ends_between(self.ranks[a], self.ranks[b]));
        let edges: Vec<u128> = ends.map(|(src, _)| u128::from(self.latency(src).as_ps())).collect();
        let (rounds, rest) = (usize::from(steps) / edges.len(), usize::from(steps) % edges.len());
        let mut window = edges[..rest].iter().sum::<u128>();
        let mut longest = window;
        for from in 0..edges.len() {
            window += edges[(from + rest) % edges.len()];
            window -= edges[from];
            longest = longest.max(window);
        }
        let all = rounds as u128 * edges.iter().sum::<u128>() + longest;
        Time::from_ps(u64::try_from(all).unwrap_or(u64::MAX))
    }

    /// Returns a message of a stream between two end points.
    fn message(&self, stream: u32, (src, dst): (NodeId, NodeId), bytes: u64, trigger: Trigger) -> FlowSpec {
        let Origin { group, start, first_stream, .. } = self.origin;
        let (sport, dport) = default_ports(first_stream + stream, group);
        let iteration = self.iteration;
        FlowSpec { trigger, sport, dport, group, iteration, ..FlowSpec::new(src, dst, Bytes::new(bytes), start) }
    }

    /// Adds a message of `bytes` bytes from rank `from` to rank `to`, which starts after all that it `needs` and after
    /// the message before in `stream`; the latency of a step passes between a receipt, or the rank's begin, and the
    /// message. An empty message is not sent: then the next one of the stream needs what it has needed.
    pub(in crate::workload) fn send(
        &mut self,
        stream: u32,
        (from, to): (usize, usize),
        bytes: u64,
        needs: &[Needed],
    ) -> Option<FlowId> {
        let (src, dst) = self.topology.ends_between(self.ranks[from], self.ranks[to]);
        let latency = self.latency(src);
        let side = &mut self.sides[from];
        // The end points of a GPU do not wait for each other.
        let way = side.streams.entry((stream, src)).or_default();
        way.carried.extend(needs.iter().filter_map(|&(received, delay)| Some((received?, delay))));
        if bytes == 0 {
            return None;
        }
        let flow = FlowId(self.out.flows.len() as u32);
        let first = self.out.dependencies.len();
        let mut add =
            |before, on, delay| self.out.dependencies.push(Dependency { waiter: flow.into(), before, on, delay });
        let needed = std::mem::take(&mut way.carried);
        for &(received, delay) in &needed {
            add(received.into(), Milestone::Arrived, delay.saturating_add(latency));
        }
        let is_first = way.iteration.replace(self.iteration) != Some(self.iteration);
        match way.last.replace(flow) {
            Some(last) if !is_first => add(last.into(), Milestone::Sent, Time::ZERO),
            _ => side.barrier.iter().for_each(|&(before, on)| add(before, on, side.compute.saturating_add(latency))),
        }
        if !needed.is_empty() {
            side.open.retain(|open| needed.iter().all(|(received, _)| received != open));
        }
        let waits = first < self.out.dependencies.len();
        let trigger = if waits { Trigger::Dependencies } else { Trigger::Time };
        let spec = self.message(stream, (src, dst), bytes, trigger);
        let start = if waits { spec.start } else { spec.start.saturating_add(latency) };
        self.out.flows.push(FlowSpec { start, ..spec });
        self.sides[to].open.push(flow);
        Some(flow)
    }
}
