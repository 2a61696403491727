//! Applications that write bursts on a connection that stays open: all bursts arrive, under every algorithm and on both
//! transports, and each is written a pause after the one before has been sent.

use crate::common::{TCP, algorithm, config, flow, run};
use fairrate_control::ALGORITHMS;
use fairrate_sim::topology::{Star, Topology};
use fairrate_sim::{Burst, FlowId, FlowSpec, ProbeSpec, SimConfig, StopRule, TcpConfig, Transport};
use fairrate_units::{Bytes, Rate, Time};

const BURST: u64 = 20_000;

fn star() -> Topology {
    Star { hosts: 3, rate: Rate::from_gbps(10), delay: Time::from_us(2) }.build()
}

fn bursts(cc: &str, transport: Transport, pause: Time, flows: u32, end: Time) -> SimConfig {
    let burst = Some(Burst { bytes: Bytes::new(BURST), pause });
    let flow = |i| FlowSpec { burst, ..flow(i, 0, u64::MAX, Time::ZERO) };
    let mut c = config(star(), algorithm(cc), (1..=flows).map(flow).collect());
    c.transport.kind = transport;
    c.stop = StopRule { at: Some(end), when_flows_done: false };
    c
}

#[test]
fn a_burst_comes_a_pause_after_the_last_one_was_sent() {
    let pause = Time::from_us(100);
    let mut c = bursts("line-rate", Transport::Rdma, pause, 1, Time::from_ms(1));
    c.probes.push(ProbeSpec::Flows { flows: Some(vec![FlowId(0)]), every: Time::from_us(1) });
    let (recorder, _) = run(c);
    // 20 packets of 1,048 bytes take 838.4 ns each; the last one is handed to the wire one such time before its end.
    let period = Time::from_ps(19 * 838_400) + pause;
    for n in 0..8_u64 {
        let sent = Time::from_ps(n * period.as_ps() + 20 * 838_400);
        let at = |t: Time| recorder.rates.iter().find(|s| t <= s.t).expect("a sample").delivered_bytes;
        // From host to host it takes 4 us and a packet more.
        assert_eq!(at(sent + Time::from_us(6)), (n + 1) * BURST, "burst {n}");
        assert_eq!(at(sent + Time::from_us(80)), (n + 1) * BURST, "burst {n}: nothing comes in the pause");
    }
}

#[test]
fn all_bursts_arrive_whatever_the_algorithm() {
    for info in ALGORITHMS.iter().filter(|a| a.name != "ideal") {
        for transport in [Transport::Rdma, Transport::Tcp(TCP)] {
            // MPCC begins with 4 Mb/s and sends three.
            let c = bursts(info.name, transport, Time::from_us(300), 2, Time::from_ms(5));
            let (recorder, _) = run(c);
            for outcome in &recorder.flows {
                let n = outcome.delivered_bytes / BURST;
                assert!(3 <= n, "{} over {transport:?}: {outcome:?}", info.name);
            }
        }
    }
}

/// RFC 5681 section 4.1: after a pause longer than a timeout the window is small again.
#[test]
fn windows_restart_after_a_pause() {
    let smallest = |idle_restart| {
        let tcp = TcpConfig { idle_restart, ..TCP };
        let mut c = bursts("newreno", Transport::Tcp(tcp), Time::from_ms(2), 1, Time::from_ms(20));
        c.probes.push(ProbeSpec::Flows { flows: Some(vec![FlowId(0)]), every: Time::from_us(1) });
        c.flows[0].burst = Some(Burst { bytes: Bytes::new(200_000), pause: Time::from_ms(2) });
        let (recorder, _) = run(c);
        let late = recorder.rates.iter().filter(|s| Time::from_ms(10) < s.t);
        late.map(|s| s.cwnd_bytes).min().expect("samples")
    };
    // Growth to 21,000 bytes fills the path; ten segments are the first window.
    assert_eq!((smallest(true), smallest(false)), (10_000, 21_000));
}
