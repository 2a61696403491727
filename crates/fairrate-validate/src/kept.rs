//! The committed runs that may stay in a table that others are added to: those that would come out the same today.

use std::collections::{BTreeMap, BTreeSet};

use fairrate_papers::Points;

/// Largest relative difference of equal numbers: committed ones have five digits.
const ROUNDING: f64 = 1.1e-4;

/// Checks the runs of `old` that `new` lacks: of each of their lines at least one run is in both, and all such runs
/// have the same numbers.
///
/// # Errors
/// Names the lines that were not run again, and those whose numbers have changed.
pub fn check(figure: &str, old: &Points, new: &Points) -> Result<(), String> {
    let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
    let (mut kept, mut moved) = (BTreeSet::new(), BTreeMap::new());
    for (run, line, seed, point) in old.iter() {
        let Some(again) = new.of_seed(run, line, seed) else {
            kept.insert(line);
            continue;
        };
        *seen.entry(line).or_default() += 1;
        let is_other = |(what, then): (&String, &f64)| {
            let now = again
                .numbers
                .get(what)
                .copied()
                .filter(|now| (now - then).abs() > ROUNDING * now.abs().max(then.abs()));
            now.map(|now| format!("`{what}` of `{run}` is {now}, and was {then}"))
        };
        if let Some(text) = point.numbers.iter().find_map(is_other) {
            moved.entry(line).or_insert(text);
        }
    }
    let mut faults = Vec::new();
    for line in kept {
        if let Some(text) = moved.get(line) {
            faults.push(format!("`{line}` has changed: {text}. Run all of it again"));
        } else if !seen.contains_key(line) {
            faults.push(format!("no run of `{line}` was repeated. Run one of it again"));
        }
    }
    if faults.is_empty() {
        return Ok(());
    }
    Err(format!(
        "{figure}: runs that the table has from earlier sources may not come out the same today\n  {}",
        faults.join("\n  ")
    ))
}

#[cfg(test)]
mod tests {
    use fairrate_papers::Point;

    use super::*;

    fn points(all: &[(&str, &str, u64, f64)]) -> Points {
        let mut points = Points::default();
        for &(run, line, seed, y) in all {
            points.add(run, line, Some(seed), Point::of([("queue", y)]));
        }
        points
    }

    #[test]
    fn a_line_that_is_kept_has_a_run_that_came_out_the_same() {
        let old = points(&[("n10", "rocc", 1, 5.0), ("n10", "rocc", 2, 6.0), ("n10", "hpcc", 1, 7.0)]);
        let said = |new: &[(&str, &str, u64, f64)]| check("rocc/fig8", &old, &points(new)).err();
        // All again, whatever comes out; and a run of each line as it was.
        assert_eq!(said(&[("n10", "rocc", 1, 1.0), ("n10", "rocc", 2, 2.0), ("n10", "hpcc", 1, 3.0)]), None);
        assert_eq!(said(&[("n10", "rocc", 2, 6.000_3), ("n10", "hpcc", 1, 3.0), ("n10", "new", 1, 3.0)]), None);
        let unseen = said(&[("n10", "rocc", 1, 5.0), ("n10", "rocc", 3, 5.0)]).expect("hpcc is kept");
        assert!(unseen.contains("no run of `hpcc`") && !unseen.contains("`rocc`"), "{unseen}");
        let moved = said(&[("n10", "rocc", 1, 5.1), ("n10", "hpcc", 1, 7.0)]).expect("rocc has changed");
        assert!(moved.contains("`rocc` has changed: `queue` of `n10` is 5.1, and was 5. Run all"), "{moved}");
    }
}
