//! The sender's half of answers: the credit, the times and the fates of packets that acknowledgments and notices carry.

use fairrate_control::{Ack, Allowance, Controller, Trimmed};
use fairrate_units::{Bytes, Rate, Time};

use super::credit::Fate;
use super::{AGAIN, FLAG_BITS, LAST_HOP, PULLS, TO_REQUEST, attempt_and_look, first_bit, outgoing};
use crate::core::{Hosts, World};
use crate::ids::SenderIdx;
use crate::packet::{Packet, PacketKind};
use crate::transport::entropy::Outcome;

/// Takes the credit that `p`, an answer or a packet of credit, carries to the sender in `slot`.
#[inline]
pub(super) fn take_credit(hosts: &mut Hosts, w: &World, slot: SenderIdx, p: &Packet) {
    let credit = match p.kind {
        PacketKind::Credit => Some(p.seq),
        _ if u64::from(p.payload) & PULLS != 0 => Some(u64::from(p.cwnd_at_send)),
        _ => None,
    };
    outgoing(hosts, slot).on_answer(credit, w.clock.now_ps);
}

/// Records the fate of the packet that `p` answers, or that a request for credit is answered; returns the packet's
/// round-trip time, if it is clear which transmission has come.
#[inline]
pub(super) fn note_answer(hosts: &mut Hosts, w: &World, slot: SenderIdx, p: &Packet) -> Option<u64> {
    let (flags, message) = (u64::from(p.payload), outgoing(hosts, slot));
    if flags & TO_REQUEST != 0 {
        message.note_told();
        return None;
    }
    message.hear(if p.kind == PacketKind::Nack { Fate::Cut } else { Fate::Whole });
    message.round_trip(p.data_seq / w.run.constants.mtu, flags & AGAIN != 0, w.clock.now_ps)
}

/// Handles `p`, the notice of a packet that was cut; returns the controller's decision, or `None` if the message knows
/// of no such packet.
#[inline]
pub(super) fn on_cut(
    hosts: &mut Hosts,
    w: &mut World,
    slot: SenderIdx,
    p: &Packet,
    round_trip_ps: Option<u64>,
) -> Option<Allowance> {
    let message = outgoing(hosts, slot);
    let lost = message.lose(p.data_seq / w.run.constants.mtu);
    let last_hop = u64::from(p.payload) & LAST_HOP != 0;
    let in_flight = message.in_flight();
    let is_eqds = message.purse.as_ref().is_some_and(|purse| purse.terms().blames_paths());
    let outcome = match (last_hop && !is_eqds, p.is_marked()) {
        (false, _) => Outcome::Lost,
        (true, true) => Outcome::Marked,
        (true, false) => Outcome::Good,
    };
    let Some(bytes) = lost else {
        attempt_and_look(hosts, w, slot);
        return None;
    };
    hosts.sender_mut(slot).tally.recoveries += 1;
    hosts.learn(w, p.flow, p.entropy, outcome, 0);
    let (now, bytes, rtt) = (w.clock.now(), Bytes::new(bytes), round_trip_ps.map(Time::from_ps));
    Some(hosts.controller(slot).on_trimmed(&Trimmed { now, bytes, rtt, last_hop, in_flight }))
}

/// Handles the acknowledgment `p`; returns the controller's decision.
#[inline]
pub(super) fn on_acknowledgment(
    hosts: &mut Hosts,
    w: &mut World,
    slot: SenderIdx,
    p: &Packet,
    round_trip_ps: Option<u64>,
) -> Allowance {
    let (now, flags) = (w.clock.now(), u64::from(p.payload));
    let newly = acknowledge(hosts, w, slot, p);
    let in_flight = outgoing(hosts, slot).in_flight();
    if flags & TO_REQUEST == 0 {
        let outcome = if p.is_marked() { Outcome::Marked } else { Outcome::Good };
        hosts.learn(w, p.flow, p.entropy, outcome, w.clock.now_ps - round_trip_ps.unwrap_or(0));
    }
    let ack_seq = note_progress(hosts, w, slot, newly);
    let rtt = round_trip_ps.map_or(Time::ZERO, Time::from_ps);
    if Time::ZERO < rtt {
        w.observed.push_rtt(now, p.flow, rtt);
    }
    let sender = hosts.sender(slot);
    let ack = Ack {
        now,
        ack_seq,
        snd_nxt: sender.snd_nxt,
        newly_acked: newly,
        delivered: newly,
        lost: 0,
        rtt,
        cwnd_at_send: sender.cwnd,
        in_flight,
        delivery_rate: Rate::ZERO,
        prior_delivered: None,
        penalty: (flags >> FLAG_BITS) as u8,
        app_limited: false,
        ecn_marked: p.is_marked(),
        int: &[],
        path: p.path,
        header: &[],
    };
    hosts.controller(slot).on_ack(&ack)
}

/// Records the packets that `p` says have come; returns the bytes that are acknowledged for the first time.
#[inline]
fn acknowledge(hosts: &mut Hosts, w: &World, slot: SenderIdx, p: &Packet) -> u64 {
    let (mtu, message) = (w.run.constants.mtu, outgoing(hosts, slot));
    let counted = if message.goes_by_packets() { None } else { Some(message.count(p.cwnd_at_send)) };
    let landed = message.acknowledge(p.seq.div_ceil(mtu), first_bit(p, mtu), p.sent_ps);
    counted.unwrap_or_else(|| message.land(landed))
}

/// Records the time if the sender in `slot` has made progress, by `newly` acknowledged bytes or in sequence; returns
/// the first byte that is not acknowledged.
#[inline]
fn note_progress(hosts: &mut Hosts, w: &World, slot: SenderIdx, newly: u64) -> u64 {
    let before = hosts.sender(slot).snd_una;
    let ack_seq = outgoing(hosts, slot).acknowledged();
    if before < ack_seq || 0 < newly {
        hosts.last_progress_ps = w.clock.now_ps;
    }
    ack_seq
}
