//! Tests of circulating control packets, and of rates that wait.

use super::*;
use crate::charny::{Charny, CharnyConfig};
use crate::controller::AlgorithmSpec;
use crate::test_flow::flow_25g;

fn us(us: u64) -> Time {
    Time::from_us(us)
}

#[test]
fn a_rate_falls_at_once_and_rises_after_its_wait() {
    let mut rate = PatientRate::new(us(10), 0.0);
    rate.jump(20.0);
    rate.aim(us(0), 30.0);
    assert_eq!((rate.rate, rate.next()), (20.0, us(10)));
    // A higher target is a separate raise, behind the first.
    rate.aim(us(4), 50.0);
    // A target lower than both replaces both, at the time of the first.
    rate.aim(us(6), 25.0);
    assert_eq!((rate.rate, rate.next()), (20.0, us(10)));
    rate.advance(us(10));
    assert_eq!((rate.rate, rate.next()), (25.0, Time::MAX));
    // A cut discards the pending raises.
    rate.aim(us(12), 40.0);
    rate.aim(us(13), 5.0);
    assert_eq!((rate.rate, rate.next()), (5.0, Time::MAX));
    // Without a wait a raise is immediate.
    let mut hasty = PatientRate::new(Time::ZERO, 1.0);
    hasty.aim(us(1), 7.0);
    assert_eq!((hasty.rate, hasty.next()), (7.0, Time::MAX));
}

#[test]
fn one_packet_goes_round_until_the_flow_has_nothing_left() {
    let mut c = Circulation::new(us(30));
    assert_eq!(c.gives_up_at(us(1)), us(31), "the packet that will leave now");
    assert_eq!(c.poll(us(1), 5), Some(Message::Request));
    assert_eq!(c.poll(us(2), 5), None, "it is on its way");
    assert_eq!(c.returned(1.0), Some(Message::Request));
    assert_eq!(c.returned(1.0), None, "a copy does not count");
    assert_eq!(c.poll(us(11), 5), Some(Message::Request));
    assert_eq!(c.gives_up_at(us(12)), us(41));
    c.check_timeout(us(40), us(150));
    assert_eq!(c.poll(us(40), 5), None);
    c.check_timeout(us(41), us(150));
    assert_eq!(c.poll(us(41), 5), Some(Message::Request));
    let late = c.returned(2.0);
    assert_eq!((late, c.poll(us(42), 5)), (Some(Message::Request), None), "it counts, and the next is on its way");
    assert_eq!(c.gives_up_at(us(42)), us(101), "which has twice the time");
    // The exit does not wait for the packet on its way, which is now out of date.
    assert_eq!(c.poll(us(45), 0), Some(Message::Exit));
    assert_eq!(c.returned(3.0), None);
    c.check_timeout(us(75), us(150));
    assert_eq!(c.poll(us(75), 0), Some(Message::Exit), "exits are sent again too");
    assert_eq!(c.returned(5.0), Some(Message::Exit));
    assert_eq!((c.poll(us(90), 0), c.gives_up_at(us(90))), (None, Time::MAX));
    // Lost bytes make the flow active again. A timer checks on it, as no timer sends the request.
    c.on_loss(us(94));
    assert_eq!(c.gives_up_at(us(94)), us(124));
    assert_eq!(c.poll(us(95), 1_000), Some(Message::Request));
    assert_eq!(c.returned(6.0), Some(Message::Request));
}

/// Packets without a reply are sent again often enough for links that forget a flow after 100 us, and ever more rarely
/// once they have.
#[test]
fn patience_is_at_most_half_the_memory_of_links() {
    let mut c = Circulation::new(us(30));
    let all = [(0, 30, us(50)), (30, 80, us(50)), (80, 130, us(50)), (130, 180, Time::MAX), (180, 280, Time::MAX)];
    for (sent, gives_up, most) in all {
        assert_eq!(c.poll(us(sent), 5), Some(Message::Request));
        assert_eq!(c.gives_up_at(us(sent)), us(gives_up));
        c.check_timeout(us(gives_up), most);
    }
    let mut patient = Circulation::new(us(30));
    patient.poll(us(0), 5);
    patient.check_timeout(us(30), us(10));
    patient.poll(us(30), 5);
    assert_eq!(patient.gives_up_at(us(30)), us(60), "no less than at first");
}

/// Returns the rate in Gb/s that the flow's next control packet asks for. The header of Charny's algorithm has the
/// sequence number, the exit flag, the rate and the reduced flag.
fn asks(flow: &mut Charny, now: Time, unsent: u64) -> f64 {
    let mut header = [0.0; 4];
    assert!(flow.control_packet(now, unsent, &mut header));
    header[2] / 1e9
}

