//! The way of a packet through a switch, once for all switches: those that go event by event (`by_event.rs`) and those
//! that process a span at once (`short_cut.rs`).
//!
//! [`cross`] takes a packet from its arrival to its egress queue, or onto the wire if nothing delays it. [`start`]
//! begins a transmission, and [`drain`] takes a packet from its queue onto the wire.

use crate::config::MarkAt;
use crate::fabric::Port;
use crate::ids::{PacketIdx, PortIdx};
use crate::packet::Packet;

/// The facts about a packet that every step needs: no more than two, as a third would have them packed into one
/// register.
#[derive(Clone, Copy)]
pub(super) struct Head {
    pub(super) class: u8,
    pub(super) wire: u16,
}

impl Head {
    /// Returns the facts about `p`.
    #[inline]
    pub(super) fn of(p: &Packet) -> Self {
        Self { class: p.class, wire: p.wire }
    }
}

/// The steps that depend on how a switch processes its packets: what the time is, how the buffer is charged, and who
/// else has a say.
pub(super) trait Pass {
    /// Returns a port.
    fn port(&mut self, port: PortIdx) -> &mut Port;

    /// Returns a packet.
    fn packet(&mut self, packet: PacketIdx) -> &Packet;

    /// Returns `true` if the transmitter of `egress` is free.
    fn is_free(&mut self, egress: PortIdx) -> bool;

    /// Returns `true` if the buffer, and everyone who watches packets, lets `packet` pass a clear and free port
    /// `egress` without being queued or charged.
    fn admits_now(&mut self, egress: PortIdx, packet: PacketIdx, head: Head) -> bool;

    /// Charges the buffer with `packet`, which would join `waiting` bytes of its class at `egress`; returns what joins
    /// the queue, which is the packet or its header, or `None` if it discarded the packet instead.
    fn admit(&mut self, egress: PortIdx, packet: PacketIdx, head: Head, waiting: u32) -> Option<Head>;

    /// Applies the ECN marker of `egress` to `packet`, with `qlen` bytes of its class queued, if packets are marked at
    /// `step`.
    fn mark(&mut self, step: MarkAt, egress: PortIdx, packet: PacketIdx, qlen: u32);

    /// Puts `packet`, which the buffer is charged with, into a queue of `egress`, and starts the transmitter.
    fn join(&mut self, egress: PortIdx, packet: PacketIdx, head: Head);

    /// Takes the next packet out of the queues of `egress`, which may send one.
    fn dequeue(&mut self, egress: PortIdx) -> PacketIdx;

    /// Uncharges the buffer of `packet`, which leaves a queue of `egress` for the wire.
    fn release(&mut self, egress: PortIdx, packet: PacketIdx, head: Head);

    /// Stamps `packet` with telemetry if it is data, with `qlen` bytes left in the queues of `egress`, and transmits
    /// it. `qlen` is `None` if the packet was not queued, because nothing delays it.
    fn leave(&mut self, egress: PortIdx, packet: PacketIdx, head: Head, qlen: Option<u64>);

    /// Sends the next packet of `egress`, which is free, if it has one that may be sent, and schedules the one after
    /// it.
    fn send_next(&mut self, egress: PortIdx);

    /// Schedules the next transmission of `egress` for the end of the current one.
    fn expect_tx_done(&mut self, egress: PortIdx);
}

/// Takes `packet`, which has arrived, across the switch to its port `egress`: it is discarded, or marked and queued, or
/// transmitted at once.
#[inline(always)]
pub(super) fn cross<P: Pass>(pass: &mut P, egress: PortIdx, packet: PacketIdx, head: Head) {
    if pass.port(egress).is_clear(head.class) && pass.is_free(egress) && pass.admits_now(egress, packet, head) {
        // Nothing delays the packet: it joins the queue and leaves it at once. As it leaves, the queue is empty, and
        // for an empty queue no marker marks or draws.
        pass.mark(MarkAt::Enqueue, egress, packet, u32::from(head.wire));
        pass.leave(egress, packet, head, None);
        return;
    }
    let waiting = pass.port(egress).class_bytes(head.class);
    if let Some(head) = pass.admit(egress, packet, head, waiting) {
        pass.mark(MarkAt::Enqueue, egress, packet, waiting + u32::from(head.wire));
        pass.join(egress, packet, head);
    }
}

/// Starts the transmitter of `egress`, which has a packet: sends that if it can be sent now, and otherwise schedules
/// the transmission for when the port is free.
///
/// A port that becomes free at this very moment waits for its `TxDone`, which goes after all arrivals of the same time.
/// So the packet that it then sends, and its telemetry, do not depend on the order of those arrivals.
#[inline(always)]
pub(super) fn start<P: Pass>(pass: &mut P, egress: PortIdx) {
    if pass.port(egress).tx_done_pending {
        return;
    }
    if pass.is_free(egress) {
        pass.send_next(egress);
    } else {
        pass.expect_tx_done(egress);
    }
}

/// Sends the next packet of `egress`, which is free and may send one; returns `true` if another may be sent after it.
#[inline(always)]
pub(super) fn drain<P: Pass>(pass: &mut P, egress: PortIdx) -> bool {
    let (packet, head) = take(pass, egress);
    let port = pass.port(egress);
    let (has_more, qlen) = (port.can_send(), port.queued_bytes);
    pass.leave(egress, packet, head, Some(qlen));
    has_more
}

/// Takes the next packet out of a queue of `egress` and, unless it is a frame, out of the buffer.
#[inline(always)]
pub(super) fn take<P: Pass>(pass: &mut P, egress: PortIdx) -> (PacketIdx, Head) {
    let packet = pass.dequeue(egress);
    let p = pass.packet(packet);
    let (head, is_frame) = (Head::of(p), p.kind.is_frame());
    if !is_frame {
        let waiting = pass.port(egress).class_bytes(head.class);
        pass.mark(MarkAt::Dequeue, egress, packet, waiting);
        pass.release(egress, packet, head);
    }
    (packet, head)
}
