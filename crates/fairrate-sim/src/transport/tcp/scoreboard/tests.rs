use proptest::prelude::*;

use super::*;

const MSS: u64 = 1_000;

impl Scoreboard {
    fn in_order_of_sending(&self) -> impl Iterator<Item = &Segment> {
        let at = |number| (number != NONE).then(|| &self.segments[self.place(number)]);
        std::iter::successors(at(self.oldest), move |s| at(s.after))
    }
}

fn sent(n: u64) -> Scoreboard {
    let mut board = Scoreboard::new(MSS, LossDetection::Rack);
    (0..n).for_each(|i| board.send_new(MSS, false, 100 * i));
    board
}

#[test]
fn a_hole_is_lost_when_something_sent_later_arrives() {
    let mut board = sent(5);
    let acked = board.on_ack(1_000, &[], false, 1_000);
    assert_eq!((acked.cumulative, acked.rtt_ps, board.pipe()), (1_000, Some(1_000), 4_000));
    // Segment 2 arrives, segment 1 does not: while losses are repaired, and without reordering so far, the window is
    // zero.
    let acked = board.on_ack(1_000, &[(2_000, 3_000)], true, 1_200);
    assert_eq!((acked.delivered, acked.lost, board.pipe()), (1_000, 1_000, 2_000));
    assert_eq!(board.send_lost(1_210), Some((1_000, 1_000)));
    assert_eq!((board.send_lost(1_220), board.pipe()), (None, 3_000));
    // All arrive. The round-trip time is that of segment 4, not of the segment sent twice.
    let acked = board.on_ack(5_000, &[], false, 2_300);
    assert_eq!((acked.cumulative, acked.delivered, board.pipe()), (4_000, 3_000, 0));
    assert!(board.is_empty());
}

#[test]
fn reordering_teaches_patience() {
    let mut board = sent(6);
    board.on_ack(0, &[(1_000, 2_000)], true, 1_100);
    assert!(board.has_lost());
    // The first segment was only late: its acknowledgment arrives before it was sent again.
    let acked = board.on_ack(2_000, &[], false, 1_150);
    assert_eq!((acked.delivered, board.has_lost(), board.pipe()), (1_000, false, 4_000));
    // From now on, a hole has a quarter of the smallest RTT, 1,000, to fill.
    let acked = board.on_ack(2_000, &[(3_000, 4_000)], false, 1_300);
    assert_eq!((acked.lost, board.reorder_ps()), (0, 200 + 1_000 + 250));
    assert_eq!(board.on_reorder_timer(false, 1_450), 1_000);
    assert_eq!(board.send_lost(1_460), Some((2_000, 1_000)));
}

#[test]
fn by_number_three_segments_beyond_are_a_loss_once() {
    let mut board = Scoreboard::new(MSS, LossDetection::Sack);
    (0..9).for_each(|i| board.send_new(MSS, false, 100 * i));
    assert_eq!(board.on_ack(0, &[(1_000, 2_000), (4_000, 5_000)], false, 1_000).lost, 0);
    // Two segments and a third: everything below the first of the three is lost, what lies between them is not.
    assert_eq!(board.on_ack(0, &[(6_000, 7_000)], false, 1_100).lost, 1_000);
    assert_eq!(board.send_lost(1_110), Some((0, 1_000)));
    assert_eq!(board.on_ack(0, &[(7_000, 8_000)], false, 1_200).lost, 2_000);
    assert_eq!(board.send_lost(1_210), Some((2_000, 1_000)));
    // The first is lost again, which only a timeout detects.
    assert_eq!(board.on_ack(0, &[(2_000, 3_000), (8_000, 9_000)], true, 2_300).lost, 1_000);
    assert_eq!(board.reorder_ps(), u64::MAX);
}

#[test]
fn a_probe_repairs_the_tail() {
    let mut board = sent(3);
    board.on_ack(1_000, &[], false, 1_000);
    // The last two are lost. The probe sends the last again; its arrival shows that the one before is lost.
    assert_eq!(board.send_probe(3_000), Some((2_000, 1_000)));
    assert_eq!(board.pipe(), 2_000);
    let acked = board.on_ack(1_000, &[(2_000, 3_000)], false, 4_000);
    assert_eq!((acked.lost, acked.rtt_ps), (1_000, None));
    assert_eq!(board.send_lost(4_000), Some((1_000, 1_000)));
}

