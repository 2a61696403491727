//! The server: accepts connections, reads and writes them, and lets the optimiser's thread do the rest.

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime};

use tokio::io::{AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadHalf, WriteHalf};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle as Task;
use tokio::time::{sleep_until, timeout};
use tokio_rustls::TlsAcceptor;

use crate::desk::{ConnectionId, Desk, Identity};
use crate::engine::{self, Event, Outbox, Pace, ToEngine};
use crate::metrics::{Metrics, TurnedAway};
use crate::opening::{Opened, Opening};
use crate::peers::{PeerLog, SUM_UP};
use crate::quota::{Quotas, Seat};
use crate::stream::{READ, Stream};
use crate::tls::{KeyError, Security};
use crate::wire::{self, Decoder, FromAgent, FromAllocator, Reason};

/// What a server goes by besides its desk.
#[derive(Clone, Debug)]
pub struct ServerConfig {
    /// Where agents connect.
    pub listen: SocketAddr,
    /// Who may.
    pub security: Security,
    /// When the optimiser does what.
    pub pace: Pace,
    /// The desk's lease, which is also the time for a handshake.
    pub lease: Duration,
    /// Connections at most, with those that have not said who they are. Beyond: they are closed at once.
    pub max_connections: usize,
    /// Connections of one identity at most. Beyond: they are closed with a reason.
    pub max_of_one: usize,
    /// Messages of one identity a second at most, over a second. Beyond: they are read later.
    pub max_updates: u32,
}

/// A server that runs.
pub struct Server {
    address: SocketAddr,
    engine: ToEngine,
    thread: Option<JoinHandle<()>>,
    shared: Arc<Shared>,
    tasks: [Task<()>; 2],
}

struct Shared {
    config: ServerConfig,
    keys: RwLock<Keys>,
    peers: Arc<PeerLog>,
    opening: Opening,
    identities: Quotas<Identity>,
    connections: Arc<Semaphore>,
    ids: AtomicU64,
}

/// What connections are opened with.
#[derive(Clone)]
struct Keys {
    acceptor: Option<TlsAcceptor>,
    /// How often they have been loaded.
    generation: u64,
}

/// Why a server does not start.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// The address cannot be listened on.
    #[error("cannot listen on {address}: {cause}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// Why not.
        cause: io::Error,
    },
    /// There is no thread to be had.
    #[error("cannot start the optimiser's thread: {0}")]
    Thread(io::Error),
    /// The keys cannot be used.
    #[error(transparent)]
    Keys(#[from] KeyError),
}

fn acceptor(security: &Security, metrics: &Metrics) -> Result<Option<TlsAcceptor>, KeyError> {
    match security {
        Security::Insecure => Ok(None),
        Security::Tls(files) => {
            let (config, certificates) = (files.server()?, files.certificates()?);
            metrics.note_certificates(certificates);
            Ok(Some(TlsAcceptor::from(config)))
        }
    }
}

impl Server {
    /// Starts a server on the tokio runtime that the caller has entered.
    ///
    /// # Errors
    /// If its address, its keys or a thread cannot be had.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn start(config: ServerConfig, desk: Desk, metrics: Arc<Metrics>) -> Result<Self, ServerError> {
        let address = config.listen;
        let no_listener = |cause| ServerError::Listen { address, cause };
        let keys = RwLock::new(Keys { acceptor: acceptor(&config.security, &metrics)?, generation: 0 });
        let listener = listen(address).map_err(no_listener)?;
        let address = listener.local_addr().map_err(no_listener)?;
        let peers = Arc::new(PeerLog::new(metrics));
        let (engine, thread) =
            engine::start(desk, config.lease, config.pace, Arc::clone(&peers)).map_err(ServerError::Thread)?;
        let shared = Arc::new(Shared {
            keys,
            peers,
            opening: Opening::new(config.lease),
            identities: Quotas::new(config.max_of_one, config.max_updates),
            connections: Arc::new(Semaphore::new(config.max_connections)),
            ids: AtomicU64::new(0),
            config,
        });
        let accepting = tokio::spawn(accept(listener, Arc::clone(&shared), engine.clone()));
        let logging = tokio::spawn(sum_up(Arc::clone(&shared)));
        Ok(Self { address, engine, thread: Some(thread), shared, tasks: [accepting, logging] })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Loads the keys again and closes all connections: agents come back within their lease, with their new keys.
    ///
    /// # Errors
    /// If the keys cannot be used; then nothing changes.
    pub async fn rekey(&self) -> Result<(), KeyError> {
        let new = acceptor(&self.shared.config.security, &self.shared.peers.metrics);
        self.shared.peers.metrics.keys_loaded(new.is_ok()).inc();
        let acceptor = new?;
        {
            let mut keys = self.shared.keys.write().unwrap_or_else(PoisonError::into_inner);
            *keys = Keys { acceptor, generation: keys.generation + 1 };
        }
        self.engine.send(Event::CloseAll(Reason::Rekeyed)).await;
        Ok(())
    }

