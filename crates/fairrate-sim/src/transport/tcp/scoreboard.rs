//! A TCP sender's record of every segment in flight: selective acknowledgments (RFC 2018), loss detection by time
//! (RACK-TLP, RFC 8985) and the bytes in flight.
//!
//! Segments begin at multiples of the segment size, so that one division finds a byte's segment. A segment is lost when
//! one sent later has been delivered and more than a reordering window has passed since (section 6.2); a probe at the
//! tail (section 7) turns the loss of the last segments into one that is detected this way; a timeout is the last
//! resort. With the older rule, which ns-3 uses, a segment is lost when three beyond it have been delivered (RFC 6675):
//! then only the timeout detects the loss of a segment that was sent again.
//!
//! Segments that may still be declared lost are also linked in the order of sending, so that an acknowledgment reads
//! only the segments it finds lost and one more, whatever the window.

mod detection;
mod order;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;

pub use detection::LossDetection;
use order::NONE;

use crate::transport::ranges::Ranges;

/// One segment in flight.
#[derive(Clone, Copy, Debug)]
struct Segment {
    /// Time at which it was sent last, in picoseconds.
    sent_ps: u64,
    /// Bytes the connection had delivered when it was sent last, and the time of the last such delivery, for rate
    /// samples.
    delivered: u64,
    delivered_ps: u64,
    /// Send time of the segment whose delivery was the last at that time.
    first_ps: u64,
    len: u32,
    /// The numbers of the segments sent before and after it, among those that are neither delivered nor lost.
    before: u32,
    after: u32,
    /// Set when there was no more data to send after it.
    app_limited: bool,
    /// Set when it is delivered, though not all bytes before it.
    sacked: bool,
    /// Set when it is considered lost and not sent again yet.
    lost: bool,
    /// Set when it was sent more than once: its round-trip time is ambiguous.
    again: bool,
}

/// The effect of an acknowledgment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Acked {
    /// Bytes newly acknowledged in order.
    pub cumulative: u64,
    /// Bytes newly delivered, in order or not.
    pub delivered: u64,
    /// Round-trip time of the segment sent last among those newly delivered, if it was sent once; in picoseconds.
    pub rtt_ps: Option<u64>,
    /// Bytes newly found lost.
    pub lost: u64,
    /// Delivery rate over the last round trip: bytes delivered, and the time that took in picoseconds.
    pub rate: Option<(u64, u64)>,
    /// Bytes that had been delivered when that round trip began.
    pub prior_delivered: u64,
    /// `true` if the sample was limited by the data available to send.
    pub app_limited: bool,
}

/// The segments between the first unacknowledged byte and the next new one.
#[derive(Clone, Debug)]
pub struct Scoreboard {
    mss: u64,
    /// First unacknowledged byte.
    una: u64,
    /// Next new byte.
    nxt: u64,
    segments: VecDeque<Segment>,
    /// The number of the first segment. Numbers wrap around; their distance from this one is the position in
    /// `segments`.
    first: u32,
    /// Segments neither delivered nor lost, in order of sending: the ends of the list.
    oldest: u32,
    latest: u32,
    /// Numbers of the segments that are lost and not sent again, ascending.
    to_resend: VecDeque<u32>,
    /// Ranges delivered beyond `una`, and the number of their segments.
    beyond: Ranges,
    n_sacked: usize,
    /// Bytes sent and neither delivered nor lost.
    pipe: u64,
    /// Send time and end of the segment sent last among all that are delivered (RACK.xmit_ts, .end_seq).
    newest: Option<(u64, u64)>,
    /// Latest round-trip time by RACK's rules.
    rack_rtt_ps: u64,
    min_rtt_ps: u64,
    /// `true` if a segment that was not lost has arrived out of order.
    reordering: bool,
    /// End of the highest segment delivered, used to detect reordering.
    highest: u64,
    /// Bytes delivered so far, and the time of the last delivery.
    delivered: u64,
    delivered_ps: u64,
    /// Send time of the segment that was delivered last.
    first_ps: u64,
    /// Time at which a segment may be declared lost if nothing arrives; `u64::MAX` if none waits.
    reorder_ps: u64,
    /// Method of loss detection before a timeout.
    detection: LossDetection,
}

impl Scoreboard {
    /// Returns a scoreboard with nothing in flight.
    pub fn new(mss: u64, detection: LossDetection) -> Self {
        Self {
            mss,
            una: 0,
            nxt: 0,
            segments: VecDeque::new(),
            first: 0,
            oldest: NONE,
            latest: NONE,
            to_resend: VecDeque::new(),
            beyond: Ranges::default(),
            n_sacked: 0,
            pipe: 0,
            newest: None,
            rack_rtt_ps: 0,
            min_rtt_ps: u64::MAX,
            reordering: false,
            highest: 0,
            delivered: 0,
            delivered_ps: 0,
            first_ps: 0,
            reorder_ps: u64::MAX,
            detection,
        }
    }

