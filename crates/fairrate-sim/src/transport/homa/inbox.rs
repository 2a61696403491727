//! A host's incoming messages: the selection of those that are granted, and the extent and class of grants.

use fairrate_control::homa::{HomaCount, HomaOrder};

use super::levels::{Levels, MAX_GRANTED};
use crate::ids::{FlowId, HostId};

/// A message of which some bytes have arrived, but not all.
#[derive(Clone, Copy, Debug)]
pub(super) struct Incoming {
    pub(super) flow: FlowId,
    /// The host that sends it.
    src: HostId,
    /// Its length; `u64::MAX` if it is endless.
    length: u64,
    /// Bytes that have arrived, each counted once.
    received: u64,
    /// End of the bytes that its sender may send.
    pub(super) granted: u64,
    /// RTTbytes of its flow.
    rtt_bytes: u64,
    /// Time at which new bytes or a sign of life arrived last, in picoseconds.
    pub(super) heard_ps: u64,
}

impl Incoming {
    /// Returns a message of which nothing has arrived.
    pub(super) fn new(flow: FlowId, src: HostId, length: u64, rtt_bytes: u64, now_ps: u64) -> Self {
        Self { flow, src, length, received: 0, granted: rtt_bytes.min(length), rtt_bytes, heard_ps: now_ps }
    }

    /// Returns the sort key of the message: the one with the fewest bytes left is first. Ties go to the shorter
    /// message, then to the one that started first.
    fn order(&self, levels: &Levels) -> (u64, u64, FlowId) {
        let done = match levels.order() {
            HomaOrder::Granted => self.granted,
            HomaOrder::Received => self.received,
        };
        let left = if self.length == u64::MAX { u64::MAX } else { self.length.saturating_sub(done) };
        (left, self.length, self.flow)
    }

    /// Returns the end of the bytes that may be granted: RTTbytes beyond what has arrived, in whole packets.
    fn target(&self, levels: &Levels) -> u64 {
        let wanted = self.received.saturating_add(self.rtt_bytes);
        let missing = levels.whole_packets(wanted.saturating_sub(self.granted));
        self.granted.saturating_add(missing).min(self.length)
    }

    /// Returns `true` if grants may be given beyond those that it has.
    fn has_room(&self, levels: &Levels) -> bool {
        self.granted < self.target(levels)
    }

    /// Returns `true` if its sender waits for grants.
    fn is_waiting(&self) -> bool {
        self.granted < self.length
    }
}

/// Permission to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Grant {
    pub(super) flow: FlowId,
    /// End of the bytes that may be sent.
    pub(super) until: u64,
    /// Class of the scheduled packets among them.
    pub(super) class: u8,
}

/// The messages of one host, the one with the fewest bytes left first.
#[derive(Clone, Debug, Default)]
pub(super) struct Inbox {
    messages: Vec<Incoming>,
}

/// Positions of the messages that are granted now, in their order.
#[derive(Clone, Copy, Default)]
struct Granted {
    at: [usize; MAX_GRANTED],
    n: usize,
}

impl Granted {
    fn positions(&self) -> &[usize] {
        &self.at[..self.n]
    }
}

impl Inbox {
    /// Returns the message of `flow`, if it is here.
    pub(super) fn get_mut(&mut self, flow: FlowId) -> Option<&mut Incoming> {
        self.messages.iter_mut().find(|m| m.flow == flow)
    }

    /// Adds a message whose first bytes have arrived.
    pub(super) fn open(&mut self, message: Incoming, levels: &Levels) {
        let at = self.messages.partition_point(|m| m.order(levels) < message.order(levels));
        self.messages.insert(at, message);
    }

    /// Records new bytes of a message, which is removed if these were the last; returns `true` if it was here.
    pub(super) fn take(&mut self, flow: FlowId, bytes: u64, now_ps: u64, levels: &Levels) -> bool {
        self.change(flow, levels, |m| (m.received, m.heard_ps) = (m.received + bytes, now_ps))
    }

    /// Records the length that a message's sender reports, and removes it if all of it has arrived; returns `true` if
    /// it was here.
    pub(super) fn shorten(&mut self, flow: FlowId, length: u64, now_ps: u64, levels: &Levels) -> bool {
        self.change(flow, levels, |m| (m.length, m.heard_ps) = (m.length.min(length), now_ps))
    }

