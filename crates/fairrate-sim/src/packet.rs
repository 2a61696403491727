//! Packets, in a slab: a packet is a position in [`PacketPool`].

use fairrate_control::IntHop;

use crate::huge_pages;
use crate::ids::{FlowId, HopId, PacketIdx, PortId, PortIdx};
use crate::prefetch::Cache;
use crate::rng::mix64;
use crate::table::Table;

/// The kind of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketKind {
    /// Payload of a flow.
    Data,
    /// The header of a data packet whose payload a switch has cut off.
    Trimmed,
    /// Such a header on its way back to its sender, from a switch that had no room for it.
    Returned,
    /// Acknowledgment of a data packet.
    Ack,
    /// Acknowledgment that reports a gap.
    Nack,
    /// Congestion notification.
    Cnp,
    /// Credit that a receiver gives a sender.
    Credit,
    /// A report from a sender to its receiver that it is active, with the length of its message.
    Busy,
    /// A switch port's notice to a source.
    Notice,
    /// A flow's control packet on its way to the receiver.
    Control,
    /// A control packet on its way back.
    ControlBack,
    /// Pause of a class at the other end of one link.
    Pause,
    /// End of such a pause.
    Resume,
    /// Pause of a flow at the other end of one link.
    FlowPause,
    /// End of such a pause.
    FlowResume,
}

impl PacketKind {
    /// Returns `true` for a frame between the two ends of a link, which no switch buffers or forwards.
    #[inline]
    pub fn is_frame(self) -> bool {
        matches!(self, Self::Pause | Self::Resume | Self::FlowPause | Self::FlowResume)
    }
}

/// A pause of a class or a flow, or the end of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pausing {
    /// The start of a pause, also of one that holds.
    Pause,
    /// The end of a pause.
    Resume,
}

impl Pausing {
    /// Returns the request of a frame of `kind`.
    #[inline]
    pub fn of_frame(kind: PacketKind) -> Self {
        if matches!(kind, PacketKind::Pause | PacketKind::FlowPause) { Self::Pause } else { Self::Resume }
    }
    /// Returns `true` if it is a pause.
    #[inline]
    pub fn is_pause(self) -> bool {
        self == Self::Pause
    }
}

/// A packet: one cache line.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub struct Packet {
    /// Next packet of the list this one is in.
    pub next: PacketIdx,
    /// Flow that it belongs to or refers to. Pause and resume of a class: unused.
    pub flow: FlowId,
    /// Data: first payload byte. Acknowledgments: the byte expected next. HOMA's packets have other meanings.
    pub seq: u64,
    /// Acknowledgments: first payload byte of the data packet they answer.
    pub data_seq: u64,
    /// Data: time at which its transmission at the sender started, which acknowledgments return. In picoseconds.
    pub sent_ps: u64,
    /// On a wire: time at which it reaches the other end; under a queueing discipline: time at which it joined. In
    /// picoseconds.
    pub arrival_ps: u64,
    /// The window in force when the data packet was sent, saturated.
    pub cwnd_at_send: u32,
    /// Position of the next egress port in the table of paths; [`HopId::NONE`] for frames.
    pub route: HopId,
    /// The switch port at which it arrived, in the switch it is queued in.
    pub ingress: PortIdx,
    /// Payload bytes of the data packet; acknowledgments keep those of the packet they answer.
    pub payload: u16,
    /// Bytes on the wire.
    pub wire: u16,
    /// Data: the value by which its sender chose its path, which acknowledgments return.
    pub entropy: u16,
    /// Its kind.
    pub kind: PacketKind,
    /// Priority class, 0 first. Pause and resume: the class that is paused or resumed.
    pub class: u8,
    /// Flags: congestion experienced (ECN), which acknowledgments echo; window reduced (CWR); damaged; part of a
    /// handshake.
    pub flags: u8,
    /// Number of telemetry records it carries.
    pub n_int: u8,
    /// Data: the ports that switches chose for it, mixed, which acknowledgments return; zero on fixed paths.
    pub path: u16,
}

/// All packets that exist, with their telemetry in separate tables.
pub struct PacketPool {
    packets: Table<PacketIdx, Packet>,
    free: PacketIdx,
    /// Free places of packets that went to other parts, which come first for packets from there: unlike those of the
    /// list, they are known before they are needed.
    vacated: Vec<PacketIdx>,
    int: Vec<IntHop>,
    int_stride: usize,
    headers: Vec<f64>,
    header_stride: usize,
}

impl PacketPool {
    /// Returns an empty pool whose packets can carry `int_stride` telemetry records and `header_stride` header words.
    pub fn new(int_stride: usize, header_stride: usize) -> Self {
        Self {
            packets: Vec::with_capacity(1 << 12).into(),
            free: PacketIdx::NONE,
            vacated: Vec::new(),
            int: Vec::new(),
            int_stride,
            headers: Vec::new(),
            header_stride,
        }
    }

