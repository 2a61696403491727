//! Switches that work by spans of time give the same bits as switches that work event by event: with pauses,
//! drops, marks, classes, telemetry and on several threads.

use crate::common::{Recorder, TCP, algorithm, config, flow};
use fairrate_sim::topology::{LeafSpine, Topology};
use fairrate_sim::workload::Permutation;
use fairrate_sim::{
    Balance, HostConfig, LevelsByRate, MarkAt, Mode, NodeId, Pfc, ProbeSpec, QueueConfig, QueueRule, Reason, Recovery,
    RunTotals, SimConfig, Simulation, Switching, TieRule, Transport,
};
use fairrate_units::{Bytes, Rate, Time};

fn leaf_spine() -> Topology {
    LeafSpine {
        leaves: 4,
        spines: 2,
        hosts_per_leaf: 8,
        host_rate: Rate::from_gbps(25),
        host_delay: Time::from_ns(600),
        uplink_rate: Rate::from_gbps(50),
        uplink_delay: Time::from_us(1),
    }
    .build()
}

/// A permutation, and an incast of 24 hosts in another class, half way through it.
fn scenario(cc: &str) -> SimConfig {
    let topology = leaf_spine();
    let permutation = Permutation { bytes: Bytes::new(100_000), start: Time::from_us(1), hosts: None };
    let mut flows = permutation.generate(&topology, 1, 0).expect("enough hosts");
    let incast = (8..32).map(|src| {
        let mut flow = flow(src, 0, 60_000, Time::from_us(20));
        flow.class = Some(4);
        flow
    });
    flows.extend(incast);
    let mut c = config(topology, algorithm(cc), flows);
    let ports = (0..c.topology.n_ports() as u32).map(fairrate_sim::PortId).collect();
    c.probes = vec![ProbeSpec::Ports { ports, every: Time::from_us(7) }];
    c
}

fn told(c: &SimConfig, threads: usize, switching: Switching, piece: u64) -> (Recorder, RunTotals) {
    let mut simulation = Simulation::with_switching(c.clone(), threads, switching);
    let mut recorder = Recorder::default();
    while !simulation.advance(piece, &mut recorder).expect("the run does not stall").finished {}
    (recorder, simulation.totals())
}

/// Returns the totals of the run, which are the same with all ways of switching.
fn same(c: &SimConfig) -> RunTotals {
    let (events, totals) = told(c, 1, Switching::Events, u64::MAX);
    for switching in [Switching::Spans, Switching::Batches] {
        for (threads, piece) in [(1, u64::MAX), (1, 1_000), (2, u64::MAX), (3, 5_000)] {
            let (spans, other) = told(c, threads, switching, piece);
            assert!(events == spans, "{switching:?}, {threads} threads");
            assert_eq!(totals, other, "{switching:?}, {threads} threads");
        }
    }
    totals
}

#[test]
fn with_room_for_everything() {
    for cc in ["powertcp", "hpcc", "swift", "dcqcn", "line-rate"] {
        let totals = same(&scenario(cc));
        assert_eq!(totals.drops.total(), 0, "{cc}");
    }
}

#[test]
fn with_packets_of_a_flow_on_several_paths() {
    for cc in ["powertcp", "dcqcn", "line-rate"] {
        let mut c = scenario(cc);
        (c.fabric.balance, c.transport.recovery) = (Balance::Spray, Recovery::SelectiveRepeat);
        same(&c);
    }
}

#[test]
fn with_pauses() {
    for cc in ["line-rate", "powertcp", "dcqcn"] {
        let mut c = scenario(cc);
        c.fabric.buffer = Bytes::new(200_000);
        let totals = same(&c);
        assert!(
            10 < totals.counts.pfc_pauses && totals.drops.total() == 0,
            "{cc}: {} pauses",
            totals.counts.pfc_pauses
        );
    }
}

#[test]
fn with_pauses_of_egress_queues() {
    for cc in ["line-rate", "powertcp", "dcqcn"] {
        let mut c = scenario(cc);
        c.fabric.pfc = Pfc::Egress(LevelsByRate::same(Bytes::new(20_000), Bytes::new(5_000)));
        let totals = same(&c);
        assert!(10 < totals.counts.pfc_pauses, "{cc}: {} pauses", totals.counts.pfc_pauses);
    }
}

#[test]
fn with_drops() {
    for cc in ["line-rate", "hpcc"] {
        let mut c = scenario(cc);
        (c.fabric.pfc, c.fabric.egress_alpha, c.fabric.buffer) = (Pfc::Off, Some(0.5), Bytes::new(200_000));
        assert!(10 < same(&c).drops.total(), "{cc}");
    }
}

#[test]
fn with_marks_where_packets_join_and_where_they_leave() {
    for at in [MarkAt::Enqueue, MarkAt::Dequeue] {
        let mut c = scenario("dctcp");
        c.transport.kind = Transport::Tcp(TCP);
        let ecn = c.fabric.ecn.as_mut().expect("DCTCP reads marks");
        (ecn.at, ecn.kmin, ecn.kmax) = (at, Bytes::new(10_000), Bytes::new(60_000));
        assert!(100 < same(&c).counts.ecn_marks);
    }
}

/// The reasons do not depend on the number of threads, nor on which part has the cause.
#[test]
fn a_run_says_why_it_is_not_simulated_in_a_faster_way() {
    let mode = |c: &SimConfig, switching| {
        let of = |threads| Simulation::with_switching(c.clone(), threads, switching).mode();
        assert_eq!(of(1), of(3));
        of(1)
    };
    let plain = scenario("dctcp");
    assert_eq!(mode(&plain, Switching::Spans), Mode::default());
    assert_eq!(mode(&plain, Switching::Batches), Mode { in_batches: true, ..Mode::default() });
    assert!(!mode(&scenario("rocc"), Switching::Batches).in_batches);
    let by_event = |mode: Mode| (mode.switches, mode.hosts);
    assert_eq!(by_event(mode(&plain, Switching::Events)), (vec![Reason::Asked], vec![Reason::SwitchesByEvent]));
    let now_and_then = (0..8).map(|i| flow(1, 0, 1_000, Time::from_ms(i)));
    let few = config(leaf_spine(), algorithm("dctcp"), now_and_then.collect());
    assert_eq!(mode(&few, Switching::Fitting).switches, [Reason::FewPackets]);
    assert_eq!(mode(&scenario("rocc"), Switching::Spans).switches, [Reason::PortAgents]);

    let mut slow = plain.clone();
    slow.hosts = vec![HostConfig { hosts: vec![NodeId(0)], processing: Time::from_us(1), ..HostConfig::NONE }];
    assert_eq!(by_event(mode(&slow, Switching::Spans)), (Vec::new(), vec![Reason::ImperfectHosts]));

    let mut like_ns3 = plain.clone();
    like_ns3.fabric.ties = TieRule::Insertion;
    like_ns3.fabric.queue = QueueConfig { rule: QueueRule::PFabric, ..QueueConfig::FIFO };
    let reasons = mode(&like_ns3, Switching::Spans);
    assert_eq!(reasons.switches, [Reason::Admission("ports have queueing disciplines"), Reason::InsertionTies]);
    assert_eq!(reasons.one_part, [Reason::InsertionTies]);
}
