//! Panels of means over seeds, against loads and the like, with the paper's values.

use fairrate_report::panel::{Axis, Panel, Series};

pub use crate::curves::{Curve, panel as means};

/// Adds the paper's range at an x, in the look of its line.
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

/// Returns the panels that have some series.
pub fn filled(panels: impl IntoIterator<Item = Panel>) -> Vec<Panel> {
    panels.into_iter().filter(|panel| !panel.series.is_empty()).collect()
}

/// Returns the axis of loads.
pub fn loads() -> Axis {
    Axis { link: "load", ..Axis::new("load of servers' links") }.showing(0.1, 0.9)
}
