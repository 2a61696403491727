//! A FlowBlock: the flows from one block of the network to one block, with copies of the links they use.

use std::ops::Range;

use super::flows::FlowTable;
use super::kernel::Kernel;
use super::links::LinkTable;

/// Number of links in a direction that neighbouring flows use. Flows are kept in tiles of this many links up and down,
/// so that the data of a tile (32 KiB) stays in the first-level cache.
const TILE: usize = 1024;

/// Flows, and their own copies of links.
#[derive(Clone, Debug)]
pub(super) struct FlowBlock {
    pub links: LinkTable,
    /// Number of upward links, which are first in `links`.
    pub n_up: usize,
    /// Flows by path length, from 1, and then by tile.
    tables: Vec<FlowTable>,
    n_tiles: usize,
    n_down_tiles: usize,
    /// Set when limits or sums must be recomputed.
    is_stale: bool,
}

/// The arrangement of a block's flows in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arrangement {
    /// All flows together.
    Whole,
    /// In tiles, for blocks in which the numbers of a flow's upward links are near each other, and those of its
    /// downward links too.
    Tiles,
}

/// The position of a flow in its block.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seat {
    pub table: u32,
    pub at: u32,
}

impl FlowBlock {
    /// Creates a block without flows.
    pub fn new(capacities: Vec<f32>, n_up: usize, arrangement: Arrangement) -> Self {
        let n_down = capacities.len() - n_up;
        let (n_up_tiles, n_down_tiles) = match arrangement {
            Arrangement::Whole => (1, 1),
            Arrangement::Tiles => (n_up.div_ceil(TILE).max(1), n_down.div_ceil(TILE).max(1)),
        };
        let n_tiles = n_up_tiles * n_down_tiles;
        Self { links: LinkTable::new(capacities), n_up, tables: Vec::new(), n_tiles, n_down_tiles, is_stale: false }
    }

    pub fn up(&self) -> Range<usize> {
        0..self.n_up
    }

    pub fn down(&self) -> Range<usize> {
        self.n_up..self.links.len()
    }

    /// Adds a flow at the present prices.
    pub fn add(&mut self, path: &[u32], weight: f32, demand: f32, owner: u32) -> Seat {
        let first_of_length = (path.len() - 1) * self.n_tiles;
        while self.tables.len() < first_of_length + self.n_tiles {
            self.tables.push(FlowTable::new(self.tables.len() / self.n_tiles + 1, self.links.len()));
        }
        let number = first_of_length + if self.n_tiles == 1 { 0 } else { self.tile(path) };
        let table = &mut self.tables[number];
        let at = table.len() as u32;
        table.add(&mut self.links, path.iter().copied(), weight, demand, owner);
        Seat { table: number as u32, at }
    }

    /// Removes a flow. Returns the owner of the flow that is now in its seat, if one moved.
    pub fn remove(&mut self, seat: Seat) -> Option<u32> {
        let (moved, good) = self.tables[seat.table as usize].remove(&mut self.links, seat.at as usize);
        self.is_stale |= !good;
        moved
    }

    /// Returns a flow's normalised rate.
    pub fn rate(&self, seat: Seat) -> f32 {
        self.tables[seat.table as usize].normalised(seat.at as usize)
    }

    pub fn set_capacity(&mut self, link: u32, capacity: f32) {
        self.links.capacities[link as usize] = capacity;
        self.is_stale = true;
    }

    /// Begins an iteration; recomputes limits and sums if they are stale.
    pub fn begin(&mut self) {
        self.links.begin_update();
        if std::mem::take(&mut self.is_stale) {
            self.links.sums.fill([0.0; 2]);
            for table in &mut self.tables {
                table.place_all(&mut self.links);
            }
        }
    }

    /// Runs the pass over all flows.
    pub fn pass(&mut self, with: Kernel) {
        for table in &mut self.tables {
            table.pass(&mut self.links, with);
        }
    }

    /// Returns the tile of the path's lowest upward and downward links.
    fn tile(&self, path: &[u32]) -> usize {
        let lowest = |links: Range<usize>| {
            let in_range = path.iter().map(|&link| link as usize).filter(|link| links.contains(link));
            in_range.min().map_or(0, |link| (link - links.start) / TILE)
        };
        lowest(self.up()) * self.n_down_tiles + lowest(self.down())
    }
}
