//! ECN marking by switches.

use crate::config::{MarkAt, NonEct};
use crate::core::run::Run;
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
    /// Treatment of data of algorithms that do not go by marks.
    pub(in crate::core) non_ect: NonEct,
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
    pub(super) fn mark(
        &mut self,
        run: &Run,
        (port, egress): (&mut Port, PortIdx),
        p: &mut Packet,
        at_ps: u64,
        qlen: u32,
    ) -> bool {
        let Some(marker) = &mut self.markers[egress] else { return false };
        let is_ect = self.non_ect == NonEct::Mark || p.kind != PacketKind::Data || run.rules_of(p.flow).ecn;
        if !is_ect && self.non_ect == NonEct::Drop {
            // Its marker has had its say as it arrived.
            return false;
        }
        let is_data = p.kind == PacketKind::Data && is_ect;
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

    /// Returns `true` if some packets are dropped where others are marked.
    pub(super) fn drops_some(&self) -> bool {
        self.at.is_some() && self.non_ect == NonEct::Drop
    }

    /// Returns `true` if `p`, with which a queue of `qlen` bytes would stand at `egress`, is dropped where another packet would be marked.
    #[cold]
    pub(super) fn drops(&mut self, run: &Run, port: &Port, egress: PortIdx, p: &Packet, qlen: u32) -> bool {
        if p.kind != PacketKind::Data || qlen < port.mark_from || run.rules_of(p.flow).ecn {
            return false;
        }
        self.markers[egress].as_mut().is_some_and(|marker| marker.draw(qlen, self.shared_draws.as_deref_mut()))
    }
}
