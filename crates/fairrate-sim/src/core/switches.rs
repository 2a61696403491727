//! What happens at switches, and at the ends of all wires: packets arrive, are admitted, marked, stamped and sent.

use fairrate_control::{IntCounter, IntHop};
use fairrate_units::Time;

use super::Core;
use super::agents::Step;
use super::told::Told;
use crate::config::MarkAt;
use crate::engine::{Event, EventKind};
use crate::fabric::{Admission, DropCause, N_CLASSES, NO_HOST, Port};
use crate::ids::PortId;
use crate::output::PfcEvent;
use crate::packet::{Packet, PacketKind};

impl Core {
    /// The packet at the head of `port`'s wire has reached the other end.
    #[allow(clippy::inline_always)] // See `Core::run`.
    #[inline(always)]
    pub(super) fn on_arrive(&mut self, port: u32) {
        self.look_ahead();
        if self.faults.is_some() && !self.ports[port as usize].is_due(&self.pool, self.now_ps) {
            return;
        }
        let (packet, next) = self.ports[port as usize].arrive(&self.pool);
        if let Some((time_ps, rank)) = next {
            self.events.push(Event::new(time_ps, EventKind::Arrive, port).ranked(rank));
        }
        self.take_in(port, packet);
    }

    /// The node behind `port` takes a packet in.
    #[allow(clippy::inline_always)] // See `Core::run`.
    #[inline(always)]
    pub(super) fn take_in(&mut self, port: u32, packet: u32) {
        let kind = self.pool.get(packet).kind;
        if kind.is_link_control() {
            match kind {
                PacketKind::Pause | PacketKind::Resume => {
                    self.on_pfc(port ^ 1, packet, kind == PacketKind::Pause);
                }
                _ => {
                    self.note_told_flow(port, packet, kind == PacketKind::FlowPause);
                    self.on_flow_pause(port ^ 1, packet, kind == PacketKind::FlowPause);
                }
            }
            return;
        }
        let host = self.ports[port as usize].to_host;
        if host == NO_HOST {
            self.forward(port ^ 1, packet);
        } else if self.faults.is_some() && self.pool.get(packet).is_corrupt() {
            self.lose(packet);
        } else {
            self.on_host_packet(host, packet, kind);
        }
    }

    /// A pause or resume frame tells `port` what to do.
    fn on_pfc(&mut self, port: u32, packet: u32, pause: bool) {
        let class = self.pool.get(packet).class;
        self.pool.release(packet);
        self.ports[port as usize].set_paused(class, pause, self.now_ps);
        self.story.push(Told::Pfc(PfcEvent { t: self.now(), port: PortId(port), class, pause }));
        if pause {
            return;
        }
        match self.ports[port as usize].of_host {
            NO_HOST => self.kick(port),
            host => self.nic_send(host),
        }
    }

    /// A switch takes a packet that came by its port `ingress` and puts it into its egress queue.
    #[allow(clippy::inline_always)] // See `Core::run`.
    #[inline(always)]
    pub(super) fn forward(&mut self, ingress: u32, packet: u32) {
        let p = self.pool.get_mut(packet);
        p.ingress = ingress;
        let egress = self.paths[p.route as usize];
        p.route += 1;
        let (class, wire) = (p.class, p.wire);
        let port = &self.ports[egress as usize];
        let switch = port.of_switch;
        if port.is_clear(class)
            && (port.busy_until_ps < self.now_ps || self.has_passed(port))
            && !self.special_ports
            && self.mmu.lets_pass(switch, ingress, class, wire)
        {
            self.pass(egress, packet);
            return;
        }
        let waiting = port.class_bytes(class);
        if self.special_ports && !self.is_admitted(egress, packet) {
            return;
        }
        match self.mmu.admit(switch, ingress, class, wire, waiting) {
            Admission::Accept => {}
            Admission::AcceptAndPause => self.send_pfc(ingress, class, true),
            Admission::Drop(cause) => {
                self.drop_packet(egress, packet, cause);
                return;
            }
        }
        self.mark(egress, packet, MarkAt::Enqueue, waiting + u32::from(wire));
        if self.special_ports {
            self.enqueue_specially(egress, packet);
        } else {
            self.ports[egress as usize].enqueue(&mut self.pool, packet);
        }
        self.kick(egress);
    }

