//! Totals of a run.

use fairrate_units::Time;

use super::{AllocatorTotals, Counts, Reordering};
use crate::fabric::DropCause;
use crate::ids::PortId;

/// Numbers of packets dropped, by cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Drops([u64; DropCause::ALL.len()]);

impl Drops {
    /// Returns the number of packets dropped for all causes together.
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    /// Returns the number of packets dropped for `cause`.
    pub fn of(&self, cause: DropCause) -> u64 {
        self.0[cause as usize]
    }

    /// Returns each cause with its number of packets, in the order of [`DropCause::ALL`].
    pub fn by_cause(&self) -> impl Iterator<Item = (DropCause, u64)> {
        DropCause::ALL.into_iter().zip(self.0)
    }

    /// Adds `n` packets dropped for `cause`.
    pub fn add(&mut self, cause: DropCause, n: u64) {
        self.0[cause as usize] += n;
    }

    /// Adds the packets of `other`.
    pub(crate) fn merge(&mut self, other: &Self) {
        for (cause, n) in other.by_cause() {
            self.add(cause, n);
        }
    }
}

impl FromIterator<(DropCause, u64)> for Drops {
    fn from_iter<I: IntoIterator<Item = (DropCause, u64)>>(counts: I) -> Self {
        let mut drops = Self::default();
        for (cause, n) in counts {
            drops.add(cause, n);
        }
        drops
    }
}

/// Counters of an egress port over a whole run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortTotals {
    /// The port.
    pub port: PortId,
    /// Bytes handed to the wire.
    pub tx_bytes: u64,
    /// Packets dropped here, by cause: on their way into the port, from its queue, on its wire or at the host to which
    /// it leads.
    pub drops: Drops,
    /// Packets marked.
    pub ecn_marks: u64,
    /// Time for which its peer has paused any class of it.
    pub pfc_pause: Time,
}

/// Totals of a run. Data bytes are counted on the wire and add up: sent + duplicated = delivered + dropped + in flight.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunTotals {
    /// Simulated time at the end.
    pub end: Time,
    /// Sum of a hash of every event, its time included: equal if two runs processed the same events.
    pub fingerprint: u64,
    /// Events processed.
    pub events: u64,
    /// Packets of any kind serialised onto a link.
    pub packet_hops: u64,
    /// Data bytes that left hosts.
    pub sent_bytes: u64,
    /// Data bytes that faulty links have added.
    pub duplicated_bytes: u64,
    /// Data bytes that reached their receivers.
    pub delivered_bytes: u64,
    /// Data bytes dropped.
    pub dropped_bytes: u64,
    /// Bytes of data packets that switches cut to their headers, before they did.
    pub trimmed_bytes: u64,
    /// Data bytes in queues or on links at the end.
    pub in_flight_bytes: u64,
    /// Packets dropped.
    pub drops: Drops,
    /// Numbers of other things that happened.
    pub counts: Counts,
    /// Bytes of notices, control packets and frames about flows on the wire, counted once where they are sent.
    pub control_bytes: u64,
    /// The messages to and from the allocator, if there is one.
    pub allocator: AllocatorTotals,
    /// Largest use of any switch's buffer, headroom included, in bytes.
    pub peak_buffer_bytes: u64,
    /// Data of all connections of several subflows that waited for data before it.
    pub reordering: Reordering,
    /// Flows that finished.
    pub flows_done: u64,
    /// Finite flows that did not finish.
    pub flows_unfinished: u64,
}

impl RunTotals {
    /// Returns the data bytes, sent or duplicated, that were neither delivered nor dropped nor trimmed and are not in
    /// flight: 0 as bytes are conserved, below 0 if more arrived than were sent.
    pub fn unaccounted_bytes(&self) -> i64 {
        let found = self.delivered_bytes + self.dropped_bytes + self.trimmed_bytes + self.in_flight_bytes;
        (self.sent_bytes + self.duplicated_bytes).cast_signed() - found.cast_signed()
    }

    /// Adds the totals of another part of the network.
    pub(crate) fn add(&mut self, other: &Self) {
        self.end = self.end.max(other.end);
        self.fingerprint = self.fingerprint.wrapping_add(other.fingerprint);
        self.events += other.events;
        self.packet_hops += other.packet_hops;
        self.sent_bytes += other.sent_bytes;
        self.duplicated_bytes += other.duplicated_bytes;
        self.delivered_bytes += other.delivered_bytes;
        self.dropped_bytes += other.dropped_bytes;
        self.trimmed_bytes += other.trimmed_bytes;
        self.in_flight_bytes += other.in_flight_bytes;
        self.drops.merge(&other.drops);
        self.counts += other.counts;
        self.control_bytes += other.control_bytes;
        self.allocator += other.allocator;
        self.peak_buffer_bytes = self.peak_buffer_bytes.max(other.peak_buffer_bytes);
        self.reordering.merge(&other.reordering);
        self.flows_done += other.flows_done;
        self.flows_unfinished += other.flows_unfinished;
    }
}
