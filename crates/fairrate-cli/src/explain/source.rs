//! The results that are explained or traced: their run is done again, and checked to be the same.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use fairrate_control::Registry;
use fairrate_experiment::crew::caught;
use fairrate_experiment::{Ended, Watch, run_into};
use fairrate_explain::{
    CriticalPaths, Explanation, Iterated, Milestones, NoPath, Observer, Stage, Unsupported, supports,
};
use fairrate_results::{FlowRow, Results, RunState};
use fairrate_scenario::{Overrides, Scenario, ScenarioError, traffic_block_names};
use fairrate_sim::{FlowId, SimConfig, Sink};
use fairrate_units::Time;

use super::names::Names;
use crate::drive::{self, Watcher};
use crate::failure::Failure;
use crate::progress::Board;

/// Help for flows without a completion time.
pub const ONLY_FINISHED: &str = "only flows that have finished can be explained";

/// Help for endless flows.
pub const ONLY_FINITE: &str = "only flows with a size can be explained";

/// A results directory with its scenario.
pub struct Source {
    dir: PathBuf,
    pub results: Results,
    scenario: Scenario,
    pub blocks: Vec<String>,
}

impl Source {
    /// Opens the results in `dir`, which must be those of a run of the simulator.
    pub fn open(dir: &Path, registry: &Registry) -> Result<Self, Failure> {
        let results = Results::open(dir)?;
        if results.summary.backend != "sim" {
            let help = "the packets of real hosts cannot be followed: name a run of the simulator";
            return Err(refused(dir, "is a run on real Linux", help));
        }
        let scenario = Scenario::with_algorithms(registry).load(&results.scenario_path(), &Overrides::default());
        let scenario = scenario.map_err(|error| foreign(dir, &error).unwrap_or(error.into()))?;
        let blocks = traffic_block_names(&results.scenario_toml()?);
        Ok(Self { dir: dir.to_owned(), results, scenario, blocks })
    }

