//! A run's results, from the simulator into the directory and back.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use fairrate_experiment::inputs_of;
use fairrate_results::{
    Convergence, ConvergenceRow, Deadlines, FlowRow, RateRow, Results, ResultsDir, ResultsError, ResultsWriter,
    RunState, Summary, TABLES, Tag, TagValue,
};
use fairrate_scenario::{Overrides, Scenario};
use fairrate_sim::{
    ConvergenceSample, Counts, FlowId, FlowOutcome, Observation, PfcEvent, PortId, PortSample, RateSample, RunTotals,
    Simulation, Sink,
};
use fairrate_units::Time;
use parquet::column::writer::ColumnWriter;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;

const TEXT: &str = r#"
duration = "2ms"
stop = "all-flows-done"
[topology]
kind = "star"
hosts = 5
[[traffic]]
kind = "incast"
receiver = "h0"
senders = 4
bytes = "100KB"
[[traffic]]
kind = "incast"
receiver = "h1"
senders = ["h2"]
bytes = "endless"
[[probe]]
queue = "sw0->h0"
[[probe]]
flows = "all"
"#;

fn scenario() -> Scenario {
    Scenario::from_toml(TEXT, "incast.toml", Path::new("."), &Overrides::default()).expect("it reads")
}

fn create(dir: &Path, scenario: &Scenario) -> Result<ResultsWriter, ResultsError> {
    ResultsWriter::create(dir, &inputs_of(scenario))
}

/// Returns an empty directory for this test.
fn fresh(name: &str) -> PathBuf {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&dir);
    dir
}

fn run(dir: &Path, state: &RunState) -> Summary {
    let scenario = scenario();
    let mut writer = create(dir, &scenario).expect("it can be written");
    let mut simulation = Simulation::new(scenario.into_sim_config());
    simulation.run(&mut writer).expect("it ends");
    writer.check().expect("it was written");
    let (unfinished, totals) = (simulation.unfinished(), simulation.totals());
    writer.finish(&unfinished, &totals, Duration::from_millis(1_500), state).expect("it was written")
}

#[test]
fn a_run_comes_back_as_it_was() {
    let dir = fresh("run");
    let summary = run(&dir, &RunState::Complete);
    let results = Results::open(&dir).expect("it opens");
    assert_eq!(results.summary, summary);
    assert_eq!((summary.state.as_str(), summary.wall_s, summary.cc.as_str()), ("complete", 1.5, "powertcp"));
    assert_eq!((summary.flows, summary.finished_flows, summary.endless_flows), (5, 4, 1));
    assert_eq!(summary.bytes_sent, summary.bytes_delivered + summary.bytes_dropped + summary.bytes_in_flight);
    assert_eq!(summary.fct.last().map(|b| (b.bucket.as_str(), b.flows)), Some(("all", 4)));
    assert_eq!(summary.ports.len(), 1);

    let flows = results.flows().expect("flows");
    assert_eq!(flows.len(), 5);
    for flow in flows.iter().filter(|f| f.finished) {
        let (fct, ideal) = (flow.fct_ns.expect("finished"), flow.ideal_fct_ns.expect("finite"));
        // Times are whole nanoseconds, and slowdowns of the exact times.
        assert!((flow.slowdown.expect("finished") - fct as f64 / ideal as f64).abs() < 1e-3);
        assert!(fct < flow.fct_ack_ns.expect("finished"));
        assert_eq!((flow.bytes, flow.delivered_bytes, flow.dst), (Some(100_000), 100_000, 0));
    }
    let endless = flows.last().expect("the last");
    assert_eq!((endless.bytes, endless.fct_ns, endless.slowdown, endless.finished), (None, None, None, false));
    assert_eq!((endless.src, endless.dst, endless.group), (2, 1, 1));

    let ports = results.ports().expect("ports");
    assert!(ports.iter().all(|p| &*p.port == "sw0->h0" && p.node == 5));
    assert!(ports.windows(2).all(|w| w[0].t_ns < w[1].t_ns && w[0].tx_bytes <= w[1].tx_bytes));
    assert!(ports.iter().any(|p| 0 < p.qlen_bytes));
    let rates = results.rates().expect("rates");
    assert!(rates.iter().any(|r| r.flow == 4) && rates.iter().all(|r| r.cwnd_bytes.is_some()));
    assert!(results.pfc().expect("pfc").is_empty());

    let again = Scenario::load(&dir.join("scenario.toml"), &Overrides::default()).expect("it is runnable");
    assert_eq!(format!("{:016x}", again.hash()), summary.scenario_hash);
    assert_eq!(results.scenario_toml().expect("the scenario"), again.to_toml());
}

