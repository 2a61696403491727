//! The allocator's right to decide: one allocator at a time, by the majority of its agents.
//!
//! Agents vote. An agent accepts an epoch higher than its own, and goes by no lower one any more. An allocator asks for
//! votes when more than half of the voters want it to decide, and decides with the votes of more than half. It keeps
//! its right for a validity after it last knew that no other could have had more than half: since its own time of
//! sending what they have acknowledged. No rate that it has told is valid for longer than its right. So when another
//! allocator wins, all rates of the first are over within a validity. Until then the other one holds rates as they are.
//!
//! If all agents have one allocator, it is alone, and the first agent is majority enough.

use std::time::Duration;

use super::kinds::{Identity, Reign};
use crate::lease::{guarded, newcomer_validity, shortened, validity};
use crate::wire::{AgentStamp, Epoch};

/// An agent, as far as the right to decide is concerned.
#[derive(Clone, Debug, Default)]
pub(super) struct Standing {
    /// Its last stamp, and the time at which it came.
    pub stamp: AgentStamp,
    pub stamped: Duration,
    /// The last stamp that was of another allocator's epoch.
    pub before: AgentStamp,
    /// Time at which this allocator sent the last stamp that the agent has acknowledged under its epoch.
    pub fresh: Option<Duration>,
    /// Time of the agent's first HELLO.
    pub joined: Duration,
    /// `true` if all rates in force have been reported on this connection.
    pub is_reported: bool,
    pub is_connected: bool,
}

/// The state of an allocator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// It tells no rates.
    Standby,
    /// It asks agents for their votes, since a time.
    Asking(Duration),
    /// It tells rates.
    Deciding {
        /// Time at which it won.
        won: Duration,
        /// `true` while rates of an earlier allocator may be in force of which it does not know.
        is_holding: bool,
    },
}

/// The allocator's right to decide.
#[derive(Debug)]
pub(super) struct Term {
    id: u64,
    lease: Duration,
    /// Number of agents by configuration; zero: those that are known.
    quorum: usize,
    state: State,
    /// The last epoch of this process, and the first one of its present reign.
    epoch: Epoch,
    first: Epoch,
    /// Voters whose lease has ended without BYE: another allocator may have their votes.
    ghosts: Vec<(Identity, u64)>,
    /// Time until which it certainly has had the right: no other allocator had won before.
    pub sure: Duration,
    /// Time before which agents that joined are known to most others.
    known: Duration,
    /// Time at which the process began.
    began: Option<Duration>,
    next_ask: Duration,
    patience: Duration,
    /// `true` if a standing has changed by enough to look again.
    pub is_dirty: bool,
    /// `true` if an agent has had another allocator.
    is_successor: bool,
    reign: Reign,
}

impl Term {
    pub fn new(instance: u64, lease: Duration, quorum: usize) -> Self {
        Self {
            id: Epoch::id(instance),
            lease,
            quorum,
            state: State::Standby,
            epoch: Epoch::NONE,
            first: Epoch::NONE,
            ghosts: Vec::new(),
            sure: Duration::ZERO,
            known: Duration::ZERO,
            began: None,
            next_ask: Duration::ZERO,
            patience: lease / 8,
            is_dirty: false,
            is_successor: false,
            reign: Reign::default(),
        }
    }

    /// Returns the epoch to tell; none if the allocator does not decide and does not ask.
    pub fn epoch(&self) -> Epoch {
        if self.state == State::Standby { Epoch::NONE } else { self.epoch }
    }

    /// Returns `true` if the allocator may tell rates.
    pub fn decides(&self) -> bool {
        matches!(self.state, State::Deciding { .. })
    }

    /// Returns `true` if no rate may grow yet.
    pub fn is_holding(&self) -> bool {
        matches!(self.state, State::Deciding { is_holding: true, .. })
    }

    /// Returns `true` if flows that find no room get a little. After a first start TCP does better for them.
    pub fn is_sparing(&self) -> bool {
        !self.is_holding() || self.is_successor
    }

    /// Returns the reign's description for operators.
    pub fn reign(&self) -> Reign {
        self.reign
    }

    /// Sets the number of agents of which more than half have to accept the allocator; zero: of those that are known.
    pub fn set_quorum(&mut self, quorum: usize) {
        self.is_dirty |= self.quorum != quorum;
        self.quorum = quorum;
    }

    fn is_mine(&self, epoch: Epoch) -> bool {
        epoch.is_of(self.id) && self.first <= epoch && self.state != State::Standby
    }

    /// Returns `true` if the agent has accepted this allocator, and has reported its rates.
    pub fn is_on_board(&self, standing: &Standing) -> bool {
        standing.is_connected
            && standing.is_reported
            && standing.stamp.is_reported
            && self.is_mine(standing.stamp.epoch)
    }

