//! `fairrate compare`: one scenario under several algorithms, seeds and points of a grid.

mod backend;
mod fidelity;
mod refused;
mod runs;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use fairrate_control::Registry;
use fairrate_report::by_size::{BySize, Percentiles, Sizes};
use fairrate_report::comparison::Comparison;
use fairrate_report::figures::Selection;
use fairrate_report::heat_map::Layout;
use fairrate_report::index::Index;
use fairrate_report::metric::{Metric, UnknownMetric};
use fairrate_report::model::Variant;
use fairrate_report::table::Table;
use fairrate_report::{figures, format, notes, table};
use fairrate_results::ResultsDir;

use crate::drive;
use crate::failure::{Failure, INTERRUPTED};
use crate::output::{self, Pictures};
use crate::progress::Board;
use crate::run::{Sets, Threads};
pub use fairrate_experiment::columns::{Seeds, parse_seeds};

use backend::{Backend, Backends};
use fairrate_experiment::columns::{self, Axis, MOST_RUNS, parse_axis};
use fidelity::Fidelity;
use runs::{Planner, Work};

/// Largest width of a table in the terminal, in characters; a wider table becomes several tables.
const WIDEST: usize = 160;

/// Arguments of `compare`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Scenario file
    #[arg(value_name = "SCENARIO.toml")]
    scenario: PathBuf,
    /// Algorithms, or paths of libraries with one; NAME:KEY=VALUE:KEY=VALUE is a variant with other parameters, as in
    /// dcqcn,dcqcn:ai=200Mbps:hai=2Gbps
    /// [default: the scenario's, if there is a grid, several seeds or backends]
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', required_unless_present_any = ["grid", "seeds", "backend", "variants", "fidelity"])]
    cc: Vec<String>,
    /// An algorithm with other keys of the scenario, as in `--variant 'swift: switch.pfc=false, transport.rto="1ms"'`;
    /// may be given several times
    ///
    /// The algorithm may have parameters, as for --cc, and is followed by a colon and a space. A label for tables,
    /// figures and directories may be before it, as in `--variant 'lossy = swift: switch.pfc=false'`; without one they
    /// have the algorithm and its changes. A label with a colon has quotes, as in
    /// `--variant '"lossy: 1/4" = swift: switch.pfc=false'`. `@FILE` stands for the lines of a file, each a variant;
    /// empty lines and lines that begin with # are passed over.
    #[arg(long = "variant", value_name = "[LABEL =] NAME: KEY=VALUE, ...")]
    variants: Vec<String>,
    /// The scenario in several fidelities, in place of several algorithms; says in which operations of collectives and
    /// training jobs they part
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', conflicts_with_all = ["cc", "variants", "backend"])]
    fidelity: Vec<Fidelity>,
    /// Values of a key, keys as for --set, as in `--grid traffic.0.load=0.4,0.6`; several multiply
    ///
    /// Commas inside of quotes, brackets and braces are part of a value:
    /// `--grid 'probe.0.queues=["a->b","b->c"],["c->d"]'` has two values.
    #[arg(long, value_name = "KEY=VALUE,...", value_parser = parse_axis)]
    grid: Vec<Axis>,
    /// Seeds, as 3 or 1..5 (both ends included) or 1,4,7 [default: the scenario's]
    #[arg(long, value_name = "SEEDS", value_parser = parse_seeds)]
    seeds: Option<Seeds>,
    /// Number to print, and to draw against a key of the grid; may be given several times [default: the usual ones]
    #[arg(long = "metric", value_name = "NAME", long_help = metric_help())]
    metrics: Vec<String>,
    #[command(flatten)]
    by_size: BySizeArgs,
    /// Backends that move the packets; with `sim,linux` the simulator runs each network as it really was on Linux
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', default_value = "sim")]
    backend: Vec<Backend>,
    /// On Linux, multiply the rates of all links
    #[arg(long, value_name = "FACTOR")]
    scale: Option<f64>,
    #[command(flatten)]
    sets: Sets,
    /// Results directory; complete runs of the same scenario in it are taken over [default: runs/NAME-compare]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Do all runs again, those that are complete too
    #[arg(long)]
    fresh: bool,
    /// Go on without algorithms, variants and points of the grid that the scenario refuses
    #[arg(long)]
    skip_refused: bool,
    #[command(flatten)]
    threads: Threads,
    /// Runs at the same time [default: as many as leave each thread of a run a core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    jobs: Option<u16>,
    /// Print compare.json in place of the table
    #[arg(long)]
    pub json: bool,
    /// No progress on stderr
    #[arg(long, short)]
    quiet: bool,
}

