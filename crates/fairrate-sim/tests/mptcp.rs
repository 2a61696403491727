//! Multipath TCP: all data arrives over any set of paths, path rates add up, and data leaves paths that fail.

use crate::common::{Recorder, TCP, algorithm, algorithm_with, config, flow, probe, run, steady};
use fairrate_control::{AlgorithmConfig, Allowance, RawValue};
use fairrate_sim::topology::{LeafSpine, Star, Topology};
use fairrate_sim::{
    DelayedAck, EcnConfig, FaultConfig, Flap, FlowId, FlowOutcome, FlowSpec, MarkAt, MarkBy, MarkDraws, MptcpConfig,
    NonEct, Pfc, PortId, ProbeSpec, RunTotals, Scheduler, SimConfig, StopRule, SubflowPaths, TcpConfig, Transport,
    Trigger,
};
use fairrate_units::{Bytes, Rate, Time};

const TWO_PATHS: MptcpConfig = MptcpConfig { subflows: 2, scheduler: Scheduler::MinRtt, paths: SubflowPaths::Disjoint };
const SCHEDULERS: [Scheduler; 3] = [Scheduler::MinRtt, Scheduler::RoundRobin, Scheduler::Redundant];
/// Algorithms that couple subflows, and two that do not.
const ALGORITHMS: [&str; 9] = ["lia", "olia", "balia", "xmp", "amp", "mpcc", "ratemp", "dctcp", "newreno"];
const US: Time = Time::from_us(1);

/// Returns two racks with spines between them: hosts of 20 Gb/s, uplinks of 10 Gb/s.
fn leaf_spine(spines: u32, hosts_per_leaf: u32) -> Topology {
    LeafSpine {
        leaves: 2,
        spines,
        hosts_per_leaf,
        host_rate: Rate::from_gbps(20),
        host_delay: US,
        uplink_rate: Rate::from_gbps(10),
        uplink_delay: Time::from_us(2),
    }
    .build()
}

/// Returns both directions of the links of a spine.
fn of_spine(topology: &Topology, spine: &str) -> Vec<PortId> {
    let node = |name: &str| topology.node(name).expect("a node of this name");
    let ports = ["tor0", "tor1"].into_iter().flat_map(|tor| [(tor, spine), (spine, tor)]);
    ports.map(|(from, to)| topology.port(node(from), node(to)).expect("neighbours")).collect()
}

/// Gives the links of a spine other properties than the rest.
fn change_spine(topology: &mut Topology, spine: &str, rate: Rate, delay: Time) {
    for port in of_spine(topology, spine) {
        let link = &mut topology.links[port.index() / 2];
        (link.rate, link.delay) = (rate, delay);
    }
}

fn over_tcp(topology: Topology, cc: AlgorithmConfig, tcp: TcpConfig, flows: Vec<FlowSpec>) -> SimConfig {
    let mut c = config(topology, cc, flows);
    c.transport.kind = Transport::Tcp(tcp);
    c.fabric.pfc = Pfc::Off;
    c.fabric.ingress_alpha = None;
    c.fabric.egress_alpha = Some(1.0);
    // RateMP eq. 5: marks in proportion to the queue, which does not count the packet itself.
    let is_ratemp = c.cc.info().name == "ratemp";
    let (kmin, at) = if is_ratemp { (Bytes::ZERO, MarkAt::Dequeue) } else { (Bytes::new(40_000), MarkAt::Enqueue) };
    if let Some(ecn) = &mut c.fabric.ecn {
        *ecn = EcnConfig {
            phantom: None,
            kmin,
            kmax: Bytes::new(40_000),
            pmax: 1.0,
            kmin_per: None,
            kmax_per: None,
            average: None,
            at,
            draws: MarkDraws::PerPort,
            to_hosts: true,
            non_ect: NonEct::Mark,
            by: MarkBy::Class,
        };
    }
    c
}

fn multipath(multipath: MptcpConfig) -> TcpConfig {
    TcpConfig { multipath, ..TCP }
}

fn run_all(c: SimConfig) -> (Vec<FlowOutcome>, RunTotals) {
    let (recorder, totals) = record(c);
    (recorder.flows, totals)
}

fn record(mut c: SimConfig) -> (Recorder, RunTotals) {
    c.stop.at = Some(Time::from_ms(20_000));
    let (recorder, totals) = run(c);
    assert_eq!(totals.flows_unfinished, 0);
    (recorder, totals)
}

