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

use super::meter::Work;
use super::pace::{Pace, Way};
use crate::core::Part;

/// Number of times a waiting thread checks its condition before it sleeps, if there is a core for each thread: with few
/// threads, and with [`MANY`] and more. A check takes some tens of nanoseconds, so the first is as long as waking up
/// takes. Most of many threads wait for the slowest one in every round, and one thread has to wake all of them.
const SPINS: [u32; 2] = [1_024, 4_096];
const MANY: usize = 4;

/// Time that the leader sleeps between two checks while it waits for the others.
const NAP: Duration = Duration::from_micros(200);

/// Work that one thread does at a time, in rounds.
pub(super) trait Process: Send {
    /// Processes at most `max_events` events before `until_ps`; returns `true` if none is left, and their number.
    fn run(&mut self, until_ps: u64, max_events: u64) -> (bool, u64);
}

impl Process for Part {
    fn run(&mut self, until_ps: u64, max_events: u64) -> (bool, u64) {
        Self::run(self, until_ps, max_events)
    }
}

/// Locks a process, which no other thread uses at this time.
pub(in crate::core) fn lock<P>(process: &Mutex<P>) -> MutexGuard<'_, P> {
    process.lock().expect("a part that panicked ends the run")
}

/// State of a crew that outlives it.
#[derive(Default)]
pub(super) struct Habits {
    /// Measurement that decides between all threads and the leader alone.
    pace: Mutex<Pace>,
    /// The measurement of each part, if one thread does all of them.
    pub(super) work: Option<Mutex<Work>>,
}

/// A value in cache lines of its own, so that a thread which looks at it is not disturbed by others that change what is
/// beside it. Processors fetch lines in pairs.
#[repr(align(128))]
struct Apart<T>(T);

/// The threads of a run, including the calling thread, which leads.
pub(super) struct Crew<'a, P> {
    parts: &'a [Mutex<P>],
    /// The current round.
    round: Apart<Round>,
    /// The last round for which a thread has taken each part.
    taken: Vec<Apart<AtomicU64>>,
    /// Number of workers that have finished the part they took.
    through: Apart<AtomicUsize>,
    /// The results of the last round, of the part of each worker.
    results: Vec<Apart<RoundResult>>,
    habits: &'a Habits,
    is_dismissed: AtomicBool,
    /// Number of workers that sleep, and `true` if the leader does. To wake a thread costs more than to ask if it
    /// sleeps.
    n_asleep: AtomicUsize,
    leader_sleeps: AtomicBool,
    /// The threads (`leader`, `workers`), and the number of checks of each before it sleeps (`spins`).
    leader: Thread,
    workers: OnceLock<Vec<Thread>>,
    spins: u32,
    /// The panic of a worker, if any.
    panic: Mutex<Option<Box<dyn Any + Send>>>,
}

/// A round of a crew: a window, or a piece of one.
#[derive(Default)]
struct Round {
    number: AtomicU64,
    window_end_ps: AtomicU64,
    max_events: AtomicU64,
}

/// The result of the part of a worker in a round: the number of events (`n_events`), and `true` if it has reached the
/// end of the window (`is_done`).
#[derive(Default)]
struct RoundResult {
    n_events: AtomicU64,
    is_done: AtomicBool,
}

impl RoundResult {
    fn note(&self, (is_done, n_events): (bool, u64)) {
        self.is_done.store(is_done, Ordering::Relaxed);
        self.n_events.store(n_events, Ordering::Relaxed);
    }
}

