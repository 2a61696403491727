//! The state of a run, and who handles which event.

mod agents;
mod allocator;
mod artifact;
mod build;
mod bursts;
mod cluster;
mod convergence;
mod crew;
mod deadlock;
mod faults;
mod flows;
mod hosts;
mod mail;
mod mptcp;
mod nics;
mod partition;
mod paths;
mod probes;
mod queues;
mod stall;
mod switches;
mod tcp;
mod told;

use std::sync::Arc;

use fairrate_control::{IntCounter, IntFormat};
use fairrate_units::Time;

use self::agents::Agents;
use self::allocator::Allocator;
pub(crate) use self::build::framing;
pub(crate) use self::cluster::Cluster;
use self::cluster::Parts;
use self::convergence::Convergence;
pub(crate) use self::convergence::{demand_bps, solver_of};
use self::mail::Mail;
use self::mptcp::Connections;
use self::told::Story;
use crate::config::SimConfig;
use crate::engine::{Event, EventKind, EventList};
use crate::fabric::{Faults, Marker, Mmu, Port, Verdicts};
use crate::ideal::Framing;
use crate::mrg32k3a::AutomaticStreams;
use crate::output::RunTotals;
use crate::packet::{PacketKind, PacketPool};
use crate::prefetch::prefetch;
use crate::routing::Routes;
use crate::transport::{Nic, Receiver, Sender, Tally};

/// What is fixed for a run and needed all the time, in plain numbers.
#[derive(Clone)]
struct Constants {
    framing: Framing,
    mtu: u64,
    data_header: u64,
    ack_wire: u16,
    cnp_wire: u16,
    control_wire: Option<u16>,
    control_class: u8,
    reaction_ps: u64,
    header_words: usize,
    pfc_wire: u16,
    ack_class: u8,
    nack_interval_ps: u64,
    cnp_interval_ps: Option<u64>,
    rto_ps: u64,
    /// Retransmission timeout of TCP if the algorithm wants losses to be found by nothing else.
    fixed_rto: Option<Time>,
    whole_ns: bool,
    repace: bool,
    pacing_credit: u64,
    first_ack_only_stored: bool,
    int: Option<(IntCounter, IntFormat)>,
    base_rtt: Time,
}

/// One flow for the whole run: where it goes, and, in the part of its receiver, what has arrived, in that of its sender,
/// who sends it while it is active.
#[derive(Clone)]
struct FlowState {
    /// The user's flow it is: itself, or the connection of a subflow.
    spec: u32,
    /// Which of the connection's subflows it is.
    subflow: u8,
    src_host: u32,
    dst_host: u32,
    /// Payload bytes; `u64::MAX` while endless.
    bytes: u64,
    endless: bool,
    start_ps: u64,
    class: u8,
    n_hops: u8,
    /// Where the data path's second port stands in the table of paths (the first is the NIC's own).
    data_route: u32,
    /// The same for acknowledgments.
    ack_route: u32,
    /// Where the way back of notices begins: the data path in reverse. Only if ports have agents.
    notice_route: u32,
    /// The flow that starts some time after this one, or [`NO_FLOW`], and that time.
    successor: u32,
    successor_delay_ps: u64,
    sender: u32,
    receiver: Receiver,
    /// When the last payload byte reached the receiver, in picoseconds, and how long after the start it was acknowledged;
    /// `u64::MAX`: it has not been.
    arrived_ps: u64,
    fct_ack_ps: u64,
    /// When its handshake was over, that of a connection's first subflow, in picoseconds; `u64::MAX`: it is not, or there is
    /// none.
    connected_ps: u64,
    /// What its sender had been through when it went.
    tally: Tally,
    has_started: bool,
    over: bool,
}

/// No flow.
const NO_FLOW: u32 = u32::MAX;

/// Ranks of simultaneous events: all zero, or (for ns-3's order of ties) the order of scheduling.
struct Ranks {
    by_insertion: bool,
    next: u32,
    /// Rank of the event being processed.
    current: u32,
}

impl Ranks {
    /// A rank for what is scheduled now.
    #[inline]
    fn take(&mut self) -> u32 {
        self.next = self.next.wrapping_add(u32::from(self.by_insertion));
        if self.by_insertion { self.next } else { 0 }
    }

    /// The rank of flow starts. The drivers of ns-3's RDMA stack start a flow by a chain of events without
    /// delay, so that it comes after all that was scheduled for its time.
    fn of_flow_start(&self) -> u32 {
        if self.by_insertion { u32::MAX } else { 0 }
    }
}