fn fct(flow: &FlowOutcome) -> f64 {
    flow.fct.expect("it finishes").as_secs_f64()
}

#[test]
fn everything_arrives_whatever_is_lost_on_paths_that_differ() {
    for name in ALGORITHMS {
        for (subflows, scheduler) in [(2, Scheduler::MinRtt), (4, Scheduler::RoundRobin), (4, Scheduler::Redundant)] {
            let mut topology = leaf_spine(3, 4);
            change_spine(&mut topology, "spine1", Rate::from_gbps(1), Time::from_us(40));
            let faults = FaultConfig {
                ports: of_spine(&topology, "spine0"),
                loss: 0.01,
                duplicate: 0.01,
                reorder: 0.02,
                reorder_delay: Time::from_us(15),
                ..FaultConfig::NONE
            };
            let tcp = TcpConfig {
                handshake: true,
                delayed_ack: Some(DelayedAck { every: 2, timeout: Time::from_us(20) }),
                receive_window: 200_000,
                ..multipath(MptcpConfig { subflows, scheduler, paths: SubflowPaths::Hashed })
            };
            let flow = |i: u32| {
                let f = flow(i % 4, 4 + (i * 3) % 4, 200_001 + u64::from(i), Time::from_us(u64::from(i)));
                FlowSpec { sport: 1_000 * i as u16, ..f }
            };
            let mut c = over_tcp(topology, algorithm(name), tcp, (0..8).map(flow).collect());
            c.fabric.buffer = Bytes::new(60_000);
            c.faults = vec![faults];
            let (flows, totals) = run_all(c);
            assert!(0 < totals.drops.total(), "{name}");
            for (i, outcome) in (0..).zip(&flows) {
                assert_eq!(outcome.delivered_bytes, 200_001 + i, "{name}");
                assert!(outcome.fct.is_some() && outcome.fct <= outcome.fct_ack, "{name}");
            }
        }
    }
}

#[test]
fn a_single_subflow_is_plain_tcp() {
    for name in ALGORITHMS {
        let run_with = |scheduler, paths| {
            let tcp = multipath(MptcpConfig { subflows: 1, scheduler, paths });
            let flows = (0..3).map(|i| flow(i, 4 + i, 300_000, Time::from_us(u64::from(i)))).collect();
            let mut c = over_tcp(leaf_spine(2, 4), algorithm(name), tcp, flows);
            c.fabric.buffer = Bytes::new(60_000);
            run_all(c)
        };
        let plain = run_with(Scheduler::MinRtt, SubflowPaths::Hashed);
        assert_eq!(plain, run_with(Scheduler::Redundant, SubflowPaths::Disjoint), "{name}");
        assert!(plain.0.iter().all(|f| f.reordering.bytes == 0));
    }
}

/// The late packets of a connection are those of its subflows, each of which has one path.
#[test]
fn disorder_of_subflows_is_that_of_their_connection() {
    let late = |reorder: f64| {
        let topology = leaf_spine(2, 4);
        let ports = of_spine(&topology, "spine0");
        let flows = vec![flow(0, 4, 1_000_000, Time::ZERO)];
        let mut c = over_tcp(topology, algorithm("newreno"), multipath(TWO_PATHS), flows);
        c.faults = vec![FaultConfig { ports, reorder, reorder_delay: Time::from_us(15), ..FaultConfig::NONE }];
        run_all(c).0[0].disorder
    };
    let disorder = late(0.05);
    assert!((5..100).contains(&disorder.late_packets), "{disorder:?}");
    assert!(0 < disorder.extent_bytes && disorder.extent_bytes <= disorder.span_bytes, "{disorder:?}");
    assert_eq!(late(0.0).late_packets, 0);
}

#[test]
fn a_flow_has_its_own_number_of_subflows_or_the_transports() {
    for name in ALGORITHMS {
        let run_with = |all, own| {
            let tcp = multipath(MptcpConfig { subflows: all, ..TWO_PATHS });
            let flow = |i| FlowSpec { subflows: own, ..flow(i, 4 + i, 300_000, Time::from_us(u64::from(i))) };
            let mut c = over_tcp(leaf_spine(2, 4), algorithm(name), tcp, (0..3).map(flow).collect());
            c.fabric.buffer = Bytes::new(60_000);
            run_all(c)
        };
        assert_eq!(run_with(1, None), run_with(4, Some(1)), "{name}");
        assert_eq!(run_with(2, None), run_with(1, Some(2)), "{name}");
    }
}

