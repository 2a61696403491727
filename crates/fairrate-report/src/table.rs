//! Tables as data, drawn as text here and as HTML by [`crate::html`].

use std::fmt::Write;

use crate::bootstrap::Interval;
use crate::comparison::{Better, Cell, Comparison, Group, Measure};
use crate::format;
use crate::metrics::{BucketSlowdown, Metrics, PortMetrics, Share};

/// A table: a column of row names, then columns of numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table {
    /// Heads of the number columns.
    pub columns: Vec<String>,
    /// Groups of rows, each under its own title.
    pub sections: Vec<Section>,
}

/// Rows under a title.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Section {
    /// What the rows are about.
    pub title: String,
    /// The rows.
    pub rows: Vec<Row>,
}

/// A named row of cells.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Row {
    /// Name.
    pub name: String,
    /// One text a column.
    pub cells: Vec<String>,
    /// The columns whose values are best, if one can say so.
    pub best: Vec<usize>,
}

/// The table of a comparison: a column an algorithm, a row a number; with several seeds means and their intervals.
pub fn comparison(all: &Comparison) -> Table {
    let columns = all.metrics.iter().map(|m| m.label.clone()).collect();
    let rivals = rivals(all);
    Table { columns, sections: all.groups.iter().map(|g| section(g, &rivals)).collect() }
}

/// How columns differ from the one they are held against, paired by seed: in percent, or as it is where that is zero. A star:
/// the interval excludes zero, and seeds are not few. `None` without several columns and seeds.
pub fn differences(all: &Comparison) -> Option<Table> {
    let several = all.has_seeds() && 1 < all.metrics.len();
    let measures = |g: &Group| {
        let told = g.measures.iter().filter(|m| m.better != Better::Neither);
        told.filter(|m| m.cells.iter().any(|c| c.difference.is_some_and(|(_, d)| d.mean != 0.0)))
            .map(difference_row)
            .collect()
    };
    let sections = all.groups.iter().map(|g| Section { title: g.title.clone(), rows: measures(g) });
    let sections: Vec<Section> = sections.filter(|s: &Section| !s.rows.is_empty()).collect();
    let columns = all.metrics[1..].iter().map(|m| m.label.clone()).collect();
    (several && !sections.is_empty()).then_some(Table { columns, sections })
}

/// The tables of one run: slowdown by size, probed ports, and the run as a whole.
pub fn single(metrics: &Metrics) -> Vec<Table> {
    let mut tables = Vec::new();
    if !metrics.slowdown.is_empty() {
        tables.push(slowdown_by_size(&metrics.slowdown));
    }
    if !metrics.ports.is_empty() {
        tables.push(probed_ports(metrics));
    }
    let all = Comparison::of(vec![metrics.clone()]);
    let told = all.groups.iter().filter(|g| g.title.starts_with("Convergence") || g.title.starts_with("Whole run"));
    tables.push(Table { columns: vec![metrics.label.clone()], sections: told.map(|g| section(g, &[])).collect() });
    tables
}

fn slowdown_by_size(buckets: &[BucketSlowdown]) -> Table {
    let columns = ["flows", "mean", "p50", "p95", "p99", "p99.9", "max"].map(str::to_owned).to_vec();
    let row = |b: &BucketSlowdown| {
        let d = &b.slowdown;
        let values = [d.mean, d.p50, d.p95, d.p99, d.p999, d.max].map(format::optional);
        let flows = b.share().map_or_else(|| format::count(b.flows as f64), |share| share.to_string());
        let cells = std::iter::once(flows).chain(values).collect();
        Row { name: b.bucket.to_owned(), cells, best: Vec::new() }
    };
    let rows = buckets.iter().map(row).collect();
    Table { columns, sections: vec![Section { title: "FCT slowdown".into(), rows }] }
}

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
        best: Vec::new(),
    };
    let section =
        Section { title: "Ports".into(), rows: metrics.all_ports.iter().chain(&metrics.ports).map(row).collect() };
    Table { columns: columns.map(str::to_owned).to_vec(), sections: vec![section] }
}

fn section(group: &Group, rivals: &[Vec<usize>]) -> Section {
    Section { title: group.title.clone(), rows: group.measures.iter().map(|m| row(m, rivals)).collect() }
}

/// Which columns a value is the best of: those of the same grid point, or all where each has a point of its own.
fn rivals(all: &Comparison) -> Vec<Vec<usize>> {
    let mut points: Vec<(&str, Vec<usize>)> = Vec::new();
    for (i, column) in all.metrics.iter().enumerate() {
        match points.iter_mut().find(|(point, _)| *point == column.point) {
            Some((_, columns)) => columns.push(i),
            None => points.push((&column.point, vec![i])),
        }
    }
    if points.len() == all.metrics.len() {
        return vec![(0..points.len()).collect()];
    }
    points.into_iter().map(|(_, columns)| columns).collect()
}

