//! PERC and Charny's algorithm on packets: the paper's dependency chain, and rates against the exact optimum.

use crate::common::{Recorder, algorithm_with, config, flow, max_min_gbps, paths, probe, random_flows, run};
use fairrate_control::{AlgorithmConfig, RawValue};
use fairrate_sim::topology::{LeafSpine, Star, Topology, parse_topology_file};
use fairrate_sim::{
    FaultConfig, FaultPackets, FlowSpec, HostConfig, NodeId, Pfc, ProbeSpec, Recovery, SimConfig, StopRule,
};
use fairrate_units::{Bytes, Rate, Time};

const US: Time = Time::from_us(1);

/// Returns a run of `flows` until `end`, with their rates sampled.
fn watched(topology: Topology, cc: AlgorithmConfig, flows: Vec<FlowSpec>, end: Time, every: Time) -> SimConfig {
    let mut c = config(topology, cc, flows);
    c.stop = StopRule { at: Some(end), when_flows_done: false };
    c.probes.push(ProbeSpec::Flows { flows: None, every });
    c
}

/// Returns the rates in Gb/s at time `t`, by flow.
fn rates_at(recorder: &Recorder, t: Time) -> Vec<f64> {
    let mut rates: Vec<_> = recorder.rates.iter().filter(|r| r.t == t).map(|r| (r.flow, r.rate_bps)).collect();
    rates.sort_unstable();
    rates.into_iter().map(|(_, bps)| bps as f64 / 1e9).collect()
}

/// Returns the sampling times.
fn times(recorder: &Recorder) -> Vec<Time> {
    let mut times: Vec<Time> = recorder.rates.iter().map(|r| r.t).collect();
    times.sort_unstable();
    times.dedup();
    times
}

/// Returns the links of each flow and the optimum in Gb/s. Control packets and acknowledgments are left out: 40 bytes a
/// round trip, and 60 for every packet the other way.
fn optimum(c: &SimConfig) -> (Vec<Vec<u32>>, Vec<f64>) {
    let paths = paths(c);
    let rates = max_min_gbps(c, &paths, &vec![0.0; c.topology.n_ports()]);
    (paths, rates)
}

fn close(rates: &[f64], want: &[f64], tolerance: f64) -> bool {
    rates.len() == want.len() && rates.iter().zip(want).all(|(r, w)| (r - w).abs() <= tolerance * w)
}

/// Returns the time from which all rates are within `tolerance` of `want`, in microseconds.
fn settled_us(recorder: &Recorder, want: &[f64], tolerance: f64) -> f64 {
    let times = times(recorder);
    let last_off = times.iter().rposition(|&t| !close(&rates_at(recorder, t), want, tolerance));
    times.get(last_off.map_or(0, |at| at + 1)).copied().unwrap_or(Time::MAX).as_us_f64()
}

/// Returns the time for which some link is offered more than its capacity, in microseconds, and the largest ratio of
/// load to capacity.
fn overload(c: &SimConfig, recorder: &Recorder, every: Time) -> (f64, f64) {
    let (paths, _) = optimum(c);
    let mut worst = 0.0_f64;
    let mut n_over = 0;
    for t in times(recorder) {
        let rates = rates_at(recorder, t);
        let load = |port: u32| -> f64 {
            let mine = paths.iter().zip(&rates).filter(|(path, _)| path.contains(&port)).map(|(_, rate)| rate);
            mine.sum::<f64>() / c.topology.links[port as usize / 2].rate.as_gbps_f64()
        };
        let most = (0..c.topology.n_ports() as u32).map(load).fold(0.0, f64::max);
        worst = worst.max(most);
        n_over += u64::from(1.0 + 1e-6 < most);
    }
    (n_over as f64 * every.as_us_f64(), worst)
}

