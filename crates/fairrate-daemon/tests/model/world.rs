//! Agents, servers and the connections between them, in steps of a millisecond.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::net::Ipv4Addr;
use std::time::Duration;

use fairrate_allocate::{LinkId, RealTime};
use fairrate_daemon::wire::{Decoder, Flow, FromAgent, FromAllocator, MAX_FRAME, Start};
use fairrate_daemon::{Agent, ConnectionId, Desk, DeskConfig, Identity, Urgency, Weight};
use fairrate_sim::rng::Stream;

pub const N_HOSTS: usize = 6;
pub const N_LINKS: usize = 2 * N_HOSTS;
pub const CAPACITY_BPS: f64 = 10e9;
pub const THRESHOLD: f64 = 0.01;
pub const LEASE: Duration = Duration::from_millis(100);
/// Iterations of the optimiser a millisecond.
const ITERATIONS: usize = 10;
/// Number of bytes that a side writes at a time.
const PIECE: usize = 600;

/// Returns the links between two hosts: all hosts are connected to one switch.
pub fn path(src: Ipv4Addr, dst: Ipv4Addr) -> Vec<LinkId> {
    let link = |address: Ipv4Addr| u32::from(address.octets()[3]);
    if src == dst { Vec::new() } else { vec![LinkId(link(src)), LinkId(N_HOSTS as u32 + link(dst))] }
}

fn address(host: usize) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, 0, host as u8)
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

struct Host {
    agent: Agent,
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
    hangs_until: Duration,
    epochs: u64,
}

pub struct World {
    now: Duration,
    hosts: Vec<Host>,
    servers: Vec<Server>,
    /// Connections that only the server considers open.
    orphans: BTreeMap<ConnectionId, (usize, Connection)>,
    next_id: ConnectionId,
    seed: u64,
}

fn new_desk(epoch: u64, now: Duration) -> Desk {
    let engine = RealTime::general(&[CAPACITY_BPS * (1.0 - THRESHOLD); N_LINKS], CAPACITY_BPS, 0.4);
    let config =
        DeskConfig { epoch, lease: LEASE, threshold: THRESHOLD, max_agents: 100, max_sessions: 4, max_flows: 1_000 };
    let mut desk = Desk::new(config, Box::new(engine), Box::new(|src, dst, out| out.extend(path(src, dst))));
    desk.tick(now);
    desk
}

