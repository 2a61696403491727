//! ToRs with circuits (`topology/rdcn.rs`): queues that several transmitters serve in turn.
//!
//! The port of a circuit is a virtual output queue (VOQ): packets to the ToR at the circuit's other end wait there.
//! While the circuit is up, this port alone sends them. Otherwise the ToR's uplink to the packet switch does, and its
//! VOQs take turns, packet by packet. A circuit does not start a packet that would end after the circuit's day.
//!
//! Paths lead through a VOQ and then the packet switch. A packet that a circuit carries skips the second hop, and its
//! telemetry has an empty record there ([`IntHop::ABSENT`]), so that records have the same positions on both ways. A
//! VOQ's record has the rate of the transmitter that serves it, and a byte counter that goes on from one transmitter to
//! the next.

use std::collections::VecDeque;

use fairrate_control::{CircuitHelp, IntHop};
use fairrate_units::Time;

use super::Switches;
use crate::core::network::Transmitter;
use crate::core::run::Run;
use crate::core::share::Links;
use crate::core::world::World;
use crate::engine::EventKind;
use crate::ids::{NodeId, PacketIdx, PortId, PortIdx};
use crate::packet::PacketKind;
use crate::table::Table;
use crate::topology::{CircuitState, Circuits};

/// The VOQs of a part's ToRs, and their uplinks.
pub(super) struct Rotors {
    /// The role of each port.
    roles: Table<PortIdx, Role>,
    tors: Vec<Tor>,
    voqs: Vec<Voq>,
    help: Option<CircuitHelp>,
}

/// The role of a port in a network with circuits.
#[derive(Clone, Copy)]
enum Role {
    /// A port without a role in circuits.
    Plain,
    /// The uplink of the ToR with this number.
    Uplink(usize),
    /// The VOQ with this number.
    Voq(usize),
}

struct Tor {
    uplink: PortIdx,
    /// VOQs with packets, in the order of their turns. Some may have got a circuit meanwhile.
    round: VecDeque<usize>,
}

struct Voq {
    port: PortIdx,
    tor: usize,
    matching: u32,
    state: CircuitState,
    in_round: bool,
    /// Offset added to the byte counter of the transmitter that serves the VOQ, so that the sum goes on when the
    /// transmitter changes. It wraps.
    counted: u64,
}

impl Voq {
    fn has_circuit(&self) -> bool {
        matches!(self.state, CircuitState::Day(_))
    }
}

impl Rotors {
    /// Creates the state of the ToRs among the nodes of a part, which has `links`, `own_ports` of its nodes, and
    /// `n_ports` ports.
    fn new(run: &Run, circuits: &Circuits, links: &Links, own_ports: &[PortId], n_ports: usize) -> Self {
        let topology = &run.config.topology;
        let place = |port| links.place_of(port).expect("a part has the links of its nodes");
        let mut rotors = Self {
            roles: vec![Role::Plain; n_ports].into(),
            tors: Vec::new(),
            voqs: Vec::new(),
            help: run.config.network_needs().circuits,
        };
        let mut nodes: Vec<NodeId> = Vec::new();
        for &uplink in
            own_ports.iter().filter(|&&p| topology.to(p) == circuits.core && !topology.is_host(topology.from(p)))
        {
            nodes.push(topology.from(uplink));
            rotors.roles[place(uplink)] = Role::Uplink(rotors.tors.len());
            rotors.tors.push(Tor { uplink: place(uplink), round: VecDeque::new() });
        }
        for &port in own_ports.iter().filter(|&&port| circuits.has(port)) {
            let (from, to) = (topology.from(port), topology.to(port));
            let tor = nodes.iter().position(|&node| node == from).expect("every ToR has an uplink");
            let matching = circuits.matching(from, to);
            let state = circuits.state(matching, Time::ZERO);
            rotors.roles[place(port)] = Role::Voq(rotors.voqs.len());
            rotors.voqs.push(Voq { port: place(port), tor, matching, state, in_round: false, counted: 0 });
        }
        rotors
    }

    /// Takes the VOQ whose turn it is at the uplink of `tor`: the first with packets and without a working circuit, if
    /// any.
    fn next_in_round(&mut self, w: &World, tor: usize) -> Option<usize> {
        while let Some(voq) = self.tors[tor].round.pop_front() {
            self.voqs[voq].in_round = false;
            if w.net.ports[self.voqs[voq].port].has_waiting() && !self.is_lit(w, voq) {
                return Some(voq);
            }
        }
        None
    }

