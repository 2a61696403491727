use fairrate_units::Time;

/// Smoothed round-trip time and retransmission timeout (RFC 6298), with bounds of one's own: datacenters need far less
/// than a second.
#[derive(Clone, Debug)]
pub struct RttEstimator {
    /// SRTT and RTTVAR in picoseconds; none before the first sample.
    smoothed: Option<(u64, u64)>,
    rto_min_ps: u64,
    rto_max_ps: u64,
    /// Timeouts in a row: each doubles the timeout.
    backoff: u32,
}

impl RttEstimator {
    /// No samples yet.
    pub fn new(rto_min: Time, rto_max: Time) -> Self {
        let (rto_min_ps, rto_max_ps) = (rto_min.as_ps(), rto_max.as_ps());
        Self { smoothed: None, rto_min_ps, rto_max_ps, backoff: 0 }
    }

    /// Takes a sample of a segment that was sent once. RFC 6298 (2.2), (2.3): α = 1/8, β = 1/4.
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

    /// SRTT in picoseconds, if there is a sample.
    pub fn srtt_ps(&self) -> Option<u64> {
        self.smoothed.map(|(srtt, _)| srtt)
    }

    /// The timeout in force, SRTT + 4 RTTVAR within its bounds and doubled for every timeout in a row. Before the first
    /// sample it is the upper bound, at most a second (RFC 6298 (2.1)).
    pub fn rto_ps(&self) -> u64 {
        const A_SECOND: u64 = 1_000_000_000_000;
        let base = match self.smoothed {
            None => self.rto_max_ps.min(A_SECOND),
            Some((srtt, var)) => srtt.saturating_add(var.saturating_mul(4)),
        };
        let base = base.clamp(self.rto_min_ps, self.rto_max_ps);
        base.checked_shl(self.backoff.min(40)).unwrap_or(u64::MAX).clamp(base, self.rto_max_ps)
    }

    /// The timeout has expired.
    pub fn back_off(&mut self) {
        self.backoff = self.backoff.saturating_add(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_by_hand() {
        let mut rtt = RttEstimator::new(Time::from_us(20), Time::from_ms(10));
        assert_eq!((rtt.rto_ps(), rtt.srtt_ps()), (10_000_000_000, None));
        // 8 us: SRTT 8, RTTVAR 4, timeout 24 us. Then 16 us: RTTVAR 3 + 8/4 = 5, SRTT 7 + 2 = 9, timeout 29 us.
        rtt.sample(8_000_000);
        assert_eq!(rtt.rto_ps(), 24_000_000);
        rtt.sample(16_000_000);
        assert_eq!((rtt.srtt_ps(), rtt.rto_ps()), (Some(9_000_000), 29_000_000));
        // Doubled by every timeout up to the bound; a sample takes that back.
        rtt.back_off();
        rtt.back_off();
        assert_eq!(rtt.rto_ps(), 116_000_000);
        (0..60).for_each(|_| rtt.back_off());
        assert_eq!(rtt.rto_ps(), 10_000_000_000);
        // Constant RTTs bring the variance to nothing and the timeout to its floor.
        (0..100).for_each(|_| rtt.sample(2_000_000));
        assert_eq!(rtt.rto_ps(), 20_000_000);
    }
}
