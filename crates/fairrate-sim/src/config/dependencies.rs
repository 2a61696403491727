//! Dependencies between flows: a flow starts when others have come so far.
//!
//! A dependency concerns one host, the one that sends the later flow: it learns of it without a message, and results do
//! not depend on the number of threads.

use fairrate_units::{Bytes, Time};

use crate::config::{FlowSpec, Trigger};
use crate::ids::{FlowId, NodeId};
use crate::topology::Topology;

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

/// A flow waits for another one. The trigger of a flow that waits is [`Trigger::Dependencies`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Dependency {
    /// The flow that waits.
    pub flow: FlowId,
    /// The flow for which it waits.
    pub before: FlowId,
    /// The milestone that it has to reach.
    pub on: Milestone,
    /// Time that has to pass from then on.
    pub delay: Time,
}

/// A dependency that cannot be met.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DependencyError {
    /// The flow that waits.
    pub flow: FlowId,
    /// The flow for which it waits.
    pub before: FlowId,
    /// The error, in lower case and with no final stop.
    pub message: String,
    /// A remedy.
    pub help: String,
}

/// Checks that every dependency can be met and is known to the host that sends the waiting flow.
///
/// # Errors
/// Names both flows of the first dependency that is between two hosts, that is on a flow which has no such moment, or
/// that is part of a cycle.
pub fn check_dependencies(
    flows: &[FlowSpec],
    dependencies: &[Dependency],
    topology: &Topology,
) -> Result<(), DependencyError> {
    let waits = |flow: &FlowSpec| flow.trigger == Trigger::Dependencies;
    if dependencies.is_empty() && !flows.iter().any(waits) {
        return Ok(());
    }
    for dependency in dependencies {
        check_one(flows, dependency, topology)?;
    }
    let n_waits = n_dependencies(flows.len(), dependencies);
    if let Some((at, _)) = flows.iter().zip(&n_waits).enumerate().find(|(_, (flow, n))| waits(flow) != (0 < **n)) {
        let flow = FlowId(at as u32);
        let (does, name) = (if n_waits[at] == 0 { "has none" } else { "has another trigger" }, flows[at].name(flow));
        let message = format!("flow {name} waits for flows by its trigger or its dependencies, and {does}");
        return Err(DependencyError { flow, before: flow, message, help: "give it both, or none".to_owned() });
    }
    match cycle(flows.len(), dependencies) {
        None => Ok(()),
        Some(cycle) => {
            let name = |id: FlowId| flows[id.index()].name(id);
            let (flow, before) = (cycle[0], cycle[1 % cycle.len()]);
            let (first, rest) = (name(flow), cycle[1..].iter().chain([&flow]));
            let waits: Vec<String> = rest.map(|&id| format!("waits for flow {}", name(id))).collect();
            let message = format!("flow {first} {}: a cycle", waits.join(", which "));
            Err(DependencyError { flow, before, message, help: "let one of them start at a time".to_owned() })
        }
    }
}

fn check_one(flows: &[FlowSpec], dependency: &Dependency, topology: &Topology) -> Result<(), DependencyError> {
    let &Dependency { flow, before, on, .. } = dependency;
    let (spec, earlier) = (&flows[flow.index()], &flows[before.index()]);
    let (name, earlier_name) = (spec.name(flow), earlier.name(before));
    let host = |node: NodeId| &topology.nodes[node.index()].name;
    let error = |message: String, help: String| Err(DependencyError { flow, before, message, help });
    if flow == before {
        return error(format!("flow {name} waits for itself"), "name another flow".to_owned());
    }
    let (place, src) = (on.place(earlier), spec.src);
    if place != src {
        let what = match on {
            Milestone::Arrived => "arrives at",
            Milestone::Sent => "is sent by",
            Milestone::Acknowledged => "is acknowledged at",
        };
        let message = format!(
            "flow {name} starts at `{}` and would wait for flow {earlier_name}, which {what} `{}`",
            host(src),
            host(place)
        );
        let help = if earlier.src == src {
            format!(
                "a host knows of its own flows if they are sent or acknowledged: `{earlier_name}:sent` or `{earlier_name}:acked`"
            )
        } else if earlier.dst == src {
            format!("a host knows of flows to it that they have arrived: `{earlier_name}`")
        } else {
            "a flow waits for flows that its sender has received, or has sent itself".to_owned()
        };
        return error(message, help);
    }
    if earlier.bytes == Bytes::MAX {
        let message = format!("flow {name} waits for flow {earlier_name}, which is endless");
        return error(message, "give it a size".to_owned());
    }
    if !matches!(earlier.trigger, Trigger::Time | Trigger::Dependencies) {
        let message = format!("flow {name} waits for flow {earlier_name}, which may not start at all");
        return error(message, "wait for a flow that starts at a time, or after such a flow".to_owned());
    }
    Ok(())
}

