//! The pacer of a receiving host.

use std::collections::VecDeque;

use fairrate_control::credits::CreditRule;
use fairrate_units::Rate;

use super::{Arrival, FabricShare, Terms};
use crate::ids::FlowId;

/// The credit of a message at its receiver, in units.
#[derive(Clone, Copy, Debug, Default)]
pub(in super::super) struct Account {
    /// The number asked for, and that given.
    pub(in super::super) target: u64,
    pub(in super::super) given: u64,
    /// Units owed for packets that were cut, if these come first.
    pub(in super::super) owed: u64,
    /// Number of credit packets sent.
    pub(in super::super) n_sent: u16,
}

impl Account {
    /// Takes the number of credit that a packet asks for.
    pub(in super::super) fn hear(&mut self, target: u64) {
        self.target = self.target.max(target);
    }

    /// Records a packet that was cut: credit for it is asked for or owed.
    pub(in super::super) fn owe(&mut self, terms: &Terms) {
        match terms.credits.rule {
            CreditRule::Wanted { .. } => self.target = self.target.max(self.given) + terms.owed(),
            CreditRule::Whole { .. } => self.owed += terms.owed(),
            CreditRule::Arrivals => {}
        }
    }

    /// Records that `packets` packets wait to be sent again: credit for as many is asked for or owed.
    pub(in super::super) fn owe_at_least(&mut self, packets: u64, terms: &Terms) {
        match terms.credits.rule {
            CreditRule::Wanted { .. } => self.target = self.target.max(self.given + packets * terms.owed()),
            CreditRule::Whole { .. } => self.owed = self.owed.max(packets * terms.owed()),
            CreditRule::Arrivals => {}
        }
    }

    /// Records a turn of `units`.
    pub(in super::super) fn give(&mut self, units: u64) {
        self.given += units;
        self.owed = self.owed.saturating_sub(units);
    }
}

/// The pacer of a host: it gives credit at just less than the rate of its link, to one message at a time.
#[derive(Debug, Default)]
pub(in super::super) struct Pacer {
    /// Messages that are owed credit for packets that were cut, if these come first.
    owed: VecDeque<FlowId>,
    /// Messages that have asked for more than they have been given.
    active: VecDeque<FlowId>,
    /// All others that are under way.
    idle: VecDeque<FlowId>,
    /// End of the last turn, in picoseconds.
    free_ps: u64,
    /// `true` if a turn is scheduled.
    is_running: bool,
    /// Share of the rate at which credit is given, where that is controlled.
    fabric: Option<Box<FabricShare>>,
}

impl Pacer {
    /// Returns a pacer whose rate is controlled by `fabric`, if that is given.
    pub(in super::super) fn new(fabric: Option<FabricShare>) -> Self {
        Self { fabric: fabric.map(Box::new), ..Self::default() }
    }

    /// Records a packet that comes at `now_ps`.
    pub(in super::super) fn note(&mut self, arrival: Arrival, now_ps: u64) {
        if let Some(fabric) = &mut self.fabric {
            fabric.note(arrival, now_ps);
        }
    }

    /// Returns the time of a turn that begins at `now_ps`.
    fn turn_ps(&mut self, now_ps: u64, terms: &Terms, units: u64, rate: Rate) -> u64 {
        let share = self.fabric.as_mut().map_or(1.0, |fabric| fabric.at(now_ps));
        terms.turn_ps(units, rate, share)
    }

    /// Adds a message that asks, or that has just begun; returns the time of the next turn if that is to be scheduled.
    pub(in super::super) fn ask(&mut self, flow: FlowId, account: Account, terms: &Terms, now_ps: u64) -> Option<u64> {
        if 0 < account.owed && !self.owed.contains(&flow) {
            self.owed.push_back(flow);
        }
        let is_active = account.given < account.target;
        let is_known = self.active.contains(&flow) || !is_active && self.idle.contains(&flow);
        if !is_known {
            self.idle.retain(|&idle| idle != flow);
            self.queue(flow, is_active, terms);
        }
        self.wake(now_ps)
    }

