//! Collective operations of a run: their rows, and what the summary says of them.

use fairrate_sim::{CollectiveBook, CollectiveSpec, FlowOutcome, FlowSpec, IterationOutcome, SimConfig};
use fairrate_units::Time;
use serde::{Deserialize, Serialize};

use crate::rows::CollectiveRow;
use crate::summary::Quantiles;
use crate::value::ns;

/// A collective operation, as in `summary.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CollectiveSummary {
    /// Number of its `[[traffic]]` block.
    pub group: u32,
    /// Name of the operation, as `all-reduce`.
    pub op: String,
    /// Number of ranks.
    pub ranks: u64,
    /// Bytes as nccl-tests count them.
    pub bytes: u64,
    /// Number of iterations.
    pub iterations: u64,
    /// Number of iterations that were complete when the run ended.
    pub complete: u64,
    /// Least time that links of this rate allow.
    pub ideal_ns: u64,
    /// Time of the slowest rank, over the complete iterations.
    pub time_ns: Option<Quantiles>,
    /// Mean of nccl-tests' `busbw` of these times.
    pub busbw_bytes_per_s: Option<f64>,
}

/// The collectives of a run that goes on, and the times of their iterations so far.
pub(super) struct Collectives {
    book: CollectiveBook,
    /// For each collective, the times of the slowest rank of its iterations.
    times: Vec<Vec<Time>>,
}

impl Collectives {
    /// Returns the collectives of a run that has not begun, if it has some.
    pub fn new(config: &SimConfig) -> Option<Self> {
        let book = CollectiveBook::new(config)?;
        let times = vec![Vec::new(); book.specs().len()];
        Some(Self { book, times })
    }

    /// Notes a message that is done; returns the rows of the iterations that it completes.
    pub fn flow(&mut self, flow: &FlowSpec, outcome: &FlowOutcome) -> Vec<CollectiveRow> {
        let outcomes = self.book.note(flow, outcome);
        for outcome in &outcomes {
            self.times[outcome.collective].extend(outcome.slowest().map(|(time, _)| time));
        }
        self.rows(&outcomes)
    }

    /// Returns the rows of the iterations that are under way at `end`.
    pub fn unfinished(&self, end: Time) -> Vec<CollectiveRow> {
        self.rows(&self.book.unfinished(end))
    }

    fn rows(&self, outcomes: &[IterationOutcome]) -> Vec<CollectiveRow> {
        let row = |outcome: &IterationOutcome, rank: usize| {
            let spec = self.book.specs().nth(outcome.collective).expect("the collective of an iteration");
            let (start, end) = outcome.ranks[rank];
            let time = end.map(|end| end.saturating_sub(start));
            let bandwidths = time.map(|time| spec.bandwidths(time));
            CollectiveRow {
                group: spec.group,
                iteration: outcome.iteration,
                rank: rank as u32,
                node: spec.ranks[rank].0,
                start_ns: ns(start),
                end_ns: end.map(ns),
                time_ns: time.map(ns),
                ideal_ns: ns(spec.bound),
                bytes: spec.bytes.as_u64(),
                algbw_bytes_per_s: bandwidths.map(|(algorithm, _)| algorithm),
                busbw_bytes_per_s: bandwidths.map(|(_, bus)| bus),
            }
        };
        outcomes.iter().flat_map(|outcome| (0..outcome.ranks.len()).map(move |rank| row(outcome, rank))).collect()
    }

    /// Returns the summaries.
    pub fn summaries(&self) -> Vec<CollectiveSummary> {
        self.book.specs().zip(&self.times).map(|(spec, times)| CollectiveSummary::of(spec, times)).collect()
    }
}

impl CollectiveSummary {
    /// Returns the summary of a collective whose iterations have taken `times`.
    pub fn of(spec: &CollectiveSpec, times: &[Time]) -> Self {
        let bandwidths = times.iter().map(|&time| spec.bandwidths(time).1).sum::<f64>();
        Self {
            group: spec.group,
            op: spec.op.name().to_owned(),
            ranks: spec.ranks.len() as u64,
            bytes: spec.bytes.as_u64(),
            iterations: u64::from(spec.iterations),
            complete: times.len() as u64,
            ideal_ns: ns(spec.bound),
            time_ns: Quantiles::of(&mut times.iter().map(|time| time.as_ns_f64()).collect::<Vec<_>>()),
            busbw_bytes_per_s: (!times.is_empty()).then(|| bandwidths / times.len() as f64),
        }
    }
}
