//! Where a segment stands: its number, and its place among those in flight in the order they were sent in.

use super::{Scoreboard, Segment};

/// Numbers of segments wrap around at this power of two, far above any window.
const NUMBERS: u32 = 1 << 31;
/// No segment: the end of the list in order of sending.
pub(super) const NONE: u32 = u32::MAX;

impl Scoreboard {
    /// The first byte of the segment in a place.
    pub(super) fn first_byte(&self, at: usize) -> u64 {
        self.una + at as u64 * self.mss
    }

    /// The number of the segment in a place: it stays while acknowledgments move the places.
    pub(super) fn number(&self, at: usize) -> u32 {
        self.first.wrapping_add(at as u32) % NUMBERS
    }

    /// The place of the segment with a number.
    pub(super) fn place(&self, number: u32) -> usize {
        (number.wrapping_sub(self.first) % NUMBERS) as usize
    }

    /// A segment is sent now, after all others.
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

    /// A segment is no longer in flight.
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
