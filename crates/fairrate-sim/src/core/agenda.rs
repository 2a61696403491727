//! The pending work of a part's switches and hosts, where they process events in spans of time.
//!
//! All packets that arrive at a switch within the least delay of the links that lead to it, counted from the first
//! arrival, are on their wires at that first arrival. So the switch processes them at once: this time is its span. The
//! packets on a link are listed at the link's door, its end at the switch;
//! [`Packet::arrival_ps`](crate::packet::Packet::arrival_ps) of a packet there is the arrival time of the packet behind
//! it.

use super::arrivals::Arrivals;
use super::mode::Reason;
pub(super) use super::queue::{DueQueue, NEVER};
use crate::fabric::Port;
use crate::ids::{DoorIdx, HostId, Number, PacketIdx, PortIdx, SwitchIdx, WorkerIdx};
use crate::packet::PacketPool;
use crate::prefetch::Cache;
use crate::table::Table;

/// The packets on their way to switches, and the ports of switches with a `TxDone` due.
#[derive(Default)]
pub(crate) struct Agenda {
    /// The doors of all switches, grouped by switch; those of a switch are in the order of the ports their links come
    /// from.
    pub(super) doors: Table<DoorIdx, Door>,
    /// For each door, the port at the other end of its link.
    pub(super) ports: Table<DoorIdx, PortIdx>,
    /// A bit for each door, set if a packet is on its way there. Each switch has words of its own.
    pub(super) open: Vec<u64>,
    /// For each word of bits, the switch it belongs to.
    switch_of: Vec<SwitchIdx>,
    pub(super) switches: Table<SwitchIdx, Doors>,
    /// The time at which each switch is processed next, and each host if hosts process events in spans too.
    pub(super) queue: DueQueue,
    has_hosts: bool,
    /// A bit for each door, set if a `TxDone` of the switch's port there is due when its transmitter is free.
    pub(super) due: Vec<u64>,
}

/// A node that processes its events in spans.
#[derive(Clone, Copy)]
pub(super) enum Worker {
    Switch(SwitchIdx),
    Host(HostId),
}

/// The packets on a link to a switch.
#[derive(Clone, Copy)]
pub(super) struct Door {
    /// Arrival time of the first packet, in picoseconds; [`NEVER`]: there is none.
    pub(super) head_ps: u64,
    pub(super) head: PacketIdx,
    /// Index of this door's bit in [`Agenda::open`].
    bit: u32,
}

/// The doors of a switch, and the length of its spans.
#[derive(Clone, Copy)]
pub(super) struct Doors {
    /// Length of the switch's spans in picoseconds: the least delay of the links that lead to it, or less.
    pub(super) span_ps: u64,
    /// The first door of the switch; the switch has `n` doors from there on.
    pub(super) first: DoorIdx,
    pub(super) n: u32,
    /// Index of the first word with bits of the switch.
    pub(super) first_word: u32,
    /// Number of bits in an arrival's key that hold the door.
    pub(super) door_bits: u32,
}

