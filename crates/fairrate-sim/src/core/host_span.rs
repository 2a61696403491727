//! Spans of hosts: a host processes at once the packets that reach it within the delay of its link, and its NIC's
//! wake-ups.
//!
//! As with switches (`switch/span.rs`), all packets that arrive in the span are on the wire when the first of them
//! arrives, and no event at another node affects the host during the span. But hosts also have scheduled events (flow
//! starts, timers), which fall in between: so a span ends at the next scheduled event of any host. The result is the
//! same as event by event, with the same events in the fingerprint.
//!
//! The end points of a host may start flows of each other: those of a GPU, and its two ports. So they have their spans
//! together, in the order of their events, and for the shortest of their delays.

use super::Part;
use super::agenda::{NEVER, Worker};
use super::host::Hosts;
use super::network::Network;
use crate::engine::{Event, EventKind};
use crate::ids::HostId;

/// The hosts that have a span together.
trait Team: Copy {
    /// Returns the least delay of their links, in picoseconds.
    fn delay_ps(self, hosts: &Hosts, net: &Network) -> u64;

    /// Returns their next event and its host.
    fn next(self, hosts: &Hosts, net: &Network) -> (Event, HostId);

    /// Sets the time at which each of them is due next; `next` is their next event.
    fn postpone(self, hosts: &Hosts, net: &mut Network, next: Event);
}

/// A host whose flows start without those of others.
#[derive(Clone, Copy)]
struct Alone(HostId);

/// The end points of a host that has several.
#[derive(Clone, Copy)]
struct Ends<const N: usize>([HostId; N]);

impl Team for Alone {
    #[inline]
    fn delay_ps(self, hosts: &Hosts, net: &Network) -> u64 {
        net.ports[hosts.port_of(self.0).reverse()].delay_ps
    }

    #[inline(always)]
    fn next(self, hosts: &Hosts, net: &Network) -> (Event, HostId) {
        let link = hosts.port_of(self.0).reverse();
        let head = net.ports[link].next_to_arrive();
        let arrival_ps = net.pool.peek(head).map_or(NEVER, |packet| packet.arrival_ps);
        let wake_ps = hosts.wake_ps(self.0);
        let event = if arrival_ps <= wake_ps {
            net.named(Event::new(arrival_ps, EventKind::Arrive, link.0))
        } else {
            Event::new(wake_ps, EventKind::HostWake, self.0.0)
        };
        (event, self.0)
    }

    #[inline]
    fn postpone(self, _: &Hosts, net: &mut Network, next: Event) {
        net.agenda.postpone(Worker::Host(self.0), next.time_ps);
    }
}

impl<const N: usize> Team for Ends<N> {
    fn delay_ps(self, hosts: &Hosts, net: &Network) -> u64 {
        self.0.map(|host| Alone(host).delay_ps(hosts, net)).into_iter().fold(NEVER, u64::min)
    }

    #[inline]
    fn next(self, hosts: &Hosts, net: &Network) -> (Event, HostId) {
        let [first, others @ ..] = &self.0.map(|host| Alone(host).next(hosts, net))[..] else {
            unreachable!("N is positive")
        };
        others.iter().fold(*first, |first, &other| if other.0 < first.0 { other } else { first })
    }

    fn postpone(self, hosts: &Hosts, net: &mut Network, _: Event) {
        for host in self.0 {
            let next_ps = Alone(host).next(hosts, net).0.time_ps;
            // Most spans have events at one of them.
            if net.agenda.due_ps(Worker::Host(host)) != next_ps {
                net.agenda.postpone(Worker::Host(host), next_ps);
            }
        }
    }
}

impl Part {
    /// Processes the span of `host`, which is next, up to `until_ps`; returns the number of events.
    #[inline(never)]
    pub(super) fn on_span_of_host(&mut self, host: HostId, until_ps: u64) -> u64 {
        match self.hosts.partners_of(host) {
            [HostId::NONE, _] => self.on_span_of_team(Alone(host), until_ps),
            [partner, HostId::NONE] => self.on_span_of_ends(Ends([host, partner]), until_ps),
            [first, second] => self.on_span_of_ends(Ends([host, first, second]), until_ps),
        }
    }

    /// The same for several end points of a host. A function of its own: inside the other one it takes registers from
    /// it.
    #[inline(never)]
    fn on_span_of_ends<const N: usize>(&mut self, ends: Ends<N>, until_ps: u64) -> u64 {
        self.on_span_of_team(ends, until_ps)
    }

    #[inline(always)]
    fn on_span_of_team(&mut self, team: impl Team, until_ps: u64) -> u64 {
        let from_ps = self.world.net.agenda.queue.next_ps();
        let end_ps = (from_ps + team.delay_ps(&self.hosts, &self.world.net)).min(until_ps);
        let (mut n_pending, mut bound) = (self.world.clock.n_pending(), self.world.clock.bound());
        let mut n = 0;
        let next = loop {
            let w = &mut self.world;
            let (event, host) = team.next(&self.hosts, &w.net);
            if end_ps <= event.time_ps || bound <= event {
                break event;
            }
            w.clock.now_ps = event.time_ps;
            if event.kind() == EventKind::Arrive {
                let link = self.hosts.port_of(host).reverse();
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
        team.postpone(&self.hosts, &mut w.net, next);
        n
    }
}
