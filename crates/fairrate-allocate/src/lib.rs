//! Exact references for how capacity is shared: what an objective says the rates of a set of flows are, without
//! packets and without time.
//!
//! - [`max_min`]: weighted max-min fairness, by water-filling; [`MaxMin`]: the same for flows that come and go.
//! - [`SyncPerc`]: the iterations of synchronous PERC, which lead to the same rates.
//! - [`parse_links`], [`parse_flows`]: the network of an allocation from two CSV texts.
//!
//! A [`Network`] is any set of links with capacities and flows with the links they use; no topology and no routing
//! are needed. There is no IO and no clock in here.

mod csv;
mod engine;
mod input_error;
mod max_min;
mod network;
mod read;
mod realtime;
mod service;
mod sync_perc;

pub use engine::{FlowKey, RateEngine};
pub use input_error::{FileError, nearest};
pub use max_min::{Allocation, MaxMin, max_min};
pub use network::{Flow, Link, LinkId, Network, NetworkError};
pub use read::{parse_flows, parse_links};
pub use realtime::RealTime;
pub use service::{AllocatorService, FlowNumber, Update};
pub use sync_perc::{AtCapacity, Settled, SyncIteration, SyncPerc, overload};
