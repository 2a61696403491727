//! The packets of a message at its sender.

use std::collections::{BTreeSet, VecDeque};

use super::credit::{Asker, Fate, Purse};

/// A message that is being sent. Its packets are numbered from zero; all but the last are full.
#[derive(Debug, Default)]
pub(super) struct Outgoing {
    /// Number of packets; [`u64::MAX`] for an endless message.
    n_packets: u64,
    /// Payload of a full packet, and of the last one, in bytes.
    full: u64,
    last: u64,
    /// Bytes of a packet on the wire besides its payload.
    header: u64,
    /// The first packet that is not acknowledged.
    first: u64,
    /// The packets that have been sent, from `first` on; `None`: it is acknowledged.
    records: VecDeque<Option<Record>>,
    /// Packets to be sent again.
    again: BTreeSet<u64>,
    /// Transmissions in order of time: time in picoseconds, and packet.
    sent: VecDeque<(u64, u64)>,
    /// Bytes on the wire that are in flight: what was sent, less what was counted and what was taken for lost. A packet
    /// that was taken for lost and arrives is both, so this may be below zero; it is never above the bytes of the
    /// packets that are out.
    in_flight: i64,
    /// Bytes on the wire that the receiver has counted, modulo 2^32.
    counted: u32,
    /// Its credit, if receivers give some.
    pub(super) purse: Option<Purse>,
    /// Time of the last answer, in picoseconds; zero before the first.
    heard_ps: u64,
    /// Time of the last request for credit, in picoseconds.
    asked_ps: Option<u64>,
    /// The same of the last one that was answered.
    told_ps: Option<u64>,
    /// Time at which the last header came back, in picoseconds. A receiver learns of such packets by requests alone.
    returned_ps: Option<u64>,
}

/// The occasion of a request for credit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Occasion {
    /// A packet has just not been acknowledged in time.
    Loss,
    /// Nothing is in flight.
    Silence,
}

/// A request for credit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Request {
    /// The first packet that is not acknowledged.
    pub(super) first: u64,
    /// Number of packets that wait to be sent again.
    pub(super) n_again: u16,
}

/// A packet that has been sent and not been acknowledged.
#[derive(Clone, Copy, Debug)]
struct Record {
    sent_ps: u64,
    n_sent: u32,
    /// `false` if it is known to be lost.
    is_out: bool,
}

/// A packet that is sent now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Turn {
    /// Number of the packet.
    pub(super) number: u64,
    /// Its payload in bytes.
    pub(super) payload: u64,
    /// `true` if it was sent before.
    pub(super) is_again: bool,
    /// `true` if the receiver is to acknowledge it at once: it is sent again, is the last one, or fills the window.
    pub(super) asks: bool,
}

impl Outgoing {
    /// Returns a message of `bytes` payload bytes ([`u64::MAX`]: endless) in packets of up to `full` and a header.
    pub(super) fn new(bytes: u64, full: u64, header: u64) -> Self {
        let n_packets = if bytes == u64::MAX { u64::MAX } else { bytes.div_ceil(full) };
        let last = if bytes == u64::MAX { full } else { bytes - (n_packets.max(1) - 1) * full };
        Self { n_packets, full, last, header, ..Self::default() }
    }

    /// Returns the number of packets; [`u64::MAX`] for an endless message.
    pub(super) fn n_packets(&self) -> u64 {
        self.n_packets
    }

    /// Returns the payload of a packet.
    pub(super) fn payload(&self, number: u64) -> u64 {
        if number + 1 == self.n_packets { self.last } else { self.full }
    }

    fn wire(&self, number: u64) -> u64 {
        self.payload(number) + self.header
    }

    /// Returns the number of the next new packet.
    fn next_new(&self) -> u64 {
        self.first + self.records.len() as u64
    }

    /// Returns the bytes in flight.
    pub(super) fn in_flight(&self) -> u64 {
        u64::try_from(self.in_flight).unwrap_or(0)
    }

