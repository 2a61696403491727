//! Runs of cases, several at the same time.

use std::ops::RangeInclusive;

use fairrate_experiment::crew::{caught, in_parallel};

/// Returns the runs of `cases`: each case's number with each of its `seeds`.
pub fn of_cases<C>(cases: &[C], seeds: impl Fn(&C) -> RangeInclusive<u64>) -> Vec<(usize, u64)> {
    cases.iter().enumerate().flat_map(|(i, case)| seeds(case).map(move |seed| (i, seed))).collect()
}

/// Calls `measure` with the case and the seed of each of `runs`, in order, `jobs` at a time; a panic is the error of
/// its run. Returns the results of each case in the order of seeds.
pub fn measure<C: Sync, T: Send>(
    cases: &[C],
    runs: &[(usize, u64)],
    jobs: u64,
    measure: &(dyn Fn(&C, u64) -> Result<T, String> + Sync),
) -> Vec<Vec<Result<T, String>>> {
    let one = |k: usize| {
        let (i, seed) = runs[k];
        caught(|| measure(&cases[i], seed)).and_then(|result| result)
    };
    let results = in_parallel(runs.len(), jobs as usize, &|| false, &one);
    let mut done: Vec<_> = runs.iter().zip(results).collect();
    done.sort_by_key(|(run, _)| **run);
    let mut by_case: Vec<Vec<_>> = cases.iter().map(|_| Vec::new()).collect();
    for (&(i, _), result) in done {
        by_case[i].extend(result);
    }
    by_case
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_come_back_in_the_order_of_cases_and_seeds() {
        let cases = ["a", "b"];
        let mut runs = of_cases(&cases, |case| if *case == "a" { 1..=3 } else { 0..=1 });
        assert_eq!(runs, [(0, 1), (0, 2), (0, 3), (1, 0), (1, 1)]);
        runs.reverse();
        let name =
            |case: &&str, seed: u64| if seed == 2 { Err(format!("{case}2")) } else { Ok(format!("{case}{seed}")) };
        let ok = |text: &str| Ok(text.to_owned());
        let expected = [vec![ok("a1"), Err("a2".to_owned()), ok("a3")], vec![ok("b0"), ok("b1")]];
        assert_eq!(measure(&cases, &runs, 3, &name), expected);
    }

    #[test]
    fn a_panic_is_the_error_of_its_run() {
        let one = |(): &(), seed: u64| if seed == 2 { panic!("queue of {seed} is negative") } else { Ok(seed) };
        let runs = &measure(&[()], &of_cases(&[()], |()| 1..=3), 2, &one)[0];
        assert_eq!((&runs[0], &runs[2]), (&Ok(1), &Ok(3)));
        assert!(runs[1].as_ref().is_err_and(|cause| cause.contains("queue of 2 is negative")), "{runs:?}");
    }
}
