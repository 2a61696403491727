//! The order in which the switches and hosts of a part are due, if they work through spans of time.

use crate::ids::{Number, WorkerIdx};

/// The value for "no time".
pub(super) const NEVER: u64 = u64::MAX;

/// Workers, that is switches and hosts, ordered by the time at which each is due, the earliest first.
///
/// The keys are in groups of four; so are the least keys of the groups, and so on, up to a single group. A changed key
/// is propagated along one path to the top, without branches to predict. On its way it is compared with the three other
/// keys of each group, so that a step waits for one comparison alone.
///
/// Group `g`, except for the single one, has its least key at place `g - 1` of all keys, and the workers have the
/// places behind these.
pub(super) struct DueQueue {
    /// The groups, the single one first. A key holds a time since `base_ps` and, in its low bits, the worker.
    groups: Vec<Group>,
    /// The place of the first worker's key.
    first_place: usize,
    /// Number of low bits of a key that hold the worker.
    worker_bits: u32,
    base_ps: u64,
    /// The last time that a key can hold. A worker that is due later counts as due then, and will find nothing to do:
    /// with 8,192 workers that is 37 minutes of simulated time after the base.
    farthest_ps: u64,
    first: u64,
    first_ps: u64,
}

/// The keys of four workers, or the least keys of four groups: half a cache line.
#[derive(Clone, Copy)]
#[repr(align(32))]
struct Group([u64; 4]);

impl Group {
    /// Returns the least key but that at `i`.
    #[inline]
    fn least_beside(&self, i: usize) -> u64 {
        let keys = &self.0;
        keys[(i ^ 1) % 4].min(keys[(i ^ 2) % 4].min(keys[(i ^ 3) % 4]))
    }
}

impl Default for DueQueue {
    fn default() -> Self {
        Self::new(0)
    }
}

impl DueQueue {
    /// Creates a queue of `n` workers that are never due.
    pub(super) fn new(n: usize) -> Self {
        Self::with_bits(n, n.next_power_of_two().ilog2())
    }

    fn with_bits(n: usize, worker_bits: u32) -> Self {
        // Each group after the first takes a place and gives four.
        let n_groups = n.saturating_sub(1).div_ceil(3).max(1);
        let (groups, first_place) = (vec![Group([NEVER; 4]); n_groups], n_groups - 1);
        let mut queue =
            Self { groups, first_place, worker_bits, base_ps: 0, farthest_ps: 0, first: NEVER, first_ps: NEVER };
        queue.set_base(0);
        queue
    }

    /// Returns the first time at which a worker is due; [`NEVER`]: none is.
    #[inline]
    pub(super) fn next_ps(&self) -> u64 {
        self.first_ps
    }

    /// Returns the worker that is due first.
    #[inline]
    pub(super) fn next(&self) -> WorkerIdx {
        WorkerIdx::from_index((self.first & ((1 << self.worker_bits) - 1)) as usize)
    }

    /// Returns the time at which a worker is due.
    #[inline]
    pub(super) fn due_ps(&self, worker: WorkerIdx) -> u64 {
        let at = self.place_of(worker);
        self.time_of(self.groups[at / 4].0[at % 4])
    }

    /// Makes a worker due at `at_ps`, unless it is due earlier.
    #[inline]
    pub(super) fn expect(&mut self, worker: WorkerIdx, at_ps: u64) {
        let (mut at, key) = (self.place_of(worker), self.key_of(worker, at_ps));
        if self.groups[at / 4].0[at % 4] <= key {
            return;
        }
        loop {
            let group = &mut self.groups[at / 4];
            group.0[at % 4] = key;
            if group.least_beside(at % 4) < key {
                return;
            }
            if at < 4 {
                break;
            }
            at = at / 4 - 1;
        }
        (self.first, self.first_ps) = (key, self.time_of(key));
    }

