//! Prefetching of the data that coming events will read, for networks that do not fit the processor's nearer caches.
//!
//! In the largest networks the events of a bucket of the event list pass through stages, one stage for each bucket that
//! the clock reaches. Each stage reads only data that the stage before has fetched, so that many fetches are under way
//! at a time. The choice is a guess: other events may be processed first, and an unneeded fetch does no harm.

use std::collections::VecDeque;

use super::Part;
use super::host::Hosts;
use super::world::World;
use crate::engine::{Event, EventKind};
use crate::ids::{FlowId, HostId, PacketIdx, PortIdx, SenderIdx};
use crate::packet::PacketKind;
use crate::prefetch::Cache;

/// Number of ports from which a network does not fit the nearer caches, so that looking ahead pays: as measured, a
/// fat-tree of 432 hosts and 2,592 ports is slower with it, and one of 1,024 hosts and 6,144 ports is faster.
pub(super) const MANY_PORTS: usize = 4_096;
/// Number of ports from which flows and NICs do not fit either, and switches go in batches of spans: a network of 1,024
/// hosts is slower with that, and one of 8,192 hosts and 49,152 ports is faster.
const MORE_PORTS: usize = 16_384;
/// Number of end points from which the messages of a job do not fit: each host sends several at a time, packet by
/// packet in turn, and on 1,024 GPUs looking ahead for them pays.
const MANY_ENDS: usize = 1_024;
/// The cache for what is fetched in stages, which is more than the first level can have under way.
const CACHE: Cache = Cache::Second;
/// Number of stages.
const N_STAGES: usize = 5;

/// The data that is fetched before the events that read it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Depth {
    Nothing,
    /// Packets that arrive, and the ports by which they leave.
    Packets,
    /// That, and the ends of flows and NICs.
    Flows,
}

/// The coming events for which data is fetched.
pub(super) struct LookAhead {
    depth: Depth,
    /// `true` if switches go in batches of spans.
    pub(super) in_batches: bool,
    /// The events at each stage.
    groups: [Vec<Coming>; N_STAGES],
    /// Ends of the buckets whose events have entered and that the clock has not passed, in picoseconds.
    ends_ps: VecDeque<u64>,
}

/// A coming event, with what the stages have found out about it.
#[derive(Clone, Copy)]
struct Coming {
    kind: Kind,
    /// Arrivals: the port that the packet has left.
    port: PortIdx,
    /// Arrivals: the packet.
    packet: PacketIdx,
    /// The host at which it happens.
    host: HostId,
    /// The port of the host.
    egress: PortIdx,
    /// Acknowledgments: the flow.
    flow: FlowId,
    /// The sender that is acknowledged, or whose turn it is.
    sender: SenderIdx,
}

/// The kind of a coming event.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// The arrival of a packet anywhere.
    Arrival,
    /// The arrival of an acknowledgment at its host.
    Ack,
    /// The arrival of another packet at its host.
    Data,
    /// The wake-up of a NIC.
    Wake,
    /// An event for which nothing more is fetched.
    Other,
}

impl LookAhead {
    /// Returns what pays in a part with `n_ports` ports and `n_ends` end points, in a network of `n_ports_of_all`
    /// ports; `has_jobs` is set in runs of jobs. The nearer caches are the part's own, and the last one is of all
    /// parts.
    pub(super) fn new((n_ports, n_ports_of_all): (usize, usize), n_ends: usize, has_jobs: bool) -> Self {
        let in_batches = MORE_PORTS <= n_ports_of_all;
        let depth = if in_batches || has_jobs && MANY_ENDS <= n_ends {
            Depth::Flows
        } else if MANY_PORTS <= n_ports {
            Depth::Packets
        } else {
            Depth::Nothing
        };
        Self { depth, in_batches, groups: Default::default(), ends_ps: VecDeque::new() }
    }

    /// Returns all that there is, whether it pays or not.
    pub(super) fn everything() -> Self {
        Self::new((MORE_PORTS, MORE_PORTS), 0, false)
    }

