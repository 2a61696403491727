//! `fairrate report`: the page of an existing results directory.

use std::path::PathBuf;
use std::process::ExitCode;

use fairrate_control::Registry;
use fairrate_report::by_size::BySize;
use fairrate_report::figures::Selection;
use fairrate_report::load;

use crate::compare::{self, BySizeArgs};
use crate::failure::Failure;
use crate::output::{self, Pictures};

/// Arguments of `report`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Results directory of `run` or `compare`
    #[arg(value_name = "DIR")]
    dir: PathBuf,
    /// Number to draw against a key of the grid of a comparison, as `compare --help` says; may be given several times
    /// [default: those the comparison has]
    #[arg(long = "metric", value_name = "NAME")]
    metrics: Vec<String>,
    #[command(flatten)]
    by_size: BySizeArgs,
}

/// Writes the page. Results may be from another person, so their library is not loaded.
pub fn run(args: &Args, registry: &Registry) -> Result<ExitCode, Failure> {
    let registry = &registry.without_libraries();
    let dir = &args.dir;
    if dir.join("compare.json").exists() {
        compare::report(dir, &args.metrics, &args.by_size, registry)?;
    } else if args.metrics.is_empty() {
        let selection = Selection { by_size: args.by_size.or(BySize::default()), ..Selection::default() };
        fairrate_report::publish::selected(dir, load::run(dir, registry)?, &selection, Pictures::Yes)?;
    } else {
        return Err(Failure::Directory {
            dir: dir.clone(),
            problem: "has one run, and `--metric` needs a grid of them".to_owned(),
            help: "give the directory of `fairrate compare --grid`".to_owned(),
        });
    }
    output::print_text(&format!("{}\n", dir.join("report.html").display()))?;
    Ok(ExitCode::SUCCESS)
}
