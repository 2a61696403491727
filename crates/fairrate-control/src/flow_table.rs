//! The flows to which an egress port sends its rate: the five flow tables of RoCC, section III-D, and that of its FPGA
//! (IV-C).
//!
//! The paper describes the last four in a sentence each and evaluates none of them, so their details are readings,
//! named at each. The order of recipients depends only on the packets that the port has seen.

mod circular;

use std::collections::VecDeque;

use fairrate_units::Time;

use crate::config::choice;
use crate::draws::Draws;

pub use self::circular::CircularTable;

choice! {
    /// The flows to which a congestion point sends its rate.
    pub enum Recipients {
        /// The flows with a packet in the queue.
        InQueue = "in-queue",
        /// The flows that recently had a packet in the queue, up to the table's size.
        Aged = "aged",
        /// The flows of the last sampled packets (AFD's shadow buffer).
        AfdFt = "afd-ft",
        /// The flows sampled often, in a cache that evicts flows it samples seldom (ElephantTrap).
        ElephantTrap = "elephant-trap",
        /// The sampled flows, in a cache in which a flow rises one place with each sample (BubbleCache).
        BubbleCache = "bubble-cache",
        /// The flows of a circular array, in which a new flow replaces the oldest and a reader drops silent ones
        /// (§IV-C).
        Circular = "circular",
    }
}

/// The parameters of a table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TableSpec {
    pub(crate) kind: Recipients,
    /// Entries, or samples in the shadow buffer; at least one.
    pub(crate) size: usize,
    /// Lifetime of an entry of `aged` without a packet.
    pub(crate) age: Time,
    /// Sampling probability of a packet, for the tables that sample.
    pub(crate) sampling: f64,
    /// Count from which an entry of `elephant-trap` is a recipient.
    pub(crate) threshold: u32,
    /// Periods without a packet after which `circular` drops a flow.
    pub(crate) periods: u32,
}

/// The flows that receive a notice.
#[derive(Clone, Debug)]
pub(crate) enum FlowTable {
    InQueue(Counts),
    Aged(Aged),
    AfdFt(Sampled<ShadowBuffer>),
    ElephantTrap(Sampled<ElephantTrap>),
    BubbleCache(Sampled<BubbleCache>),
    /// The table, and the flows that its last reading gave.
    Circular(CircularTable, Vec<u32>),
}

impl FlowTable {
    /// Returns an empty table; `draws` are its random numbers if it samples.
    pub(crate) fn new(spec: &TableSpec, draws: Draws) -> Self {
        let size = spec.size.max(1);
        match spec.kind {
            Recipients::InQueue => Self::InQueue(Counts::default()),
            Recipients::Aged => Self::Aged(Aged { size, age: spec.age, seen: ByFlow::default() }),
            Recipients::AfdFt => {
                let table = ShadowBuffer { size, samples: VecDeque::new(), counts: Counts::default() };
                Self::AfdFt(Sampled { draws, sampling: spec.sampling, table })
            }
            Recipients::ElephantTrap => {
                let table = ElephantTrap { size, threshold: spec.threshold, entries: Vec::new(), pointer: 0 };
                Self::ElephantTrap(Sampled { draws, sampling: spec.sampling, table })
            }
            Recipients::BubbleCache => {
                let table = BubbleCache { size, entries: Vec::new() };
                Self::BubbleCache(Sampled { draws, sampling: spec.sampling, table })
            }
            Recipients::Circular => Self::Circular(CircularTable::new(size, spec.periods), Vec::new()),
        }
    }

    /// Records that a packet of `flow` joins the queue.
    pub(crate) fn on_enqueue(&mut self, now: Time, flow: u32) {
        match self {
            Self::InQueue(t) => t.add(flow),
            Self::Aged(t) => t.see(now, flow),
            Self::AfdFt(t) => t.offer(flow, ShadowBuffer::sample),
            Self::ElephantTrap(t) => t.offer(flow, ElephantTrap::sample),
            Self::BubbleCache(t) => t.offer(flow, BubbleCache::sample),
            Self::Circular(t, _) => t.add(flow),
        }
    }

    /// Records that a packet of `flow` leaves the queue.
    pub(crate) fn on_dequeue(&mut self, flow: u32) {
        if let Self::InQueue(t) = self {
            t.remove(flow);
        }
    }

    /// Ends a period: removes entries that are too old.
    pub(crate) fn expire(&mut self, now: Time) {
        match self {
            Self::Aged(t) => t.expire(now),
            Self::Circular(t, told) => {
                told.clear();
                t.get_all(|flow| told.push(flow));
            }
            _ => {}
        }
    }

