//! All values once a round: oblivious spraying, and the bitmaps of uet-htsim and of EQDS, which pass over values after
//! bad feedback.

use super::Outcome;
use crate::rng::Stream;

/// Largest number of times that a value is passed over after bad feedback.
const MOST_SKIPS: u8 = 15;
/// Number of times that a value is passed over for a mark, a loss and a timeout.
const SKIPS: [u8; 3] = [1, 4, 15];

/// All values once a round, in an order that changes.
pub(super) struct Round {
    n: u16,
    at: u16,
    mask: u16,
}

/// The same, with values passed over after bad feedback.
pub(super) struct Bitmap {
    round: Round,
    skips: Vec<u8>,
}

/// EQDS's bitmap: all values once a round, but those after bad feedback are passed over once.
pub(super) struct BitmapOnce {
    round: Round,
    is_bad: Vec<bool>,
}

impl Round {
    /// Returns the first round of `n` values.
    pub(super) fn new(n: u16, stream: &mut Stream) -> Self {
        Self { n, at: 0, mask: stream.below(u64::from(n)) as u16 }
    }

    fn value(&self) -> u16 {
        self.at ^ self.mask
    }

    fn advance(&mut self, stream: &mut Stream) {
        self.at += 1;
        if self.at == self.n {
            (self.at, self.mask) = (0, stream.below(u64::from(self.n)) as u16);
        }
    }

    pub(super) fn take(&mut self, stream: &mut Stream) -> u16 {
        let value = self.value();
        self.advance(stream);
        value
    }
}

impl Bitmap {
    pub(super) fn new(round: Round) -> Self {
        let skips = vec![0; usize::from(round.n)];
        Self { round, skips }
    }

    /// Returns the next value that is not to be passed over, or, after a whole round without one, any. Only the first
    /// value that is passed over counts as such.
    pub(super) fn next(&mut self, stream: &mut Stream) -> u16 {
        let first = usize::from(self.round.value());
        if 0 < self.skips[first] {
            self.skips[first] -= 1;
            for _ in 0..=self.round.n {
                self.round.advance(stream);
                if self.skips[usize::from(self.round.value())] == 0 {
                    break;
                }
            }
        }
        self.round.take(stream)
    }

    pub(super) fn learn(&mut self, value: u16, outcome: Outcome) {
        let more = match outcome {
            Outcome::Good => return,
            Outcome::Marked => SKIPS[0],
            Outcome::Lost => SKIPS[1],
            Outcome::TimedOut => SKIPS[2],
        };
        let skips = &mut self.skips[usize::from(value)];
        *skips = (*skips + more).min(MOST_SKIPS);
    }
}

impl BitmapOnce {
    pub(super) fn new(round: Round) -> Self {
        let is_bad = vec![false; usize::from(round.n)];
        Self { round, is_bad }
    }

    /// Returns the next value that is not bad. Values that are passed over are good again.
    pub(super) fn next(&mut self, stream: &mut Stream) -> u16 {
        while std::mem::take(&mut self.is_bad[usize::from(self.round.value())]) {
            self.round.advance(stream);
        }
        self.round.take(stream)
    }

    pub(super) fn learn(&mut self, value: u16, outcome: Outcome) {
        self.is_bad[usize::from(value)] |= outcome != Outcome::Good;
    }
}
