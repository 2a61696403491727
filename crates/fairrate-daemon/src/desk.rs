//! The allocator's side of the protocol: connections, agents, their flows and leases, and the rates to send. It uses no
//! sockets and no clock.
//!
//! A connection belongs to an agent once it has sent HELLO. The agent's flows last as long as it sends a message within
//! every lease, on one connection or the next. The rates to send to an agent are a set of flows, not a queue, so an
//! agent that reads slowly costs no memory and gets the newest rates when it reads.
//!
//! Rates are told only while the desk has the right to decide (`term`), and grow only into room that is free (`links`).

mod change;
mod flows;
mod holders;
mod kinds;
mod leases;
mod links;
mod telling;
mod term;

use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;
use std::time::Duration;

use fairrate_allocate::{AllocatorService, LinkId, RateEngine, Update};

pub use self::change::Change;
use self::flows::Flows;
use self::holders::Holders;
pub use self::kinds::{Counts, DeskConfig, Identity, Refusal, Reign, Urgency};
pub use self::links::LinkLoad;
use self::links::Links;
use self::term::{Standing, Term};
use crate::lease::WORDS_A_LEASE;
use crate::rate::WireRate;
use crate::wire::{Flow, FromAgent, LEAST_VERSION, Reason, Start, Versions};

/// The number of a connection, which is never reused.
pub type ConnectionId = u64;

/// The function that appends the links from one address to another, the sender's first; nothing if there is no path.
pub type Paths = Box<dyn Fn(IpAddr, IpAddr, &mut Vec<LinkId>) + Send>;

/// Number of sweeps in a lease, which look for expired leases and for messages that are due.
const SWEEPS_A_LEASE: u32 = 2 * WORDS_A_LEASE;

/// The owner of a number that no flow has.
const NOBODY: (u32, u32) = (u32::MAX, 0);

struct Connection {
    identity: Identity,
    agent: Option<usize>,
    /// Version of the protocol, once HELLO has been read.
    version: u8,
    /// `true` if HELLO has to be answered.
    greets: bool,
    /// `true` if a stamp has to be sent.
    owes_stamp: bool,
    /// The clock of the last stamp sent.
    last_stamp: u64,
    /// Number of starts and ends read, and the number sent last.
    n_seen: u32,
    said_seen: u32,
    heard: Duration,
    /// `true` if the connection is in `to_write`, by urgency.
    is_listed: [bool; 2],
}

struct Agent {
    session: u64,
    /// The number of its identity.
    holder: usize,
    connection: Option<ConnectionId>,
    /// Time at which its last connection ended.
    left: Duration,
    flows: Flows,
    standing: Standing,
}

/// The allocator's side of all conversations with agents.
pub struct Desk {
    config: DeskConfig,
    service: AllocatorService,
    paths: Paths,
    connections: BTreeMap<ConnectionId, Connection>,
    agents: Vec<Option<Agent>>,
    free_agents: Vec<usize>,
    holders: Holders,
    links: Links,
    term: Term,
    /// Flows that wait for their first rate, and since when; some have it by now.
    starved: VecDeque<(Duration, u32)>,
    /// The agent of each flow and its position in the agent's flows, by the flow's number at the service.
    owners: Vec<(u32, u32)>,
    free_numbers: Vec<u32>,
    /// Number of flows without a path, which the optimiser does not know.
    n_parked: usize,
    /// Connections with something to send, by urgency. A connection may be in both queues.
    to_write: [VecDeque<ConnectionId>; 2],
    to_close: Vec<(ConnectionId, Reason)>,
    /// Time of the last [`Desk::tick`], and time of the next sweep of leases.
    last: Duration,
    next_sweep: Duration,
    counts: Counts,
    /// Flow refused last, by reason, and its connection.
    refused: [Option<(ConnectionId, Start)>; Refusal::ALL.len()],
    updates: Vec<Update>,
    path: Vec<LinkId>,
}

