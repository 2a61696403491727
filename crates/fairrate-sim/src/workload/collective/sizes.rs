//! The bytes that pairs of ranks exchange in an all-to-all.

use std::sync::Arc;

use fairrate_units::Bytes;

use super::part;
use crate::input_error::{FieldError, FileError};
use crate::rng::{Purpose, Stream};

/// Largest entry of a matrix: what is larger is a slip.
const MOST: u64 = 1_000_000_000_000;

/// The bytes of each pair of ranks in an all-to-all.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Sizes {
    /// Every rank sends equal parts of its buffer.
    #[default]
    Even,
    /// Some ranks get more than others, as those with popular experts do: the part of the one with most is this
    /// multiple of the mean, from 1 to the number of ranks. Loads fall as a power of their rank (Zipf), and which rank
    /// has which is random.
    Imbalance(f64),
    /// Given: row after row, a row for each sender. The bytes from a rank to itself are not sent.
    Matrix(Arc<[u64]>),
}

impl Sizes {
    /// Returns the sizes among `n` ranks that have buffers of `bytes` each, with an imbalance drawn.
    pub(super) fn drawn(&self, bytes: Bytes, n: usize, seed: u64, group: u32) -> Result<Self, FieldError> {
        match self {
            Self::Imbalance(most) if *most < 1.0 || n as f64 <= *most => {
                let message = format!("an imbalance of {most} among {n} ranks");
                Err(FieldError::new("imbalance", message).help(format!("write a number from 1 to less than {n}")))
            }
            Self::Imbalance(most) => {
                let mut stream = Stream::new(seed, u64::from(group), Purpose::Participants);
                Ok(Self::of_shares(bytes, &drawn_shares(n, *most, &mut stream)))
            }
            Self::Matrix(matrix) if matrix.len() != n * n => {
                let side = matrix.len().isqrt();
                let message = format!("the matrix is for {side} ranks, and there are {n}");
                Err(FieldError::new("path", message).help("name as many `hosts` as the file has lines"))
            }
            other => Ok(other.clone()),
        }
    }

    /// Returns the sizes where every rank divides `bytes` among the ranks by these shares, which add up to one.
    pub(in crate::workload) fn of_shares(bytes: Bytes, shares: &[f64]) -> Self {
        let row = divided(bytes.as_u64(), shares);
        Self::Matrix(shares.iter().flat_map(|_| row.iter().copied()).collect())
    }

    /// Returns the sizes of the way back: each rank sends what it has got from another one to that.
    #[must_use]
    pub(in crate::workload) fn transposed(&self) -> Self {
        let Self::Matrix(matrix) = self else { return self.clone() };
        let n = matrix.len().isqrt();
        Self::Matrix((0..n * n).map(|at| matrix[at % n * n + at / n]).collect())
    }

    /// Reads a matrix: a line for each sender, with the bytes for each receiver, separated by commas. Blank lines and
    /// lines that begin with `#` do not count.
    ///
    /// # Errors
    /// Names the first line that cannot be read, or that has another number of fields than there are lines.
    pub fn parse_matrix(text: &str) -> Result<Self, FileError> {
        let lines = (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty() && !line.starts_with('#'));
        let lines: Vec<(usize, &str)> = lines.collect();
        let mut matrix = Vec::new();
        for &(at, line) in &lines {
            let fields: Vec<&str> = line.split(',').map(str::trim).collect();
            if fields.len() != lines.len() {
                let message = format!("{} fields in a matrix of {} lines", fields.len(), lines.len());
                return Err(FileError::new(at, message).help("write the bytes for each receiver, itself included"));
            }
            for field in fields {
                let bytes = field.parse::<u64>().ok().filter(|&bytes| bytes <= MOST);
                let error = || FileError::new(at, format!("`{field}` is no number of bytes"));
                matrix.push(bytes.ok_or_else(|| error().help(format!("write a whole number up to {MOST}")))?);
            }
        }
        let n = lines.len();
        if n < 2 || (0..n * n).all(|at| at / n == at % n || matrix[at] == 0) {
            let error = FileError::new(lines.first().map_or(1, |line| line.0), "nothing is exchanged");
            return Err(error.help("write a line for each rank, with the bytes for each of them"));
        }
        Ok(Self::Matrix(matrix.into()))
    }

