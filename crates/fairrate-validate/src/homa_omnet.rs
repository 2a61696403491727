//! `cargo xtask validate homa-omnet`: compares HOMA with its authors' OMNeT++ code; `validation/homa-omnet/README.md`
//! describes the runs.
//!
//! The rule, committed before this command first ran. In a list of messages, a message is inside if ours is within 0.1
//! % of theirs, or theirs within the range of ours over 20 seeds: the paths of packets are random there and here. A
//! list has two rows: the mean of all messages, within 1 % or the range, and the number of messages outside, at most
//! one in twenty. In the workload, a row is the mean or the 99th percentile of the slowdown of the messages of some
//! size, within 3 and 10 %, or the range over five seeds. A slowdown is relative to our ideal time, for theirs and ours
//! alike.

use std::collections::BTreeMap;
use std::path::Path;

use fairrate_report::stats::{mean, percentile, sorted};
use fairrate_sim::{FlowOutcome, Recorder};
use fairrate_units::Time;
use serde::Deserialize;

use crate::csv::{self, Table};
use crate::rows::{Findings, Range, Row, Tolerance};
use crate::suite::{self, Options, Suite, key_and_value};
use crate::to_end::run_to_end;
use crate::{runs, show};

/// Largest difference of a message that is inside.
const SAME: Tolerance = Tolerance::relative(0.001);
/// Largest difference of the mean of a list.
const LIST_MEAN: Tolerance = Tolerance::relative(0.01);
/// Largest differences of the mean and the 99th percentile of a size.
const SIZE_MEAN: Tolerance = Tolerance::relative(0.03);
const SIZE_TAIL: Tolerance = Tolerance::relative(0.1);
/// Number of seeds of a list, and of the workload.
const LIST_SEEDS: u64 = 20;
const WORKLOAD_SEEDS: u64 = 5;

/// Bounds of the workload's sizes, from (excluded) to (included), in bytes.
const SIZES: [(&str, u64, u64); 9] = [
    ("up to 400 B", 0, 400),
    ("to 1442 B", 400, 1_442),
    ("to 9328 B", 1_442, 9_328),
    ("to 30 KB", 9_328, 30_000),
    ("to 100 KB", 30_000, 100_000),
    ("to 300 KB", 100_000, 300_000),
    ("to 1 MB", 300_000, 1_000_000),
    ("to 5 MB", 1_000_000, 5_000_000),
    ("above", 5_000_000, u64::MAX),
];

/// A list of messages, with the times that they took in the authors' code.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    name: String,
    /// Keys that differ from the scenario's, as for `--set`.
    #[serde(default)]
    set: Vec<String>,
    /// Set if messages are drawn at random, many of each size: their slowdowns are compared, and not each message.
    #[serde(default)]
    workload: bool,
    /// End of the run; by default all messages finish.
    duration: Option<String>,
}

/// Runs the validation. Returns `true` if every row is inside or in the file of findings.
pub fn run(root: &Path, options: &Options) -> Result<bool, String> {
    let dir = root.join("validation/homa-omnet");
    let suite: Suite<Case> = Suite::read(&dir)?;
    let scenario = (&*suite.scenario, &*suite.read_scenario(&dir)?);
    let findings = Findings::read(&dir.join("findings.toml"))?;
    let only = options.only.as_deref().unwrap_or("");
    let mut rows = Vec::new();
    let cases: Vec<&Case> = suite.case.iter().filter(|case| case.name.starts_with(only)).collect();
    let todo = runs::of_cases(&cases, |case| 1..=if case.workload { WORKLOAD_SEEDS } else { LIST_SEEDS });
    let measure = |case: &&Case, seed| simulate(&dir, scenario, case, seed, &options.set);
    for (case, runs) in cases.iter().zip(runs::measure(&cases, &todo, options.jobs, &measure)) {
        let theirs = read_times(&dir.join(format!("lists/{}.csv", case.name)))?;
        let ours = runs.into_iter().collect::<Result<Vec<_>, _>>().map_err(|e| format!("{}: {e}", case.name))?;
        rows.extend(if case.workload { sizes(case, &theirs, &ours) } else { messages(case, &theirs, &ours) });
    }
    if rows.is_empty() {
        return Err(format!("no case in validation/homa-omnet/suite.toml begins with `{only}`"));
    }
    findings.explain_all(&mut rows);
    Ok(show::finish(&rows, options.json))
}

/// Reads the times in the authors' code in nanoseconds; `None` for a message that did not finish.
fn read_times(path: &Path) -> Result<Vec<Option<f64>>, String> {
    let time = |row: csv::Row<'_>| Ok(row.number_if_any::<f64>("fct_ps")?.map(|ps| ps / 1e3));
    Table::read(path)?.rows().map(time).collect()
}

