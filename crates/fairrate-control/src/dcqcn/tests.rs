use super::*;
use crate::config::Profile;
use crate::draws::Draws;
use crate::test_flow::{acked, flow_25g};

fn mark(now: Time) -> Ack<'static> {
    Ack { now, ecn_marked: true, ..acked(1_000, 8_000, 2_000) }
}

#[test]
fn paper_reacts_at_once_and_recovers_in_five_halvings() {
    let mut dcqcn = DcqcnConfig::default().build(&flow_25g());
    assert_eq!(dcqcn.on_ack(&mark(Time::ZERO)).rate, Rate::from_gbps(25));
    // alpha = 1: 25 to 12.5 Gb/s. Then (12.5+25)/2 = 18.75, 21.875, 23.4375, 24.21875, 24.609375; the
    // sixth step is additive, but the target is at line rate already: 24.8046875.
    let mut a = dcqcn.on_cnp(Time::from_us(10));
    let mut rates = vec![a.rate.as_bps() / 1_000];
    for i in 1..=6 {
        assert_eq!(a.timer, Time::from_us(10 + 55 * i));
        a = dcqcn.on_timer(a.timer);
        rates.push(a.rate.as_bps() / 1_000);
    }
    assert_eq!(rates, [12_500_000, 18_750_000, 21_875_000, 23_437_500, 24_218_750, 24_609_375, 24_804_687]);
    // alpha decayed at 65, 120, ..., 340 us: six times; now it cuts by (255/256)^6 / 2 = 0.4883951 and the
    // target is the rate before.
    let b = dcqcn.on_cnp(Time::from_us(345));
    assert!((b.rate.as_bps_f64() - 24_804_687_500.0 * (1.0 - 0.488_395_1)).abs() < 3e3, "{b:?}");
    assert_eq!(dcqcn.target, a.rate.as_bps_f64());
}

#[test]
fn sent_bytes_raise_the_rate_and_both_counts_make_it_hyper() {
    let config = DcqcnConfig { fast_recovery: 1, ..DcqcnConfig::default() };
    let mut dcqcn = config.build(&flow_25g());
    assert_eq!(dcqcn.on_sent(Time::ZERO, Bytes::new(20_000_000)), None);
    dcqcn.on_cnp(Time::ZERO);
    dcqcn.on_cnp(Time::ZERO);
    // alpha stays 1: 25 to 12.5 to 6.25 Gb/s, target 12.5. Bytes: fast recovery, 9.375.
    assert_eq!(dcqcn.on_sent(Time::ZERO, Bytes::new(9_999_999)), None);
    let a = dcqcn.on_sent(Time::ZERO, Bytes::new(1)).unwrap();
    assert_eq!(a.rate, Rate::from_mbps(9_375));
    // Bytes again: additive, (9.375 + 12.54)/2 = 10.9575.
    let a = dcqcn.on_sent(Time::ZERO, Bytes::new(10_000_000)).unwrap();
    assert_eq!((a.rate, a.timer), (Rate::from_bps(10_957_500_000), Time::from_us(55)));
    // Timer twice: T = 0 and T = 1 with BC = 2, additive both: targets 12.58 and 12.62.
    dcqcn.on_timer(Time::from_us(110));
    assert_eq!(dcqcn.target, 12.62e9);
    // T = 2 and BC = 2 are above F = 1: hyper with i = 1, then with T = 3, BC = 3 (after bytes) i = 2.
    dcqcn.on_timer(Time::from_us(165));
    assert_eq!(dcqcn.target, 13.02e9);
    dcqcn.on_sent(Time::from_us(165), Bytes::new(10_000_000));
    assert_eq!(dcqcn.target, 13.42e9);
    dcqcn.on_timer(Time::from_us(220));
    assert_eq!(dcqcn.target, 14.22e9);
}

