use super::*;
use crate::bootstrap::FEW;
use crate::metrics::{Convergence, DeadlineMetrics};
use crate::model::Maybe;
use crate::{notes, synthetic};

fn metrics(ccs: &[&str]) -> Vec<Metrics> {
    synthetic::comparison(ccs, &[1]).iter().map(Metrics::of).collect()
}

#[test]
fn a_comparison_as_text() {
    insta::assert_snapshot!(comparison(&Comparison::of(metrics(&["powertcp", "hpcc", "dcqcn"]))).to_text());
}

#[test]
fn one_run_as_text() {
    let tables = single(&metrics(&["powertcp"])[0]);
    insta::assert_snapshot!(tables.iter().map(Table::to_text).collect::<Vec<_>>().join("\n"));
}

#[test]
fn of_many_ports_those_with_the_longest_queues_have_rows() {
    let mut one = metrics(&["powertcp"]).remove(0);
    let port = |at: usize| PortMetrics {
        port: format!("a->b{at}"),
        qlen_p99_bytes: (at % 50) as f64,
        ..PortMetrics::default()
    };
    one.ports = (0..100).map(port).collect();
    let table = probed_ports(&one);
    let names: Vec<&str> =
        table.sections[0].rows.iter().map(|row| row.name.as_str()).filter(|name| !name.contains(' ')).collect();
    let longest: Vec<String> = (34..50).chain(84..100).map(|at| format!("a->b{at}")).collect();
    assert_eq!(names, longest);
    assert_eq!(table.sections[0].rows.last().map(|row| row.name.as_str()), Some("68 with shorter queues"));
    one.ports.truncate(32);
    assert!(probed_ports(&one).sections[0].rows.iter().all(|row| !row.name.contains("shorter")));
}

#[test]
fn convergence_control_traffic_trims_reordering_and_deadlines_have_rows_where_there_is_any() {
    let mut all = metrics(&["powertcp", "hpcc"]);
    let names = |table: &Table| -> Vec<String> {
        table.sections.iter().flat_map(|s| &s.rows).map(|r| r.name.clone()).collect()
    };
    let without = names(&comparison(&Comparison::of(all.clone())));
    let settled = Convergence { changes: 4, converged: 3, p50_rtts: Some(4.5), p99_rtts: None };
    all[1].convergence = Some(settled);
    (all[1].counts.notices, all[1].control_bytes, all[1].control_share) = (7.0, 640.0, Some(0.0123));
    (all[1].reordered_bytes, all[1].reordering_mean_ns, all[1].reordering_max_ns) = (5e4, 1_500.0, 9e3);
    (all[1].counts.trims, all[1].trimmed_bytes, all[1].counts.returns) = (1_500.0, 6.2e6, 12.0);
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
    assert_eq!((row("trims").cells, &*row("trimmed").cells[1]), (vec!["0".into(), "1,500".into()], "6.20 MB"));
    assert_eq!(row("returns").cells, ["0", "12"]);
    assert_eq!(row("reordered").cells[1], "50.0 KB");
    assert_eq!((&*row("reordering mean").cells[1], &*row("reordering max").cells[1]), ("1.50 µs", "9.00 µs"));
    assert_eq!(names(&table).len(), without.len() + 12);
    all[0].deadlines = Some(DeadlineMetrics { flows: 8, missed: 1, open: 0, missed_share: Some(0.125) });
    let table = comparison(&Comparison::of(all.clone()));
    let row = table.sections.iter().flat_map(|s| &s.rows).find(|r| r.name == "deadlines missed").unwrap();
    assert_eq!(row.cells, ["12.5 %", "-"]);
    assert_eq!(single(&all[1]).last().unwrap().sections[0].title, "Convergence of rates (4 changes)");
}