/// Four switches in a line with 60, 30 and 10 Gb/s between them; flows A over the first, B over the first two, C over
/// the last two, D over the last. Each has hosts of its own at 100 Gb/s, as far away as makes 12 us one way for all.
const FIG_7: &str = "
    12 4 11
    0 1 2 3
    0 1 60Gbps 1us 0
    1 2 30Gbps 1us 0
    2 3 10Gbps 1us 0
    4 0 100Gbps 5500ns 0
    1 5 100Gbps 5500ns 0
    6 0 100Gbps 5us 0
    2 7 100Gbps 5us 0
    8 1 100Gbps 5us 0
    3 9 100Gbps 5us 0
    10 2 100Gbps 5500ns 0
    3 11 100Gbps 5500ns 0
";

fn fig_7(cc: AlgorithmConfig, starts_us: [u64; 4], every: Time) -> SimConfig {
    let topology = parse_topology_file(FIG_7).expect("the topology is sound");
    let ends = [(4, 5), (6, 7), (8, 9), (10, 11)];
    let mut flows: Vec<_> =
        ends.iter().zip(starts_us).map(|(&(src, dst), us)| flow(src, dst, u64::MAX, US * us)).collect();
    flows.sort_by_key(|f| f.start);
    watched(topology, cc, flows, US * 400, every)
}

/// PERC Fig. 8: C has its 5 Gb/s after about 50 us, A and B theirs after about 100 us. All flows start at once here.
///
/// If first rates do not wait too, some link is overloaded for a round trip whenever a flow joins: the flows that are
/// there receive their new rates a round trip later than the new flow its rate. Here D received 10 Gb/s before link 3
/// had a request from C.
#[test]
fn the_chain_of_fig_7_settles_within_100_us() {
    let every = Time::from_ns(100);
    let (none, two) = (RawValue::Float(0.0), RawValue::Float(2.0));
    for (cc, header, wait, first_waits, settles_us, over_us) in [
        // B's raise to 25 Gb/s waits until two RTTs of 24 us after its second reply.
        ("perc", "per-hop", two, false, 97.4, 24.1),
        ("perc", "two-value", two, false, 97.4, 24.1),
        // First rates that wait leave no link overloaded; no flow sends for the first three RTTs.
        ("perc", "per-hop", two, true, 97.4, 0.0),
        // Without waiting A has 45 beside B's 25 of link 1's 60 Gb/s for a further RTT.
        ("perc", "per-hop", none, false, 72.2, 48.1),
        // One stamp for all links takes longer to find the link that limits the flow: reply 1: link 1 gives A and B 30
        // each, link 2 gives B 15; link 3 gives D 10, and C, which comes later, 5; reply 2: D has 5. A comes back with
        // 30 and B with 15, both untouched, so that both ask for all they can use; reply 3: link 1 takes B for 30,
        // which it gives B now, so A has 30 again. Link 2 gives B 25; reply 4: B asked for 25, so link 1 has room, and
        // A's 30 come back untouched; reply 5: A asked for all it can use and has 60 - 25 = 35. A's control packets go
        // round in 24 us and the time of 80 bytes at 100, 60 and 100 Gb/s, 24.02 us, and now and then wait for a packet
        // of 1,048 bytes, 0.08 or 0.14 us: 5 x 24.02 = 120.1, and 0.3 for two or three packets. A raise waits for two
        // base RTTs of A's path, 24 us and the time of 1,048 + 60 bytes on its links: 2 x 24.325 = 48.65 us more, so
        // 169.05 and a packet or two. Link 3 is offered 15 Gb/s from C's first reply (24 us and 80 bytes at 100, 30, 10
        // and 100 Gb/s: 24.10) to D's second (80 bytes at 100, 10 and 100: 2 x 24.08): 24.06 us, in samples of 0.1 us.
        ("charny", "", two, false, 169.2, 24.1),
        ("charny", "", none, false, 120.4, 24.1),
    ] {
        let mut params = vec![("increase_wait", wait), ("first_rate_waits", RawValue::Bool(first_waits))];
        if !header.is_empty() {
            params.push(("header", RawValue::Text(header)));
        }
        let c = fig_7(algorithm_with(cc, &params), [0; 4], every);
        let (_, want) = optimum(&c);
        assert!(close(&want, &[35.0, 25.0, 5.0, 5.0], 1e-9), "{want:?}");
        let recorder = run(c.clone()).0;
        let (settled, (over, _)) = (settled_us(&recorder, &want, 1e-3), overload(&c, &recorder, every));
        assert!((settled - settles_us).abs() < 0.15, "{cc} {params:?}: settled after {settled} us");
        assert!((over - over_us).abs() < 0.15, "{cc} {params:?}: overloaded for {over} us");
    }
}

