//! Sending by a switch's ports: packets leave the buffer, and frames go to the other end of a link.

use super::Switches;
use crate::config::MarkAt;
use crate::core::agents::Step;
use crate::core::network::Transmitter;
use crate::core::world::World;
use crate::fabric::N_CLASSES;
use crate::ids::{FlowId, HopId, PacketIdx, PortIdx};
use crate::packet::{Packet, PacketKind};

impl Switches {
    /// Sends the next packet of `port`, or schedules its `TxDone` if it is busy, after a packet joined its queues or
    /// was resumed.
    ///
    /// A port that becomes free at this very moment waits for its `TxDone`, which goes after all arrivals of the same
    /// time. So the packet that it then sends, and its telemetry, do not depend on the order of those arrivals.
    #[inline]
    pub(in crate::core) fn kick(&mut self, w: &mut World, port: PortIdx) {
        if self.rotors.is_some() {
            self.kick_by_role(w, port);
        } else {
            self.kick_transmitter(w, port);
        }
    }

    /// Does the same as [`Switches::kick`], where `port` is the one that transmits.
    #[inline]
    pub(super) fn kick_transmitter(&mut self, w: &mut World, port: PortIdx) {
        let p = &w.net.ports[port];
        if p.tx_done_pending {
            return;
        }
        if w.clock.has_passed(p.busy_until_ps, p.tx_rank) {
            self.send_next(w, port);
        } else {
            w.net.schedule_tx_done(&mut w.clock, port);
        }
    }

    /// Sends the next packet of `port`, which is free, if it has one that may be sent.
    #[inline]
    pub(in crate::core) fn send_next(&mut self, w: &mut World, port: PortIdx) {
        if self.rotors.is_some() {
            self.send_by_role(w, port);
        } else {
            self.send_from_queue(w, port);
        }
    }

    /// Does the same as [`Switches::send_next`], for a port that serves its own queues.
    pub(super) fn send_from_queue(&mut self, w: &mut World, port: PortIdx) {
        let p = &mut w.net.ports[port];
        if !p.can_send() {
            return;
        }
        let packet = if p.has_disciplines() { self.dequeue_managed(w, port) } else { p.dequeue(&w.net.pool) };
        let head = w.net.pool.get(packet);
        let (kind, wire) = (head.kind, head.wire);
        if !kind.is_frame() {
            self.leave_buffer(w, port, packet);
        }
        let has_faults = w.net.faults.is_some();
        let (ports, mut net) = w.net.split();
        let p = &mut ports[port];
        if kind == PacketKind::Data {
            net.stamp(p, Transmitter::of(p), w.clock.now_ps, packet, p.queued_bytes);
        }
        let has_more = p.can_send() && !p.tx_done_pending;
        if has_faults {
            w.transmit(port, packet);
        } else {
            net.transmit(&mut w.clock, &mut w.told.totals, p, port, (packet, wire));
        }
        if has_more {
            w.net.schedule_tx_done(&mut w.clock, port);
        }
    }

    /// Takes `packet` out of the buffer as it leaves for the wire: marks it, shows it to the port's agent, uncharges
    /// it, and sends resume frames that are due.
    #[inline]
    pub(super) fn leave_buffer(&mut self, w: &mut World, port: PortIdx, packet: PacketIdx) {
        let (p, head) = (&mut w.net.ports[port], w.net.pool.get_mut(packet));
        let (ingress, class, wire, is_data) = (head.ingress, head.class, head.wire, head.kind == PacketKind::Data);
        let (switch, waiting) = (p.of_switch, p.class_bytes(class));
        if is_data || self.shared_draws.is_some() {
            let marked = self.mark(p, port, head, MarkAt::Dequeue, w.clock.now_ps, waiting);
            w.told.totals.ecn_marks += u64::from(marked);
        }
        if w.agent_sees(port, packet, Step::Dequeue) {
            self.do_as_agent_asks(w, port);
        }
        if self.buffers.release(switch, ingress, class, wire) {
            self.send_pfc(w, ingress, class, false);
        }
        if self.backlog_pfc.is_some() {
            self.end_backlog_pauses(w, port, class);
        }
    }

    /// Sends resume frames to the senders that a queue of `egress` paused, if it has shrunk to the resume level.
    #[cold]
    fn end_backlog_pauses(&mut self, w: &mut World, egress: PortIdx, class: u8) {
        let (port, Some(pfc)) = (&w.net.ports[egress], &mut self.backlog_pfc) else { return };
        for ingress in pfc.shrinks(port.of_switch, egress, class, port.class_bytes(class)) {
            self.send_pfc(w, ingress, class, false);
        }
    }

