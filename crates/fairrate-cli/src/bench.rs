//! `fairrate bench`: how fast parts of fairrate are on this machine.

mod allocate;
mod fastpass;
mod scenarios;

use std::fmt::Write;
use std::process::ExitCode;
use std::time::Instant;

use fairrate_control::ALGORITHMS;
use serde::Serialize;

use crate::failure::Failure;
use crate::output;

const SCHEMA: &str = "fairrate.bench/1";

/// Arguments of `bench`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// What is measured
    #[arg(long, value_name = "JOB", value_parser = clap::builder::PossibleValuesParser::new(JOBS))]
    job: String,
    /// Algorithms, for jobs that simulate; `/tcp` behind a name: over TCP
    #[arg(long, value_name = "NAME,..", value_delimiter = ',', default_values_t = scenarios::DEFAULT_CC.map(String::from),
          value_parser = algorithm)]
    cc: Vec<String>,
    /// Numbers of threads, for jobs that can use several
    #[arg(long, value_name = "N,..", value_delimiter = ',', default_value = "1,2",
          value_parser = clap::value_parser!(u16).range(1..=4096))]
    threads: Vec<u16>,
    /// How often each row is timed [default: 51, or 5 for jobs that simulate]
    #[arg(long, value_name = "R", value_parser = clap::value_parser!(u16).range(1..))]
    runs: Option<u16>,
    /// Print JSON in place of a table
    #[arg(long)]
    json: bool,
}

/// What can be measured: the allocator, and scenarios.
const JOBS: [&str; 7] = ["allocate", "perm128", "perm432", "perm1024", "incast32", "incast128", "ws60"];

/// A registered algorithm that moves packets, perhaps with `/tcp` behind it.
fn algorithm(text: &str) -> Result<String, String> {
    let name = text.strip_suffix("/tcp").unwrap_or(text);
    let mut names = ALGORITHMS.iter().map(|a| a.name).filter(|name| *name != "ideal");
    if names.any(|known| known == name) {
        Ok(text.to_owned())
    } else {
        Err("`fairrate list cc` has the names".to_owned())
    }
}

/// How to measure.
struct Settings {
    threads: Vec<usize>,
    runs: usize,
}

/// A thing that was timed.
#[derive(Clone, Debug, Serialize)]
struct Row {
    job: &'static str,
    name: String,
    /// Servers of the network.
    nodes: u32,
    links: u32,
    flows: Option<u32>,
    /// Blocks of the network; FlowBlocks are the square of it.
    blocks: Option<u32>,
    /// Timeslots allocated at a time.
    batch: Option<u32>,
    threads: u32,
    /// An iteration, or a batch.
    us_median: f64,
    us_min: f64,
    us_max: f64,
    /// Time of all threads together.
    ns_per_flow_median: Option<f64>,
    ns_per_packet_median: Option<f64>,
    /// Traffic that a thread allocates, in terabits per second.
    tbps_per_core: Option<f64>,
    /// The largest difference from rates in double precision, relative to them.
    largest_error: Option<f64>,
}

#[derive(Serialize)]
struct BenchJson<R> {
    schema: &'static str,
    rows: Vec<R>,
}

/// Measures and prints.
///
/// # Errors
/// If a scenario cannot be run.
pub fn run(args: &Args) -> Result<ExitCode, Failure> {
    if let Some(text) = scenarios::text(&args.job) {
        let runs = args.runs.map_or(scenarios::DEFAULT_RUNS, usize::from);
        let rows = scenarios::rows(&args.job, &text, &args.cc, runs)?;
        print(args.json, rows, scenarios::table, scenarios::LEGEND);
    } else {
        let threads = args.threads.iter().map(|&n| usize::from(n)).collect();
        let settings = Settings { threads, runs: args.runs.map_or(51, usize::from) };
        print(args.json, allocate::rows(&settings), table, allocate::LEGEND);
    }
    Ok(ExitCode::SUCCESS)
}

fn print<R: Serialize>(json: bool, rows: Vec<R>, table: impl Fn(&[R]) -> String, legend: &str) {
    if json {
        output::print_json(&BenchJson { schema: SCHEMA, rows });
    } else {
        output::print(&format!("{}\n{legend}", table(&rows)));
    }
}

