//! The agent's state of the conversation with a server.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use super::{FIRST_LEASE, Own};
use crate::lease::WORDS_A_LEASE;
use crate::rate::WireRate;
use crate::wire::{Epoch, Flow, FromAgent, LEAST_VERSION, Reason, Start, Versions};

/// The state of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Link {
    /// There is no connection.
    Cut,
    /// HELLO has to be sent.
    Greeting,
    /// HELLO has been sent and not been answered.
    Waiting,
    /// HELLO has been answered; flows are sent.
    Up,
}

/// A flow that the server has been sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Announced {
    generation: u32,
    /// Number of its start among the starts and ends since HELLO.
    place: u32,
}

/// The agent's state of the conversation with a server.
#[derive(Debug)]
pub(super) struct Server {
    pub link: Link,
    /// Versions of the protocol to offer in HELLO.
    pub offers: Versions,
    /// `true` if the server has refused newer versions than those, and not been tried again.
    pub falls_back: bool,
    /// The version that the server has chosen.
    pub version: u8,
    pub lease: Duration,
    pub instance: Option<u64>,
    /// The epoch of its last stamp.
    pub epoch: Epoch,
    /// Flows that the server has been sent since HELLO.
    pub announced: HashMap<Flow, Announced>,
    /// Number of starts and ends sent since HELLO, and of those that the server has read.
    n_said: u32,
    pub seen: u32,
    /// Flows whose state at the server may differ from the agent's.
    pub dirty: BTreeSet<Flow>,
    /// `true` if SYNCED has to be sent once nothing is dirty.
    is_syncing: bool,
    /// Flows whose rates in force have to be sent.
    pub reporting: BTreeSet<Flow>,
    /// `true` if the server has been sent all rates in force, so that its own rates are accepted.
    pub is_reported: bool,
    /// Number of the mark to acknowledge.
    pub ack: Option<u32>,
    /// The clock of its last stamp.
    pub acked: u64,
    pub must_stamp: bool,
    pub said_willing: bool,
    /// The clock of the last stamp sent to it.
    pub last_stamp: u64,
    pub heard: Duration,
    /// Time of the last stamp.
    pub spoke: Duration,
}

impl Server {
    /// Creates the state of a server without a connection.
    pub fn new(now: Duration) -> Self {
        Self {
            link: Link::Cut,
            offers: Versions::OURS,
            falls_back: false,
            version: LEAST_VERSION,
            lease: FIRST_LEASE,
            instance: None,
            epoch: Epoch::NONE,
            announced: HashMap::new(),
            n_said: 0,
            seen: 0,
            dirty: BTreeSet::new(),
            is_syncing: false,
            reporting: BTreeSet::new(),
            is_reported: false,
            ack: None,
            acked: 0,
            must_stamp: false,
            said_willing: false,
            last_stamp: 0,
            heard: now,
            spoke: now,
        }
    }

    /// Begins a new connection.
    pub fn connect(&mut self, now: Duration) {
        (self.link, self.heard) = (Link::Greeting, now);
        (self.epoch, self.ack, self.acked, self.is_reported) = (Epoch::NONE, None, 0, false);
        self.reporting.clear();
        (self.n_said, self.seen) = (0, 0);
        self.announced.clear();
    }

    /// Handles the answer to HELLO: all `flows` have to be sent.
    pub fn greet(&mut self, lease: Duration, flows: BTreeSet<Flow>) {
        (self.link, self.lease, self.dirty, self.is_syncing) = (Link::Up, lease, flows, true);
        // It may be a newer program on the next connection.
        self.offers = Versions::OURS;
        self.must_stamp = true;
    }

    /// Handles the server's reason for closing the connection.
    pub fn on_bye(&mut self, reason: Reason) {
        if self.link != Link::Waiting || reason != Reason::Version {
            return;
        }
        let older = self.offers.older();
        self.falls_back = older.is_some();
        self.offers = older.unwrap_or(Versions::OURS);
    }

    /// Returns `true` if the server's version has a record for a flow.
    pub fn can_tell(&self, start: &Start) -> bool {
        start.is_v4() || 3 <= self.version
    }

    /// Returns `true` if a rate of the server's is for the flow of this generation, and not for an earlier one.
    pub fn knows(&self, announced: Announced, generation: u32) -> bool {
        // The difference of two counts that may wrap around.
        announced.generation == generation && self.seen.wrapping_sub(announced.place) < u32::MAX / 2
    }

    /// Returns the time of the next regular stamp.
    pub fn stamps_at(&self) -> Duration {
        self.spoke + self.lease / WORDS_A_LEASE
    }

    /// Returns `true` if there is something to send at once.
    pub fn has_news(&self) -> bool {
        let has_flows = !self.dirty.is_empty() || !self.reporting.is_empty();
        self.is_syncing || has_flows || self.ack.is_some() || self.must_stamp
    }

    /// Returns the clock of a stamp sent `now`. It grows from each stamp to the next.
    pub fn next_stamp(&mut self, now: Duration) -> u64 {
        self.must_stamp = false;
        self.spoke = now;
        let clock = u64::try_from(now.as_nanos()).unwrap_or(u64::MAX);
        self.last_stamp = clock.max(self.last_stamp + 1);
        self.last_stamp
    }

    /// Returns the difference between the flows and those the server has been sent, and the rates in force to report:
    /// at most `most` bytes of records.
    pub fn news(&mut self, flows: &HashMap<Flow, Own>, most: usize) -> Vec<FromAgent> {
        let mut news: Vec<FromAgent> = self.ack.take().map(FromAgent::Ack).into_iter().collect();
        let mut bytes = 0;
        while bytes < most
            && let Some(flow) = self.dirty.pop_first()
        {
            let own = flows.get(&flow).filter(|own| self.can_tell(&own.start));
            let announced = self.announced.get(&flow).copied();
            if own.map(|own| own.generation) == announced.map(|announced| announced.generation) {
                continue;
            }
            if self.announced.remove(&flow).is_some() {
                self.n_said = self.n_said.wrapping_add(1);
                news.push(FromAgent::End(flow));
            }
            if let Some(own) = own {
                self.n_said = self.n_said.wrapping_add(1);
                self.announced.insert(flow, Announced { generation: own.generation, place: self.n_said });
                news.push(FromAgent::Start(own.start));
            }
            bytes += 20;
        }
        if self.is_syncing && self.dirty.is_empty() {
            self.is_syncing = false;
            news.push(FromAgent::Synced);
        }
        while bytes < most
            && self.dirty.is_empty()
            && let Some(flow) = self.reporting.pop_first()
        {
            if let Some(own) = flows.get(&flow).filter(|own| 0.0 < own.in_force_bps && self.can_tell(&own.start)) {
                news.push(FromAgent::InForce { flow, rate: WireRate::from_bps(own.in_force_bps) });
                bytes += 6;
            }
        }
        news
    }
}