    /// Stores `packet` in a free place; returns its position.
    #[inline]
    pub fn take(&mut self, packet: Packet) -> PacketIdx {
        if self.free.is_none() {
            self.grow();
        }
        let at = self.free;
        let place = &mut self.packets[at];
        self.free = place.next;
        *place = packet;
        at
    }

    /// Adds a place to the list of free ones. It does not take the new packet as a parameter, which would then have to
    /// be in memory at every call of [`PacketPool::take`].
    #[cold]
    fn grow(&mut self) {
        if let Some(place) = self.vacated.pop() {
            self.packets[place].next = PacketIdx::NONE;
            self.free = place;
            return;
        }
        if self.packets.len() == self.packets.capacity() {
            let capacity = 2 * self.packets.capacity();
            self.packets.grow(capacity);
            huge_pages::grow(&mut self.int, capacity * self.int_stride);
        }
        self.free = self.packets.push(Packet::new(PacketKind::Data));
        self.int.resize(self.packets.len() * self.int_stride, IntHop::default());
        self.headers.resize(self.packets.len() * self.header_stride, 0.0);
    }

    /// Stores a copy of a packet with its telemetry and header words; returns its position.
    pub fn copy(&mut self, packet: PacketIdx) -> PacketIdx {
        let copy = self.take(*self.get(packet));
        let range = |of: PacketIdx, stride: usize| of.index() * stride..(of.index() + 1) * stride;
        self.int.copy_within(range(packet, self.int_stride), copy.index() * self.int_stride);
        self.headers.copy_within(range(packet, self.header_stride), copy.index() * self.header_stride);
        copy
    }

    /// Exchanges two packets, with their telemetry and header words, but not their places in lists.
    pub fn swap(&mut self, a: PacketIdx, b: PacketIdx) {
        let (first, second) = (*self.get(a), *self.get(b));
        self.packets[a] = Packet { next: first.next, ..second };
        self.packets[b] = Packet { next: second.next, ..first };
        let records = |i: usize| (a.index() * self.int_stride + i, b.index() * self.int_stride + i);
        for (x, y) in (0..self.int_stride).map(records) {
            self.int.swap(x, y);
        }
        let words = |i: usize| (a.index() * self.header_stride + i, b.index() * self.header_stride + i);
        for (x, y) in (0..self.header_stride).map(words) {
            self.headers.swap(x, y);
        }
    }

    /// Frees the place of a packet that goes to another part.
    pub fn vacate(&mut self, packet: PacketIdx) {
        self.vacated.push(packet);
    }

    /// Stores a packet from another part in a free place; returns its position.
    pub fn take_in(&mut self, packet: Packet) -> PacketIdx {
        match self.vacated.pop() {
            Some(place) => {
                self.packets[place] = packet;
                place
            }
            None => self.take(packet),
        }
    }

    /// Prefetches the place that [`PacketPool::take_in`] returns after `n` others, with that of its telemetry.
    pub fn prefetch_vacated(&self, cache: Cache, n: usize) {
        if let Some(&place) = self.vacated.iter().nth_back(n) {
            self.prefetch(cache, place);
            self.prefetch_records(cache, place);
        }
    }

    /// Frees the place of a packet.
    pub fn release(&mut self, packet: PacketIdx) {
        self.packets[packet].next = self.free;
        self.free = packet;
    }

    /// Returns a packet.
    #[inline]
    pub fn get(&self, packet: PacketIdx) -> &Packet {
        &self.packets[packet]
    }

    /// Prefetches a packet that will be read soon. It may be none or outdated.
    #[inline]
    pub fn prefetch(&self, cache: Cache, packet: PacketIdx) {
        self.packets.prefetch(cache, packet);
    }

    /// Prefetches the place of a packet's next telemetry record, which will be written soon.
    #[inline]
    pub fn prefetch_record(&self, cache: Cache, packet: PacketIdx, n_int: u8) {
        cache.fetch_place(self.int.as_ptr().wrapping_add(packet.index() * self.int_stride + usize::from(n_int)));
    }

    /// Prefetches the telemetry of a packet that will be read soon. There may be no packet of this number.
    #[inline]
    pub fn prefetch_records(&self, cache: Cache, packet: PacketIdx) {
        let start = packet.index() * self.int_stride;
        if let Some(records) = self.int.get(start..start + self.int_stride) {
            cache.fetch_slice(records);
        }
    }

    /// Returns a packet, if there is one of this number.
    #[inline]
    pub fn peek(&self, packet: PacketIdx) -> Option<&Packet> {
        self.packets.get(packet)
    }

