//! Faulty links: what happens to packets on their wires, and what going down and coming up means to both ends.

use super::Core;
use super::told::Told;
use crate::engine::{Event, EventKind};
use crate::fabric::{FaultyLink, NO_HOST};
use crate::ids::PortId;
use crate::output::PfcEvent;
use crate::packet::PacketKind;

impl Core {
    /// Plans the first change of every link that goes down and up.
    pub(super) fn schedule_flaps(&mut self) {
        let first: Vec<(u32, u64)> = self.faults.iter().flat_map(|faults| faults.first_flaps()).collect();
        let is_here = |port: u32| self.parts.of_port(port) == usize::from(self.part);
        let times = (0..).zip(first).filter(|&(_, (port, _))| is_here(port)).map(|(index, (_, at))| (index, at));
        for (index, at) in times.collect::<Vec<(u32, u64)>>() {
            self.schedule(at, EventKind::Flap, index);
        }
    }

    fn faulty_link(&mut self, port: u32) -> Option<&mut FaultyLink> {
        self.faults.as_mut().and_then(|faults| faults.link(port))
    }

    /// Serialises a packet onto a wire with faults. False if `port` has none, and nothing is done.
    #[cold]
    pub(super) fn transmit_faulty(&mut self, port: u32, packet: u32, rank: u32) -> bool {
        let (now_ps, kind, wire) = (self.now_ps, self.pool.get(packet).kind, self.pool.get(packet).wire);
        let Some(link) = self.faulty_link(port) else { return false };
        let verdict = link.judge(kind, now_ps);
        let arrival = self.ports[port as usize].serialise(wire, now_ps);
        if verdict.lost {
            self.lose(packet);
            return true;
        }
        if verdict.corrupt {
            self.pool.get_mut(packet).set_corrupt();
        }
        let arrival = arrival + verdict.jitter_ps;
        self.put_on_wire(port, packet, arrival, verdict.late_ps, rank);
        for _ in 0..verdict.copies {
            let copy = self.pool.copy(packet);
            self.totals.duplicates += 1;
            if kind == PacketKind::Data {
                self.totals.duplicated_bytes += u64::from(wire);
            }
            self.put_on_wire(port, copy, arrival, verdict.late_ps, rank);
        }
        true
    }

    /// Lets a packet arrive in its place, or out of it if it is late.
    fn put_on_wire(&mut self, port: u32, packet: u32, arrival_ps: u64, late_ps: u64, rank: u32) {
        let link = self.faulty_link(port).expect("the link has faults");
        if late_ps > 0 {
            link.hold(packet, arrival_ps + late_ps);
            self.events.push(Event::new(arrival_ps + late_ps, EventKind::ArriveLate, port).ranked(rank));
            return;
        }
        let arrival_ps = link.in_order(arrival_ps);
        if let Some(arrival) = self.ports[port as usize].launch(&mut self.pool, packet, arrival_ps, rank) {
            self.events.push(Event::new(arrival, EventKind::Arrive, port).ranked(rank));
        }
    }

    /// A packet that was held up on `port`'s wire has reached the other end, unless it was lost meanwhile.
    pub(super) fn on_arrive_late(&mut self, port: u32) {
        let now_ps = self.now_ps;
        if let Some(packet) = self.faulty_link(port).and_then(|link| link.release(now_ps)) {
            self.take_in(port, packet);
        }
    }

    /// A fault takes a packet away.
    pub(super) fn lose(&mut self, packet: u32) {
        self.totals.drops.faults += 1;
        let p = self.pool.get(packet);
        if p.kind == PacketKind::Data {
            self.totals.dropped_bytes += u64::from(p.wire);
        }
        self.pool.release(packet);
    }

    /// Links go down or come up.
    pub(super) fn on_flap(&mut self, index: u32) {
        let Some(faults) = &mut self.faults else { return };
        let (ports, down, next) = faults.flap(index);
        if let Some(at) = next {
            self.schedule(at, EventKind::Flap, index);
        }
        // First all of them change, and then they send.
        let changed: Vec<u32> = ports.into_iter().filter(|&port| self.change_link(port, down)).collect();
        for port in changed {
            if down {
                self.end_pauses(port);
            } else {
                self.repeat_pauses(port);
                self.may_send(port);
            }
        }
    }

    /// One direction of a link goes down or comes up. Whether it does: several flaps may hold it down.
    fn change_link(&mut self, port: u32, down: bool) -> bool {
        let Some(link) = self.faulty_link(port) else { return false };
        if !down {
            let is_up = link.come_up();
            if is_up {
                self.ports[port as usize].set_down(false);
            }
            return is_up;
        }
        let Some(late) = link.go_down() else { return false };
        for packet in late {
            self.lose(packet);
        }
        self.ports[port as usize].set_down(true);
        while let Some(packet) = self.ports[port as usize].lose(&self.pool) {
            self.lose(packet);
        }
        // What frames say is old by the time the link is up, and what still holds is said again.
        while let Some(frame) = self.ports[port as usize].take_control(&self.pool) {
            self.lose(frame);
        }
        true
    }

    /// The wire of `port` is dead, and so are the pauses that frames on it have asked the other end for.
    fn end_pauses(&mut self, port: u32) {
        let peer = port ^ 1;
        for class in 0..8 {
            if self.ports[peer as usize].is_pfc_paused(class) {
                self.ports[peer as usize].set_paused(class, false, self.now_ps);
                self.story.push(Told::Pfc(PfcEvent { t: self.now(), port: PortId(peer), class, pause: false }));
            }
        }
        let told = self.faulty_link(port).map(|link| std::mem::take(&mut link.told_flows));
        for flow in told.into_iter().flatten() {
            let class = self.flows[flow as usize].class;
            self.hold_flow(peer, flow, class, false);
        }
        self.may_send(peer);
    }

    /// The wire of `port` is back: the other end learns again whom it should pause.
    fn repeat_pauses(&mut self, port: u32) {
        let classes: Vec<u8> = self.mmu.paused_classes(port).collect();
        for class in classes {
            self.send_pfc(port, class, true);
        }
        let held: Vec<u32> = self.faulty_link(port).iter().flat_map(|link| link.held_flows.iter().copied()).collect();
        for flow in held {
            self.send_flow_frame(port, flow, true);
        }
    }

    /// Remembers whether the node of `port` wants a flow paused at the other end.
    pub(super) fn note_held_flow(&mut self, port: u32, flow: u32, pause: bool) {
        let Some(link) = self.faulty_link(port) else { return };
        if pause {
            link.held_flows.insert(flow);
        } else {
            link.held_flows.remove(&flow);
        }
    }

    /// Remembers whether the other end of `port`'s wire pauses the flow that a frame is about.
    pub(super) fn note_told_flow(&mut self, port: u32, frame: u32, pause: bool) {
        let flow = self.pool.get(frame).flow;
        let Some(link) = self.faulty_link(port) else { return };
        if pause {
            link.told_flows.insert(flow);
        } else {
            link.told_flows.remove(&flow);
        }
    }

    /// Something that kept a port from sending is over.
    fn may_send(&mut self, port: u32) {
        match self.ports[port as usize].of_host {
            NO_HOST => self.kick(port),
            host => self.nic_send(host),
        }
    }
}
