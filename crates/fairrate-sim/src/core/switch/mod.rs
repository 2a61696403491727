//! Switches: the processing of a packet from its arrival until it is on the next wire.

mod admission;
mod batch;
mod by_event;
mod circuits;
mod hop;
mod marking;
mod pfc;
mod requests;
mod short_cut;
mod span;
mod special;

pub(super) use self::admission::{Admission, rules_of};
use self::batch::Batch;
use self::circuits::Rotors;
pub(super) use self::marking::{Markers, Marking};
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
    /// The rules about what may join a queue, besides the limits of the buffer.
    admission: Admission,
    /// Set when some port has a queueing discipline or belongs to a circuit.
    has_special_ports: bool,
    /// Set when packets only queue: no special ports, rules of admission or PFC by backlog, no agents, and nobody who
    /// looks on. Each of these is looked at one by one only if this is not set.
    is_plain: bool,
    /// The last decisions of a queueing discipline, to be carried out.
    verdicts: Verdicts,
    /// The packets that arrive in the span being processed.
    arrivals: Arrivals,
    /// The spans being processed, if the network is large.
    batch: Batch,
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
        admission: Admission,
        ports: &[Port],
    ) -> Self {
        let has_special_ports = ports.iter().any(Port::has_disciplines);
        Self {
            buffers,
            backlog_pfc,
            marking,
            balancer,
            admission,
            has_special_ports,
            is_plain: false,
            verdicts: Verdicts::default(),
            arrivals: Arrivals::default(),
            batch: Batch::default(),
            rotors: None,
        }
    }

    /// Sets whether packets only queue: `is_watched` is set if agents of ports, or an observer, see them.
    pub(super) fn note_watchers(&mut self, is_watched: bool) {
        let has_own_rules = self.has_special_ports || !self.admission.is_empty();
        self.is_plain = !is_watched && !has_own_rules && self.backlog_pfc.is_none();
    }

    /// Returns the classes that the sender at the other end of `port`'s wire was asked to pause.
    pub(super) fn paused_classes(&self, port: PortIdx) -> Vec<u8> {
        match &self.backlog_pfc {
            Some(pfc) => pfc.paused_classes(port).collect(),
            None => self.buffers.paused_classes(port).collect(),
        }
    }
}
