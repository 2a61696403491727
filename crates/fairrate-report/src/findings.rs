//! Findings of a comparison, in words. A difference is claimed only if the interval of the differences paired by seed
//! carries the claim; everything else is a number or a count.

use crate::bootstrap::{Difference, FEW, Interval};
use crate::comparison::{Better, Comparison, Value, by_seed, estimate, mean, pairs, rivals};
use crate::format;
use crate::metrics::{Metrics, PortMetrics, SIZE_BUCKETS};
use crate::stats::{Distribution, Percentile};
use crate::table;

/// Largest number of columns that a sentence names.
const MAX_NAMED: usize = 8;
/// Relative difference of means below which no column is called better, even if the intervals tell them apart (our
/// choice).
const NEAR: f64 = 0.01;

/// The findings of a comparison.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Findings {
    /// The sentences; empty if nothing is compared.
    pub sentences: Vec<String>,
    /// The basis of the claims, or the reason why there are none.
    pub note: String,
}

/// The number of a run.
type Number<'a> = Box<dyn Fn(&Metrics) -> Option<f64> + 'a>;

/// A number by which columns are compared.
struct Subject<'a> {
    name: String,
    better: Better,
    show: fn(f64) -> String,
    value: Number<'a>,
    /// Returns `true` if a run's number is a lower bound.
    is_bound: Box<dyn Fn(&Metrics) -> bool + 'a>,
}

/// Returns what a comparison says; `names` are the names of its columns' lines.
pub fn of(comparison: &Comparison, names: &[&str]) -> Findings {
    let metrics = &comparison.metrics;
    let groups: Vec<Vec<usize>> = rivals(metrics).into_iter().filter(|g| 1 < g.len()).collect();
    // One algorithm over a grid has no rival.
    if groups.is_empty() || names.iter().all(|name| *name == names[0]) {
        return Findings::default();
    }
    let is_grid = metrics.iter().any(|m| m.point != metrics[0].point);
    let has_seeds = FEW <= comparison.fewest_seeds();
    let subjects = subjects(metrics);
    let sentences = match (is_grid, has_seeds) {
        // Each point of a grid has a best column of its own.
        (true, true) => subjects.iter().filter_map(|s| over_grid(metrics, names, &groups, s)).collect(),
        (true, false) => Vec::new(),
        (false, true) => subjects.iter().filter_map(|s| claim(metrics, names, s)).collect(),
        (false, false) => subjects.iter().map(|s| numbers(metrics, names, s)).collect(),
    };
    let mut all: Vec<String> = sentences;
    if !is_grid {
        all.extend(facts(metrics, names));
    }
    let note = match comparison.fewest_seeds() {
        FEW.. => {
            "A difference is claimed where its 95 % interval, paired by seed, excludes zero, by the bootstrap and by Student's t. The \
             intervals are not corrected for their number."
        }
        0 | 1 => "One seed: these are numbers of single runs. Their order may be chance, so no difference is claimed.",
        _ => "Fewer than five seeds: no difference is claimed.",
    };
    Findings { note: if all.is_empty() { String::new() } else { note.to_owned() }, sentences: all }
}

/// Returns the numbers by which columns are compared: slowdowns of the traffic blocks that have names, or else of short
/// and of long flows, or rates if no flow finishes, and queues.
fn subjects(metrics: &[Metrics]) -> Vec<Subject<'_>> {
    let mut all: Vec<Subject<'_>> = Vec::new();
    let everywhere = |bucket: &str| metrics.iter().all(|m| m.bucket(bucket).is_some());
    let ends = [SIZE_BUCKETS[0].name, SIZE_BUCKETS[3].name];
    let sizes: Vec<&str> = ends.into_iter().filter(|bucket| everywhere(bucket)).collect();
    let blocks = named_blocks(metrics);
    let buckets = match (blocks.is_empty(), sizes.len()) {
        (false, _) => blocks,
        (true, 2) => sizes,
        _ => vec!["all sizes"],
    };
    all.extend(buckets.into_iter().filter(|bucket| everywhere(bucket)).map(|bucket| slowdown(metrics, bucket)));
    if all.is_empty() {
        let goodput: Value<'_> = &|m: &Metrics| Some(m.goodput_bps);
        all.push(plain("goodput of all flows", Better::Higher, format::rate, goodput));
        if metrics.iter().all(|m| m.jain.is_some()) {
            all.push(plain("Jain index of long flows", Better::Higher, |x| format!("{x:.3}"), &|m| m.jain));
        }
    }
    if let Some(port) = metrics.iter().find_map(main_port).map(|p| p.port.clone()) {
        let value =
            move |m: &Metrics| m.ports.iter().chain(&m.all_ports).find(|p| p.port == port).map(|p| p.qlen_p99_bytes);
        let ports = metrics.iter().find_map(main_port).map_or("", |p| p.port.as_str());
        let name = format!("99th percentile of the queue of {ports}");
        let (better, show) = (Better::Lower, format::bytes as fn(f64) -> String);
        all.push(Subject { name, better, show, value: Box::new(value), is_bound: Box::new(|_| false) });
    }
    all
}

