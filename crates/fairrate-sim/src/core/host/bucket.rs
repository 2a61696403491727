//! The token bucket of a flow's rate limiter at its NIC, as in the OMNeT++ code of RoCC's authors, kept as a time.

use fairrate_control::Bucket;
use fairrate_units::{Bytes, Rate};

use crate::core::run::Rules;

/// Returns the new send time of a packet that had to wait until `at_ps` at the rate `before`: the rest of the wait is
/// scaled to `rate`. A credit (a time in the past) stays as it is.
pub(super) fn repaced(at_ps: u64, now_ps: u64, before: Rate, rate: Rate) -> u64 {
    if at_ps <= now_ps || rate == Rate::ZERO {
        return at_ps;
    }
    let wait = u128::from(at_ps - now_ps) * u128::from(before.as_bps()) / u128::from(rate.as_bps());
    now_ps.saturating_add(u64::try_from(wait).unwrap_or(u64::MAX))
}

/// Time between two fillings of the bucket of RoCC's public simulation.
const FILLING_PS: u64 = 10_000;

/// The contents of a flow's bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Filled {
    /// The time at which the bucket had enough for the next packet. In the past it stands for a credit: what goes at
    /// the flow's rate in the time since.
    pub(super) next_ps: u64,
    /// Bits of credit besides, if that time would be before zero.
    pub(super) more_bits: u64,
}

impl Filled {
    /// Returns the bucket as the flow's rate changes from the first to the second of `rates`, on a link of the third,
    /// with its algorithm's kind of bucket and packets of `mtu` bytes of payload.
    pub(super) fn in_bucket_of(
        self,
        c: &Rules,
        mtu: u64,
        now_ps: u64,
        (before, rate, line): (Rate, Rate, Rate),
    ) -> Self {
        // What nothing empties has no line rate.
        let line = if c.bucket == Bucket::Kept { Rate::MAX } else { line };
        self.refilled(now_ps, (before, rate, line), mtu + c.data_header)
    }

    /// Returns the bucket as the flow's rate changes from `before` to `rate` on a link of rate `line`. It is empty when
    /// a limit is first set: it then fills for a packet of `packet` bytes. A credit keeps its bytes. Each change fills
    /// it once.
    fn refilled(self, now_ps: u64, (before, rate, line): (Rate, Rate, Rate), packet: u64) -> Self {
        let empty = |next_ps| Self { next_ps, more_bits: 0 };
        if line <= rate {
            return empty(self.next_ps.min(now_ps));
        }
        if line <= before {
            return empty(now_ps + rate.tx_time(Bytes::new(packet)).as_ps().saturating_sub(FILLING_PS));
        }
        if now_ps < self.next_ps {
            return empty(repaced(self.next_ps, now_ps, before, rate).saturating_sub(FILLING_PS));
        }
        // In bits times 10^12.
        let (bps, second) = (u128::from(rate.as_bps().max(1)), 1_000_000_000_000);
        let held =
            u128::from(now_ps - self.next_ps) * u128::from(before.as_bps()) + u128::from(self.more_bits) * second;
        let back = held / bps;
        match u64::try_from(back) {
            Ok(back) if back <= now_ps => empty(now_ps - back),
            _ => {
                let more_bits = (held - u128::from(now_ps) * bps) / second;
                Self { next_ps: 0, more_bits: u64::try_from(more_bits).unwrap_or(u64::MAX) }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_fills_by_its_rate() {
        let (line, half, tenth) = (Rate::from_gbps(40), Rate::from_gbps(20), Rate::from_gbps(4));
        let refilled = |next_ps, rates| {
            let filled = Filled { next_ps, more_bits: 0 }.refilled(1_000_000, rates, 1_500);
            assert_eq!(filled.more_bits, 0);
            filled.next_ps
        };
        // Empty when first limited: 1,500 bytes at 4 Gb/s are 3 us, less one filling.
        assert_eq!(refilled(400_000, (line, tenth, line)), 1_000_000 + 3_000_000 - FILLING_PS);
        // What is missing fills five times as fast; a credit lasts five times as long at a fifth of the rate.
        assert_eq!(refilled(2_000_000, (tenth, half, line)), 1_200_000 - FILLING_PS);
        assert_eq!(refilled(900_000, (half, tenth, line)), 500_000);
        // Without a limit nothing waits, and no credit is lost that comes later.
        assert_eq!((refilled(2_000_000, (half, line, line)), refilled(5, (half, line, line))), (1_000_000, 5));
    }

    /// 20 Gb/s for 1 us are 20,000 bits. At 4 Gb/s that is 5 us, of which 4 us would be before time zero.
    #[test]
    fn a_credit_may_be_older_than_time() {
        let (line, half, tenth) = (Rate::from_gbps(40), Rate::from_gbps(20), Rate::from_gbps(4));
        let full = Filled { next_ps: 0, more_bits: 0 }.refilled(1_000_000, (half, tenth, line), 1_500);
        assert_eq!(full, Filled { next_ps: 0, more_bits: 16_000 });
        let back = full.refilled(1_000_000, (tenth, half, line), 1_500);
        assert_eq!(back, Filled { next_ps: 0, more_bits: 0 });
    }
}