    /// Changes a message, which may then move up or be removed; returns `true` if it was here.
    fn change(&mut self, flow: FlowId, levels: &Levels, change: impl FnOnce(&mut Incoming)) -> bool {
        let Some(at) = self.messages.iter().position(|m| m.flow == flow) else { return false };
        let message = &mut self.messages[at];
        change(message);
        if message.length <= message.received {
            self.messages.remove(at);
            return true;
        }
        self.move_up(at, levels);
        true
    }

    /// Moves the message at position `at`, which has fewer bytes left than before, to its place.
    fn move_up(&mut self, at: usize, levels: &Levels) {
        let order = self.messages[at].order(levels);
        let to = self.messages[..at].partition_point(|m| m.order(levels) < order);
        self.messages[to..=at].rotate_right(1);
    }

    /// Returns the messages that are granted now: the first in the order of those whose senders wait.
    fn granted(&self, levels: &Levels) -> Granted {
        let mut granted = Granted::default();
        for (at, message) in self.messages.iter().enumerate().filter(|(_, m)| m.is_waiting()) {
            let is_of = |&other: &usize| self.messages[other].src == message.src;
            if levels.counts() == HomaCount::Senders && granted.positions().iter().any(is_of) {
                continue;
            }
            granted.at[granted.n] = at;
            granted.n += 1;
            if granted.n == levels.overcommitment() {
                break;
            }
        }
        granted
    }

    /// Returns the class of a message's scheduled packets: the lowest, if it is not granted.
    pub(super) fn class(&self, flow: FlowId, levels: &Levels) -> u8 {
        let granted = self.granted(levels);
        let rank = granted.positions().iter().position(|&at| self.messages[at].flow == flow);
        rank.map_or_else(|| levels.scheduled(0, 1), |rank| levels.scheduled(rank, granted.n))
    }

    /// Returns the grants that answer data of a message: one for itself, of all that it may have, if it is granted, and
    /// one for a message that takes over.
    pub(super) fn answer(&mut self, flow: FlowId, levels: &Levels) -> (Option<Grant>, Option<Grant>) {
        let own = self.grant_to(flow, levels);
        let is_turn = own.is_none() || levels.order() == HomaOrder::Granted;
        let other = if is_turn { self.hand_over(flow, levels) } else { None };
        (own, other)
    }

    /// Grants a message all that it may have, if it is among those granted now and may have more.
    pub(super) fn grant_to(&mut self, flow: FlowId, levels: &Levels) -> Option<Grant> {
        let granted = self.granted(levels);
        let &at = granted.positions().iter().find(|&&at| self.messages[at].flow == flow)?;
        let until = self.messages[at].target(levels);
        self.grant(at, until, levels)
    }

    /// Grants more to the first message that may have more, as `flow` needs nothing now. By the order of granted bytes,
    /// the message gets all of RTTbytes: it has just taken the place of one that has got its last grant. By that of
    /// received bytes, it gets a packet, and nothing if `flow` is itself among those granted now.
    pub(super) fn hand_over(&mut self, flow: FlowId, levels: &Levels) -> Option<Grant> {
        let granted = self.granted(levels);
        let by_packet = levels.order() == HomaOrder::Received;
        if by_packet && granted.positions().iter().any(|&at| self.messages[at].flow == flow) {
            return None;
        }
        let &at = granted.positions().iter().find(|&&at| self.messages[at].has_room(levels))?;
        let message = &self.messages[at];
        let target = message.target(levels);
        let until = if by_packet { target.min(message.granted + levels.scheduled_payload()) } else { target };
        self.grant(at, until, levels)
    }

    /// Grants the message at position `at`, which is among those granted now, the bytes up to `until`.
    fn grant(&mut self, at: usize, until: u64, levels: &Levels) -> Option<Grant> {
        let Incoming { flow, granted, .. } = self.messages[at];
        if until <= granted {
            return None;
        }
        // The class depends on the messages that are granted now: with this grant the message may cease to be one of
        // them.
        let class = self.class(flow, levels);
        self.messages[at].granted = until;
        self.move_up(at, levels);
        Some(Grant { flow, until, class })
    }
}