    /// Returns a scoreboard whose first byte has number `seq`, a multiple of the segment size.
    pub fn starting_at(mss: u64, detection: LossDetection, seq: u64) -> Self {
        Self { una: seq, nxt: seq, highest: seq, ..Self::new(mss, detection) }
    }

    /// Leaves the detection of losses to timeouts from now on.
    pub fn stop_detecting(&mut self) {
        self.detection = LossDetection::Timeout;
    }

    /// Takes a round-trip time measured elsewhere: by the handshake.
    pub fn note_rtt(&mut self, rtt_ps: u64) {
        self.min_rtt_ps = self.min_rtt_ps.min(rtt_ps);
    }

    /// Returns the bytes in flight: sent, and neither delivered nor lost.
    pub fn pipe(&self) -> u64 {
        self.pipe
    }

    /// Returns the first unacknowledged byte.
    pub fn una(&self) -> u64 {
        self.una
    }

    /// Returns the first bytes of the segments not reported as arrived.
    pub fn undelivered(&self) -> impl Iterator<Item = u64> + '_ {
        (0..self.segments.len()).filter(|&at| !self.segments[at].sacked).map(|at| self.first_byte(at))
    }

    /// Returns `true` if a segment waits to be sent again.
    pub fn has_lost(&self) -> bool {
        !self.to_resend.is_empty()
    }

    /// Returns `true` if every byte sent is acknowledged.
    pub fn is_empty(&self) -> bool {
        self.segments.is_empty()
    }

    /// Returns `true` if a segment beyond a hole has been delivered.
    pub fn has_sacked(&self) -> bool {
        0 < self.n_sacked
    }

    /// Returns `true` if a single segment is in flight.
    pub fn is_single(&self) -> bool {
        self.segments.len() == 1
    }

    /// Returns the time at which [`Scoreboard::on_reorder_timer`] is to be called, in picoseconds; `u64::MAX` if it is
    /// not.
    pub fn reorder_ps(&self) -> u64 {
        self.reorder_ps
    }

    /// Records a new segment of `len` bytes from the next new byte on; `last` is set if there is no more data to send.
    pub fn send_new(&mut self, len: u64, last: bool, now_ps: u64) {
        debug_assert!(
            0 < len && len <= self.mss && self.nxt.is_multiple_of(self.mss),
            "segments are whole but the last"
        );
        if self.segments.is_empty() {
            // Nothing is in flight, so the sample begins now.
            (self.delivered_ps, self.first_ps) = (now_ps, now_ps);
        }
        self.segments.push_back(Segment {
            sent_ps: now_ps,
            delivered: self.delivered,
            delivered_ps: self.delivered_ps,
            first_ps: self.first_ps,
            len: len as u32,
            before: NONE,
            after: NONE,
            app_limited: last,
            sacked: false,
            lost: false,
            again: false,
        });
        self.link(self.segments.len() - 1);
        self.nxt += len;
        self.pipe += len;
    }

    /// Records that after the newest segment there is no more data to send.
    pub fn note_last(&mut self) {
        if let Some(segment) = self.segments.back_mut() {
            segment.app_limited = true;
        }
    }

    /// Takes the first lost segment, which is sent again now; returns its first byte and length.
    pub fn send_lost(&mut self, now_ps: u64) -> Option<(u64, u64)> {
        let number = self.to_resend.pop_front()?;
        let at = self.place(number);
        self.pipe += u64::from(self.segments[at].len);
        Some(self.send_again(at, now_ps))
    }

    /// Takes the segment that probes the tail if there is no new data: the last one not delivered (RFC 8985 section
    /// 7.3).
    pub fn send_probe(&mut self, now_ps: u64) -> Option<(u64, u64)> {
        let at = (0..self.segments.len()).rev().find(|&i| !self.segments[i].sacked)?;
        self.take_out(at);
        Some(self.send_again(at, now_ps))
    }

    fn send_again(&mut self, at: usize, now_ps: u64) -> (u64, u64) {
        let (delivered, delivered_ps, first_ps) = (self.delivered, self.delivered_ps, self.first_ps);
        let s = &mut self.segments[at];
        *s = Segment { sent_ps: now_ps, delivered, delivered_ps, first_ps, lost: false, again: true, ..*s };
        let len = u64::from(s.len);
        self.link(at);
        (self.first_byte(at), len)
    }

    /// Removes a segment in flight or lost from its list, before it is sent again.
    fn take_out(&mut self, at: usize) {
        if self.segments[at].lost {
            self.pipe += u64::from(self.segments[at].len);
            self.forget_lost(at);
        } else {
            self.unlink(at);
        }
    }

    /// Takes an acknowledgment of all bytes below `ack` and of the ranges `sacks`, which may be in any order.
    /// `repairing` is set while losses are being repaired, so that reordering is no reason to wait.
    pub fn on_ack(&mut self, ack: u64, sacks: &[(u64, u64)], repairing: bool, now_ps: u64) -> Acked {
        let mut acked = Acked::default();
        let mut latest: Option<Segment> = None;
        if self.una < ack && ack <= self.nxt {
            self.advance(ack, &mut acked, &mut latest, now_ps);
        }
        // Most acknowledgments report no ranges.
        for &(from, to) in sacks.iter().filter(|range| range.0 < range.1) {
            self.on_sack(from, to, &mut acked, &mut latest, now_ps);
        }
        if 0 < acked.delivered {
            self.delivered_ps = now_ps;
        }
        if let Some(segment) = latest {
            self.sample_rate(&segment, &mut acked, now_ps);
        }
        acked.lost = self.detect(repairing, now_ps);
        acked
    }

    /// Removes the segments below `ack`, all of which have arrived.
    fn advance(&mut self, ack: u64, acked: &mut Acked, latest: &mut Option<Segment>, now_ps: u64) {
        acked.cumulative = ack - self.una;
        while let Some(&segment) = self.segments.front() {
            let end = self.una + u64::from(segment.len);
            if ack < end {
                break;
            }
            if segment.sacked {
                self.n_sacked -= 1;
            } else {
                self.deliver(0, end, acked, latest, now_ps);
            }
            self.segments.pop_front();
            self.first = self.number(1);
            self.una = end;
        }
        if !self.beyond.is_empty() {
            self.beyond.advance(self.una);
        }
    }

    fn on_sack(&mut self, from: u64, to: u64, acked: &mut Acked, latest: &mut Option<Segment>, now_ps: u64) {
        let (mut from, to) = (from.max(self.una), to.min(self.nxt));
        // Ranges that an earlier acknowledgment reported are skipped as a whole.
        while let Some((start, end)) = self.beyond.missing_in(from, to) {
            let first = (start - self.una).div_ceil(self.mss) as usize;
            for at in first..self.segments.len() {
                let segment_end = self.first_byte(at) + u64::from(self.segments[at].len);
                if end < segment_end {
                    break;
                }
                self.deliver(at, segment_end, acked, latest, now_ps);
                self.segments[at].sacked = true;
                self.segments[at].lost = false;
                self.n_sacked += 1;
                self.beyond.insert(self.first_byte(at), segment_end);
            }
            from = end;
        }
    }

    /// Records the delivery of the segment at position `at`, which ends at byte `end`.
    fn deliver(&mut self, at: usize, end: u64, acked: &mut Acked, latest: &mut Option<Segment>, now_ps: u64) {
        let s = self.segments[at];
        let len = u64::from(s.len);
        if s.lost {
            self.forget_lost(at);
        } else {
            self.pipe -= len;
            self.unlink(at);
        }
        acked.delivered += len;
        self.delivered += len;
        if end < self.highest && !s.again {
            self.reordering = true;
        }
        self.highest = self.highest.max(end);
        let rtt_ps = now_ps - s.sent_ps;
        // A segment sent again whose acknowledgment arrives sooner than any round trip was delivered the first time.
        if s.again && rtt_ps < self.min_rtt_ps {
            return;
        }
        if !s.again {
            self.min_rtt_ps = self.min_rtt_ps.min(rtt_ps);
        }
        if latest.is_none_or(|l| (l.sent_ps, l.again) <= (s.sent_ps, s.again)) {
            acked.rtt_ps = (!s.again).then_some(rtt_ps);
            *latest = Some(s);
        }
        if self.newest.is_none_or(|newest| newest < (s.sent_ps, end)) {
            self.newest = Some((s.sent_ps, end));
            self.rack_rtt_ps = rtt_ps;
        }
    }

    /// Samples the delivery rate since the time at which `segment`, the one sent last among those delivered now, was
    /// sent.
    fn sample_rate(&mut self, segment: &Segment, acked: &mut Acked, now_ps: u64) {
        // Segments sent in a burst, or acknowledged in one, were not delivered that fast.
        let sending = segment.sent_ps.saturating_sub(segment.first_ps);
        let interval = now_ps.saturating_sub(segment.delivered_ps).max(sending);
        self.first_ps = segment.sent_ps;
        acked.app_limited = segment.app_limited;
        acked.prior_delivered = segment.delivered;
        // Less than a round trip is no sample: a segment was sent again though it had arrived (Linux).
        if 0 < interval && self.min_rtt_ps <= interval {
            acked.rate = Some((self.delivered - segment.delivered, interval));
        }
    }
}
