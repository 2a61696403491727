//! Allocation of capacity: the rates of a set of flows under an objective, computed exactly and by methods that
//! approach them, and allocators that do this as fast as flows or packets arrive. The calculations have no packets on
//! links and no time.
//!
//! - [`max_min()`]: weighted max-min fairness, by water-filling; [`MaxMin`]: the same for flows that are added and
//!   removed.
//! - [`Num`]: network utility maximisation by prices, as flows begin and end; [`reference()`]: the same to the last
//!   digits; [`kkt_residual`]: the proof.
//! - [`SyncPerc`]: the iterations of synchronous PERC, which lead to the same rates.
//! - [`RealTime`]: Flowtune's NED and F-NORM as an engine for real time.
//! - [`fastpass`]: the arbiter of Fastpass, timeslots and paths of single packets.
//! - [`parse_links`], [`parse_flows`], [`parse_host_flows`]: the network of an allocation from CSV texts.
//!
//! A [`Network`] is any set of links with capacities and flows with the links they use; it needs no topology and no
//! routing. Only [`Clos`] and [`fastpass`] have networks of their own. This crate does no IO and reads no clock.

mod class_max_min;
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

pub use class_max_min::{ClassMaxMin, MAX_CLASSES};
pub use engine::{FlowKey, RateEngine};
pub use input_error::FileError;
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
