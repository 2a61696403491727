//! A barrier at which threads wait for each other without sleeping.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// Iterations of a waiting loop, some 5 µs, after which the processor is offered to other threads, perhaps those waited
/// for.
const SPINS: u32 = 128;

/// The error that another thread has panicked, so that the barrier will never be complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Broken;

/// A reusable barrier where `n` threads wait until all have arrived. It is on a cache line of its own.
#[derive(Debug)]
#[repr(align(128))]
pub(super) struct Barrier {
    n_threads: u32,
    n_arrived: AtomicU32,
    round: AtomicU32,
    is_broken: AtomicBool,
}

impl Barrier {
    pub const fn new(n_threads: u32) -> Self {
        Self { n_threads, n_arrived: AtomicU32::new(0), round: AtomicU32::new(0), is_broken: AtomicBool::new(false) }
    }

    /// Waits for the other threads. Their earlier writes are visible to this thread afterwards.
    pub fn wait(&self) -> Result<(), Broken> {
        if self.n_threads == 1 {
            return Ok(());
        }
        let round = self.round.load(Ordering::Acquire);
        if self.n_arrived.fetch_add(1, Ordering::AcqRel) + 1 == self.n_threads {
            self.n_arrived.store(0, Ordering::Relaxed);
            self.round.store(round.wrapping_add(1), Ordering::Release);
            return Ok(());
        }
        spin_until(|| self.round.load(Ordering::Acquire) != round || self.is_broken.load(Ordering::Relaxed));
        if self.is_broken.load(Ordering::Relaxed) { Err(Broken) } else { Ok(()) }
    }

    /// Releases all waiting threads, now and later.
    pub fn break_up(&self) {
        self.is_broken.store(true, Ordering::Relaxed);
    }
}

/// Spins until `is_true` returns `true`, which should be soon.
pub(super) fn spin_until(mut is_true: impl FnMut() -> bool) {
    let mut turns = 0;
    while !is_true() {
        turns += 1;
        if turns % SPINS == 0 {
            std::thread::yield_now();
        } else {
            std::hint::spin_loop();
        }
    }
}
