//! TCP at hosts: segments, selective and delayed acknowledgments, timers, the handshake. Its payload is a [`Cargo`].

use std::marker::PhantomData;

use fairrate_control::{Ack, Allowance, Controller, Loss};
use fairrate_units::Rate;

use super::cargo::Cargo;
use super::{Arrived, Expired, MAX_SACKS};
use crate::core::{Hosts, World};
use crate::engine::EventKind;
use crate::ids::{FlowId, HostId, PacketIdx, SenderIdx};
use crate::packet::{Packet, PacketKind};
use crate::transport::interface::{Acked, Answer, Load, Timed, Transport};
use crate::transport::sender::ack_of;

/// Number of header words that selective acknowledgments take.
pub(crate) const SACK_WORDS: usize = 2 * MAX_SACKS;

/// TCP whose segments carry `C`.
pub(crate) struct Tcp<C>(PhantomData<C>);

impl<C: Cargo> Transport for Tcp<C> {
    fn open(hosts: &mut Hosts, w: &mut World, flow: FlowId) {
        C::open(hosts, w, flow);
    }

    fn begin(hosts: &mut Hosts, w: &mut World, flow: FlowId) {
        let (slot, sender) = hosts.sender_of(flow).expect("a flow that begins has a sender");
        if sender.tcp.as_ref().is_some_and(|tcp| !tcp.connected) {
            connect(hosts, w, slot);
        }
    }

    fn written(hosts: &mut Hosts, w: &mut World, flow: FlowId) {
        C::written(hosts, w, flow);
    }

    #[inline]
    fn whose_turn(hosts: &Hosts, w: &World, host: HostId, at: usize) -> usize {
        C::whose_turn(hosts, w, host, at)
    }

    #[inline]
    fn after_idle(hosts: &mut Hosts, w: &World, slot: SenderIdx) -> Option<Allowance> {
        let timeouts = hosts.sender(slot).tcp.as_ref().map_or(0, |tcp| tcp.idle_timeouts(w.clock.now_ps));
        if timeouts == 0 { None } else { hosts.controller(slot).on_idle(w.clock.now(), timeouts) }
    }

    #[inline]
    fn load(hosts: &mut Hosts, w: &mut World, slot: SenderIdx) -> Load {
        let segment = hosts.sender_mut(slot).next_segment(w.run.constants.mtu, w.clock.now_ps);
        C::load(hosts, w, slot, segment)
    }

    #[inline]
    fn sent(hosts: &mut Hosts, w: &mut World, slot: SenderIdx, wire: u16) {
        C::sent(hosts, w, slot, wire);
        Self::plan_timer(hosts, w, slot);
    }

    #[inline]
    fn has_sent_all(hosts: &Hosts, w: &World, slot: SenderIdx, has_data: bool) -> bool {
        C::has_sent_all(hosts, w, slot, has_data)
    }

    #[inline]
    fn on_all_sent(hosts: &mut Hosts, w: &mut World, flow: FlowId) {
        C::on_all_sent(hosts, w, flow);
    }

    fn on_data(hosts: &mut Hosts, w: &mut World, host: HostId, packet: PacketIdx) -> Answer {
        let p = *w.net.pool.get(packet);
        w.observed.totals.delivered_bytes += u64::from(p.wire);
        if C::is_lost(hosts, host, p.flow) {
            w.net.pool.release(packet);
            return Answer::Nothing;
        }
        let receiver = &mut hosts.receiving[p.flow].receiver;
        let before = receiver.expected;
        let in_order = receiver.take(p.seq, C::numbers(&w.run, &p));
        C::deliver(hosts, w, &p);
        let receiver = &mut hosts.receiving[p.flow].receiver;
        let before_due = receiver.due_ps();
        let config = C::config(&w.run, p.flow);
        let arrived = Arrived { segment: packet, marked: p.is_marked(), reduced: p.is_reduced(), in_order };
        let replies = receiver.tcp().on_data(config, arrived, w.clock.now_ps);
        let (due_ps, expected) = (receiver.due_ps(), receiver.expected);
        if let Some(earlier) = replies.before {
            write_ack::<C>(hosts, w, earlier, before, !replies.echo);
            hosts.enqueue(w, host, earlier);
        }
        if let Some(earlier) = replies.superseded {
            w.net.pool.release(earlier);
        }
        if replies.now {
            write_ack::<C>(hosts, w, packet, expected, replies.echo);
            return Answer::Packet(packet);
        }
        if due_ps != before_due {
            w.clock.schedule(due_ps, EventKind::AckTimer, p.flow);
        }
        Answer::Waiting
    }

