//! The network between switches and hosts: ports with their queues and wires, and the packets in them.

use fairrate_control::{IntCounter, IntFormat, IntHop, PortRate, Telemetry};
use fairrate_units::Time;

use super::agenda::{Agenda, Worker};
use super::clock::Clock;
use super::parallel::Mail;
use super::paths::Paths;
use super::share::Links;
use crate::engine::{Event, EventKind};
use crate::fabric::{Faults, FaultyLink, Port};
use crate::ids::{FlowId, PacketIdx, PortId, PortIdx};
use crate::output::RunTotals;
use crate::packet::{PacketKind, PacketPool, Pausing};
use crate::prefetch::Cache;
use crate::table::Table;

/// The ports of a part.
pub(super) type Ports = Table<PortIdx, Port>;

/// The ports, wires and packets of a part.
pub(crate) struct Network {
    /// The links and ports of the whole network that this part has.
    pub(super) links: Links,
    pub(crate) ports: Ports,
    pub(crate) pool: PacketPool,
    /// The packets on their way to switches, if switches process their events in spans.
    pub(super) agenda: Agenda,
    /// The egress ports of all paths, each as its index in the part that it belongs to.
    pub(super) paths: Paths<PortIdx>,
    /// The counter and format of the telemetry that switches add to data packets; `None` if the run's algorithm reads
    /// none.
    pub(crate) telemetry: Option<Telemetry>,
    /// The faults of links, if any link has some.
    pub(crate) faults: Option<Box<Faults>>,
    /// `true` if no link has faults and the steps of packets are not reported.
    pub(super) has_plain_wires: bool,
    /// For each port whose wire leads to another part: that part's number, and the port's index there.
    pub(super) crossings: Vec<(u16, PortIdx)>,
    /// The mail of this round for each other part.
    pub(super) mail: Vec<Mail>,
}

impl Network {
    /// Borrows the ports and the rest of the network separately.
    #[inline]
    pub(super) fn split(&mut self) -> (&mut Ports, NetworkRest<'_>) {
        let Self { links, ports, pool, agenda, paths, telemetry, crossings, mail, .. } = self;
        (ports, NetworkRest { links, pool, agenda, paths, telemetry: *telemetry, crossings, mail })
    }

    /// Returns `event` with a port's index in this part replaced by the port's number in the whole network.
    #[inline]
    pub(super) fn named(&self, event: Event) -> Event {
        if self.links.are_all() || !event.is_of_port() {
            return event;
        }
        event.of(self.links.id_of(PortIdx(event.entity())).0)
    }

    /// Returns the port with number `id` in the whole network, if this part has it.
    pub(super) fn port_of(&self, id: PortId) -> Option<&Port> {
        self.links.place_of(id).map(|port| &self.ports[port])
    }

    /// Puts `packet` on the wire of `port`, which has faults, to arrive in order at `arrival_ps`, or out of order
    /// `late_ps` later if that is not 0.
    pub(super) fn launch_faulty(
        &mut self,
        clock: &mut Clock,
        port: PortIdx,
        packet: PacketIdx,
        (arrival_ps, late_ps, rank): (u64, u64, u32),
    ) {
        let link = self.faulty_link(port).expect("the link has faults");
        if late_ps > 0 {
            link.hold(packet, arrival_ps + late_ps);
            clock.push(arrival_ps + late_ps, EventKind::ArriveLate, port, rank);
            return;
        }
        let arrival_ps = link.in_order(arrival_ps);
        self.launch(clock, port, packet, arrival_ps, rank);
    }

    /// Prefetches what is read and written to put a packet onto the wire of `port`, whose line has been fetched.
    pub(super) fn prefetch_wire(&self, cache: Cache, port: PortIdx) {
        let port = &self.ports[port];
        self.pool.prefetch(cache, port.last_on_wire());
        self.agenda.doors.prefetch(cache, port.door_or_other());
    }

    /// Puts a packet that has been serialised onto the wire of `port`.
    #[inline(always)]
    pub(crate) fn launch(&mut self, clock: &mut Clock, port: PortIdx, packet: PacketIdx, arrival_ps: u64, rank: u32) {
        let (ports, mut net) = self.split();
        net.send_off(clock, &mut ports[port], port, packet, arrival_ps, rank);
    }

