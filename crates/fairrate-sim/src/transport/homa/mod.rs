//! HOMA: B. Montazeri, Y. Li, M. Alizadeh, J. Ousterhout, "Homa: A Receiver-Driven Low-Latency Transport Protocol Using
//! Network Priorities", SIGCOMM 2018. Constants that the paper leaves to its workloads are those of the authors'
//! simulator (github.com/PlatformLab/HomaSimulation), or of PowerTCP (NSDI 2022, section 4.1), which compares itself
//! with HOMA.
//!
//! A flow is a message. Its first RTTbytes are sent without a grant; the rest waits for grants of its receiver. Among
//! the messages that may be sent, a NIC sends the one with the fewest bytes left. A receiver grants the few shortest of
//! the messages it is receiving (the degree of overcommitment) and keeps RTTbytes of each on their way. Both ends
//! choose the class of each packet, the receiver by its grants.
//!
//! | paper | packet here | fields |
//! |---|---|---|
//! | DATA | `Data` | as of other transports |
//! | GRANT | `Ack` | `seq`: all before has arrived; `data_seq`: all before may be sent; `cwnd_at_send`: the class |
//! | RESEND | `Nack` | `seq` to `data_seq` is missing; `cwnd_at_send`: the class |
//! | BUSY | `Busy` | `seq`: the message's length once it is final, until then `u64::MAX` |
//!
//! Readings, where paper and simulator are not explicit:
//! - A receiver learns of a message by its first packet. The sizes of messages are those of the flows; an endless
//!   message is the longest of all.
//! - RTTbytes is payload. A grant brings the bytes on their way up to RTTbytes, in whole packets. When a message has
//!   got its last grant, the arrival that led to it also gives all of RTTbytes to the message that takes its place. So
//!   every arrival leads to two grants at most. `order = "received"` orders messages by what has not arrived, and gives
//!   the next one a packet at each arrival of the one before; `fairrate_control::homa` says which is whose.
//! - There are eight levels in a fabric that drops, and seven where class 0 is left to PFC frames, or fewer (`levels`).
//!   Scheduled packets have as many levels as messages are granted, and unscheduled ones the rest, at least one. Grants
//!   share the highest level with the unscheduled packets of the shortest messages. The keys `data_class`, `ack_class`
//!   and `control_class`, and the classes of flows, have no effect.
//! - Levels of unscheduled packets depend on the sizes of all flows of the run, even where a receiver could not know
//!   them. The authors' simulator does the same; in the paper receivers measure the sizes and send the levels to
//!   senders.
//! - The last packet of a message is acknowledged, and so is a packet that arrives again, as the sender of a one-way
//!   message would otherwise never learn that it has arrived. The paper leaves that to responses.
//! - Both timers are the transport's `rto` (a few milliseconds, section 3.7). After that time without a new byte, a
//!   receiver asks for every gap in the bytes it has granted. A sender that has received nothing for as long about data
//!   it has sent repeats a single packet: if the start was lost, its receiver learns of the message and asks for the
//!   rest, and if only the acknowledgment was lost, it is sent again.
//! - A message that stops before its end (an endless flow with a stop time) reports its length by BUSY, and so does a
//!   sender that is asked for a message it has finished.
//! - Packets of a flow take one path, by ECMP, unless `[routing] balance = "spray"` sprays them, as in the paper.
//! - Hosts take no processing time, and a sender whose application offers less than its line rate is paced.

mod inbox;
mod levels;
mod outgoing;

use fairrate_control::Controller;
use fairrate_units::{Bytes, Time};

use self::inbox::{Grant, Inbox, Incoming};
pub(crate) use self::levels::Levels;
use self::outgoing::Outgoing;
use crate::core::{Hosts, Own, Run, World};
use crate::engine::EventKind;
use crate::ideal::Train;
use crate::ids::{FlowId, HostId, PacketIdx, SenderIdx};
use crate::packet::{Packet, PacketKind};
use crate::table::Table;
use crate::transport::Kind;
use crate::transport::controlled::Controlled;
use crate::transport::interface::{Acked, Answer, Load, Timed, Transport};
use crate::transport::nic::Nic;
use crate::transport::sender::Sender;

/// The state of HOMA at the hosts of a part.
pub(crate) struct Messages {
    /// Incoming messages, by host.
    inboxes: Own<HostId, Inbox>,
    /// Outgoing messages, by sender.
    outgoing: Table<SenderIdx, Outgoing>,
    /// An empty list, kept for reuse.
    gaps: Vec<(u64, u64)>,
}

