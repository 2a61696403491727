//! How capacity is shared: what an objective says the rates of a set of flows are, exactly and by methods that approach it,
//! and allocators that do so as fast as flows or packets come. Without packets on links and without time.
//!
//! - [`max_min()`]: weighted max-min fairness, by water-filling; [`MaxMin`]: the same for flows that come and go.
//! - [`Num`]: network utility maximisation by prices, as flows come and go; [`reference()`]: the same to the last digits;
//!   [`kkt_residual`]: the proof.
//! - [`SyncPerc`]: the iterations of synchronous PERC, which lead to the same rates.
//! - [`RealTime`]: Flowtune's NED and F-NORM as an engine for real time.
//! - [`fastpass`]: the arbiter of Fastpass, timeslots and paths of single packets.
//! - [`parse_links`], [`parse_flows`], [`parse_host_flows`]: the network of an allocation from CSV texts.
//!
//! A [`Network`] is any set of links with capacities and flows with the links they use; no topology and no routing
//! are needed; only [`Clos`] and [`fastpass`] have networks of their own. There is no IO and no clock in here.

mod csv;
mod engine;
pub mod fastpass;
mod input_error;
mod kkt;
mod max_min;
mod network;
mod normalize;
mod num;
mod read;
mod realtime;
mod reference;
mod service;
mod sync_perc;
mod utility;

pub use engine::{FlowKey, RateEngine};
pub use input_error::{FileError, nearest};
pub use kkt::{KktResidual, Solution, kkt_residual, objective};
pub use max_min::{Allocation, MaxMin, max_min};
pub use network::{Flow, Link, LinkId, Network, NetworkError};
pub use normalize::Normaliser;
pub use num::{Convergence, Gradient, Method, Ned, Num, NumConfig};
pub use read::{HostFlow, parse_flows, parse_host_flows, parse_links};
pub use realtime::{Aggregation, Clos, Instructions, Partition, Place, RealTime, Side};
pub use reference::{ReferenceError, reference, reference_memory};
pub use service::{AllocatorService, FlowNumber, Update};
pub use sync_perc::{AtCapacity, Settled, SyncIteration, SyncPerc, overload};
pub use utility::{Response, Utility, UtilityFunction};
