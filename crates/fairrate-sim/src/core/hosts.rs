//! What happens at hosts: packets arrive, timers go off, controllers decide.

use fairrate_control::{Ack, Allowance, Controller, Loss};
use fairrate_units::{Rate, Time};

use super::Core;
use super::told::Told;
use crate::config::WindowRule;
use crate::engine::{Event, EventKind};
use crate::ids::FlowId;
use crate::output::RttSample;
use crate::packet::{Packet, PacketKind, PacketPool};
use crate::transport::{ControlOf, NO_SENDER, Reply, Sender};

impl Core {
    /// A packet reaches its host.
    // Apart from what switches do for every packet, which needs fewer registers saved.
    #[inline(never)]
    pub(super) fn on_host_packet(&mut self, host: u32, packet: u32, kind: PacketKind) {
        match kind {
            PacketKind::Data if !self.is_tcp() => self.on_data(host, packet),
            PacketKind::Data => {
                if self.is_control_flow(self.pool.get(packet).flow) {
                    self.on_control_segment(host, packet);
                } else {
                    self.on_segment(host, packet, false);
                }
            }
            PacketKind::Ack if self.is_tcp() => self.on_tcp_ack(host, packet),
            PacketKind::Ack | PacketKind::Nack => self.on_ack(packet, kind == PacketKind::Nack),
            PacketKind::Cnp | PacketKind::Notice => self.on_notification(host, packet),
            PacketKind::Control => self.turn_control(host, packet),
            PacketKind::ControlBack => self.on_control_back(packet),
            PacketKind::Pause | PacketKind::Resume | PacketKind::FlowPause | PacketKind::FlowResume => {
                unreachable!("handled at the port")
            }
        }
    }

    /// A data packet reaches its receiver, which turns it into its acknowledgment.
    fn on_data(&mut self, host: u32, packet: u32) {
        let c = &self.constants;
        let p = self.pool.get_mut(packet);
        self.totals.delivered_bytes += u64::from(p.wire);
        let flow = &mut self.flows[p.flow as usize];
        let recovery = self.config.transport.recovery;
        let reply = flow.receiver.on_data(p.seq, u64::from(p.payload), recovery, self.now_ps, c.nack_interval_ps);
        if flow.receiver.expected == flow.bytes && flow.arrived_ps == u64::MAX && !flow.endless {
            flow.arrived_ps = self.now_ps;
        }
        let notify = match c.cnp_interval_ps {
            Some(interval) if p.is_marked() => flow.receiver.should_notify(self.now_ps, interval),
            _ => false,
        };
        let (id, ack_route, port) = (p.flow, flow.ack_route, self.nics[host as usize].port);
        if reply == Reply::Nothing {
            self.pool.release(packet);
        } else {
            p.kind = if reply == Reply::Ack { PacketKind::Ack } else { PacketKind::Nack };
            p.data_seq = p.seq;
            p.seq = flow.receiver.expected;
            p.class = c.ack_class;
            p.wire = c.ack_wire;
            p.route = ack_route;
            if !notify {
                self.reply(host, packet);
                return;
            }
            self.ports[port as usize].enqueue(&mut self.pool, packet);
        }
        if notify {
            let (class, wire) = (c.ack_class, c.cnp_wire);
            let cnp = Packet { flow: id, route: ack_route, class, wire, ..Packet::new(PacketKind::Cnp) };
            let cnp = self.pool.take(cnp);
            self.ports[port as usize].enqueue(&mut self.pool, cnp);
        }
        self.nic_send(host);
    }

