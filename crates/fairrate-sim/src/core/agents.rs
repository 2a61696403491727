//! The agents of egress ports: the ports' side of an algorithm. The actions they request (notices to sources, pauses of
//! single flows) are collected here, and carried out by the switch or host that the port belongs to.

pub(crate) use fairrate_control::PortStep as Step;
use fairrate_control::{
    Actions, AlgorithmConfig, FlowPause, NOTICE_VALUES, Notice, PortAgent, PortAlgorithm, PortContext, PortPacket,
    PortPacketKind, PortScope, PortView, Queueing,
};
use fairrate_units::{Rate, Time};

use super::clock::Clock;
use super::network::Network;
use super::run::Run;
use super::world::World;
use crate::config::SimConfig;
use crate::engine::EventKind;
use crate::fabric::{N_CLASSES, Port};
use crate::ids::{FlowId, PacketIdx, PortId, PortIdx};
use crate::packet::PacketKind;
use crate::table::Table;
use crate::topology::Topology;

/// Number of header words of a notice.
pub(crate) const NOTICE_WORDS: usize = 1 + NOTICE_VALUES;

/// The agents of all ports.
pub(crate) struct Agents {
    /// By port; empty if no port has an agent.
    of_port: Table<PortIdx, Option<PortAlgorithm>>,
    /// The classes whose packets have an agent of their own at each port, which sees the queue of the class alone.
    own_classes: Vec<u8>,
    /// These agents, by port and then in the order of `own_classes`; empty if there are none.
    of_class: Table<PortIdx, Vec<PortAlgorithm>>,
    /// The time at which an agent of each port asked to be called, in picoseconds; `u64::MAX`: never.
    timers: Table<PortIdx, u64>,
    /// The stack whose algorithm has agents; they see packets of its flows alone.
    stack: u8,
    /// `true` if the run has flows of other stacks too.
    has_others: bool,
    /// Set if agents see the packets of all flows, and no class has agents of its own.
    are_alone: bool,
    /// Number of header words of that algorithm.
    header_words: usize,
    /// `true` if agents assign packets to physical queues.
    assign: bool,
    /// The packets that agents watch. Bit k: packets of kind k as they join a queue; bit 16 + k: as they leave it.
    watched: u32,
    actions: Actions,
}

impl Agents {
    /// Creates the agents that an algorithm of the run has at `ports`, which are `None` for ports of other parts.
    pub(super) fn new<'a>(run: &Run, ports: impl Iterator<Item = Option<(PortId, &'a Port)>>) -> Self {
        let config = &run.config;
        let scope_of = |cc: &AlgorithmConfig| cc.needs().network.ports;
        let mut stacks = (0..).zip(config.stacks());
        let Some((stack, (_, cc))) = stacks.find(|(_, (_, cc))| scope_of(cc) != PortScope::None) else {
            return Self {
                of_port: Table::default(),
                own_classes: Vec::new(),
                of_class: Table::default(),
                timers: Table::default(),
                stack: 0,
                has_others: false,
                are_alone: true,
                header_words: 0,
                assign: false,
                watched: 0,
                actions: Actions::default(),
            };
        };
        let (scope, rules) = (scope_of(cc), run.rules(stack));
        let (base_rtt, wire_mtu) = (rules.base_rtt, run.constants.mtu + rules.data_header);
        let delays = delays_into_nodes(&config.topology);
        let build = |(id, port): (PortId, &Port)| {
            let of_host = !port.of_host.is_none();
            if of_host && scope == PortScope::Switches {
                return None;
            }
            let upstream_delay = delays[config.topology.from(id).index()];
            cc.build_port(&PortContext {
                port: id.0,
                rate: port.rate,
                nic_rate: nic_rate(config, id),
                base_rtt,
                wire_mtu: wire_mtu as u32,
                frame_overhead: config.fabric.frame_overhead.as_u64() as u32,
                upstream_delay,
                of_host,
                seed: config.seed,
            })
        };
        let own_classes = own_classes(config, scope);
        let build_all = |port: Option<(PortId, &Port)>| {
            let of_class = own_classes.iter().filter_map(|_| port.and_then(build)).collect::<Vec<_>>();
            (port.and_then(build), of_class)
        };
        let (of_port, of_class): (Vec<_>, Vec<_>) = ports.map(build_all).unzip();
        let (of_port, of_class): (Table<PortIdx, _>, Table<PortIdx, _>) = (of_port.into(), of_class.into());
        let watched = of_port.iter().flatten().fold(0, |watched, agent| watched | watched_by(agent));
        let (timers, header_words) = (vec![u64::MAX; of_port.len()].into(), rules.header_words);
        let has_others = !config.beside.is_empty();
        let assign = cc.needs().network.queueing == Queueing::Own;
        let are_alone = !has_others && own_classes.is_empty();
        let actions = Actions::default();
        Self {
            of_port,
            own_classes,
            of_class,
            timers,
            stack,
            has_others,
            are_alone,
            header_words,
            assign,
            watched,
            actions,
        }
    }
}

