//! Runs with several seeds: means, and how far they may be from what more seeds would give.

use fairrate_report::stats;

use crate::paper::{Measured, Numbers};

/// A mean with half of its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The mean.
    pub mean: f64,
    /// Half of the interval, by Student's t; not a number with a single value.
    pub half: f64,
}

impl Estimate {
    /// Of values that were measured with a seed each.
    pub fn of(values: &[f64]) -> Self {
        let mean = stats::mean(values).unwrap_or(f64::NAN);
        let half = stats::student_half_width(values).unwrap_or(f64::NAN);
        Self { mean, half }
    }

    /// Of ratios, seed by seed.
    pub fn of_ratios(above: &[f64], below: &[f64]) -> Self {
        let ratios: Vec<f64> = above.iter().zip(below).map(|(a, b)| a / b).collect();
        Self::of(&ratios)
    }
}

/// Standard deviation of a sample.
fn deviation(values: &[f64]) -> f64 {
    let mean = stats::mean(values).unwrap_or(f64::NAN);
    let squares: f64 = values.iter().map(|v| (v - mean) * (v - mean)).sum();
    (squares / (values.len() as f64 - 1.0)).sqrt()
}

/// Measures with the seeds 1 to `seeds`. Each number is the mean; with a `~` before its name it is the standard deviation,
/// and with `@` and a seed behind its name what that seed gave.
///
/// # Errors
/// If a run fails.
pub fn over_seeds(seeds: u64, measure: impl Fn(u64) -> Result<Numbers, String>) -> Result<Numbers, String> {
    let runs = (1..=seeds).map(measure).collect::<Result<Vec<Numbers>, String>>()?;
    let mut out = Numbers::new();
    for name in runs[0].keys() {
        let values: Vec<f64> = runs.iter().filter_map(|run| run.get(name)).copied().collect();
        out.insert(name.clone(), stats::mean(&values).unwrap_or(f64::NAN));
        out.insert(format!("~{name}"), deviation(&values));
        for (seed, value) in (1..).zip(values) {
            out.insert(of_seed(name, seed), value);
        }
    }
    Ok(out)
}

fn of_seed(name: &str, seed: usize) -> String {
    format!("{name}@{seed}")
}

/// More seeds than anything runs with.
const MOST_SEEDS: usize = 100;

/// What each seed gave, in their order.
pub fn each(measured: &Measured, job: &str, cc: &str, what: &str) -> Vec<f64> {
    let value = |seed| measured.get(job, cc, &of_seed(what, seed));
    (1..=MOST_SEEDS).map(value).take_while(|value| !value.is_nan()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn means_deviations_and_each_seed() {
        let run = |seed: u64| Ok(Numbers::from([("x".to_owned(), (seed * seed) as f64)]));
        let numbers = over_seeds(3, run).expect("it runs");
        // 1, 4, 9: mean 14/3, squares of differences 121/9 + 4/9 + 169/9 = 98/3, over 2.
        let expected = [("x", 14.0 / 3.0), ("~x", (49.0_f64 / 3.0).sqrt()), ("x@1", 1.0), ("x@2", 4.0), ("x@3", 9.0)];
        for (name, value) in expected {
            assert!((numbers[name] - value).abs() < 1e-12, "{name}: {}", numbers[name]);
        }
    }

    #[test]
    fn intervals_by_students_t() {
        // Deviation sqrt(2), over sqrt(2), times 12.706.
        let two = Estimate::of(&[1.0, 3.0]);
        assert!((two.mean - 2.0).abs() < 1e-12 && (two.half - 12.706).abs() < 1e-9, "{two:?}");
        assert!(Estimate::of(&[1.0]).half.is_nan());
        // Ratios of 2 and 2: no spread, whatever the values.
        assert_eq!(Estimate::of_ratios(&[2.0, 8.0], &[1.0, 4.0]), Estimate { mean: 2.0, half: 0.0 });
    }
}
