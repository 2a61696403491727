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
    /// Their telemetry records and header words, one packet's behind the other's: as much of each as a pool has for it. To copy
    /// only the records that there are would be a length that cannot be predicted.
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
        let (records, words) = (pool.records(packet), pool.header(packet));
        if !records.is_empty() {
            self.int.extend_from_slice(records);
        }
        if !words.is_empty() {
            self.headers.extend_from_slice(words);
        }
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
        for p in &self.packets {
            let packet = net.pool.take(*p);
            let records = net.pool.records_mut(packet);
            if !records.is_empty() {
                let (own, others) = int.split_at(records.len());
                records.copy_from_slice(own);
                int = others;
            }
            let words = net.pool.header_mut(packet);
            if !words.is_empty() {
                let (own, others) = headers.split_at(words.len());
                words.copy_from_slice(own);
                headers = others;
            }
            each(net, p.ingress, packet);
        }
        self.packets.clear();
        self.int.clear();
        self.headers.clear();
        (self.earliest_ps, self.has_come) = (None, false);
    }
}
