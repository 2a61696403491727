//! Network utility maximisation by prices: every link has a price, every flow takes the rate that its utility is worth
//! at the sum of its links' prices, and prices follow the loads. J. Perry, H. Balakrishnan, D. Shah, "Flowtune: Flowlet
//! Control for Datacenter Networks", NSDI 2017, sections 3 and 4.
//!
//! | paper       | here                       | unit                           |
//! |-------------|----------------------------|--------------------------------|
//! | `x_s`       | `FlowState::rate`          | [`NumConfig::unit_bps`]        |
//! | `p_l`, `c_l`| `LinkState::price`, `capacity` | utility a unit of rate, units of rate |
//! | `G_l`       | `LinkState::excess`        | units of rate                  |
//! | `H_ll`      | minus `LinkState::sensitivity` | units of rate a unit of price |
//! | `U_s`       | [`Utility`]                |                                |
//!
//! The [`Method`] defines how prices follow loads: one file each. The [`Normaliser`] defines how rates are made to fit.
//!
//! Readings. Prices start at 1, once, in units that the paper does not give: here, capacities are in units of a
//! server's link, or of the smallest link. In Gb/s, 1 is far above the prices of a fast link, and its first step leads
//! to 0. No flow takes more than its demand, or than [`REACH`] times the smallest capacity of its path, which is the
//! same as paying the price of that rate at least: rates are finite at prices of 0, and `H` is that of the price paid,
//! so it is not 0 where there are flows. Links without flows keep their prices. A granted rate is never above its
//! path's capacities.
//!
//! Nothing is carried over from earlier flows except prices (and the state of FGM and the Newton-like method): loads
//! are summed anew in each iteration, so nothing drifts.

mod fgm;
mod gradient;
mod ned;
mod newton_like;

use crate::engine::{FlowKey, RateEngine};
use crate::kkt::Solution;
use crate::network::{LinkId, Network, NetworkError};
use crate::normalize::{Normaliser, normalised};
use crate::utility::Utility;

use self::fgm::Fgm;
pub use self::gradient::Gradient;
pub use self::ned::Ned;
use self::newton_like::NewtonLike;

/// Multiple of the smallest capacity of its path that a flow may want, in methods that take Newton steps. With 1, a
/// flow that alone could fill its link wants no more at any lower price, and the price creeps up by the little that
/// other flows add: of 60 random networks a tenth needed more than 850 iterations until all rates were right within
/// 10^-3, in place of 50 with 2, and 100 gains nothing. Gradient methods take steps by how flat utilities become up to
/// there, so they use 1.
const REACH: f64 = 2.0;

/// The method by which prices follow loads.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Method {
    /// Newton-Exact-Diagonal.
    Ned(Ned),
    /// Gradient projection.
    Gradient(Gradient),
    /// The fast weighted gradient method.
    Fgm,
    /// Newton steps with an estimated diagonal.
    NewtonLike {
        /// The part of a Newton step that a price takes.
        gamma: f64,
        /// Iterations over which load and price are averaged.
        window: u32,
    },
}

/// The configuration of an allocator.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NumConfig {
    /// The method by which prices follow loads.
    pub method: Method,
    /// The normaliser that makes rates fit the capacities.
    pub normaliser: Normaliser,
    /// The unit of rates in utilities and prices, in bit/s: a server's link.
    pub unit_bps: f64,
}

impl NumConfig {
    /// Returns Flowtune's configuration: NED with F-NORM.
    pub fn flowtune(unit_bps: f64) -> Self {
        Self { method: Method::Ned(Ned::default()), normaliser: Normaliser::F_NORM, unit_bps }
    }
}

/// A method with its state.
#[derive(Clone, Debug)]
enum Rule {
    Ned(Ned),
    Gradient(Gradient),
    Fgm(Fgm),
    NewtonLike(NewtonLike),
}

/// A link: its capacity and price and, after the rate update, the sums over its flows.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct LinkState {
    capacity: f64,
    price: f64,
    /// Sum of the rates of its flows.
    load: f64,
    /// The same sum, where at most the rate that a flow can be granted counts.
    bounded_load: f64,
    /// Fall of the load for each unit that the price rises.
    sensitivity: f64,
    /// FGM's `L`.
    bend: f64,
    /// The smallest price a unit, over its whole path, that one of its flows pays.
    least_paid: f64,
    n_flows: u32,
}

impl LinkState {
    fn new(capacity: f64) -> Self {
        Self { capacity, price: 1.0, ..Self::default() }
    }

    fn is_used(&self) -> bool {
        0 < self.n_flows
    }

    /// Returns `G = sum(x) - c`.
    fn excess(&self) -> f64 {
        self.load - self.capacity
    }

