//! Time series for figures: counters become rates, and long series become short ones.

/// Returns the rate of growth of a counter in bins of equal `width`: (middle of each bin, growth per unit of time).
///
/// Between samples the counter is taken to grow evenly, so that a bin edge between two samples splits the growth
/// between them. Bins cover the sampled time; a last bin that is not full is left out.
pub fn growth(t: &[f64], counter: &[f64], width: f64) -> (Vec<f64>, Vec<f64>) {
    let (Some(first), Some(last)) = (t.first(), t.last()) else { return (Vec::new(), Vec::new()) };
    let n = ((last - first) / width + 1e-9).floor() as usize;
    let edges = (0..=n).map(|i| first + i as f64 * width);
    let mut at = 0;
    let values: Vec<f64> = edges
        .map(|edge| {
            while at + 2 < t.len() && t[at + 1] < edge {
                at += 1;
            }
            interpolate(t, counter, at, edge)
        })
        .collect();
    let middle = (0..n).map(|i| first + (i as f64 + 0.5) * width).collect();
    let rate = values.windows(2).map(|v| (v[1] - v[0]) / width).collect();
    (middle, rate)
}

/// Returns the counter at time `x`, which lies between samples `i` and `i + 1`, or at an end.
fn interpolate(t: &[f64], counter: &[f64], i: usize, x: f64) -> f64 {
    let Some(next) = t.get(i + 1) else { return counter[i] };
    let part = ((x - t[i]) / (next - t[i])).clamp(0.0, 1.0);
    counter[i] + part * (counter[i + 1] - counter[i])
}

/// Returns the value of a counter at `x`, growing evenly between samples and constant outside them; `None` without
/// samples.
pub fn value_at(t: &[f64], counter: &[f64], x: f64) -> Option<f64> {
    let after = t.partition_point(|s| *s < x);
    let i = after.saturating_sub(1).min(t.len().checked_sub(1)?);
    Some(interpolate(t, counter, i, x))
}

/// Returns the shortest time between two of the first samples of some series; 1 if none has two.
pub fn shortest_step<'a>(series: impl Iterator<Item = &'a [f64]>) -> f64 {
    let steps = series.flat_map(|t| t.windows(2).take(100).map(|t| t[1] - t[0]));
    steps.filter(|step| 0.0 < *step).reduce(f64::min).unwrap_or(1.0)
}

/// Returns a bin width for a span of time: about `bins` bins, at least `finest`, a round number (1, 2 or 5 times a
/// power of ten).
pub fn bin_width(span: f64, bins: f64, finest: f64) -> f64 {
    let raw = (span / bins).max(finest).max(1.0);
    let decade = 10_f64.powi(raw.log10().floor() as i32);
    let step = [1.0, 2.0, 5.0, 10.0].into_iter().find(|s| raw <= s * decade * 1.000_001);
    step.unwrap_or(10.0) * decade
}

/// Returns the places of values that keep the look of their series: both ends, and the lowest and the highest of each
/// of `limit / 2` equal stretches, so that no peak is lost. All places if there are at most `limit`.
pub fn peaks(y: &[f64], limit: usize) -> Vec<usize> {
    if y.len() <= limit || limit < 2 {
        return (0..y.len()).collect();
    }
    let stretch = y.len().div_ceil(limit / 2);
    let starts = (0..y.len()).step_by(stretch);
    let ends = starts.flat_map(|start| {
        let places = start..(start + stretch).min(y.len());
        let by = |a: &usize, b: &usize| y[*a].total_cmp(&y[*b]);
        let lowest = places.clone().min_by(by).unwrap_or(start);
        let highest = places.max_by(by).unwrap_or(start);
        [lowest.min(highest), lowest.max(highest)]
    });
    let mut kept: Vec<usize> = std::iter::once(0).chain(ends).chain([y.len() - 1]).collect();
    kept.dedup();
    kept
}

/// Returns the points of a series at its [`peaks`].
pub fn downsample(x: &[f64], y: &[f64], limit: usize) -> (Vec<f64>, Vec<f64>) {
    let n = x.len().min(y.len());
    peaks(&y[..n], limit).into_iter().map(|i| (x[i], y[i])).unzip()
}

/// Removes points inside runs of equal values: a line through the rest looks the same.
pub fn drop_repeats(x: &[f64], y: &[f64]) -> (Vec<f64>, Vec<f64>) {
    let n = x.len().min(y.len());
    let inside = |i: usize| 0 < i && i + 1 < n && y[i - 1] == y[i] && y[i] == y[i + 1];
    let keep: Vec<usize> = (0..n).filter(|i| !inside(*i)).collect();
    (keep.iter().map(|i| x[*i]).collect(), keep.iter().map(|i| y[*i]).collect())
}

