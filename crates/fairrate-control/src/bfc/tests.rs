use super::*;
use crate::test_flow::{data_packet, flow_25g, port_40g};

/// The class of packets, unless a test gives another.
const CLASS: u8 = 3;

struct Port {
    agent: BfcPort,
    actions: Actions,
    now: Time,
}

impl Port {
    /// Returns a port of 40 Gb/s, one microsecond from the previous hop: HRTT = 2 us, τ = 1 us.
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

    /// Advances to the next decision; returns (flow, pause).
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
    assert_eq!([0, 1, 2].map(|flow| port.agent.assign(CLASS, flow)), [Some(0), Some(1), Some(2)]);
    port.join(3, 1);
    let shared = port.agent.virtual_id(3) % 3;
    assert_eq!(port.agent.assign(CLASS, 3), Some(shared as u16));
    // An empty queue is free again, and the flow that used it may get another.
    port.leave(1, 1);
    assert_eq!(port.agent.assign(CLASS, 1), None);
    port.join(4, 1);
    assert_eq!(port.agent.assign(CLASS, 4), Some(1));
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
    // One packet is left: 1,000 bytes are more than 15,000/32, so there is another tick; the port sleeps when the
    // packet leaves.
    port.leave(5, 7);
    port.leave(6, 7);
    assert_eq!(port.tick(), []);
    assert_eq!(port.agent.timer(), Time::MAX);
    assert_eq!(port.agent.flows.len(), 0);
}

/// Three queues with 6,000 bytes each are over 15,000/3; but if the next hop holds one of them, they are below
/// 15,000/2.
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

/// One queue for all: three flows of 16,000 bytes are paused at once, and resumed one per period, in order.
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
    assert_eq!(port.agent.assign(CLASS, 1), port.agent.assign(CLASS, 2));
    assert_eq!(port.tick(), [(1, true), (2, true)]);
    port.leave(1, 8);
    assert_eq!(port.tick(), [(1, false), (2, false)]);
}

/// One virtual id and one queue for each class. Class 2 goes first: its packets leave while those of class 3 wait,
/// though they joined later.
#[test]
fn classes_have_queues_of_their_own() {
    let config = BfcConfig { virtual_ids: 1, queues: 1, ..BfcConfig::default() };
    let mut port = Port::new(&config);
    let view = port.view();
    let packet = |flow, class| PortPacket { class, ..data_packet(flow, 1_000) };
    port.join(1, 10);
    for _ in 0..8 {
        port.agent.on_enqueue(&view, &mut packet(2, 2), &mut port.actions);
    }
    // Two active queues: Th = 7,500 bytes, which both flows are over.
    assert_eq!(port.tick(), [(2, true), (1, true)]);
    for _ in 0..8 {
        port.agent.on_dequeue(&view, &mut packet(2, 2), &mut port.actions);
    }
    assert_eq!(port.tick(), [(2, false), (1, false)], "15,000 bytes for the only active queue");
    port.leave(1, 10);
    assert_eq!((port.agent.flows.len(), port.agent.waiting), (0, 0));
}

#[test]
#[should_panic(expected = "first in, first out")]
fn a_packet_that_leaves_out_of_order_is_an_error() {
    let mut port = Port::new(&BfcConfig { virtual_ids: 1, ..BfcConfig::default() });
    port.join(1, 1);
    port.join(2, 1);
    port.leave(2, 1);
}
