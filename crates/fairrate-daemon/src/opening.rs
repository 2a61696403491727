//! The opening of a connection, until the other end is identified: its handshake, with the quotas of its address.

use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, SystemTime};

use tokio::net::TcpStream;
use tokio::time::{sleep_until, timeout};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use crate::certificate::Certificate;
use crate::desk::Identity;
use crate::metrics::TurnedAway;
use crate::peers::Peer;
use crate::quota::{Quotas, Seat};
use crate::stream::Stream;
use crate::tls::with_name;

/// Largest number of handshakes in progress from one address. An agent makes one.
const MAX_HANDSHAKES: usize = 16;

/// Largest number of handshakes from one address a second; further ones wait. Each costs about a millisecond.
const HANDSHAKES_PER_SECOND: u32 = 50;

/// The time for a handshake, unless the lease is shorter.
const PATIENCE: Duration = Duration::from_secs(5);

/// A connection whose other end is identified.
pub(crate) struct Opened {
    pub identity: Identity,
    pub peer: Peer,
    /// Time at which the first of its certificates expires.
    pub not_after: Option<SystemTime>,
    pub stream: Box<dyn Stream>,
}

/// A connection that could not be opened.
pub(crate) struct Unopened {
    pub why: TurnedAway,
    pub peer: Peer,
    pub error: String,
}

/// The parameters and quotas by which a server opens connections.
pub(crate) struct Opening {
    patience: Duration,
    handshakes: Quotas<IpAddr>,
}

impl Opening {
    /// Creates an opening whose handshakes may take a `lease`, but at most [`PATIENCE`].
    pub fn new(lease: Duration) -> Self {
        Self { patience: lease.min(PATIENCE), handshakes: Quotas::new(MAX_HANDSHAKES, HANDSHAKES_PER_SECOND) }
    }

    /// Returns a seat for a handshake with `address`, or `None` if it has the largest number of them.
    pub fn seat(&self, address: SocketAddr) -> Option<Seat> {
        self.handshakes.seat(&ip(address))
    }

    /// Opens a connection from `address`, by TLS if there is an acceptor and a seat. Without TLS, its identity is that
    /// address.
    pub async fn open(
        &self,
        stream: TcpStream,
        address: SocketAddr,
        tls: Option<(TlsAcceptor, Seat)>,
    ) -> Result<Opened, Unopened> {
        let peer = Peer { address, certificate: None };
        let fail = |why, peer: &Peer, error: &str| Unopened { why, peer: peer.clone(), error: error.to_owned() };
        if let Err(error) = stream.set_nodelay(true) {
            return Err(fail(TurnedAway::Handshake, &peer, &error.to_string()));
        }
        let Some((acceptor, seat)) = tls else {
            let identity = Identity::Peer(ip(address));
            return Ok(Opened { identity, peer, not_after: None, stream: Box::new(stream) });
        };
        if let Some(until) = seat.note(1) {
            sleep_until(until).await;
        }
        let (result, certificate) = with_name(timeout(self.patience, acceptor.accept(stream))).await;
        let peer = Peer { certificate, ..peer };
        match result {
            Ok(Ok(stream)) => {
                let unreadable = || fail(TurnedAway::Handshake, &peer, "the certificate cannot be read");
                opened(stream, &peer).ok_or_else(unreadable)
            }
            Ok(Err(error)) => Err(fail(TurnedAway::Handshake, &peer, &error.to_string())),
            Err(_) => Err(fail(TurnedAway::SlowHandshake, &peer, "the handshake takes too long")),
        }
    }
}

/// Returns the IPv4 address that an IPv6 address stands for, on an IPv6 socket.
fn ip(address: SocketAddr) -> IpAddr {
    address.ip().to_canonical()
}

/// Identifies the other end; returns `None` if its certificate cannot be read.
fn opened(stream: TlsStream<TcpStream>, peer: &Peer) -> Option<Opened> {
    let shown = stream.get_ref().1.peer_certificates()?;
    let all = shown.iter().map(|der| Certificate::read(der)).collect::<Option<Vec<Certificate>>>()?;
    let not_after = all.iter().map(|certificate| certificate.not_after).min();
    let identity = Identity::Addresses(all.into_iter().next()?.addresses);
    Some(Opened { identity, peer: peer.clone(), not_after, stream: Box::new(stream) })
}