    /// Records an agent's stamp.
    pub fn on_stamp(&mut self, now: Duration, standing: &mut Standing, stamp: AgentStamp) {
        let is_mine = self.is_mine(stamp.epoch);
        let last = std::mem::replace(&mut standing.stamp, stamp);
        standing.stamped = now;
        if is_mine {
            standing.fresh = standing.fresh.max(Some(Duration::from_nanos(stamp.ack)));
        } else {
            standing.before = stamp;
        }
        let key =
            |stamp: &AgentStamp| (stamp.epoch, stamp.is_grown, stamp.has_others, stamp.is_willing, stamp.is_reported);
        self.is_dirty |= key(&last) != key(&stamp);
    }

    /// Records that a voter's lease has ended.
    pub fn lose(&mut self, identity: &Identity, session: u64, standing: &Standing) {
        if standing.stamp.is_grown {
            self.ghosts.push((identity.clone(), session));
        }
        self.is_dirty = true;
    }

    /// Records that an agent has come, perhaps in place of one that is lost. At most `most` lost ones of an identity
    /// are kept.
    pub fn find(&mut self, identity: &Identity, session: u64) {
        let of_it = |(other, _): &(Identity, u64)| other == identity;
        let same = self.ghosts.iter().position(|ghost| of_it(ghost) && ghost.1 == session);
        if let Some(at) = same.or_else(|| self.ghosts.iter().position(of_it)) {
            self.ghosts.swap_remove(at);
        }
        self.is_dirty = true;
    }

    /// Returns the time for which the rates of an agent are valid, from when it sent its last stamp.
    pub fn valid(&self, standing: &Standing) -> Duration {
        if !self.decides() || !self.is_on_board(standing) {
            return Duration::ZERO;
        }
        let all = validity(self.lease);
        let right = if self.reign.is_alone { all } else { (self.sure + all).saturating_sub(standing.stamped) };
        let known = if standing.joined < self.known { all } else { newcomer_validity(self.lease) };
        shortened(all.min(right).min(known))
    }