#[test]
fn a_timeout_loses_all_that_has_not_arrived() {
    let mut board = sent(4);
    board.on_ack(0, &[(2_000, 3_000)], false, 1_500);
    board.on_timeout();
    let again: Vec<_> = std::iter::from_fn(|| board.send_lost(9_000)).collect();
    assert_eq!(again, [(0, 1_000), (1_000, 1_000), (3_000, 1_000)]);
    assert_eq!(board.pipe(), 3_000);
    board.on_ack(4_000, &[], false, 10_000);
    assert!(board.is_empty() && board.pipe() == 0);
}

#[test]
fn the_delivery_rate_is_that_of_a_round_trip() {
    let mut board = sent(3);
    let rates: Vec<_> = (1..=3).map(|i| board.on_ack(i * 1_000, &[], false, 900 + 100 * i).rate).collect();
    // All were sent before anything was delivered, since time 0.
    assert_eq!(rates, [Some((1_000, 1_000)), Some((2_000, 1_100)), Some((3_000, 1_200))]);
    board.send_new(MSS, true, 1_250);
    let acked = board.on_ack(4_000, &[], false, 2_250);
    assert_eq!((acked.rate, acked.app_limited), (Some((1_000, 1_000)), true));
    // Two segments sent 1,000 apart whose acknowledgments arrive together were not delivered at once: the second was
    // sent when the first, of time 3,000, was not yet acknowledged, so sending took the time since then.
    board.send_new(MSS, false, 3_000);
    board.send_new(MSS, false, 5_000);
    board.on_ack(5_000, &[], false, 6_000);
    assert_eq!(board.on_ack(6_000, &[], false, 6_010).rate, Some((2_000, 3_010)));
}

proptest! {
    /// Packets and acknowledgments are lost, duplicated and reordered at random; everything arrives in the end, and a
    /// recount confirms the bytes in flight.
    #[test]
    fn every_byte_arrives(
        fates in prop::collection::vec((0u8..10, 0u64..400), 1..400), n in 1u64..60, by_time: bool,
    ) {
        let detection = if by_time { LossDetection::Rack } else { LossDetection::Sack };
        let mut board = Scoreboard::new(MSS, detection);
        let total = n * MSS - 300;
        let (mut now, mut fates) = (0u64, fates.into_iter().cycle());
        let mut received = std::collections::BTreeSet::new();
        let mut wire: Vec<(u64, u64)> = Vec::new();
        let mut rounds = 0;
        while board.una < total {
            rounds += 1;
            prop_assert!(rounds < 20_000, "no end: {board:?}");
            now += 50;
            let next = board.send_lost(now).or_else(|| {
                let seq = board.nxt;
                (seq < total && board.pipe() < 10 * MSS).then(|| {
                    board.send_new(MSS.min(total - seq), false, now);
                    (seq, MSS.min(total - seq))
                })
            });
            let (fate, delay) = fates.next().expect("it is a cycle");
            match next {
                Some((seq, _)) if fate != 0 || rounds > 10_000 => wire.push((now + 500 + delay, seq)),
                None if wire.is_empty() => board.on_timeout(),
                Some(_) | None => {}
            }
            let due: Vec<u64> = wire.iter().filter(|w| w.0 <= now).map(|w| w.1).collect();
            wire.retain(|w| now < w.0);
            for seq in due {
                received.insert(seq);
                if fate == 1 && rounds <= 10_000 {
                    continue;
                }
                let edge = (0..=n).map(|i| i * MSS).find(|s| !received.contains(s)).expect("nothing lies at the end");
                let sack = (seq, (seq + MSS).min(total));
                let sacks = if edge <= seq { vec![sack] } else { vec![] };
                board.on_ack(edge.min(total), &sacks, false, now);
            }
            if board.reorder_ps() <= now {
                board.on_reorder_timer(false, now);
            }
            let count = |f: &dyn Fn(&Segment) -> bool| {
                board.segments.iter().filter(|s| f(s)).map(|s| u64::from(s.len)).sum::<u64>()
            };
            prop_assert_eq!(board.pipe, count(&|s| !s.sacked && !s.lost));
            prop_assert_eq!(board.to_resend.len(), board.segments.iter().filter(|s| s.lost).count());
            prop_assert!(board.to_resend.iter().all(|&n| board.segments[board.place(n)].lost));
            prop_assert_eq!(board.n_sacked, board.segments.iter().filter(|s| s.sacked).count());
            let sent: Vec<u64> = board.in_order_of_sending().map(|s| s.sent_ps).collect();
            prop_assert_eq!(sent.len(), board.segments.iter().filter(|s| !s.sacked && !s.lost).count());
            prop_assert!(sent.is_sorted());
        }
        prop_assert_eq!(board.pipe(), 0);
    }
}
