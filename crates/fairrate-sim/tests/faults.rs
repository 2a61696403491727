//! Links that lose, corrupt, duplicate and reorder packets or go down: the frequency of the faults, and that all data
//! arrives nevertheless, with every algorithm and transport.

use crate::common::{TCP, algorithm, config, flow, probe, run};
use fairrate_control::{ALGORITHMS, AlgorithmConfig};
use fairrate_sim::topology::{Dumbbell, LeafSpine, Star, Topology};
use fairrate_sim::{
    BurstLoss, DelayedAck, DropCause, EcnEcho, FaultConfig, FaultPackets, Flap, FlowSpec, MptcpConfig, PortId,
    ProbeSpec, Recovery, Scheduler, SimConfig, SimError, Simulation, StopRule, SubflowPaths, TcpConfig, Transport,
};
use fairrate_units::{Bytes, Rate, Time};

const G10: Rate = Rate::from_gbps(10);
const US: Time = Time::from_us(1);
const WIRE: u64 = 1_048;

fn star(hosts: u32) -> Topology {
    Star { hosts, rate: G10, delay: US }.build()
}

/// Three hosts on each of two switches, with the same rate everywhere: hosts 0 to 5, switches 6 and 7.
fn dumbbell() -> Topology {
    Dumbbell {
        left: 3,
        right: 3,
        host_rate: G10,
        host_delay: US,
        bottleneck_rate: G10,
        bottleneck_delay: Time::from_us(2),
    }
    .build()
}

fn port(topology: &Topology, from: &str, to: &str) -> PortId {
    let node = |name| topology.node(name).expect("a node of this name");
    topology.port(node(from), node(to)).expect("neighbours")
}

/// Returns both directions of the link between the switches of a dumbbell.
fn between(topology: &Topology) -> Vec<PortId> {
    vec![port(topology, "sw0", "sw1"), port(topology, "sw1", "sw0")]
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hosts {
    GoBackN,
    SelectiveRepeat,
    Tcp,
    TcpDelayedAcks,
}

const HOSTS: [Hosts; 4] = [Hosts::GoBackN, Hosts::SelectiveRepeat, Hosts::Tcp, Hosts::TcpDelayedAcks];

fn set_hosts(c: &mut SimConfig, hosts: Hosts) {
    c.transport.rto = Some(Time::from_us(500));
    c.transport.nack_interval = Time::from_us(20);
    let delayed_ack = Some(DelayedAck { every: 2, timeout: Time::from_us(20) });
    match hosts {
        Hosts::GoBackN => c.transport.recovery = Recovery::GoBackN,
        Hosts::SelectiveRepeat => c.transport.recovery = Recovery::SelectiveRepeat,
        Hosts::Tcp => c.transport.kind = Transport::Tcp(TCP),
        Hosts::TcpDelayedAcks => {
            c.transport.kind =
                Transport::Tcp(TcpConfig { handshake: true, delayed_ack, ecn_echo: EcnEcho::Classic, ..TCP });
        }
    }
}

/// Returns three flows through a dumbbell whose middle link has faults in both directions.
fn three_flows(cc: AlgorithmConfig, hosts: Hosts, fault: &FaultConfig) -> SimConfig {
    let topology = dumbbell();
    let ports = between(&topology);
    let flows = (0..3).map(|i| flow(i, 3 + i, size(i), US)).collect();
    let mut c = config(topology, cc, flows);
    set_hosts(&mut c, hosts);
    c.faults = vec![FaultConfig { ports, ..fault.clone() }];
    c.stop.at = Some(Time::from_ms(3_000));
    c
}

fn size(flow: u32) -> u64 {
    100_000 + u64::from(flow)
}

/// Runs three flows and asserts that all of them are done with all their bytes. Returns the number of packets lost or
/// added.
fn all_arrives(cc: &str, hosts: Hosts, seed: u64, what: &str, fault: &FaultConfig) -> u64 {
    let mut c = three_flows(algorithm(cc), hosts, fault);
    c.seed = seed;
    let mut recorder = crate::common::Recorder::default();
    let mut simulation = Simulation::new(c);
    let end = simulation.run(&mut recorder);
    assert!(end.is_ok(), "{cc}, {hosts:?}, {what}: {end:?}");
    let totals = simulation.totals();
    assert_eq!(totals.flows_unfinished, 0, "{cc}, {hosts:?}, {what}: {:?}", simulation.unfinished());
    for outcome in &recorder.flows {
        assert_eq!(outcome.delivered_bytes, size(outcome.flow.0), "{cc}, {hosts:?}, {what}");
    }
    totals.drops.of(DropCause::Fault) + totals.counts.duplicates
}

/// Returns every algorithm that moves packets.
fn algorithms() -> impl Iterator<Item = &'static str> {
    ALGORITHMS.iter().map(|a| a.name).filter(|&name| name != "ideal")
}

