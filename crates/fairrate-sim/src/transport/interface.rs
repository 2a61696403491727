//! The interface of a transport: what a sender sends next, how arrivals and timers are handled, how a receiver answers.
//!
//! A transport moves no packet itself. Its functions receive the hosts of a part and the world around them, change the
//! state of senders and receivers, and return what follows; the host then sends packets and applies controllers'
//! decisions.

use fairrate_control::Allowance;

use super::sender::{Segment, Sender};
use crate::core::{Hosts, World};
use crate::ids::{FlowId, HostId, PacketIdx, SenderIdx};

/// A receiver's answer to a data packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// This packet, sent at once.
    Packet(PacketIdx),
    /// The packets queued at the receiver's NIC, if there are any.
    Waiting,
    /// No answer: no receiver handled the packet.
    Nothing,
}

/// The effect of an acknowledgment on its sender.
pub(crate) struct Acked {
    /// The sender.
    pub(crate) slot: SenderIdx,
    /// The decision of its controller.
    pub(crate) allowance: Allowance,
    /// `true` if all data of the user's flow has been acknowledged.
    pub(crate) is_done: bool,
    /// `true` if the decision is not applied: the first acknowledgment is only stored.
    pub(crate) is_only_stored: bool,
}

/// The next segment of a sender, with the payload it carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Load {
    /// The first byte of the segment.
    pub(crate) seq: u64,
    /// The first byte of data, if data is numbered apart from segments (0 otherwise).
    pub(crate) data_seq: u64,
    /// Payload bytes.
    pub(crate) payload: u64,
    /// Bytes of the packet besides its payload.
    pub(crate) header: u64,
    /// The smallest size of the packet on the wire, in bytes.
    pub(crate) min_wire: u16,
}

impl Load {
    /// Returns the load of a segment that carries a flow's own bytes behind the usual header.
    #[inline]
    pub(crate) fn own(segment: Segment, sender: &Sender) -> Self {
        let header = u64::from(sender.header);
        Self { seq: segment.seq, data_seq: 0, payload: segment.len, header, min_wire: 0 }
    }
}

/// The result of a retransmission timer event.
pub(crate) enum Timed {
    /// No effect: the flow is over, or the timer was moved.
    Nothing,
    /// A sender that may have data to send.
    MaySend(SenderIdx),
    /// A decision of this sender's controller.
    Decided(SenderIdx, Allowance),
}

/// A transport. Flows are identified by their numbers, senders by their slots.
pub(crate) trait Transport {
    /// Starts `flow`: makes its sender, or its subflows' senders, of which the first counts as the flow's own.
    fn open(hosts: &mut Hosts, w: &mut World, flow: FlowId);

    /// Handles the first decisions of the controllers of `flow`, which has just started.
    fn begin(_hosts: &mut Hosts, _w: &mut World, _flow: FlowId) {}

    /// Handles new data that an application has written on `flow`.
    fn written(_hosts: &mut Hosts, _w: &mut World, _flow: FlowId) {}

    /// Returns the position of the NIC's flow that sends in the turn of the flow at position `at`.
    #[inline]
    fn whose_turn(_hosts: &Hosts, _w: &World, _host: HostId, at: usize) -> usize {
        at
    }

    /// Returns the controller's decision if the sender in `slot`, which is about to send, was idle; otherwise `None`.
    #[inline]
    fn after_idle(_hosts: &mut Hosts, _w: &World, _slot: SenderIdx) -> Option<Allowance> {
        None
    }

    /// Takes the next segment of the sender in `slot`, which may send, and returns it.
    #[inline]
    fn load(hosts: &mut Hosts, w: &mut World, slot: SenderIdx) -> Load {
        let sender = hosts.sender_mut(slot);
        let segment = sender.next_segment(w.run.constants.mtu, w.clock.now_ps);
        Load::own(segment, sender)
    }

    /// Handles a packet of `wire` bytes on the wire that the sender in `slot` has sent.
    #[inline]
    fn sent(_hosts: &mut Hosts, _w: &mut World, _slot: SenderIdx, _wire: u16) {}

    /// Returns `true` if all data of the sender's user flow has been sent once; `has_data` is set while the sender
    /// itself has more.
    #[inline]
    fn has_sent_all(_hosts: &Hosts, _w: &World, _slot: SenderIdx, has_data: bool) -> bool {
        !has_data
    }

    /// Handles the moment at which `flow` has sent all its data.
    #[inline]
    fn on_all_sent(_hosts: &mut Hosts, _w: &mut World, _flow: FlowId) {}

    /// Handles a data packet that reaches its receiver; returns the receiver's answer.
    fn on_data(hosts: &mut Hosts, w: &mut World, host: HostId, packet: PacketIdx) -> Answer;

    /// Lets the receiver of `flow` read the data it has, after its answer has been sent.
    #[inline]
    fn read(_hosts: &mut Hosts, _w: &mut World, _flow: FlowId) {}

    /// Returns the acknowledgment to send if acknowledgments of `flow` have been delayed for long enough.
    fn on_ack_timer(_hosts: &mut Hosts, _w: &mut World, _flow: FlowId) -> Option<PacketIdx> {
        None
    }

    /// Handles an acknowledgment, which may report a gap, that reaches its sender; returns `None` if the sender is
    /// gone.
    fn on_ack(hosts: &mut Hosts, w: &mut World, host: HostId, packet: PacketIdx) -> Option<Acked>;

    /// Handles the answer to a handshake that reaches its sender; returns `true` if the sender was waiting for it.
    fn on_connected(_hosts: &mut Hosts, _w: &mut World, _flow: FlowId) -> bool {
        false
    }

    /// Handles a retransmission timer of `flow` that may have expired.
    fn on_timer(hosts: &mut Hosts, w: &mut World, flow: FlowId) -> Timed;

    /// Follows an acknowledgment or a timer event, once its decision is applied: schedules the sender's timer if its
    /// time has moved.
    #[inline]
    fn plan_timer(_hosts: &mut Hosts, _w: &mut World, _slot: SenderIdx) {}

    /// Returns the earliest time of a sender's next packet, apart from its own pacing, in picoseconds.
    #[inline]
    fn earliest_ps(_hosts: &Hosts, _w: &World, _slot: SenderIdx) -> u64 {
        0
    }

    /// Handles a controller's decision about a sender, after it has been applied.
    #[inline]
    fn decided(_hosts: &mut Hosts, _w: &mut World, _slot: SenderIdx) {}

    /// Stops an endless flow, which sends no new data from now on; returns `true` if all data sent so far has been
    /// acknowledged.
    fn stop(hosts: &mut Hosts, w: &mut World, flow: FlowId) -> bool;

    /// Follows [`Transport::stop`]; `is_done` is set if all data of the stopped flow has been acknowledged.
    fn stopped(_hosts: &mut Hosts, _w: &mut World, _flow: FlowId, _is_done: bool) {}

    /// Releases the transport's state of a flow whose senders are gone.
    fn close(_hosts: &mut Hosts, _w: &World, _flow: FlowId) {}
}
