//! Hosts that are not ideal: delays add to round trips exactly, a slow receiver pauses its switch or drops exactly what
//! it cannot take, a slow NIC sends at its rate, and all of it is the same on any number of threads.

use crate::common::{algorithm, config, flow, four_spines, probe, run};
use fairrate_sim::topology::{Star, Topology};
use fairrate_sim::{
    Distribution, DropCause, FlowSpec, FullBuffer, HostConfig, HostSample, Jitter, NodeId, Noise, Pfc, PortSample,
    ProbeSpec, ReceiveBuffer, Recorder, SimConfig, Simulation,
};
use fairrate_units::{Bytes, Rate, Time};

/// A full packet on the wire, and its time on a link.
const WIRE: u64 = 1_048;
const TX_PS: u64 = 335_360;

/// Returns hosts around a switch, which is the node after them: 25 Gb/s and 1 us.
fn star(hosts: u32) -> Topology {
    Star { hosts, rate: Rate::from_gbps(25), delay: Time::from_us(1) }.build()
}

fn endless(src: u32, dst: u32) -> FlowSpec {
    FlowSpec { sport: 10_000 + src as u16, ..flow(src, dst, u64::MAX, Time::ZERO) }
}

/// Returns a run of endless flows at line rate to host 0, which drains at `gbps`, until `end`, with samples of its
/// buffer and of the switch's port to it each microsecond.
fn to_slow_receiver(senders: u32, gbps: f64, full: FullBuffer, end: Time) -> SimConfig {
    let flows = (1..=senders).map(|src| endless(src, 0)).collect();
    let mut c = config(star(senders + 1), algorithm("line-rate"), flows);
    let rates = vec![(Time::ZERO, Rate::from_bps_f64(gbps * 1e9))];
    let receive = Some(ReceiveBuffer { rates, size: Bytes::new(200_000), full, penalty_from: None });
    c.hosts = vec![HostConfig { hosts: vec![NodeId(0)], receive, ..HostConfig::NONE }];
    c.probes = vec![ProbeSpec::Hosts { hosts: vec![NodeId(0)], every: Time::from_us(1) }];
    probe(&mut c, senders + 1, 0, Time::from_us(1));
    c.stop.at = Some(end);
    c.stop.when_flows_done = false;
    c
}

const PAUSE: FullBuffer = FullBuffer::Pause { at: None, resume: None };

/// The delay of the receiver comes before the arrival of a flow, and that of the sender before its acknowledgment.
#[test]
fn processing_adds_to_a_round_trip_exactly() {
    let of = |bytes: u64, hosts: Vec<HostConfig>| {
        let mut c = config(star(2), algorithm("line-rate"), vec![flow(1, 0, bytes, Time::from_us(3))]);
        c.hosts = hosts;
        run(c).0.flows[0]
    };
    let delayed = |node: u32, ns: u64| HostConfig {
        hosts: vec![NodeId(node)],
        processing: Time::from_ns(ns),
        ..HostConfig::NONE
    };
    for bytes in [1, 1_000, 77_777] {
        let plain = of(bytes, Vec::new());
        let slow = of(bytes, vec![delayed(0, 700), delayed(1, 1_100)]);
        let (Some(before), Some(after)) = (plain.fct.zip(plain.fct_ack), slow.fct.zip(slow.fct_ack)) else {
            panic!("both finish");
        };
        assert_eq!(after.0, before.0 + Time::from_ns(700));
        assert_eq!(after.1, before.1 + Time::from_ns(1_800));
        assert_eq!((slow.ideal_fct, plain.ideal_fct), (after.0, before.0), "alone it takes its ideal time");
    }
}

/// The base RTT that algorithms are told has the fixed delays of both ends: for that of the network, of the pair with
/// the largest.
#[test]
fn base_rtts_have_the_delays_of_both_ends() {
    use fairrate_sim::routing::Routes;
    let mut c = config(star(4), algorithm("powertcp"), Vec::new());
    let routes = Routes::of(&c);
    let ideal = c.base_rtt(&routes);
    for (node, ns) in [(0, 100), (1, 700), (3, 1_100)] {
        c.hosts.push(HostConfig { hosts: vec![NodeId(node)], processing: Time::from_ns(ns), ..HostConfig::NONE });
    }
    assert_eq!(c.base_rtt(&routes), ideal + Time::from_ns(1_800));
}

