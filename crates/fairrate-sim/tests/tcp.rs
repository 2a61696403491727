//! TCP over lossy fabrics: everything arrives, whatever is lost, and windows do what their equations say.

mod common;

use common::{algorithm, algorithm_with, config, flow, probe, run};
use fairrate_control::{ALGORITHMS, RawValue};
use fairrate_sim::topology::{Dumbbell, Star};
use fairrate_sim::{DelayedAck, EcnEcho, FlowSpec, MptcpConfig, SimConfig, TcpConfig, Transport};
use fairrate_units::{Bytes, Rate, Time};

const TCP: TcpConfig = TcpConfig {
    rto_min: Time::from_us(200),
    rto_max: Time::from_ms(10),
    tail_loss_probe: true,
    delayed_ack: None,
    handshake: false,
    receive_window: u64::MAX,
    ecn_echo: EcnEcho::Accurate,
    multipath: MptcpConfig::SINGLE,
};

fn star(hosts: u32) -> fairrate_sim::topology::Topology {
    Star { hosts, rate: Rate::from_gbps(10), delay: Time::from_us(2) }.build()
}

/// A fabric that drops what does not fit.
fn lossy(hosts: u32, cc: &str, buffer: u64, tcp: TcpConfig, flows: Vec<FlowSpec>) -> SimConfig {
    let mut c = config(star(hosts), algorithm(cc), flows);
    c.transport.kind = Transport::Tcp(tcp);
    c.fabric.pfc = false;
    c.fabric.buffer = Bytes::new(buffer);
    c.fabric.ingress_alpha = None;
    c.fabric.egress_alpha = Some(1.0);
    c
}

#[test]
fn a_flow_alone_on_tcp_takes_as_long_as_on_rdma() {
    for handshake in [false, true] {
        let tcp = TcpConfig { handshake, ..TCP };
        let c = lossy(2, "line-rate", 1 << 20, tcp, vec![flow(0, 1, 100_000, Time::ZERO)]);
        let (recorder, totals) = run(c);
        let outcome = &recorder.flows[0];
        let extra = outcome.fct.expect("it finishes") - outcome.ideal_fct;
        // The first packet of the handshake and its answer are acknowledgments of 60 bytes over two links of 10 Gb/s and 2 us.
        let round_trip = Time::from_ns(4 * 2_000 + 4 * 48);
        assert_eq!(extra, if handshake { round_trip } else { Time::ZERO });
        assert_eq!((totals.drops.total(), outcome.retransmitted_bytes), (0, 0));
    }
}

#[test]
fn everything_arrives_through_a_buffer_that_is_far_too_small() {
    for info in ALGORITHMS.iter().filter(|a| !matches!(a.name, "ideal" | "bfc")) {
        for (delayed_ack, ecn_echo) in
            [(None, EcnEcho::Accurate), (Some(DelayedAck { every: 2, timeout: Time::from_us(20) }), EcnEcho::Classic)]
        {
            let tcp = TcpConfig { delayed_ack, ecn_echo, handshake: true, ..TCP };
            let flows = (1..9).map(|i| flow(i, 0, 150_000 + u64::from(i), Time::ZERO)).collect();
            let mut c = lossy(9, info.name, 30_000, tcp, flows);
            c.stop.at = Some(Time::from_ms(4_000));
            let (recorder, totals) = run(c);
            assert_eq!(totals.flows_unfinished, 0, "{}", info.name);
            for (outcome, i) in recorder.flows.iter().zip(1..) {
                assert_eq!(outcome.delivered_bytes, 150_000 + i, "{}", info.name);
            }
        }
    }
}

#[test]
fn newreno_keeps_a_bottleneck_busy_and_shares_it() {
    let topology = Dumbbell {
        left: 4,
        right: 4,
        host_rate: Rate::from_gbps(10),
        host_delay: Time::from_us(5),
        bottleneck_rate: Rate::from_gbps(1),
        bottleneck_delay: Time::from_us(10),
    }
    .build();
    let flows = (0..4).map(|i| FlowSpec { stop: Time::from_ms(400), ..flow(i, 4 + i, u64::MAX, Time::ZERO) }).collect();
    let mut c = config(topology, algorithm("newreno"), flows);
    c.transport.kind = Transport::Tcp(TCP);
    c.fabric.pfc = false;
    c.fabric.buffer = Bytes::new(100_000);
    c.fabric.ingress_alpha = None;
    c.stop.at = Some(Time::from_ms(400));
    c.stop.when_flows_done = false;
    probe(&mut c, 8, 9, Time::from_us(100));
    let (recorder, totals) = run(c);
    let sent = recorder.ports.last().expect("samples").tx_bytes as f64;
    // The whole run, slow start included: at most 1 % is lost to it.
    assert!(0.99 * 0.4e9 / 8.0 < sent, "{sent}");
    assert!(0 < totals.drops.total());
    let delivered: Vec<f64> = recorder.flows.iter().map(|f| f.delivered_bytes as f64).collect();
    let jain = delivered.iter().sum::<f64>().powi(2) / (4.0 * delivered.iter().map(|d| d * d).sum::<f64>());
    assert!(0.95 < jain, "{delivered:?}");
}

#[test]
fn dctcp_over_tcp_holds_its_queue_at_the_threshold() {
    let flows = (1..3).map(|i| FlowSpec { stop: Time::from_ms(40), ..flow(i, 0, u64::MAX, Time::ZERO) }).collect();
    let cc =
        algorithm_with("dctcp", &[("initial_window", RawValue::Text("10mtu")), ("slow_start", RawValue::Bool(true))]);
    let mut c = config(star(3), cc, flows);
    c.transport.kind = Transport::Tcp(TCP);
    let ecn = c.fabric.ecn.as_mut().expect("DCTCP needs ECN");
    (ecn.kmin, ecn.kmax, ecn.per_rate) = (Bytes::new(65_000), Bytes::new(65_000), None);
    c.stop.at = Some(Time::from_ms(40));
    c.stop.when_flows_done = false;
    let switch = 3;
    probe(&mut c, switch, 0, Time::from_us(5));
    let (recorder, totals) = run(c);
    let late: Vec<f64> =
        recorder.ports.iter().filter(|s| Time::from_ms(10) < s.t).map(|s| s.qlen_bytes as f64).collect();
    let mean = late.iter().sum::<f64>() / late.len() as f64;
    assert!((0.6 * 65_000.0..1.1 * 65_000.0).contains(&mean), "{mean}");
    assert_eq!(totals.drops.total(), 0);
}
