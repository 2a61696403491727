//! Figures over a grid: a number against a parameter, with one line per algorithm, and one figure for each point of the
//! other parameters.

use fairrate_units::{Bytes, Rate, Time};

use crate::bootstrap::{FEW, Interval};
use crate::comparison::estimate;
use crate::format;
use crate::metric::Metric;
use crate::metrics::Metrics;
use crate::model::Variant;
use crate::panel::{Axis, Panel, Series};
use crate::stats;
use crate::style::Style;
use crate::table::{self, Row, Section, Table};

/// Largest number of plain numbers for which an axis has a label at each value.
const MOST_LABELS: usize = 12;
/// Ratio of the largest value to the least from which the axis of slowdowns is logarithmic.
const WIDE: f64 = 10.0;

/// A key of the grid with several values.
#[derive(Clone, Debug, PartialEq)]
struct Parameter {
    key: String,
    /// The values as written, in the order of the grid.
    values: Vec<String>,
}

/// The columns of a grid.
pub struct Grid<'a> {
    columns: Vec<(&'a Variant, &'a Metrics)>,
    /// The parameter of the horizontal axis.
    x: Parameter,
    /// The other parameters.
    others: Vec<Parameter>,
}

impl<'a> Grid<'a> {
    /// Returns the grid of columns and their numbers; `None` if no key has several values.
    pub fn of(variants: &'a [Variant], metrics: &'a [Metrics]) -> Option<Self> {
        let mut parameters = parameters(variants);
        let numeric = parameters.iter().position(|p| positions(&p.values).is_some());
        let x = (!parameters.is_empty()).then(|| parameters.remove(numeric.unwrap_or(0)))?;
        Some(Self { columns: variants.iter().zip(metrics).collect(), x, others: parameters })
    }

    /// Returns the key of the horizontal axis.
    pub fn parameter(&self) -> &str {
        &self.x.key
    }

    /// Returns the keys with several values, and these values, as text.
    pub fn summary(&self) -> String {
        let of = |p: &Parameter| format!("{} {}", p.key, p.values.join(", "));
        std::iter::once(&self.x).chain(&self.others).map(of).collect::<Vec<_>>().join(" \u{b7} ")
    }

    /// Returns the figures of a metric, all with the same axes.
    pub fn figures(&self, metric: Metric, lines: &[(&str, Style)]) -> Vec<Panel> {
        let mut facets: Vec<Vec<(&str, &str)>> = Vec::new();
        for (variant, _) in &self.columns {
            let facet = self.facet(variant);
            if !facets.contains(&facet) {
                facets.push(facet);
            }
        }
        let mut figures: Vec<Panel> = facets.iter().map(|facet| self.figure(metric, facet, lines)).collect();
        figures.retain(|f| !f.series.is_empty());
        share_range(&mut figures, metric.least());
        figures
    }

