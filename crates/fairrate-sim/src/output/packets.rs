//! The steps of packets.

use fairrate_control::IntHop;
use fairrate_units::{Rate, Time};

#[cfg(doc)]
use super::Observation;
use crate::fabric::DropCause;
use crate::ids::{FlowId, HostId, PortId};
use crate::packet::PacketKind;

/// A step of a packet at an egress port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketStep {
    /// The packet joins a queue of the port. A packet that can be sent at once joins and leaves at the same time.
    Queued,
    /// The port begins to transmit the packet.
    Sent,
    /// The packet is dropped: as it arrives at the port, from a queue of the port, or, for [`DropCause::Fault`], on the
    /// port's wire; for [`DropCause::Host`], at the host to which the port leads.
    Dropped(DropCause),
    /// The packet is cut to its header, which then joins a queue as a packet of its own. A packet that is cut as it
    /// arrives is reported as queued before.
    Trimmed,
    /// The port has no room for the header of a packet that was cut; it goes back to its sender as
    /// [`PacketKind::Returned`], by another port.
    Returned,
}

/// A step of one packet on its way through the network. A copy that a faulty link adds is not reported where it is
/// added, and a frame that pauses or resumes is not a packet here: [`Observation::Pfc`] is one that is obeyed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketEvent {
    /// Time of the step.
    pub t: Time,
    /// The egress port of a host or switch. A queue in front of several transmitters has a port of its own.
    pub port: PortId,
    /// The step.
    pub step: PacketStep,
    /// The flow that the packet belongs to; for a subflow, its connection. Messages of a central allocator have numbers
    /// above those of all flows.
    pub flow: FlowId,
    /// The flow; of a connection with several subflows, the subflow, which has a number above those of all flows.
    pub lane: FlowId,
    /// The kind of the packet.
    pub kind: PacketKind,
    /// Data: the first payload byte. Acknowledgments: the byte expected next.
    pub seq: u64,
    /// Acknowledgments: the first payload byte of the data packet they answer.
    pub answers: u64,
    /// Payload bytes of data, 0 for other packets.
    pub payload_bytes: u16,
    /// Bytes on the wire.
    pub wire_bytes: u16,
    /// Priority class.
    pub class: u8,
    /// Bytes in all queues of the port after the step; of a drop at a host, those in its receive buffer.
    pub queued_bytes: u64,
    /// Rate of the port, with faults. A link that becomes slow or fast at `t` may do so before or after the step.
    pub rate: Rate,
    /// `true` if a switch has marked the packet (ECN) on its way here, or an acknowledgment echoes a mark.
    pub marked: bool,
}

/// The fields of a packet's header that its steps lack.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PacketHeader<'a> {
    /// The host that sends the flow's data.
    pub sender: HostId,
    /// The host that receives the flow's data.
    pub receiver: HostId,
    /// Data: the window in force when it was sent, in bytes, saturated. HOMA's answers: the class that they grant.
    pub cwnd: u32,
    /// Data: the value by which its sender chose its path, which acknowledgments return.
    pub entropy: u16,
    /// `true` if the packet belongs to the handshake of a connection.
    pub is_handshake: bool,
    /// `true` if its sender says that it has reduced its window.
    pub is_reduced: bool,
    /// Ranges of a selective acknowledgment of TCP: first byte, and the byte after the last one.
    pub sacks: &'a [(u64, u64)],
    /// Telemetry that switches have stamped so far.
    pub telemetry: &'a [IntHop],
}
