//! The optimum of network utility maximisation to the last digits, independent of the methods that follow prices: a
//! primal-dual interior-point method, and the proof of its result ([`kkt_residual`]). S. Boyd, L. Vandenberghe, "Convex
//! Optimization", section 11.7; S. Wright, "Primal-Dual Interior-Point Methods", 1997.
//!
//! | symbol      | here                  | unit                           |
//! |-------------|-----------------------|--------------------------------|
//! | `x`, `p`    | `rates`, `prices`     | units of rate, utility a unit of rate |
//! | `z = c - Ax`| `rooms`: what is left of each link | units of rate     |
//! | `m`, `v = d - x` | `Demand`: a demand's price, and what is left to it | as above |
//! | `q = A'p + m` | what a flow pays a unit | utility a unit of rate       |
//! | `e = -x U'' / U'` | elasticity of the derivative | 1                 |
//!
//! The conditions of the optimum are `U'(x) = q` for flows and `p z = 0`, `m v = 0` for links and demands. The last two
//! are relaxed to a part `t` of the stake, and Newton steps follow the solution as `t` goes to 0. A demand's stake is
//! the worth of the flow's rate, `x q`; a link's stake is the least of its flows' stakes times their number, so that no
//! flow's price is made by the relaxation of others to which their rates are worth more by orders of magnitude. The
//! first condition is taken in logarithms, `log U'(x) = log q`, which is linear in the logarithms of `x` and `q` for
//! alpha-fair utilities, so that a step is good from far away. A step then reduces to one positive definite system in
//! the prices, solved by Cholesky's method: time is (links that have flows)^3, memory its square.

use crate::kkt::{KktResidual, Solution, kkt_residual};
use crate::network::{Network, NetworkError};
use crate::utility::Utility;

/// Largest relative residual of a solution.
const TOLERANCE: f64 = 1e-9;
/// Relaxation and stationarity at which iterations end: below the tolerance, above rounding.
const DONE: f64 = 1e-12;
/// Bounds of the part of the relaxation that a step aims to leave: at least, and at most.
const AIM: f64 = 0.1;
const CAUTION: f64 = 0.9;
/// The part of the way to the nearest bound that a step goes.
const STEP: f64 = 0.95;
/// Limit of steps; twenty is usual.
const MAX_STEPS: usize = 300;

/// The reason why there is no optimum.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ReferenceError {
    /// The network has no allocation.
    #[error(transparent)]
    Network(#[from] NetworkError),
    /// Rounding, or a utility that is not concave.
    #[error("the best rates found miss the conditions of the optimum by {}, more than 10^-9", residual.max())]
    Inexact {
        /// Amount by which they miss each condition.
        residual: KktResidual,
    },
}

/// Returns the bytes of memory that [`reference()`] needs for a network, approximately: a square of numbers for the
/// links that flows use.
pub fn reference_memory(network: &Network) -> u64 {
    let mut is_used = vec![false; network.links.len()];
    network.flows.iter().flat_map(|flow| &flow.links).for_each(|link| is_used[link.index()] = true);
    let n = is_used.iter().filter(|used| **used).count() as u64;
    n.saturating_mul(n).saturating_mul(size_of::<f64>() as u64)
}

/// Computes the rates that maximise the sum of all flows' utilities, one for each flow, with prices that prove it: they
/// miss no condition of the optimum by more than 10^-9. Rates in utilities are in units of `unit_bps`.
///
/// # Errors
/// The errors of [`Network::check`]; [`ReferenceError::Inexact`] if the proof fails.
///
/// # Panics
/// If the number of utilities is not the number of flows, or a utility is not usable.
pub fn reference(
    network: &Network,
    utilities: &[Utility],
    unit_bps: f64,
) -> Result<(Solution, KktResidual), ReferenceError> {
    network.check()?;
    assert_eq!(network.flows.len(), utilities.len(), "a utility for each flow");
    assert!(utilities.iter().all(Utility::is_usable), "weights are above 0");
    let mut point = Point::new(network, utilities, unit_bps);
    let mut step = Step::new();
    for _ in 0..MAX_STEPS {
        if point.miss() <= DONE {
            break;
        }
        step.compute(&point);
        point.take(&step);
    }
    let solution = point.solution(network.links.len());
    let residual = kkt_residual(network, utilities, &solution)?;
    if residual.max() <= TOLERANCE { Ok((solution, residual)) } else { Err(ReferenceError::Inexact { residual }) }
}

