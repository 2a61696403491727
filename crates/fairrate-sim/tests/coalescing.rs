//! Coalesced acknowledgments of RDMA: how many there are, and that nothing waits for one that does not come.

use crate::common::{algorithm, config, flow, probe, run};
use fairrate_control::ALGORITHMS;
use fairrate_sim::topology::Star;
use fairrate_sim::{DropCause, Pfc, Recovery, SimConfig, WindowRule};
use fairrate_units::{Bytes, Rate, Time};

const MTU: u64 = 1_000;
const ACK: u64 = 60;

/// Returns flows of some packets to the last of some hosts.
fn star(n_senders: u32, n_packets: u64, cc: &str, every: Option<Bytes>) -> SimConfig {
    let topology = Star { hosts: n_senders + 1, rate: Rate::from_gbps(10), delay: Time::from_us(1) }.build();
    let flows = (0..n_senders).map(|i| flow(i, n_senders, n_packets * MTU, Time::ZERO)).collect();
    let mut c = config(topology, algorithm(cc), flows);
    c.transport.ack_every = every;
    c
}

/// Returns the number of acknowledgments of a flow of 1,000 packets, and its completion time.
fn acks_of_one(every: Option<Bytes>, window: WindowRule) -> (u64, Time) {
    let mut c = star(1, 1_000, "line-rate", every);
    c.transport.window = window;
    probe(&mut c, 1, 2, Time::from_us(1));
    let (recorder, _) = run(c);
    let bytes = recorder.ports.last().expect("samples").tx_bytes;
    assert_eq!(bytes % ACK, 0);
    (bytes / ACK, recorder.flows[0].fct.expect("it is done"))
}

/// An acknowledgment for each 16 packets, and one for the last eight; or for the last alone. The flow is done at the
/// same time.
#[test]
fn a_flow_alone_is_acknowledged_once_in_so_many_bytes() {
    let (each, fct) = acks_of_one(None, WindowRule::None);
    assert_eq!(each, 1_000);
    assert_eq!(acks_of_one(Some(Bytes::new(16 * MTU)), WindowRule::None), (63, fct));
    assert_eq!(acks_of_one(Some(Bytes::new(16 * MTU - 1)), WindowRule::None), (63, fct));
    assert_eq!(acks_of_one(Some(Bytes::MAX), WindowRule::None), (1, fct));
}

/// A window of four packets is below the 16 that are acknowledged together, and the packet that fills it asks.
#[test]
fn a_packet_that_fills_the_window_asks() {
    let (n, fct) = acks_of_one(Some(Bytes::new(16 * MTU)), WindowRule::Fixed(Bytes::new(4 * MTU)));
    assert_eq!(n, 250);
    // A round: four packets of 838.4 ns, the last once more behind the switch, 4 us of propagation, and an
    // acknowledgment of 48 ns twice. The flow is done without the last way back.
    assert_eq!(fct, Time::from_ns(250 * 8_288 - 2_096));
}

/// All algorithms deliver everything, through pauses and, with both ways of recovery, through losses.
#[test]
fn nothing_waits_for_an_acknowledgment_that_does_not_come() {
    for info in ALGORITHMS.iter().filter(|a| !["homa", "nscc", "rccc", "eqds", "ndp"].contains(&a.name)) {
        for recovery in [None, Some(Recovery::GoBackN), Some(Recovery::SelectiveRepeat)] {
            for every in [Bytes::new(5_000), Bytes::MAX] {
                let mut c = star(12, 150, info.name, Some(every));
                c.transport.rto = Some(Time::from_us(500));
                if let Some(recovery) = recovery {
                    (c.transport.recovery, c.fabric.pfc, c.fabric.ingress_alpha) = (recovery, Pfc::Off, None);
                    c.fabric.buffer = Bytes::new(100_000);
                }
                if info.name == "flowtune" {
                    c.allocator = Some(crate::common::allocator(c.flows[0].src));
                }
                c.stop.at = Some(Time::from_ms(500));
                let (recorder, totals) = run(c);
                assert_eq!(totals.flows_done, 12, "{} {recovery:?} {every}", info.name);
                assert!(recorder.flows.iter().all(|f| f.delivered_bytes == 150 * MTU));
                if recovery.is_none() {
                    assert_eq!(totals.drops.of(DropCause::BufferFull), 0);
                }
            }
        }
    }
}
