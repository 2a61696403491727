//! The transport of Ultra Ethernet (Ultra Ethernet Specification 1.0, 2025), as the consortium's simulator has it
//! (github.com/ultraethernet/uet-htsim at 40ccb05, `uec.cpp`): packets in any order, a bitmap at the receiver,
//! coalesced acknowledgments, and notices of packets that switches cut to their headers. NSCC controls the window;
//! bytes in flight and windows are those on the wire.
//!
//! - `Data`: `data_seq` has the flags [`ASKS`] and [`AGAIN`], and above them the credit that is asked for.
//! - `Ack`: `seq` is the byte expected next, `data_seq` the first byte of the packet that it answers, `payload` that
//!   packet's flags and above them the penalty that its receiver asks for, `sent_ps` 64 bits for packets that have
//!   come, `cwnd_at_send` the bytes that the receiver has counted.
//! - `Nack`: the same; it answers a packet that was cut, and `payload` says whether at the last hop ([`LAST_HOP`]).
//!
//! A receiver acknowledges a packet at once if it is marked, asks for it, is the first, is a duplicate, or if
//! `ack_every` bytes have come since the last acknowledgment; and when the last gap closes after a packet that asked.
//! The 64 bits begin with the packet itself if it was marked or asked, else 63 before it, but never before the first
//! gap.
//!
//! With credit of receivers (RCCC, EQDS, NDP), data carries the number of credit that its sender asks for, and `Credit`
//! packets the number that is given (`seq`); an answer may carry it too ([`PULLS`]: `cwnd_at_send` is that number). A
//! receiver whose packet was cut gives credit for it once more.
//!
//! - `Busy`: a request for credit, of a sender whose packet may not be sent after a timeout, or that waits for credit
//!   with nothing in flight for long. `seq` is the first byte that is not acknowledged, `payload` the number of packets
//!   that wait to be sent again, `data_seq` the credit asked for. It is answered by an acknowledgment and the last
//!   number of credit.
//!
//! - `Returned`: the header of a packet that no switch had room for, at its sender again (`returned.rs`).
//!
//! Left out: loss detection without trimming (SLEEK).

mod answers;
mod credit;
mod grants;
mod outgoing;
mod returned;

use fairrate_control::{Controller, Loss};
use fairrate_units::Time;

use self::answers::{note_answer, on_acknowledgment, on_cut, take_credit};
use self::credit::{Account, Asker, FabricShare, Pacer, Purse, Terms};
use self::grants::{earn, note_arrival, on_request, take_turn};
use self::outgoing::{Occasion, Outgoing, Request};
use self::returned::{on_returned, tell};
use crate::config::Transport as TransportKind;
use crate::core::{Hosts, Own, Run, World};
use crate::engine::EventKind;
use crate::ids::{FlowId, HostId, PacketIdx, SenderIdx};
use crate::packet::{Packet, PacketKind};
use crate::table::Table;
use crate::transport::controlled::Controlled;
use crate::transport::interface::{Acked, Answer, Load, Timed, Transport};
use crate::transport::nic::Nic;
use crate::transport::sender::Sender;

/// Flag of a data packet that its receiver is to acknowledge at once.
const ASKS: u64 = 1;
/// Flag of a data packet that was sent before.
const AGAIN: u64 = 2;
/// Flag of a notice of a packet that was cut at the last switch.
const LAST_HOP: u64 = 4;
/// Flag of an answer that carries credit.
const PULLS: u64 = 8;
/// Flag of the answer to a request for credit, which says nothing about a path.
const TO_REQUEST: u64 = 16;
/// Bits of all flags; those above are a number of credit.
const FLAG_BITS: u32 = 8;
/// Number of entropy values of credit packets.
const CREDIT_VALUES: u16 = 128;

/// The messages of the hosts of a part.
pub(crate) struct Datagrams {
    outgoing: Table<SenderIdx, Outgoing>,
    incoming: Own<FlowId, Option<Box<Incoming>>>,
    /// The pacers of receivers, if they give credit.
    pacers: Own<HostId, Pacer>,
    /// The terms of credit, and the stack whose receivers give it.
    terms: Option<(u8, Terms)>,
}

