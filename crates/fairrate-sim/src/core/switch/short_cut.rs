//! Fast path for a span that cannot drop a packet or trigger PFC in any order: each port is processed on its own.

use super::window::{Sums, Window};
use super::{Switches, judge};
use crate::config::MarkAt;
use crate::core::agenda::{Bits, Doors, NEVER};
use crate::core::arrivals::{Arrival, Arrivals};
use crate::core::clock::Clock;
use crate::core::look_ahead::MANY_PORTS;
use crate::core::network::{Beside, Ports, Transmitter};
use crate::core::steering::{Exit, Onward};
use crate::core::world::World;
use crate::engine::EventKind;
use crate::fabric::{Marker, Port};
use crate::ids::{PacketIdx, PortIdx, SwitchIdx};
use crate::packet::{Packet, PacketKind};
use crate::prefetch::prefetch;
use crate::table::Table;

/// The state that packets touch in a switch, except their egress port.
struct Way<'a> {
    net: Beside<'a>,
    clock: &'a mut Clock,
    mark_at: Option<MarkAt>,
    markers: &'a mut Table<PortIdx, Option<Marker>>,
    sums: &'a mut Sums,
}

impl Switches {
    /// Processes a span in which all packets are admitted. With `SEES_PEAK`, the switch may come to hold more bytes
    /// than any switch has held so far: then ports take turns, in the order of time, so that the peak is exact.
    #[inline(never)]
    pub(super) fn take_short_cut<const SEES_PEAK: bool>(
        &mut self,
        w: &mut World,
        id: SwitchIdx,
        window: &Window,
        arrivals: &Arrivals,
        sums: &mut Sums,
    ) {
        let Window { doors, from_ps, end_ps, .. } = *window;
        let (ports, net) = w.net.split();
        // With fewer packets, no prefetch completes in time.
        let is_large = MANY_PORTS <= ports.len() && 2 < arrivals.len();
        (sums.n_events, sums.used) = (arrivals.len() as u64, self.buffers.used(id));
        let mut way = Way { net, clock: &mut w.clock, mark_at: self.mark_at, markers: &mut self.markers, sums };
        let (mut at_ps, mut next) = (0, (Onward::NOWHERE, 0));
        for (i, (since_ps, door, arrival)) in arrivals.iter(doors.door_bits).enumerate() {
            if is_large {
                let next_but_one = arrivals.onward(i + 2);
                way.fetch_ahead(ports, next, next_but_one);
                next = next_but_one;
            }
            let Arrival { packet, onward, wire, class, is_data } = arrival;
            at_ps = from_ps + since_ps;
            let from = way.net.agenda.ports[doors.first.plus(door)];
            way.sums.count(at_ps, EventKind::Arrive, way.net.links.id_of(from));
            let p = way.net.pool.get_mut(packet);
            p.ingress = from.reverse();
            p.route = p.route.plus(1);
            let egress = match onward.exit() {
                Exit::By(port) => port,
                Exit::Toward(host) => w.run.choose_exit(ports, way.net.links, from.reverse(), host, p),
            };
            if SEES_PEAK {
                way.drain_all(ports, &doors, at_ps);
            }
            let port = &mut ports[egress];
            if port.tx_done_pending && port.busy_until_ps < at_ps {
                way.drain(port, egress, at_ps);
            }
            if port.is_clear(class) && port.busy_until_ps < at_ps {
                way.mark(port, egress, packet, MarkAt::Enqueue, at_ps, u32::from(wire));
                if SEES_PEAK {
                    self.buffers.note_peak(way.sums.used + u64::from(wire));
                }
                way.leave(port, egress, packet, (wire, is_data), at_ps, 0);
                continue;
            }
            let joined = port.class_bytes(class) + u32::from(wire);
            port.enqueue(way.net.pool, packet);
            let (is_free, is_due) = (port.busy_until_ps < at_ps, port.tx_done_pending);
            way.mark(port, egress, packet, MarkAt::Enqueue, at_ps, joined);
            way.sums.used += u64::from(wire);
            if SEES_PEAK {
                self.buffers.note_peak(way.sums.used);
            }
            // A free port that is not clear holds paused packets.
            let has_more = is_free && port.can_send() && way.pass_paused(port, egress, at_ps);
            if !is_due && (has_more || !is_free) {
                port.tx_done_pending = true;
                way.net.agenda.set_due(port.due_bit);
            }
        }
        way.sums.latest_ps = way.sums.latest_ps.max(at_ps);
        if way.net.agenda.has_due(doors) {
            if is_large {
                way.fetch_due(ports, &doors);
            }
            way.sums.due_ps = way.drain_all(ports, &doors, end_ps);
        }
        self.buffers.set_used(id, way.sums.used);
    }
}

