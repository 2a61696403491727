//! Classes that switches treat apart: weights, PFC, thresholds, marks.

use crate::common::{algorithm, config, flow, probe, run};
use fairrate_sim::topology::{Dumbbell, Star, Topology};
use fairrate_sim::{
    ClassConfig, FaultConfig, FlowSpec, MarkBy, NodeId, PortId, Recorder, SimConfig, Simulation, StopRule, Switching,
};
use fairrate_units::{Bytes, Rate, Time};

fn star(hosts: u32) -> Topology {
    Star { hosts, rate: Rate::from_gbps(25), delay: Time::from_us(1) }.build()
}

fn endless(src: u32, dst: u32, class: u8) -> FlowSpec {
    FlowSpec { class: Some(class), ..flow(src, dst, u64::MAX, Time::ZERO) }
}

fn until(end: Time) -> StopRule {
    StopRule { at: Some(end), when_flows_done: false }
}

/// Describes `class` as all others, with a weight.
fn weigh(c: &mut SimConfig, class: u8, weight: f64) -> &mut ClassConfig {
    let own = ClassConfig { weight: Some(weight), ..c.fabric.class(class) };
    c.fabric.classes.insert(class, own);
    c.fabric.classes.get_mut(&class).expect("it was inserted")
}

/// Runs until `end`, by spans and by events, which must be the same; returns the payload bytes that have come, by flow.
fn delivered(mut c: SimConfig, end: Time) -> Vec<u64> {
    c.stop = until(end);
    c.snapshots = vec![end];
    let [by_events, by_spans] = [Switching::Events, Switching::Spans].map(|switching| {
        let mut recorder = Recorder::default();
        let mut simulation = Simulation::with_switching(c.clone(), 1, switching);
        simulation.run(&mut recorder).expect("no stall");
        (recorder, simulation.totals().fingerprint)
    });
    assert!(by_events == by_spans, "events and spans differ");
    by_events.0.snapshots.last().expect("a snapshot at the end").1.clone()
}

fn gbps(bytes: u64, time: Time) -> f64 {
    8.0 * bytes as f64 / time.as_secs_f64() / 1e9
}

/// Two classes that always have packets at a port get their weights within a round: a quantum of each and a packet, and
/// what is on the wires.
#[test]
fn weights_share_a_port() {
    for weight in [1.0, 3.0, 7.5] {
        let mut c = config(star(3), algorithm("line-rate"), vec![endless(1, 0, 3), endless(2, 0, 4)]);
        weigh(&mut c, 3, 1.0);
        weigh(&mut c, 4, weight);
        let end = Time::from_ms(2);
        let bytes = delivered(c, end);
        let rounds = bytes[0] as f64 / 1_000.0;
        // Until both queues have built up, and what is under way.
        assert!((bytes[1] as f64 / 1_000.0 - weight * rounds).abs() < 3.0 * (1.0 + weight), "{weight}: {bytes:?}");
        assert!(gbps(bytes[0] + bytes[1], end) > 0.99 * 25.0 / 1.048, "the link is busy: {bytes:?}");
    }
}

/// A host's NIC shares its link by weights too.
#[test]
fn weights_share_a_nic() {
    let mut c = config(star(3), algorithm("line-rate"), vec![endless(0, 1, 3), endless(0, 2, 4), endless(0, 1, 3)]);
    weigh(&mut c, 3, 1.0);
    weigh(&mut c, 4, 4.0);
    let bytes = delivered(c, Time::from_ms(1));
    let ratio = bytes[1] as f64 / (bytes[0] + bytes[2]) as f64;
    assert!((ratio - 4.0).abs() < 0.03, "{bytes:?}");
    assert!(bytes[0].abs_diff(bytes[2]) <= 2_000, "flows of a class take turns: {bytes:?}");
}