/// Returns the flows of a cycle, each of which waits for the next one, and the last one for the first.
fn cycle(n_flows: usize, dependencies: &[Dependency]) -> Option<Vec<FlowId>> {
    let graph = Successors::new(n_flows, dependencies);
    let mut left = n_dependencies(n_flows, dependencies);
    let mut free: Vec<FlowId> = (0..n_flows as u32).map(FlowId).filter(|id| left[id.index()] == 0).collect();
    let mut n_free = 0;
    while let Some(id) = free.pop() {
        n_free += 1;
        for &Successor { flow: successor, .. } in graph.of(id) {
            left[successor.index()] -= 1;
            if left[successor.index()] == 0 {
                free.push(successor);
            }
        }
    }
    if n_free == n_flows {
        return None;
    }
    // Every flow that is left waits for another one that is left: going back, a flow comes a second time.
    let mut waits_for = vec![None; n_flows];
    for dependency in dependencies.iter().rev().filter(|dependency| 0 < left[dependency.before.index()]) {
        waits_for[dependency.flow.index()] = Some(dependency.before);
    }
    let mut at = (0..n_flows as u32).map(FlowId).find(|id| 0 < left[id.index()])?;
    let mut seen = vec![false; n_flows];
    while !std::mem::replace(&mut seen[at.index()], true) {
        at = waits_for[at.index()]?;
    }
    let mut cycle = vec![at];
    let mut next = waits_for[at.index()]?;
    while next != at {
        cycle.push(next);
        next = waits_for[next.index()]?;
    }
    Some(cycle)
}

/// A flow that waits for another one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Successor {
    pub(crate) flow: FlowId,
    pub(crate) on: Milestone,
    pub(crate) delay_ps: u64,
}

/// For every flow, the flows that wait for it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Successors {
    /// For each flow, the position of its first successor in `all`; one more at the end.
    first: Vec<u32>,
    all: Vec<Successor>,
}

impl Successors {
    /// Returns the successors of `n_flows` flows.
    pub(crate) fn new(n_flows: usize, dependencies: &[Dependency]) -> Self {
        if dependencies.is_empty() {
            return Self::default();
        }
        let mut first = vec![0_u32; n_flows + 1];
        for dependency in dependencies {
            first[dependency.before.index() + 1] += 1;
        }
        for at in 0..n_flows {
            first[at + 1] += first[at];
        }
        let mut next = first.clone();
        let none = Successor { flow: FlowId::NONE, on: Milestone::Arrived, delay_ps: 0 };
        let mut all = vec![none; dependencies.len()];
        for dependency in dependencies {
            let at = &mut next[dependency.before.index()];
            let &Dependency { flow, on, delay, .. } = dependency;
            all[*at as usize] = Successor { flow, on, delay_ps: delay.as_ps() };
            *at += 1;
        }
        Self { first, all }
    }

    /// Returns the flows that wait for flow `id`.
    #[inline]
    pub(crate) fn of(&self, id: FlowId) -> &[Successor] {
        let at = id.index();
        match (self.first.get(at), self.first.get(at + 1)) {
            (Some(&from), Some(&to)) => &self.all[from as usize..to as usize],
            _ => &[],
        }
    }
}

/// Returns the number of dependencies of each of `n_flows` flows.
pub(crate) fn n_dependencies(n_flows: usize, dependencies: &[Dependency]) -> Vec<u32> {
    let mut left = vec![0; n_flows];
    for dependency in dependencies {
        left[dependency.flow.index()] += 1;
    }
    left
}
