//! The server: accepts connections, reads and writes them, and lets the optimiser's thread do the rest.

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt, ReadHalf, WriteHalf};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle as Task;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_rustls::TlsAcceptor;

use crate::desk::{ConnectionId, Desk, Identity};
use crate::engine::{self, Event, Outbox, Pace, ToEngine};
use crate::metrics::{Metrics, TurnedAway};
use crate::stream::{READ, Stream};
use crate::tls::{KeyError, Security, identity};
use crate::wire::{self, Decoder, FromAllocator, Reason};

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
    /// Messages of a connection a second at most, over a second. Beyond: it is read later.
    pub max_updates: u32,
}

/// A server that runs.
pub struct Server {
    address: SocketAddr,
    engine: ToEngine,
    thread: Option<JoinHandle<()>>,
    shared: Arc<Shared>,
    accepting: Task<()>,
}

struct Shared {
    config: ServerConfig,
    acceptor: RwLock<Option<TlsAcceptor>>,
    metrics: Arc<Metrics>,
    connections: Arc<Semaphore>,
    ids: AtomicU64,
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

fn acceptor(security: &Security) -> Result<Option<TlsAcceptor>, KeyError> {
    match security {
        Security::Insecure => Ok(None),
        Security::Tls(files) => Ok(Some(TlsAcceptor::from(files.server()?))),
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
        let acceptor = RwLock::new(acceptor(&config.security)?);
        let listener = listen(address).map_err(no_listener)?;
        let address = listener.local_addr().map_err(no_listener)?;
        let (engine, thread) =
            engine::start(desk, config.lease, config.pace, Arc::clone(&metrics)).map_err(ServerError::Thread)?;
        let connections = Arc::new(Semaphore::new(config.max_connections));
        let shared = Arc::new(Shared { config, acceptor, metrics, connections, ids: AtomicU64::new(0) });
        let accepting = tokio::spawn(accept(listener, Arc::clone(&shared), engine.clone()));
        Ok(Self { address, engine, thread: Some(thread), shared, accepting })
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
        let new = acceptor(&self.shared.config.security);
        self.shared.metrics.keys_loaded(new.is_ok()).inc();
        *self.shared.acceptor.write().unwrap_or_else(PoisonError::into_inner) = new?;
        self.engine.send(Event::CloseAll(Reason::Rekeyed)).await;
        Ok(())
    }

    /// Tells all agents that it goes, and ends.
    pub async fn stop(mut self) {
        self.accepting.abort();
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

async fn accept(listener: TcpListener, shared: Arc<Shared>, engine: ToEngine) {
    loop {
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                // Mostly there are no file descriptors left; some come free.
                tracing::warn!(%error, "cannot accept a connection");
                shared.metrics.turned_away_for(TurnedAway::Accept).inc();
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            }
        };
        let Ok(permit) = Arc::clone(&shared.connections).try_acquire_owned() else {
            shared.metrics.turned_away_for(TurnedAway::TooManyConnections).inc();
            continue;
        };
        let (shared, engine) = (Arc::clone(&shared), engine.clone());
        tokio::spawn(async move {
            serve(stream, &shared, &engine).await;
            drop(permit);
        });
    }
}

/// A connection from its first byte to its last.
async fn serve(stream: TcpStream, shared: &Shared, engine: &ToEngine) {
    let (identity, stream) = match timeout(shared.config.lease, open(stream, shared)).await {
        Ok(Ok(opened)) => opened,
        Ok(Err(error)) => {
            tracing::debug!(%error, "handshake failed");
            return shared.metrics.turned_away_for(TurnedAway::Handshake).inc();
        }
        Err(_) => return shared.metrics.turned_away_for(TurnedAway::SlowHandshake).inc(),
    };
    let id = shared.ids.fetch_add(1, Ordering::Relaxed);
    let outbox = Arc::new(Outbox::default());
    let event = Event::Connected { id, identity, outbox: Arc::clone(&outbox) };
    if !engine.send(event).await {
        return;
    }
    let (input, output) = tokio::io::split(stream);
    tokio::select! {
        () = read(input, id, shared, engine) => {}
        () = write(output, &outbox, shared) => {}
    }
    engine.send(Event::Disconnected(id)).await;
}

async fn open(stream: TcpStream, shared: &Shared) -> io::Result<(Identity, Box<dyn Stream>)> {
    stream.set_nodelay(true)?;
    let acceptor = shared.acceptor.read().unwrap_or_else(PoisonError::into_inner).clone();
    let Some(acceptor) = acceptor else { return Ok((Identity::Anyone, Box::new(stream))) };
    let stream = acceptor.accept(stream).await?;
    let certificates = stream.get_ref().1.peer_certificates().unwrap_or_default();
    let identity = certificates.first().map_or(Identity::Addresses(Vec::new()), identity);
    Ok((identity, Box::new(stream)))
}

/// Reads until the connection ends, or what is said is wrong and the writer has to say so.
async fn read(mut input: ReadHalf<Box<dyn Stream>>, id: ConnectionId, shared: &Shared, engine: &ToEngine) {
    let (mut decoder, mut buffer) = (Decoder::default(), vec![0; READ]);
    let mut pace = Updates::new(shared.config.max_updates);
    loop {
        let n = match input.read(&mut buffer).await {
            Ok(0) | Err(_) => return,
            Ok(n) => n,
        };
        shared.metrics.received.inc_by(n as u64);
        let mut messages = Vec::new();
        let result = decoder.read(&buffer[..n], |message| messages.push(message));
        let n_messages = messages.len() as u32;
        if !messages.is_empty() && !engine.send(Event::Said(id, messages)).await {
            return;
        }
        if let Err(error) = result {
            tracing::info!(connection = id, %error, "no messages");
            engine.send(Event::Wrong(id)).await;
            return std::future::pending().await;
        }
        if let Some(until) = pace.note(n_messages) {
            sleep_until(until).await;
        }
    }
}

/// How many messages a connection may still say.
struct Updates {
    each: Duration,
    /// When all that was said would have been said at the limit.
    until: Instant,
}

impl Updates {
    fn new(most: u32) -> Self {
        Self { each: Duration::from_secs(1) / most.max(1), until: Instant::now() }
    }

    /// After so many messages: when the connection is read again, if not now. A second's worth may come at once.
    fn note(&mut self, n: u32) -> Option<Instant> {
        let now = Instant::now();
        self.until = self.until.max(now) + self.each * n;
        let rest = self.until.checked_sub(Duration::from_secs(1))?;
        (now < rest).then_some(rest)
    }
}

/// Writes what is in the outbox until the connection is to be closed.
async fn write(mut output: WriteHalf<Box<dyn Stream>>, outbox: &Outbox, shared: &Shared) {
    let mut bytes = Vec::new();
    loop {
        bytes.clear();
        let closed = outbox.take(&mut bytes);
        if let Some(reason) = closed {
            wire::encode([FromAllocator::Bye(reason)], &mut bytes);
            let last = async {
                if output.write_all(&bytes).await.is_ok() {
                    let _ = output.shutdown().await;
                }
            };
            let _ = timeout(LAST_WORDS, last).await;
            return;
        }
        if bytes.is_empty() {
            outbox.changed.notified().await;
            continue;
        }
        shared.metrics.sent.inc_by(bytes.len() as u64);
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

/// Returns when the connection is to be closed.
async fn closing(outbox: &Outbox) {
    while !outbox.is_closed() {
        outbox.changed.notified().await;
    }
}