/// For any flow that joins last: with first rates that wait, no link is ever offered more than its capacity; without,
/// for about the RTT of 24 us after each arrival.
#[test]
fn joining_overloads_a_link_for_a_round_trip_unless_first_rates_wait() {
    let every = Time::from_ns(100);
    for starts in [[0, 7, 14, 21], [21, 14, 7, 0], [100, 0, 0, 0], [0, 0, 0, 100], [0, 0, 100, 0]] {
        for cc in ["perc", "charny"] {
            for waits in [false, true] {
                let c = fig_7(algorithm_with(cc, &[("first_rate_waits", RawValue::Bool(waits))]), starts, every);
                let recorder = run(c.clone()).0;
                let (over, _) = overload(&c, &recorder, every);
                assert!(if waits { over == 0.0 } else { 15.0 < over && over < 35.0 }, "{cc} {starts:?}: {over} us");
                let settled = settled_us(&recorder, &optimum(&c).1, 1e-3);
                assert!(settled < 320.0, "{cc} {starts:?}: {settled} us");
            }
        }
    }
}

/// Two switches and two links of 30 and 20 Gb/s: A over the first, B over both; C joins the second (as in Fig. 3).
#[test]
fn a_newcomer_downstream_moves_the_bottleneck_of_one_and_frees_room_for_another() {
    let text = "9 3 8
        0 1 2
        0 1 30Gbps 1us 0
        1 2 20Gbps 1us 0
        3 0 100Gbps 1us 0
        1 4 100Gbps 1us 0
        5 0 100Gbps 1us 0
        2 6 100Gbps 1us 0
        7 1 100Gbps 1us 0
        2 8 100Gbps 1us 0";
    let topology = parse_topology_file(text).expect("the topology is sound");
    let joins = US * 200;
    let flow = |src, dst, start| flow(src, dst, u64::MAX, start);
    let flows = vec![flow(3, 4, Time::ZERO), flow(5, 6, Time::ZERO), flow(7, 8, joins)];
    let c = watched(topology, algorithm_with("perc", &[]), flows, US * 400, Time::from_ns(200));
    let recorder = run(c.clone()).0;
    assert!(close(&rates_at(&recorder, joins), &[15.0, 15.0], 1e-6));
    let want = [20.0, 10.0, 10.0];
    assert!(close(&optimum(&c).1, &want, 1e-9));
    // RTTs are 6.4 to 8.7 us. C hears of 10 after one; B at its next reply; A after a round trip more,
    // and waits for two.
    let settled = settled_us(&recorder, &want, 1e-3);
    assert!((200.0 + 20.0..200.0 + 40.0).contains(&settled), "{settled}");
}