    /// Returns the link's distance from the optimum. If the link is overloaded, this is its excess as a part of its
    /// capacity. Otherwise it is the smaller of its room as a part of its capacity and its price as a part of what a
    /// flow pays (the relative error of that flow's rate). It is 0 for all links in the optimum and nowhere else.
    fn residual(&self) -> f64 {
        let excess = self.excess() / self.capacity;
        if 0.0 <= excess { excess } else { (-excess).min(self.price.max(0.0) / self.least_paid) }
    }
}

/// A flow, or a free place for a flow.
#[derive(Clone, Debug)]
struct FlowState {
    utility: Utility,
    /// Its links: `paths[start..start + n_links]`. A place without a flow has none.
    start: u32,
    n_links: u32,
    demand: f64,
    /// The smallest of the demand and the path's capacities: the largest rate that is granted.
    most: f64,
    /// The largest rate the flow wants, and the price at which it wants it.
    ceiling: f64,
    least_price: f64,
    /// Links of the path divided by the least `|U''|` up to the ceiling.
    bend: f64,
    /// Rate the flow wants at the last prices.
    rate: f64,
    /// Rate granted to the flow.
    granted: f64,
}

impl FlowState {
    fn links(&self) -> std::ops::Range<usize> {
        self.start as usize..(self.start + self.n_links) as usize
    }
}

/// The outcome of [`Num::solve`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Convergence {
    /// Number of iterations done.
    pub iterations: u32,
    /// [`Num::residual`] after the last.
    pub residual: f64,
    /// `true` if the residual is within the tolerance.
    pub converged: bool,
}

/// An allocator that maximises the sum of its flows' utilities.
///
/// ```
/// use fairrate_allocate::{LinkId, Num, NumConfig, RateEngine};
///
/// let mut num = Num::new([10e9, 40e9], NumConfig::flowtune(10e9));
/// let short = num.add(&[LinkId(0)], 1.0, f64::INFINITY);
/// let long = num.add(&[LinkId(0), LinkId(1)], 3.0, f64::INFINITY);
/// assert!(num.solve(1_000, 1e-9).converged);
/// assert!((num.rate_bps(short) - 2.5e9).abs() < 10.0 && (num.rate_bps(long) - 7.5e9).abs() < 10.0);
/// ```
#[derive(Clone, Debug)]
pub struct Num {
    unit_bps: f64,
    normaliser: Normaliser,
    /// Multiple of the smallest capacity of its path that a flow may want.
    reach: f64,
    rule: Rule,
    links: Vec<LinkState>,
    flows: Vec<FlowState>,
    /// Links of all flows, in segments that keep their length.
    paths: Vec<u32>,
    /// By length, starts of free segments.
    free_segments: Vec<Vec<u32>>,
    /// Places in `flows` without a flow.
    free_flows: Vec<u32>,
    n_flows: usize,
    /// Set when a capacity has changed since the flows' ceilings were computed.
    is_stale: bool,
    residual: f64,
}

impl Num {
    /// Creates an allocator for links of the given capacities in bit/s, without flows.
    ///
    /// # Panics
    /// If the unit, or a capacity in it, is not above 0.
    pub fn new(capacities_bps: impl IntoIterator<Item = f64>, config: NumConfig) -> Self {
        let links: Vec<LinkState> =
            capacities_bps.into_iter().map(|capacity_bps| LinkState::new(capacity_bps / config.unit_bps)).collect();
        assert!(links.iter().all(|link| 0.0 < link.capacity), "capacities and their unit are above 0");
        let rule = match config.method {
            Method::Ned(ned) => Rule::Ned(ned),
            Method::Gradient(gradient) => Rule::Gradient(gradient),
            Method::Fgm => Rule::Fgm(Fgm::new(&links)),
            Method::NewtonLike { gamma, window } => Rule::NewtonLike(NewtonLike::new(gamma, window, links.len())),
        };
        Self {
            unit_bps: config.unit_bps,
            normaliser: config.normaliser,
            reach: if matches!(rule, Rule::Ned(_) | Rule::NewtonLike(_)) { REACH } else { 1.0 },
            rule,
            links,
            flows: Vec::new(),
            paths: Vec::new(),
            free_segments: Vec::new(),
            free_flows: Vec::new(),
            n_flows: 0,
            is_stale: false,
            residual: 0.0,
        }
    }

    /// Returns the allocator with flows that may want up to `reach` times the smallest capacity of their paths. Only
    /// flows that are added later have it.
    #[must_use]
    pub fn reaching(self, reach: f64) -> Self {
        Self { reach, ..self }
    }

