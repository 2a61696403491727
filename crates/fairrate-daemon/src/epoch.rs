//! The number of an allocator's reign.

/// Number of bits that identify the allocator's process, below the counter.
const ID_BITS: u32 = 24;

/// Largest difference between the counters of epochs that agents report, so that no agent can use up the counters.
const MAX_LEAD: u64 = 1024;

/// The number of an allocator's reign: a counter of 40 bits, then 24 random bits that each process draws when it
/// starts.
///
/// No clock is involved. An allocator that wants to decide takes a counter above those that its agents report, and
/// decides once more than half of the agents have accepted it. Agents accept higher epochs alone. Two majorities have
/// an agent in common, so epochs grow over restarts and from one allocator to the next. 0 is no epoch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Epoch(pub u64);

impl Epoch {
    /// No epoch.
    pub const NONE: Self = Self(0);

    /// Returns the epoch's counter.
    pub fn counter(self) -> u64 {
        self.0 >> ID_BITS
    }

    /// Returns the bits that identify the process whose instance number is `instance`.
    pub(crate) fn id(instance: u64) -> u64 {
        instance & ((1 << ID_BITS) - 1)
    }

    /// Returns `true` if the epoch is of the process with this id.
    pub(crate) fn is_of(self, id: u64) -> bool {
        self != Self::NONE && self.0 & ((1 << ID_BITS) - 1) == id
    }

    /// Returns an epoch of the process `id` above its own last one and those reported.
    ///
    /// Counters far above the median are left out: whoever reports one is alone.
    pub(crate) fn next(id: u64, own: Self, reported: &mut [Self]) -> Self {
        reported.sort_unstable();
        let median = reported.get(reported.len().saturating_sub(1) / 2).map_or(0, |epoch| epoch.counter());
        let base = median.max(own.counter());
        let most =
            reported.iter().map(|epoch| epoch.counter()).filter(|counter| counter - base.min(*counter) <= MAX_LEAD);
        let counter = most.max().unwrap_or(0).max(base) + 1;
        Self(counter.min((1 << (64 - ID_BITS)) - 1) << ID_BITS | id)
    }

    /// Returns `true` if an allocator with this epoch can be followed by one that is above `other`.
    pub(crate) fn can_reach(self, other: Self) -> bool {
        other.counter() <= self.counter() + MAX_LEAD
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn epoch(counter: u64, id: u64) -> Epoch {
        Epoch(counter << ID_BITS | id)
    }

    #[test]
    fn the_next_epoch_is_above_all_but_liars() {
        assert_eq!(Epoch::next(7, Epoch::NONE, &mut []), epoch(1, 7));
        assert_eq!(Epoch::next(7, epoch(4, 7), &mut [epoch(2, 9)]), epoch(5, 7));
        assert_eq!(Epoch::next(7, Epoch::NONE, &mut [epoch(5, 1), epoch(6, 2), epoch(5, 1)]), epoch(7, 7));
        // One of three reports the largest number: the others do not follow.
        assert_eq!(Epoch::next(7, Epoch::NONE, &mut [Epoch(u64::MAX), epoch(5, 1), epoch(5, 1)]), epoch(6, 7));
        // One of three reports 1,024 more than the last: the next is one above it. No liar gets further at a time.
        assert_eq!(
            Epoch::next(7, epoch(6, 7), &mut [epoch(6 + 1024, 1), epoch(5, 1), epoch(5, 1)]),
            epoch(6 + 1025, 7)
        );
        assert_eq!(Epoch::next(7, epoch(6, 7), &mut [epoch(7 + 1024, 1), epoch(5, 1), epoch(5, 1)]), epoch(7, 7));
        assert!(epoch(6, 7).can_reach(epoch(7, 1)) && !epoch(6, 7).can_reach(Epoch(u64::MAX)));
        assert!(epoch(6, 7).is_of(Epoch::id(0xff00_0000_0000_0007)) && !Epoch::NONE.is_of(0));
    }
}
