use super::*;
use crate::config::Profile;
use crate::test_flow::{acked, flow_25g};

fn ack(ack_seq: u64, snd_nxt: u64, ecn_marked: bool) -> Ack<'static> {
    Ack { newly_acked: 1_000, in_flight: snd_nxt - ack_seq, ecn_marked, ..acked(ack_seq, 8_000, snd_nxt) }
}

#[test]
fn a_window_cuts_once_by_half_alpha_and_then_grows_a_packet_a_window() {
    let mut dctcp = DctcpConfig { initial_alpha: 0.5, ..DctcpConfig::default() }.build(&flow_25g());
    assert_eq!(dctcp.on_start(Time::ZERO).cwnd, Bytes::new(25_000));
    // The first acknowledgment ends the empty window before it: F = 1, so
    // alpha = 15/16 x 0.5 + 1/16 = 0.53125 and cwnd = 25,000 x (1 - 0.265625) = 18,359.375.
    assert_eq!(dctcp.on_ack(&ack(1_000, 26_000, true)).cwnd, Bytes::new(18_359));
    for seq in 2..=26 {
        assert_eq!(dctcp.on_ack(&ack(seq * 1_000, 26_000, seq < 14)).cwnd, Bytes::new(18_359));
    }
    // The window ends: 12 of 26 packets (2 to 13 of 2 to 27) were marked, alpha = 15/16 x 0.53125 + 12/416.
    // The unmarked acknowledgment adds 1,000 x 1,000/18,359.375 = 54.468.
    assert_eq!(dctcp.on_ack(&ack(27_000, 45_000, false)).cwnd, Bytes::new(18_413));
    let Form::Window(w) = &dctcp.form else { panic!("window form") };
    assert_eq!(w.alpha, 15.0 / 16.0 * 0.53125 + 1.0 / 16.0 * (12.0 / 26.0));
}

#[test]
fn a_window_that_does_not_limit_does_not_grow() {
    let mut dctcp = DctcpConfig::default().build(&flow_25g());
    for seq in 1..1_000 {
        assert_eq!(dctcp.on_ack(&ack(seq * 1_000, seq * 1_000 + 20_000, false)).cwnd, Bytes::new(25_000));
    }
}

#[test]
fn losses_halve_once_a_window_and_a_timeout_starts_slowly() {
    let mut dctcp = DctcpConfig::default().build(&flow_25g());
    dctcp.on_ack(&ack(1_000, 25_000, false));
    let Form::Window(w) = &mut dctcp.form else { panic!("window form") };
    w.cwnd = 25_000.0;
    assert_eq!(dctcp.on_loss(Time::ZERO, Loss::Gap).cwnd, Bytes::new(12_500));
    assert_eq!(dctcp.on_loss(Time::ZERO, Loss::Gap).cwnd, Bytes::new(12_500));
    assert_eq!(dctcp.on_loss(Time::from_us(100), Loss::Timeout).cwnd, Bytes::new(1_000));
    // Data sent before the timeout at 100 us does not make the window grow; then slow start up to 12,500 / 2,
    // although byte 25,000 is far away.
    let before = Ack { now: Time::from_us(107), ..ack(2_000, 25_000, false) };
    assert_eq!(dctcp.on_ack(&before).cwnd, Bytes::new(1_000));
    let cwnds = [3, 4, 5, 6, 7, 8].map(|i| dctcp.on_ack(&ack(i * 1_000, 25_000, false)).cwnd.as_u64());
    assert_eq!(cwnds, [2_000, 3_000, 4_000, 5_000, 6_000, 7_000]);
}

#[test]
fn a_gap_right_behind_the_window_that_was_cut_is_news() {
    let mut dctcp = DctcpConfig { initial_alpha: 0.0, g: 0.0, ..DctcpConfig::default() }.build(&flow_25g());
    // Bytes up to 26,000 belong to the window that the mark has cut (by 0, as alpha is 0).
    assert_eq!(dctcp.on_ack(&ack(1_000, 26_000, true)).cwnd, Bytes::new(25_000));
    dctcp.on_ack(&ack(25_000, 50_000, false));
    assert_eq!(dctcp.on_loss(Time::ZERO, Loss::Gap).cwnd, Bytes::new(25_000));
    dctcp.on_ack(&ack(26_000, 50_000, false));
    assert_eq!(dctcp.on_loss(Time::ZERO, Loss::Gap).cwnd, Bytes::new(12_500));
}

#[test]
fn slow_start_doubles_although_the_nic_sends_one_packet_for_one() {
    let config = DctcpConfig { slow_start: true, initial_window: DctcpInitialWindow::TenMtu, ..DctcpConfig::default() };
    let mut dctcp = config.build(&flow_25g());
    let cwnds = [1, 2, 9, 10].map(|i| dctcp.on_ack(&ack(i * 1_000, i * 1_000 + 9_000, false)).cwnd.as_u64());
    assert_eq!(cwnds, [11_000, 12_000, 13_000, 14_000]);
}