fn on(packets: FaultPackets) -> FaultConfig {
    FaultConfig { packets, ..FaultConfig::NONE }
}

fn bursts() -> FaultConfig {
    let burst = Some(BurstLoss { good_packets: 200.0, bad_packets: 10.0, loss: 0.8 });
    FaultConfig { burst, ..FaultConfig::NONE }
}

fn reordering(packets: FaultPackets) -> FaultConfig {
    FaultConfig { reorder: 0.05, reorder_delay: Time::from_us(8), ..on(packets) }
}

/// A packet that a fault delays comes after those that were sent later: each counts, and none without the fault.
#[test]
fn packets_that_a_fault_delays_are_late() {
    let late = |fault: &FaultConfig| {
        let (told, totals) = run(three_flows(algorithm("line-rate"), Hosts::SelectiveRepeat, fault));
        assert_eq!((totals.flows_unfinished, totals.drops.total()), (0, 0));
        told.flows.iter().map(|outcome| outcome.disorder.late_packets).sum::<u64>()
    };
    // 300 packets, and those sent again: the probability is 0.05.
    let n = late(&reordering(FaultPackets::Data));
    assert!((5..40).contains(&n), "{n}");
    assert_eq!((late(&reordering(FaultPackets::Acks)), late(&FaultConfig::NONE)), (0, 0));
}

fn flapping() -> FaultConfig {
    let flap = Flap { down_at: Time::from_us(40), up_at: Time::from_us(140), period: Some(Time::from_us(400)) };
    FaultConfig { flap: Some(flap), stop: Time::from_ms(2), ..FaultConfig::NONE }
}

fn every_algorithm(what: &str, fault: &FaultConfig) {
    let adds_up = fault.loss + fault.corrupt + fault.duplicate > 0.0 || fault.burst.is_some();
    for cc in algorithms() {
        for hosts in HOSTS {
            let changed: u64 = (1..4).map(|seed| all_arrives(cc, hosts, seed, what, fault)).sum();
            let has_packets = fault.packets != FaultPackets::Control;
            assert!(0 < changed || !adds_up || !has_packets, "{cc}, {hosts:?}: no {what}");
        }
    }
}

#[test]
fn everything_arrives_although_data_is_lost() {
    every_algorithm("loss of data", &FaultConfig { loss: 0.02, ..on(FaultPackets::Data) });
    every_algorithm("bursts", &bursts());
}

#[test]
fn everything_arrives_although_acknowledgments_are_lost_or_repeated() {
    every_algorithm("loss of acknowledgments", &FaultConfig { loss: 0.3, ..on(FaultPackets::Acks) });
    every_algorithm("repeated acknowledgments", &FaultConfig { duplicate: 0.3, ..on(FaultPackets::Acks) });
}

/// Eight timeouts in a row: longer than any algorithm keeps retrying with data.
#[test]
fn everything_arrives_although_nothing_did_for_long() {
    let fault = FaultConfig { loss: 1.0, stop: Time::from_us(4_200), ..FaultConfig::NONE };
    every_algorithm("an outage", &fault);
}

#[test]
fn everything_arrives_although_packets_are_damaged_or_repeated() {
    every_algorithm("damage", &FaultConfig { corrupt: 0.02, ..FaultConfig::NONE });
    every_algorithm("repetition", &FaultConfig { duplicate: 0.1, ..FaultConfig::NONE });
}

#[test]
fn everything_arrives_although_packets_change_places() {
    every_algorithm("reordered data", &reordering(FaultPackets::Data));
    every_algorithm("reordered acknowledgments", &reordering(FaultPackets::Acks));
    every_algorithm("jitter", &FaultConfig { jitter: Time::from_us(5), ..FaultConfig::NONE });
}

#[test]
fn everything_arrives_over_a_link_that_goes_down_and_up() {
    every_algorithm("flap", &flapping());
}

