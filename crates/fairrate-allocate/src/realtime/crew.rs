//! The threads of an engine.
//!
//! FlowBlocks belong to the engine between iterations, so that flows are added and removed and rates are read as in any
//! table. For an iteration, each thread is handed its share of them, and hands it back. A share changes hands through a
//! mutex, as the language requires, but the order of events ensures that the mutex is always free.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use super::barrier::{Barrier, Broken, spin_until};
use super::exchange::{Exchange, Placed};
use super::kernel::Kernel;
use super::links::Rule;

/// Iterations of the loop in which a thread waits for the next engine iteration before it sleeps: some 80 µs.
const TURNS_AWAKE: u32 = 2_000;

/// The state that all threads share.
#[derive(Debug)]
struct Common {
    exchange: Exchange,
    barrier: Barrier,
    /// The current iteration; [`STOP`] ends the threads.
    iteration: AtomicU32,
    n_done: AtomicU32,
    /// One table for each thread except the engine's own.
    tables: Vec<Table>,
}

const STOP: u32 = u32::MAX;

/// The place of a thread's share while it changes hands. It is on a cache line of its own.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Table(Mutex<Option<Work>>);

/// The work of one thread in an iteration.
#[derive(Debug)]
struct Work {
    share: Vec<Placed>,
    rule: Rule,
    kernel: Kernel,
}

impl Table {
    fn put(&self, work: Work) {
        *self.0.try_lock().expect("a table is used by one thread at a time") = Some(work);
    }

    fn take(&self) -> Work {
        let work = self.0.try_lock().expect("a table is used by one thread at a time").take();
        work.expect("there is work when it is announced")
    }
}

/// Threads with their FlowBlocks.
#[derive(Debug)]
pub(super) struct Crew {
    /// FlowBlocks by thread; the first thread is the caller's.
    shares: Vec<Vec<Placed>>,
    common: Arc<Common>,
    threads: Vec<JoinHandle<()>>,
}

impl Crew {
    /// Creates one thread for each share; the first share is the caller's.
    pub fn new(shares: Vec<Vec<Placed>>, exchange: Exchange) -> Self {
        let n_threads = shares.len() as u32;
        let common = Arc::new(Common {
            exchange,
            barrier: Barrier::new(n_threads),
            iteration: AtomicU32::new(0),
            n_done: AtomicU32::new(0),
            tables: (1..n_threads).map(|_| Table::default()).collect(),
        });
        let spawn = |number: usize| {
            let common = Arc::clone(&common);
            std::thread::spawn(move || serve(&common, number))
        };
        let threads = (0..n_threads as usize - 1).map(spawn).collect();
        Self { shares, common, threads }
    }

    /// Returns FlowBlock `at` of the share of `thread`.
    pub fn block(&self, thread: usize, at: usize) -> &Placed {
        &self.shares[thread][at]
    }

    /// Returns FlowBlock `at` of the share of `thread`, to change it.
    pub fn block_mut(&mut self, thread: usize, at: usize) -> &mut Placed {
        &mut self.shares[thread][at]
    }

    /// Runs one iteration.
    pub fn iterate(&mut self, rule: Rule, kernel: Kernel) {
        let common = &*self.common;
        if !self.threads.is_empty() {
            common.n_done.store(0, Ordering::Relaxed);
            for (table, share) in common.tables.iter().zip(&mut self.shares[1..]) {
                table.put(Work { share: std::mem::take(share), rule, kernel });
            }
            let next = common.iteration.load(Ordering::Relaxed).wrapping_add(1);
            common.iteration.store(if next == STOP { 0 } else { next }, Ordering::Release);
            self.threads.iter().for_each(|thread| thread.thread().unpark());
        }
        let mut result = common.run(&mut self.shares[0], rule, kernel);
        if !self.threads.is_empty() {
            spin_until(|| {
                let is_broken = self.threads.iter().any(JoinHandle::is_finished);
                result = result.and(if is_broken { Err(Broken) } else { Ok(()) });
                result.is_err() || common.n_done.load(Ordering::Acquire) == common.tables.len() as u32
            });
            assert!(result.is_ok(), "a thread of the engine has panicked");
            for (table, share) in common.tables.iter().zip(&mut self.shares[1..]) {
                *share = table.take().share;
            }
        }
    }
}

impl Common {
    fn run(&self, share: &mut [Placed], rule: Rule, kernel: Kernel) -> Result<(), Broken> {
        for placed in share.iter_mut() {
            placed.block.begin();
        }
        self.exchange.update(share, &self.barrier, rule, kernel)?;
        for placed in share {
            placed.block.pass(kernel);
        }
        Ok(())
    }
}

/// Runs a thread of the crew, from its first iteration to its last.
fn serve(common: &Common, number: usize) {
    /// A guard that releases the waiting threads if this thread panics.
    struct Guard<'a>(&'a Barrier);
    impl Drop for Guard<'_> {
        fn drop(&mut self) {
            if std::thread::panicking() {
                self.0.break_up();
            }
        }
    }
    let _guard = Guard(&common.barrier);
    let mut last = 0;
    loop {
        let mut turns = 0;
        let iteration = loop {
            let iteration = common.iteration.load(Ordering::Acquire);
            if iteration != last {
                break iteration;
            }
            turns += 1;
            if turns < TURNS_AWAKE {
                std::hint::spin_loop();
            } else {
                std::thread::park();
            }
        };
        if iteration == STOP {
            return;
        }
        last = iteration;
        let mut work = common.tables[number].take();
        if common.run(&mut work.share, work.rule, work.kernel).is_err() {
            return;
        }
        common.tables[number].put(work);
        common.n_done.fetch_add(1, Ordering::Release);
    }
}

impl Drop for Crew {
    fn drop(&mut self) {
        self.common.barrier.break_up();
        self.common.iteration.store(STOP, Ordering::Release);
        for thread in self.threads.drain(..) {
            thread.thread().unpark();
            // A thread that panicked has already printed the reason.
            let _ = thread.join();
        }
    }
}
