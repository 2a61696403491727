//! The ports' side of an algorithm: what egress ports are told, the notices they send to sources, and the control
//! packets that flows send along their paths.

pub(super) use fairrate_control::PortStep as Step;
use fairrate_control::{
    Actions, Controller, FlowPause, NOTICE_VALUES, Notice, PortAgent, PortAlgorithm, PortContext, PortPacket,
    PortPacketKind, PortScope, PortView,
};
use fairrate_units::Time;

use super::Core;
use crate::config::SimConfig;
use crate::engine::EventKind;
use crate::fabric::{NO_HOST, Port};
use crate::ids::PortId;
use crate::packet::{Packet, PacketKind};
use crate::topology::Topology;

/// Header words a notice takes.
pub(super) const NOTICE_WORDS: usize = 1 + NOTICE_VALUES;

/// The agents of all ports.
pub(super) struct Agents {
    /// By port; empty if no port has one.
    of_port: Vec<Option<PortAlgorithm>>,
    /// When each wants to be called, in picoseconds; `u64::MAX`: never.
    timers: Vec<u64>,
    /// What matters to an agent: bit k: that a packet of that kind joins a queue; bit 16 + k: that it leaves.
    watched: u32,
    actions: Actions,
}

impl Agents {
    /// The agents that the algorithm wants.
    pub(super) fn new(config: &SimConfig, ports: &[Port], base_rtt: Time, wire_mtu: u64) -> Self {
        let scope = config.cc.needs().ports;
        if scope == PortScope::None {
            return Self { of_port: Vec::new(), timers: Vec::new(), watched: 0, actions: Actions::default() };
        }
        let delays = delays_into_nodes(&config.topology);
        let build = |(id, port): (u32, &Port)| {
            let of_host = port.of_host != NO_HOST;
            if of_host && scope == PortScope::Switches {
                return None;
            }
            let upstream_delay = delays[config.topology.from(PortId(id)).index()];
            let (rate, wire_mtu, seed) = (port.rate, wire_mtu as u32, config.seed);
            config.cc.build_port(&PortContext { port: id, rate, base_rtt, wire_mtu, upstream_delay, of_host, seed })
        };
        let of_port: Vec<_> = (0..).zip(ports).map(build).collect();
        let watched = of_port.iter().flatten().fold(0, |watched, agent| watched | watched_by(agent));
        Self { timers: vec![u64::MAX; of_port.len()], of_port, watched, actions: Actions::default() }
    }
}

/// What matters to the agent, as [`Agents::watched`] has it.
fn watched_by(agent: &PortAlgorithm) -> u32 {
    let data = 1 << PacketKind::Data as u8;
    // Packets of a handshake are of the simulator's kind for control packets.
    let kinds: [(PortPacketKind, u16); 3] = [
        (PortPacketKind::Data, data),
        (PortPacketKind::Control, 1 << PacketKind::Control as u8),
        (PortPacketKind::Other, !data),
    ];
    let watched = |step: Step| {
        let kinds = kinds.iter().filter(|(kind, _)| agent.watches(*kind, step));
        kinds.fold(0, |watched, (_, kinds)| watched | u32::from(*kinds)) << shift(step)
    };
    watched(Step::Enqueue) | watched(Step::Dequeue)
}

/// Where what matters of a step begins in [`Agents::watched`].
#[inline]
fn shift(step: Step) -> u8 {
    if step == Step::Enqueue { 0 } else { 16 }
}

/// Propagation delay of the longest link into each node.
fn delays_into_nodes(topology: &Topology) -> Vec<Time> {
    let mut delays = vec![Time::ZERO; topology.nodes.len()];
    for port in (0..topology.n_ports() as u32).map(PortId) {
        let delay = &mut delays[topology.to(port).index()];
        *delay = (*delay).max(topology.link(port).delay);
    }
    delays
}

impl Agents {
    /// Whether no port has one.
    pub(super) fn is_empty(&self) -> bool {
        self.of_port.is_empty()
    }
}

impl Core {
    /// Plans the first calls of the agents.
    pub(super) fn start_agents(&mut self) {
        for port in 0..self.agents.of_port.len() as u32 {
            if self.parts.of_port(port) == usize::from(self.part) {
                self.plan_agent(port);
            }
        }
    }