/// Returns all probed ports together, or the only one.
fn main_port(m: &Metrics) -> Option<&PortMetrics> {
    m.main_port()
}

fn plain<'a>(name: &str, better: Better, show: fn(f64) -> String, value: Value<'a>) -> Subject<'a> {
    Subject { name: name.to_owned(), better, show, value: Box::new(value), is_bound: Box::new(|_| false) }
}

/// A statistic of a distribution.
pub(crate) type Pick = fn(&Distribution) -> Option<f64>;

/// Returns the highest percentile of the slowdown of `bucket` that is not the largest value under some seed, with its
/// words: the 99th, the 95th or the median.
pub(crate) fn percentile_of(metrics: &[Metrics], bucket: &str) -> (&'static str, Pick) {
    let of = |m: &Metrics| m.bucket(bucket).map(|b| b.slowdown.n);
    let flows = metrics.iter().flat_map(Metrics::seeds_alone).filter_map(of).min().unwrap_or(0);
    if Percentile::P99.least_flows() <= flows {
        ("99th percentile", |d| d.p99)
    } else if Percentile::P95.least_flows() <= flows {
        ("95th percentile", |d| d.p95)
    } else {
        ("median", |d| d.p50)
    }
}

/// Returns the traffic blocks that have names and flows in every column.
pub(crate) fn named_blocks(metrics: &[Metrics]) -> Vec<&str> {
    let shown = metrics.first().into_iter().flat_map(|m| &m.slowdown).filter(|b| b.is_shown && b.block.is_some());
    let everywhere = |bucket: &&str| metrics.iter().all(|m| m.bucket(bucket).is_some());
    shown.map(|block| block.bucket.as_ref()).filter(everywhere).collect()
}

/// Returns the slowdown of flows of a size or a block: the highest percentile that is not merely the slowest flow of
/// some seed.
fn slowdown<'a>(metrics: &[Metrics], bucket: &'a str) -> Subject<'a> {
    let of = move |m: &Metrics| m.bucket(bucket).map(|b| b.slowdown);
    let (percentile, pick) = percentile_of(metrics, bucket);
    let whose = match bucket {
        "<= 10 KB" => "flows up to 10 KB".to_owned(),
        "> 1 MB" => "flows above 1 MB".to_owned(),
        "all sizes" => "all flows".to_owned(),
        block => format!("flows of {block}"),
    };
    Subject {
        name: format!("{percentile} of the slowdown of {whose}"),
        better: Better::Lower,
        show: format::number,
        value: Box::new(move |m| of(m).as_ref().and_then(pick)),
        is_bound: Box::new(move |m| of(m).is_some_and(|d| pick(&d).is_some_and(|x| d.is_bound(x)))),
    }
}

/// The columns that have a number, seen from the best of them.
struct Standing {
    best: usize,
    /// Columns that cannot be told from the best one.
    tied: Vec<usize>,
    /// Columns that can, with their differences from it.
    behind: Vec<(usize, Difference)>,
}

/// Returns the standing of `columns`; `None` if fewer than two have the number, or the best one is a lower bound:
/// others may be better then.
fn standing(metrics: &[Metrics], columns: &[usize], subject: &Subject<'_>) -> Option<Standing> {
    let value = &*subject.value;
    let mut known: Vec<(usize, f64)> = columns.iter().filter_map(|&i| Some((i, mean(&metrics[i], value)?))).collect();
    known.sort_by(|a, b| a.1.total_cmp(&b.1));
    if subject.better == Better::Higher {
        known.reverse();
    }
    let ((best, _), others) = known.split_first()?;
    if others.is_empty() || has_bounds(metrics, *best, subject) {
        return None;
    }
    let base = by_seed(&metrics[*best], value);
    let (mut tied, mut behind) = (Vec::new(), Vec::new());
    for &(i, _) in others {
        let own = by_seed(&metrics[i], value);
        match Difference::of(&pairs(&own, &base)).filter(Difference::is_clear) {
            Some(difference) => behind.push((i, difference)),
            None => tied.push(i),
        }
    }
    Some(Standing { best: *best, tied, behind })
}

