//! The clock of a part: simulated time, the pending events, and the order of events of the same time.

use fairrate_units::Time;

use crate::engine::{Event, EventKind, EventList};
use crate::ids::{Number, PacketIdx, PortIdx};
use crate::table::Table;

/// Width of the event list's buckets at first: 2^11 ps, so that its wheel spans 8.4 us, more than a link's delay.
const BUCKET_SHIFT: u32 = 11;

/// Simulated time and the pending events.
pub(crate) struct Clock {
    pub(crate) now_ps: u64,
    /// Time of the latest event in a span of a switch or host, in picoseconds.
    pub(super) latest_ps: u64,
    events: EventList,
    /// `true` if simultaneous events have ranks in the order of scheduling; otherwise all ranks are zero.
    by_insertion: bool,
    last_rank: u32,
    /// Rank of the event being processed.
    current_rank: u32,
    ranks: Ranks,
}

/// Ranks that are taken when a packet is serialised and used later; empty if all ranks are zero.
#[derive(Default)]
struct Ranks {
    /// Rank of the end of each port's latest transmission.
    ends: Table<PortIdx, u32>,
    /// Rank of the arrival of each packet on a wire.
    arrivals: Table<PacketIdx, u32>,
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
            ranks: Ranks::default(),
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

    /// Takes the ranks of a transmission that starts now, of its end at `port` and of the arrival of `packet` at the
    /// other end; returns the second.
    #[inline(always)] // A call costs as much as what it does where all ranks are zero.
    pub(super) fn rank_transmission(&mut self, port: PortIdx, packet: PacketIdx) -> u32 {
        if self.by_insertion { self.take_two_ranks(port, packet) } else { 0 }
    }

    #[cold]
    #[inline(never)]
    fn take_two_ranks(&mut self, port: PortIdx, packet: PacketIdx) -> u32 {
        let (end, arrival) = (self.take_rank(), self.take_rank());
        set(&mut self.ranks.ends, port, end);
        set(&mut self.ranks.arrivals, packet, arrival);
        arrival
    }

    /// Sets the rank of the arrival of a copy of a packet.
    pub(super) fn rank_copy(&mut self, copy: PacketIdx, rank: u32) {
        if self.by_insertion {
            set(&mut self.ranks.arrivals, copy, rank);
        }
    }

    #[inline(always)] // As for `rank_transmission`.
    fn end_rank(&self, port: PortIdx) -> u32 {
        if self.by_insertion { get(&self.ranks.ends, port) } else { 0 }
    }

    /// Takes the rank of an event that is scheduled now.
    #[inline]
    pub(crate) fn take_rank(&mut self) -> u32 {
        self.last_rank = self.last_rank.wrapping_add(u32::from(self.by_insertion));
        if self.by_insertion { self.last_rank } else { 0 }
    }

    /// Returns the rank of flow starts. By insertion they go after all events that were scheduled for their time, as at
    /// the end of a chain of events without delay.
    pub(crate) fn rank_of_flow_start(&self) -> u32 {
        if self.by_insertion { u32::MAX } else { 0 }
    }

    /// Returns `true` if the latest transmission of `port`, which ends at `end_ps`, has ended before the event being
    /// processed. Its rank decides only where ties are broken by insertion; otherwise one that ends now has not ended.
    #[inline]
    pub(crate) fn has_passed(&self, end_ps: u64, port: PortIdx) -> bool {
        end_ps < self.now_ps || (self.by_insertion && end_ps == self.now_ps && self.end_rank(port) <= self.current_rank)
    }

    /// Schedules an event, in the order of scheduling.
    #[inline(always)]
    pub(crate) fn schedule(&mut self, time_ps: u64, kind: EventKind, entity: impl Into<u32>) {
        let rank = self.take_rank();
        self.push(time_ps, kind, entity, rank);
    }

    /// Schedules an event with a `rank` that was taken before.
    #[inline(always)] // A call costs as much as what it does.
    pub(crate) fn push(&mut self, time_ps: u64, kind: EventKind, entity: impl Into<u32>, rank: u32) {
        debug_assert!(self.now_ps <= time_ps, "no event is in the past");
        self.events.push(Event::new(time_ps, kind, entity.into()).ranked(rank));
    }

    /// Schedules the arrival of `packet`, which is on the wire of `port`.
    #[inline(always)] // As for `rank_transmission`.
    pub(super) fn push_arrival(&mut self, arrival_ps: u64, port: PortIdx, packet: PacketIdx) {
        if self.by_insertion {
            self.push_ranked_arrival(arrival_ps, port, packet);
        } else {
            self.push(arrival_ps, EventKind::Arrive, port, 0);
        }
    }

    #[cold]
    #[inline(never)]
    fn push_ranked_arrival(&mut self, arrival_ps: u64, port: PortIdx, packet: PacketIdx) {
        self.push(arrival_ps, EventKind::Arrive, port, get(&self.ranks.arrivals, packet));
    }

    /// Schedules the end of the latest transmission of `port`.
    #[inline]
    pub(super) fn push_end(&mut self, end_ps: u64, port: PortIdx) {
        self.push(end_ps, EventKind::TxDone, port, self.end_rank(port));
    }

    /// Takes the next event if it is before `limit`. It happens when [`Clock::reach`] is called, or not at all.
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
            Some(next) if !counts(next) => self.events.first(counts),
            next => next,
        }
        .unwrap_or(Event::LAST)
    }

    /// Does the same as [`EventList::reaches_bucket`].
    #[inline]
    pub(super) fn reaches_bucket(&mut self) -> bool {
        self.events.reaches_bucket()
    }

    /// Does the same as [`EventList::each_soon`].
    #[inline]
    pub(super) fn each_soon(&self, look: impl FnMut(Event)) {
        self.events.each_soon(look);
    }

    /// Does the same as [`EventList::each_from`].
    #[inline]
    pub(super) fn each_from(&self, from_ps: u64, look: impl FnMut(Event)) -> u64 {
        self.events.each_from(from_ps, look)
    }
}

/// Returns the rank of `number`; 0 if it has none.
#[inline]
fn get<I: Number>(ranks: &Table<I, u32>, number: I) -> u32 {
    ranks.get(number).copied().unwrap_or(0)
}

/// Sets the rank of `number` in a table that grows as needed.
fn set<I: Number>(ranks: &mut Table<I, u32>, number: I, rank: u32) {
    while ranks.len() <= number.index() {
        ranks.push(0);
    }
    ranks[number] = rank;
}
