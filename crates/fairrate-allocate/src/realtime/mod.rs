//! Flowtune's allocator as an engine for real time: NED and F-NORM in single precision. J. Perry, H. Balakrishnan, D.
//! Shah, "Flowtune: Flowlet Control for Datacenter Networks", NSDI 2017, sections 3 to 5.
//!
//! | paper    | here                      | unit                    |
//! |----------|---------------------------|-------------------------|
//! | x_s      | `rates`                   | unit of rates           |
//! | x̄_s      | `normalised`              | unit of rates           |
//! | p_l      | `seen[0]`                 | 1 / unit of rates       |
//! | c_l      | `capacities`              | unit of rates           |
//! | Σ x_s    | `sums[0]` = G_l + c_l     | unit of rates           |
//! | H_ll     | -`sums[1]`                | square of unit of rates |
//! | 1 / r_l  | `seen[1]`                 | 1                       |
//! | γ        | `gamma`                   | 1                       |
//!
//! # Readings
//!
//! - Utility is w·log x. A flow's path price is at least w / x_max, where x_max is the smaller of its demand and twice
//!   its path's capacity, as in [`Num`](crate::Num): rates are finite also at a price of 0. The contribution of such a
//!   flow to H is x²/w, as for any other flow.
//! - Links without flows keep their prices. Prices start at 1, once; the unit of rates should be the capacity of a
//!   server's link, so that 1 is the final price of a flow alone on such a link.
//! - F-NORM is equation 9 as it is written: divided by the largest r of the path, also where that is below 1. Links
//!   without load are skipped. A flow limited by its demand does not rise above it.
//!
//! # How an iteration goes
//!
//! The sums Σ x and Σ x²/w at the present prices exist before an iteration begins. The new prices and, for each link, c
//! / Σ x are computed from them. Then one pass over the flows gathers, for each link of a path, price and c / Σ x
//! together: it normalises the rate that the sums were made from, computes the rate at the new prices, and adds that to
//! the sums of the next iteration. So each iteration gives the results of equations 3, 4 and 9, in this order, with one
//! pass over flows for all. A flow that is added or removed in between changes the sums of its path; where a difference
//! would be mostly rounding, sums are recomputed.
//!
//! # Blocks
//!
//! Racks are in B blocks. The links upward from a block are its upward LinkBlock, the links toward it its downward
//! LinkBlock, and flows are in B² FlowBlocks by the blocks of their source and destination. A FlowBlock has its own
//! copies of the two LinkBlocks its flows use, and threads own FlowBlocks. [`Aggregation`] is the method that merges
//! the copies.
//!
//! **Three tiers.** With whole pods in a block nothing changes: the links between a pod and the cores are links of its
//! two LinkBlocks, paths of six links have three in each, and B can be as large as the number of pods. A LinkBlock has
//! then a third kind of links, as many as the pod has to cores: in a network without oversubscription one more for each
//! server and direction, so half as much again to add up and hand around. Blocks smaller than a pod would share the
//! links to cores: these links would be LinkBlocks of the pod, added up over the rows of the pod's blocks in
//! log2(blocks of a pod) more steps.
//!
//! # Independence of threads and instructions
//!
//! The bits of all rates are the same for any number of threads, any instructions ([`Instructions`]) and both kinds of
//! aggregation. Every operation is defined by IEEE 754 to the last bit, sums have one order: flows of a FlowBlock in
//! the order of its tables, and FlowBlocks as in a tournament. Another number of blocks is another order.

mod barrier;
mod block;
mod clos;
mod crew;
mod exchange;
mod flows;
mod kernel;
mod links;
mod partition;
#[cfg(target_arch = "x86_64")]
mod simd;

pub use self::clos::Clos;
pub use self::exchange::Aggregation;
pub use self::kernel::Instructions;
pub use self::partition::{Partition, Place, Side};

use self::block::{Arrangement, FlowBlock, Seat};
use self::crew::Crew;
use self::exchange::{Exchange, Placed};
use self::kernel::Kernel;
use self::links::Rule;
use self::partition::Layout;
use crate::engine::{FlowKey, RateEngine};
use crate::network::LinkId;

