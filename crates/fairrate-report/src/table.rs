//! Tables as data, drawn as text here and as HTML by [`crate::html`].

use std::fmt::Write;

use crate::format;
use crate::metrics::{BucketSlowdown, Convergence, Metrics, PortMetrics};
use crate::stats::Distribution;

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

/// Which value of a row is the best.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Better {
    Lower,
    Higher,
    Neither,
}

/// Ports that a comparison shows one by one; of more it shows all together.
pub const MAX_PORTS: usize = 4;

type Value<'a> = &'a dyn Fn(&Metrics) -> Option<f64>;

/// The one table of a comparison: a column an algorithm, a row a number.
pub fn comparison(all: &[Metrics]) -> Table {
    let columns = all.iter().map(|m| m.label.clone()).collect();
    let mut sections = Vec::new();
    for bucket in buckets(all) {
        sections.push(slowdown_section(all, bucket));
    }
    let ports = ports(all);
    if MAX_PORTS < ports.len() {
        sections.push(all_ports_section(all));
    } else {
        sections.extend(ports.into_iter().map(|port| port_section(all, port)));
    }
    sections.extend(convergence_section(all));
    sections.push(run_section(all));
    Table { columns, sections }
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
    let one = std::slice::from_ref(metrics);
    let sections = convergence_section(one).into_iter().chain([run_section(one)]).collect();
    tables.push(Table { columns: vec![metrics.label.clone()], sections });
    tables
}

