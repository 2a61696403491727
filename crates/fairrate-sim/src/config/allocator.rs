//! The central allocator of rates.

use fairrate_control::AlgorithmConfig;
use fairrate_units::{Bytes, Rate, Time};

use crate::ids::NodeId;
use crate::transport::TcpConfig;

/// A central allocator of rates and its message exchange with endpoints, over persistent TCP connections.
#[derive(Clone, Debug, PartialEq)]
pub struct AllocatorConfig {
    /// The host it runs on, which sends and receives no flows.
    pub host: NodeId,
    /// Hosts that relay messages between servers and the allocator, each for an equal share of the servers; empty:
    /// servers exchange messages with the allocator directly.
    pub intermediaries: Vec<NodeId>,
    /// Time between two iterations of the optimiser.
    pub interval: Time,
    /// Step size of the optimiser (NED).
    pub gamma: f64,
    /// Relative change of a rate above which the new rate is sent; capacities are lowered by the same factor.
    pub threshold: f64,
    /// Time that rates stay valid without a message from the allocator.
    pub lifetime: Time,
    /// Time without a message to a server with active flows after which the allocator sends that server a keep-alive.
    pub sign_of_life: Time,
    /// Idle time of a flow after which its flowlet ends.
    pub flowlet_gap: Time,
    /// The TCP connections that carry messages ("lines").
    pub tcp: TcpConfig,
    /// Congestion control of the lines.
    pub cc: AlgorithmConfig,
    /// Priority class of the lines in the network.
    pub class: u8,
    /// Least size of the lines' packets on the wire.
    pub min_packet: Bytes,
    /// Start and end times of outages of the allocator; after each it restarts without state.
    pub outages: Vec<(Time, Time)>,
    /// Stand-ins for traffic that the allocator does not control.
    pub external: Vec<ExternalFlow>,
    /// Traffic blocks whose flows the allocator does not control: they stay under plain TCP.
    pub external_groups: Vec<u32>,
}

/// A flow that the allocator includes in its computation although no endpoint requests it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ExternalFlow {
    /// Sender.
    pub src: NodeId,
    /// Receiver.
    pub dst: NodeId,
    /// Weight in the objective.
    pub weight: f64,
    /// Highest rate of the flow; [`Rate::MAX`]: no limit.
    pub rate: Rate,
}