/// The columns among `rivals` that have the best value. Where all texts are equal none is best.
fn best(measure: &Measure, rivals: &[usize]) -> Vec<usize> {
    let mean = |i: usize| measure.cells[i].estimate.map(|e| e.mean);
    let known = rivals.iter().filter_map(|i| mean(*i));
    let target = match measure.better {
        Better::Lower => known.reduce(f64::min),
        Better::Higher => known.reduce(f64::max),
        Better::Neither => None,
    };
    let Some(target) = target.map(measure.show) else { return Vec::new() };
    let is_best = |i: &usize| mean(*i).map(measure.show).as_ref() == Some(&target);
    let best: Vec<usize> = rivals.iter().copied().filter(is_best).collect();
    if best.len() == rivals.len() { Vec::new() } else { best }
}

/// A row of one value per column.
fn row(measure: &Measure, rivals: &[Vec<usize>]) -> Row {
    let show = measure.show;
    let number = |c: &Cell| c.estimate.map_or_else(|| "-".into(), |e| with_interval(show(e.mean), e.interval, show));
    let text = |c: &Cell| with_share(number(c), c.share);
    let cells = measure.cells.iter().map(text).collect();
    Row { name: measure.name.to_owned(), cells, best: rivals.iter().flat_map(|r| best(measure, r)).collect() }
}

/// `1.10 (9 of 16)`: a number that knows only the flows that finished.
fn with_share(number: String, share: Option<Share>) -> String {
    match share {
        Some(share) => format!("{number} ({share})"),
        None => number,
    }
}

fn difference_row(measure: &Measure) -> Row {
    let percent = |x: f64| format!("{:+.1} %", 100.0 * x);
    let cell = |cell: &Cell| {
        let Some((_, d)) = cell.difference else { return "-".to_owned() };
        let text = if let Some((change, interval)) = d.change() {
            with_interval(percent(change), interval, percent)
        } else {
            let sign = if 0.0 < d.mean { "+" } else { "" };
            with_interval(format!("{sign}{}", (measure.show)(d.mean)), d.interval, measure.show)
        };
        let text = if d.is_clear() { format!("{text} *") } else { text };
        with_share(text, cell.share)
    };
    Row { name: measure.name.to_owned(), cells: measure.cells[1..].iter().map(cell).collect(), best: Vec::new() }
}

/// `12.3 KB [11.9, 12.8]`; the unit again at the ends if it is another one, and no interval if it is a point.
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

impl Table {
    /// The table without the rows called `name`.
    #[must_use]
    pub fn without(mut self, name: &str) -> Self {
        for section in &mut self.sections {
            section.rows.retain(|r| r.name != name);
        }
        self
    }

    /// The table as text, in several ones with the same rows if a line would be longer than `widest`.
    pub fn to_blocks(&self, styled: bool, widest: usize) -> String {
        let line = |table: &Self| table.to_text(false).lines().map(width).max().unwrap_or(0);
        let mut blocks: Vec<Self> = Vec::new();
        let mut from = 0;
        while from < self.columns.len() {
            let fits = |to: &usize| line(&self.of_columns(from, *to)) <= widest;
            let to = (from + 2..=self.columns.len()).take_while(fits).last().unwrap_or(from + 1);
            blocks.push(self.of_columns(from, to));
            from = to;
        }
        blocks.iter().map(|b| b.to_text(styled)).collect::<Vec<_>>().join("\n")
    }

    fn of_columns(&self, from: usize, to: usize) -> Self {
        let row = |row: &Row| Row {
            name: row.name.clone(),
            cells: row.cells[from..to].to_vec(),
            best: row.best.iter().filter(|i| (from..to).contains(i)).map(|i| i - from).collect(),
        };
        let section = |s: &Section| Section { title: s.title.clone(), rows: s.rows.iter().map(row).collect() };
        Self { columns: self.columns[from..to].to_vec(), sections: self.sections.iter().map(section).collect() }
    }