    /// Returns the bytes of the largest buffer that a rank of a matrix sends; `None` without one.
    pub fn largest_row(&self) -> Option<Bytes> {
        let Self::Matrix(matrix) = self else { return None };
        matrix.chunks(matrix.len().isqrt().max(1)).map(|row| Bytes::new(row.iter().sum())).max()
    }
}

/// Returns shares of `n` in random order, the largest of which is `most` times the mean.
pub(in crate::workload) fn drawn_shares(n: usize, most: f64, stream: &mut Stream) -> Vec<f64> {
    let mut shares = zipf_shares(n, most);
    for at in (1..n).rev() {
        shares.swap(at, stream.below(at as u64 + 1) as usize);
    }
    shares
}

/// Returns shares of `n` that fall as a power of their place, the largest of which is `most` times the mean.
fn zipf_shares(n: usize, most: f64) -> Vec<f64> {
    let weights = |power: f64| -> Vec<f64> { (1..=n).map(|at| libm::pow(at as f64, -power)).collect() };
    let largest = |power: f64| n as f64 / weights(power).iter().sum::<f64>();
    let (mut low, mut high) = (0.0, 64.0);
    for _ in 0..100 {
        let middle = 0.5 * (low + high);
        if largest(middle) < most { low = middle } else { high = middle }
    }
    let all = weights(high);
    let sum: f64 = all.iter().sum();
    all.into_iter().map(|weight| weight / sum).collect()
}

/// Divides whole bytes by shares; what is left goes to the first ones, a byte each.
fn divided(bytes: u64, shares: &[f64]) -> Vec<u64> {
    let mut all: Vec<u64> = shares.iter().map(|share| ((bytes as f64 * share) as u64).min(bytes)).collect();
    let (given, n) = (all.iter().sum::<u64>(), all.len() as u64);
    let left = bytes.saturating_sub(given);
    (0..).zip(&mut all).for_each(|(at, size)| *size += part(left, n, at));
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_share_is_the_imbalance() {
        for (n, most) in [(8, 1.0), (8, 1.5), (16, 4.0), (64, 10.0), (4, 3.9)] {
            let drawn = Sizes::Imbalance(most).drawn(Bytes::new(8_000_000), n, 1, 0).expect("it can be");
            let Sizes::Matrix(matrix) = &drawn else { panic!("{drawn:?}") };
            let row = &matrix[..n];
            assert_eq!(row.iter().sum::<u64>(), 8_000_000);
            let largest = *row.iter().max().expect("there are some") as f64 * n as f64 / 8e6;
            assert!((largest - most).abs() < 1e-3, "{n} {most}: {largest}");
            assert!(matrix.chunks(n).all(|other| other == row));
            assert_eq!(drawn.largest_row(), Some(Bytes::new(8_000_000)));
        }
        assert!(Sizes::Imbalance(8.0).drawn(Bytes::new(8), 8, 1, 0).is_err());
    }

    #[test]
    fn a_matrix_is_square() {
        let read = |text: &str| Sizes::parse_matrix(text).map_err(|e| (e.line, e.message));
        assert_eq!(read("# all\n0, 1\n\n2,0\n"), Ok(Sizes::Matrix([0, 1, 2, 0].into())));
        assert_eq!(read("0,1\n2\n"), Err((2, "1 fields in a matrix of 2 lines".into())));
        assert_eq!(read("0,1\n-2,0\n"), Err((2, "`-2` is no number of bytes".into())));
        assert_eq!(read("5,0\n0,5\n"), Err((1, "nothing is exchanged".into())));
    }
}
