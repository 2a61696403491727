//! Who sends what to whom, and when.
//!
//! Each generator is a struct of its parameters. `generate` makes the same flows whenever the topology, the
//! parameters and the seed are the same, sorted by start time and sender.

pub mod flow_list;
pub mod incast;
pub mod patterns;
pub mod poisson;
pub mod sizes;
mod tables;

pub use crate::input_error::FieldError;
pub use flow_list::parse_flow_list;
pub use incast::{Incast, IncastQueries, Responders, Senders};
pub use patterns::{AllToAll, Permutation, Staggered};
pub use poisson::Poisson;
pub use sizes::{SizeDistribution, WORKLOADS, WorkloadInfo};

/// Which hosts a host may be paired with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peers {
    /// Any host of another rack (`other-rack`).
    OtherRack,
    /// Any other host (`other-host`).
    OtherHost,
    /// Any other host of the same rack (`same-rack`).
    SameRack,
    /// Any other host from the first one of the own rack on: the skewed choice of the public PowerTCP
    /// workload generator (`from-own-rack-on`).
    FromOwnRackOn,
}
