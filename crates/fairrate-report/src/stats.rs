//! The statistics used by all tables and figures, each with its definition.

pub use fairrate_results::{jain, nearest_rank};

/// Returns the nearest-rank percentile: the smallest value with at least the fraction `p` of all values at or below it,
/// which is the value of rank `ceil(p n)`. It is always a value that occurred; `None` without values.
///
/// `sorted` must be in ascending order and `p` between 0 and 1.
pub fn percentile(sorted: &[f64], p: f64) -> Option<f64> {
    Some(sorted[nearest_rank(sorted.len(), p)?])
}

/// Returns the percentiles for ascending fractions of values in any order, in time linear in their number; `None`
/// without values.
pub fn percentiles<const N: usize>(mut values: Vec<f64>, fractions: [f64; N]) -> Option<[f64; N]> {
    let (n, mut from, mut found) = (values.len(), 0, [0.0; N]);
    for (p, found) in fractions.into_iter().zip(&mut found) {
        let at = nearest_rank(n, p)?;
        *found = *values[from..].select_nth_unstable_by(at - from, f64::total_cmp).1;
        from = at;
    }
    Some(found)
}

/// Returns the arithmetic mean, or `None` without values.
pub fn mean(values: &[f64]) -> Option<f64> {
    if values.is_empty() { None } else { Some(values.iter().sum::<f64>() / values.len() as f64) }
}

/// Returns the mean of a number of all of `items`; `None` if there are none.
pub(crate) fn mean_of<T>(items: &[&T], number: impl Fn(&T) -> f64) -> Option<f64> {
    (!items.is_empty()).then(|| items.iter().map(|item| number(item)).sum::<f64>() / items.len() as f64)
}

/// The 97.5 % quantiles of Student's t for 1, 2 ... degrees of freedom.
const STUDENT_T: [f64; 9] = [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262];

/// Returns half the width of the 95 % interval of a mean by Student's t; `None` with fewer than two values. With more
/// than ten values the interval is a little too wide. For five seeds the bootstrap is too narrow.
pub fn student_half_width(values: &[f64]) -> Option<f64> {
    let (mean, freedom) = (mean(values)?, values.len() - 1);
    let t = STUDENT_T.get(freedom.checked_sub(1)?).unwrap_or(&STUDENT_T[8]);
    let squares: f64 = values.iter().map(|value| (value - mean) * (value - mean)).sum();
    Some(t * (squares / freedom as f64 / values.len() as f64).sqrt())
}

/// Returns the values in ascending order, as [`percentile`] requires.
pub fn sorted(values: impl IntoIterator<Item = f64>) -> Vec<f64> {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_unstable_by(f64::total_cmp);
    values
}

/// A percentile of a [`Distribution`] that few values do not tell from their largest one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Percentile {
    /// The 95th.
    P95,
    /// The 99th.
    P99,
    /// The 99.9th.
    P999,
}

impl Percentile {
    /// All of them, ascending.
    pub const ALL: [Self; 3] = [Self::P95, Self::P99, Self::P999];

    /// Returns the percentile called `name`, as `p99.9`.
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|p| p.name() == name)
    }

    /// Returns its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::P95 => "p95",
            Self::P99 => "p99",
            Self::P999 => "p99.9",
        }
    }

    /// Returns its value of a distribution.
    pub fn of(self, d: &Distribution) -> Option<f64> {
        match self {
            Self::P95 => d.p95,
            Self::P99 => d.p99,
            Self::P999 => d.p999,
        }
    }

    /// Returns the number of values from which on it can differ from the largest one: the rank `ceil(p n)` is below
    /// `n`.
    pub fn least_flows(self) -> usize {
        match self {
            Self::P95 => 20,
            Self::P99 => 100,
            Self::P999 => 1_000,
        }
    }
}

/// The statistics of a set of values, some of which may be known by a lower bound only.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize)]
pub struct Distribution {
    /// Number of values, bounds included.
    pub n: usize,
    /// Number of values that are lower bounds.
    pub n_bounds: usize,
    /// The least of the lower bounds. A percentile from here on is a lower bound itself; the mean is a lower bound if
    /// there are any bounds.
    pub least_bound: Option<f64>,
    /// Arithmetic mean; this and the fields below are `None` without values.
    pub mean: Option<f64>,
    /// Median (nearest rank, as all percentiles).
    pub p50: Option<f64>,
    /// 95th percentile.
    pub p95: Option<f64>,
    /// 99th percentile.
    pub p99: Option<f64>,
    /// 99.9th percentile.
    pub p999: Option<f64>,
    /// Largest value.
    pub max: Option<f64>,
}