/// NED with logarithmic utility, and F-NORM, in single precision.
///
/// ```
/// use fairrate_allocate::{LinkId, RateEngine, RealTime};
///
/// let mut engine = RealTime::general(&[10e9, 10e9], 10e9, 0.4);
/// let long = engine.add(&[LinkId(0), LinkId(1)], 1.0, f64::INFINITY);
/// let short = engine.add(&[LinkId(0)], 1.0, f64::INFINITY);
/// for _ in 0..20 {
///     engine.iterate();
/// }
/// assert!((engine.rate_bps(long) / 5e9 - 1.0).abs() < 1e-3);
/// assert!((engine.rate_bps(short) / 5e9 - 1.0).abs() < 1e-3);
/// ```
#[derive(Debug)]
pub struct RealTime {
    crew: Crew,
    layout: Layout,
    /// For each FlowBlock, row by row: its thread, and its position in the thread's share.
    owners: Vec<(usize, usize)>,
    keys: Vec<Key>,
    free: Vec<u32>,
    /// The path of the flow that is being added, in link numbers of its FlowBlock.
    path: Vec<u32>,
    kernel: Kernel,
    rule: Rule,
    unit_bps: f64,
}

/// The position of a flow, and its demand.
#[derive(Clone, Copy, Debug)]
struct Key {
    demand_bps: f64,
    block: u32,
    seat: Seat,
}

impl RealTime {
    /// Creates an engine for any links and paths, with one thread. The time of an iteration is proportional to the
    /// number of flows and of the links they use.
    ///
    /// Rates are counted in `unit_bps`, which should be the capacity of a server's link; `gamma` is the step of
    /// equation 4.
    ///
    /// # Panics
    /// If `unit_bps` is not a number above 0, or there are more than 2^31 - 1 links.
    pub fn general(capacities_bps: &[f64], unit_bps: f64, gamma: f64) -> Self {
        let partition = Partition::whole(capacities_bps.len());
        Self::build(capacities_bps, unit_bps, gamma, &partition, 1, Aggregation::Slices, Arrangement::Whole)
    }

    /// Creates an engine for links in blocks. It uses at most as many threads as FlowBlocks, including the caller's
    /// thread.
    ///
    /// # Panics
    /// If `unit_bps` is not a number above 0, if there are more than 2^31 - 1 links, if there are no threads, if the
    /// numbers of capacities and places differ, or if the number of blocks is not a power of 2 up to 64.
    pub fn partitioned(
        capacities_bps: &[f64],
        unit_bps: f64,
        gamma: f64,
        partition: &Partition,
        n_threads: usize,
        aggregation: Aggregation,
    ) -> Self {
        Self::build(capacities_bps, unit_bps, gamma, partition, n_threads, aggregation, Arrangement::Tiles)
    }

    fn build(
        capacities_bps: &[f64],
        unit_bps: f64,
        gamma: f64,
        partition: &Partition,
        n_threads: usize,
        aggregation: Aggregation,
        arrangement: Arrangement,
    ) -> Self {
        assert!(0.0 < unit_bps && unit_bps.is_finite(), "the unit of rates is a number above 0");
        assert!(0 < n_threads, "an engine needs a thread");
        // Gathers take signed 32-bit indices.
        assert!(i32::try_from(capacities_bps.len()).is_ok(), "there are at most 2^31 - 1 links");
        assert!(capacities_bps.len() == partition.places.len(), "a capacity for each place");
        let layout = Layout::new(partition);
        let n = layout.n_blocks;
        let n_threads = n_threads.min(n * n);
        let mut shares: Vec<Vec<Placed>> = (0..n_threads).map(|_| Vec::new()).collect();
        let mut owners = vec![(0, 0); n * n];
        for i in 0..n * n {
            let (row, column) = group_order(i);
            let links = layout.links_of(row, column);
            let capacities = links.map(|link| in_units(capacities_bps[link], unit_bps)).collect();
            let block = FlowBlock::new(capacities, layout.size(Side::Up, row), arrangement);
            let thread = i * n_threads / (n * n);
            owners[row * n + column] = (thread, shares[thread].len());
            shares[thread].push(Placed { row, column, block });
        }
        let crew = Crew::new(shares, Exchange::new(&layout, aggregation));
        Self {
            crew,
            layout,
            owners,
            keys: Vec::new(),
            free: Vec::new(),
            path: Vec::new(),
            kernel: Kernel::at_most(Instructions::Avx512),
            rule: Rule { gamma: gamma as f32, is_gradient: false, is_normalised: true },
            unit_bps,
        }
    }

    /// Uses no better instructions than `instructions`. Rates do not depend on them.
    #[must_use]
    pub fn at_most(mut self, instructions: Instructions) -> Self {
        self.kernel = Kernel::at_most(instructions);
        self
    }

