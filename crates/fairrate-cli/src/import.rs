//! `fairrate import`: scenarios from the files of other simulators.

mod chakra;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Subcommand, ValueEnum};
use fairrate_scenario::htsim::{self, Matrix, StartUnit, Tree};
use fairrate_scenario::{Overrides, Scenario, ns3, simai};
use fairrate_sim::FileError;

use crate::failure::Failure;
use crate::{new, output};

/// Arguments of `import`.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    from: From,
}

/// The simulators that files are from.
#[derive(Debug, Subcommand)]
enum From {
    /// A connection matrix of htsim, with its topology
    ///
    /// Writes `scenario.toml` and `flows.csv`, and prints what they lack.
    Htsim(Htsim),
    /// A run of HPCC's ns-3 code: its config.txt, with the topology and the flows that it names
    ///
    /// Writes `scenario.toml`, `topology.txt` and `flow.txt`, and prints what they lack.
    Ns3(Ns3),
    /// A workload of SimAI, as AICB writes it: an iteration of a training job
    ///
    /// Writes `scenario.toml` and `operations.csv`, and prints what was read and what they lack.
    Simai(Simai),
    /// Execution traces of MLCommons Chakra, the input of ASTRA-sim: a file a rank
    ///
    /// Writes `scenario.toml` and `operations.csv`, and prints what was read and what they lack.
    Chakra(chakra::Args),
}

#[derive(Debug, clap::Args)]
struct Htsim {
    /// Connection matrix, a .cm file
    #[arg(value_name = "JOB.cm")]
    matrix: PathBuf,
    /// Fat tree, a .topo file [default: three tiers for the number of hosts, 100 Gb/s and 1 us a link, as htsim takes]
    #[arg(long, value_name = "FILE.topo")]
    topology: Option<PathBuf>,
    /// Unit of `start`, which differs by program of htsim: ps for NDP, RoCE and HPCC, us for UEC and Swift
    #[arg(long, value_name = "UNIT")]
    start_unit: Option<Unit>,
    /// Directory to write to, which must not exist
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
}

#[derive(Debug, clap::Args)]
struct Ns3 {
    /// Settings of the run, a config.txt
    #[arg(value_name = "CONFIG.txt")]
    config: PathBuf,
    /// Topology [default: TOPOLOGY_FILE of the settings, from their directory or one above it]
    #[arg(long, value_name = "FILE")]
    topology: Option<PathBuf>,
    /// List of flows [default: FLOW_FILE of the settings, likewise]
    #[arg(long, value_name = "FILE")]
    flows: Option<PathBuf>,
    /// Directory to write to, which must not exist
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
}

#[derive(Debug, clap::Args)]
struct Simai {
    /// Workload, a text that begins with HYBRID_TRANSFORMER_FWD_IN_BCKWD or MICRO
    #[arg(value_name = "WORKLOAD.txt")]
    workload: PathBuf,
    /// GPUs of a server: a collective has as many channels as its group has ranks on a server
    #[arg(long, value_name = "N", default_value = "8", value_parser = clap::value_parser!(u32).range(1..))]
    gpus_per_server: u32,
    /// Reductions of gradients block, as if operations ran one after the other
    #[arg(long)]
    serial: bool,
    /// Directory to write to, which must not exist
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
}

/// A unit of starts.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Unit {
    Ps,
    Us,
}

/// Reads the files, and writes the scenario beside the files that it names.
pub fn run(args: &Args) -> Result<ExitCode, Failure> {
    match &args.from {
        From::Htsim(args) => from_htsim(args),
        From::Ns3(args) => from_ns3(args),
        From::Simai(args) => from_simai(args),
        From::Chakra(args) => chakra::run(args),
    }
}

fn from_htsim(args: &Htsim) -> Result<ExitCode, Failure> {
    let (text, matrix) = parsed(&args.matrix, Matrix::parse)?;
    let tree = args.topology.as_deref().map(|path| parsed(path, Tree::parse)).transpose()?.map(|(_, tree)| tree);
    let unit = match args.start_unit {
        Some(Unit::Us) => StartUnit::Microseconds,
        Some(Unit::Ps) => StartUnit::Picoseconds,
        None if matrix.starts_at_once() => StartUnit::Picoseconds,
        None => {
            return Err(Failure::Usage {
                message: "flows of this job start at several times, and the file does not say in which unit".to_owned(),
                help: "add `--start-unit us` for a job of htsim's UEC or Swift, `--start-unit ps` for one of NDP, RoCE or HPCC".to_owned(),
            });
        }
    };
    let name = args.matrix.file_stem().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let imported = htsim::import(&name.escape_debug().to_string(), &matrix, unit, tree.as_ref())
        .map_err(|error| Failure::input_file(&args.matrix, &text, error))?;
    let what = format!("{} flows between {} hosts", matrix.flows.len(), matrix.nodes);
    finish(&args.out, &imported.scenario, &[("flows.csv", &imported.flows)], &what, &imported.left_out)
}

