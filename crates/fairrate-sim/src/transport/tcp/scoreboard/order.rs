//! The number of a segment, and its place among those in flight in order of sending.

use super::{Scoreboard, Segment};

/// The power of two at which segment numbers wrap around, far above any window.
const NUMBERS: u32 = 1 << 31;
/// No segment: the end of the list in order of sending.
pub(super) const NONE: u32 = u32::MAX;

impl Scoreboard {
    /// Returns the first byte of the segment at position `at`.
    pub(super) fn first_byte(&self, at: usize) -> u64 {
        self.una + at as u64 * self.mss
    }

    /// Returns the number of the segment at position `at`: it stays while acknowledgments move the positions.
    pub(super) fn number(&self, at: usize) -> u32 {
        self.first.wrapping_add(at as u32) % NUMBERS
    }

    /// Returns the position of the segment with number `number`.
    pub(super) fn place(&self, number: u32) -> usize {
        (number.wrapping_sub(self.first) % NUMBERS) as usize
    }

    /// Appends the segment at position `at`, which is sent now, to the list.
    pub(super) fn link(&mut self, at: usize) {
        let number = self.number(at);
        let before = std::mem::replace(&mut self.latest, number);
        (self.segments[at].before, self.segments[at].after) = (before, NONE);
        if before == NONE {
            self.oldest = number;
        } else {
            let before = self.place(before);
            self.segments[before].after = number;
        }
    }

    /// Removes the segment at position `at`, which is no longer in flight, from the list.
    pub(super) fn unlink(&mut self, at: usize) {
        let Segment { before, after, .. } = self.segments[at];
        if before == NONE {
            self.oldest = after;
        } else {
            let before = self.place(before);
            self.segments[before].after = after;
        }
        if after == NONE {
            self.latest = before;
        } else {
            let after = self.place(after);
            self.segments[after].before = before;
        }
    }
}
