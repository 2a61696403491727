//! What happens to a flow: it starts, it stops, its last byte is acknowledged.

use fairrate_control::{Controller, FlowContext};
use fairrate_units::{Bytes, Time};

use super::told::Told;
use super::{Core, FlowState, NO_FLOW};
use crate::config::Trigger;
use crate::engine::{Event, EventKind};
use crate::ideal::{self, Hop};
use crate::ids::{FlowId, PortId};
use crate::output::{FlowOutcome, Reordering};
use crate::rng::{Purpose, Stream};
use crate::transport::{NO_SENDER, NicFlow, Sender, SenderControl, TcpSender, Writing};

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
            deadline: spec.deadline,
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
}

/// A time, if it has come.
fn known(at_ps: u64) -> Option<u64> {
    (at_ps < u64::MAX).then_some(at_ps)
}