/// Returns the classes whose telemetry tells of them alone, for algorithms whose agents go by queues of switches.
fn own_classes(config: &SimConfig, scope: PortScope) -> Vec<u8> {
    let is_own = |class: &u8| scope == PortScope::Switches && config.fabric.class(*class).own_telemetry;
    (0..N_CLASSES as u8).filter(is_own).collect()
}

/// Returns the rate of the NIC of a host's port, if the configuration has one.
fn nic_rate(config: &SimConfig, port: PortId) -> Rate {
    let host = config.imperfect_host(config.topology.from(port));
    host.and_then(|host| host.nic_rate).unwrap_or(Rate::MAX)
}

/// Returns the packets that the agent watches, as a mask like [`Agents::watched`].
fn watched_by(agent: &PortAlgorithm) -> u32 {
    let data = 1 << PacketKind::Data as u8;
    // Handshake packets have the simulator's kind of control packets.
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

/// Returns the position of a step's first bit in [`Agents::watched`].
#[inline]
fn shift(step: Step) -> u8 {
    if step == Step::Enqueue { 0 } else { 16 }
}

/// Returns the propagation delay of the longest link into each node.
fn delays_into_nodes(topology: &Topology) -> Vec<Time> {
    let mut delays = vec![Time::ZERO; topology.nodes.len()];
    for port in (0..topology.n_ports() as u32).map(PortId) {
        let delay = &mut delays[topology.to(port).index()];
        *delay = (*delay).max(topology.link(port).delay);
    }
    delays
}

impl Agents {
    /// Returns `true` if some agent watches packets of `kind`, as they join a queue or as they leave it.
    #[inline]
    pub(crate) fn watch(&self, kind: PacketKind) -> bool {
        (self.watched | self.watched >> 16) >> kind as u8 & 1 != 0
    }

    /// Returns `true` if some agent watches packets of `kind` at `step`.
    #[inline]
    pub(crate) fn watch_at(&self, kind: PacketKind, step: Step) -> bool {
        self.watched >> shift(step) >> kind as u8 & 1 != 0
    }

    /// Returns the stack whose algorithm has agents.
    pub(crate) fn stack(&self) -> u8 {
        self.stack
    }

    /// Returns `true` if agents see packets of `flow`.
    #[inline]
    fn see(&self, run: &Run, flow: FlowId) -> bool {
        !self.has_others || self.stack == run.flow(flow).stack
    }

    /// Returns `true` if no port has an agent.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.of_port.is_empty()
    }

    /// Returns the agent of a port, if it has one.
    pub(crate) fn of(&mut self, port: PortIdx) -> Option<&mut PortAlgorithm> {
        self.of_port.get_mut(port)?.as_mut()
    }

    /// Schedules the first call of every agent.
    pub(super) fn plan_all(&mut self, clock: &mut Clock) {
        self.of_port.numbers().for_each(|port| self.plan(clock, port));
    }

    /// Returns the next time at which an agent of a port asks to be called, in picoseconds.
    #[inline]
    fn due_ps(&self, port: PortIdx) -> u64 {
        let due_ps = self.of_port[port].as_ref().map_or(u64::MAX, |agent| agent.timer().as_ps());
        if self.own_classes.is_empty() {
            return due_ps;
        }
        self.of_class[port].iter().fold(due_ps, |due_ps, agent| due_ps.min(agent.timer().as_ps()))
    }

    /// Schedules the call that the agents of a port ask for, unless it is scheduled already.
    #[inline]
    pub(crate) fn plan(&mut self, clock: &mut Clock, port: PortIdx) {
        let due = self.due_ps(port);
        if due == self.timers[port] {
            return;
        }
        self.timers[port] = due;
        if due < u64::MAX {
            debug_assert!(clock.now_ps <= due, "an agent's timer is not in the past");
            clock.schedule(due, EventKind::PortTimer, port);
        }
    }

    /// Returns the physical queue that the port's agent has just assigned to this data packet; `None`: the queue of its
    /// class.
    #[inline]
    pub(crate) fn assigned_queue(&self, run: &Run, net: &Network, port: PortIdx, packet: PacketIdx) -> Option<u16> {
        if !self.assign {
            return None;
        }
        let p = net.pool.get(packet);
        let agent = self.of_port.get(port)?.as_ref().filter(|_| p.kind == PacketKind::Data && self.see(run, p.flow))?;
        agent.assign(p.class, p.flow.0)
    }

    /// Calls the agents of a port whose timers are due now; returns `true` if there are any. An earlier request may
    /// have been replaced.
    pub(crate) fn on_timer(&mut self, net: &Network, clock: &Clock, port: PortIdx) -> bool {
        if self.timers[port] != clock.now_ps {
            return false;
        }
        self.timers[port] = u64::MAX;
        let Some(agent) = self.of_port[port].as_mut() else { return false };
        let (now, at) = (clock.now(), &net.ports[port]);
        let has_own = !self.own_classes.is_empty();
        if !has_own || agent.timer() <= now {
            agent.on_timer(&PortView { now, queue_bytes: at.queued_bytes }, &mut self.actions);
        }
        if has_own {
            self.on_own_timers(now, at, port);
        }
        true
    }

    /// Calls the agents of the classes of a port whose timers are due now.
    #[cold]
    fn on_own_timers(&mut self, now: Time, at: &Port, port: PortIdx) {
        for (agent, &class) in self.of_class[port].iter_mut().zip(&self.own_classes) {
            if agent.timer() <= now {
                agent.on_timer(&PortView { now, queue_bytes: at.class_bytes(class).into() }, &mut self.actions);
            }
        }
    }

    /// Returns the number of the agent that `class` has of its own at each port, if it has one.
    fn own_of(&self, class: u8) -> Option<usize> {
        self.own_classes.iter().position(|&own| own == class)
    }

    /// Tells the agents of a port, if it has any, of the new rate of its link.
    pub(super) fn on_rate(&mut self, clock: &mut Clock, port: PortIdx, rate: Rate) {
        if let Some(agent) = self.of(port) {
            agent.on_rate(rate);
            self.of_class[port].iter_mut().for_each(|agent| agent.on_rate(rate));
            self.plan(clock, port);
        }
    }

    /// Takes the notices that an agent has requested.
    pub(crate) fn take_notices(&mut self) -> Vec<Notice> {
        std::mem::take(&mut self.actions.notices)
    }

    /// Takes the pauses that an agent has requested.
    pub(crate) fn take_pauses(&mut self) -> Vec<FlowPause> {
        std::mem::take(&mut self.actions.pauses)
    }

    /// Takes back the lists of [`Agents::take_notices`] and [`Agents::take_pauses`], emptied, for reuse.
    pub(crate) fn give_back(&mut self, mut notices: Vec<Notice>, mut pauses: Vec<FlowPause>) {
        notices.clear();
        pauses.clear();
        (self.actions.notices, self.actions.pauses) = (notices, pauses);
    }

    /// Returns `true` if an agent has requested actions that have not been carried out.
    #[inline]
    pub(crate) fn ask_for_something(&self) -> bool {
        !self.actions.notices.is_empty() || !self.actions.pauses.is_empty()
    }
}

