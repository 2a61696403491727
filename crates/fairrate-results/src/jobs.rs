//! Training jobs of a run: the rows of their operations and iterations, and what the summary says of them.

use fairrate_sim::{JobBook, JobIteration, JobSpec, OperationKind, PartOutcome, RankTimes, SimConfig, TaskOutcome};
use fairrate_units::Time;
use serde::{Deserialize, Serialize};

use crate::rows::{IterationRow, OperationRow};
use crate::summary::Quantiles;
use crate::value::ns;

/// A job, as in `summary.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JobSummary {
    /// Number of its `[[traffic]]` block.
    pub group: u32,
    /// Number of ranks.
    pub ranks: u64,
    /// Number of operations in all iterations.
    pub operations: u64,
    /// Number of iterations.
    pub iterations: u64,
    /// Number of iterations that were complete when the run ended.
    pub complete: u64,
    /// Time of an iteration, over the complete ones.
    pub time_ns: Option<Quantiles>,
    /// Mean over ranks and complete iterations of the time in which a rank computes, ...
    pub compute_ns: Option<f64>,
    /// ... does not compute and takes part in a collective operation, ...
    pub exposed_ns: Option<f64>,
    /// ... and does neither, and has a message to send or receive.
    pub pipeline_ns: Option<f64>,
}

/// The jobs of a run that goes on, and their iterations so far.
pub(super) struct Jobs {
    book: JobBook,
    complete: Vec<JobIteration>,
}

impl Jobs {
    /// Returns the jobs of a run that has not begun, if it has some.
    pub fn new(config: &SimConfig) -> Option<Self> {
        Some(Self { book: JobBook::new(config)?, complete: Vec::new() })
    }

    /// Notes a task that has ended; returns the row of the operation at a rank that ends with it, if one does, and the
    /// rows of the iterations that are complete by it.
    pub fn task(&mut self, outcome: &TaskOutcome) -> (Option<OperationRow>, Vec<IterationRow>) {
        let Some(part) = self.book.note(outcome) else { return (None, Vec::new()) };
        let complete = self.book.take_complete();
        let rows = complete.iter().flat_map(|iteration| self.rows(iteration)).collect();
        let row = self.row(&part);
        // The rows have what the ranks did.
        self.complete.extend(complete);
        (Some(row), rows)
    }

    fn spec(&self, job: usize) -> &JobSpec {
        self.book.specs().nth(job).expect("the job of an outcome")
    }

    fn row(&self, outcome: &PartOutcome) -> OperationRow {
        let spec = self.spec(outcome.job);
        let part = spec.parts[outcome.part];
        let operation = &spec.operations[part.operation as usize];
        let process_group = operation.process_group.map(|at| spec.groups[at as usize].name.as_str());
        OperationRow {
            group: spec.group,
            iteration: operation.iteration,
            operation: part.operation,
            rank: part.rank,
            node: spec.ranks[part.rank as usize].0,
            kind: spec.kind_name(outcome.part).to_owned().into(),
            name: spec.names[operation.name as usize].clone().into(),
            process_group: process_group.unwrap_or_default().to_owned().into(),
            bytes: (operation.kind != OperationKind::Compute).then_some(operation.bytes.as_u64()),
            start_ns: ns(outcome.start),
            end_ns: ns(outcome.end),
        }
    }

    fn rows(&self, iteration: &JobIteration) -> Vec<IterationRow> {
        let spec = self.spec(iteration.job);
        let row = |(rank, times): (u32, &RankTimes)| IterationRow {
            group: spec.group,
            iteration: iteration.iteration,
            rank,
            node: spec.ranks[rank as usize].0,
            start_ns: ns(times.start),
            end_ns: ns(times.end),
            time_ns: ns(iteration.end.saturating_sub(iteration.start)),
            compute_ns: ns(times.compute),
            exposed_ns: ns(times.exposed),
            pipeline_ns: ns(times.pipeline),
            idle_ns: ns(times.idle),
        };
        (0..).zip(&iteration.ranks).map(row).collect()
    }

    /// Returns the summaries.
    pub fn summaries(&self) -> Vec<JobSummary> {
        let of = |job: usize| self.complete.iter().filter(|iteration| iteration.job == job).collect::<Vec<_>>();
        self.book.specs().enumerate().map(|(job, spec)| JobSummary::of(spec, &of(job))).collect()
    }
}

impl JobSummary {
    /// Returns the summary of a job with these complete iterations.
    pub fn of(spec: &JobSpec, complete: &[&JobIteration]) -> Self {
        let mut times: Vec<f64> =
            complete.iter().map(|iteration| iteration.end.saturating_sub(iteration.start).as_ns_f64()).collect();
        let n = times.len();
        let mean = |of: fn(&RankTimes) -> Time| {
            let all = complete.iter().flat_map(|iteration| &iteration.ranks);
            (0 < n).then(|| all.map(|rank| of(rank).as_ns_f64()).sum::<f64>() / (n * spec.ranks.len()) as f64)
        };
        Self {
            group: spec.group,
            ranks: spec.ranks.len() as u64,
            operations: spec.operations.len() as u64,
            iterations: u64::from(spec.iterations),
            complete: n as u64,
            time_ns: Quantiles::of(&mut times),
            compute_ns: mean(|rank| rank.compute),
            exposed_ns: mean(|rank| rank.exposed),
            pipeline_ns: mean(|rank| rank.pipeline),
        }
    }
}
