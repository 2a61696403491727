//! Whether threads that go together are faster than one alone.
//!
//! Another program may need a processor. The kernel then lets the threads of a run take turns on what is left. Nobody looks slow in
//! that case, but nothing is saved.

use std::time::{Duration, Instant};

/// Going together has to save this much of the time that the leader would need alone. Threads that share a processor save nothing,
/// and wake each other thousands of times a second.
const LEAST_GAIN: f64 = 0.15;
/// Nanoseconds that may be lost by going together before the leader goes on alone, and that may be saved for that.
const MOST_LOST: f64 = 200e3;
const MOST_SAVED: f64 = 1e6;
/// How long the leader goes on alone: the first time, and at most. Each time is twice as long as the one before, until going
/// together pays.
const ALONE: [Duration; 2] = [Duration::from_millis(10), Duration::from_millis(640)];
/// Of so many rounds the leader does one alone, to know how long that takes. How long it takes for its own part of a round says
/// nothing: another thread may have run on its processor meanwhile.
const SAMPLE: u32 = 128;

/// What going together costs or saves.
pub(super) struct Pace {
    /// Nanoseconds that the leader needs for an event where it is alone; none so far: 0.
    event_ns: f64,
    /// Nanoseconds that going together has cost of late beyond what would have paid; what it has saved is negative.
    lost_ns: f64,
    /// Rounds since the leader was alone.
    n_together: u32,
    /// Until when the leader goes on alone, and how long it will the next time.
    alone_until: Option<Instant>,
    alone: Duration,
}

impl Default for Pace {
    fn default() -> Self {
        Self { event_ns: 0.0, lost_ns: 0.0, n_together: SAMPLE, alone_until: None, alone: ALONE[0] }
    }
}

impl Pace {
    /// Whether the leader does this round alone.
    pub(super) fn is_alone(&mut self, now: Instant) -> bool {
        self.alone_until = self.alone_until.filter(|&until| now < until);
        self.alone_until.is_some() || SAMPLE <= self.n_together
    }

    /// A round of so many events has taken so long.
    pub(super) fn note(&mut self, was_alone: bool, start: Instant, took: Duration, n_events: u64) {
        let took_ns = took.as_nanos() as f64;
        if was_alone {
            self.n_together = 0;
            let event_ns = took_ns / n_events.max(1) as f64;
            // Smoothed, since other programs disturb it.
            self.event_ns += (event_ns - self.event_ns) * if self.event_ns == 0.0 { 1.0 } else { 0.25 };
            return;
        }
        self.n_together += 1;
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

    /// The leader needs 100 ns an event.
    #[test]
    fn the_leader_goes_alone_while_that_is_faster() {
        let mut pace = Pace::default();
        let start = Instant::now();
        let mut round = |took_us: u64| {
            let is_alone = pace.is_alone(start);
            pace.note(is_alone, start, Duration::from_micros(if is_alone { 200 } else { took_us }), 2_000);
            (pace.alone_until.is_some(), pace.alone)
        };
        // The first one is alone, to know how long that takes. 170 us would pay.
        assert_eq!(round(120), (false, ALONE[0]));
        (0..20).for_each(|_| assert_eq!(round(120), (false, ALONE[0])));
        // All threads are on one processor. What was saved lasts for 33 rounds, and 200 us may be lost.
        (0..39).for_each(|_| assert_eq!(round(200), (false, ALONE[0])));
        assert_eq!(round(200), (true, 2 * ALONE[0]));
        assert!(pace.is_alone(start + ALONE[0]) && !pace.is_alone(start + 2 * ALONE[0]));
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