/// Choices among the figures of slowdowns against flow size.
#[derive(Debug, clap::Args)]
pub struct BySizeArgs {
    /// Percentiles of the slowdown that are drawn against flow size [default: 50,99,99.9]
    #[arg(long, value_name = "P,...")]
    percentiles: Option<Percentiles>,
    /// Ends of the ranges of flow sizes there, as in 10KB,100KB,1MB [default: half decades]
    #[arg(long, value_name = "SIZE,...")]
    sizes: Option<Sizes>,
}

impl BySizeArgs {
    /// Returns the choices that were made, and those of `otherwise` where none was.
    pub fn or(&self, otherwise: BySize) -> BySize {
        BySize {
            percentiles: self.percentiles.clone().unwrap_or(otherwise.percentiles),
            sizes: self.sizes.clone().unwrap_or(otherwise.sizes),
        }
    }
}

/// Returns the help text of `--metric`.
fn metric_help() -> String {
    format!(
        "Number to print, and to draw against a key of the grid; may be given several times [default: the usual ones]\n\n\
         Without a grid, the table has these numbers alone. With one, the key is the first one with numbers for values. Each algorithm is a line, with 95 % intervals over the seeds; further \
         keys make further panels. `fairrate report DIR --metric NAME` prints and draws other ones without running anything.\n\n\
         Names: {}. Without FLOWS, a slowdown is that of all flows",
        Metric::summary()
    )
}

/// Returns the metrics with these names, in a scenario whose traffic blocks have the names `blocks`.
pub fn metrics(names: &[String], blocks: &[String]) -> Result<Vec<Metric>, Failure> {
    Metric::by_names(names, blocks).map_err(|UnknownMetric { name, help }| Failure::UnknownName {
        what: "metric",
        name,
        help,
    })
}

/// Runs the comparison, writes its report, and returns the exit code.
pub fn run(args: &Args, registry: &Registry) -> Result<ExitCode, Failure> {
    run_study(args, &Study::default(), registry)
}

/// The presentation of a comparison that is a study.
#[derive(Default)]
pub struct Study<'a> {
    /// The metrics that the printed table has, of those that are drawn; `None`: all of them.
    pub shown: Option<&'a [&'a str]>,
    /// Heat maps of its report.
    pub heat_maps: Option<Layout>,
}

impl Study<'_> {
    /// Returns `true` if another command than `compare` gives the columns.
    fn is_fixed(&self) -> bool {
        self.shown.is_some()
    }
}