/// A message at its receiver, besides the bytes that have come.
#[derive(Default)]
struct Incoming {
    /// Bytes on the wire that have come.
    counted: u64,
    /// The same since the last acknowledgment.
    since_ack: u64,
    /// A packet asked, and gaps have been open since.
    is_asked: bool,
    account: Account,
}

impl Datagrams {
    /// Returns the state without messages; `None` if the run has another transport.
    pub(crate) fn new<T>(run: &Run, nics: &Own<HostId, Nic>, receiving: &Own<FlowId, T>) -> Option<Box<Self>> {
        if !run.config.is_any(|transport, _| matches!(transport.kind, TransportKind::Uet { .. })) {
            return None;
        }
        let incoming = receiving.alike();
        let mut credits =
            (0..).zip(run.config.stacks()).filter_map(|(stack, (_, cc))| Some((stack, cc.needs().feedback.credit?)));
        let terms = credits.next().map(|(stack, credits)| {
            let rules = run.rules(stack);
            (stack, Terms::new(credits, run.constants.mtu + rules.data_header, rules.base_rtt))
        });
        debug_assert!(credits.next().is_none(), "receivers give credit by one set of rules");
        let base_rtt = terms.map_or(Time::ZERO, |(stack, _)| run.rules(stack).base_rtt);
        let control = terms.and_then(|(_, terms)| terms.fabric());
        let oversubscription = control.map_or(1.0, |_| run.config.topology.oversubscription());
        let share = |host, control| FabricShare::new(control, oversubscription, base_rtt, run.config.seed, host);
        let pacers = nics.with(|host| Pacer::new(control.and_then(|control| share(host, control))));
        Some(Box::new(Self { outgoing: Table::default(), incoming, pacers, terms }))
    }

    /// Returns the terms on which a flow's receiver gives credit, if it does.
    fn terms_of(&self, w: &World, flow: FlowId) -> Option<Terms> {
        self.terms.filter(|&(stack, _)| w.run.flow(flow).stack == stack).map(|(_, terms)| terms)
    }

    /// Returns the account of a message at its receiver.
    fn account(&mut self, flow: FlowId) -> &mut Account {
        &mut self.incoming[flow].get_or_insert_default().account
    }
}

fn outgoing(hosts: &mut Hosts, slot: SenderIdx) -> &mut Outgoing {
    &mut hosts.datagrams.as_mut().expect("the run has this transport").outgoing[slot]
}

fn outgoing_of(hosts: &Hosts, slot: SenderIdx) -> &Outgoing {
    &hosts.datagrams.as_ref().expect("the run has this transport").outgoing[slot]
}

/// Lets the NIC know whether the sender in `slot` may send: its `bytes` are above `snd_nxt` if so.
fn aim(hosts: &mut Hosts, slot: SenderIdx) {
    let cwnd = hosts.sender(slot).cwnd;
    let message = outgoing(hosts, slot);
    let (may_send, acknowledged) = (message.may_send(cwnd), message.acknowledged());
    let sender = hosts.sender_mut(slot);
    sender.snd_una = acknowledged;
    sender.bytes = sender.snd_nxt + u64::from(may_send);
    hosts.refresh(slot);
}

/// The transport of Ultra Ethernet.
pub(crate) struct Uet;

impl Transport for Uet {
    fn open(hosts: &mut Hosts, w: &mut World, flow: FlowId) {
        let control = w.run.algorithm_of(flow).build(&w.run.flow_context(flow, w.clock.now()));
        let spec = &w.run.config.flows[flow.index()];
        hosts.add_sender(w, Sender::of_application(spec, flow, Controlled::Own(control)));
        let slot = hosts.sending[flow].sender;
        let header = u64::from(hosts.sender(slot).header);
        let mut message = Outgoing::new(spec.bytes.as_u64(), w.run.constants.mtu, header);
        let line_rate = w.net.ports[hosts.nics[w.run.flow(flow).src_host].port].rate;
        let datagrams = hosts.datagrams.as_mut().expect("the run has this transport");
        message.purse = datagrams.terms_of(w, flow).map(|terms| Purse::new(terms, line_rate, message.n_packets()));
        let messages = &mut datagrams.outgoing;
        while messages.len() <= slot.index() {
            messages.push(Outgoing::default());
        }
        messages[slot] = message;
        aim(hosts, slot);
    }

