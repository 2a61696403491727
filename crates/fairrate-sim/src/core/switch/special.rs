//! Ports with more than class queues: disciplines, and physical queues for flows.

use super::Switches;
use crate::core::world::World;
use crate::ids::{PacketIdx, PortIdx};
use crate::packet::{PacketKind, Pausing};

impl Switches {
    /// Puts `packet`, which the buffer is charged with, into the physical queue `queue` of `egress`, or into its
    /// class's queue if that is `None`. The port may have an agent or disciplines.
    #[cold]
    pub(super) fn join_special(&mut self, w: &mut World, egress: PortIdx, packet: PacketIdx, queue: Option<u16>) {
        match queue {
            Some(queue) => {
                let quantum = w.run.constants.wire_mtu as u32;
                w.net.ports[egress].enqueue_flow(&mut w.net.pool, packet, queue, quantum);
            }
            None if w.net.ports[egress].has_disciplines() => self.enqueue_managed(w, egress, packet),
            None => w.net.ports[egress].enqueue(&mut w.net.pool, packet),
        }
    }

    /// Hands `packet` to the discipline of its class, with its priority.
    fn enqueue_managed(&mut self, w: &mut World, egress: PortIdx, packet: PacketIdx) {
        let p = w.net.pool.get(packet);
        let carries = matches!(p.kind, PacketKind::Data | PacketKind::Control);
        // Packets without a priority from their sender, mostly acknowledgments, go first.
        let has_priority = carries && 0 < w.run.rules_of(p.flow).header_words;
        let priority = if has_priority { w.net.pool.header(packet)[0] } else { 0.0 };
        let port = &mut w.net.ports[egress];
        port.enqueue_managed(&mut w.net.pool, packet, priority, w.clock.now_ps, &mut self.verdicts);
        self.carry_out_verdicts(w, egress);
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
        w.observed.totals.counts.ecn_marks += marks;
        if self.verdicts.dropped.is_empty() {
            return;
        }
        let switch = w.net.ports[port].of_switch;
        let mut dropped = std::mem::take(&mut self.verdicts.dropped);
        for (packet, cause) in dropped.drain(..) {
            let p = *w.net.pool.get(packet);
            w.discard(port, packet, cause);
            if self.buffers.release(switch, p.ingress, p.class, p.wire) {
                self.send_pfc(w, p.ingress, p.class, Pausing::Resume);
            }
            if self.backlog_pfc.is_some() {
                self.end_backlog_pauses(w, port, p.class);
            }
        }
        self.verdicts.dropped = dropped;
    }
}
