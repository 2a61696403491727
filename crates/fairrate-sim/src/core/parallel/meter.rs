//! The measurement of a run in several parts on one thread: the work of each part in each round.

use std::time::Duration;

use super::meeting::Meeting;
use super::pace::{Rules, Way};
use crate::thread_clock;

/// Nanoseconds of a duration; those of an hour and more count as the largest number.
fn ns(duration: Duration) -> u32 {
    u32::try_from(duration.as_nanos()).unwrap_or(u32::MAX)
}

/// A round of a run: a window of simulated time, or a piece of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Round {
    /// Number of events of all parts.
    n_events: u64,
    /// `true` if all threads would work in it; otherwise the leader would do it alone.
    is_shared: bool,
    /// Nanoseconds since the round before, in which the leader alone works.
    between_ns: u32,
}

/// The measured work of a run in parts: the time of each part in each round, and the leader's time between rounds.
///
/// One thread does all parts in turn, and its processor time is measured. The results of the run are those of as many
/// threads.
#[derive(Clone, Debug)]
pub struct Work {
    n_parts: usize,
    rounds: Vec<Round>,
    /// Nanoseconds of each part (`part_ns`), and number of its events, round after round.
    part_ns: Vec<u32>,
    part_events: Vec<u32>,
    /// The end of the last round, or the time at which the caller went on with the run.
    last: Option<Duration>,
    /// The rules of the crew, which choose the rounds that all threads would share.
    rules: Rules,
}

impl Work {
    pub(super) fn new(n_parts: usize) -> Self {
        let rules = Rules::default();
        Self { n_parts, rounds: Vec::new(), part_ns: Vec::new(), part_events: Vec::new(), last: None, rules }
    }

    /// Notes that a caller goes on with the run: the time before was not the leader's.
    pub(super) fn go_on(&mut self) {
        self.last = Some(thread_clock::now());
    }

    /// Runs a round: calls `work` with the number of each part and the largest number of its events, measures each
    /// call, and returns `true` if all calls did, and the sum of their events.
    pub(super) fn round(&mut self, mut work: impl FnMut(usize, u64) -> (bool, u64)) -> (bool, u64) {
        let way = if self.n_parts == 1 { Way::Alone(u64::MAX) } else { self.rules.way(self.n_parts) };
        let most_events = if let Way::Alone(most) = way { most } else { u64::MAX };
        let mut before = thread_clock::now();
        let between_ns = self.last.map_or(0, |last| ns(before.saturating_sub(last)));
        let (mut all_done, mut n_events) = (true, 0);
        for part in 0..self.n_parts {
            let (is_done, n) = work(part, most_events);
            let now = thread_clock::now();
            self.part_ns.push(ns(now.saturating_sub(before)));
            self.part_events.push(u32::try_from(n).unwrap_or(u32::MAX));
            before = now;
            all_done &= is_done;
            n_events += n;
        }
        self.last = Some(before);
        self.rules.note(all_done, n_events);
        self.rounds.push(Round { n_events, is_shared: way == Way::Together, between_ns });
        (all_done, n_events)
    }

    /// Replaces each time by that in `other`, the work of the same run, if that is less: other programs on the machine
    /// and interrupts only add to times.
    ///
    /// # Panics
    /// If the two runs are not the same.
    pub fn keep_least(&mut self, other: &Self) {
        let events = |work: &Self| work.rounds.iter().map(|round| round.n_events).collect::<Vec<_>>();
        assert!(self.n_parts == other.n_parts && events(self) == events(other), "the same run, in the same parts");
        let least = |own: &mut u32, other: u32| *own = other.min(*own);
        self.part_ns.iter_mut().zip(&other.part_ns).for_each(|(own, &other)| least(own, other));
        for (own, other) in self.rounds.iter_mut().zip(&other.rounds) {
            least(&mut own.between_ns, other.between_ns);
        }
    }

    /// Returns the number of parts.
    pub fn n_parts(&self) -> usize {
        self.n_parts
    }

    /// Returns the number of rounds.
    pub fn n_rounds(&self) -> usize {
        self.rounds.len()
    }

    /// Returns the number of events of all rounds.
    pub fn n_events(&self) -> u64 {
        self.rounds.iter().map(|round| round.n_events).sum()
    }

    /// Returns the events of the part with the most in each round that all threads share, divided by those of the mean
    /// part; 1 if there is no such round. It does not depend on the machine.
    pub fn uneven_events(&self) -> f64 {
        let (mut most, mut sum) = (0, 0);
        for (round, parts) in self.rounds.iter().zip(self.part_events.chunks(self.n_parts)) {
            if round.is_shared {
                most += u64::from(parts.iter().copied().max().unwrap_or(0));
                sum += round.n_events;
            }
        }
        if sum == 0 { 1.0 } else { most as f64 * self.n_parts as f64 / sum as f64 }
    }

