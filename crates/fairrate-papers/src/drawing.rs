//! Panels of lines, as in figures of papers.

use std::collections::BTreeMap;

use fairrate_report::panel::{Axis, Panel, Series};
use fairrate_report::style::{Style, styles};

use crate::curves::{self, Curve};
use crate::points::thinned;

/// Largest number of points of a line: more are not visible.
const POINTS: usize = 1_000;

/// A line: its name, the algorithm whose look it has, and its points.
pub struct Line<'a> {
    pub name: String,
    pub cc: &'a str,
    pub points: Vec<(f64, f64)>,
    /// The least and the most of all seeds at each point; empty if there is one seed, or only one is drawn.
    pub range: Vec<(f64, f64)>,
}

impl<'a> Line<'a> {
    /// Returns a line with its algorithm's name.
    pub fn of(cc: &'a str, points: &[(f64, f64)]) -> Self {
        Self { name: cc.to_owned(), cc, points: points.to_vec(), range: Vec::new() }
    }

    /// Returns a line of the first of the `seeds`, with its algorithm's name and the range over all of them. Their
    /// series have the same x.
    pub fn ranged<'b>(cc: &'a str, seeds: impl Iterator<Item = &'b Vec<(f64, f64)>>) -> Self {
        let mut at_x: BTreeMap<u64, (f64, f64)> = BTreeMap::new();
        let seeds: Vec<_> = seeds.collect();
        for &(x, y) in seeds.iter().copied().flatten() {
            let (least, most) = at_x.entry(x.to_bits()).or_insert((y, y));
            (*least, *most) = (least.min(y), most.max(y));
        }
        let line = Self::of(cc, seeds.first().map_or(&[], |first| first.as_slice()));
        let range = line.points.iter().filter(|_| 1 < seeds.len()).map(|(x, _)| at_x[&x.to_bits()]).collect();
        Self { range, ..line }
    }
}

/// Returns a panel of lines.
pub fn panel(title: impl Into<String>, x: Axis, y: Axis, lines: Vec<Line<'_>>) -> Panel {
    let looks = styles(&lines.iter().map(|line| line.cc).collect::<Vec<_>>());
    let series = lines.into_iter().zip(looks).map(|(line, style)| series(line, style));
    Panel { title: title.into(), x, y, series: series.collect(), ..Panel::default() }
}

fn series(line: Line<'_>, style: Style) -> Series {
    let points = if line.range.is_empty() { thinned(&line.points, POINTS) } else { line.points };
    let ((x, y), (low, high)) = (points.into_iter().unzip(), line.range.into_iter().unzip());
    Series { key: line.name.clone(), name: line.name, style, x, y, low, high, ..Series::default() }
}

/// A line in a panel of words: for each word its values over seeds.
pub struct Compared<'a> {
    pub name: String,
    pub cc: &'a str,
    pub values: Vec<Vec<f64>>,
}

/// Returns a panel whose horizontal axis has words: means over seeds with their 95 % intervals.
pub fn words_panel(title: impl Into<String>, words: &[&str], y: Axis, lines: Vec<Compared<'_>>) -> Panel {
    let numbered = |values: Vec<Vec<f64>>| (0..).map(f64::from).zip(values).collect();
    let curves = lines.into_iter().map(|Compared { name, cc, values }| Curve { name, cc, values: numbered(values) });
    curves::panel(title, curves::words("", words), y, curves.collect())
}

/// Adds points without lines: the beginnings or ends of trajectories.
#[must_use]
pub fn with_marks(mut panel: Panel, name: &str, marker: usize, points: &[(f64, f64)]) -> Panel {
    for (i, &(x, y)) in points.iter().enumerate() {
        // Each point is a series of its own, so that no line joins them; the first is in the legend.
        let name = if i == 0 { name.to_owned() } else { String::new() };
        let style = Style { colour: 7, dash: 0, marker };
        panel.series.push(Series {
            key: format!("mark {marker}"),
            name,
            style,
            marks: true,
            x: vec![x],
            y: vec![y],
            ..Series::default()
        });
    }
    panel
}

/// Adds a level that the paper names, from one end of the panel to the other.
#[must_use]
pub fn with_level(mut panel: Panel, name: &str, y: f64, (from, to): (f64, f64)) -> Panel {
    let style = Style { colour: 7, dash: 1, marker: 0 };
    let (x, y) = (vec![from, to], vec![y, y]);
    panel.series.push(Series {
        key: name.to_owned(),
        name: name.to_owned(),
        style,
        thin: true,
        x,
        y,
        ..Series::default()
    });
    panel
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_that_of_all_seeds_at_the_points_of_the_first() {
        let seeds = [vec![(0.0, 2.0), (1.0, 5.0)], vec![(0.0, 1.0), (1.0, 7.0)], vec![(0.0, 3.0), (2.0, 9.0)]];
        let line = Line::ranged("hpcc", seeds.iter());
        assert_eq!((line.points, line.range), (seeds[0].clone(), vec![(1.0, 3.0), (5.0, 7.0)]));
        let alone = Line::ranged("hpcc", seeds[..1].iter());
        assert_eq!((alone.points.len(), alone.range.len()), (2, 0), "one seed has no range");
        assert!(Line::ranged("hpcc", [].iter()).points.is_empty());
    }
}
