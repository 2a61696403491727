//! An iteration of the engine for real time allocates no memory, in no thread. This is a program of its own without the
//! test harness, so that nothing else allocates.
#![allow(unsafe_code)] // An allocator can be written in no other way.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU64, Ordering};

use fairrate_allocate::{Aggregation, Clos, RateEngine, RealTime};

struct Counting;

static N_ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

// SAFETY: the system's allocator does all the work.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        N_ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller's.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        N_ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller's.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn main() {
    let clos = Clos { pods: 1, racks: 8, servers: 8, spines: 4, cores: 0, server_bps: 1e10, fabric_bps: 2e10 };
    for (n_blocks, n_threads) in [(1, 1), (2, 1), (2, 3), (4, 2)] {
        for aggregation in [Aggregation::Diagonals, Aggregation::Slices] {
            let partition = clos.partition(n_blocks);
            let mut engine =
                RealTime::partitioned(&clos.capacities_bps(), 1e10, 0.4, &partition, n_threads, aggregation);
            let mut keys: Vec<_> = (0..500)
                .map(|i| engine.add(&clos.path(i % 64, (i * 7 + 1) % 63 + (i + 1) % 2, i), 1.0, f64::INFINITY))
                .collect();
            // Threads have started when they have done something.
            engine.iterate();
            let link = clos.path(1, 60, 0)[0];
            let before = N_ALLOCATIONS.load(Ordering::Relaxed);
            for i in 0..100 {
                engine.iterate();
                // Nor does removing a flow, a change of capacity, or recomputing sums.
                engine.remove(keys.swap_remove(i));
                if i % 10 == 0 {
                    engine.set_capacity(link, 1e9 * (1 + i) as f64);
                }
            }
            let after = N_ALLOCATIONS.load(Ordering::Relaxed);
            assert_eq!(after - before, 0, "{n_blocks} blocks, {n_threads} threads");
        }
    }
}
