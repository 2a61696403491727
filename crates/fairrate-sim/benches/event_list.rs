//! The engine's event list against a 4-ary heap and the standard library's binary heap, under the hold model:
//! with N events pending, take the earliest and put it back later. The time of one iteration is one pop and one
//! push. `fairrate bench --job kernels` has the engine's list alone.
//!
//! `cargo bench -p fairrate-sim --bench event_list`

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::hint::black_box;

use criterion::{BenchmarkId, Criterion};
use fairrate_sim::engine::Event;

#[path = "../../fairrate-cli/src/bench/hold.rs"]
mod hold;

use hold::{Hold, Pending, SIZES, event_list};

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

fn bench<P: Pending>(criterion: &mut Criterion, name: &str, pending: impl Fn() -> P) {
    let mut group = criterion.benchmark_group("hold");
    for n in SIZES {
        let mut agreed = Hold::new(event_list(), n);
        let mut hold = Hold::new(pending(), n);
        (0..1_000).for_each(|_| assert_eq!(agreed.step(), hold.step(), "{name} pops in another order"));
        group.bench_function(BenchmarkId::new(name, n), |b| b.iter(|| black_box(hold.step())));
    }
    group.finish();
}

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    bench(&mut criterion, "timing wheel", event_list);
    bench(&mut criterion, "4-ary heap", QuadHeap::default);
    bench(&mut criterion, "binary heap", BinaryHeap::new);
    criterion.final_summary();
}