/// A strict class gets what it asks for, and weights share the rest.
#[test]
fn strict_classes_go_before_those_with_weights() {
    let paced = FlowSpec { demand: Rate::from_gbps(10), ..endless(1, 0, 2) };
    let mut c = config(star(4), algorithm("line-rate"), vec![paced, endless(2, 0, 3), endless(3, 0, 4)]);
    weigh(&mut c, 3, 2.0);
    weigh(&mut c, 4, 1.0);
    let end = Time::from_ms(2);
    let shares: Vec<f64> = delivered(c, end).into_iter().map(|bytes| gbps(1_048 * bytes / 1_000, end)).collect();
    let expected = [10.0, 10.0, 5.0];
    assert!(shares.iter().zip(expected).all(|(share, expected)| (share - expected).abs() < 0.1), "{shares:?}");
}

/// Class 3 is paused most of the time, as its receiver's link has a fifth of the rate. Class 4 gets all that it leaves.
#[test]
fn a_paused_class_costs_the_other_nothing() {
    let dumbbell = Dumbbell {
        left: 2,
        right: 2,
        host_rate: Rate::from_gbps(25),
        host_delay: Time::from_us(1),
        bottleneck_rate: Rate::from_gbps(25),
        bottleneck_delay: Time::from_us(1),
    }
    .build();
    let mut c = config(dumbbell, algorithm("line-rate"), vec![endless(0, 2, 3), endless(1, 3, 4)]);
    let to_slow = (0..c.topology.n_ports() as u32).map(PortId).find(|&port| c.topology.to(port) == NodeId(2));
    c.faults.push(FaultConfig { ports: vec![to_slow.expect("it has a link")], rate: 0.2, ..FaultConfig::NONE });
    weigh(&mut c, 3, 1.0);
    weigh(&mut c, 4, 1.0);
    (c.stop, c.snapshots) = (until(Time::from_ms(4)), vec![Time::from_ms(2), Time::from_ms(4)]);
    let (recorder, totals) = run(c);
    let [before, after] = [&recorder.snapshots[0].1, &recorder.snapshots[1].1];
    let rates: Vec<f64> =
        before.iter().zip(after).map(|(a, b)| gbps(1_048 * (b - a) / 1_000, Time::from_ms(2))).collect();
    assert!((rates[0] - 5.0).abs() < 0.1 && (rates[1] - 20.0).abs() < 0.1, "{rates:?}");
    assert!(recorder.pfc.iter().any(|event| event.class == 3 && event.pause), "class 3 is paused");
    assert_eq!(totals.drops.total(), 0);
}

/// In a lossless fabric a class without PFC drops, and no other does.
#[test]
fn a_class_without_pfc_drops_alone() {
    let flows: Vec<FlowSpec> =
        (1..=8).map(|src| FlowSpec { class: Some(3 + (src % 2) as u8), ..flow(src, 0, 400_000, Time::ZERO) }).collect();
    let mut c = config(star(9), algorithm("line-rate"), flows);
    c.fabric.buffer = Bytes::new(300_000);
    let own = ClassConfig { pfc: false, ..c.fabric.class(4) };
    c.fabric.classes.insert(4, own);
    let (recorder, totals) = run(c);
    assert!(recorder.pfc.iter().all(|event| event.class == 3) && 0 < totals.counts.pfc_pauses);
    assert!(0 < totals.drops.total());
    let again = |outcome: &&fairrate_sim::FlowOutcome| 0 < outcome.retransmitted_bytes;
    // Odd sources are in class 4; flow n is of source n + 1.
    assert!(recorder.flows.iter().filter(again).all(|outcome| outcome.flow.0 % 2 == 0));
    assert_eq!(totals.flows_done, 8);
}

