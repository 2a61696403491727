use std::fmt;
use std::ops::{Add, AddAssign, Mul, Sub};

use crate::parse::{ParseQuantityError, Unit, parse_quantity};

/// A point in simulated time, or a duration, in whole picoseconds.
///
/// The range is 213 days, far beyond any simulated run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(u64);

impl Time {
    /// The start of simulated time, and the empty duration.
    pub const ZERO: Self = Self(0);
    /// Later than every event: "never".
    pub const MAX: Self = Self(u64::MAX);

    /// Creates a time of `ps` picoseconds.
    pub const fn from_ps(ps: u64) -> Self {
        Self(ps)
    }
    /// Creates a time of `ns` nanoseconds.
    pub const fn from_ns(ns: u64) -> Self {
        Self(ns * 1_000)
    }
    /// Creates a time of `us` microseconds.
    pub const fn from_us(us: u64) -> Self {
        Self(us * 1_000_000)
    }
    /// Creates a time of `ms` milliseconds.
    pub const fn from_ms(ms: u64) -> Self {
        Self(ms * 1_000_000_000)
    }
    /// Creates a time of `s` seconds, rounded to the nearest picosecond; negative values become zero.
    pub fn from_secs_f64(s: f64) -> Self {
        Self((s * 1e12).round() as u64)
    }
    /// Returns the time in whole picoseconds.
    pub const fn as_ps(self) -> u64 {
        self.0
    }
    /// Returns the time in whole nanoseconds, rounded down.
    pub const fn as_ns(self) -> u64 {
        self.0 / 1_000
    }
    /// Returns the time in nanoseconds.
    pub fn as_ns_f64(self) -> f64 {
        self.0 as f64 / 1e3
    }
    /// Returns the time in microseconds.
    pub fn as_us_f64(self) -> f64 {
        self.0 as f64 / 1e6
    }
    /// Returns the time in seconds.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e12
    }
    /// Returns `self - earlier`, or zero if `earlier` is later.
    #[must_use]
    pub const fn saturating_sub(self, earlier: Self) -> Self {
        Self(self.0.saturating_sub(earlier.0))
    }
    /// Returns `self + d`, at most [`Time::MAX`].
    #[must_use]
    pub const fn saturating_add(self, d: Self) -> Self {
        Self(self.0.saturating_add(d.0))
    }
    /// Returns this time cut to whole nanoseconds, as in simulators with a nanosecond clock.
    #[must_use]
    pub const fn floor_to_ns(self) -> Self {
        Self(self.0 / 1_000 * 1_000)
    }
}

impl Add for Time {
    type Output = Self;
    fn add(self, d: Self) -> Self {
        Self(self.0 + d.0)
    }
}
impl AddAssign for Time {
    fn add_assign(&mut self, d: Self) {
        self.0 += d.0;
    }
}
impl Sub for Time {
    type Output = Self;
    fn sub(self, d: Self) -> Self {
        Self(self.0 - d.0)
    }
}
impl Mul<u64> for Time {
    type Output = Self;
    fn mul(self, n: u64) -> Self {
        Self(self.0 * n)
    }
}

const UNITS: &[Unit] = &[
    Unit { name: "ps", factor: 1 },
    Unit { name: "ns", factor: 1_000 },
    Unit { name: "us", factor: 1_000_000 },
    Unit { name: "µs", factor: 1_000_000 },
    Unit { name: "ms", factor: 1_000_000_000 },
    Unit { name: "s", factor: 1_000_000_000_000 },
];

impl std::str::FromStr for Time {
    type Err = ParseQuantityError;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        parse_quantity(text, "time", UNITS, "8us").map(Self)
    }
}

/// Prints in the largest unit that leaves a whole number, so that the text parses back to the same value. With a
/// precision, as in `{:.3}`, prints with as many decimals in the largest unit that is not above the value.
impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == 0 {
            return f.write_str("0s");
        }
        if let Some(decimals) = f.precision() {
            let unit = UNITS.iter().rev().filter(|u| u.name != "µs").find(|u| u.factor <= self.0).unwrap_or(&UNITS[0]);
            return write!(f, "{:.decimals$}{}", self.0 as f64 / unit.factor as f64, unit.name);
        }
        let unit = UNITS.iter().rev().filter(|u| u.name != "µs").find(|u| self.0.is_multiple_of(u.factor));
        let unit = unit.unwrap_or(&UNITS[0]);
        write!(f, "{}{}", self.0 / unit.factor, unit.name)
    }
}
