use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::event::Event;

/// Buckets of the wheel; a power of two.
const BUCKETS: u64 = 4_096;
const WORDS: usize = (BUCKETS / 64) as usize;
const NONE: u32 = u32::MAX;

#[derive(Clone, Copy)]
struct Node {
    event: Event,
    next: u32,
}

/// Pending events, popped in ascending order of (time, kind, entity).
///
/// A timing wheel of 4,096 buckets holds the near future as pooled, unsorted lists; a bucket is sorted when
/// the clock reaches it. What lies beyond the wheel waits in a binary heap. The bench `event_list` holds this
/// against a 4-ary heap and a binary heap.
pub struct EventList {
    /// The bucket being emptied, sorted so that the next event is last.
    current: Vec<Event>,
    /// Absolute number of that bucket.
    now: u64,
    /// Bucket width is `1 << shift` picoseconds.
    shift: u32,
    heads: Vec<u32>,
    occupied: [u64; WORDS],
    nodes: Vec<Node>,
    free: u32,
    in_wheel: usize,
    far: BinaryHeap<Reverse<Event>>,
}

impl EventList {
    /// An empty list whose buckets are `1 << shift` picoseconds wide.
    pub fn new(shift: u32) -> Self {
        Self {
            current: Vec::with_capacity(64),
            now: 0,
            shift,
            heads: vec![NONE; BUCKETS as usize],
            occupied: [0; WORDS],
            nodes: Vec::with_capacity(1 << 12),
            free: NONE,
            in_wheel: 0,
            far: BinaryHeap::new(),
        }
    }

    /// Number of pending events.
    pub fn len(&self) -> usize {
        self.current.len() + self.in_wheel + self.far.len()
    }

    /// Whether nothing is pending.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Adds an event, not earlier than the last one popped.
    #[inline]
    pub fn push(&mut self, event: Event) {
        let bucket = event.time_ps >> self.shift;
        if bucket <= self.now {
            let at = self.current.partition_point(|e| event < *e);
            self.current.insert(at, event);
        } else if bucket < self.now + BUCKETS {
            self.push_wheel(bucket, event);
        } else {
            self.far.push(Reverse(event));
        }
    }

    fn push_wheel(&mut self, bucket: u64, event: Event) {
        let slot = (bucket % BUCKETS) as usize;
        let node = Node { event, next: self.heads[slot] };
        let index = if self.free == NONE {
            self.nodes.push(node);
            (self.nodes.len() - 1) as u32
        } else {
            let index = self.free;
            self.free = self.nodes[index as usize].next;
            self.nodes[index as usize] = node;
            index
        };
        self.heads[slot] = index;
        self.occupied[slot / 64] |= 1 << (slot % 64);
        self.in_wheel += 1;
    }

    /// Removes and returns the earliest event, if it is before `limit_ps`. If not, later pushes may be as early as that.
    #[inline]
    pub fn pop_before(&mut self, limit_ps: u64) -> Option<Event> {
        if self.current.is_empty() {
            let starts_in_time = |bucket| bucket << self.shift < limit_ps;
            if !self.next_bucket().is_some_and(starts_in_time) || !self.advance() {
                return None;
            }
        }
        self.current.pop_if(|event| event.time_ps < limit_ps)
    }

    /// Time of the earliest event.
    pub fn next_ps(&self) -> Option<u64> {
        if let Some(event) = self.current.last() {
            return Some(event.time_ps);
        }
        let far = self.far.peek().map(|event| event.0.time_ps);
        let near = (0 < self.in_wheel).then(|| {
            let mut at = self.heads[(self.next_occupied() % BUCKETS) as usize];
            let mut first = u64::MAX;
            while at != NONE {
                let node = &self.nodes[at as usize];
                first = first.min(node.event.time_ps);
                at = node.next;
            }
            first
        });
        near.into_iter().chain(far).min()
    }

    /// The next bucket that holds something.
    fn next_bucket(&self) -> Option<u64> {
        let far = self.far.peek().map(|e| e.0.time_ps >> self.shift);
        let near = (self.in_wheel > 0).then(|| self.next_occupied());
        near.into_iter().chain(far).min()
    }

    /// Removes and returns the earliest event.
    #[inline]
    pub fn pop(&mut self) -> Option<Event> {
        if self.current.is_empty() && !self.advance() {
            return None;
        }
        self.current.pop()
    }

    /// Moves the clock to the next bucket that holds something.
    fn advance(&mut self) -> bool {
        let Some(bucket) = self.next_bucket() else { return false };
        self.now = bucket;
        while let Some(Reverse(event)) = self.far.peek().copied() {
            let b = event.time_ps >> self.shift;
            if b >= bucket + BUCKETS {
                break;
            }
            self.far.pop();
            if b == bucket { self.current.push(event) } else { self.push_wheel(b, event) }
        }
        self.take_bucket(bucket);
        self.current.sort_unstable_by(|a, b| b.cmp(a));
        true
    }

    fn take_bucket(&mut self, bucket: u64) {
        let slot = (bucket % BUCKETS) as usize;
        let mut at = std::mem::replace(&mut self.heads[slot], NONE);
        self.occupied[slot / 64] &= !(1 << (slot % 64));
        while at != NONE {
            let node = &mut self.nodes[at as usize];
            self.current.push(node.event);
            let next = std::mem::replace(&mut node.next, self.free);
            self.free = at;
            at = next;
            self.in_wheel -= 1;
        }
    }

    /// Absolute number of the first bucket after `now` that is in use; the wheel is not empty.
    fn next_occupied(&self) -> u64 {
        let start = ((self.now + 1) % BUCKETS) as usize;
        let first = self.occupied[start / 64] & (u64::MAX << (start % 64));
        let mut word = start / 64;
        let mut bits = first;
        for _ in 0..=WORDS {
            if bits != 0 {
                let slot = (word * 64) as u64 + u64::from(bits.trailing_zeros());
                let ahead = (slot + BUCKETS - start as u64) % BUCKETS;
                return self.now + 1 + ahead;
            }
            word = (word + 1) % WORDS;
            bits = self.occupied[word];
        }
        unreachable!("the wheel counts events but has none")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::EventKind;
    use proptest::prelude::*;

    proptest! {
        /// Against a plain heap: same order whatever the mix of near, far and simultaneous events.
        #[test]
        fn pops_in_order(
            steps in prop::collection::vec((0u64..3, 0u64..40_000_000, 0u32..8, any::<bool>()), 1..400),
            shift in 0u32..14,
        ) {
            let mut list = EventList::new(shift);
            let mut model = BinaryHeap::new();
            let mut now = 0;
            for (scale, delta, entity, pop) in steps {
                let delta = [delta % 5_000, delta, delta * 1_000][scale as usize];
                let event = Event::new(now + delta, EventKind::Arrive, entity);
                list.push(event);
                model.push(Reverse(event));
                prop_assert_eq!(list.len(), model.len());
                if pop {
                    let event = list.pop();
                    prop_assert_eq!(event, model.pop().map(|e| e.0));
                    now = event.map_or(now, |e| e.time_ps);
                }
            }
            while let Some(Reverse(event)) = model.pop() {
                prop_assert_eq!(list.pop(), Some(event));
            }
            prop_assert!(list.is_empty());
        }
    }
}
