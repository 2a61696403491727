//! Critical paths from the tables of a run.

use std::collections::HashMap;
use std::path::Path;

use fairrate_explain::{CriticalPaths, Doing, Iterated, Milestones, NoPath, Stage, first_tasks};
use fairrate_results::{FlowRow, OperationRow, PfcRow, Results, ResultsError};
use fairrate_scenario::Scenario;
use fairrate_sim::{Activity, FlowId, FlowSpec, SimConfig};
use fairrate_units::Time;

use super::computations::Computations;
use super::held::Network;
use super::{CriticalPath, Event, NOTED, PathOfIteration, PathStage};
use crate::format;
use crate::model::block_name;

/// Returns the critical paths of a run.
///
/// # Errors
/// If tables cannot be read, have times that no run has, or contradict the dependencies of the scenario.
pub(crate) fn critical_paths(
    results: &Results,
    scenario: Option<&Scenario>,
) -> Result<Vec<CriticalPath>, ResultsError> {
    let Some(scenario) = scenario else { return Ok(Vec::new()) };
    // The flows of real hosts do not wait as those of the simulator do.
    let has_times = scenario.window().messages && results.summary.backend == "sim";
    if !has_times || Iterated::all(scenario.sim_config()).next().is_none() {
        return Ok(Vec::new());
    }
    let mut flows = results.flows()?;
    flows.sort_unstable_by_key(|row| row.id);
    let tables = Tables {
        dir: results.dir(),
        is_complete: results.summary.state == "complete",
        end_ns: (results.summary.sim_s * 1e9) as u64,
        flows,
        operations: if results.summary.jobs.is_empty() { Vec::new() } else { results.operations()? },
        pauses: results.pfc()?,
    };
    tables.critical_paths(scenario)
}

/// The tables of a run.
pub(super) struct Tables<'a> {
    /// Their directory.
    pub dir: &'a Path,
    /// Set if the run has ended: then every flow that has arrived has a row.
    pub is_complete: bool,
    /// End of the run, in ns.
    pub end_ns: u64,
    /// The rows of flows, ascending by their numbers.
    pub flows: Vec<FlowRow>,
    /// The rows of operations.
    pub operations: Vec<OperationRow>,
    /// The rows of pauses.
    pub pauses: Vec<PfcRow>,
}

impl Tables<'_> {
    /// Returns the critical paths of all jobs and collective operations.
    pub fn critical_paths(&self, scenario: &Scenario) -> Result<Vec<CriticalPath>, ResultsError> {
        let config = scenario.sim_config();
        let mut times = Milestones::of_tables(config);
        self.note_flows(&mut times, config)?;
        self.note_operations(&mut times, config)?;
        times.note_moments(config);
        let paths = CriticalPaths::new(&times, config);
        let reading = Reading {
            tables: self,
            config,
            network: Network::new(config, &self.pauses, self.end_ns),
            computations: Computations::of(config, &self.operations),
        };
        let (n_blocks, names) = (Iterated::all(config).count(), scenario.traffic_blocks());
        Iterated::all(config).map(|block| reading.path_of(&paths, block, names, 1 < n_blocks)).collect()
    }

    fn note_flows(&self, times: &mut Milestones, config: &SimConfig) -> Result<(), ResultsError> {
        for (flow, spec) in (0..).map(FlowId).zip(&config.flows) {
            let Some(row) = self.row_of(flow, spec) else { continue };
            let Some(fct_ns) = row.fct_ns else { continue };
            let Some((start, end)) = span(row.start_ns, row.start_ns.saturating_add(fct_ns)) else {
                return Err(self.damaged("flows", format!("flow {} has times that no run has", row.id)));
            };
            times.note_flow(flow, start, end);
        }
        Ok(())
    }

    fn note_operations(&self, times: &mut Milestones, config: &SimConfig) -> Result<(), ResultsError> {
        for spec in &config.jobs {
            let tasks = first_tasks(spec);
            let parts: HashMap<(u32, u32), usize> =
                spec.parts.iter().zip(0..).map(|(part, at)| ((part.operation, part.rank), at)).collect();
            for row in self.operations.iter().filter(|row| row.group == spec.group) {
                let problem = match (parts.get(&(row.operation, row.rank)), span(row.start_ns, row.end_ns)) {
                    (Some(&part), Some((start, end))) => {
                        times.note_part(spec, (part, tasks[part]), start, end);
                        continue;
                    }
                    (None, _) => "is not in the scenario",
                    (_, None) => "has times that no run has",
                };
                let row = format!("operation {} of rank {} {problem}", row.operation, row.rank);
                return Err(self.damaged("operations", row));
            }
        }
        Ok(())
    }

    fn row_of(&self, flow: FlowId, spec: &FlowSpec) -> Option<&FlowRow> {
        let at = self.flows.binary_search_by_key(&spec.name(flow), |row| row.id).ok()?;
        Some(&self.flows[at])
    }

    fn damaged(&self, table: &str, problem: String) -> ResultsError {
        ResultsError::Damaged { path: self.dir.join(format!("{table}.parquet")), problem }
    }
}

/// Returns the times of a span; `None` if it ends before its start or no run lasts that long.
fn span(start_ns: u64, end_ns: u64) -> Option<(Time, Time)> {
    let time = |ns: u64| ns.checked_mul(1_000).map(Time::from_ps);
    let (start, end) = (time(start_ns)?, time(end_ns)?);
    (start <= end).then_some((start, end))
}

/// The tables of a run while paths are read.
struct Reading<'a> {
    tables: &'a Tables<'a>,
    config: &'a SimConfig,
    network: Network<'a>,
    computations: Computations,
}

