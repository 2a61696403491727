//! RoCC's two halves, which are computed with integers in Rust too.

use fairrate_control::rocc::{LowQueueGain, RoccConfig, Thresholds};
use fairrate_control::{
    Actions, AlgorithmSpec, Controller, FlowContext, Notice, PortAgent, PortContext, PortPacketKind, PortView,
};
use fairrate_kernel::laws::{Rocc, RoccPort};
use fairrate_kernel::params::{self, Path};
use fairrate_units::{Bytes, Rate, Time};

use crate::STEPS;
use crate::stream::Draws;

fn port(rate: Rate) -> PortContext {
    let base_rtt = Time::from_us(20);
    PortContext {
        port: 3,
        rate,
        nic_rate: Rate::MAX,
        base_rtt,
        wire_mtu: 1_048,
        frame_overhead: 0,
        upstream_delay: Time::from_us(1),
        of_host: false,
        seed: 1,
    }
}

/// Adds a packet of flow 7 that stays in the queue, so that every period sends a notice with the rate.
fn join(agent: &mut impl PortAgent, queue_bytes: u64) {
    use fairrate_control::PortPacket;
    let kind = PortPacketKind::Data;
    let mut packet = PortPacket { flow: 7, class: 0, kind, wire: 1_048, header: &mut [], mark: false };
    agent.on_enqueue(&PortView { now: Time::ZERO, queue_bytes }, &mut packet, &mut Actions::default());
}

fn congestion_point(config: &RoccConfig, rate: Rate, most_queue: u64, seed: u64, steps: u64) {
    let mut rust = config.build_port(&port(rate)).expect("a switch has one");
    let mut c = RoccPort::new(params::rocc_port(config, rate).expect("the kernel has it"));
    let (mut draws, mut queue) = (Draws::new(seed), 0);
    join(&mut rust, 0);
    for step in 0..steps {
        let walk = draws.between(0, most_queue / 10);
        queue = if draws.once_in(2) { (queue + walk).min(most_queue) } else { queue.saturating_sub(walk) };
        let mut actions = Actions::default();
        let now = config.period * step;
        rust.on_timer(&PortView { now, queue_bytes: queue }, &mut actions);
        let Some(notice) = actions.notices.first() else {
            assert_eq!(step, 0, "a period without notice");
            continue;
        };
        assert_eq!(c.tick(queue) as f64, notice.values[0], "step {step}, queue {queue}");
    }
}

#[test]
fn the_congestion_point_is_the_rust_port_to_the_last_bit() {
    let lab = RoccConfig::default();
    let testbed = RoccConfig {
        rate_unit: Rate::from_bps(100_000),
        min_rate: Rate::from_mbps(1),
        thresholds: Thresholds::Given,
        q_ref: Bytes::new(50_000),
        q_mid: Bytes::new(100_000),
        q_max: Bytes::new(120_000),
        low_queue_gain: LowQueueGain::Full,
        ..lab.clone()
    };
    congestion_point(&lab, Rate::from_gbps(40), 600_000, 1, STEPS / 4);
    congestion_point(&lab, Rate::from_gbps(100), 1_000_000, 2, STEPS / 4);
    congestion_point(&RoccConfig { fraction_bits: 0, ..lab }, Rate::from_gbps(100), 1_000_000, 3, STEPS / 4);
    congestion_point(&testbed, Rate::from_mbps(200), 200_000, 4, STEPS / 4);
}

#[test]
fn the_reaction_point_is_the_rust_controller() {
    let config = RoccConfig::default();
    let flow = FlowContext::on(Rate::from_gbps(40), Time::from_us(20));
    let mut rust = config.build(&flow);
    let mut c = Rocc::new(params::rocc(&config, &Path { line_rate: flow.line_rate, tau: None }));
    let (mut draws, mut now_ns) = (Draws::new(1), 0);
    for step in 0..STEPS {
        let most = if draws.once_in(5) { 200_000 } else { 30_000 };
        now_ns += draws.between(1, most);
        let now = Time::from_ns(now_ns);
        let (told, port) = (draws.between(10, 4_000), draws.between(1, 4) as u32);
        let allowed = if draws.once_in(3) {
            rust.on_timer(now)
        } else {
            c.on_notice(now_ns, told, port);
            let notice = Notice { flow: 7, port, values: [told as f64, 0.0, 0.0, 0.0] };
            rust.on_notice(now, &notice).expect("a notice leads to a decision")
        };
        assert_eq!(c.rate(now_ns), allowed.rate.as_bps(), "step {step}");
    }
}
