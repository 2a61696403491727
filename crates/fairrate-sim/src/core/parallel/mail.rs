//! The mail between two parts: packets, and messages about lines of the allocator.

use fairrate_control::IntHop;

use crate::core::network::Network;
use crate::ids::{LineId, PacketIdx, PortIdx};
use crate::packet::{Packet, PacketPool};
use crate::transport::LineNote;

/// Mail from one part to another, in the order of sending. Each of two connected parts has a `Mail` for the other:
/// after reading it the part fills it again, and then the two parts exchange them.
#[derive(Default)]
pub(crate) struct Mail {
    /// The packets. [`Packet::ingress`] is the port that the packet has left, as an index in the receiving part, and
    /// [`Packet::arrival_ps`] its arrival time.
    packets: Vec<Packet>,
    /// Their telemetry records and header words, packet after packet: all the records and words that a pool reserves
    /// for a packet. To copy only the records in use would mean a length that cannot be predicted.
    int: Vec<IntHop>,
    headers: Vec<f64>,
    /// Messages about lines, by line number.
    pub(crate) notes: Vec<(LineId, LineNote)>,
    /// The earliest arrival of a packet, in picoseconds.
    earliest_ps: Option<u64>,
    /// Set while the mail is at its receiver and has not been read.
    has_come: bool,
}

impl Mail {
    /// Adds a packet with all that it carries. The packet stays in `pool`.
    pub(crate) fn post(&mut self, pool: &PacketPool, port: PortIdx, packet: PacketIdx, arrival_ps: u64) {
        self.packets.push(Packet { ingress: port, arrival_ps, ..*pool.get(packet) });
        let (records, words) = (pool.records(packet), pool.header(packet));
        if !records.is_empty() {
            self.int.extend_from_slice(records);
        }
        if !words.is_empty() {
            self.headers.extend_from_slice(words);
        }
        self.earliest_ps = Some(self.earliest_ps.map_or(arrival_ps, |earliest| earliest.min(arrival_ps)));
    }

    /// Exchanges this mail with `other`, the mail in the opposite direction.
    pub(crate) fn exchange(&mut self, other: &mut Self) {
        debug_assert!(!self.has_come && !other.has_come, "mail is read before more comes");
        std::mem::swap(self, other);
        (self.has_come, other.has_come) = (true, true);
    }

    /// Returns `true` if the mail has been delivered and not been read.
    pub(crate) fn has_come(&self) -> bool {
        self.has_come
    }

    /// Returns the earliest arrival of a packet in picoseconds; `u64::MAX`: there is no packet.
    pub(crate) fn earliest_ps(&self) -> u64 {
        self.earliest_ps.unwrap_or(u64::MAX)
    }

    /// Returns the packets.
    pub(crate) fn packets(&self) -> impl Iterator<Item = &Packet> {
        self.packets.iter()
    }

    /// Moves all packets into a network; calls `each` with the port that the packet has left and its index in the
    /// network's pool.
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
