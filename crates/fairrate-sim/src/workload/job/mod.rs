//! Jobs: operations of ranks that wait for each other.
//!
//! An operation is a computation of a rank, a collective operation of a process group, or a message from one rank to
//! another. A rank has a part in an operation, and a part waits for other parts of the same rank. A part of a
//! collective begins once those that it waits for have ended: ranks of a group arrive at different times, and the
//! messages of each wait only for what they carry.

mod expand;
mod trace;
mod training;

use std::collections::HashMap;

use fairrate_units::{Bytes, Rate, Time};

use super::{Collective, CollectiveAlgorithm, Op, Order, Pace, Sizes};
use crate::jobs::ProcessGroup;

pub use trace::{TraceDefaults, parse_trace};
pub use training::{ComputeTime, Model, Parallelism, Recompute, Training};

/// A part of a rank in an operation, by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PartId(u32);

/// A job while it is made.
#[derive(Clone, Debug, PartialEq)]
pub struct Job {
    n_ranks: u32,
    groups: Vec<ProcessGroup>,
    names: Vec<String>,
    by_name: HashMap<String, u32>,
    operations: Vec<Operation>,
    parts: Vec<Part>,
    /// A part, and one that it waits for.
    waits: Vec<(PartId, PartId)>,
    iterations: u32,
}

/// An operation.
#[derive(Clone, Debug, PartialEq)]
struct Operation {
    name: u32,
    iteration: u32,
    work: Work,
    /// Its first part; those of a collective are in the order of the group's ranks, those of a message the sender's and
    /// the receiver's.
    first_part: PartId,
}

#[derive(Clone, Debug, PartialEq)]
enum Work {
    Compute(Time),
    Collective { group: usize, collective: Collective },
    Message(Bytes),
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Part {
    operation: u32,
    rank: u32,
}

impl Job {
    /// Returns a job of `n_ranks` ranks and these process groups without operations.
    ///
    /// # Panics
    /// A group has no ranks, or one that is not among those of the job.
    pub fn new(n_ranks: u32, groups: Vec<ProcessGroup>) -> Self {
        let known = |group: &ProcessGroup| !group.ranks.is_empty() && group.ranks.iter().all(|&rank| rank < n_ranks);
        assert!(groups.iter().all(known), "groups consist of ranks of the job");
        Self {
            n_ranks,
            groups,
            names: Vec::new(),
            by_name: HashMap::new(),
            operations: Vec::new(),
            parts: Vec::new(),
            waits: Vec::new(),
            iterations: 0,
        }
    }

    /// Returns the number of ranks.
    pub fn n_ranks(&self) -> u32 {
        self.n_ranks
    }

    /// Returns the process groups.
    pub fn groups(&self) -> &[ProcessGroup] {
        &self.groups
    }

    /// Adds a computation of `rank` that takes `duration`.
    pub fn compute(&mut self, name: &str, iteration: u32, rank: u32, duration: Time) -> PartId {
        self.add(name, iteration, Work::Compute(duration), &[rank])
    }

    /// Adds a collective operation of the process group number `group`; returns the part of its first rank. Those of
    /// the others follow.
    ///
    /// # Panics
    /// There is no such group.
    pub fn collective(&mut self, name: &str, iteration: u32, group: usize, collective: Collective) -> PartId {
        let ranks = self.groups[group].ranks.clone();
        self.add(name, iteration, Work::Collective { group, collective }, &ranks)
    }

    /// Adds a message of `bytes` from rank `from` to rank `to`; returns the parts of both. A sender's part ends when
    /// the last byte has been handed to the NIC.
    pub fn message(&mut self, name: &str, iteration: u32, (from, to): (u32, u32), bytes: Bytes) -> (PartId, PartId) {
        let sender = self.add(name, iteration, Work::Message(bytes), &[from, to]);
        (sender, PartId(sender.0 + 1))
    }

    /// Returns the part that comes `offset` places after `first`, of the same operation.
    pub fn part(first: PartId, offset: usize) -> PartId {
        PartId(first.0 + offset as u32)
    }

    /// Lets a part wait for another one of the same rank.
    ///
    /// # Panics
    /// They are of two ranks.
    pub fn wait(&mut self, part: PartId, before: PartId) {
        let rank = |id: PartId| self.parts[id.0 as usize].rank;
        assert_eq!(rank(part), rank(before), "a rank waits for its own operations");
        self.waits.push((part, before));
    }

    fn add(&mut self, name: &str, iteration: u32, work: Work, ranks: &[u32]) -> PartId {
        let next = self.names.len() as u32;
        let name = *self.by_name.entry(name.to_owned()).or_insert_with(|| {
            self.names.push(name.to_owned());
            next
        });
        let (operation, first_part) = (self.operations.len() as u32, PartId(self.parts.len() as u32));
        self.operations.push(Operation { name, iteration, work, first_part });
        self.parts.extend(ranks.iter().map(|&rank| Part { operation, rank }));
        self.iterations = self.iterations.max(iteration + 1);
        first_part
    }
}

/// Returns a collective operation for a job: all ranks of its group take part once, and sums take no time.
pub fn collective_of(op: Op, algorithm: CollectiveAlgorithm, bytes: Bytes, channels: u32, chunks: u32) -> Collective {
    Collective {
        op,
        algorithm,
        hosts: None,
        bytes,
        channels,
        chunks,
        repeat: 1,
        start: Time::ZERO,
        compute: Time::ZERO,
        pace: Pace::EVEN,
        reduce_rate: Rate::MAX,
        nearest_first: false,
        order: Order::Shifted,
        hierarchy: false,
        sizes: Sizes::Even,
        merged_rings: false,
    }
}
