//! Round robin by packets: data packets take the ports in turn; after each round the order is drawn anew, as in the
//! Ultra Ethernet simulator's `RR`, so that switches do not fall into step.
//!
//! As there, small packets are sprayed (there below 128 bytes, here all but data). Chosen here: a switch has one turn
//! for each set of ports that it chooses among, where that simulator has one for the switch.

use std::collections::BTreeMap;

use super::{Crossing, Scheme};
use crate::ids::{NodeId, PortIdx};
use crate::rng::pick;

#[derive(Default)]
pub(super) struct RoundRobin {
    rounds: BTreeMap<(NodeId, (PortIdx, u32)), Vec<PortIdx>>,
}

impl Scheme for RoundRobin {
    fn choose(&mut self, at: &Crossing<'_>) -> PortIdx {
        if !at.is_data() {
            return at.any();
        }
        let left = self.rounds.entry((at.switch, at.group())).or_default();
        // The set may have changed where a link went down and another came up.
        left.retain(|port| at.candidates.contains(port));
        if left.is_empty() {
            left.extend(at.candidates);
            for n in (1..left.len()).rev() {
                left.swap(n, pick(at.another_draw(n as u64), n + 1));
            }
        }
        left.pop().expect("a round has ports")
    }
}
