//! The command line of fairrate: a laboratory for datacenter congestion control.
//!
//! Each subcommand has its file. Data goes to stdout, progress and errors to stderr. Exit codes: 0 done, 1 the run
//! failed, 2 bad input (nothing is written), 130 interrupted (the results so far are written).
//!
//! A program with algorithms of its own calls [`main_with`].

mod allocate;
mod bench;
mod check;
mod coexist;
mod compare;
mod drive;
mod error_json;
mod explain;
mod export;
mod external;
mod failure;
mod figure;
mod import;
mod large_blocks;
mod list;
mod new;
mod output;
mod page;
mod progress;
mod report;
mod run;
mod shell;
mod show;
mod terminal;
mod trace;

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use fairrate_control::Registry;
use fairrate_experiment::Watch;

pub use self::coexist::{
    Case as CoexistenceCase, Study as Coexistence, metrics as coexistence_metrics, verdict as coexistence_verdict,
};
pub use self::trace::Selection as TraceSelection;

/// A laboratory for datacenter congestion control
#[derive(Debug, Parser)]
#[command(name = "fairrate", version, propagate_version = true, max_term_width = 100)]
#[command(
    after_help = "Exit codes: 0 done, 1 the run failed, 2 bad input, 130 interrupted (what there was is written).\n\
    Any other command NAME runs the program fairrate-NAME that lies beside this one or in PATH."
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run a scenario
    ///
    /// Writes the results directory as the run goes: flows, ports, rates and pauses as Parquet, summary.json, the
    /// resolved scenario.toml and, at the end, report.html. Prints the tables of the run.
    Run(run::Args),
    /// Run a scenario with several algorithms and hold them against each other
    ///
    /// Runs the same flows from the same seeds under each algorithm, and at each point of a grid, each run in a
    /// directory of its own below DIR. Prints one table, and writes DIR/report.html, with all algorithms in every
    /// figure, and DIR/compare.json. Several seeds give means with intervals, and differences paired by seed. The same
    /// command goes on where an interrupted one stopped.
    Compare(compare::Args),
    /// Study what two algorithms do to each other in one queue
    ///
    /// Compares flows of A beside flows of B that share a port, over buffers, numbers of flows, round-trip times of B,
    /// and classes; short flows of the one beside long ones of the other; and flows of the one before, while and after
    /// the other's are there. Prints what a flow of each gets of its fair share, and a verdict. Writes what `compare`
    /// writes, and the scenario beside it.
    Coexist(coexist::Args),
    /// Write a commented scenario of a fabric
    ///
    /// Asks five questions at a terminal: hosts, hosts on a leaf, their rate, oversubscription, and sizes of flows.
    /// Answers can be options instead. Writes a scenario that runs as it is.
    New(new::Args),
    /// Write a scenario from the files of another simulator
    Import(import::Args),
    /// Write the files of another simulator from a scenario
    Export(export::Args),
    /// Describe a scenario without running it
    ///
    /// Prints its hosts, links and oversubscription, base round-trip time, marking and pauses by port, flows and the
    /// load that they offer to each tier, and how long a run will take. Problems of the file are errors, as for `run`.
    Check(check::Args),
    /// Compute the ideal rates of flows that share links
    ///
    /// Prints a line a flow, in the order of its file: flow,rate_gbps. No packets are simulated.
    Allocate(allocate::Args),
    /// Measure how fast parts of fairrate are on this machine
    ///
    /// Prints a line for each case: the median, smallest and largest of its times. Other programs that run at the same
    /// time spoil the numbers.
    Bench(bench::Args),
    /// Draw figures of the papers
    ///
    /// Runs what a figure of a paper shows, draws it, and holds it against what the paper says. Writes figure.svg,
    /// figure.html, points.csv and claims.json, each figure into a directory of its own below DIR. Results of earlier
    /// runs are taken over, so an interrupted command goes on where it stopped. The exit code does not say if the paper
    /// is right.
    Figure(figure::Args),
    /// List what scenarios can name
    List(list::Args),
    /// Write report.html of a results directory anew
    Report(report::Args),
    /// Show the worst flows and ports of a run
    ///
    /// Prints the flows with the largest slowdowns, with the names of their hosts, and the probed ports with the
    /// longest queues.
    Show(show::Args),
    /// Say why flows took as long as they did
    ///
    /// Runs the scenario of DIR again with observers, checks that it is the same run, and prints the completion time of
    /// the worst flow, or of another, as a sum that is exact to the picosecond: propagation, transmission, queues and
    /// who was ahead, pauses, window, pacing, losses and timeouts.
    Explain(explain::Args),
    /// Write the packets of a run to a file for other tools
    ///
    /// Runs the scenario of DIR again with an observer, checks that it is the same run, and writes what leaves each
    /// port to FILE. Its ending says the format: .pcapng for Wireshark, .perfetto-trace for Perfetto, .parquet a table.
    Trace(trace::Args),
    /// Print the JSON schema of scenario files
    ///
    /// Editors complete and check scenarios by it.
    Schema,
    /// Print what completes commands in a shell
    Completions(shell::Completions),
    /// Write manual pages
    Man(shell::Man),
    #[command(external_subcommand)]
    External(Vec<OsString>),
}