    /// Adds `voq` to the turns at its ToR's uplink, unless it is among them.
    fn join_round(&mut self, voq: usize) {
        let tor = self.voqs[voq].tor;
        if !std::mem::replace(&mut self.voqs[voq].in_round, true) {
            self.tors[tor].round.push_back(voq);
        }
    }

    /// Returns `true` if `voq` has a circuit that is not down.
    fn is_lit(&self, w: &World, voq: usize) -> bool {
        self.voqs[voq].has_circuit() && !w.net.ports[self.voqs[voq].port].is_down()
    }

    /// Returns the largest number of bytes that `port` may hold at `now`; `None`: no limit, as at every port but a VOQ.
    pub(super) fn limit_at(&self, port: PortIdx, now: Time) -> Option<u64> {
        match self.roles[port] {
            Role::Voq(voq) => self.limit(voq, now),
            _ => None,
        }
    }

    /// Returns the largest number of bytes that `voq` may hold at `now`; `None`: no limit.
    fn limit(&self, voq: usize, now: Time) -> Option<u64> {
        let help = self.help?;
        let is_large = match self.voqs[voq].state {
            CircuitState::Day(_) => true,
            CircuitState::Away(until) => until <= now + help.ahead,
        };
        Some(if is_large { help.enlarged } else { help.voq }.as_u64())
    }
}

impl Switches {
    /// Creates the VOQs of a part's ToRs, if there are circuits. The part has `links`, `own_ports` of its nodes, and
    /// `n_ports` ports.
    pub(in crate::core) fn attach_circuits(&mut self, run: &Run, links: &Links, own_ports: &[PortId], n_ports: usize) {
        let Some(circuits) = &run.config.topology.circuits else { return };
        self.rotors = Some(Box::new(Rotors::new(run, circuits, links, own_ports, n_ports)));
        self.has_special_ports = true;
    }

    /// Schedules the first change of each of a part's circuits.
    pub(in crate::core) fn plan_circuits(&mut self, w: &mut World) {
        for voq in self.rotors.iter().flat_map(|rotors| &rotors.voqs) {
            plan(w, voq);
        }
    }

    /// Does the same as [`Switches::kick`], in a part with circuits.
    #[cold]
    pub(super) fn start_by_role(&mut self, w: &mut World, port: PortIdx) {
        let Some(rotors) = &mut self.rotors else { return };
        let transmitter = match rotors.roles[port] {
            Role::Voq(voq) if !rotors.is_lit(w, voq) => {
                rotors.join_round(voq);
                rotors.tors[rotors.voqs[voq].tor].uplink
            }
            _ => port,
        };
        self.start_transmitter(w, transmitter);
    }

    /// Does the same as [`Switches::send_next`], in a part with circuits.
    #[cold]
    pub(super) fn send_by_role(&mut self, w: &mut World, port: PortIdx) {
        match self.rotors.as_ref().map_or(Role::Plain, |rotors| rotors.roles[port]) {
            Role::Plain => self.send_from_queue(w, port),
            Role::Uplink(tor) => self.send_by_uplink(w, tor),
            Role::Voq(voq) => self.send_by_circuit(w, voq),
        }
    }

    /// Sends the next packet of the VOQ whose turn it is by the uplink of `tor`, which is free.
    fn send_by_uplink(&mut self, w: &mut World, tor: usize) {
        let Some(rotors) = &mut self.rotors else { return };
        let uplink = rotors.tors[tor].uplink;
        if w.net.ports[uplink].is_down() {
            return;
        }
        let Some(voq) = rotors.next_in_round(w, tor) else { return };
        self.send_from_voq(w, voq, uplink);
        let Some(rotors) = &mut self.rotors else { return };
        if w.net.ports[rotors.voqs[voq].port].has_waiting() {
            rotors.join_round(voq);
        }
        if !rotors.tors[tor].round.is_empty() && !w.net.ports[uplink].tx_done_pending {
            w.net.schedule_tx_done(&mut w.clock, uplink);
        }
    }