impl World {
    pub fn new(n_servers: usize, seed: u64) -> Self {
        let host = |i| Host {
            agent: Agent::new(i, n_servers),
            granted: HashMap::new(),
            connections: (0..n_servers).map(|_| None).collect(),
            hangs_until: Duration::ZERO,
            sessions: 0,
        };
        let server = |i| Server { desk: Some(new_desk(i, Duration::ZERO)), hangs_until: Duration::ZERO, epochs: 0 };
        Self {
            now: Duration::ZERO,
            hosts: (0..N_HOSTS as u64).map(host).collect(),
            servers: (0..n_servers as u64).map(server).collect(),
            orphans: BTreeMap::new(),
            next_id: 0,
            seed,
        }
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

    fn change_any(&mut self, draw: &mut Stream) {
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

    /// Causes a random fault.
    pub fn trouble(&mut self, draw: &mut Stream) {
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
            _ => {}
        }
    }

    /// Ends all faults.
    pub fn mend(&mut self) {
        let down: Vec<usize> = (0..self.servers.len()).filter(|&i| self.servers[i].desk.is_none()).collect();
        for server in down {
            self.restart(server);
        }
        self.hosts.iter_mut().for_each(|host| host.hangs_until = self.now);
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

    fn restart(&mut self, server: usize) {
        self.servers[server].epochs += 1;
        let epoch = self.servers[server].epochs * 10 + server as u64;
        self.servers[server].desk = Some(new_desk(epoch, self.now));
    }

    /// Kills an agent and starts another one on its host. Its connections end without a message.
    fn restart_agent(&mut self, host: usize) {
        (0..self.servers.len()).for_each(|server| self.cut(host, server, 1));
        let of = &mut self.hosts[host];
        of.sessions += 1;
        of.agent = Agent::new(of.sessions * 100 + host as u64, self.servers.len());
        of.granted.clear();
    }

    /// Stops a host for ever.
    pub fn silence_agent(&mut self, host: usize) {
        self.hosts[host].hangs_until = Duration::MAX;
    }

    /// Breaks a connection: on both sides (0), or visible only to the agent (1) or only to the server (2).
    fn cut(&mut self, host: usize, server: usize, seen_by: u64) {
        let of = &mut self.hosts[host];
        let Some(mut connection) = of.connections[server].take() else { return };
        if seen_by != 1
            && connection.at_server.take().is_some()
            && let Some(desk) = &mut self.servers[server].desk
        {
            desk.on_disconnected(self.now, connection.id);
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
        for server in 0..self.servers.len() {
            self.connect(host, server, draw);
            let of = &mut self.hosts[host];
            let Some(connection) = &mut of.connections[server] else { continue };
            let mut is_over = of.agent.give_up_at(server) <= now;
            while let (false, Some(bytes), Some(decoder)) =
                (is_over, connection.down.receive(now), &mut connection.at_agent)
            {
                let hear = |message: FromAllocator| is_over |= of.agent.on_message(now, server, message).is_err();
                decoder.read(&bytes, hear).unwrap_or_else(|e| panic!("seed {}: {e}", self.seed));
                assert!(decoder.waiting() <= MAX_FRAME + 2);
            }
            let mut out = Vec::new();
            of.agent.write(now, server, &mut out, PIECE);
            assert!(out.len() <= 2 * PIECE, "no more than was asked for");
            if !out.is_empty() {
                connection.up.send(now + connection.delay.mul_f64(draw.uniform()), out);
            }
            if is_over {
                self.cut(host, server, 1);
            }
        }
        let of = &mut self.hosts[host];
        if of.agent.deadline(now).is_some_and(|at| at <= now) {
            of.agent.on_timer(now);
        }
        let mut grants = Vec::new();
        of.agent.take_grants(&mut grants);
        of.granted.extend(grants.iter().map(|grant| (grant.flow, grant.rate_bps)));
    }

    fn connect(&mut self, host: usize, server: usize, draw: &mut Stream) {
        let of = &mut self.hosts[host];
        if of.connections[server].is_some() || draw.below(4) != 0 {
            return;
        }
        let Some(desk) = &mut self.servers[server].desk else { return };
        let id = self.next_id;
        self.next_id += 1;
        desk.on_connected(self.now, id, Identity::Addresses(vec![address(host)]));
        of.agent.on_connected(self.now, server);
        let delay = Duration::from_millis(draw.below(10));
        let both = || Some(Decoder::default());
        let (up, down) = (Pipe::default(), Pipe::default());
        of.connections[server] = Some(Connection { id, delay, up, down, at_agent: both(), at_server: both() });
    }

    fn step_server(&mut self, server: usize, draw: &mut Stream) {
        let now = self.now;
        let Some(desk) = &mut self.servers[server].desk else { return };
        let mut connections: BTreeMap<ConnectionId, &mut Connection> = BTreeMap::new();
        for host in &mut self.hosts {
            connections.extend(host.connections[server].as_mut().map(|connection| (connection.id, connection)));
        }
        for (of, connection) in self.orphans.values_mut() {
            if *of == server {
                connections.insert(connection.id, connection);
            }
        }
        for (&id, connection) in &mut connections {
            while let (Some(bytes), Some(decoder)) = (connection.up.receive(now), &mut connection.at_server) {
                let hear = |message: FromAgent| desk.on_message(now, id, message);
                decoder.read(&bytes, hear).unwrap_or_else(|e| panic!("seed {}: {e}", self.seed));
            }
        }
        desk.tick(now);
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
            desk.write(now, id, &mut out, PIECE);
            if let (false, Some(connection)) = (out.is_empty(), connections.get_mut(&id)) {
                connection.down.send(now + connection.delay.mul_f64(draw.uniform()), out);
            }
        }
        self.orphans.retain(|_, (_, connection)| connection.at_server.is_some());
    }
}
