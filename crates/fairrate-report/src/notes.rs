//! Notes beside the tables of a comparison: the meaning of means, intervals, stars and bold values, and networks that
//! fell behind.

use crate::bootstrap::FEW;
use crate::comparison::Comparison;
use crate::completion::Completion;
use crate::format;
use crate::metric::Metric;
use crate::metrics::Metrics;
use crate::stats::Percentile;
use crate::table::{LARGEST, Table};

/// Largest number of columns that a note names.
const MAX_NAMED: usize = 8;

/// Returns a note on the meaning of bold values, or the reason why there are none; `None` for a single column.
pub fn bold(comparison: &Comparison) -> Option<String> {
    let note = match comparison.fewest_seeds() {
        _ if comparison.metrics.len() < 2 => return None,
        0..FEW => format!(
            "No value is bold: with fewer than {FEW} seeds no difference is told from chance. `--seeds 1..{FEW}` runs {FEW}."
        ),
        _ if comparison.seeds_agree() => "No value is bold: all seeds gave the same numbers, which say nothing about chance.".to_owned(),
        _ => "Bold: the value that is better than each other one of its row, or of its row and grid point. The 95 % interval of each \
              difference, paired by seed, excludes zero, by the bootstrap and by Student's t. Other rows have no bold value."
            .to_owned(),
    };
    Some(note)
}

/// Returns a note on percentiles that are the largest value, if one of the `tables` has any.
pub fn largest(tables: &[&Table]) -> Option<String> {
    let needs = |p: Percentile| format!("{} needs {}", p.name(), format::count(p.least_flows() as f64));
    let [p95, p99, p999] = Percentile::ALL.map(needs);
    tables.iter().any(|table| table.has_largest()).then(|| {
        format!("{LARGEST}: the largest value, as a seed has too few flows (or queries): {p95}, {p99}, {p999}.")
    })
}

/// Returns a note on the columns without a completion: of the traffic blocks that have names, or of those of the
/// metrics `asked`.
pub fn unfinished(comparison: &Comparison, asked: &[Metric]) -> Option<String> {
    let shown = |m: &'_ Metrics| -> Vec<Completion> {
        if asked.is_empty() {
            return m.completion.iter().filter(|c| c.is_shown).cloned().collect();
        }
        asked.iter().filter_map(|metric| metric.completion(m).cloned()).collect()
    };
    let of = |m: &Metrics| {
        let missing = |c: Completion| Some(format!("of {} under {}: {}", c.name, m.title, c.why_missing()?));
        shown(m).into_iter().filter_map(missing).collect::<Vec<_>>()
    };
    let mut each: Vec<String> = comparison.metrics.iter().flat_map(of).collect();
    if MAX_NAMED < each.len() {
        let more = each.len() - MAX_NAMED;
        each.truncate(MAX_NAMED);
        each.push(format!("{more} more"));
    }
    (!each.is_empty()).then(|| format!("No completion {}.", each.join("; ")))
}

/// Returns a note that names the columns in which goodput was not back after a failure; `None` if the metrics `asked`
/// are others.
pub fn unrecovered(comparison: &Comparison, asked: &[Metric]) -> Option<String> {
    let is_asked = asked.is_empty() || asked.iter().any(|metric| Metric::by_name("recovery", &[]) == Some(*metric));
    let of = |m: &Metrics| {
        let failed = || m.seeds_alone().iter().filter_map(|seed| seed.recovery_ns);
        let (never, all) = (failed().filter(|ns| ns.is_infinite()).count(), failed().count());
        let seeds = if all < 2 { String::new() } else { format!(" ({never} of {all} seeds)") };
        (0 < never).then(|| format!("{}{seeds}", m.title))
    };
    let each: Vec<String> = comparison.metrics.iter().filter_map(of).collect();
    let (shown, more) = each.split_at(each.len().min(MAX_NAMED));
    let rest = if more.is_empty() { String::new() } else { format!(" and {} more", more.len()) };
    (is_asked && !each.is_empty()).then(|| {
        format!(
            "No recovery: after the failure goodput did not come back to its level before under {}{rest}.",
            shown.join(", ")
        )
    })
}