    /// The table as text, columns aligned; with `styled`, section titles and the best values are bold.
    pub fn to_text(&self, styled: bool) -> String {
        let rows = || self.sections.iter().flat_map(|s| &s.rows);
        let one_section = self.sections.len() == 1;
        let titles = self.sections.iter().filter(|_| one_section).map(|s| width(&s.title));
        let first = rows().map(|r| width(&r.name) + 2).chain(titles).max().unwrap_or(0);
        let widths: Vec<usize> = (self.columns.iter().enumerate())
            .map(|(i, head)| rows().map(|r| width(&r.cells[i])).chain([width(head)]).max().unwrap_or(0))
            .collect();
        let bold = |text: &str, on: bool| if styled && on { format!("\x1b[1m{text}\x1b[0m") } else { text.to_owned() };
        let corner = if one_section { self.sections[0].title.as_str() } else { "" };
        let mut out = bold(&pad_right(corner, first), true);
        for (head, w) in self.columns.iter().zip(&widths) {
            let _ = write!(out, "  {}", pad_left(head, *w));
        }
        out.push('\n');
        for section in &self.sections {
            if !one_section {
                let _ = writeln!(out, "{}", bold(&section.title, true));
            }
            for row in &section.rows {
                let _ = write!(out, "{}", pad_right(&format!("  {}", row.name), first));
                for (i, (cell, w)) in row.cells.iter().zip(&widths).enumerate() {
                    let _ = write!(out, "  {}", bold(&pad_left(cell, *w), row.best.contains(&i)));
                }
                out.push('\n');
            }
        }
        out
    }
}

fn width(text: &str) -> usize {
    text.chars().count()
}

fn pad_left(text: &str, to: usize) -> String {
    format!("{}{text}", " ".repeat(to.saturating_sub(width(text))))
}