    /// Returns the names of the run.
    pub fn names(&self) -> Names<'_> {
        Names::new(self.scenario.sim_config(), &self.blocks)
    }

    /// Returns the failure for a `problem` of the directory.
    pub fn refused(&self, problem: &str, help: &str) -> Failure {
        refused(&self.dir, problem, help)
    }

    /// Returns an observer that shows the progress of the run on `board`, and ends it with Ctrl-C.
    pub fn watcher<'a>(&'a self, board: &'a Board) -> Watcher<'a> {
        drive::listen_for_interrupts();
        Watcher::new(self.scenario.sim_config().cc.info().name, board, 1)
    }

    /// Runs the scenario again and returns the accounts of the flows of `rows`; `None` if `watch` stopped the run.
    pub fn explain(&self, rows: &[FlowRow], watch: &mut dyn Watch) -> Result<Option<Vec<Explanation>>, Failure> {
        let names = self.names();
        let flows = rows.iter().map(|row| names.flow(row.id).ok_or_else(|| self.is_another_run()));
        let flows: Vec<FlowId> = flows.collect::<Result<_, _>>()?;
        let Some((observer, end)) = self.observe(&flows, watch)? else { return Ok(None) };
        let account = |(row, &flow): (&FlowRow, &FlowId)| {
            let is_same = |account: &Explanation| row.fct_ns.is_some_and(|ns| ns.abs_diff(account.fct.as_ns()) <= 1);
            let account =
                if row.finished { observer.explain(flow).filter(is_same) } else { observer.explain_open(flow, end) };
            account.ok_or_else(|| self.is_another_run())
        };
        rows.iter().zip(&flows).map(account).collect::<Result<_, _>>().map(Some)
    }

    /// Runs the scenario with an observer of `flows`, which is returned with the end of the run. Checks that it is the
    /// run of the results.
    fn observe(&self, flows: &[FlowId], watch: &mut dyn Watch) -> Result<Option<(Observer, Time)>, Failure> {
        let config = self.scenario.sim_config();
        let refused = |(flow, why)| self.unsupported(self.names().number(flow), why);
        let mut observer = Observer::new(config, flows).map_err(refused)?;
        let Some(ended) = self.run_again(&mut observer, watch)? else { return Ok(None) };
        for outcome in &ended.unfinished {
            observer.add_outcome(outcome);
        }
        Ok(Some((observer, ended.totals.end)))
    }

    /// Runs the scenario again and returns the critical path of an iteration of a job or of a collective operation;
    /// `None` if `watch` stopped the run.
    pub fn critical_path(
        &self,
        (of, iteration): (Iterated, u32),
        watch: &mut dyn Watch,
    ) -> Result<Option<Vec<Stage>>, Failure> {
        let config = self.config();
        let mut milestones = Milestones::new(config);
        let Some(ended) = self.run_again(&mut milestones, watch)? else { return Ok(None) };
        ended.unfinished.iter().for_each(|outcome| milestones.flow(outcome));
        CriticalPaths::new(&milestones, config).path(of, iteration).map(Some).map_err(|why| match why {
            NoPath::Incomplete => {
                let table = match of {
                    Iterated::Job(_) => "iterations.parquet",
                    Iterated::Collective(_) => "collectives.parquet",
                };
                let help = format!("complete ones have rows in `{table}`");
                self.refused(&format!("has no complete iteration {iteration}"), &help)
            }
            NoPath::Missing(_) | NoPath::Inconsistent(_) => self.is_another_run(),
        })
    }

    /// Runs the scenario again and returns the accounts of the messages of `stages` that can be explained; `None` if
    /// `watch` stopped the run.
    pub fn messages(
        &self,
        stages: &[Stage],
        watch: &mut dyn Watch,
    ) -> Result<Option<HashMap<FlowId, Explanation>>, Failure> {
        let config = self.config();
        let mut flows: Vec<FlowId> = stages.iter().filter_map(|stage| stage.doing.message()).collect();
        flows.retain(|&flow| supports(config, flow).is_ok());
        if flows.is_empty() {
            return Ok(Some(HashMap::new()));
        }
        let Some((observer, _)) = self.observe(&flows, watch)? else { return Ok(None) };
        let account = |flow: FlowId| Some((flow, observer.explain(flow)?));
        Ok(Some(flows.into_iter().filter_map(account).collect()))
    }

    /// Returns the configuration of the run.
    pub fn config(&self) -> &SimConfig {
        self.scenario.sim_config()
    }

    /// Runs the scenario with a sink. Checks that it is the run of the results.
    pub fn run_again(&self, sink: &mut dyn Sink, watch: &mut dyn Watch) -> Result<Option<Ended>, Failure> {
        let config = self.config();
        let ended = caught(|| run_into(config.clone(), 1, sink, watch));
        let ended = ended.map_err(|cause| Failure::Run { cause, dir: self.dir.clone() })?;
        if ended.state == RunState::Interrupted {
            return Ok(None);
        }
        // A run that was interrupted has the fingerprint of a part; its completion times are compared all the same.
        let is_whole = self.results.summary.state == "complete";
        if is_whole && self.results.summary.fingerprint != format!("{:016x}", ended.totals.fingerprint) {
            return Err(self.is_another_run());
        }
        Ok(Some(ended))
    }

    /// Returns the failure for results that this version does not repeat.
    fn is_another_run(&self) -> Failure {
        let (made, this) = (&self.results.summary.version, env!("CARGO_PKG_VERSION"));
        let problem = format!("was made by fairrate {made}, and its run is another one with this fairrate {this}");
        let help = "run its scenario again, and name the new results; a changed scenario or library shows so too";
        self.refused(&problem, help)
    }

    fn unsupported(&self, flow: u32, why: Unsupported) -> Failure {
        const OTHER: &str = "explain a run of another algorithm";
        let (problem, help) = match why {
            Unsupported::Fluids => ("is a run of `ideal`, which has no packets".to_owned(), OTHER),
            Unsupported::Endless => (format!("has flow {flow} as an endless one"), ONLY_FINITE),
        };
        self.refused(&problem, help)
    }
}

/// Returns the failure for a run in `dir` under an algorithm that only the program that ran it has; `None` if `error`
/// is another one. Built-in algorithms are known, and libraries are given by their files.
fn foreign(dir: &Path, error: &ScenarioError) -> Option<Failure> {
    let problems = error.problems();
    let unknown = problems.iter().find(|problem| {
        let key = problem.key.as_deref().unwrap_or_default();
        problem.code == "scenario::unknown_name" && key.rsplit('.').next() == Some("cc")
    })?;
    let name = unknown.message.split('`').nth(1).unwrap_or_default();
    let problem = format!("is a run under `{name}`, an algorithm in Python or in a program of its own");
    Some(refused(dir, &problem, "this command has built-in algorithms and those of libraries: name a run under these"))
}

/// Returns the failure for a `problem` of the directory `dir`.
pub fn refused(dir: &Path, problem: &str, help: &str) -> Failure {
    Failure::Directory { dir: dir.to_owned(), problem: problem.to_owned(), help: help.to_owned() }
}