#[test]
fn everything_arrives_although_control_packets_are_lost_late_and_repeated() {
    every_algorithm("control packets lost", &FaultConfig { loss: 0.2, ..on(FaultPackets::Control) });
    let late = FaultConfig { duplicate: 0.2, ..reordering(FaultPackets::Control) };
    every_algorithm("control packets late and repeated", &late);
}

/// All faults at the same time.
#[test]
fn everything_arrives_whatever_happens() {
    let fault = FaultConfig {
        loss: 0.01,
        corrupt: 0.01,
        duplicate: 0.05,
        reorder: 0.05,
        reorder_delay: Time::from_us(8),
        jitter: US,
        ..flapping()
    };
    every_algorithm("all at once", &FaultConfig { stop: Time::from_ms(20), ..fault });
}

/// Connections of two subflows on different paths, one of which has faults.
#[test]
fn everything_arrives_over_two_paths_of_which_one_is_faulty() {
    let topology = LeafSpine {
        leaves: 2,
        spines: 2,
        hosts_per_leaf: 3,
        host_rate: G10,
        host_delay: US,
        uplink_rate: G10,
        uplink_delay: US,
    };
    let faults = [
        FaultConfig { loss: 0.05, corrupt: 0.01, duplicate: 0.05, ..reordering(FaultPackets::All) },
        flapping(),
        FaultConfig {
            flap: Some(Flap { down_at: Time::from_us(60), up_at: Time::from_ms(30), period: None }),
            ..FaultConfig::NONE
        },
    ];
    for cc in ["lia", "olia", "balia", "xmp", "amp", "mpcc", "ratemp"] {
        for scheduler in [Scheduler::MinRtt, Scheduler::RoundRobin, Scheduler::Redundant] {
            for (n, fault) in faults.iter().enumerate() {
                let topology = topology.build();
                let ports = vec![port(&topology, "tor0", "spine0"), port(&topology, "spine0", "tor0")];
                let flows = (0..3).map(|i| flow(i, 3 + i, size(i), US)).collect();
                let mut c = config(topology, algorithm(cc), flows);
                let multipath = MptcpConfig { subflows: 2, scheduler, paths: SubflowPaths::Disjoint };
                c.transport.kind = Transport::Tcp(TcpConfig { multipath, handshake: n == 0, ..TCP });
                c.faults = vec![FaultConfig { ports, ..fault.clone() }];
                c.stop.at = Some(Time::from_ms(400));
                let (recorder, totals) = run(c);
                assert_eq!(totals.flows_unfinished, 0, "{cc}, {scheduler:?}, {n}: {:?}", recorder.flows);
                assert!(
                    (0..3).all(|i| recorder.flows[i].delivered_bytes == size(i as u32)),
                    "{cc}, {scheduler:?}, {n}"
                );
            }
        }
    }
}

/// Runs one endless flow at line rate through a fault, without retransmissions; returns the number of data packets
/// sent, and the totals.
fn open_loop(fault: &FaultConfig, seed: u64) -> (u64, fairrate_sim::RunTotals) {
    let topology = star(2);
    let ports = vec![port(&topology, "h0", "sw0")];
    let mut c = config(topology, algorithm("line-rate"), vec![flow(0, 1, u64::MAX, Time::ZERO)]);
    c.transport.recovery = Recovery::SelectiveRepeat;
    c.faults = vec![FaultConfig { ports, ..fault.clone() }];
    c.stop = StopRule { at: Some(Time::from_ms(40)), when_flows_done: false };
    c.seed = seed;
    let totals = run(c).1;
    (totals.sent_bytes / WIRE, totals)
}

fn fits(count: u64, n: u64, p: f64) -> bool {
    let (n, count) = (n as f64, count as f64);
    (count - n * p).abs() < 4.0 * (n * p * (1.0 - p)).sqrt()
}