impl Way<'_> {
    /// Lets all ports of a switch send the packets that go before `before_ps`; returns the time of the first `TxDone`
    /// due after that, or [`NEVER`].
    #[allow(clippy::inline_always)] // Otherwise what it works on would have to be in memory all the time.
    #[inline(always)]
    fn drain_all(&mut self, ports: &mut Ports, doors: &Doors, before_ps: u64) -> u64 {
        let mut due_ps = NEVER;
        for word in 0..doors.n.div_ceil(64) {
            for bit in Bits(self.net.agenda.due[(doors.first_word + word) as usize]) {
                let egress = self.net.agenda.ports[doors.first.plus(word * 64 + bit)].reverse();
                let port = &mut ports[egress];
                if port.busy_until_ps < before_ps {
                    self.drain(port, egress, before_ps);
                }
                due_ps = due_ps.min(if port.tx_done_pending { port.busy_until_ps } else { NEVER });
            }
        }
        due_ps
    }

    /// Sends a packet of a free port past the packets that are paused; returns `true` if another one may be sent after
    /// it.
    #[cold]
    fn pass_paused(&mut self, port: &mut Port, egress: PortIdx, at_ps: u64) -> bool {
        self.send_waiting(port, egress, at_ps)
    }

    /// Lets a port whose `TxDone` is due before `before_ps` send the packets that go before then.
    #[inline(never)]
    fn drain(&mut self, port: &mut Port, egress: PortIdx, before_ps: u64) {
        while port.busy_until_ps < before_ps {
            let at_ps = port.busy_until_ps;
            self.sums.count(at_ps, EventKind::TxDone, self.net.links.id_of(egress));
            self.sums.n_events += 1;
            self.sums.latest_ps = self.sums.latest_ps.max(at_ps);
            if !port.can_send() || !self.send_waiting(port, egress, at_ps) {
                port.tx_done_pending = false;
                self.net.agenda.clear_due(port.due_bit);
                return;
            }
        }
    }

    /// Sends the next packet of a port that is free at `at_ps` and has one that may be sent; returns `true` if another
    /// one may be sent after it.
    #[allow(clippy::inline_always)] // See `Part::run`.
    #[inline(always)]
    fn send_waiting(&mut self, port: &mut Port, egress: PortIdx, at_ps: u64) -> bool {
        let packet = port.dequeue(self.net.pool);
        let has_more = port.can_send();
        let p = self.net.pool.get(packet);
        let (wire, class, kind) = (p.wire, p.class, p.kind);
        if self.mark_at == Some(MarkAt::Dequeue) && kind == PacketKind::Data {
            let waiting = port.class_bytes(class);
            self.mark(port, egress, packet, MarkAt::Dequeue, at_ps, waiting);
        }
        if !kind.is_frame() {
            self.sums.used -= u64::from(wire);
        }
        self.leave(port, egress, packet, (wire, kind == PacketKind::Data), at_ps, port.queued_bytes);
        has_more
    }

    /// Sends a packet out of the switch by a free port at `at_ps`, with `qlen` bytes left in the port's queues.
    #[allow(clippy::inline_always)] // See `Part::run`.
    #[inline(always)]
    fn leave(
        &mut self,
        port: &mut Port,
        egress: PortIdx,
        packet: PacketIdx,
        (wire, is_data): (u16, bool),
        at_ps: u64,
        qlen: u64,
    ) {
        if is_data {
            self.net.stamp(port, Transmitter::of(port), at_ps, packet, qlen);
        }
        self.sums.n_hops += 1;
        let arrival_ps = port.serialise(wire, at_ps);
        self.net.send_off(self.clock, port, egress, packet, arrival_ps, 0);
    }

    /// Applies the ECN marker of `egress` with `qlen` bytes of the packet's class queued, if packets are marked at step
    /// `at`; counts the mark.
    #[allow(clippy::inline_always)] // See `Part::run`.
    #[inline(always)]
    fn mark(&mut self, port: &mut Port, egress: PortIdx, packet: PacketIdx, at: MarkAt, at_ps: u64, qlen: u32) {
        if self.mark_at == Some(at)
            && let Some(marker) = &mut self.markers[egress]
        {
            let is_marked = ask(marker, port, self.net.pool.get_mut(packet), at_ps, qlen);
            self.sums.n_marks += u64::from(is_marked);
        }
    }

    /// Prefetches the egress port of the next packet but one, with its queue and the last packet on its wire, and the
    /// last packet ahead of the next one in its queue.
    #[allow(clippy::inline_always)] // See `Way::drain_all`.
    #[inline(always)]
    fn fetch_ahead(&self, ports: &Ports, next: (Onward, u8), next_but_one: (Onward, u8)) {
        let ((onward, class), (then, then_class)) = (next, next_but_one);
        if let Some(port) = ports.get(then.port()) {
            port.prefetch_queue(then_class);
            self.net.pool.prefetch(port.last_on_wire());
            self.net.agenda.doors.prefetch(port.door_or_other());
        }
        if let Some(port) = ports.get(onward.port()) {
            self.net.pool.prefetch(port.last_ahead(class));
        }
    }

    /// Prefetches the ports with a `TxDone` due, the packets they will send, and the last packets on their wires.
    #[allow(clippy::inline_always)] // See `Way::drain_all`.
    #[inline(always)]
    fn fetch_due(&self, ports: &Ports, doors: &Doors) {
        self.net.agenda.each_due(doors, |port| {
            prefetch(&ports[port]);
            prefetch(&ports[port].queued_bytes);
        });
        self.net.agenda.each_due(doors, |port| {
            let port = &ports[port];
            if port.can_send() {
                self.net.pool.prefetch(port.first_waiting());
                self.net.pool.prefetch(port.last_on_wire());
            }
        });
    }
}

/// Does the same as [`judge`], but is not inlined into the code that every packet goes through.
#[inline(never)]
fn ask(marker: &mut Marker, port: &mut Port, p: &mut Packet, at_ps: u64, qlen: u32) -> bool {
    judge(marker, port, p, at_ps, qlen, None)
}
