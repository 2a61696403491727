//! What a host's NIC sends, and when.

use fairrate_control::Controller;
use fairrate_units::{Bytes, Time};

use super::Core;
use super::agents::Step;
use crate::engine::EventKind;
use crate::packet::{Packet, PacketKind};
use crate::transport::Connection;

impl Core {
    /// The wake-up of a host's NIC, unless a later decision has overtaken it.
    pub(super) fn on_host_wake(&mut self, host: u32, rank: u32) {
        let nic = &mut self.nics[host as usize];
        if nic.wake_ps == self.now_ps && nic.wake_rank == rank {
            nic.wake_ps = u64::MAX;
            self.nic_send(host);
        }
    }

    /// Sends the host's next packet if its port is free and something may go, and plans the next look.
    pub(super) fn nic_send(&mut self, host: u32) {
        if self.ranks.by_insertion {
            self.nic_send_like_ns3(host);
            return;
        }
        let nic = &self.nics[host as usize];
        let port = &self.ports[nic.port as usize];
        if port.busy_until_ps <= self.now_ps {
            let egress = nic.port;
            if port.can_send() {
                let packet = self.ports[egress as usize].dequeue(&self.pool);
                self.agent_sees(egress, packet, Step::Dequeue);
                self.transmit(egress, packet);
            } else if let Some(at) = nic.pick(self.now_ps, port.paused) {
                self.send_data(host, at);
            }
        }
        self.plan_wake(host);
    }

    /// A host sends an acknowledgment, at once if nothing is in its way.
    #[inline]
    pub(super) fn reply(&mut self, host: u32, packet: u32) {
        let p = self.pool.get(packet);
        let egress = self.nics[host as usize].port;
        let port = &mut self.ports[egress as usize];
        let is_free = port.busy_until_ps <= self.now_ps && port.is_clear(p.class) && !self.ranks.by_insertion;
        if is_free && self.agents.is_empty() {
            port.enqueued_bytes += u64::from(p.wire);
            self.transmit(egress, packet);
            self.plan_wake(host);
        } else {
            port.enqueue(&mut self.pool, packet);
            self.nic_send(host);
        }
    }

    #[inline]
    fn plan_wake(&mut self, host: u32) {
        let nic = &self.nics[host as usize];
        let port = &self.ports[nic.port as usize];
        if nic.wake_ps <= port.busy_until_ps {
            // Nothing goes before the port is free.
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
            self.nics[host as usize].wake_ps = at;
            self.schedule(at, EventKind::HostWake, host);
        }
    }

    /// The flow at position `at` of a NIC sends its next packet.
    pub(super) fn send_data(&mut self, host: u32, turn: usize) {
        let at = if self.connections.is_empty() { turn } else { self.scheduled(host, turn) };
        if self.is_tcp() && !self.may_send_after_idle(self.nics[host as usize].flows[at].sender) {
            return;
        }
        let c = &self.constants;
        let nic = &mut self.nics[host as usize];
        let entry = nic.flows[at];
        let sender = self.senders[entry.sender as usize].as_mut().expect("an active flow has a sender");
        let id = sender.flow;
        let (spec, subflow) = (self.flows[id as usize].spec, self.flows[id as usize].subflow as usize);
        let segment = sender.next_segment(c.mtu, self.now_ps);
        let (data_seq, payload) = match &mut self.allocator {
            _ if spec != id => self.connections.carry(spec, subflow, sender, segment),
            Some(allocator) if self.n_user_flows <= id => (0, allocator.carry(id, sender, segment)),
            _ => (0, segment.len),
        };
        let mut wire = (payload + c.data_header) as u16;
        if let Some(allocator) = self.allocator.as_mut().filter(|_| self.n_user_flows <= id) {
            wire = wire.max(allocator.min_wire());
            allocator.count(id, wire, false);
        }
        let packet = self.pool.take(Packet {
            flow: id,
            seq: segment.seq,
            data_seq,
            sent_ps: self.now_ps,
            cwnd_at_send: u32::try_from(sender.cwnd).unwrap_or(u32::MAX),
            route: self.flows[id as usize].data_route,
            payload: payload as u16,
            wire,
            class: entry.class,
            ..Packet::new(PacketKind::Data)
        });
        sender.on_sent(wire, self.now_ps);
        let gap_ps = sender.gap_ps(c.whole_ns);
        let earliest = self.now_ps.saturating_sub(c.pacing_credit.saturating_mul(gap_ps));
        let from_ps = if c.pacing_credit == 0 { self.now_ps } else { entry.next_send_ps.max(earliest) };
        let next_send_ps = from_ps + gap_ps;
        let arm_rto = c.rto_ps < u64::MAX && sender.rto_ps == u64::MAX;
        if arm_rto {
            sender.rto_ps = self.now_ps + c.rto_ps;
        }
        let rto_ps = sender.rto_ps;
        let decision =
            self.connections.controller(sender).on_sent(Time::from_ps(self.now_ps), Bytes::new(u64::from(wire)));
        let nic_flow = &mut nic.flows[at];
        nic_flow.next_send_ps = next_send_ps;
        (nic_flow.open, nic_flow.has_data) = sender.outlook();
        let has_data = nic_flow.has_data;
        if self.ranks.by_insertion {
            nic.sent_like_ns3(turn);
        } else {
            nic.sent(turn);
        }
        let egress = nic.port;
        let is_tcp = sender.tcp.is_some();
        let all_sent =
            if spec == id { !has_data } else { self.connections.get(spec).is_some_and(Connection::all_sent) };
        self.totals.sent_bytes += u64::from(wire);
        self.write_header(entry.sender, packet);
        // A host's data waits in no queue: it joins and leaves at once.
        self.agent_sees(egress, packet, Step::Enqueue);
        self.agent_sees(egress, packet, Step::Dequeue);
        self.transmit(egress, packet);
        if spec != id {
            self.pace_connection(spec, u64::from(wire));
            self.share_out(spec);
        }
        if arm_rto {
            self.schedule(rto_ps, EventKind::Rto, id);
        }
        if is_tcp {
            self.plan_tcp_timer(entry.sender);
        }
        if all_sent && self.convergence.is_some() {
            self.depart(spec);
        }
        if all_sent && self.allocator.is_some() && id < self.n_user_flows {
            self.note_idle(id);
        }
        if all_sent && spec == id {
            self.plan_burst(entry.sender);
        }
        if let Some(allowance) = decision {
            self.apply(entry.sender, allowance);
        } else if all_sent {
            self.poll_control(entry.sender);
        }
    }

    /// What a sender tells ports and its receiver in a data packet that is about to leave.
    fn write_header(&mut self, slot: u32, packet: u32) {
        let sender = self.senders[slot as usize].as_mut().expect("the slot is in use");
        if sender.tcp.as_mut().is_some_and(|tcp| std::mem::take(&mut tcp.tell_reduced)) {
            self.pool.get_mut(packet).set_reduced();
        }
        let words = self.constants.header_words;
        if 0 < words {
            let header = &mut self.pool.header_mut(packet)[..words];
            header.fill(0.0);
            self.connections.controller(sender).stamp(Time::from_ps(self.now_ps), header);
        }
    }
}