/// Numbers that are the same in every run.
struct Draws(u64);

impl Draws {
    fn below(&mut self, bound: u32) -> u32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) % u64::from(bound)) as u32
    }
}

/// How long each run should take at least, so that the clock's own time does not count.
const RUN_US: f64 = 500.0;

/// Microseconds that one call of `act` takes: median, smallest and largest of `runs` averages over half a millisecond.
fn time_us(runs: usize, mut act: impl FnMut()) -> [f64; 3] {
    let mut average_us = |calls: u32| {
        let start = Instant::now();
        (0..calls).for_each(|_| act());
        start.elapsed().as_secs_f64() * 1e6 / f64::from(calls)
    };
    // The first calls fill caches.
    average_us(20);
    let calls = (RUN_US / average_us(20).max(0.01)).clamp(1.0, 1e6) as u32;
    let mut times: Vec<f64> = (0..runs).map(|_| average_us(calls)).collect();
    median_min_max(&mut times)
}

/// Of at least one value.
fn median_min_max(values: &mut [f64]) -> [f64; 3] {
    values.sort_by(f64::total_cmp);
    [values[values.len() / 2], values[0], values[values.len() - 1]]
}

fn table(rows: &[Row]) -> String {
    let titles = [
        "name",
        "nodes",
        "flows",
        "blocks",
        "batch",
        "threads",
        "median us",
        "min",
        "max",
        "ns each",
        "Tb/s/core",
        "error",
    ];
    let texts = rows.iter().map(|row| {
        let count = |value: Option<u32>| value.map_or_else(|| "-".to_owned(), |count| count.to_string());
        let optional = |value: Option<f64>, text: fn(f64) -> String| value.map_or_else(|| "-".to_owned(), text);
        let hundredths = |value: f64| format!("{value:.2}");
        [
            row.name.clone(),
            row.nodes.to_string(),
            count(row.flows),
            count(row.blocks),
            count(row.batch),
            row.threads.to_string(),
            hundredths(row.us_median),
            hundredths(row.us_min),
            hundredths(row.us_max),
            optional(row.ns_per_flow_median.or(row.ns_per_packet_median), hundredths),
            optional(row.tbps_per_core, hundredths),
            optional(row.largest_error, |error| format!("{error:.0e}")),
        ]
    });
    aligned(&titles, texts)
}

/// Lines of fields under titles: the first column to the left, the others to the right.
fn aligned<const N: usize>(titles: &[&str; N], texts: impl Iterator<Item = [String; N]>) -> String {
    let lines: Vec<[String; N]> = std::iter::once(titles.map(str::to_owned)).chain(texts).collect();
    let widths: [usize; N] = std::array::from_fn(|i| lines.iter().map(|line| line[i].len()).max().unwrap_or(0));
    let mut text = String::new();
    for line in &lines {
        let _ = write!(text, "{:<1$}", line[0], widths[0]);
        for (field, width) in line[1..].iter().zip(&widths[1..]) {
            let _ = write!(text, "  {field:>width$}");
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned() {
        let row = Row {
            job: "allocate",
            name: "table".to_owned(),
            nodes: 384,
            links: 1_536,
            flows: Some(3_072),
            blocks: Some(1),
            batch: None,
            threads: 1,
            us_median: 6.0,
            us_min: 5.5,
            us_max: 123.456,
            ns_per_flow_median: Some(1.9531),
            ns_per_packet_median: None,
            tbps_per_core: Some(15.36),
            largest_error: None,
        };
        let expected = "name   nodes  flows  blocks  batch  threads  median us   min     max  ns each  Tb/s/core  error\n\
                        table    384   3072       1      -        1       6.00  5.50  123.46     1.95      15.36      -\n";
        assert_eq!(table(&[row]), expected);
    }

    #[test]
    fn times_are_in_order() {
        let mut calls = 0_u64;
        let [median, min, max] = time_us(5, || calls += 1);
        assert!(min <= median && median <= max && 45 <= calls);
    }
}
