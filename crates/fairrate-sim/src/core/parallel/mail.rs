//! What crosses the border between two parts: packets, and what a line of the allocator carries.

use fairrate_control::IntHop;

use crate::core::network::Network;
use crate::packet::{Packet, PacketPool};
use crate::transport::LineNote;

/// Mail from one part to another, in the order of sending.
#[derive(Default)]
pub(crate) struct Mail {
    /// Packets, and the ports they have left; [`Packet::arrival_ps`] says when they arrive.
    packets: Vec<(u32, Packet)>,
    /// Their telemetry records and header words, one packet's behind the other's.
    int: Vec<IntHop>,
    headers: Vec<f64>,
    /// What is told of lines, by their numbers.
    pub(crate) notes: Vec<(u32, LineNote)>,
    /// The first arrival of a packet, in picoseconds.
    earliest_ps: Option<u64>,
}

impl Mail {
    /// Puts a packet in, with all it carries. It stays in `pool`.
    pub(crate) fn post(&mut self, pool: &PacketPool, port: u32, packet: u32, arrival_ps: u64, rank: u32) {
        let copy = Packet { arrival_ps, rank, ..*pool.get(packet) };
        self.packets.push((port, copy));
        self.int.extend_from_slice(pool.int(packet));
        self.headers.extend_from_slice(pool.header(packet));
        self.earliest_ps = Some(self.earliest_ps.map_or(arrival_ps, |earliest| earliest.min(arrival_ps)));
    }

    /// Gives all of it to the receiver, who has read all before.
    pub(crate) fn hand_over(&mut self, to: &mut Self) {
        debug_assert!(to.packets.is_empty() && to.notes.is_empty(), "mail is read before more comes");
        std::mem::swap(self, to);
    }

    /// When the first packet arrives, in picoseconds; `u64::MAX`: there is none.
    pub(crate) fn earliest_ps(&self) -> u64 {
        self.earliest_ps.unwrap_or(u64::MAX)
    }

    /// The packets.
    pub(crate) fn packets(&self) -> impl Iterator<Item = &Packet> {
        self.packets.iter().map(|(_, packet)| packet)
    }

    /// Takes all packets out into a network; `each` is told the port that each has left, and its place there.
    pub(crate) fn unpack(&mut self, net: &mut Network, mut each: impl FnMut(&mut Network, u32, u32)) {
        let (mut int, mut headers) = (&self.int[..], &self.headers[..]);
        for (port, packet) in self.packets.drain(..) {
            let pool = &mut net.pool;
            let id = pool.take(packet);
            let (records, others) = int.split_at(usize::from(packet.n_int));
            pool.set_int(id, records);
            let words = pool.header_mut(id);
            let (own, behind) = headers.split_at(words.len());
            words.copy_from_slice(own);
            (int, headers) = (others, behind);
            each(net, port, id);
        }
        self.int.clear();
        self.headers.clear();
        self.earliest_ps = None;
    }
}