    /// Returns the payload bytes before the first packet that is not acknowledged.
    pub(super) fn acknowledged(&self) -> u64 {
        let missing_in_last = if self.first == self.n_packets { self.full - self.last } else { 0 };
        self.first * self.full - missing_in_last
    }

    /// Returns `true` if all packets are acknowledged.
    pub(super) fn is_done(&self) -> bool {
        self.first == self.n_packets
    }

    /// Returns `true` if every packet has been sent at least once.
    pub(super) fn has_sent_all(&self) -> bool {
        self.next_new() == self.n_packets
    }

    /// Returns the packet whose turn is next, if there is one.
    fn next(&self) -> Option<u64> {
        self.again.first().copied().or_else(|| (!self.has_sent_all()).then(|| self.next_new()))
    }

    /// Returns `true` if a packet may be sent with a window of `cwnd` bytes; one may always be in flight.
    pub(super) fn may_send(&self, cwnd: u64) -> bool {
        let in_flight = self.in_flight();
        let fits = |number| in_flight == 0 || in_flight + self.wire(number) <= cwnd;
        self.purse.as_ref().is_none_or(Purse::is_open) && self.next().is_some_and(fits)
    }

    /// Returns the bytes on the wire that wait to be sent for the first time, and those that wait to be sent again.
    fn backlog(&self) -> (u64, u64) {
        let again: u64 = self.again.iter().map(|&number| self.wire(number)).sum();
        let n_new = self.n_packets - self.next_new();
        if n_new == 0 {
            return (0, again);
        }
        // What an endless message has left is more than any window.
        ((n_new - 1).min(1 << 32) * (self.full + self.header) + self.last + self.header, again)
    }

    /// Returns the number of credit to ask for, with a window of `cwnd` bytes and beside `n_flows` of the NIC; zero
    /// without credit. The `asker` is the packet that asks.
    pub(super) fn target(&mut self, cwnd: u64, n_flows: u64, asker: Asker) -> u64 {
        let (backlog, window) = (self.backlog(), cwnd.saturating_add(self.full + self.header));
        self.purse.as_mut().map_or(0, |purse| purse.target(backlog, window, n_flows, asker))
    }

    /// Takes an answer at `now_ps`, which came with credit up to `number` if there is one.
    pub(super) fn on_answer(&mut self, number: Option<u64>, now_ps: u64) {
        if self.purse.is_none() {
            return;
        }
        self.heard_ps = now_ps;
        let wire = self.next().map(|number| self.wire(number));
        let Some(purse) = &mut self.purse else { return };
        if let Some(wire) = wire {
            purse.settle(wire, now_ps);
        }
        purse.on_answer();
        if let Some(number) = number {
            purse.take(number);
        }
    }

    /// Records the fate of a packet.
    pub(super) fn hear(&mut self, fate: Fate) {
        if let Some(purse) = &mut self.purse {
            purse.hear(fate);
        }
    }

    /// Records an attempt to send at `now_ps` after an answer, at a link that is free from `free_ps` on.
    pub(super) fn attempt(&mut self, now_ps: u64, free_ps: u64) {
        let wire = self.next().map(|number| self.wire(number));
        if let (Some(purse), Some(wire)) = (&mut self.purse, wire) {
            purse.attempt(wire, now_ps, free_ps);
        }
    }

    /// Follows a packet that was sent until `free_ps`.
    pub(super) fn after_sent(&mut self, free_ps: u64) {
        if let Some(purse) = &mut self.purse {
            purse.after_sent(free_ps);
        }
    }

    /// Returns the request of a message that has packets to send and no credit for any, at `now_ps`, if it is time for
    /// one; otherwise the time at which it will be. `None`: it waits for no credit.
    pub(super) fn request(&mut self, now_ps: u64, rto_ps: u64, occasion: Occasion) -> Option<Result<Request, u64>> {
        let purse = self.purse.as_ref().filter(|purse| !purse.is_open())?;
        self.next()?;
        let due_ps = match occasion {
            Occasion::Loss => self.asked_ps.map_or(0, |asked_ps| asked_ps.saturating_add(rto_ps)),
            Occasion::Silence => {
                let since_ps = self.heard_ps.max(self.asked_ps.unwrap_or(0));
                since_ps.saturating_add(purse.terms().patience().saturating_mul(rto_ps))
            }
        };
        if now_ps < due_ps {
            return Some(Err(due_ps));
        }
        Some(Ok(self.ask(now_ps)))
    }