/// A network with so many ports does not fit the nearer caches, so that looking ahead pays: as measured, a fat-tree of
/// 432 hosts and 2,592 ports loses by it, one of 1,024 hosts and 6,144 ports gains.
const MANY_PORTS: usize = 4_096;

/// A part of a network: the whole of it, or some of its nodes, whose events this has. Of the vectors that have an entry
/// for everything in the network, it uses those of its own nodes.
pub(crate) struct Core {
    config: Arc<SimConfig>,
    constants: Constants,
    /// Which part this is, and those of all nodes.
    part: u16,
    parts: Arc<Parts>,
    /// Mail for the other parts, and mail from them.
    outbox: Vec<Mail>,
    inbox: Vec<Mail>,
    routes: Arc<Routes>,
    now_ps: u64,
    events: EventList,
    ranks: Ranks,
    pool: PacketPool,
    ports: Vec<Port>,
    markers: Vec<Option<Marker>>,
    /// What all markers draw from, if not each from its own stream.
    shared_draws: Option<Box<AutomaticStreams>>,
    mmu: Mmu,
    /// Whether any port has an agent or a queueing discipline.
    special_ports: bool,
    /// What a queueing discipline has just decided.
    verdicts: Verdicts,
    /// What is wrong with links, if anything is.
    faults: Option<Box<Faults>>,
    agents: Agents,
    nics: Vec<Nic>,
    /// The user's flows, then the subflows of each.
    flows: Vec<FlowState>,
    connections: Connections,
    /// How many of the flows are the user's: the first ones.
    n_user_flows: u32,
    /// The central allocator and the conversation with it.
    allocator: Option<Box<Allocator>>,
    /// Flows that start here at their time, in order.
    starts: Vec<u32>,
    next_start: usize,
    senders: Vec<Option<Sender>>,
    free_senders: Vec<u32>,
    active: u64,
    finite_left: u64,
    /// The egress ports of all paths.
    paths: Arc<[u32]>,
    header_scratch: Vec<f64>,
    last_progress_ps: u64,
    /// How rates settle, if somebody wants to know.
    convergence: Option<Box<Convergence>>,
    /// What there is to tell, and whether round-trip times are.
    story: Story,
    tells_rtts: bool,
    totals: RunTotals,
}

impl Core {
    /// Simulated time.
    fn now(&self) -> Time {
        Time::from_ps(self.now_ps)
    }

    /// Totals so far.
    fn totals(&self) -> RunTotals {
        let mut totals = self.totals;
        totals.in_flight_bytes = self.data_bytes_in_network();
        totals.peak_buffer_bytes = self.mmu.peak();
        // One that waits for another to end, or for rates to converge, and has not started is none.
        let is_finite = |&id: &u32| !self.flows[id as usize].endless;
        totals.flows_unfinished = self.unfinished().iter().filter(|id| is_finite(id)).count() as u64;
        totals.reordering = self.connections.all_reordering();
        totals.allocator = self.allocator.as_ref().map_or_else(Default::default, |allocator| allocator.totals);
        assert!(self.payload_here() <= totals.delivered_bytes, "payload comes in packets");
        totals
    }

    /// Payload that receivers of this part have, each byte counted once.
    fn payload_here(&self) -> u64 {
        let flows = &self.flows[..self.n_user_flows as usize];
        flows.iter().filter(|flow| self.has_host(flow.dst_host)).map(|flow| flow.receiver.expected).sum()
    }

    /// Packets serialised so far, and flows done.
    fn progress(&self) -> (u64, u64) {
        (self.totals.packet_hops, self.totals.flows_done)
    }

    fn data_bytes_in_network(&self) -> u64 {
        let queued = self.ports.iter().flat_map(|port| port.contents(&self.pool));
        let late = self.faults.iter().flat_map(|faults| faults.late_packets());
        let here = queued.chain(late).map(|p| self.pool.get(p));
        let coming = self.inbox.iter().flat_map(Mail::packets);
        here.chain(coming).filter(|p| p.kind == PacketKind::Data).map(|p| u64::from(p.wire)).sum()
    }

    /// Whether all that this part has to do is done.
    fn is_done(&self) -> bool {
        self.finite_left == 0 && self.next_start == self.starts.len() && self.changes_are_done()
    }

    /// When something happens next, in picoseconds; `u64::MAX`: nothing will.
    fn next_ps(&self) -> u64 {
        let coming = self.inbox.iter().map(Mail::earliest_ps).min().unwrap_or(u64::MAX);
        self.events.next_ps().unwrap_or(u64::MAX).min(coming)
    }

