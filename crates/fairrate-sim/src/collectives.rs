//! The times of collective operations, from the outcomes of their messages.

use std::collections::{BTreeMap, HashMap};

use fairrate_units::{Bytes, Time};

use crate::config::{FlowSpec, SimConfig};
use crate::ids::NodeId;
use crate::output::FlowOutcome;
use crate::workload::{Op, Pace};

/// A collective operation of a run: the messages of its `group` that have an iteration.
#[derive(Clone, Debug, PartialEq)]
pub struct CollectiveSpec {
    /// The traffic block.
    pub group: u32,
    /// The operation.
    pub op: Op,
    /// The bytes as nccl-tests count them.
    pub bytes: Bytes,
    /// The host of each rank.
    pub ranks: Vec<NodeId>,
    /// Number of iterations.
    pub iterations: u32,
    /// Start of the first iteration.
    pub start: Time,
    /// Time between the end of an iteration at a rank and the start of the next one there.
    pub compute: Time,
    /// The factors by which that is longer, and the latency of each step.
    pub pace: Pace,
    /// The least time of an iteration: the links of a rank carry at line rate, without headers, what every algorithm
    /// has to send.
    pub bound: Time,
}

impl CollectiveSpec {
    /// Returns the bytes per second of an iteration that takes `time` (nccl-tests' `algbw`), and those of each link
    /// (`busbw`).
    pub fn bandwidths(&self, time: Time) -> (f64, f64) {
        let algorithm = self.bytes.as_f64() * 1e12 / (time.as_ps().max(1)) as f64;
        let (more, less) = self.op.bus_factor(self.ranks.len());
        (algorithm, algorithm * more as f64 / less as f64)
    }
}

/// An iteration of a collective.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IterationOutcome {
    /// The collective: its position in [`SimConfig::collectives`].
    pub collective: usize,
    /// Number of the iteration, from 0.
    pub iteration: u32,
    /// Start and end at each rank; the end is absent if the iteration is not complete.
    ///
    /// The first iteration starts at the collective's start. A later one starts when the rank has received all that it
    /// receives in the one before, has handed all that it sends in it to the NIC, and has computed, or with its first
    /// message if that is earlier. It ends with the last message that the rank receives, or, if it receives none, with
    /// the arrival of the last one that it sends.
    pub ranks: Vec<(Time, Option<Time>)>,
}

impl IterationOutcome {
    /// Returns the time of the slowest rank and its number; `None` if the iteration is not complete.
    pub fn slowest(&self) -> Option<(Time, usize)> {
        let times = (0..).zip(&self.ranks).map(|(rank, &(start, end))| Some((end?.saturating_sub(start), rank)));
        let times = times.collect::<Option<Vec<(Time, usize)>>>()?;
        // The first of equal ones.
        times.into_iter().rev().max_by_key(|&(time, _)| time)
    }
}

/// The messages of collectives that are done, and what they say of iterations.
#[derive(Debug, Default)]
pub struct CollectiveBook {
    by_group: HashMap<u32, usize>,
    collectives: Vec<State>,
}

/// A collective.
#[derive(Debug)]
struct State {
    spec: CollectiveSpec,
    rank_of: HashMap<NodeId, usize>,
    /// Number of messages of an iteration.
    n_messages: u64,
    /// The iterations of which messages are done.
    open: BTreeMap<u32, Open>,
    /// The next iteration to be told of, and the time at which each rank is done with the one before.
    next: u32,
    done: Vec<Time>,
}

/// An iteration.
#[derive(Clone, Debug)]
struct Open {
    left: u64,
    ranks: Vec<Rank>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Rank {
    /// Start of the first message sent.
    sends: Option<Time>,
    /// Arrival of the last message received, and of the last one sent.
    received: Option<Time>,
    sent: Option<Time>,
    /// The time at which the last one sent had been handed to the NIC.
    handed: Option<Time>,
}

impl CollectiveBook {
    /// Returns the collectives of a run that has not begun; `None` if there are none.
    pub fn new(config: &SimConfig) -> Option<Self> {
        if config.collectives.is_empty() {
            return None;
        }
        let by_group: HashMap<u32, usize> = config.collectives.iter().map(|spec| spec.group).zip(0..).collect();
        let mut n_messages = vec![0_u64; config.collectives.len()];
        for flow in &config.flows {
            if flow.iteration == 0
                && let Some(&at) = by_group.get(&flow.group)
            {
                n_messages[at] += 1;
            }
        }
        let state = |(spec, n_messages): (&CollectiveSpec, u64)| State {
            rank_of: spec
                .ranks
                .iter()
                .zip(0..)
                .flat_map(|(&host, rank)| config.topology.ends_of(host).map(move |end| (end, rank)))
                .collect(),
            n_messages,
            open: BTreeMap::new(),
            next: 0,
            done: vec![spec.start; spec.ranks.len()],
            spec: spec.clone(),
        };
        Some(Self { collectives: config.collectives.iter().zip(n_messages).map(state).collect(), by_group })
    }

