use super::*;
use crate::test_flow::{acked, flow_25g};

const RTT_NS: u64 = 100_000_000;

/// Returns a flow of 1,000-byte segments in congestion avoidance.
fn cubic_at(cwnd: f64, w_max: f64, config: &CubicConfig) -> Cubic {
    let mut cubic = config.build(&flow_25g());
    (cubic.cwnd, cubic.w_max, cubic.cwnd_prior, cubic.ssthresh) = (cwnd, w_max, w_max, cwnd);
    cubic
}

/// Returns the acknowledgment of one segment at `ms`, with the window full.
fn ack(cubic: &Cubic, ms: u64) -> Ack<'static> {
    let in_flight = (cubic.cwnd * 1_000.0) as u64;
    let ack_seq = cubic.una + 1_000;
    let now = Time::from_ms(ms);
    Ack { now, newly_acked: 1_000, in_flight, ..acked(ack_seq, RTT_NS, ack_seq + in_flight) }
}

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() < 1e-6 * b
}

#[test]
fn an_idle_window_halves_and_a_new_stage_begins() {
    let mut cubic = cubic_at(40.0, 50.0, &CubicConfig::default());
    let a = ack(&cubic, 1);
    cubic.on_ack(&a);
    assert!(cubic.epoch.is_some());
    cubic.cwnd = 40.0;
    assert_eq!(cubic.on_idle(Time::from_ms(9), 1).map(|a| a.cwnd), Some(Bytes::new(20_000)));
    assert_eq!((cubic.ssthresh, cubic.epoch.is_none()), (40.0, true));
    assert_eq!(cubic.on_idle(Time::from_ms(99), 9).map(|a| a.cwnd), Some(Bytes::new(10_000)));
}

#[test]
fn slow_start_the_cut_and_the_timeout_by_hand() {
    let mut cubic = CubicConfig::default().build(&flow_25g());
    assert_eq!(cubic.on_start(Time::ZERO).cwnd, Bytes::new(10_000));
    let a = ack(&cubic, 1);
    assert_eq!(cubic.on_ack(&a).cwnd, Bytes::new(11_000));
    // At most two segments per acknowledgment; no growth while the window is not full.
    let a = Ack { newly_acked: 4_000, ..ack(&cubic, 2) };
    assert_eq!(cubic.on_ack(&a).cwnd, Bytes::new(13_000));
    let a = Ack { ack_seq: 14_000, in_flight: 3_000, ..ack(&cubic, 3) };
    assert_eq!(cubic.on_ack(&a).cwnd, Bytes::new(13_000));
    // 13 x 0.7 = 9.1 segments. No growth until the data in flight, up to byte 16,000, is acknowledged.
    assert_eq!(cubic.on_loss(Time::from_ms(3), Loss::Gap).cwnd, Bytes::new(9_100));
    assert_eq!((cubic.w_max, cubic.recover), (13.0, Some(16_000)));
    assert_eq!(cubic.on_loss(Time::from_ms(3), Loss::Gap).cwnd, Bytes::new(9_100));
    let a = Ack { ack_seq: 5_000, ..ack(&cubic, 4) };
    assert_eq!(cubic.on_ack(&a).cwnd, Bytes::new(9_100));
    // A timeout: one segment, slow start up to 9.1 x 0.7 = 6.37, and no memory of the plateau.
    assert_eq!(cubic.on_loss(Time::from_ms(9), Loss::Timeout).cwnd, Bytes::new(1_000));
    assert_eq!(cubic.w_max, 0.0);
    for ms in 10..16 {
        let a = ack(&cubic, ms);
        cubic.on_ack(&a);
    }
    assert_eq!(cubic.cwnd, 7.0);
    let a = ack(&cubic, 16);
    cubic.on_ack(&a);
    let epoch = cubic.epoch.expect("avoidance has begun");
    assert_eq!((epoch.k, epoch.plateau), (0.0, 7.0));
}

