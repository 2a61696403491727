//! Agents, servers and the connections between them, in steps of a millisecond.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::net::IpAddr;
use std::time::Duration;

use fairrate_allocate::{LinkId, RealTime};
use fairrate_daemon::wire::{Decoder, Flow, FromAgent, FromAllocator, MAX_FRAME, Start};
use fairrate_daemon::{Agent, Change, ConnectionId, Desk, DeskConfig, Identity, Reign, Urgency, Weight};
use fairrate_sim::rng::{Purpose, Stream};

pub const N_HOSTS: usize = 6;
pub const N_LINKS: usize = 2 * N_HOSTS;
pub const CAPACITY_BPS: f64 = 10e9;
pub const THRESHOLD: f64 = 0.01;
pub const LEASE: Duration = Duration::from_millis(100);
/// Iterations of the optimiser a millisecond.
const ITERATIONS: usize = 10;
/// Number of bytes that a side writes at a time.
const PIECE: usize = 600;
/// Largest difference between the speeds of two clocks, in parts of a thousand.
const DRIFT_PERMILLE: u64 = 5;

/// Returns the links between two hosts: all hosts are connected to one switch.
pub fn path(src: IpAddr, dst: IpAddr) -> Vec<LinkId> {
    let link = |address: IpAddr| match address {
        IpAddr::V4(address) => u32::from(address.octets()[3]),
        IpAddr::V6(address) => u32::from(address.octets()[15]),
    };
    if src == dst { Vec::new() } else { vec![LinkId(link(src)), LinkId(N_HOSTS as u32 + link(dst))] }
}

fn address(host: usize) -> IpAddr {
    [10, 0, 0, host as u8].into()
}

/// One direction of a connection: bytes arrive in order, each piece at its time.
#[derive(Default)]
struct Pipe(VecDeque<(Duration, Vec<u8>)>);

impl Pipe {
    fn send(&mut self, at: Duration, bytes: Vec<u8>) {
        let at = self.0.back().map_or(at, |(last, _)| at.max(*last));
        self.0.push_back((at, bytes));
    }

    fn receive(&mut self, now: Duration) -> Option<Vec<u8>> {
        self.0.pop_front_if(|(at, _)| *at <= now).map(|(_, bytes)| bytes)
    }
}

/// A connection, as long as one side considers it open.
struct Connection {
    id: ConnectionId,
    delay: Duration,
    up: Pipe,
    down: Pipe,
    at_agent: Option<Decoder>,
    at_server: Option<Decoder>,
}

/// A clock that is off by a time, and by a part of the time.
#[derive(Clone, Copy)]
struct Clock {
    offset: Duration,
    speed: f64,
}

impl Clock {
    fn any(draw: &mut Stream) -> Self {
        let offset = Duration::from_millis(draw.below(100_000));
        Self { offset, speed: 1.0 + draw.below(DRIFT_PERMILLE + 1) as f64 / 1e3 }
    }

    fn at(self, now: Duration) -> Duration {
        self.offset + now.mul_f64(self.speed)
    }
}

struct Host {
    agent: Agent,
    clock: Clock,
    began: Duration,
    /// Time before which no bytes pass between the host and a server, by server.
    blocked_until: Vec<Duration>,
    /// Rates that the program was granted.
    granted: HashMap<Flow, f64>,
    /// Connections by server.
    connections: Vec<Option<Connection>>,
    /// Time before which the host does nothing.
    hangs_until: Duration,
    sessions: u64,
}

struct Server {
    desk: Option<Desk>,
    clock: Clock,
    hangs_until: Duration,
}

pub struct World {
    now: Duration,
    hosts: Vec<Host>,
    servers: Vec<Server>,
    /// Connections that only the server considers open.
    orphans: BTreeMap<ConnectionId, (usize, Connection)>,
    next_id: ConnectionId,
    seed: u64,
    quorum: usize,
    clocks: Stream,
    capacities_bps: [f64; N_LINKS],
    /// Longest delay of a connection's bytes.
    delay: Duration,
    /// `true` if bytes get lost.
    loses: bool,
}

