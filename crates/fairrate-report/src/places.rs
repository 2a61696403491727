//! Drops, marks and pauses by port and by cause.

use crate::format;
use crate::model::RunData;
use crate::network::LinkTotals;
use crate::table::{Row, Section, Table};

/// Largest number of ports of the table.
const MAX_PORTS: usize = 12;

/// Returns the ports of a run that dropped, marked or were paused most, with their numbers; `None` if none did.
pub(crate) fn table(run: &RunData) -> Option<Table> {
    let touched = |link: &&LinkTotals| 0 < link.dropped() || 0 < link.ecn_marks || 0.0 < link.pfc_pause_ns;
    let mut links: Vec<&LinkTotals> = run.links.iter().filter(touched).collect();
    if links.is_empty() {
        return None;
    }
    let key = |link: &LinkTotals| (link.dropped(), link.ecn_marks, link.pfc_pause_ns as u64);
    links.sort_by(|a, b| key(b).cmp(&key(a)).then_with(|| a.port.cmp(&b.port)));
    let mut causes: Vec<&str> = Vec::new();
    for (cause, _) in links.iter().flat_map(|link| &link.drops) {
        if !causes.contains(cause) {
            causes.push(cause);
        }
    }
    let of = |links: &[&LinkTotals], cause: &str| {
        links.iter().flat_map(|link| &link.drops).filter(|(name, _)| *name == cause).map(|(_, n)| n).sum::<u64>()
    };
    let sum = |links: &[&LinkTotals], value: fn(&LinkTotals) -> u64| links.iter().map(|link| value(link)).sum::<u64>();
    let cells = |links: &[&LinkTotals], paused_ns: f64, utilisation: f64| {
        let counts = [sum(links, |link| link.ecn_marks), sum(links, LinkTotals::dropped)];
        let by_cause = causes.iter().map(|cause| of(links, cause));
        let counts = counts.into_iter().chain(by_cause).map(|n| format::count(n as f64));
        [format::percent(utilisation), format::time_ns(paused_ns)].into_iter().chain(counts).collect()
    };
    let (end_ns, n) = (run.totals.end_ns, links.len());
    let row = |link: &&LinkTotals| Row {
        name: link.port.clone(),
        cells: cells(&[link], link.pfc_pause_ns, link.utilisation(end_ns)),
        ..Row::default()
    };
    let mut rows: Vec<Row> = links.iter().take(MAX_PORTS).map(row).collect();
    let mean = |value: fn(&LinkTotals, f64) -> f64, links: &[&LinkTotals]| {
        links.iter().map(|link| value(link, end_ns)).sum::<f64>() / links.len().max(1) as f64
    };
    if MAX_PORTS < n {
        let rest = &links[MAX_PORTS..];
        let name = format!("{} other ports (means of the first two)", n - MAX_PORTS);
        let cells = cells(rest, mean(|link, _| link.pfc_pause_ns, rest), mean(LinkTotals::utilisation, rest));
        rows.push(Row { name, cells, ..Row::default() });
    }
    let columns = ["utilisation", "paused", "marks", "drops"].map(str::to_owned);
    let by_cause = causes.iter().map(|cause| format!("drops: {}", cause.replace('_', " ")));
    Some(Table {
        caption: format!("Ports with the most drops, then marks, then pauses, of {n} that had any, in the whole run"),
        columns: columns.into_iter().chain(by_cause).collect(),
        sections: vec![Section { title: "port".to_owned(), rows }],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_with_drops_are_first_and_the_rest_is_summed() {
        let link = |i: u64| LinkTotals {
            port: format!("tor{i}->h{i}"),
            rate_bps: 8e9,
            tx_bytes: 100.0,
            ecn_marks: i,
            drops: if i == 3 { vec![("egress_threshold", 2), ("early", 1)] } else { Vec::new() },
            ..LinkTotals::default()
        };
        let mut run = RunData { links: (0..15).map(link).collect(), ..RunData::default() };
        run.totals.end_ns = 1_000.0;
        let table = table(&run).unwrap();
        assert_eq!(table.columns[2..], ["marks", "drops", "drops: egress threshold", "drops: early"]);
        let rows = &table.sections[0].rows;
        assert_eq!(
            (rows[0].name.as_str(), &rows[0].cells[2..]),
            ("tor3->h3", &["3", "3", "2", "1"].map(str::to_owned)[..])
        );
        // Ports 0 and 3 aside, 14 to 4 are shown; ports 1 and 2 are left.
        assert_eq!((rows.len(), rows[12].name.as_str()), (13, "2 other ports (means of the first two)"));
        assert_eq!(rows[12].cells, ["10.0 %", "0 ns", "3", "0", "0", "0"]);
        assert_eq!(super::table(&RunData::default()), None);
    }
}