    /// Calls `tell` with every flow that receives a notice.
    pub(crate) fn for_each(&self, mut tell: impl FnMut(u32)) {
        match self {
            Self::InQueue(t) => t.flows().for_each(tell),
            Self::Aged(t) => t.seen.0.iter().for_each(|&(flow, _)| tell(flow)),
            Self::AfdFt(t) => t.table.counts.flows().for_each(tell),
            Self::ElephantTrap(t) => t.table.flows().for_each(tell),
            Self::BubbleCache(t) => t.table.entries.iter().for_each(|&flow| tell(flow)),
            Self::Circular(_, told) => told.iter().for_each(|&flow| tell(flow)),
        }
    }

    /// Returns `true` if no flow receives a notice.
    pub(crate) fn is_silent(&self) -> bool {
        match self {
            Self::InQueue(t) => t.0.0.is_empty(),
            Self::Aged(t) => t.seen.0.is_empty(),
            Self::AfdFt(t) => t.table.samples.is_empty(),
            Self::ElephantTrap(t) => t.table.flows().next().is_none(),
            Self::BubbleCache(t) => t.table.entries.is_empty(),
            Self::Circular(t, _) => t.is_empty(),
        }
    }
}

/// Values by flow, in ascending order of flows, found by binary search. To move a few hundred pairs of numbers for an
/// insertion or removal costs less than hashing.
#[derive(Clone, Debug)]
pub(crate) struct ByFlow<T>(Vec<(u32, T)>);

impl<T> Default for ByFlow<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> ByFlow<T> {
    fn find(&self, flow: u32) -> Result<usize, usize> {
        self.0.binary_search_by_key(&flow, |&(f, _)| f)
    }
}

/// Number of occurrences of each flow.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counts(ByFlow<u32>);

impl Counts {
    fn add(&mut self, flow: u32) {
        match self.0.find(flow) {
            Ok(at) => self.0.0[at].1 += 1,
            Err(at) => self.0.0.insert(at, (flow, 1)),
        }
    }

    fn remove(&mut self, flow: u32) {
        let Ok(at) = self.0.find(flow) else {
            debug_assert!(false, "what leaves has joined");
            return;
        };
        self.0.0[at].1 -= 1;
        if self.0.0[at].1 == 0 {
            self.0.0.remove(at);
        }
    }

    fn flows(&self) -> impl Iterator<Item = u32> {
        self.0.0.iter().map(|&(flow, _)| flow)
    }
}

/// The flows seen recently. In a full table, a new flow replaces the least recently seen one.
#[derive(Clone, Debug)]
pub(crate) struct Aged {
    size: usize,
    age: Time,
    /// Time of each flow's last packet.
    seen: ByFlow<Time>,
}

impl Aged {
    fn see(&mut self, now: Time, flow: u32) {
        if let Ok(at) = self.seen.find(flow) {
            self.seen.0[at].1 = now;
            return;
        }
        if self.seen.0.len() == self.size {
            let oldest = (0..self.size).min_by_key(|&at| self.seen.0[at].1).expect("a table has an entry");
            self.seen.0.remove(oldest);
        }
        let at = self.seen.find(flow).expect_err("the flow is new");
        self.seen.0.insert(at, (flow, now));
    }

    fn expire(&mut self, now: Time) {
        self.seen.0.retain(|&(_, seen)| now.saturating_sub(seen) <= self.age);
    }
}

/// A table that gets only a random sample of the packets.
#[derive(Clone, Debug)]
pub(crate) struct Sampled<T> {
    draws: Draws,
    sampling: f64,
    table: T,
}

impl<T> Sampled<T> {
    fn offer(&mut self, flow: u32, sample: impl FnOnce(&mut T, u32)) {
        if self.draws.uniform() < self.sampling {
            sample(&mut self.table, flow);
        }
    }
}

/// AFD-FT: the last samples, first in, first out; a flow's count is the number of its samples in the buffer.
#[derive(Clone, Debug)]
pub(crate) struct ShadowBuffer {
    size: usize,
    samples: VecDeque<u32>,
    counts: Counts,
}

impl ShadowBuffer {
    fn sample(&mut self, flow: u32) {
        if self.samples.len() == self.size
            && let Some(oldest) = self.samples.pop_front()
        {
            self.counts.remove(oldest);
        }
        self.samples.push_back(flow);
        self.counts.add(flow);
    }
}

