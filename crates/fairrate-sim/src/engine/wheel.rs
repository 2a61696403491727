//! The timing wheel of an event list: the near future in buckets, the rest in a heap.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::event::Event;
use crate::sorting;

/// Binary logarithm of the number of buckets of a wheel: enough to span [`SPAN_SHIFT`], within these bounds.
const BUCKETS_SHIFT: std::ops::RangeInclusive<u32> = 10..=18;
/// Binary logarithm of the span of a wheel, if its number of buckets allows: 2^23 ps = 8.4 us, more than a link's
/// delay.
const SPAN_SHIFT: u32 = 23;
/// Binary logarithm of the widest bucket: 2^16 ps = 65.5 ns, with which the smallest wheel spans 67 us.
const WIDEST_SHIFT: u32 = 16;
/// Number of buckets emptied between two adjustments of their width.
const LOOK_EVERY: u32 = if cfg!(test) { 8 } else { 1 << 12 };
/// Average number of events in a bucket at which buckets become narrower.
const FULL: u32 = 12;
/// Binary logarithm of the narrowest bucket: 2^5 ps, with which the largest wheel still spans [`SPAN_SHIFT`]. Hosts in
/// step have hundreds of events at a time, which no bucket parts.
const NARROWEST_SHIFT: u32 = SPAN_SHIFT - *BUCKETS_SHIFT.end();
/// Time for which [`Wheel::each_from`] looks ahead, in picoseconds: events may still be added that come later.
const NEAR_PS: u64 = 1 << WIDEST_SHIFT;
const NONE: u32 = u32::MAX;

/// A pending event, small and quick to compare.
pub(super) trait Entry: Copy + Ord {
    /// An entry before or equal to all others.
    const FIRST: Self;
    fn key(self) -> u32;
    fn pack(event: Event) -> Self;
    /// Returns the event, which is not before `base_ps` and less than 2^32 ps after it.
    fn unpack(self, base_ps: u64) -> Event;
}

/// An event without a rank whose time is stored modulo 2^32 ps = 4.3 ms: the wheel spans less.
impl Entry for u64 {
    const FIRST: Self = 0;
    #[inline]
    fn pack(event: Event) -> Self {
        event.time_ps << 32 | u64::from(event.key())
    }
    #[inline]
    fn key(self) -> u32 {
        self as u32
    }
    #[inline]
    fn unpack(self, base_ps: u64) -> Event {
        let ahead = ((self >> 32) as u32).wrapping_sub(base_ps as u32);
        Event::from_key(base_ps + u64::from(ahead), self as u32)
    }
}

impl Entry for u128 {
    const FIRST: Self = 0;
    #[inline]
    fn pack(event: Event) -> Self {
        event.order()
    }
    #[inline]
    fn key(self) -> u32 {
        self as u32
    }
    #[inline]
    fn unpack(self, _: u64) -> Event {
        Event::from_key((self >> 64) as u64, self as u32).ranked((self >> 32) as u32)
    }
}

/// A node aligned like its `next`: 12 bytes for an event without a rank.
#[derive(Clone, Copy)]
#[repr(C, packed(4))]
struct Node<E> {
    entry: E,
    next: u32,
}

pub(super) struct Wheel<E> {
    /// The bucket being emptied, sorted so that the next event is last.
    current: Vec<E>,
    /// Absolute number of the bucket being emptied: see [`Wheel::go_to`].
    pub(super) now: u64,
    /// A time before all entries, by much less than 2^32 ps.
    base_ps: u64,
    /// Binary logarithm of the bucket width in picoseconds.
    pub(super) shift: u32,
    /// Number of buckets less one; a power of two less one.
    mask: u64,
    heads: Vec<u32>,
    /// One bit for each bucket: bit b of word w is set if bucket 64 w + b is in use.
    occupied: Vec<u64>,
    /// One bit for each word: bit b of word w is set if word 64 w + b of `occupied` is not zero.
    summary: Vec<u64>,
    nodes: Vec<Node<E>>,
    free: u32,
    n_near: usize,
    far: BinaryHeap<Reverse<Event>>,
    /// Number of buckets to empty before the next adjustment of their width.
    until_look: u32,
    /// `true` if `EventList::reaches_bucket` was not called since the clock reached this bucket.
    pub(super) is_fresh: bool,
    /// Number of events taken out of buckets since the last adjustment.
    taken: u32,
}

