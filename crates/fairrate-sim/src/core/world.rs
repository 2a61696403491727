//! The state that switches and hosts share: the run, the clock, the network between them, and the observations.

use std::sync::Arc;

use super::agents::Agents;
use super::clock::Clock;
use super::network::{Network, serialise};
use super::observations::Observations;
use super::run::Run;
use crate::fabric::DropCause;
use crate::ids::{PacketIdx, PortIdx};
use crate::output::{Drops, Observation, PacketStep, PfcEvent};
use crate::packet::{Packet, PacketKind, Pausing};

/// The surroundings of switches and hosts. Switches do not access hosts, nor hosts switches: they interact through the
/// network.
pub(crate) struct World {
    pub(crate) run: Arc<Run>,
    pub(crate) clock: Clock,
    pub(crate) net: Network,
    /// The agents of ports.
    pub(crate) agents: Agents,
    pub(crate) observed: Observations,
}

impl World {
    /// Serialises a packet that leaves a queue onto the wire of `port`, whose transmitter is free.
    #[inline]
    pub(crate) fn transmit(&mut self, port: PortIdx, packet: PacketIdx) {
        self.put_on_wire::<true>(port, packet);
    }

    /// Serialises a packet that need not be queued onto the wire of `port`, whose transmitter is free.
    #[inline(always)]
    pub(crate) fn transmit_at_once(&mut self, port: PortIdx, packet: PacketIdx) {
        self.put_on_wire::<false>(port, packet);
    }

    #[inline(always)]
    fn put_on_wire<const FROM_QUEUE: bool>(&mut self, port: PortIdx, packet: PacketIdx) {
        if !self.net.has_plain_wires {
            if !FROM_QUEUE {
                self.report_queued(port, packet);
            }
            self.transmit_watched(port, packet);
            return;
        }
        let (ports, mut net) = self.net.split();
        let wire = net.pool.get(packet).wire;
        net.transmit(&mut self.clock, &mut self.observed.totals, &mut ports[port], port, (packet, wire));
    }

    /// Serialises a packet onto the wire of `port`, which may have faults, and reports that.
    #[cold]
    fn transmit_watched(&mut self, port: PortIdx, packet: PacketIdx) {
        self.report(port, packet, PacketStep::Sent);
        let (net, clock, totals) = (&mut self.net, &mut self.clock, &mut self.observed.totals);
        let Packet { kind, wire, .. } = *net.pool.get(packet);
        let (arrival_ps, rank) = serialise(clock, totals, &mut net.ports[port], port, (packet, wire));
        let Some(verdict) = net.faulty_link(port).map(|link| link.judge(kind, clock.now_ps)) else {
            net.launch(clock, port, packet, arrival_ps, rank);
            return;
        };
        if verdict.lost {
            self.discard(port, packet, DropCause::Fault);
            return;
        }
        if verdict.corrupt {
            net.pool.get_mut(packet).set_corrupt();
        }
        let arrival_ps = arrival_ps + verdict.jitter_ps;
        net.launch_faulty(clock, port, packet, (arrival_ps, verdict.late_ps, rank));
        for _ in 0..verdict.copies {
            let copy = net.pool.copy(packet);
            clock.rank_copy(copy, rank);
            totals.counts.duplicates += 1;
            if kind == PacketKind::Data {
                totals.duplicated_bytes += u64::from(wire);
            }
            net.launch_faulty(clock, port, copy, (arrival_ps, verdict.late_ps, rank));
        }
    }

    /// Drops `packet` for `cause`, counts it, and frees its place. It was in a queue of `port` or would have joined
    /// one, or it was on the port's wire if the cause is a fault. If no way leads on, `port` is the one by which it
    /// came.
    pub(crate) fn discard(&mut self, port: PortIdx, packet: PacketIdx, cause: DropCause) {
        self.report(port, packet, PacketStep::Dropped(cause));
        self.drop_packet(port, packet, cause);
    }

    /// Does the same for a packet that has come by the wire of `port` to a host whose receive buffer, with `held`
    /// bytes, has no room.
    pub(crate) fn discard_at_host(&mut self, port: PortIdx, packet: PacketIdx, held: u64) {
        let cause = DropCause::Host;
        if self.observed.wants.packets {
            // The queue of the port is the switch's, which may be elsewhere in time.
            let (now, id, at) = (self.clock.now(), self.net.links.id_of(port), &self.net.ports[port]);
            let step = PacketStep::Dropped(cause);
            self.observed.push_packet(&self.run, (now, id, at, held), (&self.net.pool, packet), step);
        }
        self.drop_packet(port, packet, cause);
    }

    fn drop_packet(&mut self, port: PortIdx, packet: PacketIdx, cause: DropCause) {
        let p = self.net.pool.get(packet);
        if p.kind == PacketKind::Data {
            self.observed.totals.dropped_bytes += u64::from(p.wire);
            let flow = p.flow;
            if !self.observed.groups.is_empty()
                && let Some(group) = self.observed.group_of(&self.run, flow)
            {
                group.drops += 1;
            }
        }
        self.observed.totals.drops.add(cause, 1);
        if self.observed.drops_at.is_empty() {
            self.observed.drops_at = vec![Drops::default(); self.net.ports.len()].into();
        }
        self.observed.drops_at[port].add(cause, 1);
        if !matches!(cause, DropCause::Fault | DropCause::Host) {
            self.net.ports[port].drops += 1;
        }
        self.net.pool.release(packet);
    }

    /// Reports a step of `packet` at `port`, if those are reported.
    #[inline]
    pub(crate) fn report(&mut self, port: PortIdx, packet: PacketIdx, step: PacketStep) {
        if self.observed.wants.packets {
            let (now, id, at) = (self.clock.now(), self.net.links.id_of(port), &self.net.ports[port]);
            self.observed.push_packet(&self.run, (now, id, at, at.queued_bytes), (&self.net.pool, packet), step);
        }
    }

    /// Reports that `packet` is about to join a queue of `port`, if the steps of packets are reported.
    #[inline]
    pub(crate) fn report_queued(&mut self, port: PortIdx, packet: PacketIdx) {
        if self.observed.wants.packets {
            let (now, id, at) = (self.clock.now(), self.net.links.id_of(port), &self.net.ports[port]);
            let queued = at.queued_bytes + u64::from(self.net.pool.get(packet).wire);
            self.observed.push_packet(&self.run, (now, id, at, queued), (&self.net.pool, packet), PacketStep::Queued);
        }
    }

    /// Pauses or resumes a class of `port`, and reports it.
    pub(super) fn pause_class(&mut self, port: PortIdx, class: u8, pausing: Pausing) {
        let pause = pausing.is_pause();
        self.net.ports[port].set_paused(class, pause, self.clock.now_ps);
        self.observed.add(Observation::Pfc(PfcEvent {
            t: self.clock.now(),
            port: self.net.links.id_of(port),
            class,
            pause,
        }));
    }
}
