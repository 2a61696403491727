//! θ-PowerTCP and PowerTCP.

use fairrate_control::powertcp::PowerTcpConfig;
use fairrate_control::theta_powertcp::{BaseRtt, InitialPower, ThetaPowerTcpConfig, UpdateInterval};
use fairrate_control::{Ack, AlgorithmSpec, Controller, FlowContext, IntHop, PortRate};
use fairrate_kernel::laws::{Hop, PowerTcp, Theta};
use fairrate_kernel::params::{self, Path};
use fairrate_units::{Rate, Time};

use crate::stream::{Draws, Stream, as_ack};
use crate::{Errors, STEPS};

/// Paths of flows in the lab, in a datacenter and on a testbed.
const PATHS: [(u64, u64); 3] = [(100_000, 10_000), (25_000, 28_000), (200, 500_000)];

fn theta(config: &ThetaPowerTcpConfig, line_mbps: u64, base_rtt_ns: u64, seed: u64, steps: u64) -> f64 {
    let flow = FlowContext::on(Rate::from_mbps(line_mbps), Time::from_ns(base_rtt_ns));
    let path = Path { line_rate: flow.line_rate, tau: Some(flow.base_rtt) };
    let mut rust = config.build(&flow);
    let mut c = Theta::new(params::theta(config, &path).expect("the kernel has it"), 1_000, base_rtt_ns);
    let mut cwnd = rust.on_start(Time::ZERO).cwnd.as_u64();
    let (mut stream, mut errors) = (Stream::new(seed, base_rtt_ns), Errors::default());
    for step in 0..steps {
        let ack = stream.next(cwnd);
        cwnd = rust.on_ack(&as_ack(&ack)).cwnd.as_u64();
        errors.hold(step, c.on_ack(&ack).floor(), cwnd as f64);
    }
    errors.largest
}

#[test]
fn theta_powertcp_is_the_rust_controller() {
    let paper = ThetaPowerTcpConfig::default();
    let other = ThetaPowerTcpConfig {
        gamma: 0.7,
        base_rtt: BaseRtt::MinSeen,
        base_rtt_slack: 1.05,
        update: UpdateInterval::PerAck,
        initial_power: InitialPower::One,
        idle_restart: false,
        ..paper.clone()
    };
    let mut largest: f64 = 0.0;
    for (seed, (line, rtt)) in (1..).zip(PATHS) {
        largest = largest.max(theta(&paper, line, rtt, seed, STEPS / 6));
        largest = largest.max(theta(&other, line, rtt, seed, STEPS / 6));
    }
    println!("theta-powertcp: largest error {largest:e}");
}

/// A port whose queue grows and shrinks.
struct Port {
    rate: Rate,
    ts_ns: u64,
    tx_bytes: u64,
    qlen: u64,
}

impl Port {
    fn stamp(&mut self, draws: &mut Draws, now_ns: u64) -> Hop {
        let since = now_ns - self.ts_ns;
        let line = self.rate.as_bps() / 8 * since / 1_000_000_000;
        let arrived = line * draws.between(0, 220) / 100;
        let sent = (self.qlen + arrived).min(line);
        self.qlen = (self.qlen + arrived - sent).min(2_000_000);
        self.tx_bytes += sent;
        self.ts_ns = now_ns;
        let rate_kbps = (self.rate.as_bps() / 1_000) as u32;
        Hop { ts_ns: self.ts_ns, tx_bytes: self.tx_bytes, qlen: self.qlen as u32, rate_kbps }
    }
}

fn as_int(hop: &Hop) -> IntHop {
    let rate = PortRate::new(Rate::from_bps(u64::from(hop.rate_kbps) * 1_000));
    IntHop { ts: Time::from_ns(hop.ts_ns), tx_bytes: hop.tx_bytes, qlen: hop.qlen, rate }
}

fn powertcp(config: &PowerTcpConfig, line_mbps: u64, base_rtt_ns: u64, seed: u64, steps: u64) -> f64 {
    let flow = FlowContext::on(Rate::from_mbps(line_mbps), Time::from_ns(base_rtt_ns));
    let path = Path { line_rate: flow.line_rate, tau: Some(flow.base_rtt) };
    let mut rust = config.build(&flow);
    let mut c = PowerTcp::new(params::powertcp(config, &path).expect("the kernel has it"), 1_000, base_rtt_ns, 0);
    let mut cwnd = rust.on_start(Time::ZERO).cwnd.as_u64();
    let (mut stream, mut errors) = (Stream::new(seed, base_rtt_ns), Errors::default());
    let rates = [flow.line_rate, Rate::from_mbps(4 * line_mbps), flow.line_rate];
    let mut ports = rates.map(|rate| Port { rate, ts_ns: 0, tx_bytes: 0, qlen: 0 });
    for step in 0..steps {
        let ack = stream.next(cwnd);
        // Now and then a packet takes another path.
        let n = if stream.draws.once_in(1_000) { 2 } else { 3 };
        let hops: Vec<Hop> = ports[..n].iter_mut().map(|p| p.stamp(&mut stream.draws, ack.now_ns)).collect();
        let int: Vec<IntHop> = hops.iter().map(as_int).collect();
        cwnd = rust.on_ack(&Ack { int: &int, ..as_ack(&ack) }).cwnd.as_u64();
        errors.hold(step, c.on_ack(&ack, &hops).floor(), cwnd as f64);
    }
    errors.largest
}

#[test]
fn powertcp_is_the_rust_controller() {
    let paper = PowerTcpConfig::default();
    let other = PowerTcpConfig {
        gamma: 0.6,
        lambda_floor: 0.1,
        target_utilization: 0.95,
        update: UpdateInterval::PerRtt,
        initial_power: InitialPower::One,
        idle_restart: false,
        ..paper.clone()
    };
    let mut largest: f64 = 0.0;
    for (seed, (line, rtt)) in (1..).zip(PATHS) {
        largest = largest.max(powertcp(&paper, line, rtt, seed, STEPS / 6));
        largest = largest.max(powertcp(&other, line, rtt, seed, STEPS / 6));
    }
    println!("powertcp: largest error {largest:e}");
}