/// Returns the empirical distribution function as (value, fraction of all at or below it), at about `limit` points at
/// most. Value `i` has the weight `weight(i)`.
pub fn cdf(values: &[f64], weight: impl Fn(usize) -> f64, limit: usize) -> (Vec<f64>, Vec<f64>) {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|a, b| values[*a].total_cmp(&values[*b]));
    let total: f64 = (0..values.len()).map(&weight).sum();
    if total <= 0.0 {
        return (Vec::new(), Vec::new());
    }
    let (mut x, mut y, mut below) = (Vec::new(), Vec::new(), 0.0);
    for (rank, i) in order.iter().enumerate() {
        below += weight(*i);
        let next_differs = order.get(rank + 1).is_none_or(|j| values[*j] != values[*i]);
        if next_differs {
            x.push(values[*i]);
            y.push(below / total);
        }
    }
    thin(x, y, limit)
}

/// Returns the complementary distribution function as (value, fraction of all above it) for logarithmic axes, at about
/// `limit` points at most. The first point is at 0, with the fraction of positive values; the last is the largest
/// value, with none above it. Value `i` has the weight `weight(i)`. Without positive values there are no points.
pub fn ccdf(values: &[f64], weight: impl Fn(usize) -> f64, limit: usize) -> (Vec<f64>, Vec<f64>) {
    let mut order: Vec<usize> = (0..values.len()).filter(|i| 0.0 < values[*i] && 0.0 < weight(*i)).collect();
    order.sort_by(|a, b| values[*b].total_cmp(&values[*a]));
    let total: f64 = (0..values.len()).map(&weight).sum();
    let (mut x, mut y, mut above) = (Vec::new(), Vec::new(), 0.0);
    // From the largest value down: small sums of the tail are added before large ones.
    for i in order {
        if x.last() != Some(&values[i]) {
            x.push(values[i]);
            y.push(above / total);
        }
        above += weight(i);
    }
    if x.is_empty() {
        return (x, y);
    }
    x.push(0.0);
    y.push(above / total);
    x.reverse();
    y.reverse();
    thin_logarithmic(x, y, limit)
}

/// Thins a descending curve to even steps on logarithmic axes. Its first two points and its last two are kept.
fn thin_logarithmic(x: Vec<f64>, y: Vec<f64>, limit: usize) -> (Vec<f64>, Vec<f64>) {
    let n = x.len();
    if n <= limit.max(4) {
        return (x, y);
    }
    let steps = (limit as f64 / 2.0).max(1.0);
    let (dx, dy) = ((x[n - 1] / x[1]).ln() / steps, (y[0] / y[n - 2]).ln() / steps);
    let mut keep = vec![0, 1];
    for i in 2..n {
        let last = keep[keep.len() - 1];
        if n - 2 <= i || dx <= (x[i] / x[last]).ln() || dy <= (y[last] / y[i]).ln() {
            keep.push(i);
        }
    }
    (keep.iter().map(|i| x[*i]).collect(), keep.iter().map(|i| y[*i]).collect())
}

