//! Detection of lost segments: by time (RACK, RFC 8985), by number (RFC 6675), or at a timeout.

use super::Scoreboard;
use super::order::NONE;

/// A sender's method of loss detection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LossDetection {
    /// By time (RACK, RFC 8985).
    Rack,
    /// By the number of segments delivered beyond (RFC 6675).
    Sack,
    /// Only by a timeout.
    Timeout,
}

/// Number of segments delivered beyond a hole that show a loss; in RFC 8985, before any reordering was seen
/// (DupThresh).
const DUP_THRESH: usize = 3;

impl Scoreboard {
    /// Marks lost segments; returns the bytes newly found lost.
    pub(super) fn detect(&mut self, repairing: bool, now_ps: u64) -> u64 {
        match self.detection {
            LossDetection::Rack => self.detect_by_time(repairing, now_ps),
            LossDetection::Sack => self.detect_by_number(),
            LossDetection::Timeout => 0,
        }
    }

    /// Marks as lost what was sent before the newest delivered segment and has waited long enough (RFC 8985 section
    /// 6.2, step 5).
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

    /// Marks segments as lost once three segments beyond are delivered (RFC 6675 section 4, IsLost). Segments sent
    /// again are skipped.
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

    /// Marks the segment in flight at position `at` as lost.
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

    /// Returns the reordering window (RFC 8985 section 6.2, step 4): zero while losses are being repaired, or once
    /// three segments beyond a hole have arrived, if no reordering was ever seen; a quarter of the smallest RTT
    /// otherwise.
    fn reorder_window_ps(&self, repairing: bool) -> u64 {
        if !self.reordering && (repairing || DUP_THRESH <= self.n_sacked) { 0 } else { self.min_rtt_ps / 4 }
    }

    /// Handles the time of [`Scoreboard::reorder_ps`]; returns the bytes newly found lost.
    pub fn on_reorder_timer(&mut self, repairing: bool, now_ps: u64) -> u64 {
        self.detect(repairing, now_ps)
    }

    /// Marks everything not delivered as lost: the retransmission timer has expired.
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

    /// Removes the lost segment at position `at` from those to send again.
    pub(super) fn forget_lost(&mut self, at: usize) {
        if let Ok(place) = self.to_resend.binary_search_by_key(&at, |&n| self.place(n)) {
            self.to_resend.remove(place);
        }
    }
}
