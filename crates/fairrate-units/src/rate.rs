use std::fmt;

use crate::parse::{ParseQuantityError, Unit, parse_quantity};
use crate::{Bytes, Time};

const PS_PER_S: u128 = 1_000_000_000_000;

/// A data rate in whole bits per second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rate(u64);

impl Rate {
    /// No transmission at all.
    pub const ZERO: Self = Self(0);
    /// Faster than every link: "not paced".
    pub const MAX: Self = Self(u64::MAX);

    /// Creates a rate of `bps` bits per second.
    pub const fn from_bps(bps: u64) -> Self {
        Self(bps)
    }
    /// Creates a rate of `mbps` megabits (10^6) per second.
    pub const fn from_mbps(mbps: u64) -> Self {
        Self(mbps * 1_000_000)
    }
    /// Creates a rate of `gbps` gigabits (10^9) per second.
    pub const fn from_gbps(gbps: u64) -> Self {
        Self(gbps * 1_000_000_000)
    }
    /// Creates a rate of `bps` bits per second, rounded down; negative values become zero.
    pub fn from_bps_f64(bps: f64) -> Self {
        Self(bps as u64)
    }
    /// Returns the rate in bits per second.
    pub const fn as_bps(self) -> u64 {
        self.0
    }
    /// Returns the rate in bits per second, as a real number.
    pub fn as_bps_f64(self) -> f64 {
        self.0 as f64
    }
    /// Returns the rate in gigabits per second.
    pub fn as_gbps_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }
    /// Returns the rate in bytes per second.
    pub fn as_bytes_per_sec(self) -> f64 {
        self.0 as f64 / 8.0
    }
    /// Returns the time to transmit `bytes` at this rate, rounded down to a picosecond; [`Time::MAX`] at rate zero.
    pub fn tx_time(self, bytes: Bytes) -> Time {
        if self.0 == 0 {
            return Time::MAX;
        }
        let ps = u128::from(bytes.as_u64()) * 8 * PS_PER_S / u128::from(self.0);
        Time::from_ps(u64::try_from(ps).unwrap_or(u64::MAX))
    }
    /// Returns the bytes that this rate transmits in `t`, rounded down.
    pub fn bytes_in(self, t: Time) -> Bytes {
        let bytes = u128::from(self.0) * u128::from(t.as_ps()) / (8 * PS_PER_S);
        Bytes::new(u64::try_from(bytes).unwrap_or(u64::MAX))
    }
}

const UNITS: &[Unit] = &[
    Unit { name: "bps", factor: 1 },
    Unit { name: "kbps", factor: 1_000 },
    Unit { name: "Mbps", factor: 1_000_000 },
    Unit { name: "Gbps", factor: 1_000_000_000 },
    Unit { name: "Tbps", factor: 1_000_000_000_000 },
];

impl std::str::FromStr for Rate {
    type Err = ParseQuantityError;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        parse_quantity(text, "rate", UNITS, "100Gbps").map(Self)
    }
}

/// Prints in the largest unit that leaves a whole number, so that the text parses back to the same value.
impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unit = UNITS.iter().rev().find(|u| self.0 != 0 && self.0.is_multiple_of(u.factor));
        let unit = unit.unwrap_or(&UNITS[0]);
        write!(f, "{}{}", self.0 / unit.factor, unit.name)
    }
}