/// ElephantTrap: counters, and a pointer that circulates over them. A sample of a flow in the table increments its
/// count. A sample of another flow replaces the entry at the pointer if that entry's count is zero, and halves the
/// count otherwise; then the pointer moves on. A new entry has a count of one, for its first sample.
#[derive(Clone, Debug)]
pub(crate) struct ElephantTrap {
    size: usize,
    threshold: u32,
    entries: Vec<(u32, u32)>,
    pointer: usize,
}

impl ElephantTrap {
    fn sample(&mut self, flow: u32) {
        if let Some(entry) = self.entries.iter_mut().find(|e| e.0 == flow) {
            entry.1 = entry.1.saturating_add(1);
            return;
        }
        if self.entries.len() < self.size {
            self.entries.push((flow, 1));
            return;
        }
        let entry = &mut self.entries[self.pointer];
        if entry.1 == 0 {
            *entry = (flow, 1);
        } else {
            entry.1 /= 2;
        }
        self.pointer = (self.pointer + 1) % self.size;
    }

    fn flows(&self) -> impl Iterator<Item = u32> {
        self.entries.iter().filter(|e| self.threshold <= e.1).map(|e| e.0)
    }
}

/// BubbleCache: a sampled flow changes places with the flow above it; a new flow takes the lowest place.
#[derive(Clone, Debug)]
pub(crate) struct BubbleCache {
    size: usize,
    /// The flows, from the highest place down.
    entries: Vec<u32>,
}

