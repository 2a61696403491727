//! Connections of several subflows at hosts. A subflow is a flow of its own, with a sender, a receiver and paths, whose
//! number comes behind those of the user's flows; the user's flow is the connection, which holds the data.

use std::ops::Range;

use fairrate_control::{Controller, CoupledController, FlowContext};
use fairrate_units::Time;

use super::Core;
use crate::config::{FlowSpec, SimConfig, TcpConfig, Transport};
use crate::fabric::tx_time_ps;
use crate::output::Reordering;
use crate::transport::{Connection, ControlOf, Reassembly, Segment, Sender, SenderControl, Tally, TcpSender};

/// Connections of several subflows, by the number of the user's flow; all empty if every flow has a single path. A flow
/// of one subflow is plain TCP, and has no connection.
#[derive(Default)]
pub(super) struct Connections {
    /// Those that are active.
    active: Vec<Option<Box<Connection>>>,
    reassembly: Vec<Reassembly>,
    /// The first subflow of each; those of the next begin where they end, and so there is one more at the end.
    first: Vec<u32>,
}

impl Connections {
    /// For the flows of a run.
    pub(super) fn new(config: &SimConfig) -> Self {
        let Transport::Tcp(tcp) = config.transport.kind else { return Self::default() };
        let n_subflows = |flow: &FlowSpec| match flow.subflows.unwrap_or(tcp.multipath.subflows) {
            0 | 1 => 0,
            n => u32::from(n),
        };
        let n_flows = config.flows.len();
        if config.flows.iter().all(|flow| n_subflows(flow) == 0) {
            return Self::default();
        }
        let mut end = n_flows as u32;
        let ends = config.flows.iter().map(|flow| {
            end += n_subflows(flow);
            end
        });
        Self {
            active: (0..n_flows).map(|_| None).collect(),
            reassembly: vec![Reassembly::default(); n_flows],
            first: std::iter::once(n_flows as u32).chain(ends).collect(),
        }
    }

    /// Whether all flows have a single path.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.first.is_empty()
    }

    /// The flows that are the subflows of a user's flow; none if that has a single path.
    #[inline]
    pub(super) fn subflow_ids(&self, spec: u32) -> Range<u32> {
        match self.first.get(spec as usize..spec as usize + 2) {
            Some(&[first, end]) => first..end,
            _ => 0..0,
        }
    }

    /// The active connection of a user's flow.
    #[inline]
    pub(super) fn get(&self, spec: u32) -> Option<&Connection> {
        self.active.get(spec as usize)?.as_deref()
    }

    /// The same, to change it.
    #[inline]
    pub(super) fn get_mut(&mut self, spec: u32) -> Option<&mut Connection> {
        self.active.get_mut(spec as usize)?.as_deref_mut()
    }

    /// Takes a piece of data that has arrived. The byte of the connection expected next.
    pub(super) fn reassemble(&mut self, spec: u32, mss: u64, seq: u64, len: u64, now_ps: u64) -> u64 {
        self.reassembly[spec as usize].take(mss, seq, len, now_ps)
    }

    /// How long data of a flow has waited for data before it.
    pub(super) fn reordering(&self, spec: u32) -> Reordering {
        self.reassembly.get(spec as usize).map_or_else(Reordering::default, |r| r.reordering)
    }

    /// The same for all.
    pub(super) fn all_reordering(&self) -> Reordering {
        let mut all = Reordering::default();
        self.reassembly.iter().for_each(|r| all.merge(&r.reordering));
        all
    }

    /// The controller of a sender.
    #[inline]
    pub(super) fn controller<'a>(&'a mut self, sender: &'a mut Sender) -> ControlOf<'a> {
        match &mut sender.control {
            SenderControl::Own(own) => ControlOf::Own(own),
            SenderControl::Coupled { connection, subflow } => {
                let connection = self.active[*connection as usize].as_deref_mut();
                let control = connection.and_then(|c| c.control.as_mut());
                ControlOf::Coupled(control.expect("a coupled subflow has a connection"), *subflow as usize)
            }
        }
    }

    /// What the next segment of a subflow carries: first byte and length of the data.
    pub(super) fn carry(&mut self, spec: u32, subflow: usize, sender: &mut Sender, segment: Segment) -> (u64, u64) {
        let connection = self.get_mut(spec).expect("an active subflow has a connection");
        let piece = connection.piece_at(subflow, segment.seq).unwrap_or_else(|| {
            let piece = connection.take(subflow).expect("a subflow sends what it is offered");
            let is_more = connection.offers(subflow);
            sender.offer(is_more);
            if let Some(tcp) = sender.tcp.as_mut().filter(|_| !is_more) {
                tcp.note_last();
            }
            piece
        });
        (connection.data_at(piece), connection.piece_len(piece))
    }
}

