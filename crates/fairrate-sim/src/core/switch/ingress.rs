//! Arrival of a packet at a switch: it is admitted or dropped, may be marked, and joins its egress queue.

use fairrate_control::{FlowPause, Notice};

use super::Switches;
use crate::config::MarkAt;
use crate::core::agents::{NOTICE_WORDS, Step};
use crate::core::network::Transmitter;
use crate::core::steering::Exit;
use crate::core::world::World;
use crate::fabric::Admission;
use crate::ids::{FlowId, PacketIdx, PortIdx};
use crate::packet::{Packet, PacketKind};

impl Switches {
    /// Forwards `packet`, which arrived by the port `ingress`: drops it, or queues it at its egress port and starts the
    /// port's transmitter. A packet that nothing delays is sent without being queued.
    #[allow(clippy::inline_always)] // See `Part::run`.
    #[inline(always)]
    pub(in crate::core) fn forward(&mut self, w: &mut World, ingress: PortIdx, packet: PacketIdx) {
        let has_faults = w.net.faults.is_some();
        let (ports, mut net) = w.net.split();
        let p = net.pool.get_mut(packet);
        p.ingress = ingress;
        let exit = net.paths.exit(p.route);
        p.route = p.route.plus(1);
        let (class, wire, kind) = (p.class, p.wire, p.kind);
        let egress = match exit {
            Exit::By(port) => port,
            Exit::Toward(host) => w.run.choose_exit(ports, net.links, ingress, host, p),
        };
        let (port, totals, now_ps) = (&mut ports[egress], &mut w.told.totals, w.clock.now_ps);
        let switch = port.of_switch;
        if port.is_clear(class)
            && w.clock.has_passed(port.busy_until_ps, port.tx_rank)
            && self.rotors.is_none()
            && self.buffers.lets_pass(switch, ingress, class, wire)
        {
            if w.agents.watch(kind) {
                self.pass_agent(w, egress, packet);
                return;
            }
            // Nothing delays the packet: it joins the queue and leaves it at once. As it leaves, the queue is empty,
            // and for an empty queue no marker marks or draws.
            let marked = self.mark(port, egress, p, MarkAt::Enqueue, now_ps, u32::from(wire));
            totals.ecn_marks += u64::from(marked);
            if kind == PacketKind::Data {
                net.stamp(port, Transmitter::of(port), now_ps, packet, 0);
            }
            if has_faults {
                w.transmit(egress, packet);
            } else {
                net.transmit(&mut w.clock, totals, port, egress, (packet, wire));
            }
            return;
        }
        let waiting = port.class_bytes(class);
        if self.has_special_ports && !self.is_admitted(w, egress, packet) {
            return;
        }
        match self.buffers.admit(switch, ingress, class, wire, waiting) {
            Admission::Accept => {}
            Admission::AcceptAndPause => self.send_pfc(w, ingress, class, true),
            Admission::Drop(cause) => {
                w.net.discard(&mut w.told.totals, Some(egress), packet, cause);
                return;
            }
        }
        let (port, pool) = (&mut w.net.ports[egress], &mut w.net.pool);
        let marked = self.mark(port, egress, pool.get_mut(packet), MarkAt::Enqueue, now_ps, waiting + u32::from(wire));
        w.told.totals.ecn_marks += u64::from(marked);
        if self.has_special_ports || w.agents.watch(kind) {
            let queue = self.show_newcomer(w, egress, packet);
            self.join(w, egress, packet, queue);
        } else {
            port.enqueue(pool, packet);
        }
        self.after_joining(w, ingress, class, egress);
    }

    /// Sends a pause frame if due and starts the transmitter, after a packet from `ingress` joined a queue of `egress`.
    #[inline]
    fn after_joining(&mut self, w: &mut World, ingress: PortIdx, class: u8, egress: PortIdx) {
        if self.backlog_pfc.is_some() {
            self.judge_backlog(w, egress, class, ingress);
        }
        self.kick(w, egress);
    }

