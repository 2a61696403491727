//! `fairrate explain`: why flows took as long as they did.

mod iteration;
mod json;
pub mod names;
mod rows;
mod sentence;
pub mod source;
mod tail;
mod text;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use fairrate_control::Registry;
use fairrate_experiment::Watch;
use fairrate_explain::{Explanation, Iterated};
use fairrate_report::index::{self, Index};
use fairrate_report::load::at_least;
use fairrate_report::svg;
use fairrate_results::FlowRow;
use serde::Serialize;

use self::iteration::Critical;
use self::names::Names;
use self::rows::{Row, rows};
use self::source::{ONLY_FINISHED, ONLY_FINITE, Source, refused};
use self::tail::Part;
use crate::failure::{Failure, INTERRUPTED};
use crate::output;
use crate::progress::Board;
use crate::show::Chosen;
use crate::trace::file;

/// Arguments of `explain`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Results directory of a run; with `--tail`, or of a comparison
    #[arg(value_name = "DIR")]
    dir: PathBuf,
    /// The flow, by its number in `flows.parquet` and `fairrate show`
    #[arg(long, value_name = "N", conflicts_with_all = ["worst", "tail", "class", "block"])]
    flow: Option<u32>,
    /// Number of flows, those with the largest slowdowns; an unfinished one has the slowdown that it has at least
    #[arg(long, value_name = "K", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    worst: u32,
    /// Shares of each reason in fast and in slow flows, by percentile of slowdown; of a comparison, for each run
    #[arg(long, conflicts_with = "worst")]
    tail: bool,
    /// The critical path of this iteration of a training job or a collective, which `--block` names if there are
    /// several
    #[arg(long, value_name = "N", conflicts_with_all = ["flow", "worst", "tail", "class"])]
    iteration: Option<u32>,
    /// Write the bars of `--tail` as an SVG file too, which does not exist yet
    #[arg(long, value_name = "FILE", requires = "tail")]
    svg: Option<PathBuf>,
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
    let is_comparison = args.dir.join(index::FILE).exists();
    if args.tail {
        return args.explain_tails(is_comparison, registry);
    }
    if is_comparison {
        let help = "name the directory of one of its runs, or add `--tail`";
        return Err(refused(&args.dir, "has the runs of a comparison", help));
    }
    let source = Source::open(&args.dir, registry)?;
    if let Some(iteration) = args.iteration {
        let board = Board::new(args.quiet);
        let critical = critical_path(&source, iteration, &args.chosen, &mut source.watcher(&board))?;
        let Some(critical) = critical else { return Ok(ExitCode::from(INTERRUPTED)) };
        if args.json {
            output::print_json(&critical)?;
        } else {
            output::print_text(&critical.to_text())?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    let chosen = choose(&source, args.flow, args.worst, &args.chosen)?;
    let board = Board::new(args.quiet);
    let Some(all) = explained(&source, chosen, &mut source.watcher(&board))? else {
        return Ok(ExitCode::from(INTERRUPTED));
    };
    let names = source.names();
    if args.json {
        output::print_json(&json::Output::of(&source.results.summary, &all, &names))?;
    } else {
        output::print_text(&to_text(&source, &all, &names))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the output of `explain --json` for a flow, or for the `worst` flows that `chosen` has, of the run in `dir`;
/// `None` if `watch` stopped the run.
pub fn json_of(
    dir: &Path,
    flow: Option<u32>,
    worst: u32,
    chosen: &Chosen,
    registry: &Registry,
    watch: &mut dyn Watch,
) -> Result<Option<String>, Failure> {
    let source = Source::open(dir, registry)?;
    let chosen = choose(&source, flow, worst, chosen)?;
    let Some(all) = explained(&source, chosen, watch)? else { return Ok(None) };
    let output = json::Output::of(&source.results.summary, &all, &source.names());
    Ok(Some(serde_json::to_string(&output).unwrap_or_default()))
}

/// Returns the output of `explain --iteration --json` for an iteration of the block that `chosen` names, of the run in
/// `dir`; `None` if `watch` stopped the run.
pub fn iteration_json_of(
    dir: &Path,
    iteration: u32,
    chosen: &Chosen,
    registry: &Registry,
    watch: &mut dyn Watch,
) -> Result<Option<String>, Failure> {
    let source = Source::open(dir, registry)?;
    let critical = critical_path(&source, iteration, chosen, watch)?;
    Ok(critical.map(|critical| serde_json::to_string(&critical).unwrap_or_default()))
}

/// Explains an iteration of the training job or collective operation that `chosen` names, or the only one, by its
/// critical path. Returns `None` if `watch` stopped the run.
fn critical_path(
    source: &Source,
    iteration: u32,
    chosen: &Chosen,
    watch: &mut dyn Watch,
) -> Result<Option<Critical>, Failure> {
    let (config, block) = (source.config(), chosen.block(&source.blocks, &source.results.flows()?)?);
    let all: Vec<Iterated> =
        Iterated::all(config).filter(|of| block.is_none_or(|block| of.group(config) == block)).collect();
    let of = match all[..] {
        [of] => of,
        [] => return Err(source.refused("has no such training job or collective", "explain flows, as `--worst 3`")),
        _ => return Err(source.refused("has several training jobs or collectives", "name one by `--block`")),
    };
    let Some(stages) = source.critical_path((of, iteration), watch)? else { return Ok(None) };
    let messages = source.messages(&stages, watch)?;
    Ok(messages.map(|messages| Critical::new(source, (of, iteration), &stages, &messages)))
}

/// Explains flows of a run; returns `None` if `watch` stopped the run.
fn explained(source: &Source, chosen: Vec<FlowRow>, watch: &mut dyn Watch) -> Result<Option<Vec<Explained>>, Failure> {
    let Some(accounts) = source.explain(&chosen, watch)? else { return Ok(None) };
    let names = source.names();
    let of = |(row, account): (FlowRow, Explanation)| {
        let (chain, sender) = (rows(&account.chain), rows(&account.sender));
        let sentence = sentence::sentence(&account, &chain, &names);
        Explained { row, account, chain, sender, sentence }
    };
    Ok(Some(chosen.into_iter().zip(accounts).map(of).collect()))
}

fn to_text(source: &Source, all: &[Explained], names: &Names<'_>) -> String {
    let summary = &source.results.summary;
    let head = format!("{}: {}, seed {}\n", summary.scenario, summary.cc, summary.seed);
    if let [explained] = all {
        return format!("{head}{}", text::whole(explained, names));
    }
    let flows: Vec<String> = all.iter().map(|explained| text::brief(explained, names)).collect();
    format!("{head}\n{}\n{}", flows.concat(), text::total(all, names))
}

/// The output of `explain --tail --json`.
#[derive(Serialize)]
struct Tails<'a> {
    schema: &'static str,
    scenario: &'a str,
    parts: &'a [Part],
}

/// Returns the rows of the flows to explain, which have finished or were under way when the run ended.
fn choose(source: &Source, flow: Option<u32>, worst: u32, chosen: &Chosen) -> Result<Vec<FlowRow>, Failure> {
    let summary = &source.results.summary;
    let (is_whole, end_ns) = (summary.state == "complete", summary.sim_s * 1e9);
    // A run that was interrupted goes on when it is done again.
    let least = |row: &FlowRow| at_least(row, end_ns).filter(|_| is_whole && (row.start_ns as f64) < end_ns);
    let Some(flow) = flow else {
        let mut rows = source.results.flows()?;
        let is_wanted = chosen.filter(&source.blocks, &rows)?;
        let slowdown = |row: &FlowRow| row.slowdown.or_else(|| least(row)).unwrap_or_default();
        rows.retain(|row| 0.0 < slowdown(row) && is_wanted(row));
        if rows.is_empty() {
            return Err(source.refused("has no such flow that has finished or is under way", ONLY_FINITE));
        }
        rows.sort_by(|a, b| slowdown(b).total_cmp(&slowdown(a)).then(a.id.cmp(&b.id)));
        rows.truncate(worst as usize);
        return Ok(rows);
    };
    let row = source.results.flows()?.into_iter().find(|row| row.id == flow);
    let row = row.ok_or_else(|| source.refused(&format!("has no flow {flow}"), "see `fairrate show DIR`"))?;
    if row.finished || least(&row).is_some() {
        return Ok(vec![row]);
    }
    let (problem, help) = match row.bytes {
        None => (format!("has flow {flow} as an endless one"), ONLY_FINITE),
        Some(_) if !is_whole => {
            (format!("was interrupted before flow {flow} had finished"), "run the scenario to its end")
        }
        Some(_) => (format!("ended before flow {flow} started"), "choose a flow that has started"),
    };
    Err(source.refused(&problem, help))
}

impl Args {
    /// Returns the rows of the chosen flows that have finished, at least one.
    fn finished(&self, source: &Source) -> Result<Vec<FlowRow>, Failure> {
        let mut rows = source.results.flows()?;
        let is_wanted = self.chosen.filter(&source.blocks, &rows)?;
        rows.retain(|row| row.finished && row.slowdown.is_some() && is_wanted(row));
        if rows.is_empty() {
            return Err(source.refused("has no such flow that has finished", ONLY_FINISHED));
        }
        Ok(rows)
    }

    /// Explains fast and slow flows of a run, or of each run of a comparison.
    fn explain_tails(&self, is_comparison: bool, registry: &Registry) -> Result<ExitCode, Failure> {
        if let Some(svg) = &self.svg {
            file::check_new(svg)?;
        }
        let dirs = if is_comparison {
            let mut runs = Index::read(&self.dir)?.runs;
            runs.retain(|run| run.state == "complete");
            runs.iter().try_for_each(|run| run.check(&self.dir))?;
            runs.into_iter().map(|run| (run.label, self.dir.join(run.dir))).collect()
        } else {
            vec![(String::new(), self.dir.clone())]
        };
        let board = Board::new(self.quiet);
        let (mut parts, mut scenario) = (Vec::new(), String::new());
        for (label, dir) in &dirs {
            let Some((of_run, name)) = self.tail_of(label, dir, &board, registry)? else {
                return Ok(ExitCode::from(INTERRUPTED));
            };
            parts.extend(of_run);
            scenario = name;
        }
        if parts.is_empty() {
            return Err(refused(&self.dir, "has no run that is complete", "finish it by the same `fairrate compare`"));
        }
        if let Some(svg) = &self.svg {
            output::write(svg, &svg::render(&tail::to_panel(&format!("{scenario}{}", self.chosen.words()), &parts)))?;
        }
        if self.json {
            output::print_json(&Tails { schema: "fairrate.explain-tail/1", scenario: &scenario, parts: &parts })?;
        } else {
            output::print_text(&format!("{scenario}: what completion times are made of\n\n{}", tail::to_text(&parts)))?;
        }
        Ok(ExitCode::SUCCESS)
    }

    /// Returns the parts of the run in `dir`, and the name of its scenario; `None` if the user stopped it.
    fn tail_of(
        &self,
        label: &str,
        dir: &Path,
        board: &Board,
        registry: &Registry,
    ) -> Result<Option<(Vec<Part>, String)>, Failure> {
        let source = Source::open(dir, registry)?;
        let sampled = tail::sample(self.finished(&source)?);
        let all: Vec<FlowRow> = sampled.iter().flat_map(|(.., rows)| rows.iter().cloned()).collect();
        let Some(accounts) = source.explain(&all, &mut source.watcher(board))? else { return Ok(None) };
        let summary = &source.results.summary;
        let label = if label.is_empty() { &summary.cc } else { label };
        let mut accounts = &accounts[..];
        let mut parts = Vec::new();
        for (name, n, rows) in &sampled {
            let (of_part, rest) = accounts.split_at(rows.len());
            accounts = rest;
            parts.push(Part::of(label, summary.seed, name, *n, rows, of_part));
        }
        Ok(Some((parts, summary.scenario.clone())))
    }
}