/// Returns the control packet to the flow with a rate in Gb/s; gives the resulting rate.
fn comes_back(flow: &mut Charny, now: Time, seq: f64, gbps: f64) -> Rate {
    flow.on_control(now, &[seq, 0.0, gbps * 1e9, 0.0]).expect("a decision").rate
}

/// 40 bytes every 8 us are 40 Mb/s, every 16 us 20 Mb/s.
#[test]
fn charged_control_packets_come_out_of_the_rate() {
    let base = ExplicitRateConfig { charge_control: true, ..ExplicitRateConfig::default() };
    let mut flow = CharnyConfig { base }.build(&flow_25g());
    flow.on_start(us(0));
    assert_eq!(asks(&mut flow, us(0), u64::MAX), 25.0);
    assert_eq!(comes_back(&mut flow, us(8), 1.0, 10.0), Rate::from_mbps(9_960));
    // 10,000 bytes are 10.56 Gb/s of data in 8 us, beside the control packet.
    assert!((asks(&mut flow, us(8), 10_000) - 10.6).abs() < 1e-9);
    assert_eq!(comes_back(&mut flow, us(24), 2.0, 6.0), Rate::from_mbps(5_980));
    // If the rate is no more than the control packets use, data keep half of it.
    assert_eq!(asks(&mut flow, us(24), u64::MAX), 25.0);
    assert_eq!(comes_back(&mut flow, us(32), 3.0, 0.03), Rate::from_mbps(15));

    let limited = FlowContext { demand: Rate::from_gbps(3), ..flow_25g() };
    let base = ExplicitRateConfig { charge_control: true, ..ExplicitRateConfig::default() };
    let mut flow = CharnyConfig { base }.build(&limited);
    flow.on_start(us(0));
    asks(&mut flow, us(0), u64::MAX);
    comes_back(&mut flow, us(8), 1.0, 3.0);
    assert!((asks(&mut flow, us(8), u64::MAX) - 3.04).abs() < 1e-9, "the application's 3 Gb/s are of data");
}

/// 25 Gb/s and 8 us: links forget the flow after 80 us, and it falls back 80 us after its last reply.
#[test]
fn a_flow_that_no_link_answers_gives_up_its_rate_and_joins_anew() {
    let mut flow = CharnyConfig::default().build(&flow_25g());
    flow.on_start(us(0));
    asks(&mut flow, us(0), u64::MAX);
    assert_eq!(comes_back(&mut flow, us(8), 1.0, 10.0), Rate::from_gbps(10));
    asks(&mut flow, us(8), u64::MAX);
    let mut now = us(8);
    let mut sent = Vec::new();
    let mut timer = us(32);
    while now < us(200) {
        now = timer;
        let allowance = flow.on_timer(now);
        assert_eq!(allowance.rate, if now < us(88) { Rate::from_gbps(10) } else { Rate::ZERO });
        timer = allowance.timer;
        let mut header = [0.0; 4];
        if flow.control_packet(now, u64::MAX, &mut header) {
            sent.push(now);
            timer = flow.on_timer(now).timer;
        }
    }
    // After three base RTTs, then five; at 88 us it joins anew, and is patient for three, six and twelve.
    assert_eq!(sent, [32, 72, 88, 112, 160, 256].map(us));
    // The first rate after that does not wait.
    assert_eq!(comes_back(&mut flow, us(260), 8.0, 6.0), Rate::from_gbps(6));
}

/// A round trip of eight base RTTs is longer than all patience. Replies count nevertheless, each once.
#[test]
fn replies_after_long_round_trips_count() {
    let mut flow = CharnyConfig::default().build(&flow_25g());
    let (mut timer, mut on_way, mut replies) = (flow.on_start(us(0)).timer, std::collections::VecDeque::new(), 0);
    let mut now = us(0);
    while now < us(2_000) {
        let mut header = [0.0; 4];
        if flow.control_packet(now, u64::MAX, &mut header) {
            on_way.push_back((now.saturating_add(us(64)), header[0]));
            timer = flow.on_timer(now).timer;
        }
        let back = on_way.front().map_or(Time::MAX, |&(at, _)| at);
        now = timer.min(back);
        if now == back {
            let (_, seq) = on_way.pop_front().expect("it is there");
            let allowance = flow.on_control(now, &[seq, 0.0, 5e9, 1.0]).expect("a decision");
            assert_eq!(allowance.rate, Rate::from_gbps(5));
            (timer, replies) = (allowance.timer, replies + 1);
        } else {
            let rate = flow.on_timer(now).rate;
            assert_eq!(rate, if now < us(64) { Rate::ZERO } else { Rate::from_gbps(5) }, "{now}");
        }
    }
    // One every three to five base RTTs.
    assert!((2_000 / 40 - 2..=2_000 / 24).contains(&replies), "{replies}");
}