/// Returns the numbers of subflows of five flows, in a run with two by default.
const COUNTS: [Option<u8>; 5] = [Some(1), None, Some(4), Some(1), Some(3)];

#[test]
fn connections_of_few_and_of_many_subflows_go_together() {
    for name in ALGORITHMS {
        for scheduler in SCHEDULERS {
            let topology = leaf_spine(3, 5);
            let ports = of_spine(&topology, "spine0");
            let flow = |(i, subflows): (u32, _)| FlowSpec { subflows, ..flow(i % 2, 5 + i, 200_000, Time::from_us(3)) };
            let flows: Vec<FlowSpec> = (0..).zip(COUNTS).map(flow).collect();
            let tcp = TcpConfig { handshake: true, ..multipath(MptcpConfig { scheduler, ..TWO_PATHS }) };
            let mut c = over_tcp(topology, algorithm(name), tcp, flows);
            c.fabric.buffer = Bytes::new(60_000);
            c.faults = vec![FaultConfig { ports, loss: 0.02, ..FaultConfig::NONE }];
            let (flows, totals) = run_all(c.clone());
            assert!(flows.iter().all(|f| f.delivered_bytes == 200_000), "{name} {scheduler:?}: {flows:?}");
            // Only data on several paths can arrive out of order.
            let has_waited: Vec<bool> = flows.iter().map(|f| 0 < f.reordering.bytes).collect();
            assert!(!has_waited[0] && !has_waited[3], "{name} {scheduler:?}");
            assert!(has_waited.contains(&true), "{name} {scheduler:?}");
            assert_eq!((flows, totals), run_all(c), "{name} {scheduler:?}");
        }
    }
}

#[test]
fn the_paths_of_a_flow_do_not_depend_on_the_subflows_of_others() {
    for paths in [SubflowPaths::Hashed, SubflowPaths::Disjoint] {
        // The bytes that each spine receives from the rack of the senders, without congestion.
        let sent_to_spines = |chosen: &[u32]| {
            let flow = |i: u32| FlowSpec {
                subflows: COUNTS[i as usize],
                demand: Rate::from_mbps(500),
                sport: 777 * i as u16,
                ..flow(i, 5 + i, 40_000, Time::from_ms(u64::from(i)))
            };
            let tcp = multipath(MptcpConfig { subflows: 2, scheduler: Scheduler::RoundRobin, paths });
            let flows = chosen.iter().map(|&i| flow(i)).collect();
            let mut c = over_tcp(leaf_spine(4, 5), windows(false), tcp, flows);
            (12..16).for_each(|spine| probe(&mut c, 10, spine, US));
            let (recorder, _) = record(c);
            recorder.ports[recorder.ports.len() - 4..].iter().map(|s| s.tx_bytes).collect::<Vec<_>>()
        };
        let alone: Vec<Vec<u64>> = (0..5).map(|i| sent_to_spines(&[i])).collect();
        let together = sent_to_spines(&[0, 1, 2, 3, 4]);
        let sum = |spine: usize| alone.iter().map(|sent| sent[spine]).sum::<u64>();
        assert_eq!(together, (0..4).map(sum).collect::<Vec<_>>(), "{paths:?}");
        if paths == SubflowPaths::Disjoint {
            let spines = |sent: &Vec<u64>| sent.iter().filter(|&&bytes| 0 < bytes).count();
            assert_eq!(alone.iter().map(spines).collect::<Vec<_>>(), [1, 2, 4, 1, 3]);
        }
    }
}

#[test]
fn uplinks_bind_a_flow_of_one_path_and_no_connection_of_two() {
    let of = |subflows, start, stop| FlowSpec {
        subflows: Some(subflows),
        demand: Rate::from_gbps(12),
        stop: Time::from_ms(stop),
        ..flow(0, 1, u64::MAX, Time::from_ms(start))
    };
    let mut c = over_tcp(leaf_spine(2, 1), windows(false), multipath(TWO_PATHS), vec![of(2, 0, 1), of(1, 2, 3)]);
    c.probes.push(ProbeSpec::Convergence { tolerance: 0.1, hold_rtts: 5, give_up_rtts: 100 });
    c.stop.when_flows_done = false;
    c.stop.at = Some(Time::from_ms(4));
    let (recorder, _) = run(c);
    // Both allow themselves 12 Gb/s. The optimum is that for the first, which can go around either uplink, and 10 Gb/s
    // for the second.
    let times: Vec<Option<Time>> = recorder.convergence.iter().map(|s| s.time).collect();
    assert_eq!(times, [Some(Time::ZERO), None]);
}