/// Runs the comparison as [`run`] does, and presents it as `study` says.
pub fn run_study(args: &Args, study: &Study<'_>, registry: &Registry) -> Result<ExitCode, Failure> {
    let ccs = columns::joined(&args.cc);
    let changes = changes(&args.variants)?;
    let registry = &columns::with_libraries(&ccs, &changes, registry)?;
    let seeded = args.seeds.is_some();
    let columns = match &args.fidelity[..] {
        [] => columns::columns(&ccs, &changes, &args.grid, seeded, registry)?,
        all => columns::columns_of(&fidelity::variants(all), &args.grid, seeded)?,
    };
    let backends = Backends::new(&args.backend, args.scale)?;
    let n_runs = columns.len() * backends.each().count() * args.seeds.as_ref().map_or(1, |s| s.0.len());
    if MOST_RUNS < n_runs {
        let help = format!("at most {MOST_RUNS} are planned at once; take fewer seeds, or fewer values of a key");
        return Err(Failure::Usage { message: format!("these are {n_runs} runs"), help });
    }
    let planner = Planner {
        registry,
        file: &args.scenario,
        out: args.out.as_deref(),
        sets: args.sets.pairs(),
        seeds: args.seeds.as_ref().map(|s| s.0.as_slice()),
        fresh: args.fresh,
        skip_refused: args.skip_refused,
        may_skip: !study.is_fixed(),
        backends: &backends,
    };
    let threads = args.threads.get();
    // No run goes on beside a run on Linux, whose network is real.
    let jobs = if backends.has_linux() { 1 } else { jobs(args.jobs, threads) };
    let (dir, blocks) = planner.place(&columns)?;
    let selection = Selection {
        metrics: metrics(&args.metrics, &blocks)?,
        by_size: args.by_size.or(BySize::default()),
        heat_maps: study.heat_maps.clone(),
    };
    let (plans, refused) = planner.plan(&dir, &columns, jobs)?;
    fidelity::check(&args.fidelity, plans.iter().map(|plan| &plan.entry))?;
    let left_out = refused.sentences();
    let mut warnings: Vec<&str> = left_out.iter().map(String::as_str).collect();
    for warning in plans.iter().flat_map(|plan| &plan.warnings) {
        if !warnings.contains(&warning.as_str()) {
            warnings.push(warning);
        }
    }
    output::warn(&warnings);
    let taken_over = plans.iter().filter(|p| p.is_taken_over()).count();
    let board = Board::of_runs(args.quiet, plans.len(), taken_over);
    drive::listen_for_interrupts();
    // The lock is held until the report is written.
    let place = ResultsDir::claim_comparison(&dir)?;
    let work = Work { planner: &planner, dir: place.path(), board: &board, threads, refused: &refused };
    let index = work.run_all(&plans, jobs, &selection)?;
    board.clear();
    let parting = fidelity::parting(&args.fidelity, &index, place.path(), &blocks);
    let code = conclude(index, place.path(), args.json, study.shown, registry)?;
    if let Some(text) = parting.filter(|_| !args.json) {
        output::print_text(&text)?;
    }
    Ok(code)
}

/// Returns the variants that are given, with the lines of files in place of their names.
fn changes(given: &[String]) -> Result<Vec<String>, Failure> {
    let mut all = Vec::new();
    for text in given {
        let Some(path) = text.strip_prefix('@') else {
            all.push(text.clone());
            continue;
        };
        let lines = std::fs::read_to_string(path).map_err(|error| Failure::Usage {
            message: format!("cannot read `{path}`: {error}"),
            help: "give a file with a variant a line, as `swift: switch.pfc=false`".to_owned(),
        })?;
        all.extend(
            lines.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')).map(str::to_owned),
        );
    }
    Ok(all)
}

/// Returns the number of runs at the same time: `asked`, or as many as give each thread a core.
fn jobs(asked: Option<u16>, threads: usize) -> usize {
    let cores = || std::thread::available_parallelism().map_or(1, usize::from);
    asked.map_or_else(|| (cores() / threads).max(1), usize::from)
}

/// Writes and prints the results of the runs; of the metrics that are asked for only `shown`, if it is given.
fn conclude(
    mut index: Index,
    dir: &Path,
    json: bool,
    shown: Option<&[&str]>,
    registry: &Registry,
) -> Result<ExitCode, Failure> {
    if let Some((variants, comparison)) = index.publish(dir, registry)?
        && !json
    {
        let mut asked = index.drawn();
        asked.retain(|metric| shown.is_none_or(|names| names.contains(&metric.name(&[]).as_str())));
        print_tables(dir, &index, &comparison, chosen(&variants, &comparison, &asked).as_ref(), &asked)?;
    }
    if json {
        output::print_json(&index)?;
    }
    let failed = runs::failed(&index);
    if !failed.is_empty() {
        let each = failed.iter().map(|f| format!("`{}`: {}", dir.join(&f.dir).display(), f.cause));
        let (n_failed, n_runs) = (failed.len(), index.runs.len());
        return Err(Failure::Runs { n_failed, n_runs, each: each.collect::<Vec<_>>().join("\n") });
    }
    Ok(if drive::interrupted() { ExitCode::from(INTERRUPTED) } else { ExitCode::SUCCESS })
}

