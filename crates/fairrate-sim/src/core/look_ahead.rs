//! Prefetching of the data that coming events will read, for networks that do not fit the processor's nearer caches.
//!
//! Each stage reads only data that the stage before has fetched. The choice is a guess: other events may be processed
//! first, and an unneeded fetch does no harm.

use super::Part;
use crate::engine::{Event, EventKind};
use crate::fabric::Port;
use crate::ids::{HostId, PortIdx};
use crate::packet::{Packet, PacketKind};
use crate::prefetch::{prefetch, prefetch_all};

/// Number of ports from which a network does not fit the nearer caches, so that looking ahead pays: as measured, a
/// fat-tree of 432 hosts and 2,592 ports is slower with it, and one of 1,024 hosts and 6,144 ports is faster.
pub(super) const MANY_PORTS: usize = 4_096;
/// Number of ports from which flows and NICs do not fit either: a network of 1,024 hosts is slower if they are fetched,
/// and one of 8,192 hosts and 49,152 ports is faster.
const MORE_PORTS: usize = 16_384;

impl Part {
    /// Fetches the data that the events of the bucket that the clock has just reached will read.
    #[inline]
    pub(super) fn look_ahead(&mut self) {
        if MANY_PORTS <= self.world.net.ports.len() && self.world.clock.reaches_bucket() {
            self.fetch_ahead();
        }
    }

    #[inline(never)]
    fn fetch_ahead(&self) {
        let clock = &self.world.clock;
        clock.each_soon(|event| self.fetch_first(event));
        clock.each_soon(|event| self.fetch_second(event));
        if MORE_PORTS <= self.world.net.ports.len() {
            clock.each_soon(|event| self.fetch_third(event));
            clock.each_soon(|event| self.fetch_fourth(event));
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

    /// Fetches the port by which the packet leaves.
    fn fetch_second(&self, event: Event) {
        let net = &self.world.net;
        if let Some((port, p)) = self.arriving(event)
            && port.to_host().is_none()
            && let Some(egress) = net.ports.get(net.paths.next_hop(p.route).port())
        {
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
            prefetch(self.world.run.flow(p.flow));
            prefetch(&hosts.receiving[p.flow]);
        } else if hosts.sending.has(p.flow) {
            prefetch(&hosts.sending[p.flow]);
        }
    }

    /// Fetches the sender that is acknowledged, or the sender of the first flow of a NIC that wakes up.
    fn fetch_fourth(&self, event: Event) {
        let hosts = &self.hosts;
        let slot = if event.kind() == EventKind::HostWake {
            hosts.nics[HostId(event.entity())].flows.first().map(|first| first.sender)
        } else {
            let is_ack = |(port, p): &(&Port, &Packet)| {
                !port.to_host().is_none() && matches!(p.kind, PacketKind::Ack | PacketKind::Nack)
            };
            self.arriving(event).filter(is_ack).map(|(_, p)| hosts.sending[p.flow].sender)
        };
        if let Some(sender) = slot.and_then(|slot| hosts.senders.get(slot)) {
            prefetch_all(sender);
        }
    }
}
