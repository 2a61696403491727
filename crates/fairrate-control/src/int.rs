use fairrate_units::{Rate, Time};

use crate::config::choice;

choice! {
    /// The byte counter of the egress port that a switch stamps.
    pub enum IntCounter {
        /// Bytes sent before the stamped packet (HPCC, and PowerTCP as published).
        Transmitted = "transmitted",
        /// Bytes ever put into the egress queue (PowerTCP's ns-3 artifact): its slope is the arrival rate λ.
        Enqueued = "enqueued",
    }
}

choice! {
    /// The encoding of telemetry by a switch.
    pub enum IntFormat {
        /// Exact picoseconds and bytes.
        Exact = "exact",
        /// The 64-bit record of the public HPCC code: 24 bits of nanoseconds, 20 bits of 128-byte units sent,
        /// 17 bits of 80-byte units queued; time and byte counter wrap.
        Packed = "packed",
    }
}

const PACKED_NS_BITS: u32 = 24;
const PACKED_BYTES_UNIT: u64 = 128;
const PACKED_BYTES_BITS: u32 = 20;
const PACKED_QLEN_UNIT: u64 = 80;
const PACKED_QLEN_BITS: u32 = 17;

const RATE_BITS: u32 = 28;
/// The powers of ten by which [`PortRate`] scales; they suffice for all rates.
const POWERS: [u64; 16] = {
    let mut powers = [1; 16];
    let mut i = 1;
    while i < powers.len() {
        powers[i] = 10 * powers[i - 1];
        i += 1;
    }
    powers
};

/// The rate of a port in 32 bits: a number below 2^28 times a power of ten. It is exact for rates with up to eight
/// digits before their zeros, such as 25.78125 Gb/s, and otherwise has an error below 2 in 10^8.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortRate(u32);

impl PortRate {
    /// Returns the nearest value to `rate`.
    pub fn new(rate: Rate) -> Self {
        let bps = rate.as_bps();
        let rounded = |power: &u64| bps / power + u64::from(power.div_ceil(2) <= bps % power);
        let scaled = (0_u32..).zip(POWERS.iter().map(rounded)).find(|&(_, n)| n < 1 << RATE_BITS);
        let (exponent, number) = scaled.expect("10^15 is enough for 64 bits");
        Self(exponent << RATE_BITS | number as u32)
    }

    fn parts(self) -> (u32, u64) {
        (self.0 & ((1 << RATE_BITS) - 1), POWERS[(self.0 >> RATE_BITS) as usize])
    }

    /// Returns the rate in bit/s.
    #[inline]
    pub fn as_bps_f64(self) -> f64 {
        let (number, power) = self.parts();
        f64::from(number) * power.cast_signed() as f64
    }
}

/// Telemetry of one egress port, stamped when a packet leaves its queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IntHop {
    /// Time of the dequeue.
    pub ts: Time,
    /// The counter that [`IntCounter`] names, in bytes.
    pub tx_bytes: u64,
    /// Bytes left in the port after the packet was removed.
    pub qlen: u32,
    /// Rate of the port.
    pub rate: PortRate,
}

/// The change between two records of the same port.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct IntDelta {
    /// Time between the stamps, in seconds; above zero.
    pub dt_s: f64,
    /// Time between the stamps, in nanoseconds.
    pub dt_ns: f64,
    /// Growth of the byte counter, in bytes.
    pub tx_bytes: f64,
    /// Growth of the queue, in bytes.
    pub qlen: f64,
}

impl IntHop {
    /// The record in place of a port that this packet did not pass and other packets of its flow may.
    pub const ABSENT: Self = Self { ts: Time::ZERO, tx_bytes: 0, qlen: 0, rate: PortRate(0) };

    /// Returns this record as `format` would carry it.
    #[must_use]
    pub fn encoded(self, format: IntFormat) -> Self {
        match format {
            IntFormat::Exact => self,
            IntFormat::Packed => Self {
                ts: Time::from_ns(self.ts.as_ns() % (1 << PACKED_NS_BITS)),
                tx_bytes: self.tx_bytes / PACKED_BYTES_UNIT % (1 << PACKED_BYTES_BITS) * PACKED_BYTES_UNIT,
                qlen: (u64::from(self.qlen) / PACKED_QLEN_UNIT % (1 << PACKED_QLEN_BITS) * PACKED_QLEN_UNIT) as u32,
                rate: self.rate,
            },
        }
    }

    /// Returns the change since `prev`, or `None` if the clock did not advance or one of the two is [`IntHop::ABSENT`].
    pub fn since(&self, prev: &Self, format: IntFormat) -> Option<IntDelta> {
        if self.rate.0 == 0 || prev.rate.0 == 0 {
            return None;
        }
        let (dt_s, dt_ns, tx_bytes) = match format {
            IntFormat::Exact => {
                let ps = self.ts.as_ps().checked_sub(prev.ts.as_ps())?.cast_signed() as f64;
                (ps / 1e12, ps / 1e3, self.tx_bytes.saturating_sub(prev.tx_bytes))
            }
            IntFormat::Packed => {
                let ns = (self.ts.as_ns().wrapping_sub(prev.ts.as_ns()) % (1 << PACKED_NS_BITS)) as f64;
                let range = PACKED_BYTES_UNIT << PACKED_BYTES_BITS;
                // A product where the exact form has a quotient: it equals the public code's result to the last bit.
                (ns * 1e-9, ns, self.tx_bytes.wrapping_sub(prev.tx_bytes) % range)
            }
        };
        (0.0 < dt_ns).then(|| IntDelta {
            dt_s,
            dt_ns,
            // Converted from signed integers, for which processors have an instruction; both differences are far below
            // 2^63.
            tx_bytes: tx_bytes.cast_signed() as f64,
            qlen: f64::from(self.qlen) - f64::from(prev.qlen),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packed_records_wrap_and_their_difference_does_not() {
        let rate = PortRate::new(Rate::from_gbps(25));
        let at = |ns, tx_bytes| IntHop { ts: Time::from_ns(ns), tx_bytes, qlen: 161, rate };
        let (a, b) = (at(16_777_000, 134_217_700), at(16_777_300, 134_218_900));
        let (a, b) = (a.encoded(IntFormat::Packed), b.encoded(IntFormat::Packed));
        assert_eq!(b.ts, Time::from_ns(84));
        assert_eq!(b.qlen, 160);
        let d = b.since(&a, IntFormat::Packed).expect("time advanced");
        // 134,217,700 rounds down to 134,217,600 and 134,218,900 to 134,218,880 in units of 128 bytes.
        assert_eq!((d.dt_ns, d.tx_bytes, d.qlen), (300.0, 1_280.0, 0.0));
    }

    #[test]
    fn rates_of_up_to_eight_digits_are_exact() {
        let exact = [0, 1, 500_000, 268_435_455, 999_999_990, 10_000_000_000, 25_781_250_000, 1_600_000_000_000];
        for bps in exact {
            assert_eq!(PortRate::new(Rate::from_bps(bps)).as_bps_f64(), bps as f64);
        }
        for bps in [268_435_456, 12_345_678_901, 99_999_999_999, u64::MAX] {
            let near = PortRate::new(Rate::from_bps(bps)).as_bps_f64();
            assert!((near / bps as f64 - 1.0).abs() < 2e-8, "{bps}: {near}");
        }
        assert_eq!(size_of::<IntHop>(), 24);
    }

    #[test]
    fn a_clock_that_stands_still_gives_nothing() {
        let hop = IntHop::default();
        assert_eq!(hop.since(&hop, IntFormat::Exact), None);
    }
}