    /// Returns the work of each part in all rounds.
    pub fn of_parts(&self) -> Vec<Duration> {
        let mut sums = vec![0; self.n_parts];
        for round in self.part_ns.chunks(self.n_parts) {
            sums.iter_mut().zip(round).for_each(|(sum, &ns)| *sum += u64::from(ns));
        }
        sums.into_iter().map(Duration::from_nanos).collect()
    }

    /// Returns the time between rounds.
    pub fn between(&self) -> Duration {
        Duration::from_nanos(self.rounds.iter().map(|round| u64::from(round.between_ns)).sum())
    }

    /// Returns the time of the run on one thread: the work of all parts, and the time between rounds.
    pub fn total(&self) -> Duration {
        self.of_parts().iter().sum::<Duration>() + self.between()
    }

    /// Computes the time of the run on a core for each part, whose threads meet at the cost of `meeting`.
    pub fn critical_path(&self, meeting: &Meeting) -> CriticalPath {
        let mut path =
            CriticalPath { leader_ns: 0, alone_ns: 0, longest_ns: 0, meetings_ns: 0, n_meetings: 0, n_wakes: 0 };
        let spin_ns = ns(meeting.spin);
        // The time for which each thread waits before a round.
        let mut waited: Vec<u32> = vec![u32::MAX; self.n_parts];
        for (round, parts) in self.rounds.iter().zip(self.part_ns.chunks(self.n_parts)) {
            path.leader_ns += u64::from(round.between_ns);
            let sum: u64 = parts.iter().map(|&ns| u64::from(ns)).sum();
            let longest = parts.iter().copied().max().unwrap_or(0);
            let alone_ns = if round.is_shared { 0 } else { sum };
            let leader_ns = u32::try_from(u64::from(round.between_ns) + alone_ns).unwrap_or(u32::MAX);
            for waited in &mut waited {
                *waited = waited.saturating_add(leader_ns);
            }
            if !round.is_shared {
                path.alone_ns += alone_ns;
                continue;
            }
            path.n_meetings += 1;
            path.longest_ns += u64::from(longest);
            // The first thread is the leader, which is awake.
            let sleeps = self.n_parts > 1 && waited[1..].iter().any(|&waited| spin_ns < waited);
            path.n_wakes += u64::from(sleeps);
            path.meetings_ns += u64::from(ns(if sleeps { meeting.asleep } else { meeting.awake }));
            waited.iter_mut().zip(parts).for_each(|(waited, ns)| *waited = longest - ns);
        }
        path
    }
}

/// The parts of the time that a run takes on a core for each of its parts, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CriticalPath {
    /// Time of the leader between rounds: it hands over mail and passes results on.
    pub leader_ns: u64,
    /// Rounds that the leader does alone.
    pub alone_ns: u64,
    /// The longest part of each of the other rounds.
    pub longest_ns: u64,
    /// Meetings of the threads.
    pub meetings_ns: u64,
    /// Number of meetings (`n_meetings`), and of those to which a thread had to be woken (`n_wakes`).
    pub n_meetings: u64,
    /// See `n_meetings`.
    pub n_wakes: u64,
}

impl CriticalPath {
    /// Returns the length of the path.
    pub fn length(&self) -> Duration {
        Duration::from_nanos(self.leader_ns + self.alone_ns + self.longest_ns + self.meetings_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two parts in four rounds: between them 10 ns each, spin 50 ns, a meeting 5 ns, or 100 ns if a thread sleeps.
    #[test]
    fn the_path_goes_by_the_longest_part() {
        let round = |n_events, is_shared| Round { n_events, is_shared, between_ns: 10 };
        let rounds = vec![round(1, false), round(900, true), round(900, true), round(900, true)];
        let part_ns = vec![20, 30, 400, 380, 100, 300, 200, 290];
        let part_events = vec![1, 0, 600, 300, 450, 450, 0, 900];
        let work = Work { n_parts: 2, rounds, part_ns, part_events, last: None, rules: Rules::default() };
        let [awake, asleep, spin] = [5, 100, 50].map(Duration::from_nanos);
        let path = work.critical_path(&Meeting { n_threads: 2, n_measured: 2, awake, asleep, spin });
        // The first round is the leader's. The worker has slept until the second; before the third it has waited for
        // 20 + 10 ns and before the fourth for 10. The leader has then waited for 200, but it is its own call that
        // wakes others.
        let expected = CriticalPath {
            leader_ns: 40,
            alone_ns: 50,
            longest_ns: 400 + 300 + 290,
            meetings_ns: 100 + 5 + 5,
            n_meetings: 3,
            n_wakes: 1,
        };
        assert_eq!(path, expected);
        assert_eq!(path.length(), Duration::from_nanos(40 + 50 + 990 + 110));
        assert_eq!(work.of_parts(), [720, 1_000].map(Duration::from_nanos));
        assert_eq!(work.total(), Duration::from_nanos(1_760));
        // 600, 450 and 900 events of three rounds where an even cut would have 450 each.
        assert_eq!((work.uneven_events(), work.n_events()), (1_950.0 / 1_350.0, 2_701));
    }
}
