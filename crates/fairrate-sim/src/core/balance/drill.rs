//! DRILL(d, m): Ghorbani, Yang, Godfrey, Ganjali, Firoozshahian, "DRILL: Micro Load Balancing for Low-latency Data
//! Center Networks", SIGCOMM 2017. Each data packet compares the queues of `d` ports at random and of the `m` ports
//! that were best last time, and takes the best; the best `m` of these are remembered.
//!
//! Chosen here: a switch remembers for each set of ports that it chooses among; ports are drawn with replacement;
//! queues are compared by the time until they are sent; packets other than data are sprayed.

use std::collections::BTreeMap;

use super::{Crossing, Scheme};
use crate::ids::{NodeId, PortIdx};
use crate::rng::pick;

pub(super) struct Drill {
    samples: u8,
    memory: u8,
    best: BTreeMap<(NodeId, (PortIdx, u32)), Vec<PortIdx>>,
    drawn: Vec<PortIdx>,
    compared: Vec<PortIdx>,
}

impl Drill {
    pub(super) fn new(samples: u8, memory: u8) -> Self {
        Self { samples, memory, best: BTreeMap::new(), drawn: Vec::new(), compared: Vec::new() }
    }
}

impl Scheme for Drill {
    fn choose(&mut self, at: &Crossing<'_>) -> PortIdx {
        if !at.is_data() {
            return at.any();
        }
        let best = self.best.entry((at.switch, at.group())).or_default();
        let drawn = |n| at.candidates[pick(at.another_draw(u64::from(n)), at.candidates.len())];
        self.drawn.clear();
        self.drawn.extend((1..=self.samples).map(drawn));
        // In the order of candidates, which is the same in every part.
        self.compared.clear();
        self.compared.extend(at.candidates.iter().filter(|port| best.contains(port) || self.drawn.contains(port)));
        let chosen = at.least(&self.compared, |port| at.wait_ps(port));
        // The chosen port comes first among equals: it is the best at this moment.
        self.compared.sort_by_key(|&port| (at.wait_ps(port), port != chosen));
        best.clear();
        best.extend(self.compared.iter().take(usize::from(self.memory)));
        chosen
    }
}