    /// Returns the values of a column on the other parameters.
    fn facet<'b>(&self, variant: &'b Variant) -> Vec<(&'b str, &'b str)> {
        let grid = variant.first().grid.iter().filter(|(key, _)| self.others.iter().any(|p| p.key == *key));
        grid.map(|(key, value)| (key.as_str(), value.as_str())).collect()
    }

    fn figure(&self, metric: Metric, facet: &[(&str, &str)], lines: &[(&str, Style)]) -> Panel {
        let here: Vec<(&Variant, &Metrics)> =
            self.columns.iter().filter(|(v, _)| self.facet(v) == facet).copied().collect();
        let series: Vec<Series> = lines.iter().map(|(line, style)| self.line(metric, &here, line, *style)).collect();
        Panel {
            // Blocks may have other names in columns that lack the number.
            title: metric.title(here.iter().map(|(_, m)| *m).filter(|m| metric.value(m).is_some())),
            note: note(metric, &here, series.iter().any(|s| !s.partial.is_empty())),
            point: facet.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(" "),
            x: self.axis(),
            y: Axis::new(metric.label()),
            series: series.into_iter().filter(|s| !s.x.is_empty()).collect(),
            ..Panel::default()
        }
    }

    /// Returns the line of an algorithm, in the order of the parameter.
    fn line(&self, metric: Metric, columns: &[(&Variant, &Metrics)], line: &str, style: Style) -> Series {
        let at = self.places();
        let value_of =
            |v: &Variant| v.first().grid.iter().find(|(key, _)| *key == self.x.key).map(|(_, value)| value.clone());
        let mut points: Vec<(f64, &Metrics)> = Vec::new();
        for (variant, metrics) in columns.iter().filter(|(v, _)| v.line == line) {
            let i = value_of(variant).and_then(|value| self.x.values.iter().position(|v| *v == value));
            points.extend(i.map(|i| (at[i], *metrics)));
        }
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut out = Series { key: line.to_owned(), name: line.to_owned(), style, marks: true, ..Series::default() };
        for (x, metrics) in points {
            let Some(estimate) = estimate(metrics, &|m| metric.value(m)) else { continue };
            let bound = metric.bound(metrics);
            if bound.is_some() {
                out.partial.push(out.x.len());
            }
            out.hint.push(
                bound.map_or_else(String::new, |share| format!("lower bound: {share} {} finished", metric.counted())),
            );
            out.x.push(x);
            out.y.push(estimate.mean);
            out.low.push(estimate.interval.map_or(f64::NAN, |i| i.low));
            out.high.push(estimate.interval.map_or(f64::NAN, |i| i.high));
        }
        if out.low.iter().all(|x| x.is_nan()) {
            (out.low, out.high) = (Vec::new(), Vec::new());
        }
        if out.hint.iter().all(String::is_empty) {
            out.hint = Vec::new();
        }
        out
    }

    /// Returns the numbers of the figures as a table: one column per value of the parameter, one section per figure,
    /// one row per line.
    pub fn table(&self, metrics: &[Metric], lines: &[(&str, Style)]) -> Table {
        let columns = self.x.values.iter().map(|value| format!("{}={value}", self.x.key)).collect();
        let of = |metric: &Metric| {
            let is_largest = metric.is_largest(self.columns.iter().map(|(_, m)| *m));
            let mark = if is_largest { format!(" {}", table::LARGEST) } else { String::new() };
            let about = table::beside_window(*metric, metrics);
            let figures = self.figures(*metric, lines);
            figures.iter().map(|f| self.section(f, about, &mark)).collect::<Vec<_>>()
        };
        let sections = metrics.iter().flat_map(of).collect();
        Table { caption: table::caption_of(metrics, &self.columns.iter().map(|(_, m)| *m)), columns, sections }
    }

    /// Returns the numbers of a figure, with `about` behind the title and `mark` behind the unit.
    fn section(&self, figure: &Panel, about: &str, mark: &str) -> Section {
        let at = self.places();
        let cell = |s: &Series, x: f64| {
            let Some(k) = s.x.iter().position(|have| *have == x) else { return "-".to_owned() };
            let ends = s.low.get(k).zip(s.high.get(k)).filter(|(low, _)| low.is_finite());
            let interval = ends.map(|(low, high)| Interval { low: *low, high: *high });
            let number = table::with_interval(format::number(s.y[k]), interval, format::number);
            table::bounded(number, s.partial.contains(&k))
        };
        let row = |s: &Series| Row {
            name: s.name.clone(),
            cells: at.iter().map(|x| cell(s, *x)).collect(),
            ..Row::default()
        };
        let unit = figure.y.label.split_once(" (").map_or_else(String::new, |(_, unit)| format!(" ({unit}"));
        let point = if figure.point.is_empty() { String::new() } else { format!(", {}", figure.point) };
        let title = format!("{}{about}{unit}{point}{mark}", figure.title);
        Section { title, rows: figure.series.iter().map(row).collect() }
    }

    /// Returns the positions of the parameter's values on its axis.
    fn places(&self) -> Vec<f64> {
        positions(&self.x.values).unwrap_or_else(|| (0..self.x.values.len()).map(|i| i as f64).collect())
    }

    /// Returns the axis of the parameter, with its values labelled as they were written.
    fn axis(&self) -> Axis {
        let axis = Axis::new(self.x.key.clone());
        let Some(at) = positions(&self.x.values) else {
            let ticks: Vec<(f64, String)> = (0..).map(f64::from).zip(self.x.values.iter().cloned()).collect();
            let range = Some((-0.5, ticks.len() as f64 - 0.5));
            return Axis { ticks, words: true, range, ..axis };
        };
        let log = is_geometric(&at);
        let is_plain = self.x.values.iter().all(|v| v.parse::<f64>().is_ok());
        let labelled = at.len() <= MOST_LABELS || !is_plain;
        let mut ticks: Vec<(f64, String)> = at.into_iter().zip(self.x.values.iter().cloned()).collect();
        ticks.sort_by(|a, b| a.0.total_cmp(&b.0));
        ticks.truncate(if labelled { ticks.len() } else { 0 });
        Axis { log, ticks, ..axis }
    }
}