/// 4,000 flows of a packet, 20 us apart: each has a round trip for itself. The mean of its delays is that of both
/// hosts' jitter.
#[test]
fn jitter_adds_its_mean() {
    let n = 4_000;
    let flows: Vec<FlowSpec> = (0..n).map(|i| flow(1, 0, 1_000, Time::from_us(20 * i))).collect();
    let mut c = config(star(2), algorithm("line-rate"), flows);
    let mean_ps = |c: SimConfig| {
        let fcts = run(c).0.flows.iter().map(|f| f.fct_ack.expect("done").as_ps() as f64).collect::<Vec<_>>();
        fcts.iter().sum::<f64>() / n as f64
    };
    let plain = mean_ps(c.clone());
    // Standard deviations of the sum: 1 us times sqrt(1/3 + 1/3), sqrt(1 + 1), sqrt(2 (e^0.25 - 1)).
    for (distribution, deviation_us) in
        [(Distribution::Uniform, 0.816), (Distribution::Exponential, 1.414), (Distribution::Lognormal(0.5), 0.754)]
    {
        let jitter = Some(Jitter { distribution, mean: Time::from_us(1) });
        c.hosts = vec![HostConfig { hosts: vec![NodeId(0), NodeId(1)], jitter, ..HostConfig::NONE }];
        let added_us = (mean_ps(c.clone()) - plain) / 1e6;
        let error = 4.0 * deviation_us / (n as f64).sqrt();
        assert!((added_us - 2.0).abs() < error, "{distribution:?}: {added_us} us");
    }
}

/// Packets leave at the rate of the NIC: each begins as long after the one before as that takes, and goes at the rate
/// of the link.
#[test]
fn a_slow_nic_sends_at_its_rate() {
    let n = 500;
    let mut c = config(star(2), algorithm("line-rate"), vec![flow(1, 0, n * 1_000, Time::ZERO)]);
    let nic_rate = Some(Rate::from_gbps(20));
    c.hosts = vec![HostConfig { hosts: vec![NodeId(1)], nic_rate, ..HostConfig::NONE }];
    let (recorder, _) = run(c);
    let apart_ps = WIRE * 8 * 50;
    let fct = recorder.flows[0].fct.expect("it is done").as_ps();
    assert_eq!(fct, (n - 1) * apart_ps + 2 * (TX_PS + 1_000_000));
}

/// Half of what comes finds no room. All that the switch has sent has been dropped, is in memory, or in the buffer or
/// on the wire.
#[test]
fn a_receiver_that_drops_takes_exactly_what_it_drains() {
    let end = Time::from_us(2_000);
    let (recorder, totals) = run(to_slow_receiver(1, 12.5, FullBuffer::Drop, end));
    let (host, port) = (recorder.hosts.last().expect("samples"), recorder.ports.last().expect("samples"));
    // A packet is on the wire for 1 us after its 335.36 ns.
    let arrived = |t_ps: u64| (t_ps - 2_000_000 - TX_PS) / TX_PS;
    let drained = |t_ps: u64| (t_ps - 2_000_000 - 2 * TX_PS) / (2 * TX_PS);
    let t_ps = host.t.as_ps();
    assert_eq!(port.tx_bytes / WIRE, (t_ps - 1_000_000 - TX_PS).div_ceil(TX_PS), "the link is never idle");
    assert_eq!(host.drained_bytes, drained(t_ps) * WIRE);
    let held = host.held_bytes / WIRE;
    assert_eq!(host.drops, arrived(t_ps) - drained(t_ps) - held);
    assert!(190 <= held && held * WIRE == host.held_bytes, "the buffer is full: {held} packets");
    assert_eq!((totals.drops.of(DropCause::Host), totals.drops.total()), (totals.drops.total(), totals.drops.total()));
    assert!(2_700 < host.drops && host.drops <= totals.drops.total());
    assert_eq!(port.drops, 0, "the port has dropped none");
}

/// The host pauses its switch before its buffer is full. Then the queue stands at the switch, where the ingress of the
/// sender is at its own threshold: an eighth of the free buffer, so a ninth of it all.
#[test]
fn a_receiver_that_pauses_moves_the_queue_to_its_switch() {
    let end = Time::from_us(3_000);
    let c = to_slow_receiver(1, 12.5, PAUSE, end);
    let [pause, resume] = c.pause_levels(NodeId(0), Bytes::new(200_000), None, None).map(Bytes::as_u64);
    let threshold = f64::from(4 << 20) / 9.0;
    let (recorder, totals) = run(c);
    assert_eq!(totals.drops.total(), 0);
    let late = |t: Time| Time::from_us(1_000) <= t;
    let hosts: Vec<&HostSample> = recorder.hosts.iter().filter(|s| late(s.t)).collect();
    assert!(hosts.iter().all(|s| s.held_bytes <= 200_000), "nothing is lost");
    assert!(hosts.iter().all(|s| resume / 2 < s.held_bytes && s.held_bytes < pause + 20_000), "{resume} to {pause}");
    let ports: Vec<&PortSample> = recorder.ports.iter().filter(|s| late(s.t)).collect();
    let mean = ports.iter().map(|s| s.qlen_bytes as f64).sum::<f64>() / ports.len() as f64;
    assert!((mean / threshold - 1.0).abs() < 0.03, "a queue of {mean} bytes, and the threshold is {threshold}");
    // The memory is never idle, and the switch rests half of the time.
    let drained = hosts[hosts.len() - 1].drained_bytes - hosts[0].drained_bytes;
    let us = (hosts[hosts.len() - 1].t - hosts[0].t).as_us_f64();
    assert!((drained as f64 * 8.0 / us / 12_500.0 - 1.0).abs() < 0.001, "{drained} bytes in {us} us");
    let paused = ports[ports.len() - 1].pfc_pause - ports[0].pfc_pause;
    assert!((paused.as_us_f64() / us - 0.5).abs() < 0.05, "{paused} of {us} us");
}

