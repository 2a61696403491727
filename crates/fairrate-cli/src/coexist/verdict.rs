//! The verdict of a study: its cases in a few sentences.

use std::collections::HashMap;
use std::fmt::Write as _;

use fairrate_report::bootstrap::Estimate;
use fairrate_report::format;
use fairrate_report::heat_map::Verdict;
use fairrate_report::stats;

use super::cases::{Kind, ShortCase};

/// A case with a buffer.
#[derive(Clone, Debug, Default)]
pub struct Case {
    /// Label of the case, as that of its variant.
    pub label: String,
    /// The buffer in words.
    pub point: String,
    /// The values of its metrics, one a seed, by names with the numbers of traffic blocks, as `fair-share:block0`.
    /// Seeds without such a number are left out.
    pub values: HashMap<String, Vec<f64>>,
}

impl Case {
    /// Returns the values of a metric.
    fn of(&self, metric: &str) -> &[f64] {
        self.values.get(metric).map_or(&[], Vec::as_slice)
    }

    /// Returns the mean of a metric and its interval; `None` without values.
    fn estimate(&self, metric: &str) -> Option<Estimate> {
        Estimate::of(self.of(metric))
    }

    /// Returns the mean of a metric.
    fn mean(&self, metric: &str) -> Option<f64> {
        stats::mean(self.of(metric)).filter(|mean| mean.is_finite())
    }

    fn name(&self) -> String {
        format!("{} {}", self.label, self.point)
    }
}

/// Returns the verdict on `cases` of the two algorithms with these block names.
pub fn verdict(blocks: &[String; 2], cases: &[Case]) -> String {
    let of = |kind: fn(&Kind) -> bool| cases.iter().filter(|case| kind(&Kind::of(&case.label))).collect::<Vec<_>>();
    let mut text = shares(blocks, &of(|kind| *kind == Kind::Together));
    text.push_str(&short_flows(&of(|kind| matches!(kind, Kind::Short(_)))));
    for (block, own) in [(0, &blocks[0]), (1, &blocks[1])] {
        let other = &blocks[1 - block];
        text.push_str(&changes(&of(|kind| *kind == Kind::Change), block, own, other));
    }
    text
}

/// Returns the sentences on shares where both are there all the time.
fn shares([name, other]: &[String; 2], cases: &[&Case]) -> String {
    let share = |case: &&Case| Some((case.name(), case.estimate("fair-share:block0")?));
    let mut shares: Vec<(String, Estimate)> = cases.iter().filter_map(share).collect();
    shares.sort_by(|a, b| a.1.mean.total_cmp(&b.1.mean));
    let (Some(least), Some(most)) = (shares.first(), shares.last()) else { return String::new() };
    let count = |verdict| shares.iter().filter(|(_, estimate)| Verdict::of(estimate) == verdict).count();
    let (less, fair, more) = (count(Verdict::Less), count(Verdict::Fair), count(Verdict::More));
    let all = shares.len();
    let head = if fair == all {
        format!("{name} and {other} share fairly (within 10 %) in all {all} cases.")
    } else {
        let undecided = match all - less - fair - more {
            0 => String::new(),
            n => format!("; in {n} the interval does not decide"),
        };
        format!(
            "Of {all} cases, {name} takes more than its share in {more} and less in {less}; {fair} are fair (within 10 %){undecided}."
        )
    };
    let case = |(case, share): &(String, Estimate)| format!("{} % ({case})", format::number(share.mean));
    format!("{head} A flow of {name} gets from {} to {} of a fair share.\n", case(least), case(most))
}

/// Returns the least and the largest of `values`, as `1.20 to 3.00`, or the only value.
fn range(values: &[f64], show: impl Fn(f64) -> String) -> Option<String> {
    let (low, high) = (values.iter().copied().reduce(f64::min)?, values.iter().copied().reduce(f64::max)?);
    let (low, high) = (show(low), show(high));
    Some(if low == high { low } else { format!("{low} to {high}") })
}

/// Returns a sentence for each algorithm and load of short flows, beside the long flows of the other algorithm and
/// beside its own.
fn short_flows(cases: &[&Case]) -> String {
    let mut text = String::new();
    let mut done: Vec<String> = Vec::new();
    for case in cases {
        let Kind::Short(about) = Kind::of(&case.label) else { continue };
        if about.short == about.long || done.contains(&case.label) {
            continue;
        }
        done.push(case.label.clone());
        let own = ShortCase { long: about.short.clone(), ..about.clone() }.label();
        let pairs = cases.iter().filter(|other| other.label == case.label).filter_map(|beside_other| {
            let beside_own = cases.iter().find(|c| c.label == own && c.point == beside_other.point)?;
            Some((*beside_other, *beside_own))
        });
        let pairs: Vec<(&Case, &Case)> = pairs.collect();
        let ratios = |metric: &str| -> Vec<f64> {
            pairs.iter().filter_map(|(other, own)| Some(other.mean(metric)? / own.mean(metric)?)).collect()
        };
        let means = |metric: &str| -> Vec<f64> { pairs.iter().filter_map(|(other, _)| other.mean(metric)).collect() };
        let ranges = (
            range(&means("slowdown-p99:block1"), format::number),
            range(&ratios("slowdown-p50:block1"), format::number),
            range(&ratios("slowdown-p99:block1"), format::number),
            range(&means("rest:block0"), format::number),
        );
        let (Some(p99), Some(p50_ratio), Some(p99_ratio), Some(rest)) = ranges else { continue };
        let _ = writeln!(
            text,
            "Short flows of {} ({}) beside long ones of {}: p99 slowdown {p99}, which is {p99_ratio} times that beside long flows of \
             their own (p50: {p50_ratio}); {} keeps {rest} % of the rest.",
            about.short, about.load, about.long, about.long
        );
    }
    text
}