impl BubbleCache {
    fn sample(&mut self, flow: u32) {
        match self.entries.iter().position(|&f| f == flow) {
            Some(0) => {}
            Some(at) => self.entries.swap(at, at - 1),
            None => {
                self.entries.truncate(self.size - 1);
                self.entries.push(flow);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use proptest::prelude::*;

    use super::*;

    const SPEC: TableSpec = TableSpec {
        kind: Recipients::InQueue,
        size: 3,
        age: Time::from_us(100),
        sampling: 1.0,
        threshold: 2,
        periods: 5,
    };

    fn table(kind: Recipients) -> FlowTable {
        FlowTable::new(&TableSpec { kind, ..SPEC }, Draws::new(1, 1))
    }

    fn flows(table: &FlowTable) -> Vec<u32> {
        let mut flows = Vec::new();
        table.for_each(|flow| flows.push(flow));
        assert_eq!(flows.is_empty(), table.is_silent());
        flows
    }

    fn shown(kind: Recipients, samples: &[u32]) -> FlowTable {
        let mut table = table(kind);
        for &flow in samples {
            table.on_enqueue(Time::ZERO, flow);
        }
        table
    }

    #[test]
    fn in_queue_is_who_has_a_packet_there() {
        let mut t = shown(Recipients::InQueue, &[7, 3, 7]);
        assert_eq!(flows(&t), [3, 7]);
        t.on_dequeue(7);
        assert_eq!(flows(&t), [3, 7]);
        t.on_dequeue(3);
        t.on_dequeue(7);
        assert!(flows(&t).is_empty());
    }

    #[test]
    fn aged_forgets_after_its_age_and_when_full() {
        let us = Time::from_us;
        let mut t = table(Recipients::Aged);
        for (at, flow) in [(0, 5), (10, 4), (20, 6), (30, 5)] {
            t.on_enqueue(us(at), flow);
        }
        t.on_dequeue(5);
        assert_eq!(flows(&t), [4, 5, 6], "a packet that leaves changes nothing");
        // Full: flow 4 is the least recently seen.
        t.on_enqueue(us(40), 9);
        assert_eq!(flows(&t), [5, 6, 9]);
        t.expire(us(120));
        assert_eq!(flows(&t), [5, 6, 9], "flow 6 is exactly 100 us old");
        t.expire(us(135));
        assert_eq!(flows(&t), [9]);
        t.expire(us(141));
        assert!(flows(&t).is_empty());
    }

    #[test]
    fn the_shadow_buffer_holds_the_last_samples() {
        assert_eq!(flows(&shown(Recipients::AfdFt, &[1, 2, 1])), [1, 2]);
        // The first 1 and the 2 have left: 1, 3, 3.
        assert_eq!(flows(&shown(Recipients::AfdFt, &[1, 2, 1, 3, 3])), [1, 3]);
        assert_eq!(flows(&shown(Recipients::AfdFt, &[1, 2, 1, 3, 3, 3])), [3]);
    }

    #[test]
    fn the_trap_keeps_what_comes_often() {
        // Counts 2, 1, 1: only flow 1 has two samples.
        assert_eq!(flows(&shown(Recipients::ElephantTrap, &[1, 1, 2, 3])), [1]);
        // Flows 8, 9 and 8 halve the counts to 1, 0, 0 in turn; 8 halves 1 to 0; 9 replaces 2, 8 replaces 3, and 8 is
        // sampled again.
        assert_eq!(flows(&shown(Recipients::ElephantTrap, &[1, 1, 2, 3, 8, 9, 8, 8, 9, 8, 8])), [8]);
        let FlowTable::ElephantTrap(t) = shown(Recipients::ElephantTrap, &[1, 1, 2, 3, 8, 9, 8, 8, 9, 8, 8]) else {
            unreachable!()
        };
        assert_eq!(t.table.entries, [(1, 0), (9, 1), (8, 2)]);
    }

    #[test]
    fn bubbles_rise_and_the_lowest_bursts() {
        assert_eq!(flows(&shown(Recipients::BubbleCache, &[1, 2, 3])), [1, 2, 3]);
        assert_eq!(flows(&shown(Recipients::BubbleCache, &[1, 2, 3, 3, 3, 3])), [3, 1, 2]);
        assert_eq!(flows(&shown(Recipients::BubbleCache, &[1, 2, 3, 2, 4, 5])), [2, 1, 5]);
    }

    #[test]
    fn samples_are_as_frequent_as_asked() {
        let spec = TableSpec { kind: Recipients::AfdFt, size: 100_000, sampling: 0.1, ..SPEC };
        let mut t = FlowTable::new(&spec, Draws::new(3, 4));
        for flow in 0..40_000 {
            t.on_enqueue(Time::ZERO, flow);
        }
        // 4,000 expected, standard deviation sqrt(40,000 0.1 0.9) = 60.
        assert!((3_700..4_300).contains(&flows(&t).len()), "{}", flows(&t).len());
    }

    /// Returns steps in which packets of a few flows join and leave a queue in order.
    fn steps() -> impl Strategy<Value = Vec<(u64, Option<u32>)>> {
        prop::collection::vec((0_u64..60, prop::option::weighted(0.6, 0_u32..12)), 0..200)
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        /// Compares `in-queue` with the queue itself, and `aged` with the times of all packets.
        #[test]
        fn exact_tables_are_what_they_say(steps in steps()) {
            let (mut in_queue, mut aged) = (table(Recipients::InQueue), table(Recipients::Aged));
            let mut queue = VecDeque::new();
            let mut seen: BTreeMap<u32, Time> = BTreeMap::new();
            let mut now = Time::ZERO;
            for (dt, flow) in steps {
                now += Time::from_us(dt);
                aged.expire(now);
                seen.retain(|_, t| now - *t <= SPEC.age);
                if let Some(flow) = flow {
                    in_queue.on_enqueue(now, flow);
                    aged.on_enqueue(now, flow);
                    queue.push_back(flow);
                    seen.insert(flow, now);
                    if SPEC.size < seen.len() {
                        let oldest = *seen.iter().filter(|e| *e.0 != flow).min_by_key(|e| e.1).expect("some").0;
                        seen.remove(&oldest);
                    }
                } else if let Some(flow) = queue.pop_front() {
                    in_queue.on_dequeue(flow);
                }
                let there: BTreeSet<u32> = queue.iter().copied().collect();
                prop_assert_eq!(flows(&in_queue), there.into_iter().collect::<Vec<_>>());
                prop_assert_eq!(flows(&aged), seen.keys().copied().collect::<Vec<_>>());
            }
        }

        /// The sampling tables hold no more flows than their size, none twice and none that was not sampled; the shadow
        /// buffer holds the last samples.
        #[test]
        fn sampling_tables_are_small_sets(samples in prop::collection::vec(0_u32..12, 0..200)) {
            for kind in [Recipients::AfdFt, Recipients::ElephantTrap, Recipients::BubbleCache] {
                let told = flows(&shown(kind, &samples));
                let unique: BTreeSet<u32> = told.iter().copied().collect();
                prop_assert!(told.len() <= SPEC.size && unique.len() == told.len());
                prop_assert!(unique.iter().all(|flow| samples.contains(flow)));
            }
            let last: BTreeSet<u32> = samples.iter().rev().take(SPEC.size).copied().collect();
            prop_assert_eq!(flows(&shown(Recipients::AfdFt, &samples)), last.into_iter().collect::<Vec<_>>());
        }
    }
}
