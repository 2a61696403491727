//! Switch ports that do not simply queue: agents that are told of packets and assign queues to them, and disciplines that
//! refuse, drop and mark them.

use super::Core;
use super::agents::Step;
use crate::packet::PacketKind;

impl Core {
    /// Whether the discipline of `egress`, if it has one, admits a packet; if not, the packet is gone.
    #[cold]
    pub(super) fn is_admitted(&mut self, egress: u32, packet: u32) -> bool {
        if !self.ports[egress as usize].has_disciplines() {
            return true;
        }
        let port = &mut self.ports[egress as usize];
        let admitted = port.admit(&mut self.pool, packet, self.now_ps, &mut self.verdicts);
        self.carry_out(egress);
        if let Err(cause) = admitted {
            self.drop_packet(egress, packet, cause);
        }
        admitted.is_ok()
    }

    /// Puts a packet, which the buffer is charged with, into a queue of a port that may have an agent or a discipline.
    #[cold]
    pub(super) fn enqueue_specially(&mut self, egress: u32, packet: u32) {
        self.agent_sees(egress, packet, Step::Enqueue);
        match self.assigned_queue(egress, packet) {
            Some(queue) => {
                let quantum = (self.constants.mtu + self.constants.data_header) as u32;
                self.ports[egress as usize].enqueue_flow(&mut self.pool, packet, queue, quantum);
            }
            None if self.ports[egress as usize].has_disciplines() => self.enqueue_managed(egress, packet),
            None => self.ports[egress as usize].enqueue(&mut self.pool, packet),
        }
    }

    /// Puts a packet under the discipline of its class.
    fn enqueue_managed(&mut self, egress: u32, packet: u32) {
        let carries = matches!(self.pool.get(packet).kind, PacketKind::Data | PacketKind::Control);
        // What no sender has given a priority, acknowledgments above all, goes first.
        let priority = if carries && 0 < self.constants.header_words { self.pool.header(packet)[0] } else { 0.0 };
        let port = &mut self.ports[egress as usize];
        port.enqueue_managed(&mut self.pool, packet, priority, self.now_ps, &mut self.verdicts);
        self.carry_out(egress);
    }

    /// The next packet of `port`, which has one that may go.
    #[cold]
    pub(super) fn dequeue_managed(&mut self, port: u32) -> u32 {
        let packet = self.ports[port as usize].dequeue_managed(&mut self.pool, self.now_ps, &mut self.verdicts);
        self.carry_out(port);
        packet
    }

    /// Counts what a discipline has marked, and gives back what it has dropped.
    fn carry_out(&mut self, port: u32) {
        let marks = std::mem::take(&mut self.verdicts.marks);
        self.ports[port as usize].ecn_marks += marks;
        self.totals.ecn_marks += marks;
        if self.verdicts.dropped.is_empty() {
            return;
        }
        let switch = self.ports[port as usize].of_switch;
        let mut dropped = std::mem::take(&mut self.verdicts.dropped);
        for (packet, cause) in dropped.drain(..) {
            let p = *self.pool.get(packet);
            self.drop_packet(port, packet, cause);
            if self.mmu.release(switch, p.ingress, p.class, p.wire) {
                self.send_pfc(p.ingress, p.class, false);
            }
        }
        self.verdicts.dropped = dropped;
    }
}
