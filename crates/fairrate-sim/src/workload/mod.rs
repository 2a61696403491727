//! Workloads: the flows of a run, with their senders, receivers, sizes and start times.
//!
//! Each generator is a struct of its parameters. `generate` makes the same flows whenever the topology, the parameters,
//! the group and the seed are the same, sorted by start time and sender. Every host draws from its own streams, one for
//! each purpose, so that no property of a flow changes the draws of another flow.

mod churn;
mod closed_loop;
mod collective;
mod deadlines;
mod flow_list;
mod flow_waits;
mod hpcc_list;
mod incast;
mod job;
mod pace;
mod patterns;
mod peers;
mod placement;
mod poisson;
mod sizes;
mod tables;

use std::collections::{HashMap, HashSet};

use fairrate_units::{Bytes, Time};

use crate::collectives::CollectiveSpec;
use crate::config::{Activity, Change, Connection, Dependency, FlowSpec, TaskSpec, Trigger};
use crate::ids::{FlowId, NodeId, TaskId};
use crate::input_error::FieldError;
use crate::jobs::JobSpec;
use crate::rng::{Purpose, Stream, mix64};
use crate::topology::Topology;

pub use churn::Churn;
pub use closed_loop::{ClosedLoop, Sleep};
pub use collective::{Collective, CollectiveAlgorithm, MAX_CHANNELS, Op, Order, Sizes};
pub use deadlines::{Deadlines, Spread};
pub use flow_list::{ListStacks, parse_flow_list};
pub use incast::{Incast, IncastQueries, RequestRate, Responders, Senders};
pub use job::{
    ComputeTime, Job, Model, Parallelism, PartId, Recompute, TraceDefaults, Training, collective_of, parse_trace,
};
pub use pace::{Pace, StepLatency};
pub use patterns::{AllToAll, Permutation, Staggered, Stride};
pub use peers::Peers;
pub use placement::Placement;
pub use poisson::Poisson;
pub use sizes::{Sampling, SizeDistribution};
pub use tables::{WORKLOADS, WorkloadInfo};

/// Size from which flows of a flow list are endless, as in the public ns-3 code.
pub const ENDLESS_FROM: Bytes = Bytes::new(1_000_000_000_000);

/// Largest number of flows a generator makes: more would not fit into memory.
const FLOWS_MAX: u64 = 20_000_000;

/// The flows and changes of one traffic block, or of all together. Their flow ids are positions in `flows`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Workload {
    /// The flows.
    pub flows: Vec<FlowSpec>,
    /// Flows that start or stop once rates have converged, in order.
    pub changes: Vec<Change>,
    /// Work of hosts that sends nothing.
    pub tasks: Vec<TaskSpec>,
    /// The flows and tasks for which flows and tasks wait.
    pub dependencies: Vec<Dependency>,
    /// The collective operations that flows are messages of.
    pub collectives: Vec<CollectiveSpec>,
    /// The jobs that flows are messages of.
    pub jobs: Vec<JobSpec>,
}

impl From<Vec<FlowSpec>> for Workload {
    fn from(flows: Vec<FlowSpec>) -> Self {
        Self { flows, ..Self::default() }
    }
}

impl Workload {
    /// Appends the flows and changes of `other`.
    fn append(&mut self, other: Self) {
        let (first, first_task) = (self.flows.len() as u32, self.tasks.len() as u32);
        self.collectives.extend(other.collectives);
        let of_job = |job: JobSpec| JobSpec { first_task: first_task + job.first_task, ..job };
        self.jobs.extend(other.jobs.into_iter().map(of_job));
        let moved = |id: FlowId| FlowId(first + id.0);
        let mut flows = other.flows;
        for flow in &mut flows {
            set_ids(flow, moved);
        }
        if self.flows.is_empty() {
            self.flows = flows;
        } else {
            self.flows.append(&mut flows);
        }
        self.changes.extend(other.changes.into_iter().map(|change| change_with_ids(change, moved)));
        self.tasks.extend(other.tasks);
        let moved_task = |id: TaskId| TaskId(first_task + id.0);
        let of_dependency = |dependency| dependency_with_ids(dependency, moved, moved_task);
        self.dependencies.extend(other.dependencies.into_iter().map(of_dependency));
    }

