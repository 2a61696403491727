//! The client for programs that pace their own flows.

use std::convert::Infallible;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

pub use fairrate_control::flowtune::Grant;
use tokio::io::{AsyncReadExt, AsyncWriteExt, ReadHalf, WriteHalf};
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio_rustls::TlsConnector;

use crate::agent::Agent;
use crate::logging::Throttle;
use crate::rate::Weight;
use crate::stream::{READ, Stream, WRITE};
use crate::tls::{Security, server_name};
use crate::wire::{Decoder, Flow, FromAllocator, Start};

/// The options of a [`Client`]'s connections.
#[derive(Clone, Debug)]
pub struct ClientOptions {
    /// Longest time between two attempts to connect to a server. The first is a 16th of it.
    pub retry: Duration,
    /// Limit of the time to connect.
    pub patience: Duration,
}

impl Default for ClientOptions {
    fn default() -> Self {
        Self { retry: Duration::from_millis(400), patience: Duration::from_secs(1) }
    }
}

/// A connection to the allocators, on a thread of its own.
///
/// All flows are sent to all servers, and the rate in force is that of the first server that is up. If none is up,
/// rates end with the lease; when one is back, they are in force again. Broken connections are made again.
///
/// When a client is dropped, the servers are informed that its flows are over.
///
/// ```no_run
/// use std::time::Duration;
/// use fairrate_daemon::{Client, ClientOptions, Security};
///
/// let servers = ["10.0.0.9:4600".parse()?, "10.0.1.9:4600".parse()?];
/// let client = Client::connect(&servers, Security::Insecure, ClientOptions::default())?;
/// client.begin(1, "10.0.0.1".parse()?, "10.0.0.2".parse()?, 1.0);
/// for grant in client.grants(Duration::from_secs(1)) {
///     println!("flow {}: {} bit/s", grant.flow, grant.rate_bps);
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Client {
    shared: Arc<Shared>,
    /// Throttle of the log lines about weights out of range.
    weights: Throttle,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    agent: Mutex<Agent>,
    /// The signal that rates have changed.
    granted: Condvar,
    /// The signals that there is something to send, one for each server.
    to_say: Vec<Notify>,
    /// The signal that the agent's deadline may have changed.
    timer: Notify,
    servers: Vec<SocketAddr>,
    /// Throttles of log lines, for each server.
    lines: Vec<Lines>,
    security: Security,
    options: ClientOptions,
    began: Instant,
    is_leaving: AtomicBool,
}

/// The throttles of a server's log lines: there are few lines, however often it disconnects and reconnects.
#[derive(Debug, Default)]
struct Lines {
    lost: Throttle,
    found: Throttle,
}

/// The end of a connection.
struct Ended {
    why: String,
    /// `true` if the server had answered, and the connection has lasted for at least the longest wait.
    has_lasted: bool,
}

impl Client {
    /// Creates a client of `servers`; the first one is preferred, the others are on standby. Returns at once: a server
    /// need not be up.
    ///
    /// # Errors
    /// If no thread or no random number is available, or the keys cannot be used.
    pub fn connect(servers: &[SocketAddr], security: Security, options: ClientOptions) -> io::Result<Self> {
        if let Security::Tls(files) = &security {
            files.client().map_err(|e| io::Error::new(io::ErrorKind::InvalidInput, e))?;
        }
        let session = getrandom::u64().map_err(io::Error::other)?;
        let shared = Arc::new(Shared {
            agent: Mutex::new(Agent::new(Duration::ZERO, session, servers.len())),
            granted: Condvar::new(),
            to_say: servers.iter().map(|_| Notify::new()).collect(),
            timer: Notify::new(),
            servers: servers.to_owned(),
            lines: servers.iter().map(|_| Lines::default()).collect(),
            security,
            options,
            began: Instant::now(),
            is_leaving: AtomicBool::new(false),
        });
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let of_thread = Arc::clone(&shared);
        let run = move || runtime.block_on(run(of_thread));
        let thread = std::thread::Builder::new().name("fairrate-client".into()).spawn(run)?;
        Ok(Self { shared, weights: Throttle::new(), thread: Some(thread) })
    }

    /// Begins a flowlet. `weight` is relative to other flows', from 1/256 to 255.996; a weight out of range is set to
    /// the nearest end of the range, and is logged. A flow of this number with other addresses or weight is ended
    /// first. An allocator that speaks version 2 of the protocol does not hear of flows of IPv6.
    pub fn begin(&self, flow: Flow, src: IpAddr, dst: IpAddr, weight: f64) {
        let in_force = Weight::from_f64(weight);
        if !Weight::fits(weight)
            && let Some(left_out) = self.weights.pass()
        {
            tracing::warn!(weight, in_force = in_force.as_f64(), left_out, "a weight is beyond the ends");
        }
        let (src, dst) = (src.to_canonical(), dst.to_canonical());
        self.shared.lock().begin(Start { flow, src, dst, weight: in_force });
        self.shared.tell();
    }