    /// Takes the packet at the head of `port`'s wire, which has reached the other end; returns `None` if that packet
    /// was lost.
    #[inline(always)]
    pub(crate) fn take_arrival(&mut self, clock: &mut Clock, port: PortIdx) -> Option<PacketIdx> {
        let p = &mut self.ports[port];
        if self.faults.is_some() && !p.is_due(&self.pool, clock.now_ps) {
            return None;
        }
        let (packet, next) = p.arrive(&self.pool);
        if let Some((time_ps, next)) = next {
            clock.push_arrival(time_ps, port, next);
        }
        Some(packet)
    }

    /// Returns the faults of a port's wire, if it has any.
    pub(crate) fn faulty_link(&mut self, port: PortIdx) -> Option<&mut FaultyLink> {
        self.faults.as_mut().and_then(|faults| faults.link(port))
    }

    /// Stores, if the wire of `port` has faults, that `port`'s node wants `flow` paused or sent at the other end.
    pub(crate) fn note_held_flow(&mut self, port: PortIdx, flow: FlowId, pausing: Pausing) {
        let Some(link) = self.faulty_link(port) else { return };
        if pausing.is_pause() {
            link.held_flows.insert(flow);
        } else {
            link.held_flows.remove(&flow);
        }
    }

    /// Stores, if the wire of `port` has faults, that `frame` reached the other end, which pauses or resumes its flow.
    pub(crate) fn note_told_flow(&mut self, port: PortIdx, frame: PacketIdx, pausing: Pausing) {
        let flow = self.pool.get(frame).flow;
        let Some(link) = self.faulty_link(port) else { return };
        if pausing.is_pause() {
            link.told_flows.insert(flow);
        } else {
            link.told_flows.remove(&flow);
        }
    }

    /// Schedules the end of the transmission that keeps `port` busy, or marks it as due if `port`'s switch goes in
    /// spans.
    #[inline(always)] // A call costs half as much as what it does.
    pub(crate) fn schedule_tx_done(&mut self, clock: &mut Clock, port: PortIdx) {
        let p = &mut self.ports[port];
        p.tx_done_pending = true;
        if self.agenda.is_kept() && p.of_host.is_none() {
            self.agenda.set_due(p.due_bit);
            return;
        }
        clock.push_end(p.busy_until_ps, port);
    }

    /// Returns the data bytes in queues and on wires.
    pub(crate) fn data_bytes(&self) -> u64 {
        let queued = self.ports.iter().flat_map(|port| port.contents(&self.pool));
        let late = self.faults.iter().flat_map(|faults| faults.late_packets());
        let coming = self.agenda.packets(&self.pool);
        let packets = queued.chain(late).chain(coming).map(|packet| self.pool.get(packet));
        packets.filter(|p| p.kind == PacketKind::Data).map(|p| u64::from(p.wire)).sum()
    }
}

/// The state of the transmitter that serves a queue, as telemetry reports it.
#[derive(Clone, Copy)]
pub(super) struct Transmitter {
    /// Bytes sent so far.
    pub(super) tx_bytes: u64,
    pub(super) rate: PortRate,
}

impl Transmitter {
    /// Returns the state of `port`'s own transmitter.
    #[inline]
    pub(super) fn of(port: &Port) -> Self {
        Self { tx_bytes: port.tx_bytes, rate: port.int_rate }
    }
}

/// A network without its ports: the state that a packet touches in a node besides its egress port.
pub(super) struct NetworkRest<'a> {
    pub(super) links: &'a Links,
    pub(super) pool: &'a mut PacketPool,
    pub(super) agenda: &'a mut Agenda,
    pub(super) paths: &'a Paths<PortIdx>,
    telemetry: Option<Telemetry>,
    // Vectors and not slices: their places and lengths are then read only for a packet that leaves the part.
    crossings: &'a Vec<(u16, PortIdx)>,
    mail: &'a mut Vec<Mail>,
}