/// The room and the price of a limit: of a link or of a demand.
#[derive(Clone, Copy, Debug, Default)]
struct Limit {
    room: f64,
    price: f64,
}

/// The state of a flow.
#[derive(Clone, Debug)]
struct Party<'a> {
    utility: &'a Utility,
    /// Its links, as positions in [`Point::links`].
    links: Vec<usize>,
    rate: f64,
    /// The demand's room and price, if the flow has a demand.
    demand: Option<Limit>,
    /// `q`
    price: f64,
}

impl Party<'_> {
    /// Returns `x q`.
    fn worth(&self) -> f64 {
        self.rate * self.price
    }

    /// Returns `log U'(x) - log q`.
    fn mismatch(&self) -> f64 {
        libm::log(self.utility.derivative(self.rate) / self.price)
    }

    /// Returns the change of the price for a change of the rate: `e q / x`, which is `-U''` where the two agree.
    fn stiffness(&self) -> f64 {
        let derivative = self.utility.derivative(self.rate);
        self.price / (derivative * self.utility.response(derivative).sensitivity)
    }
}

/// Rates within all limits, and prices above 0.
#[derive(Clone, Debug)]
struct Point<'a> {
    flows: Vec<Party<'a>>,
    /// Links that flows use.
    links: Vec<Limit>,
    /// Their positions in the network.
    names: Vec<usize>,
    unit_bps: f64,
}

impl<'a> Point<'a> {
    /// Creates the starting point: half of an equal part of the narrowest link for every flow, and prices at which the
    /// relaxation is whole.
    fn new(network: &Network, utilities: &'a [Utility], unit_bps: f64) -> Self {
        let mut n_flows = vec![0_u32; network.links.len()];
        network.flows.iter().flat_map(|flow| &flow.links).for_each(|link| n_flows[link.index()] += 1);
        let names: Vec<usize> = (0..n_flows.len()).filter(|&l| 0 < n_flows[l]).collect();
        let mut places = vec![0; n_flows.len()];
        names.iter().enumerate().for_each(|(place, &name)| places[name] = place);
        let capacity = |link: usize| network.links[link].capacity_bps / unit_bps;
        let mut links: Vec<Limit> = names.iter().map(|&name| Limit { room: capacity(name), price: 0.0 }).collect();
        let mut flows = Vec::with_capacity(network.flows.len());
        for (flow, utility) in network.flows.iter().zip(utilities) {
            let demand = flow.demand_bps / unit_bps;
            let parts = flow.links.iter().map(|l| capacity(l.index()) / f64::from(n_flows[l.index()]));
            let rate = 0.5 * parts.fold(demand, f64::min);
            let derivative = utility.derivative(rate);
            let demand = demand.is_finite().then_some(Limit { room: demand - rate, price: 0.0 });
            let own: Vec<usize> = flow.links.iter().map(|link| places[link.index()]).collect();
            for &link in &own {
                links[link].room -= rate;
            }
            flows.push(Party { utility, links: own, rate, demand, price: derivative });
        }
        for flow in &mut flows {
            let worth = flow.worth();
            flow.demand.iter_mut().for_each(|demand| demand.price = worth / demand.room);
        }
        let mut point = Self { flows, links, names, unit_bps };
        let stakes = point.stakes();
        point.links.iter_mut().zip(stakes).for_each(|(link, worth)| link.price = worth / link.room);
        point.sum_prices();
        point
    }

    fn sum_prices(&mut self) {
        for flow in &mut self.flows {
            let links: f64 = flow.links.iter().map(|&link| self.links[link].price).sum();
            flow.price = links + flow.demand.map_or(0.0, |demand| demand.price);
        }
    }

    /// Returns the stake of each link: the number of its flows times the least `x q` of them.
    fn stakes(&self) -> Vec<f64> {
        let mut least = vec![(0.0, f64::INFINITY); self.links.len()];
        for flow in &self.flows {
            for &link in &flow.links {
                let (n, worth) = least[link];
                least[link] = (n + 1.0, flow.worth().min(worth));
            }
        }
        least.into_iter().map(|(n, worth)| n * worth).collect()
    }

    /// Returns the distance of each limit from tight or free, relative to the stake.
    fn relaxations(&self) -> impl Iterator<Item = f64> {
        let links = self.links.iter().zip(self.stakes()).map(|(link, worth)| link.price * link.room / worth);
        let demand = |flow: &Party<'_>| flow.demand.map(|demand| demand.price * demand.room / flow.worth());
        links.chain(self.flows.iter().filter_map(demand))
    }

