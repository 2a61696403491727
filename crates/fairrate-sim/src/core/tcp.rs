//! TCP at hosts: segments, selective and delayed acknowledgments, timers, the handshake.

use fairrate_control::{Ack, Controller, Loss};
use fairrate_units::{Rate, Time};

use super::Core;
use super::hosts::ack_of;
use super::told::Told;
use crate::config::Transport;
use crate::engine::EventKind;
use crate::ids::FlowId;
use crate::output::RttSample;
use crate::packet::{Packet, PacketKind};
use crate::transport::{Answered, Connection, Expired, MAX_SACKS, NO_SENDER, Sender, TcpConfig};

/// Header words that selective acknowledgments take.
pub(super) const SACK_WORDS: usize = 2 * MAX_SACKS;

impl Core {
    /// Whether hosts speak TCP.
    #[inline]
    pub(super) fn is_tcp(&self) -> bool {
        matches!(self.config.transport.kind, Transport::Tcp(_))
    }

    pub(super) fn tcp_config(&self) -> Option<TcpConfig> {
        match self.config.transport.kind {
            Transport::Tcp(config) => Some(config),
            Transport::Rdma => None,
        }
    }

    /// A segment reaches its receiver; of a control connection, or not.
    pub(super) fn on_segment(&mut self, host: u32, packet: u32, is_control: bool) {
        let p = *self.pool.get(packet);
        self.totals.delivered_bytes += u64::from(p.wire);
        let spec = self.flows[p.flow as usize].spec;
        let is_subflow = spec != p.flow;
        // A segment of a subflow or of a control connection takes a full one's numbers.
        let len = if is_subflow || is_control { self.constants.mtu } else { u64::from(p.payload) };
        let receiver = &mut self.flows[p.flow as usize].receiver;
        let before = receiver.expected;
        let in_order = receiver.take(p.seq, len);
        let flow = &mut self.flows[spec as usize];
        if is_subflow {
            let (mtu, len) = (self.constants.mtu, u64::from(p.payload));
            flow.receiver.expected = self.connections.reassemble(spec, mtu, p.data_seq, len, self.now_ps);
        }
        if flow.receiver.expected == flow.bytes && flow.arrived_ps == u64::MAX && !flow.endless {
            flow.arrived_ps = self.now_ps;
        }
        let flow = &mut self.flows[p.flow as usize];
        let segment = Answered { sent_ps: p.sent_ps, seq: p.seq, payload: p.payload, cwnd_at_send: p.cwnd_at_send };
        let before_due = flow.receiver.due_ps();
        let config = match (&self.allocator, &self.config.transport.kind) {
            (Some(allocator), _) if is_control => allocator.tcp(),
            (_, Transport::Tcp(config)) => config,
            (_, Transport::Rdma) => unreachable!("segments are for hosts that speak TCP"),
        };
        let replies =
            flow.receiver.tcp().on_data(config, segment, p.is_marked(), p.is_reduced(), in_order, self.now_ps);
        let due_ps = flow.receiver.due_ps();
        let expected = flow.receiver.expected;
        if let Some(latest) = replies.before {
            let ack = self.new_ack(p.flow);
            self.write_ack(ack, &latest, before, !replies.echo);
            let port = self.nics[host as usize].port;
            self.ports[port as usize].enqueue(&mut self.pool, ack);
        }
        if replies.now {
            self.write_ack(packet, &segment, expected, replies.echo);
            self.reply(host, packet);
            return;
        }
        self.pool.release(packet);
        if due_ps != before_due {
            self.schedule(due_ps, EventKind::AckTimer, p.flow);
        }
        self.nic_send(host);
    }

    /// A segment of a control connection reaches its receiver, unless that is an allocator that is not there.
    pub(super) fn on_control_segment(&mut self, host: u32, packet: u32) {
        let p = *self.pool.get(packet);
        let Some(allocator) = &self.allocator else { return };
        if allocator.is_lost(host) {
            self.totals.delivered_bytes += u64::from(p.wire);
            self.pool.release(packet);
            return;
        }
        self.on_segment(host, packet, true);
        self.read_messages(p.flow);
    }

    /// Acknowledgments of a flow may have waited for long enough.
    pub(super) fn on_ack_timer(&mut self, id: u32) {
        let flow = &mut self.flows[id as usize];
        if !flow.receiver.tcp().is_due(self.now_ps) {
            return;
        }
        let expected = flow.receiver.expected;
        let Some((segment, echo)) = flow.receiver.tcp().take() else { return };
        let host = self.receiver_of(id);
        let ack = self.new_ack(id);
        self.write_ack(ack, &segment, expected, echo);
        self.reply(host, ack);
    }

    /// A packet for an acknowledgment that no segment turns into: its header says nothing.
    fn new_ack(&mut self, id: u32) -> u32 {
        let ack = self.pool.take(Packet { flow: id, ..Packet::new(PacketKind::Ack) });
        self.pool.header_mut(ack).fill(0.0);
        ack
    }

