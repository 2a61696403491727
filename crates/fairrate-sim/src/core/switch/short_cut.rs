//! Fast path for a span that cannot drop a packet or trigger PFC in any order: each port is processed on its own.

use fairrate_units::Time;

use super::Switches;
use super::hop::{self, Head, Pass};
use super::marking::Marking;
use super::span::{Span, Sums};
use crate::config::MarkAt;
use crate::core::agenda::{Bits, Doors, NEVER};
use crate::core::arrivals::{Arrival, Arrivals};
use crate::core::clock::Clock;
use crate::core::look_ahead::MANY_PORTS;
use crate::core::network::{NetworkRest, Transmitter};
use crate::core::observations::Observations;
use crate::core::run::Run;
use crate::core::steering::{Exit, NextHop};
use crate::core::world::World;
use crate::engine::{Event, EventKind};
use crate::fabric::{Mmu, Port};
use crate::ids::{PacketIdx, PortIdx, SwitchIdx};
use crate::output::PacketStep;
use crate::packet::Packet;
use crate::prefetch::Cache;

/// The steps of a packet in a switch that processes a span in which all packets are admitted. With `SEES_PEAK`, the
/// switch may come to hold more bytes than any switch has held so far: then ports take turns, in the order of time, so
/// that the peak is exact. With `REPORTS`, the steps of packets are reported.
pub(super) struct BySpan<'a, const SEES_PEAK: bool, const REPORTS: bool> {
    run: &'a Run,
    ports: &'a mut [Port],
    net: NetworkRest<'a>,
    clock: &'a mut Clock,
    marking: &'a mut Marking,
    buffers: &'a mut Mmu,
    observed: &'a mut Observations,
    sums: &'a mut Sums,
    /// Time of the step, in picoseconds.
    at_ps: u64,
}

impl Switches {
    /// Processes a span in which all packets are admitted, as [`BySpan`] describes.
    #[inline(never)]
    pub(super) fn take_short_cut<const SEES_PEAK: bool, const REPORTS: bool>(
        &mut self,
        w: &mut World,
        id: SwitchIdx,
        span: &Span,
        arrivals: &Arrivals,
        sums: &mut Sums,
    ) {
        let Span { doors, from_ps, end_ps, .. } = *span;
        let (ports, net) = w.net.split();
        // With fewer packets, no prefetch completes in time. For a batch all has been fetched.
        let fetches = !span.is_of_batch && MANY_PORTS <= ports.len() && 2 < arrivals.len();
        (sums.n_events, sums.used) = (arrivals.len() as u64, self.buffers.used(id));
        let (run, clock, marking, buffers, observed) =
            (&w.run, &mut w.clock, &mut self.marking, &mut self.buffers, &mut w.observed);
        let mut pass =
            BySpan::<SEES_PEAK, REPORTS> { run, ports, net, clock, marking, buffers, observed, sums, at_ps: 0 };
        let mut next = (NextHop::NOWHERE, 0);
        for (i, (since_ps, door, arrival)) in arrivals.iter(doors.door_bits).enumerate() {
            if fetches {
                let next_but_one = arrivals.next_hop(i + 2);
                pass.fetch_ahead(next, next_but_one);
                next = next_but_one;
            }
            let Arrival { packet, next_hop, wire, class } = arrival;
            let at_ps = from_ps + since_ps;
            let from = pass.net.agenda.ports[doors.first.plus(door)];
            let event = Event::new(at_ps, EventKind::Arrive, pass.net.links.id_of(from).0);
            pass.sums.count(event);
            let p = pass.net.pool.get_mut(packet);
            p.ingress = from.reverse();
            p.route = p.route.plus(1);
            let egress = match next_hop.exit() {
                Exit::By(port) => port,
                Exit::Toward(host) => self
                    .balancer
                    .choose(run, (pass.ports, pass.net.links), (from.reverse(), host), at_ps, p)
                    .expect("no link is down"),
            };
            if SEES_PEAK {
                pass.drain_all(&doors, at_ps);
            }
            let port = &pass.ports[egress.index()];
            if port.tx_done_pending && port.busy_until_ps < at_ps {
                pass.drain_until(egress, at_ps);
            }
            pass.at_ps = at_ps;
            hop::cross(&mut pass, egress, packet, Head { class, wire });
            pass.finish(event);
        }
        pass.sums.latest_ps = pass.sums.latest_ps.max(pass.at_ps);
        if pass.net.agenda.has_due(doors) {
            if fetches {
                pass.fetch_due(&doors);
            }
            pass.sums.due_ps = pass.drain_all(&doors, end_ps);
        }
        let used = pass.sums.used;
        self.buffers.set_used(id, used);
    }
}

