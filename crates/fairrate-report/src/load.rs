//! Reader of results directories.

use std::collections::{BTreeMap, HashMap};
use std::num::NonZeroU64;
use std::path::Path;

use fairrate_control::Registry;
use fairrate_results::{FlowRow, LinkRow, PfcRow, Results, ResultsError, Summary};
use fairrate_scenario::{Overrides, Scenario, traffic_block_names};
use fairrate_sim::{FlowId, FlowSpec, Trigger};
use fairrate_units::Bytes;

use crate::collectives::{self, Collective};
use crate::completion;
use crate::critical_path::{self, CriticalPath};
use crate::jobs::{self, Job};
use crate::model::{Flow, FlowSeries, Pause, PortSeries, Provenance, RunData, Totals};
use crate::network::{LinkTotals, Shape};
use crate::outages;
use crate::timeline::{self, Timeline};
use crate::worst::Worst;

/// Reads the results of a run, complete or not, into [`RunData`]. Its label is the name of its algorithm. If `registry`
/// does not have that algorithm, flows are named by the ids of their nodes and the run has no description.
///
/// # Errors
/// If there are no results in `dir`, or they are damaged.
pub fn run(dir: &Path, registry: &Registry) -> Result<RunData, ResultsError> {
    let mut results = Results::open(dir)?;
    // The scenario names the nodes; without it flows are named by the ids of their nodes.
    let reader = Scenario::with_algorithms(registry);
    let reader = if needs_flows(&results.summary) { reader } else { reader.without_flows() };
    let scenario = reader.load(&results.scenario_path(), &Overrides::default()).ok();
    complete(&mut results, scenario.as_ref())?;
    let summary = &results.summary;
    let end_ns = summary.sim_s * 1e9;
    let mut rates = flow_series(&results)?;
    let (flows, worst) = flows(&results, scenario.as_ref(), end_ns, &mut rates)?;
    let capacities = summary.ports.iter().map(|p| (p.port.as_str(), p.rate_bps as f64)).collect();
    let scenario_toml = results.scenario_toml()?;
    let blocks = traffic_block_names(&scenario_toml);
    let critical_paths = critical_path::critical_paths(&results, scenario.as_ref())?;
    Ok(RunData {
        scenario: summary.scenario.clone(),
        outages: scenario.as_ref().map_or_else(Vec::new, |s| outages::of(s, end_ns)),
        not_started: scenario.as_ref().map_or_else(BTreeMap::new, |s| not_started(s, &flows, end_ns)),
        description: scenario.as_ref().map(|s| s.description().to_owned()).unwrap_or_default(),
        cc: summary.cc.clone(),
        cc_title: summary.cc_title.clone(),
        label: summary.cc.clone(),
        line: summary.cc.clone(),
        point: String::new(),
        grid: Vec::new(),
        seed: summary.seed,
        state: summary.state.clone(),
        is_open: !summary.has_ended(),
        totals: totals(summary),
        stops_ns: scenario.as_ref().map_or_else(BTreeMap::new, |s| stops_ns(s, end_ns)),
        flows,
        ports: port_series(&results, &capacities)?,
        measured: summary.measured.clone(),
        rates,
        pauses: results.pfc()?.iter().map(pause).collect(),
        settled_rtts: results.convergence()?.iter().map(|row| row.rtts.unwrap_or(f64::INFINITY)).collect(),
        collectives: collectives(&results, scenario.as_ref())?,
        jobs: jobs(&results, scenario.as_ref())?,
        timelines: timelines(&results, scenario.as_ref(), &critical_paths)?,
        critical_paths,
        shape: scenario.as_ref().map(|s| Shape::of(&s.sim_config().topology)),
        packet_bytes: scenario.as_ref().map_or(0.0, |s| s.sim_config().longest_packet().as_u64() as f64),
        links: results.links()?.iter().map(link).collect(),
        rtts: results.rtts()?.iter().map(|row| (row.group, row.to_ns as f64, row.acks)).collect(),
        worst: worst.named(scenario.as_ref(), &blocks, |node| name(scenario.as_ref(), node)),
        blocks,
        scenario_toml,
        provenance: Provenance {
            version: summary.version.clone(),
            commit: summary.commit.clone(),
            scenario_hash: summary.scenario_hash.clone(),
            fingerprint: summary.fingerprint.clone(),
        },
    })
}

