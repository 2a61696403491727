//! Confidence of a mean over seeds: bootstrap intervals, and differences paired by seed.
//!
//! B. Efron, R. Tibshirani, "An Introduction to the Bootstrap", 1993, chapter 13: the percentile interval. n of n
//! values are drawn with replacement, many times; the interval spans the middle 95 % of the means. It is a little
//! narrow for few values, because a sample varies less than its population: for normal values it contains the true mean
//! in about 84 % of cases for n = 5, 90 % for 10, 93 % for 20 (a test counts).
//!
//! Draws are seeded, so the same values give the same interval.

use serde::Serialize;

use crate::stats;

/// Number of resamples of an interval.
pub const RESAMPLES: usize = 10_000;
/// The share of the resampled means that an interval contains.
pub const LEVEL: f64 = 0.95;
/// The number of seeds below which no difference is called clear. Four differences that are only chance all have the
/// same sign in one case of eight, and their interval then never contains zero.
pub const FEW: usize = 5;

/// A range.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Interval {
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

impl Interval {
    /// Returns `true` if `x` is in the interval, ends included.
    pub fn contains(self, x: f64) -> bool {
        self.low <= x && x <= self.high
    }

    fn scaled(self, by: f64, plus: f64) -> Self {
        Self { low: self.low * by + plus, high: self.high * by + plus }
    }
}

/// A mean over seeds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Estimate {
    /// Number of seeds.
    pub n: usize,
    /// Arithmetic mean.
    pub mean: f64,
    /// The interval in which the mean of many seeds likely is; `None` with fewer than two seeds.
    pub interval: Option<Interval>,
}

impl Estimate {
    /// Returns the mean of `values`, one per seed; `None` without values, or if a value is not finite.
    pub fn of(values: &[f64]) -> Option<Self> {
        let mean = stats::mean(values).filter(|m| m.is_finite())?;
        Some(Self { n: values.len(), mean, interval: interval(values) })
    }
}

/// The difference of one column's mean from another's, seed by seed.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Difference {
    /// Number of seeds that both columns have.
    pub n: usize,
    /// Mean of the differences.
    pub mean: f64,
    /// The interval in which the mean likely is; `None` with fewer than two seeds.
    pub interval: Option<Interval>,
    /// The column's mean over the other column's mean; `None` if the latter is zero.
    pub ratio: Option<f64>,
    /// The interval in which the ratio likely is.
    pub ratio_interval: Option<Interval>,
    /// Half the width of the mean's interval by Student's t, which is valid for few seeds too; `None` with fewer than
    /// two.
    #[serde(skip)]
    pub half_width: Option<f64>,
}

impl Difference {
    /// Returns the difference of pairs of a value and its baseline, one pair per seed; `None` without pairs, or if a
    /// value is not finite.
    pub fn of(pairs: &[(f64, f64)]) -> Option<Self> {
        let differences: Vec<f64> = pairs.iter().map(|(x, base)| x - base).collect();
        let Estimate { n, mean, interval } = Estimate::of(&differences)?;
        let add = |s: (f64, f64), p: &(f64, f64)| (s.0 + p.0, s.1 + p.1);
        let quotient = |(x, base): (f64, f64)| if base == 0.0 { f64::NAN } else { x / base };
        let ratio = Some(quotient(pairs.iter().fold((0.0, 0.0), add))).filter(|r| r.is_finite());
        // A resample of zeros alone has no ratio, so there is no interval then.
        let ratio_interval = ratio.and_then(|_| resampled(pairs, (0.0, 0.0), add, quotient));
        let half_width = stats::student_half_width(&differences);
        Some(Self { n, mean, interval, ratio, ratio_interval, half_width })
    }

    /// Returns `true` if the interval lies on one side of zero; `None` without an interval.
    pub fn excludes_zero(&self) -> Option<bool> {
        self.interval.map(|i| !i.contains(0.0))
    }

    /// Returns `true` if there are at least [`FEW`] seeds, and both the bootstrap's interval and Student's lie on one
    /// side of zero. Stars, bold values and claims go by it.
    pub fn is_clear(&self) -> bool {
        let by_student = self.half_width.is_some_and(|half| half < self.mean.abs());
        FEW <= self.n && self.excludes_zero() == Some(true) && by_student
    }

    /// Returns the ratio as a change: -0.2 where the mean is a fifth below the other column's.
    pub fn change(&self) -> Option<(f64, Option<Interval>)> {
        self.ratio.map(|r| (r - 1.0, self.ratio_interval.map(|i| i.scaled(1.0, -1.0))))
    }
}

