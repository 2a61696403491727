//! Flows of one path length, side by side, and the pass over them.

use super::kernel::{Kernel, Number};
use super::links::{LinkTable, put};

/// Multiple of the smallest capacity of its path that a flow may want. With 1, a flow that alone could fill its link
/// wants no more at any lower price, and that price follows the load of other flows only slowly.
const REACH: f32 = 2.0;

/// The flows whose paths have the same number of links. When a flow is removed, the last flow takes its place.
#[derive(Clone, Debug)]
pub(super) struct FlowTable {
    /// All flows' first links, all second ones, and so on: link numbers in the block's table.
    paths: Paths,
    n_links: usize,
    weights: Vec<f32>,
    /// The smaller of demand and [`REACH`] times the path's capacity, divided by the weight: the largest 1 / Σ p that
    /// counts.
    limits: Vec<f32>,
    /// The smaller of demand and the path's capacity.
    ceilings: Vec<f32>,
    demands: Vec<f32>,
    /// x of equation 3.
    rates: Vec<f32>,
    /// x of equation 9.
    normalised: Vec<f32>,
    /// The owner of each flow.
    owners: Vec<u32>,
}

/// Link numbers, by hop and then by flow. They are 16-bit numbers if that is enough, as flows are read from beginning
/// to end.
#[derive(Clone, Debug)]
enum Paths {
    Short(Vec<Vec<u16>>),
    Long(Vec<Vec<u32>>),
}

/// The columns that a pass reads and writes, with one entry for each flow. `I`: the type of link numbers.
pub(super) struct Columns<'a, I, const N: usize> {
    pub paths: [&'a [I]; N],
    /// Bound above all numbers in `paths`.
    pub n_links: usize,
    pub weights: &'a [f32],
    pub limits: &'a [f32],
    pub ceilings: &'a [f32],
    pub rates: &'a mut [f32],
    pub normalised: &'a mut [f32],
}

impl FlowTable {
    /// Creates a table without flows, over links with numbers below `n_links`.
    pub fn new(n_hops: usize, n_links: usize) -> Self {
        let paths = if n_links <= 1 << 16 {
            Paths::Short(vec![Vec::new(); n_hops])
        } else {
            Paths::Long(vec![Vec::new(); n_hops])
        };
        Self {
            paths,
            n_links,
            weights: Vec::new(),
            limits: Vec::new(),
            ceilings: Vec::new(),
            demands: Vec::new(),
            rates: Vec::new(),
            normalised: Vec::new(),
            owners: Vec::new(),
        }
    }

    pub fn len(&self) -> usize {
        self.owners.len()
    }

    pub fn normalised(&self, at: usize) -> f32 {
        self.normalised[at]
    }

    /// Adds a flow at the present prices, and its load on its links.
    pub fn add(
        &mut self,
        links: &mut LinkTable,
        path: impl Iterator<Item = u32>,
        weight: f32,
        demand: f32,
        owner: u32,
    ) {
        for (hop, link) in path.enumerate() {
            // The kernels rely on this check.
            assert!((link as usize) < self.n_links, "a flow over a link that is not there");
            match &mut self.paths {
                Paths::Short(paths) => paths[hop].push(link as u16),
                Paths::Long(paths) => paths[hop].push(link),
            }
        }
        self.weights.push(weight);
        self.demands.push(demand);
        self.limits.push(0.0);
        self.ceilings.push(0.0);
        self.rates.push(0.0);
        self.normalised.push(0.0);
        self.owners.push(owner);
        let at = self.len() - 1;
        self.place(at, links);
        let load = [self.rates[at], self.slope(at, links)];
        self.path(at).for_each(|link| links.join(link, load));
    }

    /// Removes a flow and its load. Returns the owner of the flow that is now in its place, if one moved, and `true` if
    /// the sums of its links are still accurate.
    pub fn remove(&mut self, links: &mut LinkTable, at: usize) -> (Option<u32>, bool) {
        let load = [self.rates[at], self.slope(at, links)];
        let mut good = true;
        for link in self.path(at) {
            good &= links.leave(link, load);
        }
        match &mut self.paths {
            Paths::Short(paths) => paths.iter_mut().for_each(|path| _ = path.swap_remove(at)),
            Paths::Long(paths) => paths.iter_mut().for_each(|path| _ = path.swap_remove(at)),
        }
        self.weights.swap_remove(at);
        self.demands.swap_remove(at);
        self.limits.swap_remove(at);
        self.ceilings.swap_remove(at);
        self.rates.swap_remove(at);
        self.normalised.swap_remove(at);
        self.owners.swap_remove(at);
        (self.owners.get(at).copied(), good)
    }

    /// Recomputes limits and rates of all flows from the present capacities and prices, and adds their loads to the
    /// links.
    pub fn place_all(&mut self, links: &mut LinkTable) {
        for at in 0..self.len() {
            self.place(at, links);
            self.load(at, links);
        }
    }