    /// Returns a request that is sent at `now_ps`.
    pub(super) fn ask(&mut self, now_ps: u64) -> Request {
        self.asked_ps = Some(now_ps);
        Request { first: self.first, n_again: u16::try_from(self.again.len()).unwrap_or(u16::MAX) }
    }

    /// Takes a header that comes back at `now_ps`, of a packet that is known to be lost now. `has_paths` is set if
    /// packets take several paths.
    pub(super) fn take_back(&mut self, now_ps: u64, has_paths: bool) {
        self.returned_ps = Some(now_ps);
        if let Some(purse) = &mut self.purse {
            purse.excuse_returned(has_paths);
        }
    }

    /// Returns `true` if it is time, at `now_ps`, to tell the receiver of packets whose headers have come back: they
    /// wait for credit, and it gives none for them unasked. That takes `base_rtt_ps` to be answered.
    pub(super) fn has_to_tell(&self, now_ps: u64, base_rtt_ps: u64) -> bool {
        let gives_unasked = |purse: &Purse| purse.is_open() || purse.terms().counts_arrivals();
        self.told_ps < self.returned_ps
            && !self.again.is_empty()
            && self.purse.as_ref().is_some_and(|purse| !gives_unasked(purse))
            && self.asked_ps.is_none_or(|asked_ps| asked_ps.saturating_add(base_rtt_ps) <= now_ps)
    }

    /// Takes the answer to a request: the receiver knows of all packets that waited when it was sent.
    pub(super) fn note_told(&mut self) {
        self.told_ps = self.asked_ps;
    }

    /// Sends the next packet at `now_ps`; there must be one.
    pub(super) fn send(&mut self, now_ps: u64, cwnd: u64) -> Turn {
        let number = self.next().expect("a packet may be sent");
        let is_again = self.again.remove(&number);
        if is_again {
            let record = self.record(number).expect("a packet to be sent again is not acknowledged");
            (record.sent_ps, record.is_out) = (now_ps, true);
            record.n_sent += 1;
        } else {
            self.records.push_back(Some(Record { sent_ps: now_ps, n_sent: 1, is_out: true }));
        }
        self.sent.push_back((now_ps, number));
        let wire = self.wire(number);
        self.in_flight += wire.cast_signed();
        let is_spent = self.purse.as_mut().is_some_and(|purse| purse.pay(wire));
        let fills = cwnd <= self.in_flight() + self.full + self.header;
        let asks = is_again || self.has_sent_all() || fills || is_spent;
        Turn { number, payload: self.payload(number), is_again, asks }
    }

    fn record(&mut self, number: u64) -> Option<&mut Record> {
        let at = usize::try_from(number.checked_sub(self.first)?).ok()?;
        self.records.get_mut(at)?.as_mut()
    }

    /// Returns the round trip of a packet that comes back at `now_ps`, if it is clear which transmission has: it was
    /// sent once, or twice and the second came (`is_again`).
    pub(super) fn round_trip(&mut self, number: u64, is_again: bool, now_ps: u64) -> Option<u64> {
        let record = self.record(number).filter(|record| record.is_out)?;
        let is_clear = record.n_sent == if is_again { 2 } else { 1 };
        is_clear.then(|| now_ps - record.sent_ps)
    }

    /// Returns `true` if the receiver's answers may have a number of credit where others have its count of bytes. Then
    /// what is in flight goes by the packets that are acknowledged.
    pub(super) fn goes_by_packets(&self) -> bool {
        self.purse.as_ref().is_some_and(|purse| purse.terms().counts_arrivals())
    }

