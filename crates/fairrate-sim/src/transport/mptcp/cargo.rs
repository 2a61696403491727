//! The payload of subflows: pieces of their connection's data. It also chooses the subflow that sends next.

use fairrate_control::{CoupledController, FlowContext, PathState};

use super::connection::Connection;
use crate::config::TcpConfig;
use crate::core::{Hosts, Run, World};
use crate::fabric::tx_time_ps;
use crate::ids::{FlowId, HostId, SenderIdx};
use crate::packet::Packet;
use crate::transport::controlled::Controlled;
use crate::transport::interface::Load;
use crate::transport::sender::{Segment, Sender, Tally};
use crate::transport::tcp::{Cargo, TcpSender, config_of, connect};

/// Pieces of a connection's data.
pub(crate) struct Pieces;

impl Cargo for Pieces {
    /// Starts a user's flow that is spread over several paths.
    fn open(hosts: &mut Hosts, w: &mut World, user_flow: FlowId) {
        let (tcp, c) = (*config_of(&w.run, user_flow), &w.run.constants);
        let subflows = hosts.connections.subflow_ids(user_flow);
        let contexts: Vec<FlowContext> = subflows.clone().map(|id| w.run.flow_context(id, w.clock.now())).collect();
        let rtts = contexts.iter().map(|context| context.path_base_rtt.as_ps());
        let bytes = w.run.flow(user_flow).bytes;
        let mut connection = Connection::new(tcp.multipath.scheduler, c.mtu, bytes, tcp.receive_window, rtts);
        connection.controller = w.run.algorithm_of(user_flow).build_connection(&contexts);
        let is_coupled = connection.controller.is_some();
        hosts.connections.open(user_flow, connection);
        // The receive window is the connection's.
        let subflow_tcp = TcpConfig { receive_window: u64::MAX, ..tcp };
        for ((subflow, id), context) in (0..).zip(subflows.clone()).zip(&contexts) {
            let controlled = if is_coupled {
                Controlled::Coupled { connection: user_flow, subflow }
            } else {
                Controlled::Own(w.run.algorithm_of(user_flow).build(context))
            };
            let mut sender = Sender::new(id, 0, controlled);
            sender.offer_more();
            let mut tcp = TcpSender::new(&subflow_tcp, w.run.constants.mtu, context.path_base_rtt);
            if let Some(rto) = w.run.rules_of(user_flow).fixed_rto {
                tcp.rely_on_timeouts(rto);
            }
            sender.tcp = Some(Box::new(tcp));
            hosts.sending[id].start_ps = w.clock.now_ps;
            hosts.add_sender(w, sender);
        }
        // An active connection is found by the sender of its first subflow.
        let first = hosts.connections.first_subflow(user_flow).expect("a connection has subflows");
        hosts.sending[user_flow].sender = hosts.sending[first].sender;
    }

    /// Returns the position of the connection's subflow that the scheduler prefers, or `at`.
    fn whose_turn(hosts: &Hosts, w: &World, host: HostId, at: usize) -> usize {
        let nic = &hosts.nics[host];
        let has_lost = |sender: &Sender| sender.tcp.as_ref().is_some_and(|tcp| tcp.has_lost());
        let sender = hosts.sender(nic.flows[at].sender);
        let flow = w.run.flow(sender.flow);
        let Some(connection) = hosts.connections.get(flow.parent) else { return at };
        if !connection.prefers_short_rtts() || has_lost(sender) || connection.repeats(usize::from(flow.subflow())) {
            return at;
        }
        let mut best = (u64::MAX, at);
        for (subflow, id) in (0..).zip(hosts.connections.subflow_ids(flow.parent)) {
            let sender = hosts.sender(hosts.sending[id].sender);
            let entry = &nic.flows[sender.nic_slot as usize];
            let may_send = entry.open && entry.next_send_ps <= w.clock.now_ps;
            if !may_send || has_lost(sender) || connection.repeats(subflow) {
                continue;
            }
            let srtt_ps = sender.tcp.as_ref().and_then(|tcp| tcp.srtt_ps());
            let srtt_ps = srtt_ps.unwrap_or_else(|| connection.path_rtt_ps(subflow));
            if srtt_ps < best.0 {
                best = (srtt_ps, sender.nic_slot as usize);
            }
        }
        best.1
    }

