//! A FlowBlock: flows from one block of the network to one, with copies of the links they use.

use std::ops::Range;

use super::flows::FlowTable;
use super::kernel::Kernel;
use super::links::LinkTable;

/// Links in a direction that flows side by side use. Flows are kept in tiles of so many links up and down, so that what a
/// tile touches (32 KiB) stays in the first cache.
const TILE: usize = 1024;

/// Flows, and links of their own.
#[derive(Clone, Debug)]
pub(super) struct FlowBlock {
    pub links: LinkTable,
    /// Links upward come first.
    pub n_up: usize,
    /// Flows by path length, from 1, and then by tile.
    tables: Vec<FlowTable>,
    n_tiles: usize,
    n_down_tiles: usize,
    /// Limits or sums must be made anew.
    is_stale: bool,
}

/// Where a flow is in its block.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seat {
    pub table: u32,
    pub at: u32,
}

impl FlowBlock {
    /// A block without flows. In tiles only if a flow's links upward are near each other in number, and downward too.
    pub fn new(capacities: Vec<f32>, n_up: usize, in_tiles: bool) -> Self {
        let n_down = capacities.len() - n_up;
        let (n_up_tiles, n_down_tiles) =
            if in_tiles { (n_up.div_ceil(TILE).max(1), n_down.div_ceil(TILE).max(1)) } else { (1, 1) };
        let n_tiles = n_up_tiles * n_down_tiles;
        Self { links: LinkTable::new(capacities), n_up, tables: Vec::new(), n_tiles, n_down_tiles, is_stale: false }
    }

    pub fn up(&self) -> Range<usize> {
        0..self.n_up
    }

    pub fn down(&self) -> Range<usize> {
        self.n_up..self.links.len()
    }

    /// Adds a flow at today's prices.
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

    /// A flow's normalised rate.
    pub fn rate(&self, seat: Seat) -> f32 {
        self.tables[seat.table as usize].normalised(seat.at as usize)
    }

    pub fn set_capacity(&mut self, link: u32, capacity: f32) {
        self.links.capacities[link as usize] = capacity;
        self.is_stale = true;
    }

    /// Begins an iteration. Makes limits and sums anew if they need it.
    pub fn begin(&mut self) {
        self.links.begin_update();
        if std::mem::take(&mut self.is_stale) {
            self.links.sums.fill([0.0; 2]);
            for table in &mut self.tables {
                table.place_all(&mut self.links);
            }
        }
    }

    /// The pass over all flows.
    pub fn pass(&mut self, with: Kernel) {
        for table in &mut self.tables {
            table.pass(&mut self.links, with);
        }
    }

    /// The tile of the path's lowest links up and down.
    fn tile(&self, path: &[u32]) -> usize {
        let lowest = |links: Range<usize>| {
            let in_range = path.iter().map(|&link| link as usize).filter(|link| links.contains(link));
            in_range.min().map_or(0, |link| (link - links.start) / TILE)
        };
        lowest(self.up()) * self.n_down_tiles + lowest(self.down())
    }
}
