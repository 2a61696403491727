//! What the switches of a part have to do next, where they work through windows of time.
//!
//! A packet that arrives at a switch within the least delay of the links that lead there is on its wire when the first of
//! them arrives. So the switch takes all of it at once: its window. The packets on a link are listed at the switch's door
//! for it, and [`Packet::arrival_ps`](crate::packet::Packet::arrival_ps) is the time of the one behind it.

pub(super) use super::queue::{DueQueue, NEVER};
use crate::fabric::Port;
use crate::ids::{DoorIdx, Number, PacketIdx, PortIdx, SwitchIdx};
use crate::packet::PacketPool;
use crate::sorting;
use crate::table::Table;

/// Bits of a key for the time in a window and the door: see [`Keys`].
const TIME_AND_DOOR_BITS: u32 = 29;
/// The longest window, 2^23 ps = 8.4 us: longer ones say less of what is certain to be admitted.
const TIME_BITS: u32 = 23;

/// What is on its way to switches, and which of their ports are to send.
#[derive(Default)]
pub(crate) struct Agenda {
    /// The doors. Those of one switch stand behind those of another, each switch's in the order of the ports they come from.
    pub(super) doors: Table<DoorIdx, Door>,
    /// Of each door, the port at the other end of its link, and the switch.
    pub(super) ports: Table<DoorIdx, PortIdx>,
    switch_of: Table<DoorIdx, SwitchIdx>,
    /// A bit for each door, in words of each switch's own: whether a packet is on its way there.
    pub(super) open: Vec<u64>,
    pub(super) switches: Table<SwitchIdx, Doors>,
    /// When each switch is looked at next.
    pub(super) queue: DueQueue,
    /// A bit for each door: whether a `TxDone` of the port there is due when its transmitter is free.
    pub(super) due: Vec<u64>,
}

/// The packets on a link to a switch.
#[derive(Clone, Copy)]
pub(super) struct Door {
    /// When the first of them arrives, in picoseconds; [`NEVER`]: there is none.
    pub(super) head_ps: u64,
    pub(super) head: PacketIdx,
}

/// The doors of a switch, and how long its windows are.
#[derive(Clone, Copy)]
pub(super) struct Doors {
    /// The least delay of the links that lead to it, in picoseconds, or less.
    pub(super) window_ps: u64,
    /// The first of its doors, and how many it has.
    pub(super) first: DoorIdx,
    pub(super) n: u32,
    /// The first of the words that have its bits.
    pub(super) first_word: u32,
    /// Bits of a key that say by which door a packet comes.
    pub(super) door_bits: u32,
}

impl Agenda {
    /// The switches of a part, `ports` of which are told their doors; `None` if they cannot work through windows, because
    /// a link that leads to one has no delay or a switch has too many ports. `of_switch`: the switch that each port belongs to,
    /// if it does.
    pub(super) fn new(of_switch: &Table<PortIdx, Option<SwitchIdx>>, ports: &mut Table<PortIdx, Port>) -> Option<Self> {
        let to_switches = ports.numbers().filter_map(|port| Some((of_switch[port.reverse()]?, port)));
        let mut order: Vec<(SwitchIdx, PortIdx)> = to_switches.collect();
        let n_switches = order.iter().max().map_or(0, |&(last, _)| last.index() + 1);
        order.sort_unstable();
        let idle = Doors { window_ps: 0, first: DoorIdx(0), n: 0, first_word: 0, door_bits: 0 };
        let mut switches: Table<SwitchIdx, Doors> = vec![idle; n_switches].into();
        let n_doors = order.len();
        let (mut ports_of_doors, mut switch_of) = (Vec::with_capacity(n_doors), Vec::with_capacity(n_doors));
        let mut n_words = 0;
        for of_switch in order.chunk_by(|a, b| a.0 == b.0) {
            let (switch, n) = (of_switch[0].0, of_switch.len() as u32);
            let doors = &mut switches[switch];
            doors.first = DoorIdx::from_index(ports_of_doors.len());
            (doors.n, doors.first_word, doors.door_bits) = (n, n_words, n.next_power_of_two().ilog2());
            n_words += n.div_ceil(64);
            let delays_ps = of_switch.iter().map(|&(_, port)| ports[port].delay_ps);
            let most_ps = 1 << TIME_AND_DOOR_BITS.checked_sub(doors.door_bits)?.min(TIME_BITS);
            doors.window_ps = delays_ps.fold(most_ps, u64::min);
            if doors.window_ps == 0 {
                return None;
            }
            ports_of_doors.extend(of_switch.iter().map(|&(_, port)| port));
            switch_of.resize(ports_of_doors.len(), switch);
        }
        for (door, (&port, &switch)) in (0..).map(DoorIdx).zip(ports_of_doors.iter().zip(&switch_of)) {
            let doors: &Doors = &switches[switch];
            ports[port].set_door(door);
            ports[port.reverse()].due_bit = doors.first_word * 64 + door.0 - doors.first.0;
        }
        Some(Self {
            doors: vec![Door { head_ps: NEVER, head: PacketIdx::NONE }; n_doors].into(),
            ports: ports_of_doors.into(),
            switch_of: switch_of.into(),
            open: vec![0; n_words as usize],
            switches,
            queue: DueQueue::new(n_switches),
            due: vec![0; n_words as usize],
        })
    }