    fn read(hosts: &mut Hosts, w: &mut World, flow: FlowId) {
        C::read(hosts, w, flow);
    }

    fn on_ack_timer(hosts: &mut Hosts, w: &mut World, flow: FlowId) -> Option<PacketIdx> {
        let receiver = &mut hosts.receiving[flow].receiver;
        if !receiver.tcp().is_due(w.clock.now_ps) {
            return None;
        }
        let expected = receiver.expected;
        let (segment, echo) = receiver.tcp().take()?;
        write_ack::<C>(hosts, w, segment, expected, echo);
        Some(segment)
    }

    fn on_ack(hosts: &mut Hosts, w: &mut World, host: HostId, packet: PacketIdx) -> Option<Acked> {
        let p = *w.net.pool.get(packet);
        let slot = hosts.sending[p.flow].sender;
        if slot.is_none() || C::is_lost(hosts, host, p.flow) {
            return None;
        }
        let words = w.run.constants.header_words;
        let mut sacks = [(0, 0); MAX_SACKS];
        for (sack, pair) in sacks.iter_mut().zip(w.net.pool.header(packet)[words..].chunks_exact(2)) {
            if pair[1] == 0.0 {
                // No range follows an empty one.
                break;
            }
            *sack = (pair[0] as u64, pair[1] as u64);
        }
        let now = w.clock.now();
        let sender = hosts.sender_mut(slot);
        let snd_nxt = sender.snd_nxt;
        let tcp = sender.tcp.as_mut().expect("senders of TCP flows speak TCP");
        let (acked, recovery) = tcp.on_ack(p.seq, &sacks, snd_nxt, w.clock.now_ps);
        let in_flight = tcp.pipe() + acked.lost;
        sender.tally.recoveries += u32::from(recovery);
        let newly_acked = sender.acknowledge(p.seq);
        if C::IS_DATA && 0 < acked.delivered {
            hosts.last_progress_ps = w.clock.now_ps;
        }
        C::acked(hosts, w, &p, 0 < acked.delivered);
        let sender = hosts.senders[slot].as_mut().expect("an active flow has a sender");
        if recovery {
            let mut controller = hosts.connections.controller(sender);
            controller.on_outstanding(in_flight, snd_nxt);
            controller.on_loss(now, Loss::Gap);
        }
        let ack = Ack {
            delivered: acked.delivered,
            lost: acked.lost,
            delivery_rate: acked.rate.map_or(Rate::ZERO, |(bytes, ps)| rate_of(bytes, ps)),
            prior_delivered: Some(acked.prior_delivered),
            penalty: 0,
            app_limited: acked.app_limited,
            ..ack_of(&w.net.pool, packet, sender, newly_acked, now, words)
        };
        let cwnd = sender.cwnd;
        if C::IS_DATA {
            w.observed.push_rtt(now, w.run.flow(p.flow).parent, ack.rtt);
        }
        let allowance = hosts.connections.controller(sender).on_ack(&ack);
        if p.is_marked()
            && allowance.cwnd.as_u64() < cwnd
            && let Some(tcp) = &mut sender.tcp
        {
            tcp.on_reduced(&acked, snd_nxt);
        }
        let is_done = C::is_done(hosts, w, hosts.sender(slot));
        Some(Acked { slot, allowance, is_done, is_only_stored: false })
    }

    fn on_connected(hosts: &mut Hosts, w: &mut World, flow: FlowId) -> bool {
        let Some((slot, sender)) = hosts.sender_of(flow) else { return false };
        let Some(tcp) = sender.tcp.as_mut().filter(|tcp| !tcp.connected) else { return false };
        tcp.on_connected(w.clock.now_ps);
        let end = &mut hosts.sending[w.run.flow(flow).parent];
        end.connected_ps = end.connected_ps.min(w.clock.now_ps);
        hosts.refresh(slot);
        C::connected(hosts, w, flow);
        true
    }

    fn on_timer(hosts: &mut Hosts, w: &mut World, flow: FlowId) -> Timed {
        let now = w.clock.now();
        let Some((slot, sender)) = hosts.sender_of(flow) else { return Timed::Nothing };
        let (snd_nxt, now_ps) = (sender.snd_nxt, w.clock.now_ps);
        let Some(tcp) = sender.tcp.as_mut().filter(|tcp| tcp.scheduled_ps <= now_ps) else { return Timed::Nothing };
        tcp.scheduled_ps = u64::MAX;
        if !tcp.connected {
            if tcp.deadline_ps() <= now_ps {
                say_hello(hosts, w, slot);
            }
            return Timed::MaySend(slot);
        }
        let in_flight = tcp.pipe();
        let loss = match tcp.on_timer(snd_nxt, now_ps) {
            Expired::Nothing => return Timed::MaySend(slot),
            Expired::MaySend(false) => {
                hosts.refresh(slot);
                return Timed::MaySend(slot);
            }
            Expired::MaySend(true) => {
                sender.tally.recoveries += 1;
                Loss::Gap
            }
            Expired::Timeout => {
                C::timed_out(hosts, w, flow);
                hosts.sender_mut(slot).tally.timeouts += 1;
                Loss::Timeout
            }
        };
        let mut controller = hosts.controller(slot);
        controller.on_outstanding(in_flight, snd_nxt);
        Timed::Decided(slot, controller.on_loss(now, loss))
    }

