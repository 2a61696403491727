//! The steps of senders and receivers, as an observer sees them: when data may be sent, when it is, and when a receiver
//! that grants acts on it.

use fairrate_units::{Rate, Time};

use crate::ids::{FlowId, PortId};
use crate::packet::PacketKind;

/// The cause for which a sender may send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The flow begins.
    Start,
    /// A packet reached the sender's host.
    Packet {
        /// The flow that the packet belongs to or refers to; for a subflow, its connection.
        flow: FlowId,
        /// The same; for a subflow, its own number.
        lane: FlowId,
        /// Its kind.
        kind: PacketKind,
        /// Acknowledgments: the first payload byte of the data packet they answer.
        answers: u64,
    },
    /// The NIC acts on a notification that arrived some time before.
    Notice,
    /// The timer of the sender's transport expired: after a retransmission timeout, which is a step of its own, or
    /// before.
    TransportTimer,
    /// The timer of the sender's controller expired.
    ControllerTimer,
    /// The application wrote more data.
    Written,
    /// The switch behind the NIC no longer holds the flow back.
    Resumed,
    /// Another event of the sender's host.
    Other,
}

/// A step of a sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SenderStep {
    /// The sender has data that its window lets through, and it is not held back. Until now one of these did not hold.
    /// It may still wait for its pacing and for its turn at the NIC.
    Open(Cause),
    /// The sender starts to transmit a data packet. The packet's own steps follow.
    Send {
        /// The first payload byte, as the sender counts.
        seq: u64,
        /// The first payload byte of the connection, if it has several subflows; else `seq`.
        data_seq: u64,
        /// Payload bytes.
        payload: u16,
        /// The time before which the sender's pacing did not let the packet go. It may be long past.
        paced_until: Time,
        /// The rate of the sender's pacing when it sent the packet.
        rate: Rate,
    },
    /// The sender acted on a congestion notification or on a notice.
    Notified {
        /// The sender's rate from now on, at most that of its link.
        rate: Rate,
        /// The port that sent the notice; `None` after a congestion notification, which a receiver sends.
        by: Option<PortId>,
    },
    /// The retransmission timer of the sender expired, and what it counts as lost will be sent again.
    TimedOut,
}

/// A step of a sender at one time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SenderEvent {
    /// Time of the step.
    pub t: Time,
    /// The flow; for a subflow, its connection. The connections of a central allocator have numbers above those of all
    /// flows.
    pub flow: FlowId,
    /// The flow; of a connection with several subflows, the subflow, which has a number above those of all flows.
    pub lane: FlowId,
    /// The step.
    pub step: SenderStep,
}

/// A data packet on which its receiver acts, which may be some time after its arrival. Only of flows whose receivers
/// give grants: their answers do not say which packet they answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceiverEvent {
    /// Time at which the receiver acts.
    pub t: Time,
    /// The flow.
    pub flow: FlowId,
    /// The first payload byte of the packet.
    pub seq: u64,
}