fn from_simai(args: &Simai) -> Result<ExitCode, Failure> {
    let (text, workload) = parsed(&args.workload, simai::Workload::parse)?;
    let name = args.workload.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let choices = simai::Choices { gpus_per_server: args.gpus_per_server, serial: args.serial };
    let imported = simai::import(&name.escape_debug().to_string(), &workload, choices)
        .map_err(|error| Failure::input_file(&args.workload, &text, error))?;
    let files = [("operations.csv", imported.operations.as_str())];
    finish(&args.out, &imported.scenario, &files, &imported.content.join("\n  "), &imported.left_out)
}

fn from_ns3(args: &Ns3) -> Result<ExitCode, Failure> {
    let (text, config) = parsed(&args.config, ns3::Config::parse)?;
    let in_config = |error| Failure::input_file(&args.config, &text, error);
    let named = |given: &Option<PathBuf>, setting: &str, option: &str| match given {
        Some(path) => Ok(path.clone()),
        None => match config.value::<String>(setting).map_err(in_config)? {
            Some(name) => find(&args.config, &name, option),
            None => Err(Failure::Usage {
                message: format!("`{}` has no `{setting}`", args.config.display()),
                help: format!("name the file by `{option} FILE`"),
            }),
        },
    };
    // The second line of a topology has the switches.
    let (topology, more_links) = ns3::announced(&read(&named(&args.topology, "TOPOLOGY_FILE", "--topology")?)?, 2);
    let (flows, more_flows) = ns3::announced(&read(&named(&args.flows, "FLOW_FILE", "--flows")?)?, 1);
    let name = args.config.display().to_string().escape_debug().to_string();
    let mut imported = ns3::import(&name, &config).map_err(in_config)?;
    for (n, what) in [(more_links, "topology"), (more_flows, "list of flows")] {
        if 0 < n {
            imported
                .left_out
                .push(format!("{n} further lines of the {what}, which the ns-3 code does not read either."));
        }
    }
    let n_flows = flows.lines().next().unwrap_or_default().trim().to_owned();
    let files = [("topology.txt", topology.as_str()), ("flow.txt", flows.as_str())];
    finish(&args.out, &imported.scenario, &files, &format!("{n_flows} flows"), &imported.left_out)
}

/// Returns the file that the settings at `config` call `name`: from their directory, or from the nearest one above it
/// that has such a file, as the ns-3 code is started there.
fn find(config: &Path, name: &str, option: &str) -> Result<PathBuf, Failure> {
    let config = std::path::absolute(config).map_err(|error| Failure::io("finding", config, error))?;
    let found = config.ancestors().skip(1).map(|dir| dir.join(name)).find(|path| path.is_file());
    found.ok_or_else(|| Failure::Usage {
        message: format!("`{}` names `{name}`, which is neither beside it nor in a directory above", config.display()),
        help: format!("give the file by `{option} FILE`"),
    })
}

/// Checks a scenario with the files that it names, writes all of them into the new directory `out`, and prints what
/// they are and lack.
fn finish(
    out: &Path,
    scenario: &str,
    files: &[(&str, &str)],
    what: &str,
    left_out: &[String],
) -> Result<ExitCode, Failure> {
    // What those files may say and a scenario may not, such as a start after centuries, has the messages of scenarios.
    Scenario::from_texts(scenario, "scenario.toml", files, &Overrides::default())?;
    let mut all = files.to_vec();
    all.push(("scenario.toml", scenario));
    new::write_dir(out, &all)?;
    let lacks =
        if left_out.is_empty() { String::new() } else { format!("\n\nNot carried over:\n- {}", left_out.join("\n- ")) };
    output::print_text(&format!("{}: {what}{lacks}\n", out.join("scenario.toml").display()))?;
    Ok(ExitCode::SUCCESS)
}

/// Returns the text of a file.
fn read(path: &Path) -> Result<String, Failure> {
    let unreadable = |cause: std::io::Error| Failure::Unreadable { path: path.to_owned(), cause: cause.to_string() };
    std::fs::read_to_string(path).map_err(unreadable)
}

/// Returns the text of a file and what `parse` reads from it.
fn parsed<T>(path: &Path, parse: fn(&str) -> Result<T, FileError>) -> Result<(String, T), Failure> {
    let text = read(path)?;
    match parse(&text) {
        Ok(parsed) => Ok((text, parsed)),
        Err(error) => Err(Failure::input_file(path, &text, error)),
    }
}
