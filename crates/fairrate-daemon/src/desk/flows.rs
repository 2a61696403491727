//! The flows of an agent, and the set of them whose rates have to be sent to it.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use crate::rate::WireRate;
use crate::wire::{Flow, Start};

/// A flow, or a free place for one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slot {
    pub start: Start,
    /// Number of the flow at the service.
    pub number: u32,
    /// The rate that the optimiser has found.
    pub rate: WireRate,
    /// The rate sent last since the agent has accepted this allocator.
    pub sent: WireRate,
    /// Number of the mark after that rate, if the agent has not acknowledged it; else zero.
    pub mark: u32,
    /// Time since which it waits for its first rate.
    pub waits_since: Option<Duration>,
    /// `true` if the flow waits for room, so that it is not listed twice.
    pub is_waiting: bool,
    pub is_live: bool,
    /// `true` if it has no path, so that the optimiser does not know it.
    pub is_parked: bool,
    /// `true` if a parked flow may have a rate that has to be taken back.
    pub must_clear: bool,
    /// `true` if the agent has sent the flow since HELLO.
    is_told: bool,
    /// `true` if the agent has reported the flow's rate in force, and not finished its report.
    is_reported: bool,
    /// `true` if the place is in `changed`. It stays there when the flow ends, so that no place is there twice.
    is_listed: bool,
}

/// Rates that were sent before a mark.
#[derive(Debug)]
struct Sent {
    mark: u32,
    time: Duration,
    places: Vec<u32>,
}

/// The flows of an agent.
#[derive(Debug, Default)]
pub(super) struct Flows {
    slots: Vec<Slot>,
    free: Vec<u32>,
    places: HashMap<Flow, u32>,
    changed: VecDeque<u32>,
    /// Position from which to look for flows that were not sent since HELLO; there are none before it.
    next_stale: usize,
    /// Rates that the agent has not acknowledged, and the number of the last mark.
    unacknowledged: VecDeque<Sent>,
    last_mark: u32,
}

impl Flows {
    /// Marks all flows as not sent since HELLO. Rates on their way on the last connection are lost.
    pub fn begin_sync(&mut self) {
        self.slots.iter_mut().for_each(|slot| slot.is_told = false);
        self.next_stale = 0;
    }

    /// Marks the flow as sent if a flow with the same contents is known, and lists its rate to be sent again.
    pub fn tell_again(&mut self, start: Start) -> bool {
        let Some(&place) = self.places.get(&start.flow) else { return false };
        let slot = &mut self.slots[place as usize];
        if slot.start != start {
            return false;
        }
        slot.is_told = true;
        self.note_changed(place);
        true
    }

    /// Adds a flow that is not known, and returns its place.
    pub fn add(&mut self, start: Start, number: u32) -> u32 {
        let is_listed = self.free.last().is_some_and(|&place| self.slots[place as usize].is_listed);
        let slot = Slot {
            start,
            number,
            rate: WireRate::NONE,
            sent: WireRate::NONE,
            mark: 0,
            waits_since: None,
            is_waiting: false,
            is_live: true,
            is_parked: false,
            must_clear: false,
            is_told: true,
            is_reported: false,
            is_listed,
        };
        let place = self.free.pop().unwrap_or(self.slots.len() as u32);
        match self.slots.get_mut(place as usize) {
            Some(free) => *free = slot,
            None => self.slots.push(slot),
        }
        self.places.insert(start.flow, place);
        place
    }

    /// Removes a flow and returns its number.
    pub fn remove(&mut self, flow: Flow) -> Option<u32> {
        let place = self.places.remove(&flow)?;
        let slot = &mut self.slots[place as usize];
        slot.is_live = false;
        self.free.push(place);
        Some(slot.number)
    }

    pub fn slot(&mut self, place: u32) -> &mut Slot {
        &mut self.slots[place as usize]
    }

    /// Sets the rate that the optimiser has found; returns `true` if it is the flow's first rate.
    pub fn set_rate(&mut self, place: u32, rate: WireRate) -> bool {
        self.slots[place as usize].rate = rate;
        self.note_changed(place)
    }

