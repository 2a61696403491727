//! Means over seeds with their intervals: as lines over loads, or beside words.

use fairrate_report::panel::{Axis, Panel, Series};
use fairrate_report::stats;
use fairrate_report::style::{Style, styles};

/// A line: its name, the algorithm whose look it has, and at each x the values of all seeds.
pub struct Curve<'a> {
    pub name: String,
    pub cc: &'a str,
    pub values: Vec<(f64, Vec<f64>)>,
}

/// Returns a panel of lines with bands, or of points with whiskers where `x` has words. Curves without values are left
/// out.
pub fn panel(title: impl Into<String>, x: Axis, y: Axis, curves: Vec<Curve<'_>>) -> Panel {
    let looks = styles(&curves.iter().map(|curve| curve.cc).collect::<Vec<_>>());
    let series = curves.into_iter().zip(looks).map(|(curve, style)| series(curve, style));
    Panel { title: title.into(), x, y, series: series.filter(|line| !line.x.is_empty()).collect(), ..Panel::default() }
}

fn series(curve: Curve<'_>, style: Style) -> Series {
    let mut out = Series { key: curve.name.clone(), name: curve.name, style, marks: true, ..Series::default() };
    for (x, values) in &curve.values {
        let Some(mean) = stats::mean(values).filter(|mean| mean.is_finite()) else { continue };
        let half = stats::student_half_width(values).unwrap_or(0.0);
        out.x.push(*x);
        out.y.push(mean);
        out.low.push(mean - half);
        out.high.push(mean + half);
    }
    out
}

/// Returns the panel without bands: where all lines are of the same flows, their bands show only how flows differ from
/// seed to seed.
#[must_use]
pub fn without_bands(mut panel: Panel) -> Panel {
    for line in &mut panel.series {
        (line.low, line.high) = (Vec::new(), Vec::new());
    }
    panel
}

/// Returns an axis of words, numbered from 0.
pub fn words(label: &str, words: &[&str]) -> Axis {
    let ticks: Vec<(f64, String)> = (0..).map(f64::from).zip(words.iter().map(|word| (*word).to_owned())).collect();
    let range = Some((-0.5, words.len() as f64 - 0.5));
    Axis { words: true, ticks, range, ..Axis::new(label) }
}
