//! Flow-size distributions.

use fairrate_units::Bytes;

use super::tables::WORKLOADS;
use crate::input_error::{FieldError, FileError};

/// A distribution of flow sizes: a CDF that is linear between its points.
///
/// A first point above probability 0 is an atom: that share of flows has exactly that size.
#[derive(Clone, Debug, PartialEq)]
pub struct SizeDistribution {
    /// (bytes, probability of at most that many), both ascending, the last probability 1.
    points: Vec<(f64, f64)>,
}

/// The ways to draw sizes from the points of a CDF.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sampling {
    /// Linear CDF between the points: any size is possible.
    Linear,
    /// Staircase: the sizes are those of the points only. The public code of RoCC draws in this way, and has larger
    /// flows on average.
    Step,
}

impl Sampling {
    /// All variants with their names in scenarios.
    pub const NAMES: &'static [(&'static str, Self)] = &[("linear", Self::Linear), ("step", Self::Step)];
}

impl SizeDistribution {
    /// Returns the distribution of [`WORKLOADS`] with this name, if there is one.
    pub fn by_name(name: &str) -> Option<Self> {
        let found = WORKLOADS.iter().find(|workload| workload.name == name)?;
        Some(Self { points: found.points.to_vec() })
    }

    /// Returns the distribution in which every flow has `bytes` bytes.
    pub fn fixed(bytes: Bytes) -> Self {
        Self { points: vec![(bytes.as_f64().max(1.0), 1.0)] }
    }

    /// Returns the distribution with the given points (bytes, probability of at most that many).
    ///
    /// # Errors
    /// If the points are no CDF of flow sizes.
    pub fn from_points(points: &[(f64, f64)]) -> Result<Self, FieldError> {
        for i in 0..points.len() {
            check_point(points, i).map_err(|message| FieldError::new("sizes", message))?;
        }
        check_end(points).map_err(|message| FieldError::new("sizes", message))?;
        Ok(Self { points: points.to_vec() })
    }

    /// Reads a CDF, one point a line: `bytes cdf`, or `bytes anything cdf` as in ns-2, separated by space or comma.
    /// Probabilities are fractions, or percent if the last is 100. A first line with a single number (some files begin
    /// with the mean), blank lines and lines that begin with `#` are skipped.
    ///
    /// # Errors
    /// Gives line and column of the first error.
    pub fn parse_file(text: &str) -> Result<Self, FileError> {
        let mut rows = Vec::new();
        for (i, line) in text.lines().enumerate() {
            let words: Vec<&str> = line.split([' ', '\t', ',']).filter(|word| !word.is_empty()).collect();
            let (first, last) = match words[..] {
                [] => continue,
                [word, ..] if word.starts_with('#') => continue,
                [word] if rows.is_empty() && word.parse::<f64>().is_ok() => continue,
                [first, last] | [first, _, last] => (first, last),
                _ => {
                    let message = format!("expected `bytes cdf`, found {} words", words.len());
                    return Err(FileError::new(i + 1, message).help("write a point as `10000 0.15`"));
                }
            };
            rows.push((i + 1, number(line, i + 1, first)?, number(line, i + 1, last)?));
        }
        // Above 1 they are in percent.
        let last = rows.last().map_or((1, 1.0), |row| (row.0, row.2));
        let whole = if 1.0 < last.1 && last.1 <= 100.0 { 100.0 } else { 1.0 };
        let points: Vec<(f64, f64)> = rows.iter().map(|&(_, bytes, cdf)| (bytes, cdf / whole)).collect();
        for (i, row) in rows.iter().enumerate() {
            check_point(&points, i).map_err(|message| FileError::new(row.0, message))?;
        }
        if whole == 100.0 && last.1 != whole {
            let message = format!("the last probability is {} %, it must be 100 %", last.1);
            let help =
                "add a line with the largest size and 100, as `30000000 100`; probabilities above 1 are in percent";
            return Err(FileError::new(last.0, message).help(help));
        }
        check_end(&points).map_err(|message| FileError::new(last.0, message))?;
        Ok(Self { points })
    }

    /// Returns the distribution drawn from the same points with `sampling`.
    #[must_use]
    pub fn sampled(&self, sampling: Sampling) -> Self {
        match sampling {
            Sampling::Linear => self.clone(),
            Sampling::Step => self.stepped(),
        }
    }