/// Share of a run below which its measuring window is too short to tell something.
const SHORT: f64 = 0.01;

/// Returns a note on a measuring window that tells little: one that is less than a hundredth of the run, or one within
/// which the network carried much less than it was offered.
pub fn window(metrics: &[Metrics]) -> Option<String> {
    short(metrics).or_else(|| behind(metrics))
}

/// Returns a note on the first column whose measuring window is less than a hundredth of its run.
fn short(metrics: &[Metrics]) -> Option<String> {
    let of = |m: &Metrics| {
        let &(from, until) = m.windows_ns.first()?;
        let (window, run) = (until - from, m.sim_s * 1e9);
        // Ends of windows are whole nanoseconds.
        (window < SHORT * run).then_some((window, run, run - 1.0 <= until))
    };
    let (window, run, ends_with_run) = metrics.iter().find_map(of)?;
    let (is_empty, window, run) = (window <= 0.0, format::time_ns(window), format::time_ns(run));
    if is_empty {
        return Some(format!(
            "Nothing is measured: the run of {run} ended before its measuring window. Let `from` of `[measure]` be earlier, or the run last longer."
        ));
    }
    let why = if ends_with_run {
        "It ends with the run: let `from` of `[measure]` be earlier."
    } else {
        "It ends with the last start of a flow unless `[measure]` says otherwise; with `until = \"end\"` it ends with the run."
    };
    Some(format!(
        "The measuring window of {window} is a small part of the run of {run}: rates, queues and loads in it tell little. {why}"
    ))
}

/// Returns a note that names the algorithms under which the network carried much less than it was offered.
fn behind(metrics: &[Metrics]) -> Option<String> {
    let of = |m: &Metrics| {
        let tier = m.behind()?;
        let (links, carried) = (tier.links.replace('-', " "), format::percent(tier.carried));
        Some(format!("{carried} of the {} offered to {links} under {}", format::percent(tier.offered?), m.title))
    };
    let each: Vec<String> = metrics.iter().filter_map(of).collect();
    let (shown, more) = each.split_at(each.len().min(MAX_NAMED));
    let rest =
        if more.is_empty() { String::new() } else { format!(", and less than offered under {} more", more.len()) };
    (!each.is_empty()).then(|| {
        format!(
            "Far from steady state: within the measuring window the network carried {}{rest}. Let flows arrive for longer, \
             measure later (`[measure] from`), or lower the load.",
            shown.join(", ")
        )
    })
}

/// Returns notes on the means, intervals and differences over several seeds, a sentence or two each; none for one seed.
pub fn notes(comparison: &Comparison) -> Vec<String> {
    if !comparison.has_seeds() {
        return Vec::new();
    }
    let mut notes = vec![
        "Means over seeds and their 95 % bootstrap intervals; slowdowns are the mean of each seed's.".to_owned(),
        "Differences to the first column, or to the first one of the same grid point, paired by seed. *: the 95 % interval excludes zero, by the bootstrap and by Student's t."
            .to_owned(),
    ];
    let few = comparison.fewest_seeds();
    if comparison.seeds_agree() {
        notes.push("All seeds gave the same numbers: nothing that counts here is drawn at random.".to_owned());
    } else if few < FEW {
        let least = FEW;
        notes.push(format!("Fewer than {least} seeds: intervals are too narrow, and no difference gets a *."));
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_windows_are_said() {
        let of =
            |until_ns: f64| window(&[Metrics { windows_ns: vec![(0.0, until_ns)], sim_s: 5e-4, ..Metrics::default() }]);
        let note = of(1.0).expect("a nanosecond is short");
        assert!(note.starts_with("The measuring window of 1 ns is a small part of the run of 500"), "{note}");
        assert_eq!(of(5_000.0), None);
        assert!(note.contains("It ends with the last start of a flow"), "{note}");
        assert!(of(0.0).is_some_and(|note| note.starts_with("Nothing is measured: the run of 500")));
        let late = Metrics { windows_ns: vec![(499_000.0, 500_000.0)], sim_s: 5e-4, ..Metrics::default() };
        let note = window(&[late]).expect("a microsecond is short");
        assert!(note.ends_with("It ends with the run: let `from` of `[measure]` be earlier."), "{note}");
    }
}
