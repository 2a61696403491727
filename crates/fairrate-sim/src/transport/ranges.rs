/// A set of byte ranges, merged and in ascending order.
#[derive(Clone, Debug, Default)]
pub struct Ranges(Vec<(u64, u64)>);

impl Ranges {
    /// Adds `[from, to)`.
    pub fn insert(&mut self, from: u64, to: u64) {
        let start = self.0.partition_point(|r| r.1 < from);
        let end = self.0.partition_point(|r| r.0 <= to);
        let merged = self.0[start..end].iter().fold((from, to), |m, r| (m.0.min(r.0), m.1.max(r.1)));
        self.0.splice(start..end, [merged]);
    }

    /// Removes all ranges that begin at or below `to`; returns the end of the last of them, or `to` if that is higher.
    pub fn advance(&mut self, to: u64) -> u64 {
        let mut edge = to;
        let mut n = 0;
        while n < self.0.len() && self.0[n].0 <= edge {
            edge = edge.max(self.0[n].1);
            n += 1;
        }
        self.0.drain(..n);
        edge
    }

    /// Returns the first gap at or after `from` that has a range beyond it, as `[start, end)`.
    pub fn gap_after(&self, from: u64) -> Option<(u64, u64)> {
        let mut start = from;
        for r in &self.0 {
            if start < r.0 {
                return Some((start, r.0));
            }
            start = start.max(r.1);
        }
        None
    }

    /// Returns the first part of `[from, to)` that it does not hold, as `[start, end)`.
    pub fn missing_in(&self, from: u64, to: u64) -> Option<(u64, u64)> {
        let mut next = self.0.partition_point(|r| r.1 <= from);
        let mut start = from;
        if let Some(r) = self.0.get(next).filter(|r| r.0 <= start) {
            start = r.1;
            next += 1;
        }
        let end = self.0.get(next).map_or(to, |r| r.0.min(to));
        (start < end).then_some((start, end))
    }

    /// Returns the first of the last `len` bytes that it holds, or `None` if it holds fewer.
    pub fn nth_last(&self, len: u64) -> Option<u64> {
        let mut left = len;
        for r in self.0.iter().rev() {
            if left <= r.1 - r.0 {
                return Some(r.1 - left);
            }
            left -= r.1 - r.0;
        }
        None
    }

    /// Returns the range that holds byte `at`, if any.
    pub fn around(&self, at: u64) -> Option<(u64, u64)> {
        let next = self.0.partition_point(|r| r.1 <= at);
        self.0.get(next).copied().filter(|r| r.0 <= at)
    }

    /// Returns the ranges, in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.0.iter().copied()
    }

    /// Removes and returns the last range.
    pub fn pop(&mut self) -> Option<(u64, u64)> {
        self.0.pop()
    }

    /// Returns `true` if it holds no range.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the end of the last range, or 0 if there is none.
    pub fn end(&self) -> u64 {
        self.0.last().map_or(0, |r| r.1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Compares with a set of single bytes.
        #[test]
        fn agrees_with_a_set_of_bytes(
            inserts in prop::collection::vec((0u64..60, 1u64..10), 0..20), from in 0u64..70, cut in 0u64..70,
        ) {
            let mut ranges = Ranges::default();
            let mut bytes = std::collections::BTreeSet::new();
            for (at, len) in inserts {
                ranges.insert(at, at + len);
                bytes.extend(at..at + len);
            }
            let gap = (from..80).find(|b| !bytes.contains(b)).filter(|g| bytes.iter().any(|b| g < b));
            let gap = gap.map(|g| (g, (g..80).find(|b| bytes.contains(b)).expect("something lies beyond")));
            prop_assert_eq!(ranges.gap_after(from), gap);
            let to = from + 12;
            let start = (from..to).find(|b| !bytes.contains(b));
            let missing = start.map(|s| (s, (s..to).find(|b| bytes.contains(b)).unwrap_or(to)));
            prop_assert_eq!(ranges.missing_in(from, to), missing);
            let len = (to % 7) + 1;
            prop_assert_eq!(ranges.nth_last(len), bytes.iter().rev().nth(len as usize - 1).copied());
            prop_assert_eq!(ranges.around(from).is_some_and(|r| r.0 <= from && from < r.1), bytes.contains(&from));
            let edge = (cut..80).find(|b| !bytes.contains(b)).expect("the set is finite");
            prop_assert_eq!(ranges.advance(cut), edge);
            prop_assert_eq!(ranges.end(), bytes.iter().next_back().map_or(0, |b| if *b < edge { 0 } else { b + 1 }));
        }
    }
}
