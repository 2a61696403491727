//! What crosses the border between two parts: packets, and what a line of the allocator carries.

use fairrate_control::IntHop;

use crate::core::network::Network;
use crate::ids::{LineId, PacketIdx, PortIdx};
use crate::packet::{Packet, PacketPool};
use crate::transport::LineNote;

/// Mail from one part to another, in the order of sending. Two parts that talk have one each: what one has read it fills
/// again, and then they exchange them.
#[derive(Default)]
pub(crate) struct Mail {
    /// Packets. [`Packet::ingress`] has the port that each has left, by its place in the receiving part, and
    /// [`Packet::arrival_ps`] when it arrives.
    packets: Vec<Packet>,
    /// Their telemetry records and header words, one packet's behind the other's.
    int: Vec<IntHop>,
    headers: Vec<f64>,
    /// What is told of lines, by their numbers.
    pub(crate) notes: Vec<(LineId, LineNote)>,
    /// The first arrival of a packet, in picoseconds.
    earliest_ps: Option<u64>,
    /// Whether it is at the receiver's, who has not read it.
    has_come: bool,
}

impl Mail {
    /// Puts a packet in, with all it carries. It stays in `pool`.
    pub(crate) fn post(&mut self, pool: &PacketPool, port: PortIdx, packet: PacketIdx, arrival_ps: u64, rank: u32) {
        self.packets.push(Packet { ingress: port, arrival_ps, rank, ..*pool.get(packet) });
        self.int.extend_from_slice(pool.int(packet));
        self.headers.extend_from_slice(pool.header(packet));
        self.earliest_ps = Some(self.earliest_ps.map_or(arrival_ps, |earliest| earliest.min(arrival_ps)));
    }

    /// Gives it to the receiver for what that one has for the sender.
    pub(crate) fn exchange(&mut self, other: &mut Self) {
        debug_assert!(!self.has_come && !other.has_come, "mail is read before more comes");
        std::mem::swap(self, other);
        (self.has_come, other.has_come) = (true, true);
    }

    /// Whether it has come and is to be read.
    pub(crate) fn has_come(&self) -> bool {
        self.has_come
    }

    /// When the first packet arrives, in picoseconds; `u64::MAX`: there is none.
    pub(crate) fn earliest_ps(&self) -> u64 {
        self.earliest_ps.unwrap_or(u64::MAX)
    }

    /// The packets.
    pub(crate) fn packets(&self) -> impl Iterator<Item = &Packet> {
        self.packets.iter()
    }

    /// Takes all packets out into a network; `each` is told the port that each has left, and its place there.
    pub(crate) fn unpack(&mut self, net: &mut Network, mut each: impl FnMut(&mut Network, PortIdx, PacketIdx)) {
        let (mut int, mut headers) = (&self.int[..], &self.headers[..]);
        for p in self.packets.drain(..) {
            let pool = &mut net.pool;
            let packet = pool.take(p);
            let (records, others) = int.split_at(usize::from(p.n_int));
            pool.set_int(packet, records);
            let words = pool.header_mut(packet);
            let (own, behind) = headers.split_at(words.len());
            words.copy_from_slice(own);
            (int, headers) = (others, behind);
            each(net, p.ingress, packet);
        }
        self.int.clear();
        self.headers.clear();
        (self.earliest_ps, self.has_come) = (None, false);
    }
}