#[test]
fn the_curve_by_hand() {
    // W_max 100 segments, cut to 70: K = cbrt(30/0.4) = 4.2171633 s.
    let mut cubic = cubic_at(70.0, 100.0, &CubicConfig { reno_friendly: false, ..CubicConfig::default() });
    let a = ack(&cubic, 1_000);
    cubic.on_ack(&a);
    let epoch = cubic.epoch.expect("avoidance has begun");
    assert!(close(epoch.k, 4.217_163_3));
    // Target at t = 0 + 0.1: 100 + 0.4 (0.1 - K)^3 = 100 - 0.4 x 4.1171633^3 = 72.083991; the window grows by a
    // seventieth of the difference.
    assert!(close(cubic.w_cubic(&epoch, 0.1), 72.083_991));
    assert!(close(cubic.cwnd, 70.0 + 2.083_991 / 70.0));
    // The plateau at t = K; at 2K the curve is as far above it as it began below.
    assert_eq!(cubic.w_cubic(&epoch, epoch.k), 100.0);
    assert!(close(cubic.w_cubic(&epoch, 2.0 * epoch.k), 130.0));
    // 50 ms later t is 0.05; 10 s later only a round trip, 0.1, is added: the rest is idle time.
    let a = ack(&cubic, 1_050);
    cubic.on_ack(&a);
    assert!(close(cubic.epoch.expect("it goes on").t, 0.05));
    let a = ack(&cubic, 11_050);
    cubic.on_ack(&a);
    assert!(close(cubic.epoch.expect("it goes on").t, 0.15));
    // Never by more than a half: far beyond the plateau, the target is 1.5 windows.
    let before = cubic.cwnd;
    cubic.epoch = Some(Epoch { t: 1_000.0, ..epoch });
    let a = ack(&cubic, 11_051);
    cubic.on_ack(&a);
    assert!(close(cubic.cwnd, before + 0.5));
}

#[test]
fn the_reno_friendly_region_by_hand() {
    // alpha = 3 x 0.3/1.7 = 0.52941176. In 100 ms the cubic curve does not move: W_est rules.
    let mut cubic = cubic_at(7.0, 10.0, &CubicConfig::default());
    let a = ack(&cubic, 1);
    cubic.on_ack(&a);
    assert!(close(cubic.cwnd, 7.0 + 0.529_411_76 / 7.0));
    // Above the window before the loss the slope is Reno's.
    cubic.cwnd_prior = 7.0;
    let before = cubic.cwnd;
    let a = ack(&cubic, 1);
    cubic.on_ack(&a);
    assert!(close(cubic.cwnd, before + 1.0 / before));
}

#[test]
fn growth_as_in_linux_by_hand() {
    let config = CubicConfig { form: CubicForm::Linux, ..CubicConfig::default() };
    // Below the plateau, one smallest RTT ahead: K = cbrt(30/0.4) s, 2.083991 segments a round trip as in RFC 9438.
    let mut cubic = cubic_at(70.0, 100.0, &CubicConfig { reno_friendly: false, ..config.clone() });
    let a = ack(&cubic, 1_000);
    cubic.on_ack(&a);
    assert!(close(cubic.cwnd, 70.0 + 2.083_991 / 70.0));
    // At the plateau, where the curve is flat: a hundredth of a segment per round trip.
    let mut cubic = cubic_at(100.0, 90.0, &CubicConfig { reno_friendly: false, ..config.clone() });
    cubic.epoch = Some(Epoch { t: 0.0, k: 0.1, plateau: 100.0, w_est: 100.0 });
    let a = ack(&cubic, 0);
    cubic.on_ack(&a);
    assert!(close(cubic.cwnd, 100.0 + 0.01 / 100.0));
    // Without a plateau, after a timeout: a twentieth of a segment per segment.
    let mut cubic = cubic_at(40.0, 0.0, &CubicConfig { reno_friendly: false, ..config.clone() });
    let a = ack(&cubic, 0);
    cubic.on_ack(&a);
    assert!(close(cubic.cwnd, 40.05));
    // Above the window before the loss Reno's slope stays 0.52941176: W_est is 8 + 0.52941176/7, 1.0756303 above.
    let mut cubic = cubic_at(7.0, 10.0, &config);
    (cubic.cwnd_prior, cubic.epoch) = (7.0, Some(Epoch { t: 0.0, k: 1.95743, plateau: 10.0, w_est: 8.0 }));
    let a = ack(&cubic, 0);
    cubic.on_ack(&a);
    assert!(close(cubic.cwnd, 7.0 + (1.0 + 0.529_411_76 / 7.0) / 7.0), "{}", cubic.cwnd);
}

#[test]
fn losing_ground_lowers_the_plateau() {
    let mut cubic = cubic_at(80.0, 100.0, &CubicConfig::default());
    cubic.on_loss(Time::ZERO, Loss::Gap);
    // 80 x 1.7/2 and 80 x 0.7.
    assert_eq!((cubic.w_max, cubic.cwnd), (80.0 * 1.7 / 2.0, 56.0));
    // With the β of old code and without fast convergence: 80 and 64.
    let old = CubicConfig { beta: 0.8, fast_convergence: false, ..CubicConfig::default() };
    let mut cubic = cubic_at(80.0, 100.0, &old);
    cubic.on_loss(Time::ZERO, Loss::Gap);
    assert_eq!((cubic.w_max, cubic.cwnd), (80.0, 64.0));
}