fn pad_right(text: &str, to: usize) -> String {
    format!("{text}{}", " ".repeat(to.saturating_sub(width(text))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::{Convergence, DeadlineMetrics};
    use crate::synthetic;

    fn metrics(ccs: &[&str]) -> Vec<Metrics> {
        synthetic::comparison(ccs, &[1]).iter().map(Metrics::of).collect()
    }

    #[test]
    fn a_comparison_as_text() {
        insta::assert_snapshot!(comparison(&Comparison::of(metrics(&["powertcp", "hpcc", "dcqcn"]))).to_text(false));
    }

    #[test]
    fn one_run_as_text() {
        let tables = single(&metrics(&["powertcp"])[0]);
        insta::assert_snapshot!(tables.iter().map(|t| t.to_text(false)).collect::<Vec<_>>().join("\n"));
    }

    #[test]
    fn convergence_control_traffic_reordering_and_deadlines_have_rows_where_there_is_any() {
        let mut all = metrics(&["powertcp", "hpcc"]);
        let names = |table: &Table| -> Vec<String> {
            table.sections.iter().flat_map(|s| &s.rows).map(|r| r.name.clone()).collect()
        };
        let without = names(&comparison(&Comparison::of(all.clone())));
        let settled = Convergence { changes: 4, converged: 3, p50_rtts: Some(4.5), p99_rtts: None };
        all[1].convergence = Some(settled);
        (all[1].notices, all[1].control_bytes, all[1].control_share) = (7.0, 640.0, Some(0.0123));
        (all[1].reordered_bytes, all[1].reordering_mean_ns, all[1].reordering_max_ns) = (5e4, 1_500.0, 9e3);
        let table = comparison(&Comparison::of(all.clone()));
        let row = |name: &str| table.sections.iter().flat_map(|s| &s.rows).find(|r| r.name == name).unwrap().clone();
        assert_eq!(row("changes converged").cells, ["-", "75.0 %"]);
        assert_eq!(
            (row("p50 (base RTTs)").cells, row("p99 (base RTTs)").cells[1].as_str()),
            (vec!["-".into(), "4.50".into()], "-")
        );
        assert_eq!(
            (row("notices").cells, row("control traffic").cells),
            (vec!["0".into(), "7".into()], vec!["0 %".into(), "1.23 %".into()])
        );
        assert_eq!(row("reordered").cells[1], "50.0 KB");
        assert_eq!((&*row("reordering mean").cells[1], &*row("reordering max").cells[1]), ("1.50 µs", "9.00 µs"));
        assert_eq!(names(&table).len(), without.len() + 9);
        all[0].deadlines = Some(DeadlineMetrics { flows: 8, missed: 1, open: 0, missed_share: Some(0.125) });
        let table = comparison(&Comparison::of(all.clone()));
        let row = table.sections.iter().flat_map(|s| &s.rows).find(|r| r.name == "deadlines missed").unwrap();
        assert_eq!(row.cells, ["12.5 %", "-"]);
        assert_eq!(single(&all[1]).last().unwrap().sections[0].title, "Convergence of rates (4 changes)");
    }

    #[test]
    fn numbers_of_finished_flows_say_how_many_these_are() {
        let mut variants = synthetic::comparison(&["powertcp", "hpcc"], &[1]);
        for flow in variants[1].runs[0].flows.iter_mut().take(1_000) {
            (flow.fct_ns, flow.slowdown) = (None, None);
        }
        let all: Vec<Metrics> = variants.iter().map(Metrics::of).collect();
        let comparison = Comparison::of(all.clone());
        let table = super::comparison(&comparison);
        for row in &table.sections[0].rows {
            assert!(!row.cells[0].contains(" of ") && row.cells[1].ends_with(" (2,000 of 3,000)"), "{row:?}");
        }
        let text = single(&all[1])[0].to_text(false);
        assert!(text.lines().nth(1).is_some_and(|l| l.contains(" 2,000 of 3,000 ")), "{text}");
        let statistics = serde_json::to_value(comparison.statistics()).unwrap();
        let of = |column: &str| {
            let values = statistics["values"].as_array().unwrap();
            let found = values.iter().find(|v| v["metric"] == "slowdown[all sizes].p99" && v["column"] == column);
            found.map(|v| (v["finished"].clone(), v["flows"].clone()))
        };
        assert_eq!(of("hpcc"), Some((2_000.into(), 3_000.into())));
        assert_eq!(of("powertcp"), Some((serde_json::Value::Null, serde_json::Value::Null)));
    }

    #[test]
    fn bold_changes_no_column() {
        let table = comparison(&Comparison::of(metrics(&["powertcp", "hpcc"])));
        let plain = table.to_text(true).replace("\x1b[1m", "").replace("\x1b[0m", "");
        assert_eq!(plain, table.to_text(false));
    }

    #[test]
    fn a_wide_table_becomes_several() {
        let table = comparison(&Comparison::of(metrics(&["powertcp", "hpcc", "dcqcn", "swift", "timely"])));
        assert_eq!(table.to_blocks(false, 1_000), table.to_text(false));
        let text = table.to_blocks(false, 60);
        assert!(text.lines().all(|line| width(line) <= 60), "{text}");
        assert_eq!((text.matches("goodput").count(), text.matches("swift").count()), (2, 1));
        assert_eq!(table.to_blocks(false, 1).matches("goodput").count(), 5);
    }

    #[test]
    fn the_best_of_a_grid_is_the_best_of_its_point() {
        let of = |ccs: &[&str]| {
            let variants = synthetic::grid(ccs, &[("load", &["0.2", "0.4"])], &[1]);
            let table = comparison(&Comparison::of(variants.iter().map(Metrics::of).collect()));
            let rows = table.sections.last().unwrap().rows.clone();
            rows.into_iter().find(|r| r.name == "goodput").unwrap().best
        };
        assert_eq!((of(&["powertcp", "hpcc"]), of(&["powertcp"])), (vec![0, 2], vec![]));
    }

    #[test]
    fn ties_of_all_are_nobodys_win() {
        let table = comparison(&Comparison::of(metrics(&["powertcp", "hpcc"])));
        let best =
            |name: &str| table.sections.last().unwrap().rows.iter().find(|r| r.name == name).unwrap().best.clone();
        assert_eq!((best("flows done"), best("unfinished"), best("goodput")), (vec![], vec![], vec![0]));
    }

    #[test]
    fn several_seeds_as_text() {
        let seeds = [1, 2, 3, 4, 5];
        let all = synthetic::comparison(&["powertcp", "hpcc"], &seeds).iter().map(Metrics::of).collect();
        let all = Comparison::of(all);
        let text = [comparison(&all).to_text(false), differences(&all).unwrap().to_text(false)].join("\n");
        insta::assert_snapshot!(text);
        let few = synthetic::comparison(&["powertcp", "hpcc"], &seeds[..2]).iter().map(Metrics::of).collect();
        assert!(!differences(&Comparison::of(few)).unwrap().to_text(false).contains('*'));
        assert_eq!(differences(&Comparison::of(metrics(&["powertcp", "hpcc"]))), None);
    }

    #[test]
    fn an_interval_has_the_unit_of_its_mean() {
        let range = |low, high| Some(Interval { low, high });
        let text = |mean, interval| with_interval(format::bytes(mean), interval, format::bytes);
        assert_eq!(text(13_700.0, range(12_100.0, 14_000.0)), "13.7 KB [12.1, 14.0]");
        assert_eq!(text(1_010.0, range(990.0, 1_020.0)), "1.01 KB [990 B, 1.02 KB]");
        assert_eq!((text(0.0, range(0.0, 0.0)), text(5.0, None)), ("0 B".into(), "5 B".into()));
    }
}
