//! A switch event by event: a packet crosses it as it arrives, and a port sends when it is free.

use super::Switches;
use super::hop::{self, Head, Pass};
use crate::config::MarkAt;
use crate::core::agents::Step;
use crate::core::network::Transmitter;
use crate::core::steering::Exit;
use crate::core::world::World;
use crate::fabric::{Admission, DropCause, Port};
use crate::ids::{PacketIdx, PortIdx};
use crate::packet::{Packet, Pausing};

impl Switches {
    /// Forwards `packet`, which arrived by the port `ingress`: drops it, or queues it at its egress port and starts the
    /// port's transmitter. A packet that nothing delays is sent without being queued.
    #[inline(always)]
    pub(in crate::core) fn forward(&mut self, w: &mut World, ingress: PortIdx, packet: PacketIdx) {
        let (ports, net) = w.net.split();
        let p = net.pool.get_mut(packet);
        p.ingress = ingress;
        let exit = net.paths.exit(p.route);
        p.route = p.route.plus(1);
        let head = Head::of(p);
        let egress = match exit {
            Exit::By(port) => port,
            Exit::Toward(host) => {
                match self.balancer.choose(&w.run, (ports, net.links), (ingress, host), w.clock.now_ps, p) {
                    Some(port) => port,
                    None => return w.discard(ingress, packet, DropCause::Unreachable),
                }
            }
        };
        hop::cross(&mut ByEvent { switches: self, w }, egress, packet, head);
    }

    /// Discards what waits at `port`, a port of a switch whose link is down, now that the switch has noticed.
    pub(in crate::core) fn give_up(&mut self, w: &mut World, port: PortIdx) {
        if !w.net.ports[port].of_host.is_none() {
            return;
        }
        // Only a port that is up gives its packets away.
        w.net.ports[port].set_down(false);
        while w.net.ports[port].can_send() {
            let (packet, _) = self.take(w, port);
            w.discard(port, packet, DropCause::Unreachable);
        }
        w.net.ports[port].set_down(true);
    }

    /// Starts the transmitter of `port` after a packet joined its queues or was resumed.
    #[inline]
    pub(in crate::core) fn kick(&mut self, w: &mut World, port: PortIdx) {
        if self.rotors.is_some() {
            self.start_by_role(w, port);
        } else {
            self.start_transmitter(w, port);
        }
    }

    /// Does the same as [`Switches::kick`], where `port` is the one that transmits.
    #[inline]
    pub(super) fn start_transmitter(&mut self, w: &mut World, port: PortIdx) {
        hop::start(&mut ByEvent { switches: self, w }, port);
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
        if !w.net.ports[port].can_send() {
            return;
        }
        let has_more = hop::drain(&mut ByEvent { switches: self, w }, port);
        if has_more && !w.net.ports[port].tx_done_pending {
            w.net.schedule_tx_done(&mut w.clock, port);
        }
    }

    /// Calls `send` as if `egress`, whose next packet has left its queue, were transmitting that already. A header on
    /// its way back leaves by the port at which it came in: the frame that it sets free there is sent after it.
    fn while_busy(&mut self, w: &mut World, egress: PortIdx, send: impl FnOnce(&mut Self, &mut World)) {
        // It is transmitting where its packets are given up.
        let is_pending = std::mem::replace(&mut w.net.ports[egress].tx_done_pending, true);
        send(self, w);
        w.net.ports[egress].tx_done_pending = is_pending;
    }

    /// Charges the buffer with `packet`, and pauses its sender if that is due; returns its head, or the cause of a
    /// drop.
    #[inline(always)]
    pub(super) fn charge(
        &mut self,
        w: &mut World,
        egress: PortIdx,
        packet: PacketIdx,
        head: Head,
        waiting: u32,
    ) -> Result<Head, DropCause> {
        let (switch, ingress) = (w.net.ports[egress].of_switch, w.net.pool.get(packet).ingress);
        match self.buffers.admit(switch, ingress, head.class, head.wire, waiting) {
            Admission::Accept => Ok(head),
            Admission::AcceptAndPause => {
                self.send_pfc(w, ingress, head.class, Pausing::Pause);
                Ok(head)
            }
            Admission::Drop(cause) => Err(cause),
        }
    }

    /// Charges the buffer as [`Switches::charge`] does; discards `packet`, and returns `None`, if it is not admitted.
    #[inline(always)]
    pub(super) fn charge_or_discard(
        &mut self,
        w: &mut World,
        egress: PortIdx,
        packet: PacketIdx,
        head: Head,
        waiting: u32,
    ) -> Option<Head> {
        self.charge(w, egress, packet, head, waiting).map_err(|cause| w.discard(egress, packet, cause)).ok()
    }

    /// Takes the next packet of `port` out of its queue and out of the buffer.
    pub(super) fn take(&mut self, w: &mut World, port: PortIdx) -> (PacketIdx, Head) {
        hop::take(&mut ByEvent { switches: self, w }, port)
    }
}

/// The steps of a packet in a switch that goes event by event.
struct ByEvent<'a> {
    switches: &'a mut Switches,
    w: &'a mut World,
}

