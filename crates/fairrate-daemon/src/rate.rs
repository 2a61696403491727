//! Rates and weights in the wire format: 16 bits each.

/// A rate in 16 bits: 5 of exponent, then 11 of mantissa, in kbit/s.
///
/// With exponent 0 the mantissa is the rate, below 2,048 kbit/s; with exponent e the rate is (2,048 + mantissa) ·
/// 2^(e - 1) kbit/s. The relative error is at most 2^-12 from 2 Mbit/s on, and the error below is at most 0.5 kbit/s.
/// Zero means that the allocator gives no rate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct WireRate(pub u16);

/// Number of bits of the mantissa, which is below the exponent.
const MANTISSA_BITS: u32 = 11;

impl WireRate {
    /// No rate.
    pub const NONE: Self = Self(0);

    /// Returns the nearest representable rate. A rate above 0 stays above 0, and a rate above the largest (4.4 Pbit/s)
    /// becomes the largest.
    pub fn from_bps(rate_bps: f64) -> Self {
        if rate_bps.is_nan() || rate_bps <= 0.0 {
            return Self::NONE;
        }
        // The largest is below 2^42 kbit/s.
        let rate_kbps = (rate_bps / 1e3).min((1_u64 << 42) as f64);
        let kbps = rate_kbps.round().max(1.0);
        if kbps < f64::from(1 << MANTISSA_BITS) {
            return Self(kbps as u16);
        }
        // The code of a number is its bits without the leading one; rounding up carries into the exponent.
        let exponent = (kbps as u64).ilog2() - MANTISSA_BITS;
        let mantissa = (rate_kbps / (1_u64 << exponent) as f64).round() as u64;
        let code = (u64::from(exponent + 1) << MANTISSA_BITS) + mantissa - (1 << MANTISSA_BITS);
        Self(u16::try_from(code).unwrap_or(u16::MAX))
    }

    /// Returns the largest representable rate that is not above `kbps` kbit/s.
    pub fn at_most_kbps(kbps: u64) -> Self {
        let nearest = Self::from_bps(kbps as f64 * 1e3);
        // The code of the next lower rate is one less.
        if kbps < nearest.as_kbps() { Self(nearest.0 - 1) } else { nearest }
    }

    /// Returns the rate in bit/s.
    pub fn as_bps(self) -> f64 {
        self.as_kbps() as f64 * 1e3
    }

    /// Returns the rate in kbit/s, which is exact.
    pub fn as_kbps(self) -> u64 {
        let (exponent, mantissa) = (self.0 >> MANTISSA_BITS, u64::from(self.0) & ((1 << MANTISSA_BITS) - 1));
        match exponent {
            0 => mantissa,
            e => ((1 << MANTISSA_BITS) + mantissa) << (e - 1),
        }
    }
}

/// A flow's weight, in 256ths: from 1/256 to 255.996.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Weight(u16);

impl Weight {
    /// The weight 1.
    pub const ONE: Self = Self(256);

    /// The smallest weight, 1/256.
    pub const LEAST: Self = Self(1);

    /// The largest weight, 255.996.
    pub const MOST: Self = Self(u16::MAX);

    /// Creates a weight from its wire format; returns `None` for 0, as a weight is above 0.
    pub const fn from_bits(bits: u16) -> Option<Self> {
        if bits == 0 { None } else { Some(Self(bits)) }
    }

    /// Returns the wire format.
    pub const fn bits(self) -> u16 {
        self.0
    }

    /// Returns the nearest weight; a value out of range becomes the nearest end of the range, and NaN the smallest
    /// weight.
    pub fn from_f64(weight: f64) -> Self {
        let weight = if weight.is_nan() { 0.0 } else { weight };
        Self((weight * 256.0).round().clamp(1.0, f64::from(u16::MAX)) as u16)
    }

    /// Returns `true` if `weight` is in the range.
    pub fn fits(weight: f64) -> bool {
        (Self::LEAST.as_f64()..=Self::MOST.as_f64()).contains(&weight)
    }

    /// Returns the weight as a number.
    pub fn as_f64(self) -> f64 {
        f64::from(self.0) / 256.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_is_the_code_of_its_rate() {
        for code in 0..=u16::MAX {
            assert_eq!(WireRate::from_bps(WireRate(code).as_bps()).0, code);
        }
    }

    #[test]
    fn rates_are_off_by_a_4096th_at_most() {
        // 2^-12 of the rate from 2.048 Mbit/s on, half a kbit/s below; steps of 0.1 % meet every exponent many times.
        let mut rate_bps = 900.0;
        while rate_bps < 4e15 {
            let error = (WireRate::from_bps(rate_bps).as_bps() - rate_bps).abs();
            assert!(error <= (rate_bps / 4096.0).max(500.0), "{rate_bps}: {error}");
            rate_bps *= 1.001;
        }
    }

    #[test]
    fn at_most_is_never_above() {
        for code in 0..u16::MAX {
            let (rate, next) = (WireRate(code), WireRate(code + 1));
            assert_eq!(WireRate::at_most_kbps(rate.as_kbps()), rate);
            assert_eq!(WireRate::at_most_kbps(next.as_kbps() - 1), rate);
        }
    }

    #[test]
    fn ends_are_kept() {
        assert_eq!(WireRate::from_bps(f64::NAN), WireRate::NONE);
        assert_eq!(WireRate::from_bps(-1.0), WireRate::NONE);
        assert_eq!(WireRate::from_bps(1.0), WireRate(1));
        assert_eq!(WireRate::from_bps(f64::INFINITY), WireRate(u16::MAX));
        assert_eq!((Weight::from_f64(0.0).bits(), Weight::from_f64(1e9).bits()), (1, u16::MAX));
        assert!([1.0 / 256.0, 1.0, 255.9].into_iter().all(Weight::fits));
        assert!(![0.0, -1.0, 256.0, 1e5, f64::NAN, f64::INFINITY].into_iter().any(Weight::fits));
        assert_eq!(Weight::from_f64(f64::NAN).bits(), 1, "0 is no weight, and would end the connection");
        assert_eq!((Weight::from_f64(2.0).as_f64(), Weight::from_bits(0)), (2.0, None));
    }
}
