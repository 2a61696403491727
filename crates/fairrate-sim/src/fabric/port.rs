mod special;

use std::mem::offset_of;

use fairrate_control::PortRate;
use fairrate_units::{Bytes, Rate};

use super::discipline::Discipline;
use super::flow_queues::FlowQueues;
use super::packet_fifo::PacketFifo;
use super::weighted::WeightedClasses;
use crate::config::ClockRule;
use crate::ids::{DoorIdx, HostId, PacketIdx, SwitchIdx};
use crate::packet::{Packet, PacketKind, PacketPool};
use crate::prefetch::Cache;

/// Classes; without weights they are served by strict priority, 0 first.
pub const N_CLASSES: usize = 8;

/// Number of waiting frames from which a pause and a resume of the same class cancel each other: both of every class.
pub const MOST_FRAMES: u32 = 2 * N_CLASSES as u32;
/// Flag in `far_end`: the other end is a door (ingress port) of a switch that works in spans.
const DOOR: u32 = 1 << 31;
/// Value of `crossing` for a wire within a part.
const NO_CROSSING: u32 = u32::MAX;

/// Waiting packets of one class, and their bytes.
#[derive(Clone, Copy, Debug)]
struct ClassQueue {
    list: PacketFifo,
    /// Bytes of all packets of the class, in any queue.
    bytes: u32,
}

/// An egress port: eight class queues, a transmitter and the wire behind it. The fields that every packet touches come
/// first, in one cache line; then the fields that waiting packets touch.
#[repr(C, align(64))]
pub struct Port {
    /// Time at which the transmitter is free again, in picoseconds.
    pub busy_until_ps: u64,
    /// Propagation delay in picoseconds.
    pub delay_ps: u64,
    /// Bytes handed to the wire so far.
    pub tx_bytes: u64,
    /// Transmission time of a byte in picoseconds, if that is a whole number, the clock is exact and frames take only
    /// their own bytes; else 0.
    ps_per_byte: u32,
    wire: PacketFifo,
    /// Host at the other end; with [`DOOR`], the door of the switch there; or [`HostId::NONE`].
    far_end: u32,
    /// Host this port belongs to, or [`HostId::NONE`].
    pub of_host: HostId,
    /// Switch this port belongs to, or [`SwitchIdx::NONE`].
    pub of_switch: SwitchIdx,
    /// The port's capacity as telemetry carries it.
    pub int_rate: PortRate,
    /// Index of the wire among the part's wires to other parts, or [`NO_CROSSING`].
    crossing: u32,
    /// Bit c: class c has packets that may be sent, apart from those of flows that the other end has paused.
    backlog: u8,
    /// Bit c: class c may not send. While the link is down, all bits; otherwise the classes that the other end has
    /// paused.
    pub paused: u8,
    /// Bit c: the other end has paused class c.
    pfc: u8,
    /// Set while a `TxDone` event is pending.
    pub tx_done_pending: bool,
    /// Set if a class has physical queues, a discipline or a weight.
    is_special: bool,
    is_down: bool,
    clock: ClockRule,
    /// Bytes waiting, all classes.
    pub queued_bytes: u64,
    /// If switches work in spans: the port's bit in the agenda, set while a `TxDone` is due.
    pub due_bit: u32,
    /// Shortest queue of a class at which the port's ECN marker has a say; `u32::MAX` without a marker.
    pub mark_from: u32,
    /// The queues; those of classes 0 to 3 are in the same cache line.
    queues: [ClassQueue; N_CLASSES],
    /// Bytes that joined the queues and were not sent by this port, less bytes that it sent and that did not join:
    /// modulo 2^64.
    joined_but_unsent: u64,
    /// Capacity of the port.
    pub rate: Rate,
    /// Bytes that every frame takes on the wire besides its own, such as preamble and gap.
    frame_overhead: Bytes,
    /// Physical queues of each class, if flows are spread over physical queues.
    flow_queues: Option<Box<[FlowQueues; N_CLASSES]>>,
    /// Disciplines of the classes that have one.
    disciplines: Option<Box<[Option<Discipline>; N_CLASSES]>>,
    /// The classes with weights, if there are any.
    weighted: Option<Box<WeightedClasses>>,
    /// Packets dropped at this port.
    pub drops: u64,
    /// Packets marked at this port.
    pub ecn_marks: u64,
    pause_since_ps: u64,
    pause_total_ps: u64,
}

