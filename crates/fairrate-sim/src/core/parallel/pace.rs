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
/// Number of rounds for each part between two rounds that the leader runs alone, to measure its cost. A round alone
/// takes up to `n_parts` times as long as another one, so these rounds add a 256th of the time or less. The time of the
/// leader's own part of a round is no measure: another thread may have run on its core meanwhile.
const SAMPLE: u32 = 256;

/// Number of events of a round, all parts together, below which the leader begins the next round alone: to wake the
/// other threads and to wait for them would take longer.
const FEW: u64 = 64;

/// Returns the number of rounds of `n_parts` threads after which the leader runs one alone.
fn rounds_between_samples(n_parts: usize) -> u32 {
    SAMPLE.saturating_mul(n_parts as u32)
}

/// The way in which a round is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// All threads work.
    Together,
    /// The leader does the round alone, but at most this many events of each part. The rest is another round.
    Alone(u64),
}

/// The rules that choose the way of a round by the numbers of events in those before.
#[derive(Clone, Debug)]
pub(super) struct Rules {
    /// `true` if the round before was small. The next one may be large all the same: networks whose hosts start
    /// together are idle in some windows and busy in others.
    is_small: bool,
    /// Number of rounds of all threads since the leader was alone to measure its pace.
    n_together: u32,
}

impl Default for Rules {
    fn default() -> Self {
        Self { is_small: true, n_together: u32::MAX }
    }
}

impl Rules {
    /// Returns the way of the next round of `n_parts` threads.
    pub(super) fn way(&mut self, n_parts: usize) -> Way {
        if self.is_small {
            return Way::Alone(FEW);
        }
        if rounds_between_samples(n_parts) <= self.n_together {
            self.n_together = 0;
            return Way::Alone(u64::MAX);
        }
        self.n_together += 1;
        Way::Together
    }

    /// Notes that a round had `n_events` events, and if it has reached the end of its window.
    pub(super) fn note(&mut self, all_done: bool, n_events: u64) {
        self.is_small = all_done && n_events < FEW;
    }
}

/// The cost or gain of work with all threads.
#[derive(Default)]
pub(super) struct Pace {
    rules: Rules,
    /// Nanoseconds per event that the leader needs alone; not measured so far: 0.
    event_ns: f64,
    /// Nanoseconds that all threads have recently taken beyond what would have paid; negative if they have saved time.
    lost_ns: f64,
    /// End of the time that the leader works alone, and the length of the last such time.
    alone_until: Option<Instant>,
    alone: Duration,
}

impl Pace {
    /// Returns the way of the next round of `n_parts` threads.
    pub(super) fn way(&mut self, n_parts: usize, now: Instant) -> Way {
        self.alone_until = self.alone_until.filter(|&until| now < until);
        match self.rules.way(n_parts) {
            Way::Together if self.alone_until.is_some() => Way::Alone(u64::MAX),
            way => way,
        }
    }

    /// Records that a round, begun at `start`, has taken `took`, had this many events, and has reached the end of its
    /// window or not.
    pub(super) fn note(&mut self, way: Way, start: Instant, took: Duration, (all_done, n_events): (bool, u64)) {
        self.rules.note(all_done, n_events);
        let took_ns = took.as_nanos() as f64;
        match way {
            Way::Alone(FEW) => {}
            Way::Alone(_) => {
                let event_ns = took_ns / n_events.max(1) as f64;
                // Smoothed, since other programs disturb it.
                self.event_ns += (event_ns - self.event_ns) * if self.event_ns == 0.0 { 1.0 } else { 0.25 };
            }
            Way::Together => self.note_together(start + took, took_ns, self.event_ns * n_events as f64),
        }
    }