impl Messages {
    /// Returns the state without messages; `None` if the run has another transport.
    pub(crate) fn new(run: &Run, nics: &Own<HostId, Nic>) -> Option<Box<Self>> {
        run.levels.as_ref()?;
        Some(Box::new(Self { inboxes: nics.alike(), outgoing: Table::default(), gaps: Vec::new() }))
    }

    fn open(&mut self, slot: SenderIdx, message: Outgoing) {
        while self.outgoing.len() <= slot.index() {
            self.outgoing.push(Outgoing::default());
        }
        self.outgoing[slot] = message;
    }
}

/// The transport of HOMA.
pub(crate) struct Homa;

/// HOMA's state is kept apart from the types that send and receive packets, which other transports share and which must
/// stay small.
impl Transport for Homa {
    #[inline(never)]
    fn open(hosts: &mut Hosts, w: &mut World, flow: FlowId) {
        let control = w.run.algorithm_of(flow).build(&w.run.flow_context(flow, w.clock.now()));
        let spec = &w.run.config.flows[flow.index()];
        hosts.add_sender(w, Sender::of_application(spec, flow, Controlled::Own(control)));
        let class = w.run.flow(flow).class();
        let mut message = Outgoing::new(rtt_bytes(&w.run, flow), class, levels(&w.run).scheduled(0, 1));
        let slot = hosts.sending[flow].sender;
        message.write(hosts.sender(slot).bytes);
        messages(hosts).open(slot, message);
        aim(hosts, &w.run, slot);
    }

    /// Adds what the application wrote later to the message. A sender's `bytes` are those that may be sent.
    #[inline(never)]
    fn written(hosts: &mut Hosts, w: &mut World, flow: FlowId) {
        let slot = hosts.sending[flow].sender;
        let bytes = hosts.sender(slot).bytes;
        let message = &mut messages(hosts).outgoing[slot];
        message.write(bytes - message.limit());
        aim(hosts, &w.run, slot);
    }

    /// Returns the position of the message with the fewest bytes left, among those that may send. Flows of other
    /// transports have turns of their own.
    #[inline(never)]
    fn whose_turn(hosts: &Hosts, w: &World, host: HostId, at: usize) -> usize {
        let nic = &hosts.nics[host];
        let paused = w.net.ports[nic.port].paused;
        let may_send = |at: &usize| {
            let flow = &nic.flows[*at];
            let is_open = flow.open && flow.next_send_ps <= w.clock.now_ps && paused & (1 << flow.class) == 0;
            is_open && hosts.sender(flow.sender).transport == Kind::Homa
        };
        let order = |at: &usize| order(hosts, nic.flows[*at].sender);
        (0..nic.flows.len()).filter(may_send).min_by_key(order).unwrap_or(at)
    }

    #[inline(never)]
    fn load(hosts: &mut Hosts, w: &mut World, slot: SenderIdx) -> Load {
        let message = &messages_of(hosts).outgoing[slot];
        let sender = hosts.sender(slot);
        let (mtu, header) = message.frame(sender, levels(&w.run), u64::from(sender.header));
        let sender = hosts.sender_mut(slot);
        let segment = sender.next_segment(mtu, w.clock.now_ps);
        Load { header, ..Load::own(segment, sender) }
    }

    #[inline(never)]
    fn sent(hosts: &mut Hosts, w: &mut World, slot: SenderIdx, _: u16) {
        aim(hosts, &w.run, slot);
    }

    #[inline(never)]
    fn has_sent_all(hosts: &Hosts, _: &World, slot: SenderIdx, _: bool) -> bool {
        let message = &messages_of(hosts).outgoing[slot];
        message.length <= hosts.sender(slot).snd_nxt
    }

