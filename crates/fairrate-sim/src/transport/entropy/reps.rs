//! REPS: values that came back without a mark are sent again (Bonato et al., arXiv 2407.21625), and its first form, as
//! uet-htsim has them.

use std::collections::VecDeque;

use fairrate_units::Time;

use super::{Echo, Outcome};
use crate::rng::Stream;

/// REPS: number of values that are remembered.
const REMEMBERED: usize = 8;
/// REPS: time for which only remembered values are used after a timeout.
const FROZEN: Time = Time::from_ms(10);
/// REPS: number of random values that are tried after that time.
const EXPLORED: u32 = 16;

/// Values that came back without a mark, to be used once more.
pub(super) struct Recycled {
    n: u16,
    at: u16,
    n_sent: u64,
    good: VecDeque<u16>,
}

/// REPS: a ring of values that came back without a mark.
pub(super) struct Reps {
    n: u16,
    ring: [Option<Remembered>; REMEMBERED],
    head: usize,
    n_fresh: usize,
    /// Time until which no other values are used, in picoseconds; 0: they are.
    frozen_until_ps: u64,
    next_frozen: usize,
    n_to_explore: u32,
}

#[derive(Clone, Copy)]
struct Remembered {
    value: u16,
    is_fresh: bool,
}

impl Recycled {
    pub(super) fn new(n: u16) -> Self {
        Self { n, at: 0, n_sent: 0, good: VecDeque::new() }
    }

    /// Takes the oldest value that came back without a mark.
    pub(super) fn take_good(&mut self) -> Option<u16> {
        self.good.pop_front()
    }

    pub(super) fn next(&mut self, stream: &mut Stream, window: u64) -> u16 {
        self.n_sent += 1;
        if self.n_sent <= window.min(u64::from(self.n)) {
            self.at = (self.at + 1) % self.n;
            return self.at;
        }
        self.take_good().unwrap_or_else(|| stream.below(u64::from(self.n)) as u16)
    }

    pub(super) fn learn(&mut self, value: u16, outcome: Outcome) {
        if outcome == Outcome::Good {
            self.good.push_back(value);
        }
    }
}

impl Reps {
    pub(super) fn new(n: u16) -> Self {
        let ring = [None; REMEMBERED];
        Self { n, ring, head: 0, n_fresh: 0, frozen_until_ps: 0, next_frozen: 0, n_to_explore: 0 }
    }

    pub(super) fn next(&mut self, stream: &mut Stream, now_ps: u64) -> u16 {
        let mut any = || stream.below(u64::from(self.n)) as u16;
        if 0 < self.n_to_explore {
            self.n_to_explore -= 1;
            return any();
        }
        if now_ps < self.frozen_until_ps {
            let n_used = self.ring.iter().flatten().count();
            if n_used == 0 {
                return any();
            }
            let at = self.next_frozen % n_used;
            self.next_frozen = at + 1;
            return self.ring.iter().flatten().nth(at).map_or(0, |entry| entry.value);
        }
        if self.n_fresh == 0 {
            return any();
        }
        let oldest = (self.head + REMEMBERED - self.n_fresh) % REMEMBERED;
        self.n_fresh -= 1;
        let entry = self.ring[oldest].as_mut().expect("a fresh entry is there");
        entry.is_fresh = false;
        entry.value
    }

    pub(super) fn learn(&mut self, value: u16, echo: &Echo) {
        if echo.outcome == Outcome::TimedOut {
            if self.n_to_explore == 0 {
                self.frozen_until_ps = echo.now_ps.saturating_add(FROZEN.as_ps());
            }
            return;
        }
        if 0 < self.frozen_until_ps && self.frozen_until_ps <= echo.now_ps {
            *self = Self { n_to_explore: EXPLORED, ..Self::new(self.n) };
        }
        if echo.outcome == Outcome::Good {
            let was_fresh = self.ring[self.head].is_some_and(|entry| entry.is_fresh);
            self.n_fresh += usize::from(!was_fresh);
            self.ring[self.head] = Some(Remembered { value, is_fresh: true });
            self.head = (self.head + 1) % REMEMBERED;
        }
    }
}