    fn load(hosts: &mut Hosts, w: &mut World, slot: SenderIdx) -> Load {
        let cwnd = hosts.sender(slot).cwnd;
        let turn = outgoing(hosts, slot).send(w.clock.now_ps, cwnd);
        let sender = hosts.sender_mut(slot);
        if turn.is_again {
            sender.tally.retransmitted += turn.payload;
        } else {
            sender.snd_nxt += turn.payload;
        }
        let flags = if turn.asks { ASKS } else { 0 } | if turn.is_again { AGAIN } else { 0 };
        let asker = if turn.is_again { Asker::Again } else { Asker::New };
        let flags = flags | target(hosts, slot, asker) << FLAG_BITS;
        let (seq, header) = (turn.number * w.run.constants.mtu, u64::from(hosts.sender(slot).header));
        Load { seq, data_seq: flags, payload: turn.payload, header, min_wire: 0 }
    }

    fn sent(hosts: &mut Hosts, w: &mut World, slot: SenderIdx, _: u16) {
        let host = hosts.sender(slot).host;
        let free_ps = w.net.ports[hosts.nics[host].port].busy_until_ps;
        outgoing(hosts, slot).after_sent(free_ps);
        aim(hosts, slot);
    }

    fn has_sent_all(hosts: &Hosts, _: &World, slot: SenderIdx, _: bool) -> bool {
        outgoing_of(hosts, slot).has_sent_all()
    }

    fn decided(hosts: &mut Hosts, _: &mut World, slot: SenderIdx) {
        aim(hosts, slot);
    }

    fn on_data(hosts: &mut Hosts, w: &mut World, _: HostId, packet: PacketIdx) -> Answer {
        let p = *w.net.pool.get(packet);
        note_arrival(hosts, w, &p);
        if p.kind == PacketKind::Busy {
            return on_request(hosts, w, packet);
        }
        let (now_ps, len) = (w.clock.now_ps, u64::from(p.payload));
        let end = &mut hosts.receiving[p.flow];
        let is_known = end.receiver.gaps(p.seq, p.seq + len).next().is_none();
        if p.kind == PacketKind::Trimmed && !is_known {
            // It is for the sender to send it again, with credit for once more.
            let flags = if p.is_last_hop() { LAST_HOP } else { 0 };
            let flags = flags | earn(hosts, w, &p);
            answer(hosts, w, packet, PacketKind::Nack, flags);
            return Answer::Packet(packet);
        }
        let TransportKind::Uet { ack_every } = w.run.config.stack(w.run.flow(p.flow).stack).0.kind else {
            unreachable!("the run has this transport")
        };
        let messages = hosts.datagrams.as_mut().expect("the run has this transport");
        let incoming = messages.incoming[p.flow].get_or_insert_default();
        let is_first = incoming.counted == 0;
        if p.kind == PacketKind::Data {
            w.observed.totals.delivered_bytes += u64::from(p.wire);
            incoming.counted += u64::from(p.wire);
            incoming.since_ack += u64::from(p.wire);
        }
        end.receiver.take(p.seq, len);
        let flow = w.run.flow(p.flow);
        if end.note_arrival(flow.bytes, now_ps) {
            hosts.deferred.note_arrived(p.flow, flow.dst_host);
        }
        let asks = p.data_seq & ASKS != 0;
        let has_all = end.receiver.expected == w.run.flow(p.flow).bytes;
        incoming.is_asked |= asks;
        let is_closed = !end.receiver.has_gaps() && std::mem::take(&mut incoming.is_asked);
        let is_enough = ack_every.as_u64() <= incoming.since_ack;
        let answers = is_known || p.is_marked() || asks || is_first || is_enough || is_closed;
        if answers {
            incoming.since_ack = 0;
        }
        let pulls = if has_all {
            messages.pacers[w.run.flow(p.flow).dst_host].forget(p.flow);
            0
        } else {
            earn(hosts, w, &p)
        };
        if !answers {
            w.net.pool.release(packet);
            return Answer::Nothing;
        }
        answer(hosts, w, packet, PacketKind::Ack, p.data_seq & (ASKS | AGAIN) | pulls);
        Answer::Packet(packet)
    }