/// Each class has its own Dynamic Thresholds and headroom.
#[test]
fn thresholds_are_of_a_class() {
    let pauses = |alpha: f64, headroom: Option<u64>| {
        let mut c = config(star(4), algorithm("line-rate"), (1..=3).map(|src| endless(src, 0, 3)).collect());
        let mut own = ClassConfig { ingress_alpha: Some(alpha), ..c.fabric.class(3) };
        if let Some(bytes) = headroom {
            own.headroom = fairrate_sim::Headroom::Fixed(Bytes::new(bytes));
        }
        c.fabric.classes.insert(3, own);
        c.stop = until(Time::from_us(200));
        let (recorder, totals) = run(c);
        (recorder.pfc.first().map(|event| event.t), totals.drops.total())
    };
    let (early, late) = (pauses(0.001, None), pauses(0.01, None));
    assert!(early.0.is_some() && early.0 < late.0 && early.1 == 0 && late.1 == 0, "{early:?} {late:?}");
    assert!(0 < pauses(0.001, Some(0)).1, "without headroom there is no room for what is on the wire");
}

/// The exact reference shares by class first, and inside each class by the weights of flows. DWRR comes to the same
/// where all classes always have packets.
#[test]
fn ideal_rates_go_by_class() {
    let flows = vec![endless(1, 0, 3), endless(2, 0, 4), endless(3, 0, 4)];
    let end = Time::from_ms(2);
    let shares = |cc: &str| {
        let mut c = config(star(4), algorithm(cc), flows.clone());
        weigh(&mut c, 3, 1.0);
        weigh(&mut c, 4, 4.0);
        (c.stop, c.snapshots) = (until(end), vec![end]);
        let (recorder, _) = run(c);
        let bytes = &recorder.snapshots.last().expect("a snapshot at the end").1;
        bytes.iter().map(|&bytes| gbps(1_048 * bytes / 1_000, end)).collect::<Vec<f64>>()
    };
    let (ideal, line_rate) = (shares("ideal"), shares("line-rate"));
    assert!(ideal.iter().zip([5.0, 10.0, 10.0]).all(|(rate, expected)| (rate - expected).abs() < 0.05), "{ideal:?}");
    assert!(ideal.iter().zip(&line_rate).all(|(ideal, rate)| (ideal - rate).abs() < 0.1), "{line_rate:?}");
}

/// Returns the mean bytes at the port to the receiver of two DCTCP flows in each of `classes` classes, of which two
/// have equal weights.
fn queue(by: MarkBy, classes: u32) -> f64 {
    let flows = (0..2 * classes).map(|n| endless(1 + n, 0, 3 + (n % classes) as u8)).collect();
    let mut c = config(star(5), algorithm("dctcp"), flows);
    let ecn = c.fabric.ecn.as_mut().expect("DCTCP goes by marks");
    (ecn.kmin, ecn.kmax, ecn.pmax, ecn.kmin_per, ecn.kmax_per) =
        (Bytes::new(60_000), Bytes::new(60_000), 1.0, None, None);
    ecn.by = by;
    weigh(&mut c, 3, 1.0);
    weigh(&mut c, 4, 1.0);
    let (switch, end) = (c.topology.nodes.len() as u32 - 1, Time::from_ms(20));
    probe(&mut c, switch, 0, Time::from_us(2));
    c.stop = until(end);
    let samples = run(c).0.ports;
    let late: Vec<f64> =
        samples.iter().filter(|s| Time::from_ms(5) < s.t).map(|sample| sample.qlen_bytes as f64).collect();
    late.iter().sum::<f64>() / late.len() as f64
}

/// A threshold for a whole link lets each class of two hold as much; the share of the link is what both hold together.
/// MQ-ECN finds that share by itself, and leaves a class that is alone the whole threshold.
#[test]
fn marks_go_by_the_share_of_the_link() {
    let [class, port, share, round] =
        [MarkBy::Class, MarkBy::Port, MarkBy::Share, MarkBy::Round].map(|by| queue(by, 2));
    assert!(1.6 * round < class && (round / share - 1.0).abs() < 0.2, "{class} {round} {share}");
    assert!((port / share - 1.0).abs() < 0.25, "{port} {share}");
    let [class, share, round] = [MarkBy::Class, MarkBy::Share, MarkBy::Round].map(|by| queue(by, 1));
    assert!((round / class - 1.0).abs() < 0.1 && 1.6 * share < class, "{class} {round} {share}");
}
