//! Hosts: flows that start and end, NICs that send, senders and receivers.
//!
//! Packets and timers of a flow are handled by its transport (`crate::transport`). The code here is common to all
//! transports.

mod bucket;
mod bursts;
mod changes;
pub(super) mod convergence;
mod deciding;
mod dependents;
mod disorder;
mod imperfect;
mod lifecycle;
mod nic_order;
mod notices;
mod outcome;
mod queue_pairs;
mod receiving;
mod sending;
mod subflows;

use std::collections::HashMap;

use fairrate_control::Notice;
use fairrate_units::Rate;

use self::convergence::Convergence;
use self::dependents::Dependents;
use self::disorder::DisorderBook;
use self::imperfect::ImperfectHosts;
use self::nic_order::NicOrder;
pub(super) use self::outcome::Received;
use self::queue_pairs::QueuePairs;
use super::agents::Step;
use super::balance::n_paths;
use super::build::weighted_classes;
use super::network::Network;
use super::run::Run;
use super::share::Own;
use super::world::World;
use crate::config::{SimConfig, TieRule, Trigger};
use crate::ids::{FlowId, HostId, NodeId, PacketIdx, PortIdx, SenderIdx};
use crate::table::Table;
use crate::transport::{
    Allocator, Connections, ControllerRef, Datagrams, Messages, Nic, NicFlow, PathPickers, Receiver, Sender, Tally,
};

/// The hosts of a part.
pub(crate) struct Hosts {
    pub(crate) nics: Own<HostId, Nic>,
    order: NicOrder,
    /// The sending end and the receiving end of each flow.
    pub(crate) sending: Own<FlowId, SendingEnd>,
    pub(crate) receiving: Own<FlowId, ReceivingEnd>,
    /// The senders of active flows (`senders`), and the free slots (`free_senders`).
    pub(crate) senders: Table<SenderIdx, Option<Sender>>,
    free_senders: Vec<SenderIdx>,
    /// The senders' choices of paths, if hosts choose them.
    pub(crate) pickers: Option<Box<PathPickers>>,
    /// Connections of several subflows.
    pub(crate) connections: Connections,
    /// Connections of several flows.
    queue_pairs: QueuePairs,
    /// The central allocator and the conversation with it.
    pub(crate) allocator: Option<Box<Allocator>>,
    /// HOMA's messages, if HOMA is the transport.
    pub(crate) messages: Option<Box<Messages>>,
    /// Ultra Ethernet's messages, if that is the transport.
    pub(crate) datagrams: Option<Box<Datagrams>>,
    /// Actions that transports have requested, to be run after they return.
    pub(crate) deferred: Deferred,
    /// Time of the last acknowledgment of data, in picoseconds.
    pub(crate) last_progress_ps: u64,
    /// Flows that start here at their time, in order (`starts`), and the index of the next one (`next_start`).
    starts: Vec<FlowId>,
    next_start: usize,
    active: u64,
    finite_left: u64,
    header_scratch: Vec<f64>,
    /// Measurement of convergence, if a probe asks for it.
    convergence: Option<Box<Convergence>>,
    /// Flows and tasks that wait for others, if there are any.
    dependents: Option<Box<Dependents>>,
    /// For each end point, the others of its host, or [`HostId::NONE`]; empty if none starts flows of another one.
    partners: Table<HostId, [HostId; 2]>,
    /// The hosts that are not ideal, if there are any.
    imperfect: Option<Box<ImperfectHosts>>,
    /// Record of disorder, if packets may overtake each other.
    disorder: Option<Box<DisorderBook>>,
}

/// The sending end of a flow.
#[derive(Clone)]
pub(crate) struct SendingEnd {
    /// The flow's sender, while the flow is active.
    pub(crate) sender: SenderIdx,
    has_started: bool,
    is_over: bool,
    pub(crate) start_ps: u64,
    /// Time from the start to the acknowledgment of the flow's last byte, in picoseconds; `u64::MAX`: not acknowledged.
    fct_ack_ps: u64,
    /// Time at which the handshake was over (for a connection, that of its first subflow), in picoseconds; `u64::MAX`:
    /// it is not over, or there is none.
    pub(crate) connected_ps: u64,
    /// Counters of the flow's sender when it was removed.
    pub(crate) tally: Tally,
}