#[test]
fn equal_runs_are_equal() {
    for name in ALGORITHMS {
        let once = |n: u32| {
            let tcp = multipath(MptcpConfig { subflows: 3, scheduler: Scheduler::MinRtt, paths: SubflowPaths::Hashed });
            let flows = (0..n).map(|i| flow(i, 4 + i, 300_000, Time::from_us(u64::from(i)))).collect();
            let mut c = over_tcp(leaf_spine(3, 4), algorithm(name), tcp, flows);
            c.fabric.buffer = Bytes::new(60_000);
            run_all(c)
        };
        assert_eq!(once(4), once(4), "{name}");
    }
}

#[test]
fn two_disjoint_paths_carry_twice_as_much() {
    for name in ALGORITHMS {
        let fct_with = |paths| {
            let mut c =
                over_tcp(leaf_spine(2, 1), algorithm(name), multipath(paths), vec![flow(0, 1, 40_000_000, Time::ZERO)]);
            c.fabric.buffer = Bytes::new(1 << 20);
            fct(&run_all(c).0[0])
        };
        let gain = fct_with(MptcpConfig::SINGLE) / fct_with(TWO_PATHS);
        // The rest is the beginning: slow start, and where paths are emptied by losses, those. MPCC takes longest to
        // find its rates.
        let least = if name == "mpcc" { 1.6 } else { 1.85 };
        assert!((least..2.01).contains(&gain), "{name}: {gain:.3}");
    }
}

#[test]
fn data_leaves_a_path_that_dies_and_comes_back_to_it() {
    for name in ALGORITHMS {
        for scheduler in SCHEDULERS {
            let bytes = 20_000_000;
            let tcp = multipath(MptcpConfig { scheduler, ..TWO_PATHS });
            let mut c = over_tcp(leaf_spine(2, 1), algorithm(name), tcp, vec![flow(0, 1, bytes, Time::ZERO)]);
            c.fabric.buffer = Bytes::new(1 << 20);
            let (flows, _) = run_all(c.clone());
            let (alive, lost_alive) = (fct(&flows[0]), flows[0].retransmitted_bytes);
            let ports = of_spine(&c.topology, "spine0");
            let flap = Flap { down_at: Time::from_ms(2), up_at: Time::MAX, period: None };
            c.faults = vec![FaultConfig { ports, flap: Some(flap), ..FaultConfig::NONE }];
            let (flows, _) = run_all(c.clone());
            let dead = fct(&flows[0]);
            assert_eq!(flows[0].delivered_bytes, bytes);
            // Data in flight there is retransmitted, at most what the buffer and the path hold, and then data on the
            // subflow itself every 10 ms; besides the retransmissions that occur anyway.
            let resent = flows[0].retransmitted_bytes;
            // MPCC has not found its rates after 2 ms, and overshoots then.
            let is_steady = name != "mpcc";
            assert!(
                0 < resent && (!is_steady || resent < lost_alive + 1_200_000),
                "{name} {scheduler:?}: {lost_alive} {flows:?}"
            );
            // The path comes back at 6 ms, and is used again within the largest timeout.
            c.faults[0].flap = Some(Flap { up_at: Time::from_ms(6), ..flap });
            let (flows, _) = run_all(c);
            let back = fct(&flows[0]);
            assert_eq!(flows[0].delivered_bytes, bytes);
            // After 2 ms on both paths, all the rest on one takes twice as long; or less, if both share it again later.
            let rest = alive - 2e-3;
            let ratio = (dead - 2e-3) / (2.0 * rest);
            assert!(!is_steady || (0.95..1.15).contains(&ratio), "{name} {scheduler:?}: {alive} {dead}");
            assert!(alive < back && back < dead, "{name} {scheduler:?}: {alive} {back} {dead}");
        }
    }
}

/// A controller with a constant window of 30 packets at line rate; on long paths, if those are to be slow, of a packet
/// at a time at 50 Mb/s.
fn windows(long_paths_are_slow: bool) -> AlgorithmConfig {
    steady(move |flow| {
        let is_slow = long_paths_are_slow && Time::from_us(50) < flow.path_base_rtt;
        let (cwnd, rate) = if is_slow { (1_000, Rate::from_mbps(50)) } else { (30_000, flow.line_rate) };
        Allowance { cwnd: Bytes::new(cwnd), rate, timer: Time::MAX }
    })
}

