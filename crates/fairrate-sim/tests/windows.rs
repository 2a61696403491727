//! The number of packets that a window lets through, and the utilisation of a link by a paced window.

use crate::common::{algorithm_with, config, flow, run, steady};
use fairrate_control::{AlgorithmConfig, Allowance, RawValue};
use fairrate_sim::topology::{Dumbbell, LeafSpine, Star};
use fairrate_sim::{Recovery, StopRule};
use fairrate_units::{Bytes, Rate, Time};

/// Returns an algorithm with a window that never changes.
fn fixed(cwnd: u64) -> AlgorithmConfig {
    steady(move |flow| Allowance { cwnd: Bytes::new(cwnd), rate: flow.line_rate, timer: Time::MAX })
}

/// Returns the number of packets of 1,000 bytes that a flow sends in a round trip of a little more than 200 us.
fn packets_a_round_trip(cwnd: u64, overshoot: bool) -> u64 {
    let topology = Star { hosts: 2, rate: Rate::from_gbps(25), delay: Time::from_us(50) }.build();
    let mut c = config(topology, fixed(cwnd), vec![flow(0, 1, u64::MAX, Time::ZERO)]);
    c.transport.window_overshoot = overshoot;
    c.stop = StopRule { at: Some(Time::from_us(190)), when_flows_done: false };
    run(c).1.sent_bytes / 1_048
}

#[test]
fn a_packet_goes_if_it_fits_into_the_window() {
    let packets = |overshoot| [0, 500, 1_000, 1_010, 2_000, 2_999, 3_000].map(|w| packets_a_round_trip(w, overshoot));
    assert_eq!(packets(false), [1, 1, 1, 1, 2, 2, 3]);
    // As in ns-3: a window of 1.01 packets lets two into flight.
    assert_eq!(packets(true), [1, 1, 1, 2, 2, 3, 3]);
}

/// The last packet of a flow has only the remaining bytes: 1,010 bytes are sent at once, and 10,000 bytes take one
/// round trip for each window.
#[test]
fn a_short_packet_needs_little_room() {
    for (bytes, cwnd, round_trips) in [(1_010, 1_010, 1), (1_010, 1_009, 2), (10_000, 2_500, 5), (10_000, 10_000, 1)] {
        let topology = Star { hosts: 2, rate: Rate::from_gbps(25), delay: Time::from_us(50) }.build();
        let mut c = config(topology, fixed(cwnd), vec![flow(0, 1, bytes, Time::ZERO)]);
        c.transport.recovery = Recovery::SelectiveRepeat;
        let fct = run(c).0.flows[0].fct.expect("it is done");
        // 100 us one way and some serialisation, and 200 us for every further round trip.
        assert_eq!(fct.as_ns() / 100_000, 2 * round_trips - 1, "{bytes} bytes in {cwnd}: {fct}");
    }
}

/// Returns the share of its link that a single flow of DCTCP with pacing uses once its window has grown.
fn paced_use(delay: Time, within_rack: bool) -> f64 {
    let rate = Rate::from_gbps(25);
    let topology = if within_rack {
        let (host_rate, uplink_rate) = (rate, Rate::from_gbps(100));
        LeafSpine {
            leaves: 2,
            spines: 1,
            hosts_per_leaf: 2,
            host_rate,
            host_delay: delay,
            uplink_rate,
            uplink_delay: delay,
        }
        .build()
    } else {
        let (host_rate, bottleneck_rate) = (Rate::from_gbps(100), rate);
        Dumbbell { left: 1, right: 1, host_rate, host_delay: delay, bottleneck_rate, bottleneck_delay: delay }.build()
    };
    let cc = algorithm_with("dctcp", &[("pacing", RawValue::Bool(true)), ("initial_window", RawValue::Text("10mtu"))]);
    let mut c = config(topology, cc, vec![flow(0, 1, u64::MAX, Time::ZERO)]);
    let at = |ms| StopRule { at: Some(Time::from_ms(ms)), when_flows_done: false };
    let sent = [150, 200].map(|ms| {
        c.stop = at(ms);
        run(c.clone()).1.sent_bytes
    });
    (sent[1] - sent[0]) as f64 / rate.bytes_in(Time::from_ms(50)).as_f64()
}

#[test]
fn a_paced_window_fills_its_link() {
    for us in [1, 13] {
        for within_rack in [false, true] {
            let used = paced_use(Time::from_us(us), within_rack);
            assert!(0.99 < used, "{us} us, within a rack: {within_rack}: {used}");
        }
    }
}

#[test]
#[should_panic(expected = "is too long")]
fn a_packet_that_no_length_fits_is_an_error() {
    let topology = Star { hosts: 2, rate: Rate::from_gbps(25), delay: Time::from_us(1) }.build();
    let mut c = config(topology, fixed(1_000), vec![flow(0, 1, 900_000, Time::ZERO)]);
    c.transport.mtu = Bytes::new(65_500);
    run(c);
}
