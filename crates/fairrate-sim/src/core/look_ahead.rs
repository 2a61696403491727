//! Prefetching of the data that coming events will read, for networks that do not fit the processor's nearer caches.
//!
//! Each stage reads only data that the stage before has fetched. The choice is a guess: other events may be processed
//! first, and an unneeded fetch does no harm.

use super::Part;
use crate::engine::{Event, EventKind};
use crate::fabric::Port;
use crate::ids::{HostId, PortIdx};
use crate::packet::{Packet, PacketKind};
use crate::prefetch::{prefetch, prefetch_all, prefetch_place};
use crate::transport::Sender;

/// Number of ports from which a network does not fit the nearer caches, so that looking ahead pays: as measured, a
/// fat-tree of 432 hosts and 2,592 ports is slower with it, and one of 1,024 hosts and 6,144 ports is faster.
pub(super) const MANY_PORTS: usize = 4_096;
/// Number of ports from which flows and NICs do not fit either: a network of 1,024 hosts is slower if they are fetched,
/// and one of 8,192 hosts and 49,152 ports is faster.
const MORE_PORTS: usize = 16_384;
/// Number of end points from which the messages of a job do not fit: each host sends several at a time, packet by packet
/// in turn, and on 1,024 GPUs looking ahead for them pays.
const MANY_ENDS: usize = 1_024;

/// The data that is fetched before the events that read it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Ahead {
    Nothing,
    /// Packets that arrive, and the ports by which they leave.
    Packets,
    /// That, and the ends of flows and NICs.
    Flows,
}

impl Ahead {
    /// Returns what pays in a part with `n_ports` ports and `n_ends` end points; `has_jobs` is set in runs of jobs.
    pub(super) fn of(n_ports: usize, n_ends: usize, has_jobs: bool) -> Self {
        if MORE_PORTS <= n_ports || has_jobs && MANY_ENDS <= n_ends {
            Self::Flows
        } else if MANY_PORTS <= n_ports {
            Self::Packets
        } else {
            Self::Nothing
        }
    }
}

impl Part {
    /// Fetches the data that the events of the bucket that the clock has just reached will read.
    #[inline]
    pub(super) fn look_ahead(&mut self) {
        if self.ahead != Ahead::Nothing && self.world.clock.reaches_bucket() {
            self.fetch_ahead();
        }
    }

    #[inline(never)]
    fn fetch_ahead(&self) {
        let clock = &self.world.clock;
        clock.each_soon(|event| self.fetch_first(event));
        clock.each_soon(|event| self.fetch_second(event));
        if self.ahead == Ahead::Flows {
            clock.each_soon(|event| self.fetch_third(event));
            clock.each_soon(|event| self.fetch_fourth(event));
            clock.each_soon(|event| self.fetch_fifth(event));
            clock.each_soon(|event| self.fetch_sixth(event));
        }
        clock.each_later(|event| {
            if event.is_of_port() {
                prefetch(&self.world.net.ports[PortIdx(event.entity())]);
            }
        });
    }

    /// Returns the port of an arrival event and the packet that arrives, if there is one; `None` for other events.
    fn arriving(&self, event: Event) -> Option<(&Port, &Packet)> {
        let net = &self.world.net;
        let port = (event.kind() == EventKind::Arrive).then(|| &net.ports[PortIdx(event.entity())])?;
        Some((port, net.pool.peek(port.next_to_arrive())?))
    }

    /// Fetches the packet that arrives.
    fn fetch_first(&self, event: Event) {
        if event.kind() == EventKind::Arrive {
            let net = &self.world.net;
            let packet = net.ports[PortIdx(event.entity())].next_to_arrive();
            net.pool.prefetch(packet);
            net.pool.prefetch_records(packet);
        }
    }

    /// Fetches the port by which the packet leaves; at its host, the packet behind it and the place of its flow in the
    /// host's tables.
    fn fetch_second(&self, event: Event) {
        let net = &self.world.net;
        let Some((port, p)) = self.arriving(event) else { return };
        if !port.to_host().is_none() {
            if self.ahead < Ahead::Flows {
                return;
            }
            net.pool.prefetch(p.next);
            if p.kind == PacketKind::Data {
                self.hosts.receiving.prefetch_place(p.flow);
            } else {
                self.hosts.sending.prefetch_place(p.flow);
            }
        } else if let Some(egress) = net.ports.get(net.paths.next_hop(p.route).port()) {
            prefetch(egress);
            prefetch(&egress.queued_bytes);
        }
    }

    /// Fetches the receiving or sending end of the flow of a packet that reaches its host, or the NIC that wakes up.
    fn fetch_third(&self, event: Event) {
        let hosts = &self.hosts;
        if event.kind() == EventKind::HostWake {
            prefetch(&hosts.nics[HostId(event.entity())]);
        }
        let Some((_, p)) = self.arriving(event).filter(|(port, _)| !port.to_host().is_none()) else { return };
        if p.kind == PacketKind::Data {
            // An acknowledgment does not read what is fixed of the flow.
            prefetch(self.world.run.flow(p.flow));
            if hosts.receiving.has(p.flow) {
                prefetch(&hosts.receiving[p.flow]);
            }
        } else if hosts.sending.has(p.flow) {
            prefetch(&hosts.sending[p.flow]);
        }
    }

    /// Fetches the sender that is acknowledged, or the place of the flow whose turn it is at a NIC that wakes up.
    fn fetch_fourth(&self, event: Event) {
        let hosts = &self.hosts;
        if event.kind() == EventKind::HostWake {
            let nic = &hosts.nics[HostId(event.entity())];
            prefetch_place(nic.flows.as_ptr().wrapping_add(nic.turn));
            return;
        }
        let is_ack = |(port, p): &(&Port, &Packet)| {
            let is_at_host = !port.to_host().is_none();
            is_at_host && matches!(p.kind, PacketKind::Ack | PacketKind::Nack) && hosts.sending.has(p.flow)
        };
        let slot = self.arriving(event).filter(is_ack).map(|(_, p)| hosts.sending[p.flow].sender);
        if let Some(sender) = slot.and_then(|slot| hosts.senders.get(slot)) {
            prefetch_all(sender);
        }
    }

    /// Fetches the sender of the flow whose turn it is at a NIC that wakes up.
    fn fetch_fifth(&self, event: Event) {
        if let Some(sender) = self.in_turn(event) {
            prefetch_all(sender);
        }
    }

    /// Fetches that flow.
    fn fetch_sixth(&self, event: Event) {
        if let Some(Some(sender)) = self.in_turn(event) {
            prefetch(self.world.run.flow(sender.flow));
        }
    }

    /// Returns the sender of the flow whose turn it is at a NIC that wakes up; `None` if there is none, or for other events.
    fn in_turn(&self, event: Event) -> Option<&Option<Sender>> {
        let nic = (event.kind() == EventKind::HostWake).then(|| &self.hosts.nics[HostId(event.entity())])?;
        let entry = nic.flows.get(nic.turn).or_else(|| nic.flows.first())?;
        self.hosts.senders.get(entry.sender)
    }
}
