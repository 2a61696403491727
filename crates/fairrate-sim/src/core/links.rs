//! Events at both ends of a link: packets arrive, frames pause the other end, links go down and come up.

use super::Part;
use crate::config::Reroute;
use crate::engine::EventKind;
use crate::fabric::DropCause;
use crate::ids::{FlowId, HostId, PacketIdx, PortIdx};
use crate::packet::{Packet, PacketKind, Pausing};

impl Part {
    /// Processes the arrival of the packet at the head of `port`'s wire at the other end.
    #[inline(always)]
    pub(super) fn on_arrive(&mut self, port: PortIdx) {
        let w = &mut self.world;
        if let Some(packet) = w.net.take_arrival(&mut w.clock, port) {
            self.take_in(port, packet);
        }
    }

    /// Processes the arrival of a packet that was delayed on `port`'s wire, unless it was lost meanwhile.
    pub(super) fn on_arrive_late(&mut self, port: PortIdx) {
        let now_ps = self.world.clock.now_ps;
        if let Some(packet) = self.world.net.faulty_link(port).and_then(|link| link.release(now_ps)) {
            self.take_in(port, packet);
        }
    }

    /// Passes a packet to the node at the other end of `port`.
    #[inline(always)]
    pub(super) fn take_in(&mut self, port: PortIdx, packet: PacketIdx) {
        let w = &mut self.world;
        let kind = w.net.pool.get(packet).kind;
        if kind.is_frame() {
            self.on_frame(port, packet, kind);
            return;
        }
        let host = w.net.ports[port].to_host();
        if host.is_none() {
            self.switches.forward(w, port.reverse(), packet);
        } else if w.net.faults.is_some() && w.net.pool.get(packet).is_corrupt() {
            w.discard(port, packet, DropCause::Fault);
        } else if self.hosts.are_ideal() {
            self.hosts.on_packet(w, host, packet, kind);
        } else {
            self.hosts.on_arrival(w, host, port, packet);
        }
    }

    /// Applies a frame that left `port` to the port at the other end.
    fn on_frame(&mut self, port: PortIdx, frame: PacketIdx, kind: PacketKind) {
        let peer = port.reverse();
        let Packet { flow, class, .. } = *self.world.net.pool.get(frame);
        match kind {
            PacketKind::Pause | PacketKind::Resume => {
                self.world.net.pool.release(frame);
                self.world.pause_class(peer, class, Pausing::of_frame(kind));
                if kind == PacketKind::Resume {
                    self.may_send(peer);
                }
            }
            _ => {
                let pausing = Pausing::of_frame(kind);
                self.world.net.note_told_flow(port, frame, pausing);
                self.world.net.pool.release(frame);
                self.hold_flow(peer, flow, class, pausing);
            }
        }
    }

    /// Makes `port` hold a flow back or resume it.
    fn hold_flow(&mut self, port: PortIdx, flow: FlowId, class: u8, pausing: Pausing) {
        match self.world.net.ports[port].of_host {
            HostId::NONE => self.switches.hold_flow(&mut self.world, port, flow, class, pausing),
            host => self.hosts.hold_flow(&mut self.world, host, flow, pausing),
        }
    }

    /// Lets the owner of `port` send, after a cause that blocked the port has ended.
    fn may_send(&mut self, port: PortIdx) {
        match self.world.net.ports[port].of_host {
            HostId::NONE => self.switches.kick(&mut self.world, port),
            host => self.hosts.may_send(&mut self.world, host),
        }
    }

    /// Ends a transmission of `port`, and sends the next packet.
    pub(super) fn on_tx_done(&mut self, port: PortIdx) {
        let w = &mut self.world;
        let p = &mut w.net.ports[port];
        p.tx_done_pending = false;
        match p.of_host {
            HostId::NONE => self.switches.send_next(w, port),
            host => self.hosts.may_send(w, host),
        }
    }

    /// Handles the timer of a port's agent.
    pub(super) fn on_port_timer(&mut self, port: PortIdx) {
        match self.world.net.ports[port].of_host {
            HostId::NONE => self.switches.on_port_timer(&mut self.world, port),
            host => self.hosts.on_port_timer(&mut self.world, host, port),
        }
    }