impl Distribution {
    /// Summarises values in ascending order.
    pub fn of(sorted: &[f64]) -> Self {
        Self {
            n: sorted.len(),
            n_bounds: 0,
            least_bound: None,
            mean: mean(sorted),
            p50: percentile(sorted, 0.5),
            p95: percentile(sorted, 0.95),
            p99: percentile(sorted, 0.99),
            p999: percentile(sorted, 0.999),
            max: sorted.last().copied(),
        }
    }

    /// Summarises `known` values and lower `bounds` of others, each counted with its bound.
    pub fn with_bounds(known: Vec<f64>, bounds: &[f64]) -> Self {
        let mut all = known;
        all.extend_from_slice(bounds);
        let all = sorted(all);
        Self { n_bounds: bounds.len(), least_bound: bounds.iter().copied().reduce(f64::min), ..Self::of(&all) }
    }

    /// Returns `true` if a percentile of this `value` is only a lower bound.
    pub fn is_bound(&self, value: f64) -> bool {
        self.least_bound.is_some_and(|bound| bound <= value)
    }
}

/// A quantity that was sampled over time and holds its value from each sample until the next one.
#[derive(Clone, Copy, Debug)]
pub struct Held<'a> {
    /// Times of the samples, ascending.
    t: &'a [f64],
    /// The values.
    v: &'a [f64],
}

impl<'a> Held<'a> {
    /// Returns the samples at ascending times `t` with values `v`, cut to the shorter of both.
    pub fn new(t: &'a [f64], v: &'a [f64]) -> Self {
        let n = t.len().min(v.len());
        Self { t: &t[..n], v: &v[..n] }
    }

    /// Returns the largest sample.
    pub fn peak(&self) -> Option<f64> {
        self.v.iter().copied().reduce(f64::max)
    }

    /// Returns the mean over time, from the first to the last sample: each value weighs as long as it was held.
    pub fn mean(&self) -> Option<f64> {
        let span = self.span();
        if span == 0.0 {
            return mean(self.v);
        }
        Some(self.t.windows(2).zip(self.v).map(|(t, v)| v * (t[1] - t[0])).sum::<f64>() / span)
    }

    /// Returns the smallest value that the quantity did not exceed for the fraction `p` of the time.
    pub fn percentile(&self, p: f64) -> Option<f64> {
        let span = self.span();
        if span == 0.0 {
            return percentile(&sorted(self.v.iter().copied()), p);
        }
        let mut held: Vec<(f64, f64)> = self.t.windows(2).zip(self.v).map(|(t, v)| (*v, t[1] - t[0])).collect();
        held.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut below = 0.0;
        for (v, weight) in &held {
            below += weight;
            if p * span <= below * (1.0 + 1e-12) {
                return Some(*v);
            }
        }
        held.last().map(|(v, _)| *v)
    }

