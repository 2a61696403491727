//! `fairrate-allocator load`: runs agents and flows against an allocator on this machine, and measures how fast it
//! answers.

mod scrape;

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use fairrate_sim::rng::{Purpose, Stream};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpSocket, TcpStream};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use self::scrape::Numbers;
use crate::agent::Agent;
use crate::rate::Weight;
use crate::stream::{READ, WRITE};
use crate::wire::{Decoder, Flow, FromAllocator, Reason, Start};

/// The parameters of a load test.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Address of the allocator, which must be on this machine.
    pub server: SocketAddr,
    /// Address of its metrics.
    pub metrics: Option<SocketAddr>,
    /// Number of connections.
    pub n_agents: u32,
    /// Number of flows of all agents.
    pub n_flows: u32,
    /// Number of flowlets that end, each followed by a new one, in a second.
    pub churn: f64,
    /// Duration of the measurement.
    pub time: Duration,
    /// Address of the first host.
    pub first_host: Ipv4Addr,
    /// Number of hosts of the topology.
    pub n_hosts: u32,
    /// Seed of the choice of flows.
    pub seed: u64,
}

/// The reason why nothing was measured.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The address is on another machine, which must not be loaded.
    #[error("{0} is no loopback address: the load stays on this machine, write 127.0.0.1")]
    NotHere(SocketAddr),
    /// The plan is invalid.
    #[error("{0}")]
    Plan(&'static str),
    /// The connection failed.
    #[error("cannot talk to {address}: {cause}")]
    Connection {
        /// The allocator or its metrics.
        address: SocketAddr,
        /// The reason.
        cause: io::Error,
    },
}

/// The results of a load test.
#[derive(Clone, Debug)]
pub struct Report {
    plan: Plan,
    /// Time from the first connection until every flow had a rate.
    setup: Duration,
    /// Number of flowlets that began and ended during the measurement.
    updates: u64,
    /// Times from the start of a flowlet to its first rate, in order.
    latencies: Vec<Duration>,
    /// Number of flowlets that ended without ever having a rate.
    unserved: u64,
    /// Number of flowlets that had no rate yet at the end.
    waiting: usize,
    numbers: Option<(Numbers, Numbers)>,
}

/// Time within which the allocator must close a connection.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// The measurements of an agent.
#[derive(Debug, Default)]
struct Seen {
    updates: u64,
    latencies: Vec<Duration>,
    unserved: u64,
    waiting: usize,
}

/// The phase of the test, common to all agents.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Filling,
    Measuring,
    Over,
}

/// Runs a load test by `plan`.
///
/// # Errors
/// If the allocator is not on this machine or cannot be reached.
pub fn run(plan: &Plan) -> Result<Report, LoadError> {
    for address in std::iter::once(plan.server).chain(plan.metrics) {
        if !address.ip().is_loopback() {
            return Err(LoadError::NotHere(address));
        }
    }
    if plan.n_agents == 0 || plan.n_hosts < 2 || plan.n_flows < plan.n_agents {
        return Err(LoadError::Plan("there are to be agents, two hosts at least, and a flow for each agent at least"));
    }
    let failed = |cause| LoadError::Connection { address: plan.server, cause };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
    runtime.block_on(measure(plan))
}

async fn measure(plan: &Plan) -> Result<Report, LoadError> {
    let failed = |cause| LoadError::Connection { address: plan.server, cause };
    let (phase, phases) = watch::channel(Phase::Filling);
    let (filled, mut filling) = tokio::sync::mpsc::channel(1);
    let began = Instant::now();
    let mut tasks = Vec::new();
    for number in 0..plan.n_agents {
        let stream = connect(plan.server, number).await.map_err(failed)?;
        let loader = Loader::new(plan, number, phases.clone()).map_err(failed)?;
        tasks.push(tokio::spawn(loader.run(stream, filled.clone())));
    }
    for _ in 0..plan.n_agents {
        if filling.recv().await.is_none() {
            break;
        }
    }
    let setup = began.elapsed();
    let before = numbers(plan).await?;
    let _ = phase.send(Phase::Measuring);
    tokio::time::sleep(plan.time).await;
    let after = numbers(plan).await?;
    let _ = phase.send(Phase::Over);
    let mut report = Report {
        plan: plan.clone(),
        setup,
        updates: 0,
        latencies: Vec::new(),
        unserved: 0,
        waiting: 0,
        numbers: before.zip(after),
    };
    for task in tasks {
        let seen = task.await.map_err(|e| failed(io::Error::other(e)))?.map_err(failed)?;
        report.updates += seen.updates;
        report.waiting += seen.waiting;
        report.unserved += seen.unserved;
        report.latencies.extend(seen.latencies);
    }
    report.latencies.sort_unstable();
    Ok(report)
}

