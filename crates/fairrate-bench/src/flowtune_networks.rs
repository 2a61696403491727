//! The networks of the table in the Flowtune paper's section 6.1, with flows on them.

use fairrate_allocate::{Aggregation, Clos, FlowKey, LinkId, RateEngine, RealTime};

use crate::timing::Draws;

/// The rate of all links in bit/s.
pub const LINK_BPS: f64 = 40e9;
/// The step of the optimiser.
pub const GAMMA: f64 = 0.4;

/// A row of the paper's table.
#[derive(Clone, Copy, Debug)]
pub struct TableRow {
    /// Servers.
    pub nodes: u32,
    /// Flows between them.
    pub flows: u32,
    /// The paper's cores.
    pub cores: u32,
    /// Time of an iteration on these cores, in microseconds. The paper's cycles are this times 2.4 GHz.
    pub us: f64,
}

const fn row(cores: u32, nodes: u32, flows: u32, us: f64) -> TableRow {
    TableRow { nodes, flows, cores, us }
}

/// The paper's table.
pub const TABLE: [TableRow; 7] = [
    row(4, 384, 3_072, 8.29),
    row(16, 768, 6_144, 8.86),
    row(64, 1_536, 12_288, 12.63),
    row(64, 1_536, 24_576, 13.99),
    row(64, 1_536, 49_152, 16.93),
    row(64, 3_072, 49_152, 23.76),
    row(64, 4_608, 49_152, 30.71),
];

/// Flows of a network, each with the same weight and no limit.
pub struct Network {
    /// Name of the network.
    pub name: &'static str,
    /// Links of the network.
    pub clos: Clos,
    /// The links of each flow.
    pub paths: Vec<Vec<LinkId>>,
}

impl Network {
    /// Returns a network with flows between servers drawn with equal probability, over spines and cores drawn in the
    /// same way.
    #[must_use]
    pub fn new(name: &'static str, clos: Clos, n_flows: u32) -> Self {
        let mut draws = Draws(1);
        let mut path = |_| {
            let src = draws.below(clos.n_servers());
            let dst = (src + 1 + draws.below(clos.n_servers() - 1)) % clos.n_servers();
            clos.path(src, dst, draws.below(1 << 30))
        };
        let paths = (0..n_flows).map(&mut path).collect();
        Self { name, clos, paths }
    }

    /// Returns two tiers: racks of 16 servers, 16 spines, all links of one rate. The paper does not give the number of
    /// spines.
    #[must_use]
    pub fn two_tiers(nodes: u32, n_flows: u32) -> Self {
        let (servers, spines) = (16, 16);
        let racks = nodes / servers;
        let clos = Clos { pods: 1, racks, servers, spines, cores: 0, server_bps: LINK_BPS, fabric_bps: LINK_BPS };
        Self::new("two tiers", clos, n_flows)
    }

    /// Returns three tiers: 8 pods of 16 racks of 16 servers, 16 spines per pod and 16 cores above each.
    #[must_use]
    pub fn three_tiers(n_flows: u32) -> Self {
        let (pods, racks, servers, spines, cores) = (8, 16, 16, 16, 16);
        let clos = Clos { pods, racks, servers, spines, cores, server_bps: LINK_BPS, fabric_bps: LINK_BPS };
        Self::new("three tiers", clos, n_flows)
    }

    /// Returns an allocator of the network, without flows.
    #[must_use]
    pub fn engine(&self, n_blocks: u32, n_threads: usize, aggregation: Aggregation) -> RealTime {
        let partition = self.clos.partition(n_blocks);
        RealTime::partitioned(&self.clos.capacities_bps(), LINK_BPS, GAMMA, &partition, n_threads, aggregation)
    }

    /// Adds the flows to an allocator, and returns their keys.
    pub fn add_flows(&self, engine: &mut RealTime) -> Vec<FlowKey> {
        self.paths.iter().map(|path| engine.add(path, 1.0, f64::INFINITY)).collect()
    }
}

/// Returns the least number of blocks, a power of two, that gives every thread a FlowBlock.
#[must_use]
pub fn blocks_for(n_threads: usize) -> u32 {
    let mut blocks = 1;
    while ((blocks * blocks) as usize) < n_threads {
        blocks *= 2;
    }
    blocks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_thread_has_a_block() {
        assert_eq!([1, 2, 4, 5, 16, 17].map(blocks_for), [1, 2, 2, 4, 4, 8]);
    }
}
