//! The agent's side of the protocol: its flows, the flows each server has been sent, and the rates in force. It uses no
//! sockets and no clock.
//!
//! Every server is sent all flows. One of them decides: the one with the highest epoch that the agent has accepted.
//! Rates of others are dropped. A server that begins to decide is sent the rates in force first. Rates are valid until
//! a time that the server prolongs with each of its stamps. Only the difference between the flows and the flows a
//! server has been sent is pending, so a server that reads slowly costs no memory.

mod allegiance;
mod server;

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use fairrate_control::flowtune::Grant;

use self::allegiance::Allegiance;
use self::server::{Link, Server};
use crate::lease::{LEAST_LEASE, WORDS_A_LEASE, guarded, validity};
use crate::wire::{self, AllocatorStamp, Epoch, Flow, FromAgent, FromAllocator, Reason, Start};

/// The lease before a server has sent its own.
pub const FIRST_LEASE: Duration = Duration::from_secs(1);

/// The state of an agent.
#[derive(Debug)]
pub struct Agent {
    session: u64,
    /// Time at which the agent began.
    began: Duration,
    flows: HashMap<Flow, Own>,
    servers: Vec<Server>,
    allegiance: Allegiance,
    /// Flows whose rate in force differs from the one taken last.
    changed: BTreeSet<Flow>,
    /// Number of flows begun so far.
    n_begun: u32,
    /// Number of rates dropped because they had a lower epoch.
    n_dropped: u64,
    is_leaving: bool,
}

/// The state of a flow.
#[derive(Clone, Copy, Debug)]
struct Own {
    start: Start,
    /// Number that distinguishes this flow from earlier flows with the same `Flow` number.
    generation: u32,
    /// The last rate accepted in bit/s; zero: none.
    told_bps: f64,
    /// Rate in force in bit/s; zero: none.
    in_force_bps: f64,
}

impl Agent {
    /// Creates an agent without flows. `session` is a random number, by which servers recognise the agent.
    pub fn new(now: Duration, session: u64, n_servers: usize) -> Self {
        Self {
            session,
            began: now,
            flows: HashMap::new(),
            servers: (0..n_servers).map(|_| Server::new(now)).collect(),
            allegiance: Allegiance::new(now),
            changed: BTreeSet::new(),
            n_begun: 0,
            n_dropped: 0,
            is_leaving: false,
        }
    }

    /// Begins a flowlet. A different flow with the same number is ended first.
    pub fn begin(&mut self, start: Start) {
        let flow = start.flow;
        if self.flows.get(&flow).is_some_and(|own| own.start == start) {
            return;
        }
        self.end(flow);
        self.n_begun = self.n_begun.wrapping_add(1);
        self.flows.insert(flow, Own { start, generation: self.n_begun, told_bps: 0.0, in_force_bps: 0.0 });
        self.servers.iter_mut().for_each(|server| _ = server.dirty.insert(flow));
    }

    /// Ends a flowlet.
    pub fn end(&mut self, flow: Flow) {
        if self.flows.remove(&flow).is_none() {
            return;
        }
        self.changed.remove(&flow);
        self.servers.iter_mut().for_each(|server| _ = server.dirty.insert(flow));
    }

    /// Makes the agent leave: from now on it only sends BYE.
    pub fn leave(&mut self) {
        self.is_leaving = true;
    }

    /// Returns the number of flows.
    pub fn n_flows(&self) -> usize {
        self.flows.len()
    }