/// Two flows to one receiver at 100 Gb/s, 12.3 us away and back: the first has all, then each half. When the second has
/// left, the first waits for two round trips before it takes all again.
#[test]
fn two_flows_share_a_link_at_once_and_give_it_back_after_two_round_trips() {
    let star = || Star { hosts: 3, rate: Rate::from_gbps(100), delay: US * 3 }.build();
    let flows = vec![flow(1, 0, u64::MAX, Time::ZERO), flow(2, 0, 1_000_000, US * 100)];
    for headroom in [0.0, 0.1] {
        let cc = algorithm_with("perc", &[("headroom", RawValue::Float(headroom))]);
        let mut c = watched(star(), cc, flows.clone(), US * 400, Time::from_ns(200));
        probe(&mut c, 3, 0, US);
        let recorder = run(c).0;
        let usable = 100.0 * (1.0 - headroom);
        let rate = |us: u64| rates_at(&recorder, US * us);
        assert!(close(&rate(99), &[usable], 1e-6));
        assert!(close(&rate(99 + 30), &[usable / 2.0; 2], 1e-6));

        // The first flow receives its new rate about 12 us after the second may send: 50 Gb/s for 12 us make a queue of
        // 75 KB. Nothing drains it except the headroom.
        let queue = |us: u64| recorder.ports.iter().find(|p| p.t == US * us).expect("sampled").qlen_bytes;
        let (most, later) = ((100..130).map(queue).max().expect("sampled"), queue(180));
        assert!((30_000..75_000).contains(&most), "{most}");
        assert!(if headroom == 0.0 { later == most } else { later <= 2 * 1_048 }, "{later}");

        // A round trip to ask, 1,048,000 bytes on the wire at half the rate, a trip of 6.2 us, and that queue.
        let fct = recorder.flows[1].fct.expect("it finishes").as_us_f64();
        let want = 12.1 + 8.384e6 / (usable / 2.0 * 1e3) + 6.2 + later as f64 * 8.0 / 100e3;
        assert!((fct - want).abs() < 0.5, "{fct}, not {want}");

        let mut times = times(&recorder).into_iter().filter(|&t| US * 130 < t);
        let back = times.find(|&t| close(&rates_at(&recorder, t)[..1], &[usable], 1e-6)).expect("it has all again");
        // The exit leaves with the last byte, 6.2 us and a queue earlier than that arrives.
        let after_exit = back.as_us_f64() - 100.0 - (12.1 + 8.384e6 / (usable / 2.0 * 1e3));
        // The packet passes the link 3 us later; the first flow's packet does within a round trip, and is back.
        assert!((24.6 + 3.0 + 6.0..24.6 + 3.0 + 12.3 + 9.3).contains(&after_exit), "{after_exit}");
    }
}

/// Returns the number of different rates: that of levels at which links are bottlenecks.
fn levels(rates: &[f64]) -> usize {
    let mut sorted = rates.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.dedup_by(|a, b| (*a - *b).abs() <= 1e-9 * *b);
    sorted.len()
}

/// Random flows on a star and on a leaf-spine fabric with slower uplinks: sources' rates are the max-min rates, after
/// four round trips for each level of rates (A. Charny, D. Clark, R. Jain, "Congestion Control with Explicit Rate
/// Indication", ICC 1995).
#[test]
fn random_flows_settle_at_the_optimum() {
    let star = Star { hosts: 8, rate: Rate::from_gbps(100), delay: US * 3 }.build();
    let leaf_spine = LeafSpine {
        leaves: 3,
        spines: 2,
        hosts_per_leaf: 4,
        host_rate: Rate::from_gbps(25),
        host_delay: US,
        uplink_rate: Rate::from_gbps(40),
        uplink_delay: US * 2,
    };
    for (topology, hosts) in [(star, 8), (leaf_spine.build(), 12)] {
        for cc in ["perc", "charny"] {
            for seed in 1..=30 {
                let flows = random_flows(hosts, 20, &mut crate::common::draws(seed));
                let c = watched(topology.clone(), algorithm_with(cc, &[]), flows, US * 1_000, US * 2);
                let (_, want) = optimum(&c);
                let recorder = run(c).0;
                let settled = settled_us(&recorder, &want, 0.01);
                let levels = levels(&want);
                // The last flow starts at 50 us; RTTs are up to 14 us.
                let bound = 50.0 + 4.0 * levels as f64 * 14.0;
                assert!(settled < bound, "{cc}, {hosts} hosts, seed {seed}, {levels} levels: {settled} us");
            }
        }
    }
}

