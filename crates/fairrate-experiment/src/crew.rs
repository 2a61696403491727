//! A crew of threads, which does the runs of an experiment: longest first, and the failure of one does not stop the
//! others.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A planned run, whose result is a `T`.
#[derive(Clone, Debug)]
pub struct Planned<T> {
    /// The result, if the run was done before: see [`cache`](crate::cache).
    pub known: Option<T>,
    /// Runs of a higher priority begin first: the seconds that a run took before, or infinite if that is not known.
    pub priority: f64,
}

/// The result of a run, or the cause of its failure; `None` if the crew was stopped before.
pub type Done<T> = Option<Result<T, String>>;

/// Does those runs of `plan` whose results are not known, `jobs` at a time, until `stop` returns `true`: calls `one`
/// with the number of the run, and `ended` with its result. A panic in `one` is a failure of its run. No two calls of
/// `ended` overlap. Returns the results in the order of the plan.
pub fn work<T: Send>(
    plan: Vec<Planned<T>>,
    jobs: usize,
    stop: &(dyn Fn() -> bool + Sync),
    one: &(dyn Fn(usize) -> Result<T, String> + Sync),
    ended: &mut (dyn FnMut(usize, &Result<T, String>) + Send),
) -> Vec<Done<T>> {
    let mut open: Vec<usize> = (0..plan.len()).filter(|i| plan[*i].known.is_none()).collect();
    open.sort_by(|a, b| plan[*b].priority.total_cmp(&plan[*a].priority));
    let ended = Mutex::new(ended);
    let results = in_parallel(open.len(), jobs, stop, &|k| {
        let result = caught(|| one(open[k])).and_then(|result| result);
        (ended.lock().expect("no thread panics with this lock held"))(open[k], &result);
        result
    });
    let mut all: Vec<Done<T>> = plan.into_iter().map(|run| run.known.map(Ok)).collect();
    for (i, result) in open.into_iter().zip(results) {
        all[i] = result;
    }
    all
}

/// Calls `f`. If it panics, returns the text of the panic as the failure of a run: a broken invariant then fails this
/// run, not the others of an experiment.
///
/// # Errors
/// If `f` panics.
pub fn caught<T>(f: impl FnOnce() -> T) -> Result<T, String> {
    let describe = |payload: Box<dyn Any + Send>| {
        let text = payload.downcast_ref::<&str>().map(|s| (*s).to_owned());
        let text = text.or_else(|| payload.downcast_ref::<String>().cloned()).unwrap_or_default();
        format!("fairrate broke one of its own invariants; please report it with the scenario ({text})")
    };
    catch_unwind(AssertUnwindSafe(f)).map_err(describe)
}

/// Calls `one` for `0..n` in order, `jobs` at a time, until `stop` returns `true`. The results of calls that were not
/// begun are `None`.
pub fn in_parallel<T: Send>(
    n: usize,
    jobs: usize,
    stop: &(dyn Fn() -> bool + Sync),
    one: &(dyn Fn(usize) -> T + Sync),
) -> Vec<Option<T>> {
    let next = AtomicUsize::new(0);
    let done: Vec<Mutex<Option<T>>> = (0..n).map(|_| Mutex::new(None)).collect();
    let work = || {
        while !stop() {
            let Some(i) = Some(next.fetch_add(1, Ordering::Relaxed)).filter(|i| *i < n) else { return };
            *done[i].lock().expect("no thread panics with this lock held") = Some(one(i));
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..jobs.min(n) {
            scope.spawn(work);
        }
    });
    done.into_iter().map(|d| d.into_inner().expect("no thread panics with this lock held")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(priorities: &[f64]) -> Vec<Planned<usize>> {
        priorities.iter().map(|&priority| Planned { known: None, priority }).collect()
    }

    #[test]
    fn everything_is_done_once_whatever_the_number_of_threads() {
        for jobs in [1, 3, 100] {
            let got = in_parallel(10, jobs, &|| false, &|i| i * i);
            assert_eq!(got, (0..10).map(|i| Some(i * i)).collect::<Vec<_>>());
        }
    }

    #[test]
    fn nothing_new_begins_after_a_stop() {
        let count = AtomicUsize::new(0);
        let stop = || 3 <= count.load(Ordering::Relaxed);
        let one = |i| {
            count.fetch_add(1, Ordering::Relaxed);
            Ok(i)
        };
        let got = work(plan(&[f64::INFINITY; 10]), 1, &stop, &one, &mut |_, _| {});
        assert_eq!(got[..4], [Some(Ok(0)), Some(Ok(1)), Some(Ok(2)), None]);
    }

    #[test]
    fn a_panic_in_one_run_is_its_own_failure() {
        let one = |i: usize| if i == 1 { panic!("queue of {i} is negative") } else { Ok(i) };
        let got = work(plan(&[f64::INFINITY; 3]), 2, &|| false, &one, &mut |_, _| {});
        assert_eq!((&got[0], &got[2]), (&Some(Ok(0)), &Some(Ok(2))));
        let Some(Err(cause)) = &got[1] else { panic!("it failed") };
        assert!(cause.contains("invariants") && cause.ends_with("(queue of 1 is negative)"), "{cause}");
    }

    #[test]
    fn the_longest_begins_first_and_what_is_known_is_not_done_again() {
        let mut plan = plan(&[1.0, 3.0, f64::INFINITY, 2.0]);
        plan[1].known = Some(7);
        let mut order = Vec::new();
        let got = work(plan, 1, &|| false, &|i| Ok(i), &mut |i, _| order.push(i));
        assert_eq!(order, [2, 3, 0]);
        assert_eq!(got.into_iter().flatten().flatten().collect::<Vec<_>>(), [0, 7, 2, 3]);
    }
}
