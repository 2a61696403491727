//! Reads a results directory into [`RunData`].

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use fairrate_scenario::{FlowRow, Overrides, PfcRow, PortRow, RateRow, Results, ResultsError, Scenario, Summary};

use crate::model::{Flow, FlowSeries, Pause, PortSeries, Provenance, RunData, Totals};

/// Reads the results of a run, complete or not. Its label is the name of its algorithm.
///
/// # Errors
/// If there are no results in `dir`, or they are damaged.
pub fn run(dir: &Path) -> Result<RunData, ResultsError> {
    let results = Results::open(dir)?;
    let summary = &results.summary;
    // The names of nodes; without them flows go by the ids of theirs.
    let scenario = Scenario::load(&dir.join("scenario.toml"), &Overrides::default()).ok();
    let mut flow_rows = results.flows()?;
    flow_rows.sort_by_key(|f| f.id);
    let capacities = summary.ports.iter().map(|p| (p.port.as_str(), p.rate_bps as f64)).collect();
    let rates = flow_series(&results.rates()?, &flow_rows, scenario.as_ref());
    Ok(RunData {
        scenario: summary.scenario.clone(),
        description: scenario.map(|s| s.description().to_owned()).unwrap_or_default(),
        cc: summary.cc.clone(),
        label: summary.cc.clone(),
        line: summary.cc.clone(),
        point: String::new(),
        grid: Vec::new(),
        seed: summary.seed,
        state: summary.state.clone(),
        totals: totals(summary),
        flows: flow_rows.iter().map(flow).collect(),
        ports: port_series(&results.ports()?, &capacities),
        rates,
        pauses: results.pfc()?.iter().map(pause).collect(),
        settled_rtts: results.convergence()?.iter().map(|row| row.rtts.unwrap_or(f64::INFINITY)).collect(),
        scenario_toml: results.scenario_toml()?,
        provenance: Provenance {
            version: summary.version.clone(),
            commit: summary.commit.clone(),
            scenario_hash: summary.scenario_hash.clone(),
            fingerprint: summary.fingerprint.clone(),
        },
    })
}

fn totals(s: &Summary) -> Totals {
    Totals {
        end_ns: s.sim_s * 1e9,
        wall_s: s.wall_s,
        packet_hops: s.packet_hops,
        goodput_bps: s.goodput_bps,
        drops: s.drops,
        ecn_marks: s.ecn_marks,
        pfc_pauses: s.pfc_pauses,
        notices: s.notices,
        control_packets: s.control_packets,
        control_bytes: s.control_bytes,
        data_bytes: s.bytes_sent,
        retransmitted_bytes: s.retransmitted_bytes,
        reordered_bytes: s.reordered_bytes,
        reordering_mean_ns: s.reordering_mean_ns,
        reordering_max_ns: s.reordering_max_ns,
        flows_done: s.finished_flows,
        flows_unfinished: s.unfinished_flows,
    }
}

fn flow(row: &FlowRow) -> Flow {
    Flow { id: row.id, bytes: row.bytes, start_ns: row.start_ns, fct_ns: row.fct_ns, slowdown: row.slowdown }
}

fn pause(row: &PfcRow) -> Pause {
    Pause { t_ns: row.t_ns, port: row.port.to_string(), class: row.class, pause: row.pause }
}

/// The samples of each port, in the order the ports first appear.
fn port_series(rows: &[PortRow], capacities: &HashMap<&str, f64>) -> Vec<PortSeries> {
    let mut at: HashMap<Arc<str>, usize> = HashMap::new();
    let mut all: Vec<PortSeries> = Vec::new();
    for row in rows {
        let i = *at.entry(Arc::clone(&row.port)).or_insert_with(|| {
            let (name, capacity_bps) = (row.port.to_string(), capacities.get(&*row.port).copied());
            all.push(PortSeries { name, capacity_bps, ..PortSeries::default() });
            all.len() - 1
        });
        let port = &mut all[i];
        port.t_ns.push(row.t_ns);
        port.qlen_bytes.push(row.qlen_bytes as f64);
        port.tx_bytes.push(row.tx_bytes as f64);
        (port.drops, port.ecn_marks, port.pfc_pause_ns) = (row.drops, row.ecn_marks, row.pfc_pause_ns);
    }
    all
}

/// The samples of each flow, ascending by flow.
fn flow_series(rows: &[RateRow], flows: &[FlowRow], scenario: Option<&Scenario>) -> Vec<FlowSeries> {
    let mut at: HashMap<u32, usize> = HashMap::new();
    let mut all: Vec<FlowSeries> = Vec::new();
    for row in rows {
        let i = *at.entry(row.flow).or_insert_with(|| {
            all.push(FlowSeries {
                flow: row.flow,
                name: flow_name(row.flow, flows, scenario),
                ..FlowSeries::default()
            });
            all.len() - 1
        });
        let series = &mut all[i];
        series.t_ns.push(row.t_ns);
        series.cwnd_bytes.push(row.cwnd_bytes.map_or(f64::NAN, |w| w as f64));
        series.rate_bps.push(row.rate_bps as f64);
        series.delivered_bytes.push(row.delivered_bytes as f64);
    }
    all.sort_by_key(|s| s.flow);
    all
}

/// `0: h0->h16`.
fn flow_name(id: u32, flows: &[FlowRow], scenario: Option<&Scenario>) -> String {
    let Some(row) = flows.iter().find(|f| f.id == id) else { return id.to_string() };
    let node = |node: u32| {
        let named = scenario.and_then(|s| s.sim_config().topology.nodes.get(node as usize));
        named.map_or_else(|| node.to_string(), |n| n.name.clone())
    };
    format!("{id}: {}->{}", node(row.src), node(row.dst))
}
