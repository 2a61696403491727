//! Lists of packets.

use crate::packet::{NO_PACKET, Packet, PacketPool};

/// A first-in first-out list of packets, linked through the packets themselves.
#[derive(Clone, Copy, Debug)]
pub struct PacketFifo {
    head: u32,
    tail: u32,
}

impl PacketFifo {
    /// An empty list.
    pub const EMPTY: Self = Self { head: NO_PACKET, tail: NO_PACKET };

    /// Whether it holds nothing.
    pub fn is_empty(self) -> bool {
        self.head == NO_PACKET
    }
    /// The first packet, or [`NO_PACKET`].
    pub fn head(self) -> u32 {
        self.head
    }
    /// The last packet, if there is one.
    #[inline]
    pub fn tail(self) -> u32 {
        self.tail
    }
    /// Notes the last packet of a list whose other packets are known elsewhere.
    #[inline]
    pub fn set_tail(&mut self, packet: u32) {
        self.tail = packet;
    }
    /// Appends a packet.
    #[inline]
    pub fn push(&mut self, pool: &mut PacketPool, packet: u32) {
        pool.get_mut(packet).next = NO_PACKET;
        if self.head == NO_PACKET {
            self.head = packet;
        } else {
            pool.get_mut(self.tail).next = packet;
        }
        self.tail = packet;
    }
    /// Takes the first packet; the list must not be empty.
    #[inline]
    pub fn pop(&mut self, pool: &PacketPool) -> u32 {
        let packet = self.head;
        self.head = pool.get(packet).next;
        packet
    }

    /// Takes the last packet of those that `is_wanted`, if there is one.
    pub fn take_last(&mut self, pool: &mut PacketPool, is_wanted: impl Fn(&Packet) -> bool) -> Option<u32> {
        let (mut found, mut before, mut at) = (None, NO_PACKET, self.head);
        while at != NO_PACKET {
            if is_wanted(pool.get(at)) {
                found = Some((before, at));
            }
            (before, at) = (at, pool.get(at).next);
        }
        let (before, packet) = found?;
        let next = pool.get(packet).next;
        if before == NO_PACKET {
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