    /// Returns the largest mismatch of a flow.
    fn mismatch(&self) -> f64 {
        self.flows.iter().map(|flow| flow.mismatch().abs()).fold(0.0, f64::max)
    }

    /// Returns the distance from the optimum: the largest relaxation or mismatch, 0 at the optimum.
    fn miss(&self) -> f64 {
        self.relaxations().fold(self.mismatch(), f64::max)
    }

    /// Applies the part of `step` that the limits allow.
    fn take(&mut self, step: &Step) {
        let part = step.part(self);
        for (link, (room, price)) in self.links.iter_mut().zip(&step.links) {
            link.room += part * room;
            link.price += part * price;
        }
        for (flow, change) in self.flows.iter_mut().zip(&step.flows) {
            flow.rate += part * change.rate;
            if let Some(demand) = &mut flow.demand {
                demand.room -= part * change.rate;
                demand.price += part * change.demand_price;
            }
        }
        self.sum_prices();
    }

    /// Returns the rates of all flows, and the prices of all links of the network.
    fn solution(&self, n_links: usize) -> Solution {
        let mut prices = vec![0.0; n_links];
        self.names.iter().zip(&self.links).for_each(|(&name, link)| prices[name] = link.price);
        let rates_bps = self.flows.iter().map(|flow| flow.rate * self.unit_bps).collect();
        Solution { rates_bps, prices, unit_bps: self.unit_bps }
    }
}

/// The part of a step that concerns one flow.
#[derive(Clone, Copy, Debug, Default)]
struct Change {
    rate: f64,
    demand_price: f64,
}

/// A Newton step.
#[derive(Clone, Debug)]
struct Step {
    /// The relaxation that the step aims at.
    aim: f64,
    flows: Vec<Change>,
    /// Changes of room and price.
    links: Vec<(f64, f64)>,
    /// The system's matrix: its lower triangle, row by row.
    matrix: Vec<f64>,
    right: Vec<f64>,
}

/// A flow's row of the system, after its demand's price is eliminated: `dx = give (pull - A' dp)`.
#[derive(Clone, Copy, Debug)]
struct Row {
    give: f64,
    pull: f64,
}

impl Row {
    /// Computes the row from `(e q / x + m / v) dx = q (log U' - log q) - A'dp - (t x q - m v) / v`.
    fn new(flow: &Party<'_>, aim: f64) -> Self {
        let (mut stiffness, mut pull) = (flow.stiffness(), flow.price * flow.mismatch());
        if let Some(Limit { room, price }) = flow.demand {
            stiffness += price / room;
            pull -= aim * flow.worth() / room - price;
        }
        Self { give: 1.0 / stiffness, pull }
    }
}

impl Step {
    const fn new() -> Self {
        Self { aim: f64::INFINITY, flows: Vec::new(), links: Vec::new(), matrix: Vec::new(), right: Vec::new() }
    }

    /// Computes the next step. The less flows agree with their prices, the less of the relaxation is removed; it never
    /// rises again.
    fn compute(&mut self, point: &Point<'_>) {
        let (n, sum) = point.relaxations().fold((0.0, 0.0), |(n, sum), t| (n + 1.0, sum + t));
        self.aim = self.aim.min(sum / n) * point.mismatch().clamp(AIM, CAUTION);
        let aim = self.aim;
        let stakes = point.stakes();
        let rows: Vec<Row> = point.flows.iter().map(|flow| Row::new(flow, aim)).collect();
        self.fill_system(point, &rows, &stakes, aim);
        cholesky(&mut self.matrix, point.links.len());
        substitute(&self.matrix, &mut self.right);
        self.links.clear();
        self.links.extend(self.right.iter().map(|&price| (0.0, price)));
        self.flows.clear();
        for (flow, row) in point.flows.iter().zip(&rows) {
            let prices: f64 = flow.links.iter().map(|&link| self.right[link]).sum();
            let rate = row.give * (row.pull - prices);
            // `v dm - m dx = t x q - m v`
            let demand_price = flow
                .demand
                .map_or(0.0, |demand| (aim * flow.worth() + demand.price * rate) / demand.room - demand.price);
            flow.links.iter().for_each(|&link| self.links[link].0 -= rate);
            self.flows.push(Change { rate, demand_price });
        }
    }

