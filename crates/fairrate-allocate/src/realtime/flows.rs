//! Flows of one path length, side by side, and the pass over them.

use super::links::LinkTable;

/// Flows over paths of the same number of links. A flow that leaves gives its place to the last one.
#[derive(Clone, Debug, Default)]
pub(super) struct FlowTable {
    n_hops: usize,
    /// Numbers of links in the block's table, `n_hops` a flow.
    paths: Vec<u32>,
    weights: Vec<f32>,
    /// The smaller of demand and capacities, by weight: the largest 1 / Σ p that counts.
    limits: Vec<f32>,
    demands: Vec<f32>,
    /// x of equation 3.
    rates: Vec<f32>,
    /// x of equation 9.
    normalised: Vec<f32>,
    /// Whose flow it is.
    owners: Vec<u32>,
}

impl FlowTable {
    pub fn new(n_hops: usize) -> Self {
        Self { n_hops, ..Self::default() }
    }

    pub fn len(&self) -> usize {
        self.owners.len()
    }

    pub fn normalised(&self, at: usize) -> f32 {
        self.normalised[at]
    }

    /// Adds a flow at today's prices, with its load on its links.
    pub fn add(&mut self, links: &mut LinkTable, path: impl Iterator<Item = u32>, weight: f32, demand: f32, owner: u32) {
        self.paths.extend(path);
        debug_assert_eq!(self.paths.len(), (self.len() + 1) * self.n_hops);
        self.weights.push(weight);
        self.demands.push(demand);
        self.limits.push(0.0);
        self.rates.push(0.0);
        self.normalised.push(0.0);
        self.owners.push(owner);
        let at = self.len() - 1;
        self.place(at, links);
        let slope = self.slope(at, links);
        for &link in self.path(at) {
            links.join(link, [self.rates[at], slope]);
        }
    }

    /// Removes a flow with its load. Returns the owner of the flow that is now in its place, if one moved, and whether
    /// the sums of its links are still good.
    pub fn remove(&mut self, links: &mut LinkTable, at: usize) -> (Option<u32>, bool) {
        let slope = self.slope(at, links);
        let mut good = true;
        for &link in self.path(at) {
            good &= links.leave(link, [self.rates[at], slope]);
        }
        let last = self.len() - 1;
        self.paths.copy_within(last * self.n_hops.., at * self.n_hops);
        self.paths.truncate(last * self.n_hops);
        self.weights.swap_remove(at);
        self.demands.swap_remove(at);
        self.limits.swap_remove(at);
        self.rates.swap_remove(at);
        self.normalised.swap_remove(at);
        self.owners.swap_remove(at);
        (self.owners.get(at).copied(), good)
    }

    /// Limits and rates of all flows from today's capacities and prices, and their loads on the links.
    pub fn place_all(&mut self, links: &mut LinkTable) {
        for at in 0..self.len() {
            self.place(at, links);
            let slope = self.slope(at, links);
            for &link in self.path(at) {
                let sum = &mut links.sums[link as usize];
                *sum = [sum[0] + self.rates[at], sum[1] + slope];
            }
        }
    }

    fn path(&self, at: usize) -> &[u32] {
        &self.paths[at * self.n_hops..][..self.n_hops]
    }

    /// The limit of a flow, and its rate at today's prices.
    fn place(&mut self, at: usize, links: &LinkTable) {
        let capacities = self.path(at).iter().map(|&link| links.capacities[link as usize]);
        self.limits[at] = capacities.fold(self.demands[at], f32::min) / self.weights[at];
        self.rates[at] = self.weights[at] * self.inverse(at, links);
    }

    /// 1 / Σ p, within the flow's limit.
    fn inverse(&self, at: usize, links: &LinkTable) -> f32 {
        let mut prices = self.path(at).iter().map(|&link| links.seen[link as usize][0]);
        let first = prices.next().unwrap_or_default();
        min(1.0 / prices.fold(first, |sum, price| sum + price), self.limits[at])
    }

    /// What the flow's rate adds to the diagonal of the Hessian, without its sign. Prices are those the rate is from.
    fn slope(&self, at: usize, links: &LinkTable) -> f32 {
        self.rates[at] * self.inverse(at, links)
    }

    /// Normalises the rates that the last price update has seen, and computes those at the new prices with their loads.
    pub fn pass(&mut self, links: &mut LinkTable) {
        match self.n_hops {
            1 => self.pass_of::<1>(links),
            2 => self.pass_of::<2>(links),
            3 => self.pass_of::<3>(links),
            4 => self.pass_of::<4>(links),
            5 => self.pass_of::<5>(links),
            6 => self.pass_of::<6>(links),
            7 => self.pass_of::<7>(links),
            8 => self.pass_of::<8>(links),
            _ => self.pass_of_any(links),
        }
    }

    fn pass_of<const N: usize>(&mut self, links: &mut LinkTable) {
        let (seen, sums) = (&links.seen[..], &mut links.sums[..]);
        let paths = self.paths.as_chunks::<N>().0;
        let flows = paths.iter().zip(&self.weights).zip(&self.limits);
        for (((path, &weight), &limit), (rate, normalised)) in flows.zip(self.rates.iter_mut().zip(&mut self.normalised)) {
            let [mut price, mut room] = seen[path[0] as usize];
            for &link in &path[1..] {
                let [p, r] = seen[link as usize];
                price += p;
                room = min(room, r);
            }
            *normalised = min(*rate * room, weight * limit);
            let inverse = min(1.0 / price, limit);
            *rate = weight * inverse;
            let slope = *rate * inverse;
            for &link in path {
                let sum = &mut sums[link as usize];
                *sum = [sum[0] + *rate, sum[1] + slope];
            }
        }
    }

    /// The same for long paths, in the same order.
    fn pass_of_any(&mut self, links: &mut LinkTable) {
        for at in 0..self.len() {
            let rooms = self.path(at).iter().map(|&link| links.seen[link as usize][1]);
            let room = rooms.fold(f32::MAX, min);
            self.normalised[at] = min(self.rates[at] * room, self.weights[at] * self.limits[at]);
            self.rates[at] = self.weights[at] * self.inverse(at, links);
            let slope = self.slope(at, links);
            for &link in self.path(at) {
                let sum = &mut links.sums[link as usize];
                *sum = [sum[0] + self.rates[at], sum[1] + slope];
            }
        }
    }
}

/// The smaller of two numbers, as a processor's instruction has it: without a case for NaN.
#[inline(always)]
pub(super) fn min(a: f32, b: f32) -> f32 {
    if a < b { a } else { b }
}
