//! The mail between two parts: packets, and messages about lines of the allocator.

use std::sync::{Mutex, MutexGuard};

use fairrate_control::IntHop;

use crate::core::network::Network;
use crate::ids::{LineId, PacketIdx, PortIdx};
use crate::packet::{Packet, PacketPool};
use crate::prefetch::Cache;
use crate::transport::LineNote;

/// Numbers of packets by which [`Mail::unpack`] fetches ahead: the port and the place of a packet, and then what the
/// port leads to.
const AHEAD: [usize; 2] = [16, 8];

/// Mail from one part to another, in the order of sending.
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

    /// Returns `true` if there is nothing in the mail.
    fn is_empty(&self) -> bool {
        self.packets.is_empty() && self.notes.is_empty()
    }

    /// Moves all of this mail behind that of `other`.
    fn join(&mut self, other: &mut Self) {
        if other.is_empty() {
            std::mem::swap(self, other);
            return;
        }
        other.packets.append(&mut self.packets);
        other.int.append(&mut self.int);
        other.headers.append(&mut self.headers);
        other.notes.append(&mut self.notes);
        other.earliest_ps = other.earliest_ps.into_iter().chain(self.earliest_ps.take()).min();
    }

    /// Returns the earliest arrival of a packet in picoseconds; `u64::MAX`: there is no packet.
    pub(crate) fn earliest_ps(&self) -> u64 {
        self.earliest_ps.unwrap_or(u64::MAX)
    }

    /// Returns the packets, in order.
    pub(crate) fn packets(&self) -> impl Iterator<Item = &Packet> {
        self.packets.iter()
    }

    /// Moves all packets into a network; calls `each` with the port that the packet has left and its index in the
    /// network's pool.
    pub(crate) fn unpack(&mut self, net: &mut Network, mut each: impl FnMut(&mut Network, PortIdx, PacketIdx)) {
        let (mut int, mut headers) = (&self.int[..], &self.headers[..]);
        for (i, p) in self.packets.iter().enumerate() {
            net.pool.prefetch_vacated(Cache::First, AHEAD[0]);
            if let Some(later) = self.packets.get(i + AHEAD[0]) {
                Cache::First.fetch(&net.ports[later.ingress]);
            }
            if let Some(later) = self.packets.get(i + AHEAD[1]) {
                net.prefetch_wire(Cache::First, later.ingress);
            }
            let packet = net.pool.take_in(*p);
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
        self.earliest_ps = None;
    }
}

/// The boxes in which parts put mail for each other: one for each part and each sender to it.
///
/// A part puts mail into its receivers' boxes when its round ends, and empties its own when a round begins. A sender
/// may be a round ahead of a receiver. That does no harm, because no packet arrives before the window in which it was
/// sent ends.
pub(crate) struct PostOffice {
    n_parts: usize,
    /// By receiver and sender.
    boxes: Vec<Mutex<Mail>>,
}

impl PostOffice {
    /// Creates the boxes of `n_parts` parts.
    pub(crate) fn new(n_parts: usize) -> Self {
        Self { n_parts, boxes: (0..n_parts * n_parts).map(|_| Mutex::default()).collect() }
    }

    /// Returns the boxes of part number `to`.
    pub(crate) fn boxes(&self, to: usize) -> impl Iterator<Item = MutexGuard<'_, Mail>> {
        self.boxes[to * self.n_parts..][..self.n_parts].iter().map(open)
    }

    /// Puts `mail` into the box for mail from part `from` to part `to`, and leaves it empty.
    pub(crate) fn put(&self, from: usize, to: usize, mail: &mut Mail) {
        if !mail.is_empty() {
            mail.join(&mut open(&self.boxes[to * self.n_parts + from]));
        }
    }

    /// Empties the boxes of part number `to`: calls `read`, which empties a mail, with each one in turn. Each box gets
    /// the memory of the one before, and the first one that of `spare`, which is empty.
    pub(crate) fn empty(&self, to: usize, spare: &mut Mail, mut read: impl FnMut(&mut Mail)) {
        for mut full in self.boxes(to) {
            if !full.is_empty() {
                std::mem::swap(spare, &mut full);
                drop(full);
                read(spare);
            }
        }
    }
}

fn open(mail: &Mutex<Mail>) -> MutexGuard<'_, Mail> {
    mail.lock().expect("nothing panics with a box open")
}