    fn path(&self, at: usize) -> impl Iterator<Item = u32> {
        let n_hops = match &self.paths {
            Paths::Short(paths) => paths.len(),
            Paths::Long(paths) => paths.len(),
        };
        (0..n_hops).map(move |hop| match &self.paths {
            Paths::Short(paths) => u32::from(paths[hop][at]),
            Paths::Long(paths) => paths[hop][at],
        })
    }

    /// Sets the limit, the ceiling and, at the present prices, the rate of the flow at place `at`.
    fn place(&mut self, at: usize, links: &LinkTable) {
        let capacities = self.path(at).map(|link| links.capacities[link as usize]);
        let capacity = capacities.fold(f32::MAX, f32::min);
        self.limits[at] = self.demands[at].min(REACH * capacity) / self.weights[at];
        self.ceilings[at] = self.demands[at].min(capacity);
        self.rates[at] = self.weights[at] * self.inverse(at, links);
    }

    /// Returns 1 / Σ p over the links of the flow at place `at`, at most its limit: its rate for a weight of 1.
    fn inverse(&self, at: usize, links: &LinkTable) -> f32 {
        let mut prices = self.path(at).map(|link| links.seen[link as usize][0]);
        let first = prices.next().unwrap_or_default();
        min(1.0 / prices.fold(first, |sum, price| sum + price), self.limits[at])
    }

    /// Returns the contribution of the flow's rate to the diagonal of the Hessian, without its sign. The prices must be
    /// those that the rate was computed from.
    fn slope(&self, at: usize, links: &LinkTable) -> f32 {
        self.rates[at] * self.inverse(at, links)
    }

    fn load(&self, at: usize, links: &mut LinkTable) {
        let load = [self.rates[at], self.slope(at, links)];
        self.path(at).for_each(|link| put(&mut links.sums, link as usize, load));
    }

    /// Normalises the rates that the last price update used, and computes the rates at the new prices with their loads.
    pub fn pass(&mut self, links: &mut LinkTable, with: Kernel) {
        if self.len() == 0 {
            return;
        }
        macro_rules! pass_of {
            ($($n:literal)*) => {
                match &self.paths {
                    $(
                        Paths::Short(paths) if paths.len() == $n => pass_of!(u16, $n, paths),
                        Paths::Long(paths) if paths.len() == $n => pass_of!(u32, $n, paths),
                    )*
                    _ => self.pass_any(links),
                }
            };
            ($number:ty, $n:literal, $paths:ident) => {{
                let paths: [&[$number]; $n] = std::array::from_fn(|hop| &$paths[hop][..]);
                let columns = Columns {
                    paths,
                    n_links: self.n_links,
                    weights: &self.weights,
                    limits: &self.limits,
                    ceilings: &self.ceilings,
                    rates: &mut self.rates,
                    normalised: &mut self.normalised,
                };
                with.pass(columns, &links.seen, &mut links.sums);
            }};
        }
        pass_of!(1 2 3 4 5 6 7 8);
    }

    /// Runs the pass for paths of any length.
    fn pass_any(&mut self, links: &mut LinkTable) {
        for at in 0..self.len() {
            let rooms = self.path(at).map(|link| links.seen[link as usize][1]);
            let room = rooms.fold(f32::MAX, min);
            self.normalised[at] = min(self.rates[at] * room, self.ceilings[at]);
            self.rates[at] = self.weights[at] * self.inverse(at, links);
            self.load(at, links);
        }
    }
}

/// Runs the pass with instructions that every processor has, from flow `from` on.
#[inline]
pub(super) fn pass<I: Number, const N: usize>(
    flows: &mut Columns<'_, I, N>,
    from: usize,
    seen: &[[f32; 2]],
    sums: &mut [[f32; 2]],
) {
    let (seen, sums) = (&seen[..flows.n_links], &mut sums[..flows.n_links]);
    let n_flows = flows.weights.len();
    let paths = flows.paths.map(|hop| &hop[..n_flows]);
    let (weights, limits) = (&flows.weights[..n_flows], &flows.limits[..n_flows]);
    let ceilings = &flows.ceilings[..n_flows];
    let (rates, normalised) = (&mut flows.rates[..n_flows], &mut flows.normalised[..n_flows]);
    for at in from..n_flows {
        let path = paths.map(|hop| hop[at].into() as usize);
        let [mut price, mut room] = seen[path[0]];
        for &link in &path[1..] {
            price += seen[link][0];
            room = min(room, seen[link][1]);
        }
        normalised[at] = min(rates[at] * room, ceilings[at]);
        let inverse = min(1.0 / price, limits[at]);
        let rate = weights[at] * inverse;
        rates[at] = rate;
        for link in path {
            put(sums, link, [rate, rate * inverse]);
        }
    }
}

/// Returns the smaller of two numbers, as processors' instructions do: without a case for NaN.
#[inline]
pub(super) fn min(a: f32, b: f32) -> f32 {
    if a < b { a } else { b }
}