    /// The host a flow goes to: the end of its path.
    fn receiver_of(&self, id: u32) -> u32 {
        let flow = &self.flows[id as usize];
        let last = flow.data_route as usize + flow.n_hops as usize - 2;
        self.ports[self.paths[last] as usize].to_host
    }

    /// Turns `packet` into an acknowledgment of all before byte `seq`.
    fn write_ack(&mut self, packet: u32, segment: &Answered, seq: u64, echo: bool) {
        let c = &self.constants;
        let p = self.pool.get_mut(packet);
        let flow = &self.flows[p.flow as usize];
        p.kind = PacketKind::Ack;
        (p.seq, p.data_seq, p.payload) = (seq, segment.seq, segment.payload);
        (p.sent_ps, p.cwnd_at_send) = (segment.sent_ps, segment.cwnd_at_send);
        (p.class, p.wire, p.route) = (c.ack_class, c.ack_wire, flow.ack_route);
        p.set_marked(echo);
        if let Some(allocator) = self.allocator.as_mut().filter(|_| self.n_user_flows <= p.flow) {
            p.wire = p.wire.max(allocator.min_wire());
            allocator.count(p.flow, p.wire, true);
        }
        if flow.spec != p.flow {
            p.data_seq = self.flows[flow.spec as usize].receiver.expected;
        }
        let sacks = flow.receiver.sacks(segment.seq);
        let words = &mut self.pool.header_mut(packet)[c.header_words..c.header_words + SACK_WORDS];
        for (pair, &(from, to)) in words.chunks_exact_mut(2).zip(&sacks) {
            // Byte numbers stay far below 2^53.
            (pair[0], pair[1]) = (from as f64, to as f64);
        }
    }

    /// An acknowledgment reaches a TCP sender.
    pub(super) fn on_tcp_ack(&mut self, host: u32, packet: u32) {
        let p = *self.pool.get(packet);
        let slot = self.flows[p.flow as usize].sender;
        let is_control = self.is_control_flow(p.flow);
        if slot == NO_SENDER || (is_control && self.allocator.as_ref().is_some_and(|a| a.is_lost(host))) {
            self.pool.release(packet);
            return;
        }
        let words = self.constants.header_words;
        let mut sacks = [(0, 0); MAX_SACKS];
        for (sack, pair) in sacks.iter_mut().zip(self.pool.header(packet)[words..].chunks_exact(2)) {
            if pair[1] == 0.0 {
                // Nor does any range follow.
                break;
            }
            *sack = (pair[0] as u64, pair[1] as u64);
        }
        let sender = self.senders[slot as usize].as_mut().expect("an active flow has a sender");
        let snd_nxt = sender.snd_nxt;
        let tcp = sender.tcp.as_mut().expect("senders of TCP flows speak TCP");
        let (acked, recovery) = tcp.on_ack(p.seq, &sacks, snd_nxt, self.now_ps);
        sender.tally.recoveries += u32::from(recovery);
        let newly_acked = sender.acknowledge(p.seq);
        if 0 < acked.delivered && !is_control {
            self.last_progress_ps = self.now_ps;
        }
        let now = Time::from_ps(self.now_ps);
        if !self.connections.is_empty() {
            self.on_subflow_ack(p.flow, p.seq, p.data_seq, 0 < acked.delivered);
        }
        let sender = self.senders[slot as usize].as_mut().expect("an active flow has a sender");
        if recovery {
            self.connections.controller(sender).on_loss(now, Loss::Gap);
        }
        let ack = Ack {
            delivered: acked.delivered,
            lost: acked.lost,
            delivery_rate: acked.rate.map_or(Rate::ZERO, |(bytes, ps)| rate_of(bytes, ps)),
            prior_delivered: Some(acked.prior_delivered),
            app_limited: acked.app_limited,
            ..ack_of(&self.pool, packet, sender, newly_acked, now, words)
        };
        let cwnd = sender.cwnd;
        let spec = self.flows[p.flow as usize].spec;
        if self.tells_rtts && !is_control {
            self.story.push(Told::Rtt(RttSample { t: now, flow: FlowId(spec), rtt: ack.rtt }));
        }
        let allowance = self.connections.controller(sender).on_ack(&ack);
        if p.is_marked()
            && allowance.cwnd.as_u64() < cwnd
            && let Some(tcp) = &mut sender.tcp
        {
            tcp.on_reduced(&acked, snd_nxt);
        }
        let done = !is_control && self.connections.get(spec).map_or_else(|| sender.is_done(), Connection::is_done);
        self.pool.release(packet);
        if let Some(allocator) = self.allocator.as_mut().filter(|_| is_control) {
            allocator.on_ack(p.flow, p.seq);
        }
        self.apply(slot, allowance);
        if !done {
            self.plan_tcp_timer(slot);
            self.nic_send(self.flows[p.flow as usize].src_host);
        } else if spec == p.flow {
            self.finish(slot);
        } else {
            self.finish_connection(spec);
        }
    }

