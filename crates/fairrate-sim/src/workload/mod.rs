//! Who sends what to whom, and when.
//!
//! Each generator is a struct of its parameters. `generate` makes the same flows whenever the topology, the
//! parameters, the group and the seed are the same, sorted by start time and sender. Every host draws from
//! streams of its own, one for each purpose, so what one flow is or does never moves another's draws.

mod flow_list;
mod incast;
mod patterns;
mod peers;
mod poisson;
mod sizes;
mod tables;

use std::collections::HashMap;

use fairrate_units::{Bytes, Rate, Time};

use crate::config::{FlowSpec, Trigger};
use crate::ids::NodeId;
use crate::input_error::FieldError;
use crate::rng::{Purpose, Stream};
use crate::topology::Topology;

pub use flow_list::parse_flow_list;
pub use incast::{Incast, IncastQueries, Responders, Senders};
pub use patterns::{AllToAll, Permutation, Staggered};
pub use peers::Peers;
pub use poisson::Poisson;
pub use sizes::SizeDistribution;
pub use tables::{WORKLOADS, WorkloadInfo};

/// Flows of a flow list this large or larger are endless, as in the public ns-3 code.
pub const ENDLESS_FROM: Bytes = Bytes::new(1_000_000_000_000);

/// The most flows a generator makes: more would not fit into memory.
const FLOWS_MAX: u64 = 20_000_000;

/// Puts the flows of several traffic blocks into one list by start time, sender and block. A single block is left
/// as it is, so that the flows of a flow list keep their ids.
pub fn merge(mut blocks: Vec<Vec<FlowSpec>>) -> Vec<FlowSpec> {
    if blocks.len() == 1 {
        return blocks.remove(0);
    }
    let mut flows: Vec<FlowSpec> = blocks.into_iter().flatten().collect();
    flows.sort_by_key(|flow| (flow.start, flow.src));
    flows
}

/// Makes the flows of one generator and numbers their ports.
struct Block {
    group: u32,
    seed: u64,
    /// Flows so far of each pair.
    pairs: HashMap<(NodeId, NodeId), u32>,
    flows: Vec<FlowSpec>,
}

impl Block {
    fn new(seed: u64, group: u32) -> Self {
        Self { group, seed, pairs: HashMap::new(), flows: Vec::new() }
    }

    /// The stream of a host in this block: blocks do not share draws.
    fn stream(&self, host: NodeId, purpose: Purpose) -> Stream {
        Stream::new(self.seed, u64::from(self.group) << 32 | u64::from(host.0), purpose)
    }

    /// Adds a flow. Source ports count from 10000 for each pair; the destination port, 100 and the group, keeps
    /// the flows of blocks apart.
    fn add(&mut self, src: NodeId, dst: NodeId, bytes: Bytes, start: Time, stop: Time) {
        let count = self.pairs.entry((src, dst)).or_default();
        let (sport, dport) = default_ports(*count, self.group);
        *count = count.wrapping_add(1);
        let bytes = if bytes < ENDLESS_FROM { bytes } else { Bytes::MAX };
        let group = self.group;
        self.flows.push(FlowSpec {
            src,
            dst,
            bytes,
            start,
            trigger: Trigger::Time,
            stop,
            sport,
            dport,
            class: None,
            weight: 1.0,
            demand: Rate::MAX,
            group,
        });
    }

    /// The flows, sorted by start time and sender; those of a sender stay in order.
    fn finish(mut self) -> Vec<FlowSpec> {
        self.flows.sort_by_key(|flow| (flow.start, flow.src));
        self.flows
    }
}

/// Ports of the `count`-th flow of a pair. They wrap after 55,536 flows, which only matters to ECMP.
fn default_ports(count: u32, group: u32) -> (u16, u16) {
    let sport = 10_000 + count % (1 + u32::from(u16::MAX) - 10_000);
    (sport as u16, (100 + group) as u16)
}

/// Checks that a node is a host.
fn host(field: &'static str, topology: &Topology, node: NodeId) -> Result<NodeId, FieldError> {
    if topology.is_host(node) {
        return Ok(node);
    }
    let message = match topology.nodes.get(node.index()) {
        Some(switch) => format!("`{}` is a switch, not a host", switch.name),
        None => format!("there is no node {}", node.0),
    };
    Err(FieldError::new(field, message))
}

/// Checks a flow size.
fn at_least_a_byte(field: &'static str, bytes: Bytes) -> Result<(), FieldError> {
    if bytes == Bytes::ZERO {
        return Err(FieldError::new(field, format!("`{field}` must be at least 1B")));
    }
    Ok(())
}

/// Checks how many flows a generator is about to make.
fn few_enough(field: &'static str, flows: f64) -> Result<(), FieldError> {
    if flows <= FLOWS_MAX as f64 {
        return Ok(());
    }
    Err(FieldError::new(field, format!("this makes about {flows:.0} flows"))
        .help(format!("up to {FLOWS_MAX} are possible; shorten the time or lower the rate")))
}

#[cfg(test)]
mod tests;