/// Returns the percentile interval of a mean; `None` for fewer than two values.
fn interval(values: &[f64]) -> Option<Interval> {
    // `-0.0` is what a sum of no numbers is in the standard library.
    resampled(values, -0.0, |sum, x| sum + x, |sum| sum / values.len() as f64)
}

/// Returns the middle [`LEVEL`] of a statistic of as many draws from `items` as there are, drawn [`RESAMPLES`] times.
/// The statistic is `finish` of what `add` makes of the draws, from `zero`. `None` with fewer than two items, or if
/// some resample's is not finite.
fn resampled<T: Copy + PartialEq, S: Copy>(
    items: &[T],
    zero: S,
    add: impl Fn(S, &T) -> S,
    finish: impl Fn(S) -> f64,
) -> Option<Interval> {
    let (n, first) = (items.len(), items.first()?);
    if n < 2 {
        return None;
    }
    // All draws of equal items are alike.
    let n_resamples = if items.iter().all(|item| item == first) { 1 } else { RESAMPLES };
    let mut random = SplitMix64(n as u64);
    let resample = |_| finish((0..n).fold(zero, |so_far, _| add(so_far, &items[random.below(n)])));
    let values: Vec<f64> = (0..n_resamples).map(resample).collect();
    if values.iter().any(|v| !v.is_finite()) {
        return None;
    }
    let tail = (1.0 - LEVEL) / 2.0;
    let [low, high] = stats::percentiles(values, [tail, 1.0 - tail])?;
    Some(Interval { low, high })
}

/// The generator of G. Steele, D. Lea, C. Flood, "Fast Splittable Pseudorandom Number Generators", OOPSLA 2014.
struct SplitMix64(u64);

