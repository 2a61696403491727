//! What a TCP sender knows of every segment in flight: selective acknowledgments (RFC 2018), loss detection by time
//! (RACK-TLP, RFC 8985) and the bytes in flight.
//!
//! Segments begin at multiples of the segment size, so that a byte's segment is a division away. A segment is lost when
//! one sent later has been delivered and more than a reordering window has passed since (section 6.2); a probe at the
//! tail (section 7) turns the loss of the last segments into one that is detected this way; a timeout is the last resort.
//! Or, as TCP did before and ns-3 does, a segment is lost when three beyond it have been delivered (RFC 6675): then the loss
//! of one that was sent again is left to the timeout.
//!
//! Segments that may still be declared lost are also linked in the order they were sent in, so that an acknowledgment
//! looks at those it finds lost and at one more, whatever the window.

use std::collections::VecDeque;

use crate::transport::ranges::Ranges;

/// Numbers of segments wrap around at this power of two, far above any window.
const NUMBERS: u32 = 1 << 31;
/// No segment: the end of the list in order of sending.
const NONE: u32 = u32::MAX;
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

/// One segment in flight.
#[derive(Clone, Copy, Debug)]
struct Segment {
    /// When it was sent last, in picoseconds.
    sent_ps: u64,
    /// Bytes delivered by the connection when it was sent last, and when the last of those was, for rate samples.
    delivered: u64,
    delivered_ps: u64,
    /// When that segment had been sent whose delivery was the last then.
    first_ps: u64,
    len: u32,
    /// The numbers of the segments sent before and after it, of those that are neither delivered nor lost.
    before: u32,
    after: u32,
    /// Sent when there was nothing more to send.
    app_limited: bool,
    /// Delivered, though not all before it.
    sacked: bool,
    /// Taken for lost, and not sent again yet.
    lost: bool,
    /// Sent more than once: its round-trip time is ambiguous.
    again: bool,
}

/// What an acknowledgment brought.
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
    /// Delivery rate over the last round trip, in bytes and picoseconds: (delivered, in how long).
    pub rate: Option<(u64, u64)>,
    /// Bytes that had been delivered when that round trip began.
    pub prior_delivered: u64,
    /// Whether that was limited by what there was to send.
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
    /// The number of the first of them. Numbers wrap around; their distance from this one is the place in `segments`.
    first: u32,
    /// Those neither delivered nor lost, in order of sending: the ends of the list.
    oldest: u32,
    latest: u32,
    /// Numbers of those that are lost and not sent again, ascending.
    to_resend: VecDeque<u32>,
    /// What has been delivered beyond `una`, and in how many segments.
    beyond: Ranges,
    n_sacked: usize,
    /// Bytes sent and neither delivered nor lost.
    pipe: u64,
    /// When the segment was sent that was sent last of all that are delivered, and its last byte (RACK.xmit_ts, .end_seq).
    newest: Option<(u64, u64)>,
    /// Latest round-trip time by RACK's rules.
    rack_rtt_ps: u64,
    min_rtt_ps: u64,
    /// Whether anything arrived out of order that was not lost.
    reordering: bool,
    /// Highest byte delivered, to see reordering by.
    highest: u64,
    /// Bytes delivered so far, and when the last were.
    delivered: u64,
    delivered_ps: u64,
    /// When the segment was sent that was delivered last.
    first_ps: u64,
    /// When a segment may be declared lost if nothing arrives; `u64::MAX`: none waits.
    reorder_ps: u64,
    /// How losses are detected before a timeout.
    detection: LossDetection,
}

impl Scoreboard {
    /// Nothing in flight.
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

    /// The same for a connection whose first byte has this number, a multiple of the segment size.
    pub fn starting_at(mss: u64, detection: LossDetection, seq: u64) -> Self {
        Self { una: seq, nxt: seq, highest: seq, ..Self::new(mss, detection) }
    }

    /// From now on only timeouts tell of losses.
    pub fn stop_detecting(&mut self) {
        self.detection = LossDetection::Timeout;
    }

    /// A round-trip time known from elsewhere: the handshake's.
    pub fn note_rtt(&mut self, rtt_ps: u64) {
        self.min_rtt_ps = self.min_rtt_ps.min(rtt_ps);
    }

    /// Bytes in flight: sent, and neither delivered nor lost.
    pub fn pipe(&self) -> u64 {
        self.pipe
    }

    /// First unacknowledged byte.
    pub fn una(&self) -> u64 {
        self.una
    }

