//! `bfc`: Backpressure Flow Control. P. Goyal, P. Shah, K. Zhao, G. Nikolaidis, M. Alizadeh, T. Anderson, "Backpressure
//! Flow Control", NSDI 2022.
//!
//! Hosts only send at line rate. Each switch port distributes the flows that have packets there over physical
//! queues, and asks the previous hop to pause a flow while too many of its bytes wait.
//!
//! | paper    | here                   | unit  |
//! |----------|------------------------|-------|
//! | VFID     | `BfcPort::virtual_id`  | 1     |
//! | HRTT     | `BfcPort::hop_rtt`     | ps    |
//! | τ        | `BfcPort::period`      | ps    |
//! | μ        | `PortContext::rate`    | bit/s |
//! | N_active | `BfcPort::n_active`    | 1     |
//! | Th       | `BfcPort::threshold`   | bytes |
//!
//! Readings:
//! - HRTT is the round trip over the longest link into the switch. The time of a packet in transmission at both ends
//!   can be counted too (`hop_packets`).
//! - Pauses and resumes are decided at multiples of τ, when the paper's switches send the frame with all paused flows.
//!   Here each decision is a message about one flow, by its own number, so that no flow is paused by a false positive.
//! - Flows with the same virtual id are one flow: one queue, one occupancy, paused and resumed together.
//! - N_active is at least one: if all queues are paused, the first to resume has the link for itself.
//! - The paper compares its threshold with "occupancy", which is read as that of the flow; `occupancy = "queue"` counts
//!   all bytes in the flow's physical queue.
//! - The paper picks a random queue if none is empty; here it is the virtual id modulo the number of queues.
//! - Each class has its own physical queues and virtual ids. N_active counts the queues of all classes, which share the
//!   link.

mod flows;

use fairrate_units::{Bytes, Rate, Time};

use self::flows::{PhysicalQueue, VirtualFlow, VirtualFlows};
use crate::config::{algorithm_config, choice};
use crate::controller::{Ack, AlgorithmSpec, Allowance, Controller, FlowContext, Loss};
use crate::limits::bdp;
use crate::needs::{Needs, NetworkNeeds, Queueing};
use crate::port::{
    Actions, FlowPause, PortAgent, PortContext, PortPacket, PortPacketKind, PortScope, PortStep, PortView,
};

choice! {
    /// The quantity that is compared with the threshold.
    pub enum Occupancy {
        /// The waiting bytes of the flow.
        Flow = "flow",
        /// The waiting bytes of its physical queue.
        Queue = "queue",
    }
}

algorithm_config! {
    /// Parameters of BFC.
    pub struct BfcConfig {
        /// Physical queues of a port and class (BFC: 32).
        queues: u32 = 32, in 1..=65_535;
        /// Virtual flow ids that flows are hashed into (BFC: 16 K).
        virtual_ids: u32 = 16_384, in 1..=1_000_000;
        /// From one decision about pauses to the next, τ, in round trips of a hop (BFC: 1/2).
        period: f64 = 0.5, in 0.01..=100.0;
        /// Full packets that the round trip of a hop counts beside propagation (BFC: none).
        hop_packets: f64 = 0.0, in 0.0..=100.0;
        /// Bytes that the threshold is compared with: those of the flow, or all in its queue (our choice).
        occupancy: Occupancy = Occupancy::Flow;
        /// Most bytes in flight of a flow, in bandwidth-delay products of the network and whole packets (BFC: 1).
        inflight: f64 = 1.0, in 0.01..=1000.0;
    }
}

impl AlgorithmSpec for BfcConfig {
    type Controller = Bfc;
    type Port = BfcPort;
    fn needs(&self) -> Needs {
        Needs {
            network: NetworkNeeds { ports: PortScope::Switches, queueing: Queueing::Own, ..NetworkNeeds::NOTHING },
            ..Needs::NOTHING
        }
    }
    fn build(&self, flow: &FlowContext) -> Bfc {
        // Whole packets, so that a partial packet does not hold back a flow at line rate.
        let packet = flow.mtu.as_f64().max(1.0);
        let cwnd = (self.inflight * bdp(flow.line_rate, flow.base_rtt) / packet).ceil().max(1.0) * packet;
        Bfc { allowance: Allowance { cwnd: Bytes::new(cwnd as u64), rate: flow.line_rate, timer: Time::MAX } }
    }
    fn build_port(&self, port: &PortContext) -> Option<BfcPort> {
        Some(BfcPort::new(self, port))
    }
}

/// A flow under BFC: it sends at line rate, with a bound on bytes in flight.
#[derive(Clone, Debug)]
pub struct Bfc {
    allowance: Allowance,
}

