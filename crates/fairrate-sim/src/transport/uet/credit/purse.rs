//! The credit of a message at its sender.

use fairrate_control::credits::CreditRule;
use fairrate_units::Rate;

use super::Terms;
use super::feedback::{Fate, Feedback};

/// The credit of a message at its sender.
#[derive(Debug)]
pub(in super::super) struct Purse {
    terms: Terms,
    /// The rest of the first window, in bytes; below zero after the last packet that it paid for.
    first: i64,
    /// Bytes that the receiver has given and that are not spent; below zero after the last packet that they paid for.
    given: i64,
    /// Bytes of the first window.
    most: i64,
    /// The highest number of credit that has come.
    number: u64,
    /// The number asked for by the last new packet.
    asked: u64,
    /// `true` until the first answer: what is sent was not asked for.
    is_speculating: bool,
    /// The fates of packets, where each arrival earns credit.
    feedback: Feedback,
    /// Time at which the link is free for an attempt to send that waits for it, in picoseconds.
    queued_ps: Option<u64>,
}

/// The packet by which a sender asks for credit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Asker {
    /// A packet that is sent for the first time.
    New,
    /// A packet that is sent again.
    Again,
}

impl Purse {
    /// Returns the credit of a message of `n_packets` that has sent nothing, at a link of `rate`.
    pub(in super::super) fn new(terms: Terms, rate: Rate, n_packets: u64) -> Self {
        let mut most = terms.window(rate);
        if terms.counts_arrivals() {
            // Packets that are sent again need credit, even where a message has fewer than its first window.
            most = most.min(n_packets.saturating_mul(terms.packet));
        }
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        let (feedback, queued_ps) = (Feedback::default(), None);
        Self { terms, first: most, given: 0, most, number: 0, asked: 0, is_speculating: true, feedback, queued_ps }
    }

    fn rule(&self) -> CreditRule {
        self.terms.credits.rule
    }

    fn total(&self) -> i64 {
        self.first + self.given
    }

    /// Returns `true` if a packet may be sent.
    pub(in super::super) fn is_open(&self) -> bool {
        let may_spend = !matches!(self.rule(), CreditRule::Whole { .. }) || self.is_speculating || 0 < self.given;
        0 < self.total() && may_spend
    }

    /// Pays for a packet of `wire` bytes. Returns `true` if its receiver is to acknowledge it at once, as there is no
    /// credit for another.
    pub(in super::super) fn pay(&mut self, wire: u64) -> bool {
        let bytes = if self.terms.counts_arrivals() { self.terms.packet } else { wire };
        let of = if self.is_speculating && self.given <= 0 { &mut self.first } else { &mut self.given };
        *of -= bytes.cast_signed();
        match self.rule() {
            CreditRule::Whole { .. } => self.given < 0,
            CreditRule::Wanted { .. } | CreditRule::Arrivals => self.total() <= 0,
        }
    }

    /// Ends speculation, as an answer has come.
    pub(in super::super) fn on_answer(&mut self) {
        match self.rule() {
            CreditRule::Wanted { .. } if self.is_speculating => self.first = self.first.min(0),
            CreditRule::Wanted { .. } | CreditRule::Whole { .. } => {}
            // The first window is one that may be sent in any case.
            CreditRule::Arrivals => return,
        }
        self.is_speculating = false;
    }

    /// Takes credit up to `number`.
    pub(in super::super) fn take(&mut self, number: u64) {
        let more = number.saturating_sub(self.number);
        self.number += more;
        self.given = self.given.saturating_add((more * self.terms.quantum()).cast_signed());
        if let CreditRule::Wanted { .. } = self.rule() {
            self.given = self.given.min(self.most - self.first);
        }
    }

    /// Records an attempt to send a packet of `wire` bytes after an answer at `now_ps`, at a link that is free from
    /// `free_ps` on. While the link is in use the attempt waits for it.
    pub(in super::super) fn attempt(&mut self, wire: u64, now_ps: u64, free_ps: u64) {
        if now_ps < free_ps {
            self.queued_ps.get_or_insert(free_ps);
        } else {
            self.lose(wire);
        }
    }

    /// Ends an attempt that waited for the link until `now_ps` or before, to send a packet of `wire` bytes, if it was
    /// in vain.
    pub(in super::super) fn settle(&mut self, wire: u64, now_ps: u64) {
        if self.is_in_vain() && self.queued_ps.take_if(|at_ps| *at_ps <= now_ps).is_some() {
            self.lose(wire);
        }
    }

    /// Follows a packet that was sent until `free_ps`. If it had to wait for the link, the next one is attempted when
    /// the link is free again.
    pub(in super::super) fn after_sent(&mut self, free_ps: u64) {
        let has_waited = self.queued_ps.take().is_some() || self.is_speculating;
        self.queued_ps = (has_waited && 0 < self.total()).then_some(free_ps);
    }

