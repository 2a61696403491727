//! When to look at sockets: when there is a reason, and not so often that it costs much.

use std::time::Duration;

use crate::agent::Nanos;

/// Looks of a kind.
#[derive(Debug)]
pub struct Looks {
    /// The time when one is wanted, if any.
    wanted: Option<Nanos>,
    /// The time before which there is none, whoever wants it.
    earliest: Nanos,
    least_pause: Nanos,
    /// The length of a pause in lengths of the look before it.
    pause: u64,
}

impl Looks {
    /// Looks that nobody wants yet, with a pause of `least_pause` at least between two, in which they take one part of the time in
    /// `pause`.
    pub fn new(least_pause: Duration, pause: u64) -> Self {
        Self { wanted: None, earliest: 0, least_pause: nanos(least_pause), pause }
    }

    /// Wants a look at the latest at this time.
    pub fn want(&mut self, at: Nanos) {
        self.wanted = Some(self.wanted.map_or(at, |wanted| wanted.min(at)));
    }

    /// Returns when the next look is due; `None`: nobody wants one.
    pub fn due(&self) -> Option<Nanos> {
        self.wanted.map(|at| at.max(self.earliest))
    }

    /// Takes in that there was a look, from `began` to `ended`. Whoever wants another one says so again.
    pub fn looked(&mut self, began: Nanos, ended: Nanos) {
        self.wanted = None;
        self.earliest = ended + self.least_pause.max(self.pause * ended.saturating_sub(began));
    }
}

/// Returns a time in nanoseconds.
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
        // A long one: four times as long.
        looks.looked(14, 34);
        looks.want(200);
        assert_eq!(looks.due(), Some(200));
        looks.want(35);
        assert_eq!(looks.due(), Some(114));
    }
}