impl<'a, P: Process> Crew<'a, P> {
    /// Calls `work` with a crew for `parts`, which has the `habits` of the crew before.
    pub(super) fn with<T>(parts: &'a [Mutex<P>], habits: &'a Habits, work: impl FnOnce(&Self) -> T) -> T {
        let crew = Self {
            parts,
            round: Apart(Round::default()),
            taken: parts[1..].iter().map(|_| Apart(AtomicU64::new(0))).collect(),
            through: Apart(AtomicUsize::new(0)),
            results: parts[1..].iter().map(|_| Apart(RoundResult::default())).collect(),
            habits,
            is_dismissed: AtomicBool::new(false),
            n_asleep: AtomicUsize::new(0),
            leader_sleeps: AtomicBool::new(false),
            leader: std::thread::current(),
            workers: OnceLock::new(),
            // The number of cores is read from files, which a single thread can skip.
            spins: if 1 < parts.len() && parts.len() <= processors() { spins_of(parts.len()) } else { 0 },
            panic: Mutex::new(None),
        };
        if parts.len() == 1 || habits.work.is_some() {
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

    /// Processes the events of all parts before `window_end_ps`, at most `max_events` in each part and possibly fewer.
    /// Returns `true` if all parts have reached the end of the window, and the number of events.
    pub(super) fn run(&self, window_end_ps: u64, max_events: u64) -> (bool, u64) {
        if let Some(work) = &self.habits.work {
            return lock(work).round(|part, most| lock(&self.parts[part]).run(window_end_ps, most.min(max_events)));
        }
        if self.parts.len() == 1 {
            return self.run_alone(window_end_ps, max_events);
        }
        let start = Instant::now();
        let way = self.pace().way(self.parts.len(), start);
        let (all_done, n_events) = match way {
            Way::Together => self.run_together(window_end_ps, max_events),
            Way::Alone(most) => self.run_alone(window_end_ps, most.min(max_events)),
        };
        self.pace().note(way, start, start.elapsed(), (all_done, n_events));
        (all_done, n_events)
    }

    fn pace(&self) -> MutexGuard<'_, Pace> {
        self.habits.pace.lock().expect("nothing panics with this lock held")
    }

    /// Runs all parts on the leader; returns `true` if no part has an event left in the window, and the number of
    /// events.
    fn run_alone(&self, window_end_ps: u64, max_events: u64) -> (bool, u64) {
        let each = self.parts.iter().map(|part| lock(part).run(window_end_ps, max_events));
        each.fold((true, 0), |all, one| (all.0 && one.0, all.1 + one.1))
    }

    /// Does the same as [`Crew::run_alone`] on all threads; each thread runs the parts that it can take.
    pub(super) fn run_together(&self, window_end_ps: u64, max_events: u64) -> (bool, u64) {
        self.round.0.window_end_ps.store(window_end_ps, Ordering::Relaxed);
        self.round.0.max_events.store(max_events, Ordering::Relaxed);
        self.through.0.store(0, Ordering::Relaxed);
        let round = self.round.0.number.load(Ordering::Relaxed) + 1;
        self.call();
        let (mut all_done, mut n_events) = lock(&self.parts[0]).run(window_end_ps, max_events);
        let mut n_others = 0;
        for number in 1..self.parts.len() {
            if self.take(number, round) {
                self.results[number - 1].0.note(lock(&self.parts[number]).run(window_end_ps, max_events));
            } else {
                n_others += 1;
            }
        }
        self.wait_for(n_others);
        if let Some(panic) = self.panic.lock().expect("nothing panics with this lock held").take() {
            resume_unwind(panic);
        }
        for Apart(result) in &self.results {
            all_done &= result.is_done.load(Ordering::Relaxed);
            n_events += result.n_events.load(Ordering::Relaxed);
        }
        (all_done, n_events)
    }

    /// Takes the part of a worker for a round; returns `false` if another thread has taken it.
    fn take(&self, number: usize, round: u64) -> bool {
        self.taken[number - 1].0.fetch_max(round, Ordering::AcqRel) < round
    }

    /// Waits until `n_others` workers have finished their parts of the round.
    fn wait_for(&self, n_others: usize) {
        if self.look(|| self.through.0.load(Ordering::Acquire) == n_others) {
            return;
        }
        // These three and those in `work` have one order: either this thread sees the last worker's number, or that
        // worker sees that this thread sleeps.
        self.leader_sleeps.store(true, Ordering::SeqCst);
        while self.through.0.load(Ordering::SeqCst) != n_others {
            std::thread::park_timeout(NAP);
        }
        self.leader_sleeps.store(false, Ordering::SeqCst);
    }

    fn work(&self, number: usize) {
        let mut seen = 0;
        loop {
            if !self.look(|| self.round.0.number.load(Ordering::Acquire) != seen) {
                // As in `wait_for`: this thread sees the call, or the leader sees that it sleeps.
                self.n_asleep.fetch_add(1, Ordering::SeqCst);
                while self.round.0.number.load(Ordering::SeqCst) == seen {
                    std::thread::park();
                }
                self.n_asleep.fetch_sub(1, Ordering::SeqCst);
            }
            seen = self.round.0.number.load(Ordering::Acquire);
            if self.is_dismissed.load(Ordering::Relaxed) {
                return;
            }
            if !self.take(number, seen) {
                continue;
            }
            let Round { window_end_ps, max_events, .. } = &self.round.0;
            let (until, most) = (window_end_ps.load(Ordering::Relaxed), max_events.load(Ordering::Relaxed));
            match catch_unwind(AssertUnwindSafe(|| lock(&self.parts[number]).run(until, most))) {
                Ok(result) => self.results[number - 1].0.note(result),
                Err(panic) => *self.panic.lock().expect("nothing panics with this lock held") = Some(panic),
            }
            self.through.0.fetch_add(1, Ordering::SeqCst);
            if self.leader_sleeps.load(Ordering::SeqCst) {
                self.leader.unpark();
            }
        }
    }

    /// Starts the next round and wakes the workers, if any of them sleep.
    fn call(&self) {
        self.round.0.number.fetch_add(1, Ordering::SeqCst);
        if 0 < self.n_asleep.load(Ordering::SeqCst) {
            self.workers.get().into_iter().flatten().for_each(Thread::unpark);
        }
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

/// Returns the number of checks of a thread among `n_threads` before it sleeps.
pub(super) fn spins_of(n_threads: usize) -> u32 {
    SPINS[usize::from(MANY <= n_threads)]
}

pub(super) fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Guard that ends the workers when it is dropped.
struct Dismissal<'a, 'b, P: Process>(&'b Crew<'a, P>);

impl<P: Process> Drop for Dismissal<'_, '_, P> {
    fn drop(&mut self) {
        self.0.is_dismissed.store(true, Ordering::Relaxed);
        self.0.call();
    }
}
