//! Collective operations: the times of their iterations, by operation and one by one.

use std::collections::BTreeMap;

use fairrate_results::{CollectiveRow, CollectiveSummary};
use serde::Serialize;

use crate::format;
use crate::metrics::Metrics;
use crate::model::{RunData, block_name, own_name};
use crate::stats;
use crate::table::{Row, Section, Table};

/// Largest number of iterations that a table shows one by one.
const MOST_ROWS: usize = 20;

/// A collective operation of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Collective {
    /// Number of its traffic block.
    pub block: u32,
    /// The operation, as `all-reduce`.
    pub op: String,
    /// Number of ranks.
    pub ranks: u64,
    /// Bytes as nccl-tests count them.
    pub bytes: u64,
    /// Number of iterations that were to come.
    pub planned: u64,
    /// Least time that links allow, in ns.
    pub ideal_ns: f64,
    /// The complete iterations, in order.
    pub iterations: Vec<Iteration>,
}

/// A complete iteration.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Iteration {
    /// Its number, from 0.
    pub number: u32,
    /// Time of the slowest rank, in ns.
    pub time_ns: f64,
    /// The slowest rank, and the name of its host.
    pub slowest: (u32, String),
    /// nccl-tests' `busbw` of that time, in bytes per second.
    pub busbw: f64,
}

/// The numbers of a collective operation. Over several seeds they are means.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct CollectiveMetrics {
    /// Number of its traffic block, from 0.
    pub block: u32,
    /// The operation with its ranks and bytes, and the block's name if it has one.
    pub name: String,
    /// The parts of the name: the same in all columns, or not.
    #[serde(skip)]
    pub parts: Vec<String>,
    /// Iterations that were complete, and that were to come, over all runs.
    pub complete: usize,
    /// See `complete`.
    pub planned: usize,
    /// Time of the slowest rank, in ns, mean over the complete iterations; `None` if there is none.
    pub time_ns: Option<f64>,
    /// The longest of these times, in ns.
    pub longest_ns: Option<f64>,
    /// Mean of nccl-tests' `busbw`, in bytes per second.
    pub busbw_bytes_per_s: Option<f64>,
    /// Least time that links allow, in ns.
    pub ideal_ns: f64,
}

/// Returns the collectives of a run from its summary and its rows; `host` returns the name of a node.
pub(crate) fn collectives(
    summaries: &[CollectiveSummary],
    rows: &[CollectiveRow],
    host: impl Fn(u32) -> String,
) -> Vec<Collective> {
    let collective = |summary: &CollectiveSummary| {
        let mut iterations: BTreeMap<u32, Vec<&CollectiveRow>> = BTreeMap::new();
        for row in rows.iter().filter(|row| row.group == summary.group) {
            iterations.entry(row.iteration).or_default().push(row);
        }
        let iteration = |(number, ranks): (u32, Vec<&CollectiveRow>)| {
            // The first of equal ones, as ranks are in order.
            let slowest = ranks.iter().rev().max_by_key(|row| row.time_ns)?;
            let time_ns = ranks.iter().all(|row| row.time_ns.is_some()).then_some(slowest.time_ns?)?;
            Some(Iteration {
                number,
                time_ns: time_ns as f64,
                slowest: (slowest.rank, host(slowest.node)),
                busbw: slowest.busbw_bytes_per_s?,
            })
        };
        Collective {
            block: summary.group,
            op: summary.op.clone(),
            ranks: summary.ranks,
            bytes: summary.bytes,
            planned: summary.iterations,
            ideal_ns: summary.ideal_ns as f64,
            iterations: iterations.into_iter().filter_map(iteration).collect(),
        }
    };
    summaries.iter().map(collective).collect()
}