    /// First bytes of the segments that are not known to have arrived.
    pub fn undelivered(&self) -> impl Iterator<Item = u64> + '_ {
        (0..self.segments.len()).filter(|&at| !self.segments[at].sacked).map(|at| self.first_byte(at))
    }

    /// Whether anything waits to be sent again.
    pub fn has_lost(&self) -> bool {
        !self.to_resend.is_empty()
    }

    /// Whether every byte sent is acknowledged.
    pub fn is_empty(&self) -> bool {
        self.segments.is_empty()
    }

    /// Whether anything beyond a hole has been delivered.
    pub fn has_sacked(&self) -> bool {
        0 < self.n_sacked
    }

    /// Whether a single segment is in flight.
    pub fn is_single(&self) -> bool {
        self.segments.len() == 1
    }

    /// When [`Scoreboard::on_reorder_timer`] is to be called, in picoseconds; `u64::MAX`: not.
    pub fn reorder_ps(&self) -> u64 {
        self.reorder_ps
    }

    /// Notes a new segment of `len` bytes from the next new byte on; `last`: there is nothing more to send.
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

    /// The newest segment leaves nothing more to send.
    pub fn note_last(&mut self) {
        if let Some(segment) = self.segments.back_mut() {
            segment.app_limited = true;
        }
    }

    /// Takes the first lost segment to be sent again now: its first byte and length.
    pub fn send_lost(&mut self, now_ps: u64) -> Option<(u64, u64)> {
        let number = self.to_resend.pop_front()?;
        let at = self.place(number);
        self.pipe += u64::from(self.segments[at].len);
        Some(self.send_again(at, now_ps))
    }

    /// The segment to probe the tail with if there is no new data: the last one not delivered (RFC 8985 section 7.3).
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

    /// A segment that was in flight or lost leaves the list it is in, to be sent again now.
    fn take_out(&mut self, at: usize) {
        if self.segments[at].lost {
            self.pipe += u64::from(self.segments[at].len);
            self.forget_lost(at);
        } else {
            self.unlink(at);
        }
    }

    /// Takes an acknowledgment of all bytes below `ack` and of the ranges `sacks`, which may be in any order; `repairing`:
    /// losses are being repaired, so that reordering is no reason to wait.
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

    /// All bytes below `ack` have arrived.
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
        // What an earlier acknowledgment reported is passed over as a whole.
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

    /// A segment that was not known to be delivered is.
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
        // A segment sent again whose acknowledgment comes sooner than any round trip was delivered the first time.
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

    /// The delivery rate from when the segment was sent that was sent last of those delivered now.
    fn sample_rate(&mut self, segment: &Segment, acked: &mut Acked, now_ps: u64) {
        // What was sent in a burst, or acknowledged in one, was not delivered that fast.
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

    /// Bytes newly found lost.
    fn detect(&mut self, repairing: bool, now_ps: u64) -> u64 {
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

    fn first_byte(&self, at: usize) -> u64 {
        self.una + at as u64 * self.mss
    }

    fn number(&self, at: usize) -> u32 {
        self.first.wrapping_add(at as u32) % NUMBERS
    }

    fn place(&self, number: u32) -> usize {
        (number.wrapping_sub(self.first) % NUMBERS) as usize
    }

    /// A segment is sent now, after all others.
    fn link(&mut self, at: usize) {
        let number = self.number(at);
        let before = std::mem::replace(&mut self.latest, number);
        (self.segments[at].before, self.segments[at].after) = (before, NONE);
        if before == NONE {
            self.oldest = number;
        } else {
            let before = self.place(before);
            self.segments[before].after = number;
        }
    }

    /// A segment is no longer in flight.
    fn unlink(&mut self, at: usize) {
        let Segment { before, after, .. } = self.segments[at];
        if before == NONE {
            self.oldest = after;
        } else {
            let before = self.place(before);
            self.segments[before].after = after;
        }
        if after == NONE {
            self.latest = before;
        } else {
            let after = self.place(after);
            self.segments[after].before = before;
        }
    }

    /// A lost segment need not be sent again.
    fn forget_lost(&mut self, at: usize) {
        if let Ok(place) = self.to_resend.binary_search_by_key(&at, |&n| self.place(n)) {
            self.to_resend.remove(place);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MSS: u64 = 1_000;

    impl Scoreboard {
        fn in_order_of_sending(&self) -> impl Iterator<Item = &Segment> {
            let at = |number| (number != NONE).then(|| &self.segments[self.place(number)]);
            std::iter::successors(at(self.oldest), move |s| at(s.after))
        }
    }

    fn sent(n: u64) -> Scoreboard {
        let mut board = Scoreboard::new(MSS, LossDetection::Rack);
        (0..n).for_each(|i| board.send_new(MSS, false, 100 * i));
        board
    }

    #[test]
    fn a_hole_is_lost_when_something_sent_later_arrives() {
        let mut board = sent(5);
        let acked = board.on_ack(1_000, &[], false, 1_000);
        assert_eq!((acked.cumulative, acked.rtt_ps, board.pipe()), (1_000, Some(1_000), 4_000));
        // Segment 2 arrives, segment 1 does not: while losses are repaired, and without reordering so far, there is no patience.
        let acked = board.on_ack(1_000, &[(2_000, 3_000)], true, 1_200);
        assert_eq!((acked.delivered, acked.lost, board.pipe()), (1_000, 1_000, 2_000));
        assert_eq!(board.send_lost(1_210), Some((1_000, 1_000)));
        assert_eq!((board.send_lost(1_220), board.pipe()), (None, 3_000));
        // All arrive. The round-trip time is that of segment 4, not of the one sent twice.
        let acked = board.on_ack(5_000, &[], false, 2_300);
        assert_eq!((acked.cumulative, acked.delivered, board.pipe()), (4_000, 3_000, 0));
        assert!(board.is_empty());
    }

    #[test]
    fn reordering_teaches_patience() {
        let mut board = sent(6);
        board.on_ack(0, &[(1_000, 2_000)], true, 1_100);
        assert!(board.has_lost());
        // The first segment was only late: its acknowledgment comes before it was sent again.
        let acked = board.on_ack(2_000, &[], false, 1_150);
        assert_eq!((acked.delivered, board.has_lost(), board.pipe()), (1_000, false, 4_000));
        // From now on, a hole has a quarter of the smallest RTT, 1,000, to fill.
        let acked = board.on_ack(2_000, &[(3_000, 4_000)], false, 1_300);
        assert_eq!((acked.lost, board.reorder_ps()), (0, 200 + 1_000 + 250));
        assert_eq!(board.on_reorder_timer(false, 1_450), 1_000);
        assert_eq!(board.send_lost(1_460), Some((2_000, 1_000)));
    }

    #[test]
    fn by_number_three_segments_beyond_are_a_loss_once() {
        let mut board = Scoreboard::new(MSS, LossDetection::Sack);
        (0..9).for_each(|i| board.send_new(MSS, false, 100 * i));
        assert_eq!(board.on_ack(0, &[(1_000, 2_000), (4_000, 5_000)], false, 1_000).lost, 0);
        // Two segments and a third: everything below the first of the three is lost, what lies between them is not.
        assert_eq!(board.on_ack(0, &[(6_000, 7_000)], false, 1_100).lost, 1_000);
        assert_eq!(board.send_lost(1_110), Some((0, 1_000)));
        assert_eq!(board.on_ack(0, &[(7_000, 8_000)], false, 1_200).lost, 2_000);
        assert_eq!(board.send_lost(1_210), Some((2_000, 1_000)));
        // The first is lost again, which only a timeout tells.
        assert_eq!(board.on_ack(0, &[(2_000, 3_000), (8_000, 9_000)], true, 2_300).lost, 1_000);
        assert_eq!(board.reorder_ps(), u64::MAX);
    }

    #[test]
    fn a_probe_repairs_the_tail() {
        let mut board = sent(3);
        board.on_ack(1_000, &[], false, 1_000);
        // The last two are lost. The probe sends the last again; its arrival shows that the one before is lost.
        assert_eq!(board.send_probe(3_000), Some((2_000, 1_000)));
        assert_eq!(board.pipe(), 2_000);
        let acked = board.on_ack(1_000, &[(2_000, 3_000)], false, 4_000);
        assert_eq!((acked.lost, acked.rtt_ps), (1_000, None));
        assert_eq!(board.send_lost(4_000), Some((1_000, 1_000)));
    }

    #[test]
    fn a_timeout_loses_all_that_has_not_arrived() {
        let mut board = sent(4);
        board.on_ack(0, &[(2_000, 3_000)], false, 1_500);
        board.on_timeout();
        let again: Vec<_> = std::iter::from_fn(|| board.send_lost(9_000)).collect();
        assert_eq!(again, [(0, 1_000), (1_000, 1_000), (3_000, 1_000)]);
        assert_eq!(board.pipe(), 3_000);
        board.on_ack(4_000, &[], false, 10_000);
        assert!(board.is_empty() && board.pipe() == 0);
    }

    #[test]
    fn the_delivery_rate_is_that_of_a_round_trip() {
        let mut board = sent(3);
        let rates: Vec<_> = (1..=3).map(|i| board.on_ack(i * 1_000, &[], false, 900 + 100 * i).rate).collect();
        // All were sent before anything was delivered, since time 0.
        assert_eq!(rates, [Some((1_000, 1_000)), Some((2_000, 1_100)), Some((3_000, 1_200))]);
        board.send_new(MSS, true, 1_250);
        let acked = board.on_ack(4_000, &[], false, 2_250);
        assert_eq!((acked.rate, acked.app_limited), (Some((1_000, 1_000)), true));
        // Two segments sent 1,000 apart whose acknowledgments come together were not delivered at once: the second was
        // sent when the first, of time 3,000, was not yet acknowledged, so sending took the time since then.
        board.send_new(MSS, false, 3_000);
        board.send_new(MSS, false, 5_000);
        board.on_ack(5_000, &[], false, 6_000);
        assert_eq!(board.on_ack(6_000, &[], false, 6_010).rate, Some((2_000, 3_010)));
    }

    proptest! {
        /// Packets and acknowledgments are lost, duplicated and reordered at will; everything arrives in the end, and the
        /// bytes in flight are what a recount says.
        #[test]
        fn every_byte_arrives(
            fates in prop::collection::vec((0u8..10, 0u64..400), 1..400), n in 1u64..60, by_time: bool,
        ) {
            let detection = if by_time { LossDetection::Rack } else { LossDetection::Sack };
            let mut board = Scoreboard::new(MSS, detection);
            let total = n * MSS - 300;
            let (mut now, mut fates) = (0u64, fates.into_iter().cycle());
            let mut received = std::collections::BTreeSet::new();
            let mut wire: Vec<(u64, u64)> = Vec::new();
            let mut rounds = 0;
            while board.una < total {
                rounds += 1;
                prop_assert!(rounds < 20_000, "no end: {board:?}");
                now += 50;
                let next = board.send_lost(now).or_else(|| {
                    let seq = board.nxt;
                    (seq < total && board.pipe() < 10 * MSS).then(|| {
                        board.send_new(MSS.min(total - seq), false, now);
                        (seq, MSS.min(total - seq))
                    })
                });
                let (fate, delay) = fates.next().expect("it is a cycle");
                match next {
                    Some((seq, _)) if fate != 0 || rounds > 10_000 => wire.push((now + 500 + delay, seq)),
                    None if wire.is_empty() => board.on_timeout(),
                    Some(_) | None => {}
                }
                let due: Vec<u64> = wire.iter().filter(|w| w.0 <= now).map(|w| w.1).collect();
                wire.retain(|w| now < w.0);
                for seq in due {
                    received.insert(seq);
                    if fate == 1 && rounds <= 10_000 {
                        continue;
                    }
                    let edge = (0..=n).map(|i| i * MSS).find(|s| !received.contains(s)).expect("nothing lies at the end");
                    let sack = (seq, (seq + MSS).min(total));
                    let sacks = if edge <= seq { vec![sack] } else { vec![] };
                    board.on_ack(edge.min(total), &sacks, false, now);
                }
                if board.reorder_ps() <= now {
                    board.on_reorder_timer(false, now);
                }
                let count = |f: &dyn Fn(&Segment) -> bool| {
                    board.segments.iter().filter(|s| f(s)).map(|s| u64::from(s.len)).sum::<u64>()
                };
                prop_assert_eq!(board.pipe, count(&|s| !s.sacked && !s.lost));
                prop_assert_eq!(board.to_resend.len(), board.segments.iter().filter(|s| s.lost).count());
                prop_assert!(board.to_resend.iter().all(|&n| board.segments[board.place(n)].lost));
                prop_assert_eq!(board.n_sacked, board.segments.iter().filter(|s| s.sacked).count());
                let sent: Vec<u64> = board.in_order_of_sending().map(|s| s.sent_ps).collect();
                prop_assert_eq!(sent.len(), board.segments.iter().filter(|s| !s.sacked && !s.lost).count());
                prop_assert!(sent.is_sorted());
            }
            prop_assert_eq!(board.pipe(), 0);
        }
    }
}