impl Command {
    /// Returns `true` if errors are printed as JSON too.
    fn json(&self) -> bool {
        match self {
            Self::Run(args) => args.json,
            Self::Check(args) => args.json,
            Self::Compare(args) => args.json,
            Self::Coexist(args) => args.json,
            Self::Allocate(args) => args.json,
            Self::Bench(args) => args.json,
            Self::Figure(args) => args.json,
            Self::List(args) => args.json,
            Self::Show(args) => args.json,
            Self::Explain(args) => args.json,
            Self::New(_)
            | Self::Import(_)
            | Self::Export(_)
            | Self::Report(_)
            | Self::Trace(_)
            | Self::Schema
            | Self::Completions(_)
            | Self::Man(_)
            | Self::External(_) => false,
        }
    }
}

/// Runs the whole command line, with the algorithms of `registry` and those of shared libraries. The arguments are
/// those of the process; returns the exit code for the process.
///
/// ```no_run
/// use fairrate_control::dctcp::DctcpConfig;
/// use fairrate_control::{AlgorithmInfo, Registry, RegistryError};
///
/// fn main() -> Result<std::process::ExitCode, RegistryError> {
///     let info = AlgorithmInfo { name: "mine", title: "Mine", paper: "none", idea: "DCTCP under another name" };
///     Ok(fairrate_cli::main_with(&Registry::new().with(info, DctcpConfig::new)?))
/// }
/// ```
pub fn main_with(registry: &Registry) -> ExitCode {
    main_of(registry, std::env::args_os())
}

/// Runs the whole command line as [`main_with`], with the arguments `args`, the first of which is the program's name.
pub fn main_of(registry: &Registry, args: impl IntoIterator<Item = OsString>) -> ExitCode {
    large_blocks::are_mapped();
    let args: Vec<OsString> = args.into_iter().collect();
    let command = match parse(registry, &args) {
        Ok(cli) => cli.command,
        Err(error) => return not_understood(&error, &args),
    };
    let registry = &registry.clone().with_libraries(fairrate_plugin::open);
    let json = command.json();
    let done = match command {
        Command::Run(args) => run::run(&args, registry),
        Command::New(args) => new::run(&args, registry),
        Command::Import(args) => import::run(&args),
        Command::Export(args) => export::run(&args, registry),
        Command::Check(args) => check::run(&args, registry),
        Command::Compare(args) => compare::run(&args, registry),
        Command::Coexist(args) => coexist::run(&args, registry),
        Command::Allocate(args) => allocate::run(&args, registry),
        Command::Bench(args) => bench::run(&args),
        Command::Figure(args) => figure::run(&args),
        Command::List(args) => list::run(&args, registry),
        Command::Report(args) => report::run(&args, registry),
        Command::Show(args) => show::run(&args, registry),
        Command::Explain(args) => explain::run(&args, registry),
        Command::Trace(args) => trace::run(&args, registry),
        Command::Schema => output::print_json(&fairrate_scenario::json_schema()).map(|()| ExitCode::SUCCESS),
        Command::Completions(args) => shell::completions(args, Cli::command()),
        Command::Man(args) => shell::man(&args, Cli::command()),
        Command::External(words) => external::run(&words),
    };
    match done {
        Ok(code) => code,
        Err(failure) => failure.tell(json),
    }
}

