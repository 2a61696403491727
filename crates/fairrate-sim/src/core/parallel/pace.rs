//! The decision whether all threads together are faster than the leader alone.
//!
//! Another program may use a core. The kernel then lets the threads of a run take turns on the remaining cores. No
//! single thread looks slow in that case, but nothing is saved.

use std::time::{Duration, Instant};

/// Share of the time of the leader alone that all threads together must save. Threads that share a core save nothing,
/// and wake each other thousands of times a second.
const LEAST_GAIN: f64 = 0.15;
/// Nanoseconds that may be lost with all threads before the leader works alone (`MOST_LOST`), and the most earlier
/// savings that offset losses (`MOST_SAVED`).
const MOST_LOST: f64 = 200e3;
const MOST_SAVED: f64 = 1e6;
/// Time that the leader works alone: the first time, and at most. Each time is twice as long as the one before, until
/// work with all threads pays.
const ALONE: [Duration; 2] = [Duration::from_millis(10), Duration::from_millis(640)];
/// Number of rounds for each part between two rounds that the leader runs alone, to measure its cost. A round alone takes
/// up to `n_parts` times as long as another one, so these rounds add a sixty-fourth of the time or less. The time of the
/// leader's own part of a round is no measure: another thread may have run on its core meanwhile.
const SAMPLE: u32 = 64;

/// Returns the number of rounds of `n_parts` threads after which the leader runs one alone.
pub(super) fn rounds_between_samples(n_parts: usize) -> u32 {
    SAMPLE.saturating_mul(n_parts as u32)
}

/// The cost or gain of work with all threads.
pub(super) struct Pace {
    /// Nanoseconds per event that the leader needs alone; not measured so far: 0.
    event_ns: f64,
    /// Nanoseconds that all threads have recently taken beyond what would have paid; negative if they have saved time.
    lost_ns: f64,
    /// Number of rounds since the leader was alone.
    n_together: u32,
    /// End of the time that the leader works alone (`alone_until`), and the length of the next such time (`alone`).
    alone_until: Option<Instant>,
    alone: Duration,
}

impl Default for Pace {
    fn default() -> Self {
        Self { event_ns: 0.0, lost_ns: 0.0, n_together: u32::MAX, alone_until: None, alone: ALONE[0] }
    }
}

impl Pace {
    /// Returns `true` if the leader of `n_parts` threads runs this round alone.
    pub(super) fn is_alone(&mut self, n_parts: usize, now: Instant) -> bool {
        self.alone_until = self.alone_until.filter(|&until| now < until);
        self.alone_until.is_some() || rounds_between_samples(n_parts) <= self.n_together
    }

    /// Records that a round of `n_events` events, begun at `start`, has taken `took`.
    pub(super) fn note(&mut self, was_alone: bool, start: Instant, took: Duration, n_events: u64) {
        let took_ns = took.as_nanos() as f64;
        if was_alone {
            self.n_together = 0;
            let event_ns = took_ns / n_events.max(1) as f64;
            // Smoothed, since other programs disturb it.
            self.event_ns += (event_ns - self.event_ns) * if self.event_ns == 0.0 { 1.0 } else { 0.25 };
            return;
        }
        self.n_together = self.n_together.saturating_add(1);
        let pays_ns = (1.0 - LEAST_GAIN) * self.event_ns * n_events as f64;
        self.lost_ns = (self.lost_ns + took_ns - pays_ns).max(-MOST_SAVED);
        if MOST_LOST <= self.lost_ns {
            self.lost_ns = 0.0;
            self.alone_until = Some(start + took + self.alone);
            self.alone = (2 * self.alone).min(ALONE[1]);
        } else if self.lost_ns == -MOST_SAVED {
            self.alone = ALONE[0];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The leader needs 100 ns for an event.
    #[test]
    fn the_leader_goes_alone_while_that_is_faster() {
        let mut pace = Pace::default();
        let start = Instant::now();
        let mut round = |took_us: u64| {
            let is_alone = pace.is_alone(2, start);
            pace.note(is_alone, start, Duration::from_micros(if is_alone { 200 } else { took_us }), 2_000);
            (pace.alone_until.is_some(), pace.alone)
        };
        // The first round is alone, to measure its time. 170 us would pay.
        assert_eq!(round(120), (false, ALONE[0]));
        (0..20).for_each(|_| assert_eq!(round(120), (false, ALONE[0])));
        // All threads are on one processor. Earlier savings last for 33 rounds, and 200 us may be lost.
        (0..39).for_each(|_| assert_eq!(round(200), (false, ALONE[0])));
        assert_eq!(round(200), (true, 2 * ALONE[0]));
        assert!(pace.is_alone(2, start + ALONE[0]) && !pace.is_alone(2, start + 2 * ALONE[0]));
        // One long wait is enough, and the next time is longer, up to a limit.
        for n in 2..10 {
            pace.note(false, start, Duration::from_millis(3), 2_000);
            assert_eq!(pace.alone, (ALONE[0] * (1 << n)).min(ALONE[1]));
        }
        pace.alone_until = None;
        (0..40).for_each(|_| pace.note(false, start, Duration::from_micros(120), 2_000));
        assert!(pace.alone_until.is_none() && pace.alone == ALONE[0]);
    }
}
