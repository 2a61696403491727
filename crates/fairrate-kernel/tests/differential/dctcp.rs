//! DCTCP.

use fairrate_control::dctcp::{DctcpConfig, DctcpInitialWindow};
use fairrate_control::{AlgorithmSpec, Controller, FlowContext, Loss};
use fairrate_kernel::laws::Dctcp;
use fairrate_kernel::params;
use fairrate_units::{Rate, Time};

use crate::stream::{Stream, as_ack};
use crate::{Errors, STEPS};

fn compare(config: &DctcpConfig, seed: u64, steps: u64) -> f64 {
    let flow = FlowContext::on(Rate::from_gbps(10), Time::from_us(40));
    let bdp = flow.line_rate.bytes_in(flow.base_rtt).as_u64();
    let mut rust = config.build(&flow);
    let mut c = Dctcp::new(params::dctcp(config).expect("the kernel has it"), 1_000, bdp);
    let mut cwnd = rust.on_start(Time::ZERO).cwnd.as_u64();
    let (mut stream, mut errors) = (Stream::new(seed, 40_000), Errors::default());
    for step in 0..steps {
        let ack = stream.next(cwnd);
        let (rust_now, ours) = match stream.draws.between(0, 10_000) {
            0 => (rust.on_loss(Time::from_ns(ack.now_ns), Loss::Timeout), c.on_timeout(ack.now_ns)),
            1..10 => (rust.on_loss(Time::from_ns(ack.now_ns), Loss::Gap), c.on_gap()),
            _ => (rust.on_ack(&as_ack(&ack)), c.on_ack(&ack)),
        };
        cwnd = rust_now.cwnd.as_u64();
        errors.hold(step, ours.floor(), cwnd as f64);
        // A slow start in which every window is full doubles for ever.
        if 10_000_000 < cwnd {
            rust.on_loss(Time::from_ns(ack.now_ns), Loss::Timeout);
            cwnd = 1_000;
            errors.hold(step, c.on_timeout(ack.now_ns).floor(), 1_000.0);
        }
    }
    errors.largest
}

#[test]
fn dctcp_is_the_rust_controller() {
    let lab = DctcpConfig::default();
    let over_tcp = DctcpConfig { ai_packets: 1.5, initial_alpha: 0.0, ..DctcpConfig::default().over_tcp() };
    let ns2 = DctcpConfig { initial_window: DctcpInitialWindow::TwoMtu, g: 0.01, ..over_tcp.clone() };
    let configs = [lab, over_tcp, ns2];
    let largest = configs.iter().zip(1..).map(|(config, seed)| compare(config, seed, STEPS / 3));
    println!("dctcp: largest error {:e}", largest.fold(0.0, f64::max));
}