#[test]
fn the_same_scenario_gives_the_same_bytes() {
    let (a, b) = (fresh("same-a"), fresh("same-b"));
    let (first, second) = (run(&a, &RunState::Complete), run(&b, &RunState::Complete));
    assert_eq!(first, second);
    let tables = TABLES.iter().map(|table| format!("{}.parquet", table.name));
    for file in tables.chain(["scenario.toml".to_owned(), "summary.json".to_owned()]) {
        let bytes = |dir: &Path| std::fs::read(dir.join(&file)).expect(&file);
        assert!(bytes(&a) == bytes(&b), "{file} differs");
    }
}

fn sample(i: u64) -> PortSample {
    let t = Time::from_ns(i);
    PortSample { t, port: PortId(0), qlen_bytes: i % 977, tx_bytes: i, drops: 0, ecn_marks: i / 3, pfc_pause: t }
}

/// Every row of a long table is written, across row groups and the footers between them.
#[test]
fn long_tables_are_whole() {
    let dir = fresh("long");
    let mut writer = create(&dir, &scenario()).expect("it can be written");
    for i in 0..200_000 {
        writer.observe(&Observation::Port(sample(i)));
    }
    let size = std::fs::metadata(dir.join("ports.parquet")).expect("the table").len();
    assert!(100_000 < size, "only {size} bytes were written as the run went");
    let state = RunState::Failed("no progress".into());
    let summary = writer.finish(&[], &RunTotals::default(), Duration::ZERO, &state).expect("it was written");
    assert_eq!((summary.state.as_str(), summary.error.as_deref()), ("failed", Some("no progress")));
    let rows = Results::open(&dir).expect("it opens").ports().expect("ports");
    assert_eq!(rows.len(), 200_000);
    for (i, row) in (0u64..).zip(&rows) {
        assert_eq!((row.t_ns, row.qlen_bytes, row.tx_bytes, row.ecn_marks), (i, i % 977, i, i / 3));
        assert_eq!(row.pfc_pause_ns, i);
    }
}

/// Returns the number of rows of a table, as any reader of Parquet counts them.
fn plain_rows(path: &Path) -> i64 {
    let reader = SerializedFileReader::new(std::fs::File::open(path).expect("it is there")).expect("it is valid");
    let groups = reader.metadata().num_row_groups();
    for group in 0..groups {
        let group = reader.get_row_group(group).expect("a group");
        let rows = group.get_row_iter(None).expect("rows").inspect(|row| assert!(row.is_ok(), "{row:?}")).count();
        assert_eq!(i64::try_from(rows).expect("it fits"), group.metadata().num_rows());
    }
    reader.metadata().file_metadata().num_rows()
}

/// The tables are valid for every reader at every moment, and so after a crash.
#[test]
fn a_crash_leaves_what_was_written() {
    let dir = fresh("crash");
    let mut writer = create(&dir, &scenario()).expect("it can be written");
    let path = dir.join("ports.parquet");
    let (mut seen, mut lengths) = (Vec::new(), vec![]);
    for i in 0..150_000 {
        writer.observe(&Observation::Port(sample(i)));
        let length = std::fs::metadata(&path).expect("the table").len();
        if lengths.last() != Some(&length) {
            lengths.push(length);
            let results = Results::open(&dir).expect("it opens");
            assert_eq!(results.summary.state, "running");
            seen.push(results.ports().expect("it is valid").len());
            assert_eq!(plain_rows(&path), i64::try_from(*seen.last().expect("just now")).expect("it fits"));
        }
    }
    assert!(2 < seen.len() && seen[0] == 0 && seen.is_sorted(), "{seen:?}");
    assert!(100_000 < *seen.last().expect("some"));
    std::mem::forget(writer);
}

#[test]
fn one_process_writes_to_a_directory() {
    let dir = fresh("locked");
    let writer = create(&dir, &scenario()).expect("it can be written");
    let before = std::fs::read(dir.join("summary.json")).expect("the summary");
    let error = create(&dir, &scenario()).err().expect("it is refused");
    assert!(matches!(&error, ResultsError::InUse { path } if *path == dir), "{error}");
    assert_eq!(std::fs::read(dir.join("summary.json")).expect("the summary"), before);
    drop(writer);
    run(&dir, &RunState::Complete);
}

#[test]
fn damage_is_seen() {
    let dir = fresh("damaged");
    let summary = run(&dir, &RunState::Complete);
    let results = Results::open(&dir).expect("it opens");
    results.verify().expect("nothing has happened to it");
    assert_eq!(summary.tables["ports"].rows as usize, results.ports().expect("ports").len());
    let table = dir.join("ports.parquet");
    let whole = std::fs::read(&table).expect("the table");
    let mut flipped = whole.clone();
    flipped[whole.len() / 2] ^= 1;
    for damaged in [&whole[..whole.len() - 1], &[], &flipped] {
        std::fs::write(&table, damaged).expect("a damaged table");
        assert!(matches!(results.verify(), Err(ResultsError::Damaged { .. })));
        assert!(matches!(results.ports(), Err(ResultsError::Damaged { .. })));
        results.flows().expect("that table is whole");
    }
    std::fs::remove_file(&table).expect("it goes");
    assert!(matches!(results.verify(), Err(ResultsError::Io { .. })));
    let path = dir.join("summary.json");
    let text = std::fs::read_to_string(&path).expect("the summary");
    let changed = text.replace("\"flows\": 5,", "\"flows\": 6,");
    assert_ne!(changed, text);
    std::fs::write(&path, changed).expect("a changed summary");
    assert!(matches!(Results::open(&dir), Err(ResultsError::Damaged { .. })));
    for damaged in ["", "{", "null", "[]"] {
        std::fs::write(&path, damaged).expect("a damaged summary");
        assert!(Results::open(&dir).is_err(), "{damaged}");
        run(&dir, &RunState::Complete);
        Results::open(&dir).expect("it was run again").verify().expect("it is whole");
    }
}