    /// Processes up to `max_events` events before `until_ps`. Whether there is none left, and how many they were.
    ///
    /// What happens to most packets is one function: calls alone were a tenth of its instructions.
    fn run(&mut self, until_ps: u64, max_events: u64) -> (bool, u64) {
        self.read_mail();
        for n in 0..max_events {
            let Some(event) = self.events.pop_before(until_ps) else {
                self.totals.events += n;
                return (true, n);
            };
            debug_assert!(self.now_ps <= event.time_ps, "time never runs backward");
            self.now_ps = event.time_ps;
            self.ranks.current = event.rank;
            self.totals.fingerprint = self.totals.fingerprint.wrapping_add(event.print());
            self.handle(event);
            self.story.mark(event);
        }
        self.totals.events += max_events;
        (false, max_events)
    }

    #[allow(clippy::inline_always)] // See `Core::run`.
    #[inline(always)]
    fn handle(&mut self, event: Event) {
        let entity = event.entity();
        match event.kind() {
            EventKind::Arrive => self.on_arrive(entity),
            EventKind::TxDone => self.on_tx_done(entity),
            EventKind::HostWake => self.on_host_wake(entity, event.rank),
            EventKind::Reaction => self.on_reaction(entity),
            EventKind::PortTimer => self.on_port_timer(entity),
            EventKind::FlowTimer => self.on_flow_timer(entity),
            EventKind::Rto => self.on_rto(entity),
            EventKind::AckTimer => self.on_ack_timer(entity),
            EventKind::FlowStart => self.on_flow_start(entity),
            EventKind::FlowStop => self.on_flow_stop(entity),
            EventKind::Settled => self.on_settled(),
            EventKind::ArriveLate => self.on_arrive_late(entity),
            EventKind::Flap => self.on_flap(entity),
            EventKind::Allocate => self.on_allocate(entity),
            EventKind::Burst => self.on_burst(entity),
            EventKind::Probe => unreachable!("probes sample between epochs"),
        }
    }

    /// Whether a host belongs to this part.
    #[inline]
    fn has_host(&self, host: u32) -> bool {
        self.parts.of_host(host) == usize::from(self.part)
    }

    /// The parts of a flow's sender and receiver.
    fn parts_of_flow(&self, id: u32) -> (usize, usize) {
        let flow = &self.flows[id as usize];
        (self.parts.of_host(flow.src_host), self.parts.of_host(flow.dst_host))
    }

    /// Mail for another part.
    fn mail_for(&mut self, part: usize) -> &mut Mail {
        let mail = &mut self.outbox[part];
        if let Some(allocator) = &mut self.allocator {
            mail.notes.extend(allocator.notes_for(part as u16));
        }
        mail
    }

    /// Mail from another part.
    fn mail_from(&mut self, part: usize) -> &mut Mail {
        &mut self.inbox[part]
    }

    /// Puts packets from other parts onto the wires they come by, and takes note of the rest.
    fn read_mail(&mut self) {
        for mail in &mut self.inbox {
            let (ports, events) = (&mut self.ports, &mut self.events);
            mail.unpack(&mut self.pool, |pool, port, packet| {
                let (arrival_ps, rank) = (pool.get(packet).arrival_ps, pool.get(packet).rank);
                if ports[port as usize].launch(pool, packet, arrival_ps, rank).is_some() {
                    events.push(Event::new(arrival_ps, EventKind::Arrive, port).ranked(rank));
                }
            });
            if let Some(allocator) = &mut self.allocator {
                mail.notes.drain(..).for_each(|(line, note)| allocator.take_note(line, note));
            }
        }
    }

    fn schedule(&mut self, time_ps: u64, kind: EventKind, entity: u32) {
        let rank = self.ranks.take();
        self.events.push(Event::new(time_ps, kind, entity).ranked(rank));
    }

    /// Fetches what coming events will read: packets that arrive soon, and the ports of those that arrive later. Entities
    /// that are no ports do no harm.
    #[inline]
    fn look_ahead(&mut self) {
        if MANY_PORTS <= self.ports.len() {
            self.fetch_ahead();
        }
    }

    #[inline(never)]
    fn fetch_ahead(&mut self) {
        let (ports, pool, paths) = (&self.ports, &self.pool, &self.paths);
        let last = ports.len() - 1;
        let port_of = |port: u32| &ports[(port as usize).min(last)];
        self.events.look_ahead(
            |port| pool.prefetch(port_of(port).next_to_arrive()),
            |port| {
                let route = pool.route(port_of(port).next_to_arrive());
                if let Some(&egress) = paths.get(route as usize) {
                    prefetch(port_of(egress));
                    prefetch(&port_of(egress).queued_bytes);
                }
            },
            |port| prefetch(port_of(port)),
        );
    }
}
