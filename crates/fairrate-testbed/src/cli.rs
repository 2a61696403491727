//! `fairrate-testbed`: the command line.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{CommandFactory, Parser, Subcommand};
use fairrate_control::Registry;
use fairrate_experiment::columns::{file_name, overrides};
use fairrate_report::publish::{self, Pictures};
use fairrate_report::{format, load, table};
use fairrate_results::{ResultsDir, RunState, Tag, TagValue};

use crate::failure::{Failure, INTERRUPTED};
use crate::field::Field;
use crate::place;
use crate::run::{Job, listen_for_interrupts};

/// Run a scenario on network namespaces, with the TCP of Linux
///
/// Hosts and switches are network namespaces, links are veth pairs with a token bucket and a queue at each end, and the
/// program keeps packets for the delays of links. Flows are TCP connections that start at the scenario's times and send
/// its bytes. The results directory is that of `fairrate run`; its scenario.toml is the network as it really was, so
/// that the simulator can run the same. Needs root.
#[derive(Debug, Parser)]
#[command(name = "fairrate-testbed", version, max_term_width = 100)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
#[command(
    after_help = "Exit codes: 0 done, 1 the run failed, 2 bad input or no root, 130 interrupted (what there was is written)."
)]
struct Cli {
    #[command(flatten)]
    args: Option<Args>,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Print completions for a shell
    Completions {
        /// Shell to complete for
        shell: clap_complete::Shell,
    },
    /// Write the manual page
    Man {
        /// Directory for fairrate-testbed.1
        #[arg(long, value_name = "DIR", default_value = ".")]
        out: PathBuf,
    },
}

#[derive(Debug, clap::Args)]
struct Args {
    /// Scenario file
    #[arg(value_name = "SCENARIO.toml")]
    scenario: PathBuf,
    /// Algorithm in place of the scenario's; NAME:KEY=VALUE with other parameters
    #[arg(long, value_name = "NAME")]
    cc: Option<String>,
    /// Multiply the rates of all links, as 0.01 makes 250 Mb/s of 25 Gb/s; sizes and times stay
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0, value_parser = scale)]
    scale: f64,
    /// Round trips of each connection before the start, by which TCP knows the path; 0: it has only been made
    #[arg(long, value_name = "ROUNDS", default_value_t = 5)]
    warm_up: u32,
    /// Change a key of the scenario: dotted, lists counted from 0, as in `--set traffic.0.load=0.4`
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = key_value)]
    sets: Vec<(String, String)>,
    /// Seed of every random stream, in place of the scenario's
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Results directory [default: runs/NAME-ALGORITHM-SEED-linux]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Name of the run in tables [default: the algorithm's name]
    #[arg(long, value_name = "TEXT")]
    label: Option<String>,
    /// Nothing on stderr but errors, and no tables
    #[arg(long, short)]
    quiet: bool,
}

fn scale(text: &str) -> Result<f64, String> {
    let factor = text.parse::<f64>().ok().filter(|factor| 0.0 < *factor && *factor <= 1.0);
    factor.ok_or_else(|| "write a factor above 0 and up to 1, as 0.01".to_owned())
}

fn key_value(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.trim().is_empty() => Ok((key.trim().to_owned(), value.trim().to_owned())),
        _ => Err("write it as key=value, as in traffic.0.load=0.4".to_owned()),
    }
}

/// Runs the whole command line.
pub fn main() -> ExitCode {
    let result = match Cli::parse() {
        Cli { command: Some(Command::Completions { shell }), .. } => completions(shell),
        Cli { command: Some(Command::Man { out }), .. } => man(&out),
        Cli { args: Some(args), .. } => run(&args),
        Cli { args: None, command: None } => {
            Cli::command().error(ErrorKind::MissingRequiredArgument, "give a scenario file").exit()
        }
    };
    result.unwrap_or_else(Failure::tell)
}

/// Prints the completions for `shell`.
fn completions(shell: clap_complete::Shell) -> Result<ExitCode, Failure> {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "fairrate-testbed", &mut text);
    let printed = std::io::stdout().write_all(&text);
    printed.map(|()| ExitCode::SUCCESS).map_err(|e| Failure::Usage {
        message: format!("cannot print: {e}"),
        help: "give it an output that can be written to".to_owned(),
    })
}

/// Writes the manual pages to the directory `out`.
fn man(out: &Path) -> Result<ExitCode, Failure> {
    let written = std::fs::create_dir_all(out).and_then(|()| clap_mangen::generate_to(Cli::command(), out));
    written.map(|()| ExitCode::SUCCESS).map_err(|e| Failure::Usage {
        message: format!("cannot write to {}: {e}", out.display()),
        help: "give a directory that you may write to".to_owned(),
    })
}

fn run(args: &Args) -> Result<ExitCode, Failure> {
    let registry = Registry::new();
    let overrides = overrides(args.cc.as_deref(), &args.sets, args.seed, &registry)?;
    let field = Field::new(args.scenario.clone(), overrides, args.scale, 0 < args.warm_up)?;
    let scenario = field.load()?;
    let cc = scenario.sim_config().cc.info().name;
    let name = format!("{}-{cc}-{}-linux", scenario.name(), scenario.sim_config().seed);
    let dir = args.out.clone().unwrap_or_else(|| Path::new("runs").join(file_name(&name)));
    ResultsDir::check(&dir)?;
    check_root()?;
    place::check(&dir)?;
    listen_for_interrupts();
    let label = args.label.clone().unwrap_or_else(|| cc.to_owned());
    let tags = vec![Tag::new("label", TagValue::Text(label.clone()))];
    let state = Job { field, scale: args.scale, warm_up: args.warm_up, dir: &dir, tags, quiet: args.quiet }.run()?;
    report(&dir, &label, args.quiet, &registry)?;
    match state {
        RunState::Complete => Ok(ExitCode::SUCCESS),
        RunState::Interrupted => Ok(ExitCode::from(INTERRUPTED)),
        RunState::Failed(cause) => Err(Failure::Run { cause, dir }),
    }
}

fn check_root() -> Result<(), Failure> {
    if nix::unistd::geteuid().is_root() {
        return Ok(());
    }
    Err(Failure::Machine {
        message: "the testbed needs root, for namespaces and queues".to_owned(),
        help: "run it with `sudo`; everything it makes is gone when it ends".to_owned(),
    })
}

/// Writes report.html and prints the tables.
fn report(dir: &Path, label: &str, quiet: bool, registry: &Registry) -> Result<(), Failure> {
    let mut data = load::run(dir, registry)?;
    label.clone_into(&mut data.label);
    let (data, metrics) = publish::run(dir, data, Pictures::Yes)?;
    if quiet {
        return Ok(());
    }
    let tables: Vec<String> = table::single(&metrics).iter().map(table::Table::to_text).collect();
    let (end, state) = (format::time_ns(data.totals.end_ns), &data.state);
    println!("{}: {label} on Linux, seed {}, {end} ({state})\n", data.scenario, data.seed);
    println!("{}\nreport      {}", tables.join("\n"), dir.join("report.html").display());
    Ok(())
}
