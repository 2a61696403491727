//! Multipath TCP (RFC 8684) without packets: which subflow carries which piece of a connection's data, what moves to
//! another when a path dies, and how the receiver puts the pieces together.
//!
//! Data is cut into pieces of a full segment, numbered from 0; only the last one may be shorter. A segment of a subflow
//! carries one piece, and takes a full segment of the subflow's own sequence numbers whatever the piece's length, so that
//! a short piece may be followed by others. A subflow recovers its segments by itself; a piece may travel on several.

use std::collections::{BTreeSet, VecDeque};

use fairrate_control::CoupledAlgorithm;

/// Retransmission timeouts in a row after which a path counts as dead.
const TIMEOUTS_OF_A_DEAD_PATH: u32 = 2;

/// How a flow is spread over several paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MptcpConfig {
    /// Subflows of a connection; 1: plain TCP.
    pub subflows: u8,
    /// Which of them takes the next piece of data.
    pub scheduler: Scheduler,
    /// How they come to different paths.
    pub paths: SubflowPaths,
}

impl MptcpConfig {
    /// Plain TCP.
    pub const SINGLE: Self = Self { subflows: 1, scheduler: Scheduler::MinRtt, paths: SubflowPaths::Hashed };
}

/// Which subflow takes the next piece of data, of those that may send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheduler {
    /// The one with the smallest smoothed round-trip time.
    MinRtt,
    /// One after the other.
    RoundRobin,
    /// As `MinRtt`; but a subflow at a rate of less than a packet a round trip repeats what others have in flight, so that
    /// nobody waits for it (RateMP section IV-B).
    Redundant,
}

/// How subflows come to different paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SubflowPaths {
    /// Consecutive source ports, and what the switches' hash makes of them.
    Hashed,
    /// Source ports are tried until paths share as few links as they can.
    Disjoint,
}

/// The sending side of a connection.
pub struct Connection {
    mss: u64,
    /// Bytes of data; `u64::MAX` while endless.
    total: u64,
    /// Next piece that nobody has sent.
    next: u64,
    /// First byte that the receiver does not have in order.
    una: u64,
    /// Of each piece from that byte on to `next`: whether a subflow knows it to have arrived.
    arrived: VecDeque<bool>,
    receive_window: u64,
    scheduler: Scheduler,
    subflows: Vec<Subflow>,
    /// Pieces that others are to send again, and the subflow they were on.
    again: BTreeSet<(u64, u8)>,
    /// Bytes sent on a subflow that another one had sent before.
    pub repeated: u64,
    /// Whether subflows may have data that they had none of before, or none any more.
    changed: bool,
    had_new: bool,
    /// The controller of all subflows, if the algorithm couples them.
    pub controller: Option<CoupledAlgorithm>,
    /// Earliest time of the next segment by the application's rate, in picoseconds.
    pub next_send_ps: u64,
}

#[derive(Clone, Debug)]
struct Subflow {
    /// Pieces of its unacknowledged segments, the first of which has number `first`.
    pieces: VecDeque<u64>,
    first: u64,
    is_alive: bool,
    /// Retransmission timeouts since the last delivery.
    timeouts: u32,
    /// Whether it sends less than a packet a round trip.
    is_slow: bool,
    /// Redundant: pieces below this are not to be repeated by it.
    repeated_to: u64,
    /// The base round-trip time of its path, in picoseconds.
    path_rtt_ps: u64,
}

/// What a subflow sends next that it has not sent before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    /// A piece nobody has sent.
    New(u64),
    /// A piece that was on a subflow whose path is dead.
    Again(u64, u8),
    /// A piece that others have in flight.
    Copy(u64),
}

impl Connection {
    /// Nothing sent; one subflow for each of the paths, whose base round-trip times these are, in picoseconds.
    pub fn new(
        scheduler: Scheduler,
        mss: u64,
        total: u64,
        receive_window: u64,
        path_rtts_ps: impl Iterator<Item = u64>,
    ) -> Self {
        let subflow = |path_rtt_ps| Subflow {
            pieces: VecDeque::new(),
            first: 0,
            is_alive: true,
            timeouts: 0,
            is_slow: false,
            repeated_to: 0,
            path_rtt_ps,
        };
        let mut connection = Self {
            mss,
            total,
            next: 0,
            una: 0,
            arrived: VecDeque::new(),
            receive_window: receive_window.max(mss),
            scheduler,
            subflows: path_rtts_ps.map(subflow).collect(),
            again: BTreeSet::new(),
            repeated: 0,
            changed: false,
            had_new: false,
            controller: None,
            next_send_ps: 0,
        };
        connection.had_new = connection.has_new();
        connection
    }

