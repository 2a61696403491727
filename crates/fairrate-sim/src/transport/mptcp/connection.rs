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
mod tests;