/// Losses: sources that have left return for retransmissions, in both directions, and lost control packets are
/// replaced.
#[test]
fn flows_finish_when_packets_are_lost() {
    for recovery in [Recovery::GoBackN, Recovery::SelectiveRepeat] {
        for cc in ["perc", "charny"] {
            let topology = Star { hosts: 9, rate: Rate::from_gbps(25), delay: US }.build();
            // All flows start at line rate, with room for some thirty packets.
            let flows = (1..9).map(|src| flow(src, 0, 30_000, Time::ZERO)).collect();
            let mut c = config(topology, algorithm_with(cc, &[("initial_rate", RawValue::Float(1.0))]), flows);
            c.fabric.pfc = Pfc::Off;
            c.fabric.buffer = Bytes::new(30_000);
            c.fabric.ingress_alpha = None;
            c.transport.recovery = recovery;
            let (recorder, totals) = run(c);
            assert!(50 < totals.drops.total(), "{recovery:?}, {cc}: {:?}", totals.drops);
            assert!(recorder.flows.iter().all(|f| f.fct_ack.is_some()), "{recovery:?}, {cc}");
        }
    }
}

/// Two endless flows fill a link of 10 Gb/s. Each flow's control packets pass it once a round trip on top of that, so
/// the queue grows by 40 bytes a flow and round trip, without end. If they are charged, it does not grow.
#[test]
fn control_packets_that_are_not_charged_stay_in_the_queue() {
    let queue_at = |charge: bool, overhead: u64, ms: u64| {
        let cc = algorithm_with("perc", &[("charge_control", RawValue::Bool(charge))]);
        let flows = vec![flow(0, 2, u64::MAX, US), flow(1, 2, u64::MAX, US)];
        let star = Star { hosts: 3, rate: Rate::from_gbps(10), delay: US }.build();
        let mut c = watched(star, cc, flows, Time::from_ms(ms), Time::from_ms(ms));
        c.fabric.frame_overhead = Bytes::new(overhead);
        probe(&mut c, 3, 2, US * 10);
        let (recorder, totals) = run(c);
        let last = recorder.ports.last().expect("it is sampled").qlen_bytes as f64;
        (last, totals.counts.control_packets as f64)
    };
    // The excess that both have sent at their start stays in the queue too, so only the growth counts.
    let growth = |charge, overhead| {
        let ((early, n_early), (late, n_late)) = (queue_at(charge, overhead, 2), queue_at(charge, overhead, 6));
        (late - early, 40.0 * (n_late - n_early))
    };
    let (free, control) = growth(false, 0);
    assert!(30_000.0 < control && (free - control).abs() < 2_000.0, "{free} B for {control} B of control packets");
    // Ethernet's preamble and gap take time of the link too.
    for overhead in [0, 20, 100] {
        let (charged, _) = growth(true, overhead);
        // A packet or two may be there or not when it is sampled.
        assert!(charged.abs() < 2_200.0, "{charged} B, with {overhead} B on every frame");
    }
}

/// Two endless flows share the port to their receiver. From 1 to 2 ms a link has a part of its rate: the port to the
/// receiver half, so that each flow has half as much, or that of a sender a fifth, which the other flow makes up for.
#[test]
fn links_share_out_the_rate_that_they_have() {
    for cc in ["perc", "charny"] {
        for (from, to, rate, during) in [(3, 2, 0.5, [2.5, 2.5]), (0, 3, 0.2, [2.0, 8.0])] {
            let cc = algorithm_with(cc, &[("charge_control", RawValue::Bool(true))]);
            let flows = vec![flow(0, 2, u64::MAX, US), flow(1, 2, u64::MAX, US)];
            let star = Star { hosts: 3, rate: Rate::from_gbps(10), delay: US }.build();
            let ports = vec![star.port(NodeId(from), NodeId(to)).expect("a link")];
            let mut c = watched(star, cc, flows, Time::from_ms(3), US * 100);
            let (start, stop) = (Time::from_ms(1), Time::from_ms(2));
            c.faults = vec![FaultConfig { ports, rate, start, stop, ..FaultConfig::NONE }];
            probe(&mut c, from, to, US * 10);
            let (recorder, _) = run(c);
            // Control packets are 40 bytes in a round trip of 5 us or more: 64 Mb/s.
            for (us, want) in [(900, [5.0, 5.0]), (1_500, during), (2_500, [5.0, 5.0])] {
                let rates = rates_at(&recorder, US * us);
                assert!(close(&rates, &want, 0.04), "{us} us: {rates:?} and not {want:?}");
            }
            let queue = |us| recorder.ports.iter().find(|p| p.t == US * us).expect("it is sampled").qlen_bytes;
            let (early, late) = (queue(1_100), queue(1_900));
            assert!(late <= early + 2_200, "the queue grows from {early} to {late} B");
        }
    }
}

