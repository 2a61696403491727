//! A part of a network: its components, and the handler of each kind of event.
//!
//! A part has few components. The [`World`] holds the state that switches and hosts share: the run, the clock, the
//! network and the results. [`Switches`] and [`Hosts`] receive the world as a parameter and do not refer to each other;
//! `links`, which handles packets that arrive, connects them.

mod agenda;
mod agents;
mod arrivals;
mod balance;
mod build;
mod clock;
mod deadlock;
mod density;
mod flow;
mod host;
mod host_span;
mod links;
mod look_ahead;
mod mode;
mod network;
mod observations;
mod outages;
mod parallel;
mod paths;
mod probes;
mod queue;
mod run;
mod share;
mod stall;
mod steering;
mod switch;
mod world;

use std::sync::Arc;

use fairrate_units::Time;

use self::agenda::Worker;
pub(crate) use self::build::framing;
pub(crate) use self::flow::Flow;
pub(crate) use self::host::Hosts;
use self::look_ahead::LookAhead;
pub use self::mode::{Mode, Reason};
pub(crate) use self::parallel::Cluster;
pub use self::parallel::{CriticalPath, Meeting, Work};
use self::parallel::{Mail, PostOffice};
pub(crate) use self::paths::Paths;
pub(crate) use self::run::Run;
pub(crate) use self::share::Own;
use self::switch::Switches;
pub(crate) use self::world::World;
use crate::config::Activity;
use crate::engine::{Event, EventKind};
use crate::fabric::Port;
use crate::ids::{FlowId, HostId, PortId, PortIdx};
use crate::output::{FlowOutcome, GroupTotals, PortTotals, RunTotals, Sink};
use crate::packet::{Packet, PacketKind};

/// A part of a network, which is the whole network or some of its nodes, with the events of its nodes.
pub(crate) struct Part {
    /// Number of this part.
    number: u16,
    world: World,
    switches: Switches,
    hosts: Hosts,
    mode: Mode,
    ahead: LookAhead,
    /// The boxes of all parts, and an empty mail.
    office: Arc<PostOffice>,
    spare: Mail,
    standing: Standing,
}

/// The standing of a part after a round, which the leader looks at.
#[derive(Clone, Copy)]
struct Standing {
    /// A lower bound on the next event of the part and of its mail for others; [`Event::LAST`] if there is none.
    next: Event,
    /// `true` if there are notifications to pass on.
    has_news: bool,
    /// `true` if the hosts of the part have nothing left to do.
    is_done: bool,
}

impl Part {
    /// Reads the part's mail, processes events as [`Part::process`] does, and sends mail.
    fn run(&mut self, until_ps: u64, max_events: u64) -> (bool, u64) {
        let is_one_of_many = 1 < self.world.net.mail.len();
        if is_one_of_many {
            self.read_mail();
        }
        let processed = self.process(until_ps, max_events);
        let sent_ps = if is_one_of_many { self.send_mail() } else { u64::MAX };
        self.standing = self.standing(sent_ps);
        processed
    }

    /// Processes at most `max_events` events before `until_ps`; returns `(is_done, n_processed)`, where `is_done` is
    /// `true` if none is left before `until_ps`. A span of a switch or host is processed whole, so
    /// `n_processed` may be larger than `max_events`.
    ///
    /// The code that handles most packets is inlined into this function: the calls alone were a tenth of its
    /// instructions.
    fn process(&mut self, until_ps: u64, max_events: u64) -> (bool, u64) {
        let mut n = 0;
        while n < max_events {
            let span_ps = self.world.net.agenda.queue.next_ps();
            let has_span = span_ps < until_ps;
            // Spans begin with arrivals, or with events that go after arrivals of the same time.
            let limit = if has_span { Event::new(span_ps, EventKind::Arrive, 0) } else { Event::earliest(until_ps) };
            let Some(event) = self.world.clock.next_before(limit) else {
                if has_span {
                    n += self.on_span(until_ps);
                    continue;
                }
                self.world.observed.totals.events += n;
                return (true, n);
            };
            self.look_ahead();
            if self.hosts.is_superseded(event) {
                continue;
            }
            n += 1;
            self.world.clock.reach(event);
            let totals = &mut self.world.observed.totals;
            totals.fingerprint = totals.fingerprint.wrapping_add(self.world.net.named(event).print());
            self.handle(event);
            if self.world.observed.has_unmarked() {
                self.world.observed.mark(self.world.net.named(event));
            }
        }
        self.world.observed.totals.events += n;
        (false, n)
    }

