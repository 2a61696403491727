//! The flows of a run with the largest slowdowns: over time, and with the command that explains each.

use fairrate_results::FlowRow;
use fairrate_scenario::Scenario;

use crate::format;
use crate::load::at_least;
use crate::model::own_name;
use crate::panel::{Axis, Panel, Series, TimeUnit};
use crate::style::Style;
use crate::table::{Row, Section, Table};

/// Number of flows.
const N: usize = 10;

/// One of the worst flows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WorstFlow {
    /// Number of the flow.
    pub id: u32,
    /// Names of its hosts, as `h0->h16`.
    pub name: String,
    /// Name of its traffic block, or its number.
    pub block: String,
    /// Payload.
    pub bytes: u64,
    /// Start, in ns.
    pub start_ns: f64,
    /// End, in ns; of an unfinished flow that of the run.
    pub end_ns: f64,
    /// Set if it has finished.
    pub finished: bool,
    /// Completion time over that of the flow alone; if it is unfinished, its time so far over it.
    pub slowdown: f64,
    /// Payload sent again.
    pub retransmitted_bytes: u64,
    /// Retransmission timeouts.
    pub timeouts: u32,
    /// Set if `fairrate explain` has an account of it.
    pub is_explained: bool,
}

/// Number of rows of which the worst are looked for at once.
const AT_ONCE: usize = 1_024;

/// The rows of the worst flows so far of a run.
pub(crate) struct Worst {
    end_ns: f64,
    /// Rows with their slowdowns, [`AT_ONCE`] at most.
    rows: Vec<(f64, FlowRow)>,
    /// Slowdown below which no row is among the worst.
    least: f64,
}

impl Worst {
    /// Returns those of a run that ended at `end_ns`, before any row.
    pub(crate) fn until(end_ns: f64) -> Self {
        Self { end_ns, rows: Vec::with_capacity(AT_ONCE), least: 0.0 }
    }

    /// Adds a flow.
    pub(crate) fn add(&mut self, row: FlowRow) {
        let Some(slowdown) = row.slowdown.or_else(|| at_least(&row, self.end_ns)) else { return };
        if slowdown < self.least {
            return;
        }
        self.rows.push((slowdown, row));
        if self.rows.len() == AT_ONCE {
            self.keep_worst();
        }
    }

    fn keep_worst(&mut self) {
        self.rows.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.id.cmp(&b.1.id)));
        self.rows.truncate(N);
        self.least = self.rows.last().map_or(0.0, |(slowdown, _)| *slowdown);
    }

    /// Returns the worst flows; `node` returns the name of a node, and `blocks` has those of traffic blocks.
    pub(crate) fn named(
        mut self,
        scenario: Option<&Scenario>,
        blocks: &[String],
        node: impl Fn(u32) -> String,
    ) -> Vec<WorstFlow> {
        self.keep_worst();
        // Endless flows have no slowdown.
        let is_explained = scenario.is_some_and(|s| fairrate_explain::supports_flows(s.sim_config()).is_ok());
        let block = |row: &FlowRow| own_name(blocks, row.group).cloned().unwrap_or_else(|| row.group.to_string());
        let of = |(slowdown, row): (f64, FlowRow)| WorstFlow {
            id: row.id,
            name: format!("{}->{}", node(row.src), node(row.dst)),
            block: block(&row),
            bytes: row.bytes.unwrap_or(0),
            start_ns: row.start_ns as f64,
            end_ns: row.fct_ns.map_or(self.end_ns, |fct| (row.start_ns + fct) as f64),
            finished: row.finished,
            slowdown,
            retransmitted_bytes: row.retransmitted_bytes,
            timeouts: row.timeouts,
            is_explained,
        };
        self.rows.into_iter().map(of).collect()
    }
}

impl WorstFlow {
    /// Returns the command that explains the flow, for the directory of the page.
    fn command(&self) -> String {
        if self.is_explained { format!("fairrate explain . --flow {}", self.id) } else { "-".to_owned() }
    }

    fn slowdown(&self) -> String {
        format!("{}{}", if self.finished { "" } else { "\u{2265} " }, format::number(self.slowdown))
    }
}