impl<const SEES_PEAK: bool, const REPORTS: bool> BySpan<'_, SEES_PEAK, REPORTS> {
    /// Records `event` as the cause of the steps reported since the last call.
    #[inline]
    fn finish(&mut self, event: Event) {
        if REPORTS && self.observed.has_unmarked() {
            self.observed.mark(event);
        }
    }

    /// Reports a step of `packet` at `egress`, with `queued` bytes in the port's queues after it.
    #[inline]
    fn report(&mut self, egress: PortIdx, packet: PacketIdx, queued: u64, step: PacketStep) {
        if REPORTS {
            let (t, id, port) = (Time::from_ps(self.at_ps), self.net.links.id_of(egress), &self.ports[egress.index()]);
            self.observed.push_packet(self.run, (t, id, port, queued), (self.net.pool, packet), step);
        }
    }

    /// Reports that `packet` joins a queue of `egress`.
    #[inline]
    fn report_queued(&mut self, egress: PortIdx, packet: PacketIdx, head: Head) {
        let queued = self.ports[egress.index()].queued_bytes + u64::from(head.wire);
        self.report(egress, packet, queued, PacketStep::Queued);
    }

    /// Lets all ports of a switch send the packets that go before `before_ps`; returns the time of the first `TxDone`
    /// due after that, or [`NEVER`].
    #[inline(always)] // Otherwise what it works on would have to be in memory all the time.
    fn drain_all(&mut self, doors: &Doors, before_ps: u64) -> u64 {
        let mut due_ps = NEVER;
        for word in 0..doors.n.div_ceil(64) {
            for bit in Bits(self.net.agenda.due[(doors.first_word + word) as usize]) {
                let egress = self.net.agenda.ports[doors.first.plus(word * 64 + bit)].reverse();
                if self.ports[egress.index()].busy_until_ps < before_ps {
                    self.drain_until(egress, before_ps);
                }
                let port = &self.ports[egress.index()];
                due_ps = due_ps.min(if port.tx_done_pending { port.busy_until_ps } else { NEVER });
            }
        }
        due_ps
    }

    /// Lets a port whose `TxDone` is due before `before_ps` send the packets that go before then.
    #[inline(never)]
    fn drain_until(&mut self, egress: PortIdx, before_ps: u64) {
        while self.ports[egress.index()].busy_until_ps < before_ps {
            self.at_ps = self.ports[egress.index()].busy_until_ps;
            let event = Event::new(self.at_ps, EventKind::TxDone, self.net.links.id_of(egress).0);
            self.sums.count(event);
            self.sums.n_events += 1;
            self.sums.latest_ps = self.sums.latest_ps.max(self.at_ps);
            let has_more = self.ports[egress.index()].can_send() && hop::drain(self, egress);
            self.finish(event);
            if !has_more {
                let port = &mut self.ports[egress.index()];
                port.tx_done_pending = false;
                self.net.agenda.clear_due(port.due_bit);
                return;
            }
        }
    }

    /// Prefetches the egress port of the next packet but one, with its queue and the last packet on its wire, and the
    /// last packet ahead of the next one in its queue.
    #[inline(always)] // See `BySpan::drain_all`.
    fn fetch_ahead(&self, next: (NextHop, u8), next_but_one: (NextHop, u8)) {
        let ((next_hop, class), (then, then_class)) = (next, next_but_one);
        if let Some(port) = self.ports.get(then.port().index()) {
            port.prefetch_queue(Cache::First, then_class);
            self.net.pool.prefetch(Cache::First, port.last_on_wire());
            self.net.agenda.doors.prefetch(Cache::First, port.door_or_other());
        }
        if let Some(port) = self.ports.get(next_hop.port().index()) {
            self.net.pool.prefetch(Cache::First, port.last_ahead(class));
        }
    }

    /// Prefetches the ports with a `TxDone` due, the packets they will send, and the last packets on their wires.
    #[inline(always)] // See `BySpan::drain_all`.
    fn fetch_due(&self, doors: &Doors) {
        self.net.agenda.each_due(doors, |port| {
            Cache::First.fetch(&self.ports[port.index()]);
            Cache::First.fetch(&self.ports[port.index()].queued_bytes);
        });
        self.net.agenda.each_due(doors, |port| {
            let port = &self.ports[port.index()];
            if port.can_send() {
                port.prefetch_around(Cache::First, self.net.pool);
            }
        });
    }
}