    /// Forwards a packet that nothing delays, by a port that may have an agent: it joins the queue and leaves it at
    /// once, unless the agent assigns it a physical queue or the port is no longer free after the agent's actions.
    #[inline(never)]
    fn pass_agent(&mut self, w: &mut World, egress: PortIdx, packet: PacketIdx) {
        let (port, p) = (&mut w.net.ports[egress], w.net.pool.get_mut(packet));
        let (ingress, class, wire, is_data) = (p.ingress, p.class, p.wire, p.kind == PacketKind::Data);
        let (switch, now_ps) = (port.of_switch, w.clock.now_ps);
        let admission = self.buffers.admit(switch, ingress, class, wire, 0);
        debug_assert_eq!(admission, Admission::Accept, "the buffer lets it pass");
        let marked = self.mark(port, egress, p, MarkAt::Enqueue, now_ps, u32::from(wire));
        w.told.totals.ecn_marks += u64::from(marked);
        let queue = self.show_newcomer(w, egress, packet);
        let port = &mut w.net.ports[egress];
        let is_free = port.is_clear(class) && w.clock.has_passed(port.busy_until_ps, port.tx_rank);
        if queue.is_some() || !is_free {
            self.join(w, egress, packet, queue);
            self.after_joining(w, ingress, class, egress);
            return;
        }
        if w.agent_sees(egress, packet, Step::Dequeue) {
            self.do_as_agent_asks(w, egress);
        }
        // The buffer passes no packet of a class whose sender is paused.
        let resumes = self.buffers.release(switch, ingress, class, wire);
        debug_assert!(!resumes, "nobody has been told to pause");
        if is_data {
            let (ports, mut net) = w.net.split();
            net.stamp(&ports[egress], Transmitter::of(&ports[egress]), now_ps, packet, 0);
        }
        w.transmit(egress, packet);
    }

    /// Sends a pause frame to the sender at `ingress` if the queue that its packet joined is now above the pause level.
    #[cold]
    fn judge_backlog(&mut self, w: &mut World, egress: PortIdx, class: u8, ingress: PortIdx) {
        let (port, Some(pfc)) = (&w.net.ports[egress], &mut self.backlog_pfc) else { return };
        if pfc.joins(port.of_switch, egress, class, ingress, port.class_bytes(class)) {
            self.send_pfc(w, ingress, class, true);
        }
    }

    /// Returns `true` if `egress` has room for `packet` and its discipline, if any, admits it; otherwise discards the
    /// packet.
    #[cold]
    fn is_admitted(&mut self, w: &mut World, egress: PortIdx, packet: PacketIdx) -> bool {
        if !self.has_room(w, egress, packet) {
            return false;
        }
        let port = &mut w.net.ports[egress];
        if !port.has_disciplines() {
            return true;
        }
        let admitted = port.admit(&mut w.net.pool, packet, w.clock.now_ps, &mut self.verdicts);
        self.carry_out_verdicts(w, egress);
        if let Err(cause) = admitted {
            w.net.discard(&mut w.told.totals, Some(egress), packet, cause);
        }
        admitted.is_ok()
    }

    /// Shows `packet`, which is about to join a queue, to the agent of `egress`, if any, and carries out the agent's
    /// actions; returns the physical queue that the agent assigns to the packet, or `None` for its class's queue.
    #[inline]
    fn show_newcomer(&mut self, w: &mut World, egress: PortIdx, packet: PacketIdx) -> Option<u16> {
        if !w.agents.watch_at(w.net.pool.get(packet).kind, Step::Enqueue) {
            return None;
        }
        if w.tell_agent(egress, packet, Step::Enqueue) {
            self.do_as_agent_asks(w, egress);
        }
        w.agents.assigned_queue(&w.net, egress, packet)
    }

    /// Puts `packet`, which the buffer is charged with, into the physical queue `queue` of `egress`, or into its
    /// class's queue if that is `None`. The port may have an agent or disciplines.
    #[cold]
    fn join(&mut self, w: &mut World, egress: PortIdx, packet: PacketIdx, queue: Option<u16>) {
        match queue {
            Some(queue) => {
                let quantum = (w.run.constants.mtu + w.run.constants.data_header) as u32;
                w.net.ports[egress].enqueue_flow(&mut w.net.pool, packet, queue, quantum);
            }
            None if w.net.ports[egress].has_disciplines() => self.enqueue_managed(w, egress, packet),
            None => w.net.ports[egress].enqueue(&mut w.net.pool, packet),
        }
    }

