//! A part of a network: what it is made of, and who handles which event.
//!
//! A part is made of few things. The [`World`] has what switches and hosts have in common: the run, the clock, the network
//! and what is told. [`Switches`] and [`Hosts`] are handed the world and know nothing of each other; `links` stands between
//! them, where packets arrive.

mod agenda;
mod agents;
mod arrivals;
mod build;
mod clock;
mod deadlock;
mod density;
mod flow;
mod host;
mod host_window;
mod links;
mod look_ahead;
mod mode;
mod network;
mod parallel;
mod paths;
mod probes;
mod queue;
mod run;
mod share;
mod stall;
mod steering;
mod switch;
mod told;
mod world;

use self::agenda::Worker;
pub(crate) use self::build::framing;
pub(crate) use self::flow::Flow;
pub(crate) use self::host::Hosts;
pub(crate) use self::host::convergence::{demand_bps, solver_of};
pub use self::mode::{Mode, Reason};
pub(crate) use self::parallel::Cluster;
use self::parallel::Mail;
pub(crate) use self::paths::Paths;
pub(crate) use self::run::Run;
pub(crate) use self::share::Own;
use self::switch::Switches;
pub(crate) use self::world::World;
use crate::engine::{Event, EventKind};
use crate::fabric::Port;
use crate::ids::{FlowId, HostId, PortId, PortIdx};
use crate::output::{FlowOutcome, RunTotals};
use crate::packet::{Packet, PacketKind};

/// A part of a network: the whole of it, or some of its nodes, whose events this has.
pub(crate) struct Part {
    /// Which part this is.
    number: u16,
    world: World,
    switches: Switches,
    hosts: Hosts,
    mode: Mode,
}

impl Part {
    /// Processes up to `max_events` events before `until_ps`. Whether there is none left, and how many they were.
    ///
    /// What happens to most packets is one function: calls alone were a tenth of its instructions.
    fn run(&mut self, until_ps: u64, max_events: u64) -> (bool, u64) {
        self.read_mail();
        let mut n = 0;
        while n < max_events {
            let window_ps = self.world.net.agenda.queue.next_ps();
            let has_window = window_ps < until_ps;
            // Windows begin with arrivals, or with what comes after arrivals.
            let limit =
                if has_window { Event::new(window_ps, EventKind::Arrive, 0) } else { Event::earliest(until_ps) };
            let Some(event) = self.world.clock.next_before(limit) else {
                if has_window {
                    n += self.on_window(until_ps);
                    continue;
                }
                n += self.pass_overtaken(until_ps);
                self.world.told.totals.events += n;
                return (true, n);
            };
            n += 1;
            let totals = &mut self.world.told.totals;
            totals.fingerprint = totals.fingerprint.wrapping_add(self.world.net.named(event).print());
            self.handle(event);
            if self.world.told.has_news() {
                self.world.told.mark(self.world.net.named(event));
            }
        }
        self.world.told.totals.events += n;
        (false, n)
    }

    /// The switch or host that is next works through its window, or what of it comes before `until_ps`. How many events that is.
    #[inline]
    fn on_window(&mut self, until_ps: u64) -> u64 {
        match self.world.net.agenda.next() {
            Worker::Switch(switch) => self.switches.on_window(&mut self.world, switch, until_ps),
            Worker::Host(host) => self.on_window_of_host(host, until_ps),
        }
    }

    #[allow(clippy::inline_always)] // See `Part::run`.
    #[inline(always)]
    fn handle(&mut self, event: Event) {
        let (hosts, world, entity) = (&mut self.hosts, &mut self.world, event.entity());
        match event.kind() {
            EventKind::Arrive => self.on_arrive(PortIdx(entity)),
            EventKind::TxDone => self.on_tx_done(PortIdx(entity)),
            EventKind::HostWake => hosts.on_wake(world, HostId(entity), event.rank),
            EventKind::Reaction => hosts.on_reaction(world, HostId(entity)),
            EventKind::PortTimer => self.on_port_timer(PortIdx(entity)),
            EventKind::FlowTimer => hosts.on_flow_timer(world, FlowId(entity)),
            EventKind::Rto => hosts.on_transport_timer(world, FlowId(entity)),
            EventKind::AckTimer => hosts.on_ack_timer(world, FlowId(entity)),
            EventKind::FlowStart => hosts.on_flow_start(world, FlowId(entity)),
            EventKind::FlowStop => hosts.on_flow_stop(world, FlowId(entity)),
            EventKind::Settled => hosts.on_settled(world),
            EventKind::ArriveLate => self.on_arrive_late(PortIdx(entity)),
            EventKind::Flap => self.on_flap(entity),
            EventKind::Allocate => hosts.on_allocate(world, entity),
            EventKind::Burst => hosts.on_burst(world, FlowId(entity)),
            EventKind::Probe => unreachable!("probes sample between epochs"),
        }
    }

