//! One allocation: flows between the hosts of a leaf-spine network of 1,024 hosts, 32 leaves and 16 spines.
//!
//! `cargo bench -p fairrate-allocate --bench max_min`

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion};
use fairrate_allocate::{Flow, Link, LinkId, Network, max_min};
use fairrate_units::Rate;

const HOSTS: u32 = 1_024;
const LEAVES: u32 = 32;
const SPINES: u32 = 16;

/// Returns `n_flows` flows of four hops each (two within a rack), at 100 Gb/s a host and 200 Gb/s between switches.
fn leaf_spine(n_flows: u32) -> Network {
    let mut state = 1_u64;
    let mut draw = |below: u32| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as u32 % below
    };
    let host_links = (0..2 * HOSTS).map(|_| Link::new("", Rate::from_gbps(100)));
    let core_links = (0..2 * LEAVES * SPINES).map(|_| Link::new("", Rate::from_gbps(200)));
    let up = |host: u32| LinkId(host);
    let down = |host: u32| LinkId(HOSTS + host);
    let leaf = |host: u32| host / (HOSTS / LEAVES);
    let to_spine = |leaf: u32, spine: u32| LinkId(2 * HOSTS + leaf * SPINES + spine);
    let from_spine = |leaf: u32, spine: u32| LinkId(2 * HOSTS + (LEAVES + leaf) * SPINES + spine);
    let flow = |_| {
        let (src, dst, spine) = (draw(HOSTS), draw(HOSTS), draw(SPINES));
        let mut path = vec![up(src), down(dst)];
        if leaf(src) != leaf(dst) {
            path.extend([to_spine(leaf(src), spine), from_spine(leaf(dst), spine)]);
        }
        Flow::new("", path)
    };
    let flows = (0..n_flows).map(flow).collect();
    Network { links: host_links.chain(core_links).collect(), flows }
}

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    let mut group = criterion.benchmark_group("max_min");
    for n_flows in [500, 5_000, 50_000] {
        let network = leaf_spine(n_flows);
        group.bench_with_input(BenchmarkId::from_parameter(n_flows), &network, |b, network| {
            b.iter(|| max_min(black_box(network)));
        });
    }
    group.finish();
    criterion.final_summary();
}