    fn span(&self) -> f64 {
        match (self.t.first(), self.t.last()) {
            (Some(first), Some(last)) => last - first,
            _ => 0.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_interval_is_students() {
        // Mean 3, standard deviation sqrt(2.5), standard error sqrt(0.5); t of four degrees of freedom is 2.776.
        let five = student_half_width(&[1.0, 2.0, 3.0, 4.0, 5.0]).unwrap();
        assert!((five - 2.776 * 0.5_f64.sqrt()).abs() < 1e-12);
        assert_eq!((student_half_width(&[7.0]), student_half_width(&[])), (None, None));
        // With 11 values t is that of nine degrees of freedom.
        let many: Vec<f64> = (0..11).map(f64::from).collect();
        assert!((student_half_width(&many).unwrap() - 2.262).abs() < 1e-12);
    }

    #[test]
    fn percentiles_are_nearest_rank() {
        // The textbook example: ceil(.05*5)=1, ceil(.3*5)=2, ceil(.4*5)=2, ceil(.5*5)=3, 5.
        let v = [15.0, 20.0, 35.0, 40.0, 50.0];
        let got = [0.05, 0.3, 0.4, 0.5, 1.0].map(|p| percentile(&v, p));
        assert_eq!(got, [Some(15.0), Some(20.0), Some(20.0), Some(35.0), Some(50.0)]);
        assert_eq!(percentile(&v, 0.0), Some(15.0));
        assert_eq!(percentile(&[], 0.5), None);
        // p99.9 of 1000 values is the 999th, whatever the rounding of .999 * 1000.
        let v: Vec<f64> = (1..=1000).map(f64::from).collect();
        assert_eq!(percentile(&v, 0.999), Some(999.0));
        assert_eq!(percentile(&v, 0.99), Some(990.0));
    }

    #[test]
    fn jain_of_equal_shares_is_one_and_of_a_monopoly_one_over_n() {
        assert_eq!(jain(&[3.0, 3.0, 3.0]), Some(1.0));
        assert_eq!(jain(&[5.0, 0.0, 0.0, 0.0]), Some(0.25));
        // (1+2+3)^2 / (3 * 14) = 36/42.
        assert_eq!(jain(&[1.0, 2.0, 3.0]), Some(36.0 / 42.0));
        assert_eq!((jain(&[]), jain(&[0.0, 0.0])), (None, None));
    }

    #[test]
    fn held_values_weigh_as_long_as_they_are_held() {
        // 10 for 1 s, 0 for 8 s, 4 for 1 s; the last sample ends the record: (10 + 4) / 10.
        let (t, v) = ([0.0, 1.0, 9.0, 10.0], [10.0, 0.0, 4.0, 99.0]);
        let queue = Held::new(&t, &v);
        assert_eq!(queue.mean(), Some(1.4));
        assert_eq!(queue.peak(), Some(99.0));
        // 0 for 80 % of the time, then 4 until 90 %, then 10.
        let got = [0.5, 0.8, 0.81, 0.9, 0.91, 1.0].map(|p| queue.percentile(p));
        assert_eq!(got, [0.0, 0.0, 4.0, 4.0, 10.0, 10.0].map(Some));
        assert_eq!(Held::new(&[3.0], &[7.0]).mean(), Some(7.0));
        assert_eq!(Held::new(&[], &[]).percentile(0.5), None);
    }

    #[test]
    fn a_distribution_of_one_value_is_that_value() {
        let d = Distribution::of(&[2.5]);
        assert_eq!((d.n, d.mean, d.p50, d.p999, d.max), (1, Some(2.5), Some(2.5), Some(2.5), Some(2.5)));
        assert_eq!(Distribution::of(&[]), Distribution::default());
    }

    proptest! {
        /// A selection finds what sorting finds.
        #[test]
        fn percentiles_of_unsorted_values_are_those_of_sorted_ones(
            values in prop::collection::vec(-1e3..1e3_f64, 0..200),
            low in 0.0..0.5_f64,
            more in 0.0..0.5_f64,
        ) {
            let sorted = sorted(values.iter().copied());
            let want = percentile(&sorted, low).zip(percentile(&sorted, low + more));
            prop_assert_eq!(percentiles(values, [low, low + more]).map(|[a, b]| (a, b)), want);
        }

        #[test]
        fn percentiles_occur_and_ascend(v in prop::collection::vec(0.0..1e9, 1..200), p in 0.0..1.0, q in 0.0..1.0) {
            let v = sorted(v);
            let (lo, hi) = (percentile(&v, f64::min(p, q)).unwrap(), percentile(&v, f64::max(p, q)).unwrap());
            prop_assert!(lo <= hi && v.contains(&lo) && v.contains(&hi));
            // At least the fraction p lies at or below it, and less than p strictly below.
            let x = percentile(&v, p).unwrap();
            let n = v.len() as f64;
            prop_assert!(v.iter().filter(|y| **y <= x).count() as f64 + 1e-6 >= p * n);
            prop_assert!(v.iter().filter(|y| **y < x).count() as f64 <= p * n);
        }

        #[test]
        fn jain_lies_between_one_over_n_and_one(v in prop::collection::vec(0.0..1e9, 1..50)) {
            if let Some(j) = jain(&v) {
                prop_assert!(j <= 1.0 + 1e-9 && 1.0 / v.len() as f64 <= j + 1e-9);
            }
        }

        #[test]
        fn evenly_held_values_have_the_plain_mean(v in prop::collection::vec(0.0..1e6, 2..100)) {
            let t: Vec<f64> = (0..v.len()).map(|i| i as f64 * 7.0).collect();
            let plain = mean(&v[..v.len() - 1]).unwrap();
            let held = Held::new(&t, &v);
            prop_assert!((held.mean().unwrap() - plain).abs() < 1e-6);
            let steps = sorted(v[..v.len() - 1].iter().copied());
            prop_assert_eq!(held.percentile(0.9), percentile(&steps, 0.9));
        }
    }
}
