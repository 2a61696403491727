//! Priority flow control: a lossless fabric drops no packet, for any behaviour of the senders.

use crate::common::{algorithm, config, flow, run};
use fairrate_sim::topology::{FatTree, LeafSpine, Star, Topology, parse_topology_file};
use fairrate_sim::{
    ClockRule, DropCause, FlowSpec, Headroom, LevelsByRate, NodeId, Pfc, ProbeSpec, Recorder, Recovery, SimConfig,
    SimError, Simulation,
};
use fairrate_units::{Bytes, Rate, Time};

fn fat_tree() -> Topology {
    FatTree {
        pods: 2,
        tors_per_pod: 2,
        aggs_per_pod: 2,
        cores: 2,
        hosts_per_tor: 8,
        host_rate: Rate::from_gbps(25),
        host_delay: Time::from_us(1),
        fabric_rate: Rate::from_gbps(100),
        tor_delay: Time::from_us(1),
        core_delay: Time::from_us(5),
    }
    .build()
}

fn incast(n: u32, bytes: u64) -> Vec<FlowSpec> {
    (1..=n).map(|src| flow(src, 0, bytes, Time::from_us(1))).collect()
}

/// 31:1 without any control, into buffers far smaller than the burst.
#[test]
fn pfc_holds_a_burst_without_control() {
    for buffer in [100_000, 400_000, 4 << 20] {
        let base = config(fat_tree(), algorithm("line-rate"), incast(31, 300_000));
        let mut c = SimConfig { ..base };
        c.fabric.buffer = Bytes::new(buffer);
        let (recorder, totals) = run(c);
        assert_eq!(totals.drops.total(), 0, "buffer {buffer}");
        assert!(totals.counts.pfc_pauses > 0, "buffer {buffer}");
        assert_eq!(totals.counts.pfc_pauses, totals.counts.pfc_resumes, "every pause ends");
        assert_eq!(recorder.pfc.len() as u64, totals.counts.pfc_pauses + totals.counts.pfc_resumes);
        assert_eq!((totals.flows_done, totals.flows_unfinished), (31, 0));
        assert_eq!(totals.sent_bytes, 31 * 300 * 1_048, "nothing is sent twice");
    }
}

/// 1,048 B at 400 Gb/s take 20.96 ns, cut to 20: a link that is paused may have 4.8 % more bytes in flight than its
/// rate gives.
#[test]
fn headroom_is_enough_for_times_cut_to_whole_nanoseconds() {
    let leaf_spine = LeafSpine {
        leaves: 2,
        spines: 1,
        hosts_per_leaf: 20,
        host_rate: Rate::from_gbps(100),
        host_delay: Time::from_ns(1_500),
        uplink_rate: Rate::from_gbps(400),
        uplink_delay: Time::from_us(10),
    };
    let flows = (20..36).map(|src| flow(src, 0, 3_000_000, Time::ZERO)).collect();
    let mut c = config(leaf_spine.build(), algorithm("line-rate"), flows);
    (c.fabric.buffer, c.fabric.ingress_alpha) = (Bytes::new(40_000), Some(1.0));
    (c.fabric.clock, c.fabric.headroom) = (ClockRule::WholeNanoseconds, Headroom::Auto);
    let (_, totals) = run(c);
    assert_eq!((totals.drops.total(), totals.flows_done), (0, 16));
}

