//! Lists of packets.

use crate::ids::PacketIdx;
use crate::packet::{Packet, PacketPool};
use crate::prefetch::Cache;

/// A first-in first-out list of packets, linked through the packets themselves.
#[derive(Clone, Copy, Debug)]
pub struct PacketFifo {
    head: PacketIdx,
    tail: PacketIdx,
}

impl PacketFifo {
    /// An empty list.
    pub const EMPTY: Self = Self { head: PacketIdx::NONE, tail: PacketIdx::NONE };

    /// Returns `true` if the list is empty.
    pub fn is_empty(self) -> bool {
        self.head.is_none()
    }
    /// Returns the first packet, or [`PacketIdx::NONE`].
    pub fn head(self) -> PacketIdx {
        self.head
    }
    /// Returns the last packet, if there is one.
    #[inline]
    pub fn tail(self) -> PacketIdx {
        self.tail
    }
    /// Sets the last packet of a list whose other packets are linked elsewhere.
    #[inline]
    pub fn set_tail(&mut self, packet: PacketIdx) {
        self.tail = packet;
    }
    /// Appends a packet.
    #[inline(always)] // A call costs as much as its body.
    pub fn push(&mut self, pool: &mut PacketPool, packet: PacketIdx) {
        pool.get_mut(packet).next = PacketIdx::NONE;
        if self.head.is_none() {
            self.head = packet;
        } else {
            pool.get_mut(self.tail).next = packet;
        }
        self.tail = packet;
    }
    /// Takes the first packet; the list must not be empty.
    #[inline]
    pub fn pop(&mut self, pool: &PacketPool) -> PacketIdx {
        let packet = self.head;
        self.head = pool.get(packet).next;
        pool.prefetch(Cache::First, self.head);
        packet
    }

    /// Takes the last packet for which `is_wanted` is true, if there is one.
    pub fn take_last(&mut self, pool: &mut PacketPool, is_wanted: impl Fn(&Packet) -> bool) -> Option<PacketIdx> {
        let (mut found, mut before, mut at) = (None, PacketIdx::NONE, self.head);
        while !at.is_none() {
            if is_wanted(pool.get(at)) {
                found = Some((before, at));
            }
            (before, at) = (at, pool.get(at).next);
        }
        let (before, packet) = found?;
        let next = pool.get(packet).next;
        if before.is_none() {
            self.head = next;
        } else {
            pool.get_mut(before).next = next;
        }
        if self.tail == packet {
            self.tail = before;
        }
        Some(packet)
    }
}
