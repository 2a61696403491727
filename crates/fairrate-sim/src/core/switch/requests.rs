//! The requests of ports' agents: notices to sources, pauses of flows, and timers.

use fairrate_control::{FlowPause, Notice};

use super::Switches;
use crate::core::agents::{NOTICE_WORDS, Step};
use crate::core::world::World;
use crate::ids::{FlowId, PacketIdx, PortIdx};
use crate::packet::{Packet, PacketKind, Pausing};

impl Switches {
    /// Shows `packet`, which is about to join a queue, to the agent of `egress`, if any, and carries out the agent's
    /// actions; returns the physical queue that the agent assigns to the packet, or `None` for its class's queue.
    #[inline(always)] // Agents watch few packets: for the others a call costs more than the test.
    pub(super) fn show_newcomer(&mut self, w: &mut World, egress: PortIdx, packet: PacketIdx) -> Option<u16> {
        if w.agents.watch_at(w.net.pool.get(packet).kind, Step::Enqueue) {
            self.show_watched(w, egress, packet)
        } else {
            None
        }
    }

    /// Does the same as [`Switches::show_newcomer`], for a packet that agents watch.
    #[inline(never)]
    fn show_watched(&mut self, w: &mut World, egress: PortIdx, packet: PacketIdx) -> Option<u16> {
        if w.tell_of_newcomer(egress, packet) {
            self.do_as_agent_asks(w, egress);
        }
        w.agents.assigned_queue(&w.run, &w.net, egress, packet)
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
        let rules = w.run.rules(w.agents.stack());
        let (class, wire) = (rules.control_class, rules.cnp_wire);
        let packet = Packet { flow: id, route, class, wire, ..Packet::new(PacketKind::Notice) };
        let packet = w.net.pool.take(packet);
        let words = w.net.pool.header_mut(packet);
        words[0] = f64::from(notice.port);
        words[1..NOTICE_WORDS].copy_from_slice(&notice.values);
        w.observed.totals.counts.notices += 1;
        w.observed.totals.control_bytes += u64::from(wire);
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
        let pausing = if pause { Pausing::Pause } else { Pausing::Resume };
        w.net.note_held_flow(back, flow, pausing);
        self.send_flow_frame(w, back, flow, pausing);
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