    /// Takes packets of `bytes` on the wire, which have been acknowledged, out of what is in flight.
    pub(super) fn land(&mut self, bytes: u64) -> u64 {
        self.in_flight -= bytes.cast_signed();
        bytes
    }

    /// Takes the receiver's count of bytes, modulo 2^32; returns the bytes that are new in it.
    pub(super) fn count(&mut self, counted: u32) -> u64 {
        let newly = counted.wrapping_sub(self.counted);
        // An older acknowledgment has overtaken none: its count is lower.
        if i32::try_from(newly).is_err() {
            return 0;
        }
        self.counted = counted;
        self.in_flight -= i64::from(newly);
        u64::from(newly)
    }

    /// Marks all packets before `expected` as acknowledged, and of the 64 from `from` on those whose bits are set.
    /// Returns the bytes on the wire of those among them that were out.
    pub(super) fn acknowledge(&mut self, expected: u64, from: u64, bits: u64) -> u64 {
        let mut landed = 0;
        while self.first < expected
            && let Some(record) = self.records.pop_front()
        {
            if record.is_some_and(|record| record.is_out) {
                landed += self.wire(self.first);
            }
            self.again.remove(&self.first);
            self.first += 1;
        }
        for number in (0..64).filter(|bit| bits >> bit & 1 == 1).map(|bit| from + bit) {
            let at = number.checked_sub(self.first).and_then(|at| usize::try_from(at).ok());
            if let Some(place) = at.and_then(|at| self.records.get_mut(at)) {
                if place.take().is_some_and(|record| record.is_out) {
                    landed += self.wire(number);
                }
                self.again.remove(&number);
            }
        }
        while let Some(None) = self.records.front() {
            self.records.pop_front();
            self.first += 1;
        }
        landed
    }

    /// Marks a packet as lost; returns its bytes on the wire, or `None` if it is acknowledged or known to be lost.
    pub(super) fn lose(&mut self, number: u64) -> Option<u64> {
        let record = self.record(number).filter(|record| record.is_out)?;
        record.is_out = false;
        self.again.insert(number);
        let wire = self.wire(number);
        self.in_flight -= wire.cast_signed();
        Some(wire)
    }

    /// Returns the earliest transmission of a packet that is still out: its time, and the packet.
    pub(super) fn earliest(&mut self) -> Option<(u64, u64)> {
        while let Some(&(sent_ps, number)) = self.sent.front() {
            if self.record(number).is_some_and(|record| record.is_out && record.sent_ps == sent_ps) {
                return Some((sent_ps, number));
            }
            self.sent.pop_front();
        }
        None
    }

    /// Stops an endless message: what has been sent so far is all of it.
    pub(super) fn stop(&mut self) {
        if self.n_packets == u64::MAX {
            (self.n_packets, self.last) = (self.next_new(), self.full);
        }
    }
}

#[cfg(test)]
mod tests {
    use fairrate_control::rccc::CREDITS;
    use fairrate_units::{Rate, Time};

    use super::super::credit::Terms;
    use super::*;

    fn sent(message: &mut Outgoing, n: u64, cwnd: u64) -> Vec<(u64, bool)> {
        (0..n).map(|i| message.send(i, cwnd)).map(|turn| (turn.number, turn.asks)).collect()
    }

    #[test]
    fn the_last_packet_has_the_rest_and_asks() {
        let mut message = Outgoing::new(2_500, 1_000, 64);
        assert_eq!(sent(&mut message, 3, u64::MAX), [(0, false), (1, false), (2, true)]);
        assert_eq!((message.in_flight(), message.has_sent_all(), message.may_send(u64::MAX)), (2_692, true, false));
        message.acknowledge(3, 3, 0);
        assert_eq!((message.is_done(), message.acknowledged()), (true, 2_500));
    }

    #[test]
    fn an_endless_message_ends_where_it_stops() {
        let mut message = Outgoing::new(u64::MAX, 1_000, 64);
        sent(&mut message, 2, u64::MAX);
        message.stop();
        message.acknowledge(2, 3, 0);
        assert_eq!((message.is_done(), message.acknowledged()), (true, 2_000));
        let mut unsent = Outgoing::new(u64::MAX, 1_000, 64);
        unsent.stop();
        assert_eq!((unsent.is_done(), unsent.acknowledged()), (true, 0));
    }

