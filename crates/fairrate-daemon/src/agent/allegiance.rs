//! The allocator that an agent goes by, and how long its rates are valid.

use std::time::Duration;

use crate::lease::WORDS_A_LEASE;
use crate::wire::Epoch;

/// The allocator that an agent goes by.
#[derive(Debug)]
pub(super) struct Allegiance {
    /// The highest epoch accepted.
    pub epoch: Epoch,
    /// Position of the server with this epoch, unless it has given up or is gone.
    pub holder: Option<usize>,
    /// Numbers that the holder has told.
    pub voters: u32,
    pub agents: u32,
    /// Time until which rates are valid.
    pub valid_until: Duration,
    /// `true` if rates are in force.
    pub is_valid: bool,
    /// `true` if the holder has not yet confirmed the rates of its predecessor.
    pub is_inherited: bool,
    /// Time of the last stamp to the holder, and to those before it.
    spoke: Option<Duration>,
    left: Option<Duration>,
    /// Time of the holder's last word.
    heard: Duration,
    /// `true` if the holder has certainly given up.
    is_lost: bool,
}

impl Allegiance {
    /// Creates the allegiance of an agent that begins at `now` and has no allocator.
    pub fn new(now: Duration) -> Self {
        Self {
            epoch: Epoch::NONE,
            holder: None,
            voters: 0,
            agents: 0,
            valid_until: Duration::ZERO,
            is_valid: false,
            is_inherited: false,
            spoke: None,
            left: None,
            heard: now,
            is_lost: true,
        }
    }

    /// Accepts the epoch of a server that has no rates of the agent's yet.
    pub fn change(&mut self, server: usize) {
        self.is_inherited = true;
        self.holder = Some(server);
        self.left = self.left.max(self.spoke.take());
    }

    /// Records a stamp to the holder.
    pub fn speak(&mut self, now: Duration) {
        self.spoke = Some(now);
    }

    /// Returns the time since the last stamp to an earlier holder in milliseconds.
    pub fn quiet_ms(&self, now: Duration) -> u32 {
        self.left.map_or(u32::MAX, |left| u32::try_from(now.saturating_sub(left).as_millis()).unwrap_or(u32::MAX))
    }

    /// Records a word of the holder.
    pub fn hear(&mut self, now: Duration) {
        (self.heard, self.is_lost) = (now, false);
    }

    /// Records that the holder gives up or has restarted.
    pub fn lose(&mut self, now: Duration) {
        self.holder = None;
        if !self.is_lost {
            (self.heard, self.is_lost) = (now, true);
        }
    }

    /// Returns the time from which the agent wants the server at position `rank`, whose lease is `lease`, to decide:
    /// half a lease after the holder's last word, or at once if it is gone, and later for those further down the list.
    pub fn willing_at(&self, rank: usize, lease: Duration) -> Duration {
        let patience = if self.is_lost { Duration::ZERO } else { lease / 2 };
        self.heard + patience + lease / WORDS_A_LEASE * u32::try_from(rank).unwrap_or(u32::MAX)
    }
}