/// A message of ours: its size in bytes, its time and its ideal time in nanoseconds.
#[derive(Clone, Copy, Debug)]
struct Message {
    bytes: u64,
    time: Option<f64>,
    ideal: f64,
}

/// Runs a case with a seed; returns its messages in the order of the list.
fn simulate(
    dir: &Path,
    (file, text): (&str, &str),
    case: &Case,
    seed: u64,
    set: &[String],
) -> Result<Vec<Message>, String> {
    let mut sets: Vec<(String, String)> = case.set.iter().chain(set).filter_map(key_and_value).collect();
    sets.push(("traffic.0.path".to_owned(), format!("\"lists/{}.csv\"", case.name)));
    sets.push(("seed".to_owned(), seed.to_string()));
    sets.extend(case.duration.iter().map(|duration| ("duration".to_owned(), format!("\"{duration}\""))));
    let mut recorder = Recorder::default();
    let config = suite::configure(dir, file, text, sets)?;
    let sizes: Vec<u64> = config.flows.iter().map(|flow| flow.bytes.as_u64()).collect();
    let ended = run_to_end(config, &mut recorder)?;
    let mut outcomes = recorder.flows;
    outcomes.extend(ended.unfinished);
    outcomes.sort_by_key(|outcome| outcome.flow);
    let ns = |time: Time| time.as_ps() as f64 / 1e3;
    let message = |(bytes, outcome): (u64, &FlowOutcome)| Message {
        bytes,
        time: outcome.fct.map(ns),
        ideal: ns(outcome.ideal_fct),
    };
    Ok(sizes.into_iter().zip(&outcomes).map(message).collect())
}

/// Returns the rows of a list: its mean, and the number of messages outside.
fn messages(case: &Case, theirs: &[Option<f64>], ours: &[Vec<Message>]) -> Vec<Row> {
    let mean_us = |times: Vec<f64>| mean(&times).unwrap_or(f64::NAN) / 1e3;
    let means = ours.iter().map(|run| mean_us(run.iter().filter_map(|message| message.time).collect())).collect();
    let mean = row(case, "mean time", "us", (mean_us(theirs.iter().copied().flatten().collect()), means), LIST_MEAN);
    let is_outside = |i: usize| {
        let times = sorted(ours.iter().filter_map(|run| run[i].time));
        match (theirs[i], times.first(), times.last()) {
            (Some(theirs), Some(&low), Some(&high)) => {
                !(SAME.allows(theirs, low) || SAME.allows(theirs, high) || (low <= theirs && theirs <= high))
            }
            (None, None, None) => false,
            _ => true,
        }
    };
    let n_outside = (0..theirs.len()).filter(|&i| is_outside(i)).count() as f64;
    let allowed = Tolerance::absolute(theirs.len() as f64 / 20.0);
    vec![mean, row(case, "messages outside", "", (0.0, vec![n_outside]), allowed)]
}

/// Returns the rows of a workload: mean and 99th percentile of the slowdowns of each size.
fn sizes(case: &Case, theirs: &[Option<f64>], ours: &[Vec<Message>]) -> Vec<Row> {
    let slowdowns = |of: &dyn Fn(usize) -> Option<f64>| {
        let mut by_size: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
        for (i, message) in ours[0].iter().enumerate() {
            let size = SIZES.iter().position(|&(_, from, to)| from < message.bytes && message.bytes <= to).unwrap_or(0);
            by_size.entry(size).or_default().extend(of(i).map(|time| time / message.ideal));
        }
        by_size.into_values().map(sorted).collect::<Vec<_>>()
    };
    let reference = slowdowns(&|i| theirs[i]);
    let runs: Vec<Vec<Vec<f64>>> = ours.iter().map(|run| slowdowns(&|i| run[i].time)).collect();
    let mut rows = Vec::new();
    for (i, (reference, (name, ..))) in reference.iter().zip(SIZES).enumerate() {
        let over = |of: &dyn Fn(&[f64]) -> Option<f64>| {
            let value = |values: &[f64]| of(values).unwrap_or(f64::NAN);
            (value(reference), runs.iter().map(|run| value(&run[i])).collect())
        };
        rows.push(row(case, &format!("slowdown {name}, mean"), "", over(&mean), SIZE_MEAN));
        rows.push(row(case, &format!("slowdown {name}, p99"), "", over(&|v| percentile(v, 0.99)), SIZE_TAIL));
    }
    rows
}

fn row(case: &Case, metric: &str, unit: &'static str, (theirs, ours): (f64, Vec<f64>), tolerance: Tolerance) -> Row {
    Row::of((&case.name, "homa"), (metric, unit), (theirs, &sorted(ours)), Some(tolerance), Range::Counts)
}
