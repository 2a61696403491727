//! What happens at hosts: flows start and stop, packets arrive, the NIC sends.

use fairrate_control::{Ack, Allowance, Controller, FlowContext, Loss};
use fairrate_units::{Bytes, Rate, Time};

use super::agents::Step;
use super::told::Told;
use super::{Core, FlowState, NO_FLOW};
use crate::config::{Trigger, WindowRule};
use crate::engine::{Event, EventKind};
use crate::ideal::{self, Hop};
use crate::ids::{FlowId, PortId};
use crate::output::{FlowOutcome, Reordering, RttSample};
use crate::packet::{Packet, PacketKind, PacketPool};
use crate::rng::{Purpose, Stream};
use crate::transport::{Connection, ControlOf, NO_SENDER, NicFlow, Reply, Sender, SenderControl, TcpSender, Writing};

/// What has arrived of a flow.
pub(super) struct Received {
    /// When its last payload byte did, in picoseconds.
    last_ps: Option<u64>,
    /// Payload bytes in order.
    bytes: u64,
    reordering: Reordering,
}

impl Core {
    /// Schedules the next of the flows that start at their time.
    pub(super) fn schedule_next_start(&mut self) {
        if let Some(&next) = self.starts.get(self.next_start) {
            let rank = self.ranks.of_flow_start();
            let at = self.flows[next as usize].start_ps;
            self.events.push(Event::new(at, EventKind::FlowStart, next).ranked(rank));
        }
    }

    /// A flow starts.
    pub(super) fn on_flow_start(&mut self, id: u32) {
        if self.config.flows[id as usize].trigger == Trigger::Time {
            self.next_start += 1;
            self.schedule_next_start();
        }
        let flow = &mut self.flows[id as usize];
        (flow.start_ps, flow.has_started) = (self.now_ps, true);
        match self.tcp_config().filter(|_| !self.connections.subflow_ids(id).is_empty()) {
            Some(tcp) => self.start_connection(id, &tcp),
            None => self.start_sender(id),
        }
        self.nic_send(self.flows[id as usize].src_host);
    }

    /// A flow with a single path starts.
    fn start_sender(&mut self, id: u32) {
        let context = self.flow_context(id);
        let mut control = self.config.cc.build(&context);
        let allowance = control.on_start(self.now());
        let burst = self.config.flows[id as usize].burst.filter(|_| self.flows[id as usize].endless);
        let bytes = burst.map_or(self.flows[id as usize].bytes, |burst| self.burst_bytes(&burst));
        let mut sender = Sender::new(id, bytes, SenderControl::Own(control));
        sender.writing = if burst.is_some() { Writing::Burst } else { Writing::Done };
        let (mtu, path_rtt) = (self.constants.mtu, context.path_base_rtt);
        sender.tcp = self.tcp_config().map(|config| Box::new(TcpSender::new(&config, mtu, path_rtt)));
        if let (Some(tcp), Some(rto)) = (&mut sender.tcp, self.constants.fixed_rto) {
            tcp.rely_on_timeouts(rto);
        }
        let connected = sender.tcp.as_ref().is_none_or(|tcp| tcp.connected);
        let slot = self.add_sender(sender);
        self.note_start(id, context.path_base_rtt);
        self.apply(slot, allowance);
        self.begin_flowlet(id);
        if !connected {
            self.connect(slot);
            self.plan_tcp_timer(slot);
        }
    }

    /// Gives a sender a slot and a place at its NIC. The slot.
    pub(super) fn add_sender(&mut self, mut sender: Sender) -> u32 {
        let id = sender.flow;
        let flow = &self.flows[id as usize];
        let (host, class) = (flow.src_host, flow.class);
        let line_rate = self.ports[self.nics[host as usize].port as usize].rate;
        sender.host = host;
        let transport = &self.config.transport;
        sender.room = if transport.window_overshoot { 1 } else { transport.mtu.as_u64() as u32 };
        sender.fastest = line_rate.min(self.config.flows[flow.spec as usize].demand);
        sender.nic_slot = self.nics[host as usize].flows.len() as u32;
        let slot = self.free_senders.pop().unwrap_or_else(|| {
            self.senders.push(None);
            (self.senders.len() - 1) as u32
        });
        self.senders[slot as usize] = Some(sender);
        self.flows[id as usize].sender = slot;
        self.nics[host as usize].flows.push(NicFlow {
            next_send_ps: self.now_ps,
            sender: slot,
            class,
            open: true,
            has_data: true,
            finished: false,
        });
        slot
    }