impl Controller for Bfc {
    fn on_start(&mut self, _: Time) -> Allowance {
        self.allowance
    }
    fn on_ack(&mut self, _: &Ack<'_>) -> Allowance {
        self.allowance
    }
    fn on_loss(&mut self, _: Time, _: Loss) -> Allowance {
        self.allowance
    }
    fn on_cnp(&mut self, _: Time) -> Allowance {
        self.allowance
    }
    fn on_timer(&mut self, _: Time) -> Allowance {
        self.allowance
    }
}

/// A switch port under BFC.
#[derive(Clone, Debug)]
pub struct BfcPort {
    config: BfcConfig,
    rate: Rate,
    hop_rtt: Time,
    period: Time,
    flows: VirtualFlows,
    /// The physical queues of each class, up to the last class that has had packets.
    classes: Vec<Vec<PhysicalQueue>>,
    /// Number of data bytes waiting.
    waiting: u64,
    /// Number of virtual flows that the previous hop holds back.
    n_held: u32,
    /// Flows that this port holds back for the next hop, in order.
    stopped: Vec<u32>,
    next_tick: Time,
}

impl BfcPort {
    fn new(config: &BfcConfig, port: &PortContext) -> Self {
        let packet = port.rate.tx_time(Bytes::new(u64::from(port.wire_mtu)));
        let hop_ps = 2.0 * port.upstream_delay.as_ps() as f64 + config.hop_packets * packet.as_ps() as f64;
        let hop_rtt = Time::from_ps(hop_ps as u64);
        // On links without delay: a decision per packet.
        let period = Time::from_ps((config.period * hop_ps) as u64).max(packet).max(Time::from_ps(1));
        Self {
            config: config.clone(),
            rate: port.rate,
            hop_rtt,
            period,
            flows: VirtualFlows::default(),
            classes: Vec::new(),
            waiting: 0,
            n_held: 0,
            stopped: Vec::new(),
            next_tick: Time::MAX,
        }
    }

    /// Returns the VFID: a hash of the flow's five-tuple, represented by its number.
    fn virtual_id(&self, flow: u32) -> u32 {
        let mut x = u64::from(flow).wrapping_add(0x9E37_79B9_7F4A_7C15);
        x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((x ^ (x >> 31)) % u64::from(self.config.virtual_ids)) as u32
    }

    /// Returns Th = (HRTT + τ)·μ / N_active, in bytes.
    fn threshold(&self, n_active: usize) -> u64 {
        self.rate.bytes_in(self.hop_rtt + self.period).as_u64() / n_active as u64
    }

    /// Returns N_active: the number of queues whose first packet is not held back, at least 1.
    fn n_active(&self) -> usize {
        let first = self.classes.iter().flatten().filter_map(|queue| queue.packets.front());
        first.filter(|flow| self.stopped.binary_search(flow).is_err()).count().max(1)
    }

    /// Returns the largest possible N_active.
    fn n_queues(&self) -> usize {
        self.classes.iter().map(Vec::len).sum::<usize>().max(1)
    }

    /// Returns the physical queues of `class`; they are created on its first packet.
    fn queues(&mut self, class: u8) -> &mut [PhysicalQueue] {
        let class = usize::from(class);
        if self.classes.len() <= class {
            self.classes.resize_with(class + 1, Vec::new);
        }
        let queues = &mut self.classes[class];
        if queues.is_empty() {
            queues.resize_with(self.config.queues as usize, PhysicalQueue::default);
        }
        queues
    }

    /// Returns the queue for a virtual flow without packets: an empty queue if there is any, otherwise one by its id.
    fn pick_queue(&mut self, class: u8, virtual_id: u32) -> u16 {
        let queues = self.queues(class);
        let empty = queues.iter().position(|queue| queue.packets.is_empty());
        empty.unwrap_or(virtual_id as usize % queues.len()) as u16
    }

    fn occupancy(&self, flow: &VirtualFlow, queue: u16) -> u64 {
        match self.config.occupancy {
            Occupancy::Flow => flow.bytes,
            Occupancy::Queue => self.classes[usize::from(flow.class)][usize::from(queue)].bytes,
        }
    }

    /// Pauses the flows over the threshold, in order of class and virtual id.
    fn pause(&mut self, threshold: u64, actions: &mut Actions) {
        for at in 0..self.flows.len() {
            let flow = self.flows.at(at);
            if flow.packets == 0 || self.occupancy(flow, flow.queue) <= threshold {
                continue;
            }
            let (key, flow) = self.flows.at_mut(at);
            for (member, held) in flow.members.iter_mut().filter(|(_, held)| !held) {
                actions.pauses.push(FlowPause { flow: *member, pause: true });
                *held = true;
            }
            if flow.held_in.is_none() {
                flow.held_in = Some(flow.queue);
                self.classes[usize::from(flow.class)][usize::from(flow.queue)].held.push_back(key);
                self.n_held += 1;
            }
        }
    }