/// Returns sentences on the best column, those that cannot be told from it, how far the others are from it, and which
/// of them cannot be told from each other.
fn claim(metrics: &[Metrics], names: &[&str], subject: &Subject<'_>) -> Option<String> {
    let all: Vec<usize> = (0..metrics.len()).collect();
    let Standing { best, tied, behind } = standing(metrics, &all, subject)?;
    if behind.is_empty() {
        return Some(format!("By the {} no algorithm can be told from the best.", subject.name));
    }
    let is_near = |&i: &usize| {
        let ratio = mean(&metrics[i], &*subject.value)? / mean(&metrics[best], &*subject.value)?;
        Some((ratio - 1.0).abs() < NEAR && !has_bounds(metrics, i, subject))
    };
    if all.iter().filter_map(is_near).all(|near| near) {
        let number = shown(metrics, best, subject);
        return Some(format!(
            "By the {} all are within {:.0} % of {}: {number}.",
            subject.name,
            100.0 * NEAR,
            names[best]
        ));
    }
    let adjective = if subject.better == Better::Higher { "highest" } else { "lowest" };
    let head = format!("{} has the {adjective} {}: {}", names[best], subject.name, shown(metrics, best, subject));
    let also = listed(tied.iter().map(|i| names[*i]));
    let tie = if tied.is_empty() { String::new() } else { format!("; {also} cannot be told from it") };
    let others: Vec<usize> = tied.iter().copied().chain(behind.iter().map(|(i, _)| *i)).collect();
    let apart = apart(metrics, names, &others, subject);
    let without = all.iter().filter(|i| **i != best && !others.contains(i)).map(|i| names[*i]);
    let without = Some(listed(without)).filter(|names| !names.is_empty());
    let without = without.map_or_else(String::new, |names| format!(" There is no such number of {names}."));
    Some(format!("{head}{tie}. {}.{apart}{without}", distances(metrics, names, &behind, subject)))
}

/// Returns `true` if the number of column `i` is a lower bound under some seed.
fn has_bounds(metrics: &[Metrics], i: usize, subject: &Subject<'_>) -> bool {
    metrics[i].seeds_alone().iter().any(|m| (subject.is_bound)(m))
}

/// Returns how far the columns `behind` are from the best one, the nearest first; of many only the last one.
fn distances(metrics: &[Metrics], names: &[&str], behind: &[(usize, Difference)], subject: &Subject<'_>) -> String {
    let far = |(i, difference): &(usize, Difference)| {
        let at_least = if has_bounds(metrics, *i, subject) { "at least " } else { "" };
        match (difference.ratio, difference.ratio_interval) {
            (Some(ratio), Some(Interval { low, high })) => {
                let [ratio, low, high] = [ratio, low, high].map(format::number);
                format!("{at_least}{ratio} times as high [{low}, {high}]")
            }
            _ => shown(metrics, *i, subject),
        }
    };
    let last = behind.len() - 1;
    if MAX_NAMED < behind.len() {
        return format!("That of {} is {}; {last} others are in between", names[behind[last].0], far(&behind[last]));
    }
    let each = (0..).zip(behind).map(|(at, one)| {
        let head = if at == 0 { "That" } else { "that" };
        format!("{head} of {} is {}", names[one.0], far(one))
    });
    listed(each.collect::<Vec<_>>().iter().map(String::as_str))
}

/// Returns a sentence on the pairs among `columns` that cannot be told from each other; empty for a single column, or
/// for many.
fn apart(metrics: &[Metrics], names: &[&str], columns: &[usize], subject: &Subject<'_>) -> String {
    let series: Vec<Vec<(u64, f64)>> = columns.iter().map(|&i| by_seed(&metrics[i], &*subject.value)).collect();
    let all = (0..columns.len()).flat_map(|a| (a + 1..columns.len()).map(move |b| (a, b)));
    let is_open = |(a, b): &(usize, usize)| {
        // Of two lower bounds neither is known.
        let unknown = [*a, *b].into_iter().any(|at| has_bounds(metrics, columns[at], subject));
        unknown || !Difference::of(&pairs(&series[*b], &series[*a])).is_some_and(|d| d.is_clear())
    };
    let open: Vec<String> =
        all.filter(is_open).map(|(a, b)| format!("{} and {}", names[columns[a]], names[columns[b]])).collect();
    match (columns.len(), open.as_slice()) {
        (0 | 1, _) => String::new(),
        (n, _) if MAX_NAMED < n => String::new(),
        (_, []) => format!(" {} are told from each other.", listed(columns.iter().map(|i| names[*i]))),
        (_, [one]) => format!(" {one} cannot be told from each other."),
        _ => format!(" Not told from each other: {}.", open.join("; ")),
    }
}