    /// An acknowledgment reaches the sender.
    fn on_ack(&mut self, packet: u32, gap: bool) {
        let p = *self.pool.get(packet);
        let slot = self.flows[p.flow as usize].sender;
        if slot == NO_SENDER {
            self.pool.release(packet);
            return;
        }
        let sender = self.senders[slot as usize].as_mut().expect("an active flow has a sender");
        let newly_acked = sender.acknowledge(p.seq);
        if newly_acked > 0 {
            self.last_progress_ps = self.now_ps;
        }
        // Only progress moves the timer (RFC 6298, 5.3), and only one that runs.
        if newly_acked > 0 && sender.rto_ps < u64::MAX {
            sender.rto_ps = self.now_ps + self.constants.rto_ps;
        }
        let now = Time::from_ps(self.now_ps);
        if gap {
            sender.on_gap(self.config.transport.recovery, p.data_seq, u64::from(p.payload));
            sender.tally.recoveries += 1;
            self.connections.controller(sender).on_loss(now, Loss::Gap);
        }
        let ack = ack_of(&self.pool, packet, sender, newly_acked, now, self.constants.header_words);
        if self.tells_rtts {
            self.story.push(Told::Rtt(RttSample { t: now, flow: FlowId(p.flow), rtt: ack.rtt }));
        }
        let allowance = self.connections.controller(sender).on_ack(&ack);
        let done = sender.is_done();
        let only_stored = self.constants.first_ack_only_stored && sender.snd_una == newly_acked;
        self.pool.release(packet);
        self.apply(slot, allowance);
        if self.ranks.by_insertion && self.constants.repace && !only_stored {
            self.pull_wake_like_ns3(slot);
        }
        if done {
            self.finish(slot);
        } else {
            let host = self.flows[p.flow as usize].src_host;
            self.nic_send(host);
        }
    }

    /// The controller of a flow asked to be called now; or did, before it changed its mind.
    pub(super) fn on_flow_timer(&mut self, id: u32) {
        let slot = self.flows[id as usize].sender;
        let due = self.senders.get(slot as usize).and_then(Option::as_ref).map(|s| s.timer_ps);
        if due != Some(self.now_ps) || (self.ranks.by_insertion && self.timer_waits_like_ns3(id)) {
            return;
        }
        let now = self.now();
        let sender = self.senders[slot as usize].as_mut().expect("a flow with a timer is active");
        sender.timer_ps = u64::MAX;
        let allowance = self.connections.controller(sender).on_timer(now);
        self.apply(slot, allowance);
        // ns-3's rate timers leave the NIC alone: a window they open is noticed at the next acknowledgment.
        if !self.ranks.by_insertion || self.constants.repace {
            self.nic_send(self.flows[id as usize].src_host);
        }
    }

    /// The retransmission timer of a flow may have expired; it moves ahead with every acknowledgment, and its
    /// event follows only now.
    pub(super) fn on_rto(&mut self, id: u32) {
        let slot = self.flows[id as usize].sender;
        let Some(sender) = self.senders.get_mut(slot as usize).and_then(Option::as_mut) else { return };
        if sender.tcp.is_some() {
            self.on_tcp_timer(id);
            return;
        }
        if !sender.has_unacknowledged() {
            sender.rto_ps = u64::MAX;
            return;
        }
        if self.now_ps < sender.rto_ps {
            let at = sender.rto_ps;
            self.schedule(at, EventKind::Rto, id);
            return;
        }
        sender.on_timeout(self.config.transport.recovery);
        sender.tally.timeouts += 1;
        sender.rto_ps = self.now_ps + self.constants.rto_ps;
        let (at, now) = (sender.rto_ps, self.now());
        self.schedule(at, EventKind::Rto, id);
        self.control(id, |control| Some(control.on_loss(now, Loss::Timeout)));
    }

