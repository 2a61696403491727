//! Tables as data, written as text here and as HTML by [`crate::html`].

use std::fmt::Write;

use crate::bootstrap::Interval;
use crate::comparison::{Better, Cell, Comparison, Group, MAX_PORTS, Measure, estimate};
use crate::format;
use crate::metric::Metric;
use crate::metrics::{BucketSlowdown, GroupMetrics, Metrics, PortMetrics};
use crate::stats::Percentile;

/// A table: a column of row names, then columns of numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table {
    /// A line above the table; may be empty.
    pub caption: String,
    /// Heads of the number columns.
    pub columns: Vec<String>,
    /// Groups of rows, each under its own title.
    pub sections: Vec<Section>,
}

/// Rows under a title.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Section {
    /// Subject of the rows.
    pub title: String,
    /// The rows.
    pub rows: Vec<Row>,
}

/// A named row of cells.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Row {
    /// Name.
    pub name: String,
    /// The texts, one per column.
    pub cells: Vec<String>,
    /// The columns whose values are better than each other one of their grid point by the intervals of the differences.
    pub best: Vec<usize>,
    /// `true` for a percentile that is the largest value, as fewer flows than it needs have one.
    pub is_largest: bool,
}

/// The mark of a percentile that is the largest value; a note says so.
pub const LARGEST: &str = "\u{2020}";

/// Returns the table of a comparison: one column per algorithm, one row per number; with several seeds means and their
/// intervals.
pub fn comparison(all: &Comparison) -> Table {
    let columns = all.metrics.iter().map(|m| m.label.clone()).collect();
    Table { caption: caption(&all.metrics.iter()), columns, sections: all.groups.iter().map(section).collect() }
}

/// Returns the values of `metrics` as a table: one column per algorithm, one row per metric; with several seeds means
/// and their intervals.
pub fn of_metrics(all: &Comparison, metrics: &[Metric]) -> Table {
    let cell = |metric: &Metric, of: &Metrics| {
        let Some(estimate) = estimate(of, &|m| metric.value(m)) else { return "-".to_owned() };
        let number = with_interval(format::number(estimate.mean), estimate.interval, format::number);
        bounded(number, metric.bound(of).is_some())
    };
    let row = |metric: &Metric| Row {
        name: format!(
            "{}{} ({})",
            metric.title(all.metrics.iter()),
            beside_window(*metric, metrics),
            metric.label().rsplit_once(" (").map_or(metric.label(), |(_, unit)| unit.trim_end_matches(')'))
        ),
        cells: all.metrics.iter().map(|of| cell(metric, of)).collect(),
        is_largest: metric.is_largest(all.metrics.iter()),
        ..Row::default()
    };
    let rows = metrics.iter().map(row).collect();
    let columns = all.metrics.iter().map(|m| m.label.clone()).collect();
    let caption = caption_of(metrics, &all.metrics.iter());
    Table { caption, columns, sections: vec![Section { title: String::new(), rows }] }
}

/// The caption of numbers of the whole run.
const WHOLE_RUN: &str = "Whole run";

/// Returns the caption of a table of `metrics`: the measuring window if one of them is of it.
pub(crate) fn caption_of<'a>(metrics: &[Metric], columns: &(impl Iterator<Item = &'a Metrics> + Clone)) -> String {
    if metrics.iter().any(|metric| metric.is_of_window()) { caption(columns) } else { WHOLE_RUN.to_owned() }
}

/// Returns words behind the title of `metric` in a table of `metrics`, if it is of the whole run and others are not.
pub(crate) fn beside_window(metric: Metric, metrics: &[Metric]) -> &'static str {
    let is_beside = !metric.is_of_window() && metrics.iter().any(|other| other.is_of_window());
    if is_beside { ", whole run" } else { "" }
}

/// Returns the measuring window in words. Where windows end with the last flow's start, each run has its own, and the
/// ranges are shown.
pub fn caption<'a>(metrics: &(impl Iterator<Item = &'a Metrics> + Clone)) -> String {
    let windows = || metrics.clone().flat_map(|m| &m.windows_ns);
    let range = |edge: fn(&(f64, f64)) -> f64| {
        let (least, most) = (windows().map(edge).fold(f64::MAX, f64::min), windows().map(edge).fold(0.0, f64::max));
        let (least, most) = (format::time_ns(least), format::time_ns(most));
        if least == most { least } else { format!("{least}..{most}") }
    };
    if windows().next().is_none() {
        return String::new();
    }
    format!("Measured from {} to {}", range(|w| w.0), range(|w| w.1))
}