#[test]
fn results_of_another_schema_are_named() {
    let dir = fresh("schema");
    run(&dir, &RunState::Complete);
    let path = dir.join("summary.json");
    let text = std::fs::read_to_string(&path).expect("the summary");
    for (written, found) in
        [("", "fairrate.results/1"), ("\"schema\": \"fairrate.results/99\",", "fairrate.results/99")]
    {
        std::fs::write(&path, text.replace("\"schema\": \"fairrate.results/3\",", written)).expect("a summary");
        let error = Results::open(&dir).expect_err("it is refused");
        assert!(matches!(&error, ResultsError::Schema { found: said, .. } if said == found), "{error}");
    }
}

/// Replaces a table of a run that was killed by one with a row of sevens in `columns`.
fn replace_table(dir: &Path, table: &str, columns: &str) {
    std::mem::forget(create(dir, &scenario()).expect("it can be written"));
    let schema = Arc::new(parse_message_type(&format!("message {table} {{ {columns} }}")).expect("a schema"));
    let file = std::fs::File::create(dir.join(format!("{table}.parquet"))).expect("a file");
    let mut table = SerializedFileWriter::new(file, schema, Arc::default()).expect("a table");
    let mut group = table.next_row_group().expect("a group");
    while let Some(mut column) = group.next_column().expect("a column") {
        match column.untyped() {
            ColumnWriter::Int32ColumnWriter(c) => c.write_batch(&[7], None, None),
            ColumnWriter::Int64ColumnWriter(c) => c.write_batch(&[7], Some(&[1]), Some(&[0])),
            _ => unreachable!("no such column"),
        }
        .expect("a value");
        column.close().expect("it ends");
    }
    group.close().expect("it ends");
    table.close().expect("it ends");
}

/// A table with the columns of another program, as a user may write it after a killed run.
#[test]
fn columns_of_another_type_are_an_error() {
    for columns in ["required int32 id;", "optional group id (LIST) { repeated int64 x; }", "required int64 number;"] {
        let dir = fresh("foreign");
        replace_table(&dir, "flows", columns);
        let error = Results::open(&dir).expect("it opens").flows().expect_err("it is refused");
        assert!(matches!(&error, ResultsError::NoColumn { column, .. } if column == "id"), "{error}");
    }
}

/// An error whose message has its cause names no source, which a report of errors would show a second time.
#[test]
fn a_cause_is_said_once() {
    let dir = fresh("no-table");
    run(&dir, &RunState::Complete);
    std::fs::remove_file(dir.join("flows.parquet")).expect("the table");
    let error = Results::open(&dir).expect("it opens").flows().expect_err("there is no table");
    assert!(error.to_string().contains("flows.parquet: "), "{error}");
    assert!(std::error::Error::source(&error).is_none(), "{error:?}");
}

#[test]
fn columns_that_older_tables_lack_are_absent() {
    let dir = fresh("older");
    let columns = ["t_ns", "flow", "cwnd_bytes", "rate_bps", "delivered_bytes"];
    replace_table(&dir, "rates", &columns.map(|name| format!("required int64 {name};")).concat());
    let (rate_bps, delivered_bytes) = (7, 7);
    let (rtt_ns, retransmitted_bytes) = (None, None);
    let row = RateRow { t_ns: 7, flow: 7, cwnd_bytes: Some(7), rate_bps, delivered_bytes, rtt_ns, retransmitted_bytes };
    assert_eq!(Results::open(&dir).expect("it opens").rates().expect("rates"), [row]);
}

