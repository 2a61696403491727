use super::ranges::Ranges;
use super::tcp::{MAX_SACKS, TcpReceiver};
use crate::config::Recovery;

/// The receiving end of one flow.
#[derive(Clone, Debug, Default)]
pub struct Receiver {
    /// The byte expected next: all before it has arrived.
    pub expected: u64,
    /// Earliest time of the next NACK for the same gap, in picoseconds.
    nack_at_ps: u64,
    /// What was expected when the last NACK was sent.
    nacked: Option<u64>,
    /// Earliest time of the next CNP, in picoseconds.
    cnp_at_ps: u64,
    /// Selective repeat: what has arrived beyond `expected`.
    beyond: Ranges,
    /// TCP: when to acknowledge.
    pub tcp: TcpReceiver,
}

/// How a receiver answers a data packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reply {
    /// An acknowledgment.
    Ack,
    /// An acknowledgment that reports a gap.
    Nack,
    /// Silence.
    Nothing,
}

impl Receiver {
    /// A receiver whose first byte has this number.
    pub fn starting_at(seq: u64) -> Self {
        Self { expected: seq, ..Self::default() }
    }

    /// Takes payload `[seq, seq + len)`.
    #[inline]
    pub fn on_data(&mut self, seq: u64, len: u64, recovery: Recovery, now_ps: u64, nack_interval_ps: u64) -> Reply {
        if seq == self.expected {
            self.expected = seq + len;
            if !self.beyond.is_empty() {
                self.expected = self.beyond.advance(self.expected);
            }
            return Reply::Ack;
        }
        if seq < self.expected {
            return Reply::Ack;
        }
        if recovery == Recovery::SelectiveRepeat {
            self.beyond.insert(seq, seq + len);
            return Reply::Nack;
        }
        if now_ps < self.nack_at_ps && self.nacked == Some(self.expected) {
            return Reply::Nothing;
        }
        self.nack_at_ps = now_ps + nack_interval_ps;
        self.nacked = Some(self.expected);
        Reply::Nack
    }

    /// Takes payload `[seq, seq + len)`, in order or not. Whether it was what was expected and leaves no hole behind.
    pub fn take(&mut self, seq: u64, len: u64) -> bool {
        let had_hole = !self.beyond.is_empty();
        if self.expected < seq {
            self.beyond.insert(seq, seq + len);
            return false;
        }
        let in_order = self.expected < seq + len && !had_hole;
        self.expected = self.expected.max(seq + len);
        if had_hole {
            self.expected = self.beyond.advance(self.expected);
        }
        in_order
    }

    /// Ranges that have arrived beyond `expected`, that of byte `latest` first (RFC 2018 section 4); empty ones mean none.
    pub fn sacks(&self, latest: u64) -> [(u64, u64); MAX_SACKS] {
        let mut sacks = [(0, 0); MAX_SACKS];
        if self.beyond.is_empty() {
            return sacks;
        }
        let first = self.beyond.iter().find(|r| r.0 <= latest && latest < r.1);
        let others = self.beyond.iter().filter(|&r| Some(r) != first);
        for (sack, range) in sacks.iter_mut().zip(first.into_iter().chain(others)) {
            *sack = range;
        }
        sacks
    }

    /// Whether a marked packet that arrives now is answered with a CNP.
    pub fn should_notify(&mut self, now_ps: u64, interval_ps: u64) -> bool {
        let notify = self.cnp_at_ps <= now_ps;
        if notify {
            self.cnp_at_ps = now_ps + interval_ps;
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
        assert_eq!(rx.on_data(10, 10, Recovery::SelectiveRepeat, 0, 100), Reply::Nack);
        assert_eq!(rx.on_data(0, 10, Recovery::SelectiveRepeat, 1, 100), Reply::Ack);
        assert_eq!(rx.expected, 20);
    }
}
