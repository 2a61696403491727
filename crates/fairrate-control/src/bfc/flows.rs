//! What a switch port knows of flows and queues. None of it allocates once it has been as large as it gets.

use std::collections::VecDeque;

/// What a switch port knows of the flows of one class and virtual id.
#[derive(Clone, Debug, Default)]
pub(super) struct VirtualFlow {
    pub class: u8,
    /// Physical queue of its packets; of no meaning while it has none.
    pub queue: u16,
    pub packets: u32,
    pub bytes: u64,
    /// Where it waits to be resumed, if it is paused.
    pub held_in: Option<u16>,
    /// The flows behind the id, and whether their previous hop holds them back.
    pub members: Vec<(u32, bool)>,
}

/// Virtual flows in order of class and virtual id: those with packets here, and those held back.
#[derive(Clone, Debug, Default)]
pub(super) struct VirtualFlows {
    /// Key and place of each, in order of keys.
    order: Vec<(u32, u32)>,
    places: Vec<VirtualFlow>,
    free: Vec<u32>,
}

impl VirtualFlows {
    /// What a virtual id of a class goes by. There are less than 2^24 virtual ids.
    pub fn key(class: u8, virtual_id: u32) -> u32 {
        u32::from(class) << 24 | virtual_id
    }

    pub fn get(&self, key: u32) -> Option<&VirtualFlow> {
        self.position(key).ok().map(|at| self.at(at))
    }

    pub fn get_mut(&mut self, key: u32) -> Option<&mut VirtualFlow> {
        self.position(key).ok().map(|at| &mut self.places[self.order[at].1 as usize])
    }

    /// The flow of a key, which may be new.
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

    /// Forgets a flow without packets that is not held back.
    pub fn remove(&mut self, key: u32) {
        let Ok(at) = self.position(key) else { return };
        let (_, place) = self.order.remove(at);
        let flow = &mut self.places[place as usize];
        debug_assert!(flow.packets == 0 && flow.held_in.is_none(), "a flow that is forgotten has nothing here");
        flow.members.clear();
        self.free.push(place);
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.order.len()
    }

    /// One of them, by its position in the order of keys.
    pub fn at(&self, at: usize) -> &VirtualFlow {
        &self.places[self.order[at].1 as usize]
    }

    /// The same with its key, to change it.
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
