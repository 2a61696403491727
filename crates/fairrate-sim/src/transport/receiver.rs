use super::ranges::Ranges;
use super::tcp::{MAX_SACKS, TcpReceiver};
use crate::config::Recovery;

/// The receiving end of one flow. A run has one for every flow, so state that only some flows need is stored apart.
#[derive(Clone, Debug, Default)]
pub struct Receiver {
    /// The byte expected next: all before it has arrived.
    pub expected: u64,
    /// State that only some flows need, allocated at first use.
    more: Option<Box<More>>,
}

/// A receiver's state for packets that are out of order or marked, and for TCP.
#[derive(Clone, Debug, Default)]
struct More {
    /// Earliest time of the next NACK for the same gap, in picoseconds.
    nack_at_ps: u64,
    /// The byte expected when the gap was found: go-back-N has reported it, selective repeat waits until `nack_at_ps`.
    gap: Option<u64>,
    /// Earliest time of the next CNP, in picoseconds.
    cnp_at_ps: u64,
    /// Selective repeat: ranges that have arrived beyond `expected`.
    beyond: Ranges,
    /// Coalesced acknowledgments: payload bytes since the last one.
    since_ack: u64,
    /// TCP: state of delayed acknowledgments and ECN echo.
    tcp: TcpReceiver,
}

/// A receiver's answer to a data packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reply {
    /// An acknowledgment.
    Ack,
    /// An acknowledgment that reports a gap.
    Nack,
    /// No answer.
    Nothing,
}

impl Receiver {
    /// Returns a receiver whose first byte has number `seq`.
    pub fn starting_at(seq: u64) -> Self {
        Self { expected: seq, ..Self::default() }
    }

    fn more(&mut self) -> &mut More {
        self.more.get_or_insert_default()
    }

    /// Returns the state of TCP's acknowledgments.
    pub fn tcp(&mut self) -> &mut TcpReceiver {
        &mut self.more().tcp
    }

    /// Returns the latest time at which TCP acknowledges, in picoseconds; `u64::MAX` if no segment is pending.
    pub fn due_ps(&self) -> u64 {
        self.more.as_ref().map_or(u64::MAX, |more| more.tcp.due_ps)
    }

    /// Takes payload `[seq, seq + len)`; returns the answer. With go-back-N, the same gap is reported at most once per
    /// `patience_ps`. With selective repeat, a gap is reported once it has been open for `patience_ps`, by each packet
    /// that arrives beyond it.
    #[inline]
    pub fn on_data(&mut self, seq: u64, len: u64, recovery: Recovery, now_ps: u64, patience_ps: u64) -> Reply {
        if seq == self.expected {
            self.expected = seq + len;
            if let Some(more) = self.more.as_mut().filter(|more| !more.beyond.is_empty()) {
                self.expected = more.beyond.advance(self.expected);
            }
            return Reply::Ack;
        }
        if seq < self.expected {
            return Reply::Ack;
        }
        let expected = self.expected;
        let more = self.more();
        if recovery == Recovery::SelectiveRepeat {
            more.beyond.insert(seq, seq + len);
            if more.gap != Some(expected) {
                more.gap = Some(expected);
                more.nack_at_ps = now_ps + patience_ps;
            }
            return if now_ps < more.nack_at_ps { Reply::Ack } else { Reply::Nack };
        }
        if now_ps < more.nack_at_ps && more.gap == Some(expected) {
            return Reply::Nothing;
        }
        more.nack_at_ps = now_ps + patience_ps;
        more.gap = Some(expected);
        Reply::Nack
    }

    /// Returns `true` if `len` payload bytes that have just come are acknowledged: at once if `is_due`, else with the
    /// first packet by which `every` bytes have come since the last acknowledgment.
    pub fn acknowledges(&mut self, len: u64, every: u64, is_due: bool) -> bool {
        let more = self.more();
        more.since_ack += len;
        let acknowledges = is_due || every <= more.since_ack;
        if acknowledges {
            more.since_ack = 0;
        }
        acknowledges
    }