/// A method of agents that a packet is shown to.
trait Tell: Fn(&mut PortAlgorithm, &PortView, &mut PortPacket<'_>, &mut Actions) {}
impl<F: Fn(&mut PortAlgorithm, &PortView, &mut PortPacket<'_>, &mut Actions)> Tell for F {}

impl World {
    /// Shows `packet` to the port's agent, if it watches such packets at `step`; returns `true` if the agent requested
    /// actions or another timer, which the caller must then carry out.
    #[inline]
    pub(crate) fn agent_sees(&mut self, port: PortIdx, packet: PacketIdx, step: Step) -> bool {
        self.agents.watched != 0
            && self.agents.watch_at(self.net.pool.get(packet).kind, step)
            && self.tell_agent(port, packet, step)
    }

    /// Shows `packet` to the port's agent, if it has one, as [`World::agent_sees`] does for packets that are watched.
    #[inline(never)]
    pub(crate) fn tell_agent(&mut self, port: PortIdx, packet: PacketIdx, step: Step) -> bool {
        match step {
            Step::Enqueue => self.tell_of_newcomer(port, packet),
            Step::Dequeue => self.tell(port, packet, PortAgent::on_dequeue),
        }
    }

    /// Shows `packet`, which joins a queue, to the port's agent, as [`World::tell_agent`] does.
    #[inline(always)] // For a caller that is a call itself.
    pub(crate) fn tell_of_newcomer(&mut self, port: PortIdx, packet: PacketIdx) -> bool {
        self.tell(port, packet, PortAgent::on_enqueue)
    }

    /// Shows `packet` to the port's agent by `tell`, the agent's method for the step.
    #[inline(always)] // With a copy for each step none has to look which it is.
    fn tell(&mut self, port: PortIdx, packet: PacketIdx, tell: impl Tell) -> bool {
        if self.agents.are_alone {
            self.tell_one_of::<false>(port, packet, tell)
        } else {
            self.choose(port, packet, tell)
        }
    }

    /// Does the same where agents do not see the packets of all flows, or classes have agents of their own.
    #[inline(never)]
    fn choose(&mut self, port: PortIdx, packet: PacketIdx, tell: impl Tell) -> bool {
        let flow = self.net.pool.get(packet).flow;
        self.agents.see(&self.run, flow) && self.tell_one_of::<true>(port, packet, tell)
    }

    /// Does the same for a packet that agents see; `OWN` is `false` if no class has agents of its own.
    #[inline(always)] // It is the body of both.
    fn tell_one_of<const OWN: bool>(&mut self, port: PortIdx, packet: PacketIdx, tell: impl Tell) -> bool {
        let p = self.net.pool.get(packet);
        let at = &self.net.ports[port];
        let own = if OWN { self.agents.own_of(p.class) } else { None };
        let (agent, queue_bytes) = match own {
            None => (self.agents.of_port[port].as_mut(), at.queued_bytes),
            Some(own) => (self.agents.of_class[port].get_mut(own), at.class_bytes(p.class).into()),
        };
        let Some(agent) = agent else { return false };
        let (flow, class, wire) = (p.flow.0, p.class, u32::from(p.wire));
        let kind = match p.kind {
            PacketKind::Data => PortPacketKind::Data,
            PacketKind::Control if !p.is_handshake() => PortPacketKind::Control,
            _ => PortPacketKind::Other,
        };
        let header: &mut [f64] = if kind == PortPacketKind::Other || self.agents.header_words == 0 {
            &mut []
        } else {
            &mut self.net.pool.header_mut(packet)[..self.agents.header_words]
        };
        let view = PortView { now: self.clock.now(), queue_bytes };
        let mut seen = PortPacket { flow, class, kind, wire, header, mark: false };
        tell(agent, &view, &mut seen, &mut self.agents.actions);
        let planned = self.agents.timers[port];
        let is_timed = agent.timer().as_ps() != planned && (!OWN || self.agents.due_ps(port) != planned);
        if seen.mark && kind == PortPacketKind::Data {
            self.net.pool.get_mut(packet).set_marked(true);
            self.net.ports[port].ecn_marks += 1;
            self.observed.totals.counts.ecn_marks += 1;
        }
        is_timed || self.agents.ask_for_something()
    }
}
