//! A connection until it is known who is at the other end: its handshake, with the quotas of its address.

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

/// The handshakes in progress from one address at most. An agent makes one.
const MAX_HANDSHAKES: usize = 16;

/// The handshakes from one address a second at most; the next ones wait. Each costs about a millisecond.
const HANDSHAKES_PER_SECOND: u32 = 50;

/// The time for a handshake, unless the lease is shorter.
const PATIENCE: Duration = Duration::from_secs(5);

/// A connection whose other end is known.
pub(crate) struct Opened {
    pub identity: Identity,
    pub peer: Peer,
    /// When the first of its certificates ceases to be valid.
    pub not_after: Option<SystemTime>,
    pub stream: Box<dyn Stream>,
}

/// A connection that comes to nothing.
pub(crate) struct Unopened {
    pub why: TurnedAway,
    pub peer: Peer,
    pub error: String,
}

/// What a server opens connections by.
pub(crate) struct Opening {
    patience: Duration,
    handshakes: Quotas<IpAddr>,
}

impl Opening {
    /// Handshakes may take a `lease`, but not for ever.
    pub fn new(lease: Duration) -> Self {
        Self { patience: lease.min(PATIENCE), handshakes: Quotas::new(MAX_HANDSHAKES, HANDSHAKES_PER_SECOND) }
    }

    /// Returns a seat for a handshake with `address`, or `None` if it has as many as it may.
    pub fn seat(&self, address: SocketAddr) -> Option<Seat> {
        self.handshakes.seat(&ip(address))
    }

    /// Opens a connection from `address`, by TLS if there is an acceptor and a seat. Without, its identity is that address.
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

/// The address of IPv4 that one of IPv6 stands for, on a socket of IPv6.
fn ip(address: SocketAddr) -> IpAddr {
    address.ip().to_canonical()
}

/// Says who is at the other end; `None`: its certificate cannot be read.
fn opened(stream: TlsStream<TcpStream>, peer: &Peer) -> Option<Opened> {
    let shown = stream.get_ref().1.peer_certificates()?;
    let all = shown.iter().map(|der| Certificate::read(der)).collect::<Option<Vec<Certificate>>>()?;
    let not_after = all.iter().map(|certificate| certificate.not_after).min();
    let identity = Identity::Addresses(all.into_iter().next()?.addresses);
    Some(Opened { identity, peer: peer.clone(), not_after, stream: Box::new(stream) })
}
