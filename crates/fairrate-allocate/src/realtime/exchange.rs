//! The exchange in which FlowBlocks add up their loads on the same links, and get the same prices.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use super::barrier::{Barrier, Broken};
use super::block::FlowBlock;
use super::kernel::Kernel;
use super::links::Rule;
use super::partition::{Layout, Side};

/// Largest number of blocks; more make no sense: 64 blocks are 4,096 FlowBlocks.
pub(super) const MAX_BLOCKS: usize = 64;

/// Number of links whose sums are computed together.
const STRETCH: usize = 64;

const SIDES: [Side; 2] = [Side::Up, Side::Down];

/// The steps in which LinkBlocks are added up. Both kinds add in the same order, so that rates are the same to the last
/// bit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aggregation {
    /// As in the paper's figure 3: in log2(n) steps, after which the FlowBlocks of the main diagonal have all upward
    /// links and those of the secondary diagonal all downward links; and back again. Data only moves between two
    /// FlowBlocks at a time, which need no common memory.
    Diagonals,
    /// In one step: FlowBlock (i, j) adds up the j-th part of the i-th LinkBlock upward and the i-th part of the j-th
    /// LinkBlock downward. For FlowBlocks that can read each other's memory.
    Slices,
}

/// The shared words of FlowBlocks: two numbers in each. One FlowBlock writes, and after a barrier others read.
#[derive(Debug)]
pub(super) struct Exchange {
    n_blocks: usize,
    aggregation: Aggregation,
    /// For each FlowBlock, row by row: sums of its links, and for [`Aggregation::Diagonals`] later their prices.
    blocks: Vec<Vec<AtomicU64>>,
    /// For each LinkBlock upward and downward: prices of its links, for [`Aggregation::Slices`].
    prices: [Vec<Vec<AtomicU64>>; 2],
    /// Number of upward links of each row.
    n_up: Vec<usize>,
}

/// A FlowBlock with its row and column.
#[derive(Debug)]
pub(super) struct Placed {
    pub row: usize,
    pub column: usize,
    pub block: FlowBlock,
}

impl Placed {
    fn links(&self, side: Side) -> Range<usize> {
        match side {
            Side::Up => self.block.up(),
            Side::Down => self.block.down(),
        }
    }
}

/// The role of a FlowBlock, for its copy of a LinkBlock, in a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    /// Its copy is added to that of FlowBlock `to`, from which it gets prices later.
    Gives { to: usize },
    /// It adds the copy of FlowBlock `from` to its own.
    Takes { from: usize },
    /// It has given its copy in an earlier step.
    None,
}

/// Returns the role of FlowBlock (row, column) when groups of half × half FlowBlocks are merged into groups of 2·half ×
/// 2·half.
fn role(side: Side, [row, column]: [usize; 2], half: usize, n_blocks: usize) -> Role {
    // The main diagonal of a group has its upward LinkBlocks, the secondary diagonal the downward ones.
    let is_on_diagonal = |size: usize| match side {
        Side::Up => row % size == column % size,
        Side::Down => row % size == size - 1 - column % size,
    };
    let other = match side {
        Side::Up => row * n_blocks + (column ^ half),
        Side::Down => (row ^ half) * n_blocks + column,
    };
    match (is_on_diagonal(half), is_on_diagonal(2 * half)) {
        (false, _) => Role::None,
        (true, true) => Role::Takes { from: other },
        (true, false) => Role::Gives { to: other },
    }
}

impl Exchange {
    pub fn new(layout: &Layout, aggregation: Aggregation) -> Self {
        let n = layout.n_blocks;
        assert!(n <= MAX_BLOCKS, "{n} blocks; there may be {MAX_BLOCKS}");
        let words = |n_links: usize| (0..n_links).map(|_| AtomicU64::new(0)).collect();
        let block = |at: usize| words(layout.size(Side::Up, at / n) + layout.size(Side::Down, at % n));
        let prices = SIDES.map(|side| (0..n).map(|block| words(layout.size(side, block))).collect());
        let n_up = (0..n).map(|row| layout.size(Side::Up, row)).collect();
        // With one block there is nothing to exchange.
        let blocks = if n == 1 { Vec::new() } else { (0..n * n).map(block).collect() };
        Self { n_blocks: n, aggregation, blocks, prices, n_up }
    }

    /// Updates the prices of all links, with the sums of all FlowBlocks. Every thread calls it with its own FlowBlocks.
    pub fn update(&self, own: &mut [Placed], barrier: &Barrier, rule: Rule, with: Kernel) -> Result<(), Broken> {
        match self.aggregation {
            // There is nothing to add up, so only links with flows are updated.
            _ if self.n_blocks == 1 => own.iter_mut().for_each(|placed| placed.block.links.update_used(rule, with)),
            Aggregation::Diagonals => self.update_on_diagonals(own, barrier, rule, with)?,
            Aggregation::Slices => self.update_in_slices(own, barrier, rule, with)?,
        }
        Ok(())
    }

