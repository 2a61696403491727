//! One thread a part. They meet twice in a window: when it begins and when all have reached its end.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock};
use std::thread::Thread;

use super::cluster::lock;
use crate::core::Part;

/// Looks at a condition before a waiting thread goes to sleep, if there is a processor for each thread. A look takes some
/// tens of nanoseconds, so this is as long as waking up takes.
const SPINS: u32 = 1_024;

/// Events of a round, all parts together, below which the leader does the next one alone: to call the others and to
/// wait for them takes longer.
const FEW: u64 = 160;

/// The threads of a run, the calling one included, which leads.
pub(super) struct Crew<'a> {
    parts: &'a [Mutex<Part>],
    /// Number of the window, or piece of one, that is being worked on.
    round: AtomicU64,
    window_end_ps: AtomicU64,
    max_events: AtomicU64,
    /// Workers that are through with the round.
    through: AtomicUsize,
    /// Events of the round, and whether a part has not reached the end of the window.
    n_events: AtomicU64,
    is_short: AtomicBool,
    /// Events of the round before.
    n_before: AtomicU64,
    is_dismissed: AtomicBool,
    /// The threads themselves, and how often each looks before it sleeps.
    leader: Thread,
    workers: OnceLock<Vec<Thread>>,
    spins: u32,
    /// What a worker panicked with.
    panic: Mutex<Option<Box<dyn Any + Send>>>,
}

impl<'a> Crew<'a> {
    /// Does `work` with a crew for `parts`.
    pub(super) fn with<T>(parts: &'a [Mutex<Part>], work: impl FnOnce(&Self) -> T) -> T {
        let crew = Self {
            parts,
            round: AtomicU64::new(0),
            window_end_ps: AtomicU64::new(0),
            max_events: AtomicU64::new(0),
            through: AtomicUsize::new(0),
            n_events: AtomicU64::new(0),
            is_short: AtomicBool::new(false),
            n_before: AtomicU64::new(0),
            is_dismissed: AtomicBool::new(false),
            leader: std::thread::current(),
            workers: OnceLock::new(),
            // How many processors there are is written in files, which one thread need not read.
            spins: if 1 < parts.len() && parts.len() <= processors() { SPINS } else { 0 },
            panic: Mutex::new(None),
        };
        if parts.len() == 1 {
            return work(&crew);
        }
        std::thread::scope(|scope| {
            let workers = parts[1..].iter().map(|part| scope.spawn(|| crew.work(part)).thread().clone());
            // Nobody else sets it.
            let _ = crew.workers.set(workers.collect());
            // However this ends, the workers must not wait for ever.
            let dismissal = Dismissal(&crew);
            let result = work(dismissal.0);
            drop(dismissal);
            result
        })
    }

    /// All parts process their events before `window_end_ps`, each up to `max_events` of them. Whether all have reached
    /// the end of the window, and how many events that were.
    pub(super) fn run(&self, window_end_ps: u64, max_events: u64) -> (bool, u64) {
        let (all_done, n_events) = if self.n_before.load(Ordering::Relaxed) < FEW || self.parts.len() == 1 {
            let each = self.parts.iter().map(|part| lock(part).run(window_end_ps, max_events));
            each.fold((true, 0), |all, one| (all.0 && one.0, all.1 + one.1))
        } else {
            self.run_together(window_end_ps, max_events)
        };
        self.n_before.store(n_events, Ordering::Relaxed);
        (all_done, n_events)
    }

    /// The same with all threads at a time.
    fn run_together(&self, window_end_ps: u64, max_events: u64) -> (bool, u64) {
        let mut part = lock(&self.parts[0]);
        self.window_end_ps.store(window_end_ps, Ordering::Relaxed);
        self.max_events.store(max_events, Ordering::Relaxed);
        self.through.store(0, Ordering::Relaxed);
        self.n_events.store(0, Ordering::Relaxed);
        self.is_short.store(false, Ordering::Relaxed);
        self.call();
        let (mut all_done, mut n_events) = part.run(window_end_ps, max_events);
        drop(part);
        self.wait_until(|| self.through.load(Ordering::Acquire) == self.parts.len() - 1);
        if let Some(panic) = self.panic.lock().expect("nothing panics with this lock held").take() {
            resume_unwind(panic);
        }
        all_done &= !self.is_short.load(Ordering::Relaxed);
        n_events += self.n_events.load(Ordering::Relaxed);
        (all_done, n_events)
    }

    fn work(&self, part: &Mutex<Part>) {
        let mut seen = 0;
        loop {
            self.wait_until(|| self.round.load(Ordering::Acquire) != seen);
            seen = self.round.load(Ordering::Acquire);
            if self.is_dismissed.load(Ordering::Relaxed) {
                return;
            }
            let (until, most) = (self.window_end_ps.load(Ordering::Relaxed), self.max_events.load(Ordering::Relaxed));
            match catch_unwind(AssertUnwindSafe(|| lock(part).run(until, most))) {
                Ok((is_done, n_events)) => {
                    self.is_short.fetch_or(!is_done, Ordering::Relaxed);
                    self.n_events.fetch_add(n_events, Ordering::Relaxed);
                }
                Err(panic) => *self.panic.lock().expect("nothing panics with this lock held") = Some(panic),
            }
            if self.through.fetch_add(1, Ordering::Release) + 2 == self.parts.len() {
                self.leader.unpark();
            }
        }
    }

    /// Begins the next round.
    fn call(&self) {
        self.round.fetch_add(1, Ordering::Release);
        self.workers.get().into_iter().flatten().for_each(Thread::unpark);
    }

    fn wait_until(&self, is_so: impl Fn() -> bool) {
        for _ in 0..self.spins {
            if is_so() {
                return;
            }
            std::hint::spin_loop();
        }
        while !is_so() {
            std::thread::park();
        }
    }
}

fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Sends the workers home.
struct Dismissal<'a, 'b>(&'b Crew<'a>);

impl Drop for Dismissal<'_, '_> {
    fn drop(&mut self) {
        self.0.is_dismissed.store(true, Ordering::Relaxed);
        self.0.call();
    }
}
