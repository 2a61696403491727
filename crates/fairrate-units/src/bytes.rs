use std::fmt;
use std::ops::{Add, AddAssign, Sub};

use crate::parse::{ParseQuantityError, Unit, parse_whole};

/// A number of bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bytes(u64);

impl Bytes {
    /// Zero bytes.
    pub const ZERO: Self = Self(0);
    /// More than any flow or buffer holds: "unlimited".
    pub const MAX: Self = Self(u64::MAX);

    /// Creates a size of `n` bytes.
    pub const fn new(n: u64) -> Self {
        Self(n)
    }
    /// Returns the number of bytes.
    pub const fn as_u64(self) -> u64 {
        self.0
    }
    /// Returns the number of bytes as a real number.
    pub fn as_f64(self) -> f64 {
        self.0 as f64
    }
}

impl Add for Bytes {
    type Output = Self;
    fn add(self, b: Self) -> Self {
        Self(self.0 + b.0)
    }
}
impl AddAssign for Bytes {
    fn add_assign(&mut self, b: Self) {
        self.0 += b.0;
    }
}
impl Sub for Bytes {
    type Output = Self;
    fn sub(self, b: Self) -> Self {
        Self(self.0 - b.0)
    }
}

const UNITS: &[Unit] = &[
    Unit { name: "B", factor: 1 },
    Unit { name: "KB", factor: 1_000 },
    Unit { name: "MB", factor: 1_000_000 },
    Unit { name: "GB", factor: 1_000_000_000 },
    Unit { name: "TB", factor: 1_000_000_000_000 },
    Unit { name: "KiB", factor: 1 << 10 },
    Unit { name: "MiB", factor: 1 << 20 },
    Unit { name: "GiB", factor: 1 << 30 },
];

impl std::str::FromStr for Bytes {
    type Err = ParseQuantityError;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        parse_whole(text, "size", UNITS, "4MiB").map(Self)
    }
}

/// Prints in the largest unit that leaves a whole number, so that the text parses back to the same value.
impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let whole = |u: &&Unit| self.0 != 0 && self.0.is_multiple_of(u.factor);
        let unit = UNITS.iter().filter(whole).max_by_key(|u| u.factor).unwrap_or(&UNITS[0]);
        write!(f, "{}{}", self.0 / unit.factor, unit.name)
    }
}