    /// Moves all events to their next stages, and lets those of a later bucket enter. So few buckets are ahead that
    /// what is fetched is still in the caches when they come.
    #[inline(never)]
    fn step(&mut self, w: &World, hosts: &Hosts) {
        while self.ends_ps.front().is_some_and(|&end_ps| end_ps <= w.clock.now_ps) {
            self.ends_ps.pop_front();
        }
        self.groups.rotate_right(1);
        let [entering, first, second, third, fourth] = &mut self.groups;
        entering.clear();
        // Two buckets at most, so that a gap is made up for.
        for _ in 0..2 {
            let from_ps = self.ends_ps.back().copied().unwrap_or(0);
            if self.ends_ps.len() <= N_STAGES {
                let end_ps = w.clock.each_from(from_ps, |event| entering.extend(Coming::new(event, w, hosts)));
                if from_ps < end_ps {
                    self.ends_ps.push_back(end_ps);
                }
            }
        }
        for coming in first {
            coming.find_packet(w, hosts);
        }
        for coming in second {
            coming.find_end(w, hosts);
        }
        for coming in third {
            coming.find_sender(w, hosts);
        }
        for coming in fourth {
            coming.fetch_last(hosts);
        }
    }
}

/// Fetches the packets that arrive by events of the bucket that the clock has reached, the ports by which they leave,
/// and the ports of the next bucket's events. With fewer events and nearer caches, stages cost more than waiting.
#[inline(never)]
fn fetch_packets(w: &World) {
    let net = &w.net;
    let packet_of =
        |event: Event| (event.kind() == EventKind::Arrive).then(|| net.ports[PortIdx(event.entity())].next_to_arrive());
    w.clock.each_soon(|event| {
        if let Some(packet) = packet_of(event) {
            net.pool.prefetch(Cache::First, packet);
            net.pool.prefetch_records(Cache::First, packet);
        }
    });
    w.clock.each_soon(|event| {
        let is_passing = net.ports.get(PortIdx(event.entity())).is_some_and(|port| port.to_host().is_none());
        if let Some(p) = packet_of(event).filter(|_| is_passing).and_then(|packet| net.pool.peek(packet)) {
            fetch_port(Cache::First, w, net.paths.next_hop(p.route).port());
        }
    });
    w.clock.each_from(0, |event| {
        if event.is_of_port() {
            Cache::First.fetch(&net.ports[PortIdx(event.entity())]);
        }
    });
}

impl Coming {
    /// Fetches the port or NIC at which `event` happens; returns the event if more is to be fetched for it.
    fn new(event: Event, w: &World, hosts: &Hosts) -> Option<Self> {
        let none = Self {
            kind: Kind::Other,
            port: PortIdx::NONE,
            packet: PacketIdx::NONE,
            host: HostId::NONE,
            egress: PortIdx::NONE,
            flow: FlowId(0),
            sender: SenderIdx::NONE,
        };
        if event.kind() == EventKind::HostWake {
            let host = HostId(event.entity());
            CACHE.fetch(&hosts.nics[host]);
            return Some(Self { kind: Kind::Wake, host, ..none });
        }
        if event.is_of_port() {
            CACHE.fetch(&w.net.ports[PortIdx(event.entity())]);
        }
        let is_arrival = event.kind() == EventKind::Arrive;
        is_arrival.then(|| Self { kind: Kind::Arrival, port: PortIdx(event.entity()), ..none })
    }

    /// Finds the packet that arrives, and fetches it and the NIC of its host. For a wake-up, finds the host's port, and
    /// fetches it and the flow whose turn it is.
    fn find_packet(&mut self, w: &World, hosts: &Hosts) {
        match self.kind {
            Kind::Arrival => {
                let port = &w.net.ports[self.port];
                (self.packet, self.host) = (port.next_to_arrive(), port.to_host());
                w.net.pool.prefetch(CACHE, self.packet);
                w.net.pool.prefetch_records(CACHE, self.packet);
                if !self.host.is_none() {
                    CACHE.fetch(&hosts.nics[self.host]);
                }
            }
            Kind::Wake => {
                let nic = &hosts.nics[self.host];
                self.egress = nic.port;
                CACHE.fetch_place(nic.flows.as_ptr().wrapping_add(nic.turn));
                fetch_port(CACHE, w, self.egress);
            }
            _ => {}
        }
    }

