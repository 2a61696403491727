//! Many senders, one receiver: a single incast, and the stream of file requests of PowerTCP section 4.1.

use fairrate_units::{Bytes, Time};

use super::{FieldError, Peers};
use crate::config::FlowSpec;
use crate::ids::NodeId;
use crate::topology::Topology;

/// The senders of an incast.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Senders {
    /// These, in this order.
    Hosts(Vec<NodeId>),
    /// This many, drawn without repetition from the receiver's peers.
    Count {
        /// How many.
        n: u32,
        /// From which hosts.
        from: Peers,
    },
}

/// Senders that start together towards one receiver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Incast {
    /// The receiver.
    pub receiver: NodeId,
    /// The senders.
    pub senders: Senders,
    /// Bytes each sender sends; [`Bytes::MAX`]: endless.
    pub bytes: Bytes,
    /// When they start.
    pub start: Time,
    /// When endless ones stop; [`Time::MAX`]: never.
    pub stop: Time,
    /// Each start is delayed by a uniform time below this.
    pub jitter: Time,
}

/// Which hosts answer a file request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Responders {
    /// Any hosts outside the requester's rack (`other-racks`).
    OtherRacks,
    /// Hosts of one random rack that is not the requester's (`one-other-rack`).
    OneOtherRack,
}

/// A distributed file system (PowerTCP section 4.1): every host requests files as a Poisson process, and the
/// responders of a request send their equal parts at the same time.
#[derive(Clone, Debug, PartialEq)]
pub struct IncastQueries {
    /// Bytes of a file; each responder sends this over `responders`, rounded up.
    pub request_size: Bytes,
    /// How many hosts answer a request.
    pub responders: u32,
    /// Who they are.
    pub from: Responders,
    /// Requests per second of each host. (The public PowerTCP code too has one process per server.)
    pub rate_per_host_per_s: f64,
    /// First possible request.
    pub start: Time,
    /// No requests from here on.
    pub stop: Time,
}

impl Incast {
    /// The flows.
    ///
    /// # Errors
    /// Names the parameter that does not fit the topology.
    pub fn generate(&self, topology: &Topology, seed: u64, group: u32) -> Result<Vec<FlowSpec>, FieldError> {
        let _ = (topology, seed, group);
        Ok(Vec::new())
    }
}

impl IncastQueries {
    /// The flows.
    ///
    /// # Errors
    /// Names the parameter that does not fit the topology.
    pub fn generate(&self, topology: &Topology, seed: u64, group: u32) -> Result<Vec<FlowSpec>, FieldError> {
        let _ = (topology, seed, group);
        Ok(Vec::new())
    }
}
