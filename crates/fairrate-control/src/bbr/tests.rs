use super::*;
use crate::test_flow::{acked, flow_25g};

/// Returns an acknowledgment at 3,125 bytes per microsecond and 8 us: a bandwidth-delay product of 25,000 bytes. The
/// data was sent when nothing had been delivered, so it belongs to the first round.
fn ack(bbr: &Model, now_us: u64, delivered: u64, in_flight: u64, gbps: u64) -> Ack<'static> {
    let (now, ack_seq) = (Time::from_us(now_us), bbr.delivered + delivered);
    Ack {
        now,
        newly_acked: delivered,
        delivered,
        in_flight,
        delivery_rate: Rate::from_gbps(gbps),
        prior_delivered: Some(0),
        ..acked(ack_seq, 8_000, ack_seq + in_flight)
    }
}

fn feed(bbr: &mut Model, now_us: u64, delivered: u64, in_flight: u64, gbps: u64) -> Allowance {
    let a = ack(bbr, now_us, delivered, in_flight, gbps);
    bbr.on_ack(&a)
}

/// Feeds an acknowledgment of data sent after the round began, which ends the round.
fn end_round(bbr: &mut Model, now_us: u64, delivered: u64, in_flight: u64, gbps: u64) -> Allowance {
    let a = Ack { prior_delivered: Some(bbr.round.end), ..ack(bbr, now_us, delivered, in_flight, gbps) };
    bbr.on_ack(&a)
}

/// Returns a flow in PROBE_BW with 25 Gb/s of payload and 8 us, in phase `phase` since 1 ms.
fn probing(phase: usize) -> Model {
    let mut bbr = *BbrConfig { extra_acked_gain: 0.0, ..BbrConfig::default() }.build(&flow_25g()).0;
    bbr.on_start(Time::ZERO);
    feed(&mut bbr, 1_000, 1_000, 25_000, 25);
    (bbr.mode, bbr.pipe_is_full, bbr.phase) = (Mode::ProbeBw, true, phase);
    (bbr.phase_began, bbr.cwnd) = (Time::from_us(1_000), 50_000.0);
    bbr
}

#[test]
fn startup_doubles_until_the_bandwidth_stops_growing_then_drains() {
    let mut bbr = *BbrConfig::default().build(&flow_25g()).0;
    let a = bbr.on_start(Time::ZERO);
    // 2.885 x 10,000 bytes in 8 us, with 1,056/1,000 for headers: 30.5 Gb/s, above the line.
    assert_eq!((a.cwnd, a.rate), (Bytes::new(10_000), Rate::from_gbps(25)));
    // A round every 8 us; 5 Gb/s, 10, then 12: the first two are growth; the third and two more grow by less than a
    // quarter.
    for (round, gbps) in [(1, 5), (2, 10), (3, 12), (4, 12)] {
        end_round(&mut bbr, 8 * round, 11_000, 10_000, gbps);
        assert_eq!((bbr.mode, bbr.round.number), (Mode::Startup, round), "round {round}");
    }
    assert_eq!((bbr.full_bandwidth, bbr.full_rounds), (1.25e9, 2));
    // 12 Gb/s in 8 us: 12,000 bytes and three packets. With 20,000 in flight, there is a queue of 5,000.
    end_round(&mut bbr, 40, 11_000, 20_000, 12);
    assert_eq!((bbr.mode, bbr.inflight(1.0)), (Mode::Drain, 15_000.0));
    // Pacing at 12 x 1.056 x 0.99/2.885 Gb/s.
    let rate = bbr.allowance().rate.as_gbps_f64();
    assert!((rate - 12.0 * 1.056 * 0.99 / 2.885).abs() < 1e-6, "{rate}");
    feed(&mut bbr, 41, 4_000, 16_000, 12);
    assert_eq!(bbr.mode, Mode::Drain);
    feed(&mut bbr, 42, 1_000, 15_000, 12);
    assert_eq!(bbr.mode, Mode::ProbeBw);
    // Two bandwidth-delay products and three packets, or two more in the probing phase.
    assert!([27_000.0, 29_000.0].contains(&bbr.inflight(2.0)));
}

#[test]
fn samples_of_a_flow_with_nothing_to_send_count_only_upwards() {
    let mut bbr = probing(2);
    assert_eq!(bbr.bandwidth.max(), 3.125e9);
    for (gbps, now) in [(10, 3.125e9), (30, 3.75e9)] {
        let a = Ack { app_limited: true, ..ack(&bbr, 1_001, 1_000, 25_000, gbps) };
        bbr.on_ack(&a);
        assert_eq!(bbr.bandwidth.max(), now);
    }
}

