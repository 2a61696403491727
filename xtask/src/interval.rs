//! How sure a mean over a few seeds is.

use fairrate_report::stats;

/// A mean over seeds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// Seeds.
    pub n: usize,
    /// Arithmetic mean; not a number without values.
    pub mean: f64,
    /// Half the width of the 95 % interval; not a number with fewer than two values.
    pub half_width: f64,
}

impl Estimate {
    /// Of one value a seed. Values that are not finite are of runs that were not made.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Self {
        let values: Vec<f64> = values.into_iter().filter(|v| v.is_finite()).collect();
        let (n, mean) = (values.len(), stats::mean(&values).unwrap_or(f64::NAN));
        let half_width = stats::student_half_width(&values).unwrap_or(f64::NAN);
        Self { n, mean, half_width }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_is_students() {
        // Mean 3, standard deviation sqrt(2.5), standard error sqrt(0.5); t of four degrees of freedom is 2.776.
        let five = Estimate::of([1.0, 2.0, 3.0, 4.0, 5.0, f64::NAN]);
        assert_eq!((five.n, five.mean), (5, 3.0));
        assert!((five.half_width - 2.776 * 0.5_f64.sqrt()).abs() < 1e-12);
        let one = Estimate::of([7.0]);
        assert!(one.mean == 7.0 && one.half_width.is_nan());
        assert!(Estimate::of([]).mean.is_nan());
    }
}
