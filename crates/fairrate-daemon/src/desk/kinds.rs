//! What a desk goes by, whom it talks with, and what it counts.

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

/// What a desk goes by.
#[derive(Clone, Debug)]
pub struct DeskConfig {
    /// A number drawn when the allocator starts.
    pub epoch: u64,
    /// How long flows last without a word of their agent, and rates without one of the allocator.
    pub lease: Duration,
    /// A rate is told when it is off by more than this share of what was told last.
    pub threshold: f64,
    /// Agents at most. Beyond: the connection is closed with a reason.
    pub max_agents: usize,
    /// Agents of one identity at most. Beyond: the connection is closed with a reason.
    pub max_sessions: usize,
    /// Flows of one identity at most, of all its agents together. Beyond: a flow has no rate.
    pub max_flows: usize,
}

/// The other side of a connection: whose flows it may tell, and whose quotas it uses.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Identity {
    /// The address that a connection without TLS comes from. It may tell everybody's flows.
    Peer(IpAddr),
    /// The addresses that a certificate names, in order. It may tell the flows sent from these.
    Addresses(Vec<Ipv4Addr>),
}

impl Identity {
    pub(super) fn may_speak_for(&self, address: Ipv4Addr) -> bool {
        match self {
            Self::Peer(_) => true,
            Self::Addresses(addresses) => addresses.binary_search(&address).is_ok(),
        }
    }
}

/// Whether something to say can wait for others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Urgency {
    /// It cannot: the first rate of a flow, or who the allocator is.
    Now,
    /// It can: changes of rates, of which the newest will do, and signs of life.
    Soon,
}

/// Why a flow gets no rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Its source is not the agent's.
    Unauthorised,
    /// The agent's identity has as many flows as it may.
    TooManyFlows,
    /// No path leads from its source to its destination.
    NoPath,
}

impl Refusal {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Unauthorised, Self::TooManyFlows, Self::NoPath];

    /// Its name in metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Unauthorised => "unauthorised",
            Self::TooManyFlows => "too-many-flows",
            Self::NoPath => "no-path",
        }
    }
}

/// What has happened so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Flowlets that began.
    pub starts: u64,
    /// Flowlets that ended.
    pub ends: u64,
    /// Rates written.
    pub rates: u64,
    /// Flows refused, by [`Refusal`].
    pub refused: [u64; Refusal::ALL.len()],
    /// Agents whose lease ended.
    pub leases_ended: u64,
    /// Iterations.
    pub iterations: u64,
}

impl Counts {
    /// Returns the number of flows refused for this reason.
    pub fn refused_for(&self, why: Refusal) -> u64 {
        self.refused[why as usize]
    }
}
