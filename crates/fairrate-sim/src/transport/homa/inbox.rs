//! A host's incoming messages: the selection of those that are granted, and the extent and class of grants.

use super::levels::Levels;
use crate::ids::FlowId;

/// A message of which some bytes have arrived, but not all.
#[derive(Clone, Copy, Debug)]
pub(super) struct Incoming {
    pub(super) flow: FlowId,
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
    fn remaining(&self) -> u64 {
        if self.length == u64::MAX { u64::MAX } else { self.length.saturating_sub(self.received) }
    }

    /// Returns the sort key of the message: the shortest is first.
    fn order(&self) -> (u64, FlowId) {
        (self.remaining(), self.flow)
    }

    /// Returns the end of the bytes that may be granted: RTTbytes beyond what has arrived, in whole packets.
    fn target(&self, levels: &Levels) -> u64 {
        levels.whole_packets(self.received.saturating_add(self.rtt_bytes)).min(self.length)
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

impl Inbox {
    /// Returns the message of `flow`, if it is here.
    pub(super) fn get_mut(&mut self, flow: FlowId) -> Option<&mut Incoming> {
        self.messages.iter_mut().find(|m| m.flow == flow)
    }

    /// Adds a message whose first bytes have arrived.
    pub(super) fn open(&mut self, flow: FlowId, length: u64, rtt_bytes: u64, now_ps: u64) {
        let granted = rtt_bytes.min(length);
        let message = Incoming { flow, length, received: 0, granted, rtt_bytes, heard_ps: now_ps };
        let at = self.messages.partition_point(|m| m.order() < message.order());
        self.messages.insert(at, message);
    }

    /// Records new bytes of a message, which is removed if these were the last; returns `true` if it was here.
    pub(super) fn take(&mut self, flow: FlowId, bytes: u64, now_ps: u64) -> bool {
        self.change(flow, |m| (m.received, m.heard_ps) = (m.received + bytes, now_ps))
    }

    /// Records the length that a message's sender reports, and removes it if all of it has arrived; returns `true` if
    /// it was here.
    pub(super) fn shorten(&mut self, flow: FlowId, length: u64, now_ps: u64) -> bool {
        self.change(flow, |m| (m.length, m.heard_ps) = (m.length.min(length), now_ps))
    }

    /// Changes a message, which may then move up or be removed; returns `true` if it was here.
    fn change(&mut self, flow: FlowId, change: impl FnOnce(&mut Incoming)) -> bool {
        let Some(at) = self.messages.iter().position(|m| m.flow == flow) else { return false };
        let message = &mut self.messages[at];
        change(message);
        if message.length <= message.received {
            self.messages.remove(at);
            return true;
        }
        let order = message.order();
        let to = self.messages[..at].partition_point(|m| m.order() < order);
        self.messages[to..=at].rotate_right(1);
        true
    }

    /// Returns the positions of the messages that are granted now: the shortest of those whose senders wait.
    fn granted<'a>(&'a self, levels: &Levels) -> impl Iterator<Item = usize> + Clone + use<'a> {
        let waiting = self.messages.iter().enumerate().filter(|(_, m)| m.is_waiting());
        waiting.map(|(at, _)| at).take(levels.overcommitment())
    }

    /// Returns the class of a message's scheduled packets: the lowest, if it is not granted.
    pub(super) fn class(&self, flow: FlowId, levels: &Levels) -> u8 {
        let granted = self.granted(levels);
        let rank = granted.clone().position(|at| self.messages[at].flow == flow);
        rank.map_or_else(|| levels.scheduled(0, 1), |rank| levels.scheduled(rank, granted.count()))
    }

    /// Returns the grant that answers data of a message, if any. If the message itself is granted, it gets all that it
    /// may have. Otherwise no other packet of it will follow this one, and the shortest message that may have more gets
    /// one packet.
    pub(super) fn answer(&mut self, flow: FlowId, levels: &Levels) -> Option<Grant> {
        self.grant_to(flow, levels).or_else(|| self.grant_a_packet(flow, levels))
    }

    /// Grants a message all that it may have, if it is among those granted now and may have more.
    pub(super) fn grant_to(&mut self, flow: FlowId, levels: &Levels) -> Option<Grant> {
        let at = self.granted(levels).find(|&at| self.messages[at].flow == flow)?;
        let until = self.messages[at].target(levels);
        self.grant(at, until, levels)
    }

    /// Grants a packet to the shortest message that may have more, unless `flow` is among those granted now.
    pub(super) fn grant_a_packet(&mut self, flow: FlowId, levels: &Levels) -> Option<Grant> {
        if self.granted(levels).any(|at| self.messages[at].flow == flow) {
            return None;
        }
        let has_room = |&at: &usize| self.messages[at].granted < self.messages[at].target(levels);
        let at = self.granted(levels).find(has_room)?;
        let message = &self.messages[at];
        let until = (message.granted + levels.mtu()).min(message.target(levels));
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
        Some(Grant { flow, until, class })
    }
}