impl<E: Entry> Wheel<E> {
    pub(super) fn new(shift: u32) -> Self {
        let mut list = Self {
            current: Vec::with_capacity(64),
            now: 0,
            base_ps: 0,
            shift,
            mask: 0,
            heads: Vec::new(),
            occupied: Vec::new(),
            summary: Vec::new(),
            nodes: Vec::with_capacity(1 << 12),
            free: NONE,
            n_near: 0,
            far: BinaryHeap::new(),
            until_look: LOOK_EVERY,
            is_fresh: false,
            taken: 0,
        };
        list.build_wheel(shift);
        list
    }

    pub(super) fn len(&self) -> usize {
        self.current.len() + self.n_near + self.far.len()
    }

    #[inline(always)] // A call costs as much as its body.
    pub(super) fn push(&mut self, event: Event) {
        let bucket = event.time_ps >> self.shift;
        if bucket.wrapping_sub(self.now).wrapping_sub(1) < self.mask {
            self.push_wheel(bucket, event);
        } else {
            self.push_aside(bucket, event);
        }
    }

    /// Adds an event that does not belong in the wheel.
    #[inline(never)]
    fn push_aside(&mut self, bucket: u64, event: Event) {
        if bucket <= self.now {
            let entry = E::pack(event);
            let at = self.current.partition_point(|e| entry < *e);
            self.current.insert(at, entry);
        } else {
            self.far.push(Reverse(event));
        }
    }

    #[inline(always)] // A call costs as much as its body.
    fn push_wheel(&mut self, bucket: u64, event: Event) {
        let slot = (bucket & self.mask) as usize;
        let node = Node { entry: E::pack(event), next: self.heads[slot] };
        let index = self.free;
        if let Some(place) = self.nodes.get_mut(index as usize) {
            self.free = place.next;
            *place = node;
            self.heads[slot] = index;
        } else {
            self.heads[slot] = self.nodes.len() as u32;
            self.nodes.push(node);
        }
        let word = &mut self.occupied[slot / 64];
        // Where events are dense, the word is seldom empty.
        if *word == 0 {
            self.summary[slot / 4_096] |= 1 << (slot / 64 % 64);
        }
        *word |= 1 << (slot % 64);
        self.n_near += 1;
    }

    #[inline(always)] // A call costs as much as its body.
    pub(super) fn pop_ahead_of(&mut self, limit: Event) -> Option<Event> {
        if self.current.is_empty() {
            self.advance(limit.time_ps.saturating_add(1));
        }
        let event = self.current.last()?.unpack(self.base_ps);
        if limit.time_ps <= event.time_ps && (limit.time_ps < event.time_ps || limit <= event) {
            return None;
        }
        self.current.pop();
        Some(event)
    }

    /// Moves the clock to `bucket`.
    #[inline]
    pub(super) fn go_to(&mut self, bucket: u64) {
        self.now = bucket;
        // After a rebuild, events pushed into the bucket being emptied may be before the narrow bucket `now`.
        self.base_ps = (bucket << self.shift).saturating_sub(1 << WIDEST_SHIFT);
    }

    pub(super) fn bound(&self) -> Event {
        if let Some(entry) = self.current.last() {
            return entry.unpack(self.base_ps);
        }
        let far = self.far.peek().map_or(Event::LAST, |event| event.0);
        let near =
            if self.n_near == 0 { Event::LAST } else { Event::earliest(self.next_occupied(self.now) << self.shift) };
        near.min(far)
    }

    pub(super) fn peek(&self) -> Option<Event> {
        let base_ps = self.base_ps;
        if let Some(entry) = self.current.last() {
            return Some(entry.unpack(base_ps));
        }
        let far = self.far.peek().map(|event| event.0);
        let near = (0 < self.n_near).then(|| {
            let mut at = self.heads[(self.next_occupied(self.now) & self.mask) as usize];
            let mut first = Event::LAST;
            while let Some(&Node { entry, next }) = self.nodes.get(at as usize) {
                first = first.min(entry.unpack(base_ps));
                at = next;
            }
            first
        });
        near.into_iter().chain(far).min()
    }

    /// Returns the first event that `counts`.
    #[cold]
    pub(super) fn first(&self, counts: impl Fn(Event) -> bool) -> Option<Event> {
        // The latest is the first of them, and all are before those of the wheel.
        let mut current = self.current.iter().rev().map(|entry| entry.unpack(self.base_ps));
        if let Some(event) = current.find(|&event| counts(event)) {
            return Some(event);
        }
        let near = self.first_near(&counts);
        let far = self.far.peek().map(|event| event.0).filter(|&far| near.is_none_or(|near| far < near));
        let far = far.and_then(|_| self.far.iter().map(|event| event.0).filter(|&event| counts(event)).min());
        near.into_iter().chain(far).min()
    }

