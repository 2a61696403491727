//! The rates that a link stores for its flows in PERC and Charny's algorithm. They are sorted, so that the search for
//! the level at which they fill the link can start at the last level.

use std::collections::BTreeMap;

use fairrate_units::Time;

/// Units per bit/s of stored rates: they are multiples of 2^-16 bit/s, so that sums are exact and do not depend on
/// their history.
const PER_BPS: f64 = 65_536.0;

/// The rate of a flow at a link, and the time of its last message.
#[derive(Clone, Copy, Debug)]
struct Entry {
    rate: i64,
    seen: Time,
}

/// The rates that the flows of a link have reported, in ascending order.
///
/// `below` is the sum of the first `split` rates. Each query moves the split from its last position, which is near
/// because one message changes one rate.
#[derive(Clone, Debug)]
pub(crate) struct RateTable {
    capacity: i64,
    timeout: Time,
    flows: BTreeMap<u32, Entry>,
    /// (rate, flow), ascending.
    sorted: Vec<(i64, u32)>,
    split: usize,
    below: i128,
    total: i128,
    /// A time before which no flow was last seen.
    oldest: Time,
}

impl RateTable {
    /// Returns the table of a link of `capacity_bps` that removes a flow after `timeout`.
    pub(crate) fn new(capacity_bps: f64, timeout: Time) -> Self {
        Self {
            capacity: (capacity_bps * PER_BPS) as i64,
            timeout,
            flows: BTreeMap::new(),
            sorted: Vec::new(),
            split: 0,
            below: 0,
            total: 0,
            oldest: Time::MAX,
        }
    }

    /// Changes the capacity to `bps`. Rates that are stored stay as they are until their flows' next messages.
    pub(crate) fn set_capacity(&mut self, bps: f64) {
        self.capacity = (bps * PER_BPS) as i64;
    }

    /// Returns the number of flows.
    pub(crate) fn len(&self) -> usize {
        self.sorted.len()
    }

    /// Returns the capacity in bit/s.
    pub(crate) fn capacity(&self) -> f64 {
        self.capacity as f64 / PER_BPS
    }

    /// Returns `true` if the sum of the rates is at most the capacity.
    pub(crate) fn fit(&self) -> bool {
        self.total <= i128::from(self.capacity)
    }

    /// Returns the sum of all rates and the largest rate, in bit/s.
    pub(crate) fn total_and_largest(&self) -> (f64, f64) {
        let largest = self.sorted.last().map_or(0, |&(rate, _)| rate);
        (self.total as f64 / PER_BPS, largest as f64 / PER_BPS)
    }

    /// Removes the flows that have sent no message for longer than the timeout.
    pub(crate) fn expire(&mut self, now: Time) {
        if self.oldest == Time::MAX || now <= self.oldest.saturating_add(self.timeout) {
            return;
        }
        let timeout = self.timeout;
        let is_silent = |entry: &Entry| entry.seen.saturating_add(timeout) < now;
        let silent: Vec<u32> = self.flows.iter().filter(|(_, e)| is_silent(e)).map(|(&flow, _)| flow).collect();
        for flow in silent {
            self.remove(flow);
        }
        self.oldest = self.flows.values().map(|entry| entry.seen).min().unwrap_or(Time::MAX);
    }

    /// Removes `flow`.
    pub(crate) fn remove(&mut self, flow: u32) {
        let Some(Entry { rate, .. }) = self.flows.remove(&flow) else { return };
        let at = self.sorted.partition_point(|&entry| entry < (rate, flow));
        debug_assert!(self.sorted[at] == (rate, flow), "every flow is in both tables");
        self.sorted.remove(at);
        self.total -= i128::from(rate);
        if at < self.split {
            self.split -= 1;
            self.below -= i128::from(rate);
        }
    }

    /// Stores the rate of `flow` in bit/s, limited to the capacity.
    pub(crate) fn insert(&mut self, now: Time, flow: u32, rate_bps: f64) {
        self.remove(flow);
        // `max` also turns NaN into 0.
        let rate = ((rate_bps.max(0.0) * PER_BPS) as i64).min(self.capacity);
        self.flows.insert(flow, Entry { rate, seen: now });
        self.oldest = self.oldest.min(now);
        let at = self.sorted.partition_point(|&entry| entry < (rate, flow));
        self.sorted.insert(at, (rate, flow));
        self.total += i128::from(rate);
        if at < self.split {
            self.split += 1;
            self.below += i128::from(rate);
        }
    }

    fn split_up(&mut self) {
        self.below += i128::from(self.sorted[self.split].0);
        self.split += 1;
    }

    fn split_down(&mut self) {
        self.split -= 1;
        self.below -= i128::from(self.sorted[self.split].0);
    }

    /// Returns the f in bit/s at which Σ min(rate, f) over all flows, and over `n_more` flows without a limit, is the
    /// capacity. Such an f must exist: `n_more` is above 0, or the rates do not fit.
    pub(crate) fn level(&mut self, n_more: usize) -> f64 {
        let n = self.sorted.len() + n_more;
        loop {
            let (room, n_above) = (i128::from(self.capacity) - self.below, (n - self.split) as i128);
            let is_below = |at: usize| i128::from(self.sorted[at].0) * n_above <= room;
            if 0 < self.split && (n_above == 0 || !is_below(self.split - 1)) {
                self.split_down();
            } else if 1 < n_above && self.split < self.sorted.len() && is_below(self.split) {
                self.split_up();
            } else {
                return room as f64 / n_above as f64 / PER_BPS;
            }
        }
    }

