//! Congestion control algorithms as pure decisions: a [`Controller`] is told what a sender learns (an
//! acknowledgment, a loss, a congestion notification, a timer) and answers with an [`Allowance`].
//!
//! Nothing in here knows packets, sockets, clocks or threads, so the same code runs in the simulator, in
//! tests and on hosts. One algorithm is one file; [`registry`] holds the one table of all of them.

mod config;
mod controller;
mod int;
mod registry;

pub mod line_rate;

pub use config::{Param, ParamKind, ParamType, Parameters, Profile, RawValue, SetParamError};
pub use controller::{Ack, Allowance, AlgorithmSpec, Controller, FlowContext, Loss, Needs};
pub use int::{IntCounter, IntDelta, IntFormat, IntHop};
pub use registry::{ALGORITHMS, Algorithm, AlgorithmConfig, AlgorithmInfo};
