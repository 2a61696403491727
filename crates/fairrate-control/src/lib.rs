//! Congestion control algorithms as pure decisions. A [`Controller`] is called for each event at a sender (an
//! acknowledgment, a loss, a congestion notification, a timer) and returns an [`Allowance`]. If an algorithm also runs
//! in switches, its [`PortAgent`] is called for packets at an egress port; it marks them, writes their headers and
//! sends notices.
//!
//! Nothing in this crate uses packets, sockets, clocks or threads, so the same code runs in the simulator, in tests
//! and on hosts. Each algorithm has a file of its own; [`ALGORITHMS`] is the table of all of them.

mod config;
mod constants;
mod controller;
mod coupled;
mod custom;
mod draws;
mod explicit_rate;
mod flow_table;
pub mod forward;
mod int;
mod limits;
mod link_queue;
#[cfg(test)]
mod message_passing;
mod needs;
mod network_conflict;
mod pi_marker;
mod port;
mod power_law;
mod rate_table;
mod registry;
mod subflow;
#[cfg(test)]
mod test_flow;

pub mod amp;
pub mod balia;
pub mod bbr;
pub mod bfc;
pub mod charny;
pub mod credits;
pub mod cubic;
pub mod d2tcp;
pub mod dcqcn;
pub mod dcqcn_pi;
pub mod dctcp;
pub mod eqds;
pub mod flowtune;
pub mod homa;
pub mod hpcc;
pub mod hull;
pub mod ideal;
pub mod lia;
pub mod line_rate;
pub mod mpcc;
pub mod ndp;
pub mod newreno;
pub mod nscc;
pub mod olia;
pub mod pacc;
pub mod patched_timely;
pub mod perc;
pub mod pfabric;
pub mod powertcp;
pub mod qcn;
pub mod ratemp;
pub mod rccc;
pub mod rcp;
mod records;
pub mod retcp;
pub mod rocc;
pub mod swift;
pub mod theta_powertcp;
pub mod timely;
pub mod xcp;
pub mod xmp;

pub use config::{Param, ParamKind, ParamType, Parameters, Profile, RawValue, Scale, SetParamError, TuneRange, choose};
pub use constants::{Constant, ConstantSet, constant_sets, constant_sets_of};
pub use controller::{Ack, AlgorithmSpec, Allowance, Controller, FlowContext, Loss, MadeFor, Trimmed};
pub use coupled::{Alone, CoupledController, CoupledSpec, PathState};
pub use custom::{CustomAlgorithm, LibraryError, OpenLibrary, Registry, RegistryError, names_library};
pub use int::{IntCounter, IntDelta, IntFormat, IntHop, PortRate};
pub use needs::{
    Bucket, CircuitHelp, FeedbackNeeds, MarkedQueue, Needs, NetworkNeeds, Oracle, PacingNeeds, Queueing, RedDefault,
    Telemetry, WireNeeds,
};
pub use network_conflict::NetworkConflict;
pub use port::{
    Actions, FlowPause, HeaderWords, NOTICE_VALUES, NoPort, Notice, PortAgent, PortContext, PortPacket, PortPacketKind,
    PortScope, PortStep, PortView,
};
pub use registry::{ALGORITHMS, Algorithm, AlgorithmConfig, AlgorithmInfo, CoupledAlgorithm, PortAlgorithm};

/// The worked example of CONTRIBUTING.md, which the documentation tests compile and run.
#[cfg(doctest)]
#[doc = include_str!("../CONTRIBUTING.md")]
pub struct Contributing;