    /// Returns the number and the sum (in bit/s) of the rates up to `at`.
    pub(crate) fn up_to(&mut self, at: f64) -> (usize, f64) {
        let at = (at.max(0.0) * PER_BPS) as i64;
        while self.sorted.get(self.split).is_some_and(|&(rate, _)| rate <= at) {
            self.split_up();
        }
        while 0 < self.split && at < self.sorted[self.split - 1].0 {
            self.split_down();
        }
        (self.split, self.below as f64 / PER_BPS)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const G: f64 = 1e9;

    fn us(us: u64) -> Time {
        Time::from_us(us)
    }

    #[test]
    fn a_silent_flow_is_forgotten_after_the_timeout() {
        let mut table = RateTable::new(10.0 * G, us(100));
        table.insert(us(0), 1, 4.0 * G);
        table.insert(us(50), 2, 4.0 * G);
        table.expire(us(100));
        assert_eq!(table.len(), 2);
        table.expire(us(101));
        assert_eq!(table.len(), 1);
        // Flow 2's deadline is at 150 us; a message moves it.
        table.insert(us(150), 2, 3.0 * G);
        table.expire(us(200));
        assert_eq!(table.len(), 1);
        table.expire(us(251));
        assert_eq!((table.len(), table.total, table.below, table.split), (0, 0, 0, 0));
    }

    #[test]
    fn the_level_fills_the_link() {
        // 60 Gb/s; 10 + 3 x 16.667 fill it.
        let mut table = RateTable::new(60.0 * G, us(100));
        for (flow, gbps) in [(1, 10.0), (2, 20.0), (3, 40.0)] {
            table.insert(us(0), flow, gbps * G);
        }
        assert!((table.level(1) - 50.0 / 3.0 * G).abs() < 1.0);
        // 10 + 20 + 30: all of 60.
        assert!((table.level(0) - 30.0 * G).abs() < 1.0);
        assert!(!table.fit());
        assert_eq!(table.up_to(20.0 * G), (2, 30.0 * G));
        assert_eq!(table.up_to(9.9 * G), (0, 0.0));
        assert_eq!(table.total_and_largest(), (70.0 * G, 40.0 * G));
    }

    /// Two flows at 30 Gb/s each, and a link that falls to 20: half of that for each, or a third beside a newcomer.
    #[test]
    fn the_level_follows_the_capacity() {
        let mut table = RateTable::new(60.0 * G, us(100));
        table.insert(us(0), 1, 30.0 * G);
        table.insert(us(0), 2, 30.0 * G);
        assert!(table.fit());
        table.level(1);
        table.set_capacity(20.0 * G);
        assert!(!table.fit());
        assert_eq!((table.level(0), table.capacity()), (10.0 * G, 20.0 * G));
        assert!((table.level(1) - 20.0 / 3.0 * G).abs() < 1.0);
        table.set_capacity(90.0 * G);
        assert_eq!(table.level(1), 30.0 * G);
    }

    /// Returns f, found by trying every number of flows below it.
    fn level_by_hand(capacity: f64, rates: &[f64], n_more: usize) -> f64 {
        let mut sorted = rates.to_vec();
        sorted.sort_by(f64::total_cmp);
        let n = sorted.len() + n_more;
        let mut sum = 0.0;
        for (k, rate) in sorted.iter().enumerate() {
            let f = (capacity - sum) / (n - k) as f64;
            if f < *rate {
                return f;
            }
            sum += rate;
        }
        (capacity - sum) / n_more as f64
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

        /// The moving split gives the result of a search from scratch, whatever the history.
        #[test]
        fn the_split_does_not_depend_on_history(
            steps in prop::collection::vec((0_u32..12, prop::option::of(0_u32..30), 0_u32..40), 1..80)
        ) {
            let mut table = RateTable::new(100.0, Time::MAX);
            let mut rates = BTreeMap::new();
            for (flow, rate, at) in steps {
                if let Some(rate) = rate {
                    table.insert(Time::ZERO, flow, f64::from(rate));
                    rates.insert(flow, f64::from(rate));
                } else {
                    table.remove(flow);
                    rates.remove(&flow);
                }
                let all: Vec<f64> = rates.values().copied().collect();
                let total: f64 = all.iter().sum();
                prop_assert!((table.level(1) - level_by_hand(100.0, &all, 1)).abs() < 1e-9);
                prop_assert_eq!(table.fit(), total <= 100.0);
                if 100.0 < total {
                    prop_assert!((table.level(0) - level_by_hand(100.0, &all, 0)).abs() < 1e-9);
                }
                let below: Vec<f64> = all.iter().copied().filter(|&rate| rate <= f64::from(at)).collect();
                prop_assert_eq!(table.up_to(f64::from(at)), (below.len(), below.iter().sum()));
            }
        }
    }
}