/// Connects an agent from a loopback address of its own, if the allocator has an IPv4 address, since the number of
/// connections of an address is limited.
async fn connect(server: SocketAddr, number: u32) -> io::Result<TcpStream> {
    if server.is_ipv6() {
        return TcpStream::connect(server).await;
    }
    let socket = TcpSocket::new_v4()?;
    let own = Ipv4Addr::from(u32::from(Ipv4Addr::new(127, 1, 0, 0)) + number % (1 << 16));
    socket.bind((own, 0).into())?;
    socket.connect(server).await
}

async fn numbers(plan: &Plan) -> Result<Option<Numbers>, LoadError> {
    let Some(address) = plan.metrics else { return Ok(None) };
    let numbers = scrape::numbers(address).await.map_err(|cause| LoadError::Connection { address, cause })?;
    Ok(Some(numbers))
}

/// An agent that measures response times.
struct Loader {
    agent: Agent,
    draw: Stream,
    src: Ipv4Addr,
    plan: Plan,
    n_flows: u32,
    next_flow: Flow,
    /// Present flows, in no order.
    flows: Vec<Flow>,
    /// Flows without a rate, with their start times.
    waiting: HashMap<Flow, Instant>,
    seen: Seen,
    phases: watch::Receiver<Phase>,
    began: Instant,
}

impl Loader {
    fn new(plan: &Plan, number: u32, phases: watch::Receiver<Phase>) -> io::Result<Self> {
        let session = getrandom::u64().map_err(io::Error::other)?;
        let extra = u32::from(number < plan.n_flows % plan.n_agents);
        let mut loader = Self {
            agent: Agent::new(Duration::ZERO, session, 1),
            draw: Stream::new(plan.seed, number.into(), Purpose::Test),
            src: host(plan, number % plan.n_hosts),
            plan: plan.clone(),
            n_flows: plan.n_flows / plan.n_agents + extra,
            next_flow: 0,
            flows: Vec::new(),
            waiting: HashMap::new(),
            seen: Seen::default(),
            phases,
            began: Instant::now(),
        };
        (0..loader.n_flows).for_each(|_| loader.begin());
        Ok(loader)
    }

    fn now(&self) -> Duration {
        self.began.elapsed()
    }

    /// Begins a flowlet to another host.
    fn begin(&mut self) {
        let others = u64::from(self.plan.n_hosts - 1);
        let own = u32::from(self.src) - u32::from(self.plan.first_host);
        let dst = host(&self.plan, (own + 1 + self.draw.below(others) as u32) % self.plan.n_hosts);
        let flow = self.next_flow;
        self.next_flow += 1;
        self.flows.push(flow);
        self.waiting.insert(flow, Instant::now());
        self.agent.begin(Start { flow, src: self.src.into(), dst: dst.into(), weight: Weight::ONE });
    }

    /// Ends one flowlet and begins another.
    fn change(&mut self) {
        let place = self.draw.below(self.flows.len() as u64) as usize;
        let flow = self.flows.swap_remove(place);
        self.seen.unserved += u64::from(self.waiting.remove(&flow).is_some());
        self.agent.end(flow);
        self.begin();
        self.seen.updates += 2;
    }

    /// Runs the conversation with the allocator until the measurement is over.
    async fn run(mut self, stream: TcpStream, filled: tokio::sync::mpsc::Sender<()>) -> io::Result<Seen> {
        stream.set_nodelay(true)?;
        let (mut input, mut output) = stream.into_split();
        let mut decoder = Decoder::default();
        let mut filled = Some(filled);
        self.agent.on_connected(self.now(), 0);
        let mut next_change = None;
        loop {
            self.write(&mut output).await?;
            let speaks_at = self.agent.speaks_at(0).map(|at| self.began + at);
            tokio::select! {
                result = self.phases.changed() => {
                    if result.is_err() || *self.phases.borrow() == Phase::Over {
                        break;
                    }
                    next_change = Some(self.next_change(Instant::now()));
                    self.seen.latencies.clear();
                }
                () = at(next_change) => {
                    self.change();
                    next_change = next_change.map(|at| self.next_change(at));
                }
                () = at(speaks_at) => {}
                result = read(&mut input, &mut decoder) => self.hear(result?)?,
            }
            if self.waiting.is_empty()
                && let Some(filled) = filled.take()
            {
                let _ = filled.send(()).await;
            }
        }
        self.seen.waiting = self.waiting.len();
        self.agent.leave();
        self.write(&mut output).await?;
        // If the connection were closed with unread data, the last messages would be lost.
        output.shutdown().await?;
        let rest = async { while read(&mut input, &mut decoder).await.is_ok() {} };
        let _ = tokio::time::timeout(LAST_WORDS, rest).await;
        Ok(self.seen)
    }