/// Returns a short path over `spine0` and a long one over `spine1`.
fn short_and_long() -> Topology {
    let mut topology = leaf_spine(2, 1);
    change_spine(&mut topology, "spine1", Rate::from_gbps(10), Time::from_us(20));
    topology
}

#[test]
fn nobody_waits_for_a_slow_subflow_that_repeats() {
    let bytes = 2_000_000;
    let outcome = |multipath_config| {
        let flows = vec![flow(0, 1, bytes, Time::ZERO)];
        run_all(over_tcp(short_and_long(), windows(true), multipath(multipath_config), flows)).0[0]
    };
    let redundant = outcome(MptcpConfig { scheduler: Scheduler::Redundant, ..TWO_PATHS });
    let unique = outcome(MptcpConfig { scheduler: Scheduler::RoundRobin, ..TWO_PATHS });
    assert_eq!((redundant.delivered_bytes, unique.delivered_bytes), (bytes, bytes));
    // The window holds the short path's 10 Gb/s: 1.68 ms. The slow one sends a packet every 167.7 us, from the
    // beginning to the last acknowledgment eleven, all of them copies; the other way, the receiver waits for the last
    // of them.
    assert_eq!(redundant.retransmitted_bytes, 11_000);
    assert_eq!(unique.retransmitted_bytes, 0);
    assert!((fct(&redundant) - 1.68e-3).abs() < 0.02e-3, "{}", fct(&redundant));
    // No data waits for data before it longer than the fast path's packets for one another.
    assert_eq!(redundant.reordering.bytes, 0);
    assert!(Time::from_us(20) < unique.reordering.max, "{:?}", unique.reordering);
    assert!(unique.reordering.mean() <= unique.reordering.max);
}

#[test]
fn short_round_trips_come_first_or_all_take_turns() {
    let bytes = 1_000_000;
    let sent = |scheduler| {
        let spec = FlowSpec { demand: Rate::from_gbps(2), ..flow(0, 1, bytes, Time::ZERO) };
        let tcp = multipath(MptcpConfig { scheduler, ..TWO_PATHS });
        let mut c = over_tcp(short_and_long(), windows(false), tcp, vec![spec]);
        // Hosts 0 and 1, racks 2 and 3, spines 4 and 5.
        probe(&mut c, 2, 4, US);
        probe(&mut c, 2, 5, US);
        let (recorder, _) = record(c);
        let last = |port: PortId| recorder.ports.iter().rfind(|s| s.port == port).expect("samples").tx_bytes;
        let ports: Vec<PortId> = recorder.ports[..2].iter().map(|s| s.port).collect();
        // The application's rate holds for both together: 2 Gb/s, headers included.
        let fastest = bytes as f64 * 1.048 * 8.0 / 2e9;
        let beyond = fct(&recorder.flows[0]) - fastest;
        assert!((0.0..60e-6).contains(&beyond), "{scheduler:?}: {beyond}");
        (last(ports[0]), last(ports[1]))
    };
    let wire = bytes / 1_000 * 1_048;
    assert_eq!(sent(Scheduler::MinRtt), (wire, 0));
    assert_eq!(sent(Scheduler::RoundRobin), (wire / 2, wire / 2));
}

#[test]
fn the_first_subflow_shakes_hands_first() {
    let fct_with = |handshake| {
        let tcp = TcpConfig { handshake, ..multipath(TWO_PATHS) };
        let flows = vec![flow(0, 1, 5_000, Time::ZERO)];
        run_all(over_tcp(leaf_spine(2, 1), algorithm("line-rate"), tcp, flows)).0[0].fct.expect("it finishes")
    };
    // There and back: 1, 2, 2 and 1 us, and 60 bytes at 20, 10, 10 and 20 Gb/s. Then the second subflow's first packet
    // goes ahead of data.
    let round_trip = Time::from_ns(2 * (6_000 + 24 + 48 + 48 + 24));
    assert_eq!(fct_with(true) - fct_with(false), round_trip + Time::from_ns(24));
}