/// Simulates a flow alone on a pipe whose queue marks above W* packets in flight, with an acknowledgment per packet;
/// returns the mean of alpha over the second half of the acknowledgments.
fn mean_alpha(w_star: u64, n_acks: u32) -> f64 {
    let mut dctcp = DctcpConfig::default().build(&flow_25g());
    let (mut una, mut nxt, mut marks) = (0_u64, 0_u64, std::collections::VecDeque::new());
    let mut cwnd = dctcp.on_start(Time::ZERO).cwnd.as_u64();
    let (mut sum, mut n) = (0.0, 0.0);
    for i in 0..n_acks {
        while nxt - una < cwnd {
            nxt += 1_000;
            marks.push_back(1_000 * w_star < nxt - una);
        }
        una += 1_000;
        let marked = marks.pop_front().expect("a window is never empty");
        cwnd = dctcp.on_ack(&ack(una, nxt, marked)).cwnd.as_u64();
        let Form::Window(w) = &dctcp.form else { panic!("window form") };
        if n_acks / 2 < i {
            (sum, n) = (sum + w.alpha, n + 1.0);
        }
    }
    sum / n
}

/// Paper section 3.3: alpha is about the root of 2/W*, while g < 1.386 / root of 2 W* (eq. 15). The round trip without
/// growth after a cut lowers alpha by up to one part in the round trips of a period (4 for the smallest W* here). A cut
/// uses the smallest alpha of a period, which is below the largest by the share g; that raises alpha by up to a tenth.
#[test]
fn alpha_is_what_the_model_of_the_paper_says() {
    for w_star in [40, 80, 160, 240] {
        let (alpha, model) = (mean_alpha(w_star, 400_000), (2.0 / w_star as f64).sqrt());
        assert!((alpha / model - 1.0).abs() < 0.15, "W* = {w_star}: {alpha} for {model}");
    }
}

#[test]
fn over_tcp_it_begins_as_tcp_does_and_again_after_idle_time() {
    let mut dctcp = DctcpConfig::default().over_tcp().build(&flow_25g());
    assert_eq!(dctcp.on_start(Time::ZERO).cwnd, Bytes::new(10_000));
    assert_eq!(dctcp.on_ack(&ack(1_000, 10_000, false)).cwnd, Bytes::new(11_000));
    let Form::Window(w) = &mut dctcp.form else { panic!("window form") };
    (w.cwnd, w.ssthresh) = (32_000.0, 8_000.0);
    assert_eq!(dctcp.on_idle(Time::ZERO, 1).map(|a| a.cwnd), Some(Bytes::new(16_000)));
    assert_eq!(dctcp.on_idle(Time::ZERO, 3).map(|a| a.cwnd), Some(Bytes::new(10_000)));
    // Slow start up to three quarters of 32,000.
    assert_eq!(dctcp.on_ack(&ack(12_000, 21_000, false)).cwnd, Bytes::new(11_000));
    let mut rate = DctcpConfig::new(Profile::Ns3).build(&flow_25g());
    assert_eq!(rate.on_idle(Time::ZERO, 1), None);
}

#[test]
fn pacing_spreads_what_a_window_is_on_the_wire_over_the_base_rtt() {
    let config = DctcpConfig { pacing: true, initial_window: DctcpInitialWindow::TenMtu, ..DctcpConfig::default() };
    // 10,000 bytes in ten packets of 1,056 on the wire in 8 us: 84,480 bits; over half the path in half the time.
    assert_eq!(config.build(&flow_25g()).on_start(Time::ZERO).rate, Rate::from_mbps(10_560));
    let short = FlowContext { path_base_rtt: Time::from_us(4), ..flow_25g() };
    assert_eq!(config.build(&short).on_start(Time::ZERO).rate, Rate::from_mbps(21_120));
}

#[test]
fn artifact_form_by_hand() {
    let mut dctcp = DctcpConfig::new(Profile::Ns3).build(&flow_25g());
    // First acknowledgment, marked: alpha stays 1, 25 to 12.5 Gb/s, no growth; window 25,000 x 12.5/25.
    let a = dctcp.on_ack(&ack(1_000, 25_000, true));
    assert_eq!((a.rate, a.cwnd), (Rate::from_mbps(12_500), Bytes::new(12_500)));
    // Marked, but 25,000 is not acknowledged yet.
    assert_eq!(dctcp.on_ack(&ack(25_000, 30_000, true)).rate, Rate::from_mbps(12_500));
    // Next window: marks 2 of 25,000/1,000 + 1 = 26 packets, alpha = 255/256 + 2/26/256; +1 Gb/s.
    assert_eq!(dctcp.on_ack(&ack(26_000, 38_000, false)).rate, Rate::from_mbps(13_500));
    let Form::Rate(r) = &dctcp.form else { panic!("rate form") };
    assert_eq!((r.alpha, r.n_packets), (255.0 / 256.0 + 1.0 / 256.0 * (2.0 / 26.0), 13));
    // A marked acknowledgment within the window cuts by that alpha.
    let expected = Rate::from_bps_f64(13.5e9 * (1.0 - r.alpha / 2.0));
    assert_eq!(dctcp.on_ack(&ack(27_000, 39_000, true)).rate, expected);
}
