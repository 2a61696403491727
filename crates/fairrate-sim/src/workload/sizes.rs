//! Flow-size distributions.

use fairrate_units::Bytes;

use crate::input_error::{FieldError, FileError};

/// A distribution of flow sizes: a CDF that is linear between its points.
#[derive(Clone, Debug, PartialEq)]
pub struct SizeDistribution {
    /// (bytes, probability of at most that many), both ascending, the last probability 1.
    points: Vec<(f64, f64)>,
}

/// A named size distribution.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WorkloadInfo {
    /// Its name in scenarios.
    pub name: &'static str,
    /// What it is.
    pub title: &'static str,
    /// Where its points come from.
    pub source: &'static str,
    /// Its mean in bytes, as sampled.
    pub mean: f64,
}

/// All named distributions.
pub const WORKLOADS: &[WorkloadInfo] = &[];

impl SizeDistribution {
    /// A named one of [`WORKLOADS`].
    pub fn by_name(name: &str) -> Option<Self> {
        let _ = name;
        None
    }
    /// Every flow has this size.
    pub fn fixed(bytes: Bytes) -> Self {
        Self { points: vec![(bytes.as_f64(), 1.0)] }
    }
    /// From points (bytes, CDF).
    ///
    /// # Errors
    /// If they are no CDF.
    pub fn from_points(points: &[(f64, f64)]) -> Result<Self, FieldError> {
        Ok(Self { points: points.to_vec() })
    }
    /// Reads a text of `bytes cdf` lines.
    ///
    /// # Errors
    /// Tells the line of the first thing that is wrong.
    pub fn parse_file(text: &str) -> Result<Self, FileError> {
        let _ = text;
        Ok(Self { points: Vec::new() })
    }
    /// Exact mean in bytes.
    pub fn mean(&self) -> f64 {
        0.0
    }
    /// The size at quantile `u` in [0, 1); at least a byte.
    pub fn sample(&self, u: f64) -> Bytes {
        let _ = u;
        Bytes::new(1)
    }
}