    /// Returns the collectives in their order.
    pub fn specs(&self) -> impl ExactSizeIterator<Item = &CollectiveSpec> {
        self.collectives.iter().map(|state| &state.spec)
    }

    /// Notes a message that is done; returns the iterations that are complete by it, in their order.
    pub fn note(&mut self, flow: &FlowSpec, outcome: &FlowOutcome) -> Vec<IterationOutcome> {
        let (Some(fct), true) = (outcome.fct, flow.iteration != FlowSpec::NO_ITERATION) else { return Vec::new() };
        let Some(&at) = self.by_group.get(&flow.group) else { return Vec::new() };
        self.collectives[at].note(flow, outcome, outcome.start.saturating_add(fct));
        let mut done = Vec::new();
        while let Some(ranks) = self.collectives[at].take_next() {
            done.push(IterationOutcome { collective: at, iteration: self.collectives[at].next - 1, ranks });
        }
        done
    }

    /// Returns the first iteration of each collective that is not complete, if any of it has begun by `now`.
    pub fn unfinished(&self, now: Time) -> Vec<IterationOutcome> {
        let begun = |state: &&State| state.next < state.spec.iterations && state.spec.start <= now;
        let begun = self.collectives.iter().enumerate().filter(|(_, state)| begun(state));
        let outcome = |(collective, state): (usize, &State)| {
            let starts = state.done.iter().enumerate();
            let starts = starts.map(|(rank, &done)| (done.saturating_add(state.pause(rank)), None));
            IterationOutcome { collective, iteration: state.next, ranks: starts.collect() }
        };
        begun.map(outcome).collect()
    }
}

impl State {
    fn note(&mut self, flow: &FlowSpec, outcome: &FlowOutcome, arrival: Time) {
        let start = outcome.start;
        let (Some(&from), Some(&to)) = (self.rank_of.get(&flow.src), self.rank_of.get(&flow.dst)) else { return };
        let new = || Open { left: self.n_messages, ranks: vec![Rank::default(); self.spec.ranks.len()] };
        let open = self.open.entry(flow.iteration).or_insert_with(new);
        open.left -= 1;
        let sender = &mut open.ranks[from];
        sender.sends = Some(sender.sends.map_or(start, |first| first.min(start)));
        sender.sent = sender.sent.max(Some(arrival));
        sender.handed = sender.handed.max(outcome.sent.map(|sent| start.saturating_add(sent)));
        let receiver = &mut open.ranks[to];
        receiver.received = receiver.received.max(Some(arrival));
    }

    /// Returns the time that a rank takes between the iteration before the next one and that one.
    fn pause(&self, rank: usize) -> Time {
        let Self { spec, next, .. } = self;
        if *next == 0 { Time::ZERO } else { spec.pace.time_before(spec.compute, &spec.ranks, rank, *next) }
    }

    /// Returns start and end of the next iteration at each rank, if it is complete.
    fn take_next(&mut self) -> Option<Vec<(Time, Option<Time>)>> {
        if self.open.get(&self.next)?.left > 0 {
            return None;
        }
        let open = self.open.remove(&self.next)?;
        let times = |(at, (rank, &before)): (usize, (&Rank, &Time))| {
            let ready = before.saturating_add(self.pause(at));
            let start = rank.sends.map_or(ready, |sends| sends.min(ready));
            (start, Some(rank.received.or(rank.sent).unwrap_or(start).max(start)))
        };
        let times: Vec<_> = open.ranks.iter().zip(&self.done).enumerate().map(times).collect();
        let done = |(rank, &(start, end)): (&Rank, &(Time, Option<Time>))| {
            // Without messages, or where nothing says when they were handed over, a rank is done at its end.
            rank.received.max(rank.handed).or(end).map_or(start, |done| done.max(start))
        };
        self.done = open.ranks.iter().zip(&times).map(done).collect();
        self.next += 1;
        Some(times)
    }
}
