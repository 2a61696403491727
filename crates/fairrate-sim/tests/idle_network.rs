//! Closed forms on an idle network: the performance of a single flow.

use crate::common::{Recorder, algorithm, algorithm_with, config, flow, probe, run};
use fairrate_control::{ALGORITHMS, RawValue};
use fairrate_sim::ideal::{Framing, Hop, path_base_rtt};
use fairrate_sim::routing::{FlowKey, Routes};
use fairrate_sim::topology::{Asymmetric, Dumbbell, FatTree, FatTreeK, LeafSpine, ParkingLot, Star, Topology};
use fairrate_sim::{ClockRule, EcmpHash, NodeId, SimConfig, StopRule};
use fairrate_units::{Bytes, Rate, Time};

const G25: Rate = Rate::from_gbps(25);
const G100: Rate = Rate::from_gbps(100);
const US: Time = Time::from_us(1);

/// Returns one topology of each kind, with a sender and a receiver as far apart as possible.
fn topologies() -> Vec<(&'static str, Topology, u32, u32)> {
    let star = Star { hosts: 4, rate: G25, delay: US }.build();
    let dumbbell = Dumbbell {
        left: 2,
        right: 2,
        host_rate: G25,
        host_delay: US,
        bottleneck_rate: Rate::from_gbps(40),
        bottleneck_delay: Time::from_us(3),
    };
    let parking = ParkingLot {
        switches: 5,
        hosts_per_switch: 1,
        host_rate: G25,
        host_delay: US,
        link_rate: G25,
        link_rates: None,
        link_delay: Time::from_us(2),
    };
    let leaf_spine = LeafSpine {
        leaves: 3,
        spines: 2,
        hosts_per_leaf: 4,
        host_rate: Rate::from_gbps(10),
        host_delay: Time::from_ns(1_500),
        uplink_rate: Rate::from_gbps(40),
        uplink_delay: Time::from_ns(1_500),
    };
    let fat_tree = FatTree {
        pods: 4,
        tors_per_pod: 2,
        aggs_per_pod: 2,
        cores: 4,
        hosts_per_tor: 4,
        host_rate: G25,
        host_delay: US,
        fabric_rate: G100,
        tor_delay: US,
        core_delay: Time::from_us(5),
    };
    let fat_tree_k = FatTreeK {
        k: 4,
        hosts_per_edge: None,
        host_rate: G100,
        fabric_rate: G100,
        delay: Time::from_ns(100),
        core_delay: Time::from_ns(500),
    };
    let asymmetric = Asymmetric {
        slow_hosts: 5,
        slow_rate: Rate::from_gbps(40),
        fast_hosts: 2,
        fast_rate: G100,
        core_rate: G100,
        delay: US,
    };
    let built = [
        ("star", star),
        ("dumbbell", dumbbell.build()),
        ("parking-lot", parking.build()),
        ("leaf-spine", leaf_spine.build()),
        ("fat-tree", fat_tree.build()),
        ("fat-tree-k", fat_tree_k.build()),
        ("asymmetric", asymmetric.build()),
    ];
    let ends = |t: &Topology| {
        let hosts: Vec<u32> = t.hosts().map(|h| h.0).collect();
        (hosts[0], hosts[hosts.len() - 1])
    };
    built.map(|(name, t)| (name, ends(&t), t)).map(|(name, (src, dst), t)| (name, t, src, dst)).into()
}

/// Returns the base RTT of the data path from `src` to `dst`.
fn path_rtt(c: &SimConfig, src: u32, dst: u32) -> Time {
    let routes = Routes::new(&c.topology);
    let key = FlowKey { src: NodeId(src), dst: NodeId(dst), sport: 10_000, dport: 100 };
    let hops = |key| {
        let mut ports = Vec::new();
        routes.path(EcmpHash::Mix, c.seed, key, &mut ports);
        let links = ports.iter().map(|&p| *c.topology.link(p));
        links.map(|link| Hop::single(&link)).collect::<Vec<_>>()
    };
    let needs = c.cc.needs();
    let framing = Framing {
        mtu: c.transport.mtu,
        header: c.transport.header + needs.wire.data_overhead,
        ack: c.transport.ack + needs.wire.ack_overhead,
        overhead: c.fabric.frame_overhead,
    };
    path_base_rtt(ClockRule::Picoseconds, &hops(key), &hops(key.reversed()), framing)
}

/// Algorithms that ask the network for a rate before they send, or begin with a small window.
const NOT_AT_LINE_RATE: &[&str] = &[
    "perc", "charny", "rcp", "xcp", "newreno", "retcp", "ratemp", "cubic", "bbr", "lia", "olia", "balia", "xmp", "amp",
    "mpcc", "flowtune",
];