    /// What happens next, or when that is at the earliest; [`Event::LAST`]: nothing will.
    fn next(&self) -> Event {
        let mail_ps = self.world.net.mail.iter().map(Mail::earliest_ps).min().unwrap_or(u64::MAX);
        let earliest_ps = mail_ps.min(self.world.net.agenda.queue.next_ps());
        let earliest = if earliest_ps < u64::MAX { Event::earliest(earliest_ps) } else { Event::LAST };
        self.world.net.named(self.world.clock.peek()).min(earliest)
    }

    /// Whether all that this part has to do is done.
    fn is_done(&self) -> bool {
        self.hosts.are_done(&self.world.run)
    }

    /// The run is over: what there is left to tell is told.
    fn close(&mut self) {
        self.hosts.close_convergence(&mut self.world.told);
        self.world.told.mark(Event::LAST);
    }

    /// The mail for another part.
    fn mail_for(&mut self, part: usize) -> &mut Mail {
        let mail = &mut self.world.net.mail[part];
        mail.notes.extend(self.hosts.notes_for(part as u16));
        mail
    }

    /// Puts packets from other parts onto the wires they come by, and takes note of the rest.
    fn read_mail(&mut self) {
        let World { net, clock, .. } = &mut self.world;
        for part in 0..net.mail.len() {
            if !net.mail[part].has_come() {
                continue;
            }
            let mut mail = std::mem::take(&mut net.mail[part]);
            mail.unpack(net, |net, port, packet| {
                let Packet { arrival_ps, rank, .. } = *net.pool.get(packet);
                net.launch(clock, port, packet, arrival_ps, rank);
            });
            mail.notes.drain(..).for_each(|(line, note)| self.hosts.take_note(line, note));
            net.mail[part] = mail;
        }
    }

    /// Totals so far.
    fn totals(&self) -> RunTotals {
        let mut totals = self.world.told.totals;
        let coming = self.world.net.mail.iter().flat_map(Mail::packets).filter(|p| p.kind == PacketKind::Data);
        totals.in_flight_bytes = self.world.net.data_bytes() + coming.map(|p| u64::from(p.wire)).sum::<u64>();
        totals.peak_buffer_bytes = self.switches.buffers.peak();
        self.hosts.add_totals(&self.world.run, &mut totals);
        totals
    }

    /// Packets serialised so far, and flows done.
    fn progress(&self) -> (u64, u64) {
        (self.world.told.totals.packet_hops, self.world.told.totals.flows_done)
    }

    /// The user's flows that are sent from here, have started or will at their time, and are not over.
    fn unfinished(&self) -> Vec<FlowId> {
        self.hosts.unfinished(&self.world.run)
    }

    /// What has arrived here of a flow.
    fn received(&self, id: FlowId) -> host::Received {
        self.hosts.received(id)
    }

    /// How a flow that is sent from here has fared so far.
    fn outcome(&self, id: FlowId, received: &host::Received) -> FlowOutcome {
        self.hosts.outcome(&self.world.run, id, received)
    }

    /// The ports of this part's nodes, and their numbers in the network.
    fn own_ports(&self) -> impl Iterator<Item = (PortId, &Port)> {
        let (net, run) = (&self.world.net, &self.world.run);
        let ports = net.ports.numbered().map(|(port, p)| (net.links.id_of(port), p));
        ports.filter(|&(id, _)| run.parts.port(id) == self.number)
    }
}
