//! Which of the switches of a part is next.

use crate::ids::{Number, SwitchIdx};

/// No time.
pub(super) const NEVER: u64 = u64::MAX;

/// Switches by the time at which each is due, the earliest first.
///
/// The times of the switches stand in groups of four; so do the earliest times of the groups, and so on, up to a single group.
/// A time changes along one way to the top, without branches to predict.
pub(super) struct DueQueue {
    /// The groups of all levels, the single one first.
    groups: Vec<Four>,
    /// Where each level begins, the last one first: that of the switches.
    levels: Vec<usize>,
    first_ps: u64,
}

/// Four times, in picoseconds, and which of them is the least.
#[derive(Clone, Copy)]
struct Four {
    times_ps: [u64; 4],
    first: usize,
}

impl Four {
    /// Finds the least of them, which it returns.
    #[inline]
    fn find_first(&mut self) -> u64 {
        let [a, b, c, d] = self.times_ps;
        let (low_ps, high_ps) = (a.min(b), c.min(d));
        // Without branches: which one it is is as good as random.
        let (in_low, in_high) = (usize::from(b < a), 2 + usize::from(d < c));
        self.first = if high_ps < low_ps { in_high } else { in_low };
        low_ps.min(high_ps)
    }
}

impl Default for DueQueue {
    fn default() -> Self {
        Self::new(0)
    }
}

impl DueQueue {
    /// `n` switches that are never due.
    pub(super) fn new(n: usize) -> Self {
        let mut sizes = vec![n.div_ceil(4).max(1)];
        while let Some(&size) = sizes.last().filter(|size| 1 < **size) {
            sizes.push(size.div_ceil(4));
        }
        let total: usize = sizes.iter().sum();
        let mut end = total;
        let levels = sizes.iter().map(|size| {
            end -= size;
            end
        });
        Self { levels: levels.collect(), groups: vec![Four { times_ps: [NEVER; 4], first: 0 }; total], first_ps: NEVER }
    }

    /// The first time at which one is due; [`NEVER`]: none is.
    #[inline]
    pub(super) fn next_ps(&self) -> u64 {
        self.first_ps
    }

    /// Which one is due then.
    #[inline]
    pub(super) fn next(&self) -> SwitchIdx {
        let mut at = 0;
        for &level in self.levels.iter().rev() {
            at = 4 * at + self.groups[level + at].first;
        }
        SwitchIdx::from_index(at)
    }

    /// When a switch is due.
    #[inline]
    pub(super) fn due_ps(&self, switch: SwitchIdx) -> u64 {
        self.groups[self.levels[0] + switch.index() / 4].times_ps[switch.index() % 4]
    }

    /// A switch is due earlier than it was.
    #[inline]
    pub(super) fn advance(&mut self, switch: SwitchIdx, at_ps: u64) {
        let mut at = switch.index();
        for &level in &self.levels {
            let group = &mut self.groups[level + at / 4];
            group.times_ps[at % 4] = at_ps;
            if group.times_ps[group.first] <= at_ps && group.first != at % 4 {
                return;
            }
            group.first = at % 4;
            at /= 4;
        }
        self.first_ps = at_ps;
    }

    /// A switch is due later than it was.
    #[inline]
    pub(super) fn postpone(&mut self, switch: SwitchIdx, at_ps: u64) {
        let (mut at, mut time_ps) = (switch.index(), at_ps);
        for &level in &self.levels {
            let group = &mut self.groups[level + at / 4];
            group.times_ps[at % 4] = time_ps;
            time_ps = group.find_first();
            at /= 4;
        }
        self.first_ps = time_ps;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_first_is_the_least(n in 1_usize..40, steps in prop::collection::vec((0_usize..40, 0_u64..1_000), 0..200)) {
            let mut queue = DueQueue::new(n);
            let mut model = vec![NEVER; n];
            for (number, due_ps) in steps {
                let number = number % n;
                if due_ps < model[number] {
                    queue.advance(SwitchIdx::from_index(number), due_ps);
                } else {
                    queue.postpone(SwitchIdx::from_index(number), due_ps);
                }
                model[number] = due_ps;
                prop_assert_eq!(queue.next_ps(), *model.iter().min().unwrap());
                prop_assert_eq!(model[queue.next().index()], queue.next_ps());
                prop_assert!((0..n).all(|number| queue.due_ps(SwitchIdx::from_index(number)) == model[number]));
            }
        }
    }
}
