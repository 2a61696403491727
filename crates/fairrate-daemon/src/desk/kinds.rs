//! The configuration of a desk, the identities of its peers, and its counters.

use std::net::IpAddr;
use std::time::Duration;

/// The configuration of a desk.
#[derive(Clone, Debug)]
pub struct DeskConfig {
    /// Random number drawn when the allocator starts.
    pub instance: u64,
    /// Lifetime of flows without a message of their agent, and of rates without a message of the allocator.
    pub lease: Duration,
    /// Relative change of a rate, since it was sent last, beyond which it is sent again.
    pub threshold: f64,
    /// Largest number of agents. Beyond it, the connection is closed with a reason.
    pub max_agents: usize,
    /// Largest number of agents of one identity. Beyond it, the connection is closed with a reason.
    pub max_sessions: usize,
    /// Largest number of flows of one identity, of all its agents together. Beyond it, a flow has no rate.
    pub max_flows: usize,
    /// Number of agents of which more than half have to accept the allocator before it tells rates; zero: of those
    /// that it knows, and of none if no agent has another allocator.
    pub quorum: usize,
}

/// The state of an allocator's right to decide.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reign {
    /// `true` if the allocator tells rates.
    pub decides: bool,
    /// `true` while no rate may grow, since rates of an earlier allocator may be in force.
    pub is_holding: bool,
    /// `true` if no agent has another allocator, and no quorum is configured.
    pub is_alone: bool,
    /// Number of agents of which more than half have to accept it.
    pub n_voters: usize,
    /// Number of those that have accepted it.
    pub n_with_it: usize,
    /// Number of agents that have accepted another allocator's higher epoch.
    pub n_elsewhere: usize,
    /// Number of voters that have no allocator, and want this one.
    pub n_willing: usize,
    /// Number of agents that may have rates: those with a lease, and after a start those of an earlier allocator.
    pub n_agents: usize,
}

/// The other side of a connection: it defines whose flows the peer may report, and whose quotas it uses.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Identity {
    /// The address from which a connection without TLS was made. It may report the flows of all hosts.
    Peer(IpAddr),
    /// The addresses that a certificate names, in order. It may report the flows sent from these addresses.
    Addresses(Vec<IpAddr>),
}

impl Identity {
    pub(super) fn may_speak_for(&self, address: IpAddr) -> bool {
        match self {
            Self::Peer(_) => true,
            Self::Addresses(addresses) => addresses.binary_search(&address).is_ok(),
        }
    }
}

/// The urgency of something to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Urgency {
    /// The first rate of a flow, or the answer to HELLO: it is sent at once.
    Now,
    /// Changes of rates, of which only the newest is needed, and keep-alive messages: they wait for others.
    Soon,
}

/// The reason why a flow gets no rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The flow's source is not an address of the agent.
    Unauthorised,
    /// The agent's identity has the largest number of flows.
    TooManyFlows,
    /// No path leads from its source to its destination.
    NoPath,
}

impl Refusal {
    /// All reasons.
    pub const ALL: [Self; 3] = [Self::Unauthorised, Self::TooManyFlows, Self::NoPath];

    /// Returns the reason's name in metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Unauthorised => "unauthorised",
            Self::TooManyFlows => "too-many-flows",
            Self::NoPath => "no-path",
        }
    }
}

/// Counts of events so far.
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