/// The receiving end of a flow.
#[derive(Clone)]
pub(crate) struct ReceivingEnd {
    pub(crate) receiver: Receiver,
    /// Time at which the last payload byte arrived, in picoseconds; `u64::MAX`: it has not.
    arrived_ps: u64,
}

impl SendingEnd {
    /// The state of a flow that has not started.
    pub(super) const IDLE: Self = Self {
        sender: SenderIdx::NONE,
        has_started: false,
        is_over: false,
        start_ps: 0,
        fct_ack_ps: u64::MAX,
        connected_ps: u64::MAX,
        tally: Tally::NEW,
    };
}

impl ReceivingEnd {
    /// Creates the state of a flow of which no data has arrived.
    pub(super) fn new() -> Self {
        Self { receiver: Receiver::default(), arrived_ps: u64::MAX }
    }

    /// Records an arrival of data of a flow of `bytes` bytes (`u64::MAX`: endless): sets the arrival time if the flow
    /// is complete by it, and returns `true` if so. Then call [`Deferred::note_arrived`].
    #[inline]
    #[must_use]
    pub(crate) fn note_arrival(&mut self, bytes: u64, now_ps: u64) -> bool {
        let is_whole = self.receiver.expected == bytes && self.arrived_ps == u64::MAX && bytes < u64::MAX;
        if is_whole {
            self.arrived_ps = now_ps;
        }
        is_whole
    }
}

/// Actions that transports requested, run in this order after they return.
#[derive(Default)]
pub(crate) struct Deferred {
    /// Notices to pass to controllers.
    notices: Vec<Notice>,
    /// Set when the allocator's conversation is to continue, after controllers have received their notices.
    pub(crate) is_to_follow_up: bool,
    /// Hosts whose NICs are to look for a packet to send.
    hosts: Vec<HostId>,
    /// Flows that have arrived as a whole, and flows to start now. Their hosts are in `hosts`, too.
    arrived: Vec<FlowId>,
    starts: Vec<FlowId>,
    /// Set if flows wait for the arrival of others.
    has_dependents: bool,
    /// Empty lists for reuse.
    spare_notices: Vec<Notice>,
    spare_hosts: Vec<HostId>,
}

impl Deferred {
    /// Requests that a notice be passed to its flow's controller.
    pub(crate) fn notify(&mut self, notice: Notice) {
        self.notices.push(notice);
    }

    /// Requests that the NIC of `host` look for a packet to send.
    pub(crate) fn look(&mut self, host: HostId) {
        self.hosts.push(host);
    }

    /// Requests that flows which wait for the arrival of flow `id` at `host` be told of it, if there are any.
    #[cold]
    pub(crate) fn note_arrived(&mut self, id: FlowId, host: HostId) {
        if self.has_dependents {
            self.arrived.push(id);
            self.look(host);
        }
    }

    /// Requests that flow `id`, which has waited for others, start now at `host`.
    pub(super) fn start(&mut self, id: FlowId, host: HostId) {
        self.starts.push(id);
        self.look(host);
    }

    fn take_notices(&mut self) -> Vec<Notice> {
        std::mem::replace(&mut self.notices, std::mem::take(&mut self.spare_notices))
    }

    fn take_hosts(&mut self) -> Vec<HostId> {
        std::mem::replace(&mut self.hosts, std::mem::take(&mut self.spare_hosts))
    }

    #[inline]
    fn are_none(&self) -> bool {
        self.notices.is_empty() && self.hosts.is_empty() && !self.is_to_follow_up
    }
}