/// Returns the part of each link's rate that the optimiser gives out.
fn free_bps(capacities_bps: &[f64]) -> Vec<f64> {
    capacities_bps.iter().map(|bps| bps * (1.0 - THRESHOLD)).collect()
}

fn engine(capacities_bps: &[f64]) -> Box<RealTime> {
    Box::new(RealTime::general(&free_bps(capacities_bps), CAPACITY_BPS, 0.4))
}

fn new_desk(instance: u64, now: Duration, quorum: usize, capacities_bps: &[f64]) -> Desk {
    let engine = engine(capacities_bps);
    let config = DeskConfig {
        instance,
        lease: LEASE,
        threshold: THRESHOLD,
        max_agents: 100,
        max_sessions: 4,
        max_flows: 1_000,
        quorum,
    };
    let mut desk = Desk::new(config, engine, Box::new(|src, dst, out| out.extend(path(src, dst))));
    desk.watch_links(capacities_bps);
    desk.bound_links(&[CAPACITY_BPS; N_LINKS]);
    desk.tick(now);
    desk
}

impl World {
    pub fn new(n_servers: usize, seed: u64) -> Self {
        Self::with_quorum(n_servers, seed, 0)
    }

    pub fn with_quorum(n_servers: usize, seed: u64, quorum: usize) -> Self {
        let mut clocks = Stream::new(seed, 100, Purpose::Test);
        let mut host = |i| {
            let clock = Clock::any(&mut clocks);
            Host {
                agent: Agent::new(clock.at(Duration::ZERO), i, n_servers),
                clock,
                began: Duration::ZERO,
                blocked_until: vec![Duration::ZERO; n_servers],
                granted: HashMap::new(),
                connections: (0..n_servers).map(|_| None).collect(),
                hangs_until: Duration::ZERO,
                sessions: 0,
            }
        };
        let hosts = (0..N_HOSTS as u64).map(&mut host).collect();
        let mut world = Self {
            now: Duration::ZERO,
            hosts,
            servers: Vec::new(),
            orphans: BTreeMap::new(),
            next_id: 0,
            seed,
            quorum,
            clocks,
            capacities_bps: [CAPACITY_BPS; N_LINKS],
            delay: Duration::from_millis(10),
            loses: false,
        };
        for _ in 0..n_servers {
            let server = world.new_server();
            world.servers.push(server);
        }
        world
    }

    fn new_server(&mut self) -> Server {
        let (clock, instance) = (Clock::any(&mut self.clocks), self.clocks.below(u64::MAX));
        let desk = new_desk(instance, clock.at(self.now), self.quorum, &self.capacities_bps);
        Server { desk: Some(desk), clock, hangs_until: Duration::ZERO }
    }

    /// Gives a link another rate. All allocators that are up take it over, and some of them with a new optimiser, as if
    /// links had other numbers. Returns the link and the rate that it had before.
    pub fn change_link(&mut self, draw: &mut Stream) -> (usize, f64) {
        let link = draw.below(N_LINKS as u64) as usize;
        let before = self.capacities_bps[link];
        self.capacities_bps[link] = CAPACITY_BPS * [0.1, 0.25, 0.5, 1.0][draw.below(4) as usize];
        for desk in self.servers.iter_mut().filter_map(|server| server.desk.as_mut()) {
            let is_new = draw.below(4) == 0;
            desk.change(Change {
                engine: is_new.then(|| engine(&self.capacities_bps) as _),
                free_bps: free_bps(&self.capacities_bps),
                capacities_bps: self.capacities_bps.to_vec(),
                bounds_bps: vec![CAPACITY_BPS; N_LINKS],
                paths: Box::new(|src, dst, out| out.extend(path(src, dst))),
            });
        }
        (link, before)
    }

    /// Returns the rates of all links.
    pub fn capacities_bps(&self) -> [f64; N_LINKS] {
        self.capacities_bps
    }

    /// Sets the longest delay of new connections' bytes, without losses.
    pub fn set_delay(&mut self, delay: Duration) {
        self.delay = delay;
    }

    /// Makes bytes get lost, so that they come later.
    pub fn lose_bytes(&mut self) {
        self.loses = true;
    }

    pub fn now(&self) -> Duration {
        self.now
    }

