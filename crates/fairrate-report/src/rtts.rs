//! Distributions of round-trip times from their counts by range.

use std::collections::BTreeMap;

use crate::model::{RunData, Variant, block_name};
use crate::panel::{Axis, Panel, Series};
use crate::panels::variant_line;
use crate::style::Style;

/// Returns the distribution of round-trip times; `None` if they were not probed. A single column has a line for each
/// traffic block.
pub(crate) fn panel(columns: &[(&Variant, Style)]) -> Option<Panel> {
    let line = |variant: &Variant, style: Style, block: Option<&(u32, String)>| {
        let rows = variant.runs.iter().flat_map(|run| &run.rtts);
        let rows = rows.filter(|(group, ..)| block.is_none_or(|(block, _)| block == group));
        let (x, y) = cdf(rows.map(|(_, to_ns, acks)| (*to_ns, *acks)));
        let line = Series { step: true, x, y, ..variant_line(variant, style) };
        match block {
            Some((_, name)) => Series { key: name.clone(), name: name.clone(), ..line },
            None => line,
        }
    };
    let mut series: Vec<Series> = match columns {
        [(variant, _)] if 1 < blocks(variant.first()).len() => {
            let blocks = blocks(variant.first());
            blocks.iter().enumerate().map(|(i, block)| line(variant, Style::nth(i), Some(block))).collect()
        }
        _ => columns.iter().map(|(variant, style)| line(variant, *style, None)).collect(),
    };
    series.retain(|s| !s.x.is_empty());
    (!series.is_empty()).then(|| Panel {
        title: "Round-trip times".into(),
        note: "Fraction of the acknowledgments of the measuring window, all seeds, that came no later than this after their data was \
               sent; to within 3 %"
            .into(),
        x: Axis::new("round-trip time (µs)").logarithmic(),
        y: Axis::new("fraction of acknowledgments").showing(0.0, 1.0),
        series,
        ..Panel::default()
    })
}

/// Returns the fraction of acknowledgments at or below the end of each range, in µs. Ranges are ends in ns with their
/// numbers of acknowledgments, in any order.
fn cdf(ranges: impl Iterator<Item = (f64, u64)>) -> (Vec<f64>, Vec<f64>) {
    let mut by_end: BTreeMap<u64, u64> = BTreeMap::new();
    for (to_ns, acks) in ranges {
        *by_end.entry(to_ns as u64).or_default() += acks;
    }
    let all: u64 = by_end.values().sum();
    let mut below = 0;
    let point = |(to_ns, acks): (u64, u64)| {
        below += acks;
        (to_ns as f64 / 1e3, below as f64 / all as f64)
    };
    by_end.into_iter().map(point).unzip()
}

/// Returns the traffic blocks of a run that have round-trip times, with their names.
fn blocks(run: &RunData) -> Vec<(u32, String)> {
    let mut blocks: Vec<u32> = run.rtts.iter().map(|(block, ..)| *block).collect();
    blocks.dedup();
    blocks.into_iter().map(|block| (block, block_name(&run.blocks, block))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_of_runs_are_pooled() {
        // 2 and 2 of 8 up to 1 µs, 3 more up to 2 µs, 1 more up to 4 µs.
        let (x, y) = cdf(vec![(1_000.0, 2), (4_000.0, 1), (1_000.0, 2), (2_000.0, 3)].into_iter());
        assert_eq!((x, y), (vec![1.0, 2.0, 4.0], vec![0.5, 0.875, 1.0]));
        let run = RunData {
            blocks: vec!["web".into()],
            rtts: vec![(0, 1.0, 1), (0, 2.0, 1), (1, 1.0, 1)],
            ..RunData::default()
        };
        assert_eq!(blocks(&run), [(0, "web".to_owned()), (1, "traffic 1".to_owned())]);
    }
}