impl Hosts {
    /// Creates hosts in their initial state.
    pub(super) fn new(
        run: &Run,
        (nics, sending, receiving): (Own<HostId, Nic>, Own<FlowId, SendingEnd>, Own<FlowId, ReceivingEnd>),
        starts: Vec<FlowId>,
        allocator: Option<Box<Allocator>>,
    ) -> Self {
        let weighted = weighted_classes(&run.config, run.constants.wire_mtu as u32);
        let waits = |id: &FlowId| run.config.flows[id.index()].trigger == Trigger::Dependencies;
        let dependents = Dependents::new(&run.config);
        let users = if dependents.is_some() { run.n_user_flows } else { 0 };
        let waiting = (0..users).map(FlowId).filter(|&id| sending.has(id)).filter(waits);
        let finite_left = starts.iter().copied().chain(waiting).filter(|&id| !run.flow(id).is_endless()).count() as u64;
        Self {
            messages: Messages::new(run, &nics),
            datagrams: Datagrams::new(run, &nics, &receiving),
            imperfect: ImperfectHosts::new(run, &nics),
            order: NicOrder::new(run.config.fabric.ties == TieRule::Insertion, weighted, &nics),
            nics,
            sending,
            receiving,
            senders: Table::default(),
            free_senders: Vec::new(),
            pickers: PathPickers::new(&run.config),
            connections: Connections::new(&run.config),
            queue_pairs: QueuePairs::default(),
            allocator,
            deferred: Deferred { has_dependents: dependents.is_some(), ..Deferred::default() },
            last_progress_ps: 0,
            starts,
            next_start: 0,
            active: 0,
            finite_left,
            header_scratch: vec![0.0; run.constants.header_words],
            convergence: Convergence::new(&run.config, run.constants.base_rtt),
            dependents,
            partners: partners(&run.config),
            disorder: DisorderBook::new(&run.config, run.flows.len()),
        }
    }

    /// Returns `true` if a host belongs to this part.
    #[inline]
    pub(crate) fn has(&self, host: HostId) -> bool {
        self.nics.has(host)
    }

    /// Returns the port of a host.
    #[inline]
    pub(super) fn port_of(&self, host: HostId) -> PortIdx {
        self.nics[host].port
    }

    /// Returns the other end points of the host that an end point is of, if flows of one may wait for flows of another;
    /// the first is none if there are none.
    #[inline]
    pub(super) fn partners_of(&self, host: HostId) -> [HostId; 2] {
        self.partners.get(host).copied().unwrap_or([HostId::NONE; 2])
    }

    /// Returns the time at which a host's NIC wakes up, in picoseconds; `u64::MAX`: it will not.
    #[inline]
    pub(super) fn wake_ps(&self, host: HostId) -> u64 {
        self.nics[host].wake_ps
    }

    /// Returns the sender in a slot that is in use.
    #[inline]
    pub(crate) fn sender(&self, slot: SenderIdx) -> &Sender {
        self.senders[slot].as_ref().expect("the slot is in use")
    }

    /// Returns the sender in a slot that is in use, to change it.
    #[inline]
    pub(crate) fn sender_mut(&mut self, slot: SenderIdx) -> &mut Sender {
        self.senders[slot].as_mut().expect("the slot is in use")
    }

    /// Returns the sender of a flow and its slot, if the flow is active.
    #[inline]
    pub(crate) fn sender_of(&mut self, flow: FlowId) -> Option<(SenderIdx, &mut Sender)> {
        let slot = self.sending[flow].sender;
        Some((slot, self.senders.get_mut(slot)?.as_mut()?))
    }