    /// Returns `true` if all credit is what is left of the first window, which may not be spent any more.
    fn is_in_vain(&self) -> bool {
        matches!(self.rule(), CreditRule::Whole { .. }) && 0 < self.total() && !self.is_open()
    }

    /// Takes a packet of `wire` bytes from what is left of the first window, if that may not be spent any more.
    fn lose(&mut self, wire: u64) {
        if self.is_in_vain() {
            self.first -= wire.cast_signed();
        }
    }

    /// Takes credit for a packet that was not acknowledged in time, if that may be sent without any more.
    pub(in super::super) fn excuse(&mut self) {
        if self.terms.counts_arrivals() {
            self.given += self.terms.packet.cast_signed();
        }
    }

    /// Records the fate of a packet.
    pub(in super::super) fn hear(&mut self, fate: Fate) {
        if self.terms.counts_arrivals() {
            self.feedback.hear(fate);
        }
    }

    /// Takes credit for a packet whose header has come back, if that is to be sent again at once. `has_paths`
    /// is set if they take several paths.
    pub(in super::super) fn excuse_returned(&mut self, has_paths: bool) {
        let window = self.most.unsigned_abs() / self.terms.packet;
        if self.terms.counts_arrivals() && self.feedback.sends_at_once(window, self.number, has_paths) {
            self.excuse();
        }
    }

    /// Returns the terms of the network.
    pub(in super::super) fn terms(&self) -> &Terms {
        &self.terms
    }