/// Completes the summary of a run that goes on, or was killed: with the time that its tables reach, and the part of the
/// measuring window until then. Its counters are not known before it ends.
///
/// # Errors
/// If a table is damaged.
pub fn complete(results: &mut Results, scenario: Option<&Scenario>) -> Result<(), ResultsError> {
    if results.summary.has_ended() {
        return Ok(());
    }
    let mut end_ns = 0;
    results.each_port(|row| end_ns = end_ns.max(row.t_ns))?;
    results.each_rate(|row| end_ns = end_ns.max(row.t_ns))?;
    results.each_flow(|row| end_ns = end_ns.max(row.start_ns + row.fct_ns.unwrap_or(0)))?;
    let window = scenario.map(Scenario::window);
    let from_ns = window.map_or(0, |window| window.from.as_ps() / 1_000).min(end_ns);
    let until = window.and_then(|window| window.until);
    let until_ns = until.map_or(end_ns, |until| (until.as_ps() / 1_000).min(end_ns));
    results.summary.sim_s = end_ns as f64 / 1e9;
    (results.summary.measured.from_ns, results.summary.measured.until_ns) = (from_ns, until_ns.max(from_ns));
    Ok(())
}

fn totals(s: &Summary) -> Totals {
    Totals {
        end_ns: s.sim_s * 1e9,
        wall_s: s.wall_s,
        packet_hops: s.packet_hops,
        // Within no time there is no rate.
        goodput_bps: if s.measured.from_ns < s.measured.until_ns { s.goodput_bps } else { f64::NAN },
        drops: s.drops,
        counts: s.counts,
        trimmed_bytes: s.bytes_trimmed,
        control_bytes: s.control_bytes,
        data_bytes: s.bytes_sent,
        retransmitted_bytes: s.retransmitted_bytes,
        reordered_bytes: s.reordered_bytes,
        reordering_mean_ns: s.reordering_mean_ns,
        reordering_max_ns: s.reordering_max_ns,
        recovery_ns: s.recovery.map(|r| r.time_ns.map_or(f64::INFINITY, |ns| ns as f64)),
        settled: s.recovery.and_then(|r| Some(r.settled_bps? / r.before_bps)),
        flows_done: s.finished_flows,
        flows_unfinished: s.unfinished_flows,
        deadlines: s.deadlines,
    }
}

/// Returns the least slowdown that a flow can come to which is under way at `end_ns`: its time so far over its ideal
/// time, at least 1. `None` if it is done, endless, or has not started.
pub fn at_least(row: &FlowRow, end_ns: f64) -> Option<f64> {
    let open_ns = end_ns - row.start_ns as f64;
    let ideal_ns = row.ideal_fct_ns? as f64;
    (row.slowdown.is_none() && 0.0 <= open_ns).then(|| (open_ns / ideal_ns.max(1.0)).max(1.0))
}

/// Returns a flow of a run that ended at `end_ns`.
pub(crate) fn flow(row: &FlowRow, end_ns: f64) -> Flow {
    Flow {
        id: row.id,
        block: row.group,
        dst: row.dst,
        bytes: row.bytes.and_then(NonZeroU64::new),
        start_ns: row.start_ns as f64,
        fct_ns: row.fct_ns.map(|ns| ns as f64).into(),
        slowdown: row.slowdown.into(),
        at_least: at_least(row, end_ns).into(),
        reorder_extent: u32::try_from(row.reorder_extent_bytes).unwrap_or(u32::MAX),
    }
}

/// Returns `true` if a report on a run has to know the flows of its scenario, and not only those that have rows: flows
/// that have not begun, endless ones, which may stop, and those of collective operations and jobs, which wait for each
/// other. There may be many millions, and most runs have none of these.
fn needs_flows(summary: &Summary) -> bool {
    let is_told = ["complete", "interrupted"].contains(&summary.state.as_str());
    let has_waiting = !summary.collectives.is_empty() || !summary.jobs.is_empty();
    !is_told || 0 < summary.flows_to_start || 0 < summary.endless_flows || has_waiting
}

/// Reads the flows of a run that ended at `end_ns`, ascending by their numbers, and the worst of them; names the flows
/// of `rates`. There may be many millions of rows, so that none is kept.
fn flows(
    results: &Results,
    scenario: Option<&Scenario>,
    end_ns: f64,
    rates: &mut [FlowSeries],
) -> Result<(Vec<Flow>, Worst), ResultsError> {
    let (mut flows, mut worst) = (Vec::new(), Worst::until(end_ns));
    results.each_flow(|row| {
        flows.push(flow(&row, end_ns));
        if let Ok(at) = rates.binary_search_by_key(&row.id, |series| series.flow) {
            rates[at].name = format!("{}: {}->{}", row.id, name(scenario, row.src), name(scenario, row.dst));
        }
        worst.add(row);
    })?;
    flows.sort_unstable_by_key(|flow: &Flow| flow.id);
    Ok((flows, worst))
}