#[test]
fn losses_damage_and_repetition_come_as_often_as_they_should() {
    for seed in 1..4 {
        let (n, totals) = open_loop(&FaultConfig { loss: 0.01, ..on(FaultPackets::Data) }, seed);
        assert!(
            40_000 < n && fits(totals.drops.of(DropCause::Fault), n, 0.01),
            "{} of {n}",
            totals.drops.of(DropCause::Fault)
        );
        let (n, totals) = open_loop(&FaultConfig { corrupt: 0.003, ..on(FaultPackets::Data) }, seed);
        assert!(fits(totals.drops.of(DropCause::Fault), n, 0.003), "{} of {n}", totals.drops.of(DropCause::Fault));
        assert_eq!(totals.drops.total(), totals.drops.of(DropCause::Fault));
        let (n, totals) = open_loop(&FaultConfig { duplicate: 0.02, ..on(FaultPackets::Data) }, seed);
        assert!(fits(totals.counts.duplicates, n, 0.02), "{} of {n}", totals.counts.duplicates);
        assert_eq!(totals.duplicated_bytes, totals.counts.duplicates * WIRE);
        let all = totals.delivered_bytes + totals.dropped_bytes + totals.in_flight_bytes;
        assert_eq!(totals.sent_bytes + totals.duplicated_bytes, all);
    }
}

/// A packet lost on a wire goes no further than that wire; a corrupt one goes all the way.
#[test]
fn damaged_packets_go_on_and_lost_ones_do_not() {
    let out = |fault: FaultConfig| {
        let topology = star(2);
        let ports = vec![port(&topology, "h0", "sw0")];
        let mut c = config(topology, algorithm("line-rate"), vec![flow(0, 1, u64::MAX, Time::ZERO)]);
        c.faults = vec![FaultConfig { ports, ..fault }];
        c.stop = StopRule { at: Some(Time::from_ms(1)), when_flows_done: false };
        probe(&mut c, 2, 1, Time::from_ms(1));
        let (recorder, totals) = run(c);
        (recorder.ports.last().expect("a sample").tx_bytes, totals)
    };
    let (lost, totals) = out(FaultConfig { loss: 1.0, ..FaultConfig::NONE });
    assert_eq!((lost, totals.delivered_bytes, totals.dropped_bytes), (0, 0, totals.sent_bytes));
    let (damaged, totals) = out(FaultConfig { corrupt: 1.0, ..FaultConfig::NONE });
    assert!(totals.sent_bytes - 10 * WIRE < damaged, "{damaged}");
    assert_eq!(totals.delivered_bytes, 0);
    assert_eq!(totals.dropped_bytes + totals.in_flight_bytes, totals.sent_bytes);
}

/// Two runs give the same result, and a run with faults that never happen gives the same as one without faults.
#[test]
fn faults_are_deterministic_and_cost_nothing_when_they_do_not_happen() {
    let fault = || FaultConfig { loss: 0.01, duplicate: 0.05, ..reordering(FaultPackets::All) };
    for hosts in HOSTS {
        let totals = |fault: FaultConfig, seed| {
            let mut c = three_flows(algorithm("dctcp"), hosts, &fault);
            c.seed = seed;
            run(c).1
        };
        assert_eq!(totals(fault(), 1), totals(fault(), 1));
        assert_ne!(totals(fault(), 1).fingerprint, totals(fault(), 2).fingerprint);
        let never = FaultConfig { start: Time::from_ms(2_000), ..fault() };
        let mut without = three_flows(algorithm("dctcp"), hosts, &fault());
        without.faults.clear();
        assert_eq!(totals(never, 1), run(without).1);
    }
}

/// Jitter delays packets but keeps their order: nothing is retransmitted. Late packets are overtaken.
#[test]
fn jitter_keeps_the_order_and_reordering_does_not() {
    let again = |fault: FaultConfig| {
        let c = three_flows(algorithm("line-rate"), Hosts::GoBackN, &fault);
        let (recorder, totals) = run(c);
        assert_eq!(totals.drops.total(), 0);
        let fct = recorder.flows.iter().filter_map(|f| f.fct).max().expect("they are done");
        (recorder.flows.iter().map(|f| f.retransmitted_bytes).sum::<u64>(), fct)
    };
    let (none, plain) = again(FaultConfig::NONE);
    let (jittered, later) = again(FaultConfig { jitter: Time::from_us(5), ..FaultConfig::NONE });
    assert_eq!((none, jittered), (0, 0));
    assert!(plain < later && later < plain + Time::from_us(5), "{plain} and {later}");
    assert!(0 < again(reordering(FaultPackets::Data)).0);
}