#[test]
fn every_row_says_which_run_it_is_from() {
    let dir = fresh("tags");
    let place = Arc::new(ResultsDir::claim(&dir).expect("nobody is there"));
    let load = Tag::new("traffic.0.load", TagValue::Number(0.5));
    let tags = [Tag::new("label", TagValue::Text("powertcp load=0.5".into())), load];
    let mut writer = ResultsWriter::create_in(&place, &inputs_of(&scenario()), &tags).expect("it can be written");
    for i in 0..3_000 {
        writer.observe(&Observation::Port(sample(i)));
    }
    writer.finish(&[], &RunTotals::default(), Duration::ZERO, &RunState::Complete).expect("it was written");
    assert_eq!(Results::open(&dir).expect("it opens").ports().expect("ports").len(), 3_000);
    let file = std::fs::File::open(dir.join("ports.parquet")).expect("the table");
    let reader = SerializedFileReader::new(file).expect("it is valid");
    let facts = reader.metadata().file_metadata().key_value_metadata().expect("facts");
    let schema = facts.iter().find(|fact| fact.key == "fairrate:schema").and_then(|fact| fact.value.as_deref());
    assert_eq!(schema, Some("fairrate.results/3"));
    let mut n = 0;
    for row in reader.get_row_iter(None).expect("rows") {
        let row = row.expect("a row").to_string();
        let tags = "cc: \"powertcp\", label: \"powertcp load=0.5\", seed: 1, traffic.0.load: 0.5}";
        assert!(row.ends_with(tags) && row.starts_with(&format!("{{t_ns: {n}, ")), "{row}");
        n += 1;
    }
    assert_eq!(n, 3_000);
}

/// A grid's key with the name of a column that a table has anyway changes neither its type nor the number of columns.
#[test]
fn a_grid_over_the_seed_or_the_name_leaves_columns_as_they_are() {
    let dir = fresh("own-columns");
    let place = Arc::new(ResultsDir::claim(&dir).expect("nobody is there"));
    let tags = [Tag::new("seed", TagValue::Number(1.0)), Tag::new("name", TagValue::Text("b".into()))];
    let writer = ResultsWriter::create_in(&place, &inputs_of(&scenario()), &tags).expect("it can be written");
    writer.finish(&[], &RunTotals::default(), Duration::ZERO, &RunState::Complete).expect("it was written");
    for (table, names) in [("flows", 1), ("operations", 1)] {
        let file = std::fs::File::open(dir.join(format!("{table}.parquet"))).expect("the table");
        let reader = SerializedFileReader::new(file).expect("it is valid");
        let schema = reader.metadata().file_metadata().schema_descr();
        let types = |name: &str| {
            let columns = schema.columns().iter().filter(|column| column.name() == name);
            columns.map(|column| column.physical_type()).collect::<Vec<_>>()
        };
        assert_eq!(types("seed"), [parquet::basic::Type::INT64], "{table}");
        assert_eq!(types("name").len(), names, "{table}");
    }
}

#[test]
fn links_in_a_results_directory_are_replaced_and_not_followed() {
    #[cfg(unix)]
    {
        let dir = fresh("links");
        run(&dir, &RunState::Complete);
        let theirs = fresh("links-theirs");
        std::fs::create_dir_all(&theirs).expect("a directory");
        for name in ["scenario.toml", "summary.json.new", "flows.parquet", "flows.parquet.part", "scenario.toml.new"] {
            let (link, target) = (dir.join(name), theirs.join(name));
            let _ = std::fs::remove_file(&link);
            // Some links point to a file, and some to a path without a file.
            if name.starts_with("scenario") {
                std::fs::write(&target, "theirs").expect("a file");
            }
            std::os::unix::fs::symlink(&target, &link).expect("a link");
        }
        run(&dir, &RunState::Complete);
        let left: Vec<_> =
            std::fs::read_dir(&theirs).expect("the directory").map(|e| e.expect("an entry").path()).collect();
        assert_eq!(left.len(), 2, "{left:?}");
        assert!(left.iter().all(|path| std::fs::read(path).expect("a file") == b"theirs"));
    }
}

#[test]
fn a_dropped_writer_leaves_every_row() {
    let dir = fresh("dropped");
    let mut writer = create(&dir, &scenario()).expect("it can be written");
    let outcome = |flow| FlowOutcome { delivered_bytes: 5, ..FlowOutcome::at_start(FlowId(flow), Time::ZERO) };
    writer.flow(&outcome(1));
    let (rate_bps, delivered_bytes) = (7, 5);
    let sample =
        RateSample { t: Time::ZERO, flow: FlowId(1), cwnd_bytes: u64::MAX, rate_bps, delivered_bytes, measured: None };
    writer.observe(&Observation::Rate(sample));
    let pause = PfcEvent { t: Time::from_ps(1_500), port: PortId(1), class: 3, pause: true };
    writer.observe(&Observation::Pfc(pause));
    drop(writer);
    let results = Results::open(&dir).expect("it opens");
    assert_eq!(results.flows().expect("flows")[0].delivered_bytes, 5);
    assert_eq!(results.rates().expect("rates")[0].cwnd_bytes, None);
    let pfc = &results.pfc().expect("pfc")[0];
    assert_eq!((pfc.t_ns, &*pfc.port, pfc.class, pfc.pause), (2, "sw0->h0", 3, true));
}

#[test]
fn a_panic_leaves_a_failed_run() {
    let dir = fresh("panic");
    let mut writer = create(&dir, &scenario()).expect("it can be written");
    let panics = std::panic::AssertUnwindSafe(|| {
        writer.observe(&Observation::Port(sample(7)));
        let _writer = writer;
        std::panic::resume_unwind(Box::new("a broken invariant"));
    });
    assert!(std::panic::catch_unwind(panics).is_err());
    let results = Results::open(&dir).expect("it opens");
    assert_eq!((results.summary.state.as_str(), results.ports().expect("ports").len()), ("failed", 1));
}