    /// Takes the next packet of `port`, which has disciplines and a packet that may be sent.
    #[cold]
    pub(super) fn dequeue_managed(&mut self, w: &mut World, port: PortIdx) -> PacketIdx {
        let p = &mut w.net.ports[port];
        let packet = p.dequeue_managed(&mut w.net.pool, w.clock.now_ps, &mut self.verdicts);
        self.carry_out_verdicts(w, port);
        packet
    }

    /// Counts the packets that a discipline marked, and discards and uncharges those that it dropped.
    pub(super) fn carry_out_verdicts(&mut self, w: &mut World, port: PortIdx) {
        let marks = std::mem::take(&mut self.verdicts.marks);
        w.net.ports[port].ecn_marks += marks;
        w.told.totals.ecn_marks += marks;
        if self.verdicts.dropped.is_empty() {
            return;
        }
        let switch = w.net.ports[port].of_switch;
        let mut dropped = std::mem::take(&mut self.verdicts.dropped);
        for (packet, cause) in dropped.drain(..) {
            let p = *w.net.pool.get(packet);
            w.net.discard(&mut w.told.totals, Some(port), packet, cause);
            if self.buffers.release(switch, p.ingress, p.class, p.wire) {
                self.send_pfc(w, p.ingress, p.class, false);
            }
            if self.backlog_pfc.is_some() {
                self.end_backlog_pauses(w, port, p.class);
            }
        }
        self.verdicts.dropped = dropped;
    }

    /// Sends a pause (`pause`) or resume frame for `class` out of `port`, ahead of all queued packets. A port that is
    /// down sends none.
    pub(in crate::core) fn send_pfc(&mut self, w: &mut World, port: PortIdx, class: u8, pause: bool) {
        let kind = if pause { PacketKind::Pause } else { PacketKind::Resume };
        if let Some(draws) = &mut self.shared_draws {
            // For the IP identification of the frame.
            draws.skip();
        }
        if w.net.ports[port].is_down() {
            return;
        }
        let frames = if pause { &mut w.told.totals.pfc_pauses } else { &mut w.told.totals.pfc_resumes };
        *frames += 1;
        if is_full_of_frames(w, port)
            && let Some(opposite) = w.net.ports[port].cancel_pause(&mut w.net.pool, class)
        {
            // Neither frame is sent: the other end keeps its state.
            let (pauses, resumes) = (&mut w.told.totals.pfc_pauses, &mut w.told.totals.pfc_resumes);
            (*pauses, *resumes) = (*pauses - 1, *resumes - 1);
            w.net.pool.release(opposite);
            return;
        }
        let frame =
            w.net.pool.take(Packet { route: HopId::NONE, wire: w.run.constants.pfc_wire, class, ..Packet::new(kind) });
        w.net.ports[port].enqueue_frame(&mut w.net.pool, frame);
        self.kick(w, port);
    }

    /// Sends a frame out of `port` that pauses (`pause`) or resumes `flow` at the other end of the wire.
    pub(in crate::core) fn send_flow_frame(&mut self, w: &mut World, port: PortIdx, flow: FlowId, pause: bool) {
        if w.net.ports[port].is_down() {
            return;
        }
        let (class, wire) = (w.run.flow(flow).class, w.run.constants.cnp_wire);
        let (kind, count) = if pause {
            (PacketKind::FlowPause, &mut w.told.totals.flow_pauses)
        } else {
            (PacketKind::FlowResume, &mut w.told.totals.flow_resumes)
        };
        *count += 1;
        w.told.totals.control_bytes += u64::from(wire);
        let frame = w.net.pool.take(Packet { flow, route: HopId::NONE, wire, class, ..Packet::new(kind) });
        w.net.ports[port].enqueue_frame(&mut w.net.pool, frame);
        self.kick(w, port);
    }

    /// Pauses (`pause`) or resumes `flow` at `port`, as a frame from the other end of its wire requests.
    pub(in crate::core) fn hold_flow(&mut self, w: &mut World, port: PortIdx, flow: FlowId, class: u8, pause: bool) {
        let quantum = (w.run.constants.mtu + w.run.constants.data_header) as u32;
        w.net.ports[port].set_flow_paused(&w.net.pool, class, flow, pause, quantum);
        if let Some(agent) = w.agents.of(port) {
            fairrate_control::PortAgent::on_flow_pause(agent, flow.0, pause);
            w.agents.plan(&mut w.clock, port);
        }
        if !pause {
            self.kick(w, port);
        }
    }
}

/// Returns `true` if `port` already queues as many frames as a pause and a resume for every class. More frames arise
/// where packets arrive faster than frames about them can be sent.
fn is_full_of_frames(w: &World, port: PortIdx) -> bool {
    2 * N_CLASSES as u32 * u32::from(w.run.constants.pfc_wire) <= w.net.ports[port].class_bytes(0)
}