    /// Tells the agent of a port of a packet, if it has one that may want to know.
    #[inline]
    pub(super) fn agent_sees(&mut self, port: u32, packet: u32, step: Step) {
        let watched = self.agents.watched >> shift(step);
        if watched != 0 && watched >> self.pool.get(packet).kind as u8 & 1 != 0 {
            self.tell_agent(port, packet, step);
        }
    }

    fn tell_agent(&mut self, port: u32, packet: u32, step: Step) {
        let Some(agent) = self.agents.of_port[port as usize].as_mut() else { return };
        let p = self.pool.get(packet);
        let (flow, class, wire) = (p.flow, p.class, u32::from(p.wire));
        let kind = match p.kind {
            PacketKind::Data => PortPacketKind::Data,
            PacketKind::Control if !p.is_handshake() => PortPacketKind::Control,
            _ => PortPacketKind::Other,
        };
        let header: &mut [f64] = if kind == PortPacketKind::Other {
            &mut []
        } else {
            &mut self.pool.header_mut(packet)[..self.constants.header_words]
        };
        let view = PortView { now: Time::from_ps(self.now_ps), queue_bytes: self.ports[port as usize].queued_bytes };
        let mut seen = PortPacket { flow, class, kind, wire, header, mark: false };
        match step {
            Step::Enqueue => agent.on_enqueue(&view, &mut seen, &mut self.agents.actions),
            Step::Dequeue => agent.on_dequeue(&view, &mut seen, &mut self.agents.actions),
        }
        if seen.mark && kind == PortPacketKind::Data {
            self.pool.get_mut(packet).set_marked(true);
            self.ports[port as usize].ecn_marks += 1;
            self.totals.ecn_marks += 1;
        }
        self.act(port);
    }

    /// The physical queue that a packet joins, just after the agent of the port was told of it; `None`: that of its class.
    #[inline]
    pub(super) fn assigned_queue(&self, port: u32, packet: u32) -> Option<u16> {
        if self.agents.of_port.is_empty() {
            return None;
        }
        let p = self.pool.get(packet);
        let agent = self.agents.of_port[port as usize].as_ref().filter(|_| p.kind == PacketKind::Data)?;
        agent.assign(p.class, p.flow)
    }

    /// A frame tells `port` to hold a flow back, or to let it go.
    pub(super) fn on_flow_pause(&mut self, port: u32, packet: u32, pause: bool) {
        let Packet { flow, class, .. } = *self.pool.get(packet);
        self.pool.release(packet);
        self.hold_flow(port, flow, class, pause);
    }

    /// Lets `port` hold a flow back, or let it go.
    pub(super) fn hold_flow(&mut self, port: u32, flow: u32, class: u8, pause: bool) {
        let host = self.ports[port as usize].of_host;
        if host != NO_HOST {
            self.pause_sender(host, flow, pause);
            return;
        }
        let quantum = (self.constants.mtu + self.constants.data_header) as u32;
        self.ports[port as usize].set_flow_paused(&self.pool, class, flow, pause, quantum);
        if let Some(agent) = self.agents.of_port[port as usize].as_mut() {
            agent.on_flow_pause(flow, pause);
            self.plan_agent(port);
        }
        if !pause {
            self.kick(port);
        }
    }

    /// A flow's first switch holds it back at its NIC, or lets it go.
    fn pause_sender(&mut self, host: u32, flow: u32, pause: bool) {
        let slot = self.flows[flow as usize].sender;
        let Some(sender) = self.senders.get_mut(slot as usize).and_then(Option::as_mut) else { return };
        sender.paused = pause;
        self.refresh_open(slot);
        if !pause {
            self.nic_send(host);
        }
    }

    /// The agent of a port asked to be called now; or did, before it changed its mind.
    pub(super) fn on_port_timer(&mut self, port: u32) {
        if self.agents.timers[port as usize] != self.now_ps {
            return;
        }
        self.agents.timers[port as usize] = u64::MAX;
        let Some(agent) = self.agents.of_port[port as usize].as_mut() else { return };
        let view = PortView { now: Time::from_ps(self.now_ps), queue_bytes: self.ports[port as usize].queued_bytes };
        agent.on_timer(&view, &mut self.agents.actions);
        self.act(port);
    }