#[test]
fn changes_of_flows_come_back_with_how_rates_settled() {
    let dir = fresh("convergence");
    let text = format!("{TEXT}[[probe]]\nconvergence = true\n");
    let scenario = Scenario::from_toml(&text, "x.toml", Path::new("."), &Overrides::default()).expect("it reads");
    let mut writer = create(&dir, &scenario).expect("it can be written");
    let sample = |flow, rtts: Option<f64>| ConvergenceSample {
        t: Time::from_us(u64::from(flow)),
        flow: FlowId(flow),
        arrival: flow != 2,
        n_flows: 7,
        time: rtts.map(|_| Time::from_ps(1_500)),
        rtts,
    };
    writer.observe(&Observation::Convergence(sample(1, Some(4.5))));
    writer.observe(&Observation::Convergence(sample(2, None)));
    let counts = Counts { notices: 3, control_packets: 4, ..Counts::default() };
    let totals = RunTotals { counts, control_bytes: 500, ..RunTotals::default() };
    let summary = writer.finish(&[], &totals, Duration::ZERO, &RunState::Complete).expect("it was written");
    let convergence = Convergence { changes: 2, converged: 1, p50_rtts: Some(4.5), p99_rtts: None };
    assert_eq!(summary.convergence, Some(convergence));
    assert_eq!((summary.counts.notices, summary.counts.control_packets, summary.control_bytes), (3, 4, 500));
    let results = Results::open(&dir).expect("it opens");
    assert_eq!(results.summary, summary);
    let rows = results.convergence().expect("convergence");
    let row = |t_ns, flow, arrival, time_ns: Option<u64>, rtts| {
        let converged = time_ns.is_some();
        ConvergenceRow { t_ns, flow, arrival, n_flows: 7, time_ns, rtts, converged }
    };
    assert_eq!(rows, [row(1_000, 1, true, Some(2), Some(4.5)), row(2_000, 2, false, None, None)]);
    assert_eq!(run(&fresh("no-convergence"), &RunState::Complete).convergence, None);
}

/// 100 KB take 32 us and 100 MB 32 ms at 25 Gb/s, and the run ends after 2 ms.
#[test]
fn deadlines_are_met_missed_or_open() {
    let block = |receiver: u32, bytes: &str, deadline: &str| {
        let ends = format!("receiver = {receiver}\nsenders = [{}]", receiver + 4);
        format!("[[traffic]]\nkind = \"incast\"\n{ends}\nbytes = \"{bytes}\"\ndeadline = \"{deadline}\"\n")
    };
    let flows = [("100KB", "20us"), ("100KB", "1ms"), ("100MB", "1ms"), ("100MB", "3ms")];
    let blocks: String = (0..).zip(flows).map(|(i, (bytes, deadline))| block(i, bytes, deadline)).collect();
    let text = format!("duration = \"2ms\"\n[topology]\nkind = \"star\"\n{blocks}");
    let scenario = Scenario::from_toml(&text, "x.toml", Path::new("."), &Overrides::default()).expect("it reads");
    let dir = fresh("deadlines");
    let mut writer = create(&dir, &scenario).expect("it can be written");
    let mut simulation = Simulation::new(scenario.into_sim_config());
    simulation.run(&mut writer).expect("it ends");
    let (unfinished, totals) = (simulation.unfinished(), simulation.totals());
    let summary = writer.finish(&unfinished, &totals, Duration::ZERO, &RunState::Complete).expect("it was written");
    assert_eq!(summary.deadlines, Some(Deadlines { flows: 4, missed: 2, open: 1 }));
    assert_eq!(Results::open(&dir).expect("it opens").summary, summary);
    assert_eq!(run(&fresh("no-deadlines"), &RunState::Complete).deadlines, None);
    let rows = Results::open(&dir).expect("it opens").flows().expect("flows");
    let mut deadlines_ns: Vec<u64> = rows.iter().filter_map(|row| row.deadline_ns).collect();
    deadlines_ns.sort_unstable();
    assert_eq!(deadlines_ns, [20_000, 1_000_000, 1_000_000, 3_000_000]);
}

/// A connection of two paths, one of which it shares with a flow.
const TWO_PATHS: &str = r#"
[topology]
kind = "leaf-spine"
leaves = 2
spines = 2
hosts_per_leaf = 2
uplink_rate = "10Gbps"
[transport]
kind = "tcp"
cc = "newreno"
[transport.tcp]
subflows = 2
scheduler = "round-robin"
paths = "disjoint"
[[traffic]]
kind = "incast"
receiver = "h2"
senders = ["h0"]
bytes = "2MB"
[[traffic]]
kind = "incast"
receiver = "h3"
senders = ["h1"]
bytes = "2MB"
subflows = 1
"#;