/// Packets on the wire are lost, no packet passes while the link is down, and queues keep their packets.
#[test]
fn a_link_that_is_down_passes_nothing_and_keeps_its_queue() {
    let topology = dumbbell();
    let ports = between(&topology);
    let mut c = config(topology, algorithm("line-rate"), vec![flow(0, 3, 400_000, Time::ZERO)]);
    c.transport.recovery = Recovery::SelectiveRepeat;
    c.transport.rto = Some(Time::from_us(500));
    let flap = Some(Flap { down_at: Time::from_us(100), up_at: Time::from_us(150), period: None });
    c.faults = vec![FaultConfig { ports, flap, ..FaultConfig::NONE }];
    probe(&mut c, 6, 7, Time::from_us(10));
    let (recorder, totals) = run(c);
    let at = |us| recorder.ports.iter().find(|s| s.t == Time::from_us(us)).expect("a sample");
    // A packet lasts 838.4 ns, and the first is sent to the link at 1,838.4 ns. From one start to the arrival 2,838.4
    // ns pass, so those are lost that start after 97,161.6 ns: numbers 114 (97,416 ns) to 117 (99,931.2 ns). Of
    // acknowledgments, which take 2,048 ns, two or three.
    assert!((6..=7).contains(&totals.drops.of(DropCause::Fault)), "{}", totals.drops.of(DropCause::Fault));
    assert_eq!(totals.dropped_bytes, 4 * WIRE);
    assert_eq!(at(140).tx_bytes, at(110).tx_bytes);
    // 40 us at 10 Gb/s are 50,000 bytes.
    assert!((49_000..51_000).contains(&(at(140).qlen_bytes - at(100).qlen_bytes)), "{}", at(140).qlen_bytes);
    assert_eq!(recorder.flows[0].retransmitted_bytes, 4_000);
    assert_eq!(recorder.flows[0].delivered_bytes, 400_000);
}

/// A link that stays down for longer than the stall limit is an error with a clear message.
#[test]
fn a_link_that_never_comes_up_is_an_error_that_names_it() {
    for hosts in HOSTS {
        let flap = Flap { down_at: Time::from_us(50), up_at: Time::MAX, period: None };
        let mut c = three_flows(algorithm("dctcp"), hosts, &FaultConfig { flap: Some(flap), ..FaultConfig::NONE });
        c.stop.at = None;
        let mut simulation = Simulation::new(c);
        let error = simulation.run(&mut crate::common::Recorder::default()).expect_err("nothing can move");
        let SimError::Stalled { since, unfinished, .. } = &error;
        assert!(*since < Time::from_us(80) && *unfinished == 3, "{hosts:?}: {error}");
        simulation.totals();
    }
}

/// An incast into buffers far too small, over links that go down again and again: pauses and resumes are lost with
/// them, and still no flow waits forever. Nor does a port stay paused once all flows are over.
#[test]
fn pauses_that_die_with_a_link_stop_nobody() {
    for (cc, buffer) in [("line-rate", 60_000), ("dcqcn", 60_000), ("bfc", 4 << 20), ("bfc", 100_000)] {
        for (down_us, period_us) in [(3, 17), (20, 90), (7, 50)] {
            for one_way in [None, Some(0), Some(1)] {
                let topology = dumbbell();
                let mut ports = between(&topology);
                for host in ["h0", "h1"] {
                    ports.extend([port(&topology, host, "sw0"), port(&topology, "sw0", host)]);
                }
                if let Some(parity) = one_way {
                    ports.retain(|port| port.0 % 2 == parity);
                }
                let flows = (0..3).flat_map(|src| (0..4).map(move |_| flow(src, 3, 100_000, US))).collect();
                let mut c = config(topology, algorithm(cc), flows);
                set_hosts(&mut c, Hosts::SelectiveRepeat);
                c.fabric.buffer = Bytes::new(buffer);
                let us = Time::from_us;
                let flap = Flap { down_at: us(20), up_at: us(20 + down_us), period: Some(us(period_us)) };
                c.faults = vec![FaultConfig { ports, stop: us(900), flap: Some(flap), ..FaultConfig::NONE }];
                c.stop.at = Some(Time::from_ms(2_000));
                let (recorder, totals) = run(c);
                let case = format!("{cc}, {buffer} bytes, down for {down_us} us of {period_us}, {one_way:?}");
                assert_eq!(totals.flows_unfinished, 0, "{case}");
                assert!(
                    0 < totals.drops.of(DropCause::Fault) && 0 < totals.counts.pfc_pauses + totals.counts.flow_pauses,
                    "{case}"
                );
                assert!(recorder.flows.iter().all(|f| f.delivered_bytes == 100_000), "{case}");
                let mut paused = std::collections::BTreeMap::new();
                for event in &recorder.pfc {
                    paused.insert((event.port, event.class), event.pause);
                }
                assert!(paused.values().all(|pause| !pause), "{case}: {paused:?}");
            }
        }
    }
}

