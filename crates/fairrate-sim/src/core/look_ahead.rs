//! Fetching what coming events will read, where a network does not fit the processor's nearer caches.
//!
//! Each stage reads only what the stage before has fetched. All of it is a guess: events may come before those that are
//! known, and a fetch too many does no harm.

use super::Part;
use crate::engine::{Event, EventKind};
use crate::ids::{HostId, PortIdx};
use crate::packet::PacketKind;
use crate::prefetch::{prefetch, prefetch_all};

/// A network with so many ports does not fit the nearer caches, so that looking ahead pays: as measured, a fat-tree of
/// 432 hosts and 2,592 ports loses by it, one of 1,024 hosts and 6,144 ports gains.
pub(super) const MANY_PORTS: usize = 4_096;
/// A network with so many has flows and NICs that do not fit either: one of 1,024 hosts loses by fetching them, one of 8,192
/// hosts and 49,152 ports gains.
const MORE_PORTS: usize = 16_384;

impl Part {
    /// Fetches what the events of the bucket that the clock has just reached will read.
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

    /// The packet that arrives.
    fn fetch_first(&self, event: Event) {
        if event.kind() == EventKind::Arrive {
            let net = &self.world.net;
            let packet = net.ports[PortIdx(event.entity())].next_to_arrive();
            net.pool.prefetch(packet);
            net.pool.prefetch_records(packet);
        }
    }

    /// The port by which the packet leaves.
    fn fetch_second(&self, event: Event) {
        let net = &self.world.net;
        if event.kind() == EventKind::Arrive
            && net.ports[PortIdx(event.entity())].to_host().is_none()
            && let Some(p) = net.pool.peek(net.ports[PortIdx(event.entity())].next_to_arrive())
            && let Some(egress) = net.paths.laid(p.route)
        {
            prefetch(&net.ports[egress]);
            prefetch(&net.ports[egress].queued_bytes);
        }
    }

    /// The ends of the flow of a packet that reaches its host, or the NIC that wakes.
    fn fetch_third(&self, event: Event) {
        let (net, hosts) = (&self.world.net, &self.hosts);
        match event.kind() {
            EventKind::Arrive => {
                let port = &net.ports[PortIdx(event.entity())];
                let Some(p) = net.pool.peek(port.next_to_arrive()) else { return };
                if port.to_host().is_none() {
                    return;
                }
                if p.kind == PacketKind::Data {
                    prefetch(self.world.run.flow(p.flow));
                    prefetch(&hosts.receiving[p.flow]);
                } else if hosts.sending.has(p.flow) {
                    prefetch(&hosts.sending[p.flow]);
                }
            }
            EventKind::HostWake => prefetch(&hosts.nics[HostId(event.entity())]),
            _ => {}
        }
    }

    /// The sender that is acknowledged, or of the first flow of a NIC.
    fn fetch_fourth(&self, event: Event) {
        let (net, hosts) = (&self.world.net, &self.hosts);
        let slot = match event.kind() {
            EventKind::Arrive => {
                let port = &net.ports[PortIdx(event.entity())];
                let Some(p) = net.pool.peek(port.next_to_arrive()) else { return };
                if port.to_host().is_none() || !matches!(p.kind, PacketKind::Ack | PacketKind::Nack) {
                    return;
                }
                hosts.sending[p.flow].sender
            }
            EventKind::HostWake => match hosts.nics[HostId(event.entity())].flows.first() {
                Some(first) => first.sender,
                None => return,
            },
            _ => return,
        };
        if let Some(sender) = hosts.senders.get(slot) {
            prefetch_all(sender);
        }
    }
}
