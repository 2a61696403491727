//! The flows of an agent, and the set of them whose rates have to be sent to it.

use std::collections::{HashMap, VecDeque};

use crate::rate::WireRate;
use crate::wire::{Flow, Start};

/// A flow, or a free place for one.
#[derive(Clone, Copy, Debug)]
struct Slot {
    start: Start,
    /// Number of the flow at the service.
    number: u32,
    rate: WireRate,
    is_live: bool,
    /// `true` if the agent has sent the flow since HELLO.
    is_told: bool,
    /// `true` if the place is in `changed`. It stays there when the flow ends, so that no place is there twice.
    is_listed: bool,
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
}

impl Flows {
    /// Marks all flows as not sent since HELLO.
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
        if slot.rate != WireRate::NONE {
            self.note_changed(place, false);
        }
        true
    }

    /// Adds a flow that is not known, and returns its place.
    pub fn add(&mut self, start: Start, number: u32) -> u32 {
        let is_listed = self.free.last().is_some_and(|&place| self.slots[place as usize].is_listed);
        let slot = Slot { start, number, rate: WireRate::NONE, is_live: true, is_told: true, is_listed };
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

    /// Sets the rate of a flow; returns `true` if it is the flow's first rate.
    pub fn set_rate(&mut self, place: u32, rate: WireRate) -> bool {
        let before = std::mem::replace(&mut self.slots[place as usize].rate, rate);
        let is_first = before == WireRate::NONE;
        self.note_changed(place, is_first);
        is_first
    }

    /// Lists a rate to be sent. A first rate is sent before changes.
    fn note_changed(&mut self, place: u32, is_first: bool) {
        if std::mem::replace(&mut self.slots[place as usize].is_listed, true) {
            return;
        }
        if is_first {
            self.changed.push_front(place);
        } else {
            self.changed.push_back(place);
        }
    }

    /// Takes up to `most` flows whose rate has to be sent; returns their numbers at the service, the flows and the
    /// rates.
    pub fn take_changed(&mut self, most: usize) -> impl Iterator<Item = (u32, Flow, WireRate)> + '_ {
        let places = self.changed.drain(..most.min(self.changed.len()));
        let slots = &mut self.slots;
        places.filter_map(|place| {
            let slot = &mut slots[place as usize];
            slot.is_listed = false;
            (slot.is_live && slot.rate != WireRate::NONE).then_some((slot.number, slot.start.flow, slot.rate))
        })
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
        self.told().map(|(start, _)| start.flow)
    }

    /// Returns the flows with their rates.
    pub fn told(&self) -> impl Iterator<Item = (Start, WireRate)> + '_ {
        self.slots.iter().filter(|slot| slot.is_live).map(|slot| (slot.start, slot.rate))
    }
}