/// Returns the table of the metrics `asked`: over the grid if there is one; `None` if nothing is asked for.
fn chosen(variants: &[Variant], comparison: &Comparison, asked: &[Metric]) -> Option<Table> {
    let plain = || table::of_metrics(comparison, asked);
    (!asked.is_empty()).then(|| figures::table_over_grid(variants, comparison, asked).unwrap_or_else(plain))
}

/// Prints the chosen table if there is one, otherwise the tables of the comparison.
fn print_tables(
    dir: &Path,
    index: &Index,
    comparison: &Comparison,
    chosen: Option<&Table>,
    asked: &[Metric],
) -> Result<(), Failure> {
    let styled = output::styled();
    let about_seeds = notes::notes(comparison);
    let seeds = format::seeds_of(comparison.metrics.iter().map(|metrics| metrics.seeds.as_slice()));
    let mut parts = vec![format!("{}: {seeds}\n", index.scenario())];
    let all = table::comparison(comparison);
    let shown = chosen.unwrap_or(&all);
    parts.push(shown.to_blocks(styled, WIDEST));
    if let Some(differences) = table::differences(comparison).filter(|_| chosen.is_none()) {
        parts.extend([format!("{}\n", about_seeds[1]), differences.to_blocks(styled, WIDEST)]);
    }
    let window = notes::window(&comparison.metrics);
    let (unfinished, largest) = (notes::unfinished(comparison, asked), notes::largest(&[shown]));
    let unrecovered = notes::unrecovered(comparison, asked);
    // Text without styles has no bold values that a reader could miss.
    let bold = notes::bold(comparison).filter(|_| styled && chosen.is_none());
    let about = about_seeds
        .iter()
        .take(1)
        .chain(about_seeds.iter().skip(2))
        .chain(&bold)
        .chain(&largest)
        .chain(&unfinished)
        .chain(&unrecovered)
        .chain(&window);
    let about: Vec<&str> = about.map(String::as_str).collect();
    if !about.is_empty() {
        parts.push(about.join("\n") + "\n");
    }
    let without = index.runs.iter().filter(|r| r.state != "complete").map(|r| format!("{} {}\n", r.dir, r.state));
    let refused = index.refused.iter().map(|r| format!("{} refused: {}\n", r.label, r.reason));
    let without = without.chain(refused);
    parts.push(format!("{}report {}\n", without.collect::<String>(), dir.join("report.html").display()));
    output::print_text(&parts.join("\n"))
}

/// Writes the page of an existing comparison, for `fairrate report`; with the metrics `names` and `by_size` where they
/// are given, otherwise with the figures of the comparison. Returns a table of these metrics.
pub fn report(dir: &Path, names: &[String], by_size: &BySizeArgs, registry: &Registry) -> Result<String, Failure> {
    let index = Index::read(dir)?;
    let Some((variants, comparison)) = index.assemble(dir, registry)? else {
        return Err(Failure::Directory {
            dir: dir.to_owned(),
            problem: "has no run that has ended".to_owned(),
            help: "run the same `fairrate compare` again".to_owned(),
        });
    };
    let asked = metrics(names, &variants[0].first().blocks)?;
    let table = printed(&variants, &comparison, &asked);
    let drawn = index.selection();
    let metrics = if asked.is_empty() { drawn.metrics } else { asked };
    let selection = Selection { metrics, by_size: by_size.or(drawn.by_size), heat_maps: drawn.heat_maps };
    output::write_page(dir, &variants, &comparison, &selection, Pictures::Yes)?;
    Ok(table)
}

/// Returns the table of the metrics `asked` as `fairrate report` prints it; empty if nothing is asked for.
pub fn printed(variants: &[Variant], comparison: &Comparison, asked: &[Metric]) -> String {
    let Some(table) = chosen(variants, comparison, asked) else { return String::new() };
    let notes = notes::largest(&[&table]).into_iter().chain(notes::unfinished(comparison, asked));
    let notes = notes.chain(notes::unrecovered(comparison, asked));
    let notes: Vec<String> = notes.map(|note| format!("\n{note}\n")).collect();
    table.to_blocks(output::styled(), WIDEST) + &notes.concat() + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_and_their_threads_share_the_cores() {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        assert_eq!((jobs(Some(3), 1), jobs(None, 1), jobs(None, 10 * cores)), (3, cores, 1));
    }
}
