//! ECN marking by switches.

use crate::config::{FabricConfig, MarkAt, MarkBy, NonEct};
use crate::core::run::Run;
use crate::fabric::{Marker, N_CLASSES, Port};
use crate::ids::PortIdx;
use crate::mrg32k3a::AutomaticStreams;
use crate::packet::{Packet, PacketKind};

/// The markers of a part's ports: one for all classes of a port, or one for each.
pub(in crate::core) struct Markers {
    /// By port and, if each class has its own, by class; empty without marking.
    all: Vec<Option<Marker>>,
    /// Markers of a port: 1 or [`N_CLASSES`].
    of_a_port: usize,
}

impl Markers {
    /// Returns the markers of `n_ports` ports, as `marker` makes them for a port and, if classes are treated apart, a
    /// class.
    pub(in crate::core) fn new(
        fabric: &FabricConfig,
        n_ports: usize,
        marker: impl Fn(PortIdx, Option<u8>) -> Option<Marker>,
    ) -> Self {
        let of_a_port = if fabric.classes.is_empty() { 1 } else { N_CLASSES };
        let n_ports = if fabric.all_ecn().next().is_some() { n_ports as u32 } else { 0 };
        let classes = |port| (0..of_a_port as u8).map(move |class| (port, Some(class).filter(|_| 1 < of_a_port)));
        // There is one for every port of a network: no place is spare.
        let mut all = Vec::with_capacity(n_ports as usize * of_a_port);
        all.extend((0..n_ports).map(PortIdx).flat_map(classes).map(|(port, class)| marker(port, class)));
        Self { all, of_a_port }
    }

    /// Returns the shortest queue of a class at which a marker of `port` has a say; [`u32::MAX`]: none has.
    pub(in crate::core) fn see_from(&self, port: PortIdx) -> u32 {
        let all = self.all.chunks(self.of_a_port).nth(port.index()).unwrap_or_default();
        all.iter().flatten().map(Marker::sees_from).min().unwrap_or(u32::MAX)
    }

    /// Returns the marker of `class` at `port`, if there is one.
    #[inline]
    fn of(&mut self, port: PortIdx, class: u8) -> Option<&mut Marker> {
        let at = port.index() * self.of_a_port + (usize::from(class) & (self.of_a_port - 1));
        self.all[at].as_mut()
    }
}

/// The rules of marking for a class.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Rules {
    /// Treatment of data of algorithms that do not go by marks.
    non_ect: NonEct,
    /// The queue that decides.
    by: MarkBy,
}

impl Rules {
    /// Data of every algorithm is marked, by the queue of its class.
    const USUAL: Self = Self { non_ect: NonEct::Mark, by: MarkBy::Class };
}

/// ECN marking by a part's switches.
pub(in crate::core) struct Marking {
    /// The step at which packets are marked; `None`: switches mark none.
    pub(in crate::core) at: Option<MarkAt>,
    markers: Markers,
    /// By class; absent if all have the usual ones.
    rules: Option<Box<[Rules; N_CLASSES]>>,
    /// The random streams that all markers share; `None`: each marker has its own stream.
    pub(in crate::core) shared_draws: Option<Box<AutomaticStreams>>,
}

impl Marking {
    /// Returns the marking of `fabric` with these markers, all of which mark at the same step.
    pub(in crate::core) fn new(
        fabric: &FabricConfig,
        markers: Markers,
        shared_draws: Option<Box<AutomaticStreams>>,
    ) -> Self {
        let rules = fabric
            .all_classes()
            .map(|class| class.ecn.map_or(Rules::USUAL, |ecn| Rules { non_ect: ecn.non_ect, by: ecn.by }));
        let rules = rules.iter().any(|&rules| rules != Rules::USUAL).then(|| Box::new(rules));
        Self { at: fabric.all_ecn().next().map(|ecn| ecn.at), markers, rules, shared_draws }
    }

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
        let (mut is_ect, mut qlen) = (true, qlen);
        if let Some(rules) = self.rules_for(p) {
            is_ect = rules.non_ect == NonEct::Mark || p.kind != PacketKind::Data || run.rules_of(p.flow).ecn;
            if !is_ect && rules.non_ect == NonEct::Drop {
                // Its marker has had its say as it arrived.
                return false;
            }
            qlen = self.deciding(rules.by, run, port, p, at_ps, qlen);
        }
        let Some(marker) = self.markers.of(egress, p.class) else { return false };
        let is_data = p.kind == PacketKind::Data && is_ect;
        // Every packet joins a phantom queue, marked or not.
        let qlen = marker.queue(at_ps, p.wire, qlen);
        let is_marked = match self.shared_draws.as_deref_mut() {
            // The sequence has draws for acknowledgments too, but their own marks are not kept: an acknowledgment's
            // mark is that of the data it echoes.
            Some(draws) => marker.draw(qlen, Some(draws)),
            None => is_data && marker.draw(qlen, None),
        };
        if is_marked {
            p.set_marked(p.is_marked() || is_data);
            port.ecn_marks += 1;
        }
        is_marked
    }

    /// Returns the rules of the class of `p`, if some classes have other rules than the usual ones.
    #[inline]
    fn rules_for(&self, p: &Packet) -> Option<Rules> {
        self.rules.as_ref().map(|rules| rules[usize::from(p.class) % N_CLASSES])
    }

    /// Returns the length that is compared with the thresholds for `p` at `at_ps`, with which `qlen` bytes of its class
    /// would be queued at `port`.
    #[cold]
    fn deciding(&self, by: MarkBy, run: &Run, port: &mut Port, p: &Packet, at_ps: u64, qlen: u32) -> u32 {
        match by {
            MarkBy::Class | MarkBy::Share => qlen,
            MarkBy::Port => {
                let joins = if self.at == Some(MarkAt::Enqueue) { u64::from(p.wire) } else { 0 };
                u32::try_from(port.queued_bytes + joins).unwrap_or(u32::MAX)
            }
            MarkBy::Round => {
                let (since_ps, packet_ps) = (port.busy_until_ps, port.tx_ps(run.constants.wire_mtu as u16));
                let Some(weighted) = port.weighted() else { return qlen };
                weighted.note_idle(at_ps.saturating_sub(since_ps) / packet_ps.max(1));
                // Thresholds for a part of the link, and the queue for all of it.
                (f64::from(qlen) * weighted.rounds_per_turn(p.class)) as u32
            }
        }
    }

    /// Returns `true` if `p`, with which a queue of `qlen` bytes would stand at `egress`, is dropped at `at_ps` where
    /// another packet would be marked.
    #[cold]
    pub(super) fn drops(
        &mut self,
        run: &Run,
        (port, egress): (&mut Port, PortIdx),
        p: &Packet,
        at_ps: u64,
        qlen: u32,
    ) -> bool {
        let Some(rules) = self.rules_for(p) else { return false };
        if rules.non_ect != NonEct::Drop
            || p.kind != PacketKind::Data
            || qlen < port.mark_from
            || run.rules_of(p.flow).ecn
        {
            return false;
        }
        let qlen = self.deciding(rules.by, run, port, p, at_ps, qlen);
        self.markers.of(egress, p.class).is_some_and(|marker| marker.draw(qlen, self.shared_draws.as_deref_mut()))
    }
}
