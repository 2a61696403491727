use proptest::prelude::*;

use super::super::reassembly::Reassembly;
use super::*;

const MSS: u64 = 1_000;

fn connection(scheduler: Scheduler, bytes: u64, n: u64) -> Connection {
    Connection::new(scheduler, MSS, bytes, u64::MAX, (0..n).map(|i| 1_000 * i))
}

#[test]
fn pieces_are_handed_out_once_and_the_last_is_short() {
    let mut c = connection(Scheduler::RoundRobin, 2_500, 2);
    assert_eq!((c.take(0), c.take(1), c.take(1), c.take(0)), (Some(0), Some(1), Some(2), None));
    assert_eq!((c.piece_len(1), c.piece_len(2)), (1_000, 500));
    // The second segment of the second subflow carries the third piece.
    assert_eq!((c.piece_at(1, 1_000), c.piece_at(1, 2_000)), (Some(2), None));
    assert!(c.all_sent() && !c.is_done());
    c.on_data_ack(2_500);
    assert!(c.is_done());
}

#[test]
fn the_receive_window_is_the_connections() {
    let mut c = Connection::new(Scheduler::MinRtt, MSS, u64::MAX, 2_000, [0, 0].into_iter());
    assert_eq!((c.take(0), c.take(1), c.take(0)), (Some(0), Some(1), None));
    assert!(c.take_changed(), "others have nothing to send any more");
    c.on_ack(1, 1_000);
    assert!(!c.offers(1), "the piece before is missing");
    c.on_data_ack(2_000);
    assert!(c.take_changed() && c.offers(0) && c.offers(1));
}

#[test]
fn data_of_a_dead_path_moves() {
    let mut c = connection(Scheduler::MinRtt, 4_000, 2);
    assert_eq!((c.take(0), c.take(0), c.take(1), c.take(0)), (Some(0), Some(1), Some(2), Some(3)));
    c.on_ack(0, 1_000);
    c.on_data_ack(1_000);
    assert!(!c.on_timeout(0, [1_000, 2_000].into_iter()) && !c.offers(1), "one timeout is no death");
    assert!(c.on_timeout(0, [1_000, 2_000].into_iter()));
    assert!(!c.offers(0) && c.offers(1));
    assert_eq!(c.take(1), Some(1));
    // Data the receiver already has need not be sent.
    c.on_data_ack(4_000);
    assert!(!c.offers(1) && c.is_done());
    assert_eq!(c.repeated, 1_000);
    assert!(c.on_delivery(0) && !c.on_delivery(0));
}

#[test]
fn what_a_dead_path_took_while_all_were_dead_moves_when_another_is_back() {
    let mut c = connection(Scheduler::MinRtt, 3_000, 2);
    assert_eq!((c.take(0), c.take(1)), (Some(0), Some(1)));
    for _ in 0..2 {
        c.on_timeout(0, std::iter::once(0));
        c.on_timeout(1, std::iter::once(0));
    }
    // Both are dead: each sends the pieces of the other, and the second also new data.
    assert_eq!((c.take(0), c.take(1), c.take(1)), (Some(1), Some(0), Some(2)));
    assert!(c.on_delivery(0));
    c.on_ack(0, 2_000);
    c.on_data_ack(2_000);
    assert!(!c.offers(0));
    assert!(!c.on_timeout(1, [0, 1_000, 2_000].into_iter()), "it is dead already");
    assert_eq!((c.take(0), c.take(0)), (Some(2), None));
}

