//! Flows of a run, and those among them that were sampled.

use std::cmp::Ordering;

use fairrate_results::{FlowRow, RateRow, Results, ResultsError};
use serde::Serialize;

/// Largest number of flows in memory, 56 bytes each.
pub const FLOWS_MAX: usize = 2 << 20;
/// Largest number of points of a flow's series.
const POINTS_MAX: usize = 1 << 18;

/// A flow.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Flow {
    /// Its number.
    pub id: u32,
    /// The node that sends.
    pub src: u32,
    /// The node that receives.
    pub dst: u32,
    /// Payload; absent if endless.
    pub bytes: Option<u64>,
    /// Time of the start.
    pub start_ns: u64,
    /// Time from start to the last byte at the receiver; absent if unfinished.
    pub fct_ns: Option<u64>,
    /// Its slowdown; absent if unfinished.
    pub slowdown: Option<f64>,
}

impl Flow {
    fn of(row: &FlowRow) -> Self {
        let FlowRow { id, src, dst, bytes, start_ns, fct_ns, slowdown, .. } = *row;
        Self { id, src, dst, bytes, start_ns, fct_ns, slowdown }
    }

    /// Returns `true` if it has started by `t_ns` and was not done before.
    fn is_active(&self, t_ns: u64) -> bool {
        self.start_ns <= t_ns && self.fct_ns.is_none_or(|fct_ns| t_ns <= self.start_ns.saturating_add(fct_ns))
    }
}

/// The flows of a run.
#[derive(Clone, Debug, Default)]
pub struct Flows {
    /// The flows, by number.
    all: Vec<Flow>,
    /// The number of flows in the table, which may be more.
    n_rows: usize,
}

/// The flows that are active at a time.
#[derive(Clone, Debug, Serialize)]
pub struct Active<'a> {
    /// Their number.
    pub n: usize,
    /// The first of them: those that take longest for their size first, and those that did not finish before them.
    pub flows: Vec<&'a Flow>,
    /// Flows of the run that are not in memory.
    pub left_out: usize,
}

/// A sampled flow over time.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Series {
    /// Times of the samples, in ns.
    pub t_ns: Vec<u64>,
    /// Pacing rate, in bit/s.
    pub rate_bps: Vec<u64>,
    /// Congestion window; absent if the algorithm has none.
    pub cwnd_bytes: Vec<Option<u64>>,
    /// Payload that the receiver has in order.
    pub delivered_bytes: Vec<u64>,
}

impl Flows {
    /// Reads the flows of `results`.
    ///
    /// # Errors
    /// If their table is damaged.
    pub fn read(results: &Results) -> Result<Self, ResultsError> {
        let mut flows = Self::default();
        results.each_flow(|row| {
            flows.n_rows += 1;
            if flows.all.len() < FLOWS_MAX {
                flows.all.push(Flow::of(&row));
            }
        })?;
        flows.all.sort_by_key(|flow| flow.id);
        Ok(flows)
    }

    /// Returns the flow with the number `id`.
    pub fn get(&self, id: u32) -> Option<&Flow> {
        self.all.binary_search_by_key(&id, |flow| flow.id).ok().map(|at| &self.all[at])
    }

    /// Returns the flows that are active at `t_ns`, up to `most` of them.
    pub fn active(&self, t_ns: u64, most: usize) -> Active<'_> {
        let mut flows: Vec<&Flow> = self.all.iter().filter(|flow| flow.is_active(t_ns)).collect();
        let n = flows.len();
        flows.sort_by(|a, b| by_slowdown(a, b).then(a.start_ns.cmp(&b.start_ns)).then(a.id.cmp(&b.id)));
        flows.truncate(most);
        Active { n, flows, left_out: self.n_rows - self.all.len() }
    }
}

/// Orders flows by slowdown, the largest first; unfinished ones are before all others.
fn by_slowdown(a: &Flow, b: &Flow) -> Ordering {
    let slowdown = |flow: &Flow| flow.slowdown.unwrap_or(f64::INFINITY);
    slowdown(b).total_cmp(&slowdown(a))
}

/// Reads the samples of the flow with the number `id`; without any, the series is empty.
///
/// # Errors
/// If their table is damaged.
pub fn series(results: &Results, id: u32) -> Result<Series, ResultsError> {
    let mut series = Series::default();
    let add = |series: &mut Series, row: RateRow| {
        series.t_ns.push(row.t_ns);
        series.rate_bps.push(row.rate_bps);
        series.cwnd_bytes.push(row.cwnd_bytes);
        series.delivered_bytes.push(row.delivered_bytes);
    };
    results.each_rate(|row| {
        if row.flow == id && series.t_ns.len() < POINTS_MAX {
            add(&mut series, row);
        }
    })?;
    Ok(series)
}