    /// Sorts the flows by start time and sender; equal ones stay in order. Triggers, changes and dependencies keep
    /// referring to the same flows. There may be many millions of flows, so that no second list of them is made.
    fn sort(mut self) -> Self {
        let key = |flow: &FlowSpec| (flow.start, flow.src);
        if self.flows.is_sorted_by_key(key) {
            return self;
        }
        let mut order: Vec<u32> = (0..self.flows.len() as u32).collect();
        order.sort_by_key(|&at| key(&self.flows[at as usize]));
        let mut place = vec![0; order.len()];
        for (to, from) in (0..).zip(order) {
            place[from as usize] = to;
        }
        let moved = |id: FlowId| FlowId(place[id.index()]);
        for flow in &mut self.flows {
            set_ids(flow, moved);
        }
        self.changes = self.changes.into_iter().map(|change| change_with_ids(change, moved)).collect();
        let of_dependency = |dependency| dependency_with_ids(dependency, moved, |task| task);
        self.dependencies = self.dependencies.into_iter().map(of_dependency).collect();
        // Each swap brings one flow to its place.
        for at in 0..place.len() {
            while place[at] as usize != at {
                let to = place[at] as usize;
                self.flows.swap(at, to);
                place.swap(at, to);
            }
        }
        self
    }
}

/// Replaces the id of the flow that `flow` waits for, if any.
fn set_ids(flow: &mut FlowSpec, moved: impl Fn(FlowId) -> FlowId) {
    if let Trigger::After(before, _) = &mut flow.trigger {
        *before = moved(*before);
    }
}

fn dependency_with_ids(
    dependency: Dependency,
    flow: impl Fn(FlowId) -> FlowId,
    task: impl Fn(TaskId) -> TaskId,
) -> Dependency {
    let moved = |activity: Activity| activity.moved(&flow, &task);
    Dependency { waiter: moved(dependency.waiter), before: moved(dependency.before), ..dependency }
}

fn change_with_ids(change: Change, moved: impl Fn(FlowId) -> FlowId) -> Change {
    match change {
        Change::Start(flow) => Change::Start(moved(flow)),
        Change::Stop(flow) => Change::Stop(moved(flow)),
    }
}

/// Merges the flows of several traffic blocks into one list by start time, sender and block, and their changes one
/// block after the other. The flows of a single block stay in its order.
///
/// If a flow list gives ids, the flows without one get the smallest numbers that are left, in this order.
pub fn merge(mut blocks: Vec<Workload>) -> Workload {
    let mut all = if blocks.len() == 1 {
        blocks.remove(0)
    } else {
        let mut all = Workload::default();
        for block in blocks {
            all.append(block);
        }
        all.sort()
    };
    number(&mut all.flows);
    all
}

/// Gives an id to each flow without one, if other flows have ids.
fn number(flows: &mut [FlowSpec]) {
    let taken: HashSet<u32> = flows.iter().map(|flow| flow.id).filter(|&id| id != FlowSpec::NO_ID).collect();
    if taken.is_empty() {
        return;
    }
    let mut left = (0..FlowSpec::NO_ID).filter(|id| !taken.contains(id));
    for flow in flows.iter_mut().filter(|flow| flow.id == FlowSpec::NO_ID) {
        flow.id = left.next().unwrap_or(FlowSpec::NO_ID);
    }
}

/// The flows of one generator, with numbered ports.
struct Block {
    group: u32,
    seed: u64,
    /// Number of flows so far for each pair of sender and receiver.
    pairs: HashMap<(NodeId, NodeId), u32>,
    flows: Vec<FlowSpec>,
}

impl Block {
    fn new(seed: u64, group: u32) -> Self {
        Self { group, seed, pairs: HashMap::new(), flows: Vec::new() }
    }