    /// Resumes in each queue the earliest paused flow that is below the threshold.
    fn resume(&mut self, threshold: u64, actions: &mut Actions) {
        if self.n_held == 0 {
            return;
        }
        for class in 0..self.classes.len() {
            for queue in 0..self.classes[class].len() {
                self.resume_one(class, queue, threshold, actions);
            }
        }
    }

    fn resume_one(&mut self, class: usize, queue: usize, threshold: u64, actions: &mut Actions) {
        let below = |key: &u32| {
            let flow = self.flows.get(*key).expect("a flow that is held back is known");
            self.occupancy(flow, queue as u16) < threshold
        };
        let Some(position) = self.classes[class][queue].held.iter().position(below) else { return };
        let key = self.classes[class][queue].held.remove(position).expect("it was just found");
        let flow = self.flows.get_mut(key).expect("a flow that is held back is known");
        for (member, held) in flow.members.iter_mut().filter(|(_, held)| *held) {
            actions.pauses.push(FlowPause { flow: *member, pause: false });
            *held = false;
        }
        flow.held_in = None;
        self.n_held -= 1;
        if flow.packets == 0 {
            self.flows.remove(key);
        }
    }

    /// Schedules the next decision if it may be needed: a flow is held back, or more bytes wait than the smallest
    /// possible threshold. Otherwise no flow is over its threshold.
    fn plan(&mut self, now: Time) {
        if self.next_tick == Time::MAX && (0 < self.n_held || self.threshold(self.n_queues()) < self.waiting) {
            let period = self.period.as_ps();
            self.next_tick = Time::from_ps((now.as_ps() / period + 1) * period);
        }
    }
}

impl PortAgent for BfcPort {
    fn watches(&self, kind: PortPacketKind, _: PortStep) -> bool {
        kind == PortPacketKind::Data
    }

    fn on_enqueue(&mut self, view: &PortView, packet: &mut PortPacket<'_>, _: &mut Actions) {
        if packet.kind != PortPacketKind::Data {
            return;
        }
        let id = self.virtual_id(packet.flow);
        let key = VirtualFlows::key(packet.class, id);
        let is_new = self.flows.get(key).is_none_or(|flow| flow.packets == 0);
        let fresh = if is_new { self.pick_queue(packet.class, id) } else { 0 };
        let flow = self.flows.entry(key);
        if is_new {
            (flow.class, flow.queue) = (packet.class, fresh);
        }
        if flow.members.iter().all(|(member, _)| *member != packet.flow) {
            flow.members.push((packet.flow, false));
        }
        let queue = &mut self.classes[usize::from(packet.class)][usize::from(flow.queue)];
        queue.packets.push_back(packet.flow);
        flow.packets += 1;
        for bytes in [&mut flow.bytes, &mut queue.bytes, &mut self.waiting] {
            *bytes += u64::from(packet.wire);
        }
        self.plan(view.now);
    }

    fn on_dequeue(&mut self, _: &PortView, packet: &mut PortPacket<'_>, _: &mut Actions) {
        if packet.kind != PortPacketKind::Data {
            return;
        }
        let key = VirtualFlows::key(packet.class, self.virtual_id(packet.flow));
        let flow = self.flows.get_mut(key).expect("a flow with packets is known");
        let queue = &mut self.classes[usize::from(packet.class)][usize::from(flow.queue)];
        let first = queue.packets.pop_front();
        assert_eq!(first, Some(packet.flow), "queues are first in, first out");
        flow.packets -= 1;
        for bytes in [&mut flow.bytes, &mut queue.bytes, &mut self.waiting] {
            *bytes -= u64::from(packet.wire);
        }
        if flow.packets == 0 && flow.held_in.is_none() {
            self.flows.remove(key);
        }
    }

    fn assign(&self, class: u8, flow: u32) -> Option<u16> {
        self.flows.get(VirtualFlows::key(class, self.virtual_id(flow))).map(|flow| flow.queue)
    }

    fn on_flow_pause(&mut self, flow: u32, pause: bool) {
        match (self.stopped.binary_search(&flow), pause) {
            (Err(at), true) => self.stopped.insert(at, flow),
            (Ok(at), false) => {
                self.stopped.remove(at);
            }
            _ => {}
        }
    }

    fn on_timer(&mut self, view: &PortView, actions: &mut Actions) {
        self.next_tick = Time::MAX;
        let threshold = self.threshold(self.n_active());
        self.pause(threshold, actions);
        self.resume(threshold, actions);
        self.plan(view.now);
    }

    fn timer(&self) -> Time {
        self.next_tick
    }
}

#[cfg(test)]
mod tests;
