use super::*;

/// TCP with its default settings, with timeouts from 100 us to 10 ms.
pub const CONFIG: TcpConfig = TcpConfig {
    rto_min: Time::from_us(100),
    rto_max: Time::from_ms(10),
    clock_granularity: Time::from_us(1),
    loss_detection: LossDetection::Rack,
    tail_loss_probe: true,
    delayed_ack: None,
    handshake: false,
    idle_restart: true,
    prr: true,
    mark_reduction: MarkReduction::Rfc9937,
    min_window: 0,
    receive_window: u64::MAX,
    ecn_echo: EcnEcho::Accurate,
    multipath: MptcpConfig::SINGLE,
};
const US: u64 = 1_000_000;

/// Returns a sender of segments of 1,000 bytes on a path of 10 us.
fn sender(config: &TcpConfig) -> TcpSender {
    TcpSender::new(config, 1_000, Time::from_us(10))
}

/// Returns a sender that has sent `n` segments, one a microsecond.
fn sending(config: &TcpConfig, n: u64) -> TcpSender {
    let mut tcp = sender(config);
    (0..n).for_each(|i| tcp.send_new(1_000, false, i * US));
    tcp
}

#[test]
fn a_lost_tail_is_probed_and_then_recovered() {
    let mut tcp = sending(&CONFIG, 3);
    tcp.on_ack(1_000, &[], 3_000, 10 * US);
    // Two round trips of 10 us after the acknowledgment, before the timeout of 100 us.
    assert_eq!(tcp.deadline_ps(), 30 * US);
    assert_eq!(tcp.on_timer(3_000, 30 * US), Expired::MaySend(false));
    assert!(tcp.is_open(0, 2_000, false), "a probe needs no window");
    assert_eq!(tcp.resend(30 * US, false), Some((2_000, 1_000)));
    // It arrives, and so the segment before it is lost: recovery begins, once.
    let (acked, begins) = tcp.on_ack(1_000, &[(2_000, 3_000)], 3_000, 40 * US);
    assert_eq!((acked.lost, begins), (1_000, true));
    assert_eq!(tcp.resend(40 * US, false), Some((1_000, 1_000)));
    let (acked, begins) = tcp.on_ack(3_000, &[], 3_000, 50 * US);
    assert_eq!((acked.cumulative, begins, tcp.deadline_ps()), (2_000, false, u64::MAX));
}

#[test]
fn a_probe_that_waits_for_its_turn_is_dropped_once_all_has_arrived() {
    let mut tcp = sending(&CONFIG, 1);
    tcp.on_ack(1_000, &[], 1_000, 10 * US);
    tcp.send_new(1_000, false, 10 * US);
    assert_eq!(tcp.on_timer(2_000, 30 * US), Expired::MaySend(false));
    assert!(tcp.is_open(0, 1_000, false) && tcp.has_lost());
    tcp.on_ack(2_000, &[], 2_000, 31 * US);
    assert!(!tcp.is_open(u64::MAX, 0, false) && !tcp.has_lost());
    assert_eq!(tcp.resend(32 * US, false), None);
}

#[test]
fn only_the_probe_for_a_lone_segment_waits_for_a_delayed_acknowledgment() {
    let delayed_ack = Some(DelayedAck { every: 2, timeout: Time::from_us(40) });
    let config = TcpConfig { delayed_ack, ..CONFIG };
    assert_eq!(sending(&config, 1).deadline_ps(), 60 * US);
    assert_eq!(sending(&config, 2).deadline_ps(), 21 * US);
    // A probe that would be due after the timeout replaces it; the timeout then counts from the probe.
    let mut slow = TcpSender::new(&config, 1_000, Time::from_us(90));
    slow.send_new(1_000, false, 0);
    assert_eq!(slow.deadline_ps(), 220 * US);
    let mut late = TcpSender::new(&TcpConfig { rto_max: Time::from_us(150), ..config }, 1_000, Time::from_us(90));
    late.send_new(1_000, false, 0);
    assert_eq!(late.deadline_ps(), 150 * US);
    assert_eq!(late.on_timer(1_000, 150 * US), Expired::MaySend(false));
    assert_eq!(late.deadline_ps(), 300 * US);
}

#[test]
fn timeouts_double() {
    let mut tcp = sending(&TcpConfig { tail_loss_probe: false, ..CONFIG }, 1);
    // 10 us and four deviations of 5 us are below the floor.
    assert_eq!(tcp.deadline_ps(), 100 * US);
    assert_eq!(tcp.on_timer(1_000, 100 * US), Expired::Timeout);
    assert_eq!(tcp.resend(100 * US, false), Some((0, 1_000)));
    assert_eq!(tcp.on_timer(1_000, 200 * US), Expired::Nothing);
    assert_eq!(tcp.on_timer(1_000, 300 * US), Expired::Timeout);
}

