//! A deterministic packet-level simulator of datacenter fabrics.
//!
//! A [`SimConfig`] is the complete input of a run; [`Simulation`] runs it and reports its events to a [`Sink`]. A
//! [`Recorder`] is a sink that stores all of them.

// A packet passes through dozens of small functions, and the compiler does not inline those with several callers. A
// call costs as much as many of their bodies, and its caller keeps what it works on in memory.
#![allow(clippy::inline_always)]

mod collectives;
mod config;
mod core;
pub mod engine;
mod fabric;
mod fluid;
mod huge_pages;
pub mod ideal;
mod ids;
mod input_error;
mod jobs;
mod mrg32k3a;
mod optimum;
mod output;
mod packet;
mod prefetch;
pub mod rng;
pub mod routing;
mod shared;
mod simulation;
mod sorting;
mod table;
mod thread_clock;
pub mod topology;
mod transport;
pub mod workload;

pub use collectives::{CollectiveBook, CollectiveSpec, IterationOutcome};
pub use config::{
    Activity, Adaptive, AdmissionConfig, AllocatorConfig, BALANCES, Balance, BalanceInfo, BaseRttRule, Burst,
    BurstLoss, Change, ClassConfig, ClockRule, CoDelConfig, Conga, Connection, DelayedAck, Dependency, DependencyError,
    Distribution, EcmpHash, EcnConfig, EcnEcho, Entropy, EntropyScheme, ExternalFlow, FabricConfig, FailureWindows,
    FaultConfig, FaultPackets, Flap, FlowSpec, FullBuffer, Headroom, HostConfig, Jitter, LevelsByRate, LossDetection,
    MarkAt, MarkBy, MarkDraws, MarkReduction, Milestone, MptcpConfig, Noise, NonEct, Overflow, PauseLevels, Pfc,
    ProbeSpec, QUEUES, QueueConfig, QueueInfo, QueueRule, ReceiveBuffer, Recovery, RedConfig, Rehash, Reroute,
    Scheduler, SfqCoDelConfig, Signal, SimConfig, Stack, StopRule, SubflowPaths, TaskSpec, TcpConfig, TieRule,
    Transport, TransportConfig, Trigger, Trim, WindowRule, check_dependencies,
};
pub use core::{CriticalPath, Meeting, Mode, Reason, Work};
pub use fabric::DropCause;
pub use ids::{FlowId, HostId, NodeId, PortId, TaskId};
pub use input_error::{FieldError, FileError};
pub use jobs::{
    JobBook, JobIteration, JobSpec, OperationKind, OperationSpec, PartOutcome, PartSpec, ProcessGroup, RankTimes,
    message_groups,
};
pub use output::*;
pub use packet::PacketKind;
pub use shared::Shared;
#[doc(hidden)]
pub use simulation::Switching;
pub use simulation::{Progress, SimError, Simulation};