    /// Lists a rate to be sent; returns `true` if it is the flow's first rate, which is sent before changes.
    pub fn note_changed(&mut self, place: u32) -> bool {
        let slot = &mut self.slots[place as usize];
        let is_first = slot.sent == WireRate::NONE;
        if slot.mark == 0 && !std::mem::replace(&mut slot.is_listed, true) {
            if is_first {
                self.changed.push_front(place);
            } else {
                self.changed.push_back(place);
            }
        }
        is_first
    }

    /// Takes a flow whose rate has to be sent.
    pub fn next_changed(&mut self) -> Option<u32> {
        loop {
            let place = self.changed.pop_front()?;
            let slot = &mut self.slots[place as usize];
            slot.is_listed = false;
            if slot.is_live && (slot.rate != WireRate::NONE || slot.must_clear) && slot.mark == 0 {
                return Some(place);
            }
        }
    }

    /// Returns the number of the next mark.
    pub fn next_mark(&self) -> u32 {
        self.last_mark.wrapping_add(1).max(1)
    }

    /// Records the places whose rates were sent before the next mark.
    pub fn mark(&mut self, now: Duration, places: Vec<u32>) {
        self.last_mark = self.next_mark();
        self.unacknowledged.push_back(Sent { mark: self.last_mark, time: now, places });
    }

    /// Returns the time since which the agent has not acknowledged a rate.
    pub fn unacknowledged_since(&self) -> Option<Duration> {
        self.unacknowledged.front().map(|sent| sent.time)
    }

    /// Handles the acknowledgment of a mark, and of those before it: passes each flow whose last rate is in force to
    /// `each`.
    pub fn acknowledge(&mut self, mark: u32, mut each: impl FnMut(&Slot)) {
        let Some(at) = self.unacknowledged.iter().position(|sent| sent.mark == mark) else { return };
        for _ in 0..=at {
            let Some(sent) = self.unacknowledged.pop_front() else { return };
            for place in sent.places {
                let slot = &mut self.slots[place as usize];
                if slot.is_live && slot.mark == sent.mark {
                    slot.mark = 0;
                    each(slot);
                    if slot.rate != slot.sent {
                        self.note_changed(place);
                    }
                }
            }
        }
    }

    /// Returns the number of the flow, whose rate in force is reported.
    pub fn report(&mut self, flow: Flow) -> Option<u32> {
        let slot = &mut self.slots[*self.places.get(&flow)? as usize];
        slot.is_reported = true;
        Some(slot.number)
    }

    /// Ends a report: passes the numbers of flows that have no rate in force to `each`, and lists all flows, since the
    /// agent awaits a rate for each.
    pub fn end_report(&mut self, mut each: impl FnMut(u32)) {
        self.unacknowledged.clear();
        for place in 0..self.slots.len() as u32 {
            let slot = &mut self.slots[place as usize];
            if slot.is_live {
                let was_reported = std::mem::take(&mut slot.is_reported);
                if !was_reported {
                    each(slot.number);
                }
                slot.must_clear = slot.is_parked && was_reported;
                (slot.mark, slot.sent, slot.waits_since) = (0, WireRate::NONE, None);
                self.note_changed(place);
            }
        }
    }

    /// Lists all flows.
    pub fn note_all(&mut self) {
        for place in 0..self.slots.len() as u32 {
            if self.slots[place as usize].is_live {
                self.note_changed(place);
            }
        }
    }

    /// Returns the places of all flows.
    pub fn live_places(&self) -> Vec<u32> {
        (0..self.slots.len() as u32).filter(|&place| self.slots[place as usize].is_live).collect()
    }

    pub fn has_changed(&self) -> bool {
        !self.changed.is_empty()
    }

    /// Returns a flow that was not sent since HELLO, if there is one; the caller removes it. All calls after a HELLO
    /// together look at each place once.
    pub fn next_stale(&mut self) -> Option<Flow> {
        let rest = self.slots.get(self.next_stale..)?;
        let found = rest.iter().position(|slot| slot.is_live && !slot.is_told);
        self.next_stale += found.unwrap_or(rest.len());
        found.map(|_| self.slots[self.next_stale].start.flow)
    }

    pub fn all(&self) -> impl Iterator<Item = Flow> + '_ {
        self.with_rates().map(|(start, _)| start.flow)
    }

    /// Returns the flows with the optimiser's rates.
    pub fn with_rates(&self) -> impl Iterator<Item = (Start, WireRate)> + '_ {
        self.slots.iter().filter(|slot| slot.is_live).map(|slot| (slot.start, slot.rate))
    }
}
