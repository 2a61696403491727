//! The complete input of a run, without defaults: those are in the scenario schema.

mod allocator;
mod balance;
mod classes;
mod dependencies;
mod fabric;
mod faults;
mod flows;
mod hosts;
mod queue;
mod transport;

use fairrate_control::{AlgorithmConfig, Needs, NetworkNeeds};
use fairrate_units::{Bytes, Rate, Time};

pub use self::allocator::{AllocatorConfig, ExternalFlow};
pub use self::balance::{Adaptive, BALANCES, Balance, BalanceInfo, Conga, Rehash, Reroute, Signal};
pub use self::classes::ClassConfig;
pub use self::dependencies::{Activity, Dependency, DependencyError, Milestone, TaskSpec, check_dependencies};
pub(crate) use self::dependencies::{Successor, Successors, n_dependencies};
pub use self::fabric::{
    AdmissionConfig, ClockRule, EcmpHash, EcnConfig, FabricConfig, Headroom, LevelsByRate, MarkAt, MarkBy, MarkDraws,
    NonEct, PauseLevels, Pfc, TieRule, Trim,
};
pub use self::faults::{BurstLoss, FailureWindows, FaultConfig, FaultPackets, Flap};
pub use self::flows::{Burst, Change, Connection, FlowSpec, Trigger};
pub use self::hosts::{Distribution, FullBuffer, HostConfig, Jitter, Noise, ReceiveBuffer};
pub use self::queue::{CoDelConfig, Overflow, QUEUES, QueueConfig, QueueInfo, QueueRule, RedConfig, SfqCoDelConfig};
pub use self::transport::{
    BaseRttRule, Entropy, EntropyScheme, Recovery, Stack, Transport, TransportConfig, WindowRule,
};
use crate::collectives::CollectiveSpec;
use crate::ids::{FlowId, NodeId, PortId};
use crate::jobs::JobSpec;
use crate::shared::Shared;
use crate::topology::Topology;
pub use crate::transport::{
    DelayedAck, EcnEcho, LossDetection, MarkReduction, MptcpConfig, Scheduler, SubflowPaths, TcpConfig,
};

/// A complete, runnable simulation.
#[derive(Clone, Debug)]
pub struct SimConfig {
    /// The network. Every packet takes time on every link: with whole nanoseconds, a fast link needs a delay.
    pub topology: Topology,
    /// Behaviour of its links and switches.
    pub fabric: FabricConfig,
    /// Transport of the hosts.
    pub transport: TransportConfig,
    /// Congestion control of the hosts.
    pub cc: AlgorithmConfig,
    /// Control of the flows that have another [`FlowSpec::stack`] than 0; at most [`MAX_STACKS`](Self::MAX_STACKS)
    /// less 1. All have the same `mtu`. None has an oracle, an allocator or receivers that grant; if there are any, the
    /// algorithm above has none either.
    pub beside: Vec<Stack>,
    /// The flows; a [`FlowId`] is a position in here.
    pub flows: Shared<FlowSpec>,
    /// Flows that start or stop one after the other, each once the rates have converged after the one before. They need
    /// [`ProbeSpec::Convergence`].
    pub changes: Vec<Change>,
    /// Work of hosts that sends nothing; a [`TaskId`](crate::TaskId) is a position in here. A run ends when it is done,
    /// as with flows.
    pub tasks: Vec<TaskSpec>,
    /// The flows and tasks for which flows with [`Trigger::Dependencies`] and tasks wait; they satisfy
    /// [`check_dependencies`].
    pub dependencies: Shared<Dependency>,
    /// The collective operations that flows are messages of.
    pub collectives: Vec<CollectiveSpec>,
    /// The jobs that flows are messages of and tasks are parts of.
    pub jobs: Vec<JobSpec>,
    /// Faults of links.
    pub faults: Vec<FaultConfig>,
    /// Hosts that are not ideal.
    pub hosts: Vec<HostConfig>,
    /// The central allocator, if the algorithm needs one.
    pub allocator: Option<AllocatorConfig>,
    /// The samples to take.
    pub probes: Vec<ProbeSpec>,
    /// Times of [`Sink::snapshot`](crate::Sink::snapshot), ascending; a snapshot is taken before any other event of its
    /// time. Snapshots do not change the fingerprint.
    pub snapshots: Vec<Time>,
    /// End of the run.
    pub stop: StopRule,
    /// Seed of every random stream.
    pub seed: u64,
}

/// Returns a share of a rate, above zero.
fn share_of(rate: Rate, share: f64) -> Rate {
    if share == 1.0 { rate } else { Rate::from_bps_f64(rate.as_bps_f64() * share).max(Rate::from_bps(1)) }
}

impl SimConfig {
    /// Largest number of stacks in a run.
    pub const MAX_STACKS: usize = 64;

    /// Returns the transport and the algorithm of all stacks, in order: first those of the hosts, then those beside.
    pub fn stacks(&self) -> impl ExactSizeIterator<Item = (&TransportConfig, &AlgorithmConfig)> {
        (0..=self.beside.len() as u8).map(|stack| self.stack(stack))
    }

    /// Returns the transport and the algorithm of a stack, as [`FlowSpec::stack`] numbers them.
    pub fn stack(&self, stack: u8) -> (&TransportConfig, &AlgorithmConfig) {
        match usize::from(stack).checked_sub(1).map(|beside| &self.beside[beside]) {
            None => (&self.transport, &self.cc),
            Some(Stack { transport, cc }) => (transport, cc),
        }
    }