// The two cache lines of the fields that come first.
const _: () = assert!(offset_of!(Port, queued_bytes) == 64);
const _: () = assert!(offset_of!(Port, queues) + 4 * size_of::<ClassQueue>() <= 128);

impl Port {
    /// Creates an idle port whose frames take `frame_overhead` bytes on the wire besides their own.
    pub fn new(rate: Rate, delay_ps: u64, clock: ClockRule, frame_overhead: Bytes) -> Self {
        let mut port = Self {
            busy_until_ps: 0,
            rate,
            ps_per_byte: 0,
            frame_overhead,
            clock,
            delay_ps,
            queued_bytes: 0,
            tx_bytes: 0,
            joined_but_unsent: 0,
            due_bit: 0,
            mark_from: u32::MAX,
            far_end: HostId::NONE.0,
            of_host: HostId::NONE,
            of_switch: SwitchIdx::NONE,
            crossing: NO_CROSSING,
            int_rate: PortRate::new(rate),
            backlog: 0,
            paused: 0,
            pfc: 0,
            is_down: false,
            tx_done_pending: false,
            wire: PacketFifo::EMPTY,
            queues: [ClassQueue { list: PacketFifo::EMPTY, bytes: 0 }; N_CLASSES],
            is_special: false,
            flow_queues: None,
            disciplines: None,
            weighted: None,
            drops: 0,
            ecn_marks: 0,
            pause_since_ps: 0,
            pause_total_ps: 0,
        };
        port.set_rate(rate);
        port
    }

    /// Sets the rate of the transmissions that begin from now on.
    pub fn set_rate(&mut self, rate: Rate) {
        let exact = self.clock == ClockRule::Picoseconds
            && self.frame_overhead == Bytes::ZERO
            && rate.as_bps() > 0
            && 8_000_000_000_000u64.is_multiple_of(rate.as_bps());
        self.ps_per_byte = if exact { u32::try_from(8_000_000_000_000 / rate.as_bps()).unwrap_or(0) } else { 0 };
        (self.rate, self.int_rate) = (rate, PortRate::new(rate));
    }

    /// Sets the host that the port leads to.
    pub fn set_to_host(&mut self, host: HostId) {
        self.far_end = host.0;
    }

    /// Sets the switch door that the port leads to.
    pub fn set_door(&mut self, door: DoorIdx) {
        self.far_end = DOOR | door.0;
    }

    /// Marks the wire as leading to another part, with index `crossing` among the part's wires that do.
    pub fn set_crossing(&mut self, crossing: u32) {
        self.crossing = crossing;
    }

    /// Returns the index of this wire among the part's wires to other parts, if it leads to another part.
    #[inline]
    pub fn crossing(&self) -> Option<u32> {
        (self.crossing != NO_CROSSING).then_some(self.crossing)
    }

    /// Returns the host at the other end, or [`HostId::NONE`].
    #[inline]
    pub fn to_host(&self) -> HostId {
        if self.far_end < DOOR { HostId(self.far_end) } else { HostId::NONE }
    }

    /// Returns the door at the other end, if there is one.
    #[inline]
    pub fn door(&self) -> Option<DoorIdx> {
        (DOOR <= self.far_end && self.far_end != HostId::NONE.0).then_some(DoorIdx(self.far_end & !DOOR))
    }

    /// Returns the door at the other end or, if there is none, an arbitrary number that a door may have.
    #[inline]
    pub fn door_or_other(&self) -> DoorIdx {
        DoorIdx(self.far_end & !DOOR)
    }

    /// Returns the packet that was put onto the wire last, if the wire leads to a door.
    #[inline]
    pub fn last_on_wire(&self) -> PacketIdx {
        self.wire.tail()
    }

    /// Records the packet that was put last onto a wire that leads to a door.
    #[inline]
    pub fn set_last_on_wire(&mut self, packet: PacketIdx) {
        self.wire.set_tail(packet);
    }

    /// Returns the transmission time of a frame of `wire` bytes at this port, in picoseconds.
    #[inline]
    pub fn tx_ps(&self, wire: u16) -> u64 {
        if self.ps_per_byte > 0 {
            return u64::from(wire) * u64::from(self.ps_per_byte);
        }
        tx_time_ps(self.rate, u64::from(wire) + self.frame_overhead.as_u64(), self.clock)
    }

