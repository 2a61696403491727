//! The disorder among the packets of a flow that take several paths, or that a fault delays.

use crate::config::SimConfig;
use crate::ids::FlowId;
use crate::output::Disorder;
use crate::packet::{Packet, PacketKind};
use crate::table::Table;

/// The disorder of each flow so far, by flow. Only runs whose packets may overtake each other have one.
pub(super) struct DisorderBook(Table<FlowId, Entry>);

#[derive(Clone, Copy, Default)]
struct Entry {
    disorder: Disorder,
    /// The latest time at which a packet that has arrived was sent, in picoseconds.
    sent_ps: u64,
    /// First byte of the furthest packet that has arrived.
    furthest: u64,
    /// Byte after the furthest one that has arrived.
    end: u64,
    /// The byte expected after the last arrival.
    expected: u64,
}

/// A data packet that arrives.
#[derive(Clone, Copy)]
pub(super) struct Arrival {
    seq: u64,
    payload: u64,
    sent_ps: u64,
}

impl Arrival {
    /// Returns the arrival of `p`; `None` if it is no data.
    pub(super) fn of(p: &Packet) -> Option<Self> {
        let arrival = Self { seq: p.seq, payload: u64::from(p.payload), sent_ps: p.sent_ps };
        (p.kind == PacketKind::Data).then_some(arrival)
    }
}

impl DisorderBook {
    /// Creates a book without entries; `None` if the packets of a flow take one path on which no fault reorders them,
    /// or if all flows are HOMA's, where sequence numbers of packets are not bytes.
    pub(super) fn new(config: &SimConfig, n_flows: usize) -> Option<Box<Self>> {
        let may_overtake =
            config.fabric.balance.is_by_packet() || config.faults.iter().any(|fault| 0.0 < fault.reorder);
        let is_wanted = may_overtake && config.is_any(|_, needs| needs.feedback.grants.is_none());
        is_wanted.then(|| Box::new(Self(vec![Entry::default(); n_flows].into())))
    }

    /// Records the arrival of a packet of `flow`, whose receiver now expects byte `expected`. A copy of what had
    /// arrived in order does not count: nothing that comes once a flow is complete does, however much later its outcome
    /// is read.
    #[cold]
    #[inline(never)]
    pub(super) fn note(&mut self, flow: FlowId, p: Arrival, expected: u64) {
        let entry = &mut self.0[flow];
        if p.seq + p.payload <= std::mem::replace(&mut entry.expected, expected) {
            return;
        }
        if p.sent_ps < entry.sent_ps {
            // One that was sent later has overtaken it.
            entry.disorder.late_packets += 1;
            entry.disorder.extent_bytes = entry.disorder.extent_bytes.max(entry.furthest.saturating_sub(p.seq));
        }
        entry.sent_ps = entry.sent_ps.max(p.sent_ps);
        entry.furthest = entry.furthest.max(p.seq);
        entry.end = entry.end.max(p.seq + p.payload);
        entry.disorder.span_bytes = entry.disorder.span_bytes.max(entry.end.saturating_sub(expected));
    }

    /// Returns the disorder of a flow so far.
    pub(super) fn of(&self, flow: FlowId) -> Disorder {
        self.0[flow].disorder
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_of_what_had_arrived_do_not_count() {
        let mut book = DisorderBook(vec![Entry::default()].into());
        for (sent_ps, seq, expected) in [(1, 0, 100), (3, 100, 200), (2, 0, 200), (2, 100, 200)] {
            book.note(FlowId(0), Arrival { seq, payload: 100, sent_ps }, expected);
        }
        assert_eq!(book.of(FlowId(0)).late_packets, 0);
    }

    #[test]
    fn late_packets_are_those_sent_before_one_that_is_there() {
        let mut book = DisorderBook(vec![Entry::default()].into());
        // The second packet comes last but one, and the first is lost and sent again.
        let arrivals = [(200, 3), (300, 4), (100, 2), (0, 9)];
        let expected = [0, 0, 0, 400];
        for ((seq, sent_ps), expected) in arrivals.into_iter().zip(expected) {
            book.note(FlowId(0), Arrival { seq, payload: 100, sent_ps }, expected);
        }
        assert_eq!(book.of(FlowId(0)), Disorder { late_packets: 1, extent_bytes: 200, span_bytes: 400 });
    }
}