/// Returns a sentence on the number of grid points at which each line is the best or cannot be told from it.
fn over_grid(metrics: &[Metrics], names: &[&str], groups: &[Vec<usize>], subject: &Subject<'_>) -> Option<String> {
    let standings: Vec<Standing> = groups.iter().filter_map(|group| standing(metrics, group, subject)).collect();
    if standings.is_empty() || standings.iter().all(|s| s.behind.is_empty()) {
        return None;
    }
    let mut lines: Vec<(&str, usize)> = Vec::new();
    for name in names {
        if !lines.iter().any(|(known, _)| known == name) {
            let leads = |s: &&Standing| std::iter::once(&s.best).chain(&s.tied).any(|i| names[*i] == *name);
            lines.push((name, standings.iter().filter(leads).count()));
        }
    }
    lines.sort_by_key(|(_, n)| std::cmp::Reverse(*n));
    let each = lines.iter().map(|(name, n)| format!("{name} at {n}")).collect::<Vec<_>>();
    let adjective = if subject.better == Better::Higher { "Highest" } else { "Lowest" };
    Some(format!(
        "{adjective} {}, or not told from it, of {} grid points: {}.",
        subject.name,
        standings.len(),
        listed(each.iter().map(String::as_str)),
    ))
}

/// Returns the numbers of all columns in their order, without a claim.
fn numbers(metrics: &[Metrics], names: &[&str], subject: &Subject<'_>) -> String {
    let one = |i: usize| format!("{} {}", names[i], shown(metrics, i, subject));
    let each: Vec<String> = (0..metrics.len()).map(one).collect();
    let mut name = subject.name.clone();
    name.replace_range(..1, &name[..1].to_uppercase());
    format!("{name}: {}.", listed(each.iter().map(String::as_str)))
}

/// Returns the number of a column with its interval.
fn shown(metrics: &[Metrics], i: usize, subject: &Subject<'_>) -> String {
    let bound = has_bounds(metrics, i, subject);
    let number = |e: crate::bootstrap::Estimate| table::with_interval((subject.show)(e.mean), e.interval, subject.show);
    table::bounded(estimate(&metrics[i], &*subject.value).map_or_else(|| "-".to_owned(), number), bound)
}

/// Returns sentences on what happened in the runs: flows that did not finish, ports that were paused, packets that were
/// dropped.
fn facts(metrics: &[Metrics], names: &[&str]) -> Vec<String> {
    let mut out = Vec::new();
    let all = |m: &Metrics| {
        let each = m.seeds_alone().iter().filter_map(Metrics::overall);
        each.fold((0, 0), |(unfinished, flows), d| (unfinished + d.n_bounds, flows + d.n))
    };
    let left = |i: usize| Some((names[i], all(&metrics[i]))).filter(|(_, (unfinished, _))| 0 < *unfinished);
    let count = |n: usize| format::count(n as f64);
    let left: Vec<String> = (0..metrics.len())
        .filter_map(left)
        .map(|(name, (unfinished, flows))| format!("{name} {} of {}", count(unfinished), count(flows)))
        .collect();
    if !left.is_empty() {
        out.push(format!(
            "Measured flows left unfinished, all seeds together: {}.",
            listed(left.iter().map(String::as_str))
        ));
    }
    out.extend(runs_with("PFC paused ports", metrics, names, |m| m.counts.pfc_pauses));
    out.extend(runs_with("Packets were dropped", metrics, names, |m| m.drops));
    out
}

/// Returns a sentence on the runs in which `count` is not zero; `None` if there are none.
fn runs_with(event: &str, metrics: &[Metrics], names: &[&str], count: fn(&Metrics) -> f64) -> Option<String> {
    let runs = |m: &Metrics| (m.seeds_alone().iter().filter(|run| 0.0 < count(run)).count(), m.seeds_alone().len());
    let (mut always, mut sometimes, mut never) = (Vec::new(), Vec::new(), Vec::new());
    for (m, name) in metrics.iter().zip(names) {
        match runs(m) {
            (0, _) => never.push((*name).to_owned()),
            (n, of) if n == of => always.push((*name).to_owned()),
            (n, of) => sometimes.push(format!("{n} of {of} of {name}")),
        }
    }
    let list = |names: &[String]| listed(names.iter().map(String::as_str));
    let mut parts = Vec::new();
    if !always.is_empty() {
        parts.push(format!("in all runs of {}", list(&always)));
    }
    if !sometimes.is_empty() {
        parts.push(format!("in {}", list(&sometimes)));
    }
    let happened = !parts.is_empty();
    if !never.is_empty() {
        parts.push(format!("in none of {}", list(&never)));
    }
    happened.then(|| format!("{event} {}.", parts.join(", ")))
}

/// Returns names as a list in prose.
fn listed<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let mut names: Vec<String> = names.map(str::to_owned).collect();
    if MAX_NAMED < names.len() {
        let more = names.len() - MAX_NAMED + 1;
        names.truncate(MAX_NAMED - 1);
        names.push(format!("{more} more"));
    }
    match names.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
        _ => names.concat(),
    }
}

#[cfg(test)]
mod tests;
