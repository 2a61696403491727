//! `fairrate compare`: one workload under several algorithms.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use fairrate_control::{ALGORITHMS, AlgorithmConfig, Parameters, Profile};
use fairrate_report::metrics::Metrics;
use fairrate_report::model::{RunData, Variant};
use fairrate_report::table;
use fairrate_scenario::{Overrides, Scenario};
use serde::{Deserialize, Serialize};

use crate::drive::{self, End};
use crate::failure::{Failure, INTERRUPTED};
use crate::output;
use crate::progress::Board;
use crate::run::Sets;

/// Name of the schema of `compare.json`; a number that changes only when a field goes or changes its meaning.
const SCHEMA: &str = "fairrate.compare/1";

/// Arguments of `compare`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Scenario file
    #[arg(value_name = "SCENARIO.toml")]
    scenario: PathBuf,
    /// Algorithms; NAME:KEY=VALUE is a variant with another parameter, as in powertcp,powertcp:gamma=0.5
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', required = true)]
    cc: Vec<String>,
    /// Seeds, as 3 or 1..5 (both ends included) or 1,4,7 [default: the scenario's]
    #[arg(long, value_name = "SEEDS", value_parser = parse_seeds)]
    seeds: Option<Seeds>,
    #[command(flatten)]
    sets: Sets,
    /// Results directory [default: runs/NAME-compare]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Runs at the same time [default: one a core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    jobs: Option<u16>,
    /// Print compare.json in place of the table
    #[arg(long)]
    json: bool,
    /// No progress on stderr
    #[arg(long, short)]
    quiet: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Seeds(Vec<u64>);

fn parse_seeds(text: &str) -> Result<Seeds, String> {
    const MOST: u64 = 10_000;
    let number = |t: &str| t.trim().parse::<u64>().map_err(|_| format!("`{t}` is no seed; write 3, 1..5 or 1,4,7"));
    let mut seeds = Vec::new();
    for part in text.split(',') {
        let (first, last) = match part.split_once("..") {
            Some((a, b)) => (number(a)?, number(b.trim_start_matches('='))?),
            None => (number(part)?, number(part)?),
        };
        if last < first || MOST <= last - first {
            return Err(format!("`{part}` is no range of at most {MOST} seeds, lowest first"));
        }
        seeds.extend((first..=last).filter(|s| !seeds.contains(s)).collect::<Vec<_>>());
    }
    Ok(Seeds(seeds))
}

/// One column of the table: an algorithm, perhaps with other parameters than the scenario's.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Column {
    /// As written, which is its label and the name of its directories.
    label: String,
    cc: String,
    /// Keys below `[transport.CC]` and their values.
    params: Vec<(String, String)>,
}

/// Reads `NAME` or `NAME:KEY=VALUE:...`.
fn parse_column(text: &str) -> Result<Column, Failure> {
    let mut parts = text.split(':').map(str::trim);
    let cc = parts.next().unwrap_or_default().to_owned();
    let Some(defaults) = AlgorithmConfig::by_name(&cc, Profile::Paper) else {
        let known: Vec<&str> = ALGORITHMS.iter().map(|a| a.name).collect();
        return Err(Failure::unknown_name("algorithm", &cc, &known));
    };
    let names: Vec<&str> = defaults.params().iter().map(|p| p.name).collect();
    let mut params = Vec::new();
    for part in parts {
        let (key, value) = part.split_once('=').unwrap_or((part, ""));
        if !names.contains(&key) {
            return Err(Failure::unknown_name("parameter", key, &names));
        }
        params.push((key.to_owned(), value.to_owned()));
    }
    Ok(Column { label: text.trim().to_owned(), cc, params })
}

/// A run that is to be done.
struct Plan {
    label: String,
    /// Below the directory of the comparison.
    dir: String,
    scenario: Scenario,
}

/// `compare.json`: which runs there are, and the table's numbers.
#[derive(Debug, Serialize, Deserialize)]
pub struct Index {
    schema: String,
    scenario: String,
    runs: Vec<RunEntry>,
    #[serde(default, skip_deserializing)]
    metrics: Vec<Metrics>,
}