/// Returns the times before `end_ns` at which endless flows stop, by flow.
fn stops_ns(scenario: &Scenario, end_ns: f64) -> BTreeMap<u32, f64> {
    let specs = (0..).map(FlowId).zip(&scenario.sim_config().flows).filter(|(_, spec)| spec.bytes == Bytes::MAX);
    specs.map(|(id, spec)| (spec.name(id), spec.stop.as_ns_f64())).filter(|(_, stop_ns)| *stop_ns < end_ns).collect()
}

/// Returns the number of finite flows of each block of which `told`, ascending by number, has nothing, and whose time
/// to start had not come at `end_ns`, or that waited for others. A run that ends writes rows of the former too; one
/// that is killed has none of them.
fn not_started(scenario: &Scenario, told: &[Flow], end_ns: f64) -> BTreeMap<u32, usize> {
    let is_told = |name: u32| told.binary_search_by_key(&name, |flow| flow.id).is_ok();
    let flows = (0..).map(FlowId).zip(&scenario.sim_config().flows);
    let untold = flows.filter(|(id, flow)| flow.bytes != Bytes::MAX && !is_told(flow.name(*id)));
    let start = |(_, flow): (FlowId, &FlowSpec)| match flow.trigger {
        Trigger::Time => Some((flow.group, flow.start.as_ns_f64())),
        Trigger::Dependencies => Some((flow.group, f64::INFINITY)),
        Trigger::After(..) | Trigger::Change => None,
    };
    completion::not_started(untold.filter_map(start), end_ns)
}

/// Reads the collective operations.
fn collectives(results: &Results, scenario: Option<&Scenario>) -> Result<Vec<Collective>, ResultsError> {
    if results.summary.collectives.is_empty() {
        return Ok(Vec::new());
    }
    Ok(collectives::collectives(&results.summary.collectives, &results.collectives()?, |node| name(scenario, node)))
}

/// Reads the training jobs.
fn jobs(results: &Results, scenario: Option<&Scenario>) -> Result<Vec<Job>, ResultsError> {
    if results.summary.jobs.is_empty() {
        return Ok(Vec::new());
    }
    Ok(jobs::jobs(&results.summary.jobs, &results.iterations()?, |node| name(scenario, node)))
}

/// Reads the operations of training jobs, and the iterations of collective operations.
fn timelines(
    results: &Results,
    scenario: Option<&Scenario>,
    paths: &[CriticalPath],
) -> Result<Vec<Timeline>, ResultsError> {
    let names = scenario.map_or(&[][..], |scenario| scenario.traffic_blocks());
    let blocks = timeline::Blocks { names, paths, host: |node| name(scenario, node) };
    let mut timelines = Vec::new();
    if !results.summary.jobs.is_empty() {
        timelines.extend(timeline::of_jobs(&results.summary.jobs, &results.operations()?, &blocks));
    }
    if !results.summary.collectives.is_empty() {
        timelines.extend(timeline::of_collectives(&results.summary.collectives, &results.collectives()?, &blocks));
    }
    Ok(timelines)
}

/// Returns the name of a node, or its number without a scenario.
fn name(scenario: Option<&Scenario>, node: u32) -> String {
    let nodes = scenario.map(|scenario| &scenario.sim_config().topology.nodes);
    nodes.and_then(|nodes| nodes.get(node as usize)).map_or(node.to_string(), |n| n.name.clone())
}

fn link(row: &LinkRow) -> LinkTotals {
    LinkTotals {
        port: row.port.to_string(),
        rate_bps: row.rate_bps as f64,
        tx_bytes: row.tx_bytes as f64,
        ecn_marks: row.ecn_marks,
        pfc_pause_ns: row.pfc_pause_ns as f64,
        drops: row.by_cause().into_iter().filter(|(_, n)| 0 < *n).collect(),
    }
}

fn pause(row: &PfcRow) -> Pause {
    Pause { t_ns: row.t_ns as f64, port: row.port.to_string(), class: row.class, pause: row.pause }
}

/// Number of samples of a series that are always kept: they show its interval.
const ALWAYS_KEPT: usize = 128;

/// Returns `true` if `next` is the third or later of equal samples. The samples in between are redundant: figures and
/// numbers assume that between two samples a value stays as it was, or changes evenly.
fn repeats(values: &[f64], next: f64) -> bool {
    // Bits are compared, so that NaN, which stands for no window, equals itself.
    let is_same = |value: &f64| value.to_bits() == next.to_bits();
    ALWAYS_KEPT <= values.len() && values[values.len() - 2..].iter().all(is_same)
}