    #[inline(never)]
    fn on_data(hosts: &mut Hosts, w: &mut World, host: HostId, packet: PacketIdx) -> Answer {
        let p = *w.net.pool.get(packet);
        if p.kind == PacketKind::Busy {
            return on_busy(hosts, w, host, packet);
        }
        w.observed.totals.delivered_bytes += u64::from(p.wire);
        let (now_ps, length) = (w.clock.now_ps, w.run.flow(p.flow).bytes);
        let end = &mut hosts.receiving[p.flow];
        let to = p.seq + u64::from(p.payload);
        let new = end.receiver.gaps(p.seq, to).map(|(from, to)| to - from).sum();
        end.receiver.take(p.seq, u64::from(p.payload));
        if end.note_arrival(length, now_ps) {
            hosts.deferred.note_arrived(p.flow, host);
        }
        let expected = end.receiver.expected;
        if new == 0 {
            answer_with(hosts, w, packet, None);
            return Answer::Packet(packet);
        }
        let inbox = &mut messages(hosts).inboxes[host];
        let levels = levels(&w.run);
        let is_new = !inbox.take(p.flow, new, now_ps, levels) && expected < length;
        if is_new {
            let src = w.run.flow(p.flow).src_host;
            inbox.open(Incoming::new(p.flow, src, length, rtt_bytes(&w.run, p.flow), now_ps), levels);
            inbox.take(p.flow, new, now_ps, levels);
        }
        let is_complete = inbox.get_mut(p.flow).is_none();
        let (own, other) = inbox.answer(p.flow, levels);
        if is_new {
            plan_resend(w, p.flow, now_ps);
        }
        if let Some(grant) = other {
            send_grant(hosts, w, host, &grant);
        }
        if own.is_some() || is_complete {
            answer_with(hosts, w, packet, own);
            return Answer::Packet(packet);
        }
        w.net.pool.release(packet);
        Answer::Waiting
    }

    /// Asks for the missing bytes of a message of which nothing has arrived for a while.
    #[inline(never)]
    fn on_ack_timer(hosts: &mut Hosts, w: &mut World, flow: FlowId) -> Option<PacketIdx> {
        let host = w.run.flow(flow).dst_host;
        let inbox = &mut messages(hosts).inboxes[host];
        let message = inbox.get_mut(flow)?;
        let (granted, heard_ps) = (message.granted, message.heard_ps);
        let due_ps = heard_ps.saturating_add(w.run.rules_of(flow).rto_ps);
        if w.clock.now_ps < due_ps {
            plan_resend(w, flow, heard_ps);
            return None;
        }
        plan_resend(w, flow, w.clock.now_ps);
        let class = inbox.class(flow, levels(&w.run));
        let grant = inbox.grant_to(flow, levels(&w.run));
        let mut gaps = std::mem::take(&mut messages(hosts).gaps);
        gaps.extend(hosts.receiving[flow].receiver.gaps(0, granted));
        for (from, to) in gaps.drain(..) {
            let packet = new_packet(w, flow, PacketKind::Nack);
            let p = w.net.pool.get_mut(packet);
            (p.seq, p.data_seq, p.cwnd_at_send) = (from, to, u32::from(class));
            hosts.enqueue(w, host, packet);
            hosts.deferred.look(host);
        }
        messages(hosts).gaps = gaps;
        // If nothing is missing, there may be no arrival left that would lead to a grant.
        let grant = grant?;
        let packet = new_packet(w, flow, PacketKind::Ack);
        answer_with(hosts, w, packet, Some(grant));
        Some(packet)
    }

    #[inline(never)]
    fn on_ack(hosts: &mut Hosts, w: &mut World, host: HostId, packet: PacketIdx) -> Option<Acked> {
        let p = *w.net.pool.get(packet);
        let slot = hosts.sending[p.flow].sender;
        if slot.is_none() {
            if p.kind == PacketKind::Nack {
                // All of it has arrived, or its receiver would not have acknowledged it.
                say_length(hosts, w, p.flow, 0);
                hosts.deferred.look(host);
            }
            return None;
        }
        let now = w.clock.now();
        let sender = hosts.senders[slot].as_mut().expect("an active flow has a sender");
        if sender.rto_ps < u64::MAX {
            sender.rto_ps = w.clock.now_ps.saturating_add(w.run.rules(sender.stack).rto_ps);
        }
        if p.kind == PacketKind::Nack {
            sender.tally.recoveries += 1;
            on_resend(hosts, w, slot, &p);
        } else {
            let newly_acked = sender.acknowledge(p.seq);
            if newly_acked > 0 {
                hosts.last_progress_ps = w.clock.now_ps;
            }
            messages(hosts).outgoing[slot].grant(p.data_seq, p.cwnd_at_send as u8);
            // An acknowledgment without payload answers no packet of this message, and gives no round-trip time.
            if p.payload > 0 {
                w.observed.push_rtt(now, p.flow, Time::from_ps(now.as_ps() - p.sent_ps));
            }
        }
        // There is no decision to make.
        let allowance = hosts.controller(slot).on_timer(now);
        let length = messages(hosts).outgoing[slot].length;
        let sender = hosts.sender(slot);
        Some(Acked { slot, allowance, is_done: length <= sender.snd_una && sender.is_done(), is_only_stored: false })
    }