/// A run of a comparison.
#[derive(Debug, Serialize, Deserialize)]
struct RunEntry {
    label: String,
    cc: String,
    seed: u64,
    /// Below the directory of the comparison.
    dir: String,
    state: String,
    fingerprint: String,
}

/// Runs it.
pub fn run(args: &Args) -> Result<ExitCode, Failure> {
    let plans = plan(args)?;
    let dir =
        args.out.clone().unwrap_or_else(|| Path::new("runs").join(format!("{}-compare", plans[0].scenario.name())));
    output::check_dir(&dir)?;
    for plan in &plans {
        output::check_dir(&dir.join(&plan.dir))?;
    }
    drive::listen_for_interrupts();
    let ends = run_all(&plans, &dir, jobs(args.jobs, plans.len()), &Board::new(args.quiet));
    conclude(&plans, ends, &dir, args.json)
}

/// Every run, checked before the first one starts.
fn plan(args: &Args) -> Result<Vec<Plan>, Failure> {
    let mut columns: Vec<Column> = Vec::new();
    for text in &args.cc {
        let column = parse_column(text)?;
        if !columns.contains(&column) {
            columns.push(column);
        }
    }
    let seeds: Vec<Option<u64>> =
        args.seeds.as_ref().map_or_else(|| vec![None], |s| s.0.iter().copied().map(Some).collect());
    let mut plans = Vec::new();
    for column in &columns {
        for seed in &seeds {
            let mut sets = args.sets.pairs().to_vec();
            sets.extend(column.params.iter().map(|(k, v)| (format!("transport.{}.{k}", column.cc), v.clone())));
            let overrides = Overrides { sets, seed: *seed, cc: Some(column.cc.clone()) };
            let scenario = Scenario::load(&args.scenario, &overrides)?;
            let name = column.label.replace(|c: char| !(c.is_ascii_alphanumeric() || "-_.=".contains(c)), "-");
            let dir = match seed {
                Some(seed) if 1 < seeds.len() => format!("{name}-seed{seed}"),
                _ => name,
            };
            plans.push(Plan { label: column.label.clone(), dir, scenario });
        }
    }
    Ok(plans)
}

fn jobs(asked: Option<u16>, n_runs: usize) -> usize {
    let cores = || std::thread::available_parallelism().map_or(1, usize::from);
    asked.map_or_else(cores, usize::from).min(n_runs)
}

/// Does the runs, `jobs` at a time. A run that was not started because of Ctrl-C is `None`.
fn run_all(plans: &[Plan], dir: &Path, jobs: usize, board: &Board) -> Vec<Option<Result<End, Failure>>> {
    let next = AtomicUsize::new(0);
    let ends: Vec<Mutex<Option<Result<End, Failure>>>> = plans.iter().map(|_| Mutex::new(None)).collect();
    let work = || {
        while !drive::interrupted() {
            let Some(i) = Some(next.fetch_add(1, Ordering::Relaxed)).filter(|i| *i < plans.len()) else { return };
            let end = drive::drive(&plans[i].scenario, &plans[i].dir, &dir.join(&plans[i].dir), board);
            *ends[i].lock().expect("no thread panics with this lock held") = Some(end);
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..jobs {
            scope.spawn(work);
        }
    });
    ends.into_iter().map(|end| end.into_inner().expect("no thread panics with this lock held")).collect()
}

