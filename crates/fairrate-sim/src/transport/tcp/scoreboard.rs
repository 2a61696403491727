//! What a TCP sender knows of every segment in flight: selective acknowledgments (RFC 2018), loss detection by time
//! (RACK-TLP, RFC 8985) and the bytes in flight.
//!
//! Segments begin at multiples of the segment size, so that a byte's segment is a division away. A segment is lost when
//! one sent later has been delivered and more than a reordering window has passed since (section 6.2); a probe at the
//! tail (section 7) turns the loss of the last segments into one that is detected this way; a timeout is the last resort.

use std::collections::VecDeque;

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
    /// Bytes sent and neither delivered nor lost.
    pipe: u64,
    /// Bytes lost and not sent again.
    lost: u64,
    /// Bytes beyond `una` that have arrived.
    sacked: u64,
    /// Where to look for the next lost segment: none before.
    lost_from: usize,
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
    /// Whether losses are detected before a timeout.
    detects: bool,
}

impl Scoreboard {
    /// Nothing in flight.
    pub fn new(mss: u64) -> Self {
        Self {
            mss,
            una: 0,
            nxt: 0,
            segments: VecDeque::new(),
            pipe: 0,
            lost: 0,
            sacked: 0,
            lost_from: 0,
            newest: None,
            rack_rtt_ps: 0,
            min_rtt_ps: u64::MAX,
            reordering: false,
            highest: 0,
            delivered: 0,
            delivered_ps: 0,
            first_ps: 0,
            reorder_ps: u64::MAX,
            detects: true,
        }
    }

    /// The same for a connection whose first byte has this number, a multiple of the segment size.
    pub fn starting_at(mss: u64, seq: u64) -> Self {
        Self { una: seq, nxt: seq, highest: seq, ..Self::new(mss) }
    }

    /// From now on only timeouts tell of losses.
    pub fn stop_detecting(&mut self) {
        self.detects = false;
    }

    /// Whether losses are found before a timeout.
    pub fn detects(&self) -> bool {
        self.detects
    }

    /// Bytes in flight: sent, and neither delivered nor lost.
    pub fn pipe(&self) -> u64 {
        self.pipe
    }

