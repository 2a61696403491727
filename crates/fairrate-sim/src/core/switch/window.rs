//! A switch works through a window of time: all that arrives and all that leaves before its end, in one go.
//!
//! The switch is alone for the window. What arrives is known when the window begins (`agenda.rs`), and departures past its end
//! are left to the next one, so that a pause that arrives then finds its packets queued. What happens is what would happen
//! event by event (`ingress.rs`, `egress.rs`), with the same events in the fingerprint. Most windows are short cuts: if all
//! that the switch holds and all that arrives together would be admitted and pause nobody, then each packet is, whatever the
//! order, and ports need not take turns. Otherwise the switch goes through its events one by one.

use super::Switches;
use crate::config::MarkAt;
use crate::core::agenda::{Agenda, Bits, Doors, Keys, NEVER};
use crate::core::world::World;
use crate::engine::{Event, EventKind};
use crate::ids::{PacketIdx, PortId, PortIdx, SwitchIdx};
use crate::packet::PacketKind;
use crate::prefetch::prefetch;

/// What a window knows before anything happens in it.
struct Window {
    from_ps: u64,
    end_ps: u64,
    doors: Doors,
    /// The bytes of all that arrives.
    bytes: u64,
    has_frames: bool,
    /// When the next packet after the window arrives.
    next_ps: u64,
}

/// What adds up in a window.
struct Sums {
    fingerprint: u64,
    n_events: u64,
    n_hops: u64,
    /// Bytes that the switch holds.
    used: u64,
    latest_ps: u64,
    /// When something is due at a port after the window.
    due_ps: u64,
}

impl Switches {
    /// The switch that is next works through its window, or what of it comes before `until_ps`. How many events that is.
    #[inline(never)]
    pub(in crate::core) fn on_window(&mut self, w: &mut World, until_ps: u64) -> u64 {
        let (id, from_ps) = (w.net.agenda.queue.next(), w.net.agenda.queue.next_ps());
        w.clock.now_ps = from_ps;
        let doors = w.net.agenda.switches[id];
        let end_ps = (from_ps + doors.window_ps).min(until_ps);
        let mut window = Window { from_ps, end_ps, doors, bytes: 0, has_frames: false, next_ps: NEVER };
        self.gather(w, &mut window);
        self.keys.sort();
        let keys = std::mem::take(&mut self.keys);
        let most = self.buffers.used(id) + window.bytes;
        let sums = if !window.has_frames && self.buffers.surely_admits(id, most) {
            self.take_short_cut(w, id, &window, &keys, most)
        } else {
            self.go_one_by_one(w, id, &window, &keys)
        };
        self.keys = keys;
        w.net.agenda.queue.postpone(id, window.next_ps.min(sums.due_ps));
        let totals = &mut w.told.totals;
        totals.fingerprint = totals.fingerprint.wrapping_add(sums.fingerprint);
        totals.packet_hops += sums.n_hops;
        w.clock.latest_ps = w.clock.latest_ps.max(sums.latest_ps);
        sums.n_events
    }

    /// Takes all that arrives in a window off the wires.
    #[inline]
    fn gather(&mut self, w: &mut World, window: &mut Window) {
        let Window { doors, from_ps, end_ps, .. } = *window;
        self.keys.keys.clear();
        let (pool, ports, paths, agenda) = (&w.net.pool, &w.net.ports, &w.net.paths, &mut w.net.agenda);
        for word in 0..doors.n.div_ceil(64) {
            let first = doors.first.plus(word * 64);
            let mut open = agenda.open[(doors.first_word + word) as usize];
            for bit in Bits(open) {
                let door = &mut agenda.doors[first.plus(bit)];
                while door.head_ps < end_ps {
                    let p = pool.get(door.head);
                    self.keys.push(door.head_ps - from_ps, word * 64 + bit, doors.door_bits, door.head);
                    window.bytes += u64::from(p.wire);
                    window.has_frames |= p.kind.is_frame();
                    if let Some(egress) = paths.get(p.route) {
                        prefetch(&ports[egress]);
                    }
                    (door.head, door.head_ps) = (p.next, p.arrival_ps);
                    pool.prefetch(door.head);
                }
                open ^= u64::from(door.head_ps == NEVER) << bit;
                window.next_ps = window.next_ps.min(door.head_ps);
            }
            agenda.open[(doors.first_word + word) as usize] = open;
        }
    }