    /// Hands `packet` to the discipline of its class, with its priority.
    fn enqueue_managed(&mut self, w: &mut World, egress: PortIdx, packet: PacketIdx) {
        let carries = matches!(w.net.pool.get(packet).kind, PacketKind::Data | PacketKind::Control);
        // Packets without a priority from their sender, mostly acknowledgments, go first.
        let has_priority = carries && 0 < w.run.constants.header_words;
        let priority = if has_priority { w.net.pool.header(packet)[0] } else { 0.0 };
        let port = &mut w.net.ports[egress];
        port.enqueue_managed(&mut w.net.pool, packet, priority, w.clock.now_ps, &mut self.verdicts);
        self.carry_out_verdicts(w, egress);
    }

    /// Sends the notices and frames that the agent of `port` requested, and plans its next call.
    #[inline(never)]
    pub(super) fn do_as_agent_asks(&mut self, w: &mut World, port: PortIdx) {
        if w.agents.ask_for_something() {
            self.send_for_agent(w, port);
        }
        w.agents.plan(&mut w.clock, port);
    }

    fn send_for_agent(&mut self, w: &mut World, port: PortIdx) {
        let (notices, pauses) = (w.agents.take_notices(), w.agents.take_pauses());
        for notice in &notices {
            self.send_notice(w, port, notice);
        }
        for &pause in &pauses {
            self.send_flow_pause(w, port, pause);
        }
        w.agents.give_back(notices, pauses);
    }

    /// Sends `notice` from `port` back along the path of its flow.
    fn send_notice(&mut self, w: &mut World, port: PortIdx, notice: &Notice) {
        let id = FlowId(notice.flow);
        let flow = w.run.flow(id);
        let n = usize::from(flow.n_hops);
        let Some(at) = position_on_path(w, id, port) else { return };
        // The way back begins behind the data path's last port; the hop before `port` is `n - at` further on.
        let route = flow.notice_route.plus((n - at) as u32);
        let (class, wire) = (w.run.constants.control_class, w.run.constants.cnp_wire);
        let packet = Packet { flow: id, route, class, wire, ..Packet::new(PacketKind::Notice) };
        let packet = w.net.pool.take(packet);
        let words = w.net.pool.header_mut(packet);
        words[0] = f64::from(notice.port);
        words[1..NOTICE_WORDS].copy_from_slice(&notice.values);
        w.told.totals.notices += 1;
        w.told.totals.control_bytes += u64::from(wire);
        self.forward(w, port, packet);
    }

    /// Sends a frame that pauses or resumes a flow out of the port by which the flow's packets arrive, ahead of all
    /// queued packets.
    fn send_flow_pause(&mut self, w: &mut World, port: PortIdx, FlowPause { flow, pause }: FlowPause) {
        let flow = FlowId(flow);
        let Some(at) = position_on_path(w, flow, port) else { return };
        debug_assert!(0 < at, "a switch has a previous hop");
        let before = w.run.path_of(flow).nth(at - 1).expect("a switch has a previous hop");
        let Some(back) = w.net.links.place_of(before.reverse()) else { return };
        w.net.note_held_flow(back, flow, pause);
        self.send_flow_frame(w, back, flow, pause);
    }

    /// Handles a port's timer: the port's circuit starts or ends, or its agent is called, unless it has changed its
    /// timer since.
    pub(in crate::core) fn on_port_timer(&mut self, w: &mut World, port: PortIdx) {
        if self.rotors.is_some() {
            self.on_circuit(w, port);
        } else if w.agents.on_timer(&w.net, &w.clock, port) {
            self.do_as_agent_asks(w, port);
        }
    }
}

/// Returns the index of `port` on the data path of `flow`, or `None` if it is not on the path.
fn position_on_path(w: &World, flow: FlowId, port: PortIdx) -> Option<usize> {
    let id = w.net.links.id_of(port);
    let at = w.run.path_of(flow).position(|p| p == id);
    debug_assert!(at.is_some(), "an agent speaks of flows that pass its port");
    at
}
