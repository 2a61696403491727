//! The flows of a workload: sender, receiver, size and time.

use fairrate_units::{Bytes, Rate, Time};

use crate::ids::{FlowId, NodeId};

/// One flow of the workload.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowSpec {
    /// Sender.
    pub src: NodeId,
    /// Receiver.
    pub dst: NodeId,
    /// Payload bytes; [`Bytes::MAX`]: endless.
    pub bytes: Bytes,
    /// Start time; for a flow with another trigger, the earliest start time.
    pub start: Time,
    /// The event that starts the flow.
    pub trigger: Trigger,
    /// Time at which an endless flow stops sending new bytes; [`Time::MAX`]: never. From this time on, a flow that
    /// waits for another flow does not start any more.
    pub stop: Time,
    /// Source port, for ECMP.
    pub sport: u16,
    /// Destination port, for ECMP.
    pub dport: u16,
    /// Priority class of the flow's data, 0 (highest) to 7; `None`: the transport's data class.
    pub class: Option<u8>,
    /// Weight, for algorithms that support weights.
    pub weight: f64,
    /// Highest rate that the application offers, in bits on the wire per second; [`Rate::MAX`]: no limit.
    pub demand: Rate,
    /// Time from the flow's start by which the last byte of a finite flow should have arrived; `None`: no deadline.
    pub deadline: Option<Time>,
    /// Number of subflows over which TCP spreads the flow, at least 1; `None`: the transport's number.
    pub subflows: Option<u8>,
    /// The connection that the flow is sent over.
    pub connection: Connection,
    /// Bursts in which an endless flow offers its data; `None`: all at once.
    pub burst: Option<Burst>,
    /// The traffic block of the flow: an index for grouping results.
    pub group: u32,
    /// The transport and algorithm of the flow: 0 for those of the hosts, n for the n-th of
    /// [`SimConfig::beside`](crate::SimConfig::beside).
    pub stack: u8,
    /// Iteration of the collective of its traffic block; [`FlowSpec::NO_ITERATION`]: it is no message of a collective.
    pub iteration: u32,
    /// Number of messages of a ring that the flow stands for, each of which waits for one like it from the rank before;
    /// 1: it is no such flow. Only runs without packets know others. All flows of a ring start together, and one task
    /// waits for them.
    pub steps: u16,
    /// Id given by the user; [`FlowSpec::NO_ID`]: the flow's position, as its [`FlowId`].
    pub id: u32,
}

impl FlowSpec {
    /// The value of `id` for a flow without an id of its own.
    pub const NO_ID: u32 = u32::MAX;

    /// The value of `iteration` for a flow that is no message of a collective.
    pub const NO_ITERATION: u32 = u32::MAX;

    /// Returns a flow that starts at `start` with default settings: ports 0, weight 1, the transport's class and
    /// subflows.
    pub const fn new(src: NodeId, dst: NodeId, bytes: Bytes, start: Time) -> Self {
        Self {
            src,
            dst,
            bytes,
            start,
            trigger: Trigger::Time,
            stop: Time::MAX,
            sport: 0,
            dport: 0,
            class: None,
            weight: 1.0,
            demand: Rate::MAX,
            deadline: None,
            subflows: None,
            connection: Connection::PerFlow,
            burst: None,
            group: 0,
            stack: 0,
            iteration: Self::NO_ITERATION,
            steps: 1,
            id: Self::NO_ID,
        }
    }

    /// Returns the flow's id for output: `id`, or `position` if it has none.
    pub fn name(&self, position: FlowId) -> u32 {
        if self.id == Self::NO_ID { position.0 } else { self.id }
    }
}

/// An application that writes a burst, pauses, and writes again on the same connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Burst {
    /// Payload bytes of one write; with TCP, rounded up to a whole number of full packets.
    pub bytes: Bytes,
    /// Time from the moment the last byte of a burst is handed to the wire until the next write.
    pub pause: Time,
}

/// The connection over which a flow is sent, with RDMA.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Connection {
    /// A new connection for each flow, with a controller in its initial state.
    #[default]
    PerFlow,
    /// A connection shared by all such flows of the same sender, receiver and group. They are sent one after the other,
    /// in the order of arrival, and each continues with the controller state of the one before. A flow begins when all
    /// bytes of the one before have been acknowledged; its completion time counts from its arrival.
    PerPair,
}

impl Connection {
    /// All variants with their names in scenarios.
    pub const NAMES: &'static [(&'static str, Self)] = &[("per-flow", Self::PerFlow), ("per-pair", Self::PerPair)];
}

/// The event that starts a flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Trigger {
    /// The flow's start time.
    #[default]
    Time,
    /// The acknowledgment of another flow's last byte, plus a delay: closed-loop sources. A flow has at most one such
    /// successor.
    After(FlowId, Time),
    /// The flow's turn in [`SimConfig::changes`](crate::SimConfig::changes).
    Change,
    /// The last of the flow's [`SimConfig::dependencies`](crate::SimConfig::dependencies), and not before its start
    /// time.
    Dependencies,
}

impl Trigger {
    /// Returns `true` if the flow starts in every run that lasts long enough.
    pub const fn is_sure(self) -> bool {
        matches!(self, Self::Time | Self::Dependencies)
    }
}

/// An arrival or departure of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// The flow starts. Its trigger is [`Trigger::Change`].
    Start(FlowId),
    /// The flow, which is active and endless, stops.
    Stop(FlowId),
}