#[test]
fn waits_for_data_of_other_paths_come_back() {
    let dir = fresh("reordering");
    let scenario = Scenario::from_toml(TWO_PATHS, "x.toml", Path::new("."), &Overrides::default()).expect("it reads");
    let mut writer = create(&dir, &scenario).expect("it can be written");
    let mut simulation = Simulation::new(scenario.into_sim_config());
    simulation.run(&mut writer).expect("it ends");
    let totals = simulation.totals();
    let summary = writer.finish(&[], &totals, Duration::ZERO, &RunState::Complete).expect("it was written");
    let mut flows = Results::open(&dir).expect("it opens").flows().expect("flows");
    flows.sort_by_key(|f| f.id);
    let waits = |row: &FlowRow| (row.reordered_bytes, row.reordering_mean_ns, row.reordering_max_ns);
    assert_eq!(waits(&flows[1]), (0, None, None));
    // The connection's values are the only ones in the summary.
    let (seen, mean, max) =
        (totals.reordering, totals.reordering.mean().as_ns_f64(), totals.reordering.max.as_ns_f64());
    assert!(0 < seen.bytes && 0.0 < mean && mean < max, "{seen:?}");
    assert_eq!(waits(&flows[0]), (seen.bytes, Some(mean.round() as u64), Some(max.round() as u64)));
    let of_all = (summary.reordered_bytes, summary.reordering_mean_ns, summary.reordering_max_ns);
    assert_eq!(of_all, (seen.bytes, mean, max));
}

#[test]
fn other_peoples_directories_are_left_alone() {
    let dir = fresh("occupied");
    std::fs::create_dir_all(&dir).expect("a directory");
    std::fs::write(dir.join("thesis.tex"), "years").expect("a file");
    let error = create(&dir, &scenario()).err().expect("it is refused");
    assert!(matches!(error, ResultsError::Occupied { .. }));
    for path in [dir.join("thesis.tex"), dir.join("thesis.tex/runs")] {
        let error = create(&path, &scenario()).err().expect("there is a file");
        assert!(matches!(error, ResultsError::Occupied { .. }), "{error}");
    }
    assert_eq!(std::fs::read_dir(&dir).expect("the directory").count(), 1);
    assert!(matches!(Results::open(&dir), Err(ResultsError::NoResults { .. })));
    // Results of an earlier run are replaced.
    let dir = fresh("again");
    run(&dir, &RunState::Complete);
    std::fs::write(dir.join("report.html"), "old").expect("a file");
    let again = run(&dir, &RunState::Interrupted);
    assert_eq!(again.state, "interrupted");
    assert!(!dir.join("report.html").exists());
}

#[test]
fn files_of_the_scenario_go_with_the_results() {
    let text = "duration = \"1ms\"\n[topology]\nkind = \"file\"\npath = \"star3.txt\"\n\
                [[traffic]]\nkind = \"list\"\npath = \"flows.csv\"\nignore_columns = [\"pg\"]\n";
    let files = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fairrate-scenario/tests/files");
    let scenario = Scenario::from_toml(text, "list.toml", &files, &Overrides::default()).expect("it reads");
    let dir = fresh("files");
    let writer = create(&dir, &scenario).expect("it can be written");
    writer.finish(&[], &RunTotals::default(), Duration::ZERO, &RunState::Complete).expect("it was written");
    let again = Scenario::load(&dir.join("scenario.toml"), &Overrides::default()).expect("it is runnable");
    assert_eq!(again.hash(), scenario.hash());
    assert_eq!(again.sim_config().flows.len(), 2);
}