/// The rate of the drain halves after 1 ms: 25 Gb/s are 3,125 bytes in a microsecond.
#[test]
fn a_drain_follows_its_steps() {
    let mut c = to_slow_receiver(3, 20.0, PAUSE, Time::from_us(2_000));
    let gbps = Rate::from_gbps;
    c.hosts[0].receive.as_mut().expect("it has one").rates = vec![(Time::ZERO, gbps(20)), (Time::from_ms(1), gbps(10))];
    let (recorder, totals) = run(c);
    let at = |us: u64| recorder.hosts.iter().find(|s| s.t == Time::from_us(us)).expect("a sample").drained_bytes;
    for (from, to, bytes_per_us) in [(500, 1_000, 2_500.0), (1_000, 1_900, 1_250.0)] {
        let per_us = (at(to) - at(from)) as f64 / (to - from) as f64;
        assert!((per_us / bytes_per_us - 1.0).abs() < 0.003, "{per_us} from {from} to {to}");
    }
    assert_eq!(totals.drops.total(), 0);
}

/// Returns a fabric in which every host has everything that is not ideal.
fn all_at_once(full: FullBuffer) -> SimConfig {
    let n_hosts = 16;
    let flows = (0..120).map(|i| {
        let (src, dst) = (i % n_hosts, (i * 7 + 3 + i / n_hosts) % n_hosts);
        let dst = if src == dst { (dst + 1) % n_hosts } else { dst };
        FlowSpec { sport: 10_000 + i as u16, ..flow(src, dst, 60_000, Time::from_ns(u64::from(i) * 500)) }
    });
    let mut c = config(four_spines(4), algorithm("powertcp"), flows.collect());
    let hosts: Vec<NodeId> = c.topology.hosts().collect();
    if full == FullBuffer::Drop {
        c.fabric.pfc = Pfc::Off;
    }
    let config_of = |distribution, hosts: &[NodeId]| HostConfig {
        hosts: hosts.to_vec(),
        processing: Time::from_ns(500),
        jitter: Some(Jitter { distribution, mean: Time::from_us(2) }),
        noise: Some(Noise { period: Time::from_us(50), length: Time::from_us(10) }),
        nic_rate: Some(Rate::from_gbps(23)),
        receive: Some(ReceiveBuffer {
            rates: vec![(Time::ZERO, Rate::from_gbps(10)), (Time::from_us(100), Rate::from_gbps(15))],
            size: Bytes::new(30_000),
            full,
            penalty_from: Some(Bytes::new(10_000)),
        }),
    };
    c.hosts = vec![
        config_of(Distribution::Exponential, &hosts[..5]),
        config_of(Distribution::Lognormal(1.0), &hosts[5..11]),
        config_of(Distribution::Uniform, &hosts[11..15]),
    ];
    c.probes = vec![ProbeSpec::Hosts { hosts, every: Time::from_us(5) }];
    c
}

#[test]
fn runs_are_the_same_on_any_number_of_threads() {
    for full in [PAUSE, FullBuffer::Drop] {
        let on = |threads: usize| {
            let (mut recorder, mut simulation) =
                (Recorder::default(), Simulation::with_threads(all_at_once(full), threads));
            simulation.run(&mut recorder).expect("it does not stall");
            (recorder, simulation.totals())
        };
        let one = on(1);
        let (pauses, drops) = (one.1.counts.pfc_pauses, one.1.drops.of(DropCause::Host));
        assert!(if full == FullBuffer::Drop { 0 < drops } else { 0 < pauses && drops == 0 }, "{pauses} {drops}");
        assert_eq!(one.0.flows.len(), 120);
        assert!(one == on(2) && one == on(3) && one == on(4), "{full:?}");
    }
}
