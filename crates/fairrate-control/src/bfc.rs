//! `bfc`: Backpressure Flow Control. P. Goyal, P. Shah, K. Zhao, G. Nikolaidis, M. Alizadeh, T. Anderson, "Backpressure Flow
//! Control", NSDI 2022.
//!
//! Hosts do nothing but send at line rate. Each switch port spreads the flows that have packets there over physical
//! queues, and tells the previous hop to hold a flow back while too much of it waits.
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
//! - HRTT is that of the longest link into the switch, there and back. What a packet in the way adds at both ends can be
//!   counted too (`hop_packets`).
//! - Pauses and resumes are decided at multiples of τ, when the paper's switches send the frame with all paused flows. Here
//!   each decision is a message about one flow, by its own number, so that nobody is paused by a false positive.
//! - Flows with the same virtual id are one flow: one queue, one occupancy, paused and resumed together.
//! - N_active is at least one: if all queues are paused, the first to resume has the link for itself.
//! - The paper compares its threshold with "occupancy", which is read as that of the flow; `occupancy = "queue"` counts
//!   all that waits in the flow's physical queue.
//! - The paper picks a random queue if none is empty; here it is the virtual id's remainder.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use fairrate_units::{Bytes, Rate, Time};

use crate::config::{algorithm_config, choice};
use crate::controller::{Ack, AlgorithmSpec, Allowance, Controller, FlowContext, Loss, Needs};
use crate::limits::bdp;
use crate::port::{
    Actions, FlowPause, PortAgent, PortContext, PortPacket, PortPacketKind, PortScope, PortStep, PortView,
};

choice! {
    /// What is compared with the threshold.
    pub enum Occupancy {
        /// What waits of the flow.
        Flow = "flow",
        /// What waits in its physical queue.
        Queue = "queue",
    }
}

algorithm_config! {
    /// Parameters of BFC.
    pub struct BfcConfig {
        /// Physical queues of a port and class (BFC: 32).
        queues: u32 = 32, ns3 = 32, in 1..=65_535;
        /// Virtual flow ids that flows are hashed into (BFC: 16 K).
        virtual_ids: u32 = 16_384, ns3 = 16_384, in 1..=1_000_000;
        /// From one decision about pauses to the next, τ, in round trips of a hop (BFC: 1/2).
        period: f64 = 0.5, ns3 = 0.5, in 0.01..=100.0;
        /// Full packets that the round trip of a hop counts beside propagation (BFC: none).
        hop_packets: f64 = 0.0, ns3 = 0.0, in 0.0..=100.0;
        /// What the threshold is compared with: what waits of the flow, or in its queue (our choice).
        occupancy: Occupancy = Occupancy::Flow, ns3 = Occupancy::Flow;
        /// Most bytes in flight of a flow, in bandwidth-delay products of the network (BFC: 1).
        inflight: f64 = 1.0, ns3 = 1.0, in 0.01..=1000.0;
    }
}

impl AlgorithmSpec for BfcConfig {
    type Controller = Bfc;
    type Port = BfcPort;
    fn needs(&self) -> Needs {
        Needs { ports: PortScope::Switches, ..Needs::NOTHING }
    }
    fn build(&self, flow: &FlowContext) -> Bfc {
        let cwnd = (self.inflight * bdp(flow.line_rate, flow.base_rtt)).max(flow.mtu.as_f64());
        Bfc { allowance: Allowance { cwnd: Bytes::new(cwnd as u64), rate: flow.line_rate, timer: Time::MAX } }
    }
    fn build_port(&self, port: &PortContext) -> Option<BfcPort> {
        Some(BfcPort::new(self, port))
    }
}

/// A flow under BFC: line rate, with a bound on what is in flight.
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

/// What a switch port knows of the flows of one virtual id.
#[derive(Clone, Debug, Default)]
struct VirtualFlow {
    /// Physical queue of its packets; of no meaning while it has none.
    queue: u16,
    packets: u32,
    bytes: u64,
    /// Where it waits to be resumed, if it is paused.
    held_in: Option<u16>,
    /// The flows behind the id, and whether their previous hop holds them back.
    members: Vec<(u32, bool)>,
}

#[derive(Clone, Debug, Default)]
struct PhysicalQueue {
    /// The flow of each packet, first to last.
    packets: VecDeque<u32>,
    bytes: u64,
    /// Virtual flows paused while they were in this queue, in order of the pause.
    held: VecDeque<u32>,
}