#[test]
fn the_maximum_is_that_of_ten_rounds() {
    let mut filter = MaxFilter::default();
    filter.take(1, 5.0);
    filter.take(2, 3.0);
    filter.take(10, 1.0);
    assert_eq!(filter.max(), 5.0);
    filter.take(11, 1.0);
    assert_eq!(filter.max(), 3.0);
    filter.take(1_000, 2.0);
    assert_eq!(filter.max(), 2.0);
}

#[test]
fn a_probe_fills_the_pipe_its_drain_undoes_that_and_six_rounds_cruise() {
    let mut bbr = probing(0);
    // 8 us are over, but 1.25 x 25,000 + 5 packets are not in flight yet.
    feed(&mut bbr, 1_009, 1_000, 34_000, 25);
    assert_eq!((bbr.phase, bbr.pacing_gain()), (0, 1.25));
    feed(&mut bbr, 1_010, 1_000, 36_000, 25);
    assert_eq!((bbr.phase, bbr.pacing_gain()), (1, 0.75));
    // The drain ends before 8 us are over, with 25,000 + 3 packets in flight.
    feed(&mut bbr, 1_012, 1_000, 28_000, 25);
    assert_eq!(bbr.phase, 1);
    feed(&mut bbr, 1_013, 1_000, 27_000, 25);
    assert_eq!((bbr.phase, bbr.pacing_gain()), (2, 1.0));
    // Then a phase every 8 us: after exactly 8 us it is not over yet.
    feed(&mut bbr, 1_021, 1_000, 27_000, 25);
    assert_eq!(bbr.phase, 2);
    for i in 1..=6 {
        feed(&mut bbr, 1_013 + 9 * i, 1_000, 27_000, 25);
    }
    assert_eq!(bbr.phase, 0);
    // 25 x 1.056 x 0.99 x 1.25 Gb/s is above the line rate.
    assert_eq!(bbr.allowance().rate, Rate::from_gbps(25));
}

#[test]
fn the_cycle_starts_anywhere_but_in_the_drain() {
    let mut counts = [0; CYCLE.len()];
    for seed in 0..700 {
        let mut bbr = *BbrConfig::default().build(&FlowContext { seed, ..flow_25g() }).0;
        bbr.enter_probe_bw(Time::ZERO);
        counts[bbr.phase] += 1;
    }
    // 100 each; 40 is more than four standard deviations, sqrt(700 x 1/7 x 6/7) = 9.3.
    assert_eq!(counts[1], 0);
    assert!(counts.iter().enumerate().all(|(phase, n)| phase == 1 || (60..140).contains(n)), "{counts:?}");
}

#[test]
fn an_old_rtt_is_measured_anew_with_four_packets() {
    let mut bbr = probing(2);
    // 10 s after the last smallest RTT, at 1 ms.
    feed(&mut bbr, 10_001_000, 1_000, 40_000, 25);
    assert_eq!(bbr.mode, Mode::ProbeBw);
    let slow = Ack { rtt: Time::from_us(9), ..ack(&bbr, 10_001_001, 1_000, 40_000, 25) };
    // That sample set it again; 10 s later 9 us are accepted, and the window is that of PROBE_RTT.
    let late = Ack { now: Time::from_us(20_001_001), ..slow };
    assert_eq!(bbr.on_ack(&late).cwnd, Bytes::new(4_000));
    assert_eq!((bbr.mode, bbr.min_rtt), (Mode::ProbeRtt, Some(Time::from_us(9))));
    // 200 ms from when four packets are in flight, and a round; low samples do not count meanwhile.
    feed(&mut bbr, 20_002_000, 36_000, 4_000, 1);
    end_round(&mut bbr, 20_102_000, 5_000, 4_000, 1);
    assert_eq!((bbr.mode, bbr.bandwidth.max()), (Mode::ProbeRtt, 3.125e9));
    assert_eq!(feed(&mut bbr, 20_202_000, 1_000, 4_000, 1).cwnd, Bytes::new(4_000));
    let a = feed(&mut bbr, 20_202_001, 1_000, 4_000, 1);
    assert_eq!((bbr.mode, bbr.bandwidth.max()), (Mode::ProbeBw, 3.125e9));
    assert!(Bytes::new(50_000) <= a.cwnd, "{a:?}");
}

