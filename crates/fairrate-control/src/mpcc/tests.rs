use super::*;
use crate::test_flow::{acked, flow_25g};

fn connection(n: usize) -> MpccConnection {
    MpccConfig::default().build_connection(&vec![FlowContext { wire_mtu: Bytes::new(1_000), ..flow_25g() }; n])
}

fn interval(rate: f64, lost: f64, rtts: (f64, f64)) -> Interval {
    let ended = Some((Time::from_us(10), 100_000));
    Interval { rate, ended, rtts: Some(rtts), lost, ..Interval::default() }
}

#[test]
fn utility_by_hand() {
    let mut s = connection(1).subflows.remove(0);
    s.phase = Phase::Probe;
    // 10^10 bytes/s to the power 0.9.
    assert!((s.utility(&interval(1e10, 0.0, (8e-6, 8e-6))) / 1e9 - 1.0).abs() < 1e-12);
    // With 1 % lost, 11 x 10^10 x 0.01 less; with round-trip times that grow by 1 us in 10 us, 10^9 less; a slope
    // of 2 % is noise.
    assert!((s.utility(&interval(1e10, 1_000.0, (8e-6, 8e-6))) / 1e9 + 0.1).abs() < 1e-9);
    assert!(s.utility(&interval(1e10, 0.0, (8e-6, 9e-6))).abs() < 1.0);
    assert!((s.utility(&interval(1e10, 0.0, (8e-6, 8.2e-6))) / 1e9 - 1.0).abs() < 1e-12);
    // The rate of the other subflows counts.
    s.others = 9e9;
    assert!((s.utility(&interval(1e9, 0.0, (8e-6, 8e-6))) / 1e9 - 1.0).abs() < 1e-12);
}

#[test]
fn steps_by_hand() {
    let mut s = connection(1).subflows.remove(0);
    s.rate = 1e7;
    // 125,000 x 1; the same again while the swing is calmed, then three and five times as much.
    assert_eq!(s.step(1.0), 125_000.0);
    s.last_up = Some(true);
    assert_eq!([1, 2, 3].map(|_| s.step(1.0)), [125_000.0, 125_000.0, 375_000.0]);
    // At most 5 % of the rate, then 10 %.
    assert_eq!((s.step(100.0), s.step(100.0)), (500_000.0, 1_000_000.0));
    // A change of direction restarts the step, with at least 62,500 bytes/s and at most half the rate.
    assert_eq!(s.step(-0.1), -62_500.0);
    s.rate = 100_000.0;
    assert_eq!(s.step(-0.1), -50_000.0);
}

#[test]
fn lost_bytes_are_those_that_arrive_late() {
    let mut s = connection(1).subflows.remove(0);
    let ack = |ack_seq, newly_acked| Ack { newly_acked, ..acked(ack_seq, 8_000, 10_000) };
    s.count(&ack(1_000, 1_000));
    // Two packets are missing, two later packets arrive; then the missing packets.
    s.count(&ack(1_000, 1_000));
    s.count(&ack(1_000, 1_000));
    assert_eq!(s.intervals[0].lost, 0.0);
    s.count(&ack(2_000, 1_000));
    s.count(&ack(5_000, 1_000));
    s.count(&ack(6_000, 1_000));
    assert_eq!(s.intervals[0].lost, 2_000.0);
}

#[test]
fn the_start_doubles_and_probing_follows_the_better_side() {
    let mut c = connection(1);
    c.on_start(Time::ZERO, 0);
    // A path of 100 Mb/s and 1 ms that drops the excess. Every dropped packet is reported by the next packet and
    // repaired at once.
    let (mut now, mut seq, mut excess) = (0_u64, 0_u64, 0.0);
    let mut rates = Vec::new();
    for _ in 0..60_000 {
        let rate = c.subflows[0].allowance().rate.as_bps_f64();
        now += (8_000.0 / rate * 1e12) as u64;
        excess += (1.0 - 1e8 / rate).max(0.0);
        let mut ack = |ack_seq| {
            let ack = acked(ack_seq, 1_000_000, ack_seq + 100_000);
            c.on_ack(0, &Ack { now: Time::from_ps(now), newly_acked: 1_000, ..ack });
        };
        if 2.0 <= excess {
            excess -= 2.0;
            ack(seq);
            seq += 1_000;
        }
        seq += 1_000;
        ack(seq);
        rates.push(rate);
    }
    // From 4 Mb/s by doubling to 64, where another doubling would lose half.
    assert_eq!((rates[0], rates.contains(&6.4e7)), (4e6, true));
    let late: f64 = rates[30_000..].iter().sum::<f64>() / 30_000.0;
    assert!((8e7..=1.2e8).contains(&late), "{late}");
}
