//! Switches: the processing of a packet from its arrival until it is on the next wire.

mod by_event;
mod circuits;
mod hop;
mod marking;
mod pfc;
mod requests;
mod short_cut;
mod span;
mod special;
mod trimming;

use self::circuits::Rotors;
pub(super) use self::marking::Marking;
pub(super) use self::trimming::Trimming;
use super::arrivals::Arrivals;
use super::balance::Balancer;
use crate::fabric::{BacklogPfc, Mmu, Port, Verdicts};
use crate::ids::PortIdx;

/// The switches of a part: their buffers and their markers. Their ports belong to the network.
pub(crate) struct Switches {
    pub(super) buffers: Mmu,
    /// The PFC state if the backlogs of egress queues decide about pauses.
    backlog_pfc: Option<Box<BacklogPfc>>,
    marking: Marking,
    /// The choice among equal paths.
    balancer: Balancer,
    /// The state of switches that cut packets to their headers; `None`: they do not.
    trimming: Option<Box<Trimming>>,
    /// Set when some port has a queueing discipline or belongs to a circuit.
    has_special_ports: bool,
    /// The last decisions of a queueing discipline, to be carried out.
    verdicts: Verdicts,
    /// The packets that arrive in the span being processed.
    arrivals: Arrivals,
    /// The state of ToRs with circuits; `None`: the part has no circuits.
    rotors: Option<Box<Rotors>>,
}

impl Switches {
    /// Creates switches whose buffers are empty.
    pub(super) fn new(
        buffers: Mmu,
        backlog_pfc: Option<Box<BacklogPfc>>,
        marking: Marking,
        balancer: Balancer,
        trimming: Option<Box<Trimming>>,
        ports: &[Port],
    ) -> Self {
        let has_special_ports = ports.iter().any(Port::has_disciplines);
        Self {
            buffers,
            backlog_pfc,
            marking,
            balancer,
            trimming,
            has_special_ports,
            verdicts: Verdicts::default(),
            arrivals: Arrivals::default(),
            rotors: None,
        }
    }

    /// Returns the classes that the sender at the other end of `port`'s wire was asked to pause.
    pub(super) fn paused_classes(&self, port: PortIdx) -> Vec<u8> {
        match &self.backlog_pfc {
            Some(pfc) => pfc.paused_classes(port).collect(),
            None => self.buffers.paused_classes(port).collect(),
        }
    }
}