/// Returns a note on bands, hollow markers and percentiles of few flows, where there are any.
fn note(metric: Metric, columns: &[(&Variant, &Metrics)], partial: bool) -> String {
    let seeds = columns.iter().map(|(_, m)| m.seeds.len());
    let (fewest, most) = (seeds.clone().min().unwrap_or(0), seeds.max().unwrap_or(0));
    let mut note = Vec::new();
    if 1 < most {
        let few = if fewest < FEW { "; of so few seeds it is too narrow" } else { "" };
        note.push(format!("Mean over {most} seeds and its 95 % bootstrap interval{few}"));
    }
    let flows = columns.iter().flat_map(|(_, m)| m.seeds_alone()).filter_map(|m| metric.flows(m)).min();
    if let (Some(flows), Some(least)) = (flows, metric.least_flows().filter(|least| flows.is_some_and(|n| n < *least)))
    {
        let (flows, least) = (format::count(flows as f64), format::count(least as f64));
        note.push(format!(
            "With fewer than {least} {counted} this percentile is their largest value; a seed has as few as {flows}",
            counted = metric.counted(),
        ));
    }
    let missing = |m: &Metrics| {
        let completion = metric.completion(m)?;
        Some(format!("{}: {}", m.label, completion.why_missing()?))
    };
    if let Some(why) = columns.iter().find_map(|(_, m)| missing(m)) {
        note.push(format!("Points are missing where flows did not finish, as under {why}"));
    }
    if partial {
        note.push("Hollow: a lower bound, as not all flows finished".to_owned());
    }
    note.join(". ")
}

/// Returns the keys with several values, and these values, in their order. The algorithm of a column is not a
/// parameter.
fn parameters(variants: &[Variant]) -> Vec<Parameter> {
    let mut all: Vec<Parameter> = Vec::new();
    for (key, value) in variants.iter().flat_map(|v| &v.first().grid) {
        match all.iter_mut().find(|p| p.key == *key) {
            Some(p) if p.values.contains(value) => {}
            Some(p) => p.values.push(value.clone()),
            None => all.push(Parameter { key: key.clone(), values: vec![value.clone()] }),
        }
    }
    all.retain(|p| 1 < p.values.len());
    all
}

/// Returns values as numbers, if all are numbers or all are quantities of the same kind, and no two are equal.
fn positions(values: &[String]) -> Option<Vec<f64>> {
    type Read = fn(&str) -> Option<f64>;
    let kinds: [Read; 4] = [
        |v| v.replace('_', "").parse().ok(),
        |v| v.parse().ok().map(Bytes::as_f64),
        |v| v.parse().ok().map(|r: Rate| r.as_bps_f64()),
        |v| v.parse().ok().map(|t: Time| t.as_ps() as f64),
    ];
    let at = kinds.iter().find_map(|read| values.iter().map(|v| read(v)).collect::<Option<Vec<f64>>>())?;
    let distinct = (0..at.len()).all(|i| at[i].is_finite() && !at[..i].contains(&at[i]));
    distinct.then_some(at)
}

/// Returns `true` if values lie more evenly on a logarithmic axis, as those that double do; those with equal
/// differences do not.
fn is_geometric(values: &[f64]) -> bool {
    let sorted = stats::sorted(values.iter().copied());
    let unevenness = |f: fn(f64) -> f64| {
        let gaps: Vec<f64> = sorted.windows(2).map(|pair| f(pair[1]) - f(pair[0])).collect();
        gaps.iter().copied().fold(0.0, f64::max) / gaps.iter().copied().fold(f64::MAX, f64::min)
    };
    // The factor 1.01 keeps rounding from deciding.
    sorted.first().is_some_and(|least| 0.0 < *least) && unevenness(f64::ln) * 1.01 < unevenness(|x| x)
}