    /// Returns the time of the next change. Changes are a Poisson process, at this agent's share of the rate.
    fn next_change(&mut self, last: Instant) -> Instant {
        let mean = f64::from(self.plan.n_agents) / self.plan.churn.max(1e-9);
        let wait = -(1.0 - self.draw.uniform()).ln() * mean;
        last + Duration::from_secs_f64(wait.min(1e6))
    }

    async fn write(&mut self, output: &mut OwnedWriteHalf) -> io::Result<()> {
        let mut out = Vec::new();
        self.agent.write(self.now(), 0, &mut out, WRITE);
        if out.is_empty() { Ok(()) } else { output.write_all(&out).await }
    }

    fn hear(&mut self, messages: Vec<FromAllocator>) -> io::Result<()> {
        let (now, at) = (self.now(), Instant::now());
        for message in messages {
            let closed = |reason: Reason| io::Error::other(format!("the allocator closed the connection: {reason}"));
            self.agent.on_message(now, 0, message).map_err(closed)?;
            if let FromAllocator::Rate { flow, .. } = message
                && let Some(since) = self.waiting.remove(&flow)
            {
                self.seen.latencies.push(at - since);
            }
        }
        Ok(())
    }
}

/// Returns at the given time; never for `None`.
async fn at(time: Option<Instant>) {
    match time {
        Some(time) => sleep_until(time).await,
        None => std::future::pending().await,
    }
}

async fn read(input: &mut OwnedReadHalf, decoder: &mut Decoder) -> io::Result<Vec<FromAllocator>> {
    let mut buffer = [0; READ];
    let n = input.read(&mut buffer).await?;
    if n == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    let mut messages = Vec::new();
    decoder.read(&buffer[..n], |message| messages.push(message)).map_err(io::Error::other)?;
    Ok(messages)
}

fn host(plan: &Plan, number: u32) -> Ipv4Addr {
    Ipv4Addr::from(u32::from(plan.first_host).wrapping_add(number))
}

const MIB: f64 = (1_u32 << 20) as f64;

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plan = &self.plan;
        let seconds = plan.time.as_secs_f64();
        writeln!(f, "{} agents, {} flows, all with a rate after {:.2?}", plan.n_agents, plan.n_flows, self.setup)?;
        writeln!(f, "updates: {:.0} a second for {seconds} s", self.updates as f64 / seconds)?;
        let at = |share: f64| self.latencies.get((self.latencies.len() as f64 * share) as usize);
        if let (Some(median), Some(p99)) = (at(0.5), at(0.99)) {
            let n = self.latencies.len();
            writeln!(f, "start to first rate: p50 {median:.2?}, p99 {p99:.2?} ({n} flowlets)")?;
        }
        writeln!(f, "ended before a rate: {}; without one at the end: {}", self.unserved, self.waiting)?;
        let Some((before, after)) = &self.numbers else { return Ok(()) };
        let rate = |of: fn(&Numbers) -> f64| (of(after) - of(before)) / seconds;
        writeln!(f, "allocator: {:.2} cores, {:.1} MiB", rate(|n| n.cpu_s), after.resident_bytes / MIB)?;
        writeln!(f, "           {:.0} iterations a second", rate(|n| n.iterations))?;
        writeln!(f, "           {:.0} rates a second", rate(|n| n.rates))?;
        let mbps = |bytes: f64| bytes * 8.0 / 1e6;
        let (up, down) = (mbps(rate(|n| n.received_bytes)), mbps(rate(|n| n.sent_bytes)));
        writeln!(f, "           {up:.2} Mbit/s from agents, {down:.2} Mbit/s to them (payload)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flowlet_that_ends_before_its_rate_is_counted() {
        let plan = Plan {
            server: "127.0.0.1:4600".parse().unwrap(),
            metrics: None,
            n_agents: 1,
            n_flows: 10,
            churn: 1.0,
            time: Duration::from_secs(1),
            first_host: "10.0.0.1".parse().unwrap(),
            n_hosts: 8,
            seed: 1,
        };
        let (_phase, phases) = watch::channel(Phase::Filling);
        let mut loader = Loader::new(&plan, 0, phases).unwrap();
        // Flows that are still present have their rates.
        loader.change();
        assert_eq!((loader.seen.unserved, loader.waiting.len()), (1, 10));
        loader.waiting.clear();
        loader.change();
        assert_eq!((loader.seen.unserved, loader.seen.updates), (1, 4));
    }
}