    /// Returns the same points as a staircase: each share of flows has the size at its upper end.
    fn stepped(&self) -> Self {
        let before = std::iter::once(0.0).chain(self.points.iter().map(|&(_, cdf)| cdf));
        let step = |(low, &(bytes, cdf)): (f64, &(f64, f64))| [(bytes, low), (bytes, cdf)];
        Self { points: before.zip(&self.points).flat_map(step).collect() }
    }

    /// Returns the exact mean in bytes, before sizes are rounded to whole bytes.
    pub fn mean(&self) -> f64 {
        let (bytes, cdf) = self.points[0];
        let segment = |pair: &[(f64, f64)]| f64::midpoint(pair[0].0, pair[1].0) * (pair[1].1 - pair[0].1);
        bytes * cdf + self.points.windows(2).map(segment).sum::<f64>()
    }

    /// Returns the size at quantile `u` in [0, 1), rounded to a whole byte, at least one.
    pub fn sample(&self, u: f64) -> Bytes {
        let above = self.points.partition_point(|&(_, cdf)| cdf <= u).min(self.points.len() - 1);
        let (bytes, cdf) = self.points[above];
        let size = match above.checked_sub(1).map(|i| self.points[i]) {
            Some((from, low)) if low < cdf => from + (bytes - from) * ((u - low) / (cdf - low)).min(1.0),
            _ => bytes,
        };
        Bytes::new(size.round().max(1.0) as u64)
    }
}

/// Limit of sizes: larger ones are endless flows, not samples.
const BYTES_MAX: f64 = 1e12;

/// Checks point `i` against the one before it.
fn check_point(points: &[(f64, f64)], i: usize) -> Result<(), String> {
    let (bytes, cdf) = points[i];
    if !(0.0..BYTES_MAX).contains(&bytes) {
        return Err(format!("a flow cannot have {bytes} bytes"));
    }
    if !(0.0..=1.0).contains(&cdf) {
        return Err(format!("{cdf} is no probability"));
    }
    match i.checked_sub(1).map(|before| points[before]) {
        Some((before, _)) if bytes < before => Err(format!("sizes must ascend, {bytes} comes after {before}")),
        Some((_, before)) if cdf < before => Err(format!("probabilities must ascend, {cdf} comes after {before}")),
        _ => Ok(()),
    }
}

/// Checks that the CDF reaches 1 at a size of at least one byte.
fn check_end(points: &[(f64, f64)]) -> Result<(), String> {
    match points.last() {
        None => Err("there are no points".to_owned()),
        Some(&(_, cdf)) if cdf != 1.0 => Err(format!("the last probability is {cdf}, it must be 1")),
        Some(&(bytes, _)) if bytes < 1.0 => Err("all flows are empty".to_owned()),
        Some(_) => Ok(()),
    }
}

