//! A receive buffer that is drained into memory.

use std::collections::VecDeque;

use fairrate_units::Bytes;

use crate::config::ReceiveBuffer;
use crate::ids::PacketIdx;

/// Bits times picoseconds a second: a byte takes this over the rate in bit/s, in picoseconds.
const BYTE: u128 = 8_000_000_000_000;

/// The receive buffer of one host.
pub(super) struct Memory {
    /// Times from which rates hold, in picoseconds, and the rates in bit/s.
    steps: Vec<(u64, u64)>,
    /// The step that holds at `free_ps`.
    step: usize,
    size: u64,
    /// Bytes above which the switch is paused, and at or below which it resumes; `None`: packets are dropped.
    levels: Option<[u64; 2]>,
    /// Bytes from which senders are asked for a penalty.
    penalty_from: u64,
    /// The packets with the times at which they are in memory, in picoseconds.
    packets: VecDeque<(u64, PacketIdx, u16)>,
    /// Time at which all packets are in memory, in picoseconds.
    free_ps: u64,
    pub(super) held: u64,
    pub(super) drained: u64,
    pub(super) drops: u64,
    is_pausing: bool,
    since_ps: u64,
    paused_ps: u64,
}

/// The answer of a receive buffer to a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Room {
    /// There is room, and the switch need not be told.
    Enough,
    /// There is room, and the switch must pause from now on.
    Little,
    /// There is none.
    None,
}

impl Memory {
    /// Returns an empty buffer that pauses and resumes by `levels`, or drops.
    pub(super) fn new(buffer: &ReceiveBuffer, levels: Option<[u64; 2]>) -> Self {
        Self {
            steps: buffer.rates.iter().map(|&(from, rate)| (from.as_ps(), rate.as_bps().max(1))).collect(),
            step: 0,
            size: buffer.size.as_u64(),
            levels,
            penalty_from: buffer.penalty_from.map_or(u64::MAX, Bytes::as_u64),
            packets: VecDeque::new(),
            free_ps: 0,
            held: 0,
            drained: 0,
            drops: 0,
            is_pausing: false,
            since_ps: 0,
            paused_ps: 0,
        }
    }

    /// Takes in a packet of `wire` bytes that arrives at `now_ps`, if there is room.
    pub(super) fn take_in(&mut self, now_ps: u64, packet: PacketIdx, wire: u16) -> Room {
        if self.size < self.held + u64::from(wire) {
            self.drops += 1;
            return Room::None;
        }
        self.held += u64::from(wire);
        let at = self.drain(now_ps.max(self.free_ps), wire);
        self.free_ps = at;
        self.packets.push_back((at, packet, wire));
        match self.levels {
            Some([pause, _]) if !self.is_pausing && pause < self.held => {
                (self.is_pausing, self.since_ps) = (true, now_ps);
                Room::Little
            }
            _ => Room::Enough,
        }
    }

    /// Returns the penalty that senders are asked for, in 128ths: from none where it begins to 127 in a full buffer.
    pub(super) fn penalty(&self) -> u8 {
        let above = self.held.saturating_sub(self.penalty_from);
        if above == 0 { 0 } else { (127 * above / (self.size - self.penalty_from).max(1)).min(127) as u8 }
    }

    /// Returns the time at which `wire` bytes are in memory whose drain begins at `from_ps`, in picoseconds.
    fn drain(&mut self, from_ps: u64, wire: u16) -> u64 {
        let (mut at, mut left) = (from_ps, u128::from(wire) * BYTE);
        loop {
            let end = self.steps.get(self.step + 1).map_or(u64::MAX, |next| next.0);
            let rate = u128::from(self.steps[self.step].1);
            if at < end {
                // The end of a packet is rounded up, as it is not in memory before.
                let done = u128::from(at) + left.div_ceil(rate);
                if done <= u128::from(end) {
                    return u64::try_from(done).unwrap_or(u64::MAX);
                }
                left -= u128::from(end - at) * rate;
                at = end;
            }
            self.step += 1;
        }
    }

    /// Returns the time at which the next packet is in memory, in picoseconds.
    pub(super) fn next_ps(&self) -> Option<u64> {
        self.packets.front().map(|first| first.0)
    }