    /// Lets a flow's controller decide, if the flow is active, and applies the decision.
    pub(super) fn control(&mut self, id: u32, decide: impl FnOnce(&mut ControlOf<'_>) -> Option<Allowance>) {
        let flow = &self.flows[id as usize];
        let (slot, host) = (flow.sender, flow.src_host);
        let Some(sender) = self.senders.get_mut(slot as usize).and_then(Option::as_mut) else { return };
        match decide(&mut self.connections.controller(sender)) {
            Some(allowance) => self.apply(slot, allowance),
            None => self.poll_control(slot),
        }
        self.nic_send(host);
    }

    /// Puts a controller's decision into force.
    pub(super) fn apply(&mut self, slot: u32, allowance: Allowance) {
        let c = &self.constants;
        let sender = self.senders[slot as usize].as_mut().expect("the slot is in use");
        let nic = &mut self.nics[sender.host as usize];
        sender.cwnd = match self.config.transport.window {
            WindowRule::Algorithm => allowance.cwnd.as_u64(),
            WindowRule::None => u64::MAX,
            WindowRule::RateScaled => {
                let line_rate = self.ports[nic.port as usize].rate;
                let full = line_rate.bytes_in(c.base_rtt).as_u64();
                (u128::from(full) * u128::from(allowance.rate.as_bps()) / u128::from(line_rate.as_bps())) as u64
            }
        };
        let rate = allowance.rate.min(sender.fastest);
        let nic_flow = &mut nic.flows[sender.nic_slot as usize];
        if rate != sender.rate {
            let before = std::mem::replace(&mut sender.rate, rate);
            if 0 < c.pacing_credit {
                nic_flow.next_send_ps = repaced(nic_flow.next_send_ps, self.now_ps, before, rate);
            } else if c.repace && sender.has_sent() && Rate::ZERO < rate {
                nic_flow.next_send_ps = sender.last_start_ps + sender.gap_ps(c.whole_ns);
                if !self.connections.is_empty()
                    && let Some(connection) = self.connections.get(self.flows[sender.flow as usize].spec)
                {
                    nic_flow.next_send_ps = nic_flow.next_send_ps.max(connection.next_send_ps);
                }
            }
        }
        if let Some(tcp) = &mut sender.tcp {
            tcp.settle(sender.cwnd);
        }
        (nic_flow.open, nic_flow.has_data) = sender.outlook();
        let timer_ps = allowance.timer.as_ps();
        if timer_ps != sender.timer_ps {
            sender.timer_ps = timer_ps;
            if timer_ps < u64::MAX {
                let (at, id) = (timer_ps.max(self.now_ps), sender.flow);
                sender.timer_ps = at;
                // Rank 0: before all else of its time; `timer_waits_like_ns3` knows the exception.
                self.events.push(Event::new(at, EventKind::FlowTimer, id));
            }
        }
        if !self.connections.is_empty() {
            self.follow_subflow(slot);
        }
        if self.convergence.is_some() {
            self.follow(slot);
        }
        self.poll_control(slot);
    }

    pub(super) fn refresh_open(&mut self, slot: u32) {
        let sender = self.senders[slot as usize].as_ref().expect("the slot is in use");
        let nic_flow = &mut self.nics[sender.host as usize].flows[sender.nic_slot as usize];
        (nic_flow.open, nic_flow.has_data) = sender.outlook();
    }
}

/// What the acknowledgment in `packet` tells a controller; delivery rates are not known.
#[inline]
pub(super) fn ack_of<'a>(
    pool: &'a PacketPool,
    packet: u32,
    sender: &Sender,
    newly_acked: u64,
    now: Time,
    header_words: usize,
) -> Ack<'a> {
    let p = pool.get(packet);
    Ack {
        now,
        ack_seq: p.seq,
        snd_nxt: sender.snd_nxt,
        newly_acked,
        delivered: newly_acked,
        lost: 0,
        rtt: Time::from_ps(now.as_ps() - p.sent_ps),
        cwnd_at_send: if p.cwnd_at_send == u32::MAX { u64::MAX } else { u64::from(p.cwnd_at_send) },
        in_flight: sender.inflight(),
        delivery_rate: Rate::ZERO,
        prior_delivered: None,
        app_limited: false,
        ecn_marked: p.is_marked(),
        int: pool.int(packet),
        header: &pool.header(packet)[..header_words],
    }
}

/// When a packet may go that had to wait until `at_ps` at the rate before: what is left of the wait lasts longer or
/// shorter. A credit stays what it is.
fn repaced(at_ps: u64, now_ps: u64, before: Rate, rate: Rate) -> u64 {
    if at_ps <= now_ps || rate == Rate::ZERO {
        return at_ps;
    }
    let wait = u128::from(at_ps - now_ps) * u128::from(before.as_bps()) / u128::from(rate.as_bps());
    now_ps.saturating_add(u64::try_from(wait).unwrap_or(u64::MAX))
}
