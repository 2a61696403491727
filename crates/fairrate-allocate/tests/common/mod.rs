//! Networks drawn from a seed.

use fairrate_allocate::{Flow, Link, LinkId, Network, Utility};

/// Knuth's MMIX generator, whose high bits are random: enough for drawing networks.
pub struct Mmix(pub u64);

impl Mmix {
    /// Returns the upper 31 bits of the next state.
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 33
    }

    /// Returns the next number, below `bound`.
    #[allow(dead_code)] // An example draws networks alone.
    pub fn below(&mut self, bound: u32) -> u32 {
        (self.next() % u64::from(bound)) as u32
    }
}

/// Numbers of an [`Mmix`] whose seed is spread over all bits.
pub struct Draw(Mmix);

impl Draw {
    pub fn new(seed: u64) -> Self {
        let mut draw = Self(Mmix(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15)));
        draw.uniform();
        draw
    }

    /// Returns a number from 0 up to, but without, 1.
    pub fn uniform(&mut self) -> f64 {
        self.0.next() as f64 / (1_u64 << 31) as f64
    }

    /// Returns a number from 0 up to, but without, `n`.
    pub fn below(&mut self, n: usize) -> usize {
        (self.uniform() * n as f64) as usize
    }
}

/// Returns up to 120 links of 1 to 400 Gb/s and up to 2,000 flows of weights 0.1 to 10 over up to `max_hops` of them.
/// Some links are much more popular than others; a tenth of the flows has a demand.
pub fn random(seed: u64, max_hops: usize) -> Network {
    let mut draw = Draw::new(seed);
    let n_links = 1 + draw.below(120);
    // Between a few and many, and as many as 2,000 in one of ten.
    let n_flows = if draw.below(10) == 0 { 2_000 } else { 1 + (2_000.0 * draw.uniform().powi(3)) as usize };
    let link = |_| Link { name: String::new(), capacity_bps: 1e9 * 400.0_f64.powf(draw.uniform()) };
    let links: Vec<Link> = (0..n_links).map(link).collect();
    let flow = |_| {
        let n_hops = 1 + draw.below(max_hops);
        let mut path: Vec<LinkId> =
            (0..n_hops).map(|_| LinkId((draw.uniform() * draw.uniform() * n_links as f64) as u32)).collect();
        path.sort_unstable();
        path.dedup();
        let weight = 10.0_f64.powf(2.0 * draw.uniform() - 1.0);
        let demand_bps = if draw.below(10) == 0 { 1e9 * 400.0_f64.powf(draw.uniform()) } else { f64::INFINITY };
        Flow::new("", path).weight(weight).demand_bps(demand_bps)
    };
    let flows = (0..n_flows).map(flow).collect();
    Network { links, flows }
}

/// Returns flows between different random hosts of Flowtune's network (section 6.2): 9 racks of 16 servers at 10 Gb/s,
/// 4 spines at 40 Gb/s.
pub fn leaf_spine(seed: u64, n_flows: usize) -> Network {
    const HOSTS: usize = 144;
    const RACK: usize = 16;
    const LEAVES: usize = 9;
    const SPINES: usize = 4;
    let mut draw = Draw::new(seed);
    let host_links = (0..2 * HOSTS).map(|_| Link { name: String::new(), capacity_bps: 10e9 });
    let core_links = (0..2 * LEAVES * SPINES).map(|_| Link { name: String::new(), capacity_bps: 40e9 });
    let links = host_links.chain(core_links).collect();
    let flow = |_| {
        let (src, mut dst, spine) = (draw.below(HOSTS), draw.below(HOSTS - 1), draw.below(SPINES));
        dst += usize::from(src <= dst);
        let mut path = vec![src, HOSTS + dst];
        if src / RACK != dst / RACK {
            let up = 2 * HOSTS + src / RACK * SPINES + spine;
            path.extend([up, 2 * HOSTS + (LEAVES + dst / RACK) * SPINES + spine]);
        }
        Flow::new("", path.into_iter().map(|link| LinkId(link as u32)).collect::<Vec<_>>())
    };
    Network { links, flows: (0..n_flows).map(flow).collect() }
}

/// Returns weighted logarithms with the flows' weights.
pub fn logs(network: &Network) -> Vec<Utility> {
    network.flows.iter().map(|flow| Utility::log(flow.weight)).collect()
}

/// Returns the smallest capacity, which serves as the unit.
pub fn unit_bps(network: &Network) -> f64 {
    network.links.iter().map(|link| link.capacity_bps).fold(f64::INFINITY, f64::min)
}