    /// Returns the number of credit that a message asks for: with `new` bytes to send for the first time and `again` to
    /// send once more, of which a window lets `window` through, beside `n_flows` that wait at the same NIC. The
    /// `asker` is the packet that asks.
    pub(in super::super) fn target(
        &mut self,
        (new, again): (u64, u64),
        window: u64,
        n_flows: u64,
        asker: Asker,
    ) -> u64 {
        let (quantum, total) = (self.terms.quantum(), self.total());
        let above = |number: u64, wanted: i64| (number * quantum).saturating_add_signed(wanted).div_ceil(quantum);
        match self.rule() {
            CreditRule::Wanted { .. } => {
                let (backlog, packet) = (new + again, self.terms.packet.cast_signed());
                let wanted = backlog.min(window).cast_signed().min(self.most) - total;
                let wanted = if self.is_speculating && 0 < backlog { wanted.max(packet) } else { wanted };
                above(self.number, wanted / n_flows.max(1).cast_signed())
            }
            CreditRule::Whole { .. } => {
                if asker == Asker::New {
                    self.asked = above(self.number, new.cast_signed().min(self.most) - total);
                }
                self.asked
            }
            CreditRule::Arrivals => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use fairrate_control::rccc::CREDITS;
    use fairrate_control::{AlgorithmConfig, Profile};
    use fairrate_units::Time;

    use super::*;

    const RATE: Rate = Rate::from_gbps(100);

    fn terms_of(name: &str, packet: u64) -> Terms {
        let config = AlgorithmConfig::by_name(name, Profile::Paper).expect("it is registered");
        Terms::new(config.needs().feedback.credit.expect("receivers give credit"), packet, Time::from_us(14))
    }

    /// 1.5 BDP of 100 Gb/s and 533,333 ps are 10,000 B, but for rounding.
    fn rccc() -> Purse {
        let purse = Purse::new(Terms::new(CREDITS, 1_000, Time::from_ps(533_334)), RATE, 100);
        assert_eq!(purse.most, 9_999);
        Purse { first: 10_000, most: 10_000, ..purse }
    }

    #[test]
    fn a_purse_begins_with_a_window_and_asks_for_what_is_left() {
        let mut purse = rccc();
        let target = |purse: &mut Purse, backlog, n_flows| purse.target((backlog, 0), u64::MAX, n_flows, Asker::New);
        // 20,000 to send, 10,000 at hand: it asks for a packet at least, and the rest of the window once it has paid.
        assert_eq!(target(&mut purse, 20_000, 1), 4);
        assert!(!purse.pay(1_000));
        assert_eq!(target(&mut purse, 19_000, 1), 4);
        assert!(!purse.pay(5_000));
        assert_eq!(target(&mut purse, 14_000, 1), 24);
        assert_eq!(target(&mut purse, 14_000, 2), 12);
        // The answer ends speculation; what is granted comes on top, up to a window.
        purse.on_answer();
        assert!(!purse.is_open());
        purse.take(4);
        assert!(purse.is_open());
        assert_eq!(target(&mut purse, 500, 1), 2);
        purse.take(1_000);
        assert_eq!(purse.total(), 10_000);
    }

    /// EQDS begins with 50 packets of 4,150 B. With 60 packets to send, the tenth asks for what is left of 50 packets,
    /// and the resent one asks for no more.
    #[test]
    fn eqds_asks_for_bytes_never_sent() {
        let mut purse = Purse::new(terms_of("eqds", 4_150), RATE, 100);
        assert_eq!(purse.most, 207_500);
        (0..10).for_each(|_| assert!(!purse.pay(4_150)));
        // Ten packets are paid for: 41,500 B are 81.05 quanta.
        assert_eq!(purse.target((50 * 4_150, 0), u64::MAX, 5, Asker::New), 82);
        assert_eq!(purse.target((50 * 4_150, 4_150), u64::MAX, 5, Asker::Again), 82);
        // With less to send than there is credit it asks for nothing.
        assert_eq!(purse.target((0, 0), u64::MAX, 1, Asker::New), 0);
    }

    /// Returns a message of EQDS that has two of its 50 packets left when speculation ends at 20 ps, in a transmission
    /// until 25 ps.
    fn with_two_left() -> Purse {
        let mut purse = Purse::new(terms_of("eqds", 4_150), RATE, 100);
        for _ in 0..48 {
            assert!(!purse.pay(4_150));
            purse.after_sent(25);
        }
        purse.on_answer();
        purse.attempt(4_150, 20, 25);
        assert_eq!((purse.is_open(), purse.first), (false, 8_300));
        purse
    }

    /// Two answers during one transmission make one attempt, in vain when that ends; with an idle link each is one.
    #[test]
    fn what_eqds_has_left_of_the_first_window_goes_a_packet_at_an_attempt() {
        let mut purse = with_two_left();
        purse.attempt(4_150, 22, 25);
        purse.settle(4_150, 24);
        assert_eq!(purse.first, 8_300);
        purse.settle(4_150, 30);
        assert_eq!(purse.first, 4_150);
        // A pull of eight quanta lets a packet go, which asks for an acknowledgment: it took the credit below zero.
        purse.take(8);
        purse.attempt(4_150, 30, 25);
        assert!(purse.is_open() && purse.first == 4_150);
        assert!(purse.pay(4_150));
        purse.after_sent(35);
        assert_eq!((purse.given, purse.is_open()), (-54, false));
        // It did not wait for the link, so there is no attempt at its end.
        purse.settle(4_150, 40);
        assert_eq!(purse.first, 4_150);
        purse.attempt(4_150, 40, 35);
        purse.attempt(4_150, 50, 35);
        assert_eq!(purse.first, 0, "nothing is left to lose");
    }

    /// A pull that comes before the transmission ends: the attempt is not in vain, and the next one follows.
    #[test]
    fn a_packet_that_waited_for_the_link_is_followed_by_an_attempt() {
        let mut purse = with_two_left();
        purse.take(8);
        purse.settle(4_150, 25);
        assert!(purse.pay(4_150));
        purse.after_sent(50);
        purse.settle(4_150, 49);
        assert_eq!(purse.first, 8_300);
        purse.settle(4_150, 50);
        assert_eq!(purse.first, 4_150);
    }

    #[test]
    fn ndp_counts_packets_and_keeps_its_first_window() {
        let mut purse = Purse::new(terms_of("ndp", 9_064), RATE, 100);
        (0..14).for_each(|_| assert!(!purse.pay(9_064)));
        purse.on_answer();
        assert!(purse.is_open());
        // A packet of one byte is a packet.
        assert!(purse.pay(65));
        assert!(!purse.is_open());
        // Pulls are cumulative: a second one, and the first that comes late.
        purse.take(2);
        purse.take(1);
        assert_eq!(purse.total(), 2 * 9_064);
        purse.pay(9_064);
        purse.pay(9_064);
        assert!(!purse.is_open());
        purse.excuse();
        assert!(purse.is_open(), "a packet that is late goes at once");
    }

    /// A message of five packets has no credit left for what was cut of them.
    #[test]
    fn a_message_shorter_than_the_window_waits_for_pulls() {
        let mut purse = Purse::new(terms_of("ndp", 9_064), RATE, 5);
        assert!((0..5).map(|_| purse.pay(9_064)).eq([false, false, false, false, true]));
        assert!(!purse.is_open());
    }

    /// Three packets are sent and come back as headers: two are out no longer after the second, which goes again at
    /// once, as does the third.
    #[test]
    fn headers_that_come_back_are_excused_if_no_pull_is_to_come() {
        let mut purse = Purse::new(terms_of("ndp", 9_064), RATE, 3);
        assert!((0..3).map(|_| purse.pay(9_064)).eq([false, false, true]));
        let open = [(); 3].map(|()| {
            purse.hear(Fate::Returned);
            purse.excuse_returned(true);
            purse.total() / 9_064
        });
        assert_eq!(open, [0, 1, 2]);
    }
}