#[test]
fn the_handshake_is_the_first_sample_unless_it_had_to_be_repeated() {
    let config = TcpConfig { handshake: true, tail_loss_probe: false, rto_max: Time::from_ms(9_000), ..CONFIG };
    let mut tcp = sender(&config);
    tcp.on_connect(0);
    assert_eq!(tcp.deadline_ps(), 1_000_000 * US, "a second, before anything is known");
    tcp.on_connected(50 * US);
    tcp.send_new(1_000, false, 50 * US);
    // 50 us and four deviations of 25 us.
    assert_eq!((tcp.srtt_ps(), tcp.deadline_ps()), (Some(50 * US), 200 * US));
    let mut tcp = sender(&config);
    tcp.on_connect(0);
    tcp.on_connect(1_000_000 * US);
    assert_eq!(tcp.deadline_ps(), 3_000_000 * US);
    tcp.on_connected(1_000_050 * US);
    tcp.send_new(1_000, false, 1_000_050 * US);
    assert_eq!((tcp.srtt_ps(), tcp.deadline_ps()), (None, 4_000_050 * US));
}

#[test]
fn what_arrives_behind_a_hole_does_not_put_its_timeout_off() {
    let mut tcp = sending(&TcpConfig { tail_loss_probe: false, ..CONFIG }, 9);
    for i in 1..9 {
        tcp.on_ack(0, &[(1_000, 1_000 * i + 1_000)], 9_000, (10 + i) * US);
        assert_eq!(tcp.rto_ps, 100 * US);
    }
    // The timeout counts from the time at which the hole is sent again.
    assert_eq!(tcp.resend(20 * US, false), Some((0, 1_000)));
    assert_eq!(tcp.rto_ps, 120 * US);
    // Losses among segments sent again after a timeout do not start a recovery.
    assert_eq!(tcp.on_timer(9_000, 120 * US), Expired::Timeout);
    assert_eq!(tcp.resend(120 * US, true), Some((0, 1_000)));
    tcp.send_new(1_000, false, 121 * US);
    let (acked, begins) = tcp.on_ack(0, &[(9_000, 10_000)], 10_000, 131 * US);
    assert_eq!((acked.lost, begins), (1_000, false));
}

#[test]
fn one_segment_beyond_a_hole_is_no_loss_yet_three_are() {
    let mut tcp = sending(&CONFIG, 5);
    let (acked, begins) = tcp.on_ack(0, &[(1_000, 2_000)], 5_000, 11 * US);
    // The hole is late by 1 us; a quarter of 10 us is allowed.
    assert_eq!((acked.lost, begins, tcp.deadline_ps()), (0, false, 12 * US + US / 2));
    assert!(!tcp.on_ack(0, &[(1_000, 3_000)], 5_000, 12 * US).1);
    assert!(tcp.on_ack(0, &[(1_000, 4_000)], 5_000, 12 * US + 1).1);
    let mut tcp = sending(&CONFIG, 2);
    tcp.on_ack(0, &[(1_000, 2_000)], 2_000, 11 * US);
    assert_eq!(tcp.on_timer(2_000, 12 * US + US / 2), Expired::MaySend(true));
}

#[test]
fn a_reduction_on_a_mark_lets_every_other_acknowledgment_send_a_segment() {
    let mut tcp = sending(&CONFIG, 20);
    let (acked, _) = tcp.on_ack(1_000, &[], 20_000, 30 * US);
    tcp.on_reduced(&acked, 20_000);
    let (mut sent, mut now) = (20, 30 * US);
    for ack in 1..=20 {
        if 1 < ack {
            tcp.on_ack(1_000 * ack, &[], 1_000 * sent, now);
        }
        tcp.settle(10_000);
        while tcp.is_open(10_000, 1_000 * (sent - ack), true) {
            tcp.send_new(1_000, false, now);
            sent += 1;
        }
        now += US;
    }
    // Ten of the twenty segments were replaced, each by a new one.
    assert_eq!((sent, tcp.pipe()), (30, 10_000));
    tcp.on_ack(21_000, &[], 1_000 * sent, now);
    assert!(tcp.prr.is_none() && tcp.is_open(10_000, 9_000, true));
}

#[test]
fn a_segment_goes_if_the_window_has_room_for_all_of_it() {
    let tcp = sending(&CONFIG, 2);
    assert!(!tcp.is_open(2_999, 2_000, true) && tcp.is_open(3_000, 2_000, true));
    assert!(sender(&CONFIG).is_open(1, 0, true), "one may always be in flight");
}

#[test]
fn idle_time_is_counted_in_timeouts() {
    let mut tcp = sender(&CONFIG);
    assert_eq!(tcp.idle_timeouts(50 * US), 0, "it has not sent yet");
    tcp.send_new(1_000, false, 50 * US);
    assert_eq!(tcp.idle_timeouts(9_000 * US), 0, "something is in flight");
    tcp.on_ack(1_000, &[], 1_000, 60 * US);
    // The timeout is its floor, 100 us, from the last segment at 50 us.
    assert_eq!([150, 151, 250, 251].map(|us| tcp.idle_timeouts(us * US)), [0, 1, 1, 2]);
    let mut off = sending(&TcpConfig { idle_restart: false, ..CONFIG }, 1);
    off.on_ack(1_000, &[], 1_000, 10 * US);
    assert_eq!(off.idle_timeouts(9_000 * US), 0);
}

#[test]
fn the_receive_window_closes() {
    let tcp = sender(&TcpConfig { receive_window: 5_000, ..CONFIG });
    assert!(tcp.is_open(u64::MAX, 4_000, true));
    assert!(!tcp.is_open(u64::MAX, 5_000, true));
}
