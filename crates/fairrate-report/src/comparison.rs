//! Columns compared with each other: their measures, the means over seeds, and the differences.

mod measures;

use std::collections::HashMap;

use serde::Serialize;

use self::measures::{Columns, buckets, ports};
use crate::bootstrap::{Difference, Estimate, LEVEL, RESAMPLES};
use crate::metrics::{Metrics, Share};
use crate::stats;

/// All columns of a comparison and their measures.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// The columns.
    pub metrics: Vec<Metrics>,
    /// The measures, group by group.
    pub groups: Vec<Group>,
    /// Runs that are left out, with the reason: `hpcc seed 2 interrupted`.
    pub left_out: Vec<String>,
}

/// Measures of the same subject.
#[derive(Clone, Debug)]
pub struct Group {
    /// Title of the subject.
    pub title: String,
    /// The measures.
    pub measures: Vec<Measure>,
}

/// One number of every column.
#[derive(Clone, Debug)]
pub struct Measure {
    /// Path in `metrics`, as `slowdown[all sizes].p99`.
    pub key: String,
    /// Name in tables.
    pub name: &'static str,
    /// The direction of the best value.
    pub better: Better,
    /// The function that formats a value for people.
    pub show: fn(f64) -> String,
    /// The cells, one per column.
    pub cells: Vec<Cell>,
    /// The columns whose value is better than each other one, as [`best`] says: at most one a grid point.
    pub best: Vec<usize>,
    /// `true` for a percentile that is the largest value under some seed, as that has too few flows.
    pub is_largest: bool,
}

/// A measure of a column.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cell {
    /// Mean over the column's seeds.
    pub estimate: Option<Estimate>,
    /// The number of the baseline column, and the difference from it, paired by seed.
    pub difference: Option<(usize, Difference)>,
    /// The share of flows that finished, where the number is a lower bound since others did not.
    pub bound: Option<Share>,
}

/// The direction of a measure's best value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    /// The least value is the best.
    Lower,
    /// The largest value is the best.
    Higher,
    /// No value is better than another.
    Neither,
}

/// Largest number of ports that a comparison shows one by one; more ports are shown all together.
pub const MAX_PORTS: usize = 4;

/// A function that returns a number of a column, or of one of its seeds.
pub type Value<'a> = &'a dyn Fn(&Metrics) -> Option<f64>;

impl Comparison {
    /// Compares columns; there must be at least one.
    pub fn of(metrics: Vec<Metrics>) -> Self {
        let all = Columns::of(&metrics);
        let mut groups: Vec<Group> = buckets(&metrics).into_iter().map(|bucket| all.slowdown(bucket)).collect();
        let ports = ports(&metrics);
        if MAX_PORTS < ports.len() {
            groups.push(all.all_ports());
        } else {
            groups.extend(ports.into_iter().map(|port| all.port(port)));
        }
        groups.extend(all.shares());
        groups.extend(all.completions());
        groups.extend(all.collectives());
        groups.extend(all.jobs());
        groups.extend(all.convergence());
        groups.extend([all.all_flows(), all.whole_run()]);
        let mut comparison = Self { metrics, groups, left_out: Vec::new() };
        if comparison.seeds_agree() {
            // Without chance in any number, seeds do not tell whether another workload would give the same order.
            comparison.groups.iter_mut().flat_map(|g| &mut g.measures).for_each(|m| m.best.clear());
        }
        comparison
    }

    /// Returns `true` if some column has several seeds, so that there are intervals.
    pub fn has_seeds(&self) -> bool {
        self.metrics.iter().any(|m| 1 < m.seeds.len())
    }

    /// Returns the least number of seeds of a column.
    pub fn fewest_seeds(&self) -> usize {
        self.metrics.iter().map(|m| m.seeds.len()).min().unwrap_or(0)
    }

    /// Returns `true` if every seed of every column gave the same numbers, the wall clock's aside.
    pub fn seeds_agree(&self) -> bool {
        let mut cells = self.groups.iter().flat_map(|g| &g.measures).flat_map(|m| &m.cells).filter_map(|c| c.estimate);
        cells.all(|e| e.interval.is_none_or(|i| i.low == i.high))
    }

    /// Returns means, intervals and differences as data.
    pub fn statistics(&self) -> Statistics {
        let measures = self.groups.iter().flat_map(|g| &g.measures);
        let of = |measure: &Measure| {
            let cells = measure.cells.iter().zip(&self.metrics);
            let entry = |(cell, column): (&Cell, &Metrics)| {
                let estimate = cell.estimate?;
                Some(Statistic {
                    metric: measure.key.clone(),
                    column: column.label.clone(),
                    estimate,
                    bound: cell.bound,
                    difference: cell.difference.map(|(to, difference)| Versus {
                        to: self.metrics[to].label.clone(),
                        difference,
                        excludes_zero: difference.excludes_zero(),
                    }),
                })
            };
            cells.filter_map(entry).collect::<Vec<_>>()
        };
        Statistics {
            method: "percentile bootstrap",
            level: LEVEL,
            resamples: RESAMPLES,
            values: measures.flat_map(of).collect(),
        }
    }
}