impl NetworkRest<'_> {
    /// Serialises a packet of `wire` bytes onto the wire of `port`, which has no faults and whose transmitter is free.
    #[inline(always)]
    pub(super) fn transmit(
        &mut self,
        clock: &mut Clock,
        totals: &mut RunTotals,
        port: &mut Port,
        egress: PortIdx,
        (packet, wire): (PacketIdx, u16),
    ) {
        let (arrival_ps, rank) = serialise(clock, totals, port, egress, (packet, wire));
        self.send_off(clock, port, egress, packet, arrival_ps, rank);
    }

    /// Puts a packet that has been serialised onto the wire of `port`, which may lead to another part.
    #[inline(always)]
    pub(super) fn send_off(
        &mut self,
        clock: &mut Clock,
        port: &mut Port,
        egress: PortIdx,
        packet: PacketIdx,
        arrival_ps: u64,
        rank: u32,
    ) {
        if let Some(crossing) = port.crossing() {
            post(self.mail, self.crossings[crossing as usize], self.pool, packet, arrival_ps);
        } else if let Some(door) = port.door() {
            self.agenda.launch(self.pool, port, door, packet, arrival_ps);
        } else if port.launch(self.pool, packet, arrival_ps).is_some() {
            if self.agenda.has_hosts() {
                self.agenda.expect(Worker::Host(port.to_host()), arrival_ps);
            } else {
                clock.push(arrival_ps, EventKind::Arrive, egress.0, rank);
            }
        }
    }

    /// Stamps `packet`, which leaves the queue of `port` at `at_ps`, with telemetry, if it is data and the run's
    /// algorithm reads that. `sender` is the transmitter that serves the queue: the port's own, or an uplink that
    /// serves several. `qlen`: the bytes left in the queue.
    #[inline(always)]
    pub(super) fn stamp(&mut self, port: &Port, sender: Transmitter, at_ps: u64, packet: PacketIdx, qlen: u64) {
        let Some(Telemetry { counter, format }) = self.telemetry else { return };
        if self.pool.get(packet).kind != PacketKind::Data {
            return;
        }
        if port.is_special() && stamp_of_class(self.pool, port, (sender.rate, at_ps), packet, (counter, format)) {
            return;
        }
        let hop = IntHop {
            ts: Time::from_ps(at_ps),
            tx_bytes: match counter {
                IntCounter::Transmitted => sender.tx_bytes,
                IntCounter::Enqueued => port.joined_bytes(qlen, self.pool.get(packet).wire),
            },
            qlen: qlen as u32,
            rate: sender.rate,
        };
        self.pool.push_int(packet, hop.encoded(format));
    }
}

/// Stamps a packet with what `port` has sent and holds of its class alone, if that is what its class asks for; returns
/// `false` if not.
// It takes the pool, so that `NetworkRest` need not be in memory.
#[cold]
#[inline(never)]
fn stamp_of_class(
    pool: &mut PacketPool,
    port: &Port,
    (rate, at_ps): (PortRate, u64),
    packet: PacketIdx,
    (counter, format): (IntCounter, IntFormat),
) -> bool {
    let (class, wire) = (pool.get(packet).class, pool.get(packet).wire);
    let Some((sent, waiting)) = port.telemetry_of(class) else { return false };
    let tx_bytes = match counter {
        // The packet itself has been counted as sent.
        IntCounter::Transmitted => sent - u64::from(wire),
        IntCounter::Enqueued => sent + waiting,
    };
    pool.push_int(packet, IntHop { ts: Time::from_ps(at_ps), tx_bytes, qlen: waiting as u32, rate }.encoded(format));
    true
}

/// Serialises `packet`, of `wire` bytes, onto the wire of `port`, whose index is `egress` and whose transmitter is
/// free; returns the time at which it reaches the other end, in picoseconds, and the rank of its arrival.
#[inline(always)]
pub(super) fn serialise(
    clock: &mut Clock,
    totals: &mut RunTotals,
    port: &mut Port,
    egress: PortIdx,
    (packet, wire): (PacketIdx, u16),
) -> (u64, u32) {
    totals.packet_hops += 1;
    let rank = clock.rank_transmission(egress, packet);
    (port.serialise(wire, clock.now_ps), rank)
}

/// Puts a packet onto a wire that leads to a port of another part.
// It takes the fields of `NetworkRest` one by one, so that `NetworkRest` need not be in memory.
fn post(mail: &mut [Mail], (part, port): (u16, PortIdx), pool: &mut PacketPool, packet: PacketIdx, arrival_ps: u64) {
    mail[usize::from(part)].post(pool, port, packet, arrival_ps);
    pool.vacate(packet);
}