/// Returns the differences of columns from their baselines, paired by seed: in percent, or absolute where the baseline
/// is zero. A star marks an interval that excludes zero, with enough seeds. Returns `None` without several columns and
/// seeds.
pub fn differences(all: &Comparison) -> Option<Table> {
    let several = all.has_seeds() && 1 < all.metrics.len();
    let has_chance = !all.seeds_agree();
    let measures = |g: &Group| {
        let told = g.measures.iter().filter(|m| m.better != Better::Neither);
        told.filter(|m| m.cells.iter().any(|c| c.difference.is_some_and(|(_, d)| d.mean != 0.0)))
            .map(|m| difference_row(m, has_chance))
            .collect()
    };
    let sections = all.groups.iter().map(|g| Section { title: g.title.clone(), rows: measures(g) });
    let sections: Vec<Section> = sections.filter(|s: &Section| !s.rows.is_empty()).collect();
    let columns = all.metrics[1..].iter().map(|m| m.label.clone()).collect();
    let caption = caption(&all.metrics.iter());
    (several && !sections.is_empty()).then_some(Table { caption, columns, sections })
}

/// Returns the tables of one run: slowdown by size, probed ports, and the run as a whole.
pub fn single(metrics: &Metrics) -> Vec<Table> {
    let mut tables = Vec::new();
    if !metrics.slowdown.is_empty() {
        tables.push(slowdown_by_size(&metrics.slowdown));
    }
    if !metrics.ports.is_empty() {
        tables.push(probed_ports(metrics));
    }
    if metrics.has_several_kinds() {
        tables.extend([shares_of_blocks(&metrics.groups), packets_of_blocks(&metrics.groups)]);
    }
    let all = Comparison::of(vec![metrics.clone()]);
    let is_told = |g: &&Group| {
        ["Completion", "Collective", "Training", "Convergence", "All flows", "Whole run"]
            .iter()
            .any(|title| g.title.starts_with(title))
    };
    let sections = all.groups.iter().filter(is_told).map(section).collect();
    tables.push(Table { caption: String::new(), columns: vec![metrics.label.clone()], sections });
    for table in tables.iter_mut().filter(|table| table.caption.is_empty()) {
        table.caption = caption(&std::iter::once(metrics));
    }
    tables
}

fn slowdown_by_size(buckets: &[BucketSlowdown]) -> Table {
    let columns = ["flows", "unfinished", "mean", "p50", "p95", "p99", "p99.9", "max"].map(str::to_owned).to_vec();
    let row = |b: &BucketSlowdown| {
        let d = &b.slowdown;
        let mean = bounded(format::optional(d.mean), 0 < d.n_bounds);
        let rank = |(x, least): (Option<f64>, usize)| {
            let mark = if d.n < least { LARGEST } else { "" };
            bounded(format::optional(x) + mark, x.is_some_and(|x| d.is_bound(x)))
        };
        let flows = [format::count(d.n as f64), format::count(d.n_bounds as f64), mean];
        let [p95, p99, p999] = Percentile::ALL.map(|p| (p.of(d), p.least_flows()));
        let cells = flows.into_iter().chain([(d.p50, 0), p95, p99, p999, (d.max, 0)].map(rank)).collect();
        Row { name: b.bucket.to_string(), cells, ..Row::default() }
    };
    let rows = buckets.iter().filter(|bucket| bucket.is_shown).map(row).collect();
    let sections = vec![Section { title: "FCT slowdown".into(), rows }];
    Table { caption: String::new(), columns, sections }
}

/// Largest number of probed ports that the table of a run names.
const MOST_PROBED: usize = 32;

fn probed_ports(metrics: &Metrics) -> Table {
    let columns = ["used", "throughput", "queue mean", "p99", "peak", "drops", "marks", "paused"];
    let row = |p: &PortMetrics| Row {
        name: p.port.clone(),
        cells: vec![
            p.utilisation.map_or_else(|| "-".into(), format::percent),
            format::rate(p.throughput_bps),
            format::bytes(p.qlen_mean_bytes),
            format::bytes(p.qlen_p99_bytes),
            format::bytes(p.qlen_peak_bytes),
            format::count(p.drops),
            format::count(p.ecn_marks),
            format::time_ns(p.pfc_pause_ns),
        ],
        ..Row::default()
    };
    let is_worst = |_: &&PortMetrics| MAX_PORTS < metrics.ports.len();
    let worst =
        metrics.worst_port.iter().filter(is_worst).map(|p| Row { name: format!("worst: {}", p.port), ..row(p) });
    let shown = longest_queues(&metrics.ports);
    let left = metrics.ports.len() - shown.len();
    let others = Row {
        name: format!("{} with shorter queues", format::count(left as f64)),
        cells: vec![String::new(); columns.len()],
        ..Row::default()
    };
    let others = (0 < left).then_some(others);
    let rows = metrics.all_ports.iter().map(row).chain(worst).chain(shown.into_iter().map(row)).chain(others).collect();
    let section = Section { title: "Ports".into(), rows };
    let columns = columns.map(str::to_owned).to_vec();
    Table { caption: String::new(), columns, sections: vec![section] }
}

