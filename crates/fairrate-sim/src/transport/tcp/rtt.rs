use fairrate_units::Time;

const A_SECOND_PS: u64 = 1_000_000_000_000;

/// Smoothed round-trip time and retransmission timeout (RFC 6298), with configured bounds: datacenters need far less
/// than a second.
#[derive(Clone, Debug)]
pub struct RttEstimator {
    /// SRTT and RTTVAR in picoseconds; `None` before the first sample.
    smoothed: Option<(u64, u64)>,
    rto_min_ps: u64,
    rto_max_ps: u64,
    /// Lower bound of four RTTVAR (G).
    granularity_ps: u64,
    /// The timeout before the first sample.
    initial_ps: u64,
    /// Number of timeouts in a row: each doubles the timeout.
    backoff: u32,
}

impl RttEstimator {
    /// Returns an estimator without samples: the timeout is a second (RFC 6298 (2.1)).
    pub fn new(rto_min: Time, rto_max: Time, granularity: Time) -> Self {
        Self {
            smoothed: None,
            rto_min_ps: rto_min.as_ps(),
            rto_max_ps: rto_max.as_ps(),
            granularity_ps: granularity.as_ps(),
            initial_ps: A_SECOND_PS,
            backoff: 0,
        }
    }

    /// Starts anew with a timeout of three seconds (RFC 6298 (5.7)), after a handshake of several attempts, whose
    /// round-trip time is not known.
    pub fn start_over(&mut self) {
        (self.initial_ps, self.backoff) = (3 * A_SECOND_PS, 0);
    }

    /// Takes a sample from a segment that was sent once. RFC 6298 (2.2), (2.3): α = 1/8, β = 1/4.
    pub fn sample(&mut self, rtt_ps: u64) {
        self.smoothed = Some(match self.smoothed {
            None => (rtt_ps, rtt_ps / 2),
            Some((srtt, var)) => {
                let var = var - var / 4 + srtt.abs_diff(rtt_ps) / 4;
                (srtt - srtt / 8 + rtt_ps / 8, var)
            }
        });
        self.backoff = 0;
    }

    /// Returns SRTT in picoseconds, if there is a sample.
    pub fn srtt_ps(&self) -> Option<u64> {
        self.smoothed.map(|(srtt, _)| srtt)
    }

    /// Returns the current timeout, within its bounds and doubled for every timeout in a row. RFC 6298 (2.2), (2.3):
    /// SRTT + max(G, 4 RTTVAR).
    pub fn rto_ps(&self) -> u64 {
        let base = match self.smoothed {
            None => self.initial_ps,
            Some((srtt, var)) => srtt.saturating_add(var.saturating_mul(4).max(self.granularity_ps)),
        };
        let base = base.clamp(self.rto_min_ps, self.rto_max_ps);
        base.checked_shl(self.backoff.min(40)).unwrap_or(u64::MAX).clamp(base, self.rto_max_ps)
    }

    /// Records that the timeout has expired.
    pub fn back_off(&mut self) {
        self.backoff = self.backoff.saturating_add(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_by_hand() {
        let mut rtt = RttEstimator::new(Time::from_us(20), Time::from_ms(10), Time::from_us(1));
        assert_eq!((rtt.rto_ps(), rtt.srtt_ps()), (10_000_000_000, None));
        // 8 us: SRTT 8, RTTVAR 4, timeout 24 us. Then 16 us: RTTVAR 3 + 8/4 = 5, SRTT 7 + 2 = 9, timeout 29 us.
        rtt.sample(8_000_000);
        assert_eq!(rtt.rto_ps(), 24_000_000);
        rtt.sample(16_000_000);
        assert_eq!((rtt.srtt_ps(), rtt.rto_ps()), (Some(9_000_000), 29_000_000));
        // Doubled by every timeout up to the bound; a sample resets that.
        rtt.back_off();
        rtt.back_off();
        assert_eq!(rtt.rto_ps(), 116_000_000);
        (0..60).for_each(|_| rtt.back_off());
        assert_eq!(rtt.rto_ps(), 10_000_000_000);
        // Constant RTTs reduce the variance to zero and the timeout to its floor.
        (0..100).for_each(|_| rtt.sample(2_000_000));
        assert_eq!(rtt.rto_ps(), 20_000_000);
        // Above the floor, a variance of zero counts as the clock's granularity.
        (0..100).for_each(|_| rtt.sample(40_000_000));
        (0..60).for_each(|_| rtt.sample(40_000_000));
        assert_eq!(rtt.rto_ps(), rtt.srtt_ps().expect("there are samples") + 1_000_000);
    }

    #[test]
    fn a_handshake_without_a_sample_is_followed_by_three_seconds() {
        let mut rtt = RttEstimator::new(Time::from_ms(1), Time::from_ms(60_000), Time::from_us(1));
        assert_eq!(rtt.rto_ps(), A_SECOND_PS);
        rtt.back_off();
        rtt.start_over();
        assert_eq!(rtt.rto_ps(), 3 * A_SECOND_PS);
        rtt.sample(100_000_000);
        assert_eq!(rtt.rto_ps(), A_SECOND_PS / 1_000);
    }
}