    /// Creates an allocator for a network's links with its flows, whose keys are their positions. Their weights are
    /// those of `utilities`, not of the network.
    ///
    /// # Errors
    /// The errors of [`Network::check`].
    ///
    /// # Panics
    /// If the number of utilities is not the number of flows.
    pub fn of_network(network: &Network, utilities: &[Utility], config: NumConfig) -> Result<Self, NetworkError> {
        network.check()?;
        assert_eq!(network.flows.len(), utilities.len(), "a utility for each flow");
        let mut num = Self::new(network.links.iter().map(|link| link.capacity_bps), config);
        for (flow, utility) in network.flows.iter().zip(utilities) {
            num.add_with_utility(&flow.links, utility.clone(), flow.demand_bps);
        }
        Ok(num)
    }

    /// Adds a flow as [`RateEngine::add`] does, with its own utility.
    ///
    /// # Panics
    /// If the utility is not [usable](Utility::is_usable), the demand is not above 0, or the path has no link.
    pub fn add_with_utility(&mut self, path: &[LinkId], utility: Utility, demand_bps: f64) -> FlowKey {
        assert!(utility.is_usable(), "weights are above 0: {utility:?}");
        assert!(0.0 < demand_bps, "demands are above 0");
        assert!(!path.is_empty(), "a flow uses a link");
        let start = self.place_path(path);
        for link in path {
            self.links[link.index()].n_flows += 1;
        }
        let mut flow = FlowState {
            utility,
            start,
            n_links: path.len() as u32,
            demand: demand_bps / self.unit_bps,
            most: 0.0,
            ceiling: 0.0,
            least_price: 0.0,
            bend: 0.0,
            rate: 0.0,
            granted: 0.0,
        };
        limit(&mut flow, self.reach, &self.links, &self.paths);
        self.n_flows += 1;
        if let Some(place) = self.free_flows.pop() {
            self.flows[place as usize] = flow;
            return FlowKey(place);
        }
        self.flows.push(flow);
        FlowKey(self.flows.len() as u32 - 1)
    }

    /// Returns the distance of the last iteration's rates, before normalisation, from the optimum: the largest over all
    /// links of a link's relative excess or, with room, of the smaller of that room and its price's part in what a flow
    /// pays. It is 0 without flows.
    pub const fn residual(&self) -> f64 {
        self.residual
    }

    /// Iterates until the residual is within `tolerance`, at most `limit` times.
    pub fn solve(&mut self, limit: u32, tolerance: f64) -> Convergence {
        let mut iterations = 0;
        let mut converged = false;
        while iterations < limit && !converged {
            self.iterate();
            iterations += 1;
            converged = self.residual <= tolerance;
        }
        Convergence { iterations, residual: self.residual, converged }
    }

    /// Returns half of the largest step for [`Gradient`] that is known to converge with the present flows: 1 / the
    /// largest sum over a link's flows of (links of the path / least `|U''|`). It is 1 without flows.
    pub fn safe_step(&self) -> f64 {
        let mut bends = vec![0.0; self.links.len()];
        for flow in &self.flows {
            for &link in &self.paths[flow.links()] {
                bends[link as usize] += flow.bend;
            }
        }
        let most = bends.iter().copied().fold(0.0, f64::max);
        if 0.0 < most { 1.0 / most } else { 1.0 }
    }

    /// Returns the normalised rates of all flows by key (0 for a free key) and the prices of all links.
    pub fn solution(&self) -> Solution {
        Solution {
            rates_bps: (0..self.flows.len() as u32).map(|key| self.rate_bps(FlowKey(key))).collect(),
            // FGM's prices may be below 0; flows then pay nothing.
            prices: self.links.iter().map(|link| link.price.max(0.0)).collect(),
            unit_bps: self.unit_bps,
        }
    }

    /// Sets the prices, for instance to those of another allocator, in utility a unit of rate.
    ///
    /// # Panics
    /// If the number of prices is not the number of links.
    pub fn set_prices(&mut self, prices: &[f64]) {
        assert_eq!(prices.len(), self.links.len(), "a price for each link");
        for (link, &price) in self.links.iter_mut().zip(prices) {
            link.price = price;
        }
    }

    /// Stores a path in a segment of its length; returns the segment's start.
    fn place_path(&mut self, path: &[LinkId]) -> u32 {
        if self.free_segments.len() <= path.len() {
            self.free_segments.resize(path.len() + 1, Vec::new());
        }
        let start = self.free_segments[path.len()].pop().unwrap_or_else(|| {
            let end = self.paths.len();
            self.paths.resize(end + path.len(), 0);
            end as u32
        });
        for (to, link) in self.paths[start as usize..].iter_mut().zip(path) {
            *to = link.0;
        }
        start
    }