    /// Appends a message to those that ask, or to those that may be given credit unasked, if the rule has such.
    fn queue(&mut self, flow: FlowId, is_active: bool, terms: &Terms) {
        if is_active {
            self.active.push_back(flow);
        } else if !terms.counts_arrivals() {
            self.idle.push_back(flow);
        }
    }

    /// Removes a message that has arrived.
    pub(in super::super) fn forget(&mut self, flow: FlowId) {
        self.owed.retain(|&owed| owed != flow);
        self.active.retain(|&active| active != flow);
        self.idle.retain(|&idle| idle != flow);
    }

    /// Returns `true` if nobody waits and the last turn is over at `now_ps`: an answer may then carry credit itself,
    /// and takes a turn of `units` at a link of `rate`.
    pub(in super::super) fn takes_at_once(&mut self, now_ps: u64, terms: &Terms, units: u64, rate: Rate) -> bool {
        let is_free = self.active.is_empty() && self.owed.is_empty() && !self.is_running && self.free_ps <= now_ps;
        if is_free {
            self.free_ps = now_ps + self.turn_ps(now_ps, terms, units, rate);
        }
        is_free
    }

    /// Returns the time of the next turn if there is one and none is scheduled; it is then taken as scheduled.
    pub(in super::super) fn wake(&mut self, now_ps: u64) -> Option<u64> {
        let has_turn = !(self.owed.is_empty() && self.active.is_empty() && self.idle.is_empty());
        if self.is_running || !has_turn {
            return None;
        }
        self.is_running = true;
        Some(now_ps.max(self.free_ps))
    }

    /// Takes a turn at `now_ps`: returns the message that gets credit, and the units. `account` returns a message's
    /// account, which changes by these units. `None`: all have enough.
    pub(in super::super) fn turn(
        &mut self,
        now_ps: u64,
        terms: &Terms,
        rate: Rate,
        account: impl FnMut(FlowId) -> Account,
    ) -> Option<(FlowId, u64)> {
        self.is_running = false;
        let (flow, units) = self.next(terms, terms.ahead(rate), account)?;
        self.free_ps = now_ps + self.turn_ps(now_ps, terms, units, rate);
        Some((flow, units))
    }

    fn next(&mut self, terms: &Terms, ahead: u64, mut account: impl FnMut(FlowId) -> Account) -> Option<(FlowId, u64)> {
        let whole = terms.turn();
        if let Some(flow) = self.owed.pop_front() {
            if whole < account(flow).owed {
                self.owed.push_back(flow);
            }
            return Some((flow, whole));
        }
        if let Some(flow) = self.active.pop_front() {
            let Account { target, given, .. } = account(flow);
            let units = match terms.credits.rule {
                CreditRule::Wanted { .. } => whole.min(target.saturating_sub(given)),
                CreditRule::Whole { .. } | CreditRule::Arrivals => whole,
            };
            self.queue(flow, given + units < target, terms);
            return Some((flow, units));
        }
        let has_room = |flow: &FlowId| {
            let Account { target, given, .. } = account(*flow);
            given < target + ahead
        };
        let at = self.idle.iter().position(has_room)?;
        self.idle.rotate_left(at);
        let flow = self.idle.pop_front()?;
        self.idle.push_back(flow);
        Some((flow, whole))
    }
}

#[cfg(test)]
mod tests {
    use fairrate_control::{AlgorithmConfig, Profile};
    use fairrate_units::Time;

    use super::*;

    /// The terms of an algorithm. RCCC gives at 0.99 of the rate, here at all of it, and 64 units ahead.
    fn terms_of(name: &str, packet: u64) -> Terms {
        let config = AlgorithmConfig::by_name(name, Profile::Paper).expect("it is registered");
        let mut credits = config.needs().feedback.credit.expect("receivers give credit");
        if name == "rccc" {
            credits.pacing = 1.0;
        }
        Terms::new(credits, packet, Time::from_ps(873_814))
    }