    /// Puts a packet into the queue of its class.
    #[inline(always)]
    pub fn enqueue(&mut self, pool: &mut PacketPool, packet: PacketIdx) {
        let class = self.count_in(pool, packet);
        self.backlog |= 1 << class;
        self.queues[class].list.push(pool, packet);
        if self.is_special {
            self.note_waiting(class);
        }
    }

    /// Returns the bytes of `class` that wait.
    #[inline]
    pub fn class_bytes(&self, class: u8) -> u32 {
        self.queues[usize::from(class) % N_CLASSES].bytes
    }

    /// Puts `packet` into the place of the last packet of its class, which must have one; `packet` then is that one.
    pub fn swap_last(&mut self, pool: &mut PacketPool, packet: PacketIdx) {
        let queue = &mut self.queues[usize::from(pool.get(packet).class)];
        let last = queue.list.tail();
        let (new, old) = (u32::from(pool.get(packet).wire), u32::from(pool.get(last).wire));
        queue.bytes = queue.bytes - old + new;
        self.queued_bytes = self.queued_bytes - u64::from(old) + u64::from(new);
        self.left_unsent(old as u16);
        pool.swap(packet, last);
    }

    /// Prefetches the queue of `class` into the cache.
    #[inline]
    pub fn prefetch_queue(&self, cache: Cache, class: u8) {
        cache.fetch(&self.queued_bytes);
        cache.fetch(&self.queues[usize::from(class) % N_CLASSES]);
    }

    /// Prefetches the packets that are written or read when the port sends: the last one on the wire, and the one that
    /// waits first.
    #[inline]
    pub fn prefetch_around(&self, cache: Cache, pool: &PacketPool) {
        pool.prefetch(cache, self.last_on_wire());
        if self.can_send() {
            pool.prefetch(cache, self.first_waiting());
        }
    }

    /// Returns the last packet ahead of a new one of `class`: the queue's tail or, if the queue is empty, the packet
    /// sent last.
    #[inline]
    pub fn last_ahead(&self, class: u8) -> PacketIdx {
        let class = usize::from(class) % N_CLASSES;
        // Selected before it is read, as queues are in a cache line of their own, and without a branch.
        let list = if self.backlog >> class & 1 == 0 { &self.wire } else { &self.queues[class].list };
        list.tail()
    }

    /// Returns `true` if a packet of `class` that joined now would be the only one here and could be sent first.
    #[inline]
    pub fn is_clear(&self, class: u8) -> bool {
        self.backlog | u8::from(self.is_special | self.tx_done_pending) | self.paused >> class & 1 == 0
    }

    /// Counts a packet that joins a queue of its class, and returns the class.
    #[inline(always)]
    fn count_in(&mut self, pool: &PacketPool, packet: PacketIdx) -> usize {
        let p = pool.get(packet);
        let (class, wire) = (p.class as usize, p.wire);
        self.queued_bytes += u64::from(wire);
        self.queues[class].bytes += u32::from(wire);
        class
    }

    /// Puts a frame into the queue of class 0, regardless of the packet's class field, which names the class that a
    /// pause frame refers to. Frames do not count among the bytes that have joined.
    pub fn enqueue_frame(&mut self, pool: &mut PacketPool, packet: PacketIdx) {
        self.will_send_unqueued(pool.get(packet).wire);
        self.queued_bytes += u64::from(pool.get(packet).wire);
        self.queues[0].bytes += u32::from(pool.get(packet).wire);
        self.backlog |= 1;
        self.queues[0].list.push(pool, packet);
    }

    /// Takes a frame out of the queue of [`Port::enqueue_frame`], if the first packet there is a frame. It will not be
    /// sent.
    pub fn take_frame(&mut self, pool: &PacketPool) -> Option<PacketIdx> {
        // Without PFC the class may be that of data.
        if self.queues[0].list.is_empty() || !pool.get(self.queues[0].list.head()).kind.is_frame() {
            return None;
        }
        let frame = self.queues[0].list.pop(pool);
        Some(self.count_frame_out(pool, frame))
    }

