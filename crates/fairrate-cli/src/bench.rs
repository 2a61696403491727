//! `fairrate bench`: how fast parts of fairrate are on this machine.

mod allocate;

use std::fmt::Write;
use std::process::ExitCode;
use std::time::Instant;

use serde::Serialize;

use crate::output;

const SCHEMA: &str = "fairrate.bench/1";

/// Arguments of `bench`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// What is measured
    #[arg(long, value_name = "JOB", value_parser = clap::builder::PossibleValuesParser::new(JOBS.map(|job| job.name)))]
    job: String,
    /// Numbers of threads, for jobs that can use several
    #[arg(long, value_name = "N,..", value_delimiter = ',', default_value = "1,2",
          value_parser = clap::value_parser!(u16).range(1..=4096))]
    threads: Vec<u16>,
    /// How often each row is timed
    #[arg(long, value_name = "R", default_value_t = 51, value_parser = clap::value_parser!(u16).range(1..))]
    runs: u16,
    /// Print JSON in place of a table
    #[arg(long)]
    json: bool,
}

/// Something that can be measured.
struct Job {
    name: &'static str,
    rows: fn(&Settings) -> Vec<Row>,
}

const JOBS: [Job; 1] = [Job { name: "allocate", rows: allocate::rows }];

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
    flows: u32,
    /// Blocks of the network; FlowBlocks are the square of it.
    blocks: u32,
    threads: u32,
    us_median: f64,
    us_min: f64,
    us_max: f64,
    /// Time of all threads together.
    ns_per_flow_median: Option<f64>,
    /// The largest difference from rates in double precision, relative to them.
    largest_error: Option<f64>,
}

#[derive(Serialize)]
struct BenchJson {
    schema: &'static str,
    rows: Vec<Row>,
}

/// Measures and prints.
pub fn run(args: &Args) -> ExitCode {
    let settings =
        Settings { threads: args.threads.iter().map(|&n| usize::from(n)).collect(), runs: usize::from(args.runs) };
    let rows = JOBS.iter().filter(|job| job.name == args.job).flat_map(|job| (job.rows)(&settings)).collect();
    if args.json {
        output::print_json(&BenchJson { schema: SCHEMA, rows });
    } else {
        output::print(&table(&rows));
    }
    ExitCode::SUCCESS
}

/// Microseconds that one call of `act` takes: median, smallest and largest of `runs` averages over half a millisecond.
fn time_us(runs: usize, mut act: impl FnMut()) -> [f64; 3] {
    const RUN_US: f64 = 500.0;
    let mut average_us = |calls: u32| {
        let start = Instant::now();
        (0..calls).for_each(|_| act());
        start.elapsed().as_secs_f64() * 1e6 / f64::from(calls)
    };
    // The first calls fill caches.
    average_us(20);
    let calls = (RUN_US / average_us(20).max(0.01)).clamp(1.0, 1e6) as u32;
    let mut times: Vec<f64> = (0..runs).map(|_| average_us(calls)).collect();
    times.sort_by(f64::total_cmp);
    [times[runs / 2], times[0], times[runs - 1]]
}

fn table(rows: &[Row]) -> String {
    let titles = ["name", "nodes", "flows", "blocks", "threads", "median us", "min", "max", "ns/flow", "error"];
    let texts = rows.iter().map(|row| {
        let optional = |value: Option<f64>, text: fn(f64) -> String| value.map_or_else(|| "-".to_owned(), text);
        let us = |value: f64| format!("{value:.2}");
        [
            row.name.clone(),
            row.nodes.to_string(),
            row.flows.to_string(),
            row.blocks.to_string(),
            row.threads.to_string(),
            us(row.us_median),
            us(row.us_min),
            us(row.us_max),
            optional(row.ns_per_flow_median, |ns| format!("{ns:.2}")),
            optional(row.largest_error, |error| format!("{error:.0e}")),
        ]
    });
    let lines: Vec<[String; 10]> = [titles.map(str::to_owned)].into_iter().chain(texts).collect();
    let widths: [usize; 10] = std::array::from_fn(|i| lines.iter().map(|line| line[i].len()).max().unwrap_or(0));
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
            flows: 3_072,
            blocks: 1,
            threads: 1,
            us_median: 6.0,
            us_min: 5.5,
            us_max: 123.456,
            ns_per_flow_median: Some(1.9531),
            largest_error: None,
        };
        let expected = "name   nodes  flows  blocks  threads  median us   min     max  ns/flow  error\n\
                        table    384   3072       1        1       6.00  5.50  123.46     1.95      -\n";
        assert_eq!(table(&[row]), expected);
    }

    #[test]
    fn times_are_in_order() {
        let mut calls = 0_u64;
        let [median, min, max] = time_us(5, || calls += 1);
        assert!(min <= median && median <= max && 45 <= calls);
    }
}