/// Thins an ascending curve to even steps in y, with smaller steps in the last percent: tails matter.
fn thin(x: Vec<f64>, y: Vec<f64>, limit: usize) -> (Vec<f64>, Vec<f64>) {
    if x.len() <= limit {
        return (x, y);
    }
    let step = 1.0 / (limit as f64 * 0.8);
    let tail_step = 0.01 / (limit as f64 * 0.2);
    let mut next = 0.0;
    let (mut xs, mut ys) = (Vec::new(), Vec::new());
    for i in 0..x.len() {
        if next <= y[i] || i + 1 == x.len() {
            xs.push(x[i]);
            ys.push(y[i]);
            next = y[i] + if y[i] < 0.99 { step } else { tail_step };
        }
    }
    (xs, ys)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn growth_of_a_counter_by_hand() {
        // 0..2 s: 10 per second; 2..4 s: nothing; bins of 1 s.
        let (x, y) = growth(&[0.0, 2.0, 4.0], &[0.0, 20.0, 20.0], 1.0);
        assert_eq!(x, [0.5, 1.5, 2.5, 3.5]);
        assert_eq!(y, [10.0, 10.0, 0.0, 0.0]);
        assert_eq!(growth(&[], &[], 1.0), (vec![], vec![]));
        assert_eq!(growth(&[1.0], &[5.0], 1.0), (vec![], vec![]));
    }

    #[test]
    fn a_counter_is_read_between_samples() {
        let (t, c) = ([1.0, 2.0, 4.0], [0.0, 10.0, 30.0]);
        let got = [0.0, 1.0, 1.5, 3.0, 9.0].map(|x| value_at(&t, &c, x));
        assert_eq!(got, [0.0, 0.0, 5.0, 20.0, 30.0].map(Some));
        assert_eq!(value_at(&[], &[], 0.0), None);
    }

    #[test]
    fn bin_widths_are_round() {
        assert_eq!(bin_width(4_000_000.0, 400.0, 1_000.0), 10_000.0);
        assert_eq!(bin_width(4_100_000.0, 400.0, 1_000.0), 20_000.0);
        assert_eq!(bin_width(1_000.0, 400.0, 3_000.0), 5_000.0);
    }

    #[test]
    fn a_cdf_reaches_one_at_the_largest_value() {
        let (x, y) = cdf(&[3.0, 1.0, 1.0, 2.0], |_| 1.0, 100);
        assert_eq!(x, [1.0, 2.0, 3.0]);
        assert_eq!(y, [0.5, 0.75, 1.0]);
        let (x, y) = cdf(&[5.0, 0.0], |i| [1.0, 3.0][i], 100);
        assert_eq!((x, y), (vec![0.0, 5.0], vec![0.75, 1.0]));
    }

    #[test]
    fn a_ccdf_by_hand() {
        // Half of the weight is at 0, a quarter at 1, an eighth each at 2 and 4.
        let (x, y) = ccdf(&[2.0, 0.0, 4.0, 1.0, 0.0], |i| [1.0, 3.0, 1.0, 2.0, 1.0][i], 100);
        assert_eq!((x, y), (vec![0.0, 1.0, 2.0, 4.0], vec![0.5, 0.25, 0.125, 0.0]));
        assert_eq!(ccdf(&[0.0, 0.0], |_| 1.0, 100), (vec![], vec![]));
        assert_eq!(ccdf(&[], |_| 1.0, 100), (vec![], vec![]));
        // A value that holds for no time is no value.
        assert_eq!(ccdf(&[3.0, 9.0], |i| [1.0, 0.0][i], 100), (vec![0.0, 3.0], vec![1.0, 0.0]));
    }

    #[test]
    fn repeats_inside_go() {
        let (x, y) = drop_repeats(&[0., 1., 2., 3., 4.], &[7., 7., 7., 7., 8.]);
        assert_eq!((x, y), (vec![0., 3., 4.], vec![7., 7., 8.]));
    }

    proptest! {
        #[test]
        fn downsampling_keeps_peaks_ends_and_order(y in prop::collection::vec(-1e6..1e6, 1..3000), limit in 8_usize..200) {
            let x: Vec<f64> = (0..y.len()).map(|i| i as f64).collect();
            let (xs, ys) = downsample(&x, &y, limit);
            let max = |v: &[f64]| v.iter().copied().fold(f64::MIN, f64::max);
            let min = |v: &[f64]| v.iter().copied().fold(f64::MAX, f64::min);
            prop_assert_eq!((max(&ys), min(&ys)), (max(&y), min(&y)));
            prop_assert_eq!((xs[0], xs[xs.len() - 1]), (x[0], x[x.len() - 1]));
            prop_assert!(xs.windows(2).all(|w| w[0] < w[1]));
            prop_assert!(xs.len() <= limit + 2);
        }

        #[test]
        fn growth_adds_up(steps in prop::collection::vec((1.0..5.0, 0.0..100.0), 2..100)) {
            let (mut t, mut c) = (vec![0.0], vec![0.0]);
            for (dt, dc) in steps {
                t.push(t[t.len() - 1] + dt);
                c.push(c[c.len() - 1] + dc);
            }
            let (x, rate) = growth(&t, &c, 0.5);
            let end = x.len() as f64 * 0.5;
            let sum: f64 = rate.iter().map(|r| r * 0.5).sum();
            prop_assert!((sum - value_at(&t, &c, end).unwrap()).abs() < 1e-6);
        }

        #[test]
        fn ccdfs_are_the_rest_of_cdfs(v in prop::collection::vec(0.0..1e3_f64, 1..5000), floor in 0_u32..900) {
            let v: Vec<f64> = v.iter().map(|x| (x - f64::from(floor)).max(0.0).floor()).collect();
            let (x, y) = ccdf(&v, |_| 1.0, 300);
            prop_assert!(x.windows(2).all(|w| w[0] < w[1]) && y.windows(2).all(|w| w[1] < w[0]));
            prop_assert!(x.len() <= 320, "{}", x.len());
            for (x, y) in x.iter().zip(&y) {
                let above = v.iter().filter(|v| *x < **v).count() as f64;
                prop_assert!((y - above / v.len() as f64).abs() < 1e-9);
            }
        }

        #[test]
        fn cdfs_ascend_to_one(v in prop::collection::vec(0.0..1e3, 1..5000)) {
            let (x, y) = cdf(&v, |_| 1.0, 300);
            prop_assert!(x.windows(2).all(|w| w[0] < w[1]) && y.windows(2).all(|w| w[0] < w[1]));
            prop_assert!((y[y.len() - 1] - 1.0).abs() < 1e-9);
            prop_assert!(x.len() <= 420);
        }
    }
}
