//! `cargo xtask validate rocc-omnet`: compares RoCC with its authors' OMNeT++ code; `validation/rocc-omnet/README.md`
//! describes the runs.
//!
//! The rule, committed before this command first ran. The completion time of each flow of a list is within 0.5 % of
//! theirs. Of greedy flows on a star, the queue is compared at every tick of the switch's controller: its peak within
//! five frames, its mean over the last 40 % of the run within 5 % of Qref, its standard deviation there within a
//! quarter or two frames, and the time from which it stays within 10 % of Qref within a quarter or 0.5 ms. (Such a run
//! is chaotic: one frame on the other side of a tick, and later frames differ. So the number of ticks up to the first
//! difference is shown, without a tolerance.) Pauses are equal in number.
//!
//! Their HPCC and DCQCN came later, and their rule is that of `validate ns3-tcp`, from before these runs: the bytes
//! that the bottleneck has sent after 1, 2, 5 and 9.8 ms are within 5 % of theirs, or, where marks are random, theirs
//! is within the range of 20 seeds. So are the completion times of DCQCN's lists; those of HPCC's are held to the 0.5 %
//! of lists.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use fairrate_report::stats::mean;
use fairrate_sim::{FlowOutcome, PortSample, Recorder};
use serde::Deserialize;

use crate::csv::{self, Table};
use crate::rows::{Findings, Range, Row, Tolerance};
use crate::suite::{self, Options, Suite, key_and_value};
use crate::to_end::run_to_end;
use crate::{runs, show};

/// Size of a full frame, in bytes.
const FRAME: f64 = 1_518.0;
/// Time between two ticks, in microseconds.
const TICK_US: u64 = 40;

/// A run of the authors' code.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    name: String,
    /// Algorithm.
    #[serde(default = "rocc")]
    cc: String,
    /// Number of runs with seeds from 1 on, where something is random.
    #[serde(default = "one")]
    seeds: u64,
    /// `true` if all flows of a list between a sender and the receiver are of one connection.
    #[serde(default)]
    per_pair: bool,
    /// Number of senders, on links to a switch; the receiver is one more host.
    senders: u32,
    /// Rate of all links in Gb/s.
    gbps: u64,
    /// Duration in milliseconds of a run of greedy flows; flows of a list all finish.
    ms: Option<u64>,
    /// Keys that differ from the scenario's, as for `--set`.
    #[serde(default)]
    set: Vec<String>,
    /// Pauses that the switch sent, if any.
    pauses: Option<u32>,
}

fn rocc() -> String {
    "rocc".to_owned()
}

fn one() -> u64 {
    1
}

/// A run of ours.
struct Ours {
    flows: Vec<FlowOutcome>,
    ports: Vec<PortSample>,
    pauses: u64,
}

/// Runs the validation. Returns `true` if every row is inside or in the file of findings.
pub fn run(root: &Path, options: &Options) -> Result<bool, String> {
    let dir = root.join("validation/rocc-omnet");
    let table = |name: &str| Table::read(&dir.join(format!("{name}.csv")));
    let suite: Suite<Case> = Suite::read(&dir)?;
    let scenario = suite.read_scenario(&dir)?;
    let ticks = series_by_case(&table("ticks")?, "queue_bytes")?;
    let sent = series_by_case(&table("sent")?, "sent_bytes")?;
    let findings = Findings::read(&dir.join("findings.toml"))?;
    let only = options.only.as_deref().unwrap_or("");
    let mut rows = Vec::new();
    let cases: Vec<&Case> = suite.case.iter().filter(|case| case.name.starts_with(only)).collect();
    let todo = runs::of_cases(&cases, |case| 1..=case.seeds);
    let measure = |case: &&Case, seed| simulate(&dir, &scenario, case, seed, &options.set);
    for (case, runs) in cases.iter().zip(runs::measure(&cases, &todo, options.jobs, &measure)) {
        let ours = runs.into_iter().collect::<Result<Vec<_>, _>>().map_err(|e| format!("{}: {e}", case.name))?;
        match (ticks.get(&case.name), sent.get(&case.name)) {
            (Some(theirs), _) => rows.extend(star(case, theirs, &ours[0])),
            (_, Some(theirs)) => rows.extend(bytes_sent(case, theirs, &ours)),
            _ => rows.extend(list(case, &table(&case.name)?, &ours)?),
        }
    }
    if rows.is_empty() {
        return Err(format!("no case in validation/rocc-omnet/suite.toml begins with `{only}`"));
    }
    findings.explain_all(&mut rows);
    Ok(show::finish(&rows, options.json))
}