    /// Admits all packets of a window, which together need `most` bytes of the buffer, and nobody has to pause.
    #[inline]
    fn take_short_cut(&mut self, w: &mut World, id: SwitchIdx, window: &Window, keys: &Keys, most: u64) -> Sums {
        let Window { doors, from_ps, end_ps, .. } = *window;
        // Only a new peak has to be found exactly, for which ports take turns.
        let sees_peak = self.buffers.peak() < most;
        let mut sums = Sums {
            fingerprint: 0,
            n_events: keys.keys.len() as u64,
            n_hops: 0,
            used: self.buffers.used(id),
            latest_ps: 0,
            due_ps: NEVER,
        };
        for &key in &keys.keys {
            let (since_ps, door, packet) = Keys::unpack(key, doors.door_bits);
            let at_ps = from_ps + since_ps;
            let from = w.net.agenda.ports[doors.first.plus(door)];
            sums.count(at_ps, EventKind::Arrive, w.net.links.id_of(from));
            let p = w.net.pool.get_mut(packet);
            p.ingress = from.reverse();
            let egress = w.net.paths.port(p.route);
            p.route = p.route.plus(1);
            let (wire, is_data, class) = (p.wire, p.kind == PacketKind::Data, p.class);
            if sees_peak {
                self.drain_all(w, &doors, at_ps, &mut sums);
            } else if w.net.ports[egress].tx_done_pending {
                self.drain(w, egress, at_ps, &mut sums);
            }
            let port = &mut w.net.ports[egress];
            if port.is_clear(class) && port.busy_until_ps < at_ps {
                port.enqueued_bytes += u64::from(wire);
                self.mark(w, egress, packet, MarkAt::Enqueue, at_ps, u32::from(wire));
                if sees_peak {
                    self.buffers.note_peak(sums.used + u64::from(wire));
                }
                leave(w, egress, packet, (wire, is_data), at_ps, &mut sums);
                continue;
            }
            let joined = port.class_bytes(class) + u32::from(wire);
            port.enqueue(&mut w.net.pool, packet);
            let (is_free, is_due) = (port.busy_until_ps < at_ps, port.tx_done_pending);
            self.mark(w, egress, packet, MarkAt::Enqueue, at_ps, joined);
            sums.used += u64::from(wire);
            if sees_peak {
                self.buffers.note_peak(sums.used);
            }
            // A port that is free and yet not clear holds what is paused.
            let can_go = is_free && w.net.ports[egress].can_send();
            let has_more = can_go && self.send_waiting(w, egress, at_ps, &mut sums);
            if !is_due && (has_more || !is_free) {
                let port = &mut w.net.ports[egress];
                port.tx_done_pending = true;
                w.net.agenda.set_due(port.due_bit);
            }
        }
        if w.net.agenda.has_due(doors) {
            sums.due_ps = self.drain_all(w, &doors, end_ps, &mut sums);
        }
        self.buffers.set_used(id, sums.used);
        sums
    }

    /// Lets all ports of a switch send what goes before a time. When something is due after that.
    #[inline(never)]
    fn drain_all(&mut self, w: &mut World, doors: &Doors, before_ps: u64, sums: &mut Sums) -> u64 {
        let mut due_ps = NEVER;
        for word in 0..doors.n.div_ceil(64) {
            for bit in Bits(w.net.agenda.due[(doors.first_word + word) as usize]) {
                let egress = w.net.agenda.ports[doors.first.plus(word * 64 + bit)].reverse();
                self.drain(w, egress, before_ps, sums);
                let port = &w.net.ports[egress];
                due_ps = due_ps.min(if port.tx_done_pending { port.busy_until_ps } else { NEVER });
            }
        }
        due_ps
    }

    /// Lets a port, for which something is due, send what goes before a time.
    #[allow(clippy::inline_always)] // See `Part::run`.
    #[inline(always)]
    fn drain(&mut self, w: &mut World, egress: PortIdx, before_ps: u64, sums: &mut Sums) {
        loop {
            let port = &mut w.net.ports[egress];
            let at_ps = port.busy_until_ps;
            if before_ps <= at_ps {
                return;
            }
            sums.count(at_ps, EventKind::TxDone, w.net.links.id_of(egress));
            sums.n_events += 1;
            if !port.can_send() || !self.send_waiting(w, egress, at_ps, sums) {
                let port = &mut w.net.ports[egress];
                port.tx_done_pending = false;
                w.net.agenda.clear_due(port.due_bit);
                return;
            }
        }
    }

    /// A port that is free at `at_ps` sends its next packet, which may go. Whether another one may go after that.
    #[allow(clippy::inline_always)] // See `Part::run`.
    #[inline(always)]
    fn send_waiting(&mut self, w: &mut World, egress: PortIdx, at_ps: u64, sums: &mut Sums) -> bool {
        let port = &mut w.net.ports[egress];
        let packet = port.dequeue(&w.net.pool);
        let has_more = port.can_send();
        let p = w.net.pool.get(packet);
        let (wire, class, kind) = (p.wire, p.class, p.kind);
        if kind == PacketKind::Data {
            let waiting = port.class_bytes(class);
            self.mark(w, egress, packet, MarkAt::Dequeue, at_ps, waiting);
        }
        if !kind.is_frame() {
            sums.used -= u64::from(wire);
        }
        leave(w, egress, packet, (wire, kind == PacketKind::Data), at_ps, sums);
        has_more
    }

