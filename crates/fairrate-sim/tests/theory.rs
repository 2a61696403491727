//! PowerTCP's theorems and DCTCP's threshold, measured on packets.

use crate::common::{Recorder, algorithm, algorithm_with, config, flow, plug_in, probe, run};
use fairrate_control::powertcp::PowerTcpConfig;
use fairrate_control::{AlgorithmConfig, AlgorithmSpec, Profile, RawValue};
use fairrate_sim::topology::Star;
use fairrate_sim::{EcnConfig, FlowId, FlowSpec, MarkAt, MarkBy, MarkDraws, NonEct, ProbeSpec, SimConfig, StopRule};
use fairrate_units::{Bytes, Rate, Time};

const LINE: Rate = Rate::from_gbps(25);
/// The receiver, and the switch it is attached to.
const RECEIVER: u32 = 0;
const SWITCH: u32 = 11;

/// Returns a run of `flows` from hosts 1.. to host 0 of an 11-host star until `end`, with the receiver's port sampled
/// every microsecond.
fn star(cc: AlgorithmConfig, flows: Vec<FlowSpec>, end: Time) -> SimConfig {
    star_of(Time::from_us(2), cc, flows, end)
}

/// Returns the same run with links of this delay: long links make windows of many packets, whose rounding matters less.
fn star_of(delay: Time, cc: AlgorithmConfig, flows: Vec<FlowSpec>, end: Time) -> SimConfig {
    let topology = Star { hosts: 11, rate: LINE, delay }.build();
    let mut c = config(topology, cc, flows);
    c.stop = StopRule { at: Some(end), when_flows_done: false };
    probe(&mut c, SWITCH, RECEIVER, Time::from_us(1));
    c.probes.push(ProbeSpec::Flows { flows: None, every: Time::from_us(100) });
    c
}

fn long_flows(n: u32) -> Vec<FlowSpec> {
    (1..=n).map(|src| flow(src, RECEIVER, u64::MAX, Time::ZERO)).collect()
}

fn mean_queue(recorder: &Recorder, from: Time) -> f64 {
    let late: Vec<f64> = recorder.ports.iter().filter(|p| from <= p.t).map(|p| p.qlen_bytes as f64).collect();
    late.iter().sum::<f64>() / late.len() as f64
}

fn beta(gbps_text: &str) -> AlgorithmConfig {
    algorithm_with("powertcp", &[("beta", RawValue::Text(gbps_text))])
}

/// Theorem 1: in equilibrium the queue is the sum of the flows' β. β is counted in payload and the queue in bytes on
/// the wire, so the factor is 1,090/1,000. Packets are whole: a packet that does not fit into its window waits, so a
/// flow has up to a packet less in flight than its window.
#[test]
fn the_equilibrium_queue_of_powertcp_is_the_sum_of_beta() {
    for (text, gbps, n) in [("1Gbps", 1.0, 10), ("2Gbps", 2.0, 5), ("2Gbps", 2.0, 10), ("5Gbps", 5.0, 4)] {
        let c = star(beta(text), long_flows(n), Time::from_ms(8));
        // τ: four links of 2 us, and a full packet there and its acknowledgment back over two links each.
        let tau_s = 8e-6 + 2.0 * (1_090.0 + 88.0) * 8.0 / 25e9;
        let sum_of_beta = f64::from(n) * gbps * 1e9 / 8.0 * tau_s * 1.09;
        let queue = mean_queue(&run(c).0, Time::from_ms(4));
        let packets_off = (queue - sum_of_beta) / 1_090.0 / f64::from(n);
        assert!(packets_off.abs() < 0.5, "{n} x {text}: {queue} for {sum_of_beta}, {packets_off} packets a flow off");
    }
}