impl SplitMix64 {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Returns a number below `n`, by the high half of a product; its bias is below 2^-50 for the `n` of seeds.
    fn below(&mut self, n: usize) -> usize {
        ((u128::from(self.next()) * n as u128) >> 64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn width(values: &[f64]) -> f64 {
        interval(values).map(|i| i.high - i.low).unwrap()
    }

    /// Returns a nearly normal number: the sum of twelve uniform numbers.
    fn normal(random: &mut SplitMix64) -> f64 {
        (0..12).map(|_| (random.next() >> 11) as f64 / (1_u64 << 53) as f64).sum::<f64>() - 6.0
    }

    #[test]
    fn two_values_by_hand() {
        // Means of two draws from {1, 3}: 1 in a quarter of cases, 2 in half, 3 in a quarter. So 2.5 % is 1, 97.5 %
        // is 3.
        let got = Estimate::of(&[1.0, 3.0]).unwrap();
        assert_eq!((got.n, got.mean, got.interval), (2, 2.0, Some(Interval { low: 1.0, high: 3.0 })));
    }

    #[test]
    fn three_values_by_hand() {
        // Sums of three draws from {0, 0, 3} are 3 times a binomial of n = 3, p = 1/3: P(0) = 8/27, P(9) = 1/27 = 3.7
        // %.
        let got = interval(&[0.0, 0.0, 3.0]).unwrap();
        assert_eq!((got.low, got.high), (0.0, 3.0));
        // For five values: P(5) = 1/3125 and P(4) = 20/3125 = 0.6 %, P(3) = 160/3125 = 5.1 %; so 97.5 % is at three of
        // five.
        let got = interval(&[0.0, 0.0, 0.0, 0.0, 5.0]).unwrap();
        assert_eq!((got.low, got.high), (0.0, 3.0));
    }

    #[test]
    fn a_difference_by_hand() {
        // 11 - 10, 23 - 20 and 32 - 30: 1, 3 and 2, in the mean 2; 66 over 60.
        let got = Difference::of(&[(11.0, 10.0), (23.0, 20.0), (32.0, 30.0)]).unwrap();
        assert_eq!((got.n, got.mean, got.ratio), (3, 2.0, Some(1.1)));
        // All three alike has 1/27 = 3.7 %, so the ends of the interval are the smallest and largest difference.
        assert_eq!(got.interval, Some(Interval { low: 1.0, high: 3.0 }));
        assert_eq!((got.excludes_zero(), got.is_clear()), (Some(true), false));
        // The deviation of 1, 3 and 2 is 1; 4.303 is the quantile for two degrees of freedom.
        assert!((got.half_width.unwrap() - 4.303 / 3.0_f64.sqrt()).abs() < 1e-12);
        // The ratio of each pair alone: 1.1, 1.15 and 1.0667.
        let ratio = got.ratio_interval.unwrap();
        assert!((ratio.low - 32.0 / 30.0).abs() < 1e-12 && (ratio.high - 1.15).abs() < 1e-12, "{ratio:?}");
        let (change, range) = got.change().unwrap();
        assert!((change - 0.1).abs() < 1e-12 && (range.unwrap().high - 0.15).abs() < 1e-12);
    }

    #[test]
    fn too_few_values_have_no_interval() {
        assert_eq!(Estimate::of(&[]), None);
        assert_eq!(Estimate::of(&[f64::INFINITY, 1.0]), None);
        assert_eq!(Estimate::of(&[4.0]), Some(Estimate { n: 1, mean: 4.0, interval: None }));
        let one = Difference::of(&[(4.0, 2.0)]).unwrap();
        assert_eq!((one.mean, one.ratio, one.interval, one.ratio_interval), (2.0, Some(2.0), None, None));
        assert_eq!((one.excludes_zero(), one.is_clear()), (None, false));
    }

    #[test]
    fn nothing_over_nothing_has_no_ratio() {
        let zeros = Difference::of(&[(3.0, 0.0), (5.0, 0.0)]).unwrap();
        assert_eq!((zeros.mean, zeros.ratio, zeros.ratio_interval), (4.0, None, None));
        // One resample in four consists of the first pair alone.
        let some = Difference::of(&[(3.0, 0.0), (5.0, 4.0)]).unwrap();
        assert_eq!((some.ratio, some.ratio_interval), (Some(2.0), None));
    }

    #[test]
    fn intervals_hold_the_true_mean_about_as_often_as_documented() {
        let mut random = SplitMix64(7);
        for (n, documented) in [(5, 0.84), (10, 0.90), (20, 0.93)] {
            let trials = 400;
            let hit = |_: &usize| {
                let values: Vec<f64> = (0..n).map(|_| normal(&mut random)).collect();
                interval(&values).unwrap().contains(0.0)
            };
            let share = (0..trials).filter(hit).count() as f64 / f64::from(trials as u32);
            // Four standard deviations of a share of 400: 4 * sqrt(.84 * .16 / 400) = 0.073.
            assert!((share - documented).abs() < 0.073, "{n}: {share}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

        #[test]
        fn an_interval_contains_the_mean_and_lies_within_the_values(v in prop::collection::vec(-1e6..1e6, 2..40)) {
            let got = Estimate::of(&v).unwrap();
            let range = got.interval.unwrap();
            prop_assert!(range.contains(got.mean), "{got:?}");
            let (least, most) = v.iter().fold((f64::MAX, f64::MIN), |(l, m), x| (l.min(*x), m.max(*x)));
            prop_assert!(least - 1e-6 <= range.low && range.high <= most + 1e-6);
            prop_assert_eq!(Estimate::of(&v), Some(got));
        }

        #[test]
        fn more_seeds_of_the_same_kind_make_it_narrower(v in prop::collection::vec(0.0..100.0, 5..20)) {
            prop_assume!(1e-3 < width(&v));
            let fourfold: Vec<f64> = v.iter().copied().cycle().take(4 * v.len()).collect();
            // Half as wide, as standard deviations of means go.
            let shrunk = width(&fourfold) / width(&v);
            prop_assert!((0.4..0.65).contains(&shrunk), "{shrunk}");
        }

        #[test]
        fn pairs_that_vary_together_differ_more_surely_than_apart(
            common in prop::collection::vec(0.0..100.0, 5..20), shift in 1.0..5.0, seed in 0_u64..1000,
        ) {
            prop_assume!(5.0 < width(&common));
            let mut random = SplitMix64(seed);
            let pairs: Vec<(f64, f64)> = common.iter().map(|c| (c + shift + 0.1 * normal(&mut random), *c)).collect();
            let paired = Difference::of(&pairs).unwrap();
            let range = paired.interval.unwrap();
            let apart = (width(&common).powi(2) + width(&pairs.iter().map(|p| p.0).collect::<Vec<_>>()).powi(2)).sqrt();
            prop_assert!(range.high - range.low < apart / 2.0);
            prop_assert!(paired.is_clear() && range.contains(paired.mean));
        }
    }
}
