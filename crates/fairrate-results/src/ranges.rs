//! Ranges of numbers that are counted: longer ones for larger numbers.

/// Ranges of whole numbers: each number has its own up to 2^`BITS`, and from there on each doubling has 2^`BITS` ranges
/// of one length.
#[derive(Clone, Copy, Debug)]
pub struct Ranges<const BITS: u32>;

impl<const BITS: u32> Ranges<BITS> {
    /// Returns the place, from 0, of the range of `number`.
    pub fn of(number: u64) -> usize {
        let doublings = (u64::BITS - number.leading_zeros()).saturating_sub(BITS + 1);
        (u64::from(doublings << BITS) + (number >> doublings)) as usize
    }

    /// Returns the least number of the range at the place `range`.
    pub fn start(range: usize) -> u64 {
        let doublings = (range as u64 >> BITS).saturating_sub(1);
        (range as u64 - (doublings << BITS)) << doublings
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_follow_each_other_without_gap() {
        type R = Ranges<5>;
        for at in 0..1_500 {
            assert_eq!((R::of(R::start(at)), R::of(R::start(at + 1) - 1)), (at, at));
        }
        // 8,000: 2^12 = 4,096 has ranges of 128, and 8,000 = 62 * 128 + 64.
        assert_eq!((R::start(R::of(8_000)), R::start(R::of(8_000) + 1)), (62 * 128, 63 * 128));
    }

    #[test]
    fn ranges_are_narrow_and_in_order() {
        type R = Ranges<7>;
        for number in [0, 1, 127, 128, 255, 256, 257, 511, 512, 3_600_000, 1 << 40, (1 << 40) - 1] {
            let low = R::start(R::of(number));
            assert!(low <= number && number - low <= number / 128, "{number}: {low}");
            assert!(R::of(number) <= R::of(number + 1) && R::of(number + 1) <= R::of(number) + 1);
        }
    }
}