    /// Fills in the system `(A give A' + z / p) dp = A give pull + (t stake - p z) / p`.
    fn fill_system(&mut self, point: &Point<'_>, rows: &[Row], stakes: &[f64], aim: f64) {
        let n = point.links.len();
        self.matrix.clear();
        self.matrix.resize(n * n, 0.0);
        self.right.clear();
        for (i, (link, worth)) in point.links.iter().zip(stakes).enumerate() {
            self.matrix[i * n + i] = link.room / link.price;
            self.right.push(aim * worth / link.price - link.room);
        }
        for (flow, row) in point.flows.iter().zip(rows) {
            for &i in &flow.links {
                self.right[i] += row.give * row.pull;
                for &j in flow.links.iter().filter(|&&j| j <= i) {
                    self.matrix[i * n + j] += row.give;
                }
            }
        }
    }

    /// Returns the part of the step that keeps rates, rooms and prices above 0.
    fn part(&self, point: &Point<'_>) -> f64 {
        let mut part: f64 = 1.0;
        let mut keep = |value: f64, change: f64| {
            if change < 0.0 {
                part = part.min(-STEP * value / change);
            }
        };
        for (link, (room, price)) in point.links.iter().zip(&self.links) {
            keep(link.room, *room);
            keep(link.price, *price);
        }
        for (flow, change) in point.flows.iter().zip(&self.flows) {
            keep(flow.rate, change.rate);
            if let Some(demand) = flow.demand {
                keep(demand.room, -change.rate);
                keep(demand.price, change.demand_price);
            }
        }
        part
    }
}

/// Computes the Cholesky decomposition of the lower triangle of an `n` by `n` matrix, in place. Rows that depend on
/// earlier ones except for rounding, as of two links with the same flows, are left out: their unknown is 0.
fn cholesky(matrix: &mut [f64], n: usize) {
    for i in 0..n {
        let (above, below) = matrix.split_at_mut(i * n);
        let row = &mut below[..=i];
        let diagonal = row[i];
        for j in 0..i {
            let other = &above[j * n..=j * n + j];
            row[j] = (row[j] - dot(&row[..j], &other[..j])) / other[j];
        }
        let left = diagonal - dot(&row[..i], &row[..i]);
        row[i] = if diagonal * f64::EPSILON < left { left.sqrt() } else { f64::INFINITY };
    }
}

/// Solves the decomposed system in place: `right` becomes the solution.
fn substitute(matrix: &[f64], right: &mut [f64]) {
    let n = right.len();
    for i in 0..n {
        let row = &matrix[i * n..=i * n + i];
        right[i] = (right[i] - dot(&row[..i], &right[..i])) / row[i];
    }
    for i in (0..n).rev() {
        let row = &matrix[i * n..=i * n + i];
        right[i] /= row[i];
        let solved = right[i];
        for (r, a) in right[..i].iter_mut().zip(row) {
            *r -= a * solved;
        }
    }
}

/// Returns the scalar product, computed in four sums, so that they need not wait for each other.
fn dot(a: &[f64], b: &[f64]) -> f64 {
    let mut sums = [0.0; 4];
    let (mut a4, mut b4) = (a.chunks_exact(4), b.chunks_exact(4));
    for (a, b) in (&mut a4).zip(&mut b4) {
        for i in 0..4 {
            sums[i] += a[i] * b[i];
        }
    }
    let rest: f64 = a4.remainder().iter().zip(b4.remainder()).map(|(a, b)| a * b).sum();
    sums[0] + sums[1] + (sums[2] + sums[3]) + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `[[4, 2], [2, 5]]` is `[[2, 0], [1, 2]]` times its transpose; with `(10, 13)` on the right the solution is
    /// `(1.5, 2)`.
    #[test]
    fn a_system_by_hand() {
        let (mut matrix, mut right) = ([4.0, 0.0, 2.0, 5.0], [10.0, 13.0]);
        cholesky(&mut matrix, 2);
        assert_eq!(matrix, [2.0, 0.0, 1.0, 2.0]);
        substitute(&matrix, &mut right);
        assert_eq!(right, [1.5, 2.0]);
    }

    #[test]
    fn a_row_that_depends_on_another_is_left_out() {
        let (mut matrix, mut right) = ([4.0, 0.0, 4.0, 4.0], [8.0, 8.0]);
        cholesky(&mut matrix, 2);
        substitute(&matrix, &mut right);
        assert_eq!(right, [2.0, 0.0]);
    }
}