impl Desk {
    /// Creates a desk without connections. The engine's capacities should leave room for the threshold.
    pub fn new(config: DeskConfig, engine: Box<dyn RateEngine>, paths: Paths) -> Self {
        Self {
            service: AllocatorService::new(engine, config.threshold),
            term: Term::new(config.instance, config.lease, config.quorum),
            starved: VecDeque::new(),
            config,
            paths,
            connections: BTreeMap::new(),
            agents: Vec::new(),
            free_agents: Vec::new(),
            holders: Holders::default(),
            links: Links::default(),
            owners: Vec::new(),
            free_numbers: Vec::new(),
            n_parked: 0,
            to_write: [VecDeque::new(), VecDeque::new()],
            to_close: Vec::new(),
            last: Duration::ZERO,
            next_sweep: Duration::ZERO,
            counts: Counts::default(),
            refused: [None; Refusal::ALL.len()],
            updates: Vec::new(),
            path: Vec::new(),
        }
    }

    /// Sets the rates of links, which the rates in force on them never exceed together. Without it, there is no limit
    /// but the engine's. Call it before the first flow.
    pub fn watch_links(&mut self, capacities_bps: &[f64]) {
        self.links = Links::new(capacities_bps);
    }

    /// Sets the largest rates that links may have had before: agents may report rates of that time. Without it, these
    /// are the rates of [`Desk::watch_links`].
    pub fn bound_links(&mut self, bounds_bps: &[f64]) {
        self.links.bound(bounds_bps);
    }

    /// Adds a new connection, of an agent that may report the flows of `identity`.
    pub fn on_connected(&mut self, now: Duration, id: ConnectionId, identity: Identity) {
        let connection = Connection {
            identity,
            agent: None,
            version: LEAST_VERSION,
            greets: false,
            owes_stamp: false,
            last_stamp: 0,
            n_seen: 0,
            said_seen: 0,
            heard: now,
            is_listed: [false; 2],
        };
        self.connections.insert(id, connection);
    }

    /// Removes a connection. Its agent's flows stay for a lease.
    pub fn on_disconnected(&mut self, now: Duration, id: ConnectionId) {
        let Some(connection) = self.connections.remove(&id) else { return };
        if let Some(agent) = connection.agent.and_then(|at| self.agents[at].as_mut())
            && agent.connection == Some(id)
        {
            (agent.connection, agent.left, agent.standing.is_connected) = (None, now, false);
            self.term.is_dirty = true;
        }
    }

    /// Closes a connection: [`Desk::take_closed`] will return it.
    pub fn close(&mut self, now: Duration, id: ConnectionId, reason: Reason) {
        if self.connections.contains_key(&id) {
            self.to_close.push((id, reason));
            self.on_disconnected(now, id);
        }
    }

    /// Closes all connections.
    pub fn close_all(&mut self, now: Duration, reason: Reason) {
        let all: Vec<ConnectionId> = self.connections.keys().copied().collect();
        for id in all {
            self.close(now, id, reason);
        }
    }

    /// Handles a message of an agent.
    pub fn on_message(&mut self, now: Duration, id: ConnectionId, message: FromAgent) {
        let Some(connection) = self.connections.get_mut(&id) else { return };
        connection.heard = now;
        if matches!(message, FromAgent::Start(_) | FromAgent::End(_)) {
            connection.n_seen = connection.n_seen.wrapping_add(1);
        }
        let (known, version) = (connection.agent, connection.version);
        match (message, known) {
            (FromAgent::Hello { version, session }, None) => self.on_hello(now, id, version, session),
            (FromAgent::Hello { .. }, Some(_)) | (_, None) => self.close(now, id, Reason::Protocol),
            // A record of a later version than agreed.
            (FromAgent::Start(start), Some(_)) if !start.is_v4() && version < 3 => {
                self.close(now, id, Reason::Protocol);
            }
            (FromAgent::Start(start), Some(at)) => self.on_start(id, at, start),
            (FromAgent::End(flow), Some(at)) => self.end(at, flow),
            (FromAgent::Synced, Some(at)) => {
                while let Some(flow) = self.agents[at].as_mut().and_then(|agent| agent.flows.next_stale()) {
                    self.end(at, flow);
                }
            }
            (FromAgent::Alive, Some(_)) => {}
            (FromAgent::Stamp(stamp), Some(at)) => self.on_stamp(now, id, at, stamp),
            (FromAgent::InForce { flow, rate }, Some(at)) => self.on_in_force(at, flow, rate),
            (FromAgent::Reported, Some(at)) => self.on_reported(id, at),
            (FromAgent::Ack(mark), Some(at)) => self.on_ack(id, at, mark),
            (FromAgent::Bye(_), Some(at)) => {
                self.close(now, id, Reason::Shutdown);
                self.forget(at);
            }
        }
    }