/// Returns the numbers of all collectives over all runs, which are of one scenario.
pub(crate) fn metrics(runs: &[RunData]) -> Vec<CollectiveMetrics> {
    let Some(first) = runs.first() else { return Vec::new() };
    let metrics = |collective: &Collective| {
        let same = || runs.iter().flat_map(|run| &run.collectives).filter(|other| other.block == collective.block);
        let all: Vec<&Iteration> = same().flat_map(|other| &other.iterations).collect();
        let mean = |of: fn(&Iteration) -> f64| stats::mean_of(&all, of);
        CollectiveMetrics {
            block: collective.block,
            name: parts(first, collective).concat(),
            parts: parts(first, collective).to_vec(),
            complete: all.len(),
            planned: same().map(|other| other.planned as usize).sum(),
            time_ns: mean(|iteration| iteration.time_ns),
            longest_ns: all.iter().map(|iteration| iteration.time_ns).reduce(f64::max),
            busbw_bytes_per_s: mean(|iteration| iteration.busbw),
            ideal_ns: collective.ideal_ns,
        }
    };
    first.collectives.iter().map(metrics).collect()
}

/// Returns a collective in words, part by part: the name of its block, and the operation with its bytes and ranks.
fn parts(run: &RunData, collective: &Collective) -> [String; 4] {
    [
        own_name(&run.blocks, collective.block).map_or_else(String::new, |block| format!("{block}: ")),
        collective.op.clone(),
        format!(" of {}", format::bytes(collective.bytes as f64)),
        format!(" among {} ranks", collective.ranks),
    ]
}

/// Returns the parts of a name that are the same in each of `all`, for the head of a table with a column for each.
pub(crate) fn common<'a>(all: &(impl Iterator<Item = &'a [String]> + Clone)) -> String {
    let Some(first) = all.clone().next() else { return String::new() };
    let is_same = |(i, part): &(usize, &String)| all.clone().all(|parts| parts.get(*i) == Some(*part));
    let same: Vec<&str> = first.iter().enumerate().filter(is_same).map(|(_, part)| part.as_str()).collect();
    same.concat().trim().trim_end_matches(':').to_owned()
}

/// Returns the parts of the name of the collective operation with the number `block` that are the same in all columns;
/// if they have different operations, the block's name or number takes their place.
pub(crate) fn name_in(metrics: &[Metrics], block: u32) -> String {
    let all = || {
        metrics
            .iter()
            .flat_map(|m| &m.collectives)
            .filter(move |collective| collective.block == block)
            .map(|collective| collective.parts.as_slice())
    };
    let first = all().next().unwrap_or_default();
    if all().all(|parts| parts.get(1) == first.get(1)) {
        return common(&all());
    }
    let own = common(&all().map(|parts| &parts[..1]));
    let own = if own.is_empty() { block_name(&[], block) } else { own };
    format!("{own} {}", common(&all().map(|parts| &parts[2..]))).trim_end().to_owned()
}

/// Returns a bandwidth in bytes per second with its unit, as nccl-tests print it: GB are 10^9 bytes.
pub(crate) fn bandwidth(bytes_per_s: f64) -> String {
    format!("{} GB/s", format::number(bytes_per_s / 1e9))
}

/// Returns the table of the iterations of a run: the first ones of each collective, and the last; `None` if it has no
/// collective.
pub fn table(run: &RunData) -> Option<Table> {
    let columns = ["time", "of ideal", "busbw", "slowest rank"].map(str::to_owned).to_vec();
    let row = |collective: &Collective, iteration: &Iteration| Row {
        name: format!("iteration {}", iteration.number),
        cells: vec![
            format::time_ns(iteration.time_ns),
            format::number(iteration.time_ns / collective.ideal_ns.max(1.0)),
            bandwidth(iteration.busbw),
            format!("{} ({})", iteration.slowest.0, iteration.slowest.1),
        ],
        ..Row::default()
    };
    let section = |collective: &Collective| {
        let rows =
            rows_of(&collective.iterations, collective.planned, columns.len(), |iteration| row(collective, iteration));
        Section { title: parts(run, collective).concat(), rows }
    };
    let sections: Vec<Section> = run.collectives.iter().map(section).collect();
    (!sections.is_empty()).then_some(Table { caption: String::new(), columns, sections })
}

