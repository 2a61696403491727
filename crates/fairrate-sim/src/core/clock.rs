//! The clock of a part: simulated time, the pending events, and the order of events of the same time.

use fairrate_units::Time;

use crate::engine::{Event, EventKind, EventList};

/// Width of the event list's buckets at first: 2^11 ps, so that its wheel spans 8.4 us, more than a link's delay.
const BUCKET_SHIFT: u32 = 11;

/// Simulated time and the pending events.
pub(crate) struct Clock {
    pub(crate) now_ps: u64,
    /// Time of the latest event in a span of a switch or host, in picoseconds.
    pub(super) latest_ps: u64,
    events: EventList,
    /// `true` if simultaneous events have ranks in the order of scheduling, as in ns-3; otherwise all ranks are zero.
    by_insertion: bool,
    last_rank: u32,
    /// Rank of the event being processed.
    current_rank: u32,
}

impl Clock {
    /// Creates a clock at time zero that breaks ties by the order of insertion if `by_insertion`, and otherwise by
    /// entity.
    pub(crate) fn new(by_insertion: bool) -> Self {
        Self {
            now_ps: 0,
            latest_ps: 0,
            events: EventList::new(BUCKET_SHIFT),
            by_insertion,
            last_rank: 0,
            current_rank: 0,
        }
    }

    /// Returns the simulated time.
    #[inline]
    pub(crate) fn now(&self) -> Time {
        Time::from_ps(self.now_ps)
    }

    /// Returns `true` if ties are broken by the order of insertion.
    #[inline]
    pub(crate) fn is_by_insertion(&self) -> bool {
        self.by_insertion
    }

    /// Takes two consecutive ranks.
    #[inline]
    pub(crate) fn take_two_ranks(&mut self) -> (u32, u32) {
        if self.by_insertion { (self.take_rank(), self.take_rank()) } else { (0, 0) }
    }

    /// Takes the rank of an event that is scheduled now.
    #[inline]
    pub(crate) fn take_rank(&mut self) -> u32 {
        self.last_rank = self.last_rank.wrapping_add(u32::from(self.by_insertion));
        if self.by_insertion { self.last_rank } else { 0 }
    }

    /// Returns the rank of flow starts. The drivers of ns-3's RDMA stack start a flow by a chain of events without
    /// delay, so it goes after all events that were scheduled for its time.
    pub(crate) fn rank_of_flow_start(&self) -> u32 {
        if self.by_insertion { u32::MAX } else { 0 }
    }

    /// Returns `true` if an activity that ends at `end_ps`, with this rank, has ended before the event being processed.
    /// The rank decides only where ties are broken by insertion; otherwise an activity that ends now has not ended.
    #[inline]
    pub(crate) fn has_passed(&self, end_ps: u64, rank: u32) -> bool {
        end_ps < self.now_ps || (self.by_insertion && end_ps == self.now_ps && rank <= self.current_rank)
    }

    /// Schedules an event, in the order of scheduling.
    #[allow(clippy::inline_always)] // See `Part::run`.
    #[inline(always)]
    pub(crate) fn schedule(&mut self, time_ps: u64, kind: EventKind, entity: impl Into<u32>) {
        let rank = self.take_rank();
        self.push(time_ps, kind, entity, rank);
    }

    /// Schedules an event with a `rank` that was taken before.
    #[allow(clippy::inline_always)] // A call costs as much as what it does.
    #[inline(always)]
    pub(crate) fn push(&mut self, time_ps: u64, kind: EventKind, entity: impl Into<u32>, rank: u32) {
        self.events.push(Event::new(time_ps, kind, entity.into()).ranked(rank));
    }

    /// Takes the next event if it is before `limit`. It happens when [`Clock::reach`] is called, or not at all.
    #[allow(clippy::inline_always)] // See `Part::run`.
    #[inline(always)]
    pub(crate) fn next_before(&mut self, limit: Event) -> Option<Event> {
        self.events.pop_ahead_of(limit)
    }

    /// Sets the clock to the time of `event`.
    #[inline]
    pub(crate) fn reach(&mut self, event: Event) {
        debug_assert!(self.now_ps <= event.time_ps, "time never runs backward");
        (self.now_ps, self.current_rank) = (event.time_ps, event.rank);
    }

    /// Returns an event that is not later than any pending event.
    #[inline]
    pub(super) fn bound(&self) -> Event {
        self.events.bound()
    }

    /// Returns the number of pending events.
    #[inline]
    pub(super) fn n_pending(&self) -> usize {
        self.events.len()
    }

    /// Returns the time of the latest event, in picoseconds.
    pub(super) fn reached_ps(&self) -> u64 {
        self.now_ps.max(self.latest_ps)
    }

    /// Returns the next event that `counts`; [`Event::LAST`] if there is none.
    pub(super) fn peek_at(&self, counts: impl Fn(Event) -> bool) -> Event {
        match self.events.peek() {
            Some(next) if !counts(next) => self.events.iter().filter(|&event| counts(event)).min(),
            next => next,
        }
        .unwrap_or(Event::LAST)
    }

    /// As [`EventList::reaches_bucket`].
    #[inline]
    pub(super) fn reaches_bucket(&mut self) -> bool {
        self.events.reaches_bucket()
    }

    /// As [`EventList::each_soon`].
    pub(super) fn each_soon(&self, look: impl FnMut(Event)) {
        self.events.each_soon(look);
    }

    /// As [`EventList::each_later`].
    pub(super) fn each_later(&self, look: impl FnMut(Event)) {
        self.events.each_later(look);
    }
}
