//! Everything a run is made from, with no defaults in here: those live in the scenario schema.

mod allocator;
mod fabric;
mod faults;
mod flows;
mod queue;
mod transport;

use fairrate_control::AlgorithmConfig;
use fairrate_units::Time;

pub use self::allocator::{AllocatorConfig, ExternalFlow};
pub use self::fabric::{
    Balancing, ClockRule, EcmpHash, EcnConfig, FabricConfig, Headroom, MarkAt, MarkDraws, Pfc, TieRule,
};
pub use self::faults::{BurstLoss, FaultConfig, FaultPackets, Flap};
pub use self::flows::{Burst, Change, Connection, FlowSpec, Trigger};
pub use self::queue::{CoDelConfig, Overflow, QUEUES, QueueConfig, QueueInfo, QueueRule, RedConfig, SfqCoDelConfig};
pub use self::transport::{BaseRttRule, Recovery, Transport, TransportConfig, WindowRule};
use crate::ids::{FlowId, PortId};
use crate::topology::Topology;
pub use crate::transport::{DelayedAck, EcnEcho, LossDetection, MptcpConfig, Scheduler, SubflowPaths, TcpConfig};

/// A complete, runnable simulation.
#[derive(Clone, Debug)]
pub struct SimConfig {
    /// The network. Every packet takes time on every link: with whole nanoseconds, a fast link needs a delay.
    pub topology: Topology,
    /// How its links and switches behave.
    pub fabric: FabricConfig,
    /// How hosts move bytes.
    pub transport: TransportConfig,
    /// How hosts are controlled.
    pub cc: AlgorithmConfig,
    /// Who sends what; a [`FlowId`] is a position in here.
    pub flows: Vec<FlowSpec>,
    /// Flows that start or stop one after the other, each once the rates have converged after the one before. Needs
    /// [`ProbeSpec::Convergence`].
    pub changes: Vec<Change>,
    /// What is wrong with links.
    pub faults: Vec<FaultConfig>,
    /// The central allocator, if the algorithm needs one.
    pub allocator: Option<AllocatorConfig>,
    /// What is sampled.
    pub probes: Vec<ProbeSpec>,
    /// Times of [`Sink::snapshot`](crate::Sink::snapshot), ascending: before anything else of that time. They leave no trace in
    /// the fingerprint.
    pub snapshots: Vec<Time>,
    /// When the run ends.
    pub stop: StopRule,
    /// Seed of every random stream.
    pub seed: u64,
}

/// When a run ends: at a time, or when every finite flow is done, whichever comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StopRule {
    /// End of simulated time.
    pub at: Option<Time>,
    /// End when every finite flow has been acknowledged in full.
    pub when_flows_done: bool,
}

/// What to sample while the run goes.
#[derive(Clone, Debug, PartialEq)]
pub enum ProbeSpec {
    /// Counters of egress ports.
    Ports {
        /// Which.
        ports: Vec<PortId>,
        /// How often.
        every: Time,
    },
    /// Window, rate and progress of flows while they are active.
    Flows {
        /// Which; `None`: all.
        flows: Option<Vec<FlowId>>,
        /// How often.
        every: Time,
    },
    /// How long rates take to reach the exact max-min optimum after every arrival and departure of a flow (PERC
    /// section 4.2).
    Convergence {
        /// Largest relative error of a rate that counts as converged.
        tolerance: f64,
        /// Base RTTs for which all rates must stay within it.
        hold_rtts: u32,
        /// Base RTTs after which a change counts as not converged, and the next of [`SimConfig::changes`] comes.
        give_up_rtts: u32,
    },
}
