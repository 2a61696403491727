//! Switches: the processing of a packet from its arrival until it is on the next wire.

mod circuits;
mod egress;
mod ingress;
mod short_cut;
mod window;

use self::circuits::Rotors;
use super::arrivals::Arrivals;
use crate::config::MarkAt;
use crate::fabric::{BacklogPfc, Marker, Mmu, Port, Verdicts};
use crate::ids::PortIdx;
use crate::mrg32k3a::AutomaticStreams;
use crate::packet::{Packet, PacketKind};
use crate::table::Table;

/// The switches of a part: their buffers and their markers. Their ports belong to the network.
pub(crate) struct Switches {
    pub(super) buffers: Mmu,
    /// The PFC state if the backlogs of egress queues decide about pauses.
    backlog_pfc: Option<Box<BacklogPfc>>,
    /// The step at which packets are marked; `None`: switches mark none.
    mark_at: Option<MarkAt>,
    /// The ECN marker of each port; empty without marking.
    markers: Table<PortIdx, Option<Marker>>,
    /// The random streams that all markers share; `None`: each marker has its own stream.
    shared_draws: Option<Box<AutomaticStreams>>,
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
        mark_at: Option<MarkAt>,
        markers: Table<PortIdx, Option<Marker>>,
        shared_draws: Option<Box<AutomaticStreams>>,
        ports: &[Port],
    ) -> Self {
        let has_special_ports = ports.iter().any(Port::has_disciplines);
        Self {
            buffers,
            backlog_pfc,
            mark_at,
            markers,
            shared_draws,
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

    /// Applies the ECN marker of `egress` at `at_ps` with `qlen` bytes of the packet's class queued, if packets are
    /// marked at step `at`; returns `true` if it marked.
    #[inline]
    fn mark(&mut self, port: &mut Port, egress: PortIdx, p: &mut Packet, at: MarkAt, at_ps: u64, qlen: u32) -> bool {
        self.mark_at == Some(at) && self.mark_by(port, egress, p, at_ps, qlen)
    }

    fn mark_by(&mut self, port: &mut Port, egress: PortIdx, p: &mut Packet, at_ps: u64, qlen: u32) -> bool {
        let Some(marker) = &mut self.markers[egress] else { return false };
        judge(marker, port, p, at_ps, qlen, self.shared_draws.as_deref_mut())
    }
}

/// Applies `marker` to `p` at `at_ps` with `qlen` bytes of the packet's class queued at `port`; returns `true` if it
/// marked.
#[allow(clippy::inline_always)] // A call costs as much as what it does.
#[inline(always)]
fn judge(
    marker: &mut Marker,
    port: &mut Port,
    p: &mut Packet,
    at_ps: u64,
    qlen: u32,
    shared_draws: Option<&mut AutomaticStreams>,
) -> bool {
    let is_data = p.kind == PacketKind::Data;
    let qlen = marker.queue(at_ps, p.wire, qlen);
    // ns-3 marks acknowledgments too, but no code reads that: the mark of the data they echo has a field of its own.
    if !(is_data || shared_draws.is_some()) || !marker.draw(qlen, shared_draws) {
        return false;
    }
    p.set_marked(p.is_marked() || is_data);
    port.ecn_marks += 1;
    true
}
