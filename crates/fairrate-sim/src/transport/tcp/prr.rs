/// Proportional rate reduction (RFC 9937): limits what a sender may send during a recovery, so that the bytes in flight
/// fall to the new window while acknowledgments arrive, neither with half a round trip of silence nor with a burst.
///
/// | RFC 9937        | here              |
/// |-----------------|-------------------|
/// | RecoverFS       | `flight`          |
/// | prr_delivered   | `delivered`       |
/// | prr_out         | `sent`            |
/// | SndCnt          | `budget`          |
/// | ssthresh        | `window`          |
/// | safeACK         | `safe`            |
///
/// Readings: all counts are in bytes, and a segment may be sent while any of the budget is left: parts of a segment add
/// up. Where the window has room, only whole segments count, so that the bytes in flight stay within it.
///
/// [`MarkReduction::Ns3`] is PRR as ns-3.44 has it, to compare with its runs.
#[derive(Clone, Copy, Debug)]
pub struct Prr {
    mss: u64,
    flight: u64,
    delivered: u64,
    sent: u64,
    budget: u64,
    /// Bytes delivered since the budget was set.
    news: u64,
    /// `true` if the last acknowledgment since then was safe; `None` if there was none.
    is_safe: Option<bool>,
    form: MarkReduction,
}

/// The arithmetic of a reduction after an ECN mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MarkReduction {
    /// That of RFC 9937.
    Rfc9937,
    /// That of ns-3.44. The first acknowledgment counts as three, as the entry adds a segment and the same
    /// acknowledgment is counted again. The bytes in flight are those after it. Only whole segments are sent. The
    /// product of delivered bytes and window is kept in 32 bits: with a window of more than 45 segments of 1,448 bytes
    /// it overflows before the round trip ends, and nothing is sent until the bytes in flight have come down to the
    /// window.
    Ns3,
}

impl Prr {
    /// Starts a recovery with `flight` bytes in flight.
    pub fn new(mss: u64, flight: u64) -> Self {
        let form = MarkReduction::Rfc9937;
        Self { mss, flight: flight.max(mss), delivered: 0, sent: 0, budget: 0, news: 0, is_safe: None, form }
    }

    /// Starts a reduction with the acknowledgment that echoes a mark, which delivered `delivered` bytes and left `pipe`
    /// bytes in flight.
    pub fn after_mark(mss: u64, pipe: u64, delivered: u64, safe: bool, form: MarkReduction) -> Self {
        let mut prr = match form {
            MarkReduction::Rfc9937 => Self::new(mss, pipe + delivered),
            MarkReduction::Ns3 => Self { form, delivered: delivered + mss, ..Self::new(mss, pipe) },
        };
        prr.on_ack(delivered, safe);
        prr
    }

    /// Records an acknowledgment that delivered `delivered` bytes; it is `safe` if it is for new data in order and
    /// nothing more is lost.
    pub fn on_ack(&mut self, delivered: u64, safe: bool) {
        self.delivered += delivered;
        self.news += delivered;
        self.is_safe = Some(safe);
    }

    /// Records a loss that a timer has found: as an acknowledgment that delivers nothing and is not safe.
    pub fn on_loss(&mut self) {
        self.is_safe = Some(false);
    }

    /// Sets the budget (RFC 9937 section 6.2), from the controller's `window` and the bytes in flight after the
    /// acknowledgment, `pipe`.
    pub fn settle(&mut self, window: u64, pipe: u64) {
        let Some(safe) = self.is_safe.take() else { return };
        let news = std::mem::take(&mut self.news);
        if self.form == MarkReduction::Ns3 {
            self.budget = self.ns3_count(window, pipe, news);
            return;
        }
        let count = if window < pipe {
            let share = u128::from(self.delivered) * u128::from(window);
            (share.div_ceil(u128::from(self.flight)) as u64).saturating_sub(self.sent)
        } else {
            let count = self.delivered.saturating_sub(self.sent).max(news) + if safe { self.mss } else { 0 };
            count.min((window - pipe) / self.mss * self.mss)
        };
        // The first lost segment is sent at once.
        self.budget = if self.sent == 0 { count.max(1) } else { count };
    }

    /// Returns the budget by ns-3's arithmetic, after an acknowledgment of `news` bytes.
    fn ns3_count(&self, window: u64, pipe: u64, news: u64) -> u64 {
        let count = if window < pipe {
            let product = self.delivered.wrapping_mul(window) & u64::from(u32::MAX);
            product.div_ceil(self.flight).saturating_sub(self.sent)
        } else {
            self.delivered.saturating_sub(self.sent).max(news).min(window - pipe)
        };
        if self.sent == 0 { count.max(self.mss) } else { count }
    }

