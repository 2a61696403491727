//! Backpressure Flow Control on packets.

mod common;

use common::{Recorder, algorithm, algorithm_with, config, flow, probe, run};
use fairrate_control::{AlgorithmConfig, RawValue};
use fairrate_sim::topology::{Dumbbell, LeafSpine, Star, Topology};
use fairrate_sim::*;
use fairrate_units::{Bytes, Rate, Time};

const US: Time = Time::from_us(1);

fn leaf_spine() -> Topology {
    LeafSpine {
        leaves: 5,
        spines: 2,
        hosts_per_leaf: 17,
        host_rate: Rate::from_gbps(25),
        host_delay: US,
        uplink_rate: Rate::from_gbps(100),
        uplink_delay: US,
    }
    .build()
}

fn incast(cc: AlgorithmConfig, per_leaf: u32, bytes: u64) -> SimConfig {
    let victim = flow(17 + 16, 16, 1_000_000, US);
    let senders = (1..5).flat_map(|leaf| (0..per_leaf).map(move |h| flow(leaf * 17 + h, 0, bytes, US)));
    let mut c = config(leaf_spine(), cc, std::iter::once(victim).chain(senders).collect());
    probe(&mut c, 85, 0, US);
    c
}

#[test]
fn explore_incast() {
    for per_leaf in [4, 16] {
        for (name, cc) in [
            ("line-rate", algorithm("line-rate")),
            ("bfc", algorithm("bfc")),
            ("bfc hop2", algorithm_with("bfc", &[("hop_packets", RawValue::Float(2.0))])),
            ("bfc hop4", algorithm_with("bfc", &[("hop_packets", RawValue::Float(4.0))])),
            ("bfc queue", algorithm_with("bfc", &[("occupancy", RawValue::Text("queue"))])),
            ("bfc 128", algorithm_with("bfc", &[("queues", RawValue::Integer(128))])),
            ("powertcp", algorithm("powertcp")),
        ] {
            let c = incast(cc, per_leaf, 200_000);
            let (r, t) = run(c);
            let v = r.flows[0];
            let slow = v.fct.unwrap().as_ps() as f64 / v.ideal_fct.as_ps() as f64;
            let last = r.flows.iter().skip(1).map(|f| f.fct.unwrap().as_ps()).max().unwrap();
            let first = r.flows.iter().skip(1).map(|f| f.fct.unwrap().as_ps()).min().unwrap();
            let n = u64::from(per_leaf) * 4;
            let ideal = (n * 200 * 1_048 * 320) as f64;
            let q = r.ports.iter().map(|p| p.qlen_bytes).max().unwrap();
            let mid: Vec<u64> = r.ports.iter().filter(|p| p.t > Time::from_us(100) && p.t.as_ps() < first).map(|p| p.qlen_bytes).collect();
            let mean = mid.iter().sum::<u64>() as f64 / mid.len().max(1) as f64;
            println!(
                "{n} {name}: victim {slow:.3}, incast last {:.3} first {:.3} of ideal, q max {q} mean {mean:.0}, peak buffer {}, drops {}, pfc {}, pauses {} {}, resent {}",
                last as f64 / ideal, first as f64/ideal, t.peak_buffer_bytes, t.drops.total(), t.pfc_pauses, t.flow_pauses, t.flow_resumes,
                r.flows.iter().map(|f| f.retransmitted_bytes).sum::<u64>()
            );
        }
    }
}

fn fig12a(cc: AlgorithmConfig, delay: Time) {
    let topology = Dumbbell { left: 5, right: 6, host_rate: Rate::from_gbps(10), host_delay: delay, bottleneck_rate: Rate::from_gbps(40), bottleneck_delay: delay }.build();
    let mut flows: Vec<_> = (0..5).map(|i| flow(i, 5 + i, u64::MAX, Time::ZERO)).collect();
    flows.push(flow(10, 5, u64::MAX, Time::ZERO));
    let mut c = config(topology, cc, flows);
    c.probes.push(ProbeSpec::Flows { flows: None, every: Time::from_ms(10) });
    c.stop = StopRule { at: Some(Time::from_us(20_001)), when_flows_done: false };
    let (r, t) = run(c);
    let at = |ms, f: u32| r.rates.iter().find(|s| s.t == Time::from_ms(ms) && s.flow == FlowId(f)).unwrap().delivered_bytes;
    let rates: Vec<f64> = (0..6).map(|f| (at(20, f) - at(10, f)) as f64 * 1.048 * 8.0 / 10e-3 / 1e9).collect();
    println!("{delay}: {rates:.2?} drops {} pfc {} pauses {}", t.drops.total(), t.pfc_pauses, t.flow_pauses);
}

#[test]
fn explore_fig12a() {
    for delay in [Time::from_ns(100), Time::from_us(1), Time::from_ns(1500), Time::from_us(5)] {
        for (name, cc) in [
            ("line-rate", algorithm("line-rate")),
            ("bfc", algorithm("bfc")),
            ("bfc hop2", algorithm_with("bfc", &[("hop_packets", RawValue::Float(2.0))])),
            ("bfc 1 queue", algorithm_with("bfc", &[("queues", RawValue::Integer(1))])),
            ("bfc 1 queue occ", algorithm_with("bfc", &[("queues", RawValue::Integer(1)), ("occupancy", RawValue::Text("queue"))])),
            ("bfc inflight 100", algorithm_with("bfc", &[("inflight", RawValue::Float(100.0))])),
        ] {
            print!("{name} ");
            fig12a(cc, delay);
        }
    }
}

#[test]
fn explore_star() {
    for n in [2u32, 4, 8, 16, 32, 40] {
        for hop in [0.0, 2.0, 4.0] {
        let topology = Star { hosts: n + 1, rate: Rate::from_gbps(25), delay: US }.build();
        let flows = (1..=n).map(|s| flow(s, 0, u64::MAX, US)).collect();
        let mut c = config(topology, algorithm_with("bfc", &[("hop_packets", RawValue::Float(hop))]), flows);
        probe(&mut c, n + 1, 0, Time::from_ns(500));
        c.stop = StopRule { at: Some(Time::from_ms(4)), when_flows_done: false };
        let (r, t) = run(c);
        let q: Vec<u64> = r.ports.iter().filter(|p| Time::from_ms(1) < p.t).map(|p| p.qlen_bytes).collect();
        let (a, b) = (r.ports.iter().find(|p| p.t == Time::from_ms(1)).unwrap().tx_bytes, r.ports.last().unwrap().tx_bytes);
        let d: Vec<u64> = r.flows.iter().map(|f| f.delivered_bytes).collect();
        println!("{n} hop {hop}: Th {} mean/flow {} max/flow {} min {} util {:.4} pauses {} ctl {:.4} delivered {}..{}", 9375 / n.min(32), q.iter().sum::<u64>() / q.len() as u64 / u64::from(n),
            q.iter().max().unwrap() / u64::from(n), q.iter().min().unwrap(), (b - a) as f64 / 9_375_000.0, t.flow_pauses,
            t.control_bytes as f64 / t.sent_bytes as f64, d.iter().min().unwrap(), d.iter().max().unwrap());
        }
    }
}