#[test]
fn numbers_are_lower_bounds_where_flows_did_not_finish() {
    let mut variants = synthetic::comparison(&["powertcp", "hpcc"], &[1]);
    for flow in variants[1].runs[0].flows.iter_mut().take(1_000) {
        (flow.fct_ns, flow.slowdown, flow.at_least) = (Maybe::NONE, Maybe::NONE, Maybe::of(1e3));
    }
    let all: Vec<Metrics> = variants.iter().map(Metrics::of).collect();
    let comparison = Comparison::of(all.clone());
    let table = super::comparison(&comparison);
    let rows = &table.sections[0].rows;
    let is_bound = |name: &str| rows.iter().find(|r| r.name == name).map(|r| r.cells[1].starts_with("\u{2265} "));
    // A third did not finish, so the mean is a bound and the median is known.
    let bounds = ["mean", "p50", "p95", "p99", "p99.9"].map(is_bound);
    assert_eq!(bounds, [Some(true), Some(false), Some(true), Some(true), Some(true)]);
    assert!(rows.iter().all(|row| !row.cells[0].contains('\u{2265}')), "{rows:?}");
    assert_eq!(rows.iter().find(|r| r.name == "unfinished").unwrap().cells, ["0.0 %", "33.3 %"]);
    let text = single(&all[1])[0].to_text();
    assert!(text.lines().nth(2).is_some_and(|l| l.contains(" 3,000       1,000  \u{2265} ")), "{text}");
    let statistics = serde_json::to_value(comparison.statistics()).unwrap();
    let of = |column: &str| {
        let values = statistics["values"].as_array().unwrap();
        let found = values.iter().find(|v| v["metric"] == "slowdown[all sizes].p99" && v["column"] == column);
        found.map(|v| (v["bound"]["finished"].clone(), v["bound"]["flows"].clone()))
    };
    assert_eq!(of("hpcc"), Some((2_000.into(), 3_000.into())));
    assert_eq!(of("powertcp"), Some((serde_json::Value::Null, serde_json::Value::Null)));
}

#[test]
fn bold_changes_no_column() {
    let table = comparison(&Comparison::of(metrics(&["powertcp", "hpcc"])));
    let plain = table.to_styled_text(true).replace("\x1b[1m", "").replace("\x1b[0m", "");
    assert_eq!(plain, table.to_text());
}

#[test]
fn a_wide_table_becomes_several() {
    let table = comparison(&Comparison::of(metrics(&["powertcp", "hpcc", "dcqcn", "swift", "timely"])));
    assert_eq!(table.to_blocks(false, 1_000), table.to_text());
    let text = table.to_blocks(false, 60);
    assert!(text.lines().all(|line| width(line) <= 60), "{text}");
    assert_eq!((text.matches("goodput").count(), text.matches("swift").count()), (2, 1));
    assert_eq!(table.to_blocks(false, 1).matches("goodput").count(), 5);
}

#[test]
fn the_best_of_a_grid_is_the_best_of_its_point() {
    let of = |ccs: &[&str]| {
        let variants = synthetic::grid(ccs, &[("load", &["0.2", "0.4"])], &[1, 2, 3, 4, 5]);
        let table = comparison(&Comparison::of(variants.iter().map(Metrics::of).collect()));
        let mut rows = table.sections.iter().flat_map(|s| &s.rows);
        rows.find(|r| r.name == "goodput").unwrap().best.clone()
    };
    assert_eq!((of(&["powertcp", "hpcc"]), of(&["powertcp"])), (vec![0, 2], vec![]));
}

#[test]
fn ties_of_all_are_nobodys_win() {
    let all = synthetic::comparison(&["powertcp", "hpcc"], &[1, 2, 3, 4, 5]).iter().map(Metrics::of).collect();
    let all = Comparison::of(all);
    let best = |name: &str| best_of(&all, name);
    assert_eq!((best("flows done"), best("unfinished"), best("goodput")), (vec![], vec![], vec![0]));
}

fn best_of(all: &Comparison, name: &str) -> Vec<usize> {
    let table = comparison(all);
    let mut rows = table.sections.iter().flat_map(|s| &s.rows);
    rows.find(|r| r.name == name).unwrap().best.clone()
}

/// Returns a comparison whose columns have these goodputs, one a seed.
fn goodputs(of_columns: &[&[f64]]) -> Comparison {
    let ccs = &["powertcp", "hpcc", "dcqcn"][..of_columns.len()];
    let seeds: Vec<u64> = (1..=of_columns[0].len() as u64).collect();
    let mut variants = synthetic::comparison(ccs, &seeds);
    for (variant, of_column) in variants.iter_mut().zip(of_columns) {
        for (run, goodput) in variant.runs.iter_mut().zip(*of_column) {
            run.totals.goodput_bps = goodput * 1e9;
        }
    }
    Comparison::of(variants.iter().map(Metrics::of).collect())
}

#[test]
fn the_best_is_told_from_each_other_value_of_its_row() {
    let first = [1.0, 2.0, 3.0, 4.0, 5.0];
    // The second differs by -0.02 +- 0.24 from the first, seed by seed; the third by -0.5 in all seeds.
    let (second, third) = ([1.1, 1.9, 3.2, 3.9, 4.8], [0.5, 1.5, 2.5, 3.5, 4.5]);
    assert!(best_of(&goodputs(&[&first, &second, &third]), "goodput").is_empty());
    assert_eq!(best_of(&goodputs(&[&first, &third]), "goodput"), [0]);
    // The bootstrap of five seeds is narrow: -0.5, five times half of it and a tenth of it; Student's interval contains
    // zero.
    let wide = [0.999, 1.999, 2.95, 3.98, 4.6];
    let all = goodputs(&[&first, &wide]);
    let of = |all: &Comparison| {
        let measures = all.groups.iter().flat_map(|g| &g.measures);
        measures.filter(|m| m.name == "goodput").find_map(|m| m.cells[1].difference).unwrap().1
    };
    assert_eq!((of(&all).excludes_zero(), of(&all).is_clear()), (Some(true), false));
    assert!(best_of(&all, "goodput").is_empty());
    let stars = differences(&all).unwrap().to_text();
    assert!(stars.lines().any(|l| l.contains("goodput") && !l.contains('*')), "{stars}");
}

