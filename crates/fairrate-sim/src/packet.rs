//! Packets, in a slab: a packet is a position in [`PacketPool`].

use fairrate_control::IntHop;

use crate::huge_pages;
use crate::ids::{FlowId, HopId, PacketIdx, PortIdx};
use crate::prefetch::{prefetch, prefetch_place};
use crate::table::Table;

/// What a packet is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketKind {
    /// Payload of a flow.
    Data,
    /// Acknowledges a data packet.
    Ack,
    /// Acknowledges, and reports a gap.
    Nack,
    /// Congestion notification.
    Cnp,
    /// A sender's sign of life to its receiver, with the length of its message.
    Busy,
    /// A switch port's notice to a source.
    Notice,
    /// A flow's control packet on its way to the receiver.
    Control,
    /// The same on its way back.
    ControlBack,
    /// Stops a class at the other end of one link.
    Pause,
    /// Lets it send again.
    Resume,
    /// Stops a flow at the other end of one link.
    FlowPause,
    /// Lets it send again.
    FlowResume,
}

impl PacketKind {
    /// Whether it is a frame between the two ends of a link, which no switch buffers or forwards.
    #[inline]
    pub fn is_frame(self) -> bool {
        matches!(self, Self::Pause | Self::Resume | Self::FlowPause | Self::FlowResume)
    }
}

/// A packet: one cache line.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub struct Packet {
    /// Next packet of the list this one is in.
    pub next: PacketIdx,
    /// Flow it belongs to, or is about. Pause and resume of a class: unused.
    pub flow: FlowId,
    /// Data: first payload byte. Acknowledgments: the byte expected next. HOMA's have other meanings.
    pub seq: u64,
    /// Acknowledgments: first payload byte of the data packet they answer.
    pub data_seq: u64,
    /// Data: when its transmission at the sender started; acknowledgments carry it back. In picoseconds.
    pub sent_ps: u64,
    /// While on a wire: when it reaches the other end; under a queueing discipline: when it joined. In picoseconds.
    pub arrival_ps: u64,
    /// The window in force when the data packet was sent, saturated.
    pub cwnd_at_send: u32,
    /// While on a wire: rank of its arrival among the events of that time.
    pub rank: u32,
    /// Where in the table of paths the next egress port stands; of frames [`HopId::NONE`].
    pub route: HopId,
    /// The switch port it came in by, in the switch it is queued in.
    pub ingress: PortIdx,
    /// Payload bytes of the data packet; acknowledgments keep those of the packet they answer.
    pub payload: u16,
    /// Bytes on the wire.
    pub wire: u16,
    /// What it is.
    pub kind: PacketKind,
    /// Priority class, 0 first. Pause and resume: the class they are about.
    pub class: u8,
    /// Congestion experienced (ECN), which acknowledgments echo; window reduced (CWR); damaged; and of a handshake.
    pub flags: u8,
    /// Telemetry records it carries.
    pub n_int: u8,
}

/// All packets that exist, and their telemetry beside them.
pub struct PacketPool {
    packets: Table<PacketIdx, Packet>,
    free: PacketIdx,
    int: Vec<IntHop>,
    int_stride: usize,
    headers: Vec<f64>,
    header_stride: usize,
}

impl PacketPool {
    /// An empty pool whose packets can carry `int_stride` telemetry records and `header_stride` header words.
    pub fn new(int_stride: usize, header_stride: usize) -> Self {
        Self {
            packets: Vec::with_capacity(1 << 12).into(),
            free: PacketIdx::NONE,
            int: Vec::new(),
            int_stride,
            headers: Vec::new(),
            header_stride,
        }
    }

    /// Takes a packet.
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

    /// Makes room for a packet more than ever before. It does not take that packet, which otherwise would have to be in memory
    /// for every call of [`PacketPool::take`].
    #[cold]
    fn grow(&mut self) {
        let before = self.packets.capacity();
        self.free = self.packets.push(Packet::new(PacketKind::Data));
        let capacity = self.packets.capacity();
        if capacity != before {
            huge_pages::ask_for(&self.packets, capacity);
            self.int.reserve_exact(capacity * self.int_stride - self.int.len());
            huge_pages::ask_for(&self.int, self.int.capacity());
        }
        self.int.resize(self.packets.len() * self.int_stride, IntHop::default());
        self.headers.resize(self.packets.len() * self.header_stride, 0.0);
    }

    /// Takes a packet that is equal to another one, with all it carries.
    pub fn copy(&mut self, packet: PacketIdx) -> PacketIdx {
        let copy = self.take(*self.get(packet));
        let range = |of: PacketIdx, stride: usize| of.index() * stride..(of.index() + 1) * stride;
        self.int.copy_within(range(packet, self.int_stride), copy.index() * self.int_stride);
        self.headers.copy_within(range(packet, self.header_stride), copy.index() * self.header_stride);
        copy
    }

