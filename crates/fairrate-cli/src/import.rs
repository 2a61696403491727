//! `fairrate import`: scenarios from the files of other simulators.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Subcommand, ValueEnum};
use fairrate_scenario::htsim::{self, Matrix, StartUnit, Tree};
use fairrate_scenario::{Overrides, Scenario};
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

/// A unit of starts.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Unit {
    Ps,
    Us,
}

/// Reads the files, and writes the scenario beside its list of flows.
pub fn run(args: &Args) -> Result<ExitCode, Failure> {
    let From::Htsim(args) = &args.from;
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
    // What a matrix may say and a scenario may not, such as a start after centuries, has the messages of scenarios.
    let files = [("flows.csv", imported.flows.as_str())];
    Scenario::from_texts(&imported.scenario, "scenario.toml", &files, &Overrides::default())?;
    let beside = args.out.parent().filter(|dir| !dir.as_os_str().is_empty());
    beside.map_or(Ok(()), std::fs::create_dir_all).map_err(|error| Failure::io("making", &args.out, error))?;
    std::fs::create_dir(&args.out).map_err(|error| match error.kind() {
        std::io::ErrorKind::AlreadyExists => Failure::Usage {
            message: format!("`{}` exists", args.out.display()),
            help: "give another directory, or remove it first".to_owned(),
        },
        _ => Failure::io("making", &args.out, error),
    })?;
    let scenario = args.out.join("scenario.toml");
    new::write(&args.out.join("flows.csv"), &imported.flows)?;
    new::write(&scenario, &imported.scenario)?;
    let left_out = imported.left_out.join("\n- ");
    output::print_text(&format!(
        "{}: {} flows between {} hosts\n\nNot carried over:\n- {left_out}\n",
        scenario.display(),
        matrix.flows.len(),
        matrix.nodes
    ))?;
    Ok(ExitCode::SUCCESS)
}

/// Returns the text of a file and what `parse` reads from it.
fn parsed<T>(path: &Path, parse: fn(&str) -> Result<T, FileError>) -> Result<(String, T), Failure> {
    let unreadable = |cause: std::io::Error| Failure::Unreadable { path: path.to_owned(), cause: cause.to_string() };
    let text = std::fs::read_to_string(path).map_err(unreadable)?;
    match parse(&text) {
        Ok(parsed) => Ok((text, parsed)),
        Err(error) => Err(Failure::input_file(path, &text, error)),
    }
}
