//! Spans of switches: a switch processes at once all packets that arrive and all that leave before the end of the span.
//!
//! No other node affects the switch during a span. The arrivals are known when the span begins (`agenda.rs`), and
//! departures after its end are left to the next one, so that a pause that arrives then finds its packets queued. The
//! result is the same as event by event (`by_event.rs`), with the same events in the fingerprint. Most spans take the
//! fast path (`short_cut.rs`): if the bytes that the switch holds and those that arrive would be admitted all together
//! without a pause, then each packet is admitted in any order, and ports need not take turns. Otherwise the switch
//! processes its events one by one.

use super::Switches;
use crate::core::agenda::{Bits, Door, Doors, NEVER, Worker};
use crate::core::arrivals::{Arrival, Arrivals};
use crate::core::look_ahead::MANY_PORTS;
use crate::core::network::Network;
use crate::core::world::World;
use crate::engine::{Event, EventKind};
use crate::ids::{PacketIdx, PortIdx, SwitchIdx};
use crate::packet::{PacketKind, Pausing};
use crate::prefetch::Cache;

/// The facts about a span that are known before its first event is processed.
pub(super) struct Span {
    pub(super) from_ps: u64,
    pub(super) end_ps: u64,
    pub(super) doors: Doors,
    /// `true` if the span is one of a batch.
    pub(super) is_of_batch: bool,
    /// Bytes of all packets that arrive.
    bytes: u64,
    has_frames: bool,
    /// Arrival time of the first packet after the span, in picoseconds.
    next_ps: u64,
}

impl Span {
    /// Creates a span of its own whose arrivals have not been gathered.
    #[inline]
    pub(super) fn alone(from_ps: u64, end_ps: u64, doors: Doors) -> Self {
        Self { from_ps, end_ps, doors, is_of_batch: false, bytes: 0, has_frames: false, next_ps: NEVER }
    }

    /// Creates such a span of a batch.
    #[inline]
    pub(super) fn of_batch(from_ps: u64, end_ps: u64, doors: Doors) -> Self {
        Self { is_of_batch: true, ..Self::alone(from_ps, end_ps, doors) }
    }

    /// Takes all packets that arrive in the span off the wires, and fetches data that is read next into `cache`.
    #[inline]
    pub(super) fn gather(&mut self, cache: Cache, w: &mut World, arrivals: &mut Arrivals) {
        let Self { doors: Doors { first, n, first_word, door_bits, .. }, from_ps, end_ps, .. } = *self;
        let Network { pool, ports, paths, agenda, .. } = &mut w.net;
        let is_large = MANY_PORTS <= ports.len();
        let words = &mut agenda.open[first_word as usize..][..n.div_ceil(64) as usize];
        let doors = agenda.doors.run_mut(first, n as usize);
        let (mut bytes, mut has_frames, mut next_ps) = (0, false, NEVER);
        arrivals.clear();
        for (word, open) in (0..).zip(words) {
            // The set of doors with a packet to take is as good as random, so no branch depends on it.
            let mut ready = 0;
            for bit in Bits(*open) {
                let Door { head_ps, head, .. } = doors[(word * 64 + bit) as usize];
                if is_large {
                    pool.prefetch(cache, head);
                }
                ready |= u64::from(head_ps < end_ps) << bit;
                next_ps = next_ps.min(if head_ps < end_ps { NEVER } else { head_ps });
            }
            let mut turn = ready;
            while ready != 0 {
                // One packet of each door in turn, so that the packets behind them are fetched meanwhile.
                turn = if turn == 0 { ready } else { turn };
                let bit = turn.trailing_zeros();
                turn &= turn - 1;
                let number = word * 64 + bit;
                let door = &mut doors[number as usize];
                let packet = door.head;
                let p = pool.get(packet);
                let next_hop = paths.next_hop(p.route);
                let arrival = Arrival { packet, next_hop, wire: p.wire, class: p.class };
                arrivals.push(door.head_ps - from_ps, number, door_bits, arrival);
                bytes += u64::from(p.wire);
                has_frames |= p.kind.is_frame();
                if is_large {
                    pool.prefetch_record(cache, packet, p.n_int);
                }
                ports.prefetch(cache, next_hop.port());
                (door.head_ps, door.head) = (p.arrival_ps, p.next);
                // There may be no next packet, and the prefetched address should be a valid one.
                pool.prefetch(cache, if p.next.is_none() { packet } else { p.next });
                let has_more = p.arrival_ps < end_ps;
                ready ^= u64::from(!has_more) << bit;
                *open ^= u64::from(p.arrival_ps == NEVER) << bit;
                next_ps = next_ps.min(if has_more { NEVER } else { p.arrival_ps });
            }
        }
        (self.bytes, self.has_frames, self.next_ps) = (bytes, has_frames, next_ps);
    }
}

/// The sums over the events of a span.
pub(super) struct Sums {
    pub(super) fingerprint: u64,
    /// Time of the first `TxDone` due after the span, in picoseconds. The field stands between two sums, as neighbours
    /// are added up by one instruction, which has to wait where only one of them has been written just before.
    pub(super) due_ps: u64,
    pub(super) n_events: u64,
    pub(super) latest_ps: u64,
    pub(super) n_hops: u64,
    /// Number of bytes that the switch holds.
    pub(super) used: u64,
    pub(super) n_marks: u64,
}