    /// Returns what the network has to do for all algorithms together. Demands on marking are left out where algorithms
    /// have different ones: the configuration has the marking.
    ///
    /// # Panics
    /// Two algorithms need different things of the network.
    pub fn network_needs(&self) -> NetworkNeeds {
        let mut all = self.cc.needs().network;
        for stack in &self.beside {
            let unmarked = |needs: NetworkNeeds| NetworkNeeds { red: None, ..needs };
            all =
                unmarked(all).union(&unmarked(stack.cc.needs().network)).expect("the algorithms fit into one network");
        }
        all
    }

    /// Returns `true` if a flow may start when another ends at another end point of the same host.
    pub(crate) fn starts_across_ends(&self) -> bool {
        let has_followers = || self.flows.iter().any(|flow| matches!(flow.trigger, Trigger::After(..)));
        let has_ports = !self.topology.second_ports.are_none();
        !self.dependencies.is_empty() && self.topology.has_several_ends() || has_ports && has_followers()
    }

    /// Returns the class of the data of a flow.
    pub(crate) fn class_of(&self, flow: &FlowSpec) -> u8 {
        flow.class.unwrap_or(self.stack(flow.stack).0.data_class)
    }

    /// Returns the time at which a flow starts or a task ends that is ready at `ready_ps`, in picoseconds.
    pub(crate) fn due_ps(&self, activity: Activity, ready_ps: u64) -> u64 {
        let ready_at = |start: Time| start.as_ps().max(ready_ps);
        let flow = activity.flow().map(|id| ready_at(self.flows[id.index()].start));
        let task = activity.task().map(|id| &self.tasks[id.index()]);
        flow.or(task.map(|task| ready_at(task.start).saturating_add(task.duration.as_ps()))).unwrap_or(ready_ps)
    }

    /// Returns the needs of the stacks' algorithms for which `is_so` holds.
    pub(crate) fn is_any(&self, is_so: impl Fn(&TransportConfig, &Needs) -> bool) -> bool {
        self.stacks().any(|(transport, cc)| is_so(transport, &cc.needs()))
    }

    /// Returns the bytes on the wire of the longest data packet.
    #[must_use]
    pub fn longest_packet(&self) -> Bytes {
        let header = |(transport, cc): (&TransportConfig, &AlgorithmConfig)| transport.data_header(&cc.needs());
        self.transport.mtu + self.stacks().map(header).max().expect("there is a first stack")
    }

    /// Returns the reaction of switches to links that are down, if links go down.
    #[must_use]
    pub fn reroute(&self) -> Option<Reroute> {
        self.fabric.reroute.filter(|_| self.faults.iter().any(|fault| fault.flap.is_some()))
    }

    /// Returns the rate of a port's link at `t`, with faults.
    #[must_use]
    pub fn rate_at(&self, port: PortId, t: Time) -> Rate {
        let slow = self.faults.iter().filter(|fault| fault.is_slow_at(t) && fault.ports.contains(&port));
        share_of(self.topology.link(port).rate, slow.map(|fault| fault.rate).product())
    }

    /// Returns the rates of all links at `t`, with faults, by their egress ports.
    #[must_use]
    pub(crate) fn rates_at(&self, t: Time) -> Vec<Rate> {
        let mut shares = vec![1.0; self.topology.n_ports()];
        for fault in self.faults.iter().filter(|fault| fault.is_slow_at(t)) {
            fault.ports.iter().for_each(|port| shares[port.index()] *= fault.rate);
        }
        (0..).map(PortId).zip(shares).map(|(port, share)| share_of(self.topology.link(port).rate, share)).collect()
    }

    /// Returns `true` if packets of a flow may overtake each other, where there are several paths.
    #[must_use]
    pub fn may_reorder(&self) -> bool {
        match self.fabric.balance {
            Balance::Ecmp | Balance::Wcmp | Balance::Flowlet { .. } | Balance::Conga(_) => false,
            // PLB keeps a value for as long as its path is good.
            Balance::Host => self
                .stacks()
                .any(|(transport, _)| transport.entropy.is_some_and(|entropy| entropy.scheme != EntropyScheme::Plb)),
            Balance::Adaptive(adaptive) => adaptive.sticky.is_none(),
            Balance::Spray | Balance::RoundRobin | Balance::Drill { .. } => true,
        }
    }

    /// Returns `true` if a packet's port is chosen when the packet is at the switch, and not before its flow starts.
    #[must_use]
    pub fn goes_hop_by_hop(&self) -> bool {
        self.fabric.balance.is_by_packet() || self.reroute().is_some()
    }
}

/// The end of a run: at a time, or when every finite flow is done, whichever is first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StopRule {
    /// End of simulated time.
    pub at: Option<Time>,
    /// Set when the run ends once every finite flow has been acknowledged in full.
    pub when_flows_done: bool,
}

/// Samples to take during the run.
#[derive(Clone, Debug, PartialEq)]
pub enum ProbeSpec {
    /// Counters of egress ports.
    Ports {
        /// The ports.
        ports: Vec<PortId>,
        /// Time between samples.
        every: Time,
    },
    /// Receive buffers of hosts.
    Hosts {
        /// The hosts.
        hosts: Vec<NodeId>,
        /// Time between samples.
        every: Time,
    },
    /// Window, rate and progress of flows while they are active.
    Flows {
        /// The flows; `None`: all.
        flows: Option<Vec<FlowId>>,
        /// Time between samples.
        every: Time,
    },
    /// Round-trip times that senders measure, which a [`Sink`](crate::Sink) that wants them receives.
    Rtts,
    /// Time that rates take to reach the exact max-min optimum after every arrival and departure of a flow (PERC
    /// section 4.2).
    Convergence {
        /// Largest relative error of a rate that counts as converged.
        tolerance: f64,
        /// Base RTTs for which all rates must stay within the tolerance.
        hold_rtts: u32,
        /// Base RTTs after which a change counts as not converged, and the next of [`SimConfig::changes`] follows.
        give_up_rtts: u32,
    },
}
