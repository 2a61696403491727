//! The cost of a meeting of threads, measured on this machine.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use super::crew::{Crew, Habits, Process, processors, spins_of};

/// Number of meetings that are timed of threads that are awake, and of threads that sleep.
const MEETINGS: [usize; 2] = [5_000, 100];

/// The cost of a meeting of the threads of a run: the time that a round without any work takes. It is nearly the least
/// of those that were measured: other programs on the machine delay the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Meeting {
    /// Number of threads.
    pub n_threads: usize,
    /// Number of threads with which it was measured: fewer, if the machine has fewer cores.
    pub n_measured: usize,
    /// Cost if all threads are awake.
    pub awake: Duration,
    /// Cost if one or more sleep, because they have waited longer than `spin`.
    pub asleep: Duration,
    /// Time for which a thread waits before it sleeps.
    pub spin: Duration,
}

impl Meeting {
    /// Measures the meetings of `n_threads` threads. If the machine has fewer cores, measures those of as many threads
    /// as it has cores, and adds as much for each further thread as for each one that was measured.
    pub fn measure(n_threads: usize) -> Self {
        let n_measured = n_threads.min(processors());
        let spin = time_of_spins(n_threads);
        if n_measured < 2 {
            return Self { n_threads, n_measured, awake: Duration::ZERO, asleep: Duration::ZERO, spin };
        }
        let n_through = AtomicUsize::new(0);
        let parts: Vec<_> =
            (0..n_measured).map(|part| Mutex::new(Idle { part, of: n_measured, n_through: &n_through })).collect();
        let habits = Habits::default();
        let [awake, asleep] = Crew::with(&parts, &habits, |crew| {
            [Duration::ZERO, 4 * spin].map(|pause| {
                let n = MEETINGS[usize::from(pause != Duration::ZERO)];
                let mut times: Vec<Duration> = (0..n).map(|_| time_of_meeting(crew, pause, &n_through)).collect();
                times.sort_unstable();
                times[n / 1_000]
            })
        });
        let more = |cost: Duration| cost * (n_threads - n_measured) as u32 / (n_measured as u32 - 1);
        Self { n_threads, n_measured, awake: awake + more(awake), asleep: asleep + more(awake), spin }
    }
}

/// Returns the time for which one of `n_threads` threads waits before it sleeps.
fn time_of_spins(n_threads: usize) -> Duration {
    let start = Instant::now();
    (0..spins_of(n_threads)).for_each(|_| std::hint::spin_loop());
    start.elapsed()
}

fn time_of_meeting(crew: &Crew<'_, Idle<'_>>, pause: Duration, n_through: &AtomicUsize) -> Duration {
    let ready = Instant::now();
    while ready.elapsed() < pause {
        std::hint::spin_loop();
    }
    n_through.store(0, Ordering::Relaxed);
    let start = Instant::now();
    crew.run_together(0, 0);
    start.elapsed()
}

/// A process without events. The first one waits for the others, since the leader would do what a thread has not begun.
struct Idle<'a> {
    part: usize,
    of: usize,
    n_through: &'a AtomicUsize,
}

impl Process for Idle<'_> {
    fn run(&mut self, _until_ps: u64, _max_events: u64) -> (bool, u64) {
        if self.part == 0 {
            while self.n_through.load(Ordering::Acquire) + 1 < self.of {
                std::hint::spin_loop();
            }
        } else {
            self.n_through.fetch_add(1, Ordering::Release);
        }
        (true, 0)
    }
}
