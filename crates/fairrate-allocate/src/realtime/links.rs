//! The links that one block of flows uses: what flows see of them, what flows put on them, and the price update.

/// No price rises above this. Where it is 10^15, a flow of the smallest weight still has a slope that is no denormal number.
const MAX_PRICE: f32 = 1e15;

/// A removed flow leaves a sum that is still good to 2^-24·2^10, or the sums are made anew.
const CANCELLATION: f32 = 1.0 / 1024.0;

/// Links that are looked at together: a group without flows costs nothing.
const GROUP: usize = 16;

/// Links by their number in a block of flows.
#[derive(Clone, Debug, Default)]
pub(super) struct LinkTable {
    /// Price, and capacity / load of the last price update ([`f32::MAX`] without load).
    pub seen: Vec<[f32; 2]>,
    /// Σ x and Σ x²/w of the flows over each link.
    pub sums: Vec<[f32; 2]>,
    /// In units of the engine.
    pub capacities: Vec<f32>,
    n_users: Vec<u32>,
    /// Flows' uses of the links of each group.
    group_users: Vec<u32>,
    /// A bit for each group that has users.
    used: Vec<u64>,
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
        }
    }

    /// A flow of this load and slope begins on a link.
    pub fn join(&mut self, link: u32, [x, slope]: [f32; 2]) {
        let (link, group) = (link as usize, link as usize / GROUP);
        self.n_users[link] += 1;
        self.group_users[group] += 1;
        self.used[group / 64] |= 1 << (group % 64);
        let sum = &mut self.sums[link];
        *sum = [sum[0] + x, sum[1] + slope];
    }

    /// A flow of this load and slope ends on a link. False if what is left of the sums is mostly rounding.
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
        *sum = [sum[0] - x, sum[1] - slope];
        x * CANCELLATION <= sum[0] && slope * CANCELLATION <= sum[1]
    }

    /// The price update of all links with flows, which leaves their sums at 0.
    pub fn update_used(&mut self, gamma: f32) {
        for word in 0..self.used.len() {
            let mut groups = self.used[word];
            while groups != 0 {
                let start = (word * 64 + groups.trailing_zeros() as usize) * GROUP;
                groups &= groups - 1;
                let end = (start + GROUP).min(self.seen.len());
                update(
                    &mut self.seen[start..end],
                    &mut self.sums[start..end],
                    &self.capacities[start..end],
                    gamma,
                );
            }
        }
    }
}

/// Equation 4 and the ratio of equation 9, link by link.
#[inline(always)]
fn update(seen: &mut [[f32; 2]], sums: &mut [[f32; 2]], capacities: &[f32], gamma: f32) {
    for ((seen, sum), &capacity) in seen.iter_mut().zip(sums).zip(capacities) {
        let [load, slope] = std::mem::take(sum);
        // Selections and no branches: links without flows make numbers that nobody takes.
        let moved = seen[0] + gamma * ((load - capacity) / slope);
        let moved = if 0.0 < moved { moved } else { 0.0 };
        let moved = if moved < MAX_PRICE { moved } else { MAX_PRICE };
        let room = capacity / load;
        seen[0] = if 0.0 < slope { moved } else { seen[0] };
        seen[1] = if room < f32::MAX { room } else { f32::MAX };
    }
}