    /// Returns the stream of a host in this block: blocks do not share draws.
    fn stream(&self, host: NodeId, purpose: Purpose) -> Stream {
        Stream::new(self.seed, u64::from(self.group) << 32 | u64::from(host.0), purpose)
    }

    /// Returns the stream of a pair of hosts in this block.
    fn pair_stream(&self, src: NodeId, dst: NodeId, purpose: Purpose) -> Stream {
        let src = mix64(u64::from(self.group) << 32 | u64::from(src.0));
        Stream::new(self.seed, src ^ u64::from(dst.0), purpose)
    }

    /// Adds a flow. Source ports count from 10000 for each pair; the destination port, 100 plus the group, keeps the
    /// flows of blocks apart.
    fn add(&mut self, src: NodeId, dst: NodeId, bytes: Bytes, start: Time, stop: Time) {
        let count = self.pairs.entry((src, dst)).or_default();
        let (sport, dport) = default_ports(*count, self.group);
        *count = count.wrapping_add(1);
        let bytes = if bytes < ENDLESS_FROM { bytes } else { Bytes::MAX };
        let group = self.group;
        self.flows.push(FlowSpec { stop, sport, dport, group, ..FlowSpec::new(src, dst, bytes, start) });
    }

    /// Returns the flows, sorted by start time and sender; those of a sender with the same start stay in order.
    fn finish(self) -> Vec<FlowSpec> {
        Workload::from(self.flows).sort().flows
    }
}

/// Returns the default source and destination port of the `count`-th flow of a pair, from 0. `group` is the traffic
/// block's position. Source ports wrap after 55,536 flows, which only matters to ECMP.
pub fn default_ports(count: u32, group: u32) -> (u16, u16) {
    let sport = 10_000 + count % (1 + u32::from(u16::MAX) - 10_000);
    (sport as u16, (100 + group) as u16)
}

/// Lets flows of the same sender, receiver and group share a connection, which has one source port.
pub fn share_connections(flows: &mut [FlowSpec]) {
    for flow in flows {
        (flow.connection, flow.sport) = (Connection::PerPair, default_ports(0, flow.group).0);
    }
}

/// Checks that `node` is a host, and returns it.
fn host(field: &'static str, topology: &Topology, node: NodeId) -> Result<NodeId, FieldError> {
    let hidden = topology.hidden_end(node);
    if topology.is_host(node) && hidden.is_none() {
        return Ok(node);
    }
    let message = match (topology.nodes.get(node.index()), hidden) {
        (Some(end), Some((kind, _))) => format!("`{}` is {kind}", end.name),
        (Some(switch), None) => format!("`{}` is a switch, not a host", switch.name),
        (None, _) => format!("there is no node {}", node.0),
    };
    Err(FieldError::new(field, message))
}

/// Returns the named hosts, ascending and each once.
fn hosts(field: &'static str, named: &[NodeId], topology: &Topology) -> Result<Vec<NodeId>, FieldError> {
    if named.is_empty() {
        return Err(FieldError::new(field, format!("`{field}` is empty")).help("leave it out for all hosts"));
    }
    let mut hosts = named.iter().map(|&node| host(field, topology, node)).collect::<Result<Vec<_>, _>>()?;
    hosts.sort_unstable();
    hosts.dedup();
    Ok(hosts)
}

/// Checks a flow size.
fn at_least_a_byte(field: &'static str, bytes: Bytes) -> Result<(), FieldError> {
    if bytes == Bytes::ZERO {
        return Err(FieldError::new(field, format!("`{field}` must be at least 1B")));
    }
    Ok(())
}

/// Checks the number of flows that a generator is about to make.
fn few_enough(field: &'static str, flows: f64) -> Result<(), FieldError> {
    if flows <= FLOWS_MAX as f64 {
        return Ok(());
    }
    Err(FieldError::new(field, format!("this makes about {flows:.0} flows"))
        .help(format!("up to {FLOWS_MAX} are possible; shorten the time or lower the rate")))
}

#[cfg(test)]
mod tests;