    /// Takes the last waiting frame that pauses or resumes `class`, if there is one. It will not be sent.
    pub fn cancel_pause(&mut self, pool: &mut PacketPool, class: u8) -> Option<PacketIdx> {
        let is_wanted = |p: &Packet| p.class == class && matches!(p.kind, PacketKind::Pause | PacketKind::Resume);
        let frame = self.queues[0].list.take_last(pool, is_wanted)?;
        Some(self.count_frame_out(pool, frame))
    }

    /// Counts a frame that leaves its queue and will not be sent, and returns it.
    fn count_frame_out(&mut self, pool: &PacketPool, frame: PacketIdx) -> PacketIdx {
        self.refresh_backlog(0);
        self.left_unsent(pool.get(frame).wire);
        self.count_out(pool, 0, frame)
    }

    /// Returns `true` if a class that may send has packets.
    #[inline]
    pub fn can_send(&self) -> bool {
        self.backlog & !self.paused != 0
    }

    /// Returns the packet that [`Port::dequeue`] would take, if no class is special; [`Port::can_send`] must hold.
    #[inline]
    pub fn first_waiting(&self) -> PacketIdx {
        self.queues[(self.backlog & !self.paused).trailing_zeros() as usize].list.head()
    }

    /// Takes the next packet by strict priority or by weights, within a class before those in physical queues;
    /// [`Port::can_send`] must hold.
    #[inline(always)] // Left alone, the compiler calls it for every packet: 3 % of all instructions.
    pub fn dequeue(&mut self, pool: &PacketPool) -> PacketIdx {
        if self.is_special {
            return self.dequeue_special(pool);
        }
        let class = (self.backlog & !self.paused).trailing_zeros() as usize;
        let queue = &mut self.queues[class];
        let packet = queue.list.pop(pool);
        let wire = u32::from(pool.get(packet).wire);
        queue.bytes -= wire;
        self.queued_bytes -= u64::from(wire);
        self.backlog ^= u8::from(queue.list.is_empty()) << class;
        packet
    }

    /// Counts a packet of `wire` bytes that leaves a queue and will not be sent by this port.
    pub fn left_unsent(&mut self, wire: u16) {
        self.joined_but_unsent = self.joined_but_unsent.wrapping_add(u64::from(wire));
    }

    /// Counts a packet of `wire` bytes that this port will send though it did not join its queues, or is not counted
    /// there.
    pub fn will_send_unqueued(&mut self, wire: u16) {
        self.joined_but_unsent = self.joined_but_unsent.wrapping_sub(u64::from(wire));
    }

    /// Returns the bytes that have joined the queues so far, given that `queued_bytes` wait and a packet of `wire`
    /// bytes is between queue and transmitter.
    #[inline]
    pub fn joined_bytes(&self, queued_bytes: u64, wire: u16) -> u64 {
        (self.tx_bytes + queued_bytes + u64::from(wire)).wrapping_add(self.joined_but_unsent)
    }

    /// Returns `true` if packets wait, including packets that may not be sent now.
    pub fn has_waiting(&self) -> bool {
        self.backlog != 0
    }

    /// Counts a packet that leaves a queue of `class`, and returns it.
    #[inline]
    fn count_out(&mut self, pool: &PacketPool, class: usize, packet: PacketIdx) -> PacketIdx {
        let wire = pool.get(packet).wire;
        self.queued_bytes -= u64::from(wire);
        self.queues[class].bytes -= u32::from(wire);
        packet
    }

    /// Occupies the transmitter for `wire` bytes from `now_ps` on; returns their arrival time at the other end, in
    /// picoseconds.
    #[inline]
    pub fn serialise(&mut self, wire: u16, now_ps: u64) -> u64 {
        self.busy_until_ps = now_ps + self.tx_ps(wire);
        self.tx_bytes += u64::from(wire);
        self.busy_until_ps + self.delay_ps
    }

    /// Puts a packet onto the wire, behind the last one; `arrival` must not be before that one's. Returns its arrival
    /// time if it is the only packet on the wire.
    #[inline(always)]
    pub fn launch(&mut self, pool: &mut PacketPool, packet: PacketIdx, arrival: u64) -> Option<u64> {
        pool.get_mut(packet).arrival_ps = arrival;
        let first = self.wire.is_empty();
        self.wire.push(pool, packet);
        first.then_some(arrival)
    }

