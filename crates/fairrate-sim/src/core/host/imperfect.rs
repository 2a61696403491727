//! Hosts that are not ideal: what arrives is drained into memory, and acted on some time later; a NIC is slower than
//! its link.
//!
//! A packet that arrives at such a host goes through two rooms. Data waits in the receive buffer (`memory`) until it is
//! in memory. Then, like all other packets from their arrival on, it waits until the host acts on it (`delay`): only
//! then does its transport learn of it. Each room keeps the order of its packets, so it has at most one event, that of
//! its first packet.

mod delay;
mod memory;

use std::collections::VecDeque;

use fairrate_units::{Bytes, Rate, Time};

use self::delay::Delay;
use self::memory::{Memory, Room};
use super::Hosts;
use crate::config::{FullBuffer, HostConfig, ReceiveBuffer, SimConfig};
use crate::core::run::Run;
use crate::core::share::Own;
use crate::core::world::World;
use crate::engine::EventKind;
use crate::fabric::N_CLASSES;
use crate::ids::{HopId, HostId, NodeId, PacketIdx, PortIdx};
use crate::output::{Cause, HostSample};
use crate::packet::{Packet, PacketKind, PacketPool};
use crate::transport::Nic;

/// The value for "never".
const NEVER: u64 = u64::MAX;

/// The hosts of a part that are not ideal.
pub(super) struct ImperfectHosts {
    of: Own<HostId, Option<Box<Imperfect>>>,
    /// The classes in which data may come, a bit each.
    classes: u8,
}

/// A host that is not ideal.
struct Imperfect {
    nic_rate: Rate,
    delays: bool,
    memory: Option<Memory>,
    delay: Delay,
    /// The packets that the host will act on, with the times at which it does, in picoseconds.
    waiting: VecDeque<(u64, PacketIdx)>,
    /// Times of the events of the two rooms, in picoseconds; [`NEVER`]: none is pending.
    drains_ps: u64,
    acts_ps: u64,
}

impl ImperfectHosts {
    /// Returns the hosts that are not ideal among those with `nics`, if there are any in the run.
    pub(super) fn new(run: &Run, nics: &Own<HostId, Nic>) -> Option<Box<Self>> {
        let config = &run.config;
        if config.hosts.is_empty() {
            return None;
        }
        let mut by_node: Vec<Option<&HostConfig>> = vec![None; config.topology.nodes.len()];
        for host in &config.hosts {
            for node in &host.hosts {
                by_node[node.index()] = Some(host);
            }
        }
        let nodes: Vec<NodeId> = config.topology.end_points().collect();
        let imperfect = |host: HostId| {
            let node = nodes[host.index()];
            by_node[node.index()].map(|host_config| Box::new(Imperfect::new(config, host_config, node, host)))
        };
        Some(Box::new(Self { of: nics.with(imperfect), classes: config.data_classes() }))
    }
}

impl Imperfect {
    fn new(config: &SimConfig, host_config: &HostConfig, node: NodeId, host: HostId) -> Self {
        let levels = |buffer: &ReceiveBuffer| match buffer.full {
            FullBuffer::Drop => None,
            FullBuffer::Pause { at, resume } => {
                Some(config.pause_levels(node, buffer.size, at, resume).map(Bytes::as_u64))
            }
        };
        Self {
            nic_rate: host_config.nic_rate.unwrap_or(Rate::MAX),
            delays: host_config.delays(),
            memory: host_config.receive.as_ref().map(|buffer| Memory::new(buffer, levels(buffer))),
            delay: Delay::new(host_config, config.seed, u64::from(host.0)),
            waiting: VecDeque::new(),
            drains_ps: NEVER,
            acts_ps: NEVER,
        }
    }

    /// Schedules the events of both rooms of `host`, if they have packets and no events.
    fn plan(&mut self, w: &mut World, host: HostId) {
        if self.drains_ps == NEVER
            && let Some(at) = self.memory.as_ref().and_then(Memory::next_ps)
        {
            self.drains_ps = at;
            w.clock.schedule(at, EventKind::Reaction, host);
        }
        if self.acts_ps == NEVER
            && let Some(&(at, _)) = self.waiting.front()
        {
            self.acts_ps = at;
            w.clock.schedule(at, EventKind::Reaction, host);
        }
    }
}

