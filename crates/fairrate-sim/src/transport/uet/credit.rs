//! Credit of receivers (RCCC): what a message has been granted at its sender, and the pacer of a receiving host.

use std::collections::VecDeque;

use fairrate_units::{Bytes, Rate};

use crate::ids::FlowId;

/// Bytes of a unit of credit. Numbers of credit are cumulative, in these units.
pub(super) const QUANTUM: u64 = 256;
/// Units that a message gets in its turn.
const TURN: u64 = 64;

/// The credit of a message at its sender.
#[derive(Debug)]
pub(super) struct Purse {
    /// Bytes that may be sent; below zero after the last packet that they paid for.
    bytes: i64,
    /// Most bytes, and those of the beginning.
    most: i64,
    /// The highest number of credit that has come.
    pulled: u64,
    /// `true` until the first answer: what is sent was not asked for.
    is_speculating: bool,
}

impl Purse {
    /// Returns the credit of a message that has sent nothing.
    pub(super) fn new(most: u64) -> Self {
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        Self { bytes: most, most, pulled: 0, is_speculating: true }
    }

    /// Returns `true` if a packet may be sent.
    pub(super) fn is_open(&self) -> bool {
        0 < self.bytes
    }

    /// Pays for a packet of `wire` bytes.
    pub(super) fn pay(&mut self, wire: u64) {
        self.bytes -= wire.cast_signed();
    }

    /// Ends speculation, as an answer has come: what was not used is lost.
    pub(super) fn on_answer(&mut self) {
        if std::mem::take(&mut self.is_speculating) {
            self.bytes = self.bytes.min(0);
        }
    }

    /// Takes credit up to number `pulled`.
    pub(super) fn take(&mut self, pulled: u64) {
        let more = pulled.saturating_sub(self.pulled);
        self.pulled += more;
        self.bytes = self.bytes.saturating_add((more * QUANTUM).cast_signed()).min(self.most);
    }

    /// Returns the number of credit that a message asks for: with `backlog` bytes to send, of which a window lets `window` through,
    /// beside `n_flows` that wait at the same NIC. `packet` is the size of a full packet.
    pub(super) fn target(&self, backlog: u64, window: u64, packet: u64, n_flows: u64) -> u64 {
        let wanted = backlog.min(window).cast_signed().min(self.most) - self.bytes;
        let wanted = if self.is_speculating && 0 < backlog { wanted.max(packet.cast_signed()) } else { wanted };
        let wanted = wanted / n_flows.max(1).cast_signed();
        (self.pulled * QUANTUM).saturating_add_signed(wanted).div_ceil(QUANTUM)
    }
}

/// The credit of a message at its receiver.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Account {
    /// The number asked for, and that given.
    pub(super) target: u64,
    pub(super) given: u64,
    /// Number of credit packets sent.
    pub(super) n_sent: u16,
}

/// The pacer of a host: it gives credit at just less than the rate of its link, to one message at a time.
#[derive(Debug, Default)]
pub(super) struct Pacer {
    /// Messages that have asked for more than they have been given.
    active: VecDeque<FlowId>,
    /// All others that are under way.
    idle: VecDeque<FlowId>,
    /// End of the last turn, in picoseconds.
    free_ps: u64,
    /// `true` if a turn is scheduled.
    pub(super) is_running: bool,
}

impl Pacer {
    /// Adds a message that asks, or that has just begun; returns the time of the next turn if that is to be scheduled.
    pub(super) fn ask(&mut self, flow: FlowId, account: Account, now_ps: u64) -> Option<u64> {
        let is_active = account.given < account.target;
        let is_known = self.active.contains(&flow) || !is_active && self.idle.contains(&flow);
        if !is_known {
            self.idle.retain(|&idle| idle != flow);
            if is_active { &mut self.active } else { &mut self.idle }.push_back(flow);
        }
        self.wake(now_ps)
    }

    /// Removes a message that has arrived.
    pub(super) fn forget(&mut self, flow: FlowId) {
        self.active.retain(|&active| active != flow);
        self.idle.retain(|&idle| idle != flow);
    }