    /// Takes the packet that has reached the other end; returns it with the arrival time of the next one, if any, and
    /// that one.
    #[inline]
    pub fn arrive(&mut self, pool: &PacketPool) -> (PacketIdx, Option<(u64, PacketIdx)>) {
        let packet = self.wire.pop(pool);
        let next = self.wire.head();
        (packet, (!self.wire.is_empty()).then(|| (pool.get(next).arrival_ps, next)))
    }

    /// Returns the packet at the head of the wire, if there is one.
    #[inline]
    pub fn next_to_arrive(&self) -> PacketIdx {
        self.wire.head()
    }

    /// Returns `true` if the packet at the head of the wire arrives now. It may not, if the packet that an event was
    /// scheduled for has been lost.
    pub fn is_due(&self, pool: &PacketPool, now_ps: u64) -> bool {
        !self.wire.is_empty() && pool.get(self.wire.head()).arrival_ps == now_ps
    }

    /// Takes the link down, or up again.
    pub fn set_down(&mut self, down: bool) {
        self.is_down = down;
        self.paused = if down { u8::MAX } else { self.pfc };
    }

    /// Returns `true` if the link is down.
    pub fn is_down(&self) -> bool {
        self.is_down
    }

    /// Takes a packet off the wire as lost, if there is one.
    pub fn lose(&mut self, pool: &PacketPool) -> Option<PacketIdx> {
        (!self.wire.is_empty()).then(|| self.wire.pop(pool))
    }

    /// Returns `true` if the other end has paused `class`.
    pub fn is_pfc_paused(&self, class: u8) -> bool {
        self.pfc & (1 << class) != 0
    }

    /// Applies a pause or resume of `class`.
    pub fn set_paused(&mut self, class: u8, paused: bool, now_ps: u64) {
        let before = self.pfc;
        if paused {
            self.pfc |= 1 << class;
        } else {
            self.pfc &= !(1 << class);
        }
        if before == 0 && self.pfc != 0 {
            self.pause_since_ps = now_ps;
        } else if before != 0 && self.pfc == 0 {
            self.pause_total_ps += now_ps - self.pause_since_ps;
        }
        self.set_down(self.is_down);
        if let Some(weighted) = &mut self.weighted
            && paused
        {
            weighted.leave(class);
        }
        self.note_waiting(usize::from(class));
    }

    /// Returns the time for which any class of this port has been paused up to `now_ps`, in picoseconds.
    pub fn pause_ps(&self, now_ps: u64) -> u64 {
        let open = if self.pfc == 0 { 0 } else { now_ps - self.pause_since_ps };
        self.pause_total_ps + open
    }

    /// Returns the packets in the queues of this port, which must have neither physical queues nor disciplines.
    pub fn waiting<'a>(&'a self, pool: &'a PacketPool) -> impl Iterator<Item = PacketIdx> + 'a {
        self.queues.iter().flat_map(|queue| pool.list(queue.list.head()))
    }

    /// Returns the packets in this port's queues and on its wire, for the final count, except packets on a wire to a
    /// door.
    pub fn contents<'a>(&'a self, pool: &'a PacketPool) -> impl Iterator<Item = PacketIdx> + 'a {
        let of_flows = self.flow_queues.iter().flat_map(|queues| queues.iter().flat_map(FlowQueues::lists));
        let wire = self.door().is_none().then_some(&self.wire);
        let lists = self.queues.iter().map(|queue| &queue.list).chain(wire).chain(of_flows);
        let of_disciplines = self.disciplines.iter().flat_map(|d| d.iter().flatten().flat_map(|d| d.packets(pool)));
        lists.flat_map(|list| pool.list(list.head())).chain(of_disciplines)
    }
}

/// Returns the transmission time of `wire` bytes at `rate` by `clock`, in picoseconds.
#[inline]
pub fn tx_time_ps(rate: Rate, wire: u64, clock: ClockRule) -> u64 {
    if clock == ClockRule::WholeNanoseconds {
        return wire * 8_000_000_000 / rate.as_bps() * 1_000;
    }
    // Below 2.3 MB the product fits 64 bits, which divide faster than 128.
    wire.checked_mul(8_000_000_000_000).map_or_else(|| rate.tx_time(Bytes::new(wire)).as_ps(), |n| n / rate.as_bps())
}
