//! Time of an acknowledgment for each controller, with the telemetry it reads and the timers that are due.
//!
//! `cargo bench -p fairrate-control --bench controllers`; `fairrate bench --job kernels` measures the same.

use std::time::{Duration, Instant};

use criterion::{BenchmarkId, Criterion};

#[path = "../../fairrate-cli/src/bench/acks.rs"]
mod acks;

use acks::{Acks, BATCH, names};

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    let mut group = criterion.benchmark_group("ack");
    for name in names() {
        let mut acks = Acks::new(name);
        group.bench_function(BenchmarkId::from_parameter(name), |b| {
            b.iter_custom(|n| time(&mut acks, n));
        });
    }
    group.finish();
    criterion.final_summary();
}

/// Returns the time of `n` acknowledgments; whole batches are timed.
fn time(acks: &mut Acks, n: u64) -> Duration {
    let n_batches = n.div_ceil(BATCH as u64);
    let mut took = Duration::ZERO;
    for _ in 0..n_batches {
        acks.prepare();
        let start = Instant::now();
        acks.feed();
        took += start.elapsed();
    }
    took.mul_f64(n as f64 / (n_batches * BATCH as u64) as f64)
}
