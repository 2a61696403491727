//! How sure a mean over a few seeds is.

use fairrate_report::stats;

/// Student's t at 97.5 % for 1, 2 ... degrees of freedom. The bootstrap of `fairrate compare` is too narrow for five seeds.
const T: [f64; 9] = [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262];

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
        let squares: f64 = values.iter().map(|v| (v - mean) * (v - mean)).sum();
        let freedom = n.saturating_sub(1);
        let t = match freedom {
            0 => f64::NAN,
            _ => T.get(freedom - 1).copied().unwrap_or(2.0),
        };
        Self { n, mean, half_width: t * (squares / (freedom as f64 * n as f64)).sqrt() }
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