    /// Sends the next packet of `voq` by its circuit, whose port is free, if the transmission ends before the day does.
    fn send_by_circuit(&mut self, w: &mut World, voq: usize) {
        let Some(Voq { port, state, .. }) = self.rotors.as_ref().map(|rotors| &rotors.voqs[voq]) else { return };
        let (port, &CircuitState::Day(end)) = (*port, state) else { return };
        let p = &w.net.ports[port];
        if !p.can_send() {
            return;
        }
        let longest = w.run.constants.wire_mtu;
        let wire = if p.has_disciplines() { longest as u16 } else { w.net.pool.get(p.first_waiting()).wire };
        if end.as_ps() < w.clock.now_ps + p.tx_ps(wire) {
            return;
        }
        self.send_from_voq(w, voq, port);
        let p = &w.net.ports[port];
        if p.can_send() && !p.tx_done_pending {
            w.net.schedule_tx_done(&mut w.clock, port);
        }
    }

    /// Sends the next packet of `voq` by the port `transmitter`.
    fn send_from_voq(&mut self, w: &mut World, voq: usize, transmitter: PortIdx) {
        let Some(rotors) = &self.rotors else { return };
        let (port, counted) = (rotors.voqs[voq].port, rotors.voqs[voq].counted);
        let (by_circuit, marks) = (port == transmitter, rotors.help.is_some());
        // The circuit may be down, which does not stop the uplink.
        let paused = std::mem::take(&mut w.net.ports[port].paused);
        let (packet, _) = self.take(w, port);
        let is_data = w.net.pool.get(packet).kind == PacketKind::Data;
        w.net.ports[port].paused = paused;
        if is_data {
            stamp(w, port, transmitter, counted, packet);
        }
        let p = w.net.pool.get_mut(packet);
        if by_circuit {
            p.route = p.route.plus(1);
            if is_data && marks {
                p.set_marked(true);
            }
        } else {
            w.net.ports[port].left_unsent(p.wire);
            w.net.ports[transmitter].will_send_unqueued(p.wire);
        }
        w.transmit(transmitter, packet);
    }

    /// Starts or ends the circuit of `port`, and schedules its next change.
    pub(super) fn on_circuit(&mut self, w: &mut World, port: PortIdx) {
        let Some(rotors) = &mut self.rotors else { return };
        let Role::Voq(number) = rotors.roles[port] else { return };
        let (uplink, voq) = (rotors.tors[rotors.voqs[number].tor].uplink, &mut rotors.voqs[number]);
        let before = voq.has_circuit();
        let circuits = w.run.config.topology.circuits.as_ref().expect("there are VOQs");
        voq.state = circuits.state(voq.matching, w.clock.now());
        let sent = |port: PortIdx| w.net.ports[port].tx_bytes;
        match (before, voq.has_circuit()) {
            (false, true) => voq.counted = voq.counted.wrapping_add(sent(uplink)).wrapping_sub(sent(port)),
            (true, false) => voq.counted = voq.counted.wrapping_add(sent(port)).wrapping_sub(sent(uplink)),
            _ => {}
        }
        plan(w, voq);
        if w.net.ports[port].has_waiting() {
            self.start_by_role(w, port);
        }
    }
}

/// Schedules the next start or end of the circuit of `voq`.
fn plan(w: &mut World, voq: &Voq) {
    let (CircuitState::Day(until) | CircuitState::Away(until)) = voq.state;
    w.clock.schedule(until.as_ps(), EventKind::PortTimer, voq.port);
}

/// Adds telemetry to `packet`, which `transmitter` takes from a VOQ, if the run's algorithm reads that. The offset
/// `counted` makes the byte counter go on when another transmitter serves the VOQ.
fn stamp(w: &mut World, voq: PortIdx, transmitter: PortIdx, counted: u64, packet: PacketIdx) {
    let (ports, mut net) = w.net.split();
    let (queue, mut sender) = (&ports[voq], Transmitter::of(&ports[transmitter]));
    sender.tx_bytes = sender.tx_bytes.wrapping_add(counted);
    net.stamp(queue, sender, w.clock.now_ps, packet, queue.queued_bytes);
    if voq == transmitter && w.net.telemetry.is_some() {
        w.net.pool.push_int(packet, IntHop::ABSENT);
    }
}