    /// A packet joins the queue of a switch port where nothing is in its way, and leaves it at once.
    #[allow(clippy::inline_always)] // See `Core::run`.
    #[inline(always)]
    pub(super) fn pass(&mut self, egress: u32, packet: u32) {
        let p = self.pool.get(packet);
        let (is_data, wire) = (p.kind == PacketKind::Data, p.wire);
        // On leaving, nothing waits behind it, for which no marker marks nor draws.
        self.mark(egress, packet, MarkAt::Enqueue, u32::from(wire));
        self.ports[egress as usize].enqueued_bytes += u64::from(wire);
        if is_data {
            self.stamp(egress, packet);
        }
        self.transmit(egress, packet);
    }

    pub(super) fn drop_packet(&mut self, egress: u32, packet: u32, cause: DropCause) {
        let drops = &mut self.totals.drops;
        match cause {
            DropCause::EgressThreshold => drops.egress_threshold += 1,
            DropCause::IngressThreshold => drops.ingress_threshold += 1,
            DropCause::BufferFull => drops.buffer_full += 1,
            DropCause::Headroom => drops.headroom += 1,
            DropCause::QueueLimit => drops.queue_limit += 1,
            DropCause::Early => drops.early += 1,
            DropCause::Sojourn => drops.sojourn += 1,
            DropCause::Priority => drops.priority += 1,
        }
        self.ports[egress as usize].drops += 1;
        let p = self.pool.get(packet);
        if p.kind == PacketKind::Data {
            self.totals.dropped_bytes += u64::from(p.wire);
        }
        self.pool.release(packet);
    }

    #[inline]
    pub(super) fn mark(&mut self, port: u32, packet: u32, at: MarkAt, qlen: u32) {
        if self.config.fabric.ecn.is_some() {
            self.mark_by(port, packet, at, qlen);
        }
    }

    /// Lets the marker of a port decide about a packet.
    fn mark_by(&mut self, port: u32, packet: u32, at: MarkAt, qlen: u32) {
        let Some(marker) = &mut self.markers[port as usize] else { return };
        let p = self.pool.get_mut(packet);
        let is_data = p.kind == PacketKind::Data;
        if !marker.marks_at(at) {
            return;
        }
        let qlen = marker.queue(self.now_ps, p.wire, qlen);
        // ns-3 marks acknowledgments too, but nobody looks: the mark of the data they echo has a field of its own.
        if !(is_data || self.shared_draws.is_some()) {
            return;
        }
        if !marker.draw(qlen, self.shared_draws.as_deref_mut()) {
            return;
        }
        p.set_marked(p.is_marked() || is_data);
        self.ports[port as usize].ecn_marks += 1;
        self.totals.ecn_marks += 1;
    }

    /// Sends a pause or resume frame out of `port`, past everything that waits there. A port that is down sends none.
    pub(super) fn send_pfc(&mut self, port: u32, class: u8, pause: bool) {
        let kind = if pause { PacketKind::Pause } else { PacketKind::Resume };
        if let Some(draws) = &mut self.shared_draws {
            // For the IP identification of the frame.
            draws.skip();
        }
        if self.ports[port as usize].is_down() {
            return;
        }
        let frames = if pause { &mut self.totals.pfc_pauses } else { &mut self.totals.pfc_resumes };
        *frames += 1;
        if self.port_is_full_of_frames(port)
            && let Some(opposite) = self.ports[port as usize].cancel_pause(&mut self.pool, class)
        {
            // Neither is sent: the other end stays what it is.
            let (pauses, resumes) = (&mut self.totals.pfc_pauses, &mut self.totals.pfc_resumes);
            (*pauses, *resumes) = (*pauses - 1, *resumes - 1);
            self.pool.release(opposite);
            return;
        }
        let frame = self.pool.take(Packet { class, wire: self.constants.pfc_wire, ..Packet::new(kind) });
        self.ports[port as usize].enqueue_control(&mut self.pool, frame);
        self.kick(port);
    }

    /// Whether as many frames wait at a port as can say something of all classes: a pause and its end of each. More come
    /// where packets arrive faster than frames about them can be sent.
    fn port_is_full_of_frames(&self, port: u32) -> bool {
        2 * N_CLASSES as u32 * u32::from(self.constants.pfc_wire) <= self.ports[port as usize].class_bytes(0)
    }

