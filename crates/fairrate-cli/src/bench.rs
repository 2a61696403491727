//! `fairrate bench`: the speed of parts of fairrate on this machine.

use std::process::ExitCode;
use std::time::Instant;

use fairrate_bench::allocate::{self, Settings};
use fairrate_bench::{kernels, predict, scenarios};
use serde::Serialize;

use crate::failure::Failure;
use crate::output;

const SCHEMA: &str = "fairrate.bench/1";

/// Arguments of `bench`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Jobs to measure [default: all but `allocate` and those that take minutes a run, `ft65536`]
    #[arg(long, value_name = "JOB,..", value_delimiter = ',',
          value_parser = clap::builder::PossibleValuesParser::new(jobs()))]
    job: Vec<String>,
    /// Algorithms, for jobs that simulate; `/tcp` behind a name: over TCP [default: powertcp,hpcc,dctcp,swift; without
    /// `--job` also rocc,perc,dctcp/tcp,ratemp/tcp,flowtune/tcp on `perm128` and `ws60`]
    #[arg(long, value_name = "NAME,..", value_delimiter = ',', value_parser = algorithm)]
    cc: Vec<String>,
    /// Numbers of threads of `allocate` [default: 1,2] and of jobs that simulate [default: 1]
    #[arg(long, value_name = "N,..", value_delimiter = ',', value_parser = clap::value_parser!(u16).range(1..=4096))]
    threads: Vec<u16>,
    /// Predict the speed-up on as many cores, for jobs that simulate: a run on one core in N parts measures the longest
    /// part of each window of simulated time. Runs on threads are timed beside it if `--threads` is given
    #[arg(long, value_name = "N,..", value_delimiter = ',', value_parser = clap::value_parser!(u16).range(1..=4096))]
    predict: Vec<u16>,
    /// Number of times each row is timed [default: 51, or 5 for jobs that simulate]
    #[arg(long, value_name = "R", value_parser = clap::value_parser!(u16).range(1..))]
    runs: Option<u16>,
    /// Print JSON in place of tables
    #[arg(long)]
    pub json: bool,
}

/// Returns the names of all jobs: the allocator, parts of a run, and scenarios.
fn jobs() -> impl Iterator<Item = &'static str> {
    ["allocate", "kernels"].into_iter().chain(scenarios::DEFAULT_JOBS).chain(scenarios::LONG_JOBS)
}

/// Reads the name of a registered algorithm that moves packets, perhaps with `/tcp` behind it.
fn algorithm(text: &str) -> Result<String, String> {
    let name = text.strip_suffix("/tcp").unwrap_or(text);
    if fairrate_bench::algorithms().any(|known| known == name) {
        Ok(text.to_owned())
    } else {
        Err("`fairrate list cc` has the names".to_owned())
    }
}

/// A task of the benchmark.
enum Task {
    Allocate,
    Kernels,
    Scenario(Box<scenarios::Case>),
}

/// The results of all tasks.
#[derive(Default)]
struct Measured {
    allocate: Vec<allocate::Row>,
    scenarios: Vec<scenarios::Row>,
    predictions: Vec<predict::Prediction>,
    kernels: Vec<kernels::Row>,
}

/// A row of a job on the allocator or on scenarios.
#[derive(Serialize)]
#[serde(untagged)]
enum AnyRow {
    Allocate(allocate::Row),
    Scenario(scenarios::Row),
}

#[derive(Serialize)]
struct BenchJson {
    schema: &'static str,
    rows: Vec<AnyRow>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    predictions: Vec<predict::Prediction>,
    kernels: Vec<kernels::Row>,
}

/// Runs all tasks and prints their results.
///
/// # Errors
/// If a scenario cannot be run.
pub fn run(args: &Args) -> Result<ExitCode, Failure> {
    // All scenarios are read before any is run.
    let tasks = tasks(args)?;
    let mut measured = Measured::default();
    for (i, task) in tasks.iter().enumerate() {
        eprint!("[{}/{}] {} ...", i + 1, tasks.len(), task.label());
        let start = Instant::now();
        measured.add(task, args)?;
        eprintln!(" {:.1} s", start.elapsed().as_secs_f64());
    }
    measured.print(args.json)?;
    Ok(ExitCode::SUCCESS)
}

fn tasks(args: &Args) -> Result<Vec<Task>, Failure> {
    let everything = args.job.is_empty();
    let default_jobs = || std::iter::once("kernels").chain(scenarios::DEFAULT_JOBS).map(str::to_owned).collect();
    let jobs = if everything { default_jobs() } else { args.job.clone() };
    let mut tasks = Vec::new();
    for job in &jobs {
        match job.as_str() {
            "allocate" => tasks.push(Task::Allocate),
            "kernels" => tasks.push(Task::Kernels),
            job => {
                let extra = everything && scenarios::EXTRA_JOBS.contains(&job);
                for cc in algorithms(&args.cc, extra) {
                    tasks.push(Task::Scenario(Box::new(scenarios::Case::new(job, &cc)?)));
                }
            }
        }
    }
    Ok(tasks)
}