    /// A sender is about to send. If it was idle, its controller decides anew; false if nothing may be sent then.
    #[inline]
    pub(super) fn may_send_after_idle(&mut self, slot: u32) -> bool {
        let (now, now_ps) = (self.now(), self.now_ps);
        let sender = self.senders[slot as usize].as_mut().expect("the slot is in use");
        let timeouts = sender.tcp.as_ref().map_or(0, |tcp| tcp.idle_timeouts(now_ps));
        if timeouts == 0 {
            return true;
        }
        let Some(allowance) = self.connections.controller(sender).on_idle(now, timeouts) else { return true };
        self.apply(slot, allowance);
        self.senders[slot as usize].as_ref().is_some_and(Sender::is_open)
    }

    /// Schedules the timer of a TCP sender, unless an earlier event is pending, which will look again.
    pub(super) fn plan_tcp_timer(&mut self, slot: u32) {
        let sender = self.senders[slot as usize].as_mut().expect("the slot is in use");
        let id = sender.flow;
        let Some(tcp) = &mut sender.tcp else { return };
        let at = tcp.deadline_ps();
        if at < tcp.scheduled_ps {
            tcp.scheduled_ps = at;
            let at = at.max(self.now_ps);
            self.schedule(at, EventKind::Rto, id);
        }
    }

    /// The timer of a TCP sender.
    pub(super) fn on_tcp_timer(&mut self, id: u32) {
        let (slot, now) = (self.flows[id as usize].sender, self.now());
        let Some(sender) = self.senders.get_mut(slot as usize).and_then(Option::as_mut) else { return };
        let (snd_nxt, now_ps) = (sender.snd_nxt, self.now_ps);
        let Some(tcp) = &mut sender.tcp else { return };
        if now_ps < tcp.scheduled_ps {
            return;
        }
        tcp.scheduled_ps = u64::MAX;
        if tcp.connected {
            match tcp.on_timer(snd_nxt, now_ps) {
                Expired::Nothing => {}
                Expired::MaySend(false) => self.refresh_open(slot),
                Expired::MaySend(true) => {
                    sender.tally.recoveries += 1;
                    let allowance = self.connections.controller(sender).on_loss(now, Loss::Gap);
                    self.apply(slot, allowance);
                }
                Expired::Timeout => {
                    self.on_subflow_timeout(id);
                    let sender = self.senders[slot as usize].as_mut().expect("the slot is in use");
                    sender.tally.timeouts += 1;
                    let allowance = self.connections.controller(sender).on_loss(now, Loss::Timeout);
                    self.apply(slot, allowance);
                }
            }
        } else if tcp.deadline_ps() <= now_ps {
            self.connect(slot);
        }
        self.plan_tcp_timer(slot);
        self.nic_send(self.flows[id as usize].src_host);
    }

    /// Sends the first packet of a handshake, again if it must be.
    pub(super) fn connect(&mut self, slot: u32) {
        let sender = self.senders[slot as usize].as_mut().expect("the slot is in use");
        let id = sender.flow;
        let Some(tcp) = &mut sender.tcp else { return };
        tcp.on_connect(self.now_ps);
        let flow = &self.flows[id as usize];
        let (route, host, class, wire) =
            (flow.data_route, flow.src_host, self.constants.ack_class, self.constants.ack_wire);
        let packet = self.pool.take(Packet { flow: id, route, class, wire, ..Packet::new(PacketKind::Control) });
        self.pool.get_mut(packet).set_handshake();
        self.pool.header_mut(packet).fill(0.0);
        self.send_control(host, packet);
    }

    /// The answer to a handshake is there, perhaps not for the first time.
    pub(super) fn on_handshake(&mut self, id: u32) {
        let slot = self.flows[id as usize].sender;
        let Some(sender) = self.senders.get_mut(slot as usize).and_then(Option::as_mut) else { return };
        let Some(tcp) = sender.tcp.as_mut().filter(|tcp| !tcp.connected) else { return };
        tcp.on_connected(self.now_ps);
        let spec = self.flows[id as usize].spec as usize;
        self.flows[spec].connected_ps = self.flows[spec].connected_ps.min(self.now_ps);
        self.refresh_open(slot);
        self.join_subflows(id);
        self.nic_send(self.flows[id as usize].src_host);
    }
}

/// Bytes in picoseconds as a rate.
fn rate_of(bytes: u64, ps: u64) -> Rate {
    let bps = u128::from(bytes) * 8_000_000_000_000 / u128::from(ps.max(1));
    Rate::from_bps(u64::try_from(bps).unwrap_or(u64::MAX))
}
