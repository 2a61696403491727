//! The links that a block of flows uses: prices and ratios for flows to read, sums of their loads, and the price
//! update.

use std::ops::Range;

use super::kernel::Kernel;

/// Upper bound of prices. At 10^15, a flow of the smallest weight still has a slope that is not a denormal number.
pub(super) const MAX_PRICE: f32 = 1e15;

/// A sum that falls below this part of its largest value since the last price update is recomputed, since rounding is
/// then no small part of it.
const CANCELLATION: f32 = 1.0 / 64.0;

/// Number of links in a group; a group without flows costs nothing.
const GROUP: usize = 16;

/// The rule by which prices follow loads, and whether rates are normalised.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Rule {
    pub gamma: f32,
    /// `true` if prices move by γ·G, and not by γ·G / |H|.
    pub is_gradient: bool,
    pub is_normalised: bool,
}

/// The links of a block of flows, by number.
#[derive(Clone, Debug, Default)]
pub(super) struct LinkTable {
    /// Price, and capacity / load at the last price update ([`f32::MAX`] without load). They are stored together, as a
    /// flow needs both.
    pub seen: Vec<[f32; 2]>,
    /// Σ x and Σ x²/w of the flows over each link.
    pub sums: Vec<[f32; 2]>,
    /// Capacities in units of the engine.
    pub capacities: Vec<f32>,
    n_users: Vec<u32>,
    /// For each group, the number of uses of its links by flows.
    group_users: Vec<u32>,
    /// A bit for each group that is in use.
    used: Vec<u64>,
    /// Number of price updates so far.
    n_updates: u64,
    /// For each link the last interval between price updates in which a flow left it, and the largest sums in that
    /// interval.
    peaks: Vec<(u64, [f32; 2])>,
}

impl LinkTable {
    pub fn new(capacities: Vec<f32>) -> Self {
        let n_links = capacities.len();
        let n_groups = n_links.div_ceil(GROUP);
        Self {
            seen: vec![[1.0, f32::MAX]; n_links],
            sums: vec![[0.0; 2]; n_links],
            capacities,
            n_users: vec![0; n_links],
            group_users: vec![0; n_groups],
            used: vec![0; n_groups.div_ceil(64)],
            n_updates: 0,
            // No interval has this number.
            peaks: vec![(u64::MAX, [0.0; 2]); n_links],
        }
    }

    pub fn len(&self) -> usize {
        self.seen.len()
    }

    /// Adds a flow of the given load and slope to a link.
    pub fn join(&mut self, link: u32, load: [f32; 2]) {
        let (link, group) = (link as usize, link as usize / GROUP);
        self.n_users[link] += 1;
        self.group_users[group] += 1;
        self.used[group / 64] |= 1 << (group % 64);
        put(&mut self.sums, link, load);
    }

    /// Removes a flow of the given load and slope from a link; returns `false` if the remaining sums are mostly
    /// rounding.
    #[must_use]
    pub fn leave(&mut self, link: u32, [x, slope]: [f32; 2]) -> bool {
        let (link, group) = (link as usize, link as usize / GROUP);
        self.n_users[link] -= 1;
        self.group_users[group] -= 1;
        if self.group_users[group] == 0 {
            self.used[group / 64] &= !(1 << (group % 64));
        }
        let sum = &mut self.sums[link];
        if self.n_users[link] == 0 {
            *sum = [0.0; 2];
            return true;
        }
        let (interval, peak) = &mut self.peaks[link];
        if std::mem::replace(interval, self.n_updates) != self.n_updates {
            *peak = [0.0; 2];
        }
        *peak = [peak[0].max(sum[0]), peak[1].max(sum[1])];
        *sum = [sum[0] - x, sum[1] - slope];
        peak[0] * CANCELLATION <= sum[0] && peak[1] * CANCELLATION <= sum[1]
    }

    /// Begins a price update.
    pub fn begin_update(&mut self) {
        self.n_updates += 1;
    }

    /// Updates the prices of some links, and resets their sums to 0.
    pub fn update(&mut self, links: Range<usize>, rule: Rule, with: Kernel) {
        let (seen, sums) = (&mut self.seen[links.clone()], &mut self.sums[links.clone()]);
        with.update(seen, sums, &self.capacities[links], rule);
    }

