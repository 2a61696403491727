//! RDMA: every packet is acknowledged, unless acknowledgments are coalesced; a gap is reported, and lost data is sent
//! again: everything from the gap on (go-back-N) or only the lost packets (selective repeat). Marked packets are
//! answered with congestion notifications (CNPs), if the algorithm wants them.

use fairrate_control::{Controller, Loss};

use crate::config::TransportConfig;
use crate::core::{Hosts, World};
use crate::engine::EventKind;
use crate::ids::{FlowId, HostId, PacketIdx, SenderIdx};
use crate::packet::{Packet, PacketKind};
use crate::transport::interface::{Acked, Answer, Load, Timed, Transport};
use crate::transport::receiver::Reply;
use crate::transport::sender::{Sender, ack_of};

/// The number (`data_seq`) of a data packet that its receiver is to acknowledge at once.
const ASKS: u64 = 1;

/// The transport of RDMA.
pub(crate) struct Rdma;

impl Transport for Rdma {
    fn open(hosts: &mut Hosts, w: &mut World, flow: FlowId) {
        let (controlled, first_ps, bucket) = hosts.controlled(w, flow);
        let spec = &w.run.config.flows[flow.index()];
        let mut sender = Sender::of_application(spec, flow, controlled);
        if let Some(bucket) = bucket {
            (sender.rate, sender.more_bits) = bucket;
        }
        hosts.add_sender(w, sender);
        hosts.pace_first(flow, first_ps);
    }

    /// Takes the next segment. Where acknowledgments are coalesced, a packet asks for one if no other follows it now.
    #[inline]
    fn load(hosts: &mut Hosts, w: &mut World, slot: SenderIdx) -> Load {
        let sender = hosts.sender_mut(slot);
        let segment = sender.next_segment(w.run.constants.mtu, w.clock.now_ps);
        let load = Load::own(segment, sender);
        let asks = w.run.constants.coalesces && w.run.rules(sender.stack).ack_every.is_some() && !sender.is_open();
        Load { data_seq: if asks { ASKS } else { 0 }, ..load }
    }

    #[inline]
    fn on_data(hosts: &mut Hosts, w: &mut World, host: HostId, packet: PacketIdx) -> Answer {
        let p = w.net.pool.get_mut(packet);
        w.observed.totals.delivered_bytes += u64::from(p.wire);
        let flow = w.run.flow(p.flow);
        let c = w.run.rules(flow.stack);
        let end = &mut hosts.receiving[p.flow];
        let now_ps = w.clock.now_ps;
        let (expected, len) = (end.receiver.expected, u64::from(p.payload));
        let mut reply = end.receiver.on_data(p.seq, len, c.recovery, now_ps, c.gap_patience_ps);
        if end.note_arrival(flow.bytes, now_ps) {
            hosts.deferred.note_arrived(p.flow, flow.dst_host);
        }
        if let Some(every) = c.ack_every {
            let is_due =
                p.data_seq == ASKS || p.is_marked() || p.seq != expected || end.receiver.expected == flow.bytes;
            if reply == Reply::Ack && !end.receiver.acknowledges(len, every, is_due) {
                reply = Reply::Nothing;
            }
        }
        let notify = match c.cnp_interval_ps {
            Some(interval) if p.is_marked() => end.receiver.should_notify(now_ps, interval, c.cnp_by_clock),
            _ => false,
        };
        let (id, ack_route, cnp) = (p.flow, flow.ack_route, (c.ack_class, c.cnp_wire));
        if reply == Reply::Nothing {
            w.net.pool.release(packet);
        } else {
            p.kind = if reply == Reply::Ack { PacketKind::Ack } else { PacketKind::Nack };
            p.data_seq = p.seq;
            p.seq = end.receiver.expected;
            p.class = c.ack_class;
            p.wire = c.ack_wire;
            p.route = ack_route;
            if !notify {
                return Answer::Packet(packet);
            }
            hosts.enqueue(w, host, packet);
        }
        if notify {
            let (class, wire) = cnp;
            let cnp = Packet { flow: id, route: ack_route, class, wire, ..Packet::new(PacketKind::Cnp) };
            let cnp = w.net.pool.take(cnp);
            hosts.enqueue(w, host, cnp);
        }
        Answer::Waiting
    }

    #[inline]
    fn on_ack(hosts: &mut Hosts, w: &mut World, _: HostId, packet: PacketIdx) -> Option<Acked> {
        let p = *w.net.pool.get(packet);
        let slot = hosts.sending[p.flow].sender;
        if slot.is_none() {
            return None;
        }
        let now = w.clock.now();
        let sender = hosts.senders[slot].as_mut().expect("an active flow has a sender");
        let c = w.run.rules(sender.stack);
        let newly_acked = sender.acknowledge(p.seq);
        if newly_acked > 0 {
            hosts.last_progress_ps = w.clock.now_ps;
        }
        // Only progress moves the timer (RFC 6298, 5.3), and only a running timer.
        if newly_acked > 0 && sender.rto_ps < u64::MAX {
            sender.rto_ps = w.clock.now_ps + c.rto_ps;
        }
        if p.kind == PacketKind::Nack {
            sender.on_gap(c.recovery, p.data_seq, u64::from(p.payload));
            hosts.connections.controller(sender).on_loss(now, Loss::Gap);
        }
        let ack = ack_of(&w.net.pool, packet, sender, newly_acked, now, c.header_words);
        w.observed.push_rtt(now, p.flow, ack.rtt);
        let allowance = hosts.connections.controller(sender).on_ack(&ack);
        let is_only_stored = c.first_ack_only_stored && sender.snd_una == newly_acked;
        Some(Acked { slot, allowance, is_done: sender.is_done(), is_only_stored })
    }

    /// Handles the timer's event. Acknowledgments move `rto_ps` only; the event is scheduled again here. It comes once
    /// in the shorter timeout at least, as the time left is less as soon as few packets are in flight.
    fn on_timer(hosts: &mut Hosts, w: &mut World, flow: FlowId) -> Timed {
        let now_ps = w.clock.now_ps;
        let Some((slot, sender)) = hosts.sender_of(flow) else { return Timed::Nothing };
        let c = w.run.rules(sender.stack);
        if !sender.has_unacknowledged() {
            sender.rto_ps = u64::MAX;
            return Timed::Nothing;
        }
        let is_low = sender.inflight() <= TransportConfig::FEW_PACKETS * w.run.constants.mtu;
        let due_ps = if is_low { sender.rto_ps - c.rto_head_ps } else { sender.rto_ps };
        let low_ps = c.rto_ps - c.rto_head_ps;
        if now_ps < due_ps {
            w.clock.schedule(due_ps.min(now_ps + low_ps), EventKind::Rto, flow);
            return Timed::Nothing;
        }
        sender.on_timeout(c.recovery);
        sender.tally.timeouts += 1;
        sender.rto_ps = now_ps + c.rto_ps;
        w.clock.schedule(now_ps + low_ps, EventKind::Rto, flow);
        Timed::Decided(slot, hosts.controller(slot).on_loss(w.clock.now(), Loss::Timeout))
    }

    fn stop(hosts: &mut Hosts, _: &mut World, flow: FlowId) -> bool {
        hosts.sender_of(flow).is_none_or(|(_, sender)| sender.stop())
    }

    fn stopped(hosts: &mut Hosts, _: &mut World, flow: FlowId, is_done: bool) {
        if !is_done {
            hosts.refresh(hosts.sending[flow].sender);
        }
    }
}
