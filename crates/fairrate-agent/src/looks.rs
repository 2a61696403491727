//! The schedule of looks at sockets: when there is a reason, and not so often that it costs much.

use std::time::Duration;

use crate::agent::Nanos;

/// The schedule of one kind of look.
#[derive(Debug)]
pub struct Looks {
    /// Time at which a look is wanted, if any.
    wanted: Option<Nanos>,
    /// Time before which there is no look, even if it is wanted.
    earliest: Nanos,
    least_pause: Nanos,
    /// Length of the pause after a look, as a multiple of the look's length.
    pause: u64,
}

impl Looks {
    /// Creates a schedule without a wanted look, with a pause of at least `least_pause` between two, so that looks take
    /// at most one part in `pause` of the time.
    pub fn new(least_pause: Duration, pause: u64) -> Self {
        Self { wanted: None, earliest: 0, least_pause: nanos(least_pause), pause }
    }

    /// Requests a look at `at` at the latest.
    pub fn want(&mut self, at: Nanos) {
        self.wanted = Some(self.wanted.map_or(at, |wanted| wanted.min(at)));
    }

    /// Returns the time of the next look, or `None` if none is wanted.
    pub fn due(&self) -> Option<Nanos> {
        self.wanted.map(|at| at.max(self.earliest))
    }

    /// Records that there was a look, from `began` to `ended`. All requests before it are fulfilled.
    pub fn looked(&mut self, began: Nanos, ended: Nanos) {
        self.wanted = None;
        self.earliest = ended + self.least_pause.max(self.pause * ended.saturating_sub(began));
    }
}

/// Converts a duration to nanoseconds.
pub fn nanos(time: Duration) -> Nanos {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_look_is_due_when_it_is_wanted_and_affordable() {
        let mut looks = Looks::new(Duration::from_nanos(10), 4);
        assert_eq!(looks.due(), None);
        for at in [7, 3, 5] {
            looks.want(at);
        }
        assert_eq!(looks.due(), Some(3));
        // A short look: the least pause.
        looks.looked(3, 4);
        assert_eq!(looks.due(), None);
        looks.want(5);
        assert_eq!(looks.due(), Some(14));
        // A long look: four times as long.
        looks.looked(14, 34);
        looks.want(200);
        assert_eq!(looks.due(), Some(200));
        looks.want(35);
        assert_eq!(looks.due(), Some(114));
    }
}