/// Three hosts send to one at line rate, and a fourth past them. Over the level at which it pauses, the queue grows by
/// the bytes in flight then: for each sender a round trip of 2 us at 25 Gb/s, the packet that the sender is sending,
/// and those at whose arrival the switch detects the level and sends the pause; less the bytes that leave meanwhile, at
/// the rate of one sender. It drains to the other level. A host that sends to another port is never paused.
#[test]
fn egress_queues_pause_at_one_level_and_let_go_at_another() {
    let star = Star { hosts: 6, rate: Rate::from_gbps(25), delay: Time::from_us(1) }.build();
    let mut flows = incast(3, 1_000_000);
    flows.push(flow(4, 5, 1_000_000, Time::from_us(1)));
    let mut c = config(star, algorithm("line-rate"), flows);
    let (pause, resume) = (100_000, 10_000);
    c.fabric.pfc = Pfc::Egress(LevelsByRate::same(Bytes::new(pause), Bytes::new(resume)));
    let port = c.topology.port(NodeId(6), NodeId(0)).expect("the switch has a port to each host");
    c.probes.push(ProbeSpec::Ports { ports: vec![port], every: Time::from_ns(100) });
    let (recorder, totals) = run(c);
    assert_eq!((totals.drops.total(), totals.flows_done), (0, 4));
    let queue: Vec<u64> = recorder.ports.iter().map(|sample| sample.qlen_bytes).collect();
    let peak = queue.iter().copied().max().expect("there are samples");
    assert!((pause + 2 * 6_250..pause + 2 * 6_250 + 3 * 3 * 1_048).contains(&peak), "{peak}");
    // Each cycle begins with a pause of all three. In it the port sends the bytes between the levels, and those that
    // arrive meanwhile.
    let falls = queue.windows(2).filter(|pair| resume < pair[0] && pair[1] <= resume).count() as u64;
    assert!(5 < falls && totals.counts.pfc_pauses == totals.counts.pfc_resumes, "{falls}, {totals:?}");
    assert!(
        (3 * (falls - 1)..=3 * falls).contains(&totals.counts.pfc_pauses),
        "{} pauses, {falls} cycles",
        totals.counts.pfc_pauses
    );
    let past = recorder.flows.iter().find(|outcome| outcome.flow.0 == 3).expect("it is done");
    assert_eq!(past.fct, Some(past.ideal_fct), "nobody pauses it");
}

/// A packet that finds its port idle leaves at once, so its queue pauses nobody, however low the level: with agents
/// that see each packet join the queue as without.
#[test]
fn a_packet_that_leaves_at_once_pauses_nobody() {
    for cc in ["line-rate", "rocc", "xcp", "rcp", "perc"] {
        let star = Star { hosts: 2, rate: Rate::from_gbps(25), delay: Time::from_us(1) }.build();
        let mut c = config(star, algorithm(cc), vec![flow(0, 1, 1_000, Time::ZERO)]);
        c.fabric.pfc = Pfc::Egress(LevelsByRate::same(Bytes::new(40), Bytes::new(0)));
        let (_, totals) = run(c);
        assert_eq!((totals.counts.pfc_pauses, totals.flows_done), (0, 1), "{cc}");
    }
}

/// Lossy fabrics drop packets, and both recovery schemes deliver all data nevertheless.
#[test]
fn a_lossy_fabric_delivers_everything_in_the_end() {
    for recovery in [Recovery::GoBackN, Recovery::SelectiveRepeat] {
        for cc in ["dctcp", "powertcp", "swift", "line-rate"] {
            let mut c = config(fat_tree(), algorithm(cc), incast(31, 100_000));
            c.fabric.pfc = Pfc::Off;
            c.fabric.buffer = Bytes::new(200_000);
            (c.fabric.ingress_alpha, c.fabric.egress_alpha) = (None, Some(1.0));
            c.transport.recovery = recovery;
            c.transport.rto = Some(Time::from_us(500));
            let (recorder, totals) = run(c);
            assert!(totals.drops.of(DropCause::EgressThreshold) > 0, "{cc} {recovery:?}");
            assert_eq!(totals.counts.pfc_pauses, 0);
            assert_eq!(totals.flows_done, 31, "{cc} {recovery:?}");
            let again: u64 = recorder.flows.iter().map(|f| f.retransmitted_bytes).sum();
            assert!(again > 0, "{cc} {recovery:?}");
            assert!(recorder.flows.iter().all(|f| f.delivered_bytes == 100_000));
        }
    }
}

