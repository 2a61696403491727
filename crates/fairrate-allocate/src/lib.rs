//! Exact references for how capacity is shared: what an objective says the rates of a set of flows are, without
//! packets and without time.
//!
//! - [`max_min`]: weighted max-min fairness, by water-filling.
//! - [`parse_links`], [`parse_flows`]: the network of an allocation from two CSV texts.
//!
//! A [`Network`] is any set of links with capacities and flows with the links they use; no topology and no routing
//! are needed. There is no IO and no clock in here.

mod csv;
mod input_error;
mod max_min;
mod network;
mod read;

pub use input_error::{FileError, nearest};
pub use max_min::{Allocation, max_min};
pub use network::{Flow, Link, LinkId, Network, NetworkError};
pub use read::{parse_flows, parse_links};