    /// A user's flow is active from now on.
    pub(super) fn note_start(&mut self, id: u32, path_base_rtt: Time) {
        self.active += 1;
        self.last_progress_ps = self.now_ps;
        let stop = self.config.flows[id as usize].stop;
        if stop < Time::MAX && self.flows[id as usize].endless {
            self.schedule(stop.as_ps().max(self.now_ps), EventKind::FlowStop, id);
        }
        self.arrive(id, path_base_rtt);
    }

    fn data_path(&self, id: u32) -> Vec<Hop> {
        self.hops(self.flows[id as usize].data_route, self.flows[id as usize].n_hops)
    }

    fn hops(&self, route: u32, n_hops: u8) -> Vec<Hop> {
        let start = route as usize - 1;
        let path = &self.paths[start..start + n_hops as usize];
        let links = path.iter().map(|&p| self.config.topology.link(PortId(p)));
        links.map(|link| Hop { rate: link.rate, delay: link.delay }).collect()
    }

    pub(super) fn flow_context(&self, id: u32) -> FlowContext {
        let spec = &self.config.flows[self.flows[id as usize].spec as usize];
        let c = &self.constants;
        let path = self.data_path(id);
        let back = self.hops(self.flows[id as usize].ack_route, self.flows[id as usize].n_hops);
        FlowContext {
            line_rate: path[0].rate,
            base_rtt: c.base_rtt,
            path_base_rtt: ideal::path_base_rtt(self.config.fabric.clock, &path, &back, c.framing),
            mtu: c.framing.mtu,
            wire_mtu: c.framing.mtu + c.framing.header,
            n_hops: path.len() as u32,
            weight: spec.weight,
            start: self.now(),
            size: spec.bytes,
            demand: spec.demand,
            seed: Stream::new(self.config.seed, u64::from(id), Purpose::Controller).below(u64::MAX),
        }
    }

    /// An endless flow stops: what it has sent so far is all it will send.
    pub(super) fn on_flow_stop(&mut self, id: u32) {
        let flow = &mut self.flows[id as usize];
        let slot = flow.sender;
        if slot == NO_SENDER {
            return;
        }
        if let Some(connection) = self.connections.get_mut(id) {
            flow.bytes = connection.stop();
            let is_done = connection.is_done();
            self.depart(id);
            if is_done {
                self.finish_connection(id);
            } else {
                self.share_out(id);
                self.nic_send(self.flows[id as usize].src_host);
            }
            return;
        }
        let sender = self.senders[slot as usize].as_mut().expect("an active flow has a sender");
        sender.bytes = sender.snd_nxt.max(sender.snd_una);
        sender.writing = Writing::Done;
        flow.bytes = sender.bytes;
        let is_done = sender.is_done();
        self.depart(id);
        self.end_flowlet(id);
        if is_done {
            self.finish(slot);
        } else {
            self.refresh_open(slot);
            self.poll_control(slot);
            self.nic_send(self.flows[id as usize].src_host);
        }
    }

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

    /// A flow's last byte is acknowledged: its sender goes.
    pub(super) fn finish(&mut self, slot: u32) {
        self.poll_control(slot);
        let id = self.retire(slot);
        self.conclude(id);
    }

