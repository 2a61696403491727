//! Panels of means over seeds with their intervals, against loads and the like.

use fairrate_report::figure::{Axis, Figure as Panel, Series};
use fairrate_report::stats;

use crate::drawing::{Line, panel};

/// A line of what seeds gave, at each x.
pub struct Means<'a> {
    pub name: String,
    /// The algorithm whose look it has.
    pub cc: &'a str,
    pub values: Vec<(f64, Vec<f64>)>,
}

/// A panel of such lines; those without any values are left out.
pub fn means(title: impl Into<String>, x: Axis, y: Axis, lines: Vec<Means<'_>>) -> Panel {
    let lines = lines.into_iter().map(|Means { name, cc, values }| {
        let points: Vec<(f64, f64, f64)> = values.iter().filter_map(|(x, values)| point(*x, values)).collect();
        (Line { name, cc, points: points.iter().map(|&(x, mean, _)| (x, mean)).collect() }, points)
    });
    let (lines, points): (Vec<_>, Vec<_>) = lines.filter(|(_, points)| !points.is_empty()).unzip();
    let mut panel = panel(title, x, y, lines);
    for (series, points) in panel.series.iter_mut().zip(points) {
        series.marks = true;
        series.low = points.iter().map(|(_, mean, half)| mean - half).collect();
        series.high = points.iter().map(|(_, mean, half)| mean + half).collect();
    }
    panel
}

/// A mean with half of its interval.
fn point(x: f64, values: &[f64]) -> Option<(f64, f64, f64)> {
    let mean = stats::mean(values).filter(|mean| mean.is_finite())?;
    Some((x, mean, stats::student_half_width(values).unwrap_or(0.0)))
}

/// A range that the paper has at an x, in the look of the line that it is about.
#[must_use]
pub fn with_range(mut panel: Panel, line: &str, name: String, x: f64, (low, high): (f64, f64)) -> Panel {
    let Some(style) = panel.series.iter().find(|series| series.key == line).map(|series| series.style) else {
        return panel;
    };
    let name = if panel.series.iter().any(|series| series.key == name) { String::new() } else { name };
    panel.series.push(Series {
        key: name.clone(),
        name,
        style,
        thin: true,
        x: vec![x - 0.03, x + 0.03],
        y: vec![f64::midpoint(low, high); 2],
        low: vec![low; 2],
        high: vec![high; 2],
        ..Series::default()
    });
    panel
}

/// Those panels that have anything to show.
pub fn filled(panels: impl IntoIterator<Item = Panel>) -> Vec<Panel> {
    panels.into_iter().filter(|panel| !panel.series.is_empty()).collect()
}

/// The axis of loads.
pub fn loads() -> Axis {
    Axis { link: "load", ..Axis::new("load of servers' links") }.showing(0.1, 0.9)
}