    fn load(hosts: &mut Hosts, w: &mut World, slot: SenderIdx, segment: Segment) -> Load {
        let sender = hosts.senders[slot].as_mut().expect("the slot is in use");
        let flow = w.run.flow(sender.flow);
        let (data_seq, payload) = hosts.connections.carry(flow.parent, usize::from(flow.subflow()), sender, segment);
        Load { data_seq, payload, ..Load::own(segment, sender) }
    }

    /// Delays the connection's next segment by the application's rate, and updates the data that other subflows may
    /// send.
    fn sent(hosts: &mut Hosts, w: &mut World, slot: SenderIdx, wire: u16) {
        let user_flow = w.run.flow(hosts.sender(slot).flow).parent;
        pace(hosts, w, user_flow, u64::from(wire));
        share_out(hosts, user_flow);
    }

    fn has_sent_all(hosts: &Hosts, w: &World, slot: SenderIdx, _: bool) -> bool {
        let user_flow = w.run.flow(hosts.sender(slot).flow).parent;
        hosts.connections.get(user_flow).is_some_and(Connection::all_sent)
    }

    /// Returns a full segment's numbers, which each segment of a subflow takes.
    fn numbers(run: &Run, _: &Packet) -> u64 {
        run.constants.mtu
    }

    fn deliver(hosts: &mut Hosts, w: &World, segment: &Packet) {
        let (user_flow, now_ps) = (w.run.flow(segment.flow).parent, w.clock.now_ps);
        let (mtu, len) = (w.run.constants.mtu, u64::from(segment.payload));
        let end = &mut hosts.receiving[user_flow];
        end.receiver.expected = hosts.connections.reassemble(user_flow, mtu, segment.data_seq, len, now_ps);
        let flow = w.run.flow(user_flow);
        if end.note_arrival(flow.bytes, now_ps) {
            hosts.deferred.note_arrived(user_flow, flow.dst_host);
        }
    }

    fn write_ack(hosts: &mut Hosts, run: &Run, ack: &mut Packet) {
        ack.data_seq = hosts.receiving[run.flow(ack.flow).parent].receiver.expected;
    }

    fn acked(hosts: &mut Hosts, w: &World, ack: &Packet, delivered: bool) {
        let flow = w.run.flow(ack.flow);
        let subflow = usize::from(flow.subflow());
        let Some(connection) = hosts.connections.get_mut(flow.parent) else { return };
        connection.on_ack(subflow, ack.seq);
        connection.on_data_ack(ack.data_seq);
        if delivered
            && connection.on_delivery(subflow)
            && let Some(controller) = &mut connection.controller
        {
            controller.on_path(subflow, w.clock.now(), PathState::Alive);
        }
    }

    fn is_done(hosts: &Hosts, w: &World, sender: &Sender) -> bool {
        hosts.connections.get(w.run.flow(sender.flow).parent).is_some_and(Connection::is_done)
    }

    /// Starts the handshakes of the other subflows after that of the first.
    fn connected(hosts: &mut Hosts, w: &mut World, id: FlowId) {
        let flow = w.run.flow(id);
        if flow.subflow() != 0 {
            return;
        }
        for id in hosts.connections.subflow_ids(flow.parent).skip(1) {
            connect(hosts, w, hosts.sending[id].sender);
        }
    }

