//! HOMA against closed forms: messages alone, at a receiver, at a sender, and where packets are lost.

mod common;

use common::{Recorder, algorithm_with, config, flow, probe, run};
use fairrate_control::RawValue;
use fairrate_sim::topology::{LeafSpine, Star, Topology};
use fairrate_sim::{FaultConfig, FlowOutcome, FlowSpec, PortId, RunTotals, SimConfig, Simulation};
use fairrate_units::{Bytes, Rate, Time};

const G10: Rate = Rate::from_gbps(10);
/// Payload of a full packet, and its bytes on the wire.
const MTU: u64 = 1_000;
const WIRE: u64 = 1_048;
/// RTTbytes in the tests that set it: a little more than what 10 Gb/s and these links need, in whole packets.
const RTT_BYTES: u64 = 10_000;

fn star(hosts: u32) -> Topology {
    Star { hosts, rate: G10, delay: Time::from_us(1) }.build()
}

/// A fabric that drops.
fn homa(topology: Topology, overcommitment: i64, flows: Vec<FlowSpec>) -> SimConfig {
    let rtt_bytes = format!("{RTT_BYTES}B");
    let params =
        [("overcommitment", RawValue::Integer(overcommitment)), ("rtt_bytes", RawValue::Text(&rtt_bytes))];
    let mut c = config(topology, algorithm_with("homa", &params), flows);
    c.fabric.pfc = false;
    c.fabric.ingress_alpha = None;
    c
}

fn packet_time() -> Time {
    G10.tx_time(Bytes::new(WIRE))
}

fn fct(outcome: &FlowOutcome) -> Time {
    outcome.fct.expect("it is done")
}

/// A message has no queue to wait in, and its grants come in time, however long it is.
#[test]
fn a_message_alone_takes_its_ideal_time() {
    let leaf_spine = || {
        let (us, gbps) = (Time::from_us(1), Rate::from_gbps(40));
        let (leaves, spines, hosts_per_leaf) = (2, 2, 2);
        LeafSpine {
            leaves,
            spines,
            hosts_per_leaf,
            host_rate: G10,
            host_delay: us,
            uplink_rate: gbps,
            uplink_delay: us,
        }
        .build()
    };
    for bytes in [1, MTU, MTU + 1, RTT_BYTES, RTT_BYTES + 1, 99_999, 1_000_000] {
        for pfc in [false, true] {
            for topology in [star(2), leaf_spine()] {
                let last = topology.hosts().count() as u32 - 1;
                // RTTbytes by default: the bandwidth-delay product.
                let cc = algorithm_with("homa", &[("overcommitment", RawValue::Integer(1))]);
                let mut c = config(topology, cc, vec![flow(0, last, bytes, Time::from_us(3))]);
                c.fabric.pfc = pfc;
                let (recorder, totals) = run(c);
                let [outcome] = &recorder.flows[..] else { panic!("one flow") };
                assert_eq!(fct(outcome), outcome.ideal_fct, "{bytes} bytes");
                assert_eq!(totals.sent_bytes, bytes + 48 * bytes.div_ceil(MTU), "nothing is sent twice");
            }
        }
    }
}

/// Messages to one receiver, each from a host of its own, that all begin at once: of 100 packets and ten more each.
fn to_one(n: u32, overcommitment: i64) -> (Recorder, RunTotals) {
    let flows = (1..=n).map(|i| flow(i, 0, 90_000 + 10_000 * u64::from(i), Time::ZERO)).collect();
    let mut c = homa(star(n + 1), overcommitment, flows);
    probe(&mut c, n + 1, 0, Time::from_ns(200));
    run(c)
}

/// All unscheduled packets come first. From then on the shortest message has the link, and the next one when that is done,
/// without a gap between them.
#[test]
fn the_shortest_message_goes_alone_and_the_next_one_takes_over() {
    for n in [2, 4, 8] {
        let (recorder, totals) = to_one(n, 1);
        // Two links of a microsecond, and the first packet on the first of them.
        let mut expected = Time::from_us(2) + packet_time();
        for _ in 0..u64::from(n) * RTT_BYTES / MTU {
            expected += packet_time();
        }
        for (outcome, i) in recorder.flows.iter().zip(1..) {
            let scheduled = 90 + 10 * i - RTT_BYTES / MTU;
            for _ in 0..scheduled {
                expected += packet_time();
            }
            let off = fct(outcome).as_ps().abs_diff(expected.as_ps());
            eprintln!("{n} {i} {} {}", fct(outcome), expected);
            assert!(off <= 2 * packet_time().as_ps(), "{n}, {i}: {} and not {expected}", fct(outcome));
        }
        assert_eq!(totals.drops.total(), 0);
    }
}

#[test]
fn queues() {
    for n in [2, 4, 8] {
        for k in [1, 2, 7] {
            let (recorder, _) = to_one(n, k);
            let peak = recorder.ports.iter().map(|s| s.queue_bytes).max();
            let late = recorder.ports.iter().filter(|s| s.t > Time::from_us(150)).map(|s| s.queue_bytes).max();
            eprintln!("{n} {k} peak {peak:?} late {late:?}");
            for o in &recorder.flows { eprintln!("   {} ideal {}", fct(o), o.ideal_fct); }
        }
    }
}