    /// Takes a turn of a pacer: the receiver of `flow` gives credit to one of its messages.
    fn on_ack_timer(hosts: &mut Hosts, w: &mut World, flow: FlowId) -> Option<PacketIdx> {
        take_turn(hosts, w, flow)
    }

    fn on_ack(hosts: &mut Hosts, w: &mut World, _: HostId, packet: PacketIdx) -> Option<Acked> {
        let p = *w.net.pool.get(packet);
        let slot = hosts.sending[p.flow].sender;
        if slot.is_none() {
            return None;
        }
        if p.kind == PacketKind::Returned {
            return on_returned(hosts, w, slot, &p);
        }
        take_credit(hosts, w, slot, &p);
        if p.kind == PacketKind::Credit {
            attempt_and_look(hosts, w, slot);
            return None;
        }
        let round_trip_ps = note_answer(hosts, w, slot, &p);
        let allowance = if p.kind == PacketKind::Nack {
            on_cut(hosts, w, slot, &p, round_trip_ps)?
        } else {
            on_acknowledgment(hosts, w, slot, &p, round_trip_ps)
        };
        attempt(hosts, w, slot);
        let is_done = outgoing_of(hosts, slot).is_done();
        Some(Acked { slot, allowance, is_done, is_only_stored: false })
    }

    /// Handles the timer's event: the earliest packet that is out is lost after the timeout.
    fn on_timer(hosts: &mut Hosts, w: &mut World, flow: FlowId) -> Timed {
        let Some((slot, _)) = hosts.sender_of(flow) else { return Timed::Nothing };
        let rto_ps = w.run.rules_of(flow).rto_ps;
        let Some((sent_ps, number)) = outgoing(hosts, slot).earliest() else {
            let waits = request(hosts, w, slot, Occasion::Silence);
            hosts.sender_mut(slot).rto_ps = waits.map_or(u64::MAX, |until_ps| until_ps);
            let Some(until_ps) = waits else { return Timed::Nothing };
            w.clock.schedule(until_ps, EventKind::Rto, flow);
            return Timed::MaySend(slot);
        };
        let due_ps = sent_ps.saturating_add(rto_ps);
        if w.clock.now_ps < due_ps {
            hosts.sender_mut(slot).rto_ps = due_ps;
            w.clock.schedule(due_ps, EventKind::Rto, flow);
            return Timed::Nothing;
        }
        outgoing(hosts, slot).lose(number);
        if let Some(purse) = &mut outgoing(hosts, slot).purse {
            purse.excuse();
        }
        request(hosts, w, slot, Occasion::Loss);
        let next_ps = outgoing(hosts, slot).earliest().map_or(u64::MAX, |(sent_ps, _)| sent_ps.saturating_add(rto_ps));
        let next_ps = next_ps.min(w.clock.now_ps.saturating_add(rto_ps)).max(w.clock.now_ps + 1);
        let sender = hosts.sender_mut(slot);
        sender.tally.timeouts += 1;
        sender.rto_ps = next_ps;
        w.clock.schedule(next_ps, EventKind::Rto, flow);
        aim(hosts, slot);
        Timed::Decided(slot, hosts.controller(slot).on_loss(w.clock.now(), Loss::Timeout))
    }

    fn stop(hosts: &mut Hosts, _: &mut World, flow: FlowId) -> bool {
        let slot = hosts.sending[flow].sender;
        if slot.is_none() {
            return true;
        }
        outgoing(hosts, slot).stop();
        aim(hosts, slot);
        outgoing_of(hosts, slot).is_done()
    }
}

/// Returns the number of credit that the sender in `slot` asks for by the packet `asker`.
fn target(hosts: &mut Hosts, slot: SenderIdx, asker: Asker) -> u64 {
    if outgoing_of(hosts, slot).purse.is_none() {
        return 0;
    }
    let (cwnd, flows) = (hosts.sender(slot).cwnd, &hosts.nics[hosts.sender(slot).host].flows);
    let n_waiting = flows.iter().filter(|flow| flow.open).count() as u64;
    outgoing(hosts, slot).target(cwnd, n_waiting, asker)
}

