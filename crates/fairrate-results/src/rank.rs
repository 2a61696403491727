//! Nearest ranks, by which all percentiles are taken.

/// Returns the place, from 0, of the nearest-rank percentile among `n` values in ascending order: the first with at
/// least the fraction `p` of all values at or before it, which has rank `ceil(p n)`. `None` without values.
pub fn nearest_rank(n: usize, p: f64) -> Option<usize> {
    let last = n.checked_sub(1)?;
    // 0.999 x 1000 is 999.0000000000001 in floating point, where the rank is 999.
    let rank = (p * n as f64 * (1.0 - 4.0 * f64::EPSILON)).ceil().max(1.0) as usize;
    Some((rank - 1).min(last))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The same ranks as in whole numbers, up to sizes at which an absolute slack would fail.
    #[test]
    fn ranks_are_those_of_whole_numbers() {
        assert_eq!(nearest_rank(0, 0.5), None);
        let sizes = (1..3_000).chain((0..40).flat_map(|e| [(1_usize << e), (1 << e) + 1, 1_000 << (e / 2)]));
        for n in sizes {
            for per_mille in [0, 1, 10, 250, 500, 900, 950, 990, 999, 1_000] {
                let rank = (n * per_mille).div_ceil(1_000).max(1);
                assert_eq!(nearest_rank(n, per_mille as f64 / 1e3), Some(rank - 1), "{per_mille} of {n}");
            }
        }
    }
}