/// Records a sample's time; `values` are the series with their next values. Returns `true` if the sample only moves the
/// end of the last one, since all values repeat; if `false`, the caller has to append them.
fn prolongs(t_ns: &mut Vec<f64>, at_ns: f64, values: &[(&Vec<f64>, f64)]) -> bool {
    let repeats = values.iter().all(|&(series, next)| repeats(series, next));
    if repeats {
        t_ns.pop();
    }
    t_ns.push(at_ns);
    repeats
}

/// Returns the samples of each port, in the order the ports first appear.
fn port_series(results: &Results, capacities: &HashMap<&str, f64>) -> Result<Vec<PortSeries>, ResultsError> {
    let mut at: HashMap<String, usize> = HashMap::new();
    let mut all: Vec<PortSeries> = Vec::new();
    let measured = &results.summary.measured;
    let (from_ns, until_ns) = (measured.from_ns as f64, measured.until_ns as f64);
    // Counters of each port when the measuring window began.
    let mut before: Vec<(u64, u64, f64)> = Vec::new();
    results.each_port(|row| {
        let i = at.get(&*row.port).copied().unwrap_or_else(|| {
            let (name, capacity_bps) = (row.port.to_string(), capacities.get(&*row.port).copied());
            at.insert(name.clone(), all.len());
            all.push(PortSeries { name, capacity_bps, ..PortSeries::default() });
            before.push((0, 0, 0.0));
            all.len() - 1
        });
        let port = &mut all[i];
        let (t_ns, pfc_pause_ns) = (row.t_ns as f64, row.pfc_pause_ns as f64);
        if t_ns <= from_ns {
            before[i] = (row.drops, row.ecn_marks, pfc_pause_ns);
        }
        if t_ns <= until_ns {
            let (drops, ecn_marks, pause_ns) = before[i];
            (port.drops, port.ecn_marks) = (row.drops - drops, row.ecn_marks - ecn_marks);
            port.pfc_pause_ns = pfc_pause_ns - pause_ns;
        }
        let (qlen_bytes, tx_bytes) = (row.qlen_bytes as f64, row.tx_bytes as f64);
        if prolongs(&mut port.t_ns, t_ns, &[(&port.qlen_bytes, qlen_bytes), (&port.tx_bytes, tx_bytes)]) {
            return;
        }
        port.qlen_bytes.push(qlen_bytes);
        port.tx_bytes.push(tx_bytes);
    })?;
    Ok(all)
}

/// Returns the samples of each flow, ascending by flow, with their numbers for names.
fn flow_series(results: &Results) -> Result<Vec<FlowSeries>, ResultsError> {
    let mut at: HashMap<u32, usize> = HashMap::new();
    let mut all: Vec<FlowSeries> = Vec::new();
    results.each_rate(|row| {
        let i = *at.entry(row.flow).or_insert_with(|| {
            all.push(FlowSeries { flow: row.flow, name: row.flow.to_string(), ..FlowSeries::default() });
            all.len() - 1
        });
        let series = &mut all[i];
        let cwnd_bytes = row.cwnd_bytes.map_or(f64::NAN, |w| w as f64);
        let (rate_bps, delivered_bytes) = (row.rate_bps as f64, row.delivered_bytes as f64);
        let values = [
            (&series.cwnd_bytes, cwnd_bytes),
            (&series.rate_bps, rate_bps),
            (&series.delivered_bytes, delivered_bytes),
        ];
        if prolongs(&mut series.t_ns, row.t_ns as f64, &values) {
            return;
        }
        series.cwnd_bytes.push(cwnd_bytes);
        series.rate_bps.push(rate_bps);
        series.delivered_bytes.push(delivered_bytes);
    })?;
    all.sort_by_key(|s| s.flow);
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_samples_and_the_ends_of_equal_ones_are_kept() {
        let series = |n: usize, last: [f64; 2]| [vec![0.0; n], last.to_vec()].concat();
        assert!(repeats(&series(200, [5.0, 5.0]), 5.0) && repeats(&series(200, [f64::NAN; 2]), f64::NAN));
        for (values, next) in
            [(series(200, [5.0, 5.0]), 6.0), (series(200, [4.0, 5.0]), 5.0), (series(9, [5.0; 2]), 5.0)]
        {
            assert!(!repeats(&values, next), "{next} after {values:?}");
        }
    }
}