    /// Returns the time of the next turn if there is one and none is scheduled; it is then taken as scheduled.
    pub(super) fn wake(&mut self, now_ps: u64) -> Option<u64> {
        let has_turn = !self.active.is_empty() || !self.idle.is_empty();
        if self.is_running || !has_turn {
            return None;
        }
        self.is_running = true;
        Some(now_ps.max(self.free_ps))
    }

    /// Takes a turn at `now_ps`: returns the message that gets credit, and the units. `account` returns a message's account, which
    /// is not above `ahead` units in credit if nobody asks. `None`: all have enough.
    pub(super) fn turn(
        &mut self,
        now_ps: u64,
        rate: Rate,
        ahead: u64,
        account: impl Fn(FlowId) -> Account,
    ) -> Option<(FlowId, u64)> {
        self.is_running = false;
        let (flow, units) = if let Some(flow) = self.active.pop_front() {
            let Account { target, given, .. } = account(flow);
            let units = TURN.min(target.saturating_sub(given));
            if given + units < target { &mut self.active } else { &mut self.idle }.push_back(flow);
            (flow, units)
        } else {
            let has_room = |flow: &FlowId| {
                let Account { target, given, .. } = account(*flow);
                given < target + ahead
            };
            let at = self.idle.iter().position(has_room)?;
            self.idle.rotate_left(at);
            let flow = self.idle.pop_front()?;
            self.idle.push_back(flow);
            (flow, TURN)
        };
        // A turn takes a while even if it gives nothing.
        let turn = if units == 0 { TURN / 16 } else { units };
        self.free_ps = now_ps + turn * rate.tx_time(Bytes::new(QUANTUM)).as_ps();
        Some((flow, units))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_purse_begins_with_a_window_and_asks_for_what_is_left() {
        let mut purse = Purse::new(10_000);
        // 20,000 to send, 10,000 at hand: it asks for a packet at least, and the rest of the window once it has paid.
        assert_eq!(purse.target(20_000, u64::MAX, 1_000, 1), 4);
        purse.pay(1_000);
        assert_eq!(purse.target(19_000, u64::MAX, 1_000, 1), 4);
        purse.pay(5_000);
        assert_eq!(purse.target(14_000, u64::MAX, 1_000, 1), 24);
        assert_eq!(purse.target(14_000, u64::MAX, 1_000, 2), 12);
        // The answer ends speculation; what is granted comes on top, up to a window.
        purse.on_answer();
        assert!(!purse.is_open());
        purse.take(4);
        assert!(purse.is_open());
        assert_eq!(purse.target(500, u64::MAX, 1_000, 1), 2);
        purse.take(1_000);
        assert_eq!(purse.bytes, 10_000);
    }

    #[test]
    fn a_pacer_takes_turns_and_gives_to_the_idle_when_none_asks() {
        let (mut pacer, rate) = (Pacer::default(), Rate::from_gbps(100));
        let mut accounts =
            [Account { target: 100, ..Account::default() }, Account { target: 30, ..Account::default() }];
        assert_eq!(pacer.ask(FlowId(0), accounts[0], 5), Some(5));
        assert_eq!(pacer.ask(FlowId(1), accounts[1], 5), None);
        let mut turns = Vec::new();
        let mut now_ps = 5;
        for _ in 0..5 {
            let (flow, units) = pacer.turn(now_ps, rate, 64, |flow| accounts[flow.index()]).expect("a turn");
            accounts[flow.index()].given += units;
            turns.push((flow.0, units));
            now_ps = pacer.wake(now_ps).expect("there is more");
        }
        // 64 and 36 of 100, 30 of 30, and then 64 more for each: the one with more is not before the other.
        assert_eq!(turns, [(0, 64), (1, 30), (0, 36), (1, 64), (0, 64)]);
        assert!(pacer.turn(now_ps, rate, 64, |flow| accounts[flow.index()]).is_none());
        // 258 units of 256 bytes at 100 Gb/s.
        assert_eq!(now_ps, 5 + 258 * 256 * 80);
    }
}
