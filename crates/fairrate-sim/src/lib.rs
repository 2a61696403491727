//! A deterministic packet-level simulator of datacenter fabrics.
//!
//! A [`SimConfig`] is everything a run is made from; [`Simulation`] runs it and tells a [`Sink`] what happens.

mod config;
mod ids;
mod output;
pub mod topology;

pub use config::{
    BaseRttRule, ClockRule, EcmpHash, EcnConfig, FabricConfig, FlowSpec, Headroom, MarkAt, ProbeSpec, Recovery,
    SimConfig, StopRule, TransportConfig, WindowRule,
};
pub use ids::{FlowId, NodeId, PortId};
pub use output::{Drops, FlowOutcome, PfcEvent, PortSample, RateSample, RunTotals, Sink};

mod simulation;
pub use simulation::{Progress, SimError, Simulation};
