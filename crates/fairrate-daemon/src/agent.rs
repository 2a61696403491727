//! The agent's side of the protocol: its flows, the flows each server has been sent, and the rates in force. It uses no
//! sockets and no clock.
//!
//! Every server is sent all flows. The rate in force is that of the first server in the list that is not silent and has
//! granted a rate. Only the difference between the flows and the flows a server has been sent is pending, so a server
//! that reads slowly costs no memory.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use fairrate_control::flowtune::{Endpoint, Grant, Message};
use fairrate_units::Time;

use crate::wire::{self, Flow, FromAgent, FromAllocator, Reason, Start, VERSION};

/// The lease before a server has sent its own.
pub const FIRST_LEASE: Duration = Duration::from_secs(1);

/// Number of messages that a side sends in a lease.
pub(crate) const WORDS_A_LEASE: u32 = 4;

/// The state of an agent.
#[derive(Debug)]
pub struct Agent {
    session: u64,
    flows: HashMap<Flow, Own>,
    servers: Vec<Server>,
    /// Flows whose rate in force differs from the one taken last.
    changed: BTreeSet<Flow>,
    /// Number of flows begun so far.
    n_begun: u32,
    is_leaving: bool,
}

/// The state of a flow.
#[derive(Clone, Copy, Debug)]
struct Own {
    start: Start,
    /// Number that distinguishes this flow from earlier flows with the same `Flow` number.
    generation: u32,
    /// Rate in force in bit/s; zero: none.
    in_force_bps: f64,
}

/// The state of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Link {
    /// There is no connection.
    Cut,
    /// HELLO has to be sent.
    Greeting,
    /// HELLO has been sent and not been answered.
    Waiting,
    /// HELLO has been answered; flows are sent.
    Up,
}

/// The agent's state of the conversation with a server.
#[derive(Debug)]
struct Server {
    endpoint: Endpoint,
    link: Link,
    lease: Duration,
    epoch: Option<u64>,
    /// Flows that the server has been sent since HELLO, by generation.
    told: HashMap<Flow, u32>,
    /// Flows whose state at the server may differ from the agent's.
    dirty: BTreeSet<Flow>,
    /// `true` if SYNCED has to be sent once nothing is dirty.
    is_syncing: bool,
    heard: Duration,
    spoke: Duration,
    /// Time until which the rates in force stay, since a server that has just started has no rates yet.
    holds_until: Duration,
}