/// Selective repeat retransmits exactly the lost packets, go-back-N more.
#[test]
fn selective_repeat_sends_again_only_what_was_lost() {
    for (recovery, exact) in [(Recovery::SelectiveRepeat, true), (Recovery::GoBackN, false)] {
        let mut c = config(fat_tree(), algorithm("dctcp"), incast(16, 200_000));
        c.fabric.pfc = Pfc::Off;
        c.fabric.buffer = Bytes::new(300_000);
        (c.fabric.ingress_alpha, c.fabric.egress_alpha) = (None, Some(1.0));
        c.transport.recovery = recovery;
        let (recorder, totals) = run(c);
        let again: u64 = recorder.flows.iter().map(|f| f.retransmitted_bytes).sum();
        let lost = totals.dropped_bytes / 1_048 * 1_000;
        assert!(lost > 0 && lost <= again, "{recovery:?}: {again} sent again for {lost} lost");
        assert_eq!(again == lost, exact, "{recovery:?}: {again} sent again for {lost} lost");
    }
}

/// Five switches in a ring, 5 to 9, with one host each, 0 to 4.
fn ring() -> Topology {
    let hosts = (0..5).map(|i| format!("{i} {} 25Gbps 1us 0", i + 5));
    let switches = (0..5).map(|i| format!("{} {} 25Gbps 1us 0", i + 5, (i + 1) % 5 + 5));
    let links: Vec<String> = hosts.chain(switches).collect();
    let text = format!("10 5 10\n5 6 7 8 9\n{}\n", links.join("\n"));
    parse_topology_file(&text).expect("the ring is sound")
}

/// Each flow passes two links of the ring in the same direction: full buffers wait for one another all the way round,
/// whether ingress ports or egress queues pause.
#[test]
fn a_deadlock_of_pauses_is_an_error_that_names_its_cycle() {
    let stuck = |threads: usize, pfc: Option<Pfc>| {
        let ring_flow = |i| FlowSpec { id: 900 + i, ..flow(i, (i + 2) % 5, 5_000_000, Time::from_us(1)) };
        let flows = (0..5).map(ring_flow).collect();
        let mut c = config(ring(), algorithm("line-rate"), flows);
        match pfc {
            None => c.fabric.buffer = Bytes::new(60_000),
            Some(pfc) => c.fabric.pfc = pfc,
        }
        c.transport.rto = None;
        let end = Simulation::with_threads(c, threads).run(&mut Recorder::default());
        let Err(SimError::Stalled { unfinished, stuck, .. }) = end else { panic!("{end:?}") };
        assert_eq!(unfinished, 5);
        stuck
    };
    let said = stuck(1, None);
    let cycle = "pauses wait for one another in a circle: 5->6, 6->7, 7->8, 8->9, 9->5, 5->6 (class 3)";
    assert!(said.starts_with(cycle) && said.contains("; flow 900 (0 to 2) has"), "{said}");
    assert_eq!(stuck(3, None), said, "whatever the parts");
    let by_egress = Pfc::Egress(LevelsByRate::same(Bytes::new(20_000), Bytes::new(5_000)));
    let said = stuck(1, Some(by_egress));
    assert!(said.starts_with(cycle), "{said}");
    assert_eq!(stuck(3, Some(by_egress)), said, "whatever the parts");
}

/// A port that is down with packets behind it is not a deadlock.
#[test]
fn a_stall_without_a_circle_names_none() {
    let mut c = config(fat_tree(), algorithm("line-rate"), incast(31, 300_000));
    c.transport.rto = None;
    let down = Time::from_us(20);
    let tor = c.topology.node("tor0").expect("a switch");
    let ports = vec![c.topology.port(tor, fairrate_sim::NodeId(0)).expect("a link")];
    let flap = Some(fairrate_sim::Flap { down_at: down, up_at: Time::MAX, period: None });
    c.faults = vec![fairrate_sim::FaultConfig { ports, flap, ..fairrate_sim::FaultConfig::NONE }];
    let end = Simulation::new(c).run(&mut Recorder::default());
    let Err(SimError::Stalled { stuck, .. }) = end else { panic!("{end:?}") };
    assert!(!stuck.contains("circle") && stuck.contains("port tor0->h0 is down"), "{stuck}");
}
