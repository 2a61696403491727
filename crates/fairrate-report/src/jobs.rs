//! Training jobs: the times of their iterations, and the shares of computation and communication in them.

use std::collections::BTreeMap;

use fairrate_results::{IterationRow, JobSummary};
use serde::Serialize;

use crate::collectives::{self, CollectiveMetrics, common, rows_of};
use crate::format;
use crate::metrics::Metrics;
use crate::model::{RunData, block_name};
use crate::stats;
use crate::table::{Row, Section, Table};

/// A training job of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Job {
    /// Number of its traffic block.
    pub block: u32,
    /// Number of ranks.
    pub ranks: u64,
    /// Number of iterations that were to come.
    pub planned: u64,
    /// The complete iterations, in order.
    pub iterations: Vec<JobIteration>,
}

/// A complete iteration.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct JobIteration {
    /// Its number, from 0.
    pub number: u32,
    /// Its time, in ns.
    pub time_ns: f64,
    /// Means over ranks, in ns: time in which a rank computes, ...
    pub compute_ns: f64,
    /// ... does not compute and takes part in a collective operation, ...
    pub exposed_ns: f64,
    /// ... does neither, and has a message to send or receive, ...
    pub pipeline_ns: f64,
    /// ... and does nothing of these.
    pub idle_ns: f64,
    /// The rank with the longest exposed communication, the name of its host, and the time in ns.
    pub most_exposed: (u32, String, f64),
}

/// The numbers of a training job. Over several seeds they are means.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct JobMetrics {
    /// Number of its traffic block, from 0.
    pub block: u32,
    /// The job in words.
    pub name: String,
    /// The parts of the name: the same in all columns, or not.
    #[serde(skip)]
    pub parts: Vec<String>,
    /// Iterations that were complete, and that were to come, over all runs.
    pub complete: usize,
    /// See `complete`.
    pub planned: usize,
    /// Time of an iteration, in ns, mean over the complete ones; `None` if there is none.
    pub time_ns: Option<f64>,
    /// The longest of these times, in ns.
    pub longest_ns: Option<f64>,
    /// Mean over ranks and iterations, in ns: time in which a rank computes, ...
    pub compute_ns: Option<f64>,
    /// ... does not compute and takes part in a collective operation, ...
    pub exposed_ns: Option<f64>,
    /// ... and does neither, and has a message to send or receive.
    pub pipeline_ns: Option<f64>,
}

/// Returns the jobs of a run from its summary and its rows; `host` returns the name of a node.
pub(crate) fn jobs(summaries: &[JobSummary], rows: &[IterationRow], host: impl Fn(u32) -> String) -> Vec<Job> {
    let job = |summary: &JobSummary| {
        let mut iterations: BTreeMap<u32, Vec<&IterationRow>> = BTreeMap::new();
        for row in rows.iter().filter(|row| row.group == summary.group) {
            iterations.entry(row.iteration).or_default().push(row);
        }
        let iteration = |(number, ranks): (u32, Vec<&IterationRow>)| {
            let mean = |of: fn(&IterationRow) -> u64| {
                ranks.iter().map(|row| of(row) as f64).sum::<f64>() / ranks.len().max(1) as f64
            };
            // The first of equal ones, as ranks are in order.
            let most = ranks.iter().rev().max_by_key(|row| row.exposed_ns)?;
            Some(JobIteration {
                number,
                time_ns: most.time_ns as f64,
                compute_ns: mean(|row| row.compute_ns),
                exposed_ns: mean(|row| row.exposed_ns),
                pipeline_ns: mean(|row| row.pipeline_ns),
                idle_ns: mean(|row| row.idle_ns),
                most_exposed: (most.rank, host(most.node), most.exposed_ns as f64),
            })
        };
        let iterations = iterations.into_iter().filter_map(iteration).collect();
        Job { block: summary.group, ranks: summary.ranks, planned: summary.iterations, iterations }
    };
    summaries.iter().map(job).collect()
}

/// Returns the numbers of all jobs over all runs, which are of one scenario.
pub(crate) fn metrics(runs: &[RunData]) -> Vec<JobMetrics> {
    let Some(first) = runs.first() else { return Vec::new() };
    let metrics = |job: &Job| {
        let same = || runs.iter().flat_map(|run| &run.jobs).filter(|other| other.block == job.block);
        let all: Vec<&JobIteration> = same().flat_map(|other| &other.iterations).collect();
        let mean = |of: fn(&JobIteration) -> f64| stats::mean_of(&all, of);
        JobMetrics {
            block: job.block,
            name: parts(first, job).concat(),
            parts: parts(first, job).to_vec(),
            complete: all.len(),
            planned: same().map(|other| other.planned as usize).sum(),
            time_ns: mean(|iteration| iteration.time_ns),
            longest_ns: all.iter().map(|iteration| iteration.time_ns).reduce(f64::max),
            compute_ns: mean(|iteration| iteration.compute_ns),
            exposed_ns: mean(|iteration| iteration.exposed_ns),
            pipeline_ns: mean(|iteration| iteration.pipeline_ns),
        }
    };
    first.jobs.iter().map(metrics).collect()
}

