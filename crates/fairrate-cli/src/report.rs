//! `fairrate report`: the page of an existing results directory.

use std::path::PathBuf;
use std::process::ExitCode;

use fairrate_control::Registry;
use fairrate_report::by_size::BySize;
use fairrate_report::comparison::Comparison;
use fairrate_report::figures::Selection;
use fairrate_report::metrics::Metrics;
use fairrate_report::{load, model};

use crate::compare::{self, BySizeArgs};
use crate::failure::Failure;
use crate::output::{self, Pictures};

/// Arguments of `report`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Results directory of `run` or `compare`
    #[arg(value_name = "DIR")]
    dir: PathBuf,
    /// Number to print, and to draw against a key of the grid of a comparison, as `compare --help` says; may be given
    /// several times [default: those the comparison has are drawn]
    #[arg(long = "metric", value_name = "NAME")]
    metrics: Vec<String>,
    #[command(flatten)]
    by_size: BySizeArgs,
}

/// Writes the page. Results may be from another person, so their library is not loaded.
pub fn run(args: &Args, registry: &Registry) -> Result<ExitCode, Failure> {
    let registry = &registry.without_libraries();
    let dir = &args.dir;
    let table = if dir.join("compare.json").exists() {
        compare::report(dir, &args.metrics, &args.by_size, registry)?
    } else {
        of_run(args, registry)?
    };
    output::print_text(&format!("{table}{}\n", dir.join("report.html").display()))?;
    Ok(ExitCode::SUCCESS)
}

/// Writes the page of a single run, and returns the table of the metrics that are asked for.
fn of_run(args: &Args, registry: &Registry) -> Result<String, Failure> {
    let variants = model::variants(vec![load::run(&args.dir, registry)?]);
    let asked = compare::metrics(&args.metrics, &variants[0].first().blocks)?;
    let comparison = Comparison::of(variants.iter().map(Metrics::of).collect());
    let selection = Selection { by_size: args.by_size.or(BySize::default()), ..Selection::default() };
    output::write_page(&args.dir, &variants, &comparison, &selection, Pictures::Yes)?;
    Ok(compare::printed(&variants, &comparison, &asked))
}
