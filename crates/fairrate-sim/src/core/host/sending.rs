//! Transmission of packets by a host's NIC.

use fairrate_control::{Allowance, Controller};
use fairrate_units::{Bytes, Time};

use super::Hosts;
use crate::config::Milestone;
use crate::core::agenda::Worker;
use crate::core::agents::Step;
use crate::core::world::World;
use crate::engine::{Event, EventKind};
use crate::ids::{HostId, PacketIdx, SenderIdx};
use crate::output::{Cause, SenderStep};
use crate::packet::{Packet, PacketKind};
use crate::transport::Load;

/// A sender's state after a packet, for the steps that follow the packet's transmission.
struct Sent {
    /// The controller's decision about the packet, if it made one.
    decision: Option<Allowance>,
    /// Time for which the retransmission timer must be scheduled, if it was not running.
    rto_ps: Option<u64>,
    /// `true` if the sender has more data.
    has_data: bool,
    /// Time until which pacing held the packet back.
    paced_until_ps: u64,
}

impl Hosts {
    /// Returns `true` if `event` is the wake-up of a NIC that has planned another one since. It is no event of the run.
    #[inline]
    pub(in crate::core) fn is_superseded(&self, event: Event) -> bool {
        event.kind() == EventKind::HostWake && {
            let host = HostId(event.entity());
            self.nics[host].wake_ps != event.time_ps || !self.order.is_wake(host, event)
        }
    }

    /// Handles the wake-up of a host's NIC.
    pub(in crate::core) fn on_wake(&mut self, w: &mut World, host: HostId) {
        w.observed.begin(Cause::Other);
        self.nics[host].wake_ps = u64::MAX;
        self.may_send(w, host);
    }

    /// Lets a host send after a cause that blocked its port has ended.
    pub(in crate::core) fn may_send(&mut self, w: &mut World, host: HostId) {
        self.nic_send(w, host);
        self.run_deferred(w);
    }

    /// Does the same as [`Hosts::nic_send`], in fair turns.
    #[inline]
    pub(super) fn nic_send_fairly(&mut self, w: &mut World, host: HostId) {
        let nic = &self.nics[host];
        let port = &w.net.ports[nic.port];
        if port.busy_until_ps <= w.clock.now_ps {
            if port.can_send() {
                self.send_waiting(w, host);
            } else if let Some(at) = self.order.pick(nic, host, w.clock.now_ps, port.paused) {
                self.send_data(w, host, at);
            }
        }
        self.plan_wake(w, host);
    }

    /// Sends the first packet that waits at a NIC and may be sent.
    pub(super) fn send_waiting(&mut self, w: &mut World, host: HostId) {
        let egress = self.nics[host].port;
        let packet = w.net.ports[egress].dequeue(&w.net.pool);
        self.show_agent(w, host, packet, Step::Dequeue);
        w.transmit(egress, packet);
        self.rest(w, host);
    }

    /// Sends an acknowledgment, at once if the port is free and its queues are empty.
    #[inline]
    pub(super) fn reply(&mut self, w: &mut World, host: HostId, packet: PacketIdx) {
        let p = w.net.pool.get(packet);
        let egress = self.nics[host].port;
        let port = &w.net.ports[egress];
        let is_free = port.busy_until_ps <= w.clock.now_ps && port.is_clear(p.class) && self.order.is_fair();
        if is_free && !w.agents.watch(p.kind) {
            w.transmit_at_once(egress, packet);
            self.rest(w, host);
            self.plan_wake(w, host);
        } else {
            self.enqueue(w, host, packet);
            self.nic_send(w, host);
        }
    }

    #[inline]
    fn plan_wake(&mut self, w: &mut World, host: HostId) {
        let nic = &self.nics[host];
        let port = &w.net.ports[nic.port];
        if nic.wake_ps <= port.busy_until_ps {
            // No packet is sent before the port is free.
            return;
        }
        let at = if port.can_send() {
            port.busy_until_ps
        } else {
            let at = nic.next_send_ps(port.paused);
            if at == u64::MAX {
                return;
            }
            at.max(port.busy_until_ps)
        };
        if at < nic.wake_ps {
            self.nics[host].wake_ps = at;
            if w.net.agenda.has_hosts() {
                w.net.agenda.expect(Worker::Host(host), at);
            } else {
                w.clock.schedule(at, EventKind::HostWake, host);
            }
        }
    }

    /// Sends the next packet of the flow at position `turn` of a NIC, or of another flow of its connection.
    pub(super) fn send_data(&mut self, w: &mut World, host: HostId, turn: usize) {
        let slot = self.nics[host].flows[turn].sender;
        let transport = self.sender(slot).transport;
        let at = transport.whose_turn(self, w, host, turn);
        let slot = self.nics[host].flows[at].sender;
        if let Some(allowance) = transport.after_idle(self, w, slot) {
            self.apply(w, slot, allowance);
            if !self.sender(slot).is_open() {
                return;
            }
        }
        let load = transport.load(self, w, slot);
        let (packet, wire) = self.build_data(w, slot, &load);
        let sent = self.commit(w, slot, (turn, at), wire);
        let all_sent = transport.has_sent_all(self, w, slot, sent.has_data);
        w.observed.totals.sent_bytes += u64::from(wire);
        self.write_header(w, slot, packet);
        // A host's data packet waits in no queue: it joins and leaves at once.
        self.show_agent(w, host, packet, Step::Enqueue);
        self.show_agent(w, host, packet, Step::Dequeue);
        if w.observed.wants.senders {
            self.note_sent(w, slot, &load, sent.paced_until_ps);
        }
        let egress = self.nics[host].port;
        w.transmit_at_once(egress, packet);
        self.rest(w, host);
        transport.sent(self, w, slot, wire);
        if let Some(rto_ps) = sent.rto_ps {
            w.clock.schedule(rto_ps, EventKind::Rto, self.sender(slot).flow);
        }
        if all_sent {
            self.on_all_sent(w, slot);
        }
        if let Some(allowance) = sent.decision {
            self.apply(w, slot, allowance);
        } else if all_sent {
            self.ask_for_control(w, slot);
        }
        if w.observed.wants.senders {
            self.note_closed(w, slot);
        }
    }