/// A number of metrics with its title.
type Headline = (String, Box<dyn Fn(&Metrics) -> Option<f64>>);

/// Returns the numbers of the first `most` collective operations and jobs that a report begins with.
pub(crate) fn headlines(metrics: &[Metrics], most: usize) -> Vec<Headline> {
    let collectives = metrics.iter().map(|m| m.collectives.as_slice()).max_by_key(|all| all.len()).unwrap_or_default();
    let of_collective = |collective: &CollectiveMetrics| -> Headline {
        let block = collective.block;
        let time = move |m: &Metrics| m.collectives.iter().find(|other| other.block == block)?.time_ns;
        (format!("Time of {}, mean", collectives::name_in(metrics, block)), Box::new(time))
    };
    let jobs = metrics.iter().map(|m| m.jobs.as_slice()).max_by_key(|jobs| jobs.len()).unwrap_or_default();
    let of_job = |job: &JobMetrics| {
        let of = |title: &str, value: fn(&JobMetrics) -> Option<f64>| -> Headline {
            let block = job.block;
            let of_block = move |m: &Metrics| value(m.jobs.iter().find(|other| other.block == block)?);
            (format!("{title} of {}, mean", name_in(metrics, block)), Box::new(of_block))
        };
        [of("Iteration", |job| job.time_ns), of("Exposed communication", |job| job.exposed_ns)]
    };
    collectives.iter().take(most).map(of_collective).chain(jobs.iter().take(most).flat_map(of_job)).collect()
}

/// Returns a job in words, part by part: the name of its block, and the ranks.
fn parts(run: &RunData, job: &Job) -> [String; 3] {
    [format!("{}: ", block_name(&run.blocks, job.block)), "training".to_owned(), format!(" on {} ranks", job.ranks)]
}

/// Returns the parts of the name of the job with the number `block` that are the same in all columns.
pub(crate) fn name_in(metrics: &[Metrics], block: u32) -> String {
    common(&metrics.iter().flat_map(|m| &m.jobs).filter(|job| job.block == block).map(|job| job.parts.as_slice()))
}

/// Returns the table of the iterations of a run: the first ones of each job, and the last; `None` if it has no job.
pub fn table(run: &RunData) -> Option<Table> {
    let columns = ["time", "compute", "exposed", "pipeline", "idle", "most exposed rank"].map(str::to_owned).to_vec();
    let row = |iteration: &JobIteration| {
        let (rank, host, exposed_ns) = &iteration.most_exposed;
        let times =
            [iteration.time_ns, iteration.compute_ns, iteration.exposed_ns, iteration.pipeline_ns, iteration.idle_ns];
        let most = format!("{rank} ({host}), {}", format::time_ns(*exposed_ns));
        let cells = times.iter().map(|&ns| format::time_ns(ns)).chain([most]).collect();
        Row { name: format!("iteration {}", iteration.number), cells, ..Row::default() }
    };
    let section = |job: &Job| Section {
        title: format!("{}; means over ranks", parts(run, job).concat()),
        rows: rows_of(&job.iterations, job.planned, columns.len(), row),
    };
    let sections: Vec<Section> = run.jobs.iter().map(section).collect();
    (!sections.is_empty()).then_some(Table { caption: String::new(), columns, sections })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_iteration_has_the_means_of_its_ranks() {
        let row = |rank, exposed_ns| IterationRow {
            group: 0,
            iteration: 0,
            rank,
            node: rank + 7,
            start_ns: 0,
            end_ns: 900,
            time_ns: 1_000,
            compute_ns: 600,
            exposed_ns,
            pipeline_ns: 300 - exposed_ns,
            idle_ns: 0,
        };
        let summary = JobSummary {
            group: 0,
            ranks: 2,
            operations: 9,
            iterations: 2,
            complete: 1,
            time_ns: None,
            compute_ns: None,
            exposed_ns: None,
            pipeline_ns: None,
        };
        let jobs = jobs(&[summary], &[row(0, 100), row(1, 300)], |node| format!("h{node}"));
        let run = RunData { jobs, blocks: vec![String::new()], ..RunData::default() };
        let all = metrics(std::slice::from_ref(&run));
        assert_eq!((all[0].complete, all[0].planned, all[0].time_ns, all[0].exposed_ns), (1, 2, Some(1e3), Some(2e2)));
        let mut wider = all[0].clone();
        wider.parts[2] = " on 4 ranks".to_owned();
        let columns = [all[0].clone(), wider].map(|job| Metrics { jobs: vec![job], ..Metrics::default() });
        assert_eq!(name_in(&columns[..1], 0), "traffic 0: training on 2 ranks");
        assert_eq!(name_in(&columns, 0), "traffic 0: training");
        let table = table(&run).expect("a job");
        assert_eq!(table.sections[0].title, "traffic 0: training on 2 ranks; means over ranks");
        let cells = table.sections[0].rows.iter().map(|row| row.cells.join(", ")).collect::<Vec<_>>();
        assert_eq!(cells, ["1.00 µs, 600 ns, 200 ns, 100 ns, 0 ns, 1 (h8), 300 ns", "-, -, -, -, -, -"]);
    }
}