/// A switch port under BFC.
#[derive(Clone, Debug)]
pub struct BfcPort {
    config: BfcConfig,
    rate: Rate,
    hop_rtt: Time,
    period: Time,
    /// By virtual id: those with packets here, and those held back.
    flows: BTreeMap<u32, VirtualFlow>,
    queues: Vec<PhysicalQueue>,
    /// Data bytes waiting.
    waiting: u64,
    /// Virtual flows that the previous hop holds back.
    n_held: u32,
    /// Flows that this port holds back for the next hop.
    stopped: BTreeSet<u32>,
    next_tick: Time,
}

impl BfcPort {
    fn new(config: &BfcConfig, port: &PortContext) -> Self {
        let packet = port.rate.tx_time(Bytes::new(u64::from(port.wire_mtu)));
        let hop_ps = 2.0 * port.upstream_delay.as_ps() as f64 + config.hop_packets * packet.as_ps() as f64;
        let hop_rtt = Time::from_ps(hop_ps as u64);
        // Links without delay: a decision a packet.
        let period = Time::from_ps((config.period * hop_ps) as u64).max(packet).max(Time::from_ps(1));
        Self {
            config: config.clone(),
            rate: port.rate,
            hop_rtt,
            period,
            flows: BTreeMap::new(),
            queues: vec![PhysicalQueue::default(); config.queues as usize],
            waiting: 0,
            n_held: 0,
            stopped: BTreeSet::new(),
            next_tick: Time::MAX,
        }
    }

    /// VFID: a hash of the flow's five-tuple, for which its number stands.
    fn virtual_id(&self, flow: u32) -> u32 {
        let mut x = u64::from(flow).wrapping_add(0x9E37_79B9_7F4A_7C15);
        x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((x ^ (x >> 31)) % u64::from(self.config.virtual_ids)) as u32
    }

    /// Th = (HRTT + τ)·μ / N_active.
    fn threshold(&self, n_active: usize) -> u64 {
        self.rate.bytes_in(self.hop_rtt + self.period).as_u64() / n_active as u64
    }

    /// N_active: queues with packets whose first is not held back.
    fn n_active(&self) -> usize {
        let first = self.queues.iter().filter_map(|queue| queue.packets.front());
        first.filter(|flow| !self.stopped.contains(flow)).count().max(1)
    }

    /// The queue of a virtual flow that has no packets: an empty one if there is any.
    fn pick_queue(&self, virtual_id: u32) -> u16 {
        let empty = self.queues.iter().position(|queue| queue.packets.is_empty());
        empty.unwrap_or(virtual_id as usize % self.queues.len()) as u16
    }

    fn occupancy(&self, flow: &VirtualFlow, queue: u16) -> u64 {
        match self.config.occupancy {
            Occupancy::Flow => flow.bytes,
            Occupancy::Queue => self.queues[usize::from(queue)].bytes,
        }
    }

    /// Pauses the flows over the threshold, by virtual id.
    fn pause(&mut self, threshold: u64, actions: &mut Actions) {
        let over = |(_, f): &(&u32, &VirtualFlow)| f.packets > 0 && threshold < self.occupancy(f, f.queue);
        let over: Vec<u32> = self.flows.iter().filter(over).map(|(&id, _)| id).collect();
        for id in over {
            let flow = self.flows.get_mut(&id).expect("it was just found");
            for (member, held) in flow.members.iter_mut().filter(|(_, held)| !held) {
                actions.pauses.push(FlowPause { flow: *member, pause: true });
                *held = true;
            }
            if flow.held_in.is_none() {
                flow.held_in = Some(flow.queue);
                self.queues[usize::from(flow.queue)].held.push_back(id);
                self.n_held += 1;
            }
        }
    }

    /// Resumes in each queue the flow that was paused first of those below the threshold.
    fn resume(&mut self, threshold: u64, actions: &mut Actions) {
        if self.n_held == 0 {
            return;
        }
        for at in 0..self.queues.len() {
            let below = |id: &u32| self.occupancy(&self.flows[id], at as u16) < threshold;
            let Some(position) = self.queues[at].held.iter().position(below) else { continue };
            let id = self.queues[at].held.remove(position).expect("it was just found");
            let flow = self.flows.get_mut(&id).expect("a flow that is held back is known");
            for (member, held) in flow.members.iter_mut().filter(|(_, held)| *held) {
                actions.pauses.push(FlowPause { flow: *member, pause: false });
                *held = false;
            }
            flow.held_in = None;
            self.n_held -= 1;
            if flow.packets == 0 {
                self.flows.remove(&id);
            }
        }
    }