    /// Returns the state of a server's right to decide, if it is up and works.
    pub fn reign(&self, server: usize) -> Option<Reign> {
        let of = &self.servers[server];
        of.desk.as_ref().filter(|_| of.hangs_until <= self.now).map(Desk::reign)
    }

    /// Returns `true` if host and server work, bytes pass between them, and no connection is broken without either side
    /// knowing.
    pub fn reaches(&self, host: usize, server: usize) -> bool {
        let (host, of) = (&self.hosts[host], &self.servers[server]);
        let works = host.hangs_until <= self.now && of.desk.is_some() && of.hangs_until <= self.now;
        let is_whole = |connection: &Connection| connection.at_agent.is_some() && connection.at_server.is_some();
        works && host.blocked_until[server] <= self.now && host.connections[server].as_ref().is_none_or(is_whole)
    }

    /// Returns the time since which the host's agent runs.
    pub fn age(&self, host: usize) -> Duration {
        self.now.saturating_sub(self.hosts[host].began)
    }

    /// Returns the sums of the rates in force on all links, in bit/s. Those of a host that hangs count as long as they
    /// are valid: then a host that works would let TCP decide.
    pub fn sums_bps(&self) -> [f64; N_LINKS] {
        let mut sums = [0.0; N_LINKS];
        let is_valid = |host: &Host| host.agent.deadline().is_some_and(|until| host.clock.at(self.now) < until);
        let valid: Vec<bool> = self.hosts.iter().map(is_valid).collect();
        for (host, start) in self.flows().filter(|(host, _)| valid[*host]) {
            let rate_bps = self.agent(host).rate_bps(start.flow).unwrap_or(0.0);
            for link in path(start.src, start.dst) {
                sums[link.0 as usize] += rate_bps;
            }
        }
        sums
    }

    pub fn n_servers(&self) -> usize {
        self.servers.len()
    }

    pub fn desk(&self, server: usize) -> &Desk {
        self.servers[server].desk.as_ref().expect("the server is up")
    }

    pub fn agent(&self, host: usize) -> &Agent {
        &self.hosts[host].agent
    }

    pub fn granted(&self, host: usize, flow: Flow) -> f64 {
        self.hosts[host].granted.get(&flow).copied().unwrap_or(0.0)
    }