#[test]
fn below_five_seeds_nothing_is_bold_and_the_note_says_why() {
    for n in 1..FEW {
        let all = goodputs(&[&vec![9.0; n], &vec![1.0; n]]);
        assert!(comparison(&all).sections.iter().flat_map(|s| &s.rows).all(|r| r.best.is_empty()), "{n} seeds");
        let note = notes::bold(&all).unwrap();
        assert!(note.starts_with("No value is bold: with fewer than 5 seeds"), "{note}");
    }
    let all = goodputs(&[&[9.0; FEW], &[1.0; FEW]]);
    assert_eq!(best_of(&all, "goodput"), [0]);
    assert!(notes::bold(&all).unwrap().starts_with("Bold: the value that is better than each other one"));
    assert_eq!(notes::bold(&goodputs(&[&[9.0; FEW]])), None);
}

#[test]
fn a_lower_bound_is_not_the_best() {
    let mut variants = synthetic::comparison(&["powertcp", "hpcc"], &[1, 2, 3, 4, 5]);
    let best = |variants: &[crate::model::Variant]| {
        best_of(&Comparison::of(variants.iter().map(Metrics::of).collect()), "p99")
    };
    assert_eq!(best(&variants), [0]);
    for flow in
        variants[0].runs.iter_mut().flat_map(|r| &mut r.flows).filter(|f| f.slowdown.get().is_some_and(|s| 1.5 < s))
    {
        (flow.fct_ns, flow.slowdown, flow.at_least) = (Maybe::NONE, Maybe::NONE, Maybe::of(1.5));
    }
    assert!(best(&variants).is_empty());
}

#[test]
fn seeds_that_change_nothing_give_no_stars() {
    let mut variants = synthetic::comparison(&["powertcp", "hpcc"], &[1, 2, 3, 4, 5]);
    for (i, run) in variants.iter_mut().flat_map(|v| v.runs.iter_mut()).enumerate() {
        run.totals.goodput_bps = if i < 5 { 2e9 } else { 1e9 };
        run.totals.wall_s = 1.0 + i as f64;
    }
    let of = |variants: &[crate::model::Variant]| {
        let all = Comparison::of(variants.iter().map(Metrics::of).collect());
        differences(&all).unwrap().to_text()
    };
    assert!(of(&variants).contains("-50.0 % *"));
    for variant in &mut variants {
        let first = variant.runs[0].clone();
        for (seed, run) in (1..).zip(&mut variant.runs) {
            *run = crate::model::RunData { seed, ..first.clone() };
            run.totals.wall_s = seed as f64;
        }
    }
    let text = of(&variants);
    assert!(text.contains("-50.0 %") && !text.contains('*') && !text.contains("ns per packet-hop"), "{text}");
}

#[test]
fn columns_of_other_counts_have_a_row_for_them() {
    let mut variants = synthetic::comparison(&["powertcp", "hpcc"], &[1]);
    let title = |variants: &[crate::model::Variant]| {
        let table = comparison(&Comparison::of(variants.iter().map(Metrics::of).collect()));
        (table.sections[0].title.clone(), table.sections[0].rows[0].cells.clone())
    };
    assert_eq!(title(&variants).0, "FCT slowdown, all sizes (3,000 flows)");
    variants[1].runs[0].flows.truncate(7);
    assert_eq!(title(&variants), ("FCT slowdown, all sizes".to_owned(), vec!["3,000".to_owned(), "7".to_owned()]));
}

#[test]
fn several_seeds_as_text() {
    let seeds = [1, 2, 3, 4, 5];
    let all = synthetic::comparison(&["powertcp", "hpcc"], &seeds).iter().map(Metrics::of).collect();
    let all = Comparison::of(all);
    let text = [comparison(&all).to_text(), differences(&all).unwrap().to_text()].join("\n");
    insta::assert_snapshot!(text);
    let few = synthetic::comparison(&["powertcp", "hpcc"], &seeds[..2]).iter().map(Metrics::of).collect();
    assert!(!differences(&Comparison::of(few)).unwrap().to_text().contains('*'));
    assert_eq!(differences(&Comparison::of(metrics(&["powertcp", "hpcc"]))), None);
}