#[test]
fn a_gap_conserves_packets_for_a_round_and_a_timeout_starts_from_one() {
    let mut bbr = probing(2);
    feed(&mut bbr, 1_001, 1_000, 40_000, 25);
    assert_eq!((bbr.cwnd, bbr.snd_nxt), (51_000.0, 42_000));
    // The recovery begins with the next acknowledgment, which reports three packets lost: the window is the bytes in
    // flight plus one packet for the packet that arrived, in order or not.
    assert_eq!(bbr.on_loss(Time::from_us(1_001), Loss::Gap).cwnd, Bytes::new(51_000));
    let a = Ack { lost: 3_000, newly_acked: 0, ..ack(&bbr, 1_002, 1_000, 36_000, 25) };
    assert_eq!(bbr.on_ack(&a).cwnd, Bytes::new(37_000));
    // A packet for each packet, less the lost bytes; a second gap changes nothing.
    let a = Ack { lost: 2_000, newly_acked: 0, ..ack(&bbr, 1_003, 1_000, 34_000, 25) };
    assert_eq!(bbr.on_ack(&a).cwnd, Bytes::new(35_000));
    assert_eq!(bbr.on_loss(Time::from_us(1_003), Loss::Gap).cwnd, Bytes::new(35_000));
    // A round later growth continues, and at byte 42,000 the window is restored: 51,000.
    let a = Ack { prior_delivered: Some(bbr.round.end), ..ack(&bbr, 1_009, 40_000, 30_000, 25) };
    assert_eq!(bbr.on_ack(&Ack { ack_seq: 30_000, ..a }).cwnd, Bytes::new(53_000));
    bbr.cwnd = 45_000.0;
    let a = ack(&bbr, 1_010, 1_000, 30_000, 25);
    assert_eq!(bbr.on_ack(&Ack { ack_seq: 42_000, ..a }).cwnd, Bytes::new(52_000));
    // The timeout, with bytes up to 75,000 sent: one packet, then at least four, and 52,000 at the end, plus the
    // delivered bytes, up to two bandwidth-delay products and three packets.
    assert_eq!(bbr.on_loss(Time::from_us(1_100), Loss::Timeout).cwnd, Bytes::new(1_000));
    let a = ack(&bbr, 1_108, 1_000, 0, 25);
    assert_eq!(bbr.on_ack(&Ack { ack_seq: 43_000, ..a }).cwnd, Bytes::new(4_000));
    let a = ack(&bbr, 1_116, 2_000, 0, 25);
    assert_eq!(bbr.on_ack(&Ack { ack_seq: 75_000, ..a }).cwnd, Bytes::new(53_000));
}

#[test]
fn what_comes_in_bunches_has_room_in_the_window() {
    let mut aggregation = Aggregation::new(Time::ZERO);
    // 3,125 bytes are expected per microsecond. 10,000 in 8 us are fewer: a new epoch begins with them.
    aggregation.take(Time::from_us(8), 10_000.0, 3.125e9, 1e9, 1e9);
    assert_eq!(aggregation.max(), 10_000.0);
    // 20,000 more a microsecond later: 30,000 for 3,125.
    aggregation.take(Time::from_us(9), 20_000.0, 3.125e9, 1e9, 1e9);
    assert_eq!(aggregation.max(), 26_875.0);
    // The largest of five to ten rounds counts, and never more than a window.
    (0..9).for_each(|_| aggregation.begin_round());
    assert_eq!(aggregation.max(), 26_875.0);
    aggregation.begin_round();
    aggregation.take(Time::from_us(10), 50_000.0, 3.125e9, 12_000.0, 1e9);
    assert_eq!(aggregation.max(), 12_000.0);
    // In the window, once the pipe is full: two bandwidth-delay products, three packets and the excess.
    let mut bbr = probing(2);
    bbr.config.extra_acked_gain = 1.0;
    bbr.aggregation = aggregation;
    assert_eq!(bbr.inflight(2.0) + bbr.aggregation_room(), 65_000.0);
    bbr.pipe_is_full = false;
    assert_eq!(bbr.aggregation_room(), 0.0);
}

#[test]
fn a_delivery_that_is_no_sample_ends_no_round() {
    let mut bbr = probing(2);
    let (round, bandwidth) = (bbr.round.number, bbr.bandwidth.max());
    end_round(&mut bbr, 1_009, 1_000, 25_000, 0);
    assert_eq!((bbr.round.number, bbr.bandwidth.max()), (round, bandwidth));
    end_round(&mut bbr, 1_010, 1_000, 25_000, 20);
    assert_eq!(bbr.round.number, round + 1);
}

#[test]
fn where_the_transport_knows_no_rate_a_round_is_the_sample() {
    let mut bbr = *BbrConfig::default().build(&flow_25g()).0;
    bbr.on_start(Time::ZERO);
    let mut feed = |now_us, delivered| {
        let a = Ack { prior_delivered: None, ..ack(&bbr, now_us, delivered, 19_000, 0) };
        bbr.on_ack(&a);
        (bbr.bandwidth.max(), bbr.round.number)
    };
    // 1,000 bytes in the first 8 us, then 20,000 in the next 8: 2.5 GB/s.
    assert_eq!(feed(8, 1_000).0, 1.25e8);
    feed(12, 10_000);
    assert_eq!(feed(16, 10_000), (2.5e9, 2));
}