    /// Schedules the timer, unless an earlier event is pending, which schedules it again.
    #[inline]
    fn plan_timer(hosts: &mut Hosts, w: &mut World, slot: SenderIdx) {
        let sender = hosts.sender_mut(slot);
        let id = sender.flow;
        let Some(tcp) = &mut sender.tcp else { return };
        let at = tcp.deadline_ps();
        if at < tcp.scheduled_ps {
            tcp.scheduled_ps = at;
            w.clock.schedule(at.max(w.clock.now_ps), EventKind::Rto, id);
        }
    }

    #[inline]
    fn earliest_ps(hosts: &Hosts, w: &World, slot: SenderIdx) -> u64 {
        C::earliest_ps(hosts, w, slot)
    }

    #[inline]
    fn decided(hosts: &mut Hosts, w: &mut World, slot: SenderIdx) {
        C::decided(hosts, w, slot);
    }

    fn stop(hosts: &mut Hosts, _: &mut World, flow: FlowId) -> bool {
        C::stop(hosts, flow)
    }

    fn stopped(hosts: &mut Hosts, w: &mut World, flow: FlowId, is_done: bool) {
        C::stopped(hosts, w, flow, is_done);
    }

    fn close(hosts: &mut Hosts, w: &World, flow: FlowId) {
        C::close(hosts, w, flow);
    }
}

/// Starts the handshake of a sender.
pub(crate) fn connect(hosts: &mut Hosts, w: &mut World, slot: SenderIdx) {
    say_hello(hosts, w, slot);
    Tcp::<super::OwnData>::plan_timer(hosts, w, slot);
}

/// Sends the first packet of a handshake, for the first time or again.
fn say_hello(hosts: &mut Hosts, w: &mut World, slot: SenderIdx) {
    let sender = hosts.sender_mut(slot);
    let id = sender.flow;
    let Some(tcp) = &mut sender.tcp else { return };
    tcp.on_connect(w.clock.now_ps);
    let (flow, c) = (w.run.flow(id), w.run.rules_of(id));
    let (route, host, class, wire) = (flow.data_route, flow.src_host, c.ack_class, c.ack_wire);
    let packet = w.net.pool.take(Packet { flow: id, route, class, wire, ..Packet::new(PacketKind::Control) });
    w.net.pool.get_mut(packet).set_handshake();
    w.net.pool.header_mut(packet).fill(0.0);
    hosts.enqueue_control(w, host, packet);
}

/// Turns the segment `packet` into an acknowledgment of all bytes before `seq`.
fn write_ack<C: Cargo>(hosts: &mut Hosts, w: &mut World, packet: PacketIdx, seq: u64, echo: bool) {
    let p = w.net.pool.get_mut(packet);
    let flow = p.flow;
    let (c, words) = (w.run.rules_of(flow), w.run.constants.header_words);
    p.kind = PacketKind::Ack;
    let segment_seq = p.seq;
    (p.seq, p.data_seq) = (seq, segment_seq);
    (p.class, p.wire, p.route) = (c.ack_class, c.ack_wire, w.run.flow(flow).ack_route);
    p.set_marked(echo);
    C::write_ack(hosts, &w.run, p);
    let sacks = hosts.receiving[flow].receiver.sacks(segment_seq);
    let words = &mut w.net.pool.header_mut(packet)[words..words + SACK_WORDS];
    for (pair, &(from, to)) in words.chunks_exact_mut(2).zip(&sacks) {
        // Byte numbers stay far below 2^53.
        (pair[0], pair[1]) = (from as f64, to as f64);
    }
}

/// Returns the rate of `bytes` in `ps` picoseconds.
fn rate_of(bytes: u64, ps: u64) -> Rate {
    let bps = u128::from(bytes) * 8_000_000_000_000 / u128::from(ps.max(1));
    Rate::from_bps(u64::try_from(bps).unwrap_or(u64::MAX))
}