impl Hosts {
    /// Returns `true` if all hosts act on packets the moment that these arrive, and send at the rates of their links.
    #[inline]
    pub(in crate::core) fn are_ideal(&self) -> bool {
        self.imperfect.is_none()
    }

    fn imperfect_mut(&mut self, host: HostId) -> Option<&mut Imperfect> {
        self.imperfect.as_mut()?.of[host].as_deref_mut()
    }

    /// Takes in a packet that has reached its host by the wire of `port`; the host may act on it later.
    #[cold]
    pub(in crate::core) fn on_arrival(&mut self, w: &mut World, host: HostId, port: PortIdx, packet: PacketIdx) {
        let Packet { kind, wire, .. } = *w.net.pool.get(packet);
        let now_ps = w.clock.now_ps;
        let Some(this) = self.imperfect_mut(host).filter(|this| this.delays) else {
            return self.on_packet(w, host, packet, kind);
        };
        let Some(memory) = this.memory.as_mut().filter(|_| kind == PacketKind::Data) else {
            return self.act_later(w, host, packet);
        };
        match memory.take_in(now_ps, packet, wire) {
            Room::None => {
                let held = memory.held;
                w.discard_at_host(port, packet, held);
            }
            Room::Enough => this.plan(w, host),
            Room::Little => {
                this.plan(w, host);
                w.observed.begin(Cause::Other);
                self.tell_switch(w, host, PacketKind::Pause);
            }
        }
    }

    /// Acts on a packet when its delay is over, which may be now.
    fn act_later(&mut self, w: &mut World, host: HostId, packet: PacketIdx) {
        let now_ps = w.clock.now_ps;
        let this = self.imperfect_mut(host).expect("the host is not ideal");
        let at = this.delay.acts_at(now_ps);
        if at == now_ps && this.waiting.is_empty() {
            let kind = w.net.pool.get(packet).kind;
            return self.on_packet(w, host, packet, kind);
        }
        this.waiting.push_back((at, packet));
        this.plan(w, host);
    }

    /// Handles what is due now in a room of `host`, if it is not ideal; returns `false` if the event is another one.
    pub(super) fn acts_late(&mut self, w: &mut World, host: HostId) -> bool {
        let now_ps = w.clock.now_ps;
        let Some(this) = self.imperfect_mut(host) else { return false };
        if this.drains_ps == now_ps {
            this.drains_ps = NEVER;
            self.drain(w, host);
        } else if this.acts_ps == now_ps {
            this.acts_ps = NEVER;
            self.act(w, host);
        } else {
            return false;
        }
        if let Some(this) = self.imperfect_mut(host) {
            this.plan(w, host);
        }
        true
    }

    /// Passes on what is in memory now.
    fn drain(&mut self, w: &mut World, host: HostId) {
        let now_ps = w.clock.now_ps;
        while let Some((packet, resumes)) =
            self.imperfect_mut(host).and_then(|this| this.memory.as_mut()?.take_out(now_ps))
        {
            self.act_later(w, host, packet);
            if resumes {
                w.observed.begin(Cause::Other);
                self.tell_switch(w, host, PacketKind::Resume);
            }
        }
    }

    /// Acts on what has waited until now.
    fn act(&mut self, w: &mut World, host: HostId) {
        let now_ps = w.clock.now_ps;
        while let Some(this) = self.imperfect_mut(host)
            && let Some((_, packet)) = this.waiting.pop_front_if(|&mut (at, _)| at <= now_ps)
        {
            let kind = w.net.pool.get(packet).kind;
            self.on_packet(w, host, packet, kind);
        }
    }