    /// Returns the flows, in no order.
    pub fn flows(&self) -> impl Iterator<Item = Start> + '_ {
        self.flows.values().map(|own| own.start)
    }

    /// Returns the rate in force in bit/s, or `None` if there is none.
    pub fn rate_bps(&self, flow: Flow) -> Option<f64> {
        self.flows.get(&flow).map(|own| own.in_force_bps).filter(|rate_bps| 0.0 < *rate_bps)
    }

    /// Returns the highest epoch accepted, and the position of the server that decides, unless it is gone.
    pub fn allegiance(&self) -> (Epoch, Option<usize>) {
        (self.allegiance.epoch, self.allegiance.holder)
    }

    /// Returns the number of rates dropped, since another allocator has a higher epoch.
    pub fn n_dropped(&self) -> u64 {
        self.n_dropped
    }

    /// Handles a new connection to `server`.
    pub fn on_connected(&mut self, now: Duration, server: usize) {
        self.servers[server].connect(now);
    }

    /// Handles the end of the connection to `server`. Its rates hold for as long as they are valid.
    pub fn on_cut(&mut self, server: usize) {
        let server = &mut self.servers[server];
        server.link = Link::Cut;
        server.announced.clear();
    }

    /// Handles a message of `server`.
    ///
    /// # Errors
    /// If the message ends the connection: the server's reason, or the fault of the message.
    pub fn on_message(&mut self, now: Duration, server: usize, message: FromAllocator) -> Result<(), Reason> {
        self.servers[server].heard = now;
        match message {
            FromAllocator::Hello { version, instance, lease } => self.on_hello(now, server, version, instance, lease),
            FromAllocator::Bye(reason) => {
                self.servers[server].on_bye(reason);
                Err(reason)
            }
            _ if self.servers[server].link != Link::Up => Err(Reason::Protocol),
            FromAllocator::Stamp(stamp) => self.on_stamp(now, server, &stamp),
            FromAllocator::Rate { flow, rate } => {
                if self.goes_by(server) {
                    self.accept(server, flow, rate.as_bps());
                } else {
                    self.n_dropped += 1;
                }
                Ok(())
            }
            FromAllocator::Seen(number) => {
                self.servers[server].seen = number;
                Ok(())
            }
            FromAllocator::Mark(number) => {
                if self.goes_by(server) {
                    self.servers[server].ack = Some(number);
                }
                Ok(())
            }
        }
    }

    /// Returns `true` if rates of `server` are accepted.
    fn goes_by(&self, server: usize) -> bool {
        let of = &self.servers[server];
        self.allegiance.holder == Some(server) && of.epoch == self.allegiance.epoch && of.is_reported
    }

    fn on_hello(
        &mut self,
        now: Duration,
        server: usize,
        version: u8,
        instance: u64,
        lease: Duration,
    ) -> Result<(), Reason> {
        let of = &mut self.servers[server];
        if of.link != Link::Waiting {
            return Err(Reason::Protocol);
        }
        if !of.offers.has(version) {
            return Err(Reason::Version);
        }
        if lease < LEAST_LEASE {
            return Err(Reason::Protocol);
        }
        of.version = version;
        let mut is_same = of.instance.replace(instance) == Some(instance);
        of.greet(lease, self.flows.keys().copied().collect());
        let holder = self.allegiance.holder;
        if holder.is_some_and(|holder| self.servers[holder].instance == Some(instance)) {
            // The same allocator at another address, which closes the older connection.
            self.allegiance.holder = Some(server);
            is_same = true;
        }
        if self.allegiance.holder == Some(server) {
            if !is_same {
                self.allegiance.lose(now);
            }
            self.report(server);
        }
        Ok(())
    }

    /// Lists all flows as to be reported to `server`. Rates that are not in force any more do not come back, and those
    /// of flows that its version has no record for end.
    fn report(&mut self, server: usize) {
        let of = &mut self.servers[server];
        of.reporting = self.flows.keys().copied().collect();
        of.is_reported = false;
        let mut lost = Vec::new();
        for (&flow, own) in &mut self.flows {
            if !self.allegiance.is_valid || !of.can_tell(&own.start) {
                own.told_bps = 0.0;
                lost.push(flow);
            }
        }
        // A rate that the server cannot know of would be given to others.
        for flow in lost {
            self.refresh(flow);
        }
    }

    fn on_stamp(&mut self, now: Duration, server: usize, stamp: &AllocatorStamp) -> Result<(), Reason> {
        let of = &mut self.servers[server];
        if of.last_stamp < stamp.echo {
            return Err(Reason::Protocol);
        }
        (of.epoch, of.acked) = (stamp.epoch, stamp.sent);
        let holder = self.allegiance.holder;
        if self.allegiance.epoch < stamp.epoch {
            self.allegiance.epoch = stamp.epoch;
            (self.allegiance.voters, self.allegiance.agents) = (stamp.voters, stamp.agents);
            if holder != Some(server) || !of.is_reported {
                self.allegiance.change(server);
                self.report(server);
            }
            self.servers.iter_mut().for_each(|server| server.must_stamp = true);
            self.allegiance.hear(now);
        } else if holder == Some(server) && stamp.epoch < self.allegiance.epoch {
            // It has lost its right.
            self.allegiance.lose(now);
            self.servers[server].is_reported = false;
        } else if holder == Some(server) {
            self.allegiance.hear(now);
            (self.allegiance.voters, self.allegiance.agents) = (stamp.voters, stamp.agents);
            if self.goes_by(server) && !stamp.valid.is_zero() {
                self.prolong(now, Duration::from_nanos(stamp.echo) + stamp.valid);
            }
        }
        Ok(())
    }

    /// Makes rates valid until at least `until`.
    fn prolong(&mut self, now: Duration, until: Duration) {
        self.allegiance.valid_until = self.allegiance.valid_until.max(until);
        if now < self.allegiance.valid_until {
            self.allegiance.is_inherited = false;
            if !std::mem::replace(&mut self.allegiance.is_valid, true) {
                self.refresh_all();
            }
        }
    }

    /// Takes a rate of the server that decides, unless it was for an earlier flow of this number.
    fn accept(&mut self, server: usize, flow: Flow, rate_bps: f64) {
        let of = &self.servers[server];
        let is_of = |own: &Own| of.announced.get(&flow).is_some_and(|announced| of.knows(*announced, own.generation));
        if let Some(own) = self.flows.get_mut(&flow).filter(|own| is_of(own)) {
            own.told_bps = rate_bps;
            self.refresh(flow);
        }
    }

    fn refresh(&mut self, flow: Flow) {
        let Some(own) = self.flows.get_mut(&flow) else { return };
        let rate_bps = if self.allegiance.is_valid { own.told_bps } else { 0.0 };
        if own.in_force_bps != rate_bps {
            own.in_force_bps = rate_bps;
            self.changed.insert(flow);
        }
    }

    fn refresh_all(&mut self) {
        let flows: Vec<Flow> = self.flows.keys().copied().collect();
        for flow in flows {
            self.refresh(flow);
        }
    }

    /// Returns the time at which [`Agent::on_timer`] has to be called, unless another event is earlier.
    pub fn deadline(&self) -> Option<Duration> {
        self.allegiance.is_valid.then_some(self.allegiance.valid_until)
    }

    /// Ends rates that are not valid any more.
    pub fn on_timer(&mut self, now: Duration) {
        if !self.allegiance.is_valid || now < self.allegiance.valid_until {
            return;
        }
        self.allegiance.is_valid = false;
        if self.allegiance.is_inherited {
            // Their allocator may have given them to others by now.
            self.flows.values_mut().for_each(|own| own.told_bps = 0.0);
        }
        self.refresh_all();
    }

    /// Returns the newest version to offer if `server` has just refused a newer one, so that it is worth connecting
    /// again at once.
    pub fn take_fallback(&mut self, server: usize) -> Option<u8> {
        let of = &mut self.servers[server];
        std::mem::take(&mut of.falls_back).then_some(of.offers.most)
    }

    /// Returns `true` if there is a connection to the allocator of `server` by another address.
    pub fn has_double(&self, server: usize) -> bool {
        let instance = self.servers[server].instance;
        let is_double = |other: usize| other != server && self.servers[other].instance == instance && self.is_up(other);
        instance.is_some() && (0..self.servers.len()).any(is_double)
    }

    /// Returns the version of the protocol that `server` has chosen, if its connection exists.
    pub fn version(&self, server: usize) -> Option<u8> {
        self.is_up(server).then_some(self.servers[server].version)
    }

    /// Returns `true` if `server` has answered HELLO on a connection that still exists.
    pub fn is_up(&self, server: usize) -> bool {
        self.servers[server].link == Link::Up
    }

    /// Returns the time at which the connection has to be given up, because its server has been silent: for three
    /// fourths of its lease, as it answers each stamp, or for two leases before it has answered HELLO. Rates in force
    /// last longer.
    pub fn give_up_at(&self, server: usize) -> Duration {
        let of = &self.servers[server];
        let known = || self.servers.iter().filter(|server| server.instance.is_some()).map(|server| server.lease).max();
        let lease = if of.instance.is_some() { of.lease } else { known().unwrap_or(FIRST_LEASE) };
        of.heard + if of.link == Link::Up { lease * 3 / 4 } else { 2 * lease }
    }

    /// Returns the longest time between two attempts to connect to `server` that lets a restart save rates in force;
    /// `None` if there are none.
    pub fn retry_within(&self, server: usize) -> Option<Duration> {
        self.allegiance.is_valid.then_some(self.servers[server].lease / 16)
    }

    /// Returns the time at which [`Agent::write`] has something to send to `server`; `None`: not before another event.
    pub fn speaks_at(&self, server: usize) -> Option<Duration> {
        let of = &self.servers[server];
        match of.link {
            Link::Cut => None,
            Link::Greeting => Some(Duration::ZERO),
            Link::Waiting => self.is_leaving.then_some(Duration::ZERO),
            Link::Up if self.is_leaving || of.has_news() || self.is_report_over(server) => Some(Duration::ZERO),
            Link::Up => {
                let willing_at = self.willing_at(server);
                let regular = of.stamps_at();
                Some(if of.said_willing { regular } else { regular.min(willing_at.max(of.spoke)) })
            }
        }
    }

    /// Returns the time from which the agent votes: no promise of an agent before it counts any more.
    fn grown_at(&self) -> Duration {
        let lease = self.servers.iter().map(|server| server.lease).max().unwrap_or(FIRST_LEASE);
        self.began + guarded(guarded(validity(lease)))
    }

    /// Returns the time from which the agent wants `server` to decide. The first one comes first after a start, too.
    fn willing_at(&self, server: usize) -> Duration {
        let at = |since: Duration| self.allegiance.willing_at(server, self.servers[server].lease).max(since);
        if server == 0 {
            at(Duration::ZERO)
        } else {
            at(self.grown_at() + self.servers[server].lease / WORDS_A_LEASE * server as u32)
        }
    }

    /// Returns `true` if `server` decides and has been sent all rates in force, but not the end of them.
    fn is_report_over(&self, server: usize) -> bool {
        let of = &self.servers[server];
        let is_decider = self.allegiance.holder == Some(server) && of.epoch == self.allegiance.epoch;
        is_decider && !of.is_reported && of.dirty.is_empty() && of.reporting.is_empty()
    }

    /// Appends the pending messages for `server` to `out`, up to about `most` bytes; returns `false` if the last of
    /// them is the agent's BYE.
    pub fn write(&mut self, now: Duration, server: usize, out: &mut Vec<u8>, most: usize) -> bool {
        match self.servers[server].link {
            Link::Cut => {}
            // The server does not know whose connection it is, and no flow: there is nothing to say good-bye for.
            Link::Greeting if self.is_leaving => {}
            _ if self.is_leaving => wire::encode([FromAgent::Bye(Reason::Shutdown)], out),
            Link::Greeting => {
                let version = self.servers[server].offers.byte();
                wire::encode([FromAgent::Hello { version, session: self.session }], out);
                self.servers[server].link = Link::Waiting;
            }
            Link::Waiting => {}
            Link::Up => self.write_news(now, server, out, most),
        }
        !self.is_leaving
    }

    fn write_news(&mut self, now: Duration, server: usize, out: &mut Vec<u8>, most: usize) {
        let of = &mut self.servers[server];
        let mut news = of.news(&self.flows, most);
        if self.is_report_over(server) {
            self.servers[server].is_reported = true;
            self.servers[server].must_stamp = true;
            news.push(FromAgent::Reported);
        }
        let is_grown = self.grown_at() <= now;
        let is_willing = self.willing_at(server) <= now;
        let has_others = 1 < self.servers.len();
        let of = &mut self.servers[server];
        let is_holder = self.allegiance.holder == Some(server);
        if of.must_stamp || of.said_willing != is_willing || of.stamps_at() <= now {
            let (allegiance, is_reported) = (&self.allegiance, of.is_reported);
            let stamp = wire::AgentStamp {
                sent: of.next_stamp(now),
                ack: of.acked,
                epoch: allegiance.epoch,
                voters: allegiance.voters,
                agents: allegiance.agents,
                quiet_ms: allegiance.quiet_ms(now),
                is_grown,
                has_others,
                is_willing,
                is_reported,
            };
            of.said_willing = is_willing;
            if is_holder {
                self.allegiance.speak(now);
            }
            news.push(FromAgent::Stamp(stamp));
        }
        wire::encode(news, out);
    }

    /// Appends the rates that have changed since the last call to `grants`.
    pub fn take_grants(&mut self, grants: &mut Vec<Grant>) {
        for flow in std::mem::take(&mut self.changed) {
            let rate_bps = self.flows.get(&flow).map_or(0.0, |own| own.in_force_bps);
            grants.push(Grant { flow, rate_bps });
        }
    }

    /// Returns `true` if [`Agent::take_grants`] has rates to return.
    pub fn has_grants(&self) -> bool {
        !self.changed.is_empty()
    }
}
