//! The fates of a message's packets as its sender hears of them, where each arrival earns credit for a packet. When a
//! header comes back, they decide whether its packet goes again at once (`NdpSrc::processRTS` of csg-htsim).

/// Number of packets by which a sender judges its paths.
const RECENT: u32 = 12;
/// A path is taken for bad if one or more were acknowledged of as many recent packets as this.
const PACKETS_AN_ACKNOWLEDGMENT: u32 = 3;
/// Packets of the first window that may be out while a sender does not count on credit for them.
const FEW: u64 = 1;

/// The fate of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Fate {
    /// It arrived whole.
    Whole,
    /// Its header arrived.
    Cut,
    /// Its header came back.
    Returned,
}

/// The fates of a message's packets.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Feedback {
    /// Number of packets whose fate was heard of.
    n_heard: u64,
    /// Number of them of which something arrived, and that earned credit.
    n_earning: u64,
    /// The last packets, one bit each, set if it arrived whole.
    whole: u16,
}

impl Feedback {
    /// Records a fate.
    pub(super) fn hear(&mut self, fate: Fate) {
        self.n_heard += 1;
        self.n_earning += u64::from(fate != Fate::Returned);
        self.whole = (self.whole << 1 | u16::from(fate == Fate::Whole)) & ((1 << RECENT) - 1);
    }

    /// Returns `true` if a packet whose header has come back goes again at once: no credit is to come, or its path is a
    /// bad one. `window` is the number of packets that the message sends unasked, `given` that of the credit it has
    /// had, and `has_paths` is set if its packets take several paths.
    pub(super) fn sends_at_once(&self, window: u64, given: u64, has_paths: bool) -> bool {
        let counts_on_credit = given < self.n_earning || FEW < window.saturating_sub(self.n_heard);
        let n_recent = self.n_heard.min(u64::from(RECENT)) as u32;
        // Where so much arrives, the network as a whole is not congested.
        let is_bad_path = n_recent.checked_div(self.whole.count_ones()).is_some_and(|n| n <= PACKETS_AN_ACKNOWLEDGMENT);
        !counts_on_credit || has_paths && is_bad_path
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(fates: &[Fate]) -> Feedback {
        let mut feedback = Feedback::default();
        for &fate in fates {
            feedback.hear(fate);
        }
        feedback
    }

    #[test]
    fn the_last_packets_of_a_first_window_go_at_once_if_no_credit_is_to_come() {
        // Of a window of three, one is still out after two, and none has earned credit.
        assert!(!after(&[Fate::Returned]).sends_at_once(3, 0, true));
        assert!(after(&[Fate::Returned; 2]).sends_at_once(3, 0, true));
        // A header that has arrived earns credit for a packet: the sender waits for it.
        let with_a_cut = after(&[Fate::Returned, Fate::Cut, Fate::Returned]);
        assert!(!with_a_cut.sends_at_once(3, 0, true));
        assert!(with_a_cut.sends_at_once(3, 1, true));
    }

    /// One of three packets was acknowledged: only the path of the one that came back is bad. One of four: all are.
    #[test]
    fn a_bad_path_is_left_at_once() {
        let one_of_three = after(&[Fate::Whole, Fate::Cut, Fate::Returned]);
        assert!(one_of_three.sends_at_once(15, 0, true));
        assert!(!one_of_three.sends_at_once(15, 0, false), "there is no other path");
        let mut later = one_of_three;
        later.hear(Fate::Returned);
        assert!(!later.sends_at_once(15, 0, true));
        // Four of the last twelve are enough; what was before them is forgotten.
        let last = |n_whole: usize| {
            let fates = [vec![Fate::Whole; 20], vec![Fate::Returned; 12], vec![Fate::Whole; n_whole]].concat();
            after(&[fates, vec![Fate::Returned; 12 - n_whole]].concat())
        };
        assert_eq!([3, 4].map(|n| last(n).sends_at_once(40, 100, false)), [true; 2], "no credit is to come");
        assert_eq!([3, 4].map(|n| last(n).sends_at_once(100, 0, true)), [false, true]);
    }
}