/// Explains a flow of the results in `dir`, or the `worst` flows of a size class or a traffic block, as
/// `fairrate explain --json` does. Returns the JSON text; `None` if `watch` stopped the run.
///
/// # Errors
/// If there are no such results or flows, or the run cannot be explained.
pub fn explain_json(
    dir: &Path,
    flow: Option<u32>,
    worst: u32,
    (class, block): (Option<String>, Option<String>),
    registry: &Registry,
    watch: &mut dyn Watch,
) -> Result<Option<String>, Box<dyn miette::Diagnostic + Send + Sync>> {
    let chosen = show::Chosen::of(class, block);
    explain::json_of(dir, flow, worst, &chosen, registry, watch).map_err(|failure| Box::new(failure) as _)
}

/// Explains an iteration of a training job or a collective operation by its critical path, as
/// `fairrate explain --iteration --json` does. `block` names it if there are several. Returns the JSON text; `None` if
/// `watch` stopped the run.
///
/// # Errors
/// If there are no such results, or no such iteration that is complete.
pub fn explain_iteration_json(
    dir: &Path,
    iteration: u32,
    block: Option<String>,
    registry: &Registry,
    watch: &mut dyn Watch,
) -> Result<Option<String>, Box<dyn miette::Diagnostic + Send + Sync>> {
    let chosen = show::Chosen::of(None, block);
    explain::iteration_json_of(dir, iteration, &chosen, registry, watch).map_err(|failure| Box::new(failure) as _)
}

/// Runs the scenario of the results in `dir` again, and writes the steps of its packets to `out`, which ends in
/// `.parquet`, as `fairrate trace` does. Returns `false` if `watch` stopped the run.
///
/// # Errors
/// If there are no such results, flows or ports, the run cannot be traced, or the file cannot be written.
pub fn trace_table(
    dir: &Path,
    out: &Path,
    selection: &TraceSelection,
    registry: &Registry,
    watch: &mut dyn Watch,
) -> Result<bool, Box<dyn miette::Diagnostic + Send + Sync>> {
    let done = trace::to_file(dir, out, selection, registry, watch);
    done.map(|done| done.is_some()).map_err(|failure| Box::new(failure) as _)
}

/// Returns the study of two algorithms that share a port, as `fairrate coexist A B` runs it; `options` are those of the
/// command, as `--rtt 20us`.
///
/// # Errors
/// An option or an algorithm is not understood.
pub fn coexistence(
    a: &str,
    b: &str,
    options: &[String],
    registry: &Registry,
) -> Result<Coexistence, Box<dyn miette::Diagnostic + Send + Sync>> {
    coexist::study(a, b, options, registry).map_err(|failure| Box::new(failure) as _)
}

/// Reads the arguments `args`. The help texts name the program's own algorithms.
fn parse(registry: &Registry, args: &[OsString]) -> Result<Cli, clap::Error> {
    let own: Vec<&str> = registry.own_infos().map(|info| info.name).collect();
    let mut command = Cli::command();
    if !own.is_empty() {
        let names = format!("Algorithms of this program: {}", own.join(", "));
        for subcommand in ["run", "compare", "list"] {
            command = command.mut_subcommand(subcommand, |c| c.after_help(&names));
        }
    }
    let matches = command.try_get_matches_from(args)?;
    Cli::from_arg_matches(&matches).map_err(|error| error.format(&mut Cli::command()))
}

/// Prints an error of the arguments `args`, as JSON with `--json`, or the requested help; returns the exit code.
fn not_understood(error: &clap::Error, args: &[OsString]) -> ExitCode {
    let asks_for_json = || args.iter().any(|arg| arg == "--json");
    if !error.use_stderr() || !asks_for_json() {
        error.exit();
    }
    let code = u8::try_from(error.exit_code()).unwrap_or(2);
    eprint!("{}", error_json::usage(&error.to_string(), code));
    ExitCode::from(code)
}
