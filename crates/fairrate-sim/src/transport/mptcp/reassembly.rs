//! Reassembly of a connection's data at its receiver.

use std::collections::VecDeque;

use crate::output::Reordering;

/// The receiving side of a connection.
#[derive(Clone, Debug, Default)]
pub struct Reassembly {
    /// The byte expected next: all before it have arrived.
    pub expected: u64,
    /// The number of the piece that begins there.
    next: u64,
    /// Arrival time in picoseconds and length of each piece from that one on; `None` if it has not arrived.
    held: VecDeque<Option<(u64, u64)>>,
    /// The times for which data has waited for data before it.
    pub reordering: Reordering,
}

impl Reassembly {
    /// Takes the piece of `len` bytes that begins with byte `seq`; returns the byte expected next.
    pub fn take(&mut self, mss: u64, seq: u64, len: u64, now_ps: u64) -> u64 {
        let Some(at) = (seq / mss).checked_sub(self.next) else { return self.expected };
        let at = at as usize;
        if self.held.len() <= at {
            self.held.resize(at + 1, None);
        }
        // A later copy changes nothing.
        self.held[at].get_or_insert((now_ps, len));
        while let Some(&Some((arrived_ps, len))) = self.held.front() {
            self.held.pop_front();
            self.next += 1;
            self.expected += len;
            if arrived_ps < now_ps {
                self.reordering.add(len, now_ps - arrived_ps);
            }
        }
        self.expected
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u64 = 1_000;

    #[test]
    fn pieces_wait_for_those_before_them() {
        let mut r = Reassembly::default();
        assert_eq!(r.take(MSS, 0, 1_000, 10), 1_000);
        assert_eq!(r.take(MSS, 2_000, 1_000, 20), 1_000);
        assert_eq!(r.take(MSS, 3_000, 500, 30), 1_000);
        // A copy counts from its first arrival; a copy of delivered data does not count at all.
        assert_eq!((r.take(MSS, 2_000, 1_000, 35), r.take(MSS, 0, 1_000, 36)), (1_000, 1_000));
        assert_eq!(r.take(MSS, 1_000, 1_000, 40), 3_500);
        // 1000 bytes for 20 ps and 500 for 10.
        let seen = r.reordering;
        assert_eq!((seen.bytes, seen.mean().as_ps(), seen.max.as_ps()), (1_500, 25_000 / 1_500, 20));
    }
}