    /// Takes the packet that is in memory at `now_ps`, with `true` if the switch may resume.
    pub(super) fn take_out(&mut self, now_ps: u64) -> Option<(PacketIdx, bool)> {
        let &(at, packet, wire) = self.packets.front()?;
        if now_ps < at {
            return None;
        }
        self.packets.pop_front();
        self.held -= u64::from(wire);
        self.drained += u64::from(wire);
        let resumes = self.is_pausing && self.levels.is_some_and(|[_, resume]| self.held <= resume);
        if resumes {
            self.is_pausing = false;
            self.paused_ps += now_ps - self.since_ps;
        }
        Some((packet, resumes))
    }

    /// Returns `true` if the switch is to be paused.
    pub(super) fn is_pausing(&self) -> bool {
        self.is_pausing
    }

    /// Returns the time for which the switch has been paused up to `now_ps`, in picoseconds.
    pub(super) fn pausing_ps(&self, now_ps: u64) -> u64 {
        self.paused_ps + if self.is_pausing { now_ps - self.since_ps } else { 0 }
    }

    /// Returns the packets in the buffer.
    pub(super) fn packets(&self) -> impl Iterator<Item = PacketIdx> + '_ {
        self.packets.iter().map(|&(_, packet, _)| packet)
    }
}

#[cfg(test)]
mod tests {
    use fairrate_units::{Bytes, Rate, Time};

    use super::*;
    use crate::config::FullBuffer;

    fn memory(rates: &[(u64, u64)], size: u64, levels: Option<[u64; 2]>) -> Memory {
        let rates = rates.iter().map(|&(us, gbps)| (Time::from_us(us), Rate::from_gbps(gbps))).collect();
        Memory::new(
            &ReceiveBuffer { rates, size: Bytes::new(size), full: FullBuffer::Drop, penalty_from: None },
            levels,
        )
    }

    #[test]
    fn the_penalty_grows_from_its_level_to_the_full_buffer() {
        let mut memory = Memory { penalty_from: 2_000, ..memory(&[(0, 8)], 10_000, None) };
        let mut penalties = vec![memory.penalty()];
        for _ in 0..5 {
            memory.take_in(0, PacketIdx(0), 2_000);
            penalties.push(memory.penalty());
        }
        assert_eq!(penalties, [0, 0, 31, 63, 95, 127]);
    }

    /// 1,000 bytes take 80 ns at 100 Gb/s and 320 ns at 25 Gb/s.
    #[test]
    fn a_packet_is_in_memory_when_its_last_byte_is() {
        let mut memory = memory(&[(0, 100), (1, 25)], 10_000, None);
        assert_eq!(memory.take_in(0, PacketIdx(0), 1_000), Room::Enough);
        assert_eq!((memory.next_ps(), memory.take_out(79_999)), (Some(80_000), None));
        assert_eq!(memory.take_out(80_000), Some((PacketIdx(0), false)));
        // 40 ns, half of it, at the first rate; the other half at the second.
        memory.take_in(960_000, PacketIdx(1), 1_000);
        assert_eq!(memory.next_ps(), Some(1_000_000 + 160_000));
        memory.take_in(960_000, PacketIdx(2), 1_000);
        memory.take_out(1_160_000);
        assert_eq!((memory.next_ps(), memory.held, memory.drained), (Some(1_480_000), 1_000, 2_000));
    }

    #[test]
    fn a_full_buffer_drops_or_pauses_before() {
        let mut drops = memory(&[(0, 100)], 2_500, None);
        let rooms: Vec<Room> = (0..4).map(|i| drops.take_in(0, PacketIdx(i), 1_000)).collect();
        assert_eq!((rooms, drops.drops), (vec![Room::Enough, Room::Enough, Room::None, Room::None], 2));
        let mut pauses = memory(&[(0, 100)], 4_000, Some([1_500, 500]));
        let rooms: Vec<Room> = (0..3).map(|i| pauses.take_in(10, PacketIdx(i), 1_000)).collect();
        assert_eq!(rooms, [Room::Enough, Room::Little, Room::Enough]);
        let resumes: Vec<bool> = [80_010, 160_010, 240_010].map(|at| pauses.take_out(at).expect("due").1).into();
        assert_eq!((resumes, pauses.pausing_ps(500_000)), (vec![false, false, true], 240_000));
    }
}