    /// Returns the data packet that carries `load`, and its size on the wire.
    #[inline(always)] // It has one caller.
    fn build_data(&mut self, w: &mut World, slot: SenderIdx, load: &Load) -> (PacketIdx, u16) {
        let now_ps = w.clock.now_ps;
        let wire = ((load.payload + load.header) as u16).max(load.min_wire);
        let sender = self.senders[slot].as_ref().expect("an active flow has a sender");
        let entropy = match &mut self.pickers {
            Some(pickers) => pickers.of(slot).next(sender.cwnd / w.run.constants.mtu, now_ps),
            None => 0,
        };
        let packet = w.net.pool.take(Packet {
            flow: sender.flow,
            seq: load.seq,
            data_seq: load.data_seq,
            sent_ps: now_ps,
            cwnd_at_send: u32::try_from(sender.cwnd).unwrap_or(u32::MAX),
            route: w.run.flow(sender.flow).data_route,
            payload: load.payload as u16,
            wire,
            entropy,
            class: self.nics[sender.host].flows[sender.nic_slot as usize].class,
            ..Packet::new(PacketKind::Data)
        });
        (packet, wire)
    }

    /// Brings a sender, its controller and its NIC up to date with a packet of `wire` bytes that leaves. `turn` is the
    /// position of the flow whose turn it was, `at` that of the sender's flow.
    #[inline(always)] // It has one caller.
    fn commit(&mut self, w: &World, slot: SenderIdx, (turn, at): (usize, usize), wire: u16) -> Sent {
        let now_ps = w.clock.now_ps;
        let sender = self.senders[slot].as_mut().expect("an active flow has a sender");
        let c = w.run.rules(sender.stack);
        let host = sender.host;
        let nic = &mut self.nics[host];
        let entry = &mut nic.flows[at];
        sender.on_sent(wire, now_ps);
        let gap_ps = sender.gap_ps(w.run.constants.clock);
        let earliest = now_ps.saturating_sub(c.pacing_credit.saturating_mul(gap_ps));
        let from_ps = if c.pacing_credit == 0 { now_ps } else { entry.next_send_ps.max(earliest) };
        let arm_rto = c.rto_ps < u64::MAX && sender.rto_ps == u64::MAX;
        if arm_rto {
            sender.rto_ps = now_ps + c.rto_ps;
        }
        let rto_ps = arm_rto.then(|| sender.rto_ps - c.rto_head_ps);
        let paced_until_ps = entry.next_send_ps;
        let decision = self.connections.controller(sender).on_sent(w.clock.now(), Bytes::new(u64::from(wire)));
        entry.next_send_ps = from_ps + sender.gap_beyond_credit(gap_ps, wire);
        (entry.open, entry.has_data) = sender.outlook();
        let (has_data, class) = (entry.has_data, entry.class);
        self.order.sent(nic, host, (turn, class), wire);
        Sent { decision, rto_ps, has_data, paced_until_ps }
    }

    /// Notes a data packet for the observer of senders. Pacing held it back until `paced_until_ps`.
    #[cold]
    fn note_sent(&self, w: &mut World, slot: SenderIdx, load: &Load, paced_until_ps: u64) {
        let (now, paced_until) = (w.clock.now(), Time::from_ps(paced_until_ps));
        let sender = self.sender(slot);
        let (id, rate, seq) = (sender.flow, sender.rate, load.seq);
        let data_seq = if w.run.flow(id).parent == id { seq } else { load.data_seq };
        let step = SenderStep::Send { seq, data_seq, payload: load.payload as u16, paced_until, rate };
        w.observed.push_sender(&w.run, now, id, step);
    }

    /// Notes that a sender may send no more, if so, for the observer of senders.
    #[cold]
    fn note_closed(&self, w: &mut World, slot: SenderIdx) {
        let sender = self.sender(slot);
        if !self.nics[sender.host].flows[sender.nic_slot as usize].open {
            w.observed.note_closed(sender.flow);
        }
    }

    /// Writes the sender's message to ports and its receiver into a data packet that is about to leave.
    fn write_header(&mut self, w: &mut World, slot: SenderIdx, packet: PacketIdx) {
        let sender = self.senders[slot].as_mut().expect("the slot is in use");
        if sender.take_reduced() {
            w.net.pool.get_mut(packet).set_reduced();
        }
        if w.run.constants.header_words == 0 {
            return;
        }
        let words = w.run.rules(sender.stack).header_words;
        if 0 < words {
            let header = &mut w.net.pool.header_mut(packet)[..words];
            header.fill(0.0);
            self.connections.controller(sender).stamp(w.clock.now(), header);
        }
    }

    /// Ends the competition of a user's flow that has sent all its data once, and schedules its next burst.
    fn on_all_sent(&mut self, w: &mut World, slot: SenderIdx) {
        let (id, transport) = (self.sender(slot).flow, self.sender(slot).transport);
        let user_flow = w.run.flow(id).parent;
        self.depart(w, user_flow);
        transport.on_all_sent(self, w, id);
        self.plan_burst(w, slot);
        self.note_milestone(w, user_flow, Milestone::Sent);
    }
}
