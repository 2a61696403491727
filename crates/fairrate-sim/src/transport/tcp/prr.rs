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
#[derive(Clone, Copy, Debug)]
pub struct Prr {
    mss: u64,
    flight: u64,
    delivered: u64,
    sent: u64,
    budget: u64,
    /// Bytes delivered since the budget was set, and `true` if the last acknowledgment was safe.
    news: Option<(u64, bool)>,
}

impl Prr {
    /// Starts a recovery with `flight` bytes in flight.
    pub fn new(mss: u64, flight: u64) -> Self {
        Self { mss, flight: flight.max(mss), delivered: 0, sent: 0, budget: 0, news: None }
    }

    /// Records an acknowledgment that delivered `delivered` bytes; it is `safe` if it is for new data in order and
    /// nothing more is lost.
    pub fn on_ack(&mut self, delivered: u64, safe: bool) {
        self.delivered += delivered;
        let before = self.news.map_or(0, |news| news.0);
        self.news = Some((before + delivered, safe));
    }

    /// Sets the budget (RFC 9937 section 6.2), from the controller's `window` and the bytes in flight after the
    /// acknowledgment, `pipe`.
    pub fn settle(&mut self, window: u64, pipe: u64) {
        let Some((news, safe)) = self.news.take() else { return };
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

    /// Records a segment of `len` bytes that is sent.
    pub fn on_sent(&mut self, len: u64) {
        self.sent += len;
        self.budget = self.budget.saturating_sub(len);
    }

    /// Returns `true` if another segment may be sent.
    pub fn has_budget(&self) -> bool {
        0 < self.budget
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