impl Pass for ByEvent<'_> {
    #[inline]
    fn port(&mut self, port: PortIdx) -> &mut Port {
        &mut self.w.net.ports[port]
    }

    #[inline]
    fn packet(&mut self, packet: PacketIdx) -> &Packet {
        self.w.net.pool.get(packet)
    }

    #[inline]
    fn is_free(&mut self, egress: PortIdx) -> bool {
        self.w.clock.has_passed(self.w.net.ports[egress].busy_until_ps, egress)
    }

    #[inline(always)]
    fn admits_now(&mut self, egress: PortIdx, packet: PacketIdx, head: Head) -> bool {
        let (s, w) = (&mut *self.switches, &*self.w);
        let p = w.net.pool.get(packet);
        (s.is_plain || s.rotors.is_none() && !w.agents.watch(p.kind))
            && s.buffers.admits_now(w.net.ports[egress].of_switch, p.ingress, head.class, head.wire)
    }

    #[inline(always)]
    fn admit(&mut self, egress: PortIdx, packet: PacketIdx, head: Head, waiting: u32) -> Option<Head> {
        let (s, w) = (&mut *self.switches, &mut *self.w);
        if s.admission.is_empty() {
            s.charge_or_discard(w, egress, packet, head, waiting)
        } else {
            s.admit_by_rules(w, egress, packet, head, waiting)
        }
    }

    #[inline(always)]
    fn mark(&mut self, step: MarkAt, egress: PortIdx, packet: PacketIdx, qlen: u32) {
        let (w, marking) = (&mut *self.w, &mut self.switches.marking);
        if marking.sees(step, &w.net.ports[egress], qlen) {
            let (port, p) = (&mut w.net.ports[egress], w.net.pool.get_mut(packet));
            w.observed.totals.counts.ecn_marks +=
                u64::from(marking.mark(&w.run, (port, egress), p, w.clock.now_ps, qlen));
        }
    }

    #[inline(always)]
    fn join(&mut self, egress: PortIdx, packet: PacketIdx, head: Head) {
        let (s, w) = (&mut *self.switches, &mut *self.w);
        if s.is_plain {
            w.net.ports[egress].enqueue(&mut w.net.pool, packet);
            s.start_transmitter(w, egress);
            return;
        }
        w.report_queued(egress, packet);
        // A discipline may drop the packet as it joins.
        let ingress = w.net.pool.get(packet).ingress;
        let queue = s.show_newcomer(w, egress, packet);
        if queue.is_some() || s.has_special_ports {
            s.join_special(w, egress, packet, queue);
        } else {
            w.net.ports[egress].enqueue(&mut w.net.pool, packet);
        }
        if s.backlog_pfc.is_some() {
            s.judge_backlog(w, egress, head, ingress);
        }
        s.kick(w, egress);
    }

    #[inline(always)]
    fn dequeue(&mut self, egress: PortIdx) -> PacketIdx {
        let port = &mut self.w.net.ports[egress];
        if port.is_special() && port.has_disciplines() {
            self.switches.dequeue_managed(self.w, egress)
        } else {
            port.dequeue(&self.w.net.pool)
        }
    }

    /// Shows the packet to the port's agent, uncharges the buffer, and sends resume frames that are due.
    #[inline(always)]
    fn release(&mut self, egress: PortIdx, packet: PacketIdx, head: Head) {
        let (s, w) = (&mut *self.switches, &mut *self.w);
        let (switch, ingress) = (w.net.ports[egress].of_switch, w.net.pool.get(packet).ingress);
        if !s.is_plain && w.agent_sees(egress, packet, Step::Dequeue) {
            s.do_as_agent_asks(w, egress);
        }
        if s.buffers.release(switch, ingress, head.class, head.wire) {
            s.while_busy(w, egress, |s, w| s.send_pfc(w, ingress, head.class, Pausing::Resume));
        }
        if !s.is_plain && s.backlog_pfc.is_some() {
            s.while_busy(w, egress, |s, w| s.end_backlog_pauses(w, egress, head.class));
        }
    }

    #[inline(always)]
    fn leave(&mut self, egress: PortIdx, packet: PacketIdx, head: Head, qlen: Option<u64>) {
        let w = &mut *self.w;
        if self.switches.admission.notes_sent() {
            self.switches.admission.note_sent(w, egress, packet);
        }
        let has_plain_wires = w.net.has_plain_wires;
        let (ports, mut net) = w.net.split();
        let port = &mut ports[egress];
        net.stamp(port, Transmitter::of(port), w.clock.now_ps, packet, qlen.unwrap_or(0));
        if has_plain_wires {
            net.transmit(&mut w.clock, &mut w.observed.totals, port, egress, (packet, head.wire));
        } else if qlen.is_some() {
            w.transmit(egress, packet);
        } else {
            w.transmit_at_once(egress, packet);
        }
    }

    #[inline]
    fn send_next(&mut self, egress: PortIdx) {
        self.switches.send_next(self.w, egress);
    }

    #[inline(always)]
    fn expect_tx_done(&mut self, egress: PortIdx) {
        self.w.net.schedule_tx_done(&mut self.w.clock, egress);
    }
}