    #[test]
    fn a_packet_that_fills_the_window_asks() {
        let mut message = Outgoing::new(10_000, 1_000, 64);
        assert!(message.may_send(3_192));
        assert_eq!(sent(&mut message, 2, 3_192), [(0, false), (1, true)]);
        assert!(message.may_send(3_192) && !message.may_send(3_191));
    }

    #[test]
    fn lost_packets_go_first_and_bits_acknowledge() {
        let mut message = Outgoing::new(8_000, 1_000, 64);
        sent(&mut message, 6, u64::MAX);
        assert_eq!((message.lose(3), message.lose(3), message.lose(1)), (Some(1_064), None, Some(1_064)));
        assert_eq!(message.in_flight(), 4 * 1_064);
        // Packets 0, 2 and 4 have come.
        message.acknowledge(1, 2, 0b101);
        assert_eq!(message.acknowledged(), 1_000);
        let again = message.send(10, u64::MAX);
        assert_eq!((again.number, again.is_again, again.asks), (1, true, true));
        assert_eq!([message.round_trip(1, false, 30), message.round_trip(1, true, 30)], [None, Some(20)]);
        assert_eq!(message.earliest(), Some((5, 5)));
        message.acknowledge(3, 3, 0);
        assert_eq!(message.send(20, u64::MAX).number, 3);
    }

    /// Ten packets arrive, but their acknowledgment comes when all have been taken for lost. They are sent again in
    /// vain, and these copies are lost.
    #[test]
    fn a_late_count_is_not_forgotten() {
        let mut message = Outgoing::new(u64::MAX, 1_000, 64);
        sent(&mut message, 10, u64::MAX);
        (0..10).for_each(|number| assert!(message.lose(number).is_some()));
        assert_eq!((message.in_flight(), message.count(10_640)), (0, 10_640));
        sent(&mut message, 10, u64::MAX);
        message.acknowledge(10, 11, 0);
        assert_eq!(message.in_flight(), 0);
    }

    #[test]
    fn counts_of_overtaken_acknowledgments_are_ignored() {
        let mut message = Outgoing::new(u64::MAX, 1_000, 64);
        sent(&mut message, 4, u64::MAX);
        assert_eq!([message.count(2_128), message.count(1_064), message.count(3_192)], [2_128, 0, 1_064]);
        assert_eq!(message.in_flight(), 1_064);
    }

    /// A message spends its first window, and two of its packets come back as headers at 100 and 200 ps. A request
    /// tells of the first, and one a round trip of 500 ps later of the second; the answer to that settles it.
    #[test]
    fn receivers_are_told_of_headers_that_came_back() {
        let terms = Terms::new(CREDITS, 1_064, Time::from_ps(533_334));
        let purse = Purse::new(terms, Rate::from_gbps(100), u64::MAX);
        let mut message = Outgoing { purse: Some(purse), ..Outgoing::new(u64::MAX, 1_000, 64) };
        while message.may_send(u64::MAX) {
            message.send(0, u64::MAX);
        }
        assert!(!message.has_to_tell(90, 500));
        let come_back = |message: &mut Outgoing, number, now_ps| {
            message.on_answer(None, now_ps);
            message.lose(number);
            message.take_back(now_ps, true);
        };
        come_back(&mut message, 0, 100);
        assert!(message.has_to_tell(100, 500));
        assert_eq!(message.ask(100), Request { first: 0, n_again: 1 });
        come_back(&mut message, 1, 200);
        assert!(!message.has_to_tell(200, 500));
        message.note_told();
        assert!(message.has_to_tell(600, 500), "the answer is to the request before the second");
        assert_eq!(message.ask(600), Request { first: 0, n_again: 2 });
        message.note_told();
        assert!(!message.has_to_tell(2_000, 500));
    }
}