/// Theorem 2: a perturbation decays with time constant δt/γ, δt being the update interval. With one update a
/// round trip the excess over the equilibrium falls to 1/e in 1/γ updates (counted, so to within one).
#[test]
fn a_perturbation_of_powertcp_decays_with_time_constant_dt_over_gamma() {
    for gamma in [0.05, 0.1, 0.2] {
        let params = [
            ("gamma", RawValue::Float(gamma)),
            ("beta", RawValue::Text("1Gbps")),
            ("update", RawValue::Text("per-rtt")),
        ];
        // Two flows start at line rate: twice the pipe, so the queue starts at a pipe and decays to 2 β.
        let cc = algorithm_with("powertcp", &params);
        let mut c = star_of(Time::from_us(20), cc, long_flows(2), Time::from_ms(20));
        let port = c.topology.port(fairrate_sim::NodeId(SWITCH), fairrate_sim::NodeId(RECEIVER)).expect("neighbours");
        let every = Time::from_ns(500);
        c.probes = vec![
            ProbeSpec::Ports { ports: vec![port], every },
            ProbeSpec::Flows { flows: Some(vec![FlowId(0)]), every },
        ];
        let recorder = run(c).0;
        let rest = mean_queue(&recorder, Time::from_ms(15));
        let excess = |t_us: f64| {
            let window = recorder.ports.iter().filter(|p| (p.t.as_us_f64() - t_us).abs() < 20.0);
            let q: Vec<f64> = window.map(|p| p.qlen_bytes as f64 - rest).collect();
            q.iter().sum::<f64>() / q.len() as f64
        };
        let (from_us, start) = (400.0, excess(400.0));
        let mut to_us = from_us;
        while start / std::f64::consts::E < excess(to_us) {
            to_us += 1.0;
        }
        // Updates of the window in that time, counted.
        let decay = recorder.rates.iter().filter(|r| (from_us..to_us).contains(&r.t.as_us_f64()));
        let windows: Vec<u64> = decay.map(|r| r.cwnd_bytes).collect();
        let updates = windows.windows(2).filter(|w| w[0] != w[1]).count() as f64;
        assert!((updates - 1.0 / gamma).abs() <= 1.0, "gamma {gamma}: 1/e after {updates} updates");
    }
}

/// PowerTCP with β times the flow's weight, which the algorithm itself ignores.
fn weighted_beta(bps: u64) -> AlgorithmConfig {
    let weighted = move |weight: f64| {
        let beta = Rate::from_bps_f64(bps as f64 * weight);
        PowerTcpConfig { beta, ..PowerTcpConfig::new(Profile::Paper) }
    };
    plug_in(&weighted(1.0).needs(), move |flow| weighted(flow.weight).build(flow))
}

/// Theorem 3: rates are proportional to β, where it is many packets.
#[test]
fn weighted_beta_gives_weighted_shares() {
    let mut flows = long_flows(4);
    for (flow, weight) in flows.iter_mut().zip([1.0, 1.0, 2.0, 4.0]) {
        flow.weight = weight;
    }
    let recorder = run(star_of(Time::from_us(20), weighted_beta(2_000_000_000), flows, Time::from_ms(12))).0;
    let delivered = |flow: u32, t: Time| {
        let mine = recorder.rates.iter().find(|r| r.flow.0 == flow && r.t == t);
        mine.expect("sampled").delivered_bytes as f64
    };
    let shares: Vec<f64> = (0..4).map(|f| delivered(f, Time::from_ms(12)) - delivered(f, Time::from_ms(6))).collect();
    let total: f64 = shares.iter().sum();
    for (share, weight) in shares.iter().zip([1.0, 1.0, 2.0, 4.0]) {
        let fraction = share / total * 8.0;
        assert!((fraction / weight - 1.0).abs() < 0.05, "{fraction} of {weight}; {shares:?}");
    }
}

/// DCTCP holds its queue at the marking threshold K: below K + one packet a flow, and busy.
#[test]
fn dctcp_keeps_its_queue_near_k() {
    for (k, n) in [(60_000, 2), (100_000, 2), (100_000, 8)] {
        let mut c = star(algorithm("dctcp"), long_flows(n), Time::from_ms(20));
        let kmin = Bytes::new(k);
        c.fabric.ecn = Some(EcnConfig {
            phantom: None,
            kmin,
            kmax: kmin,
            pmax: 1.0,
            kmin_per: None,
            kmax_per: None,
            average: None,
            at: MarkAt::Enqueue,
            draws: MarkDraws::PerPort,
            to_hosts: true,
            non_ect: NonEct::Mark,
            by: MarkBy::Class,
        });
        let recorder = run(c).0;
        let queue = mean_queue(&recorder, Time::from_ms(10));
        let late = recorder.ports.iter().filter(|p| Time::from_ms(10) <= p.t).map(|p| p.qlen_bytes);
        assert!((0.6..1.05).contains(&(queue / k as f64)), "mean {queue} with K {k} and {n} flows");
        let most = late.max().expect("sampled");
        assert!(most < k + u64::from(n) * 3 * 1_048, "at most {most} with K {k} and {n} flows");
    }
}