    /// Sends a frame of `kind`, a pause or resume, for each class of data to the switch of `host`, ahead of all other
    /// packets.
    fn tell_switch(&mut self, w: &mut World, host: HostId, kind: PacketKind) {
        let egress = self.nics[host].port;
        let classes = self.imperfect.as_ref().map_or(0, |imperfect| imperfect.classes);
        if w.net.ports[egress].is_down() {
            return;
        }
        for class in (0..N_CLASSES as u8).filter(|class| classes >> class & 1 == 1) {
            let totals = &mut w.observed.totals;
            // A frame that still waits and says the opposite is taken back: the other end keeps its state.
            if let Some(opposite) = w.net.ports[egress].cancel_pause(&mut w.net.pool, class) {
                let sent = if kind == PacketKind::Pause {
                    &mut totals.counts.pfc_resumes
                } else {
                    &mut totals.counts.pfc_pauses
                };
                *sent -= 1;
                w.net.pool.release(opposite);
                continue;
            }
            *if kind == PacketKind::Pause { &mut totals.counts.pfc_pauses } else { &mut totals.counts.pfc_resumes } +=
                1;
            let wire = w.run.constants.pfc_wire;
            let frame = w.net.pool.take(Packet { route: HopId::NONE, wire, class, ..Packet::new(kind) });
            w.net.ports[egress].enqueue_frame(&mut w.net.pool, frame);
        }
        self.may_send(w, host);
    }

    /// Repeats the pause of the switch of `host`, if it still holds, after the link has come up.
    pub(in crate::core) fn repeat_pause(&mut self, w: &mut World, host: HostId) {
        let memory = self.imperfect_mut(host).and_then(|this| this.memory.as_ref());
        if memory.is_some_and(Memory::is_pausing) {
            self.tell_switch(w, host, PacketKind::Pause);
        }
    }

    /// Returns the penalty that the receivers of `host` ask their senders for, in 128ths of what they acknowledge.
    #[inline]
    pub(crate) fn penalty(&self, host: HostId) -> u8 {
        let this = self.imperfect.as_ref().and_then(|imperfect| imperfect.of[host].as_ref());
        this.and_then(|this| this.memory.as_ref()).map_or(0, Memory::penalty)
    }

    /// Keeps the NIC of `host` from sending for as long as it is slower than its link, after it has begun to send a
    /// packet.
    #[inline]
    pub(super) fn rest(&self, w: &mut World, host: HostId) {
        if let Some(imperfect) = &self.imperfect {
            rest(imperfect, w, host, self.nics[host].port);
        }
    }

    /// Returns the bytes of data at hosts that have not acted on it.
    pub(in crate::core) fn data_bytes_waiting(&self, pool: &PacketPool) -> u64 {
        let hosts =
            self.imperfect.iter().flat_map(|imperfect| imperfect.of.iter().filter_map(|(_, host)| host.as_ref()));
        let packets = hosts.flat_map(|host| {
            let in_buffer = host.memory.iter().flat_map(Memory::packets);
            in_buffer.chain(host.waiting.iter().map(|&(_, packet)| packet))
        });
        packets.map(|packet| pool.get(packet)).filter(|p| p.kind == PacketKind::Data).map(|p| u64::from(p.wire)).sum()
    }

    /// Returns the sample of the receive buffer of `host`, which is `node`.
    pub(in crate::core) fn sample(&self, host: HostId, node: NodeId, now_ps: u64) -> HostSample {
        let t = Time::from_ps(now_ps);
        let this = self.imperfect.as_ref().and_then(|imperfect| imperfect.of[host].as_ref());
        match this.and_then(|this| this.memory.as_ref()) {
            Some(memory) => HostSample {
                t,
                host: node,
                held_bytes: memory.held,
                drained_bytes: memory.drained,
                drops: memory.drops,
                pausing: Time::from_ps(memory.pausing_ps(now_ps)),
            },
            None => HostSample { t, host: node, held_bytes: 0, drained_bytes: 0, drops: 0, pausing: Time::ZERO },
        }
    }
}

/// Keeps the transmitter of `egress` busy until a NIC of the rate of `host` would have sent the packet that it has
/// begun now.
#[cold]
fn rest(imperfect: &ImperfectHosts, w: &mut World, host: HostId, egress: PortIdx) {
    let Some(this) = &imperfect.of[host] else { return };
    let port = &mut w.net.ports[egress];
    if this.nic_rate < port.rate {
        let now_ps = w.clock.now_ps;
        let ps = u128::from(port.busy_until_ps - now_ps) * u128::from(port.rate.as_bps());
        let ps = ps.div_ceil(u128::from(this.nic_rate.as_bps().max(1)));
        port.busy_until_ps = now_ps.saturating_add(u64::try_from(ps).unwrap_or(u64::MAX));
    }
}