    #[test]
    fn a_pacer_takes_turns_and_gives_to_the_idle_when_none_asks() {
        let (mut pacer, rate) = (Pacer::default(), Rate::from_gbps(100));
        let terms = terms_of("rccc", 4_150);
        let mut accounts =
            [Account { target: 100, ..Account::default() }, Account { target: 30, ..Account::default() }];
        assert_eq!(pacer.ask(FlowId(0), accounts[0], &terms, 5), Some(5));
        assert_eq!(pacer.ask(FlowId(1), accounts[1], &terms, 5), None);
        let mut turns = Vec::new();
        let mut now_ps = 5;
        for _ in 0..5 {
            let (flow, units) = pacer.turn(now_ps, &terms, rate, |flow| accounts[flow.index()]).expect("a turn");
            accounts[flow.index()].given += units;
            turns.push((flow.0, units));
            now_ps = pacer.wake(now_ps).expect("there is more");
        }
        // 64 and 36 of 100, 30 of 30, and then 64 more for each: the one with more is not before the other.
        assert_eq!(turns, [(0, 64), (1, 30), (0, 36), (1, 64), (0, 64)]);
        assert!(pacer.turn(now_ps, &terms, rate, |flow| accounts[flow.index()]).is_none());
        // 258 units of 256 bytes at 100 Gb/s.
        assert_eq!(now_ps, 5 + 258 * 256 * 80);
    }

    /// Two messages ask for 20 quanta each, and two packets of the second were cut: 9 quanta are owed for each of
    /// those. It gets three pulls for them first, and both get whole pulls.
    #[test]
    fn eqds_pulls_what_was_cut_first_and_in_whole_turns() {
        let (mut pacer, rate, terms) = (Pacer::default(), Rate::from_gbps(100), terms_of("eqds", 4_150));
        let mut accounts = [Account { target: 20, ..Account::default() }; 2];
        assert_eq!(pacer.ask(FlowId(0), accounts[0], &terms, 0), Some(0));
        accounts[1].owe(&terms);
        accounts[1].owe(&terms);
        assert_eq!(accounts[1].owed, 18);
        assert_eq!(pacer.ask(FlowId(1), accounts[1], &terms, 0), None);
        let mut now_ps = 0;
        let mut turns = Vec::new();
        for _ in 0..6 {
            let (flow, units) = pacer.turn(now_ps, &terms, rate, |flow| accounts[flow.index()]).expect("a turn");
            assert_eq!(units, 8);
            let account = &mut accounts[flow.index()];
            account.give(units);
            turns.push(flow.0);
            now_ps = pacer.wake(now_ps).expect("there is more");
        }
        assert_eq!(turns, [1, 1, 1, 0, 1, 0]);
        // A pull takes 0.99 times a frame of 4,198 B, whose 335,840 ps are 332,481.6 so.
        assert_eq!(now_ps, 6 * 332_481);
    }

    /// An answer carries a pull itself if the pacer is free; what comes within the time of a packet waits.
    #[test]
    fn ndp_gives_a_packet_for_each_arrival() {
        let (mut pacer, rate, terms) = (Pacer::default(), Rate::from_gbps(100), terms_of("ndp", 9_064));
        assert!(pacer.takes_at_once(1_000_000, &terms, 1, rate));
        assert!(!pacer.takes_at_once(1_100_000, &terms, 1, rate));
        let mut accounts = [Account { target: 3, given: 1, ..Account::default() }, Account::default()];
        assert_eq!(pacer.ask(FlowId(0), accounts[0], &terms, 1_100_000), Some(1_732_444));
        accounts[1].target = 1;
        assert_eq!(pacer.ask(FlowId(1), accounts[1], &terms, 1_100_000), None);
        let mut turns = Vec::new();
        let mut now_ps = 1_732_444;
        while let Some((flow, units)) = pacer.turn(now_ps, &terms, rate, |flow| accounts[flow.index()]) {
            accounts[flow.index()].give(units);
            turns.push((flow.0, units, now_ps));
            let Some(next_ps) = pacer.wake(now_ps) else { break };
            now_ps = next_ps;
        }
        assert_eq!(turns, [(0, 1, 1_732_444), (1, 1, 2_464_888), (0, 1, 3_197_332)]);
        // Nobody gets one unasked, and after the last turn's time an answer takes one at once again.
        assert!(!pacer.takes_at_once(3_929_775, &terms, 1, rate));
        assert!(pacer.takes_at_once(3_929_776, &terms, 1, rate));
    }
}