/// Bytes at times in microseconds.
type Series = Vec<(u64, f64)>;

/// Reads the series of each case from a table, with their values in `column`.
fn series_by_case(table: &Table, column: &str) -> Result<BTreeMap<String, Series>, String> {
    let mut cases: BTreeMap<String, Series> = BTreeMap::new();
    for row in table.rows() {
        let point = (row.number("t_us")?, row.number(column)?);
        cases.entry(row.text("case")?.to_owned()).or_default().push(point);
    }
    Ok(cases)
}

/// Runs a case with a seed and the keys in `set` changed.
fn simulate(dir: &Path, scenario: &str, case: &Case, seed: u64, set: &[String]) -> Result<Ours, String> {
    let sink = case.senders;
    let mut text = case.ms.map_or(String::new(), |ms| format!("duration = \"{ms}ms\"\n"));
    text += scenario;
    let _ = match case.ms {
        Some(_) => write!(
            text,
            "\n[[traffic]]\nkind = \"incast\"\nsenders = {sink}\nreceiver = \"h{sink}\"\nbytes = \"endless\"\n\
             \n[[probe]]\nqueue = \"sw0->h{sink}\"\nevery = \"{TICK_US}us\"\n"
        ),
        None => write!(
            text,
            "\n[[traffic]]\nkind = \"list\"\npath = \"{}.csv\"\nignore_columns = [\"fct_ns\"]\nconnection = \"{}\"\n",
            case.name,
            if case.per_pair { "per-pair" } else { "per-flow" }
        ),
    };
    let mut sets = vec![
        ("seed".to_owned(), seed.to_string()),
        ("transport.cc".to_owned(), case.cc.clone()),
        ("topology.hosts".to_owned(), (sink + 1).to_string()),
        ("topology.rate".to_owned(), format!("\"{}Gbps\"", case.gbps)),
    ];
    sets.extend(case.set.iter().chain(set).filter_map(key_and_value));
    let mut recorder = Recorder::default();
    let ended = run_to_end(suite::configure(dir, "star.toml", &text, sets)?, &mut recorder)?;
    let mut flows = recorder.flows;
    flows.sort_by_key(|outcome| outcome.flow);
    Ok(Ours { flows, ports: recorder.ports, pauses: ended.totals.counts.pfc_pauses })
}

/// Returns the rows of a list: the time of each flow.
fn list(case: &Case, theirs: &Table, runs: &[Ours]) -> Result<Vec<Row>, String> {
    let row = |(i, theirs): (usize, csv::Row<'_>)| {
        let theirs: f64 = theirs.number("fct_ns")?;
        let time =
            |run: &Ours| run.flows.get(i).and_then(|flow| flow.fct).map_or(f64::NAN, |fct| fct.as_ps() as f64 / 1e6);
        let tolerance = Tolerance::relative(if case.seeds == 1 { 0.005 } else { 0.05 });
        let times: Vec<f64> = runs.iter().map(time).collect();
        Ok(of_runs(case, &format!("time of flow {i}"), "us", theirs / 1e3, &times, tolerance))
    };
    theirs.rows().enumerate().map(row).collect()
}