    /// Gives a packet back.
    pub fn release(&mut self, packet: PacketIdx) {
        self.packets[packet].next = self.free;
        self.free = packet;
    }

    /// A packet.
    #[inline]
    pub fn get(&self, packet: PacketIdx) -> &Packet {
        &self.packets[packet]
    }

    /// Fetches a packet that will be read soon. It may be none or outdated.
    #[inline]
    pub fn prefetch(&self, packet: PacketIdx) {
        self.packets.prefetch(packet);
    }

    /// Fetches the place of a packet's next telemetry record, which will be written soon.
    #[inline]
    pub fn prefetch_record(&self, packet: PacketIdx, n_int: u8) {
        prefetch_place(self.int.as_ptr().wrapping_add(packet.index() * self.int_stride + usize::from(n_int)));
    }

    /// Fetches the telemetry of a packet that will be read soon. There may be none of this number.
    #[inline]
    pub fn prefetch_records(&self, packet: PacketIdx) {
        let start = packet.index() * self.int_stride;
        if let Some([first, .., last]) = self.int.get(start..start + self.int_stride) {
            prefetch(first);
            prefetch(last);
        }
    }

    /// A packet, if there is one of this number.
    #[inline]
    pub fn peek(&self, packet: PacketIdx) -> Option<&Packet> {
        self.packets.get(packet)
    }

    /// The packets of the list that begins with `first`, which may be none.
    pub fn list(&self, first: PacketIdx) -> impl Iterator<Item = PacketIdx> + '_ {
        std::iter::successors(first.some(), |&packet| self.get(packet).next.some())
    }

    /// A packet, to change it.
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

    /// The place of a packet's telemetry records, with what is left over behind those that it carries.
    #[inline]
    pub fn records(&self, packet: PacketIdx) -> &[IntHop] {
        let start = packet.index() * self.int_stride;
        &self.int[start..start + self.int_stride]
    }

    /// The same, to write.
    #[inline]
    pub fn records_mut(&mut self, packet: PacketIdx) -> &mut [IntHop] {
        let start = packet.index() * self.int_stride;
        &mut self.int[start..start + self.int_stride]
    }

    /// The header words a packet carries; left over from another packet until they are written.
    #[inline]
    pub fn header(&self, packet: PacketIdx) -> &[f64] {
        let start = packet.index() * self.header_stride;
        &self.headers[start..start + self.header_stride]
    }

    /// The same, to write.
    #[inline]
    pub fn header_mut(&mut self, packet: PacketIdx) -> &mut [f64] {
        let start = packet.index() * self.header_stride;
        &mut self.headers[start..start + self.header_stride]
    }

    /// The telemetry a packet carries.
    #[inline]
    pub fn int(&self, packet: PacketIdx) -> &[IntHop] {
        &self.records(packet)[..usize::from(self.packets[packet].n_int)]
    }
}

const MARKED: u8 = 1;
const REDUCED: u8 = 2;
const CORRUPT: u8 = 4;
const HANDSHAKE: u8 = 8;

impl Packet {
    /// Whether it has experienced congestion; of an acknowledgment: the packet it answers.
    #[inline]
    pub fn is_marked(&self) -> bool {
        self.flags & MARKED != 0
    }
    /// Marks it, or not.
    #[inline]
    pub fn set_marked(&mut self, marked: bool) {
        self.flags = if marked { self.flags | MARKED } else { self.flags & !MARKED };
    }
    /// Whether it tells that its sender has reduced its window.
    #[inline]
    pub fn is_reduced(&self) -> bool {
        self.flags & REDUCED != 0
    }
    /// Lets it tell that.
    pub fn set_reduced(&mut self) {
        self.flags |= REDUCED;
    }
    /// Whether it belongs to the handshake of a connection, and not to its algorithm.
    pub fn is_handshake(&self) -> bool {
        self.flags & HANDSHAKE != 0
    }
    /// Lets it belong to that.
    pub fn set_handshake(&mut self) {
        self.flags |= HANDSHAKE;
    }
    /// Whether its host will discard it.
    #[inline]
    pub fn is_corrupt(&self) -> bool {
        self.flags & CORRUPT != 0
    }
    /// Damages it.
    pub fn set_corrupt(&mut self) {
        self.flags |= CORRUPT;
    }
    /// A packet of a kind, all else zero.
    pub fn new(kind: PacketKind) -> Self {
        Self {
            next: PacketIdx::NONE,
            flow: FlowId(0),
            seq: 0,
            data_seq: 0,
            sent_ps: 0,
            arrival_ps: 0,
            cwnd_at_send: 0,
            rank: 0,
            route: HopId(0),
            ingress: PortIdx(0),
            payload: 0,
            wire: 0,
            kind,
            class: 0,
            flags: 0,
            n_int: 0,
        }
    }
}