/// Flows keep the ids of their list in all tables, and probes refer to these ids. Other flows get the remaining
/// numbers.
#[test]
fn flows_of_a_list_keep_their_ids() {
    let dir = fresh("ids");
    std::fs::create_dir_all(&dir).expect("a directory");
    let list = "id,start_ns,src,dst,bytes\n900,2000,1,0,20000\n1,1000,2,0,20000\n17,3000,3,0,20000\n";
    std::fs::write(dir.join("flows.csv"), list).expect("it can be written");
    let text = |probe: &str| {
        format!(
            "duration = \"1ms\"\nstop = \"all-flows-done\"\n[topology]\nkind = \"star\"\nhosts = 5\n\
             [[traffic]]\nkind = \"incast\"\nreceiver = \"h4\"\nsenders = [\"h0\", \"h1\"]\nbytes = \"20KB\"\n\
             [[traffic]]\nkind = \"list\"\npath = \"flows.csv\"\n[[probe]]\nflows = {probe}\nevery = \"1us\"\n"
        )
    };
    let read = |probe: &str| Scenario::from_toml(&text(probe), "ids.toml", &dir, &Overrides::default());
    let scenario = read("[900, 0]").expect("it is sound");
    let mut writer = create(&dir.join("out"), &scenario).expect("it can be written");
    let mut simulation = Simulation::new(scenario.into_sim_config());
    simulation.run(&mut writer).expect("it ends");
    let totals = simulation.totals();
    writer.finish(&[], &totals, Duration::ZERO, &RunState::Complete).expect("it was written");
    let results = Results::open(&dir.join("out")).expect("it opens");
    let mut flows: Vec<_> = results.flows().expect("flows").iter().map(|f| (f.id, f.src, f.start_ns)).collect();
    flows.sort_unstable();
    assert_eq!(flows, [(0, 0, 0), (1, 2, 1_000), (2, 1, 0), (17, 3, 3_000), (900, 1, 2_000)]);
    let mut sampled: Vec<u32> = results.rates().expect("rates").iter().map(|r| r.flow).collect();
    sampled.sort_unstable();
    sampled.dedup();
    assert_eq!(sampled, [0, 900]);

    let error = read("[3]").expect_err("no flow is called so").to_string();
    assert_eq!(error, "there is no flow 3");
    let twice = format!("{}[[traffic]]\nkind = \"list\"\npath = \"flows.csv\"\n", text("\"all\""));
    let error = Scenario::from_toml(&twice, "ids.toml", &dir, &Overrides::default()).expect_err("ids come twice");
    assert!(error.to_string().contains("of a flow of another list"), "{error}");
}

/// Two flows of a list, the first starved by a link that goes down, and a flow that starts outside of the window.
const WINDOWED: &str = r#"
duration = "1ms"
[topology]
kind = "star"
hosts = 5
rate = "10Gbps"
[transport]
cc = "line-rate"
[[traffic]]
kind = "list"
path = "flows.csv"
[[fault]]
links = ["sw0->h1"]
loss = 1.0
"#;
const WINDOWED_FLOWS: &str =
    "start_ns,src,dst,bytes\n1000,0,2,1000\n100000,3,1,1000\n200000,3,2,1000\n300000,4,2,100000\n";

fn windowed(measure: &str) -> Summary {
    let text = format!("{WINDOWED}{measure}");
    let files = [("flows.csv", WINDOWED_FLOWS)];
    let scenario = Scenario::from_texts(&text, "w.toml", &files, &Overrides::default()).expect("it reads");
    let dir = fresh(&format!("windowed-{}", scenario.hash()));
    let mut writer = create(&dir, &scenario).expect("it can be written");
    let mut simulation = Simulation::new(scenario.into_sim_config());
    simulation.run(&mut writer).expect("it ends");
    let (unfinished, totals) = (simulation.unfinished(), simulation.totals());
    writer.finish(&unfinished, &totals, Duration::from_millis(1), &RunState::Complete).expect("it was written")
}

#[test]
fn a_window_has_the_flows_that_start_in_it_and_the_bytes_that_arrive_in_it() {
    let all = windowed("");
    // From the first start to the last: the last flow delivers after it.
    assert_eq!((all.measured.from_ns, all.measured.until_ns, all.measured.goodput_bytes), (1_000, 300_000, 2_000));
    assert!((all.goodput_bps - 2_000.0 * 8e9 / 299_000.0).abs() < 1.0, "{}", all.goodput_bps);
    assert_eq!((all.flows, all.finished_flows, all.unfinished_flows, all.flows_to_start), (4, 3, 1, 0));
    let of_all = all.fct.iter().find(|b| b.bucket == "all").expect("a bucket");
    assert_eq!((of_all.flows, of_all.unfinished), (3, 1));
    // The starved flow has waited for 900 us.
    assert!(of_all.fct_ns.is_some_and(|q| q.p99 == 900_000.0), "{of_all:?}");
    let later = windowed("[measure]\nfrom = \"150us\"\nuntil = \"end\"");
    assert_eq!((later.measured.from_ns, later.measured.until_ns), (150_000, 1_000_000));
    assert_eq!(later.measured.goodput_bytes, 101_000);
    let of_all = later.fct.iter().find(|b| b.bucket == "all").expect("a bucket");
    assert_eq!((of_all.flows, of_all.unfinished), (2, 0));
    // 101 KB of five links of 10 Gb/s for 850 us: offered and carried.
    let hosts = later.measured.load.iter().find(|tier| tier.links == "host-links").expect("host links");
    let share = 101_000.0 * 8.0 / (5.0 * 10e9 * 850e-6);
    assert!((hosts.carried / share - 1.0).abs() < 1e-9 && hosts.offered == Some(hosts.carried), "{hosts:?}");
    // The bytes delivered in two adjacent windows add up to those of the whole window.
    let first = windowed("[measure]\nuntil = \"301us\"");
    let second = windowed("[measure]\nfrom = \"301us\"\nuntil = \"end\"");
    let both = first.measured.goodput_bytes + second.measured.goodput_bytes;
    assert_eq!((both, first.fingerprint), (all.goodput_bytes, all.fingerprint));
}