    /// Looks at all agents, and changes the state; returns `true` if agents have to be told at once.
    pub fn review<'a>(&mut self, now: Duration, agents: impl Iterator<Item = &'a Standing> + Clone) -> bool {
        self.is_dirty = false;
        let began = *self.began.get_or_insert(now);
        let before = (self.state, self.epoch);
        let count = self.count(agents.clone());
        self.update_sure(now, agents.clone(), &count);
        match self.state {
            State::Standby if count.can_ask() => self.ask(now, agents),
            State::Asking(_) if count.can_win() => self.state = State::Deciding { won: now, is_holding: true },
            State::Asking(since) if since + self.lease / 2 <= now => self.state = State::Standby,
            State::Deciding { .. } if !count.is_alone && self.sure + validity(self.lease) <= now => {
                self.state = State::Standby;
            }
            State::Deciding { .. } if count.has_stray && self.next_ask <= now => {
                // Asking stops rates from growing for a while, so agents that cause it have to be more patient each
                // time.
                if !count.is_alone {
                    self.patience = (2 * self.patience).min(1024 * self.lease);
                }
                self.next_ask = now + self.patience;
                self.ask(now, agents);
            }
            State::Deciding { won, is_holding: true } => {
                // An earlier allocator had its right until a validity after most of its agents last spoke to it; one
                // that was alone was dead when this one began.
                let last = if count.is_alone { Some(began) } else { count.left };
                let is_over = last.is_none_or(|last| won.min(last) + guarded(validity(self.lease)) <= now);
                let are_back = 0 < count.reported && count.reported <= count.returned;
                let is_known = won + guarded(newcomer_validity(self.lease)) <= now && are_back;
                if is_known || is_over {
                    self.state = State::Deciding { won, is_holding: false };
                }
            }
            _ => {}
        }
        self.is_successor |= 0 < count.reported;
        self.reign = Reign {
            decides: self.decides(),
            is_holding: self.is_holding(),
            is_alone: count.is_alone,
            n_voters: count.voters,
            n_with_it: count.votes,
            n_elsewhere: count.elsewhere,
            n_willing: count.willing,
            n_agents: if self.decides() && !self.is_holding() {
                count.agents
            } else {
                count.agents.max(count.reported)
            },
        };
        before != (self.state, self.epoch)
    }

    fn ask<'a>(&mut self, now: Duration, agents: impl Iterator<Item = &'a Standing>) {
        let connected = agents.filter(|standing| standing.is_connected && 0 < standing.stamp.sent);
        let mut reported: Vec<Epoch> = connected.map(|standing| standing.stamp.epoch).collect();
        self.epoch = Epoch::next(self.id, self.epoch, &mut reported);
        if self.state == State::Standby {
            self.first = self.epoch;
        }
        self.state = State::Asking(now);
        // Agents accept this epoch from now on: none of a higher one has won before.
        (self.sure, self.known) = (now, Duration::ZERO);
    }

    fn count<'a>(&self, agents: impl Iterator<Item = &'a Standing> + Clone) -> Count {
        let mut count = Count { is_alone: self.quorum == 0, ..Count::default() };
        let mut reported_voters = Vec::new();
        let newest = agents.clone().map(|standing| standing.before.epoch).max().unwrap_or(Epoch::NONE);
        for standing in agents {
            let stamp = &standing.stamp;
            let is_on_board = self.is_on_board(standing);
            count.agents += 1;
            count.is_alone &= !stamp.has_others;
            count.voters += usize::from(stamp.is_grown);
            // Who asks again needs new votes.
            let has_voted = is_on_board && (self.decides() || stamp.epoch == self.epoch);
            count.votes += usize::from(stamp.is_grown && has_voted);
            count.any_votes += usize::from(has_voted);
            if is_on_board && stamp.quiet_ms != u32::MAX {
                let left = standing.stamped.saturating_sub(Duration::from_millis(stamp.quiet_ms.into()));
                count.left = count.left.max(Some(left));
            }
            let is_willing = standing.is_connected && stamp.is_willing;
            count.any_willing += usize::from(is_willing);
            count.willing += usize::from(is_willing && stamp.is_grown);
            let is_above = standing.is_connected && self.epoch < stamp.epoch;
            count.elsewhere += usize::from(is_above);
            count.has_stray |= is_above && is_willing && self.epoch.can_reach(stamp.epoch);
            count.reported = count.reported.max(standing.before.agents as usize);
            let is_back = is_on_board && standing.before.epoch == newest && newest != Epoch::NONE;
            count.returned += usize::from(is_back);
            if standing.is_connected && stamp.is_grown && standing.before.epoch != Epoch::NONE {
                reported_voters.push(standing.before.voters as usize);
            }
        }
        count.voters = (count.voters + self.ghosts.len()).max(self.quorum);
        let is_settled = matches!(self.state, State::Deciding { is_holding: false, .. });
        if !is_settled {
            // The median, as some may lie.
            let middle = reported_voters.len() / 2;
            let median = reported_voters.get_mut(..).filter(|all| !all.is_empty());
            count.voters = count.voters.max(median.map_or(0, |all| *all.select_nth_unstable(middle).1));
        }
        count
    }

    /// Finds the time before which no other allocator can have won: agents that were silent since then are too few.
    fn update_sure<'a>(&mut self, now: Duration, agents: impl Iterator<Item = &'a Standing> + Clone, count: &Count) {
        if !self.decides() {
            return;
        }
        let on_board = agents.clone().filter(|standing| self.is_on_board(standing));
        let mut fresh: Vec<Duration> = on_board.filter_map(|standing| standing.fresh).collect();
        let half = count.any_votes / 2;
        if let Some(time) = nth_latest(&mut fresh, half) {
            self.known = self.known.max(time);
        }
        if count.is_alone {
            self.sure = now;
            return;
        }
        let voters = agents.filter(|standing| standing.stamp.is_grown && self.is_mine(standing.stamp.epoch));
        fresh.clear();
        fresh.extend(voters.filter_map(|standing| standing.fresh));
        // At least half: another one would need more than half.
        let needed = count.voters.div_ceil(2);
        let time = if needed == 0 { Some(now) } else { nth_latest(&mut fresh, needed - 1) };
        self.sure = self.sure.max(time.unwrap_or(Duration::ZERO));
    }
}

/// Returns the time before which all but `n` of the times are.
fn nth_latest(times: &mut [Duration], n: usize) -> Option<Duration> {
    if times.len() <= n {
        return None;
    }
    let (_, time, _) = times.select_nth_unstable_by(n, |a, b| b.cmp(a));
    Some(*time)
}

/// Numbers of agents.
#[derive(Debug, Default)]
struct Count {
    /// `true` if no agent has another allocator, and none is configured.
    is_alone: bool,
    agents: usize,
    /// Agents that have run for long enough to vote, lost ones included.
    voters: usize,
    /// Voters that have accepted this allocator, and agents that have.
    votes: usize,
    any_votes: usize,
    /// Voters that want this allocator to decide, and agents that do.
    willing: usize,
    any_willing: usize,
    /// Time of the last stamp of an agent on board to an earlier allocator.
    left: Option<Duration>,
    /// Agents with a higher epoch.
    elsewhere: usize,
    /// `true` if an agent has a higher epoch, but no allocator.
    has_stray: bool,
    /// The number of agents under the last allocator, and of those among them that are on board.
    reported: usize,
    returned: usize,
}

impl Count {
    fn can_ask(&self) -> bool {
        if self.is_alone { 0 < self.any_willing } else { self.voters < 2 * self.willing }
    }

    fn can_win(&self) -> bool {
        if self.is_alone { 0 < self.any_votes } else { self.voters < 2 * self.votes }
    }
}
