//! The packets that arrive at a switch in one span.

use super::steering::NextHop;
use crate::ids::PacketIdx;
use crate::sorting;

/// Bits of a key for the time in a span and the door.
const TIME_AND_DOOR_BITS: u32 = 29;
/// The longest span, 2^23 ps = 8.4 us: longer spans make it less certain that all packets are admitted.
const TIME_BITS: u32 = 23;

/// Packets that arrive in a span, ordered by time and, at the same time, by door.
#[derive(Default)]
pub(super) struct Arrivals {
    /// One number per packet, as the bits of a floating-point number, which SSE2 can compare. From the top: a bit that
    /// makes it normal and finite, the time since the span began, the door, the index in `packets`.
    keys: Vec<f64>,
    /// The packets in the order in which they were gathered.
    packets: Vec<Arrival>,
}

/// An arriving packet, with the fields that are needed before the packet itself is read.
#[derive(Clone, Copy)]
pub(super) struct Arrival {
    pub(super) packet: PacketIdx,
    pub(super) next_hop: NextHop,
    pub(super) wire: u16,
    pub(super) class: u8,
}

impl Arrivals {
    const NORMAL: u64 = 1 << (32 + TIME_AND_DOOR_BITS);

    /// Returns the longest span, in picoseconds, of a switch whose door numbers take `door_bits` bits; `None` if
    /// there are too many.
    pub(super) fn longest_ps(door_bits: u32) -> Option<u64> {
        Some(1 << TIME_AND_DOOR_BITS.checked_sub(door_bits)?.min(TIME_BITS))
    }

    pub(super) fn clear(&mut self) {
        self.keys.clear();
        self.packets.clear();
    }

    #[inline]
    pub(super) fn push(&mut self, since_ps: u64, door: u32, door_bits: u32, arrival: Arrival) {
        let place = self.packets.len() as u64;
        let key = Self::NORMAL | (since_ps << door_bits | u64::from(door)) << 32 | place;
        self.keys.push(f64::from_bits(key));
        self.packets.push(arrival);
    }

    /// Returns the number of packets.
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.keys.len()
    }

    /// Returns time since the span began, door and packet of all arrivals.
    #[inline]
    pub(super) fn iter(&self, door_bits: u32) -> impl Iterator<Item = (u64, u32, Arrival)> + '_ {
        self.keys.iter().map(move |&key| {
            let high = (key.to_bits() & (Self::NORMAL - 1)) >> 32;
            (high >> door_bits, (high & ((1 << door_bits) - 1)) as u32, self.of(key))
        })
    }

    /// Returns the next step and the class of packet `i`; if there are fewer packets, those of the last one.
    #[inline]
    pub(super) fn next_hop(&self, i: usize) -> (NextHop, u8) {
        let arrival = self.of(self.keys[i.min(self.keys.len() - 1)]);
        (arrival.next_hop, arrival.class)
    }

    /// Returns the next step and the class of all packets, in no particular order.
    #[inline]
    pub(super) fn next_hops(&self) -> impl Iterator<Item = (NextHop, u8)> + '_ {
        self.packets.iter().map(|arrival| (arrival.next_hop, arrival.class))
    }

    /// Returns all packets with their next steps, in no particular order.
    #[inline]
    pub(super) fn packets(&self) -> impl Iterator<Item = (PacketIdx, NextHop)> + '_ {
        self.packets.iter().map(|arrival| (arrival.packet, arrival.next_hop))
    }

    #[inline]
    fn of(&self, key: f64) -> Arrival {
        self.packets[key.to_bits() as u32 as usize]
    }

    #[inline]
    pub(super) fn sort(&mut self) {
        sorting::sort(
            &mut self.keys,
            f64::INFINITY,
            |a, b| a < b,
            |many| many.sort_unstable_by_key(|key| key.to_bits()),
        );
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn arrivals_are_sorted_by_time_then_door(
            packets in prop::collection::btree_map((0_u64..1 << 20, 0_u32..512), any::<u32>().prop_map(PacketIdx), 0..40),
        ) {
            let mut arrivals = Arrivals::default();
            // Push the latest first.
            for (&(since_ps, door), &packet) in packets.iter().rev() {
                let arrival = Arrival { packet, next_hop: NextHop::NOWHERE, wire: door as u16, class: 3 };
                arrivals.push(since_ps, door, 9, arrival);
            }
            arrivals.sort();
            let got: Vec<_> = arrivals.iter(9).map(|(since_ps, door, a)| (since_ps, door, a.packet, a.wire)).collect();
            let expected: Vec<_> =
                packets.into_iter().map(|((since_ps, door), packet)| (since_ps, door, packet, door as u16)).collect();
            prop_assert_eq!(got, expected);
        }
    }
}