impl Agent {
    /// Creates an agent without flows. `session` is a random number, by which servers recognise the agent.
    pub fn new(session: u64, n_servers: usize) -> Self {
        let server = |_| Server {
            endpoint: Endpoint::new(ticks(FIRST_LEASE)),
            link: Link::Cut,
            lease: FIRST_LEASE,
            epoch: None,
            told: HashMap::new(),
            dirty: BTreeSet::new(),
            is_syncing: false,
            heard: Duration::ZERO,
            spoke: Duration::ZERO,
            holds_until: Duration::ZERO,
        };
        Self {
            session,
            flows: HashMap::new(),
            servers: (0..n_servers).map(server).collect(),
            changed: BTreeSet::new(),
            n_begun: 0,
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
        self.flows.insert(flow, Own { start, generation: self.n_begun, in_force_bps: 0.0 });
        for server in &mut self.servers {
            server.endpoint.begin(flow);
            server.dirty.insert(flow);
        }
    }

    /// Ends a flowlet.
    pub fn end(&mut self, flow: Flow) {
        if self.flows.remove(&flow).is_none() {
            return;
        }
        self.changed.remove(&flow);
        for server in &mut self.servers {
            server.endpoint.end(flow);
            server.dirty.insert(flow);
        }
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

    /// Handles a new connection to `server`.
    pub fn on_connected(&mut self, now: Duration, server: usize) {
        let server = &mut self.servers[server];
        (server.link, server.heard) = (Link::Greeting, now);
    }

    /// Handles the end of the connection to `server`. Its rates hold for the rest of the lease.
    pub fn on_cut(&mut self, server: usize) {
        let server = &mut self.servers[server];
        server.link = Link::Cut;
        server.told.clear();
    }

    /// Handles a message of `server`.
    ///
    /// # Errors
    /// If the message ends the connection: the server's reason, or the fault of the message.
    pub fn on_message(&mut self, now: Duration, server: usize, message: FromAllocator) -> Result<(), Reason> {
        match message {
            FromAllocator::Hello { version, epoch, lease } => self.on_hello(now, server, version, epoch, lease),
            FromAllocator::Bye(reason) => Err(reason),
            _ if self.servers[server].link != Link::Up => Err(Reason::Protocol),
            FromAllocator::Alive => {
                self.hear(now, server, Message::Alive);
                Ok(())
            }
            FromAllocator::Rate { flow, rate } => {
                self.hear(now, server, Message::Update { flow, rate_bps: rate.as_bps() });
                self.refresh(now, flow);
                Ok(())
            }
        }
    }

    fn on_hello(
        &mut self,
        now: Duration,
        server: usize,
        version: u8,
        epoch: u64,
        lease: Duration,
    ) -> Result<(), Reason> {
        let flows = self.flows.keys().copied().collect();
        let of = &mut self.servers[server];
        if of.link != Link::Waiting {
            return Err(Reason::Protocol);
        }
        if version != VERSION {
            return Err(Reason::Version);
        }
        (of.link, of.lease, of.dirty, of.is_syncing) = (Link::Up, lease, flows, true);
        of.endpoint.set_lifetime(ticks(lease));
        if of.epoch.replace(epoch) == Some(epoch) {
            self.hear(now, server, Message::Alive);
        } else {
            of.holds_until = now + lease;
            self.hear(now, server, Message::Hello);
            self.refresh_all(now);
        }
        Ok(())
    }

    /// Passes a message to the endpoint, which may end a silence.
    fn hear(&mut self, now: Duration, server: usize, message: Message) {
        let of = &mut self.servers[server];
        of.heard = now;
        let was_silent = of.endpoint.is_silent();
        // The rate in force also depends on the other servers; and all flows are sent after HELLO anyway.
        of.endpoint.on_message(ticks(now), message, &mut Vec::new(), &mut Vec::new());
        if was_silent {
            self.refresh_all(now);
        }
    }

    /// Returns the rate of a flow from the messages of all servers, in bit/s; 0: none.
    fn rate_by_servers(&self, now: Duration, flow: Flow, in_force_bps: f64) -> f64 {
        let mut speaking = self.servers.iter().filter(|server| !server.endpoint.is_silent());
        let rate = |server: &Server| {
            let held = (now < server.holds_until && 0.0 < in_force_bps).then_some(in_force_bps);
            server.endpoint.rate_bps(flow).or(held)
        };
        speaking.find_map(rate).unwrap_or(0.0)
    }

    fn refresh(&mut self, now: Duration, flow: Flow) {
        let Some(own) = self.flows.get(&flow) else { return };
        let rate_bps = self.rate_by_servers(now, flow, own.in_force_bps);
        if let Some(own) = self.flows.get_mut(&flow)
            && own.in_force_bps != rate_bps
        {
            own.in_force_bps = rate_bps;
            self.changed.insert(flow);
        }
    }

    fn refresh_all(&mut self, now: Duration) {
        let flows: Vec<Flow> = self.flows.keys().copied().collect();
        for flow in flows {
            self.refresh(now, flow);
        }
    }

    /// Returns the time at which [`Agent::on_timer`] has to be called, unless another event is earlier.
    pub fn deadline(&self, now: Duration) -> Option<Duration> {
        let expiries = self.servers.iter().map(|server| server.endpoint.deadline()).filter(|at| *at < Time::MAX);
        let held = self.servers.iter().map(|server| server.holds_until).filter(|until| now < *until);
        expiries.map(|at| Duration::from_nanos(at.as_ps())).chain(held).min()
    }

    /// Ends the rates of servers that have been silent for their lease.
    pub fn on_timer(&mut self, now: Duration) {
        for server in &mut self.servers {
            server.endpoint.on_timer(ticks(now), &mut Vec::new());
        }
        self.refresh_all(now);
    }

    /// Returns `true` if `server` has answered HELLO on a connection that still exists.
    pub fn is_up(&self, server: usize) -> bool {
        self.servers[server].link == Link::Up
    }

    /// Returns the time at which the connection has to be given up, because its server has been silent for twice its
    /// lease.
    pub fn give_up_at(&self, server: usize) -> Duration {
        let server = &self.servers[server];
        server.heard + 2 * server.lease
    }

    /// Returns the time at which [`Agent::write`] has something to send to `server`; `None`: not before another event.
    pub fn speaks_at(&self, server: usize) -> Option<Duration> {
        let server = &self.servers[server];
        match server.link {
            Link::Cut => None,
            Link::Greeting => Some(Duration::ZERO),
            Link::Waiting => self.is_leaving.then_some(Duration::ZERO),
            Link::Up if self.is_leaving || server.is_syncing || !server.dirty.is_empty() => Some(Duration::ZERO),
            Link::Up => Some(server.spoke + server.lease / WORDS_A_LEASE),
        }
    }

    /// Appends the pending messages for `server` to `out`, up to about `most` bytes; returns `false` if the last of
    /// them is the agent's BYE.
    pub fn write(&mut self, now: Duration, server: usize, out: &mut Vec<u8>, most: usize) -> bool {
        let of = &mut self.servers[server];
        let before = out.len();
        match of.link {
            Link::Cut => {}
            _ if self.is_leaving => wire::encode([FromAgent::Bye(Reason::Shutdown)], out),
            Link::Greeting => {
                wire::encode([FromAgent::Hello { version: VERSION, session: self.session }], out);
                of.link = Link::Waiting;
            }
            Link::Waiting => {}
            Link::Up => {
                wire::encode(of.news(&self.flows, most), out);
                if out.len() == before && of.spoke + of.lease / WORDS_A_LEASE <= now {
                    wire::encode([FromAgent::Alive], out);
                }
            }
        }
        if before < out.len() {
            of.spoke = now;
        }
        !self.is_leaving
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

impl Server {
    /// Returns the difference between the flows and those the server has been sent: at most `most` bytes of records.
    fn news(&mut self, flows: &HashMap<Flow, Own>, most: usize) -> Vec<FromAgent> {
        let (mut news, mut bytes) = (Vec::new(), 0);
        while bytes < most
            && let Some(flow) = self.dirty.pop_first()
        {
            let (own, told) = (flows.get(&flow), self.told.get(&flow).copied());
            if own.map(|own| own.generation) == told {
                continue;
            }
            if self.told.remove(&flow).is_some() {
                news.push(FromAgent::End(flow));
            }
            if let Some(own) = own {
                self.told.insert(flow, own.generation);
                news.push(FromAgent::Start(own.start));
            }
            bytes += 20;
        }
        if self.is_syncing && self.dirty.is_empty() {
            self.is_syncing = false;
            news.push(FromAgent::Synced);
        }
        news
    }
}

/// Converts a time for the endpoint, which only compares times: nanoseconds stand for its picoseconds, so its clock
/// lasts 584 years.
fn ticks(time: Duration) -> Time {
    Time::from_ps(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX))
}