    /// Goes through the events of a window in their order, as if there were no windows.
    #[inline(never)]
    fn go_one_by_one(&mut self, w: &mut World, id: SwitchIdx, window: &Window, keys: &Keys) -> Sums {
        let Window { doors, from_ps, end_ps, .. } = *window;
        self.account(w, id, &doors);
        let mut sums = Sums { fingerprint: 0, n_events: 0, n_hops: 0, used: 0, latest_ps: from_ps, due_ps: NEVER };
        let mut arrivals = keys.keys.iter().map(|&key| Keys::unpack(key, doors.door_bits)).peekable();
        loop {
            let (due_ps, due_port) = first_due(w, &doors);
            let arrival_ps = arrivals.peek().map_or(NEVER, |&(since_ps, ..)| from_ps + since_ps);
            let at_ps = due_ps.min(arrival_ps);
            if end_ps <= at_ps {
                sums.due_ps = due_ps;
                break;
            }
            w.clock.now_ps = at_ps;
            let event = if let Some((_, door, packet)) = arrivals.next_if(|_| arrival_ps <= due_ps) {
                let from = w.net.agenda.ports[doors.first.plus(door)];
                self.on_arrival(w, from.reverse(), packet);
                Event::new(at_ps, EventKind::Arrive, from.0)
            } else {
                let port = &mut w.net.ports[due_port];
                port.tx_done_pending = false;
                w.net.agenda.clear_due(port.due_bit);
                self.send_next(w, due_port);
                Event::new(at_ps, EventKind::TxDone, due_port.0)
            };
            let event = w.net.named(event);
            sums.fingerprint = sums.fingerprint.wrapping_add(event.print());
            sums.n_events += 1;
            sums.latest_ps = at_ps;
            if w.told.has_news() {
                w.told.mark(event);
            }
        }
        w.clock.now_ps = from_ps;
        sums
    }

    /// A packet or a frame comes in by the port `ingress`.
    fn on_arrival(&mut self, w: &mut World, ingress: PortIdx, packet: PacketIdx) {
        let p = w.net.pool.get(packet);
        let (kind, class) = (p.kind, p.class);
        if !kind.is_frame() {
            self.forward(w, ingress, packet);
            return;
        }
        debug_assert!(matches!(kind, PacketKind::Pause | PacketKind::Resume), "flows are paused by agents");
        w.net.pool.release(packet);
        w.pause_class(ingress, class, kind == PacketKind::Pause);
        if kind == PacketKind::Resume {
            self.kick(w, ingress);
        }
    }

    /// Brings the accounts of a switch's buffer up to date, which short cuts leave alone.
    fn account(&mut self, w: &World, id: SwitchIdx, doors: &Doors) {
        if !self.buffers.is_stale(id) {
            return;
        }
        let ports = || (0..doors.n).map(|door| w.net.agenda.ports[doors.first.plus(door)].reverse());
        self.buffers.begin_accounts(id, ports());
        for port in ports() {
            for packet in w.net.ports[port].waiting(&w.net.pool).map(|packet| w.net.pool.get(packet)) {
                if !packet.kind.is_frame() {
                    self.buffers.account(packet.ingress, packet.class, packet.wire);
                }
            }
        }
    }
}

impl Sums {
    #[inline]
    fn count(&mut self, at_ps: u64, kind: EventKind, port: PortId) {
        self.fingerprint = self.fingerprint.wrapping_add(Event::new(at_ps, kind, port.0).print());
        self.latest_ps = self.latest_ps.max(at_ps);
    }
}

/// A packet leaves a switch by a free port at a given time.
#[allow(clippy::inline_always)] // See `Part::run`.
#[inline(always)]
fn leave(w: &mut World, egress: PortIdx, packet: PacketIdx, (wire, is_data): (u16, bool), at_ps: u64, sums: &mut Sums) {
    if is_data {
        w.net.stamp(at_ps, egress, packet);
    }
    sums.n_hops += 1;
    w.net.transmit_at(&mut w.clock, egress, packet, wire, at_ps);
}

/// The first port of a switch that is to look for something to send, and when: by time, then by number.
#[inline(never)]
fn first_due(w: &World, doors: &Doors) -> (u64, PortIdx) {
    let mut first = (NEVER, PortIdx::NONE);
    for door in Agenda::doors_in(&w.net.agenda.due, *doors) {
        let port = w.net.agenda.ports[door].reverse();
        first = first.min((w.net.ports[port].busy_until_ps, port));
    }
    first
}