    #[inline(never)]
    fn on_timer(hosts: &mut Hosts, w: &mut World, flow: FlowId) -> Timed {
        let Some((slot, sender)) = hosts.sender_of(flow) else { return Timed::Nothing };
        if !sender.has_unacknowledged() {
            sender.rto_ps = u64::MAX;
            return Timed::Nothing;
        }
        if sender.rto_ps <= w.clock.now_ps {
            sender.rto_ps = w.clock.now_ps + w.run.rules(sender.stack).rto_ps;
            // Data that still waits for the NIC is not lost.
            if !sender.is_open() {
                sender.tally.timeouts += 1;
                let (from, to) = (sender.snd_una, sender.snd_nxt);
                messages(hosts).outgoing[slot].ask_again(from, to.min(from + w.run.constants.mtu));
                aim(hosts, &w.run, slot);
            }
        }
        let at_ps = hosts.sender(slot).rto_ps;
        w.clock.schedule(at_ps, EventKind::Rto, flow);
        Timed::MaySend(slot)
    }

    /// Updates what the sender may send: only the receiver's grants limit the bytes on their way.
    #[inline(never)]
    fn plan_timer(hosts: &mut Hosts, w: &mut World, slot: SenderIdx) {
        aim(hosts, &w.run, slot);
    }

    #[inline(never)]
    fn stop(hosts: &mut Hosts, w: &mut World, flow: FlowId) -> bool {
        let Some((slot, sender)) = hosts.sender_of(flow) else { return true };
        let is_done = sender.stop();
        let length = sender.bytes;
        messages(hosts).outgoing[slot].length = length;
        say_length(hosts, w, flow, length);
        is_done
    }

    #[inline(never)]
    fn stopped(hosts: &mut Hosts, w: &mut World, flow: FlowId, is_done: bool) {
        if !is_done {
            aim(hosts, &w.run, hosts.sending[flow].sender);
        }
    }
}

fn messages(hosts: &mut Hosts) -> &mut Messages {
    hosts.messages.as_mut().expect("the run has HOMA's transport")
}

fn messages_of(hosts: &Hosts) -> &Messages {
    hosts.messages.as_ref().expect("the run has HOMA's transport")
}

fn levels(run: &Run) -> &Levels {
    run.levels.as_ref().expect("the run has HOMA's transport")
}

/// Returns RTTbytes of a flow.
fn rtt_bytes(run: &Run, flow: FlowId) -> u64 {
    let first_port = run.path_of(flow).next().expect("a path has a link");
    levels(run).rtt_bytes(&run.config, first_port)
}

/// Returns the packets of a message of `bytes` bytes; `None` if the flow has another transport.
pub(crate) fn train(run: &Run, flow: FlowId, bytes: Bytes) -> Option<Train> {
    let levels = run.levels.as_ref().filter(|_| run.flow(flow).transport == Kind::Homa)?;
    Some(levels.train(bytes, rtt_bytes(run, flow), run.rules_of(flow).framing))
}

/// Returns the sort key of a sender's message among others.
fn order(hosts: &Hosts, slot: SenderIdx) -> (u64, FlowId) {
    messages_of(hosts).outgoing[slot].order(hosts.sender(slot))
}

/// Sets the bytes that a sender may send next, and their class at its NIC.
fn aim(hosts: &mut Hosts, run: &Run, slot: SenderIdx) {
    let sender = hosts.senders[slot].as_mut().expect("the slot is in use");
    let message = &mut hosts.messages.as_mut().expect("the run has HOMA's transport").outgoing[slot];
    message.feed(sender);
    sender.bytes = message.limit();
    sender.cwnd = sender.bytes.saturating_sub(sender.snd_una);
    hosts.nics[sender.host].flows[sender.nic_slot as usize].class = message.class(sender, levels(run));
    hosts.refresh(slot);
}

