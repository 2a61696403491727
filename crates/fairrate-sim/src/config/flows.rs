//! Who sends what, and when.

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
    /// Start time; of a flow that waits for something else, the earliest.
    pub start: Time,
    /// What starts it.
    pub trigger: Trigger,
    /// When an endless flow stops sending new bytes; [`Time::MAX`]: never. From here on, a flow that waits for another
    /// one does not start any more.
    pub stop: Time,
    /// Source port, for ECMP.
    pub sport: u16,
    /// Destination port, for ECMP.
    pub dport: u16,
    /// Priority class of its data, 0 (highest) to 7; `None`: the transport's data class.
    pub class: Option<u8>,
    /// Weight for algorithms that know weights.
    pub weight: f64,
    /// What the application offers at most, in bits on the wire per second; [`Rate::MAX`]: no limit.
    pub demand: Rate,
    /// When the last byte of a finite flow should have arrived, from its start; `None`: it has no deadline.
    pub deadline: Option<Time>,
    /// Over how many subflows TCP spreads it, at least 1; `None`: as many as the transport says.
    pub subflows: Option<u8>,
    /// Whose connection it is sent over.
    pub connection: Connection,
    /// An endless flow offers its data in bursts; `None`: all at once.
    pub burst: Option<Burst>,
    /// The traffic block it came from: an index for grouping results.
    pub group: u32,
    /// What its user calls it; [`FlowSpec::NO_ID`]: its position, as its [`FlowId`].
    pub id: u32,
}

impl FlowSpec {
    /// No id of its own.
    pub const NO_ID: u32 = u32::MAX;

    /// A flow that starts at its time and has nothing special: ports 0, weight 1, the transport's class and subflows.
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
            id: Self::NO_ID,
        }
    }

    /// What people call the flow at a position.
    pub fn name(&self, position: FlowId) -> u32 {
        if self.id == Self::NO_ID { position.0 } else { self.id }
    }
}

/// An application that writes now and then on one connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Burst {
    /// Payload bytes it writes at once; with TCP, the next whole number of full packets.
    pub bytes: Bytes,
    /// From the moment the last of them is handed to the wire until it writes again.
    pub pause: Time,
}

/// Over whose connection a flow is sent, with RDMA.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Connection {
    /// One of its own, whose controller knows nothing yet.
    #[default]
    PerFlow,
    /// One that all such flows of its sender, receiver and group share: they go one after the other, in the order in which they
    /// come, and each goes on with the controller of the one before. A flow begins when all of the one before has been
    /// acknowledged; its completion time counts from when it came.
    PerPair,
}

impl Connection {
    /// All of them with their names in scenarios.
    pub const NAMES: &'static [(&'static str, Self)] = &[("per-flow", Self::PerFlow), ("per-pair", Self::PerPair)];
}

/// What starts a flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Trigger {
    /// Its start time.
    #[default]
    Time,
    /// Another flow's last byte was acknowledged, and then this time has passed: closed-loop sources. A flow has one
    /// such successor at most.
    After(FlowId, Time),
    /// Its turn in [`SimConfig::changes`](crate::SimConfig::changes).
    Change,
}

/// A flow arrives or departs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// This flow starts. Its trigger is [`Trigger::Change`].
    Start(FlowId),
    /// This flow, which is active and endless, stops.
    Stop(FlowId),
}
