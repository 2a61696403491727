//! One thread for each part. The threads meet twice in a window: when it begins and when all have reached its end.
//!
//! Other processes may use the cores. So waiting threads spin briefly and then sleep; a part that its thread has not
//! taken when the leader reaches it is done by the leader; and if rounds take longer than the leader alone would need
//! for all parts, as they do if a thread has lost its core, the leader works alone for some time.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock};
use std::thread::Thread;
use std::time::{Duration, Instant};

use super::cluster::lock;
use super::pace::Pace;
use crate::core::Part;

/// Number of times a waiting thread checks its condition before it sleeps, if there is a core for each thread. A check
/// takes some tens of nanoseconds, so this is as long as waking up takes.
const SPINS: u32 = 1_024;

/// Number of events of a round, all parts together, below which the leader does the next round alone: to wake the other
/// threads and to wait for them would take longer.
const FEW: u64 = 160;

/// Time that the leader sleeps between two checks while it waits for the others.
const NAP: Duration = Duration::from_micros(200);

/// The threads of a run, including the calling thread, which leads.
pub(super) struct Crew<'a> {
    parts: &'a [Mutex<Part>],
    /// Number of the current round: a window, or a piece of one.
    round: AtomicU64,
    window_end_ps: AtomicU64,
    max_events: AtomicU64,
    /// The last round for which a thread has taken each part.
    taken: Vec<AtomicU64>,
    /// Number of workers that have finished the part they took.
    through: AtomicUsize,
    /// Number of events of the round (`n_events`), and `true` if a part has not reached the end of the window
    /// (`is_short`).
    n_events: AtomicU64,
    is_short: AtomicBool,
    /// Number of events of the round before.
    n_before: AtomicU64,
    /// Measurement that decides between all threads and the leader alone.
    pace: &'a Mutex<Pace>,
    is_dismissed: AtomicBool,
    /// The threads (`leader`, `workers`), and the number of checks of each before it sleeps (`spins`).
    leader: Thread,
    workers: OnceLock<Vec<Thread>>,
    spins: u32,
    /// The panic of a worker, if any.
    panic: Mutex<Option<Box<dyn Any + Send>>>,
}

impl<'a> Crew<'a> {
    /// Calls `work` with a crew for `parts`; `pace` outlives the crew.
    pub(super) fn with<T>(parts: &'a [Mutex<Part>], pace: &'a Mutex<Pace>, work: impl FnOnce(&Self) -> T) -> T {
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
            pace,
            is_dismissed: AtomicBool::new(false),
            leader: std::thread::current(),
            workers: OnceLock::new(),
            // The number of cores is read from files, which a single thread can skip.
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
            // There is no other place that sets it.
            let _ = crew.workers.set(workers.collect());
            // However this ends, the workers must not wait forever.
            let dismissal = Dismissal(&crew);
            let result = work(dismissal.0);
            drop(dismissal);
            result
        })
    }

    /// Processes the events of all parts before `window_end_ps`, at most `max_events` in each part. Returns `true` if
    /// all parts have reached the end of the window, and the number of events.
    pub(super) fn run(&self, window_end_ps: u64, max_events: u64) -> (bool, u64) {
        let is_small = self.n_before.load(Ordering::Relaxed) < FEW;
        let (all_done, n_events) = if self.parts.len() == 1 || is_small {
            self.run_alone(window_end_ps, max_events)
        } else {
            let start = Instant::now();
            let is_alone = self.pace().is_alone(start);
            let run = if is_alone { Self::run_alone } else { Self::run_together };
            let (all_done, n_events) = run(self, window_end_ps, max_events);
            self.pace().note(is_alone, start, start.elapsed(), n_events);
            (all_done, n_events)
        };
        self.n_before.store(n_events, Ordering::Relaxed);
        (all_done, n_events)
    }

    fn pace(&self) -> MutexGuard<'_, Pace> {
        self.pace.lock().expect("nothing panics with this lock held")
    }

    /// Runs all parts on the leader; returns `true` if no part has an event left in the window, and the number of events.
    fn run_alone(&self, window_end_ps: u64, max_events: u64) -> (bool, u64) {
        let each = self.parts.iter().map(|part| lock(part).run(window_end_ps, max_events));
        each.fold((true, 0), |all, one| (all.0 && one.0, all.1 + one.1))
    }

    /// Does the same as [`Crew::run_alone`] on all threads; each thread runs the parts that it can take.
    fn run_together(&self, window_end_ps: u64, max_events: u64) -> (bool, u64) {
        self.window_end_ps.store(window_end_ps, Ordering::Relaxed);
        self.max_events.store(max_events, Ordering::Relaxed);
        self.through.store(0, Ordering::Relaxed);
        self.n_events.store(0, Ordering::Relaxed);
        self.is_short.store(false, Ordering::Relaxed);
        let round = self.round.load(Ordering::Relaxed) + 1;
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
        self.wait_for(n_others);
        if let Some(panic) = self.panic.lock().expect("nothing panics with this lock held").take() {
            resume_unwind(panic);
        }
        all_done &= !self.is_short.load(Ordering::Relaxed);
        n_events += self.n_events.load(Ordering::Relaxed);
        (all_done, n_events)
    }

    /// Takes a part for a round; returns `false` if another thread has taken it.
    fn take(&self, number: usize, round: u64) -> bool {
        self.taken[number].fetch_max(round, Ordering::AcqRel) < round
    }

    /// Waits until `n_others` workers have finished their parts of the round.
    fn wait_for(&self, n_others: usize) {
        let are_through = || self.through.load(Ordering::Acquire) == n_others;
        if self.look(are_through) {
            return;
        }
        while !are_through() {
            std::thread::park_timeout(NAP);
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

    /// Starts the next round and wakes the workers.
    fn call(&self) {
        self.round.fetch_add(1, Ordering::Release);
        self.workers.get().into_iter().flatten().for_each(Thread::unpark);
    }

    /// Spins for a short while until `is_so` is true; returns its last value.
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

/// Guard that ends the workers when it is dropped.
struct Dismissal<'a, 'b>(&'b Crew<'a>);

impl Drop for Dismissal<'_, '_> {
    fn drop(&mut self) {
        self.0.is_dismissed.store(true, Ordering::Relaxed);
        self.0.call();
    }
}