/// Returns the [`MOST_PROBED`] ports with the longest queues at the 99th percentile, in their order.
fn longest_queues(ports: &[PortMetrics]) -> Vec<&PortMetrics> {
    let mut longest: Vec<(usize, &PortMetrics)> = ports.iter().enumerate().collect();
    let queue =
        |(_, port): &(usize, &PortMetrics)| if port.qlen_p99_bytes.is_nan() { -1.0 } else { port.qlen_p99_bytes };
    longest.sort_by(|a, b| queue(b).total_cmp(&queue(a)));
    longest.truncate(MOST_PROBED);
    longest.sort_by_key(|(at, _)| *at);
    longest.into_iter().map(|(_, port)| port).collect()
}

/// Returns what each traffic block got, where blocks have different algorithms or transports.
fn shares_of_blocks(groups: &[GroupMetrics]) -> Table {
    let share = |share: Option<f64>| share.map_or_else(|| "-".into(), format::percent);
    let cells = |g: &GroupMetrics| {
        vec![
            g.cc.clone(),
            g.transport.to_uppercase(),
            format::rate(g.goodput_bps),
            share(g.share),
            share(g.fair_share),
            g.jain.map_or_else(|| "-".into(), |jain| format!("{jain:.4}")),
        ]
    };
    of_blocks(groups, &["algorithm", "over", "goodput", "of all", "of a fair share", "Jain"], cells)
}

/// Returns the flows of each traffic block, and what became of its packets, in the whole run.
fn packets_of_blocks(groups: &[GroupMetrics]) -> Table {
    let cells = |g: &GroupMetrics| {
        let flows = format::count(g.flows as f64);
        vec![flows, format::count(g.drops), format::count(g.marked), format::bytes(g.retransmitted_bytes)]
    };
    let table = of_blocks(groups, &["flows", "drops", "marked", "sent again"], cells);
    Table { caption: WHOLE_RUN.to_owned(), ..table }
}

fn of_blocks(groups: &[GroupMetrics], columns: &[&str], cells: impl Fn(&GroupMetrics) -> Vec<String>) -> Table {
    let row = |g: &GroupMetrics| Row { name: g.name.clone(), cells: cells(g), ..Row::default() };
    let section = Section { title: "Blocks".into(), rows: groups.iter().map(row).collect() };
    let columns = columns.iter().map(|&column| column.to_owned()).collect();
    Table { caption: String::new(), columns, sections: vec![section] }
}

fn section(group: &Group) -> Section {
    Section { title: group.title.clone(), rows: group.measures.iter().map(row).collect() }
}

/// Returns a row of one value per column.
fn row(measure: &Measure) -> Row {
    let show = measure.show;
    let number = |c: &Cell| c.estimate.map_or_else(|| "-".into(), |e| with_interval(show(e.mean), e.interval, show));
    let text = |c: &Cell| bounded(number(c), c.bound.is_some());
    let cells = measure.cells.iter().map(text).collect();
    Row { name: measure.name.to_owned(), cells, best: measure.best.clone(), is_largest: measure.is_largest }
}

/// Marks a number that is a lower bound, as `≥ 1.10`.
pub fn bounded(number: String, is_bound: bool) -> String {
    if is_bound { format!("\u{2265} {number}") } else { number }
}

fn difference_row(measure: &Measure, has_chance: bool) -> Row {
    let percent = |x: f64| format!("{:+.1} %", 100.0 * x);
    let cell = |cell: &Cell| {
        let Some((_, d)) = cell.difference else { return "-".to_owned() };
        let text = if let Some((change, interval)) = d.change() {
            with_interval(percent(change), interval, percent)
        } else {
            let sign = if 0.0 < d.mean { "+" } else { "" };
            with_interval(format!("{sign}{}", (measure.show)(d.mean)), d.interval, measure.show)
        };
        if has_chance && d.is_clear() { format!("{text} *") } else { text }
    };
    Row {
        name: measure.name.to_owned(),
        cells: measure.cells[1..].iter().map(cell).collect(),
        is_largest: measure.is_largest,
        ..Row::default()
    }
}