    fn on_hello(&mut self, now: Duration, id: ConnectionId, version: u8, session: u64) {
        let agreed = Versions::from_byte(version).and_then(|offered| offered.agree(Versions::OURS));
        let Some(version) = agreed else { return self.close(now, id, Reason::Version) };
        let Some(connection) = self.connections.get(&id) else { return };
        let holder = self.holders.place(&connection.identity);
        let is_it = |at: usize| self.agents[at].as_ref().is_some_and(|agent| agent.session == session);
        let known = self.holders[holder].agents.iter().copied().find(|&at| is_it(at));
        let at = match known.map_or_else(|| self.add_agent(now, holder, session), Ok) {
            Ok(at) => at,
            Err(reason) => return self.close(now, id, reason),
        };
        let Some(agent) = &mut self.agents[at] else { return };
        agent.flows.begin_sync();
        (agent.standing.is_connected, agent.standing.is_reported) = (true, false);
        if let Some(older) = agent.connection.replace(id) {
            self.close(now, older, Reason::Replaced);
        }
        if let Some(connection) = self.connections.get_mut(&id) {
            (connection.agent, connection.version, connection.greets) = (Some(at), version, true);
        }
        self.list(id, Urgency::Now);
    }

    fn add_agent(&mut self, now: Duration, holder: usize, session: u64) -> Result<usize, Reason> {
        let is_full = |desk: &Self| match () {
            () if desk.config.max_sessions <= desk.holders[holder].agents.len() => Some(Reason::TooManySessions),
            () if desk.config.max_agents <= desk.n_agents() => Some(Reason::TooManyAgents),
            () => None,
        };
        if let Some(reason) = is_full(self)
            && !self.forget_cut_off(holder)
        {
            self.holders.forget_if_empty(holder);
            return Err(reason);
        }
        self.term.find(&self.holders[holder].identity, session);
        let standing = Standing { joined: now, ..Standing::default() };
        let agent = Agent { session, holder, connection: None, left: now, flows: Flows::default(), standing };
        let at = self.free_agents.pop().unwrap_or(self.agents.len());
        match self.agents.get_mut(at) {
            Some(free) => *free = Some(agent),
            None => self.agents.push(Some(agent)),
        }
        self.holders[holder].agents.push(at);
        Ok(at)
    }

    /// Removes the agent of this identity that has been without a connection for longest; returns `false` if all are
    /// connected. Most often it died, and another agent was started in its place.
    fn forget_cut_off(&mut self, holder: usize) -> bool {
        let left =
            |at: usize| self.agents[at].as_ref().filter(|agent| agent.connection.is_none()).map(|agent| agent.left);
        let agents = self.holders[holder].agents.iter();
        let cut_off = agents.filter_map(|&at| Some((left(at)?, at))).min();
        // The identity stays: another agent of it is about to connect or to start a flow.
        cut_off.inspect(|&(_, at)| self.remove_agent(at)).is_some()
    }

    fn on_start(&mut self, id: ConnectionId, at: usize, start: Start) {
        let Some(agent) = &mut self.agents[at] else { return };
        let holder = agent.holder;
        if !self.holders[holder].identity.may_speak_for(start.src) {
            return self.refuse(id, start, Refusal::Unauthorised);
        }
        if agent.flows.tell_again(start) {
            return self.list(id, Urgency::Now);
        }
        self.end(at, start.flow);
        while self.config.max_flows <= self.holders[holder].n_flows {
            if !self.make_room(at, holder) {
                return self.refuse(id, start, Refusal::TooManyFlows);
            }
        }
        self.path.clear();
        (self.paths)(start.src, start.dst, &mut self.path);
        let Some(agent) = &mut self.agents[at] else { return };
        let number = self.free_numbers.pop().unwrap_or(self.owners.len() as u32);
        let owner = (at as u32, agent.flows.add(start, number));
        match self.owners.get_mut(number as usize) {
            Some(place) => *place = owner,
            None => self.owners.push(owner),
        }
        self.links.begin(number, &self.path);
        self.holders[holder].n_flows += 1;
        self.counts.starts += 1;
        if self.path.is_empty() {
            // It is kept, as a link may come back.
            agent.flows.slot(owner.1).is_parked = true;
            self.n_parked += 1;
            return self.refuse(id, start, Refusal::NoPath);
        }
        self.service.start(number, &self.path, start.weight.as_f64(), f64::INFINITY);
    }

