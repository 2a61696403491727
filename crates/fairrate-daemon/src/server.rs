//! The server: accepts connections, reads and writes them, and passes messages to the optimiser's thread.

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime};

use tokio::io::{AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadHalf, WriteHalf};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::{Semaphore, oneshot};
use tokio::task::JoinHandle as Task;
use tokio::time::{sleep_until, timeout};
use tokio_rustls::TlsAcceptor;

use crate::desk::{Change, ConnectionId, Desk, Identity};
use crate::engine::{self, Bounds, Event, Outbox, Pace, ToEngine};
use crate::metrics::{Metrics, TurnedAway};
use crate::opening::{Opened, Opening};
use crate::peers::{PeerLog, SUM_UP};
use crate::quota::{Quotas, Seat};
use crate::stream::{READ, Stream};
use crate::tls::{KeyError, Security};
use crate::wire::{self, Decoder, FromAgent, FromAllocator, Reason};

/// The configuration of a server, apart from its desk.
#[derive(Clone, Debug)]
pub struct ServerConfig {
    /// Address to which agents connect.
    pub listen: SocketAddr,
    /// Security of the connections, which decides who may connect.
    pub security: Security,
    /// Timing of the optimiser.
    pub pace: Pace,
    /// The desk's lease, which is also the time for a handshake.
    pub lease: Duration,
    /// Largest number of connections, including those that have not sent HELLO. Beyond it, they are closed at once.
    pub max_connections: usize,
    /// Largest number of connections of one identity. Beyond it, they are closed with a reason.
    pub max_of_one: usize,
    /// Largest number of messages of one identity a second, over a second. Beyond it, they are read later.
    pub max_updates: u32,
}

/// A running server.
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

/// The keys with which connections are opened.
#[derive(Clone)]
struct Keys {
    acceptor: Option<TlsAcceptor>,
    /// The files that they were read from.
    files: Security,
    /// Number of times that the keys have been loaded.
    generation: u64,
}

/// The reason why a server does not start.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// The address cannot be listened on.
    #[error("cannot listen on {address}: {cause}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The reason.
        cause: io::Error,
    },
    /// No thread is available.
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
    /// If its address or its keys cannot be used, or no thread is available.
    ///
    /// # Panics
    /// If it is called outside a tokio runtime.
    pub fn start(config: ServerConfig, desk: Desk, metrics: Arc<Metrics>) -> Result<Self, ServerError> {
        let address = config.listen;
        let no_listener = |cause| ServerError::Listen { address, cause };
        let keys = RwLock::new(Keys {
            acceptor: acceptor(&config.security, &metrics)?,
            files: config.security.clone(),
            generation: 0,
        });
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

    /// Returns the address on which it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Loads the keys again and closes all connections: agents reconnect within their lease, with their new keys.
    ///
    /// # Errors
    /// If the keys cannot be used; in this case nothing changes.
    pub async fn rekey(&self) -> Result<(), KeyError> {
        self.rekey_from(self.shared.keys().files).await
    }

    /// Loads the keys from these files and closes all connections, as [`Server::rekey`] does.
    ///
    /// # Errors
    /// If the keys cannot be used; in this case nothing changes.
    pub async fn rekey_from(&self, files: Security) -> Result<(), KeyError> {
        let new = acceptor(&files, &self.shared.peers.metrics);
        self.shared.peers.metrics.keys_loaded(new.is_ok()).inc();
        let acceptor = new?;
        {
            let mut keys = self.shared.keys.write().unwrap_or_else(PoisonError::into_inner);
            *keys = Keys { acceptor, files, generation: keys.generation + 1 };
        }
        self.engine.send(Event::CloseAll(Reason::Rekeyed)).await;
        Ok(())
    }

    /// Changes the network, if `network` is given, and the bounds. Agents stay connected. Returns when it is done.
    pub async fn change(&self, network: Option<Change>, bounds: Bounds) {
        let (done, is_done) = oneshot::channel();
        if self.engine.send(Event::Change { network: network.map(Box::new), bounds, done }).await {
            let _ = is_done.await;
        }
    }

    /// Sends BYE to all agents, and ends the server.
    pub async fn stop(mut self) {
        self.tasks.iter().for_each(Task::abort);
        self.engine.send(Event::Stop).await;
        if let Some(thread) = self.thread.take() {
            // A panic of that thread has already been printed.
            let _ = tokio::task::spawn_blocking(move || thread.join()).await;
        }
        // Waits for the last messages of the writers.
        let all = u32::try_from(self.shared.config.max_connections).unwrap_or(u32::MAX);
        let _ = timeout(LAST_WORDS, self.shared.connections.acquire_many(all)).await;
    }
}

/// Time in which an agent must receive the reason why its connection is closed.
const LAST_WORDS: Duration = Duration::from_millis(200);

/// Approximate number of bytes that the kernel may buffer for a connection in each direction.
const KERNEL_BUFFER: u32 = 64 * 1024;

/// Largest number of connections that wait to be accepted.
const BACKLOG: u32 = 1024;

/// Opens the listening socket; connections inherit its buffer sizes.
fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    socket.set_reuseaddr(true)?;
    socket.set_send_buffer_size(KERNEL_BUFFER)?;
    socket.set_recv_buffer_size(KERNEL_BUFFER)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// Logs from time to time the number of lines left out of the log.
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
                // The usual cause is a lack of file descriptors; some will be free again.
                shared.peers.turned_away(TurnedAway::Accept, &"a peer", &error.to_string());
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            }
        };
        // Taken before the connection uses any resource that others need.
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

/// Serves a connection from its first byte to its last.
async fn serve(stream: TcpStream, address: SocketAddr, seat: Option<Seat>, shared: &Shared, engine: &ToEngine) {
    let Keys { acceptor, generation, .. } = shared.keys();
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
        // Keys have changed during the handshake, perhaps after all connections were closed for that reason.
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

/// Sends the reason for closing to a peer that may be sending at the same time.
async fn turn_away(mut stream: Box<dyn Stream>, reason: Reason) {
    let all = async {
        say_last(&mut stream, reason, Vec::new()).await;
        // If the connection were closed with unread data, the last messages would be lost.
        let mut buffer = [0; 64];
        while matches!(stream.read(&mut buffer).await, Ok(1..)) {}
    };
    let _ = timeout(LAST_WORDS, all).await;
}

/// The longest time between two looks at the clock, which may be set.
const CLOCK: Duration = Duration::from_secs(30);

/// Closes the connection when its certificate expires. The writer then ends it; this function does not return.
async fn expire(not_after: Option<SystemTime>, id: ConnectionId, engine: &ToEngine) {
    if let Some(not_after) = not_after {
        while let Ok(left) = not_after.duration_since(SystemTime::now()) {
            tokio::time::sleep(left.clamp(Duration::from_millis(1), CLOCK)).await;
        }
        engine.send(Event::Close(id, Reason::Expired)).await;
    }
    std::future::pending::<()>().await;
}

/// Reads until the connection ends, or until a message is wrong and the writer has to send the reason.
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
            // Repeated ALIVE messages are kept only once.
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

/// Writes the contents of the outbox until the connection is to be closed.
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
            // The peer does not read, and the connection is to be closed.
            () = closing(outbox) => return,
        }
    }
}

/// Writes the remaining bytes and the reason for closing, and closes the connection.
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
