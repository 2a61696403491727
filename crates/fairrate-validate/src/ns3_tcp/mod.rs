//! `cargo xtask validate ns3-tcp`: compares TCP with mainline ns-3's, over a dumbbell; `validation/ns3-tcp/README.md`
//! describes the runs.
//!
//! The rule, written down before the first measurement: a number of ours is inside if it is within 5 % of ns-3's, or if
//! ns-3's lies within the range of ours. ns-3 ran once, and most of these networks are chaotic: a start that is a
//! packet's time later gives a different run. So the range is that of 20 runs whose flows start up to one packet's time
//! later, at random, and whose losses are drawn anew; a single flow without losses runs once. A number outside needs a
//! cause in `findings.toml`.
//!
//! Pairs of algorithms have the same rule. Of ns-3's runs, whose flows start at random times, the mean is compared: the
//! first algorithm's part of the goodput, the goodput of both, the mean queue, the drops and the marks of the run.
//! There are five runs of ours, with other random starts: their range is narrower than that of 20, and so is the rule.

mod simulate;
mod tables;

use std::collections::BTreeMap;
use std::path::Path;

use clap::Args;
use fairrate_report::stats::sorted;

use self::tables::{Case, Metric};
use crate::rows::{Findings, Range, Row, Tolerance, Verdict};
use crate::{runs, show};

/// Tolerance for the difference between ours and ns-3's.
const ALLOWED: Tolerance = Tolerance::relative(0.05);
/// Number of runs of a chaotic case.
const DRAWS: u64 = 20;
/// Number of runs of a pair.
const DRAWS_OF_PAIR: u64 = 5;

/// End of the text of a cause whose reproduction in our simulator makes a row inside.
const COMES_BACK: &str = "it comes back";
/// Start of the text of a row whose cause was looked for in vain; the rest says what was tried.
const NOT_FOUND: &str = "no cause found";

/// Options of `validate ns3-tcp`.
#[derive(Args)]
pub struct Options {
    /// Only runs whose name starts with this, as `S5`, `P1` or `S1_1G50us_bbr`
    #[arg(long, value_name = "RUN")]
    only: Option<String>,
    /// Rows as JSON on stdout
    #[arg(long)]
    json: bool,
    /// Simulations at the same time
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u64).range(1..))]
    jobs: u64,
}

/// Runs the validation. Returns `true` if every row is inside or has a cause.
pub fn run(root: &Path, options: &Options) -> Result<bool, String> {
    let dir = root.join("validation/ns3-tcp");
    let only = options.only.as_deref().unwrap_or("");
    let cases: Vec<Case> = tables::load(&dir)?.into_iter().filter(|case| case.run.starts_with(only)).collect();
    if cases.is_empty() {
        return Err(format!("no run in validation/ns3-tcp/runs.csv begins with `{only}`"));
    }
    let findings = Findings::read(&dir.join("findings.toml"))?;
    let mut rows: Vec<Vec<Row>> = Vec::new();
    for (case, runs) in cases.iter().zip(measure_all(&dir, &cases, &[], options.jobs)) {
        rows.push(compare(case, &runs?));
    }
    explain(&dir, &cases, &mut rows, &findings, options.jobs)?;
    let rows: Vec<Row> = rows.into_iter().flatten().collect();
    if options.json {
        println!("{:#}", serde_json::json!({ "rows": rows }));
    } else {
        show::rows(&rows);
        let count = |verdict| rows.iter().filter(move |row| row.verdict == verdict);
        let (explained, open): (Vec<&Row>, Vec<&Row>) = count(Verdict::Outside).partition(|row| row.cause.is_some());
        let (in_vain, found): (Vec<&Row>, Vec<&Row>) =
            explained.into_iter().partition(|row| row.cause.as_ref().is_some_and(|c| c.starts_with(NOT_FOUND)));
        let inside = count(Verdict::Inside).count();
        let back = found.iter().filter(|row| row.cause.as_ref().is_some_and(|c| c.ends_with(COMES_BACK))).count();
        println!(
            "\nrows: {inside} inside, {} outside without a cause, {} outside with one ({back} are inside with it), {} outside \
             whose cause was not found",
            open.len(),
            found.len(),
            in_vain.len(),
        );
    }
    Ok(rows.iter().all(|row| row.verdict != Verdict::Outside || row.cause.is_some()))
}

/// Sets the causes of rows that are outside. If a cause can be reproduced in our simulator, runs it, and adds the
/// result to the text.
fn explain(dir: &Path, cases: &[Case], rows: &mut [Vec<Row>], findings: &Findings, n_jobs: u64) -> Result<(), String> {
    let find = |row: &Row| findings.explain(&row.scenario, &row.algorithm, &row.metric);
    for (case, rows) in cases.iter().zip(rows) {
        let outside = || rows.iter().filter(|row| row.verdict == Verdict::Outside).filter_map(find);
        let mut sets: Vec<Vec<String>> = outside().map(|f| f.set.clone()).filter(|set| !set.is_empty()).collect();
        sets.sort();
        sets.dedup();
        let mut changed: BTreeMap<Vec<String>, Vec<Row>> = BTreeMap::new();
        for set in sets {
            let runs = measure_all(dir, std::slice::from_ref(case), &set, n_jobs).remove(0)?;
            changed.insert(set, compare(case, &runs));
        }
        for (i, row) in rows.iter_mut().enumerate().filter(|(_, row)| row.verdict == Verdict::Outside) {
            let Some(finding) = find(row) else { continue };
            let again = changed.get(&finding.set).map(|rows| &rows[i]);
            row.cause = Some(match again.and_then(|row| row.ours.zip(Some(row.verdict))) {
                Some((ours, verdict)) => {
                    let back =
                        if verdict == Verdict::Inside { COMES_BACK } else { "that alone does not bring it back" };
                    format!("{}; with {} ours is {ours:.1}: {back}", finding.cause, finding.set.join(", "))
                }
                None => finding.cause.clone(),
            });
        }
    }
    Ok(())
}

type Numbers = BTreeMap<Metric, f64>;

/// Runs every case as often as it needs, with the keys in `set` changed. Returns for each case all its runs, or the
/// first error.
fn measure_all(dir: &Path, cases: &[Case], set: &[String], n_jobs: u64) -> Vec<Result<Vec<Numbers>, String>> {
    let n_draws = |case: &Case| match &case.beside {
        Some(_) => DRAWS_OF_PAIR,
        None if case.is_chaotic() => DRAWS,
        None => 1,
    };
    let todo = runs::of_cases(cases, |case| 0..=n_draws(case) - 1);
    let measured = runs::measure(cases, &todo, n_jobs, &|case, draw| simulate::measure(dir, case, draw, set));
    let of_case = |(case, runs): (&Case, Vec<Result<Numbers, String>>)| {
        runs.into_iter().collect::<Result<_, _>>().map_err(|e| format!("{}: {e}", case.run))
    };
    cases.iter().zip(measured).map(of_case).collect()
}

/// Returns the rows of a case.
fn compare(case: &Case, ours: &[Numbers]) -> Vec<Row> {
    let row = |(&metric, &ns3): (&Metric, &f64)| {
        let values = sorted(ours.iter().map(|numbers| numbers[&metric]));
        let tolerance = Some(ALLOWED).filter(|_| !metric.is_context());
        let (names, metric) = ((&*case.run, &*case.algorithm()), (metric.name(), metric.unit()));
        Row::of(names, metric, (ns3, &values), tolerance, Range::Counts)
    };
    case.measured.iter().map(row).collect()
}