    /// Records that all threads have taken `took_ns`, until `end`, for what the leader alone would do in `alone_ns`.
    fn note_together(&mut self, end: Instant, took_ns: f64, alone_ns: f64) {
        // One round proves little, however long it took: a thread may have lost its core for once.
        let lost_ns = (took_ns - (1.0 - LEAST_GAIN) * alone_ns).min(alone_ns);
        let most_lost_ns = alone_ns.max(MOST_LOST);
        self.lost_ns = (self.lost_ns + lost_ns).max(-MOST_SAVED);
        if most_lost_ns <= self.lost_ns {
            // If the next round loses too, that is enough.
            self.lost_ns = most_lost_ns;
            self.alone = (2 * self.alone).clamp(ALONE[0], ALONE[1]);
            self.alone_until = Some(end + self.alone);
        } else if self.lost_ns == -MOST_SAVED {
            self.alone = Duration::ZERO;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LARGE: (bool, u64) = (true, 2_000);

    /// The leader needs 100 ns for an event.
    #[test]
    fn the_leader_goes_alone_while_that_is_faster() {
        let mut pace = Pace::default();
        let start = Instant::now();
        // The first round is small, and then one is alone to measure its time.
        assert_eq!(pace.way(2, start), Way::Alone(FEW));
        pace.note(Way::Alone(FEW), start, Duration::from_micros(30), (false, 200));
        assert_eq!(pace.way(2, start), Way::Alone(u64::MAX));
        pace.note(Way::Alone(u64::MAX), start, Duration::from_micros(200), LARGE);
        let mut round = |took_us: u64| {
            let way = pace.way(2, start);
            let took_us = if way == Way::Together { took_us } else { 200 };
            pace.note(way, start, Duration::from_micros(took_us), LARGE);
            (pace.alone_until.is_some(), pace.alone)
        };
        // 170 us would pay.
        (0..21).for_each(|_| assert_eq!(round(120), (false, Duration::ZERO)));
        // All threads are on one processor. Earlier savings last for 33 rounds, and 200 us may be lost.
        (0..39).for_each(|_| assert_eq!(round(200), (false, Duration::ZERO)));
        assert_eq!(round(200), (true, ALONE[0]));
        assert_eq!(pace.way(2, start + ALONE[0] / 2), Way::Alone(u64::MAX));
        assert_eq!(pace.way(2, start + 2 * ALONE[0]), Way::Together);
        // One round that loses is enough after that, and the next time is longer, up to a limit.
        for n in 1..10 {
            pace.note(Way::Together, start, Duration::from_micros(171), LARGE);
            assert_eq!(pace.alone, (ALONE[0] * (1 << n)).min(ALONE[1]));
        }
        pace.alone_until = None;
        (0..40).for_each(|_| pace.note(Way::Together, start, Duration::from_micros(120), LARGE));
        assert!(pace.alone_until.is_none() && pace.alone == Duration::ZERO);
    }

    /// Rounds that the leader alone would do in 10 ms, of which one takes 30 ms with all threads.
    #[test]
    fn a_single_long_round_does_not_send_the_leader_alone() {
        let (mut pace, start) = (Pace::default(), Instant::now());
        let mut round = |way: Way, ms: u64| pace.note(way, start, Duration::from_millis(ms), (true, 100_000));
        round(Way::Alone(u64::MAX), 10);
        for ms in [6, 30, 6, 6, 6, 6, 30, 6] {
            round(Way::Together, ms);
        }
        assert!(pace.alone_until.is_none());
        for _ in 0..12 {
            pace.note(Way::Together, start, Duration::from_millis(10), (true, 100_000));
        }
        assert!(pace.alone_until.is_some());
    }

    #[test]
    fn the_leader_does_a_few_events_after_a_small_round_and_hands_on_the_rest() {
        let mut rules = Rules::default();
        assert_eq!(rules.way(2), Way::Alone(FEW));
        rules.note(true, FEW - 1);
        assert_eq!(rules.way(2), Way::Alone(FEW));
        // There is more in the window than that.
        rules.note(false, 2 * FEW);
        assert_eq!(rules.way(2), Way::Alone(u64::MAX));
        for _ in 0..rounds_between_samples(2) {
            rules.note(true, 1_000);
            assert_eq!(rules.way(2), Way::Together);
        }
        rules.note(true, 1_000);
        assert_eq!(rules.way(2), Way::Alone(u64::MAX));
        rules.note(true, 1);
        assert_eq!(rules.way(2), Way::Alone(FEW));
    }
}
