//! The assignment of links to LinkBlocks, and of flows to FlowBlocks with copies of them.

/// The links of a network in blocks. A flow's upward links are all in one block, that of its source, and its downward
/// links in one block, that of its destination.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Partition {
    /// Number of blocks, a power of 2. It is also the number of LinkBlocks upward and of those downward; its square is
    /// the number of FlowBlocks.
    pub n_blocks: u32,
    /// The place of each link.
    pub places: Vec<Place>,
}

/// The LinkBlock of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Upward or downward.
    pub side: Side,
    /// Number of the block.
    pub block: u32,
}

/// A link's direction, as seen from servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// From a server toward the top of the network.
    Up,
    /// Toward a server.
    Down,
}

impl Partition {
    /// Creates one block of any links.
    pub fn whole(n_links: usize) -> Self {
        Self { n_blocks: 1, places: vec![Place { side: Side::Up, block: 0 }; n_links] }
    }
}

/// Links by LinkBlock.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    pub n_blocks: usize,
    places: Vec<Place>,
    /// Each link's number in its LinkBlock, in the order of links.
    numbers: Vec<u32>,
    /// Links of each LinkBlock: upward, downward.
    sizes: [Vec<usize>; 2],
}

impl Layout {
    pub fn new(partition: &Partition) -> Self {
        let n_blocks = partition.n_blocks as usize;
        assert!(n_blocks.is_power_of_two(), "{n_blocks} blocks; their number must be a power of 2");
        let mut sizes = [vec![0; n_blocks], vec![0; n_blocks]];
        let number = |place: &Place| {
            let size: &mut usize = &mut sizes[place.side as usize][place.block as usize];
            *size += 1;
            *size as u32 - 1
        };
        let numbers = partition.places.iter().map(number).collect();
        Self { n_blocks, places: partition.places.clone(), numbers, sizes }
    }

    /// Returns the direction and block of a link.
    pub fn place(&self, link: usize) -> Place {
        self.places[link]
    }

    /// Returns the number of links of a LinkBlock.
    pub fn size(&self, side: Side, block: usize) -> usize {
        self.sizes[side as usize][block]
    }

    /// Returns a link's number in a FlowBlock of its row or column: upward links are first.
    pub fn number_in(&self, link: usize, row: usize) -> u32 {
        match self.places[link].side {
            Side::Up => self.numbers[link],
            Side::Down => self.size(Side::Up, row) as u32 + self.numbers[link],
        }
    }

    /// Returns the FlowBlock of a path: its source's block and its destination's.
    ///
    /// # Panics
    /// If the path has links of several blocks in one direction.
    pub fn flow_block(&self, path: impl Iterator<Item = usize>) -> (usize, usize) {
        let mut found = [None, None];
        for link in path {
            let Place { side, block } = self.places[link];
            let first = *found[side as usize].get_or_insert(block);
            assert!(first == block, "a path uses links of blocks {first} and {block} in one direction");
        }
        // A path in one direction alone may be in any block of its row or column.
        let [row, column] = found.map(|block| block.map_or(0, |block| block as usize));
        (row, column)
    }

    /// Returns the links of a FlowBlock, in the order of their numbers in it.
    pub fn links_of(&self, row: usize, column: usize) -> impl Iterator<Item = usize> {
        let in_block = move |side: Side, block: usize| {
            let wanted = Place { side, block: block as u32 };
            (0..self.places.len()).filter(move |&link| self.places[link] == wanted)
        };
        in_block(Side::Up, row).chain(in_block(Side::Down, column))
    }
}