    /// Takes payload `[seq, seq + len)`, in order or not; returns `true` if it was expected and no hole remains.
    pub fn take(&mut self, seq: u64, len: u64) -> bool {
        if self.expected < seq {
            self.more().beyond.insert(seq, seq + len);
            return false;
        }
        let holes = self.more.as_mut().map(|more| &mut more.beyond).filter(|beyond| !beyond.is_empty());
        let in_order = self.expected < seq + len && holes.is_none();
        self.expected = self.expected.max(seq + len);
        if let Some(beyond) = holes {
            self.expected = beyond.advance(self.expected);
        }
        in_order
    }

    /// Returns `true` if anything has arrived beyond a gap.
    pub fn has_gaps(&self) -> bool {
        self.more.as_ref().is_some_and(|more| !more.beyond.is_empty())
    }

    /// Returns the parts of `[from, to)` that have not arrived, in order.
    pub fn gaps(&self, from: u64, to: u64) -> impl Iterator<Item = (u64, u64)> + '_ {
        let mut from = from.max(self.expected);
        std::iter::from_fn(move || {
            let whole = (from < to).then_some((from, to));
            let gap = self.more.as_ref().map_or(whole, |more| more.beyond.missing_in(from, to))?;
            from = gap.1;
            Some(gap)
        })
    }

    /// Returns the ranges that have arrived beyond `expected`, that of byte `latest` first (RFC 2018 section 4); empty
    /// ranges fill the rest.
    pub fn sacks(&self, latest: u64) -> [(u64, u64); MAX_SACKS] {
        let mut sacks = [(0, 0); MAX_SACKS];
        let Some(more) = &self.more else { return sacks };
        let first = more.beyond.around(latest);
        let others = more.beyond.iter().filter(|&r| Some(r) != first);
        for (sack, range) in sacks.iter_mut().zip(first.into_iter().chain(others)) {
            *sack = range;
        }
        sacks
    }

    /// Returns `true` if a marked packet that arrives at `now_ps` is answered with a CNP: at most one per
    /// `interval_ps`.
    pub fn should_notify(&mut self, now_ps: u64, interval_ps: u64, by_clock: bool) -> bool {
        let more = self.more();
        let notify = more.cnp_at_ps <= now_ps;
        if notify {
            let from_ps = if by_clock { now_ps / interval_ps.max(1) * interval_ps } else { now_ps };
            more.cnp_at_ps = from_ps + interval_ps;
        }
        notify
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn go_back_n_reports_a_gap_once_per_interval() {
        let mut rx = Receiver::default();
        let mut data = |seq, now| rx.on_data(seq, 10, Recovery::GoBackN, now, 100);
        assert_eq!(data(0, 0), Reply::Ack);
        assert_eq!(data(20, 1), Reply::Nack);
        assert_eq!(data(30, 2), Reply::Nothing);
        assert_eq!(data(40, 101), Reply::Nack);
        assert_eq!(data(10, 102), Reply::Ack);
        assert_eq!(data(30, 103), Reply::Nack, "a new gap is reported at once");
        assert_eq!(data(0, 104), Reply::Ack, "duplicates are acknowledged, or a lost acknowledgment would be final");
        assert_eq!(rx.expected, 20);
    }

    #[test]
    fn selective_repeat_keeps_what_is_out_of_order() {
        let mut rx = Receiver::default();
        assert_eq!(rx.on_data(10, 10, Recovery::SelectiveRepeat, 0, 0), Reply::Nack);
        assert_eq!(rx.on_data(0, 10, Recovery::SelectiveRepeat, 1, 0), Reply::Ack);
        assert_eq!(rx.expected, 20);
    }

    #[test]
    fn a_patient_receiver_reports_a_gap_once_it_is_old() {
        let mut rx = Receiver::default();
        let mut data = |seq, now| rx.on_data(seq, 10, Recovery::SelectiveRepeat, now, 100);
        assert_eq!([data(10, 5), data(20, 104), data(30, 105)], [Reply::Ack, Reply::Ack, Reply::Nack]);
        // The next gap has its own time.
        assert_eq!([data(0, 106), data(50, 107), data(60, 206)], [Reply::Ack, Reply::Ack, Reply::Ack]);
        assert_eq!(data(70, 207), Reply::Nack);
    }
}
