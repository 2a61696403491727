//! The tables in `validation/ns3`: the scenarios, and ns-3's measurements in them.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;

use crate::csv::{Row, Table};

/// A window of time: from (excluded) to (included), in ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Window {
    pub from_ns: u64,
    pub to_ns: u64,
}

impl Window {
    /// Returns the length in ns.
    pub fn length_ns(self) -> u64 {
        self.to_ns - self.from_ns
    }
}

/// The queue of a port in a window.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Queue {
    /// Largest sample, in bytes.
    pub peak: f64,
    /// Mean of the samples, in bytes.
    pub mean: f64,
    /// Bytes sent.
    pub sent: f64,
}

/// The measurements of one run, by ns-3 or by our simulator.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Measured {
    /// Time from start to last acknowledgment, by flow; only of finite flows that finished.
    pub fct_ns: BTreeMap<u32, f64>,
    /// Queues by (port, window).
    pub queues: BTreeMap<(String, String), Queue>,
    /// Acknowledged payload bytes by (window, flow).
    pub goodput: BTreeMap<(String, u32), f64>,
    pub pauses: f64,
    pub ecn_marks: f64,
    pub packet_hops: f64,
}

/// A run of ns-3 and its settings in fairrate.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Run {
    /// Its name in the table of results.
    pub label: String,
    pub cc: String,
    /// `transport.window`, if it differs from the profile's.
    pub window: Option<String>,
    /// `first_ack` of the algorithm, if it differs from the profile's.
    pub first_ack: Option<String>,
    /// Bytes of a full data packet on the wire.
    pub packet: u64,
    /// `true` if ECN marks are drawn at random.
    #[serde(default)]
    pub random: bool,
}

/// A scenario of the suite.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    pub name: String,
    pub group: Group,
    pub topology: String,
    pub sample: String,
    pub until: String,
}

/// The kind of a scenario, which determines its metrics and tolerances.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Group {
    Micro,
    Incast,
    Unloaded,
    Fairness,
    Websearch,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct SuiteFile {
    runs: BTreeMap<String, Run>,
    groups: BTreeMap<Group, Vec<String>>,
    scenario: Vec<Scenario>,
}

/// One scenario with one algorithm, and ns-3's measurements.
#[derive(Clone, Debug)]
pub struct Case {
    pub scenario: Scenario,
    pub run: Run,
    pub reference: Measured,
    /// Windows of the port and flow metrics, by name.
    pub windows: BTreeMap<String, Window>,
    /// The denominator of slowdowns, by flow.
    pub standalone_ns: BTreeMap<u32, f64>,
    /// Payload bytes by flow.
    pub sizes: BTreeMap<u32, u64>,
}

impl Case {
    /// Returns `true` if marks are random draws in this run: ns-3 marked packets, and the algorithm reacts to marks.
    pub fn is_random(&self) -> bool {
        self.run.random && self.reference.ecn_marks > 0.0
    }

    /// Returns `scenario/algorithm`.
    pub fn name(&self) -> String {
        format!("{}/{}", self.scenario.name, self.run.label)
    }
}

/// Reads the suite: one case for every scenario and run in it.
pub fn load(dir: &Path) -> Result<Vec<Case>, String> {
    let suite: SuiteFile =
        toml::from_str(&crate::suite::read(&dir.join("suite.toml"))?).map_err(|e| format!("suite.toml: {e}"))?;
    let (queues, goodput, counters) = (
        Table::read(&dir.join("queues.csv"))?,
        Table::read(&dir.join("goodput.csv"))?,
        Table::read(&dir.join("counters.csv"))?,
    );
    let mut cases = Vec::new();
    for scenario in &suite.scenario {
        let flows = Table::read(&dir.join(format!("flows/{}.csv", scenario.name)))?;
        let mut sizes = BTreeMap::new();
        for row in flows.rows() {
            sizes.insert(row.number("id")?, row.number("bytes")?);
        }
        let path = dir.join(format!("fct/{}.csv", scenario.name));
        let fct = if path.exists() { Some(Table::read(&path)?) } else { None };
        for name in suite.groups.get(&scenario.group).into_iter().flatten() {
            let run = suite.runs.get(name).ok_or_else(|| format!("suite.toml: no run `{name}`"))?.clone();
            let mut case = Case {
                scenario: scenario.clone(),
                run,
                reference: Measured::default(),
                windows: BTreeMap::new(),
                standalone_ns: BTreeMap::new(),
                sizes: sizes.clone(),
            };
            for row in fct.iter().flat_map(Table::rows) {
                case.reference.fct_ns.insert(row.number("flow")?, row.number(name)?);
                case.standalone_ns.insert(row.number("flow")?, row.number("standalone_ns")?);
            }
            read_counters(&mut case, name, [&queues, &goodput, &counters])?;
            cases.push(case);
        }
    }
    Ok(cases)
}

fn read_counters(case: &mut Case, run: &str, [queues, goodput, counters]: [&Table; 3]) -> Result<(), String> {
    let scenario = case.scenario.name.clone();
    let mine = |row: &Row<'_>| row.text("scenario") == Ok(scenario.as_str()) && row.text("run") == Ok(run);
    for row in queues.rows().filter(mine) {
        let window = row.text("window")?.to_owned();
        case.windows.insert(window.clone(), window_of(&row)?);
        let queue =
            Queue { peak: row.number("peak_bytes")?, mean: row.number("mean_bytes")?, sent: row.number("tx_bytes")? };
        case.reference.queues.insert((row.text("port")?.to_owned(), window), queue);
    }
    for row in goodput.rows().filter(mine) {
        // Flows were sampled less often than ports, so their windows end at another time.
        let window = format!("{} of flows", row.text("window")?);
        case.windows.insert(window.clone(), window_of(&row)?);
        case.reference.goodput.insert((window, row.number("flow")?), row.number("acked_bytes")?);
    }
    let row = counters.rows().find(mine).ok_or_else(|| format!("counters.csv: no row for {scenario} {run}"))?;
    case.reference.pauses = row.number("pauses")?;
    case.reference.ecn_marks = row.number("ecn_marks")?;
    case.reference.packet_hops = row.number("packet_hops")?;
    Ok(())
}

/// Returns the window of a row.
fn window_of(row: &Row<'_>) -> Result<Window, String> {
    Ok(Window { from_ns: row.number("from_ns")?, to_ns: row.number("to_ns")? })
}