impl Reading<'_> {
    /// Returns the paths of a job or a collective operation.
    fn path_of(
        &self,
        paths: &CriticalPaths<'_>,
        block: Iterated,
        names: &[String],
        is_named: bool,
    ) -> Result<CriticalPath, ResultsError> {
        let group = block.group(self.config);
        let mut iterations = Vec::new();
        for number in paths.complete(block) {
            match paths.path(block, number) {
                Ok(stages) => {
                    let stages = stages.iter().map(|stage| self.stage(block, stage)).collect();
                    iterations.push(PathOfIteration { number, stages });
                }
                // Tables of a run that was killed need not have the same end.
                Err(NoPath::Incomplete | NoPath::Missing(_)) if !self.tables.is_complete => {}
                Err(why) => return Err(self.refused(why)),
            }
        }
        Ok(CriticalPath {
            block: group,
            name: block_name(names, group),
            is_named,
            planned: match block {
                Iterated::Job(at) => u64::from(self.config.jobs[at].iterations),
                Iterated::Collective(at) => u64::from(self.config.collectives[at].iterations),
            },
            iterations,
        })
    }

    /// Returns the error for times of which there is no path.
    fn refused(&self, why: NoPath) -> ResultsError {
        let (activity, problem) = match why {
            NoPath::Incomplete => return self.tables.damaged("operations", "an iteration has no end".to_owned()),
            NoPath::Missing(activity) => (activity, "has no time, or something for which it waits has none"),
            NoPath::Inconsistent(activity) => (activity, "starts before something for which it waits has ended"),
        };
        let (table, of) = self.place(activity);
        self.tables.damaged(table, format!("{of} {problem}, so tables and scenario are not of one run"))
    }

    /// Returns the table with the times of a flow or task, and the name of its row.
    fn place(&self, activity: Activity) -> (&'static str, String) {
        let Some(task) = activity.task() else {
            let flow = activity.flow().unwrap_or(FlowId(0));
            return ("flows", format!("flow {}", self.config.flows[flow.index()].name(flow)));
        };
        // The tasks of jobs follow each other.
        let part = self.config.jobs.iter().filter(|spec| spec.tasks().contains(&task.0)).find_map(|spec| {
            let at = first_tasks(spec).partition_point(|first| *first <= task).checked_sub(1)?;
            Some(format!("operation {} of rank {}", spec.parts[at].operation, spec.parts[at].rank))
        });
        ("operations", part.unwrap_or_else(|| "a task".to_owned()))
    }

    fn stage(&self, block: Iterated, stage: &Stage) -> PathStage {
        let (operation, kind) = block.operation(self.config, stage);
        let operation = match (operation, kind) {
            ("", kind) => kind.to_owned(),
            (operation, "compute" | "message") => operation.to_owned(),
            (operation, kind) => format!("{operation} {kind}"),
        };
        let (start_ns, time_ns) = (stage.start.as_ns_f64(), stage.end.saturating_sub(stage.start).as_ns_f64());
        let of = PathStage { rank: stage.rank, start_ns, time_ns, expected_ns: time_ns, ..PathStage::default() };
        let node = |node: fairrate_sim::NodeId| self.config.topology.nodes[node.index()].name.as_str();
        let rank = || {
            let host = block.ranks(self.config)[stage.rank as usize];
            format!("{} ({})", stage.rank, node(host))
        };
        match stage.doing {
            Doing::Computes => {
                let Iterated::Job(job) = block else {
                    return PathStage { name: format!("computation at {}", rank()), ..of };
                };
                let iteration = self.config.jobs[job].operations[stage.operation as usize].iteration;
                let median = self.computations.median_of_others((job, iteration), stage);
                // Both are differences of times that are rounded to nanoseconds.
                let median = median.filter(|median| median + 2.0 < time_ns);
                let expected_ns = median.unwrap_or(time_ns);
                let is_straggler = NOTED * time_ns < time_ns - expected_ns;
                let reason = if is_straggler { "a straggler: others take the time to be expected" } else { "" };
                PathStage { name: format!("{operation} at {}", rank()), expected_ns, reason: reason.to_owned(), ..of }
            }
            Doing::Moves(flow) | Doing::Leaves(flow) => {
                let spec = &self.config.flows[flow.index()];
                let alone_ns = match stage.doing {
                    Doing::Leaves(_) => {
                        self.network.rate_of_sender(flow).map(|rate| rate.tx_time(spec.bytes).as_ns_f64())
                    }
                    _ => self.tables.row_of(flow, spec).and_then(|row| row.ideal_fct_ns).map(|ns| ns as f64),
                };
                let expected_ns = alone_ns.map_or(time_ns, |alone| alone.min(time_ns));
                let (paused_ns, reason) = self.network.held(flow, (stage.start, stage.end), time_ns - expected_ns);
                let is_explained = fairrate_explain::supports(self.config, flow).is_ok();
                let command = format!("fairrate explain . --flow {}", spec.name(flow));
                let bytes = format::bytes(spec.bytes.as_f64());
                PathStage {
                    event: Event::Message,
                    name: format!("{}->{}: {operation}, {bytes}", node(spec.src), node(spec.dst)),
                    expected_ns,
                    paused_ns,
                    reason,
                    command: if is_explained { command } else { String::new() },
                    ..of
                }
            }
            Doing::Adds => PathStage { event: Event::Other, name: format!("sum at {}", rank()), ..of },
            Doing::Begins => PathStage { event: Event::Other, name: format!("latency at {}", rank()), ..of },
            Doing::Waits => PathStage { event: Event::Other, name: format!("wait at {}", rank()), ..of },
        }
    }
}

#[cfg(test)]
mod tests;
