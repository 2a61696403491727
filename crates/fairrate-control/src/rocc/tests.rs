use std::collections::VecDeque;

use proptest::prelude::*;

use super::law::Constants;
use super::*;
use crate::config::{Parameters, RawValue};
use crate::test_flow::{data_packet, flow_25g, port_40g};

const G40: Rate = Rate::from_gbps(40);
const T: Time = Time::from_us(40);

fn config(params: &[(&str, RawValue<'_>)]) -> RoccConfig {
    let mut config = RoccConfig::default();
    for (name, value) in params {
        config.set(name, *value).expect("a parameter");
    }
    config
}

/// Returns the law in fixed point with `fraction_bits` bits.
fn fixed(rate: Rate, fraction_bits: u32) -> Law {
    Law::new(&RoccConfig { fraction_bits, ..RoccConfig::default() }, rate)
}

fn float(rate: Rate) -> Law {
    Law::new(&RoccConfig { arithmetic: Arithmetic::Float, ..RoccConfig::default() }, rate)
}

/// F in 4,000, Q in 250, 500 and 600 units.
#[test]
fn each_line_of_algorithm_1() {
    let (whole, eighths, float) = (fixed(G40, 0), fixed(G40, 3), float(G40));
    for (f, q_cur, q_old, want) in [
        // Lines 2 and 3, whatever the queue was before.
        (4_000.0, 600.0, 0.0, 10.0),
        (501.0, 600.0, 600.0, 10.0),
        // F is not more than 4,000/8: line 8 with ratio 4: 500 - 0.075 * 350.
        (500.0, 600.0, 600.0, 473.75),
        // Lines 4 and 5.
        (4_000.0, 500.0, 0.0, 2_000.0),
        (3_001.0, 599.0, 99.0, 1_500.5),
        // Growth less by one unit: 4,000 - 0.3 * 249 - 1.5 * 499.
        (4_000.0, 499.0, 0.0, 3_176.8),
        // Below the reference and falling, ratio 2: 1,000 + 0.15 * 149 + 0.75 * 19.
        (1_000.0, 101.0, 120.0, 1_036.6),
        // At rest.
        (1_234.0, 250.0, 250.0, 1_234.0),
        // Lines 9 and 10: 3,990 + 75. Lines 11 and 12, ratio 32: 10 - 3.28 - 14.06.
        (3_990.0, 0.0, 0.0, 4_000.0),
        (10.0, 600.0, 300.0, 10.0),
    ] {
        assert!((float.next(f, q_cur, q_old) - want).abs() < 1e-9, "{f} {q_cur} {q_old}");
        assert_eq!(whole.next(f, q_cur, q_old), want.floor(), "{f} {q_cur} {q_old}");
        assert_eq!(eighths.next(f, q_cur, q_old), (want * 8.0).floor() / 8.0, "{f} {q_cur} {q_old}");
        assert_eq!(eighths.as_sent(want), want.floor());
    }
}

/// Qref is 250 units at 40 Gb/s, an eighth of it 31 whole units.
#[test]
fn gains_are_whole_while_the_queue_is_nearly_empty_if_asked_for() {
    let full = RoccConfig { low_queue_gain: LowQueueGain::Full, fraction_bits: 8, ..RoccConfig::default() };
    let float = Law::new(&RoccConfig { arithmetic: Arithmetic::Float, ..full.clone() }, G40);
    let (fixed, printed) = (Law::new(&full, G40), fixed(G40, 8));
    for (f, q_cur, q_old, want, is_whole) in [
        // From Fmin with an empty queue: 10 + 0.3 * 250; printed: 10 + 75/32.
        (10.0, 0.0, 0.0, 85.0, true),
        // 1,000 + 0.3 * 220 - 1.5 * 30.
        (1_000.0, 30.0, 0.0, 1_021.0, true),
        // One of the two is not below: ratio 2, so 1,000 + 0.15 * 219 - 0.75 * 31.
        (1_000.0, 31.0, 0.0, 1_009.6, false),
        (1_000.0, 0.0, 31.0, 1_060.75, false),
        // In the region of ratio 1 gains are not divided anyway.
        (2_000.0, 0.0, 0.0, 2_075.0, false),
    ] {
        assert!((fixed.next(f, q_cur, q_old) - want).abs() < 1.0 / 128.0, "{f} {q_cur} {q_old}");
        assert_eq!(fixed.next(f, q_cur, q_old) != printed.next(f, q_cur, q_old), is_whole, "{f} {q_cur} {q_old}");
    }
    // Floating point has 31.25 units.
    assert!((float.next(1_000.0, 31.2, 0.0) - (1_000.0 + 0.3 * 218.8 - 1.5 * 31.2)).abs() < 1e-9);
    // Ticks with an empty queue from Fmin to half of the line rate: 1,990/75; or 115/(75/32), and 27 in each of four
    // regions.
    let ticks = |law: &Law| {
        (1..).try_fold(10.0, |f, n| {
            let f = law.next(f, 0.0, 0.0);
            if f < 2_000.0 { Ok(f) } else { Err(n) }
        })
    };
    assert_eq!((ticks(&fixed), ticks(&printed)), (Err(27), Err(158)));
}

/// The first rate of every region and the last rate of the region below, at 40 and at 100 Gb/s.
#[test]
fn auto_tune_has_six_regions() {
    let at_40g = [(4_000, 0), (2_000, 0), (1_999, 1), (1_000, 1), (999, 2), (500, 2), (499, 3), (250, 3), (249, 4)];
    let at_40g = at_40g.iter().chain(&[(125, 4), (124, 5), (63, 5), (62, 5), (10, 5)]);
    // 10,000/32 = 312.5.
    let at_100g = [(10_000, 0), (5_000, 0), (4_999, 1), (2_500, 1), (2_499, 2), (1_250, 2), (1_249, 3), (625, 3)];
    let at_100g = at_100g.iter().chain(&[(624, 4), (313, 4), (312, 5), (10, 5)]);
    let g100 = Rate::from_gbps(100);
    for (&(f, want), rate) in at_40g.map(|f| (f, G40)).chain(at_100g.map(|f| (f, g100))) {
        assert_eq!(float(rate).float.shift(f64::from(f)), want, "{f}");
        for bits in [0, 8] {
            assert_eq!(fixed(rate, bits).fixed.shift(i128::from(f) << bits), want, "{f}");
        }
    }
}

#[test]
fn constants_follow_the_rate_unless_given() {
    let of = |gbps| {
        let c = Constants::of(&RoccConfig::default(), Rate::from_gbps(gbps).as_bps_f64());
        (c.q_ref, c.q_mid, c.q_max, c.alpha, c.beta)
    };
    assert_eq!(of(40), (150e3, 300e3, 360e3, 0.3, 1.5));
    assert_eq!(of(10), (37_500.0, 75e3, 90e3, 0.3, 1.5));
    assert_eq!(of(100), (300e3, 600e3, 660e3, 0.45, 2.25));
    assert_eq!(of(400), (1_200e3, 2_400e3, 2_640e3, 0.45, 2.25));
    let given = config(&[("thresholds", RawValue::Text("given")), ("q_ref", RawValue::Text("75KB"))]);
    let c = Constants::of(&given, 100e9);
    assert_eq!((c.q_ref, c.q_mid, c.alpha), (75e3, 300e3, 0.3));
}

/// At 10 Gb/s an empty queue is 62 units short: 0.3/32 * 62 = 0.58 units per tick, which is lost in whole units.
#[test]
fn whole_units_cannot_leave_the_slowest_rate_of_a_slow_port() {
    let g10 = Rate::from_gbps(10);
    assert_eq!(fixed(g10, 0).next(10.0, 0.0, 0.0), 10.0);
    // 148.8 in 256ths.
    assert_eq!(fixed(g10, 8).next(10.0, 0.0, 0.0), 10.0 + 148.0 / 256.0);
}

fn port_of(config: &RoccConfig) -> CongestionPoint {
    config.build_port(&PortContext { port: 9, ..port_40g() }).expect("RoCC has ports")
}

fn enqueue(port: &mut CongestionPoint, now: Time, flow: u32, queue_bytes: u64) {
    let view = PortView { now, queue_bytes };
    port.on_enqueue(&view, &mut data_packet(flow, 1_000), &mut Actions::default());
}

fn tick(port: &mut CongestionPoint, now: Time, queue_bytes: u64) -> Vec<Notice> {
    let mut actions = Actions::default();
    port.on_timer(&PortView { now, queue_bytes }, &mut actions);
    actions.notices
}

#[test]
fn a_port_tells_the_flows_in_its_queue_every_period() {
    let mut port = port_of(&RoccConfig::default());
    assert_eq!(port.timer(), Time::MAX);
    enqueue(&mut port, Time::from_us(50), 7, 0);
    enqueue(&mut port, Time::from_us(51), 3, 1_000);
    assert_eq!(port.timer(), Time::from_us(80), "on the grid");
    // Five units: 4,000 + 0.3 * 245 - 1.5 * 5 is more than Fmax.
    let notice = |flow, f| Notice { flow, port: 9, values: [f, 0.0, 0.0, 0.0] };
    assert_eq!(tick(&mut port, Time::from_us(80), 3_000), [notice(3, 4_000.0), notice(7, 4_000.0)]);
    let leave = PortView { now: Time::from_us(90), queue_bytes: 0 };
    port.on_dequeue(&leave, &mut data_packet(3, 1_000), &mut Actions::default());
    port.on_dequeue(
        &leave,
        &mut PortPacket { kind: PortPacketKind::Other, ..data_packet(7, 1_000) },
        &mut Actions::default(),
    );
    // 505 units, 500 more: half.
    assert_eq!(tick(&mut port, Time::from_us(120), 303_000), [notice(7, 2_000.0)]);
    assert_eq!(tick(&mut port, Time::from_us(121), 303_000), [], "a call too early is none");
    assert_eq!(port.timer(), Time::from_us(160));
}

#[test]
fn a_port_that_starts_at_zero_climbs_from_the_slowest_rate() {
    let mut port = port_of(&config(&[("initial", RawValue::Text("zero")), ("fraction_bits", RawValue::Integer(0))]));
    assert_eq!(port.timer(), T);
    tick(&mut port, T, 0);
    // Ratio 32: 0.3/32 * 250 = 2.34 is below Fmin, and then 12.34.
    assert_eq!(port.f, 10.0);
    tick(&mut port, T * 2, 0);
    assert_eq!(port.f, 12.0);
    let rests = (3..300).any(|n| {
        tick(&mut port, T * n, 0);
        port.timer() == Time::MAX
    });
    assert!(rests, "at Fmax");
}

#[test]
fn hosts_come_to_the_ports_result() {
    for arithmetic in ["fixed", "float"] {
        let params = |at| [("arithmetic", RawValue::Text(arithmetic)), ("rate_at", RawValue::Text(at))];
        let (at_switch, at_host) = (config(&params("switch")), config(&params("host")));
        let (mut port_a, mut port_b) = (port_of(&at_switch), port_of(&at_host));
        let flow = FlowContext { line_rate: G40, ..flow_25g() };
        let (mut flow_a, mut flow_b) = (at_switch.build(&flow), at_host.build(&flow));
        enqueue(&mut port_a, Time::ZERO, 1, 0);
        enqueue(&mut port_b, Time::ZERO, 1, 0);
        for (n, bytes) in (1..).zip([1_000, 270_000, 700_123, 420_000, 160_000, 149_000, 151_000, 0, 90_000]) {
            let (a, b) = (tick(&mut port_a, T * n, bytes), tick(&mut port_b, T * n, bytes));
            assert_eq!(flow_a.on_notice(T * n, &a[0]), flow_b.on_notice(T * n, &b[0]), "{n}");
            assert_eq!(port_a.f, port_b.f);
        }
        assert!(flow_a.limiter.is_some_and(|l| l.rate < 1e10), "the notices slowed the flow");
    }
}

fn notify(flow: &mut Rocc, us: u64, port: u32, f: f64) -> u64 {
    let notice = Notice { flow: 0, port, values: [f, 0.0, 0.0, 0.0] };
    flow.on_notice(Time::from_us(us), &notice).expect("an answer").rate.as_bps() / 1_000_000
}

#[test]
fn each_line_of_algorithm_2() {
    let mut flow = RoccConfig::default().build(&FlowContext { line_rate: G40, ..flow_25g() });
    let start = flow.on_start(Time::ZERO);
    assert_eq!((start.rate, start.cwnd, start.timer), (G40, Bytes::MAX, Time::MAX));
    assert_eq!(notify(&mut flow, 0, 1, 700.0), 7_000, "the first notice");
    assert_eq!(notify(&mut flow, 10, 2, 701.0), 7_000, "another port's, above");
    assert_eq!(flow.due, Time::from_us(55));
    assert_eq!(notify(&mut flow, 20, 2, 700.0), 7_000, "another port's, equal: it is now the one");
    assert_eq!(flow.due, Time::from_us(75));
    assert_eq!(notify(&mut flow, 30, 1, 900.0), 7_000, "no longer the one");
    assert_eq!(notify(&mut flow, 40, 2, 900.0), 9_000, "the same port's, above");
    assert_eq!(notify(&mut flow, 95, 1, 1_000.0), 18_000, "not accepted, and the timer expires");
    let timer = |flow: &mut Rocc, us| flow.on_timer(Time::from_us(us));
    assert_eq!(timer(&mut flow, 149).rate, Rate::from_gbps(18));
    assert_eq!(timer(&mut flow, 150).rate, Rate::from_gbps(36));
    // 72 Gb/s is line rate, and the limiter remains until the next expiry.
    assert_eq!(timer(&mut flow, 205).rate, G40);
    assert!(flow.limiter.is_some());
    assert_eq!(timer(&mut flow, 260), Allowance { cwnd: Bytes::MAX, rate: G40, timer: Time::MAX });
    assert!(flow.limiter.is_none());
    assert_eq!(notify(&mut flow, 300, 5, 9_000.0), 40_000, "the rate of a faster port");
}

#[test]
fn an_accepted_notice_at_the_end_of_the_timer_is_in_time() {
    let mut flow = RoccConfig::default().build(&FlowContext { line_rate: G40, ..flow_25g() });
    notify(&mut flow, 0, 1, 700.0);
    assert_eq!(notify(&mut flow, 55, 1, 710.0), 7_100);
    assert_eq!(notify(&mut flow, 111, 1, 720.0), 7_200, "expired a microsecond ago; the same port's is taken");
}

/// Returns queue lengths of a port, tick by tick, in ΔQ.
fn queues() -> impl Strategy<Value = Vec<u32>> {
    prop::collection::vec(prop_oneof![4 => 0_u32..700, 2 => 200_u32..300, 1 => 0_u32..20_000], 1..200)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// From the same state, and on queues that are whole multiples of ΔQ, fixed point equals floating point rounded
    /// down to its last bit, up to the rounding of gains: 2^-33 of a gain times 40,000 units is 5e-6.
    #[test]
    fn a_step_in_fixed_point_is_within_its_last_bit(
        queues in queues(),
        gbps in prop::sample::select(vec![10, 40, 100]),
        bits in prop::sample::select(vec![0, 8]),
    ) {
        // Thresholds that are whole numbers in both.
        let given = [
            ("thresholds", RawValue::Text("given")), ("alpha", RawValue::Float(0.45)),
            ("beta", RawValue::Float(2.25)), ("fraction_bits", RawValue::Integer(bits)),
        ];
        let fixed = Law::new(&config(&given), Rate::from_gbps(gbps));
        let float = Law { arithmetic: Arithmetic::Float, ..fixed.clone() };
        prop_assert_eq!(fixed.bounds(), float.bounds());
        let ((f_min, f_max), bit) = (fixed.bounds(), 1.0 / fixed.steps);
        let (mut f, mut q_old) = (f_max, 0.0);
        for q_cur in queues.into_iter().map(f64::from) {
            let (whole, real) = (fixed.next(f, q_cur, q_old), float.next(f, q_cur, q_old));
            prop_assert!((-1e-5..=bit + 1e-5).contains(&(real - whole)), "{} {}", real, whole);
            prop_assert!(f_min <= whole && whole <= f_max && (whole * fixed.steps).fract() == 0.0);
            (f, q_old) = (whole, q_cur);
        }
    }

    /// An agent that sleeps sends the same notices as an agent that always ticks.
    #[test]
    fn sleeping_changes_nothing(
        steps in prop::collection::vec((0_u64..100, prop::option::weighted(0.5, 0_u32..5), 1_u64..500), 1..120),
        kind in prop::sample::select(vec!["in-queue", "aged", "afd-ft", "elephant-trap", "bubble-cache", "circular"]),
        arithmetic in prop::sample::select(vec!["fixed", "float"]),
    ) {
        let config = config(&[("table", RawValue::Text(kind)), ("arithmetic", RawValue::Text(arithmetic))]);
        let (mut sleeper, mut ticker) = (port_of(&config), port_of(&config));
        let (mut queue, mut bytes, mut now, mut n) = (VecDeque::new(), 0, Time::ZERO, 1_u64);
        for (dt_us, flow, kilobytes) in steps {
            now += Time::from_us(dt_us);
            while T * n < now {
                let woken = sleeper.timer() == T * n;
                prop_assert!(woken || sleeper.timer() == Time::MAX);
                let said = if woken { tick(&mut sleeper, T * n, bytes) } else { Vec::new() };
                ticker.due = T * n;
                prop_assert_eq!(said, tick(&mut ticker, T * n, bytes));
                prop_assert_eq!((sleeper.f, sleeper.q_old), (ticker.f, ticker.q_old));
                n += 1;
            }
            for port in [&mut sleeper, &mut ticker] {
                let (mut actions, view) = (Actions::default(), PortView { now, queue_bytes: bytes });
                match (flow, queue.front()) {
                    (Some(flow), _) => {
                        port.on_enqueue(&view, &mut data_packet(flow, 1_000), &mut actions);
                    }
                    (None, Some(&(flow, _))) => {
                        port.on_dequeue(&view, &mut data_packet(flow, 1_000), &mut actions);
                    }
                    (None, None) => {}
                }
            }
            match flow {
                Some(flow) => queue.push_back((flow, kilobytes * 1_000)),
                None => { queue.pop_front(); }
            }
            bytes = queue.iter().map(|p| p.1).sum();
        }
    }

    /// With any notices lost, repeated or out of order, the rate stays in bounds. Once notices arrive from one port
    /// only, the flow has that port's rate as soon as doubling has reached it; without notices the limiter is removed.
    #[test]
    fn lost_and_disordered_notices_do_no_harm(
        heard in prop::collection::vec((0_u64..90, 0_u32..3, -1.0_f64..20_000.0), 0..80),
        port in 0_u32..3, f in 10.0_f64..4_000.0,
    ) {
        let mut flow = RoccConfig::default().build(&FlowContext { line_rate: G40, ..flow_25g() });
        let mut us = 0;
        for (dt, port, f) in heard {
            us += dt;
            let mbps = notify(&mut flow, us, port, f);
            prop_assert!((100..=40_000).contains(&mbps));
        }
        // Fmin doubles 9 times to reach line rate (100 Mb/s * 2^9 = 51 Gb/s).
        let quiet = Rocc::clone(&flow).on_timer(Time::from_us(us + 10 * 55));
        prop_assert_eq!((quiet.rate, quiet.timer), (G40, Time::MAX));
        let until = us + 9 * 55 + 40;
        while us < until {
            us += 40;
            notify(&mut flow, us, port, f);
        }
        prop_assert_eq!(notify(&mut flow, us + 40, port, f), (f * 10.0) as u64);
        prop_assert_eq!(flow.limiter.map(|l| l.port), Some(port));
    }
}