#[test]
fn endless_connections_stop_and_others_follow() {
    let first = FlowSpec { stop: Time::from_ms(2), ..flow(0, 1, u64::MAX, Time::ZERO) };
    let trigger = Trigger::After(FlowId(0), Time::from_us(10));
    let second = FlowSpec { trigger, ..flow(0, 1, 100_500, Time::ZERO) };
    let mut c = over_tcp(leaf_spine(2, 1), windows(false), multipath(TWO_PATHS), vec![first, second]);
    c.probes.push(ProbeSpec::Flows { flows: None, every: Time::from_us(100) });
    c.probes.push(ProbeSpec::Convergence { tolerance: 0.1, hold_rtts: 5, give_up_rtts: 100 });
    c.stop.when_flows_done = false;
    c.stop.at = Some(Time::from_ms(4));
    let (recorder, totals) = run(c);
    let [first, second] = &recorder.flows[..] else { panic!("two flows") };
    // 20 Gb/s for 2 ms: a packet every 419.2 ns, the last one cut short by nothing.
    assert_eq!(first.delivered_bytes, 4_771_000);
    assert_eq!((second.delivered_bytes, totals.flows_done), (100_500, 1));
    assert!(Time::from_ms(2) + Time::from_us(10) < second.start && second.start < Time::from_ms(2) + Time::from_us(80));
    // Windows add up; rates too, up to that of the NIC. Only the hosts' own links bind a connection that has two
    // spines.
    assert!(recorder.rates.iter().all(|s| (s.cwnd_bytes, s.rate_bps) == (60_000, 20_000_000_000)));
    assert!(recorder.rates.iter().all(|s| s.flow == FlowId(0) || second.start <= s.t));
    assert_eq!(recorder.convergence[0].time, Some(Time::ZERO));
}

#[test]
fn ports_are_chosen_for_paths_that_share_little() {
    for n in 1..20_u16 {
        let spec = FlowSpec { sport: 1_000 * n, ..flow(0, 1, 40_000, Time::ZERO) };
        let mut c = over_tcp(
            leaf_spine(4, 1),
            windows(false),
            multipath(MptcpConfig { subflows: 4, scheduler: Scheduler::RoundRobin, paths: SubflowPaths::Disjoint }),
            vec![spec],
        );
        (4..8).for_each(|spine| probe(&mut c, 2, spine, US));
        let (recorder, _) = record(c);
        let last = &recorder.ports[recorder.ports.len() - 4..];
        assert!(last.iter().all(|s| s.tx_bytes == 10 * 1_048), "{last:?}");
    }
}

#[test]
fn algorithms_with_a_single_path_run_on_every_subflow() {
    for info in fairrate_control::ALGORITHMS.iter().filter(|a| !matches!(a.name, "ideal" | "bfc")) {
        let flows = (0..4).map(|i| flow(i, 4 + i % 2, 150_000, Time::ZERO)).collect();
        let (flows, _) = run_all(over_tcp(leaf_spine(2, 4), algorithm(info.name), multipath(TWO_PATHS), flows));
        assert!(flows.iter().all(|f| f.delivered_bytes == 150_000), "{}", info.name);
    }
}

/// Eight AMP connections of eight subflows to one host have 128 segments of 1,000 bytes in flight with windows of two
/// segments, more than the 40,000 bytes at which switches mark. They keep one subflow each then, and the queue has
/// about what marks leave it.
#[test]
fn amp_keeps_one_subflow_whatever_its_least_window() {
    for min_window in [1, 2] {
        let cc = algorithm_with("amp", &[("min_window", RawValue::Integer(min_window))]);
        let tcp = multipath(MptcpConfig { subflows: 8, scheduler: Scheduler::MinRtt, paths: SubflowPaths::Hashed });
        let flows = (1..=8).map(|i| flow(i, 0, u64::MAX, Time::ZERO)).collect();
        let mut c = over_tcp(Star { hosts: 9, rate: Rate::from_gbps(10), delay: US }.build(), cc, tcp, flows);
        c.stop = StopRule { at: Some(Time::from_ms(10)), when_flows_done: false };
        probe(&mut c, 9, 0, Time::from_us(10));
        let samples = run(c).0.ports;
        let queues: Vec<u64> = samples.iter().filter(|s| Time::from_ms(5) <= s.t).map(|s| s.qlen_bytes).collect();
        let mean = queues.iter().sum::<u64>() / queues.len() as u64;
        assert!(mean < 50_000, "{mean} bytes with windows of at least {min_window}");
    }
}
