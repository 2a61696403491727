//! Frames that pause and resume: classes (PFC), and single flows.

use super::Switches;
use super::hop::Head;
use crate::core::world::World;
use crate::fabric::MOST_FRAMES;
use crate::ids::{FlowId, HopId, PortIdx};
use crate::packet::{Packet, PacketKind, Pausing};

impl Switches {
    /// Sends a pause frame to the sender at `ingress` if the queue that its packet joined is now above the pause level.
    /// A packet that an idle port sends at once pauses nobody: it joins the queue only for those who watch it, or where
    /// the buffer is short.
    #[cold]
    pub(super) fn judge_backlog(&mut self, w: &mut World, egress: PortIdx, head: Head, ingress: PortIdx) {
        let class = head.class;
        let (port, Some(pfc)) = (&w.net.ports[egress], &mut self.backlog_pfc) else { return };
        if w.run.config.fabric.classes.get(&class).is_some_and(|own| !own.pfc) {
            return;
        }
        let is_alone = port.queued_bytes == u64::from(head.wire) && port.can_send();
        let is_idle = !port.is_special() && !port.tx_done_pending && w.clock.has_passed(port.busy_until_ps, egress);
        if self.rotors.is_none() && is_alone && is_idle {
            return;
        }
        if pfc.joins(port.of_switch, egress, class, ingress, port.class_bytes(class)) {
            self.send_pfc(w, ingress, class, Pausing::Pause);
        }
    }

    /// Returns the pauses of egress queues that hold: port, class, and the ingress ports that are paused.
    pub(in crate::core) fn backlog_pauses(&self) -> impl Iterator<Item = (PortIdx, u8, &[PortIdx])> {
        self.backlog_pfc.iter().flat_map(|pfc| pfc.pauses())
    }

    /// Sends resume frames to the senders that a queue of `egress` paused, if it has shrunk to the resume level.
    #[cold]
    pub(super) fn end_backlog_pauses(&mut self, w: &mut World, egress: PortIdx, class: u8) {
        let (port, Some(pfc)) = (&w.net.ports[egress], &mut self.backlog_pfc) else { return };
        for ingress in pfc.shrinks(port.of_switch, egress, class, port.class_bytes(class)) {
            self.send_pfc(w, ingress, class, Pausing::Resume);
        }
    }

    /// Sends a pause or resume frame for `class` out of `port`, ahead of all queued packets. A port that is down sends
    /// none.
    pub(in crate::core) fn send_pfc(&mut self, w: &mut World, port: PortIdx, class: u8, pausing: Pausing) {
        let kind = if pausing.is_pause() { PacketKind::Pause } else { PacketKind::Resume };
        if let Some(draws) = &mut self.marking.shared_draws {
            // For the IP identification of the frame.
            draws.skip();
        }
        if w.net.ports[port].is_down() {
            return;
        }
        let counts = &mut w.observed.totals.counts;
        let frames = if pausing.is_pause() { &mut counts.pfc_pauses } else { &mut counts.pfc_resumes };
        *frames += 1;
        if is_full_of_frames(w, port)
            && let Some(opposite) = w.net.ports[port].cancel_pause(&mut w.net.pool, class)
        {
            // Neither frame is sent: the other end keeps its state.
            let (pauses, resumes) =
                (&mut w.observed.totals.counts.pfc_pauses, &mut w.observed.totals.counts.pfc_resumes);
            (*pauses, *resumes) = (*pauses - 1, *resumes - 1);
            w.net.pool.release(opposite);
            return;
        }
        let frame =
            w.net.pool.take(Packet { route: HopId::NONE, wire: w.run.constants.pfc_wire, class, ..Packet::new(kind) });
        w.net.ports[port].enqueue_frame(&mut w.net.pool, frame);
        self.kick(w, port);
    }

    /// Sends a frame out of `port` that pauses or resumes `flow` at the other end of the wire.
    pub(in crate::core) fn send_flow_frame(&mut self, w: &mut World, port: PortIdx, flow: FlowId, pausing: Pausing) {
        if w.net.ports[port].is_down() {
            return;
        }
        let (class, wire) = (w.run.flow(flow).class(), w.run.rules_of(flow).cnp_wire);
        let (kind, count) = match pausing {
            Pausing::Pause => (PacketKind::FlowPause, &mut w.observed.totals.counts.flow_pauses),
            Pausing::Resume => (PacketKind::FlowResume, &mut w.observed.totals.counts.flow_resumes),
        };
        *count += 1;
        w.observed.totals.control_bytes += u64::from(wire);
        let frame = w.net.pool.take(Packet { flow, route: HopId::NONE, wire, class, ..Packet::new(kind) });
        w.net.ports[port].enqueue_frame(&mut w.net.pool, frame);
        self.kick(w, port);
    }

    /// Pauses or resumes `flow` at `port`, as a frame from the other end of its wire requests.
    pub(in crate::core) fn hold_flow(
        &mut self,
        w: &mut World,
        port: PortIdx,
        flow: FlowId,
        class: u8,
        pausing: Pausing,
    ) {
        let quantum = w.run.constants.wire_mtu as u32;
        w.net.ports[port].set_flow_paused(&w.net.pool, class, flow, pausing.is_pause(), quantum);
        if let Some(agent) = w.agents.of(port) {
            fairrate_control::PortAgent::on_flow_pause(agent, flow.0, pausing.is_pause());
            w.agents.plan(&mut w.clock, port);
        }
        if pausing == Pausing::Resume {
            self.kick(w, port);
        }
    }
}

/// Returns `true` if `port` already queues [`MOST_FRAMES`]. More frames arise where packets arrive faster than frames
/// about them can be sent.
fn is_full_of_frames(w: &World, port: PortIdx) -> bool {
    MOST_FRAMES * u32::from(w.run.constants.pfc_wire) <= w.net.ports[port].class_bytes(0)
}