impl<const SEES_PEAK: bool, const REPORTS: bool> Pass for BySpan<'_, SEES_PEAK, REPORTS> {
    #[inline]
    fn port(&mut self, port: PortIdx) -> &mut Port {
        &mut self.ports[port.index()]
    }

    #[inline]
    fn packet(&mut self, packet: PacketIdx) -> &Packet {
        self.net.pool.get(packet)
    }

    #[inline]
    fn is_free(&mut self, egress: PortIdx) -> bool {
        self.ports[egress.index()].busy_until_ps < self.at_ps
    }

    #[inline]
    fn admits_now(&mut self, _: PortIdx, _: PacketIdx, head: Head) -> bool {
        if SEES_PEAK {
            self.buffers.note_peak(self.sums.used + u64::from(head.wire));
        }
        true
    }

    #[inline]
    fn admit(&mut self, _: PortIdx, _: PacketIdx, head: Head, _: u32) -> Option<Head> {
        self.sums.used += u64::from(head.wire);
        if SEES_PEAK {
            self.buffers.note_peak(self.sums.used);
        }
        Some(head)
    }

    #[inline(always)]
    fn mark(&mut self, step: MarkAt, egress: PortIdx, packet: PacketIdx, qlen: u32) {
        if self.marking.sees(step, &self.ports[egress.index()], qlen) {
            let (port, p) = (&mut self.ports[egress.index()], self.net.pool.get_mut(packet));
            self.sums.n_marks += u64::from(self.marking.mark(self.run, (port, egress), p, self.at_ps, qlen));
        }
    }

    #[inline(always)]
    fn join(&mut self, egress: PortIdx, packet: PacketIdx, head: Head) {
        self.report_queued(egress, packet, head);
        self.ports[egress.index()].enqueue(self.net.pool, packet);
        hop::start(self, egress);
    }

    #[inline(always)]
    fn dequeue(&mut self, egress: PortIdx) -> PacketIdx {
        self.ports[egress.index()].dequeue(self.net.pool)
    }

    #[inline]
    fn release(&mut self, _: PortIdx, _: PacketIdx, head: Head) {
        self.sums.used -= u64::from(head.wire);
    }

    #[inline(always)]
    fn leave(&mut self, egress: PortIdx, packet: PacketIdx, head: Head, qlen: Option<u64>) {
        if qlen.is_none() {
            self.report_queued(egress, packet, head);
        }
        self.report(egress, packet, qlen.unwrap_or(0), PacketStep::Sent);
        let port = &mut self.ports[egress.index()];
        self.net.stamp(port, Transmitter::of(port), self.at_ps, packet, qlen.unwrap_or(0));
        self.sums.n_hops += 1;
        let arrival_ps = port.serialise(head.wire, self.at_ps);
        self.net.send_off(self.clock, port, egress, packet, arrival_ps, 0);
    }

    /// Sends a packet past those that are paused: a free port with a queue holds paused packets.
    #[cold]
    fn send_next(&mut self, egress: PortIdx) {
        if self.ports[egress.index()].can_send() && hop::drain(self, egress) {
            self.expect_tx_done(egress);
        }
    }

    #[inline]
    fn expect_tx_done(&mut self, egress: PortIdx) {
        let port = &mut self.ports[egress.index()];
        port.tx_done_pending = true;
        self.net.agenda.set_due(port.due_bit);
    }
}