/// Parses a number in a line; `word` is a part of `line`.
fn number(line: &str, at: usize, word: &str) -> Result<f64, FileError> {
    let start = word.as_ptr() as usize - line.as_ptr() as usize;
    let error = || FileError::new(at, format!("`{word}` is no number")).at(start..start + word.len());
    word.parse().map_err(|_| error())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Means of the sheet of workloads, for linear interpolation; for the three digitised workloads the published mean
    /// of all their points, which the fewer quantiles here meet within 2 %.
    const MEANS: &[(&str, f64, f64)] = &[
        ("websearch", 1_711_250.0, 1e-9),
        ("websearch-powertcp", 1_711_222.0, 1e-6),
        ("fb-hadoop", 120_421.0, 1e-5),
        ("fb-web", 62_874.0, 0.02),
        ("fb-cache", 692_976.0, 0.02),
        ("fb-hadoop-all", 127_797.0, 0.02),
        ("datamining", 5_116.6 * 1_460.0, 1e-9),
        ("alistorage", 40_870.0, 1e-5),
        // Half of the flows have 75 B; linear from 0 up to there it would be 356 B.
        ("fb-rocc", 375.1, 1e-3),
        ("vl2", 12.66e6, 1e-3),
    ];

    /// Means of the same sheet where every point is an atom.
    const STEP_MEANS: &[(&str, f64)] =
        &[("websearch", 2_434_900.0), ("fb-hadoop", 183_897.0), ("datamining", 9_467.0 * 1_460.0)];

    #[test]
    fn means_are_those_of_the_sources() {
        assert_eq!(MEANS.len(), WORKLOADS.len());
        for (workload, &(name, mean, tolerance)) in WORKLOADS.iter().zip(MEANS) {
            let sizes = SizeDistribution::by_name(name).unwrap();
            assert_eq!(workload.name, name);
            assert_eq!(SizeDistribution::from_points(workload.points), Ok(sizes.clone()));
            assert!((sizes.mean() / workload.mean - 1.0).abs() < 1e-9, "{name}: {}", sizes.mean());
            assert!((sizes.mean() / mean - 1.0).abs() <= tolerance, "{name}: {}", sizes.mean());
        }
    }

    #[test]
    fn samples_have_the_mean() {
        for workload in WORKLOADS {
            let sizes = SizeDistribution::by_name(workload.name).unwrap();
            let n = 1_000_000;
            let sum: f64 = (0..n).map(|i| sizes.sample((f64::from(i) + 0.5) / f64::from(n)).as_f64()).sum();
            assert!((sum / f64::from(n) / workload.mean - 1.0).abs() < 1e-3, "{}", workload.name);
        }
    }

    #[test]
    fn steps_are_the_points_and_have_their_mean() {
        for &(name, mean) in STEP_MEANS {
            let steps = SizeDistribution::by_name(name).unwrap().sampled(Sampling::Step);
            assert!((steps.mean() / mean - 1.0).abs() < 1e-4, "{name}: {}", steps.mean());
        }
        let linear = SizeDistribution::by_name("websearch").unwrap();
        let steps = linear.sampled(Sampling::Step);
        // 15 % of the flows have 10 KB, the next 5 % have 20 KB, the last 3 % have 30 MB; none has 0 B.
        let sizes = [0.0, 0.149, 0.15, 0.199, 0.2, 0.969, 0.97, 0.999].map(|u| steps.sample(u).as_u64());
        assert_eq!(sizes, [10_000, 10_000, 20_000, 20_000, 30_000, 10_000_000, 30_000_000, 30_000_000]);
        assert_eq!(linear.sampled(Sampling::Linear), linear);
        let fixed = SizeDistribution::fixed(Bytes::new(7)).sampled(Sampling::Step);
        assert_eq!((fixed.mean(), fixed.sample(0.3)), (7.0, Bytes::new(7)));
    }

    #[test]
    fn samples_interpolate_between_points() {
        let sizes = SizeDistribution::by_name("websearch").unwrap();
        assert_eq!(sizes.sample(0.0), Bytes::new(1));
        assert_eq!(sizes.sample(0.15), Bytes::new(10_000));
        assert_eq!(sizes.sample(0.25), Bytes::new(25_000)); // half way from 20 to 30 KB
        assert_eq!(SizeDistribution::by_name("datamining").unwrap().sample(0.3), Bytes::new(1_460));
        assert_eq!(SizeDistribution::fixed(Bytes::new(7)).sample(0.9), Bytes::new(7));
    }

    #[test]
    fn files_are_read_in_their_usual_forms() {
        let points = SizeDistribution::from_points(&[(0.0, 0.0), (1_000.0, 0.5), (3_000.0, 1.0)]);
        for text in ["0 0\n1000 0.5\n3000 1\n", "# x\n0,0\n1000,50\n3000,100", "1250\n0 1 0\n\n1000 1 .5\n3000 1 1"] {
            assert_eq!(SizeDistribution::parse_file(text).ok(), points.clone().ok(), "{text}");
        }
    }

    #[test]
    fn files_that_are_no_cdf_say_where() {
        let line = |text| SizeDistribution::parse_file(text).unwrap_err().to_string();
        assert_eq!(line("0 0\n10 x\n"), "line 2: `x` is no number");
        assert_eq!(line("0 0\n10 0.5\n5 1\n"), "line 3: sizes must ascend, 5 comes after 10");
        assert_eq!(line("0 0\n10 0.5\n"), "line 2: the last probability is 0.5, it must be 1");
        assert_eq!(line("0 0\n10 50\n20 95\n"), "line 3: the last probability is 95 %, it must be 100 %");
        assert_eq!(line("0 0\n10 50\n20 101\n"), "line 2: 50 is no probability");
        assert_eq!(line("nan 0\n10 1\n"), "line 1: a flow cannot have NaN bytes");
        assert_eq!(line(""), "line 1: there are no points");
        assert_eq!(line("0 0\n10 0 0 1\n"), "line 2: expected `bytes cdf`, found 4 words");
    }
}
