//! Critical paths of tables that are written by hand.

use std::path::Path;

use fairrate_results::{FlowRow, OperationRow, PfcRow};
use fairrate_scenario::{Overrides, Scenario};
use fairrate_sim::{FlowId, FlowOutcome, FlowSpec, JobSpec};
use fairrate_units::Time;

use super::Tables;
use crate::critical_path::{CriticalPath, Event, PathStage};

/// Three ranks compute, and rank 1 sends what it has to rank 0, and that to rank 2. The link to rank 2 has a quarter of
/// its rate.
const SCENARIO: &str = "[topology]\nkind = \"star\"\nhosts = 3\nrate = \"100Gbps\"\n[transport]\ncc = \"line-rate\"\n\
                        [[traffic]]\nkind = \"trace\"\nname = \"job\"\npath = \"operations.csv\"\n\
                        [[fault]]\nlinks = [\"sw0->h2\"]\nrate = 0.25\n";

const OPERATIONS: &str = "kind,rank,id,name,after,duration_ns,bytes,peer\n\
                          compute,0,1,forward,,20000,,\ncompute,1,1,forward,,40000,,\ncompute,2,1,forward,,22000,,\n\
                          send,1,2,first,1,,1000000,0\nreceive,0,2,first,1,,1000000,1\n\
                          send,0,3,second,2,,1000000,2\nreceive,2,3,second,1,,1000000,0\n";

fn scenario() -> Scenario {
    let files = [("operations.csv", OPERATIONS)];
    Scenario::from_texts(SCENARIO, "test.toml", &files, &Overrides::default()).expect("the scenario is right")
}

/// Returns the rows of flows: the first message goes at 40 us and arrives after 90 us, the second one after 350 us
/// more. Each takes 85 us alone.
fn flows(scenario: &Scenario) -> Vec<FlowRow> {
    let config = scenario.sim_config();
    let of = |(flow, spec): (FlowId, &FlowSpec)| {
        let is_first = config.topology.nodes[spec.src.index()].name == "h1";
        let (start_us, fct_us) = if is_first { (40, 90) } else { (130, 350) };
        let (fct, ideal_fct) = (Some(Time::from_us(fct_us)), Time::from_us(85));
        FlowRow::of(spec, &FlowOutcome { fct, ideal_fct, ..FlowOutcome::at_start(flow, Time::from_us(start_us)) })
    };
    (0..).map(FlowId).zip(&config.flows).map(of).collect()
}

/// Returns the row of the second message.
fn second(rows: &mut [FlowRow]) -> &mut FlowRow {
    rows.iter_mut().find(|row| row.start_ns == 130_000).expect("it is there")
}

/// Returns the rows of operations that go with these flows.
fn operations(spec: &JobSpec) -> Vec<OperationRow> {
    let row = |(part, at): (&fairrate_sim::PartSpec, usize)| {
        let operation = &spec.operations[part.operation as usize];
        let name = spec.names[operation.name as usize].as_str();
        let (start_us, end_us) = match (name, part.rank) {
            ("forward", 0) => (0, 20),
            ("forward", 1) => (0, 40),
            ("forward", _) => (0, 22),
            ("first", 0) => (20, 130),
            ("first", _) => (40, 120),
            (_, 0) => (130, 215),
            _ => (22, 480),
        };
        OperationRow {
            group: spec.group,
            iteration: operation.iteration,
            operation: part.operation,
            rank: part.rank,
            node: spec.ranks[part.rank as usize].0,
            kind: spec.kind_name(at).to_owned().into(),
            name: name.to_owned().into(),
            process_group: String::new().into(),
            bytes: None,
            start_ns: start_us * 1_000,
            end_ns: end_us * 1_000,
        }
    };
    spec.parts.iter().zip(0..).map(row).collect()
}

