//! Flows whose receivers grant what their senders may send, as HOMA's do.
//!
//! Such a receiver answers few packets of data, and its answers do not say which. It grants as data arrives: more of
//! the same message, or of another one that takes its turn. So a grant follows the last packet of its message on which
//! the receiver acted. If that was at the same time, the packet led to the grant; if it was earlier, the message has
//! waited for others since, for credit. A receiver that misses bytes asks for them after a timeout.

use fairrate_sim::PacketKind;
use fairrate_units::Time;

use crate::chain::{Place, Walk};
use crate::observer::{Fate, Id, Taken};
use crate::piece::{Loss, Reason, Way};

/// Returns the reason for which a sender waited for an answer of its receiver.
pub(crate) fn reason_of_answer(kind: PacketKind) -> Reason {
    match kind {
        PacketKind::Nack => Reason::Timeout(None),
        _ => Reason::Credit,
    }
}

impl Walk<'_> {
    /// Returns the last packet on which the receiver acted until the walk's time.
    pub(crate) fn last_taken(&self) -> Option<Taken> {
        let taken = &self.track.taken;
        let until = taken.partition_point(|taken| taken.t <= self.at);
        Some(taken[until.checked_sub(1)?])
    }

    /// Walks from the moment at which a grant or a request joined the queue of the receiver's NIC to the arrival of the
    /// data that came before it.
    pub(crate) fn granted(&mut self) -> Place {
        self.way = Way::Data;
        let Some(taken) = self.last_taken() else { return Place::Start };
        let is_after_timeout = self.track.timeouts.binary_search(&self.at).is_ok();
        let reason = if is_after_timeout { Reason::Timeout(self.lost_answer(taken.t)) } else { Reason::Credit };
        self.close(taken.t, reason);
        Place::Arrival(Id::Data(taken.seq))
    }

    /// Returns the last loss of a grant or request between `since` and the walk's time.
    fn lost_answer(&self, since: Time) -> Option<Loss> {
        let answers = self.track.hops.iter().filter(|(id, _)| matches!(id, Id::Answer(_)));
        let lost = answers.flat_map(|(_, hops)| hops).filter(|hop| since <= hop.left && hop.left < self.at);
        let lost = lost.filter_map(|hop| match hop.fate {
            Fate::Sent => None,
            Fate::Lost(how) => Some((hop.left, Loss { port: hop.port, how })),
        });
        lost.max().map(|(_, loss)| loss)
    }

    /// Walks from the sending of a packet whose bytes were lost at `lost` back to the time at which it could be sent
    /// again.
    pub(crate) fn wait_to_repeat(&mut self, send: usize, lost: Time) {
        let this = self.track.sends[send];
        let expired = self.track.timeouts.partition_point(|&t| t <= self.at);
        let expired = expired.checked_sub(1).map_or(Time::ZERO, |last| self.track.timeouts[last]);
        let opened = self.opening_of(send).map(|opening| opening.t).filter(|&t| lost <= t);
        let asked = opened.unwrap_or(self.base(send).max(expired)).max(lost);
        self.turns(&self.nic_hop(send), this.paced_until.min(this.t).max(asked), self.idle_reason(send));
    }

    /// Returns the answer to the sender with the last byte that is under way at the end of the run.
    pub(crate) fn answer_under_way(&self) -> Option<Id> {
        let (track, ports) = (self.track, self.ports);
        let waiting = track.waiting.iter().map(|waiting| waiting.id);
        let on_wire = track.hops.iter().filter(|(_, hops)| {
            hops.iter().any(|hop| hop.fate == Fate::Sent && hop.left <= self.at && self.at < hop.arrival(ports))
        });
        let answers = waiting.chain(on_wire.map(|(&id, _)| id)).filter(|id| matches!(id, Id::Answer(_)));
        answers.max_by_key(|id| if let Id::Answer(until) = id { *until } else { 0 })
    }
}