    /// Returns the first event of the wheel that `counts`.
    fn first_near(&self, counts: impl Fn(Event) -> bool) -> Option<Event> {
        let (start, words) = ((self.now + 1) & self.mask, self.occupied.len());
        let first = (start / 64) as usize;
        // The first word is the last one searched, for the buckets before `start`.
        for ahead in 0..=words {
            let word = (first + ahead) % words;
            let mut bits = self.occupied[word];
            if ahead == 0 {
                bits &= u64::MAX << (start % 64);
            } else if ahead == words {
                bits &= !(u64::MAX << (start % 64));
            }
            while bits != 0 {
                let head = self.heads[word * 64 + bits.trailing_zeros() as usize];
                let nodes =
                    std::iter::successors(self.nodes.get(head as usize), |node| self.nodes.get(node.next as usize));
                let events = nodes.map(|node| node.entry.unpack(self.base_ps));
                if let Some(event) = events.filter(|&event| counts(event)).min() {
                    return Some(event);
                }
                bits &= bits - 1;
            }
        }
        None
    }

    /// Returns all pending events, in no particular order.
    #[cfg(test)]
    pub(super) fn iter(&self) -> impl Iterator<Item = Event> {
        let near = self.heads.iter().flat_map(|&head| {
            let first = self.nodes.get(head as usize);
            std::iter::successors(first, |node| self.nodes.get(node.next as usize)).map(|node| node.entry)
        });
        let near = self.current.iter().copied().chain(near).map(|entry| entry.unpack(self.base_ps));
        near.chain(self.far.iter().map(|event| event.0))
    }

    #[inline]
    pub(super) fn each_soon(&self, mut look: impl FnMut(Event)) {
        self.current.iter().rev().for_each(|entry| look(Event::from_key(0, entry.key())));
    }

    #[inline]
    pub(super) fn each_from(&self, from_ps: u64, mut look: impl FnMut(Event)) -> u64 {
        let after = (from_ps >> self.shift).saturating_sub(1).max(self.now);
        if self.n_near == 0 {
            return from_ps;
        }
        let bucket = self.next_occupied(after);
        if NEAR_PS < (bucket - self.now) << self.shift {
            return from_ps;
        }
        let mut at = self.heads[(bucket & self.mask) as usize];
        while let Some(node) = self.nodes.get(at as usize) {
            look(Event::from_key(0, { node.entry }.key()));
            at = node.next;
        }
        (bucket + 1) << self.shift
    }

    /// Moves the clock to the next bucket that has events, unless it begins at `limit_ps` or later.
    #[inline(never)]
    fn advance(&mut self, limit_ps: u64) {
        if self.until_look == 0 {
            self.look();
            // Buckets are wider: the next event may be in the bucket of the last one popped.
            if !self.current.is_empty() {
                return;
            }
        }
        let far = self.far.peek().map_or(u64::MAX, |e| e.0.time_ps >> self.shift);
        let near = if self.n_near > 0 { self.next_occupied(self.now) } else { u64::MAX };
        let next = near.min(far);
        // There is no next bucket, or it is too late.
        if (limit_ps - 1) >> self.shift < next {
            return;
        }
        if near < far.saturating_sub(self.mask) {
            // No event of the heap comes within reach of the wheel.
            self.go_to(near);
        } else {
            self.empty_far(next);
        }
        self.take_bucket();
    }

    /// Moves the clock to `bucket`, and the events that are then within reach from the heap into the wheel.
    fn empty_far(&mut self, bucket: u64) {
        self.go_to(bucket);
        while let Some(Reverse(event)) = self.far.peek().copied() {
            let b = event.time_ps >> self.shift;
            if b - bucket > self.mask {
                break;
            }
            self.far.pop();
            self.push_wheel(b, event);
        }
    }