impl Core {
    /// The flows that are a connection's subflows.
    fn subflow_ids(&self, spec: u32) -> Range<u32> {
        self.connections.subflow_ids(spec)
    }

    /// A user's flow that is spread over several paths starts.
    pub(super) fn start_connection(&mut self, spec: u32, tcp: &TcpConfig) {
        let contexts: Vec<FlowContext> = self.subflow_ids(spec).map(|id| self.flow_context(id)).collect();
        let rtts = contexts.iter().map(|context| context.path_base_rtt.as_ps());
        let bytes = self.flows[spec as usize].bytes;
        let mut connection =
            Connection::new(tcp.multipath.scheduler, self.constants.mtu, bytes, tcp.receive_window, rtts);
        connection.control = self.config.cc.build_connection(&contexts);
        let is_coupled = connection.control.is_some();
        self.connections.active[spec as usize] = Some(Box::new(connection));
        // The receive window is the connection's.
        let subflow_tcp = TcpConfig { receive_window: u64::MAX, ..*tcp };
        for ((subflow, id), context) in (0..).zip(self.subflow_ids(spec)).zip(&contexts) {
            let control = if is_coupled {
                SenderControl::Coupled { connection: spec, subflow }
            } else {
                SenderControl::Own(self.config.cc.build(context))
            };
            let mut sender = Sender::new(id, 0, control);
            sender.offer(true);
            let mut tcp = TcpSender::new(&subflow_tcp, self.constants.mtu, context.path_base_rtt);
            if let Some(rto) = self.constants.fixed_rto {
                tcp.rely_on_timeouts(rto);
            }
            sender.tcp = Some(Box::new(tcp));
            self.flows[id as usize].start_ps = self.now_ps;
            self.add_sender(sender);
        }
        // An active connection is known by the sender of its first subflow.
        self.flows[spec as usize].sender = self.flows[self.subflow_ids(spec).start as usize].sender;
        self.note_start(spec, contexts[0].path_base_rtt);
        for id in self.subflow_ids(spec) {
            let slot = self.flows[id as usize].sender;
            let (now, sender) = (self.now(), self.senders[slot as usize].as_mut().expect("the slot is in use"));
            let allowance = self.connections.controller(sender).on_start(now);
            self.apply(slot, allowance);
        }
        if tcp.handshake {
            // The others join when the first one is through.
            self.connect(self.flows[spec as usize].sender);
            self.plan_tcp_timer(self.flows[spec as usize].sender);
        }
    }

    /// The handshake of a subflow is over: after the first one's, the others begin theirs.
    pub(super) fn join_subflows(&mut self, id: u32) {
        let flow = &self.flows[id as usize];
        if flow.spec == id || flow.subflow != 0 {
            return;
        }
        for id in self.subflow_ids(flow.spec).skip(1) {
            let slot = self.flows[id as usize].sender;
            self.connect(slot);
            self.plan_tcp_timer(slot);
        }
    }

