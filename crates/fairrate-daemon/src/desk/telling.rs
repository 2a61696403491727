//! The messages to agents: stamps, and rates that fit into the links whatever the others' rates in force are.

use std::time::Duration;

use super::links::Links;
use super::{Agent, ConnectionId, Desk, Urgency};
use crate::rate::WireRate;
use crate::wire::{self, AgentStamp, AllocatorStamp, Flow, FromAllocator, Reason};

/// Part of its rate that a flow is told as its first rate at least: an eighth. Otherwise it waits for more room.
const FIRST_PART: u64 = 8;

impl Desk {
    pub(super) fn on_stamp(&mut self, now: Duration, id: ConnectionId, at: usize, stamp: AgentStamp) {
        let Some(connection) = self.connections.get_mut(&id) else { return };
        if connection.last_stamp < stamp.ack {
            return self.close(now, id, Reason::Protocol);
        }
        connection.owes_stamp = true;
        let Some(agent) = &mut self.agents[at] else { return };
        let was_on_board = self.term.is_on_board(&agent.standing);
        self.term.on_stamp(now, &mut agent.standing, stamp);
        if !was_on_board && self.term.is_on_board(&agent.standing) {
            agent.flows.note_all();
        }
        self.list(id, Urgency::Now);
    }

    pub(super) fn on_in_force(&mut self, at: usize, flow: Flow, rate: WireRate) {
        let Some(agent) = &mut self.agents[at] else { return };
        if let Some(number) = agent.flows.report(flow) {
            self.links.report(number, rate);
        }
        self.list_woken();
    }

    pub(super) fn on_reported(&mut self, id: ConnectionId, at: usize) {
        let Some(agent) = &mut self.agents[at] else { return };
        agent.standing.is_reported = true;
        let links = &mut self.links;
        agent.flows.end_report(|number| links.set(number, 0));
        self.term.is_dirty = true;
        self.list(id, Urgency::Now);
        self.list_woken();
    }

    pub(super) fn on_ack(&mut self, id: ConnectionId, at: usize, mark: u32) {
        let Some(agent) = &mut self.agents[at] else { return };
        let links = &mut self.links;
        agent.flows.acknowledge(mark, |slot| links.set(slot.number, slot.sent.as_kbps()));
        if agent.flows.has_changed() {
            self.list(id, Urgency::Soon);
        }
        self.list_woken();
    }

    /// Lists the flows for which there may be room now.
    pub(super) fn list_woken(&mut self) {
        while let Some(number) = self.links.next_woken() {
            let Some((agent, place)) = owner(&self.owners, &mut self.agents, number) else { continue };
            agent.flows.slot(place).is_waiting = false;
            let is_first = agent.flows.note_changed(place);
            if let Some(id) = agent.connection {
                self.list(id, if is_first { Urgency::Now } else { Urgency::Soon });
            }
        }
    }

    /// Lists flows that have waited for too long for their first rate.
    pub(super) fn feed_starved(&mut self, now: Duration) {
        while self.term.decides()
            && let Some(&(since, number)) = self.starved.front()
            && since + patience(self.config.lease) <= now
        {
            self.starved.pop_front();
            let Some((agent, place)) = owner(&self.owners, &mut self.agents, number) else { continue };
            if agent.flows.slot(place).waits_since == Some(since) {
                agent.flows.note_changed(place);
                if let Some(id) = agent.connection {
                    self.list(id, Urgency::Now);
                }
            }
        }
    }

    /// Runs one iteration of the optimiser; returns `true` if a rate has changed by enough to be sent.
    pub fn iterate(&mut self) -> bool {
        let mut updates = std::mem::take(&mut self.updates);
        self.service.iterate(&mut updates);
        self.counts.iterations += 1;
        let (has_news, tells) = (!updates.is_empty(), self.term.decides());
        for update in updates.drain(..) {
            let Some((agent, place)) = owner(&self.owners, &mut self.agents, update.flow) else { continue };
            let is_first = agent.flows.set_rate(place, WireRate::from_bps(update.rate_bps));
            // First rates wait for others to fall.
            let is_urgent = is_first || self.links.is_awaited(update.flow);
            if tells && let Some(id) = agent.connection {
                self.list(id, if is_urgent { Urgency::Now } else { Urgency::Soon });
            }
        }
        self.updates = updates;
        has_news
    }

    /// Returns the connection that has had something of this urgency to send for longest, and removes it from the list.
    pub fn next_listed(&mut self, urgency: Urgency) -> Option<ConnectionId> {
        loop {
            let id = self.to_write[urgency as usize].pop_front()?;
            if let Some(connection) = self.connections.get_mut(&id) {
                connection.is_listed[urgency as usize] = false;
                return Some(id);
            }
        }
    }

    /// Returns the largest possible number of listed connections: some may be gone.
    pub fn n_listed(&self, urgency: Urgency) -> usize {
        self.to_write[urgency as usize].len()
    }