    /// Returns all flows, each with its agent.
    pub fn flows(&self) -> impl Iterator<Item = (usize, Start)> + '_ {
        self.hosts.iter().enumerate().flat_map(|(i, host)| host.agent.flows().map(move |start| (i, start)))
    }

    /// Begins a random flow, which may replace another of its number.
    pub fn begin_any(&mut self, draw: &mut Stream) {
        let host = draw.below(N_HOSTS as u64) as usize;
        let dst = (host + 1 + draw.below(N_HOSTS as u64 - 1) as usize) % N_HOSTS;
        let taken = self.hosts[host].agent.n_flows() as u32;
        let weight = Weight::from_f64([0.5, 1.0, 1.0, 2.0][draw.below(4) as usize]);
        let start = Start { flow: taken, src: address(host), dst: address(dst), weight };
        self.hosts[host].agent.begin(start);
    }

    pub fn change_any(&mut self, draw: &mut Stream) {
        let host = draw.below(N_HOSTS as u64) as usize;
        let flow = draw.below(12) as u32;
        if draw.below(2) == 0 {
            self.hosts[host].agent.end(flow);
            self.hosts[host].granted.remove(&flow);
        } else {
            let dst = (host + 1 + draw.below(N_HOSTS as u64 - 1) as usize) % N_HOSTS;
            let weight = Weight::from_f64([0.5, 1.0, 2.0][draw.below(3) as usize]);
            self.hosts[host].agent.begin(Start { flow, src: address(host), dst: address(dst), weight });
        }
    }

    /// Causes a random fault; returns `true` if there was one.
    pub fn trouble(&mut self, draw: &mut Stream) -> bool {
        (0..draw.below(4)).for_each(|_| self.change_any(draw));
        let (host, server) = (draw.below(N_HOSTS as u64) as usize, draw.below(self.servers.len() as u64) as usize);
        let for_a_while = self.now + LEASE.mul_f64(3.0 * draw.uniform());
        match draw.below(100) {
            0 => self.kill(server),
            1 if self.servers[server].desk.is_none() => self.restart(server),
            2 => self.servers[server].hangs_until = for_a_while,
            3 => self.hosts[host].hangs_until = for_a_while,
            4 => self.restart_agent(host),
            5..=9 => self.cut(host, server, draw.below(3)),
            10 | 11 => self.hosts[host].blocked_until[server] = for_a_while,
            12 => {
                // A partition: a server is cut from some of the hosts.
                let share = draw.uniform();
                for host in &mut self.hosts {
                    if draw.uniform() < share {
                        host.blocked_until[server] = for_a_while;
                    }
                }
            }
            _ => return false,
        }
        true
    }

    /// Ends all faults.
    pub fn mend(&mut self) {
        let down: Vec<usize> = (0..self.servers.len()).filter(|&i| self.servers[i].desk.is_none()).collect();
        for server in down {
            self.restart(server);
        }
        for host in &mut self.hosts {
            host.hangs_until = self.now;
            host.blocked_until.fill(self.now);
        }
        self.servers.iter_mut().for_each(|server| server.hangs_until = self.now);
    }

    /// Kills a server: its connections break on the agents' side.
    pub fn kill(&mut self, server: usize) {
        self.servers[server].desk = None;
        self.orphans.retain(|_, (of, _)| *of != server);
        for host in &mut self.hosts {
            if host.connections[server].take().is_some() {
                host.agent.on_cut(server);
            }
        }
    }

    pub fn restart(&mut self, server: usize) {
        self.servers[server] = self.new_server();
    }

    /// Kills an agent and starts another one on its host. Its connections end without a message.
    pub fn restart_agent(&mut self, host: usize) {
        (0..self.servers.len()).for_each(|server| self.cut(host, server, 1));
        let of = &mut self.hosts[host];
        of.sessions += 1;
        of.began = self.now;
        of.agent = Agent::new(of.clock.at(self.now), of.sessions * 100 + host as u64, self.servers.len());
        of.granted.clear();
    }

    /// Stops a host for ever.
    pub fn silence_agent(&mut self, host: usize) {
        self.hosts[host].hangs_until = Duration::MAX;
    }

    /// Breaks a connection: on both sides (0), or visible only to the agent (1) or only to the server (2).
    pub fn cut(&mut self, host: usize, server: usize, seen_by: u64) {
        let of = &mut self.hosts[host];
        let Some(mut connection) = of.connections[server].take() else { return };
        if seen_by != 1
            && connection.at_server.take().is_some()
            && let Server { desk: Some(desk), clock, .. } = &mut self.servers[server]
        {
            desk.on_disconnected(clock.at(self.now), connection.id);
        }
        if seen_by == 2 {
            of.connections[server] = Some(connection);
            return;
        }
        of.agent.on_cut(server);
        if connection.at_server.is_some() {
            connection.at_agent = None;
            self.orphans.insert(connection.id, (server, connection));
        }
    }

    /// Advances the time by a millisecond.
    pub fn step(&mut self, draw: &mut Stream) {
        self.now += Duration::from_millis(1);
        for host in 0..self.hosts.len() {
            if self.hosts[host].hangs_until <= self.now {
                self.step_agent(host, draw);
            }
        }
        for server in 0..self.servers.len() {
            if self.servers[server].desk.is_some() && self.servers[server].hangs_until <= self.now {
                self.step_server(server, draw);
            }
        }
    }

    fn step_agent(&mut self, host: usize, draw: &mut Stream) {
        let now = self.now;
        let local = self.hosts[host].clock.at(now);
        if self.hosts[host].agent.deadline().is_some_and(|at| at <= local) {
            self.hosts[host].agent.on_timer(local);
        }
        for server in 0..self.servers.len() {
            self.connect(host, server, draw);
            let of = &mut self.hosts[host];
            let Some(connection) = &mut of.connections[server] else { continue };
            let mut is_over = of.agent.give_up_at(server) <= local;
            let is_blocked = now < of.blocked_until[server];
            while !is_over
                && !is_blocked
                && let (Some(bytes), Some(decoder)) = (connection.down.receive(now), &mut connection.at_agent)
            {
                let hear = |message: FromAllocator| is_over |= of.agent.on_message(local, server, message).is_err();
                decoder.read(&bytes, hear).unwrap_or_else(|e| panic!("seed {}: {e}", self.seed));
                assert!(decoder.waiting() <= MAX_FRAME + 2);
            }
            let mut out = Vec::new();
            of.agent.write(local, server, &mut out, PIECE);
            assert!(out.len() <= 2 * PIECE, "no more than was asked for");
            if !out.is_empty() {
                connection.up.send(now + any_delay(connection.delay, self.loses, draw), out);
            }
            if is_over {
                self.cut(host, server, 1);
            }
        }
        let of = &mut self.hosts[host];
        let mut grants = Vec::new();
        of.agent.take_grants(&mut grants);
        of.granted.extend(grants.iter().map(|grant| (grant.flow, grant.rate_bps)));
    }

    fn connect(&mut self, host: usize, server: usize, draw: &mut Stream) {
        let of = &mut self.hosts[host];
        let is_blocked = self.now < of.blocked_until[server];
        if of.connections[server].is_some() || draw.below(4) != 0 || is_blocked {
            return;
        }
        let Server { desk: Some(desk), clock, .. } = &mut self.servers[server] else { return };
        let id = self.next_id;
        self.next_id += 1;
        desk.on_connected(clock.at(self.now), id, Identity::Addresses(vec![address(host)]));
        of.agent.on_connected(of.clock.at(self.now), server);
        let delay = self.delay.mul_f64(draw.uniform());
        let both = || Some(Decoder::default());
        let (up, down) = (Pipe::default(), Pipe::default());
        of.connections[server] = Some(Connection { id, delay, up, down, at_agent: both(), at_server: both() });
    }

    fn step_server(&mut self, server: usize, draw: &mut Stream) {
        let now = self.now;
        let Server { desk: Some(desk), clock, .. } = &mut self.servers[server] else { return };
        let local = clock.at(now);
        let mut connections: BTreeMap<ConnectionId, &mut Connection> = BTreeMap::new();
        let mut blocked = BTreeSet::new();
        for host in &mut self.hosts {
            if let Some(connection) = &mut host.connections[server] {
                if now < host.blocked_until[server] {
                    blocked.insert(connection.id);
                }
                connections.insert(connection.id, connection);
            }
        }
        for (of, connection) in self.orphans.values_mut() {
            if *of == server {
                connections.insert(connection.id, connection);
            }
        }
        for (&id, connection) in &mut connections {
            if blocked.contains(&id) {
                continue;
            }
            while let (Some(bytes), Some(decoder)) = (connection.up.receive(now), &mut connection.at_server) {
                let hear = |message: FromAgent| desk.on_message(local, id, message);
                decoder.read(&bytes, hear).unwrap_or_else(|e| panic!("seed {}: {e}", self.seed));
            }
        }
        desk.tick(local);
        for _ in 0..ITERATIONS {
            desk.iterate();
        }
        let mut closed = Vec::new();
        desk.take_closed(&mut closed);
        for (id, _) in closed {
            if let Some(connection) = connections.get_mut(&id) {
                connection.at_server = None;
            }
        }
        let n_listed = [Urgency::Now, Urgency::Soon].map(|urgency| (urgency, desk.n_listed(urgency)));
        for urgency in n_listed.into_iter().flat_map(|(urgency, n)| std::iter::repeat_n(urgency, n)) {
            let Some(id) = desk.next_listed(urgency) else { continue };
            let mut out = Vec::new();
            desk.write(local, id, &mut out, PIECE);
            if let (false, Some(connection)) = (out.is_empty(), connections.get_mut(&id)) {
                connection.down.send(now + any_delay(connection.delay, self.loses, draw), out);
            }
        }
        self.orphans.retain(|_, (_, connection)| connection.at_server.is_some());
    }
}

/// Returns the delay of a piece: if pieces get lost, one in 50 is sent again later.
fn any_delay(longest: Duration, loses: bool, draw: &mut Stream) -> Duration {
    let again = if loses && draw.below(50) == 0 { Duration::from_millis(draw.below(40)) } else { Duration::ZERO };
    longest.mul_f64(draw.uniform()) + again
}
