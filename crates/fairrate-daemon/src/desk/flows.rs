//! The flows of an agent, and which of their rates it has to be told.

use std::collections::{HashMap, VecDeque};

use crate::rate::WireRate;
use crate::wire::{Flow, Start};

/// A flow, or a place for one.
#[derive(Clone, Copy, Debug)]
struct Slot {
    start: Start,
    /// Its number at the service.
    number: u32,
    rate: WireRate,
    is_live: bool,
    /// Whether it was told since HELLO.
    is_told: bool,
    /// Whether it is in `changed`. It stays there when it ends, so that no place is there twice.
    is_listed: bool,
}

/// The flows of an agent.
#[derive(Debug, Default)]
pub(super) struct Flows {
    slots: Vec<Slot>,
    free: Vec<u32>,
    places: HashMap<Flow, u32>,
    changed: VecDeque<u32>,
    /// Where to look for flows that were not told since HELLO; behind the last place, there are none before.
    next_stale: usize,
}

impl Flows {
    /// All flows are to be told again.
    pub fn begin_sync(&mut self) {
        self.slots.iter_mut().for_each(|slot| slot.is_told = false);
        self.next_stale = 0;
    }

    /// If the flow is known just like that, its rate is to be told again.
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

    /// Adds a flow that is not known, and says where it is.
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

    /// Forgets a flow and says its number.
    pub fn remove(&mut self, flow: Flow) -> Option<u32> {
        let place = self.places.remove(&flow)?;
        let slot = &mut self.slots[place as usize];
        slot.is_live = false;
        self.free.push(place);
        Some(slot.number)
    }

    /// True: it is the flow's first rate.
    pub fn set_rate(&mut self, place: u32, rate: WireRate) -> bool {
        let before = std::mem::replace(&mut self.slots[place as usize].rate, rate);
        let is_first = before == WireRate::NONE;
        self.note_changed(place, is_first);
        is_first
    }

    /// Notes that a rate is to be told. A first rate is told before changes.
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

    /// Up to `most` of the flows whose rate is to be told, with their numbers at the service, and those rates.
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

    /// Returns a flow that was not told since HELLO, if there is one; the caller removes it. All calls after a HELLO together
    /// look at each place once.
    pub fn next_stale(&mut self) -> Option<Flow> {
        let rest = self.slots.get(self.next_stale..)?;
        let found = rest.iter().position(|slot| slot.is_live && !slot.is_told);
        self.next_stale += found.unwrap_or(rest.len());
        found.map(|_| self.slots[self.next_stale].start.flow)
    }

    pub fn all(&self) -> impl Iterator<Item = Flow> + '_ {
        self.told().map(|(start, _)| start.flow)
    }

    /// The flows with their rates.
    pub fn told(&self) -> impl Iterator<Item = (Start, WireRate)> + '_ {
        self.slots.iter().filter(|slot| slot.is_live).map(|slot| (slot.start, slot.rate))
    }
}