/// The bytes of an endless flow are among those that arrive, so no load of finite flows is held against these.
#[test]
fn nothing_is_offered_while_an_endless_flow_lives() {
    let endless = "\n[[traffic]]\nkind = \"incast\"\nreceiver = \"h4\"\nsenders = [\"h3\"]\nbytes = \"endless\"\n";
    let offered = |stop: &str, from: &str| {
        let summary = windowed(&format!("{endless}{stop}[measure]\nfrom = \"{from}\"\nuntil = \"end\""));
        summary.measured.load.iter().find(|tier| tier.links == "host-links").expect("host links").offered
    };
    assert_eq!(offered("", "0s"), None);
    assert_eq!(offered("", "150us"), None, "it began before the window");
    assert_eq!(offered("stop = \"120us\"\n", "100us"), None);
    assert!(offered("stop = \"120us\"\n", "150us").is_some(), "it ended before the window");
}

#[test]
fn a_window_that_is_empty_is_refused() {
    for (measure, message) in [
        ("[measure]\nfrom = \"2ms\"", "the measuring window starts at 2ms, and the run ends at 1ms"),
        ("[measure]\nfrom = \"500us\"\nuntil = \"400us\"", "the measuring window ends at 400us and starts at 500us"),
    ] {
        let text = format!("{WINDOWED}{measure}");
        let files = [("flows.csv", WINDOWED_FLOWS)];
        let error = Scenario::from_texts(&text, "w.toml", &files, &Overrides::default()).expect_err("it is refused");
        assert_eq!(error.to_string(), message);
    }
}

#[test]
fn flows_that_an_interrupted_run_did_not_reach_offer_nothing() {
    let files = [("flows.csv", WINDOWED_FLOWS)];
    let scenario = Scenario::from_texts(WINDOWED, "w.toml", &files, &Overrides::default()).expect("it reads");
    let mut writer = create(&fresh("reached"), &scenario).expect("it can be written");
    let mut simulation = Simulation::new(scenario.into_sim_config());
    // The second flow starts at 100 us, and the third at 200 us.
    while simulation.advance(1, &mut writer).expect("it goes on").now < Time::from_us(101) {}
    let (unfinished, totals) = (simulation.unfinished(), simulation.totals());
    let state = RunState::Interrupted;
    let summary = writer.finish(&unfinished, &totals, Duration::from_millis(1), &state).expect("it was written");
    let n = (summary.flows, summary.finished_flows, summary.unfinished_flows, summary.flows_to_start);
    assert_eq!((n, summary.fct[4].flows, summary.fct[4].unfinished), ((2, 1, 1, 2), 1, 1));
    let hosts = &summary.measured.load[0];
    // Only one of the two flows of 1000 B has arrived.
    assert_eq!(hosts.offered.map(|offered| (offered / hosts.carried * 1e6).round()), Some(2e6), "{hosts:?}");
}

/// Each of the 12 pairs of a closed loop plans several flows of 50 KB for its 200 us; those whose forerunners did not
/// end have not started. A listed flow of another block comes after the end.
#[test]
fn blocks_count_flows_that_have_started() {
    let text = "duration = \"200us\"\n[topology]\nkind = \"star\"\nhosts = 4\nrate = \"10Gbps\"\n\
        [[traffic]]\nkind = \"incast\"\nreceiver = \"h0\"\nsenders = 3\nbytes = \"1KB\"\n\
        [[traffic]]\nkind = \"closed-loop\"\nsizes = \"fixed\"\nsize = \"50KB\"\nload = 0.5\n\
        [[traffic]]\nkind = \"list\"\npath = \"late.csv\"\n";
    let files = [("late.csv", "start_ns,src,dst,bytes\n300000,h0,h1,1000\n")];
    let scenario = Scenario::from_texts(text, "loops.toml", &files, &Overrides::default()).expect("it reads");
    let planned = |group| scenario.sim_config().flows.iter().filter(|flow| flow.group == group).count() as u64;
    let planned = [planned(0), planned(1), planned(2)];
    let dir = fresh("started");
    let mut writer = create(&dir, &scenario).expect("it can be written");
    let mut simulation = Simulation::new(scenario.into_sim_config());
    simulation.run(&mut writer).expect("it ends");
    let (unfinished, totals) = (simulation.unfinished(), simulation.totals());
    let state = RunState::Complete;
    let summary = writer.finish(&unfinished, &totals, Duration::from_millis(1), &state).expect("it was written");
    let flows: Vec<u64> = summary.measured.groups.iter().map(|group| group.flows).collect();
    let rows = Results::open(&dir).expect("it opens").flows().expect("it reads");
    let of = |group: u32| rows.iter().filter(|row| row.group == group && row.start_ns <= 200_000).count() as u64;
    assert_eq!(flows, [3, of(1), 0], "of {planned:?}");
    assert!(0 < flows[1] && flows[1] < planned[1] && planned[2] == 1, "{flows:?} of {planned:?}");
    assert_eq!(flows.iter().sum::<u64>(), summary.flows);
}