    /// Tells all agents that it goes, and ends.
    pub async fn stop(mut self) {
        self.tasks.iter().for_each(Task::abort);
        self.engine.send(Event::Stop).await;
        if let Some(thread) = self.thread.take() {
            // A panic there has been shown already.
            let _ = tokio::task::spawn_blocking(move || thread.join()).await;
        }
        // The writers' last words.
        let all = u32::try_from(self.shared.config.max_connections).unwrap_or(u32::MAX);
        let _ = timeout(LAST_WORDS, self.shared.connections.acquire_many(all)).await;
    }
}

/// How long an agent may take to hear why its connection is closed.
const LAST_WORDS: Duration = Duration::from_millis(200);

/// What the kernel may hold of a connection in each direction, about.
const KERNEL_BUFFER: u32 = 64 * 1024;

/// Connections that wait to be accepted at most.
const BACKLOG: u32 = 1024;

/// Connections inherit the buffers.
fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    socket.set_reuseaddr(true)?;
    socket.set_send_buffer_size(KERNEL_BUFFER)?;
    socket.set_recv_buffer_size(KERNEL_BUFFER)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// Logs from time to time what was left out of the log.
async fn sum_up(shared: Arc<Shared>) {
    loop {
        tokio::time::sleep(SUM_UP).await;
        shared.peers.sum_up();
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>, engine: ToEngine) {
    loop {
        let (stream, address) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(error) => {
                // Mostly there are no file descriptors left; some come free.
                shared.peers.turned_away(TurnedAway::Accept, &"a peer", &error.to_string());
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            }
        };
        // Before anything that others need is used for it.
        let seat = shared.opening.seat(address);
        if seat.is_none() && shared.is_secure() {
            let error = "there are too many handshakes with this address";
            shared.peers.turned_away(TurnedAway::TooManyHandshakes, &address, error);
            continue;
        }
        let Ok(permit) = Arc::clone(&shared.connections).try_acquire_owned() else {
            shared.peers.turned_away(TurnedAway::TooManyConnections, &address, "there are too many connections");
            continue;
        };
        let (shared, engine) = (Arc::clone(&shared), engine.clone());
        tokio::spawn(async move {
            serve(stream, address, seat, &shared, &engine).await;
            drop(permit);
        });
    }
}

impl Shared {
    fn is_secure(&self) -> bool {
        matches!(self.config.security, Security::Tls(_))
    }

