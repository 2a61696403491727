//! The record of peers for operators: each connection that is turned away or closed, and each flow that is refused, is
//! counted, and logged with the peer's address and certificate. There are few lines of a kind, however often it
//! happens.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::desk::Refusal;
use crate::logging::Throttle;
use crate::metrics::{Metrics, TurnedAway};
use crate::wire::{Reason, Start};

/// Interval at which the lines left out are summed up.
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

/// The counters and log of events at peers.
pub(crate) struct PeerLog {
    pub metrics: Arc<Metrics>,
    turned_away: [Throttle; TurnedAway::ALL.len()],
    closed: [Throttle; Reason::ALL.len()],
    /// Throttle of each reason, with the number of flows that have been logged.
    refused: [(Throttle, AtomicU64); Refusal::ALL.len()],
}

impl PeerLog {
    pub fn new(metrics: Arc<Metrics>) -> Self {
        Self { metrics, turned_away: Default::default(), closed: Default::default(), refused: Default::default() }
    }

    /// Records that a connection was turned away, with the reason.
    pub fn turned_away(&self, why: TurnedAway, peer: &dyn fmt::Display, error: &str) {
        self.metrics.turned_away_for(why).inc();
        if let Some(left_out) = self.turned_away[why as usize].pass() {
            tracing::warn!(%peer, why = why.name(), error, left_out, "connection turned away");
        }
    }

    /// Records that the allocator closes a connection, with the reason.
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

    /// Records that flows have been refused, `total` of them for this reason so far. `last` is the last one with its
    /// peer.
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

    /// Logs the number of lines of each kind that were left out, so that the end of a flood is logged too.
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