    /// Moves the due time of a worker to `at_ps`, which is not earlier than before.
    #[inline]
    pub(super) fn postpone(&mut self, worker: WorkerIdx, at_ps: u64) {
        if self.farthest_ps < at_ps && at_ps < NEVER {
            self.rebase();
        }
        let (mut at, mut key) = (self.place_of(worker), self.key_of(worker, at_ps));
        loop {
            let group = &mut self.groups[at / 4];
            group.0[at % 4] = key;
            key = key.min(group.least_beside(at % 4));
            if at < 4 {
                break;
            }
            at = at / 4 - 1;
        }
        (self.first, self.first_ps) = (key, self.time_of(key));
    }

    /// Returns the place of a worker's key among those of all groups.
    #[inline]
    fn place_of(&self, worker: WorkerIdx) -> usize {
        self.first_place + worker.index()
    }

    #[inline]
    fn key_of(&self, worker: WorkerIdx, at_ps: u64) -> u64 {
        let since_ps = at_ps.min(self.farthest_ps) - self.base_ps;
        let key = since_ps << self.worker_bits | worker.index() as u64;
        if at_ps == NEVER { NEVER } else { key }
    }

    #[inline]
    fn time_of(&self, key: u64) -> u64 {
        if key == NEVER { NEVER } else { self.base_ps + (key >> self.worker_bits) }
    }

    fn set_base(&mut self, base_ps: u64) {
        (self.base_ps, self.farthest_ps) = (base_ps, base_ps + ((u64::MAX >> self.worker_bits) - 1));
    }

    /// Sets the base to the time of the first worker; there are no earlier times.
    #[cold]
    fn rebase(&mut self) {
        let base_ps = if self.first_ps == NEVER { self.base_ps } else { self.first_ps };
        let moved = (base_ps - self.base_ps) << self.worker_bits;
        let keys = self.groups.iter_mut().flat_map(|group| &mut group.0).chain([&mut self.first]);
        for key in keys.filter(|key| **key != NEVER) {
            *key -= moved;
        }
        self.set_base(base_ps);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_first_is_the_least(n in 1_usize..90, steps in prop::collection::vec((0_usize..90, 0_u64..1_000), 0..200)) {
            let mut queue = DueQueue::new(n);
            let mut model = vec![NEVER; n];
            for (number, due_ps) in steps {
                let number = number % n;
                let due_ps = if due_ps < 900 { due_ps } else { NEVER };
                if due_ps < model[number] {
                    queue.expect(WorkerIdx::from_index(number), due_ps);
                } else {
                    queue.postpone(WorkerIdx::from_index(number), due_ps);
                }
                model[number] = due_ps;
                let least_ps = *model.iter().min().unwrap();
                prop_assert_eq!(queue.next_ps(), least_ps);
                prop_assert!(least_ps == NEVER || model[queue.next().index()] == least_ps);
                prop_assert!((0..n).all(|number| queue.due_ps(WorkerIdx::from_index(number)) == model[number]));
            }
        }

        /// Keys have room for 254 ps after the base.
        #[test]
        fn times_go_on_for_ever(n in 1_usize..20, steps in prop::collection::vec((0_usize..20, 0_u64..600), 1..400)) {
            let mut queue = DueQueue::with_bits(n, 56);
            let mut model = vec![NEVER; n];
            let mut now_ps = 0;
            for (number, after_ps) in steps {
                let (number, due_ps) = (number % n, now_ps + after_ps);
                queue.expect(WorkerIdx::from_index(number), due_ps);
                model[number] = due_ps.min(model[number]);
                let least_ps = *model.iter().min().unwrap();
                // A worker that is due early finds nothing to do.
                while queue.next_ps() < model[queue.next().index()] {
                    let early = queue.next();
                    queue.postpone(early, model[early.index()]);
                }
                let first = queue.next();
                prop_assert_eq!((queue.next_ps(), model[first.index()]), (least_ps, least_ps));
                now_ps = least_ps;
                model[first.index()] = now_ps + after_ps;
                queue.postpone(first, now_ps + after_ps);
            }
        }
    }
}
