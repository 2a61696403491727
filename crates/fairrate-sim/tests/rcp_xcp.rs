//! RCP and XCP on packets.

mod common;

use common::{Recorder, algorithm_with, config, flow, probe, run};
use fairrate_control::{AlgorithmConfig, RawValue};
use fairrate_sim::topology::{ParkingLot, Star, Topology};
use fairrate_sim::{BaseRttRule, FlowSpec, NodeId, ProbeSpec, SimConfig, StopRule};
use fairrate_units::{Bytes, Rate, Time};

const G100: Rate = Rate::from_gbps(100);
const RECEIVER: u32 = 0;
const SWITCH: u32 = 11;

fn star(cc: AlgorithmConfig, flows: Vec<FlowSpec>, end: Time, every: Time) -> SimConfig {
    let topology = Star { hosts: 11, rate: G100, delay: Time::from_ns(2_955) }.build();
    let mut c = config(topology, cc, flows);
    c.stop = StopRule { at: Some(end), when_flows_done: false };
    probe(&mut c, SWITCH, RECEIVER, every);
    c.probes.push(ProbeSpec::Flows { flows: None, every });
    c
}

fn long_flows(n: u32) -> Vec<FlowSpec> {
    (1..=n).map(|src| flow(src, RECEIVER, u64::MAX, Time::ZERO)).collect()
}


fn chain(end: Time, phase_seed: u64) -> SimConfig {
    let gbps = [60, 30, 10].map(Rate::from_gbps);
    let topology = ParkingLot {
        switches: 4,
        hosts_per_switch: 2,
        host_rate: G100,
        host_delay: Time::from_ns(5_300),
        link_rate: G100,
        link_rates: Some(gbps.to_vec()),
        link_delay: Time::from_ns(400),
    }
    .build();
    let ends = [(0, 2), (1, 4), (3, 6), (5, 7)];
    let flows = ends.map(|(src, dst)| flow(src, dst, u64::MAX, Time::ZERO)).to_vec();
    let mut c = config(topology, algorithm_with("rcp", &[]), flows);
    c.transport.base_rtt = BaseRttRule::Fixed(Time::from_us(24));
    c.stop = StopRule { at: Some(end), when_flows_done: false };
    c.seed = phase_seed;
    c.probes.push(ProbeSpec::Flows { flows: None, every: Time::from_us(12) });
    c
}

#[test]
fn explore_chain() {
    let ns2 = [("form", RawValue::Text("ns2"))];
    let ns2_44 = [("form", RawValue::Text("ns2")), ("alpha", RawValue::Float(0.4)), ("beta", RawValue::Float(0.4))];
    let half = [("alpha", RawValue::Float(0.25)), ("beta", RawValue::Float(0.25))];
    let a5b25 = [("alpha", RawValue::Float(0.5)), ("beta", RawValue::Float(0.25))];
    let a5b1 = [("alpha", RawValue::Float(0.4)), ("beta", RawValue::Float(1.0))];
    let a1b1 = [("alpha", RawValue::Float(0.1)), ("beta", RawValue::Float(1.0))];
    let mins = [("min_packets", RawValue::Float(1.0))];
    for (name, params) in [("paper", &[][..]), ("ns2", &ns2), ("ns2_.4", &ns2_44), ("half", &half), ("a.5 b.25", &a5b25), ("a.4b1", &a5b1), ("a.1b1", &a1b1), ("min1", &mins)] {
    for seed in 1..4 {
        let mut c = chain(Time::from_ms(6), seed);
        c.cc = algorithm_with("rcp", params);
        let (r, t) = run(c);
        let late = |f: u32, from: u64, to: u64| {
            let x: Vec<f64> = r.rates.iter().filter(|s| s.flow.0 == f && Time::from_us(from) <= s.t && s.t < Time::from_us(to)).map(|s| s.rate_bps as f64 / 1e9).collect();
            let (lo, hi) = x.iter().fold((f64::MAX, 0.0_f64), |(l, h), &v| (l.min(v), h.max(v)));
            (lo, hi, x.iter().sum::<f64>() / x.len() as f64)
        };
        println!("{name} {seed} pauses {} peak {}", t.pfc_pauses, t.peak_buffer_bytes);
        for f in 0..4 { println!("   {f} 0.6-1.2: {:.2?} 4-6: {:.2?}", late(f, 600, 1200), late(f, 4000, 6000)); }
    }
    }
}

#[test]
fn explore_fig2() {
    let mut c = star(algorithm_with("rcp", &[]), vec![], Time::from_ms(3), Time::from_us(12));
    c.flows = vec![flow(1, 0, 10_000_000, Time::ZERO), flow(2, 0, 1_000_000, Time::from_us(600))];
    let (r, t) = run(c);
    println!("fig2 {t:?} {:?}", r.flows);
    for p in &r.ports {
        let rates: Vec<(u32, f64)> = r.rates.iter().filter(|s| s.t == p.t).map(|s| (s.flow.0, s.rate_bps as f64 / 1e9)).collect();
        println!("{:8.1} q {:8} rates {:.2?}", p.t.as_us_f64(), p.qlen_bytes, rates);
    }
}
