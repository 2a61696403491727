//! ECN marking by switches.

use crate::config::MarkAt;
use crate::fabric::{Marker, Port};
use crate::ids::PortIdx;
use crate::mrg32k3a::AutomaticStreams;
use crate::packet::{Packet, PacketKind};
use crate::table::Table;

/// The ECN markers of a part's switches.
pub(in crate::core) struct Marking {
    /// The step at which packets are marked; `None`: switches mark none.
    pub(in crate::core) at: Option<MarkAt>,
    /// The marker of each port; empty without marking.
    pub(in crate::core) markers: Table<PortIdx, Option<Marker>>,
    /// The random streams that all markers share; `None`: each marker has its own stream.
    pub(in crate::core) shared_draws: Option<Box<AutomaticStreams>>,
}

impl Marking {
    /// Returns `true` if packets are marked at `step`, and the marker of `port` has a say with `qlen` bytes queued.
    #[inline]
    pub(super) fn sees(&self, step: MarkAt, port: &Port, qlen: u32) -> bool {
        self.at == Some(step) && port.mark_from <= qlen
    }

    /// Applies the marker of `egress` to `p` at `at_ps` with `qlen` bytes of the packet's class queued; returns `true`
    /// if it marked.
    pub(super) fn mark(&mut self, port: &mut Port, egress: PortIdx, p: &mut Packet, at_ps: u64, qlen: u32) -> bool {
        let Some(marker) = &mut self.markers[egress] else { return false };
        let is_data = p.kind == PacketKind::Data;
        // Every packet joins a phantom queue, marked or not.
        let qlen = marker.queue(at_ps, p.wire, qlen);
        let is_marked = match self.shared_draws.as_deref_mut() {
            // The sequence has draws for acknowledgments too, but their own marks are not kept: an acknowledgment's mark
            // is that of the data it echoes.
            Some(draws) => marker.draw(qlen, Some(draws)),
            None => is_data && marker.draw(qlen, None),
        };
        if is_marked {
            p.set_marked(p.is_marked() || is_data);
            port.ecn_marks += 1;
        }
        is_marked
    }
}