/// Lets the sender in `slot` try to send, as an answer has come.
fn attempt(hosts: &mut Hosts, w: &mut World, slot: SenderIdx) {
    let host = hosts.sender(slot).host;
    let free_ps = w.net.ports[hosts.nics[host].port].busy_until_ps;
    outgoing(hosts, slot).attempt(w.clock.now_ps, free_ps);
    tell(hosts, w, slot);
    aim(hosts, slot);
}

/// Does the same, and lets the NIC look for a packet.
fn attempt_and_look(hosts: &mut Hosts, w: &mut World, slot: SenderIdx) {
    attempt(hosts, w, slot);
    let host = hosts.sender(slot).host;
    hosts.deferred.look(host);
}

/// Sends a request if the sender in `slot` waits for credit and it is time for one; returns the time of the next.
/// `None`: it waits for none.
fn request(hosts: &mut Hosts, w: &mut World, slot: SenderIdx, occasion: Occasion) -> Option<u64> {
    let (now_ps, rto_ps) = (w.clock.now_ps, w.run.rules(hosts.sender(slot).stack).rto_ps);
    match outgoing(hosts, slot).request(now_ps, rto_ps, occasion)? {
        Err(due_ps) => Some(due_ps),
        Ok(request) => {
            send_request(hosts, w, slot, request);
            Some(now_ps.saturating_add(rto_ps))
        }
    }
}

/// Sends `request` for the sender in `slot`.
fn send_request(hosts: &mut Hosts, w: &mut World, slot: SenderIdx, Request { first, n_again }: Request) {
    let (flow, host) = (hosts.sender(slot).flow, hosts.sender(slot).host);
    let (c, route) = (w.run.rules_of(flow), w.run.flow(flow).data_route);
    let (seq, wire, class) = (first * w.run.constants.mtu, c.ack_wire, c.ack_class);
    let data_seq = target(hosts, slot, Asker::New) << FLAG_BITS;
    let request = Packet { flow, seq, data_seq, payload: n_again, route, wire, class, ..Packet::new(PacketKind::Busy) };
    let request = w.net.pool.take(request);
    hosts.enqueue(w, host, request);
}

/// Returns the number of the packet of the first of the 64 bits in an acknowledgment.
fn first_bit(p: &Packet, mtu: u64) -> u64 {
    let (number, expected) = (p.data_seq / mtu, p.seq.div_ceil(mtu));
    if p.is_marked() || u64::from(p.payload) & ASKS != 0 {
        return number;
    }
    number.saturating_sub(63).max(expected + 1)
}

/// Turns a data packet into the answer to it.
fn answer(hosts: &mut Hosts, w: &mut World, packet: PacketIdx, kind: PacketKind, flags: u64) {
    let p = w.net.pool.get_mut(packet);
    let (c, mtu) = (w.run.rules_of(p.flow), w.run.constants.mtu);
    let receiver = &hosts.receiving[p.flow].receiver;
    let messages = hosts.datagrams.as_ref().expect("the run has this transport");
    p.kind = kind;
    (p.data_seq, p.seq) = (p.seq, receiver.expected);
    (p.class, p.wire, p.route) = (c.ack_class, c.ack_wire, w.run.flow(p.flow).ack_route);
    let penalty = if kind == PacketKind::Ack { hosts.penalty(w.run.flow(p.flow).dst_host) } else { 0 };
    p.payload = (flags & ((1 << FLAG_BITS) - 1)) as u16 | u16::from(penalty) << FLAG_BITS;
    let report = |incoming: &Incoming| if flags & PULLS != 0 { incoming.account.given } else { incoming.counted };
    p.cwnd_at_send = messages.incoming[p.flow].as_deref().map_or(0, report) as u32;
    let from = first_bit(p, mtu);
    let has_come = |bit: &u64| {
        let seq = (from + bit) * mtu;
        receiver.gaps(seq, seq + 1).next().is_none()
    };
    p.sent_ps = (0..64).filter(has_come).fold(0, |bits, bit| bits | 1 << bit);
}