/// Every other algorithm starts at line rate, so data that fits into the first round trip is sent before any feedback
/// can slow it down, and arrives as fast as the links can carry it.
#[test]
fn a_flow_inside_the_first_round_trip_has_slowdown_exactly_one() {
    for (name, topology, src, dst) in topologies() {
        for cc in ALGORITHMS.iter().filter(|cc| !NOT_AT_LINE_RATE.contains(&cc.name)) {
            let base = config(topology.clone(), algorithm(cc.name), vec![]);
            let line_rate = topology.link(Routes::new(&topology).host_port(NodeId(src)).expect("a host")).rate;
            let window = line_rate.bytes_in(path_rtt(&base, src, dst)).as_u64();
            let full_packets = window / (1_000 + 48 + base.cc.needs().wire.data_overhead.as_u64());
            for bytes in [1, 999, 1_000, 1_001, full_packets * 1_000 - 1] {
                let (recorder, totals) =
                    run(SimConfig { flows: vec![flow(src, dst, bytes, US)].into(), ..base.clone() });
                let outcome = recorder.flows[0];
                assert_eq!(outcome.fct, Some(outcome.ideal_fct), "{name}, {}, {bytes} bytes", cc.name);
                assert_eq!(totals.delivered_bytes, totals.sent_bytes);
            }
        }
    }
}

/// Without control, and with rates from an oracle, a flow of any length has slowdown exactly one. Packets and fluid
/// then have the same times to the picosecond.
#[test]
fn line_rate_and_ideal_have_slowdown_exactly_one_at_any_length() {
    for (name, topology, src, dst) in topologies() {
        for bytes in [1, 1_000, 1_001, 3_000_123, 70_000_000] {
            let alone = |cc| run(config(topology.clone(), algorithm(cc), vec![flow(src, dst, bytes, US)])).0.flows[0];
            let outcome = alone("line-rate");
            assert_eq!(outcome.fct, Some(outcome.ideal_fct), "{name}");
            let ideal = alone("ideal");
            assert_eq!(ideal.fct, outcome.fct, "{name}, {bytes} bytes");
            // The acknowledgment of a short last packet may wait for the one before it.
            if bytes == 1 || bytes % 1_000 == 0 {
                assert_eq!(ideal, outcome, "{name}, {bytes} bytes");
            }
        }
    }
}

/// Returns the share of the receiver's link that a single long flow uses from 2 to 4 ms.
fn utilisation_alone(cc: fairrate_control::AlgorithmConfig) -> f64 {
    let topology = Star { hosts: 3, rate: G25, delay: US }.build();
    let mut c = config(topology, cc, vec![flow(0, 1, u64::MAX, Time::ZERO)]);
    c.stop = StopRule { at: Some(Time::from_us(4_001)), when_flows_done: false };
    probe(&mut c, 3, 1, Time::from_ms(2));
    let Recorder { ports, .. } = run(c).0;
    let bytes = ports[2].tx_bytes - ports[1].tx_bytes;
    bytes as f64 / G25.bytes_in(Time::from_ms(2)).as_f64()
}

#[test]
fn a_long_flow_alone_reaches_the_utilisation_its_algorithm_aims_at() {
    for full in ["line-rate", "powertcp", "dctcp", "timely", "patched-timely", "dcqcn", "swift", "theta-powertcp"] {
        let used = utilisation_alone(algorithm(full));
        // One packet more may have been handed to the wire than has left it: 1,090 of 6,250,000 bytes.
        assert!((0.999..1.0002).contains(&used), "{full}: {used}");
    }
    // HPCC aims at eta, and adds W_AI on top of it.
    for eta in [0.95, 0.90, 0.80] {
        let used = utilisation_alone(algorithm_with("hpcc", &[("eta", RawValue::Float(eta))]));
        assert!((eta..eta + 0.01).contains(&used), "hpcc: {used} with eta {eta}");
    }
}

/// With preamble and gap a link carries frames of 1,048 bytes in the time of 1,068. A flow alone takes its ideal time,
/// and so do its acknowledgments.
#[test]
fn frames_may_take_more_of_a_link_than_their_bytes() {
    let frames = |overhead| {
        let flows = vec![flow(0, 1, 100_000, Time::ZERO)];
        let mut c =
            config(Star { hosts: 2, rate: G25, delay: Time::from_us(1) }.build(), algorithm("line-rate"), flows);
        c.fabric.frame_overhead = Bytes::new(overhead);
        let (recorder, totals) = run(c);
        let outcome = recorder.flows[0];
        assert_eq!(outcome.fct, Some(outcome.ideal_fct));
        assert_eq!(totals.sent_bytes, 100 * 1_048, "no count has the overhead");
        outcome.ideal_fct
    };
    // 101 frames' times: the last one takes both links.
    assert_eq!(frames(20) - frames(0), G25.tx_time(Bytes::new(101 * 20)));
}

/// A snapshot is of a time within the run, though events of its flows may be left behind the end.
#[test]
fn no_snapshot_lies_behind_the_end() {
    let star = Star { hosts: 2, rate: G25, delay: US }.build();
    let mut c = config(star, algorithm("line-rate"), vec![flow(0, 1, 100_000, Time::ZERO)]);
    c.snapshots = (1..200).map(|n| Time::from_us(10 * n)).collect();
    let (told, totals) = run(c);
    let last = told.snapshots.last().expect("the first lie within the run").0;
    assert!((totals.end - Time::from_us(10)..=totals.end).contains(&last), "{last} of {}", totals.end);
}
