//! Multipath TCP (RFC 8684) without packets: the assignment of a connection's data to subflows, in pieces, and of a
//! dead path's pieces to other subflows. The receiver's side is in `reassembly.rs`.
//!
//! Data is cut into pieces of a full segment, numbered from 0; only the last piece may be shorter. A segment of a
//! subflow carries one piece, and takes a full segment of the subflow's own sequence numbers whatever the piece's
//! length, so that a short piece may be followed by others. A subflow recovers its segments by itself; a piece may be
//! sent on several subflows.

use std::collections::{BTreeSet, VecDeque};

use fairrate_control::CoupledAlgorithm;

/// Number of retransmission timeouts in a row after which a path counts as dead.
const TIMEOUTS_OF_A_DEAD_PATH: u32 = 2;

/// The rules by which a flow is spread over several paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MptcpConfig {
    /// Subflows of a connection; 1: plain TCP.
    pub subflows: u8,
    /// Rule by which a subflow is chosen for the next piece of data.
    pub scheduler: Scheduler,
    /// Rule by which subflows get different paths.
    pub paths: SubflowPaths,
}

impl MptcpConfig {
    /// Plain TCP.
    pub const SINGLE: Self = Self { subflows: 1, scheduler: Scheduler::MinRtt, paths: SubflowPaths::Hashed };
}

/// The rules that choose a subflow for the next piece of data, among those that may send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheduler {
    /// The subflow with the smallest smoothed round-trip time.
    MinRtt,
    /// Each subflow in turn.
    RoundRobin,
    /// As `MinRtt`; but a subflow at a rate of less than a packet a round trip repeats what other subflows have in
    /// flight, so that the connection does not wait for it (RateMP section IV-B).
    Redundant,
}

/// The rules by which subflows get different paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SubflowPaths {
    /// Consecutive source ports, which the switches' hash turns into paths.
    Hashed,
    /// Source ports are tried until the paths share as few links as possible.
    Disjoint,
}

/// The sending side of a connection.
pub struct Connection {
    mss: u64,
    /// Bytes of data; `u64::MAX` while endless.
    total: u64,
    /// Next piece that has not been sent.
    next: u64,
    /// First byte that the receiver does not have in order.
    una: u64,
    /// For each piece from that byte on to `next`: `true` if a subflow's acknowledgment shows that it has arrived.
    arrived: VecDeque<bool>,
    receive_window: u64,
    scheduler: Scheduler,
    subflows: Vec<Subflow>,
    /// Pieces that other subflows must send again, each with the subflow that sent it.
    again: BTreeSet<(u64, u8)>,
    /// Bytes sent on a subflow after another subflow had sent them.
    pub repeated: u64,
    /// Set when some subflow's [`Connection::offers`] may have changed.
    changed: bool,
    had_new: bool,
    /// The controller of all subflows, if the algorithm couples them.
    pub controller: Option<CoupledAlgorithm>,
    /// Earliest time of the next segment by the application's rate, in picoseconds.
    pub next_send_ps: u64,
}

#[derive(Clone, Debug)]
struct Subflow {
    /// Pieces of its unacknowledged segments; the first of these segments has number `first`.
    pieces: VecDeque<u64>,
    first: u64,
    is_alive: bool,
    /// Retransmission timeouts since the last delivery.
    timeouts: u32,
    /// `true` if it sends less than a packet a round trip.
    is_slow: bool,
    /// Redundant scheduling: end of the pieces it need not repeat any more.
    repeated_to: u64,
    /// The base round-trip time of its path, in picoseconds.
    path_rtt_ps: u64,
}

/// The next data of a subflow that it has not sent before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    /// A piece not sent before on any subflow.
    New(u64),
    /// A piece that must be sent again, and the subflow that sent it.
    Again(u64, u8),
    /// A piece that other subflows have in flight.
    Copy(u64),
}

impl Connection {
    /// Returns a connection that has sent nothing, with one subflow for each of `path_rtts_ps`, the base round-trip
    /// times of the paths in picoseconds.
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

    /// Returns the base round-trip time of a subflow's path, in picoseconds.
    pub fn path_rtt_ps(&self, subflow: usize) -> u64 {
        self.subflows[subflow].path_rtt_ps
    }

    /// Returns `true` if the receiver has all data in order.
    pub fn is_done(&self) -> bool {
        self.total <= self.una
    }