    /// Fetches the port by which a packet leaves or, at its host, the end of its flow, the packet behind it, and the
    /// host's port. For a wake-up, finds and fetches the sender whose turn it is.
    fn find_end(&mut self, w: &World, hosts: &Hosts) {
        match self.kind {
            Kind::Arrival => {
                self.kind = Kind::Other;
                let Some(p) = w.net.pool.peek(self.packet) else { return };
                if self.host.is_none() {
                    fetch_port(CACHE, w, w.net.paths.next_hop(p.route).port());
                    return;
                }
                w.net.pool.prefetch(CACHE, p.next);
                self.egress = hosts.nics[self.host].port;
                fetch_port(CACHE, w, self.egress);
                if matches!(p.kind, PacketKind::Ack | PacketKind::Nack) {
                    if hosts.sending.has(p.flow) {
                        CACHE.fetch(&hosts.sending[p.flow]);
                        (self.kind, self.flow) = (Kind::Ack, p.flow);
                    }
                } else if hosts.receiving.has(p.flow) {
                    CACHE.fetch(&hosts.receiving[p.flow]);
                    // An acknowledgment does not read what is fixed of the flow.
                    CACHE.fetch(w.run.flow(p.flow));
                    self.kind = Kind::Data;
                }
            }
            Kind::Wake => {
                let nic = &hosts.nics[self.host];
                let Some(entry) = nic.flows.get(nic.turn).or_else(|| nic.flows.first()) else { return };
                self.sender = entry.sender;
                if let Some(sender) = hosts.senders.get(self.sender) {
                    CACHE.fetch_all(sender);
                }
            }
            _ => {}
        }
    }

    /// Finds and fetches the sender that is acknowledged, or the flow of the one whose turn it is; and what a packet
    /// reads that the host sends.
    fn find_sender(&mut self, w: &World, hosts: &Hosts) {
        if self.kind == Kind::Other {
            return;
        }
        if let Some(egress) = w.net.ports.get(self.egress) {
            egress.prefetch_around(CACHE, &w.net.pool);
            w.net.agenda.doors.prefetch(CACHE, egress.door_or_other());
        }
        if self.kind == Kind::Ack {
            self.sender = hosts.sending[self.flow].sender;
            if let Some(sender) = hosts.senders.get(self.sender) {
                CACHE.fetch_all(sender);
            }
        } else if let Some(Some(sender)) = hosts.senders.get(self.sender) {
            CACHE.fetch(w.run.flow(sender.flow));
        }
    }

    /// Fetches what a decision about an acknowledged flow reads besides its sender.
    fn fetch_last(&self, hosts: &Hosts) {
        if self.kind != Kind::Ack {
            return;
        }
        if let Some(Some(sender)) = hosts.senders.get(self.sender) {
            CACHE.fetch_place(hosts.nics[self.host].flows.as_ptr().wrapping_add(sender.nic_slot as usize));
            CACHE.fetch_slice(sender.controlled.last_telemetry());
        }
    }
}

/// Prefetches the two cache lines of a port that packets touch. There may be no such port.
fn fetch_port(cache: Cache, w: &World, port: PortIdx) {
    if let Some(port) = w.net.ports.get(port) {
        port.prefetch_queue(cache, 0);
        cache.fetch(port);
    }
}

impl Part {
    /// Fetches data for coming events, if the clock has reached another bucket of the event list.
    #[inline]
    pub(super) fn look_ahead(&mut self) {
        if self.ahead.depth != Depth::Nothing && self.world.clock.reaches_bucket() {
            if self.ahead.depth == Depth::Flows {
                self.ahead.step(&self.world, &self.hosts);
            } else {
                fetch_packets(&self.world);
            }
        }
    }
}
