//! The state of flows and queues at a switch port. It does not allocate memory after it has reached its largest size.

use std::collections::VecDeque;

/// The state of a switch port for the flows of one class and virtual id.
#[derive(Clone, Debug, Default)]
pub(super) struct VirtualFlow {
    pub class: u8,
    /// Physical queue of its packets; without meaning while it has no packets.
    pub queue: u16,
    pub packets: u32,
    pub bytes: u64,
    /// The queue in which it waits to be resumed, if it is paused.
    pub held_in: Option<u16>,
    /// The flows behind the id, and whether their previous hop holds them back.
    pub members: Vec<(u32, bool)>,
}

/// The virtual flows with packets at the port and those held back, in order of class and virtual id.
#[derive(Clone, Debug, Default)]
pub(super) struct VirtualFlows {
    /// Key and place of each virtual flow, in order of keys.
    order: Vec<(u32, u32)>,
    places: Vec<VirtualFlow>,
    free: Vec<u32>,
}

impl VirtualFlows {
    /// Returns the key of `virtual_id` in `class`. There are fewer than 2^24 virtual ids.
    pub fn key(class: u8, virtual_id: u32) -> u32 {
        u32::from(class) << 24 | virtual_id
    }

    pub fn get(&self, key: u32) -> Option<&VirtualFlow> {
        self.position(key).ok().map(|at| self.at(at))
    }

    pub fn get_mut(&mut self, key: u32) -> Option<&mut VirtualFlow> {
        self.position(key).ok().map(|at| &mut self.places[self.order[at].1 as usize])
    }

    /// Returns the virtual flow of `key`; creates it if there is none.
    pub fn entry(&mut self, key: u32) -> &mut VirtualFlow {
        let place = match self.position(key) {
            Ok(at) => self.order[at].1,
            Err(at) => {
                let place = self.free.pop().unwrap_or(self.places.len() as u32);
                if self.places.len() == place as usize {
                    self.places.push(VirtualFlow::default());
                }
                self.order.insert(at, (key, place));
                place
            }
        };
        &mut self.places[place as usize]
    }

    /// Removes a flow without packets that is not held back.
    pub fn remove(&mut self, key: u32) {
        let Ok(at) = self.position(key) else { return };
        let (_, place) = self.order.remove(at);
        let flow = &mut self.places[place as usize];
        debug_assert!(flow.packets == 0 && flow.held_in.is_none(), "a flow that is forgotten has nothing here");
        flow.members.clear();
        self.free.push(place);
    }

    /// Returns the number of virtual flows.
    pub fn len(&self) -> usize {
        self.order.len()
    }

    /// Returns the virtual flow at position `at` in the order of keys.
    pub fn at(&self, at: usize) -> &VirtualFlow {
        &self.places[self.order[at].1 as usize]
    }

    /// Returns the key and a mutable reference to the virtual flow at position `at`.
    pub fn at_mut(&mut self, at: usize) -> (u32, &mut VirtualFlow) {
        let (key, place) = self.order[at];
        (key, &mut self.places[place as usize])
    }

    fn position(&self, key: u32) -> Result<usize, usize> {
        self.order.binary_search_by_key(&key, |&(key, _)| key)
    }
}

/// A physical queue of a class.
#[derive(Clone, Debug, Default)]
pub(super) struct PhysicalQueue {
    /// The flow of each packet, first to last.
    pub packets: VecDeque<u32>,
    pub bytes: u64,
    /// Keys of the virtual flows paused while they were in this queue, in order of the pause.
    pub held: VecDeque<u32>,
}