    /// Updates the prices of all links with flows. Links without flows keep their prices.
    pub fn update_used(&mut self, rule: Rule, with: Kernel) {
        for word in 0..self.used.len() {
            let mut groups = self.used[word];
            let mut first = word * 64;
            while groups != 0 {
                // A run of groups with flows, behind one of groups without.
                first += groups.trailing_zeros() as usize;
                groups >>= groups.trailing_zeros();
                let run = groups.trailing_ones();
                let end = ((first + run as usize) * GROUP).min(self.len());
                self.update(first * GROUP..end, rule, with);
                first += run as usize;
                groups = groups.checked_shr(run).unwrap_or(0);
            }
        }
    }
}

/// Adds a flow's load and slope to a link's.
#[inline]
pub(super) fn put(sums: &mut [[f32; 2]], link: usize, [x, slope]: [f32; 2]) {
    let sum = &mut sums[link];
    *sum = [sum[0] + x, sum[1] + slope];
}

/// Applies equation 4 and computes the ratio of equation 9, link by link. Every operation is defined by IEEE 754 to the
/// last bit, and none depends on another link, so the bits are the same for any number of links at once.
#[inline]
pub(super) fn update(seen: &mut [[f32; 2]], sums: &mut [[f32; 2]], capacities: &[f32], rule: Rule) {
    for ((seen, sum), &capacity) in seen.iter_mut().zip(sums).zip(capacities) {
        let ([load, slope], [price, _]) = (*sum, *seen);
        // Selections instead of branches: links without flows make numbers that are not used.
        let divisor = if rule.is_gradient { 1.0 } else { slope };
        let moved = price + rule.gamma * ((load - capacity) / divisor);
        let moved = if 0.0 < moved { moved } else { 0.0 };
        let moved = if moved < MAX_PRICE { moved } else { MAX_PRICE };
        let price = if 0.0 < slope { moved } else { price };
        let room = capacity / load;
        let room = if room < f32::MAX { room } else { f32::MAX };
        let room = if rule.is_normalised { room } else { 1.0 };
        *seen = [price, room];
        *sum = [0.0; 2];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NED: Rule = Rule { gamma: 0.4, is_gradient: false, is_normalised: true };

    #[test]
    fn gradient_and_raw_rates() {
        // 1 + 0.4·(3 - 1), whatever the slope.
        let (mut seen, mut sums) = ([[1.0, 0.0]; 2], [[3.0, 7.0], [0.0, 0.0]]);
        update(&mut seen, &mut sums, &[1.0; 2], Rule { is_gradient: true, is_normalised: false, ..NED });
        assert_eq!(seen, [[1.8, 1.0], [1.0, 1.0]]);
    }

    #[test]
    fn runs_of_used_groups() {
        // 130 groups of 16 and one of 5. Flows on the first, the 63rd to the 65th and the last link.
        let mut links = LinkTable::new(vec![1.0; 130 * 16 + 5]);
        let used = [0, 63 * 16 - 1, 63 * 16, 64 * 16, 130 * 16 + 4];
        for link in used {
            links.join(link, [2.0, 4.0]);
        }
        links.update_used(NED, Kernel::Portable);
        for link in 0..links.len() {
            // 1 + 0.4·(2 - 1)/4 = 1.1, and 1/2; without flows the price stays.
            let expected = if used.contains(&(link as u32)) { [1.1, 0.5] } else { [1.0, f32::MAX] };
            assert_eq!(links.seen[link], expected, "{link}");
            assert_eq!(links.sums[link], [0.0; 2]);
        }
        assert!(links.leave(0, [2.0, 4.0]));
        links.update_used(NED, Kernel::Portable);
        assert_eq!(links.seen[0], [1.1, 0.5], "nobody looks at a link that was left");
    }

    #[test]
    fn a_price_stays_within_its_range() {
        let mut seen = [[1.0, 0.0]; 4];
        // Far above and far below capacity, no slope, nothing at all.
        let mut sums = [[1e9, 1e-9], [1e-9, 1e-9], [3.0, 0.0], [0.0, 0.0]];
        update(&mut seen, &mut sums, &[1.0; 4], Rule { gamma: 1.0, ..NED });
        assert_eq!(seen.map(|[price, _]| price), [MAX_PRICE, 0.0, 1.0, 1.0]);
        assert_eq!(seen[3][1], f32::MAX);
    }
}
