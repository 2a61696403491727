//! Spans of hosts: a host processes at once the packets that reach it within the delay of its link, and its NIC's
//! wake-ups.
//!
//! As with switches (`switch/span.rs`), all packets that arrive in the span are on the wire when the first of them
//! arrives, and no event at another node affects the host during the span. But hosts also have scheduled events (flow
//! starts, timers), which fall in between: so a span ends at the next scheduled event of any host. The result is the
//! same as event by event, with the same events in the fingerprint.

use super::Part;
use super::agenda::{NEVER, Worker};
use crate::engine::{Event, EventKind};
use crate::ids::HostId;

impl Part {
    /// Processes the span of `host`, which is next, up to `until_ps`; returns the number of events.
    #[inline(never)]
    pub(super) fn on_span_of_host(&mut self, host: HostId, until_ps: u64) -> u64 {
        let from_ps = self.world.net.agenda.queue.next_ps();
        let link = self.hosts.port_of(host).reverse();
        let end_ps = (from_ps + self.world.net.ports[link].delay_ps).min(until_ps);
        let (mut n_pending, mut bound) = (self.world.clock.n_pending(), self.world.clock.bound());
        let mut n = 0;
        let next_ps = loop {
            let w = &mut self.world;
            let head = w.net.ports[link].next_to_arrive();
            let arrival_ps = w.net.pool.peek(head).map_or(NEVER, |packet| packet.arrival_ps);
            let wake_ps = self.hosts.wake_ps(host);
            let at_ps = arrival_ps.min(wake_ps);
            let event = if arrival_ps <= wake_ps {
                w.net.named(Event::new(at_ps, EventKind::Arrive, link.0))
            } else {
                Event::new(at_ps, EventKind::HostWake, host.0)
            };
            if end_ps <= at_ps || bound <= event {
                break at_ps;
            }
            w.clock.now_ps = at_ps;
            if arrival_ps <= wake_ps {
                let (packet, _) = w.net.ports[link].arrive(&w.net.pool);
                self.take_in(link, packet);
            } else {
                self.hosts.on_wake(w, host);
            }
            n += 1;
            let observed = &mut self.world.observed;
            observed.totals.fingerprint = observed.totals.fingerprint.wrapping_add(event.print());
            if observed.has_unmarked() {
                observed.mark(event);
            }
            if self.world.clock.n_pending() != n_pending {
                (n_pending, bound) = (self.world.clock.n_pending(), self.world.clock.bound());
            }
        };
        let w = &mut self.world;
        if 0 < n {
            w.clock.latest_ps = w.clock.latest_ps.max(w.clock.now_ps);
            w.clock.now_ps = from_ps;
        }
        w.net.agenda.postpone(Worker::Host(host), next_ps);
        n
    }
}
