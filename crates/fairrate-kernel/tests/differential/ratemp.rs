//! RateMP, alone and with three subflows.

use fairrate_control::ratemp::{RateMpBaseRtt, RateMpCapacity, RateMpConfig};
use fairrate_control::{CoupledController, CoupledSpec, FlowContext, Loss};
use fairrate_kernel::laws::RateMp;
use fairrate_kernel::params::{self, Path};
use fairrate_units::{Rate, Time};

use crate::stream::{Stream, as_ack};
use crate::{Errors, STEPS};

/// Number of acknowledgments of a connection. While a rate falls, the law enlarges a difference between two
/// computations, about eightfold in 250 to 350 acknowledgments, so that after thousands of them it is no longer that of
/// the arithmetic.
const FLOW_STEPS: u64 = 500;

/// Compares connections one after the other; returns the largest error.
fn all(config: &RateMpConfig, line: Rate, base_rtts_ns: &[u64], steps: u64) -> f64 {
    let errors = (0..steps / FLOW_STEPS).map(|seed| compare(config, line, base_rtts_ns, 10 * seed, FLOW_STEPS));
    errors.fold(0.0, f64::max)
}

fn compare(config: &RateMpConfig, line: Rate, base_rtts_ns: &[u64], seed: u64, steps: u64) -> f64 {
    let flows: Vec<FlowContext> = base_rtts_ns.iter().map(|&rtt| FlowContext::on(line, Time::from_ns(rtt))).collect();
    let mut rust = config.build_connection(&flows);
    let p = params::ratemp(config, &Path { line_rate: line, tau: None }).expect("the kernel has it");
    let mut c: Vec<RateMp> = base_rtts_ns.iter().map(|&rtt| RateMp::new(p, 1_000, 8 * 1_048, rtt, 0)).collect();
    let mut cwnds: Vec<u64> = (0..flows.len()).map(|i| rust.on_start(Time::ZERO, i).cwnd.as_u64()).collect();
    let mut streams: Vec<Stream> = (seed..).zip(base_rtts_ns).map(|(seed, &rtt)| Stream::new(seed, rtt)).collect();
    let mut errors = Errors::default();
    for step in 0..steps {
        let i = (step % flows.len() as u64) as usize;
        let total = c.iter().map(RateMp::rate_q32).sum();
        let ack = streams[i].next(cwnds[i]);
        let allowed = match streams[i].draws.between(0, 10_000) {
            0 => {
                c[i].on_timeout();
                rust.on_loss(i, Time::from_ns(ack.now_ns), Loss::Timeout)
            }
            1..10 => {
                c[i].on_gap();
                rust.on_loss(i, Time::from_ns(ack.now_ns), Loss::Gap)
            }
            _ => {
                c[i].on_ack(&ack, total);
                rust.on_ack(i, &as_ack(&ack))
            }
        };
        let ours = c[i].allowance();
        let pace = if ours.paced_bps == 0 { line.as_bps() } else { ours.paced_bps };
        cwnds[i] = allowed.cwnd.as_u64();
        if ours.cwnd * 1_000 != cwnds[i] {
            // Windows are cut to whole packets, and the bound is for the cut values.
            errors.hold(step, c[i].packets() * 1_000.0, (ours.cwnd * 1_000).max(cwnds[i]) as f64);
        }
        errors.hold(step, pace as f64, allowed.rate.as_bps_f64());
    }
    errors.largest
}

#[test]
fn ratemp_is_the_rust_controller() {
    let paper = RateMpConfig::default();
    let fixed = RateMpConfig {
        capacity: RateMpCapacity::Rate(Rate::from_mbps(500)),
        base_rtt: RateMpBaseRtt::Data,
        base_rtt_window: Time::from_ms(5),
        ..paper.clone()
    };
    let alone = all(&paper, Rate::from_gbps(100), &[5_000], STEPS / 3);
    let three = all(&paper, Rate::from_gbps(10), &[20_000, 50_000, 100_000], STEPS / 3);
    let slow = all(&fixed, Rate::from_gbps(1), &[200_000, 300_000], STEPS / 3);
    println!("ratemp: largest error {:e}", alone.max(three).max(slow));
}
