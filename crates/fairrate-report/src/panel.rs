//! Charts as data, drawn by the page's script.

use serde::Serialize;
use serde_json::Value;
use serde_json::value::Number;

use crate::style::Style;

/// A chart.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Panel {
    /// Heading.
    pub title: String,
    /// A line under the heading that describes exactly what is drawn.
    pub note: String,
    /// The point of a grid that the chart is about, as `load=0.6`; empty if it is about all points, or there is no
    /// grid.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub point: String,
    /// Name of its files without the ending, unique within the page.
    pub file: String,
    /// Name of the button that shows or hides the chart, as `p99`; empty if it is always shown.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub choice: String,
    /// Horizontal axis.
    pub x: Axis,
    /// Vertical axis.
    pub y: Axis,
    /// Lines, or rows of bars where the vertical axis has `rows`.
    pub series: Vec<Series>,
    /// Stretches of the horizontal axis that are marked.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub marks: Vec<Mark>,
    /// Set when bars of a row are of several series: their keys are in the legend.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub parts: bool,
    /// Set when the chart takes the whole width of the page.
    pub wide: bool,
    /// Set when the chart is one of several small charts with the same axes.
    pub small: bool,
}

/// A marked stretch of the horizontal axis.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Mark {
    /// Beginning.
    pub from: f64,
    /// End; `None` if it lasts to the end of the axis.
    pub to: Option<f64>,
    /// Label; may be empty.
    pub label: String,
}

/// An axis.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Axis {
    /// Quantity and unit, as `queue (KB)`.
    pub label: String,
    /// Set when the axis is logarithmic.
    pub log: bool,
    /// The least range the axis shows; wider data widen it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub range: Option<(f64, f64)>,
    /// Name of a group of axes that zoom together; empty if the axis zooms alone.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub link: &'static str,
    /// Names of the rows of a chart of bars over time; empty for other charts.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rows: Vec<String>,
    /// Values with their labels, where the axis is not to choose its own ticks.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ticks: Vec<(f64, String)>,
    /// Set when values are counts: there are no ticks between whole numbers.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub whole: bool,
    /// Set when values are words, numbered from 0: nothing lies between two of them, so points are not joined.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub words: bool,
}

impl Axis {
    /// Returns an axis with a label.
    pub fn new(label: impl Into<String>) -> Self {
        Self { label: label.into(), ..Self::default() }
    }

    /// Returns the axis, logarithmic.
    #[must_use]
    pub fn logarithmic(self) -> Self {
        Self { log: true, ..self }
    }

    /// Returns the axis, showing at least from `low` to `high`.
    #[must_use]
    pub fn showing(self, low: f64, high: f64) -> Self {
        Self { range: Some((low, high)), ..self }
    }
}

/// The course of a line from a point to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Course {
    /// Straight.
    Straight,
    /// Level as far as the next point, and then up or down to it.
    Steps,
}

/// A line.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Series {
    /// Key of the line: lines with the same key are switched on and off together, in all charts.
    pub key: String,
    /// Name in the legend; empty if another line of the same key is in the legend already.
    pub name: String,
    /// The line's look.
    #[serde(flatten)]
    pub style: Style,
    /// Set for a second line of its key, drawn thin and with hollow markers.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub thin: bool,
    /// Set when the line holds each value until the next.
    pub step: bool,
    /// Set when the points have markers.
    pub marks: bool,
    /// Horizontal values of the points.
    #[serde(serialize_with = "numbers")]
    pub x: Vec<f64>,
    /// Vertical values of the points.
    #[serde(serialize_with = "numbers")]
    pub y: Vec<f64>,
    /// Lower end of a band around the line, one value per point; may be empty.
    #[serde(serialize_with = "numbers", skip_serializing_if = "Vec::is_empty")]
    pub low: Vec<f64>,
    /// Upper end of the band.
    #[serde(serialize_with = "numbers", skip_serializing_if = "Vec::is_empty")]
    pub high: Vec<f64>,
    /// Indices of the points whose value is of only a part of their flows: their markers are hollow.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub partial: Vec<usize>,
    /// Text that hovering adds to each point.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hint: Vec<String>,
}

/// Writes numbers with six digits: more than a screen shows, and half the bytes.
fn numbers<S: serde::Serializer>(values: &[f64], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(values.iter().map(|x| short(*x)))
}

fn short(x: f64) -> Value {
    let rounded = if x.is_finite() { format!("{x:.5e}").parse().unwrap_or(x) } else { x };
    // Small whole numbers are written without the `.0` that a float has.
    if rounded.fract() == 0.0 && rounded.abs() < 1e15 {
        return Value::from(rounded as i64);
    }
    Number::from_f64(rounded).map_or(Value::Null, Value::Number)
}

/// The unit of time that suits a run of `span_ns`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TimeUnit {
    /// Name of the unit.
    pub name: &'static str,
    /// Length of the unit, in ns.
    pub ns: f64,
}

impl TimeUnit {
    /// Returns microseconds, milliseconds or seconds, whichever gives the axis numbers of one to four digits.
    pub fn for_span(span_ns: f64) -> Self {
        match span_ns {
            s if s < 2e6 => Self { name: "µs", ns: 1e3 },
            s if s < 5e9 => Self { name: "ms", ns: 1e6 },
            _ => Self { name: "s", ns: 1e9 },
        }
    }

    /// Returns the time axis of a chart; all such axes zoom together.
    pub fn axis(self) -> Axis {
        Axis { link: "time", ..Axis::new(format!("time ({})", self.name)) }
    }

    /// Converts times in ns to this unit.
    pub fn of(self, t_ns: &[f64]) -> Vec<f64> {
        t_ns.iter().map(|t| t / self.ns).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short_and_gaps_are_null() {
        let series =
            Series { x: vec![1.0, 0.123_456_789, 12_345_678.0], y: vec![f64::NAN, 0.0, -2.5], ..Series::default() };
        let json = serde_json::to_value(&series).unwrap();
        assert_eq!(json["x"].to_string(), "[1,0.123457,12345700]");
        assert_eq!(json["y"].to_string(), "[null,0,-2.5]");
    }

    #[test]
    fn the_time_unit_fits_the_run() {
        assert_eq!([1e6, 4e6, 6e9].map(|s| TimeUnit::for_span(s).name), ["µs", "ms", "s"]);
    }
}
