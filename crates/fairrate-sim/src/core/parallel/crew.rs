//! One thread a part. They meet twice in a window: when it begins and when all have reached its end.
//!
//! Somebody else may need a processor. So a thread that waits sleeps after a short while; a part whose thread has not come when
//! the leader is through is done by the leader; and if a thread keeps the others waiting, which is one that has lost its
//! processor, the leader goes on alone for some time.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock};
use std::thread::Thread;
use std::time::{Duration, Instant};

use super::cluster::lock;
use crate::core::Part;

/// Looks at a condition before a waiting thread goes to sleep, if there is a processor for each thread. A look takes some
/// tens of nanoseconds, so this is as long as waking up takes.
const SPINS: u32 = 1_024;

/// Events of a round, all parts together, below which the leader does the next one alone: to call the others and to
/// wait for them takes longer.
const FEW: u64 = 160;

/// A thread that takes so many times as long as the leader for a round, and at least as long as this, has lost its processor.
const SLOW: u32 = 4;
const LONG: Duration = Duration::from_micros(200);
/// For how many times as long as it has waited the leader goes on alone after that.
const ALONE: u32 = 50;

/// The threads of a run, the calling one included, which leads.
pub(super) struct Crew<'a> {
    parts: &'a [Mutex<Part>],
    /// Number of the window, or piece of one, that is being worked on.
    round: AtomicU64,
    window_end_ps: AtomicU64,
    max_events: AtomicU64,
    /// The last round that somebody has taken each part for.
    taken: Vec<AtomicU64>,
    /// Workers that are through with the part they took.
    through: AtomicUsize,
    /// Events of the round, and whether a part has not reached the end of the window.
    n_events: AtomicU64,
    is_short: AtomicBool,
    /// Events of the round before.
    n_before: AtomicU64,
    /// Until when the leader goes on alone.
    alone_until: Mutex<Option<Instant>>,
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
            taken: if parts.len() == 1 { Vec::new() } else { parts.iter().map(|_| AtomicU64::new(0)).collect() },
            through: AtomicUsize::new(0),
            n_events: AtomicU64::new(0),
            is_short: AtomicBool::new(false),
            n_before: AtomicU64::new(0),
            alone_until: Mutex::new(None),
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
            let workers = (1..parts.len()).map(|number| {
                let crew = &crew;
                scope.spawn(move || crew.work(number)).thread().clone()
            });
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
        let is_small = self.n_before.load(Ordering::Relaxed) < FEW;
        let (all_done, n_events) = if is_small || self.parts.len() == 1 || self.goes_alone() {
            let each = self.parts.iter().map(|part| lock(part).run(window_end_ps, max_events));
            each.fold((true, 0), |all, one| (all.0 && one.0, all.1 + one.1))
        } else {
            self.run_together(window_end_ps, max_events)
        };
        self.n_before.store(n_events, Ordering::Relaxed);
        (all_done, n_events)
    }

    /// Whether the leader goes on alone at present.
    fn goes_alone(&self) -> bool {
        let mut until = self.alone_until.lock().expect("nothing panics with this lock held");
        let is_alone = until.is_some_and(|until| Instant::now() < until);
        if !is_alone {
            *until = None;
        }
        is_alone
    }

    /// The same with all threads at a time.
    fn run_together(&self, window_end_ps: u64, max_events: u64) -> (bool, u64) {
        self.window_end_ps.store(window_end_ps, Ordering::Relaxed);
        self.max_events.store(max_events, Ordering::Relaxed);
        self.through.store(0, Ordering::Relaxed);
        self.n_events.store(0, Ordering::Relaxed);
        self.is_short.store(false, Ordering::Relaxed);
        let round = self.round.load(Ordering::Relaxed) + 1;
        let start = Instant::now();
        self.call();
        let (mut all_done, mut n_events, mut n_others) = (true, 0, 0);
        for (number, part) in self.parts.iter().enumerate() {
            if self.take(number, round) {
                let (is_done, n) = lock(part).run(window_end_ps, max_events);
                all_done &= is_done;
                n_events += n;
            } else {
                n_others += 1;
            }
        }
        self.wait_for(n_others, start);
        if let Some(panic) = self.panic.lock().expect("nothing panics with this lock held").take() {
            resume_unwind(panic);
        }
        all_done &= !self.is_short.load(Ordering::Relaxed);
        n_events += self.n_events.load(Ordering::Relaxed);
        (all_done, n_events)
    }

    /// Takes a part for a round, unless somebody else has.
    fn take(&self, number: usize, round: u64) -> bool {
        self.taken[number].fetch_max(round, Ordering::AcqRel) < round
    }

    /// Waits until so many workers are through with a round that began at `start`, and remembers if that takes long.
    fn wait_for(&self, n_others: usize, start: Instant) {
        let are_through = || self.through.load(Ordering::Acquire) == n_others;
        if self.look(are_through) {
            return;
        }
        let own = start.elapsed();
        while !are_through() {
            std::thread::park_timeout(LONG);
        }
        let waited = start.elapsed().saturating_sub(own);
        if (SLOW * own).max(LONG) <= waited {
            let until = Instant::now() + waited * ALONE;
            *self.alone_until.lock().expect("nothing panics with this lock held") = Some(until);
        }
    }

    fn work(&self, number: usize) {
        let mut seen = 0;
        loop {
            let is_called = || self.round.load(Ordering::Acquire) != seen;
            if !self.look(is_called) {
                while !is_called() {
                    std::thread::park();
                }
            }
            seen = self.round.load(Ordering::Acquire);
            if self.is_dismissed.load(Ordering::Relaxed) {
                return;
            }
            if !self.take(number, seen) {
                continue;
            }
            let (until, most) = (self.window_end_ps.load(Ordering::Relaxed), self.max_events.load(Ordering::Relaxed));
            match catch_unwind(AssertUnwindSafe(|| lock(&self.parts[number]).run(until, most))) {
                Ok((is_done, n_events)) => {
                    self.is_short.fetch_or(!is_done, Ordering::Relaxed);
                    self.n_events.fetch_add(n_events, Ordering::Relaxed);
                }
                Err(panic) => *self.panic.lock().expect("nothing panics with this lock held") = Some(panic),
            }
            self.through.fetch_add(1, Ordering::Release);
            self.leader.unpark();
        }
    }

    /// Begins the next round.
    fn call(&self) {
        self.round.fetch_add(1, Ordering::Release);
        self.workers.get().into_iter().flatten().for_each(Thread::unpark);
    }

    /// Looks for a short while whether something is so.
    fn look(&self, is_so: impl Fn() -> bool) -> bool {
        for _ in 0..self.spins {
            if is_so() {
                return true;
            }
            std::hint::spin_loop();
        }
        is_so()
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
