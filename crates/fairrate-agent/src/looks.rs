//! The schedule of looks at sockets: when there is a reason, and not so often that it costs much.

use std::time::Duration;

use crate::agent::Nanos;

/// Shortest time between two looks at all sockets.
pub const ALL_LEAST_PAUSE: Duration = Duration::from_millis(10);

/// Pauses after a look at all sockets: they take at most a hundredth of a processor, and a twentieth while rates wait
/// that nothing else brings into force.
pub const ALL: Pauses = Pauses { usual: 100, urgent: 20 };

/// Pauses after a look at tracked sockets, which take at most a twentieth of a processor.
pub const TRACKED: Pauses = Pauses { usual: 20, urgent: 20 };

/// The schedule of one kind of look.
#[derive(Debug)]
pub struct Looks {
    /// Time at which a look is wanted, if any.
    wanted: Option<Nanos>,
    /// Time at which a look is wanted urgently, if any.
    urgent: Option<Nanos>,
    /// Times before which there is no look, even if it is wanted, or wanted urgently.
    earliest: Nanos,
    earliest_urgent: Nanos,
    least_pause: Nanos,
    pauses: Pauses,
}

/// Lengths of the pause after a look, as multiples of the processor's time that the look took: one part in so many is
/// the most that looks take of a processor. Time in which the machine ran other programs does not count: on a busy
/// machine it can be ten times as long, and rates would wait ten times as long for a look.
#[derive(Clone, Copy, Debug)]
pub struct Pauses {
    /// The multiple for a look that is wanted.
    pub usual: u64,
    /// The multiple for a look that is wanted urgently.
    pub urgent: u64,
}

impl Looks {
    /// Creates a schedule without a wanted look, with a pause of at least `least_pause` between two.
    pub fn new(least_pause: Duration, pauses: Pauses) -> Self {
        let least_pause = nanos(least_pause);
        Self { wanted: None, urgent: None, earliest: 0, earliest_urgent: 0, least_pause, pauses }
    }

    /// Requests a look at `at` at the latest.
    pub fn want(&mut self, at: Nanos) {
        self.wanted = Some(self.wanted.map_or(at, |wanted| wanted.min(at)));
    }

    /// Requests a look at `at` at the latest, after the shorter pause.
    pub fn hurry(&mut self, at: Nanos) {
        self.urgent = Some(self.urgent.map_or(at, |urgent| urgent.min(at)));
    }

    /// Returns the time of the next look, or `None` if none is wanted.
    pub fn due(&self) -> Option<Nanos> {
        let usual = self.wanted.map(|at| at.max(self.earliest));
        let urgent = self.urgent.map(|at| at.max(self.earliest_urgent));
        usual.into_iter().chain(urgent).min()
    }

    /// Records that a look has ended, for which the processor took `spent`. All requests before it are fulfilled.
    pub fn looked(&mut self, ended: Nanos, spent: Nanos) {
        (self.wanted, self.urgent) = (None, None);
        let after = |pause: u64| ended + self.least_pause.max(pause.saturating_mul(spent));
        (self.earliest, self.earliest_urgent) = (after(self.pauses.usual), after(self.pauses.urgent));
    }
}

/// Converts a duration to nanoseconds.
pub fn nanos(time: Duration) -> Nanos {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAUSES: Pauses = Pauses { usual: 4, urgent: 2 };
    const MS: Nanos = 1_000_000;

    #[test]
    fn a_look_is_due_when_it_is_wanted_and_affordable() {
        let mut looks = Looks::new(Duration::from_nanos(10), PAUSES);
        assert_eq!(looks.due(), None);
        for at in [7, 3, 5] {
            looks.want(at);
        }
        assert_eq!(looks.due(), Some(3));
        // A short look: the least pause.
        looks.looked(4, 1);
        assert_eq!(looks.due(), None);
        looks.want(5);
        assert_eq!(looks.due(), Some(14));
        // A long look: four times as long.
        looks.looked(34, 20);
        looks.want(200);
        assert_eq!(looks.due(), Some(200));
        looks.want(35);
        assert_eq!(looks.due(), Some(114));
    }

    #[test]
    fn an_urgent_look_waits_for_the_shorter_pause() {
        let mut looks = Looks::new(Duration::from_nanos(10), PAUSES);
        looks.looked(34, 20);
        looks.want(35);
        looks.hurry(36);
        assert_eq!(looks.due(), Some(74));
        // The least pause holds for both.
        looks.looked(80, 1);
        looks.hurry(81);
        assert_eq!(looks.due(), Some(90));
        looks.hurry(200);
        assert_eq!(looks.due(), Some(90));
    }

    /// The soak's link that was down: sockets wait for a retransmission, so no acknowledgment brings their rates into
    /// force, and only a look does. The machine runs other programs in the middle of each look.
    #[test]
    fn a_rate_that_no_acknowledgment_brings_comes_with_a_look_within_the_lease_on_a_busy_machine() {
        let lease = 500 * MS;
        for (spent, lasted) in [(2, 2), (2, 13), (2, 40), (10, 10), (10, 100)] {
            let mut looks = Looks::new(ALL_LEAST_PAUSE, ALL);
            looks.looked(lasted * MS, spent * MS);
            // The allocator's rate comes right after a look.
            let since = lasted * MS;
            looks.hurry(since);
            let due = looks.due().expect("it is wanted");
            assert!(due + lasted * MS - since <= lease, "{spent} ms of {lasted}: due {} ms later", (due - since) / MS);
        }
    }

    #[test]
    fn looks_take_a_hundredth_of_a_processor_and_a_twentieth_while_rates_wait() {
        for (urgently, most) in [(false, 0.01), (true, 0.05)] {
            let (mut looks, mut now, mut n) = (Looks::new(ALL_LEAST_PAUSE, ALL), 0, 0_u64);
            while now < 100_000 * MS {
                if urgently {
                    looks.hurry(now);
                } else {
                    looks.want(now);
                }
                now = looks.due().expect("it is wanted") + 3 * MS;
                looks.looked(now, 2 * MS);
                n += 1;
            }
            let share = (n * 2 * MS) as f64 / now as f64;
            assert!(0.8 * most < share && share <= most, "{share}");
        }
    }
}