/// Returns the rows of bytes that the bottleneck has sent.
fn bytes_sent(case: &Case, theirs: &Series, runs: &[Ours]) -> Vec<Row> {
    let row = |&(at_us, theirs): &(u64, f64)| {
        let sent = |run: &Ours| {
            let at = run.ports.iter().find(|sample| sample.t.as_ps() == at_us * 1_000_000);
            at.map_or(f64::NAN, |sample| sample.tx_bytes as f64 / 1e6)
        };
        let sent: Vec<f64> = runs.iter().map(sent).collect();
        let metric = format!("sent in {} ms", at_us as f64 / 1e3);
        of_runs(case, &metric, "MB", theirs / 1e6, &sent, Tolerance::relative(0.05))
    };
    theirs.iter().map(row).collect()
}

/// Returns the row of a number of several runs: inside if their mean is within the tolerance, or if theirs is within
/// the range of ours.
fn of_runs(case: &Case, metric: &str, unit: &'static str, theirs: f64, ours: &[f64], tolerance: Tolerance) -> Row {
    Row::of((&case.name, &case.cc), (metric, unit), (theirs, ours), Some(tolerance), Range::Counts)
}

/// Returns the rows of greedy flows on a star.
fn star(case: &Case, theirs: &Series, ours: &Ours) -> Vec<Row> {
    let theirs: &[f64] = &theirs.iter().map(|tick| tick.1).collect::<Vec<_>>();
    let q_ref = if case.gbps == 40 { 150_000.0 } else { 300_000.0 };
    let at_tick: BTreeMap<u64, f64> =
        ours.ports.iter().map(|s| (s.t.as_ps() / 1_000_000, s.qlen_bytes as f64)).collect();
    let queue: Vec<f64> =
        (1..=theirs.len() as u64).map(|tick| at_tick.get(&(tick * TICK_US)).copied().unwrap_or(f64::NAN)).collect();
    let peak = |queue: &[f64]| queue.iter().copied().fold(0.0, f64::max) / 1e3;
    let rest = |queue: &[f64]| queue[queue.len() * 3 / 5..].to_vec();
    let mean_kb = |queue: &[f64]| mean(&rest(queue)).unwrap_or(f64::NAN) / 1e3;
    let deviation = |queue: &[f64]| {
        let (rest, mean_b) = (rest(queue), mean_kb(queue) * 1e3);
        let squares: Vec<f64> = rest.iter().map(|bytes| (bytes - mean_b).powi(2)).collect();
        mean(&squares).unwrap_or(f64::NAN).sqrt() / 1e3
    };
    // A queue that does not settle counts as one that settles after the end.
    let settles = |queue: &[f64]| {
        let is_off = |bytes: &f64| 0.1 * q_ref < (bytes - q_ref).abs();
        (queue.iter().rposition(is_off).map_or(0, |last| last + 1) as u64 * TICK_US) as f64 / 1e3
    };
    let same = theirs.iter().zip(&queue).take_while(|(theirs, ours)| theirs == ours).count() as f64;
    let of = |measure: &dyn Fn(&[f64]) -> f64| (measure(theirs), measure(&queue));
    let frames = |n: f64| Tolerance::absolute(n * FRAME / 1e3);
    let mean_tolerance = Tolerance::absolute(0.05 * q_ref / 1e3);
    let deviation_tolerance = Tolerance { relative: 0.25, ..frames(2.0) };
    let mut rows = vec![
        row(case, "ticks with the same queue from the start", "", (theirs.len() as f64, same), None),
        row(case, "peak queue", "KB", of(&peak), Some(frames(5.0))),
        row(case, "mean queue", "KB", of(&mean_kb), Some(mean_tolerance)),
        row(case, "deviation of the queue", "KB", of(&deviation), Some(deviation_tolerance)),
        row(case, "queue settles", "ms", of(&settles), Some(Tolerance { relative: 0.25, absolute: 0.5 })),
    ];
    let exactly = Tolerance::absolute(0.0);
    rows.extend(case.pauses.map(|n| row(case, "pauses", "", (f64::from(n), ours.pauses as f64), Some(exactly))));
    rows
}

fn row(case: &Case, metric: &str, unit: &'static str, (theirs, ours): (f64, f64), tolerance: Option<Tolerance>) -> Row {
    Row::of((&case.name, &case.cc), (metric, unit), (theirs, &[ours]), tolerance, Range::Shown)
}