/// Handles a receiver's request for missing bytes: those sent are sent again, the others will follow.
fn on_resend(hosts: &mut Hosts, w: &mut World, slot: SenderIdx, p: &Packet) {
    let sender = hosts.sender(slot);
    let (host, sent, acked) = (sender.host, sender.snd_nxt, sender.snd_una);
    let message = &mut messages(hosts).outgoing[slot];
    message.grant(p.data_seq, p.cwnd_at_send as u8);
    message.ask_again(p.seq.max(acked), p.data_seq.min(sent));
    let length = messages_of(hosts).outgoing[slot].final_length(hosts.sender(slot));
    let mine = order(hosts, slot);
    let others = hosts.nics[host].flows.iter().filter(|flow| flow.open && flow.sender != slot).map(|flow| flow.sender);
    // Flows of other transports are no messages.
    let mut others = others.filter(|&other| hosts.sender(other).transport == Kind::Homa);
    if sent <= p.seq || others.any(|other| order(hosts, other) < mine) {
        say_length(hosts, w, p.flow, length);
    }
}

/// Handles a BUSY packet, by which a sender reports that it is active, and the length of its message.
fn on_busy(hosts: &mut Hosts, w: &mut World, host: HostId, packet: PacketIdx) -> Answer {
    let Packet { flow, seq: length, .. } = *w.net.pool.get(packet);
    let expected = hosts.receiving[flow].receiver.expected;
    let inbox = &mut messages(hosts).inboxes[host];
    let was_here = inbox.shorten(flow, length, w.clock.now_ps, levels(&w.run));
    let is_here = inbox.get_mut(flow).is_some();
    let grant = if was_here && !is_here { inbox.hand_over(flow, levels(&w.run)) } else { None };
    if let Some(grant) = grant {
        send_grant(hosts, w, host, &grant);
    }
    if 0 < length && length <= expected {
        answer_with(hosts, w, packet, None);
        return Answer::Packet(packet);
    }
    w.net.pool.release(packet);
    Answer::Waiting
}

/// Sends a BUSY packet with the length of a message, `u64::MAX` if that is not final.
fn say_length(hosts: &Hosts, w: &mut World, flow: FlowId, length: u64) {
    let packet = new_packet(w, flow, PacketKind::Busy);
    let (host, route) = (w.run.flow(flow).src_host, w.run.flow(flow).data_route);
    let p = w.net.pool.get_mut(packet);
    (p.seq, p.route) = (length, route);
    hosts.enqueue(w, host, packet);
}

/// Sends a grant for a message other than that of the packet which has just arrived.
fn send_grant(hosts: &mut Hosts, w: &mut World, host: HostId, grant: &Grant) {
    let packet = new_packet(w, grant.flow, PacketKind::Ack);
    answer_with(hosts, w, packet, Some(*grant));
    hosts.enqueue(w, host, packet);
}

/// Returns a new packet of a receiver that is not made from an arriving one.
fn new_packet(w: &mut World, flow: FlowId, kind: PacketKind) -> PacketIdx {
    let (class, wire, route) = (levels(&w.run).control(), w.run.rules_of(flow).ack_wire, w.run.flow(flow).ack_route);
    let packet = w.net.pool.take(Packet { flow, route, wire, class, ..Packet::new(kind) });
    w.net.pool.header_mut(packet).fill(0.0);
    packet
}

/// Turns a packet into a receiver's report about its flow: the bytes that have arrived, and those that are granted.
fn answer_with(hosts: &Hosts, w: &mut World, packet: PacketIdx, grant: Option<Grant>) {
    let p = w.net.pool.get_mut(packet);
    let scheduled = levels(&w.run).scheduled(0, 1);
    p.kind = PacketKind::Ack;
    p.seq = hosts.receiving[p.flow].receiver.expected;
    p.data_seq = grant.map_or(0, |grant| grant.until);
    p.cwnd_at_send = u32::from(grant.map_or(scheduled, |grant| grant.class));
    p.class = levels(&w.run).control();
    p.wire = w.run.rules_of(p.flow).ack_wire;
    p.route = w.run.flow(p.flow).ack_route;
}

/// Plans the time at which a receiver asks for missing bytes, if nothing arrives from `from_ps` on.
fn plan_resend(w: &mut World, flow: FlowId, from_ps: u64) {
    let at_ps = from_ps.saturating_add(w.run.rules_of(flow).rto_ps);
    if at_ps < u64::MAX {
        w.clock.schedule(at_ps, EventKind::AckTimer, flow);
    }
}