    /// Schedules the first change of every link that goes down and up.
    pub(super) fn schedule_flaps(&mut self) {
        let w = &mut self.world;
        let first: Vec<(u32, u64)> = w.net.faults.iter().flat_map(|faults| faults.first_flaps()).collect();
        for (index, at) in first {
            w.clock.schedule(at, EventKind::Flap, index);
        }
        let changes = w.net.faults.iter().flat_map(|faults| {
            let n = 2 * faults.n_flaps();
            faults.changes_of_rates().map(move |(index, at)| (n + index, at))
        });
        for (index, at) in changes.collect::<Vec<_>>() {
            w.clock.schedule(at, EventKind::Flap, index);
        }
    }

    /// Gives ports the rates that their links have now.
    fn change_rates(&mut self, ports: Vec<PortIdx>) {
        let w = &mut self.world;
        for port in ports {
            let id = w.net.links.id_of(port);
            let rate = w.run.config.rate_at(id, w.clock.now());
            w.net.ports[port].set_rate(rate);
            w.agents.on_rate(&mut w.clock, port, rate);
        }
    }

    /// Applies flap `index`: links go down or come up. Numbers above those of flaps are for the switches that notice
    /// it, and those above these for links that change their rates.
    pub(super) fn on_flap(&mut self, index: u32) {
        let Some(faults) = &mut self.world.net.faults else { return };
        let n = faults.n_flaps();
        if 2 * n <= index {
            let ports = faults.slow_ports(index - 2 * n);
            self.change_rates(ports);
            return;
        }
        if n <= index {
            let dead = faults.ports_of(index - n);
            for port in dead {
                self.switches.give_up(&mut self.world, port);
            }
            return;
        }
        let (ports, down, next) = faults.flap(index);
        if let Some(at) = next {
            self.world.clock.schedule(at, EventKind::Flap, index);
        }
        if let Some(Reroute { delay, .. }) = self.world.run.config.reroute().filter(|_| down) {
            let notice_ps = self.world.clock.now_ps.saturating_add(delay.as_ps());
            if notice_ps < next.unwrap_or(u64::MAX) {
                self.world.clock.schedule(notice_ps, EventKind::Flap, n + index);
            }
        }
        // First all links change, and then they send.
        let changed: Vec<PortIdx> = ports.into_iter().filter(|&port| self.change_link(port, down)).collect();
        for port in changed {
            if down {
                self.end_pauses(port);
            } else {
                self.repeat_pauses(port);
                self.may_send(port);
            }
        }
    }

    /// Takes one direction of a link down or up; returns `true` if its state changed, as several flaps may hold it
    /// down.
    fn change_link(&mut self, port: PortIdx, down: bool) -> bool {
        let w = &mut self.world;
        let Some(link) = w.net.faulty_link(port) else { return false };
        if !down {
            let is_up = link.come_up();
            if is_up {
                w.net.ports[port].set_down(false);
            }
            return is_up;
        }
        let Some(late) = link.go_down() else { return false };
        for packet in late {
            w.discard(port, packet, DropCause::Fault);
        }
        w.net.ports[port].set_down(true);
        while let Some(packet) = w.net.ports[port].lose(&w.net.pool) {
            w.discard(port, packet, DropCause::Fault);
        }
        // Waiting frames are outdated when the link comes up; pauses that still hold are sent again.
        while let Some(frame) = w.net.ports[port].take_frame(&w.net.pool) {
            w.discard(port, frame, DropCause::Fault);
        }
        true
    }

    /// Ends the pauses that frames on the wire of `port`, now dead, have requested at the other end.
    fn end_pauses(&mut self, port: PortIdx) {
        let peer = port.reverse();
        for class in 0..8 {
            if self.world.net.ports[peer].is_pfc_paused(class) {
                self.world.pause_class(peer, class, Pausing::Resume);
            }
        }
        let told = self.world.net.faulty_link(port).map(|link| std::mem::take(&mut link.told_flows));
        for flow in told.into_iter().flatten() {
            let class = self.world.run.flow(flow).class();
            self.hold_flow(peer, flow, class, Pausing::Resume);
        }
        self.may_send(peer);
    }

    /// Sends again the pauses that still hold, after the wire of `port` has come up.
    fn repeat_pauses(&mut self, port: PortIdx) {
        if let Some(host) = self.world.net.ports[port].of_host.some() {
            self.hosts.repeat_pause(&mut self.world, host);
        }
        for class in self.switches.paused_classes(port) {
            self.switches.send_pfc(&mut self.world, port, class, Pausing::Pause);
        }
        let link = self.world.net.faulty_link(port);
        let held: Vec<FlowId> = link.iter().flat_map(|link| link.held_flows.iter().copied()).collect();
        for flow in held {
            self.switches.send_flow_frame(&mut self.world, port, flow, Pausing::Pause);
        }
    }
}
