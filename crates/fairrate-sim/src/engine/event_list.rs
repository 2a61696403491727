use super::event::Event;
use super::wheel::Wheel;

/// Pending events, popped in ascending order of (time, rank, kind, entity).
///
/// A timing wheel holds the near future as pooled, unsorted lists, one for each bucket; a bucket is sorted when the
/// clock reaches it. Events beyond the wheel wait in a binary heap. Buckets become narrower and more numerous as events
/// become denser, and wider as they become sparser, so that a bucket has a few events: sorting is nearly the whole cost
/// of popping. The bench `event_list` compares this with a 4-ary heap and a binary heap.
pub struct EventList(Pending);

enum Pending {
    /// A list in which no event has had a rank yet.
    Plain(Wheel<u64>),
    Ranked(Wheel<u128>),
}

impl EventList {
    /// Returns an empty list whose buckets are `1 << shift` picoseconds wide, until the density of events is known.
    pub fn new(shift: u32) -> Self {
        Self(Pending::Plain(Wheel::new(shift)))
    }

    /// Returns the number of pending events.
    pub fn len(&self) -> usize {
        match &self.0 {
            Pending::Plain(wheel) => wheel.len(),
            Pending::Ranked(wheel) => wheel.len(),
        }
    }

    /// Returns `true` if no event is pending.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Adds an event, which must not be earlier than the last one popped.
    #[inline(always)] // A call costs as much as its body.
    pub fn push(&mut self, event: Event) {
        match &mut self.0 {
            Pending::Plain(wheel) if event.rank == 0 => wheel.push(event),
            _ => self.push_ranked(event),
        }
    }

    #[cold]
    fn push_ranked(&mut self, event: Event) {
        if let Pending::Plain(plain) = &mut self.0 {
            let mut wheel = Wheel::new(plain.shift);
            wheel.go_to(plain.now);
            plain.drain().for_each(|event| wheel.push(event));
            self.0 = Pending::Ranked(wheel);
        }
        if let Pending::Ranked(wheel) = &mut self.0 {
            wheel.push(event);
        }
    }

    /// Removes and returns the earliest event.
    pub fn pop(&mut self) -> Option<Event> {
        self.pop_before(u64::MAX)
    }

    /// Removes and returns the earliest event, if it is before `limit_ps`. Otherwise later pushes may be as early as
    /// `limit_ps`.
    #[inline(always)] // A call costs as much as its body.
    pub fn pop_before(&mut self, limit_ps: u64) -> Option<Event> {
        match &mut self.0 {
            Pending::Plain(wheel) => wheel.pop_ahead_of(Event::earliest(limit_ps)),
            Pending::Ranked(wheel) => wheel.pop_ahead_of(Event::earliest(limit_ps)),
        }
    }

    /// Removes and returns the earliest event, if it is before `limit`.
    #[inline(always)] // A call costs as much as its body.
    pub(crate) fn pop_ahead_of(&mut self, limit: Event) -> Option<Event> {
        match &mut self.0 {
            Pending::Plain(wheel) => wheel.pop_ahead_of(limit),
            Pending::Ranked(wheel) => wheel.pop_ahead_of(limit),
        }
    }

    /// Returns an event that is not after any pending one.
    pub(crate) fn bound(&self) -> Event {
        match &self.0 {
            Pending::Plain(wheel) => wheel.bound(),
            Pending::Ranked(wheel) => wheel.bound(),
        }
    }

    /// Returns the earliest event without removing it.
    pub fn peek(&self) -> Option<Event> {
        match &self.0 {
            Pending::Plain(wheel) => wheel.peek(),
            Pending::Ranked(wheel) => wheel.peek(),
        }
    }

    /// Returns the first event that `counts`.
    pub(crate) fn first(&self, counts: impl Fn(Event) -> bool) -> Option<Event> {
        match &self.0 {
            Pending::Plain(wheel) => wheel.first(counts),
            Pending::Ranked(wheel) => wheel.first(counts),
        }
    }

    /// Returns all pending events, in no particular order.
    #[cfg(test)]
    pub(crate) fn iter(&self) -> impl Iterator<Item = Event> {
        let (plain, ranked) = match &self.0 {
            Pending::Plain(wheel) => (Some(wheel.iter()), None),
            Pending::Ranked(wheel) => (None, Some(wheel.iter())),
        };
        plain.into_iter().flatten().chain(ranked.into_iter().flatten())
    }

    /// Returns `true` if the clock has reached another bucket since the last call.
    #[inline]
    pub fn reaches_bucket(&mut self) -> bool {
        match &mut self.0 {
            Pending::Plain(wheel) => std::mem::take(&mut wheel.is_fresh),
            Pending::Ranked(wheel) => std::mem::take(&mut wheel.is_fresh),
        }
    }

    /// Calls `look` with the pending events of the bucket that the clock has reached, without their times. Other events
    /// may be added to it.
    #[inline]
    pub fn each_soon(&self, look: impl FnMut(Event)) {
        match &self.0 {
            Pending::Plain(wheel) => wheel.each_soon(look),
            Pending::Ranked(wheel) => wheel.each_soon(look),
        }
    }

    /// Calls `look` with the pending events of the first bucket after the present one that has events and ends after
    /// `from_ps`, without their times. Returns the end of this bucket in picoseconds, or `from_ps` if there is none
    /// nearby.
    #[inline]
    pub fn each_from(&self, from_ps: u64, look: impl FnMut(Event)) -> u64 {
        match &self.0 {
            Pending::Plain(wheel) => wheel.each_from(from_ps, look),
            Pending::Ranked(wheel) => wheel.each_from(from_ps, look),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::EventKind;
    use proptest::prelude::*;
    use std::cmp::Reverse;
    use std::collections::BinaryHeap;

    proptest! {
        /// Compares with a plain heap: the order is the same for any mix of near, far and simultaneous events.
        #[test]
        fn pops_in_order(
            steps in prop::collection::vec((0u64..3, 0u64..40_000_000, 0u32..8, any::<bool>()), 1..400),
            shift in 0u32..14,
            ranked in any::<bool>(),
        ) {
            let mut list = EventList::new(shift);
            let mut model = BinaryHeap::new();
            let mut now = 0;
            for (scale, delta, entity, pop) in steps {
                let delta = [delta % 5_000, delta, delta * 1_000][scale as usize];
                let rank = if ranked && 2 < entity { entity % 3 } else { 0 };
                let event = Event::new(now + delta, EventKind::Arrive, entity).ranked(rank);
                list.push(event);
                model.push(Reverse(event));
                prop_assert_eq!(list.len(), model.len());
                prop_assert_eq!(list.peek(), model.peek().map(|e| e.0));
                let is_odd = |event: Event| event.entity() % 2 == 1;
                prop_assert_eq!(list.first(is_odd), list.iter().filter(|&event| is_odd(event)).min());
                // A window that ends before the next event; later pushes may be at its end.
                if entity == 0 && let Some(next) = list.peek().map(|event| event.time_ps) {
                    let limit = (now + delta).min(next);
                    prop_assert_eq!(list.pop_before(limit), None);
                    now = limit;
                }
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