    /// Returns the packets of the list that begins with `first`, which may be none.
    pub fn list(&self, first: PacketIdx) -> impl Iterator<Item = PacketIdx> + '_ {
        std::iter::successors(first.some(), |&packet| self.get(packet).next.some())
    }

    /// Returns a packet as mutable.
    #[inline]
    pub fn get_mut(&mut self, packet: PacketIdx) -> &mut Packet {
        &mut self.packets[packet]
    }

    /// Appends a telemetry record to a packet.
    #[inline]
    pub fn push_int(&mut self, packet: PacketIdx, hop: IntHop) {
        let n_int = &mut self.packets[packet].n_int;
        debug_assert!(usize::from(*n_int) < self.int_stride, "the pool is sized for the longest path");
        self.int[packet.index() * self.int_stride + usize::from(*n_int)] = hop;
        *n_int += 1;
    }

    /// Returns the place of a packet's telemetry records; entries after those that it carries are left over from
    /// earlier packets.
    #[inline]
    pub fn records(&self, packet: PacketIdx) -> &[IntHop] {
        let start = packet.index() * self.int_stride;
        &self.int[start..start + self.int_stride]
    }

    /// Returns the place of a packet's telemetry records as mutable.
    #[inline]
    pub fn records_mut(&mut self, packet: PacketIdx) -> &mut [IntHop] {
        let start = packet.index() * self.int_stride;
        &mut self.int[start..start + self.int_stride]
    }

    /// Returns the header words of a packet; until they are written they are left over from another packet.
    #[inline]
    pub fn header(&self, packet: PacketIdx) -> &[f64] {
        let start = packet.index() * self.header_stride;
        &self.headers[start..start + self.header_stride]
    }

    /// Returns the header words of a packet as mutable.
    #[inline]
    pub fn header_mut(&mut self, packet: PacketIdx) -> &mut [f64] {
        let start = packet.index() * self.header_stride;
        &mut self.headers[start..start + self.header_stride]
    }

    /// Returns the telemetry records that a packet carries.
    #[inline]
    pub fn int(&self, packet: PacketIdx) -> &[IntHop] {
        &self.records(packet)[..usize::from(self.packets[packet].n_int)]
    }
}

const MARKED: u8 = 1;
const REDUCED: u8 = 2;
const CORRUPT: u8 = 4;
const HANDSHAKE: u8 = 8;
const LAST_HOP: u8 = 16;

impl Packet {
    /// Returns `true` if it has experienced congestion; for an acknowledgment: if the packet it answers has.
    #[inline]
    pub fn is_marked(&self) -> bool {
        self.flags & MARKED != 0
    }
    /// Sets or clears the ECN mark.
    #[inline]
    pub fn set_marked(&mut self, marked: bool) {
        self.flags = if marked { self.flags | MARKED } else { self.flags & !MARKED };
    }
    /// Returns `true` if it signals that its sender has reduced its window.
    #[inline]
    pub fn is_reduced(&self) -> bool {
        self.flags & REDUCED != 0
    }
    /// Sets the signal that its sender has reduced its window.
    pub fn set_reduced(&mut self) {
        self.flags |= REDUCED;
    }
    /// Returns `true` if it belongs to the handshake of a connection, and not to its algorithm.
    pub fn is_handshake(&self) -> bool {
        self.flags & HANDSHAKE != 0
    }
    /// Marks it as part of a handshake.
    pub fn set_handshake(&mut self) {
        self.flags |= HANDSHAKE;
    }
    /// Returns `true` if its payload was cut off by the last switch on its way.
    pub fn is_last_hop(&self) -> bool {
        self.flags & LAST_HOP != 0
    }
    /// Notes that its payload was cut off by the last switch on its way.
    pub fn set_last_hop(&mut self) {
        self.flags |= LAST_HOP;
    }
    /// Returns `true` if it is damaged, so that its host will discard it.
    #[inline]
    pub fn is_corrupt(&self) -> bool {
        self.flags & CORRUPT != 0
    }
    /// Marks it as damaged.
    pub fn set_corrupt(&mut self) {
        self.flags |= CORRUPT;
    }
    /// Notes that a switch has chosen `port` for it. Answers keep the path of the data that they answer.
    pub fn note_choice(&mut self, port: PortId) {
        if self.kind == PacketKind::Data {
            self.path = self.path.rotate_left(3) ^ mix64(u64::from(port.0)) as u16;
        }
    }
    /// Returns a packet of kind `kind`, with all other fields zero.
    pub fn new(kind: PacketKind) -> Self {
        Self {
            next: PacketIdx::NONE,
            flow: FlowId(0),
            seq: 0,
            data_seq: 0,
            sent_ps: 0,
            arrival_ps: 0,
            cwnd_at_send: 0,
            route: HopId(0),
            ingress: PortIdx(0),
            payload: 0,
            wire: 0,
            entropy: 0,
            kind,
            class: 0,
            flags: 0,
            n_int: 0,
            path: 0,
        }
    }
}