    /// Appends what a connection has to send, of any urgency, up to about `most` bytes. If there is more, it is listed
    /// again.
    pub fn write(&mut self, now: Duration, id: ConnectionId, out: &mut Vec<u8>, most: usize) {
        let Some(connection) = self.connections.get_mut(&id) else { return };
        let Some(agent) = connection.agent.and_then(|at| self.agents[at].as_mut()) else { return };
        if std::mem::take(&mut connection.greets) {
            let (instance, lease) = (self.config.instance, self.config.lease);
            let version = connection.version;
            wire::encode([FromAllocator::Hello { version, instance, lease }], out);
        }
        if std::mem::take(&mut connection.owes_stamp) {
            let clock = u64::try_from(now.as_nanos()).unwrap_or(u64::MAX);
            connection.last_stamp = clock.max(connection.last_stamp + 1);
            let reign = self.term.reign();
            let stamp = AllocatorStamp {
                sent: connection.last_stamp,
                echo: agent.standing.stamp.sent,
                epoch: self.term.epoch(),
                valid: self.term.valid(&agent.standing),
                voters: reign.n_voters as u32,
                agents: reign.n_agents as u32,
            };
            wire::encode([FromAllocator::Stamp(stamp)], out);
        }
        if !self.term.decides() || !self.term.is_on_board(&agent.standing) {
            return;
        }
        let limits = Limits {
            now,
            patience: patience(self.config.lease),
            threshold: self.config.threshold,
            is_holding: self.term.is_holding(),
            is_sparing: self.term.is_sparing(),
        };
        let (mark, mut places, mut rates) = (agent.flows.next_mark(), Vec::new(), Vec::new());
        while rates.len() < most / 6
            && let Some(place) = agent.flows.next_changed()
        {
            let before = agent.flows.slot(place).waits_since;
            if let Some(rate) = next_rate(&limits, agent, &mut self.links, place) {
                let slot = agent.flows.slot(place);
                (slot.sent, slot.mark, slot.waits_since) = (rate, mark, None);
                let (number, flow) = (slot.number, slot.start.flow);
                if self.links.kbps(number) < rate.as_kbps() {
                    self.links.set(number, rate.as_kbps());
                }
                places.push(place);
                rates.push(FromAllocator::Rate { flow, rate });
            } else if before.is_none() && agent.flows.slot(place).waits_since.is_some() {
                self.starved.push_back((now, agent.flows.slot(place).number));
            }
        }
        if !rates.is_empty() {
            self.counts.rates += rates.len() as u64;
            agent.flows.mark(now, places);
            rates.push(FromAllocator::Mark(mark));
            if std::mem::replace(&mut connection.said_seen, connection.n_seen) != connection.n_seen {
                wire::encode([FromAllocator::Seen(connection.n_seen)], out);
            }
            wire::encode(rates, out);
        }
        if agent.flows.has_changed() {
            self.list(id, Urgency::Soon);
        }
    }
}

/// Returns the agent of a flow and the flow's place there, or `None` if the flow has ended.
fn owner<'a>(owners: &[(u32, u32)], agents: &'a mut [Option<Agent>], number: u32) -> Option<(&'a mut Agent, u32)> {
    let (at, place) = owners[number as usize];
    Some((agents.get_mut(at as usize)?.as_mut()?, place))
}

/// Returns the time after which a flow without a rate gets a small one.
fn patience(lease: Duration) -> Duration {
    lease / 4
}

/// The conditions under which rates are told.
struct Limits {
    now: Duration,
    patience: Duration,
    threshold: f64,
    is_holding: bool,
    is_sparing: bool,
}

/// Returns the rate to send for a flow, or `None` if it has to wait for room.
fn next_rate(limits: &Limits, agent: &mut Agent, links: &mut Links, place: u32) -> Option<WireRate> {
    let slot = agent.flows.slot(place);
    if slot.is_parked {
        return std::mem::take(&mut slot.must_clear).then_some(WireRate::NONE);
    }
    let (number, wanted, has_kbps) = (slot.number, slot.rate, links.kbps(slot.number));
    let wanted_kbps = wanted.as_kbps();
    if wanted_kbps <= has_kbps {
        return (wanted != slot.sent).then_some(wanted);
    }
    let (room_kbps, link) = if limits.is_holding { (0, None) } else { links.room(number) };
    let most_kbps = has_kbps.saturating_add(room_kbps);
    if wanted_kbps <= most_kbps {
        return Some(wanted);
    }
    if !limits.is_holding
        && !std::mem::replace(&mut slot.is_waiting, true)
        && let Some(link) = link
    {
        links.wait(number, link, wanted_kbps - most_kbps + 1);
    }
    let part = WireRate::at_most_kbps(most_kbps);
    let part_kbps = part.as_kbps();
    if slot.sent != WireRate::NONE {
        let is_worth_it = slot.sent.as_kbps() as f64 * (1.0 + limits.threshold) < part_kbps as f64
            && wanted_kbps - has_kbps <= 2 * (part_kbps - has_kbps);
        return is_worth_it.then_some(part);
    }
    if 0 < has_kbps || wanted_kbps / FIRST_PART < part_kbps {
        return Some(part).filter(|part| *part != WireRate::NONE);
    }
    let since = *slot.waits_since.get_or_insert(limits.now);
    let is_starved = limits.is_sparing && since + limits.patience <= limits.now;
    is_starved.then(|| links.crumb(number, limits.is_holding)).filter(|crumb| *crumb != WireRate::NONE)
}
