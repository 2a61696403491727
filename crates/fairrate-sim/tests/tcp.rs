//! TCP over lossy fabrics: all data arrives with any losses, and windows follow their equations.

use std::sync::{Arc, Mutex};

use crate::common::{TCP, algorithm, algorithm_with, config, flow, plug_in, probe, run};
use fairrate_control::{
    ALGORITHMS, Ack, AlgorithmConfig, Allowance, Controller, FeedbackNeeds, HeaderWords, Loss, Needs, NetworkNeeds,
    RawValue, WireNeeds,
};
use fairrate_sim::topology::{Dumbbell, Star};
use fairrate_sim::{
    DelayedAck, EcnEcho, FaultConfig, FlowSpec, MptcpConfig, NodeId, Pfc, PortSample, SimConfig, TcpConfig, Transport,
};
use fairrate_units::{Bytes, Rate, Time};

fn star(hosts: u32) -> fairrate_sim::topology::Topology {
    Star { hosts, rate: Rate::from_gbps(10), delay: Time::from_us(2) }.build()
}

/// Returns a fabric that drops packets that do not fit.
fn lossy(hosts: u32, cc: &str, buffer: u64, tcp: TcpConfig, flows: Vec<FlowSpec>) -> SimConfig {
    let mut c = config(star(hosts), algorithm(cc), flows);
    c.transport.kind = Transport::Tcp(tcp);
    c.fabric.pfc = Pfc::Off;
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
        // The first packet of the handshake and its answer are acknowledgments of 60 bytes over two links of 10 Gb/s
        // and 2 us.
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
    c.fabric.pfc = Pfc::Off;
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
    (ecn.kmin, ecn.kmax) = (Bytes::new(65_000), Bytes::new(65_000));
    (ecn.kmin_per, ecn.kmax_per) = (None, None);
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

/// The feedback that a listener has received.
#[derive(Default)]
struct Heard {
    /// Time of each call after an idle period, and the number of timeouts in that period.
    idle: Vec<(Time, u32)>,
    /// Bytes acknowledged with a mark (`marked`), and all (`acked`).
    marked: u64,
    acked: u64,
    /// Number of acknowledgments whose header is not that of a data packet.
    bare: u64,
}

/// A controller that sends at line rate, and records its feedback.
struct Listener {
    allowance: Allowance,
    heard: Arc<Mutex<Heard>>,
}

impl Controller for Listener {
    fn on_start(&mut self, _: Time) -> Allowance {
        self.allowance
    }
    fn on_ack(&mut self, ack: &Ack<'_>) -> Allowance {
        let mut heard = self.heard.lock().expect("nobody panics");
        heard.acked += ack.newly_acked;
        heard.marked += if ack.ecn_marked { ack.newly_acked } else { 0 };
        heard.bare += u64::from(ack.header.iter().any(|&word| word != 7.0));
        self.allowance
    }
    fn stamp(&mut self, _: Time, header: &mut [f64]) {
        header.fill(7.0);
    }
    fn on_loss(&mut self, _: Time, _: Loss) -> Allowance {
        self.allowance
    }
    fn on_cnp(&mut self, _: Time) -> Allowance {
        self.allowance
    }
    fn on_timer(&mut self, _: Time) -> Allowance {
        self.allowance
    }
    fn on_idle(&mut self, now: Time, timeouts: u32) -> Option<Allowance> {
        self.heard.lock().expect("nobody panics").idle.push((now, timeouts));
        Some(self.allowance)
    }
}

fn listener(needs: &Needs, heard: &Arc<Mutex<Heard>>) -> AlgorithmConfig {
    let heard = Arc::clone(heard);
    plug_in(needs, move |flow| {
        let allowance = Allowance { cwnd: Bytes::new(50_000), rate: flow.line_rate, timer: Time::MAX };
        Listener { allowance, heard: Arc::clone(&heard) }
    })
}

/// An application that offers a packet of 1,048 bytes every 524 us: after each, 2.6 timeouts of 200 us pass.
#[test]
fn controllers_are_told_of_idle_times() {
    for idle_restart in [true, false] {
        let heard = Arc::<Mutex<Heard>>::default();
        let slow = FlowSpec { demand: Rate::from_mbps(16), ..flow(0, 1, 4_000, Time::ZERO) };
        let mut c = lossy(2, "line-rate", 1 << 20, TcpConfig { idle_restart, ..TCP }, vec![slow]);
        c.cc = listener(&Needs::NOTHING, &heard);
        run(c);
        let told: Vec<_> = (1..4).map(|i| (Time::from_us(524 * i), 2)).collect();
        assert_eq!(heard.lock().expect("nobody panics").idle, if idle_restart { told } else { Vec::new() });
    }
}

/// The first packet is lost, before there is a round-trip time: the timeout is the algorithm's, also with several
/// subflows.
#[test]
fn algorithms_that_set_the_timeout_set_it_for_subflows_too() {
    let completion_with = |rto_rtts, subflows, tcp| {
        let multipath = MptcpConfig { subflows, ..MptcpConfig::SINGLE };
        let mut c = lossy(2, "line-rate", 1 << 20, TcpConfig { multipath, ..tcp }, vec![flow(0, 1, 1_000, Time::ZERO)]);
        c.cc = listener(
            &Needs { feedback: FeedbackNeeds { rto_rtts, ..FeedbackNeeds::NOTHING }, ..Needs::NOTHING },
            &Arc::default(),
        );
        let port = c.topology.port(NodeId(0), NodeId(2)).expect("the switch is the neighbour");
        c.faults = vec![FaultConfig { ports: vec![port], stop: Time::from_us(1), loss: 1.0, ..FaultConfig::NONE }];
        let outcome = run(c).0.flows[0];
        outcome.fct.expect("it finishes") - outcome.ideal_fct
    };
    let completion = |rto_rtts, subflows| completion_with(rto_rtts, subflows, TCP);
    // Four links of 2 us, and over two links each a packet of 1,048 bytes and an acknowledgment of 60.
    let base_rtt = 8_000_000 + 2 * (1_048 + 60) * 800;
    for subflows in [1, 2] {
        assert_eq!(completion(Some(5.0), subflows), Time::from_ps(5 * base_rtt));
        // Otherwise its least value, since the connection knows its path's round-trip time. The probe comes before it.
        assert_eq!(completion(None, subflows), Time::from_ps(2 * base_rtt));
        let no_probe = TcpConfig { tail_loss_probe: false, ..TCP };
        assert_eq!(completion_with(None, subflows, no_probe), TCP.rto_min);
    }
}

/// RFC 8257 section 3.2: for any number of segments per acknowledgment, the bytes it acknowledges were all marked or
/// all not.
#[test]
fn as_many_bytes_are_acknowledged_with_marks_as_were_marked() {
    for every in [1, 2, 3, 8] {
        let delayed_ack = (1 < every).then_some(DelayedAck { every, timeout: Time::from_us(20) });
        let flows = (1..4).map(|src| flow(src, 0, 2_000_000, Time::ZERO)).collect();
        let mut c = lossy(4, "dctcp", 4 << 20, TcpConfig { delayed_ack, ..TCP }, flows);
        let heard = Arc::<Mutex<Heard>>::default();
        let network = NetworkNeeds { ecn: true, ..NetworkNeeds::NOTHING };
        let wire = WireNeeds { header: HeaderWords { fixed: 1, per_hop: 0 }, ..WireNeeds::NOTHING };
        c.cc = listener(&Needs { network, wire, ..Needs::NOTHING }, &heard);
        let ecn = c.fabric.ecn.as_mut().expect("DCTCP needs ECN");
        (ecn.kmin, ecn.kmax, ecn.pmax) = (Bytes::ZERO, Bytes::new(200_000), 0.9);
        (ecn.kmin_per, ecn.kmax_per) = (None, None);
        let (_, totals) = run(c);
        let heard = heard.lock().expect("nobody panics");
        assert_eq!((heard.acked, heard.marked), (6_000_000, 1_000 * totals.counts.ecn_marks), "every {every}");
        assert!(500 < totals.counts.ecn_marks && totals.counts.ecn_marks < 5_500);
        assert_eq!(heard.bare, 0, "every {every}: each acknowledgment has the header of its latest segment");
    }
}

/// A first window of one segment waits for the receiver's timer of 10 ms, one of two does not.
#[test]
fn a_window_of_two_segments_does_not_wait_for_the_receivers_timer() {
    for (min_window, waits) in [(0, true), (2, false)] {
        let delayed_ack = Some(DelayedAck { every: 2, timeout: Time::from_ms(10) });
        let tcp =
            TcpConfig { delayed_ack, min_window, rto_min: Time::from_ms(100), rto_max: Time::from_ms(100), ..TCP };
        let mut c = lossy(2, "newreno", 4 << 20, tcp, vec![flow(0, 1, 1_000_000, Time::ZERO)]);
        c.cc = algorithm_with("newreno", &[("initial_window", RawValue::Integer(1))]);
        let (recorder, _) = run(c);
        let fct = recorder.flows[0].fct.expect("it finishes");
        assert_eq!(Time::from_ms(10) < fct, waits, "{fct}");
    }
}

/// Returns the longest time in which a sender with a full pipe of 100 packets is silent after it has lost one.
fn silence(prr: bool) -> Time {
    let topology = Star { hosts: 2, rate: Rate::from_gbps(10), delay: Time::from_us(20) }.build();
    let mut c = lossy(2, "newreno", 4 << 20, TcpConfig { prr, ..TCP }, vec![flow(0, 1, 1_000_000, Time::ZERO)]);
    c.topology = topology;
    c.cc = algorithm_with("newreno", &[("initial_window", RawValue::Integer(100))]);
    let port = c.topology.port(NodeId(0), NodeId(2)).expect("the switch is the neighbour");
    let (start, stop) = (Time::from_us(300), Time::from_ns(300_800));
    c.faults = vec![FaultConfig { ports: vec![port], start, stop, loss: 1.0, ..FaultConfig::NONE }];
    probe(&mut c, 0, 2, Time::from_us(1));
    let (recorder, totals) = run(c);
    assert_eq!((totals.drops.total(), recorder.flows[0].delivered_bytes), (1, 1_000_000));
    let sent = |s: &&PortSample| s.tx_bytes < 1_001 * 1_048;
    let samples: Vec<_> = recorder.ports.iter().filter(sent).collect();
    let (mut since, mut longest) = (samples[0], Time::ZERO);
    for sample in samples {
        if since.tx_bytes < sample.tx_bytes {
            since = sample;
        }
        longest = longest.max(sample.t - since.t);
    }
    longest
}

/// Without proportional rate reduction no packet leaves until half of the packets in flight have arrived: half a round
/// trip of 80 us. With it, every other acknowledgment lets a packet go.
#[test]
fn a_recovery_sends_all_the_time() {
    assert!(silence(true) <= Time::from_us(3), "{}", silence(true));
    let without = silence(false);
    assert!((Time::from_us(35)..=Time::from_us(45)).contains(&without), "{without}");
}

/// Runs one flow at a link between hosts of 10 Gb/s, with a queue of a given number of packets; returns the payload
/// delivered in 300 ms as a share of the link's capacity, and the packets dropped.
fn alone(cc: &str, gbps: u64, delay: Time, queue: u32) -> (f64, u64) {
    let topology = Dumbbell {
        left: 1,
        right: 1,
        host_rate: Rate::from_gbps(10),
        host_delay: Time::from_us(10),
        bottleneck_rate: Rate::from_gbps(gbps),
        bottleneck_delay: delay,
    }
    .build();
    let until = Time::from_ms(300);
    let tcp = TcpConfig { handshake: true, tail_loss_probe: false, rto_min: Time::from_ms(200), ..TCP };
    let tcp = TcpConfig { rto_max: Time::from_ms(60_000), ..tcp };
    let mut c = lossy(2, cc, 1 << 30, tcp, vec![FlowSpec { stop: until, ..flow(0, 1, u64::MAX, Time::ZERO) }]);
    c.topology = topology;
    c.fabric.egress_alpha = None;
    c.fabric.queue.limit_packets = queue;
    c.stop.at = Some(until);
    c.stop.when_flows_done = false;
    let (recorder, totals) = run(c);
    let carried = gbps as f64 * 1e9 / 8.0 * 0.3 * 1_000.0 / 1_048.0;
    (recorder.flows[0].delivered_bytes as f64 / carried, totals.drops.total())
}

/// Behind a hole rounds must continue, or STARTUP never ends: BBR then sends at twice the link's rate forever.
#[test]
fn bbr_fills_the_link_whatever_its_queue() {
    for (gbps, delay_us, queue) in [(5, 130, 50), (5, 280, 100), (2, 280, 150), (2, 580, 50), (1, 580, 50)] {
        let (share, drops) = alone("bbr", gbps, Time::from_us(delay_us), queue);
        assert!(0.9 < share, "{gbps} Gb/s, {delay_us} us, {queue} packets: {share}");
        // In STARTUP up to a full pipe is lost, and in a probe a little: 2 % of the link's capacity.
        let carried = gbps as f64 * 1e9 / 8.0 * 0.3 / 1_048.0;
        assert!((drops as f64) < 0.05 * carried, "{gbps} Gb/s, {delay_us} us, {queue} packets: {drops} drops");
    }
}

/// Twenty flows whose first windows are twice the size of the queue: those that lose all of theirs wait for the least
/// timeout, 1 ms, since the handshake has measured the round-trip time.
#[test]
fn flows_that_lose_their_first_window_wait_for_the_least_timeout() {
    let flows = (0..20).map(|i| flow(i, 20, 64_000, Time::from_us(u64::from(i)))).collect();
    let tcp = TcpConfig { handshake: true, tail_loss_probe: false, rto_min: Time::from_ms(1), ..TCP };
    let tcp = TcpConfig { rto_max: Time::from_ms(60_000), ..tcp };
    let mut c = lossy(21, "newreno", 1 << 30, tcp, flows);
    c.topology = Star { hosts: 21, rate: Rate::from_gbps(1), delay: Time::from_us(25) }.build();
    c.fabric.egress_alpha = None;
    c.fabric.queue.limit_packets = 50;
    let (recorder, totals) = run(c);
    assert!(50 < totals.drops.total() && recorder.flows.iter().any(|f| 0 < f.timeouts));
    for outcome in &recorder.flows {
        assert!(outcome.connected.is_some_and(|at| at < Time::from_us(200)), "{outcome:?}");
        // All of the data takes 10.7 ms.
        assert!(outcome.fct.is_some_and(|fct| fct < Time::from_ms(25)), "{outcome:?}");
    }
}

/// A link that is dead for three seconds: the timeout doubles up to four, and the flow continues. No flow is reported
/// as stuck.
#[test]
fn a_flow_that_waits_for_a_long_timeout_is_not_stalled() {
    let tcp = TcpConfig { rto_min: Time::from_ms(200), rto_max: Time::from_ms(60_000), ..TCP };
    let mut c = lossy(2, "newreno", 1 << 20, tcp, vec![flow(0, 1, 100_000, Time::ZERO)]);
    let port = c.topology.port(NodeId(0), NodeId(2)).expect("the switch is the neighbour");
    let (start, stop) = (Time::from_us(20), Time::from_ms(3_000));
    c.faults = vec![FaultConfig { ports: vec![port], start, stop, loss: 1.0, ..FaultConfig::NONE }];
    probe(&mut c, 2, 1, Time::from_us(100));
    let (recorder, _) = run(c);
    let fct = recorder.flows[0].fct.expect("it finishes");
    assert!(Time::from_ms(3_000) < fct && fct < Time::from_ms(6_500), "{fct}");
}