    /// Updates prices by gradient projection in place of NED: p ← p + γ·G (the paper's Gradient-RT). A flow may want
    /// twice its path's capacity, as with NED.
    #[must_use]
    pub fn gradient(mut self) -> Self {
        self.rule.is_gradient = true;
        self
    }

    /// Turns F-NORM off: rates are those of equation 3, but at most the demand and the path's capacity.
    #[must_use]
    pub fn raw(mut self) -> Self {
        self.rule.is_normalised = false;
        self
    }

    /// Returns the instructions in use.
    pub fn instructions(&self) -> Instructions {
        self.kernel.instructions()
    }

    /// Returns a link's price, in 1 / unit of rates, for the rates of the next iteration.
    pub fn price(&self, link: LinkId) -> f64 {
        let Place { block, .. } = self.layout.place(link.index());
        // The FlowBlock on the diagonal has copies equal to all others.
        let (thread, at) = self.owners[block as usize * (self.layout.n_blocks + 1)];
        let number = self.layout.number_in(link.index(), block as usize) as usize;
        f64::from(self.crew.block(thread, at).block.links.seen[number][0])
    }

    fn block_mut(&mut self, block: u32) -> &mut FlowBlock {
        let (thread, at) = self.owners[block as usize];
        &mut self.crew.block_mut(thread, at).block
    }
}

impl RateEngine for RealTime {
    fn add(&mut self, path: &[LinkId], weight: f64, demand_bps: f64) -> FlowKey {
        assert!(!path.is_empty(), "a flow uses at least one link");
        let (row, column) = self.layout.flow_block(path.iter().map(|link| link.index()));
        let block = (row * self.layout.n_blocks + column) as u32;
        let key = self.free.pop().unwrap_or(self.keys.len() as u32);
        let demand = ((demand_bps / self.unit_bps) as f32).min(f32::MAX);
        let mut numbers = std::mem::take(&mut self.path);
        numbers.clear();
        numbers.extend(path.iter().map(|link| self.layout.number_in(link.index(), row)));
        let seat = self.block_mut(block).add(&numbers, weight as f32, demand, key);
        self.path = numbers;
        let entry = Key { demand_bps, block, seat };
        match self.keys.get_mut(key as usize) {
            Some(place) => *place = entry,
            None => self.keys.push(entry),
        }
        // Reserved here, so that removing a flow needs no memory.
        self.free.reserve(self.keys.len() - self.free.len());
        FlowKey(key)
    }

    fn remove(&mut self, flow: FlowKey) {
        let Key { block, seat, .. } = self.keys[flow.index()];
        if let Some(moved) = self.block_mut(block).remove(seat) {
            self.keys[moved as usize].seat = seat;
        }
        self.free.push(flow.0);
    }

    fn set_capacity(&mut self, link: LinkId, capacity_bps: f64) {
        let Place { side, block } = self.layout.place(link.index());
        let capacity = in_units(capacity_bps, self.unit_bps);
        let n = self.layout.n_blocks;
        for i in 0..n {
            let (row, column) = if side == Side::Up { (block as usize, i) } else { (i, block as usize) };
            let number = self.layout.number_in(link.index(), row);
            self.block_mut((row * n + column) as u32).set_capacity(number, capacity);
        }
    }

    fn iterate(&mut self) {
        self.crew.iterate(self.rule, self.kernel);
    }

    fn rate_bps(&self, flow: FlowKey) -> f64 {
        let Key { demand_bps, block, seat } = self.keys[flow.index()];
        let (thread, at) = self.owners[block as usize];
        let rate = self.crew.block(thread, at).block.rate(seat);
        (f64::from(rate) * self.unit_bps).min(demand_bps)
    }

    fn n_flows(&self) -> usize {
        self.keys.len() - self.free.len()
    }
}

/// Returns a capacity in units of the engine, smaller by 2^-21 of itself, so that rounding lifts no rate above it.
fn in_units(capacity_bps: f64, unit_bps: f64) -> f32 {
    const ROUNDING: f64 = 1.0 / (1 << 21) as f64;
    (capacity_bps / unit_bps * (1.0 - ROUNDING)) as f32
}

/// Returns row and column of the `i`-th FlowBlock in groups of 2 × 2, with the groups in groups of 2 × 2, and so on:
/// rows are the odd bits of `i`, columns the even ones. Threads take FlowBlocks in this order, so that the first steps
/// of aggregation stay within a thread.
fn group_order(i: usize) -> (usize, usize) {
    let bits = |from: u32| (0..16).map(|bit| (i >> (2 * bit + from) & 1) << bit).sum();
    (bits(1), bits(0))
}