    /// Does what the agent of a port has asked for.
    #[inline]
    fn act(&mut self, port: u32) {
        if !self.agents.actions.notices.is_empty() || !self.agents.actions.pauses.is_empty() {
            self.send_actions(port);
        }
        self.plan_agent(port);
    }

    fn send_actions(&mut self, port: u32) {
        if !self.agents.actions.notices.is_empty() {
            let mut notices = std::mem::take(&mut self.agents.actions.notices);
            notices.drain(..).for_each(|notice| self.send_notice(port, &notice));
            self.agents.actions.notices = notices;
        }
        if !self.agents.actions.pauses.is_empty() {
            let mut pauses = std::mem::take(&mut self.agents.actions.pauses);
            pauses.drain(..).for_each(|pause| self.send_flow_pause(port, pause));
            self.agents.actions.pauses = pauses;
        }
    }

    #[inline]
    fn plan_agent(&mut self, port: u32) {
        let Some(agent) = self.agents.of_port[port as usize].as_ref() else { return };
        let due = agent.timer().as_ps();
        if due == self.agents.timers[port as usize] {
            return;
        }
        self.agents.timers[port as usize] = due;
        if due < u64::MAX {
            debug_assert!(self.now_ps <= due, "an agent's timer is not in the past");
            self.schedule(due, EventKind::PortTimer, port);
        }
    }

    /// Sends a notice from the node that owns `port` back along the path of the flow.
    fn send_notice(&mut self, port: u32, notice: &Notice) {
        let flow = &self.flows[notice.flow as usize];
        let n = flow.n_hops as usize;
        let Some(at) = self.position_on_path(notice.flow, port) else { return };
        // The way back begins behind the data path's last port; the hop before `port` is `n - at` further on.
        let route = flow.notice_route + (n - at) as u32;
        let (class, wire) = (self.constants.control_class, self.constants.cnp_wire);
        let packet = Packet { flow: notice.flow, route, class, wire, ..Packet::new(PacketKind::Notice) };
        let host = flow.src_host;
        let packet = self.pool.take(packet);
        let words = self.pool.header_mut(packet);
        words[0] = f64::from(notice.port);
        words[1..NOTICE_WORDS].copy_from_slice(&notice.values);
        self.totals.notices += 1;
        self.totals.control_bytes += u64::from(wire);
        if at == 0 {
            self.on_notification(host, packet);
        } else {
            self.forward(port, packet);
        }
    }

    /// Sends a frame out of the port by which the packets of a flow come in, past everything that waits there.
    fn send_flow_pause(&mut self, port: u32, FlowPause { flow, pause }: FlowPause) {
        let Some(at) = self.position_on_path(flow, port) else { return };
        let first = self.flows[flow as usize].data_route as usize - 1;
        debug_assert!(0 < at, "a host's own port has no previous hop");
        if at == 0 {
            return;
        }
        let back = self.paths[first + at - 1] ^ 1;
        self.note_held_flow(back, flow, pause);
        self.send_flow_frame(back, flow, pause);
    }

    /// Sends a frame out of `port` that pauses a flow or lets it go.
    pub(super) fn send_flow_frame(&mut self, port: u32, flow: u32, pause: bool) {
        if self.ports[port as usize].is_down() {
            return;
        }
        let (class, wire) = (self.flows[flow as usize].class, self.constants.cnp_wire);
        let (kind, count) = if pause {
            (PacketKind::FlowPause, &mut self.totals.flow_pauses)
        } else {
            (PacketKind::FlowResume, &mut self.totals.flow_resumes)
        };
        *count += 1;
        self.totals.control_bytes += u64::from(wire);
        let frame = self.pool.take(Packet { flow, wire, class, ..Packet::new(kind) });
        self.ports[port as usize].enqueue_control(&mut self.pool, frame);
        self.kick(port);
    }

    /// Which of the ports of a flow's data path `port` is.
    fn position_on_path(&self, flow: u32, port: u32) -> Option<usize> {
        let flow = &self.flows[flow as usize];
        let start = flow.data_route as usize - 1;
        let at = self.paths[start..start + flow.n_hops as usize].iter().position(|&p| p == port);
        debug_assert!(at.is_some(), "an agent speaks of flows that pass its port");
        at
    }

