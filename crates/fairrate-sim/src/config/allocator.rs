//! The central allocator of rates.

use fairrate_control::AlgorithmConfig;
use fairrate_units::{Bytes, Rate, Time};

use crate::ids::NodeId;
use crate::transport::TcpConfig;

/// A central allocator of rates and the endpoints' conversation with it, over persistent TCP connections.
#[derive(Clone, Debug, PartialEq)]
pub struct AllocatorConfig {
    /// The host it runs on, which sends and receives no flows.
    pub host: NodeId,
    /// Hosts that pass messages between servers and the allocator, each for an equal share of the servers; empty:
    /// servers talk to the allocator themselves.
    pub intermediaries: Vec<NodeId>,
    /// Time between two iterations of the optimiser.
    pub interval: Time,
    /// Step size of the optimiser (NED).
    pub gamma: f64,
    /// A rate is told when it has changed by more than this factor; capacities are lowered by as much.
    pub threshold: f64,
    /// How long rates hold if nothing is heard of the allocator.
    pub lifetime: Time,
    /// How long the allocator is silent toward a server that has flows before it says that it is still there.
    pub sign_of_life: Time,
    /// How long a flow has nothing to send before its flowlet is over.
    pub flowlet_gap: Time,
    /// The lines: connections that carry messages.
    pub tcp: TcpConfig,
    /// Their congestion control.
    pub cc: AlgorithmConfig,
    /// Their class in the network.
    pub class: u8,
    /// Least size of their packets on the wire.
    pub min_packet: Bytes,
    /// Times from which and until which the allocator is dead; it comes back knowing nothing.
    pub outages: Vec<(Time, Time)>,
    /// Stand-ins for traffic that the allocator does not rule.
    pub external: Vec<ExternalFlow>,
    /// Traffic blocks whose flows it does not rule: they stay under plain TCP.
    pub external_groups: Vec<u32>,
}

/// A flow that the allocator reckons with although nobody asks for it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ExternalFlow {
    /// Sender.
    pub src: NodeId,
    /// Receiver.
    pub dst: NodeId,
    /// Weight in the objective.
    pub weight: f64,
    /// Most it takes; [`Rate::MAX`]: no limit.
    pub rate: Rate,
}
