//! `fairrate run`: one scenario, one run.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use fairrate_control::Registry;
use fairrate_experiment::columns::overrides;
use fairrate_results::{Results, ResultsDir, Summary};
use fairrate_scenario::Scenario;
use fairrate_sim::Simulation;

use crate::drive::{self, End, Watcher};
use crate::failure::{Failure, INTERRUPTED};
use crate::output::{self, Pictures};
use crate::page::Program;
use crate::progress::Board;

/// Arguments of `run`.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    what: What,
    #[command(flatten)]
    threads: Threads,
    /// Results directory [default: runs/NAME-ALGORITHM-SEED]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Print one JSON object in place of tables
    #[arg(long)]
    pub json: bool,
    /// Print the run's speed too, and why it was not simulated in a faster way
    #[arg(long, conflicts_with = "json")]
    timing: bool,
    /// No progress on stderr
    #[arg(long, short)]
    quiet: bool,
    /// Show the run on a page of this machine while it goes, and until Ctrl-C; the page can stop it. Needs the program
    /// fairrate-watch
    #[arg(long)]
    watch: bool,
}

/// A scenario file and its changes, as `run` and `check` have them.
#[derive(Debug, clap::Args)]
pub struct What {
    /// Scenario file
    #[arg(value_name = "SCENARIO.toml")]
    scenario: PathBuf,
    /// Algorithm in place of the scenario's, or the path of a library with one; NAME:KEY=VALUE:KEY=VALUE with other
    /// parameters, as in dcqcn:ai=200Mbps:hai=2Gbps
    #[arg(long, value_name = "NAME")]
    cc: Option<String>,
    #[command(flatten)]
    sets: Sets,
    /// Seed of every random stream, in place of the scenario's
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
}

impl What {
    /// Reads the scenario with its changes.
    pub fn load(&self, registry: &Registry) -> Result<Scenario, Failure> {
        let overrides = overrides(self.cc.as_deref(), self.sets.pairs(), self.seed, registry)?;
        Ok(Scenario::with_algorithms(registry).load(&self.scenario, &overrides)?)
    }
}

/// `--threads`, as `run` and `compare` have it.
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct Threads {
    /// Threads of a run, each with a part of the network; results are the same bits for any number
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: u16,
}

impl Threads {
    /// Returns the number of threads.
    pub fn get(self) -> usize {
        usize::from(self.threads)
    }
}

/// `--set`, as `run` and `compare` have it.
#[derive(Debug, clap::Args)]
pub struct Sets {
    /// Change a key of the scenario: dotted, lists counted from 0, as in `--set traffic.0.load=0.4`
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = key_value)]
    sets: Vec<(String, String)>,
}

impl Sets {
    /// Returns the pairs of key and value.
    pub fn pairs(&self) -> &[(String, String)] {
        &self.sets
    }
}

fn key_value(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.trim().is_empty() => Ok((key.trim().to_owned(), value.trim().to_owned())),
        _ => Err("write it as key=value, as in transport.cc=hpcc".to_owned()),
    }
}

/// Runs the scenario.
pub fn run(args: &Args, registry: &Registry) -> Result<ExitCode, Failure> {
    let scenario = args.what.load(registry)?;
    output::warn(&scenario.warnings().iter().map(String::as_str).collect::<Vec<_>>());
    let dir = args.out.clone().unwrap_or_else(|| default_dir(&scenario));
    let program = args.watch.then(Program::find).transpose()?;
    // The lock is held until the report is written.
    let place = Arc::new(ResultsDir::claim(&dir)?);
    drive::listen_for_interrupts();
    let label = scenario.sim_config().cc.info().name;
    let board = Board::new(args.quiet);
    let (mut page, mut threads) = (None, 1);
    let begin = |simulation: &Simulation| {
        threads = simulation.threads();
        page = program.map(|program| program.start(&dir));
    };
    let end = Watcher::new(label, &board, args.threads.get()).at_begin(begin).drive(&scenario, &[], &place)?;
    let page = page.transpose()?;
    let (data, metrics) = output::write_report(&dir, output::load(&dir, label, registry)?, Pictures::Yes)?;
    output::print_run(&dir, &data, metrics, scenario.warnings(), args.json)?;
    if args.timing {
        output::print_text(&timing(&Results::open(&dir)?.summary, threads))?;
    }
    if let Some(page) = page {
        page.stay();
    }
    finish(end, &dir)
}

/// Returns the lines of `--timing` of a run on `threads` threads.
fn timing(summary: &Summary, threads: usize) -> String {
    let (events, hops, wall_s) = (summary.events, summary.packet_hops, summary.wall_s);
    let ns_per_hop = if hops == 0 { 0.0 } else { 1e9 * wall_s / hops as f64 };
    let mut lines =
        vec![format!("speed       {events} events and {hops} packet-hops in {wall_s:.2} s, {ns_per_hop:.0} ns a hop")];
    let threads = format!("{threads}, of at most one for each rack or pod");
    let ways = summary.engine.iter().flat_map(|engine| {
        let spans = if engine.in_batches { "in spans of time, in batches" } else { "in spans of time" };
        [
            ("switches", spans, "event by event", &engine.switches_by_event),
            ("hosts", "in spans of time", "event by event", &engine.hosts_by_event),
            ("threads", &threads, "one", &engine.one_thread),
        ]
    });
    lines.extend(ways.map(|(what, fast, slow, reasons)| {
        let way = if reasons.is_empty() { fast.to_owned() } else { format!("{slow}, as {}", reasons.join("; ")) };
        format!("{what:<12}{way}")
    }));
    lines.join("\n") + "\n"
}

/// Returns `runs/NAME-ALGORITHM-SEED`, relative to the current directory.
fn default_dir(scenario: &Scenario) -> PathBuf {
    let config = scenario.sim_config();
    let name = format!("{}-{}-{}", scenario.name(), config.cc.info().name, config.seed);
    Path::new("runs").join(output::file_name(&name))
}

fn finish(end: End, dir: &Path) -> Result<ExitCode, Failure> {
    match end {
        End::Complete => Ok(ExitCode::SUCCESS),
        End::Interrupted => Ok(ExitCode::from(INTERRUPTED)),
        End::Failed(cause) => Err(Failure::Run { cause, dir: dir.to_owned() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_are_split_at_the_first_equals_sign() {
        assert_eq!(key_value("a.b = x=y"), Ok(("a.b".into(), "x=y".into())));
        assert!(key_value("a.b").is_err() && key_value("=3").is_err());
    }
}