    /// A CNP or notice has reached its host, whose NIC acts on it at once or after its delay.
    pub(super) fn on_notification(&mut self, host: u32, packet: u32) {
        if self.constants.reaction_ps == 0 {
            self.react(packet);
            return;
        }
        let due = self.now_ps + self.constants.reaction_ps;
        self.nics[host as usize].held.push_back((due, packet));
        self.schedule(due, EventKind::Reaction, host);
    }

    /// The NIC of a host acts on the notification it has held for longest.
    pub(super) fn on_reaction(&mut self, host: u32) {
        let held = &mut self.nics[host as usize].held;
        debug_assert!(held.front().is_some_and(|&(due, _)| due == self.now_ps), "one event for each notification");
        if let Some((_, packet)) = held.pop_front() {
            self.react(packet);
        }
    }

    fn react(&mut self, packet: u32) {
        let Packet { flow, kind, .. } = *self.pool.get(packet);
        let words = self.pool.header(packet);
        let notice = (kind == PacketKind::Notice).then(|| {
            let mut values = [0.0; NOTICE_VALUES];
            values.copy_from_slice(&words[1..NOTICE_WORDS]);
            Notice { flow, port: words[0] as u32, values }
        });
        self.pool.release(packet);
        let now = self.now();
        self.control(flow, |control| match &notice {
            Some(notice) => control.on_notice(now, notice),
            None => Some(control.on_cnp(now)),
        });
    }

    /// Sends a flow's control packet if its controller has one.
    #[inline]
    pub(super) fn poll_control(&mut self, slot: u32) {
        if let Some(wire) = self.constants.control_wire {
            self.ask_for_control(slot, wire);
        }
    }

    fn ask_for_control(&mut self, slot: u32, wire: u16) {
        let now = self.now();
        let sender = self.senders[slot as usize].as_mut().expect("the slot is in use");
        // What may have to be sent again counts as something.
        let unsent = if sender.bytes == u64::MAX { u64::MAX } else { sender.bytes.saturating_sub(sender.snd_nxt) };
        let unsent = unsent.max(u64::from(sender.has_data()));
        self.header_scratch.fill(0.0);
        if !self.connections.controller(sender).control_packet(now, unsent, &mut self.header_scratch) {
            return;
        }
        let id = sender.flow;
        let flow = &self.flows[id as usize];
        let (host, route, class) = (flow.src_host, flow.data_route, self.constants.control_class);
        let packet = self.pool.take(Packet { flow: id, route, class, wire, ..Packet::new(PacketKind::Control) });
        self.pool.header_mut(packet)[..self.constants.header_words].copy_from_slice(&self.header_scratch);
        self.totals.control_packets += 1;
        self.send_control(host, packet);
    }

    /// A control packet has reached its receiver, which sends it back.
    pub(super) fn turn_control(&mut self, host: u32, packet: u32) {
        let p = self.pool.get_mut(packet);
        p.kind = PacketKind::ControlBack;
        p.route = self.flows[p.flow as usize].ack_route;
        self.send_control(host, packet);
        self.nic_send(host);
    }

    pub(super) fn send_control(&mut self, host: u32, packet: u32) {
        let port = self.nics[host as usize].port;
        self.totals.control_bytes += u64::from(self.pool.get(packet).wire);
        self.agent_sees(port, packet, Step::Enqueue);
        self.ports[port as usize].enqueue(&mut self.pool, packet);
    }

    /// A control packet is back at its source.
    pub(super) fn on_control_back(&mut self, packet: u32) {
        let id = self.pool.get(packet).flow;
        if self.pool.get(packet).is_handshake() {
            self.on_handshake(id);
            self.pool.release(packet);
            return;
        }
        let (slot, now) = (self.flows[id as usize].sender, self.now());
        let decision = self.senders.get_mut(slot as usize).and_then(Option::as_mut).and_then(|sender| {
            let header = &self.pool.header(packet)[..self.constants.header_words];
            self.connections.controller(sender).on_control(now, header)
        });
        self.pool.release(packet);
        self.control(id, |_| decision);
    }
}
