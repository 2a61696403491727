//! Regular patterns: staggered starts, a permutation, all to all.

use fairrate_units::{Bytes, Time};

use super::{FieldError, Senders};
use crate::config::FlowSpec;
use crate::ids::NodeId;
use crate::topology::Topology;

/// Flows towards one receiver that start, and stop, one after the other (PowerTCP Fig. 5).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Staggered {
    /// The receiver.
    pub receiver: NodeId,
    /// The senders, in the order in which they start.
    pub senders: Senders,
    /// When the first starts.
    pub start: Time,
    /// Time from one start to the next.
    pub interval: Time,
    /// How long each sends if it is endless; [`Time::MAX`]: for ever.
    pub hold: Time,
    /// Bytes each sender sends; [`Bytes::MAX`]: endless.
    pub bytes: Bytes,
}

/// Every host sends to one other host and receives from one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Permutation {
    /// Bytes of each flow; [`Bytes::MAX`]: endless.
    pub bytes: Bytes,
    /// When all start.
    pub start: Time,
}

/// Every host sends to every other host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AllToAll {
    /// Bytes of each flow; [`Bytes::MAX`]: endless.
    pub bytes: Bytes,
    /// When all start.
    pub start: Time,
}

macro_rules! stub {
    ($($name:ident)*) => {$(
        impl $name {
            /// The flows.
            ///
            /// # Errors
            /// Names the parameter that does not fit the topology.
            pub fn generate(&self, topology: &Topology, seed: u64, group: u32) -> Result<Vec<FlowSpec>, FieldError> {
                let _ = (topology, seed, group);
                Ok(Vec::new())
            }
        }
    )*};
}
stub!(Staggered Permutation AllToAll);