    /// Ends a flowlet.
    pub fn end(&self, flow: Flow) {
        self.shared.lock().end(flow);
        self.shared.tell();
    }

    /// Returns the rates that have changed since the last call, each flow once; waits for the first one up to
    /// `timeout`. A rate of 0 means that there is none, and TCP decides.
    pub fn grants(&self, timeout: Duration) -> Vec<Grant> {
        let agent = self.shared.lock();
        let waited = self.shared.granted.wait_timeout_while(agent, timeout, |agent| !agent.has_grants());
        let (mut agent, _) = waited.unwrap_or_else(PoisonError::into_inner);
        let mut grants = Vec::new();
        agent.take_grants(&mut grants);
        grants
    }

    /// Returns the rate in force in bit/s, or `None` if there is none, and TCP decides.
    pub fn rate_bps(&self, flow: Flow) -> Option<f64> {
        self.shared.lock().rate_bps(flow)
    }

    /// Returns the number of rates dropped so far because another allocator has a higher epoch.
    pub fn n_dropped(&self) -> u64 {
        self.shared.lock().n_dropped()
    }

    /// Returns the number of servers that have answered HELLO on their connection.
    pub fn n_connected(&self) -> usize {
        let agent = self.shared.lock();
        (0..self.shared.servers.len()).filter(|&server| agent.is_up(server)).count()
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.shared.is_leaving.store(true, Ordering::Release);
        self.shared.lock().leave();
        self.shared.tell();
        if let Some(thread) = self.thread.take() {
            // A panic of that thread has already been printed.
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Agent> {
        // After a panic the agent is still usable.
        self.agent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> Duration {
        self.began.elapsed()
    }

    fn is_leaving(&self) -> bool {
        self.is_leaving.load(Ordering::Acquire)
    }

    /// Wakes the tasks that write to servers and watch leases.
    fn tell(&self) {
        self.to_say.iter().for_each(Notify::notify_one);
        self.timer.notify_one();
    }
}

/// Time in which the last messages must reach the servers when the client leaves.
const LAST_WORDS: Duration = Duration::from_millis(200);

async fn run(shared: Arc<Shared>) {
    let servers: Vec<_> =
        (0..shared.servers.len()).map(|server| tokio::spawn(keep(Arc::clone(&shared), server))).collect();
    let timer = tokio::spawn(watch_leases(Arc::clone(&shared)));
    // It ends when the client leaves.
    let _ = timer.await;
    let goodbyes = async {
        for server in servers {
            let _ = server.await;
        }
    };
    let _ = tokio::time::timeout(LAST_WORDS, goodbyes).await;
}

/// Ends rates whose lease is over.
async fn watch_leases(shared: Arc<Shared>) {
    while !shared.is_leaving() {
        let deadline = {
            let (now, mut agent) = (shared.now(), shared.lock());
            if agent.deadline().is_some_and(|at| at <= now) {
                agent.on_timer(now);
            }
            if agent.has_grants() {
                shared.granted.notify_all();
            }
            agent.deadline()
        };
        match deadline {
            Some(at) => tokio::select! {
                () = shared.timer.notified() => {}
                () = tokio::time::sleep(at.saturating_sub(shared.now())) => {}
            },
            None => shared.timer.notified().await,
        }
    }
}

/// Keeps a connection to `server` open.
async fn keep(shared: Arc<Shared>, server: usize) {
    let address = shared.servers[server];
    let first_wait = shared.options.retry / 16;
    let mut wait = first_wait;
    loop {
        if shared.lock().has_double(server) {
            if let Some(left_out) = shared.lines[server].lost.pass() {
                tracing::warn!(%address, left_out, "the allocator is connected by another of its addresses: leave this one out");
            }
            while shared.lock().has_double(server) {
                tokio::select! {
                    () = tokio::time::sleep(shared.options.retry) => {}
                    () = left(&shared, server) => return,
                }
            }
        }
        let Ended { why, has_lasted } = attempt(&shared, server).await;
        shared.lock().on_cut(server);
        if shared.is_leaving() {
            return;
        }
        if let Some(most) = shared.lock().take_fallback(server) {
            tracing::info!(%address, version = most, "the allocator is older: connecting again with its version");
            continue;
        }
        if let Some(left_out) = shared.lines[server].lost.pass() {
            tracing::warn!(%address, why, left_out, "no connection to the allocator");
        }
        wait = if has_lasted { first_wait } else { (2 * wait).min(shared.options.retry) };
        // A server that is back soon saves the rates in force.
        let within = shared.lock().retry_within(server).unwrap_or(wait);
        wait = wait.min(within);
        // A random part of the wait, so that agents that lost their server together do not reconnect together.
        let share = f64::from(getrandom::u32().unwrap_or(u32::MAX)) / f64::from(u32::MAX);
        tokio::select! {
            () = tokio::time::sleep(wait.mul_f64(0.5 + 0.5 * share)) => {}
            () = left(&shared, server) => return,
        }
    }
}

/// Returns when the client leaves.
async fn left(shared: &Shared, server: usize) {
    while !shared.is_leaving() {
        shared.to_say[server].notified().await;
    }
}

async fn attempt(shared: &Shared, server: usize) -> Ended {
    let opened = tokio::time::timeout(shared.options.patience, open(shared, server)).await;
    let stream = match opened {
        Ok(Ok(stream)) => stream,
        Ok(Err(e)) => return Ended { why: e.to_string(), has_lasted: false },
        Err(_) => return Ended { why: "connecting takes too long".into(), has_lasted: false },
    };
    let connected = shared.now();
    shared.lock().on_connected(connected, server);
    let (input, output) = tokio::io::split(stream);
    let mut was_up = false;
    let why = tokio::select! {
        why = read(shared, server, input, &mut was_up) => why,
        why = write(shared, server, output) => why,
    };
    let has_lasted = was_up && shared.options.retry <= shared.now().saturating_sub(connected);
    Ended { why, has_lasted }
}

async fn open(shared: &Shared, server: usize) -> io::Result<Box<dyn Stream>> {
    let address = shared.servers[server];
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    match &shared.security {
        Security::Insecure => Ok(Box::new(stream)),
        Security::Tls(files) => {
            // Read again, as keys may have changed.
            let config = files.client().map_err(io::Error::other)?;
            Ok(Box::new(TlsConnector::from(config).connect(server_name(address.ip()), stream).await?))
        }
    }
}

/// Reads until the connection ends, and returns the reason.
async fn read(shared: &Shared, server: usize, mut input: ReadHalf<Box<dyn Stream>>, was_up: &mut bool) -> String {
    let (mut decoder, mut buffer) = (Decoder::default(), vec![0; READ]);
    loop {
        let give_up_at = shared.lock().give_up_at(server);
        let patience = give_up_at.saturating_sub(shared.now());
        let n = match tokio::time::timeout(patience, input.read(&mut buffer)).await {
            Err(_) if shared.now() < shared.lock().give_up_at(server) => continue,
            Err(_) => return "it has been silent for twice its lease".into(),
            Ok(Ok(0)) => return "it closed the connection".into(),
            Ok(Ok(n)) => n,
            Ok(Err(e)) => return e.to_string(),
        };
        let (now, mut agent, mut result) = (shared.now(), shared.lock(), Ok(()));
        let read = decoder.read(&buffer[..n], |message: FromAllocator| {
            if result.is_ok() {
                result = agent.on_message(now, server, message);
            }
        });
        if !*was_up && agent.is_up(server) {
            *was_up = true;
            if let Some(left_out) = shared.lines[server].found.pass() {
                tracing::info!(address = %shared.servers[server], left_out, "connected to the allocator");
            }
        }
        if agent.has_grants() {
            shared.granted.notify_all();
        }
        drop(agent);
        shared.to_say[server].notify_one();
        shared.timer.notify_one();
        match (read, result) {
            (Err(e), _) => return e.to_string(),
            (_, Err(reason)) => return reason.to_string(),
            _ => {}
        }
    }
}

/// Writes until the connection ends, and returns the reason.
async fn write(shared: &Shared, server: usize, mut output: WriteHalf<Box<dyn Stream>>) -> String {
    match try_write(shared, server, &mut output).await {
        Ok(never) => match never {},
        Err(e) => e.to_string(),
    }
}

async fn try_write(shared: &Shared, server: usize, output: &mut WriteHalf<Box<dyn Stream>>) -> io::Result<Infallible> {
    let mut out = Vec::with_capacity(WRITE);
    loop {
        out.clear();
        let (stays, next) = {
            let (now, mut agent) = (shared.now(), shared.lock());
            (agent.write(now, server, &mut out, WRITE), agent.speaks_at(server))
        };
        if !out.is_empty() {
            output.write_all(&out).await?;
            output.flush().await?;
        }
        if !stays {
            // The server closes the connection. If this side closed it with unread data, the last messages would be
            // lost.
            output.shutdown().await?;
            return std::future::pending().await;
        }
        match next {
            Some(Duration::ZERO) => {}
            Some(at) => tokio::select! {
                () = shared.to_say[server].notified() => {}
                () = tokio::time::sleep(at.saturating_sub(shared.now())) => {}
            },
            None => shared.to_say[server].notified().await,
        }
    }
}
