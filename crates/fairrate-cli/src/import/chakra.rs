//! `fairrate import chakra`: the traces of all ranks.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use fairrate_scenario::chakra::{self, Choices, Source};

use super::{finish, read};
use crate::failure::Failure;

/// Most ranks of traces, each of which has a file.
const MOST_RANKS: u32 = 100_000;

/// Arguments of `import chakra`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Beginning of the names of the traces: PREFIX.0.et, PREFIX.1.et and so on, compressed by gzip or not
    prefix: PathBuf,
    /// Process groups by the names that traces call them by, a file as {"1": [0, 1]}
    #[arg(long, value_name = "FILE.json")]
    groups: Option<PathBuf>,
    /// Sizes of logical dimensions, the innermost first, as 8,2: for collectives that leave some of them out
    /// (`involved_dim`)
    #[arg(long, value_name = "N,...", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..))]
    logical_dims: Vec<u32>,
    /// Operations of a rank in 10^12 a second, for computations that have operations and no time
    #[arg(long, value_name = "N", value_parser = positive)]
    tflops: Option<f64>,
    /// Memory bandwidth of a rank in 10^9 bytes a second, which bounds the rate of those computations
    #[arg(long, value_name = "GB/S", value_parser = positive, requires = "tflops")]
    memory_bandwidth: Option<f64>,
    /// Directory to write to, which must not exist
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
}

/// Reads a number above zero.
fn positive(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|number: &f64| (1e-6..=1e12).contains(number));
    number.ok_or_else(|| "write a number from 0.000001 to 10^12".to_owned())
}

/// Reads the traces, and writes the scenario.
pub(super) fn run(args: &Args) -> Result<ExitCode, Failure> {
    let n_ranks = count(&args.prefix)?;
    let groups = match &args.groups {
        None => std::collections::HashMap::new(),
        Some(path) => chakra::read_groups(&read(path)?, n_ranks).map_err(|message| Failure::Usage {
            message: format!("`{}`: {message}", path.display()),
            help: "write groups by name, each with its ranks, as {\"1\": [0, 1], \"2\": [2, 3]}".to_owned(),
        })?,
    };
    let choices = Choices {
        groups,
        logical_dims: args.logical_dims.clone(),
        tflops: args.tflops,
        memory_gbytes_per_s: args.memory_bandwidth,
    };
    let source = |rank: u32| {
        let path = of_rank(&args.prefix, rank);
        let name = path.display().to_string();
        Source { name, open: Box::new(move || Ok(Box::new(File::open(&path)?) as Box<dyn Read>)) }
    };
    let sources: Vec<Source<'_>> = (0..n_ranks).map(source).collect();
    let name = args.prefix.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let imported = chakra::import(&name, &sources, &choices).map_err(|error| Failure::Usage {
        message: error.to_string(),
        help: error.help.unwrap_or_else(|| "correct the trace, or the program that wrote it".into()).into_string(),
    })?;
    let files = [("operations.csv", imported.operations.as_str())];
    finish(&args.out, &imported.scenario, &files, &imported.content.join("\n  "), &imported.left_out)
}

/// Returns the path of the trace of a rank.
fn of_rank(prefix: &Path, rank: u32) -> PathBuf {
    let mut path = prefix.as_os_str().to_owned();
    path.push(format!(".{rank}.et"));
    path.into()
}

/// Returns the number of ranks: traces are there from 0 on, without a gap.
fn count(prefix: &Path) -> Result<u32, Failure> {
    let dir = prefix.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let name = prefix.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let entries = std::fs::read_dir(dir).map_err(|error| Failure::io("reading", dir, error))?;
    let rank = |entry: std::io::Result<std::fs::DirEntry>| {
        let file = entry.ok()?.file_name().to_string_lossy().into_owned();
        let rank = file.strip_prefix(&name)?.strip_prefix('.')?.strip_suffix(".et")?;
        rank.parse::<u32>().ok().filter(|number| number.to_string() == rank)
    };
    let ranks: BTreeSet<u32> = entries.filter_map(rank).collect();
    let missing = (0..).zip(&ranks).find(|(at, rank)| at != *rank).map(|(at, _)| at);
    let usage = |message: String, help: &str| Failure::Usage { message, help: help.to_owned() };
    match (ranks.last(), missing) {
        (None, _) => {
            let message = format!("there is no trace `{}`", of_rank(prefix, 0).display());
            Err(usage(message, "give what comes before the number of the rank, as `traces/job` for `traces/job.0.et`"))
        }
        (Some(last), Some(missing)) => {
            let message =
                format!("`{}` is missing, and there are traces up to rank {last}", of_rank(prefix, missing).display());
            Err(usage(message, "add the trace of each rank"))
        }
        (Some(last), None) if MOST_RANKS <= *last => {
            Err(usage(format!("traces of {} ranks", u64::from(*last) + 1), "up to 100000 ranks are possible"))
        }
        (Some(last), None) => Ok(last + 1),
    }
}