    fn keys(&self) -> Keys {
        self.keys.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// A connection from its first byte to its last.
async fn serve(stream: TcpStream, address: SocketAddr, seat: Option<Seat>, shared: &Shared, engine: &ToEngine) {
    let Keys { acceptor, generation } = shared.keys();
    let opened = match shared.opening.open(stream, address, acceptor.zip(seat)).await {
        Ok(opened) => opened,
        Err(failed) => return shared.peers.turned_away(failed.why, &failed.peer, &failed.error),
    };
    let Some(seat) = shared.identities.seat(&opened.identity) else {
        let reason = Reason::TooManySessions;
        shared.peers.turned_away(TurnedAway::TooManyOfOne, &opened.peer, &reason.to_string());
        return turn_away(opened.stream, reason).await;
    };
    let Opened { identity, peer, not_after, stream } = opened;
    let id = shared.ids.fetch_add(1, Ordering::Relaxed);
    let outbox = Arc::new(Outbox::new(peer));
    let event = Event::Connected { id, identity, outbox: Arc::clone(&outbox) };
    if !engine.send(event).await {
        return;
    }
    if shared.keys().generation != generation {
        // Keys have changed during the handshake, perhaps after all connections were closed for that.
        engine.send(Event::Close(id, Reason::Rekeyed)).await;
    }
    let (input, output) = tokio::io::split(stream);
    tokio::select! {
        () = read(input, id, &seat, shared, engine) => {}
        () = write(output, &outbox, shared) => {}
        () = expire(not_after, id, engine) => {}
    }
    engine.send(Event::Disconnected(id)).await;
}

/// Says why there is no room, to a peer that may be saying something itself.
async fn turn_away(mut stream: Box<dyn Stream>, reason: Reason) {
    let all = async {
        say_last(&mut stream, reason, Vec::new()).await;
        // Closing with words unread would take the last ones back.
        let mut buffer = [0; 64];
        while matches!(stream.read(&mut buffer).await, Ok(1..)) {}
    };
    let _ = timeout(LAST_WORDS, all).await;
}

/// The longest time between two looks at the clock, which may be set.
const CLOCK: Duration = Duration::from_secs(30);

/// Closes the connection when its certificate's time is over. The writer then ends it; this does not return.
async fn expire(not_after: Option<SystemTime>, id: ConnectionId, engine: &ToEngine) {
    if let Some(not_after) = not_after {
        while let Ok(left) = not_after.duration_since(SystemTime::now()) {
            tokio::time::sleep(left.clamp(Duration::from_millis(1), CLOCK)).await;
        }
        engine.send(Event::Close(id, Reason::Expired)).await;
    }
    std::future::pending::<()>().await;
}

/// Reads until the connection ends, or what is said is wrong and the writer has to say so.
async fn read(mut input: ReadHalf<Box<dyn Stream>>, id: ConnectionId, seat: &Seat, shared: &Shared, engine: &ToEngine) {
    let (mut decoder, mut buffer) = (Decoder::default(), vec![0; READ]);
    loop {
        let n = match input.read(&mut buffer).await {
            Ok(0) | Err(_) => return,
            Ok(n) => n,
        };
        shared.peers.metrics.received.inc_by(n as u64);
        let (mut messages, mut n_messages) = (Vec::new(), 0);
        let result = decoder.read(&buffer[..n], |message| {
            n_messages += 1;
            // Words without a meaning of their own are not kept as often as they are said.
            if messages.last() != Some(&message) || message != FromAgent::Alive {
                messages.push(message);
            }
        });
        if !messages.is_empty() && !engine.send(Event::Said(id, messages)).await {
            return;
        }
        if let Err(error) = result {
            tracing::debug!(connection = id, %error, "no messages");
            engine.send(Event::Close(id, Reason::Protocol)).await;
            return std::future::pending().await;
        }
        if let Some(until) = seat.note(n_messages) {
            sleep_until(until).await;
        }
    }
}

/// Writes what is in the outbox until the connection is to be closed.
async fn write(mut output: WriteHalf<Box<dyn Stream>>, outbox: &Outbox, shared: &Shared) {
    let mut bytes = Vec::new();
    loop {
        bytes.clear();
        let closed = outbox.take(&mut bytes);
        if let Some(reason) = closed {
            return say_last(&mut output, reason, bytes).await;
        }
        if bytes.is_empty() {
            outbox.changed.notified().await;
            continue;
        }
        shared.peers.metrics.sent.inc_by(bytes.len() as u64);
        let written = async {
            output.write_all(&bytes).await?;
            output.flush().await
        };
        tokio::select! {
            result = written => if result.is_err() { return },
            // Nobody reads, and the connection is to be closed.
            () = closing(outbox) => return,
        }
    }
}

/// Writes what is left to say and why the connection is closed, and closes it.
async fn say_last(output: &mut (impl AsyncWrite + Unpin), reason: Reason, mut bytes: Vec<u8>) {
    wire::encode([FromAllocator::Bye(reason)], &mut bytes);
    let last = async {
        if output.write_all(&bytes).await.is_ok() {
            let _ = output.shutdown().await;
        }
    };
    let _ = timeout(LAST_WORDS, last).await;
}

/// Returns when the connection is to be closed.
async fn closing(outbox: &Outbox) {
    while !outbox.is_closed() {
        outbox.changed.notified().await;
    }
}