/// Formats a mean with its interval, as `12.3 KB [11.9, 12.8]`; the ends have their own unit if it differs, and an
/// interval that is a point is left out.
pub fn with_interval(mean: String, interval: Option<Interval>, show: impl Fn(f64) -> String) -> String {
    let Some(Interval { low, high }) = interval.filter(|i| i.low != i.high) else { return mean };
    let unit = |text: &str| text.split_once(' ').map_or_else(String::new, |(_, unit)| unit.to_owned());
    let (low, high) = (show(low), show(high));
    let strip = |text: &str| text.split_once(' ').map_or_else(|| text.to_owned(), |(number, _)| number.to_owned());
    if unit(&low) == unit(&mean) && unit(&high) == unit(&mean) {
        format!("{mean} [{}, {}]", strip(&low), strip(&high))
    } else {
        format!("{mean} [{low}, {high}]")
    }
}

impl Row {
    /// Returns the name, with a mark if the percentile is the largest value.
    pub fn head(&self) -> String {
        if self.is_largest { format!("{} {LARGEST}", self.name) } else { self.name.clone() }
    }
}

impl Table {
    /// Returns `true` if a percentile of the table is marked as the largest value.
    pub fn has_largest(&self) -> bool {
        let rows = || self.sections.iter().flat_map(|s| &s.rows);
        rows().any(|r| r.is_largest || r.cells.iter().any(|c| c.ends_with(LARGEST)))
            || self.sections.iter().any(|s| s.title.ends_with(LARGEST))
    }

    /// Returns the table without the rows called `name`.
    #[must_use]
    pub fn without(mut self, name: &str) -> Self {
        for section in &mut self.sections {
            section.rows.retain(|r| r.name != name);
        }
        self
    }

    /// Returns the table as text, columns aligned.
    pub fn to_text(&self) -> String {
        self.between(["", ""])
    }

    /// Returns the table as [`Table::to_text`] does; if `styled`, section titles and the best values are bold.
    pub fn to_styled_text(&self, styled: bool) -> String {
        if styled { self.between(["\x1b[1m", "\x1b[0m"]) } else { self.to_text() }
    }

    /// Returns the table as text, with section titles and the best values between `begin` and `end`.
    fn between(&self, [begin, end]: [&str; 2]) -> String {
        let rows = || self.sections.iter().flat_map(|s| &s.rows);
        let one_section = self.sections.len() == 1;
        let titles = self.sections.iter().filter(|_| one_section).map(|s| width(&s.title));
        let first = rows().map(|r| width(&r.head()) + 2).chain(titles).max().unwrap_or(0);
        let widths: Vec<usize> = (self.columns.iter().enumerate())
            .map(|(i, head)| rows().map(|r| width(&r.cells[i])).chain([width(head)]).max().unwrap_or(0))
            .collect();
        let bold = |text: &str| format!("{begin}{text}{end}");
        let corner = if one_section { self.sections[0].title.as_str() } else { "" };
        let mut out = if self.caption.is_empty() { String::new() } else { format!("{}\n", self.caption) };
        out += &bold(&pad_right(corner, first));
        for (head, w) in self.columns.iter().zip(&widths) {
            let _ = write!(out, "  {}", pad_left(head, *w));
        }
        out.push('\n');
        for section in &self.sections {
            if !one_section {
                let _ = writeln!(out, "{}", bold(&section.title));
            }
            for row in &section.rows {
                let _ = write!(out, "{}", pad_right(&format!("  {}", row.head()), first));
                for (i, (cell, w)) in row.cells.iter().zip(&widths).enumerate() {
                    let cell = pad_left(cell, *w);
                    let _ = write!(out, "  {}", if row.best.contains(&i) { bold(&cell) } else { cell });
                }
                out.push('\n');
            }
        }
        out
    }
}

pub(crate) fn width(text: &str) -> usize {
    text.chars().count()
}

fn pad_left(text: &str, to: usize) -> String {
    format!("{}{text}", " ".repeat(to.saturating_sub(width(text))))
}

fn pad_right(text: &str, to: usize) -> String {
    format!("{text}{}", " ".repeat(to.saturating_sub(width(text))))
}

#[cfg(test)]
mod tests;
