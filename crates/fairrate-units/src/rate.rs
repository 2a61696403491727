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

    /// `bps` bits per second.
    pub const fn from_bps(bps: u64) -> Self {
        Self(bps)
    }
    /// `mbps` megabits (10^6) per second.
    pub const fn from_mbps(mbps: u64) -> Self {
        Self(mbps * 1_000_000)
    }
    /// `gbps` gigabits (10^9) per second.
    pub const fn from_gbps(gbps: u64) -> Self {
        Self(gbps * 1_000_000_000)
    }
    /// `bps` bits per second, rounded down; negative values become zero.
    pub fn from_bps_f64(bps: f64) -> Self {
        Self(bps as u64)
    }
    /// Bits per second.
    pub const fn as_bps(self) -> u64 {
        self.0
    }
    /// Bits per second.
    pub fn as_bps_f64(self) -> f64 {
        self.0 as f64
    }
    /// Gigabits per second.
    pub fn as_gbps_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }
    /// Bytes per second.
    pub fn as_bytes_per_sec(self) -> f64 {
        self.0 as f64 / 8.0
    }
    /// The time `bytes` take at this rate, rounded down to a picosecond; [`Time::MAX`] at rate zero.
    pub fn tx_time(self, bytes: Bytes) -> Time {
        if self.0 == 0 {
            return Time::MAX;
        }
        let ps = u128::from(bytes.as_u64()) * 8 * PS_PER_S / u128::from(self.0);
        Time::from_ps(u64::try_from(ps).unwrap_or(u64::MAX))
    }
    /// The bytes this rate carries in `t`, rounded down.
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

/// Prints the largest unit that leaves a whole number, so that the text parses back to the same value.
impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unit = UNITS.iter().rev().find(|u| self.0 != 0 && self.0.is_multiple_of(u.factor));
        let unit = unit.unwrap_or(&UNITS[0]);
        write!(f, "{}{}", self.0 / unit.factor, unit.name)
    }
}
