//! The messages of a collective and their dependencies, while they are made.

use std::collections::HashMap;

use fairrate_units::{Bytes, Time};

use super::super::{Workload, default_ports};
use crate::config::{Dependency, FlowSpec, Milestone, Trigger};
use crate::ids::{FlowId, NodeId};

/// A receipt that a message needs: the message received, unless it was empty, and the time that the rank takes to process it.
pub(super) type Needed = (Option<FlowId>, Time);

/// The messages of a collective.
pub(super) struct Graph<'a> {
    ranks: &'a [NodeId],
    group: u32,
    start: Time,
    compute: Time,
    iteration: u32,
    flows: Vec<FlowSpec>,
    dependencies: Vec<Dependency>,
    sides: Vec<Side>,
}

/// A rank.
#[derive(Default)]
struct Side {
    /// The streams in which the rank sends one message after the other.
    streams: HashMap<u32, Stream>,
    /// The messages received in this iteration that no message of this rank needs so far.
    open: Vec<FlowId>,
    /// The end of the iteration before: messages received, and the last ones sent.
    barrier: Vec<(FlowId, Milestone)>,
}

#[derive(Default)]
struct Stream {
    last: Option<FlowId>,
    /// The iteration of the last message.
    iteration: Option<u32>,
    /// Receipts that empty messages, which are not sent, have needed.
    carried: Vec<(FlowId, Time)>,
}

impl<'a> Graph<'a> {
    /// Returns the graph of a collective between `ranks` without messages, the first of which start at `start`. A rank takes `compute`
    /// between two iterations.
    pub(super) fn new(ranks: &'a [NodeId], group: u32, start: Time, compute: Time) -> Self {
        let sides = ranks.iter().map(|_| Side::default()).collect();
        let (flows, dependencies) = (Vec::new(), Vec::new());
        Self { ranks, group, start, compute, iteration: 0, flows, dependencies, sides }
    }

    /// Returns the number of ranks.
    pub(super) fn n(&self) -> usize {
        self.ranks.len()
    }

    /// Begins an iteration: the messages before belong to earlier ones.
    pub(super) fn begin(&mut self, iteration: u32) {
        self.iteration = iteration;
        for side in &mut self.sides {
            side.barrier = side.open.drain(..).map(|received| (received, Milestone::Arrived)).collect();
            let mut lasts: Vec<FlowId> = side.streams.values().filter_map(|stream| stream.last).collect();
            lasts.sort_unstable();
            side.barrier.extend(lasts.into_iter().map(|sent| (sent, Milestone::Sent)));
        }
    }

    /// Adds a message of `bytes` bytes from rank `from` to rank `to`, which starts after all that it `needs` and after the message before
    /// in `stream`. An empty message is not sent: then the next one of the stream needs what it has needed.
    pub(super) fn send(
        &mut self,
        stream: u32,
        (from, to): (usize, usize),
        bytes: u64,
        needs: &[Needed],
    ) -> Option<FlowId> {
        let side = &mut self.sides[from];
        let way = side.streams.entry(stream).or_default();
        way.carried.extend(needs.iter().filter_map(|&(received, delay)| Some((received?, delay))));
        if bytes == 0 {
            return None;
        }
        let flow = FlowId(self.flows.len() as u32);
        let first = self.dependencies.len();
        let mut add = |before, on, delay| self.dependencies.push(Dependency { waiter: flow.into(), before, on, delay });
        let needed = std::mem::take(&mut way.carried);
        for &(received, delay) in &needed {
            add(received.into(), Milestone::Arrived, delay);
        }
        let is_first = way.iteration.replace(self.iteration) != Some(self.iteration);
        match way.last.replace(flow) {
            Some(last) if !is_first => add(last.into(), Milestone::Sent, Time::ZERO),
            _ => side.barrier.iter().for_each(|&(before, on)| add(before.into(), on, self.compute)),
        }
        if !needed.is_empty() {
            side.open.retain(|open| needed.iter().all(|(received, _)| received != open));
        }
        let trigger = if self.dependencies.len() == first { Trigger::Time } else { Trigger::Dependencies };
        let (sport, dport) = default_ports(stream, self.group);
        let (group, iteration) = (self.group, self.iteration);
        let spec = FlowSpec::new(self.ranks[from], self.ranks[to], Bytes::new(bytes), self.start);
        self.flows.push(FlowSpec { trigger, sport, dport, group, iteration, ..spec });
        self.sides[to].open.push(flow);
        Some(flow)
    }

    /// Returns all messages.
    pub(super) fn finish(self) -> Workload {
        Workload { flows: self.flows, dependencies: self.dependencies, ..Workload::default() }
    }
}
