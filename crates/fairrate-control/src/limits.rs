//! Calculations that several algorithms share: the bandwidth-delay product, the window that follows a rate, the window
//! after an idle period, the test whether the window limits a flow, and the rate limiter of a NIC.

use fairrate_units::{Bytes, Rate, Time};

use crate::config::choice;
use crate::controller::Ack;
use crate::needs::{Bucket, PacingNeeds};

choice! {
    /// The rate limiter of a flow at its NIC.
    pub enum RateLimiter {
        /// Packets are spaced: each is a packet's time at the present rate behind the one before.
        Spaced = "spaced",
        /// The token bucket of the OMNeT++ code of RoCC's authors, without an upper bound.
        Bucket = "bucket",
    }
}

impl RateLimiter {
    /// Returns the pacing of the limiter, where `bucket` says what empties it.
    pub(crate) const fn needs(self, bucket: Bucket) -> PacingNeeds {
        match self {
            Self::Spaced => PacingNeeds::NOTHING,
            Self::Bucket => PacingNeeds { pacing_credit: u32::MAX, bucket, ..PacingNeeds::NOTHING },
        }
    }
}

/// Returns the bytes in flight at `rate` over `rtt`.
pub(crate) fn bdp(rate: Rate, rtt: Time) -> f64 {
    rate.bytes_in(rtt).as_f64()
}

/// Returns the ns-3 artifact's window of a rate-based flow: `first_window` times `rate` / `line_rate`, in whole bytes
/// and at least one byte.
pub(crate) fn scaled_window(first_window: f64, rate: f64, line_rate: f64) -> Bytes {
    Bytes::new(((first_window * rate / line_rate) as u64).max(1))
}

/// Returns cwnd and ssthresh of a flow that has been idle for `timeouts` retransmission timeouts, as in Linux (RFC 2861
/// section 3.2): `cwnd` halves for each timeout, down to the `first` window, and `ssthresh` rises to at least three
/// quarters of the old `cwnd`.
pub(crate) fn after_idle(cwnd: f64, ssthresh: f64, first: f64, timeouts: u32) -> (f64, f64) {
    let halved = (0..timeouts.min(64)).fold(cwnd, |window, _| window / 2.0);
    (halved.max(first.min(cwnd)), ssthresh.max(0.75 * cwnd))
}

/// The state of the test whether the window limits a flow; only then may the window grow (RFC 7661).
///
/// If acknowledgments arrive at line rate, a growing window is full only at the end of the burst, when the NIC has
/// caught up. So the test is not whether the window is full now, but whether it was full while the data acknowledged
/// now was in flight.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct WindowUse {
    full_until: u64,
}

impl WindowUse {
    /// Returns `true` if the window may grow on `ack`. `cwnd` is the window in bytes before the acknowledgment; with
    /// less than a segment of `mss` bytes free it counts as full.
    pub(crate) fn limits(&mut self, ack: &Ack<'_>, cwnd: f64, mss: f64) -> bool {
        if cwnd <= ack.in_flight as f64 + ack.newly_acked as f64 + mss {
            self.full_until = ack.snd_nxt;
        }
        ack.ack_seq <= self.full_until
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_flow::acked;

    #[test]
    fn an_idle_window_halves_for_every_timeout_down_to_the_first() {
        assert_eq!(after_idle(100.0, 60.0, 10.0, 1), (50.0, 75.0));
        assert_eq!(after_idle(100.0, 80.0, 10.0, 3), (12.5, 80.0));
        assert_eq!(after_idle(100.0, f64::INFINITY, 10.0, u32::MAX), (10.0, f64::INFINITY));
        assert_eq!(after_idle(8.0, 4.0, 10.0, 2), (8.0, 6.0));
    }

    #[test]
    fn a_window_that_was_full_may_grow_until_that_data_is_acknowledged() {
        let mut window = WindowUse::default();
        let mut limits = |ack_seq: u64, in_flight: u64, cwnd: f64| {
            let ack = Ack { newly_acked: 1_000, in_flight, ..acked(ack_seq, 8_000, ack_seq + in_flight) };
            window.limits(&ack, cwnd, 1_000.0)
        };
        // The window is full with bytes up to 10,000 sent. The NIC sends one packet for each acknowledged one, and the
        // window grows by one packet.
        assert!(limits(1_000, 9_000, 10_000.0));
        assert!((2..=10).all(|i| limits(1_000 * i, 9_000, 9_000.0 + 1_000.0 * i as f64)));
        // The window is not full from 13,000 to 20,000 bytes (at 12,000 it is full but for a segment); data sent
        // since does not make it grow.
        assert!(!limits(13_000, 9_000, 20_000.0));
        // The NIC has caught up.
        assert!(limits(14_000, 19_000, 20_000.0));
        assert!(limits(33_000, 9_000, 39_000.0));
        assert!(!limits(34_000, 9_000, 40_000.0));
    }
}
