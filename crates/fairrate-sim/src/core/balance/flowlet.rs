//! Flowlet switching: Vanini, Pan, Alizadeh, Taheri, Edsall, "Let It Flow: Resilient Asymmetric Load Balancing with
//! Flowlet Switching", NSDI 2017. A flow keeps its port at a switch until no packet of it has come for `gap`; the next
//! packet takes a port at random.
//!
//! Chosen here: the data and the acknowledgments of a flow are two flows; a flow whose port has gone down takes another
//! at once; entries do not age.

use std::collections::BTreeMap;

use fairrate_units::Time;

use super::{Crossing, Scheme};
use crate::ids::{FlowId, NodeId, PortIdx};

pub(super) struct Flowlets {
    gap_ps: u64,
    /// The port of each flow at each switch, and the time of its last packet there.
    of: BTreeMap<(NodeId, FlowId, bool), (PortIdx, u64)>,
}

impl Flowlets {
    pub(super) fn new(gap: Time) -> Self {
        Self { gap_ps: gap.as_ps(), of: BTreeMap::new() }
    }
}

impl Scheme for Flowlets {
    fn choose(&mut self, at: &Crossing<'_>) -> PortIdx {
        let entry = self.of.entry((at.switch, at.packet.flow, at.is_data())).or_insert((at.any(), at.now_ps));
        let (port, last_ps) = *entry;
        let goes_on = at.now_ps - last_ps <= self.gap_ps && at.candidates.contains(&port);
        *entry = (if goes_on { port } else { at.any() }, at.now_ps);
        entry.0
    }
}