impl Agenda {
    /// Builds the agenda of a part's switches, and stores each door and its bit in `ports`. `of_switch` is the switch
    /// that each port belongs to, if any; `n_hosts` is the number of hosts of the network, if they process events in
    /// spans too.
    ///
    /// # Errors
    /// [`Reason::InstantLinks`] if a link that leads to a switch has no delay, [`Reason::WideSwitch`] if a switch has
    /// too many ports: then switches cannot process events in spans.
    pub(super) fn new(
        of_switch: &Table<PortIdx, Option<SwitchIdx>>,
        ports: &mut Table<PortIdx, Port>,
        n_hosts: Option<usize>,
    ) -> Result<Self, Reason> {
        let to_switches = ports.numbers().filter_map(|port| Some((of_switch[port.reverse()]?, port)));
        let mut order: Vec<(SwitchIdx, PortIdx)> = to_switches.collect();
        let n_switches = order.iter().max().map_or(0, |&(last, _)| last.index() + 1);
        order.sort_unstable();
        let idle = Doors { span_ps: 0, first: DoorIdx(0), n: 0, first_word: 0, door_bits: 0 };
        let mut switches: Table<SwitchIdx, Doors> = vec![idle; n_switches].into();
        let (mut doors, mut ports_of_doors) = (Vec::with_capacity(order.len()), Vec::with_capacity(order.len()));
        let mut switch_of = Vec::new();
        for of_switch in order.chunk_by(|a, b| a.0 == b.0) {
            let (switch, n, first_bit) = (of_switch[0].0, of_switch.len() as u32, 64 * switch_of.len() as u32);
            let of = &mut switches[switch];
            of.first = DoorIdx::from_index(doors.len());
            (of.n, of.first_word, of.door_bits) = (n, first_bit / 64, n.next_power_of_two().ilog2());
            switch_of.resize(switch_of.len() + n.div_ceil(64) as usize, switch);
            let delays_ps = of_switch.iter().map(|&(_, port)| ports[port].delay_ps);
            of.span_ps = delays_ps.fold(Arrivals::longest_ps(of.door_bits).ok_or(Reason::WideSwitch)?, u64::min);
            if of.span_ps == 0 {
                return Err(Reason::InstantLinks);
            }
            ports_of_doors.extend(of_switch.iter().map(|&(_, port)| port));
            doors.extend((first_bit..first_bit + n).map(|bit| Door { head_ps: NEVER, head: PacketIdx::NONE, bit }));
        }
        for (number, (&port, door)) in (0..).map(DoorIdx).zip(ports_of_doors.iter().zip(&doors)) {
            ports[port].set_door(number);
            ports[port.reverse()].due_bit = door.bit;
        }
        let n_words = switch_of.len();
        Ok(Self {
            doors: doors.into(),
            ports: ports_of_doors.into(),
            open: vec![0; n_words],
            switch_of,
            switches,
            queue: DueQueue::new(n_switches + n_hosts.unwrap_or(0)),
            has_hosts: n_hosts.is_some(),
            due: vec![0; n_words],
        })
    }

    /// Returns `true` if switches process events in spans.
    #[inline]
    pub(super) fn is_kept(&self) -> bool {
        !self.doors.is_empty()
    }

    /// Returns `true` if hosts process events in spans, too.
    #[inline]
    pub(super) fn has_hosts(&self) -> bool {
        self.has_hosts
    }

    /// Returns the switch or host that is due next.
    #[inline]
    pub(super) fn next(&self) -> Worker {
        let next = self.queue.next();
        match next.index().checked_sub(self.switches.len()) {
            None => Worker::Switch(SwitchIdx(next.0)),
            Some(host) => Worker::Host(HostId::from_index(host)),
        }
    }

    /// Returns the time at which `worker` is due.
    #[inline]
    pub(super) fn due_ps(&self, worker: Worker) -> u64 {
        self.queue.due_ps(self.number_of(worker))
    }

    /// Sets the time at which `worker` is due next to `at_ps`, which is not earlier than the present one.
    #[inline]
    pub(super) fn postpone(&mut self, worker: Worker, at_ps: u64) {
        self.queue.postpone(self.number_of(worker), at_ps);
    }

    /// Makes `worker` due at `at_ps`, unless it is due earlier.
    #[inline]
    pub(super) fn expect(&mut self, worker: Worker, at_ps: u64) {
        self.queue.expect(self.number_of(worker), at_ps);
    }

    #[inline]
    fn number_of(&self, worker: Worker) -> WorkerIdx {
        match worker {
            Worker::Switch(switch) => WorkerIdx(switch.0),
            Worker::Host(host) => WorkerIdx::from_index(self.switches.len() + host.index()),
        }
    }