#[test]
fn a_slow_subflow_repeats_what_others_have_in_flight() {
    let mut c = connection(Scheduler::Redundant, 9_000, 2);
    c.set_slow(1, true);
    assert!(!c.offers(1), "there is nothing to repeat yet");
    assert_eq!((c.take(0), c.take(0), c.take(0)), (Some(0), Some(1), Some(2)));
    assert_eq!((c.take(1), c.take(1)), (Some(0), Some(1)));
    c.on_ack(0, 3_000);
    assert!(!c.offers(1), "all that was sent has arrived");
    assert_eq!(c.take(0), Some(3));
    assert_eq!(c.take(1), Some(3));
    assert_eq!(c.repeated, 3_000);
    // If all are slow, none repeats.
    c.set_slow(0, true);
    assert_eq!(c.take(1), Some(4));
    // Its lost segments move to the other subflow once that is fast.
    c.set_slow(0, false);
    c.on_loss(1, [3_000].into_iter());
    assert_eq!((c.take(0), c.take(0)), (Some(4), Some(5)));
}

/// A path that loses, reorders and dies, in steps a test chooses.
#[derive(Clone, Default)]
struct Path {
    /// Segments in flight: number and piece.
    wire: Vec<(u64, u64)>,
    sent: u64,
    /// Numbers of the segments that have arrived.
    arrived: BTreeSet<u64>,
    acked: u64,
}

proptest! {
    /// Every piece arrives and is delivered in order, whatever is lost, late or duplicated on any path.
    #[test]
    fn all_data_arrives(
        steps in prop::collection::vec((0usize..3, 0u8..8, 0usize..64), 0..400),
        bytes in 1u64..40_000,
        window in 1_000u64..60_000,
        scheduler in prop::sample::select(vec![Scheduler::MinRtt, Scheduler::RoundRobin, Scheduler::Redundant]),
    ) {
        let mut c = Connection::new(scheduler, MSS, bytes, window, [1, 2, 3].into_iter());
        let mut r = Reassembly::default();
        let mut paths = vec![Path::default(); 3];
        let mut seen = BTreeSet::new();
        // After the chosen steps, everything is sent again and delivered until all is done.
        let calm = (0..600).flat_map(|_| (0..3).flat_map(|p| [(p, 0, 0), (p, 6, 0), (p, 2, 0), (p, 3, 0)]));
        for (p, what, pick) in steps.into_iter().chain(calm) {
            let path = &mut paths[p];
            match what {
                0 | 1 => {
                    if let Some(piece) = c.take(p) {
                        let seq = path.sent * MSS;
                        prop_assert_eq!(c.piece_at(p, seq), Some(piece));
                        prop_assert!(0 < c.piece_len(piece) && c.piece_len(piece) <= MSS);
                        path.wire.push((path.sent, piece));
                        path.sent += 1;
                    }
                }
                2 if !path.wire.is_empty() => {
                    let (segment, piece) = path.wire.remove(pick % path.wire.len());
                    path.arrived.insert(segment);
                    seen.insert(piece);
                    let expected = r.take(MSS, c.data_at(piece), c.piece_len(piece), 0);
                    let in_order = (0..=seen.len() as u64).find(|piece| !seen.contains(piece)).expect("the set is finite");
                    prop_assert_eq!(expected, bytes.min(in_order * MSS));
                }
                3 => {
                    path.acked = (path.acked..=path.sent).find(|s| !path.arrived.contains(s)).expect("the set is finite");
                    c.on_ack(p, path.acked * MSS);
                    c.on_data_ack(r.expected);
                    c.on_delivery(p);
                }
                4 if !path.wire.is_empty() => {
                    path.wire.remove(pick % path.wire.len());
                }
                5 => {
                    let lost = (path.acked..path.sent).filter(|s| !path.arrived.contains(s)).map(|s| s * MSS);
                    c.on_timeout(p, lost);
                }
                6 => {
                    // The subflow sends again all segments that are missing and not on their way.
                    for segment in path.acked..path.sent {
                        if !path.arrived.contains(&segment) && path.wire.iter().all(|w| w.0 != segment) {
                            let piece = c.piece_at(p, segment * MSS).expect("it is not acknowledged");
                            path.wire.push((segment, piece));
                        }
                    }
                }
                7 => c.set_slow(p, pick % 2 == 0),
                _ => {}
            }
        }
        prop_assert!(c.is_done() && r.expected == bytes, "{} of {} bytes", r.expected, bytes);
    }
}
