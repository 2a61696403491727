//! Means and standard deviations of numbers, of series, and of numbers that are not kept.

use fairrate_report::stats;

/// Returns the mean of `values`; NaN without any.
pub fn mean(values: &[f64]) -> f64 {
    stats::mean(values).unwrap_or(f64::NAN)
}

/// Returns the mean of what an iterator gives; NaN if that is nothing.
pub fn mean_of(values: impl Iterator<Item = f64>) -> f64 {
    mean(&values.collect::<Vec<_>>())
}

/// Returns the mean of the values of a series; NaN without any.
pub fn mean_of_series(series: &[(f64, f64)]) -> f64 {
    mean_of(series.iter().map(|point| point.1))
}

/// Returns mean and standard deviation of `values`, which are all there are and not a sample of more; NaN without any.
pub fn mean_and_deviation(values: &[f64]) -> (f64, f64) {
    let mean = mean(values);
    let variance = values.iter().map(|value| (value - mean) * (value - mean)).sum::<f64>() / values.len() as f64;
    (mean, variance.sqrt())
}

/// Returns the means of each `n` points of a series, at the time of the last one. Fewer points at its end are left out.
pub fn means_of(series: &[(f64, f64)], n: usize) -> Vec<(f64, f64)> {
    series.chunks_exact(n).map(|points| (points[n - 1].0, mean_of_series(points))).collect()
}

/// Mean and deviation of numbers that are too many to be kept.
#[derive(Clone, Copy, Debug, Default)]
pub struct Moments {
    n: u64,
    sum: f64,
    sum_of_squares: f64,
}

impl Moments {
    /// Adds a number.
    pub fn add(&mut self, value: f64) {
        self.n += 1;
        self.sum += value;
        self.sum_of_squares += value * value;
    }

    /// Adds all numbers that were added to `other`.
    pub fn merge(&mut self, other: &Self) {
        self.n += other.n;
        self.sum += other.sum;
        self.sum_of_squares += other.sum_of_squares;
    }

    /// Returns how many numbers were added.
    pub fn len(&self) -> u64 {
        self.n
    }

    /// Returns the mean; NaN without numbers.
    pub fn mean(&self) -> f64 {
        self.sum / self.n as f64
    }

    /// Returns the standard deviation; NaN without numbers.
    pub fn deviation(&self) -> f64 {
        (self.sum_of_squares / self.n as f64 - self.mean() * self.mean()).max(0.0).sqrt()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kept_or_not_numbers_have_the_same_moments() {
        let values = [1.0, 3.0, 5.0, 7.0];
        let expected = (4.0, 5.0_f64.sqrt());
        assert_eq!(mean_and_deviation(&values), expected);
        let mut moments = Moments::default();
        for value in values {
            moments.add(value);
        }
        assert_eq!((moments.len(), (moments.mean(), moments.deviation())), (4, expected));
        assert!(mean(&[]).is_nan() && mean_and_deviation(&[]).1.is_nan() && Moments::default().mean().is_nan());
    }

    #[test]
    fn means_of_a_series_are_of_whole_groups() {
        let series = [(1.0, 1.0), (2.0, 3.0), (3.0, 5.0), (4.0, 7.0), (5.0, 100.0)];
        assert_eq!(means_of(&series, 2), [(2.0, 2.0), (4.0, 6.0)]);
        assert_eq!(mean_of_series(&series[..4]), 4.0);
    }
}