/// Returns a sentence on the goodput of the block with the number `block`, called `own`, after `other` came and went.
fn changes(cases: &[&Case], block: usize, own: &str, other: &str) -> String {
    let part = |change: &str| {
        let level = format!("level-{change}:block{block}");
        let time = format!("settle-{change}:block{block}");
        let cases: Vec<&&Case> = cases.iter().filter(|case| !case.of(&level).is_empty()).collect();
        let settled: Vec<f64> = cases
            .iter()
            .filter(|case| case.of(&time).len() == case.of(&level).len())
            .filter_map(|case| case.mean(&time))
            .collect();
        let levels: Vec<f64> = cases.iter().filter_map(|case| case.mean(&level)).collect();
        let levels = range(&levels, format::number)?;
        let never = cases.len() - settled.len();
        let times = range(&settled, |us| format::time_ns(us * 1e3));
        let within = match (times, never) {
            (None, _) => format!("it does not settle within the run in any of {} cases", cases.len()),
            (Some(times), 0) => format!("it settles after {times}"),
            (Some(times), never) => {
                format!("it settles after {times}, and not within the run in {never} of {} cases", cases.len())
            }
        };
        Some(format!("{within}, at {levels} % of its share"))
    };
    let (Some(come), Some(go)) = (part("come"), part("go")) else { return String::new() };
    format!("{own}, when {other} comes: {come}. When {other} goes: {go}.\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn case(label: &str, values: &[(&str, &[f64])]) -> Case {
        let values = values.iter().map(|(name, values)| ((*name).to_owned(), values.to_vec())).collect();
        Case { label: label.to_owned(), point: "buffer=1KB".to_owned(), values }
    }

    fn names() -> [String; 2] {
        ["new".to_owned(), "old".to_owned()]
    }

    #[test]
    fn a_verdict_goes_by_intervals_and_names_the_extremes() {
        let share = |label: &str, values: &[f64]| case(label, &[("fair-share:block0", values)]);
        let cases = [
            share("1:1", &[95.0, 96.0, 97.0]),
            share("1:10", &[150.0, 150.0, 150.0]),
            share("10:1", &[20.0, 21.0, 19.0]),
            share("4:4", &[80.0, 140.0, 130.0]),
        ];
        assert_eq!(
            verdict(&names(), &cases),
            "Of 4 cases, new takes more than its share in 1 and less in 1; 1 are fair (within 10 %); in 1 the interval does not decide. \
             A flow of new gets from 20.0 % (10:1 buffer=1KB) to 150 % (1:10 buffer=1KB) of a fair share.\n"
        );
        assert!(verdict(&names(), &cases[..1]).starts_with("new and old share fairly (within 10 %) in all 1 cases."));
    }

    #[test]
    fn short_flows_are_held_against_those_beside_their_own() {
        let short = |label: &str, p50: f64, p99: f64| {
            let values: [(&str, &[f64]); 3] =
                [("slowdown-p50:block1", &[p50]), ("slowdown-p99:block1", &[p99]), ("rest:block0", &[90.0])];
            case(label, &values)
        };
        let cases = [short("short old beside new (30 %)", 2.0, 12.0), short("short old beside old (30 %)", 4.0, 8.0)];
        assert_eq!(
            verdict(&names(), &cases),
            "Short flows of old (30 %) beside long ones of new: p99 slowdown 12.0, which is 1.50 times that beside long flows of their own \
             (p50: 0.50); new keeps 90.0 % of the rest.\n"
        );
    }

    #[test]
    fn a_group_that_does_not_settle_says_so() {
        let change = |times: &[f64]| {
            let values: [(&str, &[f64]); 4] = [
                ("level-come:block0", &[80.0, 80.0]),
                ("settle-come:block0", times),
                ("level-go:block0", &[95.0, 95.0]),
                ("settle-go:block0", &[400.0, 800.0]),
            ];
            case("4:4, old comes and goes", &values)
        };
        assert_eq!(
            verdict(&names(), &[change(&[400.0])]),
            "new, when old comes: it does not settle within the run in any of 1 cases, at 80.0 % of its share. When old goes: it settles \
             after 600 µs, at 95.0 % of its share.\n"
        );
    }
}