/// A sender whose NIC has 2 Gb/s on a link of 10: its share is that of a flow that asks for 2 Gb/s, and the other flow
/// has the rest.
#[test]
fn a_slow_nic_leaves_its_share_to_others() {
    for cc in ["perc", "charny"] {
        let flows = vec![flow(0, 2, u64::MAX, US), flow(1, 2, u64::MAX, US)];
        let star = Star { hosts: 3, rate: Rate::from_gbps(10), delay: US }.build();
        let mut c = watched(star, algorithm_with(cc, &[]), flows, Time::from_ms(5), Time::from_ms(5));
        let nic_rate = Some(Rate::from_gbps(2));
        c.hosts = vec![HostConfig { hosts: vec![NodeId(0)], nic_rate, ..HostConfig::NONE }];
        let (recorder, _) = run(c);
        let [slow, other] = [0, 1].map(|flow: usize| recorder.flows[flow].delivered_bytes as f64 * 8.0 / 5e6);
        // Of the packets' 1,048 bytes 1,000 are payload: 1.9 and 7.6 Gb/s.
        assert!(1.8 < slow && slow < 2.0, "{cc}: {slow}");
        assert!(7.2 < other && other < 7.7, "{cc}: {other}");
    }
}

/// Two endless flows share 10 Gb/s, and the control packets of one are lost from 1 to 2 ms. Its link forgets it, and
/// the other flow gets all; so it stops, and joins anew when its packets arrive again.
#[test]
fn a_flow_that_links_forget_falls_back() {
    for cc in ["perc", "charny"] {
        let cc = algorithm_with(cc, &[("charge_control", RawValue::Bool(true))]);
        let flows = vec![flow(0, 2, u64::MAX, US), flow(1, 2, u64::MAX, US)];
        let star = Star { hosts: 3, rate: Rate::from_gbps(10), delay: US }.build();
        let ports = vec![star.port(NodeId(0), NodeId(3)).expect("a link")];
        let mut c = watched(star, cc, flows, Time::from_ms(3), US * 100);
        let (start, stop, packets) = (Time::from_ms(1), Time::from_ms(2), FaultPackets::Control);
        c.faults = vec![FaultConfig { ports, packets, loss: 1.0, start, stop, ..FaultConfig::NONE }];
        probe(&mut c, 3, 2, US);
        let (recorder, _) = run(c);
        for (us, want) in [(900, [5.0, 5.0]), (1_500, [0.0, 10.0]), (1_900, [0.0, 10.0]), (2_500, [5.0, 5.0])] {
            let rates = rates_at(&recorder, US * us);
            let off = rates.iter().zip(want).map(|(rate, want): (&f64, f64)| (rate - want).abs()).fold(0.0, f64::max);
            assert!(off < 0.2, "{us} us: {rates:?} and not {want:?}");
        }
        // A round trip of 5 us in which 15 Gb/s come to a link of 10, twice at most.
        let queue = recorder.ports.iter().map(|p| p.qlen_bytes).max();
        assert!(queue < Some(20_000), "{queue:?}");
    }
}