    /// Processes the span of the switch or host that is next, up to `until_ps`; returns the number of events.
    #[inline]
    fn on_span(&mut self, until_ps: u64) -> u64 {
        match self.world.net.agenda.next() {
            Worker::Switch(_) if self.ahead.in_batches => self.switches.on_batch(&mut self.world, until_ps),
            Worker::Switch(switch) => self.switches.on_span(&mut self.world, switch, until_ps),
            Worker::Host(host) => self.on_span_of_host(host, until_ps),
        }
    }

    #[inline(always)]
    fn handle(&mut self, event: Event) {
        let (hosts, world, entity) = (&mut self.hosts, &mut self.world, event.entity());
        match event.kind() {
            EventKind::Arrive => self.on_arrive(PortIdx(entity)),
            EventKind::TxDone => self.on_tx_done(PortIdx(entity)),
            EventKind::HostWake => hosts.on_wake(world, HostId(entity)),
            EventKind::Reaction => hosts.on_reaction(world, HostId(entity)),
            EventKind::PortTimer => self.on_port_timer(PortIdx(entity)),
            EventKind::FlowTimer => hosts.on_flow_timer(world, FlowId(entity)),
            EventKind::Rto => hosts.on_transport_timer(world, FlowId(entity)),
            EventKind::AckTimer => hosts.on_ack_timer(world, FlowId(entity)),
            EventKind::FlowStart => hosts.on_start(world, Activity::from_entity(entity)),
            EventKind::FlowStop => hosts.on_flow_stop(world, FlowId(entity)),
            EventKind::Settled => hosts.on_settled(world),
            EventKind::ArriveLate => self.on_arrive_late(PortIdx(entity)),
            EventKind::Flap => self.on_flap(entity),
            EventKind::Allocate => hosts.on_allocate(world, entity),
            EventKind::Burst => hosts.on_burst(world, FlowId(entity)),
            EventKind::Probe => unreachable!("probes sample between epochs"),
        }
    }

    /// Reports from now on what `sink` wants.
    fn report(&mut self, sink: &dyn Sink) {
        let World { observed, net, agents, .. } = &mut self.world;
        observed.wants = sink.wants();
        self.switches.note_watchers(observed.wants.packets || !agents.is_empty());
        net.has_plain_wires = net.faults.is_none() && !observed.wants.packets;
    }

    /// Returns the part's standing, after it has sent mail of which `sent_ps` is the earliest arrival.
    fn standing(&self, sent_ps: u64) -> Standing {
        let earliest_ps = sent_ps.min(self.world.net.agenda.queue.next_ps());
        let earliest = if earliest_ps < u64::MAX { Event::earliest(earliest_ps) } else { Event::LAST };
        let scheduled = self.world.clock.peek_at(|event| !self.hosts.is_superseded(event));
        Standing {
            next: self.world.net.named(scheduled).min(earliest),
            has_news: self.world.observed.has_news(),
            is_done: self.hosts.are_done(&self.world.run),
        }
    }

    /// Ends the run: adds the convergence samples that are still open to the notifications.
    fn close(&mut self) {
        self.hosts.close_convergence(&mut self.world.observed);
        self.world.observed.mark(Event::LAST);
    }

    /// Sends the mail for other parts, with the notes of this part's hosts; returns the earliest arrival of a packet in
    /// picoseconds, or `u64::MAX` if there is none.
    fn send_mail(&mut self) -> u64 {
        let mut earliest_ps = u64::MAX;
        for (to, mail) in self.world.net.mail.iter_mut().enumerate() {
            mail.notes.extend(self.hosts.notes_for(to as u16));
            earliest_ps = mail.earliest_ps().min(earliest_ps);
            self.office.put(usize::from(self.number), to, mail);
        }
        earliest_ps
    }