    /// Returns `true` if every byte has been sent once.
    pub fn all_sent(&self) -> bool {
        self.total <= self.next.saturating_mul(self.mss)
    }

    /// Ends the connection with what has been sent; returns its length in bytes.
    pub fn stop(&mut self) -> u64 {
        self.total = self.total.min(self.next * self.mss);
        self.note_new();
        self.total
    }

    /// Returns the number of the first piece that the receiver does not have in order.
    fn first_piece(&self) -> u64 {
        self.una.div_ceil(self.mss)
    }

    /// Returns the first byte of a piece.
    pub fn data_at(&self, piece: u64) -> u64 {
        piece * self.mss
    }

    /// Returns the length of a piece in bytes.
    pub fn piece_len(&self, piece: u64) -> u64 {
        self.mss.min(self.total.saturating_sub(piece * self.mss))
    }

    /// Returns the piece that a segment of a subflow carries; `seq` is the segment's first byte.
    pub fn piece_at(&self, subflow: usize, seq: u64) -> Option<u64> {
        let s = &self.subflows[subflow];
        s.pieces.get((seq / self.mss).checked_sub(s.first)? as usize).copied()
    }

    /// Returns `true` if the order of the subflows' turns depends on round-trip times.
    pub fn prefers_short_rtts(&self) -> bool {
        self.scheduler != Scheduler::RoundRobin
    }

    /// Returns `true` if a subflow only repeats what other subflows have in flight.
    pub fn repeats(&self, subflow: usize) -> bool {
        self.scheduler == Scheduler::Redundant
            && self.subflows[subflow].is_slow
            && self.subflows.iter().any(|s| s.is_alive && !s.is_slow)
    }

    /// Returns `true` if a subflow has data to send that it has not sent before.
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

    /// Returns the first piece in flight on other subflows that the slow subflow `s` has not sent itself.
    fn copy_for(&self, s: &Subflow) -> Option<u64> {
        let first = self.first_piece();
        let open = |&piece: &u64| !self.arrived[(piece - first) as usize] && !s.pieces.contains(&piece);
        (first.max(s.repeated_to)..self.next).find(open)
    }

    /// Returns `true` if there is data that has not been sent and that the receiver has room for.
    fn has_new(&self) -> bool {
        let at = self.next.saturating_mul(self.mss);
        at < self.total && at - self.una < self.receive_window
    }

    /// Sets `changed` if new data has become available or unavailable.
    fn note_new(&mut self) {
        let has_new = self.has_new();
        self.changed |= has_new != self.had_new || self.scheduler == Scheduler::Redundant;
        self.had_new = has_new;
    }

    /// Returns `true` if [`Connection::offers`] may have changed for other subflows since the last call.
    pub fn take_changed(&mut self) -> bool {
        std::mem::take(&mut self.changed)
    }

    /// Takes the next piece of a subflow, for the segment after its last one; returns `None` if it has no piece to
    /// send.
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

    /// Records that a subflow's segments below `ack` are acknowledged.
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

    /// Records that the receiver has all data below `una` in order.
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

    /// Records the delivery of a segment of a subflow; returns `true` if its path was considered dead.
    pub fn on_delivery(&mut self, subflow: usize) -> bool {
        let s = &mut self.subflows[subflow];
        let revives = !s.is_alive;
        (s.is_alive, s.timeouts) = (true, 0);
        self.changed |= revives;
        revives
    }

    /// Handles a retransmission timeout of a subflow; returns `true` if its path is considered dead from now on.
    /// `undelivered` are the first bytes of its segments that have not arrived. While its path is dead, they move to
    /// the other subflows at every timeout, since it may have taken new data while all paths were dead.
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

    /// Moves lost segments of a slow subflow to other subflows, if it only repeats theirs.
    pub fn on_loss(&mut self, subflow: usize, undelivered: impl Iterator<Item = u64>) {
        if self.repeats(subflow) {
            self.send_again(subflow, undelivered);
        }
    }

    /// Moves pieces of a subflow to the other subflows, if they have not arrived and no other living fast subflow has
    /// them in flight.
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

    /// Records, after a controller's decision, whether a subflow sends less than a packet a round trip from now on.
    pub fn set_slow(&mut self, subflow: usize, is_slow: bool) {
        let s = &mut self.subflows[subflow];
        self.changed |= s.is_slow != is_slow && self.scheduler == Scheduler::Redundant;
        s.is_slow = is_slow;
    }
}

#[cfg(test)]
mod tests;