    /// Applies equation 3 to every flow, and sums the results of every link.
    fn update_rates(&mut self) {
        for link in &mut self.links {
            (link.load, link.bounded_load) = (0.0, 0.0);
            (link.sensitivity, link.bend, link.least_paid) = (0.0, 0.0, f64::INFINITY);
        }
        for flow in &mut self.flows {
            let path = &self.paths[flow.links()];
            let price = path.iter().map(|&link| self.links[link as usize].price).sum::<f64>().max(flow.least_price);
            let response = flow.utility.response(price);
            // In this order, NaN becomes 0.
            flow.rate = response.rate.max(0.0).min(flow.ceiling);
            let bounded = flow.rate.min(flow.most);
            for &link in path {
                let link = &mut self.links[link as usize];
                link.load += flow.rate;
                link.bounded_load += bounded;
                link.sensitivity += response.sensitivity;
                link.bend += flow.bend;
                link.least_paid = link.least_paid.min(price);
            }
        }
    }

    /// Normalises the rates (section 4). Demands are respected with every normaliser.
    fn normalise(&mut self) {
        let ratio = |link: &LinkState| link.load / link.capacity;
        match self.normaliser {
            Normaliser::None => self.flows.iter_mut().for_each(|flow| flow.granted = flow.rate.min(flow.most)),
            Normaliser::Uniform { scales_up } => {
                let fullest = self.links.iter().map(ratio).fold(0.0, f64::max);
                for flow in &mut self.flows {
                    flow.granted = normalised(flow.rate, fullest, scales_up).min(flow.most);
                }
            }
            Normaliser::Flow { scales_up, bounded } => {
                let ratio = |link: &LinkState| if bounded { link.bounded_load / link.capacity } else { ratio(link) };
                for flow in &mut self.flows {
                    let links = self.paths[flow.links()].iter().map(|&link| &self.links[link as usize]);
                    let fullest = links.map(ratio).fold(0.0, f64::max);
                    let rate = if bounded { flow.rate.min(flow.most) } else { flow.rate };
                    flow.granted = normalised(rate, fullest, scales_up).min(flow.most);
                }
            }
        }
    }
}

impl RateEngine for Num {
    fn add(&mut self, path: &[LinkId], weight: f64, demand_bps: f64) -> FlowKey {
        self.add_with_utility(path, Utility::log(weight), demand_bps)
    }

    fn remove(&mut self, key: FlowKey) {
        let flow = &mut self.flows[key.index()];
        assert!(0 < flow.n_links, "flow {key:?} is not there");
        for &link in &self.paths[flow.links()] {
            self.links[link as usize].n_flows -= 1;
        }
        self.free_segments[flow.n_links as usize].push(flow.start);
        // A place without a flow takes no rate at any price.
        (flow.n_links, flow.ceiling, flow.least_price, flow.rate, flow.granted) = (0, 0.0, 1.0, 0.0, 0.0);
        flow.utility = Utility::log(1.0);
        self.free_flows.push(key.0);
        self.n_flows -= 1;
    }

    fn set_capacity(&mut self, link: LinkId, capacity_bps: f64) {
        assert!(0.0 < capacity_bps, "capacities are above 0");
        self.links[link.index()].capacity = capacity_bps / self.unit_bps;
        self.is_stale = true;
    }

    fn iterate(&mut self) {
        if std::mem::take(&mut self.is_stale) {
            for flow in self.flows.iter_mut().filter(|flow| 0 < flow.n_links) {
                limit(flow, self.reach, &self.links, &self.paths);
            }
        }
        self.update_rates();
        self.normalise();
        let used = self.links.iter().filter(|link| link.is_used());
        self.residual = used.map(LinkState::residual).fold(0.0, f64::max);
        match &mut self.rule {
            Rule::Ned(ned) => ned.update(&mut self.links),
            Rule::Gradient(gradient) => gradient.update(&mut self.links),
            Rule::Fgm(fgm) => fgm.update(&mut self.links),
            Rule::NewtonLike(newton_like) => newton_like.update(&mut self.links),
        }
    }

    fn rate_bps(&self, flow: FlowKey) -> f64 {
        self.flows[flow.index()].granted * self.unit_bps
    }

    fn n_flows(&self) -> usize {
        self.n_flows
    }
}

/// Computes the fields of `flow` that depend on the capacities of its path.
fn limit(flow: &mut FlowState, reach: f64, links: &[LinkState], paths: &[u32]) {
    let narrowest = paths[flow.links()].iter().map(|&link| links[link as usize].capacity).fold(f64::INFINITY, f64::min);
    flow.most = narrowest.min(flow.demand);
    flow.ceiling = (reach * narrowest).min(flow.demand);
    flow.least_price = flow.utility.derivative(flow.ceiling);
    // The curvature of a utility is smallest at the largest rate.
    flow.bend = f64::from(flow.n_links) * flow.utility.response(flow.least_price).sensitivity;
}