#[test]
fn artifact_checks_every_four_microseconds() {
    let mut dcqcn = DcqcnConfig::new(Profile::Ns3).build(&flow_25g());
    let a = dcqcn.on_ack(&mark(Time::from_us(100)));
    assert_eq!((a.rate, a.timer), (Rate::from_gbps(25), Time::from_ns(104_001)));
    // Four ticks without a new mark: alpha = (255/256)^4 = 0.984466, rate = 25 Gb/s x (1 - alpha/2) =
    // 12.694 Gb/s, and the increase timer runs from the check.
    let a = dcqcn.on_timer(Time::from_ns(104_001));
    let alpha = (255.0_f64 / 256.0) * (255.0 / 256.0) * (255.0 / 256.0) * (255.0 / 256.0);
    assert_eq!(a.rate, Rate::from_bps_f64(25e9 * (1.0 - alpha / 2.0)));
    assert_eq!(a.timer, Time::from_ns(1_004_001));
    // A second cut before any increase leaves the target at 25 Gb/s; the check is the one after 110 us.
    assert_eq!(dcqcn.on_ack(&mark(Time::from_us(110))).timer, Time::from_ns(112_001));
    let cut = dcqcn.on_timer(Time::from_ns(112_001)).rate;
    assert_eq!((dcqcn.target, cut < a.rate), (25e9, true));
    // Fast recovery, then +50 and +100 Mb/s on a target that is at line rate.
    let up = dcqcn.on_timer(Time::from_ns(1_012_001)).rate;
    assert_eq!(up.as_bps(), cut.as_bps() / 2 + 12_500_000_000);
}

/// The artifact's method, in which every clock ticks. Order at equal times: increase, check, mark, alpha.
struct Ticking {
    dcqcn: Dcqcn,
    check: Time,
    notified: bool,
}

impl Ticking {
    fn run(&mut self, now: Time) {
        let d = &mut self.dcqcn;
        loop {
            let next = d.alpha_due.min(d.increase_due).min(self.check);
            if now < next || next == Time::MAX || (next == now && next == d.alpha_due) {
                return;
            }
            if next == d.alpha_due {
                d.alpha = (1.0 - d.config.g) * d.alpha + if d.notified_since_tick { d.config.g } else { 0.0 };
                d.notified_since_tick = false;
                d.alpha_due += d.config.alpha_interval;
            } else if next == d.increase_due {
                d.increase(Step::Timer);
                d.timer_steps += 1;
                d.increase_due += d.config.increase_interval;
            } else {
                if std::mem::take(&mut self.notified) {
                    d.decrease(next);
                }
                self.check += d.config.decrease_interval;
            }
        }
    }

    fn mark(&mut self, now: Time) {
        self.run(now);
        self.notified = true;
        if self.check == Time::MAX {
            self.dcqcn.alpha_due = now + self.dcqcn.config.alpha_interval;
            self.check = now + self.dcqcn.config.decrease_interval + CHECK_OFFSET;
        } else {
            self.dcqcn.notified_since_tick = true;
        }
    }
}

#[test]
fn lazy_is_ticking_to_the_last_bit() {
    let config = DcqcnConfig { increase_interval: Time::from_us(60), ..DcqcnConfig::new(Profile::Ns3) };
    let mut lazy = config.build(&flow_25g());
    let mut ticking = Ticking { dcqcn: lazy.clone(), check: Time::MAX, notified: false };
    let (mut now, mut n_wakes, mut timer) = (Time::from_us(3), 0, Time::MAX);
    let mut draws = Draws::new(7, 0);
    let mut below = |n: u32| (draws.uniform() * f64::from(n)) as u64;
    for i in 0..20_000 {
        // Mostly a few hundred ns, often exactly on a tick, now and then up to 50 ms of silence, in
        // which alpha vanishes and the rate recovers.
        now += match below(16) {
            0 => Time::from_us(1),
            1 => Time::from_ns(4_000),
            2 if i % 50 == 0 => Time::from_us(below(50_000)),
            2..=4 => Time::from_us(below(200)),
            _ => Time::from_ns(below(700)),
        };
        while timer <= now {
            (timer, n_wakes) = (lazy.on_timer(timer).timer, n_wakes + 1);
            assert!(n_wakes < 100_000);
        }
        timer = lazy.on_ack(&mark(now)).timer;
        ticking.mark(now);
        assert_eq!(lazy.rate.to_bits(), ticking.dcqcn.rate.to_bits(), "at {now}");
        assert_eq!(lazy.target.to_bits(), ticking.dcqcn.target.to_bits(), "at {now}");
        assert!((lazy.alpha - ticking.dcqcn.alpha).abs() <= ALPHA_NONE, "at {now}");
    }
    // Nearly 600 ms of 1 us ticks, and yet few wake-ups:
    assert!(Time::from_ms(300) < now && n_wakes < 40_000, "{n_wakes} wakes in {now}");
}
