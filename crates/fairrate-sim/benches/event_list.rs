//! The engine's event list against a 4-ary heap and the standard library's binary heap, under the hold model:
//! with N events pending, take the earliest and put it back later. The time of one iteration is one pop and one
//! push.
//!
//! `cargo bench -p fairrate-sim --bench event_list`

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::hint::black_box;

use criterion::{BenchmarkId, Criterion};
use fairrate_sim::engine::{Event, EventKind, EventList};
use fairrate_sim::rng::{Purpose, Stream};

/// Pending events: a few hosts at a switch, a fabric, a large fabric.
const SIZES: [u32; 3] = [128, 4_096, 65_536];
/// Width of the wheel's buckets, as the engine has it: 2^11 ps.
const BUCKET_SHIFT: u32 = 11;
/// Increments drawn ahead of the measurement; a power of two.
const N_INCREMENTS: usize = 1 << 16;

trait Pending {
    fn push(&mut self, event: Event);
    fn pop(&mut self) -> Option<Event>;
}

impl Pending for EventList {
    fn push(&mut self, event: Event) {
        Self::push(self, event);
    }
    fn pop(&mut self) -> Option<Event> {
        Self::pop(self)
    }
}

impl Pending for BinaryHeap<Reverse<Event>> {
    fn push(&mut self, event: Event) {
        Self::push(self, Reverse(event));
    }
    fn pop(&mut self) -> Option<Event> {
        Self::pop(self).map(|e| e.0)
    }
}

/// A heap whose nodes have four children: half the depth of a binary heap, four neighbours to compare. As in the
/// standard library's, an event that leaves makes a hole that goes to the bottom, from where the last event rises.
#[derive(Default)]
struct QuadHeap {
    events: Vec<Event>,
}

/// The events' order as a number, which compares without branches.
fn order(event: &Event) -> u128 {
    u128::from(event.time_ps) << 64 | u128::from(event.rank) << 32 | u128::from(event.key())
}

impl QuadHeap {
    /// Puts `event` into the hole at `at` or above.
    fn rise(&mut self, mut at: usize, event: Event) {
        while 0 < at {
            let parent = (at - 1) / 4;
            if order(&self.events[parent]) <= order(&event) {
                break;
            }
            self.events[at] = self.events[parent];
            at = parent;
        }
        self.events[at] = event;
    }

    /// The position of the earliest child of `at`, if it has any.
    fn earliest_child(&self, at: usize) -> Option<usize> {
        let first = at * 4 + 1;
        let earlier = |a: usize, b: usize| if order(&self.events[b]) < order(&self.events[a]) { b } else { a };
        if first + 3 < self.events.len() {
            return Some(earlier(earlier(first, first + 1), earlier(first + 2, first + 3)));
        }
        (first..self.events.len()).reduce(earlier)
    }
}

impl Pending for QuadHeap {
    fn push(&mut self, event: Event) {
        self.events.push(event);
        self.rise(self.events.len() - 1, event);
    }

    fn pop(&mut self) -> Option<Event> {
        let last = self.events.pop()?;
        let Some(&earliest) = self.events.first() else { return Some(last) };
        let mut hole = 0;
        while let Some(child) = self.earliest_child(hole) {
            self.events[hole] = self.events[child];
            hole = child;
        }
        self.rise(hole, last);
        Some(earliest)
    }
}

/// How long after it happens an event happens again, in picoseconds, as in a fabric of 25 and 100 Gb/s: the end of
/// a packet's serialisation; its arrival, a link delay later; and one retransmission timer in a thousand.
fn increments() -> Vec<u64> {
    let mut draw = Stream::new(1, 0, Purpose::Test);
    let mut one = || {
        let serialisation = [87_200, 348_800][draw.below(2) as usize];
        match draw.below(1_000) {
            0 => 1_000_000_000 + draw.below(3_000_000_000),
            1..500 => serialisation,
            _ => serialisation + [1_000_000, 1_840_000, 5_000_000][draw.below(3) as usize],
        }
    };
    (0..N_INCREMENTS).map(|_| one()).collect()
}

/// A list of pending events in the hold model.
struct Hold<P> {
    pending: P,
    increments: Vec<u64>,
    n_steps: usize,
}

impl<P: Pending> Hold<P> {
    /// `n` pending events in their steady state: with the increments laid end to end, an event waits for the end of
    /// the increment that a random point falls into. So six in ten are timers.
    fn new(mut pending: P, n: u32) -> Self {
        let increments = increments();
        let ends: Vec<u64> = increments
            .iter()
            .scan(0, |end, i| {
                *end += i;
                Some(*end)
            })
            .collect();
        let mut draw = Stream::new(1, 1, Purpose::Test);
        for entity in 0..n {
            let point = draw.below(ends[N_INCREMENTS - 1]);
            let end = ends[ends.partition_point(|end| *end <= point)];
            pending.push(Event::new(end - point, EventKind::Arrive, entity));
        }
        Self { pending, increments, n_steps: 0 }
    }

    fn step(&mut self) -> Event {
        let event = self.pending.pop().expect("every event popped is pushed again");
        let increment = self.increments[self.n_steps % N_INCREMENTS];
        self.n_steps += 1;
        self.pending.push(Event::new(event.time_ps + increment, EventKind::Arrive, event.entity()));
        event
    }
}

fn bench<P: Pending>(criterion: &mut Criterion, name: &str, pending: impl Fn() -> P) {
    let mut group = criterion.benchmark_group("hold");
    for n in SIZES {
        let mut agreed = Hold::new(EventList::new(BUCKET_SHIFT), n);
        let mut hold = Hold::new(pending(), n);
        (0..1_000).for_each(|_| assert_eq!(agreed.step(), hold.step(), "{name} pops in another order"));
        group.bench_function(BenchmarkId::new(name, n), |b| b.iter(|| black_box(hold.step())));
    }
    group.finish();
}

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    bench(&mut criterion, "timing wheel", || EventList::new(BUCKET_SHIFT));
    bench(&mut criterion, "4-ary heap", QuadHeap::default);
    bench(&mut criterion, "binary heap", BinaryHeap::new);
    criterion.final_summary();
}