impl Switches {
    /// Processes the span of switch `id`, which is next, up to `until_ps`; returns the number of events.
    #[inline(never)]
    pub(in crate::core) fn on_span(&mut self, w: &mut World, id: SwitchIdx, until_ps: u64) -> u64 {
        let from_ps = w.net.agenda.queue.next_ps();
        let doors = w.net.agenda.switches[id];
        let mut span = Span::alone(from_ps, (from_ps + doors.span_ps).min(until_ps), doors);
        let mut arrivals = std::mem::take(&mut self.arrivals);
        span.gather(Cache::First, w, &mut arrivals);
        arrivals.sort();
        let (next_ps, n_events) = self.process_span(w, id, &span, &arrivals);
        self.arrivals = arrivals;
        w.net.agenda.postpone(Worker::Switch(id), next_ps);
        n_events
    }

    /// Processes a span of switch `id` with the packets that arrive in it; returns when the switch is due next, in
    /// picoseconds, and the number of events.
    #[inline]
    pub(super) fn process_span(
        &mut self,
        w: &mut World,
        id: SwitchIdx,
        span: &Span,
        arrivals: &Arrivals,
    ) -> (u64, u64) {
        w.clock.now_ps = span.from_ps;
        let most = self.buffers.used(id) + span.bytes;
        let is_quiet = self.backlog_pfc.as_ref().is_none_or(|pfc| pfc.is_quiet(id, most));
        let mut sums = Sums::new();
        if !span.has_frames && is_quiet && self.buffers.surely_admits(id, most) {
            let take_short_cut = match (self.buffers.peak() < most, w.observed.wants.packets) {
                (false, false) => Self::take_short_cut::<false, false>,
                (true, false) => Self::take_short_cut::<true, false>,
                (false, true) => Self::take_short_cut::<false, true>,
                (true, true) => Self::take_short_cut::<true, true>,
            };
            take_short_cut(self, w, id, span, arrivals, &mut sums);
        } else {
            self.go_one_by_one(w, id, span, arrivals, &mut sums);
        }
        let totals = &mut w.observed.totals;
        totals.fingerprint = totals.fingerprint.wrapping_add(sums.fingerprint);
        totals.packet_hops += sums.n_hops;
        totals.counts.ecn_marks += sums.n_marks;
        w.clock.latest_ps = w.clock.latest_ps.max(sums.latest_ps);
        (span.next_ps.min(sums.due_ps), sums.n_events)
    }

    /// Processes the events of a span in their order, as if there were no spans.
    #[inline(never)]
    fn go_one_by_one(&mut self, w: &mut World, id: SwitchIdx, span: &Span, arrivals: &Arrivals, sums: &mut Sums) {
        let Span { doors, from_ps, end_ps, .. } = *span;
        self.account(w, id, &doors);
        sums.latest_ps = from_ps;
        let mut arrivals = arrivals.iter(doors.door_bits).peekable();
        loop {
            let (due_ps, due_port) = first_due(w, &doors);
            let arrival_ps = arrivals.peek().map_or(NEVER, |&(since_ps, ..)| from_ps + since_ps);
            let at_ps = due_ps.min(arrival_ps);
            if end_ps <= at_ps {
                sums.due_ps = due_ps;
                break;
            }
            w.clock.now_ps = at_ps;
            let event = if let Some((_, door, Arrival { packet, .. })) = arrivals.next_if(|_| arrival_ps <= due_ps) {
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
            if w.observed.has_unmarked() {
                w.observed.mark(event);
            }
        }
        w.clock.now_ps = from_ps;
    }

    /// Processes a packet or frame that arrives by the port `ingress`.
    fn on_arrival(&mut self, w: &mut World, ingress: PortIdx, packet: PacketIdx) {
        let p = w.net.pool.get(packet);
        let (kind, class) = (p.kind, p.class);
        if !kind.is_frame() {
            self.forward(w, ingress, packet);
            return;
        }
        debug_assert!(matches!(kind, PacketKind::Pause | PacketKind::Resume), "flows are paused by agents");
        w.net.pool.release(packet);
        w.pause_class(ingress, class, Pausing::of_frame(kind));
        if kind == PacketKind::Resume {
            self.kick(w, ingress);
        }
    }

    /// Brings the accounts of a switch's buffer up to date, which the fast path does not keep.
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
    /// Creates the sums of no events.
    pub(super) fn new() -> Self {
        Self { fingerprint: 0, n_events: 0, n_hops: 0, n_marks: 0, used: 0, latest_ps: 0, due_ps: NEVER }
    }

    /// Adds an event to the fingerprint.
    #[inline]
    pub(super) fn count(&mut self, event: Event) {
        self.fingerprint = self.fingerprint.wrapping_add(event.print());
    }
}

/// Returns the first `TxDone` due at a switch as its time in picoseconds and its port: by time, then by number.
#[inline(never)]
fn first_due(w: &World, doors: &Doors) -> (u64, PortIdx) {
    let mut first = (NEVER, PortIdx::NONE);
    w.net.agenda.each_due(doors, |port| first = first.min((w.net.ports[port].busy_until_ps, port)));
    first
}