    /// Plans the next decision if there may be one to take: somebody is held back, or more waits than the least a
    /// threshold can be. Nobody is over his threshold otherwise.
    fn plan(&mut self, now: Time) {
        if self.next_tick == Time::MAX && (0 < self.n_held || self.threshold(self.queues.len()) < self.waiting) {
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
        let is_new = self.flows.get(&id).is_none_or(|flow| flow.packets == 0);
        let fresh = if is_new { self.pick_queue(id) } else { 0 };
        let flow = self.flows.entry(id).or_default();
        if is_new {
            flow.queue = fresh;
        }
        if flow.members.iter().all(|(member, _)| *member != packet.flow) {
            flow.members.push((packet.flow, false));
        }
        let queue = &mut self.queues[usize::from(flow.queue)];
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
        let id = self.virtual_id(packet.flow);
        let flow = self.flows.get_mut(&id).expect("a flow with packets is known");
        let queue = &mut self.queues[usize::from(flow.queue)];
        let first = queue.packets.pop_front();
        debug_assert_eq!(first, Some(packet.flow), "queues are first in, first out");
        flow.packets -= 1;
        for bytes in [&mut flow.bytes, &mut queue.bytes, &mut self.waiting] {
            *bytes -= u64::from(packet.wire);
        }
        if flow.packets == 0 && flow.held_in.is_none() {
            self.flows.remove(&id);
        }
    }

    fn assign(&self, flow: u32) -> Option<u16> {
        self.flows.get(&self.virtual_id(flow)).map(|flow| flow.queue)
    }

    fn on_flow_pause(&mut self, flow: u32, pause: bool) {
        if pause {
            self.stopped.insert(flow);
        } else {
            self.stopped.remove(&flow);
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
mod tests {
    use super::*;
    use crate::test_flow::{data_packet, flow_25g, port_40g};

    struct Port {
        agent: BfcPort,
        actions: Actions,
        now: Time,
    }

    impl Port {
        /// 40 Gb/s, one microsecond to the previous hop: HRTT = 2 us, τ = 1 us.
        fn new(config: &BfcConfig) -> Self {
            let agent = config.build_port(&port_40g()).expect("a port of a switch");
            Self { agent, actions: Actions::default(), now: Time::ZERO }
        }

        fn view(&self) -> PortView {
            PortView { now: self.now, queue_bytes: 0 }
        }

        fn join(&mut self, flow: u32, packets: u32) {
            for _ in 0..packets {
                let view = self.view();
                self.agent.on_enqueue(&view, &mut data_packet(flow, 1_000), &mut self.actions);
            }
        }

        fn leave(&mut self, flow: u32, packets: u32) {
            for _ in 0..packets {
                let view = self.view();
                self.agent.on_dequeue(&view, &mut data_packet(flow, 1_000), &mut self.actions);
            }
        }

        /// Comes to the next decision; returns (flow, pause).
        fn tick(&mut self) -> Vec<(u32, bool)> {
            self.now = self.agent.timer();
            assert!(self.now < Time::MAX, "the port sleeps");
            let view = self.view();
            self.agent.on_timer(&view, &mut self.actions);
            self.actions.pauses.drain(..).map(|p| (p.flow, p.pause)).collect()
        }
    }

    #[test]
    fn threshold() {
        let port = Port::new(&BfcConfig::default());
        assert_eq!((port.agent.hop_rtt, port.agent.period), (Time::from_us(2), Time::from_us(1)));
        // 3 us of 40 Gb/s: 15,000 bytes; a third of it; and a thirty-second.
        assert_eq!([1, 3, 32].map(|n| port.agent.threshold(n)), [15_000, 5_000, 468]);
        // Two packets of 1,048 bytes take 419.2 ns: HRTT = 2,419.2 ns, τ = 1,209.6 ns, together 18,144 bytes.
        let port = Port::new(&BfcConfig { hop_packets: 2.0, ..BfcConfig::default() });
        assert_eq!(port.agent.threshold(1), 18_144);
    }

    #[test]
    fn a_link_without_delay_has_a_period_all_the_same() {
        let context = PortContext { upstream_delay: Time::ZERO, ..port_40g() };
        let agent = BfcPort::new(&BfcConfig::default(), &context);
        // 1,048 bytes at 40 Gb/s.
        assert_eq!(agent.period, Time::from_ps(209_600));
        assert_eq!(agent.threshold(1), 1_048);
    }

    #[test]
    fn hosts_send_at_line_rate_with_a_bandwidth_delay_product_in_flight() {
        let mut flow = BfcConfig::default().build(&flow_25g());
        let a = flow.on_start(Time::ZERO);
        assert_eq!((a.cwnd, a.rate, a.timer), (Bytes::new(25_000), Rate::from_gbps(25), Time::MAX));
        assert_eq!(flow.on_loss(Time::ZERO, Loss::Gap), a);
    }

    #[test]
    fn flows_get_empty_queues_and_then_shared_ones() {
        let mut port = Port::new(&BfcConfig { queues: 3, ..BfcConfig::default() });
        for flow in 0..3 {
            port.join(flow, 1);
        }
        assert_eq!([0, 1, 2].map(|flow| port.agent.assign(flow)), [Some(0), Some(1), Some(2)]);
        port.join(3, 1);
        let shared = port.agent.virtual_id(3) % 3;
        assert_eq!(port.agent.assign(3), Some(shared as u16));
        // A queue that has run empty is free again, and the flow that had it may get another.
        port.leave(1, 1);
        assert_eq!(port.agent.assign(1), None);
        port.join(4, 1);
        assert_eq!(port.agent.assign(4), Some(1));
    }

    /// Two active queues: Th = 7,500 bytes. Eight packets are over it, seven are not; nothing happens before 1 us.
    #[test]
    fn a_flow_over_its_threshold_is_paused_until_it_is_below() {
        let mut port = Port::new(&BfcConfig::default());
        port.now = Time::from_ns(300);
        port.join(5, 8);
        port.join(6, 7);
        assert_eq!(port.agent.timer(), Time::from_us(1));
        assert_eq!(port.tick(), [(5, true)]);
        assert_eq!(port.tick(), [], "once");
        port.leave(5, 1);
        assert_eq!(port.agent.timer(), Time::from_us(3));
        assert_eq!(port.tick(), [(5, false)]);
        // All gone but one packet: 1,000 is more than 15,000/32, so another tick, and then sleep as the last one leaves.
        port.leave(5, 7);
        port.leave(6, 7);
        assert_eq!(port.tick(), []);
        assert_eq!(port.agent.timer(), Time::MAX);
        assert!(port.agent.flows.is_empty());
    }

    /// Three queues with 6,000 bytes each are over 15,000/3; but if the next hop holds one of them, 15,000/2 is enough.
    #[test]
    fn held_queues_are_not_active() {
        for (hold, pauses) in [(false, vec![(1, true), (2, true), (3, true)]), (true, vec![])] {
            let mut port = Port::new(&BfcConfig::default());
            for flow in 1..=3 {
                port.join(flow, 6);
            }
            port.agent.on_flow_pause(2, hold);
            let mut decided = port.tick();
            decided.sort_unstable();
            assert_eq!(decided, pauses);
        }
    }

    /// One queue for all: three flows of 16,000 bytes are paused at once, and resumed one a period, in order.
    #[test]
    fn a_queue_resumes_one_flow_a_period() {
        let mut port = Port::new(&BfcConfig { queues: 1, ..BfcConfig::default() });
        for flow in 1..=3 {
            port.join(flow, 16);
        }
        let paused: Vec<u32> = port.tick().iter().map(|&(flow, pause)| if pause { flow } else { 0 }).collect();
        assert_eq!(paused.len(), 3);
        for flow in 1..=3 {
            port.leave(flow, 16);
        }
        for flow in paused {
            assert_eq!(port.tick(), [(flow, false)]);
        }
        assert_eq!(port.agent.timer(), Time::MAX);
    }

    /// The same three flows at 6,000 bytes: none is over 15,000 bytes, but their queue is.
    #[test]
    fn the_queue_can_count_instead_of_the_flow() {
        for (occupancy, n_paused) in [(Occupancy::Flow, 0), (Occupancy::Queue, 3)] {
            let mut port = Port::new(&BfcConfig { queues: 1, occupancy, ..BfcConfig::default() });
            for flow in 1..=3 {
                port.join(flow, 6);
            }
            assert_eq!(port.tick().len(), n_paused);
        }
    }

    /// One virtual id: two flows are paused and resumed together.
    #[test]
    fn flows_with_the_same_virtual_id_are_one() {
        let mut port = Port::new(&BfcConfig { virtual_ids: 1, ..BfcConfig::default() });
        port.join(1, 8);
        port.join(2, 8);
        assert_eq!(port.agent.assign(1), port.agent.assign(2));
        assert_eq!(port.tick(), [(1, true), (2, true)]);
        port.leave(1, 8);
        assert_eq!(port.tick(), [(1, false), (2, false)]);
    }
}