fn slowdown_by_size(buckets: &[BucketSlowdown]) -> Table {
    let columns = ["flows", "mean", "p50", "p95", "p99", "p99.9", "max"].map(str::to_owned).to_vec();
    let row = |b: &BucketSlowdown| {
        let d = &b.slowdown;
        let values = [d.mean, d.p50, d.p95, d.p99, d.p999, d.max].map(format::optional);
        let cells = std::iter::once(format::count(d.n as f64)).chain(values).collect();
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

/// Every size bucket that some algorithm has flows in; only `all sizes` where that says everything.
fn buckets(all: &[Metrics]) -> Vec<&'static str> {
    let mut names: Vec<&'static str> = Vec::new();
    for bucket in all.iter().flat_map(|m| &m.slowdown) {
        if !names.contains(&bucket.bucket) {
            names.push(bucket.bucket);
        }
    }
    let order = |name: &&str| crate::metrics::SIZE_BUCKETS.iter().position(|b| b.name == *name);
    names.sort_by_key(order);
    if names.len() == 2 {
        names.truncate(1);
    }
    names
}

fn ports(all: &[Metrics]) -> Vec<&str> {
    let first = all.iter().max_by_key(|m| m.ports.len());
    first.map_or_else(Vec::new, |m| m.ports.iter().map(|p| p.port.as_str()).collect())
}

fn slowdown_section(all: &[Metrics], bucket: &'static str) -> Section {
    let of = |m: &Metrics| m.slowdown.iter().find(|b| b.bucket == bucket).map(|b| b.slowdown);
    let pick = |f: fn(&Distribution) -> Option<f64>| move |m: &Metrics| of(m).as_ref().and_then(f);
    let rows = vec![
        row(all, "mean", Better::Lower, &pick(|d| d.mean), format::number),
        row(all, "p50", Better::Lower, &pick(|d| d.p50), format::number),
        row(all, "p95", Better::Lower, &pick(|d| d.p95), format::number),
        row(all, "p99", Better::Lower, &pick(|d| d.p99), format::number),
        row(all, "p99.9", Better::Lower, &pick(|d| d.p999), format::number),
    ];
    let n = all.iter().filter_map(of).map(|d| d.n).max().unwrap_or(0);
    Section { title: format!("FCT slowdown, {bucket} ({} flows)", format::count(n as f64)), rows }
}

fn port_section(all: &[Metrics], port: &str) -> Section {
    let of = |m: &Metrics| m.ports.iter().find(|p| p.port == port).cloned();
    Section { title: format!("Port {port}"), rows: port_rows(all, &of) }
}

fn all_ports_section(all: &[Metrics]) -> Section {
    let title = all.iter().find_map(|m| m.all_ports.as_ref()).map_or_else(String::new, |p| p.port.clone());
    let title = title.replacen("all", "All", 1);
    Section { title, rows: port_rows(all, &|m| m.all_ports.clone()) }
}

fn port_rows(all: &[Metrics], of: &dyn Fn(&Metrics) -> Option<PortMetrics>) -> Vec<Row> {
    let pick = |f: fn(&PortMetrics) -> Option<f64>| move |m: &Metrics| of(m).as_ref().and_then(f);
    vec![
        row(all, "utilisation", Better::Higher, &pick(|p| p.utilisation), format::percent),
        row(all, "queue mean", Better::Lower, &pick(|p| Some(p.qlen_mean_bytes)), format::bytes),
        row(all, "queue p99", Better::Lower, &pick(|p| Some(p.qlen_p99_bytes)), format::bytes),
        row(all, "queue peak", Better::Lower, &pick(|p| Some(p.qlen_peak_bytes)), format::bytes),
    ]
}

/// How rates settled, where a probe looked.
fn convergence_section(all: &[Metrics]) -> Option<Section> {
    let changes = all.iter().filter_map(|m| m.convergence).map(|c| c.changes).max()?;
    let pick = |f: fn(&Convergence) -> Option<f64>| move |m: &Metrics| m.convergence.as_ref().and_then(f);
    let share = |c: &Convergence| Some(c.converged as f64 / c.changes as f64);
    let rows = vec![
        row(all, "changes converged", Better::Higher, &pick(share), format::percent),
        row(all, "p50 (base RTTs)", Better::Lower, &pick(|c| c.p50_rtts), format::number),
        row(all, "p99 (base RTTs)", Better::Lower, &pick(|c| c.p99_rtts), format::number),
    ];
    let plural = if changes == 1 { "" } else { "s" };
    Some(Section { title: format!("Convergence of rates ({} change{plural})", format::count(changes as f64)), rows })
}

/// What ports and flows sent to control rates, where any did.
fn control_rows(all: &[Metrics]) -> Vec<Row> {
    if all.iter().all(|m| m.control_bytes == 0.0) {
        return Vec::new();
    }
    vec![
        row(all, "notices", Better::Neither, &|m| Some(m.notices), format::count),
        row(all, "control packets", Better::Neither, &|m| Some(m.control_packets), format::count),
        row(all, "control traffic", Better::Lower, &|m| Some(m.control_share.unwrap_or(0.0)), |x| {
            format!("{} %", format::number(100.0 * x))
        }),
    ]
}

/// How long data of multipath connections waited for data before it, where any did.
fn reordering_rows(all: &[Metrics]) -> Vec<Row> {
    if all.iter().all(|m| m.reordered_bytes == 0.0) {
        return Vec::new();
    }
    vec![
        row(all, "reordered", Better::Lower, &|m| Some(m.reordered_bytes), format::bytes),
        row(all, "reordering mean", Better::Lower, &|m| Some(m.reordering_mean_ns), format::time_ns),
        row(all, "reordering max", Better::Lower, &|m| Some(m.reordering_max_ns), format::time_ns),
    ]
}

fn run_section(all: &[Metrics]) -> Section {
    let mut rows = vec![
        row(all, "goodput", Better::Higher, &|m| Some(m.goodput_bps), format::rate),
        row(all, "Jain index", Better::Higher, &|m| m.jain, |x| format!("{x:.4}")),
        row(all, "PFC pauses", Better::Lower, &|m| Some(m.pfc_pauses), format::count),
        row(all, "drops", Better::Lower, &|m| Some(m.drops), format::count),
        row(all, "ECN marks", Better::Neither, &|m| Some(m.ecn_marks), format::count),
    ];
    rows.extend(control_rows(all));
    rows.push(row(all, "sent again", Better::Lower, &|m| Some(m.retransmitted_bytes), format::bytes));
    rows.extend(reordering_rows(all));
    rows.extend([
        row(all, "flows done", Better::Neither, &|m| Some(m.flows_done), format::count),
        row(all, "unfinished", Better::Lower, &|m| Some(m.flows_unfinished), format::count),
        row(all, "packet-hops", Better::Neither, &|m| Some(m.packet_hops), format::count),
        row(all, "ns per packet-hop", Better::Neither, &|m| m.ns_per_packet_hop, |x| format!("{x:.0}")),
    ]);
    Section { title: "Whole run".into(), rows }
}

/// A row of one value per algorithm. Where all texts are equal none is best.
fn row(all: &[Metrics], name: &str, better: Better, value: Value<'_>, show: fn(f64) -> String) -> Row {
    let values: Vec<Option<f64>> = all.iter().map(value).collect();
    let cells: Vec<String> = values.iter().map(|v| v.map_or_else(|| "-".into(), show)).collect();
    let known = values.iter().flatten().copied();
    let target = match better {
        Better::Lower => known.reduce(f64::min),
        Better::Higher => known.reduce(f64::max),
        Better::Neither => None,
    };
    let shown = target.map(show);
    let mut best: Vec<usize> = (0..cells.len()).filter(|i| Some(&cells[*i]) == shown.as_ref()).collect();
    if best.len() == cells.len() {
        best.clear();
    }
    Row { name: name.to_owned(), cells, best }
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
    use crate::synthetic;

    fn metrics(ccs: &[&str]) -> Vec<Metrics> {
        synthetic::comparison(ccs, &[1]).iter().map(Metrics::of).collect()
    }

    #[test]
    fn a_comparison_as_text() {
        insta::assert_snapshot!(comparison(&metrics(&["powertcp", "hpcc", "dcqcn"])).to_text(false));
    }

    #[test]
    fn one_run_as_text() {
        let tables = single(&metrics(&["powertcp"])[0]);
        insta::assert_snapshot!(tables.iter().map(|t| t.to_text(false)).collect::<Vec<_>>().join("\n"));
    }

    #[test]
    fn convergence_control_traffic_and_reordering_have_rows_where_there_is_any() {
        let mut all = metrics(&["powertcp", "hpcc"]);
        let names = |table: &Table| -> Vec<String> {
            table.sections.iter().flat_map(|s| &s.rows).map(|r| r.name.clone()).collect()
        };
        let without = names(&comparison(&all));
        let settled = Convergence { changes: 4, converged: 3, p50_rtts: Some(4.5), p99_rtts: None };
        all[1].convergence = Some(settled);
        (all[1].notices, all[1].control_bytes, all[1].control_share) = (7.0, 640.0, Some(0.0123));
        (all[1].reordered_bytes, all[1].reordering_mean_ns, all[1].reordering_max_ns) = (5e4, 1_500.0, 9e3);
        let table = comparison(&all);
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
        assert_eq!(single(&all[1]).last().unwrap().sections[0].title, "Convergence of rates (4 changes)");
    }

    #[test]
    fn bold_changes_no_column() {
        let table = comparison(&metrics(&["powertcp", "hpcc"]));
        let plain = table.to_text(true).replace("\x1b[1m", "").replace("\x1b[0m", "");
        assert_eq!(plain, table.to_text(false));
    }

    #[test]
    fn ties_of_all_are_nobodys_win() {
        let all = metrics(&["powertcp", "hpcc"]);
        assert_eq!(row(&all, "x", Better::Lower, &|_| Some(1.0), format::number).best, Vec::<usize>::new());
        assert_eq!(row(&all, "x", Better::Higher, &|m| Some(m.goodput_bps), format::rate).best.len(), 1);
    }
}