    /// Empties the bucket that the clock has reached into `current`.
    fn take_bucket(&mut self) {
        debug_assert!(self.current.is_empty(), "a bucket is emptied before the next");
        let slot = (self.now & self.mask) as usize;
        let first = std::mem::replace(&mut self.heads[slot], NONE);
        let word = &mut self.occupied[slot / 64];
        *word &= !(1 << (slot % 64));
        if *word == 0 {
            self.summary[slot / 4_096] &= !(1 << (slot / 64 % 64));
        }
        let (mut at, mut last) = (first, NONE);
        while let Some(node) = self.nodes.get(at as usize) {
            self.current.push(node.entry);
            (last, at) = (at, node.next);
        }
        if let Some(last) = self.nodes.get_mut(last as usize) {
            last.next = std::mem::replace(&mut self.free, first);
        }
        let n = self.current.len();
        self.n_near -= n;
        self.taken += n as u32;
        self.until_look -= 1;
        self.is_fresh = true;
        let sort_many = |many: &mut [E]| many.sort_unstable_by_key(|&entry| Reverse(entry));
        sorting::sort(&mut self.current, E::FIRST, |a, b| b < a, sort_many);
    }

    /// Returns the absolute number of the first bucket after bucket `after` that is in use, or in its next turn if it
    /// is not after that; the wheel must not be empty.
    #[inline(always)] // A call costs as much as its body.
    fn next_occupied(&self, after: u64) -> u64 {
        let start = (after + 1) & self.mask;
        let first = self.occupied[(start / 64) as usize] >> (start % 64);
        if first != 0 {
            return after + 1 + u64::from(first.trailing_zeros());
        }
        self.next_occupied_word(after, start)
    }

    /// Returns the same if the first word has no bucket in use from `start` on.
    #[inline(never)]
    fn next_occupied_word(&self, after: u64, start: u64) -> u64 {
        let words = self.occupied.len();
        // The first word is the last one searched, for the buckets before `start`.
        let from = ((start / 64) as usize + 1) % words;
        let mut at = from / 64;
        let mut bits = self.summary[at] & (u64::MAX << (from % 64));
        for _ in 0..=self.summary.len() {
            if bits != 0 {
                let word = at * 64 + bits.trailing_zeros() as usize;
                let slot = (word * 64) as u64 + u64::from(self.occupied[word].trailing_zeros());
                return after + 1 + (slot.wrapping_sub(start) & self.mask);
            }
            at = (at + 1) % self.summary.len();
            bits = self.summary[at];
        }
        unreachable!("the wheel counts events but has none")
    }

    /// Adjusts the width of buckets to the number of events in the last ones.
    #[cold]
    fn look(&mut self) {
        let taken = std::mem::take(&mut self.taken);
        self.until_look = LOOK_EVERY;
        let per_bucket = taken / LOOK_EVERY;
        if per_bucket >= FULL {
            let narrower = (per_bucket / 6).ilog2();
            self.rebuild(self.shift.saturating_sub(narrower).max(NARROWEST_SHIFT));
        } else if taken < LOOK_EVERY * 3 && self.shift < WIDEST_SHIFT {
            self.rebuild(self.shift + 1);
        }
    }

    /// Moves all events into buckets of another width; `current` must be empty.
    fn rebuild(&mut self, shift: u32) {
        if shift == self.shift {
            return;
        }
        let events: Vec<Event> = self.drain().collect();
        // All events are after the bucket that has been emptied, and so after the last of its narrow buckets.
        let end_ps = ((self.now + 1) << self.shift) - 1;
        self.build_wheel(shift);
        self.go_to(end_ps >> shift);
        for event in events {
            self.push(event);
        }
    }

    /// Removes and returns all pending events.
    pub(super) fn drain(&mut self) -> impl Iterator<Item = Event> + use<E> {
        let mut entries = std::mem::take(&mut self.current);
        for head in &mut self.heads {
            let mut at = std::mem::replace(head, NONE);
            while let Some(node) = self.nodes.get(at as usize) {
                entries.push(node.entry);
                at = node.next;
            }
        }
        let (base_ps, far) = (self.base_ps, std::mem::take(&mut self.far));
        entries.into_iter().map(move |entry| entry.unpack(base_ps)).chain(far.into_iter().map(|Reverse(event)| event))
    }

    /// Replaces the wheel by an empty one.
    fn build_wheel(&mut self, shift: u32) {
        let (least, most) = (*BUCKETS_SHIFT.start(), *BUCKETS_SHIFT.end());
        let buckets = 1 << SPAN_SHIFT.saturating_sub(shift).clamp(least, most);
        self.shift = shift;
        self.mask = buckets as u64 - 1;
        self.heads = vec![NONE; buckets];
        self.occupied = vec![0; buckets / 64];
        self.summary = vec![0; (buckets / 4_096).max(1)];
        self.nodes.clear();
        (self.free, self.n_near) = (NONE, 0);
    }
}
