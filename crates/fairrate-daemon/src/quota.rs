//! Quotas of a peer, over all its connections: connections at a time, and turns a second.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// Smallest number of accounts at which unused ones are removed.
const FEW: usize = 1024;

/// Quotas of peers, which are identified by a `K`.
#[derive(Debug)]
pub(crate) struct Quotas<K> {
    max_open: usize,
    max_turns: u32,
    accounts: Mutex<Accounts<K>>,
}

#[derive(Debug)]
struct Accounts<K> {
    by_peer: HashMap<K, Arc<Account>>,
    /// Number of accounts at which unused ones are removed.
    most: usize,
}

#[derive(Debug)]
struct Account {
    n_open: AtomicUsize,
    /// Time at which all turns taken would have been taken at the limit.
    until: Mutex<Instant>,
}

/// One of a peer's connections, until it is dropped.
#[derive(Debug)]
pub(crate) struct Seat {
    account: Arc<Account>,
    max_turns: u32,
}

impl<K: Clone + Eq + Hash> Quotas<K> {
    /// Creates quotas of `max_open` seats at a time, and `max_turns` turns a second.
    pub fn new(max_open: usize, max_turns: u32) -> Self {
        let accounts = Accounts { by_peer: HashMap::new(), most: FEW };
        Self { max_open, max_turns, accounts: Mutex::new(accounts) }
    }

    /// Returns a seat for `peer`, or `None` if it has the largest number of them.
    pub fn seat(&self, peer: &K) -> Option<Seat> {
        let mut accounts = self.accounts.lock().unwrap_or_else(PoisonError::into_inner);
        accounts.clean_up();
        let new = || Arc::new(Account { n_open: AtomicUsize::new(0), until: Mutex::new(Instant::now()) });
        let account = accounts.by_peer.entry(peer.clone()).or_insert_with(new);
        // Seats are taken under the lock, and a concurrent release does no harm.
        if self.max_open <= account.n_open.load(Ordering::Acquire) {
            return None;
        }
        account.n_open.fetch_add(1, Ordering::AcqRel);
        Some(Seat { account: Arc::clone(account), max_turns: self.max_turns })
    }
}

impl<K: Eq + Hash> Accounts<K> {
    /// Removes accounts that are like new ones, if there are many.
    fn clean_up(&mut self) {
        if self.most <= self.by_peer.len() {
            let now = Instant::now();
            self.by_peer.retain(|_, account| 0 < account.n_open.load(Ordering::Acquire) || now < account.until());
            self.most = (2 * self.by_peer.len()).max(FEW);
        }
    }
}

impl Account {
    fn until(&self) -> Instant {
        *self.until.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Seat {
    /// Records `n` turns of the peer, and returns the time from which the next turn is allowed, if that is not now. The
    /// turns of a second may be taken at once.
    pub fn note(&self, n: u32) -> Option<Instant> {
        let now = Instant::now();
        let mut until = self.account.until.lock().unwrap_or_else(PoisonError::into_inner);
        *until = (*until).max(now) + Duration::from_secs(1) * n / self.max_turns.max(1);
        let rest = until.checked_sub(Duration::from_secs(1))?;
        (now < rest).then_some(rest)
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.account.n_open.fetch_sub(1, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_has_so_many_seats_and_others_have_theirs() {
        let quotas = Quotas::new(2, 10);
        let (first, second) = (quotas.seat(&1), quotas.seat(&1));
        assert!(first.is_some() && second.is_some() && quotas.seat(&1).is_none());
        assert!(quotas.seat(&2).is_some());
        drop(first);
        assert!(quotas.seat(&1).is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn turns_are_those_of_all_seats() {
        let quotas = Quotas::new(2, 10);
        let (first, second) = (quotas.seat(&1).unwrap(), quotas.seat(&1).unwrap());
        let start = Instant::now();
        assert_eq!((first.note(5), second.note(5)), (None, None));
        assert_eq!(first.note(5), Some(start + Duration::from_millis(500)));
        assert_eq!(second.note(5), Some(start + Duration::from_secs(1)));
        // A peer that connects again still has its turns counted.
        drop((first, second));
        assert_eq!(quotas.seat(&1).unwrap().note(5), Some(start + Duration::from_millis(1500)));
        assert_eq!(quotas.seat(&2).unwrap().note(5), None);
    }

    #[tokio::test(start_paused = true)]
    async fn peers_that_were_seen_once_are_not_kept() {
        let quotas = Quotas::new(1, 10);
        let kept = quotas.seat(&0).unwrap();
        for peer in 1..20 * FEW {
            drop(quotas.seat(&peer).unwrap());
            tokio::time::advance(Duration::from_millis(1)).await;
        }
        assert!(quotas.accounts.lock().unwrap().by_peer.len() <= FEW);
        assert!(quotas.seat(&0).is_none(), "who is there is kept");
        drop(kept);
    }
}
