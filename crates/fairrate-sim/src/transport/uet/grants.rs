//! The receiver's half of credit: what its messages ask for, and what they are given.

use super::credit::{Account, Arrival};
use super::{ASKS, CREDIT_VALUES, FLAG_BITS, PULLS, TO_REQUEST, answer};
use crate::core::{Hosts, World};
use crate::engine::EventKind;
use crate::ids::{FlowId, PacketIdx};
use crate::packet::{Packet, PacketKind};
use crate::transport::interface::Answer;

/// Lets the pacer of a receiver know of a packet that comes.
pub(super) fn note_arrival(hosts: &mut Hosts, w: &World, p: &Packet) {
    let datagrams = hosts.datagrams.as_mut().expect("the run has this transport");
    if datagrams.terms_of(w, p.flow).is_some_and(|terms| terms.fabric().is_some()) {
        let arrival = match p.kind {
            PacketKind::Trimmed => Arrival::Cut(p.is_last_hop()),
            _ => Arrival::Whole(p.is_marked()),
        };
        datagrams.pacers[w.run.flow(p.flow).dst_host].note(arrival, w.clock.now_ps);
    }
}

/// Answers a request for credit: an acknowledgment and the last number of credit.
pub(super) fn on_request(hosts: &mut Hosts, w: &mut World, packet: PacketIdx) -> Answer {
    let p = *w.net.pool.get(packet);
    let host = w.run.flow(p.flow).dst_host;
    let is_open = hosts.receiving[p.flow].receiver.expected < w.run.flow(p.flow).bytes;
    let datagrams = hosts.datagrams.as_mut().expect("the run has this transport");
    if let (Some(terms), true) = (datagrams.terms_of(w, p.flow), is_open) {
        let account = datagrams.account(p.flow);
        account.hear(p.data_seq >> FLAG_BITS);
        account.owe_at_least(u64::from(p.payload), &terms);
        ask_pacer(hosts, w, &p);
        let credit = credit(hosts, w, p.flow);
        hosts.enqueue(w, host, credit);
    }
    answer(hosts, w, packet, PacketKind::Ack, ASKS | TO_REQUEST);
    Answer::Packet(packet)
}

/// Lets the message of a data packet, or of its header, ask the pacer of its receiver for what the packet is worth.
/// Returns [`PULLS`] if the answer carries credit itself.
pub(super) fn earn(hosts: &mut Hosts, w: &mut World, p: &Packet) -> u64 {
    let host = w.run.flow(p.flow).dst_host;
    let line_rate = w.net.ports[hosts.nics[host].port].rate;
    let datagrams = hosts.datagrams.as_mut().expect("the run has this transport");
    let Some(terms) = datagrams.terms_of(w, p.flow) else { return 0 };
    let account = datagrams.account(p.flow);
    account.hear(p.data_seq >> FLAG_BITS);
    if terms.counts_arrivals() {
        account.target += 1;
        if datagrams.pacers[host].takes_at_once(w.clock.now_ps, &terms, 1, line_rate) {
            datagrams.account(p.flow).give(1);
            return PULLS;
        }
    } else if p.kind == PacketKind::Trimmed {
        account.owe(&terms);
    }
    ask_pacer(hosts, w, p);
    0
}

/// Takes a turn of the pacer of the receiver of `flow`: it gives credit to one of its messages, in the packet that is
/// returned.
pub(super) fn take_turn(hosts: &mut Hosts, w: &mut World, flow: FlowId) -> Option<PacketIdx> {
    let host = w.run.flow(flow).dst_host;
    let line_rate = w.net.ports[hosts.nics[host].port].rate;
    let datagrams = &mut **hosts.datagrams.as_mut()?;
    let (terms, incoming, pacers) = (datagrams.terms_of(w, flow)?, &mut datagrams.incoming, &mut datagrams.pacers);
    let account = |flow: FlowId| incoming[flow].as_ref().map_or_else(Account::default, |incoming| incoming.account);
    let (flow, units) = pacers[host].turn(w.clock.now_ps, &terms, line_rate, account)?;
    incoming[flow].get_or_insert_default().account.give(units);
    if let Some(at_ps) = pacers[host].wake(w.clock.now_ps) {
        w.clock.schedule(at_ps, EventKind::AckTimer, flow);
    }
    Some(credit(hosts, w, flow))
}

/// Lets the message of `p` ask the pacer of its receiver for credit.
fn ask_pacer(hosts: &mut Hosts, w: &mut World, p: &Packet) {
    let datagrams = hosts.datagrams.as_mut().expect("the run has this transport");
    let Some(terms) = datagrams.terms_of(w, p.flow) else { return };
    let account = *datagrams.account(p.flow);
    let pacer = &mut datagrams.pacers[w.run.flow(p.flow).dst_host];
    if let Some(at_ps) = pacer.ask(p.flow, account, &terms, w.clock.now_ps) {
        w.clock.schedule(at_ps, EventKind::AckTimer, p.flow);
    }
}

/// Returns a packet with the number of credit that the message of `flow` has been given.
fn credit(hosts: &mut Hosts, w: &mut World, flow: FlowId) -> PacketIdx {
    let account = hosts.datagrams.as_mut().expect("the run has this transport").account(flow);
    account.n_sent = account.n_sent.wrapping_add(1);
    let (seq, entropy, c) = (account.given, account.n_sent % CREDIT_VALUES, w.run.rules_of(flow));
    let (route, class, wire) = (w.run.flow(flow).ack_route, c.ack_class, c.ack_wire);
    w.net.pool.take(Packet { flow, seq, route, wire, entropy, class, ..Packet::new(PacketKind::Credit) })
}
