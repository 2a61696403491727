//! `fairrate explain`: why flows took as long as they did.

mod json;
mod names;
mod rows;
mod sentence;
mod text;

use std::path::PathBuf;
use std::process::ExitCode;

use fairrate_control::Registry;
use fairrate_experiment::crew::caught;
use fairrate_experiment::run_into;
use fairrate_explain::{Explanation, Observer, Unsupported};
use fairrate_report::index;
use fairrate_results::{FlowRow, Results, RunState};
use fairrate_scenario::{Overrides, Scenario, traffic_block_names};
use fairrate_sim::{FlowId, SimConfig};

use self::names::Names;
use self::rows::{Row, rows};
use crate::drive::{self, Watcher};
use crate::failure::{Failure, INTERRUPTED};
use crate::output;
use crate::progress::Board;
use crate::show::Chosen;

/// Arguments of `explain`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Results directory of a run
    #[arg(value_name = "DIR")]
    dir: PathBuf,
    /// The flow, by its number in `flows.parquet` and `fairrate show`
    #[arg(long, value_name = "N", conflicts_with_all = ["worst", "class", "block"])]
    flow: Option<u32>,
    /// Number of flows, those with the largest slowdowns that have finished
    #[arg(long, value_name = "K", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    worst: u32,
    #[command(flatten)]
    chosen: Chosen,
    /// Print one JSON object in place of text
    #[arg(long)]
    pub json: bool,
    /// No progress on stderr
    #[arg(short, long)]
    quiet: bool,
}

/// A flow with its accounts.
pub struct Explained {
    /// Its row in `flows.parquet`.
    row: FlowRow,
    /// Its accounts.
    account: Explanation,
    /// The rows of the chain.
    chain: Vec<Row>,
    /// The rows of the sender's account.
    sender: Vec<Row>,
    /// The account in one sentence.
    sentence: String,
}