    /// Returns the controller of a sender.
    #[inline]
    pub(crate) fn controller(&mut self, slot: SenderIdx) -> ControllerRef<'_> {
        let sender = self.senders[slot].as_mut().expect("the slot is in use");
        self.connections.controller(sender)
    }

    /// Returns the rate of a host's link.
    #[inline]
    pub(crate) fn line_rate(&self, w: &World, host: HostId) -> Rate {
        w.run.queued_rates.get(host).copied().unwrap_or_else(|| self.filling_rate(&w.net, host))
    }

    /// Returns the rate at which a host sends into its link, or fills the queue before it.
    #[inline]
    fn filling_rate(&self, net: &Network, host: HostId) -> Rate {
        net.ports[self.nics[host].port].rate
    }

    /// Updates the NIC's record of the sender's open window and data to send.
    #[inline]
    pub(crate) fn refresh(&mut self, slot: SenderIdx) {
        let sender = self.senders[slot].as_ref().expect("the slot is in use");
        let entry = &mut self.nics[sender.host].flows[sender.nic_slot as usize];
        (entry.open, entry.has_data) = sender.outlook();
    }

    /// Gives a sender a slot and a position at its NIC.
    pub(crate) fn add_sender(&mut self, w: &World, mut sender: Sender) {
        let (id, config) = (sender.flow, &w.run.config);
        let flow = w.run.flow(id);
        let (host, class) = (flow.src_host, flow.class());
        sender.host = host;
        sender.transport = flow.transport;
        let rules = w.run.rules(flow.stack);
        (sender.stack, sender.room, sender.header) = (flow.stack, rules.room, rules.data_header as u16);
        let demand = config.flows[flow.parent.index()].demand;
        let is_paced = demand < self.line_rate(w, host);
        sender.fastest = if is_paced { demand } else { self.filling_rate(&w.net, host) };
        sender.nic_slot = self.nics[host].flows.len() as u32;
        let slot = self.free_senders.pop().unwrap_or_else(|| self.senders.push(None));
        self.senders[slot] = Some(sender);
        if let Some(pickers) = &mut self.pickers {
            let entropy = config.stack(flow.stack).0.entropy.expect("all hosts choose paths, or none");
            pickers.add(slot, id, entropy, || n_paths(&w.run, w.run.key_of(id)));
        }
        self.sending[id].sender = slot;
        let entry = NicFlow { next_send_ps: w.clock.now_ps, sender: slot, class, open: true, has_data: true };
        self.nics[host].flows.push(entry);
    }

    /// Removes a sender from its slot and its NIC.
    fn retire(&mut self, w: &World, slot: SenderIdx) {
        let sender = self.senders[slot].take().expect("the slot is in use");
        self.free_senders.push(slot);
        let end = &mut self.sending[sender.flow];
        (end.sender, end.tally) = (SenderIdx::NONE, sender.tally);
        let nic = &mut self.nics[sender.host];
        let next_ps = nic.flows[sender.nic_slot as usize].next_send_ps;
        if self.order.remove(nic, sender.host, sender.nic_slot as usize) {
            self.renumber(sender.host, sender.nic_slot as usize);
        }
        self.keep_controller(w, sender, next_ps);
    }

    /// Updates the positions stored in the senders of a NIC's flows from position `from` on.
    fn renumber(&mut self, host: HostId, from: usize) {
        for (at, entry) in self.nics[host].flows.iter().enumerate().skip(from).filter(|(_, f)| !f.sender.is_none()) {
            self.senders[entry.sender].as_mut().expect("an active flow has a sender").nic_slot = at as u32;
        }
    }

    /// Puts a packet into the queue of its class at a host's NIC.
    #[inline]
    pub(crate) fn enqueue(&self, w: &mut World, host: HostId, packet: PacketIdx) {
        let port = self.nics[host].port;
        w.report_queued(port, packet);
        w.net.ports[port].enqueue(&mut w.net.pool, packet);
    }

    /// Puts a control packet into the queue of its class at a host's NIC.
    pub(crate) fn enqueue_control(&mut self, w: &mut World, host: HostId, packet: PacketIdx) {
        w.observed.totals.control_bytes += u64::from(w.net.pool.get(packet).wire);
        self.show_agent(w, host, packet, Step::Enqueue);
        self.enqueue(w, host, packet);
    }

    /// Shows a packet to the agent of a host's port, if it has one.
    #[inline]
    fn show_agent(&mut self, w: &mut World, host: HostId, packet: PacketIdx, step: Step) {
        let port = self.nics[host].port;
        if w.agent_sees(port, packet, step) {
            self.do_as_agent_asks(w, host, port);
        }
    }

    /// Runs the actions that transports have requested.
    #[inline]
    pub(super) fn run_deferred(&mut self, w: &mut World) {
        if !self.deferred.are_none() {
            self.run_each_deferred(w);
        }
    }
}

/// Returns, for each end point, the others of the same host, or [`HostId::NONE`]; nothing if no flows of one wait for
/// flows of another.
fn partners(config: &SimConfig) -> Table<HostId, [HostId; 2]> {
    let topology = &config.topology;
    if !config.starts_across_ends() {
        return Table::default();
    }
    let numbers: HashMap<NodeId, HostId> = topology.end_points().zip((0..).map(HostId)).collect();
    let others = |end: NodeId| {
        let mut others = topology.ends_of(topology.nic(end)).filter(|&other| other != end).map(|other| numbers[&other]);
        [(); 2].map(|()| others.next().unwrap_or(HostId::NONE))
    };
    topology.end_points().map(others).collect()
}