    /// The base round-trip time of a subflow's path, in picoseconds.
    pub fn path_rtt_ps(&self, subflow: usize) -> u64 {
        self.subflows[subflow].path_rtt_ps
    }

    /// Whether the receiver has everything in order.
    pub fn is_done(&self) -> bool {
        self.total <= self.una
    }

    /// Whether every byte has been sent once.
    pub fn all_sent(&self) -> bool {
        self.total <= self.next.saturating_mul(self.mss)
    }

    /// The connection ends with what has been sent. Its length.
    pub fn stop(&mut self) -> u64 {
        self.total = self.total.min(self.next * self.mss);
        self.note_new();
        self.total
    }

    /// The first piece that the receiver does not have in order.
    fn first_piece(&self) -> u64 {
        self.una.div_ceil(self.mss)
    }

    /// First byte of a piece.
    pub fn data_at(&self, piece: u64) -> u64 {
        piece * self.mss
    }

    /// Bytes of a piece.
    pub fn piece_len(&self, piece: u64) -> u64 {
        self.mss.min(self.total.saturating_sub(piece * self.mss))
    }

    /// The piece that a segment of a subflow carries, by the segment's first byte.
    pub fn piece_at(&self, subflow: usize, seq: u64) -> Option<u64> {
        let s = &self.subflows[subflow];
        s.pieces.get((seq / self.mss).checked_sub(s.first)? as usize).copied()
    }

    /// Whether the order of the subflows' turns is decided by round-trip times.
    pub fn prefers_short_rtts(&self) -> bool {
        self.scheduler != Scheduler::RoundRobin
    }

    /// Whether a subflow is only to repeat what others have in flight.
    pub fn repeats(&self, subflow: usize) -> bool {
        self.scheduler == Scheduler::Redundant
            && self.subflows[subflow].is_slow
            && self.subflows.iter().any(|s| s.is_alive && !s.is_slow)
    }

    /// Whether a subflow has something to send that it has not sent before.
    pub fn offers(&self, subflow: usize) -> bool {
        self.next_of(subflow).is_some()
    }

    fn next_of(&self, subflow: usize) -> Option<Next> {
        let s = &self.subflows[subflow];
        if !s.is_alive && self.subflows.iter().any(|s| s.is_alive) {
            return None;
        }
        if self.repeats(subflow) {
            return self.copy_for(s).map(Next::Copy);
        }
        let again = self.again.iter().find(|&&(_, of)| usize::from(of) != subflow);
        if let Some(&(piece, of)) = again {
            return Some(Next::Again(piece, of));
        }
        self.has_new().then_some(Next::New(self.next))
    }

    /// The first piece in flight on others that a slow subflow has not sent itself.
    fn copy_for(&self, s: &Subflow) -> Option<u64> {
        let first = self.first_piece();
        let open = |&piece: &u64| !self.arrived[(piece - first) as usize] && !s.pieces.contains(&piece);
        (first.max(s.repeated_to)..self.next).find(open)
    }

    /// Whether there is data that nobody has sent and the receiver has room for.
    fn has_new(&self) -> bool {
        let at = self.next.saturating_mul(self.mss);
        at < self.total && at - self.una < self.receive_window
    }

    /// Notes that there may be new data now, or none any more.
    fn note_new(&mut self) {
        let has_new = self.has_new();
        self.changed |= has_new != self.had_new || self.scheduler == Scheduler::Redundant;
        self.had_new = has_new;
    }

    /// Whether what [`Connection::offers`] says may have changed for other subflows since this was asked last.
    pub fn take_changed(&mut self) -> bool {
        std::mem::take(&mut self.changed)
    }

    /// A subflow sends its next piece, in the segment that comes after its last; `None`: it has none.
    pub fn take(&mut self, subflow: usize) -> Option<u64> {
        let piece = match self.next_of(subflow)? {
            Next::New(piece) => {
                self.next += 1;
                self.arrived.push_back(false);
                piece
            }
            Next::Again(piece, of) => {
                self.again.remove(&(piece, of));
                self.changed = true;
                self.repeated += self.piece_len(piece);
                piece
            }
            Next::Copy(piece) => {
                self.subflows[subflow].repeated_to = piece + 1;
                self.repeated += self.piece_len(piece);
                piece
            }
        };
        self.subflows[subflow].pieces.push_back(piece);
        self.note_new();
        Some(piece)
    }

