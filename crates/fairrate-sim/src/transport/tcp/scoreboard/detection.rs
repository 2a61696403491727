//! Which segments are lost: by time (RACK, RFC 8985), by number (RFC 6675), or at a timeout.

use super::Scoreboard;
use super::order::NONE;

/// How a sender finds losses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LossDetection {
    /// By time (RACK, RFC 8985).
    Rack,
    /// By the number of segments delivered beyond (RFC 6675).
    Sack,
    /// Not before a timeout.
    Timeout,
}

/// Segments delivered beyond a hole that show a loss, in RFC 8985 before any reordering was seen (DupThresh).
const DUP_THRESH: usize = 3;

impl Scoreboard {
    /// Bytes newly found lost.
    pub(super) fn detect(&mut self, repairing: bool, now_ps: u64) -> u64 {
        match self.detection {
            LossDetection::Rack => self.detect_by_time(repairing, now_ps),
            LossDetection::Sack => self.detect_by_number(),
            LossDetection::Timeout => 0,
        }
    }

    /// RFC 8985 section 6.2, step 5: what was sent before the newest delivered segment and has had its time is lost.
    fn detect_by_time(&mut self, repairing: bool, now_ps: u64) -> u64 {
        self.reorder_ps = u64::MAX;
        let Some(newest) = self.newest else { return 0 };
        let patience = self.rack_rtt_ps.saturating_add(self.reorder_window_ps(repairing));
        let mut lost = 0;
        while self.oldest != NONE {
            let at = self.place(self.oldest);
            let s = self.segments[at];
            if newest <= (s.sent_ps, self.first_byte(at) + u64::from(s.len)) {
                break;
            }
            let due = s.sent_ps.saturating_add(patience);
            if now_ps < due {
                self.reorder_ps = due;
                break;
            }
            self.lose(at);
            lost += u64::from(s.len);
        }
        lost
    }

    /// RFC 6675 section 4, IsLost: three segments beyond have been delivered. What was sent again is not looked at.
    fn detect_by_number(&mut self) -> u64 {
        let Some(edge) = self.beyond.nth_last(DUP_THRESH as u64 * self.mss) else { return 0 };
        let (mut lost, mut number) = (0, self.oldest);
        while number != NONE {
            let at = self.place(number);
            let s = self.segments[at];
            number = s.after;
            if s.again {
                continue;
            }
            if edge <= self.first_byte(at) {
                break;
            }
            self.lose(at);
            lost += u64::from(s.len);
        }
        lost
    }

    /// A segment in flight is taken for lost.
    fn lose(&mut self, at: usize) {
        self.unlink(at);
        self.segments[at].lost = true;
        self.pipe -= u64::from(self.segments[at].len);
        let number = self.number(at);
        // Losses are mostly found in the order of the bytes.
        if self.to_resend.back().is_none_or(|&last| self.place(last) < at) {
            self.to_resend.push_back(number);
        } else {
            let place = self.to_resend.partition_point(|&n| self.place(n) < at);
            self.to_resend.insert(place, number);
        }
    }

    /// RFC 8985 section 6.2, step 4: how late a segment may be. Not at all while losses are being repaired, or once three
    /// segments beyond a hole have arrived and no reordering was ever seen; a quarter of the smallest RTT otherwise.
    fn reorder_window_ps(&self, repairing: bool) -> u64 {
        if !self.reordering && (repairing || DUP_THRESH <= self.n_sacked) { 0 } else { self.min_rtt_ps / 4 }
    }

    /// The time of [`Scoreboard::reorder_ps`] has come; bytes newly found lost.
    pub fn on_reorder_timer(&mut self, repairing: bool, now_ps: u64) -> u64 {
        self.detect(repairing, now_ps)
    }

    /// The retransmission timer has expired: everything not delivered is lost.
    pub fn on_timeout(&mut self) {
        self.to_resend.clear();
        for at in 0..self.segments.len() {
            let number = self.number(at);
            let s = &mut self.segments[at];
            if !s.sacked {
                (s.lost, s.before, s.after) = (true, NONE, NONE);
                self.to_resend.push_back(number);
            }
        }
        (self.oldest, self.latest) = (NONE, NONE);
        self.pipe = 0;
        self.reorder_ps = u64::MAX;
    }

    /// A lost segment need not be sent again.
    pub(super) fn forget_lost(&mut self, at: usize) {
        if let Ok(place) = self.to_resend.binary_search_by_key(&at, |&n| self.place(n)) {
            self.to_resend.remove(place);
        }
    }
}