    /// A sender goes, and leaves its NIC. Its flow.
    pub(super) fn retire(&mut self, slot: u32) -> u32 {
        let sender = self.senders[slot as usize].take().expect("the slot is in use");
        self.free_senders.push(slot);
        let flow = &mut self.flows[sender.flow as usize];
        flow.sender = NO_SENDER;
        flow.tally = sender.tally;
        let host = flow.src_host;
        let nic = &mut self.nics[host as usize];
        if self.ranks.by_insertion {
            let nic_flow = &mut nic.flows[sender.nic_slot as usize];
            (nic_flow.open, nic_flow.has_data, nic_flow.finished) = (false, false, true);
        } else {
            nic.remove(sender.nic_slot as usize);
            self.renumber(host, sender.nic_slot as usize);
        }
        sender.flow
    }

    /// A user's flow is over.
    pub(super) fn conclude(&mut self, id: u32) {
        let flow = &mut self.flows[id as usize];
        (flow.sender, flow.over) = (NO_SENDER, true);
        if !flow.endless {
            flow.fct_ack_ps = self.now_ps - flow.start_ps;
            self.finite_left -= 1;
            self.totals.flows_done += 1;
        }
        self.active -= 1;
        let (host, successor) = (flow.src_host, flow.successor);
        let at = self.now_ps + flow.successor_delay_ps;
        if successor != NO_FLOW && at < self.config.flows[successor as usize].stop.as_ps() {
            self.finite_left += u64::from(!self.flows[successor as usize].endless);
            self.schedule(at, EventKind::FlowStart, successor);
        }
        self.depart(id);
        self.story.push(Told::Flow(FlowId(id)));
        self.nic_send(host);
    }

    /// Tells the senders of a NIC's flows from position `from` on where they now stand.
    pub(super) fn renumber(&mut self, host: u32, from: usize) {
        for (at, flow) in self.nics[host as usize].flows.iter().enumerate().skip(from).filter(|(_, f)| !f.finished) {
            self.senders[flow.sender as usize].as_mut().expect("an active flow has a sender").nic_slot = at as u32;
        }
    }

    /// How a flow that is sent from here has fared so far.
    pub(super) fn outcome(&self, id: u32, received: &Received) -> FlowOutcome {
        let flow = &self.flows[id as usize];
        let sender = self.senders.get(flow.sender as usize).and_then(Option::as_ref);
        let tally = self.tally_of_subflows(id).or(sender.map(|s| s.tally)).unwrap_or(flow.tally);
        FlowOutcome {
            flow: FlowId(id),
            start: Time::from_ps(flow.start_ps),
            fct: received.last_ps.map(|at| Time::from_ps(at - flow.start_ps)),
            fct_ack: known(flow.fct_ack_ps).map(Time::from_ps),
            ideal_fct: if flow.endless || !flow.has_started { Time::ZERO } else { self.ideal_fct(id) },
            delivered_bytes: received.bytes,
            retransmitted_bytes: tally.retransmitted,
            timeouts: tally.timeouts,
            recoveries: tally.recoveries,
            connected: known(flow.connected_ps).map(|at| Time::from_ps(at - flow.start_ps)),
            reordering: received.reordering,
        }
    }

    /// What has arrived here of a flow.
    pub(super) fn received(&self, id: u32) -> Received {
        let flow = &self.flows[id as usize];
        let reordering = self.connections.reordering(id);
        Received { last_ps: known(flow.arrived_ps), bytes: flow.receiver.expected, reordering }
    }

    fn ideal_fct(&self, id: u32) -> Time {
        let bytes = Bytes::new(self.flows[id as usize].bytes);
        ideal::ideal_fct(self.config.fabric.clock, &self.data_path(id), self.constants.framing, bytes)
    }

    /// The user's flows that are sent from here, have started or will at their time, and are not over.
    pub(super) fn unfinished(&self) -> Vec<u32> {
        let flows = (0u32..).zip(&self.flows[..self.n_user_flows as usize]);
        let is_here = |f: &FlowState| !f.over && self.has_host(f.src_host);
        let is_due = |id: u32, f: &FlowState| f.has_started || self.config.flows[id as usize].trigger == Trigger::Time;
        flows.filter(|&(id, f)| is_here(f) && is_due(id, f)).map(|(id, _)| id).collect()
    }

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

/// A time, if it has come.
fn known(at_ps: u64) -> Option<u64> {
    (at_ps < u64::MAX).then_some(at_ps)
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