    /// A subflow's segments below `ack` are acknowledged.
    pub fn on_ack(&mut self, subflow: usize, ack: u64) {
        let first = self.first_piece();
        self.changed |= self.scheduler == Scheduler::Redundant;
        let s = &mut self.subflows[subflow];
        while s.first * self.mss < ack {
            let Some(piece) = s.pieces.pop_front() else { break };
            s.first += 1;
            if let Some(at) = piece.checked_sub(first)
                && let Some(arrived) = self.arrived.get_mut(at as usize)
            {
                *arrived = true;
            }
        }
    }

    /// The receiver has all data below `una` in order.
    pub fn on_data_ack(&mut self, una: u64) {
        if una <= self.una {
            return;
        }
        let before = self.first_piece();
        self.una = una;
        let first = self.first_piece();
        self.arrived.drain(..self.arrived.len().min((first - before) as usize));
        while self.again.first().is_some_and(|&(piece, _)| piece < first) {
            self.again.pop_first();
            self.changed = true;
        }
        self.note_new();
    }

    /// A segment of a subflow has been delivered. True if its path was taken for dead.
    pub fn on_delivery(&mut self, subflow: usize) -> bool {
        let s = &mut self.subflows[subflow];
        let revives = !s.is_alive;
        (s.is_alive, s.timeouts) = (true, 0);
        self.changed |= revives;
        revives
    }

    /// A subflow's retransmission timer has expired; `undelivered` are the first bytes of its segments that have not
    /// arrived. Of a path that is taken for dead they move to the others, each time, since it may have taken new data while
    /// all were dead. True if it is taken for dead from now on.
    pub fn on_timeout(&mut self, subflow: usize, undelivered: impl Iterator<Item = u64>) -> bool {
        let s = &mut self.subflows[subflow];
        s.timeouts += 1;
        let dies = s.is_alive && TIMEOUTS_OF_A_DEAD_PATH <= s.timeouts;
        s.is_alive &= !dies;
        if !s.is_alive {
            self.send_again(subflow, undelivered);
        }
        dies
    }

    /// A slow subflow has lost segments: others are to send their data, if it only repeats theirs.
    pub fn on_loss(&mut self, subflow: usize, undelivered: impl Iterator<Item = u64>) {
        if self.repeats(subflow) {
            self.send_again(subflow, undelivered);
        }
    }

    /// Lets others send pieces of a subflow that have not arrived and that no other living subflow has in flight.
    fn send_again(&mut self, subflow: usize, undelivered: impl Iterator<Item = u64>) {
        let first = self.first_piece();
        for seq in undelivered {
            let Some(piece) = self.piece_at(subflow, seq).filter(|piece| first <= *piece) else { continue };
            let elsewhere = (0..)
                .zip(&self.subflows)
                .any(|(at, s)| at != subflow && s.is_alive && !s.is_slow && s.pieces.contains(&piece));
            if !self.arrived[(piece - first) as usize] && !elsewhere {
                self.again.insert((piece, subflow as u8));
            }
        }
        self.changed = true;
    }

    /// A controller has decided: whether a subflow sends less than a packet a round trip from now on.
    pub fn set_slow(&mut self, subflow: usize, is_slow: bool) {
        let s = &mut self.subflows[subflow];
        self.changed |= s.is_slow != is_slow && self.scheduler == Scheduler::Redundant;
        s.is_slow = is_slow;
    }
}

#[cfg(test)]
mod tests {
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
        // What the receiver turns out to have need not be sent.
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
        // Both are dead: each sends what was the other's, and the second new data.
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
        // With all of them slow there is nobody to wait for it.
        c.set_slow(0, true);
        assert_eq!(c.take(1), Some(4));
        // Its losses are others' to send, once they are fast.
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
        /// Which segments have arrived.
        arrived: BTreeSet<u64>,
        acked: u64,
    }

    proptest! {
        /// Whatever is lost, late or twice on whichever path, every piece arrives and is delivered in order.
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
                        // The subflow sends everything again that is missing and not on its way.
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
}