/// Runs the scenario of a results directory again, and explains its flows.
pub fn run(args: &Args, registry: &Registry) -> Result<ExitCode, Failure> {
    if args.dir.join(index::FILE).exists() {
        return Err(args.refused("has the runs of a comparison", "name the directory of one of its runs"));
    }
    let results = Results::open(&args.dir)?;
    if results.summary.backend != "sim" {
        let help = "the packets of real hosts cannot be followed: explain a run of the simulator";
        return Err(args.refused("is a run on real Linux", help));
    }
    let scenario = Scenario::with_algorithms(registry).load(&results.scenario_path(), &Overrides::default())?;
    let config = scenario.sim_config();
    let blocks = traffic_block_names(&results.scenario_toml()?);
    let names = Names::new(config, &blocks);
    let chosen = args.choose(&results, &blocks)?;
    let flows = chosen.iter().map(|row| names.flow(row.id).ok_or_else(|| args.is_another_run(&results)));
    let flows: Vec<FlowId> = flows.collect::<Result<_, _>>()?;
    let Some(observer) = args.observe(config, &flows, &names, &results)? else {
        return Ok(ExitCode::from(INTERRUPTED));
    };
    let mut all = Vec::new();
    for (row, &flow) in chosen.into_iter().zip(&flows) {
        let is_same = |account: &Explanation| row.fct_ns.is_some_and(|ns| ns.abs_diff(account.fct.as_ns()) <= 1);
        let account = observer.explain(flow).filter(is_same);
        let account = account.ok_or_else(|| args.is_another_run(&results))?;
        let (chain, sender) = (rows(&account.chain), rows(&account.sender));
        let sentence = sentence::sentence(&account, &chain, &names);
        all.push(Explained { row, account, chain, sender, sentence });
    }
    if args.json {
        output::print_json(&json::Output::of(&results.summary, &all, &names))?;
    } else {
        output::print_text(&to_text(&results, &all, &names))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn to_text(results: &Results, all: &[Explained], names: &Names<'_>) -> String {
    let summary = &results.summary;
    let head = format!("{}: {}, seed {}\n", summary.scenario, summary.cc, summary.seed);
    if let [explained] = all {
        return format!("{head}{}", text::whole(explained, names));
    }
    let flows: Vec<String> = all.iter().map(|explained| text::brief(explained, names)).collect();
    format!("{head}\n{}\n{}", flows.concat(), text::total(all, names))
}

impl Args {
    /// Returns the rows of the flows to explain, which have finished.
    fn choose(&self, results: &Results, blocks: &[String]) -> Result<Vec<FlowRow>, Failure> {
        let is_wanted = self.chosen.filter(blocks)?;
        let mut rows = results.flows()?;
        if let Some(flow) = self.flow {
            let row = rows.into_iter().find(|row| row.id == flow);
            let row = row.ok_or_else(|| self.refused(&format!("has no flow {flow}"), "see `fairrate show DIR`"))?;
            if row.bytes.is_none() {
                return Err(self.refused(&format!("has flow {flow} as an endless one"), HELP_FINISHED));
            }
            if !row.finished {
                return Err(
                    self.refused(&format!("has no completion time of flow {flow}: it is unfinished"), HELP_FINISHED)
                );
            }
            return Ok(vec![row]);
        }
        rows.retain(|row| row.finished && row.slowdown.is_some() && is_wanted(row));
        let slowdown = |row: &FlowRow| row.slowdown.unwrap_or_default();
        rows.sort_by(|a, b| slowdown(b).total_cmp(&slowdown(a)).then(a.id.cmp(&b.id)));
        rows.truncate(self.worst as usize);
        if rows.is_empty() { Err(self.refused("has no such flow that has finished", HELP_FINISHED)) } else { Ok(rows) }
    }

    /// Runs the scenario with an observer of `flows`; returns `None` if the user stopped it. Checks that it is the run of the
    /// results.
    fn observe(
        &self,
        config: &SimConfig,
        flows: &[FlowId],
        names: &Names<'_>,
        results: &Results,
    ) -> Result<Option<Observer>, Failure> {
        let mut observer =
            Observer::new(config, flows).map_err(|(flow, why)| self.unsupported(names.number(flow), why))?;
        drive::listen_for_interrupts();
        let board = Board::new(self.quiet);
        let mut watcher = Watcher::new(config.cc.info().name, &board, 1);
        let ended = caught(|| run_into(config.clone(), 1, &mut observer, &mut watcher));
        let ended = ended.map_err(|cause| Failure::Run { cause, dir: self.dir.clone() })?;
        drop(watcher);
        if ended.state == RunState::Interrupted {
            return Ok(None);
        }
        ended.unfinished.iter().for_each(|outcome| observer.add_outcome(outcome));
        // A run that was interrupted has the fingerprint of a part; its completion times are compared all the same.
        let is_whole = results.summary.state == "complete";
        if is_whole && results.summary.fingerprint != format!("{:016x}", ended.totals.fingerprint) {
            return Err(self.is_another_run(results));
        }
        Ok(Some(observer))
    }

    /// Returns the failure for results that another version has made.
    fn is_another_run(&self, results: &Results) -> Failure {
        let (made, this) = (&results.summary.version, env!("CARGO_PKG_VERSION"));
        let problem = format!("was made by fairrate {made}, and its run is another one with this fairrate {this}");
        self.refused(
            &problem,
            "run its scenario again, and explain the new results; a changed scenario or library shows so too",
        )
    }

    fn unsupported(&self, flow: u32, why: Unsupported) -> Failure {
        let (problem, help) = match why {
            Unsupported::Fluids => {
                ("is a run of `ideal`, which has no packets".to_owned(), "explain a run of another algorithm")
            }
            Unsupported::Homa => {
                ("is a run of HOMA, whose flows are not explained".to_owned(), "explain a run of another algorithm")
            }
            Unsupported::Subflows => (
                format!("has several subflows of flow {flow}, which are not explained"),
                "explain a flow with one path",
            ),
            Unsupported::Endless => (format!("has flow {flow} as an endless one"), HELP_FINISHED),
        };
        self.refused(&problem, help)
    }

    fn refused(&self, problem: &str, help: &str) -> Failure {
        Failure::Directory { dir: self.dir.clone(), problem: problem.to_owned(), help: help.to_owned() }
    }
}

const HELP_FINISHED: &str = "only flows that have finished can be explained";