/// Gives figures the same vertical axis: logarithmic if values are far apart.
fn share_range(figures: &mut [Panel], least: f64) {
    let values = || figures.iter().flat_map(|f| &f.series).flat_map(|s| s.y.iter().chain(&s.low).chain(&s.high));
    let finite = || values().copied().filter(|x| x.is_finite());
    let (low, high) = (finite().fold(f64::MAX, f64::min), finite().fold(least, f64::max));
    let log = 0.0 < least && WIDE <= high / low;
    for figure in figures {
        figure.y.range = Some((least, high));
        figure.y.log = log;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Maybe;
    use crate::{style, synthetic};

    /// Returns two algorithms at every point of a grid.
    fn columns(grid: &[(&str, &[&str])], seeds: &[u64]) -> (Vec<Variant>, Vec<Metrics>) {
        let variants = synthetic::grid(&["powertcp", "hpcc"], grid, seeds);
        let metrics = variants.iter().map(Metrics::of).collect();
        (variants, metrics)
    }

    fn figures(grid: &[(&str, &[&str])], seeds: &[u64], metric: &str) -> Vec<Panel> {
        let (variants, metrics) = columns(grid, seeds);
        let grid = Grid::of(&variants, &metrics).unwrap();
        let styles = style::styles(&["powertcp", "hpcc"]);
        grid.figures(Metric::by_name(metric, &[]).unwrap(), &[("PowerTCP", styles[0]), ("HPCC", styles[1])])
    }

    #[test]
    fn a_line_has_a_point_and_an_interval_for_every_value() {
        let got = figures(&[("load", &["0.6", "0.2", "0.4", "0.8"])], &[1, 2, 3], "slowdown-p99.9:short");
        let [figure] = &got[..] else { panic!("one figure, not {}", got.len()) };
        assert_eq!(figure.series.iter().map(|s| s.key.as_str()).collect::<Vec<_>>(), ["PowerTCP", "HPCC"]);
        for s in &figure.series {
            assert_eq!(s.x, [0.2, 0.4, 0.6, 0.8]);
            assert!((0..4).all(|i| s.low[i] <= s.y[i] && s.y[i] <= s.high[i] && s.low[i] < s.high[i]), "{s:?}");
        }
        assert!(
            figure.note.starts_with("Mean over 3 seeds") && figure.note.contains("so few seeds"),
            "{}",
            figure.note
        );
        assert_eq!((figure.x.label.as_str(), figure.x.words), ("load", false));
        let (variants, metrics) = columns(&[("load", &["0.6", "0.2"])], &[1, 2]);
        let at = variants.iter().position(|v| v.label == "powertcp load=0.2").unwrap();
        let want = estimate(&metrics[at], &|m| m.bucket("<= 10 KB").unwrap().slowdown.p999).unwrap();
        let got = figures_of(&variants, &metrics);
        assert_eq!((got[0].series[0].y[0], got[0].series[0].low[0]), (want.mean, want.interval.unwrap().low));
    }

    fn figures_of(variants: &[Variant], metrics: &[Metrics]) -> Vec<Panel> {
        let grid = Grid::of(variants, metrics).unwrap();
        grid.figures(Metric::by_name("slowdown-p99.9:short", &[]).unwrap(), &[("PowerTCP", Style::default())])
    }

    #[test]
    fn a_second_parameter_makes_facets_with_the_same_axes() {
        let got = figures(&[("cc_on", &["true", "false"]), ("load", &["0.2", "0.4"])], &[1], "goodput");
        assert_eq!(got.iter().map(|f| f.point.as_str()).collect::<Vec<_>>(), ["cc_on=true", "cc_on=false"]);
        assert!(got.iter().all(|f| f.x.label == "load" && f.y == got[0].y && f.note.is_empty()));
        assert!(got[0].series[0].low.is_empty(), "one seed has no interval");
    }

    #[test]
    fn a_table_has_the_numbers_of_the_figures() {
        let (variants, metrics) = columns(&[("load", &["0.2", "0.4"])], &[1]);
        let grid = Grid::of(&variants, &metrics).unwrap();
        let metric = |name| Metric::by_name(name, &[]).unwrap();
        let lines = [("PowerTCP", Style::default()), ("HPCC", Style::default())];
        let text = grid.table(&[metric("goodput"), metric("slowdown-p99:long")], &lines).to_text();
        let words: Vec<Vec<&str>> = text.lines().map(|l| l.split_whitespace().collect()).collect();
        assert_eq!(
            (words[0].join(" ").as_str(), &words[1][..]),
            ("Measured from 0 ns to 4.00 ms", &["load=0.2", "load=0.4"][..])
        );
        assert_eq!(
            words[2..5],
            [
                vec!["Goodput", "of", "all", "flows", "(Gb/s)"],
                vec!["PowerTCP", "24.0", "24.0"],
                vec!["HPCC", "12.0", "12.0"]
            ]
        );
        assert_eq!((words.len(), grid.summary().as_str()), (8, "load 0.2, 0.4"));
        let whole = grid.table(&[metric("drops")], &lines);
        assert_eq!((whole.caption.as_str(), whole.sections[0].title.as_str()), ("Whole run", "Drops"));
        let mixed = grid.table(&[metric("goodput"), metric("pfc-pauses")], &lines);
        assert!(mixed.caption.starts_with("Measured from ") && mixed.sections[1].title == "PFC pauses, whole run");
    }

    #[test]
    fn a_grid_of_twenty_columns_draws_all_of_them() {
        let loads: Vec<String> = (1..=20).map(|i| format!("0.{i:02}")).collect();
        let loads: Vec<&str> = loads.iter().map(String::as_str).collect();
        let got = figures(&[("load", &loads)], &[1], "slowdown-p50");
        assert_eq!(got[0].series.iter().map(|s| s.x.len()).collect::<Vec<_>>(), [20, 20]);
    }

    #[test]
    fn quantities_are_placed_by_their_size_and_words_side_by_side() {
        let at = |values: &[&str]| positions(&values.iter().map(|v| (*v).to_owned()).collect::<Vec<_>>());
        assert_eq!(at(&["1MB", "500KB"]), Some(vec![1e6, 5e5]));
        assert_eq!(at(&["10Gbps", "1Gbps"]), Some(vec![1e10, 1e9]));
        assert_eq!(at(&["1us", "2ms"]), Some(vec![1e6, 2e9]));
        assert_eq!((at(&["1us", "2"]), at(&["true", "false"]), at(&["1", "1.0"])), (None, None, None));
        let words = figures(&[("sizes", &["websearch", "hadoop"])], &[1, 2], "slowdown-mean");
        assert!(words[0].x.words && words[0].series[0].x == [0.0, 1.0]);
        let wide = figures(&[("buffer", &["100KB", "1MB", "10MB"])], &[1], "slowdown-mean");
        assert!(is_geometric(&[1.0, 4.0, 16.0]) && is_geometric(&[1.0, 2.0, 10.0]));
        assert!(!is_geometric(&[0.2, 0.4, 0.6, 0.8]) && !is_geometric(&[3.0, 7.0]) && !is_geometric(&[0.0, 1.0, 10.0]));
        assert!(wide[0].x.log && wide[0].x.ticks[1] == (1e6, "1MB".to_owned()));
    }

    #[test]
    fn points_of_part_of_the_flows_are_marked() {
        let (mut variants, _) = columns(&[("load", &["0.2", "0.4"])], &[1]);
        for flow in variants[2].runs[0].flows.iter_mut().take(1_000) {
            (flow.fct_ns, flow.slowdown, flow.at_least) = (Maybe::NONE, Maybe::NONE, Maybe::of(9.0));
        }
        let metrics: Vec<Metrics> = variants.iter().map(Metrics::of).collect();
        let figure = &figures_of(&variants, &metrics)[0];
        assert_eq!(figure.series[0].partial, [1]);
        assert!(figure.note.contains("Hollow") && figure.series[0].hint[1].contains(" of "), "{figure:?}");
    }
}