    /// Puts packets from other parts onto the wires by which they arrive, and hands the notes to the hosts.
    fn read_mail(&mut self) {
        let Self { world: World { net, clock, .. }, hosts, office, spare, number, .. } = self;
        office.empty(usize::from(*number), spare, |mail| {
            mail.unpack(net, |net, port, packet| {
                let arrival_ps = net.pool.get(packet).arrival_ps;
                // Runs of several parts have no ranks.
                net.launch(clock, port, packet, arrival_ps, 0);
            });
            mail.notes.drain(..).for_each(|(line, note)| hosts.take_note(line, note));
        });
    }

    /// Returns the totals so far.
    fn totals(&self) -> RunTotals {
        let mut totals = self.world.observed.totals;
        let of_data = |p: &&Packet| p.kind == PacketKind::Data;
        let bytes_in = |mail: &Mail| mail.packets().filter(of_data).map(|p| u64::from(p.wire)).sum::<u64>();
        let coming_bytes: u64 = self.office.boxes(usize::from(self.number)).map(|mail| bytes_in(&mail)).sum();
        let at_hosts = self.hosts.data_bytes_waiting(&self.world.net.pool);
        totals.in_flight_bytes = self.world.net.data_bytes() + coming_bytes + at_hosts;
        totals.peak_buffer_bytes = self.switches.buffers.peak();
        self.hosts.add_totals(&self.world.run, &mut totals);
        totals
    }

    /// Returns the totals of each group so far, in this part.
    fn groups(&self) -> &[GroupTotals] {
        &self.world.observed.groups
    }

    /// Adds the counters of this part's ports at `now_ps` to `totals`, which has all ports of the network in order.
    fn add_port_totals(&self, now_ps: u64, totals: &mut [PortTotals]) {
        let (run, net) = (&self.world.run, &self.world.net);
        for id in net.links.port_ids(totals.len()) {
            let Some(place) = net.links.place_of(id) else { continue };
            let total = &mut totals[id.index()];
            // A packet is dropped where it is: a port of another part may have lost it on the wire to this one.
            if let Some(drops) = self.world.observed.drops_at.get(place) {
                total.drops.merge(drops);
            }
            if run.parts.port(id) == self.number {
                let port = &net.ports[place];
                (total.tx_bytes, total.ecn_marks) = (port.tx_bytes, port.ecn_marks);
                total.pfc_pause = Time::from_ps(port.pause_ps(now_ps));
            }
        }
    }

    /// Returns the numbers of packets serialised and of flows done so far.
    fn progress(&self) -> (u64, u64) {
        (self.world.observed.totals.packet_hops, self.world.observed.totals.flows_done)
    }

    /// Returns the user's flows with a sender in this part that have started, or will start at a given time, and are
    /// not over.
    fn unfinished(&self) -> Vec<FlowId> {
        self.hosts.unfinished(&self.world.run)
    }

    /// Returns the data of a flow that its receiver, in this part, has received.
    fn received(&self, id: FlowId) -> host::Received {
        self.hosts.received(id)
    }

    /// Returns the outcome so far of a flow whose sender is in this part; `received` comes from its receiver's part,
    /// and `ideal_fct` is computed if it is not known.
    fn outcome(&self, id: FlowId, received: &host::Received, ideal_fct: Option<Time>) -> FlowOutcome {
        let run = &self.world.run;
        self.hosts.outcome(run, id, received, ideal_fct.unwrap_or_else(|| self.hosts.ideal_fct(run, id)))
    }

    /// Returns the ports of this part's nodes, each with its number in the network.
    fn own_ports(&self) -> impl Iterator<Item = (PortId, &Port)> {
        let (net, run) = (&self.world.net, &self.world.run);
        let ports = net.ports.numbered().map(|(port, p)| (net.links.id_of(port), p));
        ports.filter(|&(id, _)| run.parts.port(id) == self.number)
    }
}