/// Returns the rates of endless flows in the last tenth of a run, in Gb/s of payload.
fn late_rates(c: SimConfig) -> Vec<f64> {
    let n = c.flows.len();
    let end = c.stop.at.expect("the run has an end");
    let window = Time::from_ps(end.as_ps() / 10);
    let (recorder, _) = run(c);
    let delivered = |flow: usize, t: Time| {
        let of_flow = recorder.rates.iter().filter(|s| s.flow.index() == flow && s.t <= t);
        of_flow.map(|s| s.delivered_bytes).max().expect("samples")
    };
    (0..n)
        .map(|i| (delivered(i, end) - delivered(i, end - window)) as f64 * 8.0 / window.as_ps() as f64 * 1e3)
        .collect()
}

/// Faults of the packets that carry rates and notices have no lasting effect: some time after they have stopped, flows
/// have the same rates as without faults.
#[test]
fn rates_are_as_without_faults_once_these_have_stopped() {
    for cc in ["rocc", "perc", "charny", "rcp", "xcp", "bfc"] {
        let make = |faults: Vec<FaultConfig>| {
            let topology = dumbbell();
            let ports = between(&topology);
            let flows = (0..3).map(|i| flow(i, 3 + i, u64::MAX, US * u64::from(i + 1))).collect();
            let mut c = config(topology, algorithm(cc), flows);
            c.transport.rto = Some(Time::from_us(500));
            c.transport.recovery = Recovery::SelectiveRepeat;
            c.faults = faults.into_iter().map(|f| FaultConfig { ports: ports.clone(), ..f }).collect();
            c.probes.push(ProbeSpec::Flows { flows: None, every: Time::from_us(50) });
            c.stop = StopRule { at: Some(Time::from_ms(20)), when_flows_done: false };
            c
        };
        let without = late_rates(make(Vec::new()));
        for packets in [FaultPackets::Control, FaultPackets::All] {
            let lossy = FaultConfig { loss: 0.1, duplicate: 0.1, ..reordering(packets) };
            let with = late_rates(make(vec![FaultConfig { stop: Time::from_ms(5), ..lossy }]));
            let close = with.iter().zip(&without).all(|(w, o)| (w / o - 1.0).abs() < 0.05);
            assert!(close, "{cc}, {packets:?}: {with:?} and {without:?} without");
        }
    }
}

/// A flow that stops while its last message to the switches is lost takes no bandwidth from the others in the end.
#[test]
fn a_departure_that_is_not_heard_of_is_found_out() {
    for cc in ["rocc", "perc", "charny", "rcp", "xcp", "bfc"] {
        let topology = dumbbell();
        let ports = between(&topology);
        let leaver = FlowSpec { stop: Time::from_us(1_000), ..flow(2, 5, u64::MAX, US) };
        let flows = vec![flow(0, 3, u64::MAX, US), flow(1, 4, u64::MAX, US), leaver];
        let mut c = config(topology, algorithm(cc), flows);
        c.transport.rto = Some(Time::from_us(500));
        let (start, stop) = (Time::from_us(995), Time::from_us(1_050));
        c.faults = vec![FaultConfig { ports, start, stop, loss: 1.0, ..on(FaultPackets::Control) }];
        c.probes.push(ProbeSpec::Flows {
            flows: Some(vec![fairrate_sim::FlowId(0), fairrate_sim::FlowId(1)]),
            every: US * 50,
        });
        c.stop = StopRule { at: Some(Time::from_ms(20)), when_flows_done: false };
        c.flows.truncate(3);
        let end = Time::from_ms(20);
        let (recorder, _) = run(c);
        for flow in 0..2 {
            let delivered = |t: Time| {
                let of_flow = recorder.rates.iter().filter(|s| s.flow.index() == flow && s.t <= t);
                of_flow.map(|s| s.delivered_bytes).max().expect("samples")
            };
            let gbps = (delivered(end) - delivered(Time::from_ms(18))) as f64 * 8.0 / 2e6;
            // Half of 10 Gb/s is 4.7 with headers and acknowledgments taken off; a third is 3.2.
            assert!((4.2..4.9).contains(&gbps), "{cc}: {gbps}");
        }
    }
}
