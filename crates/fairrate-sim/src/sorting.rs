//! Sorting of a few values without branches. Their order is close to random, and half of the branches that depended on
//! it would be mispredicted.

/// Largest number of values that are sorted without branches.
const FEW: usize = 16;

/// Sorts `values` by `is_before`, or by `sort` if there are more than `FEW`. No value may be after `last`.
#[inline]
pub fn sort<T: Copy>(
    values: &mut Vec<T>,
    last: T,
    is_before: impl Fn(T, T) -> bool + Copy,
    sort: impl FnOnce(&mut [T]),
) {
    let n = values.len();
    if n < 2 {
        return;
    }
    if FEW < n {
        sort(values);
        return;
    }
    // There are networks for 4, 8 or 16 values.
    values.extend_from_slice(&[last; FEW]);
    if n <= 4 {
        to_4::<T, 4>(first(values), is_before);
    } else if n <= 8 {
        to_8::<T, 8>(first(values), is_before);
    } else {
        to_16(first(values), is_before);
    }
    values.truncate(n);
}

fn first<T, const N: usize>(values: &mut [T]) -> &mut [T; N] {
    values.first_chunk_mut().expect("more than these have been added")
}

/// Sorts runs of four values by a bitonic network.
#[inline]
fn to_4<T: Copy, const N: usize>(values: &mut [T; N], is_before: impl Fn(T, T) -> bool + Copy) {
    exchange::<T, N, 1>(values, is_before);
    exchange::<T, N, 3>(values, is_before);
    exchange::<T, N, 1>(values, is_before);
}

/// Sorts runs of eight values.
#[inline]
fn to_8<T: Copy, const N: usize>(values: &mut [T; N], is_before: impl Fn(T, T) -> bool + Copy) {
    to_4(values, is_before);
    exchange::<T, N, 7>(values, is_before);
    exchange::<T, N, 2>(values, is_before);
    exchange::<T, N, 1>(values, is_before);
}

/// Sorts sixteen values.
#[inline(never)]
fn to_16<T: Copy>(values: &mut [T; FEW], is_before: impl Fn(T, T) -> bool + Copy) {
    to_8(values, is_before);
    exchange::<T, FEW, 15>(values, is_before);
    exchange::<T, FEW, 4>(values, is_before);
    exchange::<T, FEW, 2>(values, is_before);
    exchange::<T, FEW, 1>(values, is_before);
}

/// Orders each pair of values whose positions differ in the bits of `MASK`.
#[inline]
fn exchange<T: Copy, const N: usize, const MASK: usize>(values: &mut [T; N], is_before: impl Fn(T, T) -> bool) {
    for i in 0..N {
        let other = i ^ MASK;
        if i < other {
            let (a, b) = (values[i], values[other]);
            values[i] = if is_before(b, a) { b } else { a };
            values[other] = if is_before(b, a) { a } else { b };
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn values_come_in_order(mut values in prop::collection::vec(0_u64..30, 0..40)) {
            let mut expected = values.clone();
            expected.sort_unstable();
            sort(&mut values, u64::MAX, |a, b| a < b, <[u64]>::sort_unstable);
            prop_assert_eq!(&values, &expected);
            expected.reverse();
            sort(&mut values, 0, |a, b| b < a, |many| many.sort_unstable_by(|a, b| b.cmp(a)));
            prop_assert_eq!(values, expected);
        }
    }
}
