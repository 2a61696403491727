//! Iterations of the engine for real time. `fairrate bench --job allocate` measures more of them, and describes them.
//!
//! `cargo bench -p fairrate-allocate --bench realtime`

use criterion::{BenchmarkId, Criterion};
use fairrate_allocate::{Aggregation, Clos, Instructions, LinkId, RateEngine, RealTime};

const NODES: u32 = 384;
const CLOS: Clos = Clos { pods: 1, racks: 24, servers: 16, spines: 16, cores: 0, server_bps: 40e9, fabric_bps: 40e9 };

/// Returns the paths of `n_flows` flows between random servers.
fn paths(n_flows: usize) -> Vec<Vec<LinkId>> {
    let mut state = 1_u64;
    let mut draw = |below: u32| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((state >> 33) % u64::from(below)) as u32
    };
    let mut path = || {
        let src = draw(NODES);
        CLOS.path(src, (src + 1 + draw(NODES - 1)) % NODES, draw(1 << 30))
    };
    (0..n_flows).map(|_| path()).collect()
}

fn engine(n_flows: usize, most: Instructions) -> RealTime {
    let capacities = CLOS.capacities_bps();
    let engine = RealTime::partitioned(&capacities, 40e9, 0.4, &CLOS.partition(1), 1, Aggregation::Slices);
    let mut engine = engine.at_most(most);
    for path in paths(n_flows) {
        engine.add(&path, 1.0, f64::INFINITY);
    }
    engine
}

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    let mut group = criterion.benchmark_group("realtime");
    for n_flows in [32, 307, 3_072] {
        let mut engine = engine(n_flows, Instructions::Avx512);
        group.bench_function(BenchmarkId::new("iterate", n_flows), |b| b.iter(|| engine.iterate()));
    }
    for most in [Instructions::Portable, Instructions::Avx2] {
        let mut engine = engine(3_072, most);
        group.bench_function(BenchmarkId::new(format!("{most:?}"), 3_072), |b| b.iter(|| engine.iterate()));
    }
    let (mut engine, path) = (engine(3_072, Instructions::Avx512), CLOS.path(0, NODES - 1, 5));
    group.bench_function("add and remove", |b| {
        b.iter(|| {
            let key = engine.add(&path, 1.0, f64::INFINITY);
            engine.remove(key);
        });
    });
    group.finish();
    criterion.final_summary();
}