    /// Which of a NIC's flows sends in the turn of the one at position `at`: itself, or the subflow of its connection
    /// that the scheduler prefers.
    pub(super) fn scheduled(&self, host: u32, at: usize) -> usize {
        let nic = &self.nics[host as usize];
        let sender_of = |slot: u32| self.senders[slot as usize].as_ref().expect("an active flow has a sender");
        let has_lost = |sender: &Sender| sender.tcp.as_ref().is_some_and(|tcp| tcp.has_lost());
        let sender = sender_of(nic.flows[at].sender);
        let flow = &self.flows[sender.flow as usize];
        let Some(connection) = self.connections.get(flow.spec) else { return at };
        if !connection.prefers_short_rtts() || has_lost(sender) || connection.repeats(flow.subflow as usize) {
            return at;
        }
        let mut best = (u64::MAX, at);
        for (subflow, id) in (0..).zip(self.subflow_ids(flow.spec)) {
            let sender = sender_of(self.flows[id as usize].sender);
            let entry = &nic.flows[sender.nic_slot as usize];
            let may_send = entry.open && entry.next_send_ps <= self.now_ps;
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

    /// A subflow has sent a segment: the application offers the connection's next one when its rate allows.
    pub(super) fn pace_connection(&mut self, spec: u32, wire: u64) {
        let demand = self.config.flows[spec as usize].demand;
        let host = self.flows[spec as usize].src_host;
        let line_rate = self.ports[self.nics[host as usize].port as usize].rate;
        if line_rate <= demand {
            return;
        }
        let at = self.now_ps + tx_time_ps(demand, wire, self.constants.whole_ns);
        if let Some(connection) = self.connections.get_mut(spec) {
            connection.next_send_ps = at;
        }
        for id in self.subflow_ids(spec) {
            let sender = self.senders[self.flows[id as usize].sender as usize].as_ref();
            let nic_slot = sender.expect("an active subflow has a sender").nic_slot;
            let entry = &mut self.nics[host as usize].flows[nic_slot as usize];
            entry.next_send_ps = entry.next_send_ps.max(at);
        }
    }

    /// Tells the subflows of a connection whether there is data for them, if that may have changed.
    pub(super) fn share_out(&mut self, spec: u32) {
        let Some(connection) = self.connections.get_mut(spec) else { return };
        if !connection.take_changed() {
            return;
        }
        for (subflow, id) in (0..).zip(self.subflow_ids(spec)) {
            let slot = self.flows[id as usize].sender;
            let offers = self.connections.get(spec).is_some_and(|c| c.offers(subflow));
            self.senders[slot as usize].as_mut().expect("an active subflow has a sender").offer(offers);
            self.refresh_open(slot);
        }
    }

    /// A subflow has been acknowledged up to `ack`, and its connection's data up to `data_ack`; something of it was
    /// delivered, or not.
    pub(super) fn on_subflow_ack(&mut self, id: u32, ack: u64, data_ack: u64, delivered: bool) {
        let (spec, subflow) = (self.flows[id as usize].spec, self.flows[id as usize].subflow as usize);
        let now = self.now();
        let Some(connection) = self.connections.get_mut(spec) else { return };
        connection.on_ack(subflow, ack);
        connection.on_data_ack(data_ack);
        if delivered
            && connection.on_delivery(subflow)
            && let Some(control) = &mut connection.control
        {
            control.on_path(subflow, now, true);
        }
    }

    /// The retransmission timer of a subflow has expired.
    pub(super) fn on_subflow_timeout(&mut self, id: u32) {
        let flow = &self.flows[id as usize];
        let (slot, spec, subflow, now) = (flow.sender, flow.spec, flow.subflow as usize, self.now());
        let Some(connection) = self.connections.get_mut(spec) else { return };
        let sender = self.senders[slot as usize].as_ref().expect("an active subflow has a sender");
        let undelivered = sender.tcp.iter().flat_map(|tcp| tcp.undelivered());
        if connection.on_timeout(subflow, undelivered)
            && let Some(control) = &mut connection.control
        {
            control.on_path(subflow, now, false);
        }
    }

    /// A controller has decided about a subflow.
    pub(super) fn follow_subflow(&mut self, slot: u32) {
        let sender = self.senders[slot as usize].as_ref().expect("the slot is in use");
        let flow = &self.flows[sender.flow as usize];
        let (host, spec, subflow) = (flow.src_host, flow.spec, flow.subflow as usize);
        let Some(connection) = self.connections.get_mut(spec) else { return };
        let line_rate = self.ports[self.nics[host as usize].port as usize].rate;
        connection.set_slow(subflow, sender.rate < line_rate && sender.cwnd <= self.constants.mtu);
        if let Some(tcp) = sender.tcp.as_ref().filter(|tcp| tcp.has_lost()) {
            connection.on_loss(subflow, tcp.undelivered());
        }
        self.share_out(spec);
    }

    /// All data of a connection is acknowledged: its senders go.
    pub(super) fn finish_connection(&mut self, spec: u32) {
        let retransmitted = self.connections.get(spec).map_or(0, |c| c.repeated);
        let mut tally = Tally { retransmitted, ..Tally::NEW };
        for id in self.subflow_ids(spec) {
            let slot = self.flows[id as usize].sender;
            self.poll_control(slot);
            self.retire(slot);
            tally.add(&self.flows[id as usize].tally);
        }
        self.flows[spec as usize].tally = tally;
        self.connections.active[spec as usize] = None;
        self.conclude(spec);
    }

    /// What the senders of an active connection have been through so far.
    pub(super) fn tally_of_subflows(&self, spec: u32) -> Option<Tally> {
        let mut tally = Tally { retransmitted: self.connections.get(spec)?.repeated, ..Tally::NEW };
        for id in self.subflow_ids(spec) {
            if let Some(sender) = &self.senders[self.flows[id as usize].sender as usize] {
                tally.add(&sender.tally);
            }
        }
        Some(tally)
    }

    /// Window and rate of an active connection: the sums of its subflows', the rate up to that of its NIC.
    pub(super) fn sum_of_subflows(&self, spec: u32) -> Option<(u64, u64)> {
        self.connections.get(spec)?;
        let mut sum = (0_u64, 0_u64);
        for id in self.subflow_ids(spec) {
            let sender = self.senders[self.flows[id as usize].sender as usize].as_ref()?;
            sum = (sum.0.saturating_add(sender.cwnd), sum.1.saturating_add(sender.rate.as_bps()));
        }
        let host = self.flows[spec as usize].src_host;
        Some((sum.0, sum.1.min(self.ports[self.nics[host as usize].port as usize].rate.as_bps())))
    }

    /// What the subflows of an active connection may send together, each within its base round-trip time.
    pub(super) fn allowed_by_subflows(&self, spec: u32) -> Option<f64> {
        let connection = self.connections.get(spec)?;
        let mut sum = 0.0;
        for (subflow, id) in (0..).zip(self.subflow_ids(spec)) {
            let sender = self.senders[self.flows[id as usize].sender as usize].as_ref()?;
            sum += self.allowed_bps(sender, Time::from_ps(connection.path_rtt_ps(subflow)));
        }
        let host = self.flows[spec as usize].src_host;
        let line_rate = self.ports[self.nics[host as usize].port as usize].rate;
        Some(sum.min(line_rate.min(self.config.flows[spec as usize].demand).as_bps_f64()))
    }

    /// Whether all subflows of a flow use a port, so that it alone can hold the flow back. True of one without subflows.
    pub(super) fn all_subflows_use(&self, spec: u32, port: u32) -> bool {
        let uses = |id: u32| {
            let flow = &self.flows[id as usize];
            let start = flow.data_route as usize - 1;
            self.paths[start..start + flow.n_hops as usize].contains(&port)
        };
        self.connections.is_empty() || self.subflow_ids(spec).all(uses)
    }
}