    /// First bytes of the segments that are not known to have arrived.
    pub fn undelivered(&self) -> impl Iterator<Item = u64> + '_ {
        (0..self.segments.len()).filter(|&at| !self.segments[at].sacked).map(|at| self.first_byte(at))
    }

    /// Whether anything waits to be sent again.
    pub fn has_lost(&self) -> bool {
        0 < self.lost
    }

    /// Whether every byte sent is acknowledged.
    pub fn is_empty(&self) -> bool {
        self.segments.is_empty()
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
            app_limited: last,
            sacked: false,
            lost: false,
            again: false,
        });
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
        if self.lost == 0 {
            return None;
        }
        let at = (self.lost_from..self.segments.len()).find(|&i| self.segments[i].lost)?;
        self.lost_from = at + 1;
        Some(self.send_again(at, now_ps))
    }

    /// The segment to probe the tail with if there is no new data: the last one not delivered (RFC 8985 section 7.3).
    pub fn send_probe(&mut self, now_ps: u64) -> Option<(u64, u64)> {
        let at = (0..self.segments.len()).rev().find(|&i| !self.segments[i].sacked)?;
        Some(self.send_again(at, now_ps))
    }

    fn send_again(&mut self, at: usize, now_ps: u64) -> (u64, u64) {
        let (delivered, delivered_ps, first_ps) = (self.delivered, self.delivered_ps, self.first_ps);
        let s = &mut self.segments[at];
        let len = u64::from(s.len);
        if s.lost {
            self.lost -= len;
            self.pipe += len;
        }
        *s = Segment { sent_ps: now_ps, delivered, delivered_ps, first_ps, lost: false, again: true, ..*s };
        (self.first_byte(at), len)
    }

    /// Takes an acknowledgment of all bytes below `ack` and of the ranges `sacks`, which may be in any order.
    pub fn on_ack(&mut self, ack: u64, sacks: &[(u64, u64)], now_ps: u64) -> Acked {
        let mut acked = Acked::default();
        let mut latest: Option<Segment> = None;
        let mut anything = false;
        if self.una < ack && ack <= self.nxt {
            acked.cumulative = ack - self.una;
            while let Some(&segment) = self.segments.front() {
                let end = self.una + u64::from(segment.len);
                if ack < end {
                    break;
                }
                if segment.sacked {
                    self.sacked -= u64::from(segment.len);
                } else {
                    anything = true;
                    self.deliver(&segment, end, &mut acked, &mut latest, now_ps);
                }
                self.segments.pop_front();
                self.lost_from = self.lost_from.saturating_sub(1);
                self.una = end;
            }
        }
        // Most acknowledgments report no ranges.
        for &(from, to) in sacks.iter().filter(|range| range.0 < range.1) {
            anything |= self.on_sack(from, to, &mut acked, &mut latest, now_ps);
        }
        if anything {
            self.delivered_ps = now_ps;
        }
        if let Some(segment) = latest {
            // What was sent in a burst, or acknowledged in one, was not delivered that fast.
            let sending = segment.sent_ps.saturating_sub(segment.first_ps);
            let interval = now_ps.saturating_sub(segment.delivered_ps).max(sending);
            self.first_ps = segment.sent_ps;
            acked.app_limited = segment.app_limited;
            acked.rate = (0 < interval).then_some((self.delivered - segment.delivered, interval));
        }
        acked.lost = self.detect(now_ps);
        acked
    }

    fn on_sack(&mut self, from: u64, to: u64, acked: &mut Acked, latest: &mut Option<Segment>, now_ps: u64) -> bool {
        let (from, to) = (from.max(self.una), to.min(self.nxt));
        if to <= from {
            return false;
        }
        let mut anything = false;
        let first = (from - self.una).div_ceil(self.mss) as usize;
        for at in first..self.segments.len() {
            let segment = self.segments[at];
            let end = self.first_byte(at) + u64::from(segment.len);
            if to < end {
                break;
            }
            if segment.sacked {
                continue;
            }
            anything = true;
            self.deliver(&segment, end, acked, latest, now_ps);
            self.segments[at].sacked = true;
            self.segments[at].lost = false;
            self.sacked += u64::from(segment.len);
        }
        anything
    }

    /// A segment that was not known to be delivered is.
    fn deliver(&mut self, s: &Segment, end: u64, acked: &mut Acked, latest: &mut Option<Segment>, now_ps: u64) {
        let len = u64::from(s.len);
        if s.lost {
            self.lost -= len;
        } else {
            self.pipe -= len;
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
            *latest = Some(*s);
        }
        if self.newest.is_none_or(|newest| newest < (s.sent_ps, end)) {
            self.newest = Some((s.sent_ps, end));
            self.rack_rtt_ps = rtt_ps;
        }
    }

    /// RFC 8985 section 6.2, step 5: what was sent before the newest delivered segment and has had its time is lost.
    fn detect(&mut self, now_ps: u64) -> u64 {
        self.reorder_ps = u64::MAX;
        let Some((newest_ps, newest_end)) = self.newest.filter(|_| self.detects) else { return 0 };
        let patience = self.rack_rtt_ps.saturating_add(self.reorder_window_ps());
        let mut lost = 0;
        let mut end = self.una;
        for at in 0..self.segments.len() {
            let s = &mut self.segments[at];
            let len = u64::from(s.len);
            end += len;
            if s.sacked || s.lost || (newest_ps, newest_end) <= (s.sent_ps, end) {
                if !s.again && newest_ps < s.sent_ps {
                    // What follows was sent later still.
                    break;
                }
                continue;
            }
            let due = s.sent_ps.saturating_add(patience);
            if due <= now_ps {
                s.lost = true;
                self.pipe -= len;
                self.lost += len;
                lost += len;
                self.lost_from = self.lost_from.min(at);
            } else {
                self.reorder_ps = self.reorder_ps.min(due);
            }
        }
        lost
    }

    /// Time that a segment may be late: none until reordering has been seen, then a quarter of the smallest RTT.
    fn reorder_window_ps(&self) -> u64 {
        if self.reordering { self.min_rtt_ps / 4 } else { 0 }
    }

    /// The time of [`Scoreboard::reorder_ps`] has come; bytes newly found lost.
    pub fn on_reorder_timer(&mut self, now_ps: u64) -> u64 {
        self.detect(now_ps)
    }

    /// The retransmission timer has expired: everything not delivered is lost.
    pub fn on_timeout(&mut self) {
        for s in &mut self.segments {
            if !s.sacked && !s.lost {
                s.lost = true;
                self.lost += u64::from(s.len);
            }
        }
        self.pipe = 0;
        self.lost_from = 0;
        self.reorder_ps = u64::MAX;
    }

    fn first_byte(&self, at: usize) -> u64 {
        self.una + at as u64 * self.mss
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MSS: u64 = 1_000;

    fn sent(n: u64) -> Scoreboard {
        let mut board = Scoreboard::new(MSS);
        (0..n).for_each(|i| board.send_new(MSS, false, 100 * i));
        board
    }

    #[test]
    fn a_hole_is_lost_when_something_sent_later_arrives() {
        let mut board = sent(5);
        let acked = board.on_ack(1_000, &[], 1_000);
        assert_eq!((acked.cumulative, acked.rtt_ps, board.pipe()), (1_000, Some(1_000), 4_000));
        // Segment 2 arrives, segment 1 does not: without reordering so far, there is no patience.
        let acked = board.on_ack(1_000, &[(2_000, 3_000)], 1_200);
        assert_eq!((acked.delivered, acked.lost, board.pipe()), (1_000, 1_000, 2_000));
        assert_eq!(board.send_lost(1_210), Some((1_000, 1_000)));
        assert_eq!((board.send_lost(1_220), board.pipe()), (None, 3_000));
        // All arrive. The round-trip time is that of segment 4, not of the one sent twice.
        let acked = board.on_ack(5_000, &[], 2_300);
        assert_eq!((acked.cumulative, acked.delivered, board.pipe()), (4_000, 3_000, 0));
        assert!(board.is_empty());
    }

    #[test]
    fn reordering_teaches_patience() {
        let mut board = sent(6);
        board.on_ack(0, &[(1_000, 2_000)], 1_100);
        assert!(board.has_lost());
        // The first segment was only late: its acknowledgment comes before it was sent again.
        let acked = board.on_ack(2_000, &[], 1_150);
        assert_eq!((acked.delivered, board.has_lost(), board.pipe()), (1_000, false, 4_000));
        // From now on, a hole has a quarter of the smallest RTT, 1,000, to fill.
        let acked = board.on_ack(2_000, &[(3_000, 4_000)], 1_300);
        assert_eq!((acked.lost, board.reorder_ps()), (0, 200 + 1_000 + 250));
        assert_eq!(board.on_reorder_timer(1_450), 1_000);
        assert_eq!(board.send_lost(1_460), Some((2_000, 1_000)));
    }

    #[test]
    fn a_probe_repairs_the_tail() {
        let mut board = sent(3);
        board.on_ack(1_000, &[], 1_000);
        // The last two are lost. The probe sends the last again; its arrival shows that the one before is lost.
        assert_eq!(board.send_probe(3_000), Some((2_000, 1_000)));
        assert_eq!(board.pipe(), 2_000);
        let acked = board.on_ack(1_000, &[(2_000, 3_000)], 4_000);
        assert_eq!((acked.lost, acked.rtt_ps), (1_000, None));
        assert_eq!(board.send_lost(4_000), Some((1_000, 1_000)));
    }

    #[test]
    fn a_timeout_loses_all_that_has_not_arrived() {
        let mut board = sent(4);
        board.on_ack(0, &[(2_000, 3_000)], 1_500);
        board.on_timeout();
        let again: Vec<_> = std::iter::from_fn(|| board.send_lost(9_000)).collect();
        assert_eq!(again, [(0, 1_000), (1_000, 1_000), (3_000, 1_000)]);
        assert_eq!(board.pipe(), 3_000);
        board.on_ack(4_000, &[], 10_000);
        assert!(board.is_empty() && board.pipe() == 0);
    }

    #[test]
    fn the_delivery_rate_is_that_of_a_round_trip() {
        let mut board = sent(3);
        let rates: Vec<_> = (1..=3).map(|i| board.on_ack(i * 1_000, &[], 900 + 100 * i).rate).collect();
        // All were sent before anything was delivered, since time 0.
        assert_eq!(rates, [Some((1_000, 1_000)), Some((2_000, 1_100)), Some((3_000, 1_200))]);
        board.send_new(MSS, true, 1_250);
        let acked = board.on_ack(4_000, &[], 2_250);
        assert_eq!((acked.rate, acked.app_limited), (Some((1_000, 1_000)), true));
        // Two segments sent 1,000 apart whose acknowledgments come together were not delivered at once: the second was
        // sent when the first, of time 3,000, was not yet acknowledged, so sending took the time since then.
        board.send_new(MSS, false, 3_000);
        board.send_new(MSS, false, 5_000);
        board.on_ack(5_000, &[], 6_000);
        assert_eq!(board.on_ack(6_000, &[], 6_010).rate, Some((2_000, 3_010)));
    }

    proptest! {
        /// Packets and acknowledgments are lost, duplicated and reordered at will; everything arrives in the end, and the
        /// bytes in flight are what a recount says.
        #[test]
        fn every_byte_arrives(fates in prop::collection::vec((0u8..10, 0u64..400), 1..400), n in 1u64..60) {
            let mut board = Scoreboard::new(MSS);
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
                    board.on_ack(edge.min(total), &sacks, now);
                }
                if board.reorder_ps() <= now {
                    board.on_reorder_timer(now);
                }
                let count = |f: &dyn Fn(&Segment) -> bool| {
                    board.segments.iter().filter(|s| f(s)).map(|s| u64::from(s.len)).sum::<u64>()
                };
                prop_assert_eq!(board.pipe, count(&|s| !s.sacked && !s.lost));
                prop_assert_eq!(board.lost, count(&|s| s.lost));
                prop_assert_eq!(board.sacked, count(&|s| s.sacked));
            }
            prop_assert_eq!(board.pipe(), 0);
        }
    }
}