/// Returns the algorithms `asked` for; if there are none, the default ones, and with `extra` also
/// [`scenarios::EXTRA_CC`].
fn algorithms(asked: &[String], extra: bool) -> Vec<String> {
    if !asked.is_empty() {
        return asked.to_vec();
    }
    let more: &[&str] = if extra { &scenarios::EXTRA_CC } else { &[] };
    scenarios::DEFAULT_CC.iter().chain(more).map(|&name| name.to_owned()).collect()
}

impl Task {
    fn label(&self) -> String {
        match self {
            Self::Allocate => "allocate".to_owned(),
            Self::Kernels => "kernels".to_owned(),
            Self::Scenario(case) => case.label(),
        }
    }
}

impl Measured {
    fn add(&mut self, task: &Task, args: &Args) -> Result<(), Failure> {
        let runs = |default| args.runs.map_or(default, usize::from);
        let threads = |default: &[usize]| match &args.threads {
            asked if asked.is_empty() => default.to_vec(),
            asked => asked.iter().map(|&n| usize::from(n)).collect(),
        };
        match task {
            Task::Allocate => {
                let threads = threads(&[1, 2]);
                self.allocate.extend(allocate::rows(&Settings { threads, runs: runs(kernels::DEFAULT_RUNS) }));
            }
            Task::Kernels => self.kernels.extend(kernels::rows(runs(kernels::DEFAULT_RUNS))?),
            Task::Scenario(case) => {
                let parts: Vec<usize> = args.predict.iter().map(|&n| usize::from(n)).collect();
                let threads = threads(if parts.is_empty() { &[1] } else { &[] });
                let (rows, predictions) = case.rows(&threads, &parts, runs(scenarios::DEFAULT_RUNS))?;
                self.scenarios.extend(rows);
                self.predictions.extend(predictions);
            }
        }
        Ok(())
    }

    fn print(self, json: bool) -> Result<(), Failure> {
        if json {
            let allocate = self.allocate.into_iter().map(AnyRow::Allocate);
            let rows = allocate.chain(self.scenarios.into_iter().map(AnyRow::Scenario)).collect();
            let (predictions, kernels) = (self.predictions, self.kernels);
            return output::print_json(&BenchJson { schema: SCHEMA, rows, predictions, kernels });
        }
        let sections = [
            (self.allocate.is_empty(), allocate::table(&self.allocate), allocate::LEGEND),
            (self.scenarios.is_empty(), scenarios::table(&self.scenarios), scenarios::LEGEND),
            (self.predictions.is_empty(), predict::table(&self.predictions), predict::LEGEND),
            (self.kernels.is_empty(), kernels::table(&self.kernels), kernels::LEGEND),
        ];
        let sections = sections.iter().filter(|(empty, ..)| !empty);
        let texts: Vec<String> = sections.map(|(_, table, legend)| format!("{table}\n{legend}")).collect();
        output::print(&texts.join("\n"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(job: &[&str], cc: &[&str], threads: &[u16]) -> Args {
        let owned = |list: &[&str]| list.iter().map(|&name| name.to_owned()).collect();
        Args {
            job: owned(job),
            cc: owned(cc),
            threads: threads.to_vec(),
            predict: Vec::new(),
            runs: Some(1),
            json: true,
        }
    }

    fn labels(args: &Args) -> Vec<String> {
        tasks(args).expect("a list of tasks").iter().map(Task::label).collect()
    }

    #[test]
    fn tasks_are_what_is_asked_for() {
        let all = labels(&args(&[], &[], &[]));
        assert_eq!(all.len(), 1 + 9 * 4 + 2 * 5);
        assert!(["kernels", "perm8192 swift", "ws60 flowtune/tcp"].iter().all(|&want| all.iter().any(|a| a == want)));
        assert!(!all.iter().any(|label| label == "allocate" || label.starts_with("ft65536")));
        let two = args(&["incast32", "kernels"], &["rocc", "dctcp/tcp"], &[]);
        assert_eq!(labels(&two), ["incast32 rocc", "incast32 dctcp/tcp", "kernels"]);
        assert_eq!(labels(&args(&["perm128"], &[], &[])).len(), 4);
        assert!(tasks(&args(&["allocate", "perm128"], &[], &[2])).is_ok());
        assert!(tasks(&args(&["perm128"], &["flowtune"], &[])).is_err());
    }
}