    /// Something was put into a switch port's queues, or may be sent again.
    ///
    /// A port that becomes free at this very moment waits for its `TxDone`, which comes after all arrivals of
    /// the moment: what it then sends and stamps does not depend on the order of those.
    #[inline]
    pub(super) fn kick(&mut self, port: u32) {
        let p = &self.ports[port as usize];
        if p.tx_done_pending {
            return;
        }
        if p.busy_until_ps < self.now_ps || self.has_passed(p) {
            self.start_tx(port);
        } else {
            self.schedule_tx_done(port);
        }
    }

    /// Where ties go by insertion: whether the port's transmission ended now, before what happens now.
    #[inline]
    pub(super) fn has_passed(&self, port: &Port) -> bool {
        self.ranks.by_insertion && port.busy_until_ps == self.now_ps && port.tx_rank <= self.ranks.current
    }

    #[inline]
    pub(super) fn schedule_tx_done(&mut self, port: u32) {
        let p = &mut self.ports[port as usize];
        p.tx_done_pending = true;
        self.events.push(Event::new(p.busy_until_ps, EventKind::TxDone, port).ranked(p.tx_rank));
    }

    /// A port is free.
    pub(super) fn on_tx_done(&mut self, port: u32) {
        self.look_ahead();
        let p = &mut self.ports[port as usize];
        p.tx_done_pending = false;
        match p.of_host {
            NO_HOST => self.start_tx(port),
            host => self.nic_send(host),
        }
    }

    /// A switch port sends its next packet, if it has one that may go.
    fn start_tx(&mut self, port: u32) {
        let p = &mut self.ports[port as usize];
        if !p.can_send() {
            return;
        }
        let packet = if p.has_disciplines() { self.dequeue_managed(port) } else { p.dequeue(&self.pool) };
        let head = self.pool.get(packet);
        if !head.kind.is_link_control() {
            self.leave_buffer(port, packet);
        }
        self.transmit(port, packet);
        let p = &self.ports[port as usize];
        if p.can_send() && !p.tx_done_pending {
            self.schedule_tx_done(port);
        }
    }

    /// A packet leaves a switch's buffer for the wire: uncharge it, mark it, stamp it.
    fn leave_buffer(&mut self, port: u32, packet: u32) {
        let head = self.pool.get(packet);
        let (ingress, class, wire, is_data) = (head.ingress, head.class, head.wire, head.kind == PacketKind::Data);
        let p = &self.ports[port as usize];
        let (switch, waiting) = (p.of_switch, p.class_bytes(class));
        if is_data || self.shared_draws.is_some() {
            self.mark(port, packet, MarkAt::Dequeue, waiting);
        }
        self.agent_sees(port, packet, Step::Dequeue);
        if self.mmu.release(switch, ingress, class, wire) {
            self.send_pfc(ingress, class, false);
        }
        if is_data {
            self.stamp(port, packet);
        }
    }

    /// Stamps data that leaves a switch with telemetry, if anybody reads that.
    #[inline]
    pub(super) fn stamp(&mut self, port: u32, packet: u32) {
        let Some((counter, format)) = self.constants.int else { return };
        let p = &self.ports[port as usize];
        let hop = IntHop {
            ts: Time::from_ps(self.now_ps),
            tx_bytes: match counter {
                IntCounter::Transmitted => p.tx_bytes,
                IntCounter::Enqueued => p.enqueued_bytes,
            },
            qlen: p.queued_bytes as u32,
            rate: p.int_rate,
        };
        self.pool.push_int(packet, hop.encoded(format));
    }

    /// Serialises a packet onto `port`'s wire; the transmitter must be free.
    #[allow(clippy::inline_always)] // See `Core::run`.
    #[inline(always)]
    pub(super) fn transmit(&mut self, port: u32, packet: u32) {
        self.totals.packet_hops += 1;
        let (end_rank, arrival_rank) = (self.ranks.take(), self.ranks.take());
        let p = &mut self.ports[port as usize];
        p.tx_rank = end_rank;
        if self.faults.is_some() && self.transmit_faulty(port, packet, arrival_rank) {
            return;
        }
        let p = &mut self.ports[port as usize];
        if let Some(part) = p.away {
            let arrival = p.serialise(self.pool.get(packet).wire, self.now_ps);
            self.outbox[usize::from(part)].post(&self.pool, port, packet, arrival, arrival_rank);
            self.pool.release(packet);
            return;
        }
        if let Some(arrival) = p.transmit(&mut self.pool, packet, self.now_ps, arrival_rank) {
            self.events.push(Event::new(arrival, EventKind::Arrive, port).ranked(arrival_rank));
        }
    }
}