/// Returns the paths of the tables, which `change` has changed before.
fn paths(
    is_complete: bool,
    change: impl Fn(&mut Vec<FlowRow>, &mut Vec<OperationRow>),
) -> Result<Vec<CriticalPath>, String> {
    let scenario = scenario();
    let (mut flows, mut operations) = (flows(&scenario), operations(&scenario.sim_config().jobs[0]));
    change(&mut flows, &mut operations);
    let frame = |t_ns, pause| PfcRow { t_ns, node: 1, port: "h1->sw0".to_owned().into(), pause, class: 3 };
    // Paused for 4 us in the class of data.
    let pauses = vec![frame(60_000, true), frame(64_000, false)];
    let tables = Tables { dir: Path::new("run"), is_complete, end_ns: 480_000, flows, operations, pauses };
    tables.critical_paths(&scenario).map_err(|error| error.to_string())
}

/// The slowest computation, then both messages: 40 us, of which 19 are more than the median of 20 and 22 us, 90 us, and
/// 350 us.
#[test]
fn a_path_names_the_straggler_the_pause_and_the_slow_link() {
    let all = paths(true, |_, _| {}).expect("the tables are right");
    let [path] = &all[..] else { panic!("{all:?}") };
    let [iteration] = &path.iterations[..] else { panic!("{path:?}") };
    assert_eq!((path.name.as_str(), path.is_named, iteration.time_ns()), ("job", false, 480e3));
    let shown = |stage: &PathStage| {
        let PathStage { name, start_ns, time_ns, expected_ns, paused_ns, reason, .. } = stage.clone();
        (name, [start_ns, time_ns, expected_ns, paused_ns].map(|ns| ns / 1e3), reason)
    };
    let want = [
        ("forward at 1 (h1)", [0.0, 40.0, 21.0, 0.0], "a straggler: others take the time to be expected"),
        (
            "h1->h0: first, 1.00 MB",
            [40.0, 90.0, 85.0, 4.0],
            "4.00 µs in PFC pauses of h1->sw0; queues, windows or rates",
        ),
        ("h0->h2: second, 1.00 MB", [130.0, 350.0, 85.0, 0.0], "sw0->h2 at 25.0 % of its rate"),
    ];
    let want = want.map(|(name, us, reason)| (name.to_owned(), us, reason.to_owned()));
    assert_eq!(iteration.stages.iter().map(shown).collect::<Vec<_>>(), want);
    assert_eq!(iteration.stages[2].command, "fairrate explain . --flow 0");
    assert_eq!(iteration.stages[2].event, Event::Message);
}

#[test]
fn times_that_no_run_has_are_refused() {
    let refused = |change: fn(&mut Vec<FlowRow>, &mut Vec<OperationRow>)| paths(true, change).expect_err("refused");
    assert_eq!(
        refused(|flows, _| second(flows).start_ns = 120_000),
        "`run/flows.parquet` is damaged: flow 0 starts before something for which it waits has ended, so tables and scenario are not of one run"
    );
    assert!(refused(|flows, _| flows[0].fct_ns = None).contains("has no time"));
    assert!(refused(|flows, _| flows[0].start_ns = u64::MAX).contains("flow 0 has times that no run has"));
    assert!(refused(|_, rows| rows[0].end_ns = u64::MAX / 1_000 + 1).contains("has times that no run has"));
    assert!(refused(|_, rows| (rows[0].start_ns, rows[0].end_ns) = (7, 5)).contains("has times that no run has"));
    assert!(refused(|_, rows| rows[1].rank = 9).contains("of rank 9 is not in the scenario"));
    assert!(refused(|_, rows| rows[0].operation = 77).contains("operation 77 of rank 0 is not in the scenario"));
}

#[test]
fn a_run_that_was_killed_has_the_paths_that_its_tables_have() {
    let without_flow = paths(false, |flows, _| flows.truncate(1)).expect("it is partial");
    assert_eq!((without_flow[0].iterations.len(), without_flow[0].planned), (0, 1));
    let without_end = paths(false, |_, rows| rows.truncate(2)).expect("it is partial");
    assert_eq!(without_end[0].iterations.len(), 0);
}
