//! What operators hear of peers: each connection that comes to nothing or is closed, and each flow that is refused, is counted,
//! and logged with the peer's address and certificate. There are few lines of a kind, however often it happens.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::desk::Refusal;
use crate::logging::Throttle;
use crate::metrics::{Metrics, TurnedAway};
use crate::wire::{Reason, Start};

/// The time between two looks at lines that were left out.
pub(crate) const SUM_UP: Duration = Duration::from_secs(10);

/// The other side of a connection.
#[derive(Clone, Debug)]
pub(crate) struct Peer {
    pub address: SocketAddr,
    /// The name of its certificate, which is fit for a log.
    pub certificate: Option<String>,
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.certificate {
            Some(name) => write!(f, "{} (certificate of {name})", self.address),
            None => write!(f, "{}", self.address),
        }
    }
}

/// Counts and logs what happens to peers.
pub(crate) struct PeerLog {
    pub metrics: Arc<Metrics>,
    turned_away: [Throttle; TurnedAway::ALL.len()],
    closed: [Throttle; Reason::ALL.len()],
    /// With the number of flows that have been logged.
    refused: [(Throttle, AtomicU64); Refusal::ALL.len()],
}

impl PeerLog {
    pub fn new(metrics: Arc<Metrics>) -> Self {
        Self { metrics, turned_away: Default::default(), closed: Default::default(), refused: Default::default() }
    }

    /// A connection comes to nothing, for this reason.
    pub fn turned_away(&self, why: TurnedAway, peer: &dyn fmt::Display, error: &str) {
        self.metrics.turned_away_for(why).inc();
        if let Some(left_out) = self.turned_away[why as usize].pass() {
            tracing::warn!(%peer, why = why.name(), error, left_out, "connection turned away");
        }
    }

    /// The allocator closes a connection, for this reason.
    pub fn closed(&self, reason: Reason, peer: &dyn fmt::Display) {
        self.metrics.closed_for(reason).inc();
        let Some(left_out) = self.throttle(reason).and_then(Throttle::pass) else { return };
        if reason == Reason::Shutdown {
            tracing::info!(%peer, %reason, left_out, "connection closed");
        } else {
            tracing::warn!(%peer, %reason, left_out, "connection closed");
        }
    }

    fn throttle(&self, reason: Reason) -> Option<&Throttle> {
        let place = Reason::ALL.iter().position(|other| *other == reason)?;
        self.closed.get(place)
    }

    /// Flows have been refused for this reason, `total` of them so far. `last` is the last one, and whose it was.
    pub fn refused(&self, why: Refusal, total: u64, last: Option<(&Peer, Start)>) {
        let (throttle, logged) = &self.refused[why as usize];
        if total == logged.load(Ordering::Relaxed) || throttle.pass().is_none() {
            return;
        }
        let (flows, why) = (total - logged.swap(total, Ordering::Relaxed), why.name());
        if let Some((peer, Start { src, dst, .. })) = last {
            tracing::warn!(%peer, why, flows, last.src = %src, last.dst = %dst, "flows refused");
        } else {
            tracing::warn!(why, flows, "flows refused; the last agent that began one is gone");
        }
    }

    /// Logs how many lines of each kind were left out, so that the end of a flood is logged too.
    pub fn sum_up(&self) {
        for (why, throttle) in TurnedAway::ALL.iter().zip(&self.turned_away) {
            if let Some(left_out) = throttle.sum_up() {
                tracing::warn!(why = why.name(), left_out, "more connections turned away");
            }
        }
        for (reason, throttle) in Reason::ALL.iter().zip(&self.closed) {
            if let Some(left_out) = throttle.sum_up() {
                tracing::warn!(%reason, left_out, "more connections closed");
            }
        }
    }
}
