//! Batches of spans, for networks that do not fit the processor's nearer caches: what several spans read is fetched
//! before the first of them is processed, so that the processor waits for many reads at a time.
//!
//! Each stage reads only data that the stage before has fetched.

use super::Switches;
use super::span::Span;
use crate::core::agenda::{NEVER, Worker};
use crate::core::arrivals::Arrivals;
use crate::core::network::Network;
use crate::core::world::World;
use crate::fabric::Port;
use crate::ids::{PacketIdx, PortIdx, SwitchIdx};
use crate::prefetch::Cache;

/// The largest number of spans in a batch.
const N_SPANS: usize = 8;
/// The cache for what a batch reads, which is more than the first level can have under way.
const CACHE: Cache = Cache::Second;

/// The spans of a batch, and lists of what is fetched for them.
#[derive(Default)]
pub(super) struct Batch {
    spans: Vec<(SwitchIdx, Span)>,
    /// The arrivals of each span.
    arrivals: [Arrivals; N_SPANS],
    /// The first packets at all doors.
    heads: Vec<PacketIdx>,
    /// The ports with a `TxDone` due.
    due: Vec<PortIdx>,
}

impl Switches {
    /// Processes the spans of the switch that is next and of those that follow it closely, up to `until_ps`; returns
    /// the number of events.
    ///
    /// A packet that is sent after the first span has begun reaches a switch no sooner than the length of the switch's
    /// spans later. All spans end by then, so none of them affects another, and nor does any other event.
    #[inline(never)]
    pub(in crate::core) fn on_batch(&mut self, w: &mut World, until_ps: u64) -> u64 {
        let mut batch = std::mem::take(&mut self.batch);
        let first_ps = batch.begin(w, until_ps);
        batch.gather(w);
        batch.fetch_egress(w);
        let mut n_events = 0;
        for ((id, span), arrivals) in batch.spans.drain(..).zip(&batch.arrivals) {
            let (next_ps, n) = self.process_span(w, id, &span, arrivals);
            n_events += n;
            // A switch of the batch may have sent a packet that is now the first to arrive here.
            w.net.agenda.expect(Worker::Switch(id), next_ps);
        }
        self.batch = batch;
        w.clock.now_ps = first_ps;
        n_events
    }
}

impl Batch {
    /// Takes the switches that are next out of the queue; returns when the first span begins, in picoseconds.
    fn begin(&mut self, w: &mut World, until_ps: u64) -> u64 {
        let agenda = &mut w.net.agenda;
        let first_ps = agenda.queue.next_ps();
        self.heads.clear();
        self.due.clear();
        while self.spans.len() < N_SPANS {
            let (from_ps, Worker::Switch(id)) = (agenda.queue.next_ps(), agenda.next()) else { break };
            let doors = agenda.switches[id];
            // Spans that begin late would be short.
            if until_ps.min(first_ps + doors.span_ps / 8) <= from_ps && !self.spans.is_empty() {
                break;
            }
            let end_ps = (first_ps + doors.span_ps).min(until_ps);
            self.spans.push((id, Span::of_batch(from_ps, end_ps, doors)));
            agenda.postpone(Worker::Switch(id), NEVER);
            agenda.fetch_open(CACHE, &doors);
        }
        first_ps
    }

    /// Gathers the packets that arrive.
    fn gather(&mut self, w: &mut World) {
        let (heads, due, net) = (&mut self.heads, &mut self.due, &w.net);
        for (_, span) in &self.spans {
            net.agenda.each_head(&span.doors, |head| {
                net.pool.prefetch(CACHE, head);
                heads.push(head);
            });
            net.agenda.each_due(&span.doors, |port| {
                CACHE.fetch(&net.ports[port]);
                net.ports[port].prefetch_queue(CACHE, 0);
                due.push(port);
            });
        }
        for &head in &*heads {
            let p = net.pool.get(head);
            net.paths.prefetch(CACHE, p.route);
            net.pool.prefetch(CACHE, p.next);
        }
        for ((_, span), arrivals) in self.spans.iter_mut().zip(&mut self.arrivals) {
            span.gather(CACHE, w, arrivals);
            arrivals.sort();
        }
    }

    /// Fetches all of the packets that leave for another part.
    fn fetch_crossing(&self, net: &Network) {
        let crosses = |port: &&Port| port.crossing().is_some();
        let packets = self.arrivals[..self.spans.len()].iter().flat_map(Arrivals::packets);
        for (packet, next_hop) in packets {
            if net.ports.get(next_hop.port()).as_ref().is_some_and(crosses) {
                net.pool.prefetch_records(CACHE, packet);
            }
        }
        for port in self.due.iter().map(|&port| &net.ports[port]).filter(crosses) {
            if port.can_send() {
                net.pool.prefetch_records(CACHE, port.first_waiting());
            }
        }
    }

    /// Fetches what is read of the ports by which packets leave: queues, packets in them, and doors at the other ends.
    fn fetch_egress(&self, w: &World) {
        let net = &w.net;
        let arrivals = || self.arrivals[..self.spans.len()].iter().flat_map(Arrivals::next_hops);
        let ports = || arrivals().filter_map(|(next_hop, class)| Some((net.ports.get(next_hop.port())?, class)));
        for (port, class) in ports() {
            port.prefetch_queue(CACHE, class);
            net.pool.prefetch(CACHE, port.last_on_wire());
            net.agenda.doors.prefetch(CACHE, port.door_or_other());
        }
        for &port in &self.due {
            let port = &net.ports[port];
            port.prefetch_around(CACHE, &net.pool);
            net.agenda.doors.prefetch(CACHE, port.door_or_other());
        }
        for (port, class) in ports() {
            net.pool.prefetch(CACHE, port.last_ahead(class));
        }
        if 1 < net.mail.len() {
            self.fetch_crossing(net);
        }
    }
}