    fn refuse(&mut self, id: ConnectionId, start: Start, why: Refusal) {
        self.counts.refused[why as usize] += 1;
        self.refused[why as usize] = Some((id, start));
    }

    /// Ends a flow that the agent has not sent since HELLO, or else removes an agent of the same identity that has no
    /// connection, so that an agent that reconnects is not refused because of its old flows. Returns `false` if there
    /// is neither.
    fn make_room(&mut self, at: usize, holder: usize) -> bool {
        match self.agents[at].as_mut().and_then(|agent| agent.flows.next_stale()) {
            Some(flow) => {
                self.end(at, flow);
                true
            }
            None => self.forget_cut_off(holder),
        }
    }

    fn end(&mut self, at: usize, flow: Flow) {
        let Some(agent) = self.agents[at].as_mut() else { return };
        let holder = agent.holder;
        if let Some(number) = agent.flows.remove(flow) {
            self.n_parked -= usize::from(!self.service.end(number));
            self.counts.ends += 1;
            self.links.set(number, 0);
            self.owners[number as usize] = NOBODY;
            self.free_numbers.push(number);
            self.holders[holder].n_flows -= 1;
        }
    }

    /// Removes an agent with its flows.
    fn forget(&mut self, at: usize) {
        let Some(holder) = self.agents[at].as_ref().map(|agent| agent.holder) else { return };
        self.remove_agent(at);
        self.holders.forget_if_empty(holder);
    }

    fn remove_agent(&mut self, at: usize) {
        let flows: Vec<Flow> = self.agents[at].iter().flat_map(|agent| agent.flows.all()).collect();
        for flow in flows {
            self.end(at, flow);
        }
        if let Some(agent) = self.agents[at].take() {
            self.holders[agent.holder].agents.retain(|&other| other != at);
            self.free_agents.push(at);
        }
    }

    /// Lists a connection as having something to send.
    pub(crate) fn list(&mut self, id: ConnectionId, urgency: Urgency) {
        if let Some(connection) = self.connections.get_mut(&id)
            && !std::mem::replace(&mut connection.is_listed[urgency as usize], true)
        {
            self.to_write[urgency as usize].push_back(id);
        }
    }

    /// Moves the connections that have to be closed, with the reasons, to `out`.
    pub fn take_closed(&mut self, out: &mut Vec<(ConnectionId, Reason)>) {
        out.append(&mut self.to_close);
    }

    /// Returns the state of the allocator's right to decide.
    pub fn reign(&self) -> Reign {
        self.term.reign()
    }

    /// Returns the load of the links by the rates that may be in force.
    pub fn link_load(&self) -> LinkLoad {
        self.links.load()
    }

    /// Returns the number of flows that the optimiser has.
    pub fn n_flows(&self) -> usize {
        self.service.n_flows()
    }

    /// Returns the number of flows without a path.
    pub fn n_parked(&self) -> usize {
        self.n_parked
    }

    /// Returns the number of agents with a lease.
    pub fn n_agents(&self) -> usize {
        self.agents.len() - self.free_agents.len()
    }

    /// Returns the number of connections.
    pub fn n_connections(&self) -> usize {
        self.connections.len()
    }

    /// Returns the number of agents connected by this version of the protocol.
    pub fn n_of_version(&self, version: u8) -> usize {
        self.connections.values().filter(|of| of.agent.is_some() && of.version == version).count()
    }

    /// Returns all flows with the rates that were sent, in no order.
    pub fn flows(&self) -> impl Iterator<Item = (Start, WireRate)> + '_ {
        self.agents.iter().flatten().flat_map(|agent| agent.flows.with_rates())
    }

    /// Returns the flow that was refused last for this reason, and its connection.
    pub fn last_refused(&self, why: Refusal) -> Option<(ConnectionId, Start)> {
        self.refused[why as usize]
    }

    /// Returns the counts of events so far.
    pub fn counts(&self) -> Counts {
        self.counts
    }
}