    fn timed_out(hosts: &mut Hosts, w: &World, id: FlowId) {
        let flow = w.run.flow(id);
        let (slot, subflow) = (hosts.sending[id].sender, usize::from(flow.subflow()));
        let Some(connection) = hosts.connections.get_mut(flow.parent) else { return };
        let sender = hosts.senders[slot].as_ref().expect("an active subflow has a sender");
        let undelivered = sender.tcp.iter().flat_map(|tcp| tcp.undelivered());
        if connection.on_timeout(subflow, undelivered)
            && let Some(controller) = &mut connection.controller
        {
            controller.on_path(subflow, w.clock.now(), PathState::Dead);
        }
    }

    fn earliest_ps(hosts: &Hosts, w: &World, slot: SenderIdx) -> u64 {
        let user_flow = w.run.flow(hosts.sender(slot).flow).parent;
        hosts.connections.get(user_flow).map_or(0, |connection| connection.next_send_ps)
    }

    fn decided(hosts: &mut Hosts, w: &World, slot: SenderIdx) {
        let sender = hosts.senders[slot].as_ref().expect("the slot is in use");
        let flow = w.run.flow(sender.flow);
        let subflow = usize::from(flow.subflow());
        let line_rate = hosts.line_rate(w, flow.src_host);
        let Some(connection) = hosts.connections.get_mut(flow.parent) else { return };
        connection.set_slow(subflow, sender.rate < line_rate && sender.cwnd <= w.run.constants.mtu);
        if let Some(tcp) = sender.tcp.as_ref().filter(|tcp| tcp.has_lost()) {
            connection.on_loss(subflow, tcp.undelivered());
        }
        share_out(hosts, flow.parent);
    }

    fn stop(hosts: &mut Hosts, user_flow: FlowId) -> bool {
        let Some(connection) = hosts.connections.get_mut(user_flow) else { return true };
        connection.stop();
        connection.is_done()
    }

    fn stopped(hosts: &mut Hosts, _: &mut World, user_flow: FlowId, is_done: bool) {
        if !is_done {
            share_out(hosts, user_flow);
        }
    }

    fn close(hosts: &mut Hosts, _: &World, user_flow: FlowId) {
        let retransmitted = hosts.connections.get(user_flow).map_or(0, |connection| connection.repeated);
        let mut tally = Tally { retransmitted, ..Tally::NEW };
        for id in hosts.connections.subflow_ids(user_flow) {
            tally.add(&hosts.sending[id].tally);
        }
        hosts.sending[user_flow].tally = tally;
        hosts.connections.close(user_flow);
    }
}

/// Delays the connection's next segment by the application's rate, after a subflow has sent `wire` bytes.
fn pace(hosts: &mut Hosts, w: &World, user_flow: FlowId, wire: u64) {
    let (demand, host) = (w.run.config.flows[user_flow.index()].demand, w.run.flow(user_flow).src_host);
    let line_rate = hosts.line_rate(w, host);
    if line_rate <= demand {
        return;
    }
    let at = w.clock.now_ps + tx_time_ps(demand, wire, w.run.constants.clock);
    if let Some(connection) = hosts.connections.get_mut(user_flow) {
        connection.next_send_ps = at;
    }
    for id in hosts.connections.subflow_ids(user_flow) {
        let nic_slot = hosts.sender(hosts.sending[id].sender).nic_slot;
        let entry = &mut hosts.nics[host].flows[nic_slot as usize];
        entry.next_send_ps = entry.next_send_ps.max(at);
    }
}

/// Updates for each subflow of a connection whether there is data for it, if that may have changed.
fn share_out(hosts: &mut Hosts, user_flow: FlowId) {
    let Some(connection) = hosts.connections.get_mut(user_flow) else { return };
    if !connection.take_changed() {
        return;
    }
    for (subflow, id) in (0..).zip(hosts.connections.subflow_ids(user_flow)) {
        let slot = hosts.sending[id].sender;
        let offers = hosts.connections.get(user_flow).is_some_and(|connection| connection.offers(subflow));
        hosts.sender_mut(slot).offer(offers);
        hosts.refresh(slot);
    }
}