#[test]
fn percentiles_of_few_flows_are_marked_as_the_largest_value() {
    let of = |n: usize| {
        let mut variants = synthetic::comparison(&["powertcp", "hpcc"], &[1]);
        variants[1].runs[0].flows.truncate(n);
        let all: Vec<Metrics> = variants.iter().map(Metrics::of).collect();
        let mut table = comparison(&Comparison::of(all.clone()));
        table.sections.truncate(1);
        let marked: Vec<String> = table.sections[0].rows.iter().filter(|r| r.is_largest).map(Row::head).collect();
        let metric = Metric::by_name("slowdown-p99", &[]).unwrap();
        assert_eq!(metric.is_largest(all.iter()), marked.iter().any(|row| row == "p99 \u{2020}"), "{n} flows");
        let single = single(&all[1]).remove(0).sections[0].rows[0].cells.clone();
        let daggers = single.iter().filter(|cell| cell.ends_with(LARGEST)).count();
        assert_eq!((daggers, notes::largest(&[&table]).is_some()), (marked.len(), !marked.is_empty()));
        marked
    };
    // The rank of p99 is ceil(0.99 n): 99 of 99, and 99 of 100.
    let names = ["p95 \u{2020}", "p99 \u{2020}", "p99.9 \u{2020}"];
    for (n, marked) in [(19, 0), (20, 1), (99, 1), (100, 2), (999, 2), (1_000, 3)] {
        assert_eq!(of(n), names[marked..], "{n} flows");
    }
}

#[test]
fn an_interval_has_the_unit_of_its_mean() {
    let range = |low, high| Some(Interval { low, high });
    let text = |mean, interval| with_interval(format::bytes(mean), interval, format::bytes);
    assert_eq!(text(13_700.0, range(12_100.0, 14_000.0)), "13.7 KB [12.1, 14.0]");
    assert_eq!(text(1_010.0, range(990.0, 1_020.0)), "1.01 KB [990 B, 1.02 KB]");
    assert_eq!((text(0.0, range(0.0, 0.0)), text(5.0, None)), ("0 B".into(), "5 B".into()));
}

/// Drops, marks and retransmissions of blocks are of the whole run, beside goodput of the window.
#[test]
fn numbers_of_the_whole_run_are_under_no_window() {
    let mut all = metrics(&["powertcp", "hpcc"]);
    let group = |block, cc: &str| GroupMetrics {
        block,
        name: format!("traffic {block}"),
        cc: cc.into(),
        transport: "tcp".into(),
        flows: 3,
        drops: 17.0,
        ..GroupMetrics::default()
    };
    for one in &mut all {
        one.groups = vec![group(0, "cubic"), group(1, "dctcp")];
    }
    let tables = single(&all[0]);
    let blocks = tables.iter().filter(|table| table.sections[0].title == "Blocks");
    let heads: Vec<_> = blocks.map(|table| (table.caption.as_str(), table.columns.join(", "))).collect();
    let want = [
        ("Measured from 0 ns to 4.00 ms", "algorithm, over, goodput, of all, of a fair share, Jain"),
        ("Whole run", "flows, drops, marked, sent again"),
    ];
    assert_eq!(heads, want.map(|(caption, columns)| (caption, columns.to_owned())));

    let comparison = Comparison::of(all);
    let rows = |title: &str| comparison.groups.iter().find(|g| g.title.starts_with(title)).unwrap().measures.iter();
    let names: Vec<_> = rows("Share of traffic 0").map(|m| m.name).filter(|name| name.contains("run")).collect();
    assert_eq!(names, ["drops, whole run", "arrived marked, whole run", "sent again, whole run"]);

    let metric = |name: &str| Metric::by_name(name, &[]).unwrap();
    let of = |asked: &[&str]| {
        let table = of_metrics(&comparison, &asked.iter().map(|name| metric(name)).collect::<Vec<_>>());
        (table.caption, table.sections[0].rows.iter().map(|row| row.name.clone()).collect::<Vec<_>>())
    };
    assert_eq!(of(&["pfc-pauses", "drops:block0"]).0, "Whole run");
    let (caption, rows) = of(&["goodput", "pfc-pauses", "jain:block0"]);
    assert_eq!(caption, "Measured from 0 ns to 4.00 ms");
    assert_eq!(rows[1], "PFC pauses, whole run (pause frames)");
    assert!(rows[0].starts_with("Goodput of all flows (") && !rows[2].contains("whole run"), "{rows:?}");
}