    fn update_on_diagonals(
        &self,
        own: &mut [Placed],
        barrier: &Barrier,
        rule: Rule,
        with: Kernel,
    ) -> Result<(), Broken> {
        let n = self.n_blocks;
        let role_of = |side, placed: &Placed, half| role(side, [placed.row, placed.column], half, n);
        for half in (0..n.trailing_zeros()).map(|step| 1 << step) {
            for_each(own, |placed, side| {
                if let Role::Gives { .. } = role_of(side, placed, half) {
                    self.publish_sums(placed, placed.links(side));
                }
            });
            barrier.wait()?;
            for_each(own, |placed, side| {
                if let Role::Takes { from } = role_of(side, placed, half) {
                    self.add_sums(placed, side, from);
                }
            });
        }
        for_each(own, |placed, side| {
            // A FlowBlock that never gave its copy has the complete sums.
            if role_of(side, placed, n) != Role::None {
                let links = placed.links(side);
                placed.block.links.update(links.clone(), rule, with);
                write(&self.blocks[self.number(placed)][links.clone()], &placed.block.links.seen[links]);
            }
        });
        for half in (0..n.trailing_zeros()).rev().map(|step| 1 << step) {
            barrier.wait()?;
            for_each(own, |placed, side| {
                if let Role::Gives { to } = role_of(side, placed, half) {
                    let (links, other) = (placed.links(side), self.links_in(to, side));
                    read(&self.blocks[to][other], &mut placed.block.links.seen[links.clone()]);
                    // After the last step no FlowBlock needs the prices any more.
                    if 1 < half {
                        write(&self.blocks[self.number(placed)][links.clone()], &placed.block.links.seen[links]);
                    }
                }
            });
        }
        Ok(())
    }

    fn update_in_slices(&self, own: &mut [Placed], barrier: &Barrier, rule: Rule, with: Kernel) -> Result<(), Broken> {
        for placed in own.iter_mut() {
            self.publish_sums(placed, 0..placed.block.links.len());
        }
        barrier.wait()?;
        for_each(own, |placed, side| {
            let (block, part) = match side {
                Side::Up => (placed.row, placed.column),
                Side::Down => (placed.column, placed.row),
            };
            let links = placed.links(side);
            let slice = part * links.len() / self.n_blocks..(part + 1) * links.len() / self.n_blocks;
            let in_block = links.start + slice.start..links.start + slice.end;
            self.sum_slice(block, side, slice.clone(), &mut placed.block.links.sums[in_block.clone()]);
            placed.block.links.update(in_block.clone(), rule, with);
            write(&self.prices[side as usize][block][slice], &placed.block.links.seen[in_block]);
        });
        barrier.wait()?;
        for_each(own, |placed, side| {
            let block = if side == Side::Up { placed.row } else { placed.column };
            let links = placed.links(side);
            read(&self.prices[side as usize][block], &mut placed.block.links.seen[links]);
        });
        Ok(())
    }

    /// Returns a FlowBlock's index in the tables.
    fn number(&self, placed: &Placed) -> usize {
        placed.row * self.n_blocks + placed.column
    }

    /// Returns the range of a direction's words among those of FlowBlock `block`.
    fn links_in(&self, block: usize, side: Side) -> Range<usize> {
        let n_up = self.n_up[block / self.n_blocks];
        match side {
            Side::Up => 0..n_up,
            Side::Down => n_up..self.blocks[block].len(),
        }
    }

    /// Publishes the sums of some links, and resets them to 0.
    fn publish_sums(&self, placed: &mut Placed, links: Range<usize>) {
        let number = self.number(placed);
        let sums = &mut placed.block.links.sums[links.clone()];
        write(&self.blocks[number][links], sums);
        sums.fill([0.0; 2]);
    }

    /// Adds the sums of FlowBlock `other` to those of `placed`.
    fn add_sums(&self, placed: &mut Placed, side: Side, other: usize) {
        let (links, words) = (placed.links(side), self.links_in(other, side));
        for (sum, word) in placed.block.links.sums[links].iter_mut().zip(&self.blocks[other][words]) {
            *sum = plus(*sum, unpack(word));
        }
    }

    /// Computes the sums of a part of a LinkBlock over all FlowBlocks, in the order of [`Aggregation::Diagonals`].
    fn sum_slice(&self, block: usize, side: Side, slice: Range<usize>, sums: &mut [[f32; 2]]) {
        let n = self.n_blocks;
        // Sums of 1, 2, 4 and so on FlowBlocks.
        let mut levels = [[[0.0; 2]; STRETCH]; MAX_BLOCKS.ilog2() as usize];
        for (at, total) in sums.chunks_mut(STRETCH).enumerate() {
            for i in 0..n {
                let from = if side == Side::Up { block * n + i } else { i * n + block };
                let first = self.links_in(from, side).start + slice.start + at * STRETCH;
                read(&self.blocks[from][first..first + total.len()], total);
                // As a binary counter carries: sums of two equal numbers of FlowBlocks are merged into one sum.
                let carries = i.trailing_ones() as usize;
                for level in &levels[..carries] {
                    total.iter_mut().zip(level).for_each(|(sum, other)| *sum = plus(*other, *sum));
                }
                if let Some(level) = levels.get_mut(carries) {
                    level[..total.len()].copy_from_slice(total);
                }
            }
        }
    }
}

/// Calls `act` for all FlowBlocks in both directions.
fn for_each(own: &mut [Placed], mut act: impl FnMut(&mut Placed, Side)) {
    for placed in own {
        for side in SIDES {
            act(placed, side);
        }
    }
}

fn plus(a: [f32; 2], b: [f32; 2]) -> [f32; 2] {
    [a[0] + b[0], a[1] + b[1]]
}

fn write(words: &[AtomicU64], pairs: &[[f32; 2]]) {
    for (word, [first, second]) in words.iter().zip(pairs) {
        word.store(u64::from(first.to_bits()) | u64::from(second.to_bits()) << 32, Ordering::Relaxed);
    }
}

fn read(words: &[AtomicU64], pairs: &mut [[f32; 2]]) {
    for (word, pair) in words.iter().zip(pairs) {
        *pair = unpack(word);
    }
}

fn unpack(word: &AtomicU64) -> [f32; 2] {
    let bits = word.load(Ordering::Relaxed);
    [f32::from_bits(bits as u32), f32::from_bits((bits >> 32) as u32)]
}