/// Returns the rows of the first iterations of `planned`, of the last one, and one with the number of those that are
/// not complete, of `n_cells` cells.
pub(crate) fn rows_of<T>(all: &[T], planned: u64, n_cells: usize, row: impl Fn(&T) -> Row) -> Vec<Row> {
    let mut rows: Vec<Row> = all.iter().take(MOST_ROWS).map(&row).collect();
    if MOST_ROWS < all.len() {
        rows.pop();
        rows.extend(all.last().map(&row));
    }
    let missing = (planned as usize).saturating_sub(all.len());
    if 0 < missing {
        let cells = vec!["-".to_owned(); n_cells];
        rows.push(Row { name: format!("{missing} not complete"), cells, ..Row::default() });
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::comparison::Comparison;

    /// Two iterations of two ranks, and one that is not complete.
    #[test]
    fn an_iteration_takes_as_long_as_its_slowest_rank() {
        let row = |iteration, rank, time_ns: Option<u64>| CollectiveRow {
            group: 1,
            iteration,
            rank,
            node: rank + 7,
            start_ns: 0,
            end_ns: time_ns,
            time_ns,
            ideal_ns: 400,
            bytes: 1_000,
            algbw_bytes_per_s: time_ns.map(|ns| 1e12 / ns as f64),
            busbw_bytes_per_s: time_ns.map(|ns| 1e12 / ns as f64),
        };
        let rows =
            [row(0, 0, Some(500)), row(0, 1, Some(500)), row(1, 0, Some(400)), row(1, 1, Some(800)), row(2, 0, None)];
        let summary = CollectiveSummary {
            group: 1,
            op: "all-reduce".into(),
            ranks: 2,
            bytes: 1_000,
            iterations: 5,
            complete: 2,
            ideal_ns: 400,
            time_ns: None,
            busbw_bytes_per_s: None,
        };
        let collectives = collectives(&[summary], &rows, |node| format!("h{node}"));
        let run = RunData { collectives, blocks: vec![String::new(), "grads".into()], ..RunData::default() };
        let all = metrics(std::slice::from_ref(&run));
        assert_eq!(
            (all[0].complete, all[0].planned, all[0].time_ns, all[0].longest_ns),
            (2, 5, Some(650.0), Some(800.0))
        );
        let mut other = all[0].clone();
        other.parts[1] = "all-gather".to_owned();
        let columns = |other: &CollectiveMetrics| {
            [&all[0], other].map(|one| Metrics { collectives: vec![one.clone()], ..Metrics::default() })
        };
        assert_eq!(name_in(&columns(&all[0]), 1), all[0].name);
        assert_eq!(name_in(&columns(&other), 1), "grads of 1.00 KB among 2 ranks");
        other.parts[0] = String::new();
        assert_eq!(name_in(&columns(&other), 1), "traffic 1 of 1.00 KB among 2 ranks");
        let larger = [String::new(), "all-reduce".into(), " of 4.00 KB".into(), " among 2 ranks".into()];
        other.parts = larger.to_vec();
        let titles = Comparison::of(columns(&other).to_vec()).groups.into_iter().map(|group| group.title);
        assert!(
            titles.clone().any(|title| title == "Collective all-reduce among 2 ranks"),
            "{:?}",
            titles.collect::<Vec<_>>()
        );
        let table = table(&run).expect("a collective");
        assert_eq!(table.sections[0].title, "grads: all-reduce of 1.00 KB among 2 ranks");
        let cells: Vec<_> =
            table.sections[0].rows.iter().map(|row| (row.name.as_str(), row.cells.join(", "))).collect();
        let want = [
            ("iteration 0", "500 ns, 1.25, 2.00 GB/s, 0 (h7)"),
            ("iteration 1", "800 ns, 2.00, 1.25 GB/s, 1 (h8)"),
            ("3 not complete", "-, -, -, -"),
        ];
        assert_eq!(cells, want.map(|(name, cells)| (name, cells.to_owned())));
    }
}
