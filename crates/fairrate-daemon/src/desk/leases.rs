//! Leases, and the right to decide, which depends on them.

use std::time::Duration;

use super::{Agent, Desk, SWEEPS_A_LEASE, Urgency};
use crate::lease::{WORDS_A_LEASE, guarded, validity};
use crate::wire::Reason;

impl Desk {
    /// Checks leases. Call it several times a lease: if the allocator was stopped, its agents get the lost time in
    /// addition.
    pub fn tick(&mut self, now: Duration) {
        let gap = now.saturating_sub(self.last);
        self.last = now;
        if self.config.lease / (WORDS_A_LEASE / 2) < gap {
            self.connections.values_mut().for_each(|connection| connection.heard += gap);
            self.agents.iter_mut().flatten().for_each(|agent| agent.left += gap);
        }
        if self.next_sweep <= now {
            self.next_sweep = now + self.config.lease / SWEEPS_A_LEASE;
            self.sweep(now);
            self.feed_starved(now);
            self.review(now);
        } else if self.term.is_dirty {
            self.review(now);
        }
    }

    /// Returns the time for which the rates of a silent agent certainly may be in force.
    fn longest(&self) -> Duration {
        guarded(validity(self.config.lease))
    }

    fn sweep(&mut self, now: Duration) {
        let longest = self.longest();
        let is_silent = |heard: Duration| heard + longest <= now;
        let silent = self.connections.iter().filter(|(_, connection)| is_silent(connection.heard));
        let silent: Vec<_> = silent.map(|(&id, connection)| (id, connection.heard, connection.agent)).collect();
        for (id, heard, agent) in silent {
            self.close(now, id, Reason::Silent);
            if let Some(agent) = agent.and_then(|at| self.agents[at].as_mut()) {
                agent.left = heard;
            }
        }
        // An agent that acknowledges nothing holds the room of others.
        let is_late = |agent: &&Agent| {
            self.term.is_on_board(&agent.standing) && agent.flows.unacknowledged_since().is_some_and(is_silent)
        };
        let late: Vec<_> = self.agents.iter().flatten().filter(is_late).filter_map(|agent| agent.connection).collect();
        for id in late {
            self.close(now, id, Reason::Slow);
        }
        // Another allocator may have won since it was last sure, and prolonged the agent's rates.
        let sure = if self.term.decides() { self.term.sure.min(now) } else { now };
        let is_over = |agent: &Agent| agent.connection.is_none() && agent.left + longest <= sure;
        let over = (0..self.agents.len()).filter(|&at| self.agents[at].as_ref().is_some_and(is_over));
        over.collect::<Vec<usize>>().into_iter().for_each(|at| self.end_lease(at));
    }

    fn end_lease(&mut self, at: usize) {
        self.counts.leases_ended += 1;
        // If its identity has another agent, that one was started in its place.
        if let Some(agent) = &self.agents[at]
            && let holder = &self.holders[agent.holder]
            && holder.agents.len() == 1
        {
            self.term.lose(&holder.identity, agent.session, &agent.standing);
        }
        self.forget(at);
    }

    /// Looks at the right to decide, and informs agents if it changes.
    fn review(&mut self, now: Duration) {
        let (did_decide, did_hold) = (self.term.decides(), self.term.is_holding());
        let has_changed = self.term.review(now, self.agents.iter().flatten().map(|agent| &agent.standing));
        if !has_changed {
            return;
        }
        if !self.term.is_holding() {
            self.links.end_holding();
        }
        let is_freed = self.term.decides() && (!did_decide || did_hold);
        let mut all = Vec::new();
        for agent in self.agents.iter_mut().flatten() {
            if is_freed {
                agent.flows.note_all();
            }
            all.extend(agent.connection);
        }
        for id in all {
            if let Some(connection) = self.connections.get_mut(&id) {
                connection.owes_stamp = true;
            }
            self.list(id, Urgency::Now);
        }
    }
}