    /// Puts a packet that has left `port` onto its way to `door`, to arrive at `arrival_ps`.
    #[inline(always)]
    pub(super) fn launch(
        &mut self,
        pool: &mut PacketPool,
        port: &mut Port,
        door: DoorIdx,
        packet: PacketIdx,
        arrival_ps: u64,
    ) {
        let p = pool.get_mut(packet);
        (p.next, p.arrival_ps) = (PacketIdx::NONE, NEVER);
        let door = &mut self.doors[door];
        if door.head_ps == NEVER {
            (door.head_ps, door.head) = (arrival_ps, packet);
            let word = door.bit as usize / 64;
            self.open[word] |= 1 << (door.bit % 64);
            self.expect(Worker::Switch(self.switch_of[word]), arrival_ps);
        } else {
            let last = pool.get_mut(port.last_on_wire());
            (last.next, last.arrival_ps) = (packet, arrival_ps);
        }
        port.set_last_on_wire(packet);
    }

    /// Sets a `TxDone` due, when its transmitter is free, at the port with the bit `bit`.
    #[inline]
    pub(super) fn set_due(&mut self, bit: u32) {
        self.due[bit as usize / 64] |= 1 << (bit % 64);
    }

    /// Clears the due `TxDone` of the port with the bit `bit`.
    #[inline]
    pub(super) fn clear_due(&mut self, bit: u32) {
        self.due[bit as usize / 64] &= !(1 << (bit % 64));
    }

    /// Returns `true` if a port of the switch with `doors` has a `TxDone` due.
    #[inline]
    pub(super) fn has_due(&self, doors: Doors) -> bool {
        let first = doors.first_word as usize;
        self.due[first] != 0
            || (64 < doors.n && self.due[first..][..doors.n.div_ceil(64) as usize].iter().any(|&word| word != 0))
    }

    /// Calls `look` with each port of the switch with `doors` that has a `TxDone` due.
    #[inline(always)] // Calls cost as much as what they do.
    pub(super) fn each_due(&self, doors: &Doors, mut look: impl FnMut(PortIdx)) {
        for word in 0..doors.n.div_ceil(64) {
            for bit in Bits(self.due[(doors.first_word + word) as usize]) {
                look(self.ports[doors.first.plus(word * 64 + bit)].reverse());
            }
        }
    }

    /// Prefetches the doors with packets of the switch with `doors`.
    #[inline]
    pub(super) fn fetch_open(&self, cache: Cache, doors: &Doors) {
        self.each_open(doors, |door| self.doors.prefetch(cache, door));
    }

    /// Calls `look` with the first packet at each door of the switch with `doors` that has packets.
    #[inline]
    pub(super) fn each_head(&self, doors: &Doors, mut look: impl FnMut(PacketIdx)) {
        self.each_open(doors, |door| look(self.doors[door].head));
    }

    #[inline]
    fn each_open(&self, doors: &Doors, mut look: impl FnMut(DoorIdx)) {
        for word in 0..doors.n.div_ceil(64) {
            for bit in Bits(self.open[(doors.first_word + word) as usize]) {
                look(doors.first.plus(word * 64 + bit));
            }
        }
    }

    /// Returns the packets on their way to switches.
    pub(super) fn packets<'a>(&'a self, pool: &'a PacketPool) -> impl Iterator<Item = PacketIdx> + 'a {
        let heads = self.doors.iter().filter(|door| door.head_ps != NEVER).map(|door| door.head);
        heads.flat_map(|head| pool.list(head))
    }
}

/// The indices of the set bits of a word, the lowest first.
pub(super) struct Bits(pub(super) u64);

impl Iterator for Bits {
    type Item = u32;

    #[inline]
    fn next(&mut self) -> Option<u32> {
        let bit = self.0.trailing_zeros();
        // If no bit is set, `bit` is 64.
        self.0 &= self.0.wrapping_sub(1);
        (bit < 64).then_some(bit)
    }
}