    /// Whether switches work through windows.
    #[inline]
    pub(super) fn is_kept(&self) -> bool {
        !self.doors.is_empty()
    }

    /// Puts a packet that has left `port` onto its way to a door.
    #[allow(clippy::inline_always)] // See `Part::run`.
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
        if self.doors[door].head_ps == NEVER {
            let doors = &self.switches[self.switch_of[door]];
            let at = door.index() - doors.first.index();
            self.open[doors.first_word as usize + at / 64] |= 1 << (at % 64);
            self.doors[door] = Door { head_ps: arrival_ps, head: packet };
            let switch = self.switch_of[door];
            if arrival_ps < self.queue.due_ps(switch) {
                self.queue.advance(switch, arrival_ps);
            }
        } else {
            let last = pool.get_mut(port.last_on_wire());
            (last.next, last.arrival_ps) = (packet, arrival_ps);
        }
        port.set_last_on_wire(packet);
    }

    /// The port with this bit is to look for something to send when its transmitter is free.
    #[inline]
    pub(super) fn set_due(&mut self, bit: u32) {
        self.due[bit as usize / 64] |= 1 << (bit % 64);
    }

    /// The port with this bit has nothing to look for.
    #[inline]
    pub(super) fn clear_due(&mut self, bit: u32) {
        self.due[bit as usize / 64] &= !(1 << (bit % 64));
    }

    /// Whether a port of a switch is to look for something to send.
    #[inline]
    pub(super) fn has_due(&self, doors: Doors) -> bool {
        let first = doors.first_word as usize;
        self.due[first] != 0
            || (64 < doors.n && self.due[first..][..doors.n.div_ceil(64) as usize].iter().any(|&word| word != 0))
    }

    /// The doors of a switch whose bits are set in words such as [`Agenda::due`].
    #[inline]
    pub(super) fn doors_in(words: &[u64], doors: Doors) -> impl Iterator<Item = DoorIdx> + '_ {
        let words = &words[doors.first_word as usize..][..doors.n.div_ceil(64) as usize];
        (doors.first.0..)
            .step_by(64)
            .zip(words)
            .flat_map(|(first, &word)| Bits(word).map(move |bit| DoorIdx(first + bit)))
    }

    /// The packets on their way to switches.
    pub(super) fn packets<'a>(&'a self, pool: &'a PacketPool) -> impl Iterator<Item = PacketIdx> + 'a {
        let heads = self.doors.iter().filter(|door| door.head_ps != NEVER).map(|door| door.head);
        heads.flat_map(|head| pool.list(head))
    }
}

/// The places of the bits that are set in a word.
pub(super) struct Bits(pub(super) u64);

impl Iterator for Bits {
    type Item = u32;

    #[inline]
    fn next(&mut self) -> Option<u32> {
        let bit = self.0.trailing_zeros();
        // Of no bits, it is past the last.
        self.0 &= self.0.wrapping_sub(1);
        (bit < 64).then_some(bit)
    }
}

/// What arrives in a window, in order: by time and, at the same time, by door.
///
/// A packet is one number, as the bits of a floating-point number, which SSE2 can compare: from the top a bit that makes it normal
/// and finite, the time since the window began, the door, the packet.
#[derive(Default)]
pub(super) struct Keys(Vec<f64>);

impl Keys {
    const NORMAL: u64 = 1 << (32 + TIME_AND_DOOR_BITS);

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    #[inline]
    pub(super) fn push(&mut self, since_ps: u64, door: u32, door_bits: u32, packet: PacketIdx) {
        let key = Self::NORMAL | (since_ps << door_bits | u64::from(door)) << 32 | u64::from(packet.0);
        self.0.push(f64::from_bits(key));
    }

    /// How many there are.
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Of all: time since the window began, door and packet.
    #[inline]
    pub(super) fn iter(&self, door_bits: u32) -> impl Iterator<Item = (u64, u32, PacketIdx)> + '_ {
        self.0.iter().map(move |key| {
            let high = (key.to_bits() & (Self::NORMAL - 1)) >> 32;
            (high >> door_bits, (high & ((1 << door_bits) - 1)) as u32, PacketIdx(key.to_bits() as u32))
        })
    }

    /// The packet behind one of them, or some other packet of these.
    #[inline]
    pub(super) fn guess_after(&self, i: usize) -> PacketIdx {
        PacketIdx(self.0[(i + 1).min(self.0.len() - 1)].to_bits() as u32)
    }

    #[inline]
    pub(super) fn sort(&mut self) {
        sorting::sort(&mut self.0, f64::INFINITY, |a, b| a < b, |many| many.sort_unstable_by_key(|key| key.to_bits()));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn keys_come_in_order_and_say_what_they_were(
            packets in prop::collection::btree_map((0_u64..1 << 20, 0_u32..512), any::<u32>().prop_map(PacketIdx), 0..40),
        ) {
            let mut keys = Keys::default();
            // Latest first.
            for (&(since_ps, door), &packet) in packets.iter().rev() {
                keys.push(since_ps, door, 9, packet);
            }
            keys.sort();
            let got: Vec<_> = keys.iter(9).collect();
            let expected: Vec<_> = packets.into_iter().map(|((since_ps, door), packet)| (since_ps, door, packet)).collect();
            prop_assert_eq!(got, expected);
        }
    }
}