/// Writes and prints what the runs gave, each run's own report too.
fn conclude(
    plans: &[Plan],
    ends: Vec<Option<Result<End, Failure>>>,
    dir: &Path,
    json: bool,
) -> Result<ExitCode, Failure> {
    let (mut runs, mut entries, mut failure) = (Vec::new(), Vec::new(), None);
    for (plan, end) in plans.iter().zip(ends) {
        let place = dir.join(&plan.dir);
        match end {
            None => continue,
            Some(Err(error)) => {
                failure = Some(error);
                continue;
            }
            Some(Ok(End::Failed(cause))) => failure = Some(Failure::Run { cause, dir: place.clone() }),
            Some(Ok(End::Complete | End::Interrupted)) => {}
        }
        let data = output::load(&place, &plan.label)?;
        output::write_report(&place, vec![data.clone()])?;
        entries.push(RunEntry {
            label: plan.label.clone(),
            cc: data.cc.clone(),
            seed: data.seed,
            dir: plan.dir.clone(),
            state: data.state.clone(),
            fingerprint: data.provenance.fingerprint.clone(),
        });
        runs.push(data);
    }
    if !runs.is_empty() {
        let scenario = plans[0].scenario.name().to_owned();
        let index = Index { schema: SCHEMA.to_owned(), scenario, runs: entries, metrics: Vec::new() };
        publish(dir, index, runs, json)?;
    }
    match failure {
        Some(failure) => Err(failure),
        None if drive::interrupted() => Ok(ExitCode::from(INTERRUPTED)),
        None => Ok(ExitCode::SUCCESS),
    }
}

/// Writes compare.json and report.html and prints the table.
fn publish(dir: &Path, mut index: Index, runs: Vec<RunData>, json: bool) -> Result<(), Failure> {
    let variants = output::write_report(dir, runs)?;
    index.metrics = variants.iter().map(Metrics::of).collect();
    let text = serde_json::to_string_pretty(&index).map_err(|e| Failure::io("writing", dir, e))?;
    output::write(&dir.join("compare.json"), &(text + "\n"))?;
    if json {
        output::print_json(&index);
    } else {
        print_table(dir, &index, &variants);
    }
    Ok(())
}

fn print_table(dir: &Path, index: &Index, variants: &[Variant]) {
    let seeds: Vec<String> = variants[0].runs.iter().map(|r| r.seed.to_string()).collect();
    let table = table::comparison(&index.metrics).to_text(output::styled());
    let partial: Vec<String> =
        index.runs.iter().filter(|r| r.state != "complete").map(|r| format!("{} {}\n", r.dir, r.state)).collect();
    let report = dir.join("report.html");
    let head = format!("{}: seed {}", index.scenario, seeds.join(", "));
    output::print(&format!("{head}\n\n{table}\n{}report {}\n", partial.concat(), report.display()));
}

/// Reads the runs of a comparison that is already there, for `fairrate report`.
pub fn load(dir: &Path) -> Result<Vec<RunData>, Failure> {
    let path = dir.join("compare.json");
    let reading = |e: String| Failure::io("reading", &path, e);
    let text = std::fs::read_to_string(&path).map_err(|e| reading(e.to_string()))?;
    let index: Index = serde_json::from_str(&text).map_err(|e| reading(e.to_string()))?;
    index.runs.iter().map(|run| output::load(&dir.join(&run.dir), &run.label)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_come_alone_in_lists_and_in_ranges_with_both_ends() {
        let ok = |text| parse_seeds(text).unwrap().0;
        assert_eq!((ok("3"), ok("1..5"), ok("1,4,7")), (vec![3], vec![1, 2, 3, 4, 5], vec![1, 4, 7]));
        assert_eq!((ok("1..2,2..=3"), ok("0..0")), (vec![1, 2, 3], vec![0]));
        for wrong in ["", "a", "5..1", "1..", "-1", "0..99999999999"] {
            assert!(parse_seeds(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_column_is_a_name_and_its_changes() {
        let name = ALGORITHMS[0].name;
        assert_eq!(parse_column(name).unwrap(), Column { label: name.into(), cc: name.into(), params: vec![] });
        let column = parse_column("powertcp:gamma=0.5").unwrap();
        assert_eq!((column.cc.as_str(), column.params), ("powertcp", vec![("gamma".to_owned(), "0.5".to_owned())]));
        let error = parse_column("powertpc").unwrap_err();
        assert!(format!("{:?}", miette::Report::new(error)).contains("did you mean `powertcp`?"));
        assert!(parse_column("powertcp:gama=0.5").is_err());
    }
}