/// Returns the flows as bars from start to end, over the time axis `x`; `None` if there are less than two.
pub(crate) fn panel(flows: &[WorstFlow], key: &str, style: Style, unit: TimeUnit, x: Axis) -> Option<Panel> {
    if flows.len() < 2 {
        return None;
    }
    let row = |flow: &WorstFlow| format!("{}: {}, {}", flow.id, flow.name, format::bytes(flow.bytes as f64));
    let hint = |flow: &WorstFlow| {
        let (time, slowdown) = (format::time_ns(flow.end_ns - flow.start_ns), flow.slowdown());
        let command = if flow.is_explained { format!(", {}", flow.command()) } else { String::new() };
        format!("{time}, slowdown {slowdown}{command}")
    };
    let series = flows.iter().enumerate().map(|(at, flow)| Series {
        key: key.to_owned(),
        name: row(flow),
        style,
        x: unit.of(&[flow.start_ns, flow.end_ns]),
        y: vec![at as f64],
        hint: vec![hint(flow)],
        ..Series::default()
    });
    Some(Panel {
        title: format!("The {} flows with the largest slowdowns", flows.len()),
        note: "From start to last byte, the largest slowdown first; the table below says how to explain each".into(),
        x,
        y: Axis { rows: flows.iter().map(row).collect(), ..Axis::default() },
        series: series.collect(),
        wide: true,
        ..Panel::default()
    })
}

/// Returns the flows as a table, each with the command that explains it; `None` without any.
pub(crate) fn table(flows: &[WorstFlow]) -> Option<Table> {
    if flows.is_empty() {
        return None;
    }
    let row = |flow: &WorstFlow| Row {
        name: format!("{}: {}", flow.id, flow.name),
        cells: vec![
            flow.block.clone(),
            format::bytes(flow.bytes as f64),
            format::time_ns(flow.start_ns),
            if flow.finished { format::time_ns(flow.end_ns - flow.start_ns) } else { "-".to_owned() },
            flow.slowdown(),
            format::bytes(flow.retransmitted_bytes as f64),
            flow.timeouts.to_string(),
            flow.command(),
        ],
        ..Row::default()
    };
    let columns = ["block", "bytes", "start", "FCT", "slowdown", "sent again", "timeouts", "why so slow?"];
    let is_explained = flows.iter().any(|flow| flow.is_explained);
    Some(Table {
        caption: format!(
            "The flows with the largest slowdowns, of the whole run.{}",
            if is_explained { " Run the command in the directory of this page." } else { "" }
        ),
        columns: columns.map(str::to_owned).to_vec(),
        sections: vec![Section { title: "flow".to_owned(), rows: flows.iter().map(row).collect() }],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flow_has_a_bar_and_its_command() {
        let flow = |id, finished, is_explained| WorstFlow {
            id,
            name: format!("h{id}->h9"),
            block: "web".into(),
            bytes: 10_000,
            start_ns: 20_000.0,
            end_ns: 562_000.0,
            finished,
            slowdown: 95.3,
            retransmitted_bytes: 0,
            timeouts: 1,
            is_explained,
        };
        let flows = [flow(8, true, true), flow(5, false, false)];
        let unit = TimeUnit::for_span(1e6);
        let panel = panel(&flows, "DCTCP", Style::default(), unit, unit.axis()).unwrap();
        assert_eq!(panel.y.rows, ["8: h8->h9, 10.0 KB", "5: h5->h9, 10.0 KB"]);
        assert_eq!((panel.series[0].x.as_slice(), panel.series[1].y[0]), (&[20.0, 562.0][..], 1.0));
        assert_eq!(panel.series[0].hint, ["542 µs, slowdown 95.3, fairrate explain . --flow 8"]);
        let table = table(&flows).unwrap();
        let cells: Vec<&[String]> = table.sections[0].rows.iter().map(|row| &row.cells[3..]).collect();
        assert_eq!(cells[0], ["542 µs", "95.3", "0 B", "1", "fairrate explain . --flow 8"]);
        assert_eq!(cells[1], ["-", "\u{2265} 95.3", "0 B", "1", "-"]);
    }
}
