//! What a transport is: what it sends next, what an arrival does, what a timer does, how a receiver answers.
//!
//! A transport moves no packet itself. It is handed the hosts of a part and the world around them, changes the state of its
//! senders and receivers, and says what follows; the host then sends, and lets controllers' decisions apply.

use fairrate_control::Allowance;

use super::sender::Segment;
use crate::core::{Hosts, World};
use crate::ids::{FlowId, HostId, PacketIdx, SenderIdx};

/// How a receiver answers data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// By this packet, at once.
    Packet(PacketIdx),
    /// By what waits at its NIC, if anything does.
    Waiting,
    /// Nobody is there.
    Nothing,
}

/// What an acknowledgment means to its sender.
pub(crate) struct Acked {
    /// The sender.
    pub(crate) slot: SenderIdx,
    /// What its controller has decided.
    pub(crate) allowance: Allowance,
    /// Whether all data of the user's flow has been acknowledged.
    pub(crate) is_done: bool,
    /// Whether it leads to no decision: a first one that is only stored.
    pub(crate) is_only_stored: bool,
}

/// What a segment carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Load {
    /// The first byte of data, where the segment's own numbers are not the data's.
    pub(crate) data_seq: u64,
    /// Payload bytes.
    pub(crate) payload: u64,
    /// The least that the packet has on the wire.
    pub(crate) min_wire: u16,
}

impl Load {
    /// A segment of a flow's own bytes.
    pub(crate) fn own(segment: Segment) -> Self {
        Self { data_seq: 0, payload: segment.len, min_wire: 0 }
    }
}

/// What a retransmission timer has led to.
pub(crate) enum Timed {
    /// Nothing: the flow is over, or the timer had moved.
    Nothing,
    /// This sender may have something to send.
    MaySend(SenderIdx),
    /// The controller of this sender has decided.
    Decided(SenderIdx, Allowance),
}

/// A transport. Flows are known by their numbers, senders by their slots.
pub(crate) trait Transport {
    /// A flow starts: makes its sender, or those of its subflows, of which the first counts as the flow's own.
    fn open(hosts: &mut Hosts, w: &mut World, flow: FlowId);

    /// The controllers of a flow that starts have decided for the first time.
    fn begin(_hosts: &mut Hosts, _w: &mut World, _flow: FlowId) {}

    /// An application has written more on a flow.
    fn written(_hosts: &mut Hosts, _w: &mut World, _flow: FlowId) {}

    /// Which of a NIC's flows sends in the turn of the one at position `at`.
    #[inline]
    fn whose_turn(_hosts: &Hosts, _w: &World, _host: HostId, at: usize) -> usize {
        at
    }

    /// A sender is about to send. What its controller decides if it was idle.
    #[inline]
    fn after_idle(_hosts: &mut Hosts, _w: &World, _slot: SenderIdx) -> Option<Allowance> {
        None
    }

    /// What the next segment of a sender carries.
    #[inline]
    fn load(_hosts: &mut Hosts, _w: &mut World, _slot: SenderIdx, segment: Segment) -> Load {
        Load::own(segment)
    }

    /// A sender has sent a packet with so many bytes on the wire.
    #[inline]
    fn sent(_hosts: &mut Hosts, _w: &mut World, _slot: SenderIdx, _wire: u16) {}

    /// Whether all that the user's flow of a sender has to send has been sent once; the sender itself has more, or not.
    #[inline]
    fn has_sent_all(_hosts: &Hosts, _w: &World, _slot: SenderIdx, has_data: bool) -> bool {
        !has_data
    }

    /// A flow has sent all it has.
    #[inline]
    fn on_all_sent(_hosts: &mut Hosts, _w: &mut World, _flow: FlowId) {}

    /// A data packet reaches its receiver.
    fn on_data(hosts: &mut Hosts, w: &mut World, host: HostId, packet: PacketIdx) -> Answer;

    /// The receiver's answer is on its way: the receiver reads what it has.
    #[inline]
    fn read(_hosts: &mut Hosts, _w: &mut World, _flow: FlowId) {}

    /// Acknowledgments of a flow may have waited for long enough. The one to send.
    fn on_ack_timer(_hosts: &mut Hosts, _w: &mut World, _flow: FlowId) -> Option<PacketIdx> {
        None
    }

    /// An acknowledgment, which may report a gap, reaches its sender; `None` if that is gone.
    fn on_ack(hosts: &mut Hosts, w: &mut World, host: HostId, packet: PacketIdx) -> Option<Acked>;

    /// The answer to a handshake has reached its sender. Whether it was waited for.
    fn on_connected(_hosts: &mut Hosts, _w: &mut World, _flow: FlowId) -> bool {
        false
    }

    /// A retransmission timer of a flow may have expired.
    fn on_timer(hosts: &mut Hosts, w: &mut World, flow: FlowId) -> Timed;

    /// What a timer or an acknowledgment has led to is in force: the next time of the timer may be another one.
    #[inline]
    fn plan_timer(_hosts: &mut Hosts, _w: &mut World, _slot: SenderIdx) {}

    /// The earliest time of a sender's next packet besides its own pacing, in picoseconds.
    #[inline]
    fn earliest_ps(_hosts: &Hosts, _w: &World, _slot: SenderIdx) -> u64 {
        0
    }

    /// A controller's decision about a sender is in force.
    #[inline]
    fn decided(_hosts: &mut Hosts, _w: &mut World, _slot: SenderIdx) {}

    /// An endless flow stops: what it has sent so far is all it will send. Whether that has all been acknowledged.
    fn stop(hosts: &mut Hosts, w: &mut World, flow: FlowId) -> bool;

    /// A flow that was stopped has something left to be acknowledged, or not.
    fn stopped(_hosts: &mut Hosts, _w: &mut World, _flow: FlowId, _is_done: bool) {}

    /// The senders of a flow are gone.
    fn close(_hosts: &mut Hosts, _flow: FlowId) {}
}