#[test]
fn marks_cut_once_a_window() {
    let mut cubic = cubic_at(20.0, 20.0, &CubicConfig { ecn: true, ..CubicConfig::default() });
    let marked = |cubic: &Cubic| Ack { ecn_marked: true, ..ack(cubic, 1) };
    let a = marked(&cubic);
    assert_eq!(cubic.on_ack(&a).cwnd, Bytes::new(14_000));
    // Bytes up to 21,000 were in flight. A loss among them does not cut again, since the mark has cut already.
    assert_eq!(cubic.recover, Some(21_000));
    cubic.on_loss(Time::ZERO, Loss::Gap);
    for ack_seq in [2_000, 21_000] {
        let a = Ack { ack_seq, ..marked(&cubic) };
        cubic.on_ack(&a);
        assert!(cubic.cwnd < 14.1, "{}", cubic.cwnd);
    }
    let a = marked(&cubic);
    assert!(cubic.on_ack(&a).cwnd < Bytes::new(10_000));
}

#[test]
fn hystart_leaves_slow_start_on_rising_delay() {
    let config = CubicConfig { hystart: true, initial_window: 16, ..CubicConfig::default() };
    let mut cubic = config.build(&flow_25g());
    // The first round has 100 ms; the bound is an eighth, 12.5 ms. Eight samples of the next round make the test.
    for (n, rtt_ms, ends) in [(17, 100, false), (7, 113, false), (1, 113, true)] {
        for _ in 0..n {
            let a = Ack { rtt: Time::from_ms(rtt_ms), ..ack(&cubic, 1) };
            cubic.on_ack(&a);
        }
        assert_eq!(cubic.ssthresh < f64::INFINITY, ends, "{cubic:?}");
    }
}

#[test]
fn hystart_leaves_slow_start_on_a_long_train() {
    let config = CubicConfig { hystart: true, hystart_trains: true, initial_window: 16, ..CubicConfig::default() };
    // Half of the smallest round trip of 10 ms and of Linux's millisecond: 5.5 ms from the round's first acknowledgment
    // on.
    for (gap_ms, left_after) in [(1, Some(6)), (2, Some(6)), (3, None)] {
        let mut cubic = config.build(&flow_25g());
        let left = (0..9).map(|n| n * gap_ms).find(|at| {
            // All in the same round: data sent after its start is not acknowledged yet.
            let a = Ack { now: Time::from_ms(100 + at), rtt: Time::from_ms(10), snd_nxt: u64::MAX, ..ack(&cubic, 1) };
            cubic.on_ack(&a);
            cubic.ssthresh < f64::INFINITY
        });
        assert_eq!(left, left_after, "gaps of {gap_ms} ms");
    }
}

/// A path with an unloaded RTT of 10 ms counts as full at an RTT of 20 ms, which is above 10 ms by more than an eighth.
/// A flow that has only seen 20 ms cannot detect that.
#[test]
fn a_connection_that_was_in_use_knows_its_path() {
    for (knows_path, ends) in [(true, true), (false, false)] {
        let config = CubicConfig { hystart: true, knows_path, initial_window: 16, ..CubicConfig::default() };
        let path = FlowContext { path_base_rtt: Time::from_ms(10), ..flow_25g() };
        let mut cubic = config.build(&path);
        for _ in 0..8 {
            let a = Ack { rtt: Time::from_ms(20), ..ack(&cubic, 1) };
            cubic.on_ack(&a);
        }
        assert_eq!(cubic.ssthresh < f64::INFINITY, ends, "{cubic:?}");
    }
}

/// Linux counts rounds from the first packet on, and not from the window at which the test begins.
#[test]
fn hystart_counts_rounds_of_small_windows_too() {
    let config = CubicConfig { hystart: true, initial_window: 10, ..CubicConfig::default() };
    let mut cubic = config.build(&flow_25g());
    // At the first acknowledgment packet 11 has been sent; so the twelfth begins a round, and its eighth sample is the
    // nineteenth.
    let left = (1..40).find(|n| {
        let rtt = Time::from_ms(if *n < 12 { 10 } else { 20 });
        let a = Ack { rtt, ..ack(&cubic, 1) };
        cubic.on_ack(&a);
        cubic.ssthresh < f64::INFINITY
    });
    assert_eq!((left, cubic.ssthresh), (Some(19), 29.0));
}