/// The part of `compare.json` about means and differences.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Statistics {
    /// The method by which intervals are made.
    pub method: &'static str,
    /// The confidence level of the intervals.
    pub level: f64,
    /// Number of resamples of the seeds.
    pub resamples: usize,
    /// One entry per measure and column.
    pub values: Vec<Statistic>,
}

/// A measure of a column.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Statistic {
    /// Key of the measure.
    pub metric: String,
    /// Label of the column.
    pub column: String,
    /// Mean over the column's seeds.
    #[serde(flatten)]
    pub estimate: Estimate,
    /// Flows that finished and flows that started, where the mean is a lower bound since the former are fewer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bound: Option<Share>,
    /// The difference from another column; `None` for the first one.
    pub difference: Option<Versus>,
}

/// A difference from another column.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Versus {
    /// Label of the other column.
    pub to: String,
    /// The difference.
    #[serde(flatten)]
    pub difference: Difference,
    /// `true` if the interval of the difference excludes zero; `None` without an interval.
    pub excludes_zero: Option<bool>,
}

/// Returns the groups of columns within which one column can be best: those of the same grid point, or all where each
/// has a point of its own.
pub(crate) fn rivals(metrics: &[Metrics]) -> Vec<Vec<usize>> {
    let mut points: Vec<(&str, Vec<usize>)> = Vec::new();
    for (i, column) in metrics.iter().enumerate() {
        match points.iter_mut().find(|(point, _)| *point == column.point) {
            Some((_, columns)) => columns.push(i),
            None => points.push((&column.point, vec![i])),
        }
    }
    if points.len() == metrics.len() {
        return vec![(0..points.len()).collect()];
    }
    points.into_iter().map(|(_, columns)| columns).collect()
}

/// Returns the column of each group of rivals whose `value` is better than that of each other column: the differences,
/// paired by seed, are clear ([`Difference::is_clear`]), and the values do not look the same. There is none if
/// `is_bound` says that the value is a lower bound, or if no other column has a value.
pub fn best(
    metrics: &[Metrics],
    value: Value<'_>,
    better: Better,
    show: fn(f64) -> String,
    is_bound: &dyn Fn(usize) -> bool,
) -> Vec<usize> {
    let series: Vec<Vec<(u64, f64)>> = metrics.iter().map(|m| by_seed(m, value)).collect();
    let best = |rivals: Vec<usize>| {
        let known: Vec<(usize, f64)> = rivals.iter().filter_map(|&i| Some((i, mean(&metrics[i], value)?))).collect();
        let (best, target) = *match better {
            Better::Lower => known.iter().min_by(|a, b| a.1.total_cmp(&b.1)),
            Better::Higher => known.iter().max_by(|a, b| a.1.total_cmp(&b.1)),
            Better::Neither => None,
        }?;
        let is_behind = |&(i, x): &(usize, f64)| {
            let difference = || Difference::of(&pairs(&series[i], &series[best]));
            show(x) != show(target) && difference().is_some_and(|d| d.is_clear())
        };
        let mut others = known.iter().filter(|(i, _)| *i != best);
        (1 < known.len() && !is_bound(best) && others.all(is_behind)).then_some(best)
    };
    rivals(metrics).into_iter().filter_map(best).collect()
}

/// Returns the values of `own` and `base` of the same seeds.
pub(crate) fn pairs(own: &[(u64, f64)], base: &[(u64, f64)]) -> Vec<(f64, f64)> {
    let of_seed: HashMap<u64, f64> = base.iter().rev().copied().collect();
    own.iter().filter_map(|(seed, x)| Some((*x, *of_seed.get(seed)?))).collect()
}

/// Returns the mean over the seeds of a column, with its interval.
pub fn estimate(m: &Metrics, value: Value<'_>) -> Option<Estimate> {
    Estimate::of(&values(m, value))
}

/// Returns the mean over the seeds of a column alone: that of its [`estimate`], without the many resamples of the
/// interval.
pub fn mean(m: &Metrics, value: Value<'_>) -> Option<f64> {
    stats::mean(&values(m, value)).filter(|mean| mean.is_finite())
}

fn values(m: &Metrics, value: Value<'_>) -> Vec<f64> {
    by_seed(m, value).into_iter().map(|(_, x)| x).collect()
}

/// Returns the measure of each seed of a column that has it.
pub(crate) fn by_seed(m: &Metrics, value: Value<'_>) -> Vec<(u64, f64)> {
    let of = |run: &Metrics| Some((*run.seeds.first()?, value(run).filter(|value| !value.is_nan())?));
    m.seeds_alone().iter().filter_map(of).collect()
}

#[cfg(test)]
mod tests;