    /// Records a segment of `len` bytes that is sent.
    pub fn on_sent(&mut self, len: u64) {
        self.sent += len;
        self.budget = self.budget.saturating_sub(len);
    }

    /// Returns `true` if another segment may be sent.
    pub fn has_budget(&self) -> bool {
        match self.form {
            MarkReduction::Rfc9937 => 0 < self.budget,
            MarkReduction::Ns3 => self.mss <= self.budget,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Twenty segments in flight, the first of which is lost, and a window of ten from then on: the segments sent for
    /// each of the acknowledgments of the other nineteen.
    #[test]
    fn one_loss_lets_every_other_acknowledgment_send_a_segment() {
        let mut prr = Prr::new(1_000, 20_000);
        let mut pipe = 19_000;
        let mut sent = Vec::new();
        for _ in 0..19 {
            pipe -= 1_000;
            prr.on_ack(1_000, false);
            prr.settle(10_000, pipe);
            let before = prr.sent;
            while prr.has_budget() {
                prr.on_sent(1_000);
                pipe += 1_000;
            }
            sent.push((prr.sent - before) / 1_000);
        }
        // Halves of a segment add up: 500, 1,000, 1,500 bytes are one, none, one more segment. At the 17th, 10,000
        // bytes are in flight, 19 - 17 + 8 segments: that is the window, which the last two keep full.
        assert_eq!(sent, [1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 0, 1, 1]);
        assert_eq!(pipe, 10_000);
    }

    /// Reduces `flight` segments of 1,448 bytes to `window` after a mark, by acknowledgments of a segment each for a
    /// round trip. Returns the number of the acknowledgment after which the window holds all that is in flight, or
    /// `None`; the largest number of segments in flight, and the last.
    fn reduction(form: MarkReduction, flight: u64, window: u64) -> (Option<u64>, u64, u64) {
        const MSS: u64 = 1_448;
        let mut pipe = (flight - 1) * MSS;
        let mut prr = Prr::after_mark(MSS, pipe, MSS, true, form);
        let mut most = 0;
        for n in 1..=flight {
            prr.settle(window * MSS, pipe);
            while prr.has_budget() {
                prr.on_sent(MSS);
                pipe += MSS;
            }
            most = most.max(pipe);
            if pipe <= window * MSS {
                return (Some(n), most / MSS, pipe / MSS);
            }
            pipe -= MSS;
            prr.on_ack(MSS, true);
        }
        (None, most / MSS, pipe / MSS + 1)
    }

    /// A mark takes 150 segments to 147: by RFC 9937 the 50th and the 100th acknowledgment are not answered, and after
    /// the 101st 147 are in flight. ns-3's product passes 2^32 at 2^32 / (147 x 1,448) = 20,178 bytes, in the
    /// fourteenth segment; as the first acknowledgment counts for three, the twelfth has it, and four are answered by
    /// nothing. With 20 segments nothing overflows: the first is answered by two, and after a round trip two more than
    /// the window are left.
    #[test]
    fn a_mark_by_the_rfc_and_by_ns3() {
        use MarkReduction::{Ns3, Rfc9937};
        assert_eq!(reduction(Rfc9937, 150, 147), (Some(101), 150, 147));
        assert_eq!(reduction(Ns3, 150, 147), (Some(15), 151, 147));
        assert_eq!(reduction(Rfc9937, 20, 18), (Some(11), 20, 18));
        assert_eq!(reduction(Ns3, 20, 18), (None, 21, 20));
    }

    /// Sixteen of twenty segments are lost: the bytes in flight are below the window at once, and grow by no more than
    /// what arrives, plus one segment if the acknowledgment is safe.
    #[test]
    fn many_losses_bring_no_burst() {
        let mut prr = Prr::new(1_000, 20_000);
        prr.on_ack(1_000, false);
        prr.settle(10_000, 3_000);
        assert_eq!(prr.budget, 1_000);
        prr.on_sent(1_000);
        prr.on_ack(1_000, true);
        prr.settle(10_000, 3_000);
        assert_eq!(prr.budget, 2_000);
        // Two acknowledgments before the window is set count together, and never more than the window holds.
        prr.on_ack(3_000, true);
        prr.on_ack(3_000, true);
        prr.settle(10_000, 7_500);
        assert_eq!(prr.budget, 2_000);
        prr.settle(10_000, 0);
        assert_eq!(prr.budget, 2_000, "without news nothing changes");
    }
}
