//! IRN (R. Mittal et al., "Revisiting network support for RDMA", SIGCOMM 2018): selective repeat, at most a
//! bandwidth-delay product in flight, and a shorter timeout while few packets are.

use crate::common::{algorithm, config, flow, probe, run};
use fairrate_sim::topology::Star;
use fairrate_sim::{DropCause, FaultConfig, Flap, Pfc, Recovery, SimConfig, WindowRule};
use fairrate_units::{Bytes, Rate, Time};

const G10: Rate = Rate::from_gbps(10);
const MTU: u64 = 1_000;
const WIRE: u64 = 1_048;

/// Returns flows of `n` packets each to the last of some hosts on long links, in a network that drops.
fn lossy(n_senders: u32, delay: Time, n_packets: u64) -> SimConfig {
    let topology = Star { hosts: n_senders + 1, rate: G10, delay }.build();
    let flows = (0..n_senders).map(|i| flow(i, n_senders, n_packets * MTU, Time::ZERO)).collect();
    let mut c = config(topology, algorithm("line-rate"), flows);
    (c.fabric.pfc, c.fabric.ingress_alpha) = (Pfc::Off, None);
    (c.transport.recovery, c.transport.rto) = (Recovery::SelectiveRepeat, Some(Time::from_ms(1)));
    c
}

/// Returns the completion time of `n_packets` packets that are all lost at first, as their link fails while all are on
/// it.
fn after_losing_all(n_packets: u64, rto_low: Option<Time>) -> Time {
    let mut c = lossy(1, Time::from_us(50), n_packets);
    c.transport.rto_low = rto_low;
    let port = c.topology.port(c.flows[0].src, c.topology.node("sw0").expect("the switch")).expect("neighbours");
    let flap = Flap { down_at: Time::from_us(20), up_at: Time::from_us(21), period: None };
    c.faults = vec![FaultConfig { ports: vec![port], flap: Some(flap), ..FaultConfig::NONE }];
    let (recorder, totals) = run(c);
    assert_eq!(totals.drops.total(), n_packets);
    recorder.flows[0].fct.expect("it is done")
}

/// Up to three packets in flight are sent again after the shorter timeout, more after the longer one: to the
/// picosecond.
#[test]
fn few_packets_in_flight_time_out_sooner() {
    let low = Time::from_us(400);
    for n_packets in 1..=6 {
        let saved = after_losing_all(n_packets, None) - after_losing_all(n_packets, Some(low));
        let expected = if n_packets <= 3 { Time::from_us(600) } else { Time::ZERO };
        assert_eq!(saved, expected, "{n_packets} packets");
    }
}

/// Every packet beyond a gap reports it, and one recovery repairs it.
#[test]
fn a_gap_is_one_recovery_however_many_packets_report_it() {
    let mut c = lossy(1, Time::from_us(5), 500);
    let port = c.topology.port(c.flows[0].src, c.topology.node("sw0").expect("the switch")).expect("neighbours");
    let flap = Flap { down_at: Time::from_us(100), up_at: Time::from_ps(100_000_001), period: None };
    c.faults = vec![FaultConfig { ports: vec![port], flap: Some(flap), ..FaultConfig::NONE }];
    let (recorder, totals) = run(c);
    let flow = &recorder.flows[0];
    assert!(3 < totals.drops.total(), "what was on the link: {:?}", totals.drops);
    assert_eq!((flow.recoveries, flow.timeouts), (1, 0));
    assert_eq!(flow.retransmitted_bytes, totals.drops.total() * MTU);
}

/// At most a bandwidth-delay product of each flow is in the network: 25 senders at line rate fill a queue of 25 times
/// as much, where without a limit they fill one of nearly all that they send. A flow alone takes as long as without a
/// limit.
#[test]
fn no_more_than_a_bandwidth_delay_product_is_in_flight() {
    let largest_queue = |n_senders: u32, window| {
        let mut c = lossy(n_senders, Time::from_us(2), 1_000);
        (c.transport.window, c.fabric.buffer) = (window, Bytes::new(100_000_000));
        probe(&mut c, n_senders + 1, n_senders, Time::from_us(1));
        let (recorder, totals) = run(c);
        assert_eq!(totals.drops.total(), 0);
        let fct = recorder.flows[0].fct.expect("it is done");
        (recorder.ports.iter().map(|sample| sample.qlen_bytes).max().expect("samples"), fct)
    };
    // 8 us of propagation, two packets and two acknowledgments: 9.8 us, or 12 packets.
    let bdp = 12 * WIRE;
    let (limited, _) = largest_queue(25, WindowRule::Bdp);
    assert!((25 * bdp - bdp - 2 * WIRE..=25 * bdp).contains(&limited), "{limited} bytes of {}", 25 * bdp);
    let (unlimited, _) = largest_queue(25, WindowRule::None);
    assert!(20_000 * WIRE < unlimited, "{unlimited}");
    assert_eq!(largest_queue(1, WindowRule::Bdp).1, largest_queue(1, WindowRule::None).1);
}

/// In an incast that drops, IRN sends again just what was lost, and all arrives without PFC.
#[test]
fn what_was_lost_is_sent_again_once() {
    let mut c = lossy(16, Time::from_us(2), 200);
    (c.transport.window, c.transport.rto_low) = (WindowRule::Bdp, Some(Time::from_us(100)));
    c.transport.rto = Some(Time::from_us(320));
    c.fabric.buffer = Bytes::new(100_000);
    let (recorder, totals) = run(c);
    assert_eq!(totals.flows_done, 16);
    assert!(0 < totals.drops.of(DropCause::BufferFull));
    let again: u64 = recorder.flows.iter().map(|f| f.retransmitted_bytes).sum();
    let lost = totals.dropped_bytes / WIRE * MTU;
    assert!(lost <= again, "{again} sent again for {lost} lost");
    // Packets that are lost twice are found by a timeout, after which all that is not acknowledged counts as lost.
    assert!(again < lost + lost / 2, "{again} sent again for {lost} lost");
}
